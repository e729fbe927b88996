"""The end of a run: the document, the gates, the exit status, the summary."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agenteval.engine.run_metadata import run_info
from pytest_agenteval.errors import ResultsError
from pytest_agenteval.plugin.items import session_state
from pytest_agenteval.plugin.options import run_of
from pytest_agenteval.plugin.prefetch import end_calls
from pytest_agenteval.support.files import shown_path

if TYPE_CHECKING:
    from pytest_agenteval.engine.run import Run
    from pytest_agenteval.results.analysis.gates import ExitStatus, Gate
    from pytest_agenteval.results.document.document import Document
    from pytest_agenteval.results.document.rows import CaseKey
    from pytest_agenteval.results.journal.run_folder import RunFolder


Hook = Callable[..., None]
Told = Mapping[str, Mapping[str, Any]]
"""What cases reported, by node id."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What is left of a run: its document, where it was written, why it ended with which status."""

    document: Document
    path: Path
    exit: ExitStatus
    calls: str = ""
    gated: bool = False
    blamed: frozenset[CaseKey] = frozenset()
    report: Path | None = None
    resumed: str = ""
    budget: str = ""
    faults: tuple[str, ...] = ()


def finish_or_tell(session: pytest.Session, sent: Told, hook: Hook) -> tuple[RunSummary | None, str | None]:
    """Return the ending; where there is none although cases ``sent`` of verdicts, why not:
    then no gate was judged.

    ``hook`` calls one of our hooks and keeps what it raises.
    """
    from pytest_agenteval.errors import AgentEvalError

    try:
        ending = finish_session(session, hook, sent)
        if ending is not None or not sent:
            return ending, None if ending is None else _foreign_lines(ending.document)
        why = "the run's folder was deleted while it ran"
    except (OSError, AgentEvalError) as error:
        why = str(error)
    return None, f"the run was not ended as it should: {why}{_where_kept(session.config)}"


def _where_kept(config: pytest.Config) -> str:
    """Return what an unfinished end has left, and how to make a results file of it."""
    folder = run_of(config).find_folder()
    if folder is None:
        return ""
    shown = _shown(folder.path, config)
    return f"; the answers are in {shown}: `agenteval merge {shown}` makes the results file of them"


def _foreign_lines(document: Document) -> str | None:
    """Return what to say of lines in the run's folder that none of its processes has written."""
    files = document.run.get("foreign_lines")
    if not files:
        return None
    return (
        f"lines in {', '.join(files)} of the run's folder were not written by this run and do not count: "
        "a program that was tested, or another one, has written them"
    )


def _require_same(document: Document, sent: Told) -> None:
    """Refuse a document that says other verdicts than the run's processes have sent.

    Raises ``ResultsError``: what lies in the outputs folder, a program under test can reach.
    """
    for case in document.cases:
        nodeid = case.rows[0].nodeid
        scalars = sent.get(nodeid)
        if scalars is not None and scalars["verdict"] != case.verdict:
            raise ResultsError(
                f"{nodeid}: the run's folder says {case.verdict}, the process that ran the case said "
                f"{scalars['verdict']}; something has changed the folder while the run went on"
            )


def finish_session(session: pytest.Session, hook: Hook, sent: Told) -> RunSummary | None:
    """Write the document, then decide the exit status by what it says.

    Raises ``ResultsError`` where it says something else than ``sent``, the scalars that processes sent.
    """
    from pytest_agenteval.reports.summary_files import write_summaries
    from pytest_agenteval.results.analysis.gates import exit_status
    from pytest_agenteval.results.document.document import from_folder, write_document

    config = session.config
    run = run_of(config)
    if session.exitstatus == pytest.ExitCode.INTERRUPTED:
        run.abort()
    calls = end_calls(config)
    folder = run.find_folder()
    if folder is None:
        return None
    run.journal.close()
    info = run_info(run.context, config.invocation_params.args)
    folder.write_run(info)
    document = from_folder(folder)
    _require_same(document, sent)
    gates = _gates(run, document, folder.document)
    if gates:
        folder.write_run({**info, "gates": [gate.record() for gate in gates]})
        document = from_folder(folder)
    cases = dict(document.header["cases"])
    hook("pytest_agenteval_document", document=document.header)
    path = write_document(document, folder.document)
    ending = exit_status(
        cases,
        gates=gates,
        pytest_status=int(session.exitstatus),
        strict=run.context.settings.strict,
        all_reviewed=run.context.settings.unreviewed == "fail",
    )
    session.exitstatus = ending.status
    faults = write_summaries(document, run.context.settings.summary, os.environ, run.context.root)
    report = None
    if run.context.settings.html is not None:
        try:
            report = _write_report(path, run.context.root / run.context.settings.html)
        except OSError as error:
            faults.append(f"--agent-html {run.context.settings.html}: {error.strerror or error}")
    if faults and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if run.context.settings.file_mode == "shared":
        for written in filter(None, (path, report)):
            written.chmod(0o644)
    resumed = _resumed(run, folder)
    # the summaries still read the run's folder
    if not any(row.verdict == "not_run" or row.stage == "worker" for row in document.rows):
        folder.remove()
    else:
        folder.end()
    spent = calls.summary() if calls is not None else ""
    priced = _budget(run, document)
    blamed = frozenset(key for gate in gates for key in gate.blamed)
    return RunSummary(
        document, path, ending, spent, bool(gates), blamed, report, resumed, priced, tuple(faults)
    )


def _resumed(run: Run, folder: RunFolder) -> str:
    """Return what a resumed run went on with: the answers it took over and the calls it made ('' for new)."""
    from pytest_agenteval.results.journal.index import index_folder
    from pytest_agenteval.support.text import counted

    if run.context.process.earlier is None:
        return ""
    index = index_folder(folder)
    name = Path(run.context.process.earlier).name
    kept, calls = index.taken_over(folder.generation), index.calls(folder.generation)
    return f"went on with {name}: {counted(kept, 'answer')} taken over, {calls:,} asked now"


def _budget(run: Run, document: Document) -> str:
    """Return a warning if some answers had no known cost and did not count against the budget, else ''."""
    from pytest_agenteval.support.text import counted

    answered = [row for row in document.rows if row.answered_at]
    unknown = sum(row.cost is None for row in answered)
    if run.context.settings.budget is None or not unknown:
        return ""
    have = "have no known cost" if unknown != 1 else "has no known cost"
    if unknown == len(answered):
        advice = "(an agent reports it, or tokens and a model)"
        return f"budget: not enforced: {counted(unknown, 'answer')} {have} {advice}"
    return f"budget: {unknown:,} of {counted(len(answered), 'answer')} {have} and did not count"


def _write_report(results: Path, place: Path) -> Path:
    """Return the one-file report of ``--agent-html``; entries are read from the document,
    not from journals.
    """
    from pytest_agenteval.reports.html import write_html
    from pytest_agenteval.results.document.load import read_document

    return write_html(read_document(results), place)


def _gates(run: Run, document: Document, own: Path) -> list[Gate]:
    """Return the gates of ``--agent-fail-under`` and ``--agent-baseline``, judged."""
    from pytest_agenteval.results.analysis.gates import against_baseline, fail_under, find_baseline

    settings = run.context.settings
    gates = fail_under(document.cases, settings.fail_under)
    if settings.baseline is not None:
        baseline = find_baseline(settings.baseline, run.context.output, run.context.root, own)
        significant = settings.baseline_test == "significant"
        gates.append(against_baseline(baseline, document, significant=significant))
    return gates


def print_summary(reporter: Any, config: pytest.Config, ending: RunSummary) -> None:
    """Print the summary table in the colours of the terminal reporter."""
    from pytest_agenteval.reports.terminal import terminal_lines

    _print_blamed(reporter, config, ending)
    lines = terminal_lines(
        ending.document,
        width=min(reporter._tw.fullwidth, 160),
        verbosity=config.get_verbosity(),
        results=_shown(ending.path, config),
    )
    for line in lines:
        if line.style == "title":
            reporter.section(line.text)
        else:
            reporter.write_line(line.text, **({line.style: True} if line.style else {}))
    if ending.resumed:
        reporter.write_line(ending.resumed)
    if ending.report is not None:
        reporter.write_line(f"report: {_shown(ending.report, config)}")
    for fault in ending.faults:
        reporter.write_line(f"could not be written: {fault}", red=True)
    if ending.budget:
        reporter.write_line(ending.budget, yellow=True)
    if ending.calls:
        reporter.write_line(ending.calls, yellow=True)
    for reason in ending.exit.reasons:
        if reason.startswith("nobody has approved"):
            reporter.write_line(f"agenteval_unreviewed = fail: {reason}", red=True)
        elif ending.gated and not reason.startswith("--agent-"):  # a gate has a line of its own
            reporter.write_line(f"not tolerated by a gate: {reason}", red=True)
    if ending.exit.warning:
        reporter.write_line(ending.exit.warning, yellow=True)


def _print_blamed(reporter: Any, config: pytest.Config, ending: RunSummary) -> None:
    """Print what differs in the cases that a gate fails for: pytest shows nothing of an expected failure."""
    ids = {row.nodeid for row in ending.document.rows if row.key in ending.blamed}
    reports = [report for report in reporter.stats.get("xfailed", ()) if report.nodeid in ids]
    if not reports or config.option.tbstyle == "no":
        return
    reporter.section("FAILURES that the gate counts", sep="=")
    for report in reports:
        reporter.section(reporter._getfailureheadline(report), sep="_", red=True, bold=True)
        reporter.write_line(str(report.longrepr))


def end_stuck_process(config: pytest.Config, key: str) -> None:
    """Write what there is of the results, say so, and end the process.

    Called by a thread beside the one that does not come back. xdist replaces a worker that ends; the
    attempt is in its journal.
    """
    advice = "agenteval_thread = true or --agent-concurrency 2 leave such a call behind"
    text = f"agenteval: {key} is past its deadline and cannot be interrupted; this process ends. {advice}."
    if not hasattr(config, "workerinput"):
        text += _saved_by(config)
    stderr = session_state(config).stderr
    with contextlib.suppress(OSError):
        os.write(2 if stderr is None else stderr, f"\n{text}\n".encode())
    os._exit(int(pytest.ExitCode.TESTS_FAILED))


def _saved_by(config: pytest.Config) -> str:
    """Write the document of a run that ends in the middle; returns a sentence about it."""
    from pytest_agenteval.errors import AgentEvalError
    from pytest_agenteval.results.document.document import from_folder, write_document

    run = run_of(config)
    folder = run.find_folder()
    if folder is None:
        return ""
    try:
        run.journal.close()
        path = write_document(from_folder(folder), folder.document)
    except (OSError, AgentEvalError) as error:
        return f" The results could not be written ({error}); --agent-resume goes on with the run."
    return f" Results so far: {_shown(path, config)}; --agent-resume goes on with the run."


def _shown(path: Path, config: pytest.Config) -> str:
    return shown_path(path, config.invocation_params.dir)
