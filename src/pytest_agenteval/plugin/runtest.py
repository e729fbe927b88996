"""Running one item: from its fixtures to its verdict, and from its verdict to pytest's outcome."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agenteval.plugin.items import (
    REPORT_KEY,
    CaseError,
    CaseFailed,
    case_of,
    fixture_definition,
    item_state,
    model_of,
    rerun_of,
)
from pytest_agenteval.plugin.model_warning import agent_unaware_of_model
from pytest_agenteval.plugin.notes import add_note
from pytest_agenteval.plugin.options import run_of
from pytest_agenteval.plugin.planning import begin
from pytest_agenteval.plugin.prefetch import early_run, start_calls
from pytest_agenteval.support.scalars import plain_tree
from pytest_agenteval.support.text import fit, one_line

if TYPE_CHECKING:
    from pytest_agenteval.cases.model import Case
    from pytest_agenteval.engine.case_runner import Fixtures
    from pytest_agenteval.engine.run import Run
    from pytest_agenteval.errors import JournalFailed
    from pytest_agenteval.support.redaction import Redactor
    from pytest_agenteval.types import CaseResult

PREFIX = "agenteval_"
LONGEST = 1_000
"""Characters of a message on the wire; the whole one is in the results."""
SHORT = 300
"""Characters of a cause where pytest and JUnit show one line."""


def run_item(item: pytest.Item, values: dict[str, Any]) -> None:
    """Run one case on one model; ``values`` are those of its fixtures.

    Raises ``CaseFailed``, ``CaseError`` or pytest's skip.

    Where answers can no longer be kept the run ends: the next one would be paid for and lost.
    """
    from pytest_agenteval.errors import JournalFailed

    try:
        with _unnamed():
            _run_item(item, values)
    except JournalFailed as error:
        _end_run(item, error)
        raise CaseError(str(error), pytrace=False) from None


def _end_run(item: pytest.Item, error: JournalFailed) -> None:
    """Stop before the next case; the error itself stands at this one."""
    item.session.shouldfail = f"agenteval: {str(error).partition('; ')[0]}"


@contextlib.contextmanager
def _unnamed() -> Iterator[None]:
    """Keep the name and path of the case from its agent, and from every program that it starts."""
    name = os.environ.pop("PYTEST_CURRENT_TEST", None)
    try:
        yield
    finally:
        if name is not None:
            os.environ["PYTEST_CURRENT_TEST"] = name


def _run_item(item: pytest.Item, values: dict[str, Any]) -> None:
    from pytest_agenteval.engine.case_runner import CaseRunner
    from pytest_agenteval.engine.unreachable import GIVEN_UP

    case = case_of(item)
    assert case is not None
    if run_of(item.config).context.settings.dry_run:
        pytest.skip("--agent-dry-run: nothing is asked")
    run = begin(item.config)
    fixtures = _fixtures(item, run, values)

    def runner_of(other: pytest.Item) -> CaseRunner:
        its_case = case_of(other)
        assert its_case is not None
        return CaseRunner(run, its_case, other.nodeid, model_of(other), rerun_of(other), fixtures)

    runner = early_run(item) or runner_of(item)
    start_calls(item, runner, runner_of)
    result = runner.result()
    if runner.agent is not None and fixture_definition(item, run.context.settings.fixture)[1] == "function":
        run.runtime.release(runner.agent)  # its fixture is torn down now; what it entered is left first
    for attempt in result.attempts:
        logs = attempt.answer.logs if attempt.answer is not None else runner.logs.get(attempt.number, "")
        if logs:
            item.add_report_section("call", "agent", run.context.redactor.text(logs))
    if result.verdict == "not_run" and result.message.startswith(GIVEN_UP):
        add_note(item.config, "unreachable", item.nodeid)
    state = item_state(item)
    state.scalars = _scalars(run, item, case, result)
    if runner.model is not None:
        state.unaware = agent_unaware_of_model(
            item, runner.agent, run.context.settings.fixture, run.context.root
        )
    if result.verdict == "error" and runner.raised is not None and item.config.getoption("usepdb", False):
        raise runner.raised
    _raise_for_verdict(item, run, case, result)


def _fixtures(item: pytest.Item, run: Run, values: dict[str, Any]) -> Fixtures:
    """Return what the user's fixtures gave, with the places they stand in."""
    from pytest_agenteval.engine.case_runner import Fixtures

    name = run.context.settings.fixture
    place, _ = fixture_definition(item, name)
    _, scope = fixture_definition(item, "agenteval_databases")
    isolated = item_state(item).isolated

    def renew(urls: Any) -> None:
        isolated.clear()
        isolated.update(urls)

    return Fixtures(
        agent=values.get(name),
        agent_place=f"fixture {name} ({place})" if place else f"fixture {name}",
        databases=values.get("agenteval_databases"),
        databases_cached=scope == "session",
        isolated=renew,
    )


def isolated_databases(item: pytest.Item) -> dict[str, str]:
    """Return the URLs of the running attempt's own copies; renewed before each attempt."""
    return item_state(item).isolated


def _scalars(run: Run, item: pytest.Item, case: Case, result: CaseResult) -> dict[str, Any]:
    """Return what crosses the wire and what other programs get: ids and scalars."""
    answers = [attempt.answer for attempt in result.attempts if attempt.answer is not None]
    tokens = [answer.usage.tokens for answer in answers if answer.usage is not None]
    counts = [count for count in tokens if count is not None]
    costs = [answer.cost for answer in answers if answer.cost is not None]
    return {
        "name": case.name,
        "path": run.context.shown(case.path),
        "model": model_of(item) or run.context.planned_item(case, item.nodeid, None).model,
        "verdict": result.verdict,
        "reason": result.reason,
        "message": run.context.redactor.text(result.message)[:LONGEST],
        "cause": run.context.redactor.text(result.cause)[:LONGEST],
        "tokens": sum(counts) if counts else None,
        "cost": float(sum(costs)) if costs else None,
        "duration_ms": round(sum(attempt.duration_ms for attempt in result.attempts)),
        "tool_calls": sum(len(answer.tool_calls) for answer in answers),
        "attempts": len(result.attempts),
        **_match_notes(run, result),
    }


def _match_notes(run: Run, result: CaseResult) -> dict[str, Any]:
    """Return the lines on a match that a person should look at (``notes``) and why (``noted``).

    Such are one that needed rounding below 1 and one that took a column by its values alone. What
    failed says everything itself.
    """
    passed = [attempt for attempt in result.attempts if attempt.verdict == "passed"]
    for findings in (attempt.findings for attempt in passed if attempt.findings):
        if findings.lucky:
            from pytest_agenteval.reports.findings import luck_lines

            lines = [run.context.redactor.text(line) for line in luck_lines(findings, 80)]
            return {"notes": lines, "noted": ["right by luck"], "luck": True}
    for comparison in (attempt.comparison for attempt in passed if attempt.comparison):
        noted = [column.text for column in comparison.mapping if column.how == "value"]
        if count := len(comparison.warnings):
            noted.append(f"{count} warning{'s' if count != 1 else ''}")
        if noted:
            from pytest_agenteval.compare import render

            lines = [run.context.redactor.text(line) for line in render(comparison)[1:]]
            return {"notes": lines, "noted": [run.context.redactor.text(text) for text in noted]}
    return {"notes": [], "noted": []}


def _raise_for_verdict(item: pytest.Item, run: Run, case: Case, result: CaseResult) -> None:
    """Raise pytest's outcome for a verdict."""
    from pytest_agenteval.reports.failure import GATED, failure_text

    planned = run.context.planned_item(case, item.nodeid, model_of(item))
    if planned.quarantined and result.verdict in ("passed", "failed", "error"):
        why = fit(one_line(run.context.redactor.text(result.cause or result.message)), SHORT)
        pytest.skip(f"quarantined: nobody has approved this case; it {_ended(result.verdict)}: {why}")
    expected = planned.xfail is not None
    text = ""
    if result.verdict in ("failed", "error", "review"):
        text = run.context.redactor.text(failure_text(case, result, style=item.config.option.tbstyle))
    if result.verdict == "failed" and run.context.choices.gated and not expected:
        item_state(item).gated_text = text
        pytest.xfail(GATED + fit(one_line(run.context.redactor.text(result.cause)), SHORT))
    if result.verdict == "failed" or (result.verdict == "review" and run.context.settings.strict):
        raise CaseFailed(text, pytrace=False)
    if result.verdict == "error":
        raise CaseError(text, pytrace=False)
    if result.verdict == "review":
        pytest.skip(f"to review: {result.message}")
    if result.verdict == "not_run":
        pytest.skip(f"not run: {result.message}")


def _ended(verdict: str) -> str:
    return "ended in an error" if verdict == "error" else verdict


def finish_report(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Give a case's report its outcome and its scalars."""
    from pytest_agenteval.errors import JournalFailed

    mask_secrets(report, run_of(item.config).context.redactor)
    if call.when == "setup" and not report.passed:
        try:
            _never_ran(item, call, report)
        except JournalFailed as error:
            _end_run(item, error)
    if call.when == "call" and call.excinfo is not None and call.excinfo.errisinstance(CaseError):
        report.when = "setup"
    state = item_state(item)
    scalars = state.scalars if call.when != "teardown" else None
    if scalars is not None:
        state.scalars = None
        if call.excinfo is not None and call.excinfo.errisinstance((CaseFailed, CaseError)):
            _set_crash_message(report, scalars["cause"])
        text = state.gated_text
        if text is not None and hasattr(report, "wasxfail"):  # not so under --runxfail
            report.longrepr = text  # not where in our code the exception was raised
        _set_user_properties(item, report, scalars)
        if scalars["notes"] and report.passed:
            report.sections.append(("what the match needed", "\n".join(scalars["notes"])))
    run = run_of(item.config)
    lines = [] if run.context.process.local else run.journal.take_lines()
    if scalars is not None or lines:
        report.__dict__[REPORT_KEY] = json.dumps(
            {"scalars": scalars, "lines": lines, "unaware": state.unaware}
        )


def _set_crash_message(report: pytest.TestReport, message: str) -> None:
    """Set the one-line message shown in pytest's short summary and in JUnit to the cause."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        crash.message = fit(one_line(message), SHORT)


def _set_user_properties(item: pytest.Item, report: pytest.TestReport, scalars: dict[str, Any]) -> None:
    """Give other programs the scalars as properties, those of an earlier rerun replaced."""
    if report.skipped and not hasattr(report, "wasxfail"):
        report.longrepr = (str(item.path), (item.location[1] or 0) + 1, _reason_of(report))
    keys = ("model", "tokens", "cost", "message", "verdict", "reason", "luck")
    properties = [(PREFIX + key, scalars[key]) for key in keys if scalars.get(key) is not None]
    others = [entry for entry in item.user_properties if not str(entry[0]).startswith(PREFIX)]
    mask = run_of(item.config).context.redactor.data
    item.user_properties[:] = [(key, mask({key: value})[key]) for key, value in (*others, *properties)]
    report.user_properties = list(item.user_properties)


def mask_secrets(report: pytest.TestReport, redactor: Redactor) -> None:
    """Take secrets out of tracebacks (local variables too) and captured output, for every reporter."""
    report.sections = [(title, redactor.text(text)) for title, text in report.sections]
    shown: Any = report.longrepr
    if isinstance(shown, tuple):
        report.longrepr = (shown[0], shown[1], redactor.text(str(shown[2])))
    elif shown is not None and (masked := redactor.text(str(shown))) != str(shown):
        report.longrepr = masked
    extra = report.__dict__.get("_json_report_extra")  # pytest-json-report's own copy of the output
    if extra is not None:
        # plain: a log record's `extra` may hold any object, and what xdist cannot send ends the run
        report.__dict__["_json_report_extra"] = redactor.data(plain_tree(extra))


def _reason_of(report: pytest.TestReport) -> str:
    longrepr: Any = report.longrepr
    text = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
    return str(text).removeprefix("Skipped: ")


def _never_ran(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Record a case whose fixtures failed or that was skipped."""
    from pytest_agenteval.types import Attempt, CaseResult

    case = case_of(item)
    assert case is not None
    run = begin(item.config)
    if report.skipped:
        run.journal.skipped(item.nodeid, _reason_of(report), rerun_of(item))
        return
    error = call.excinfo.value if call.excinfo is not None else None
    text = f"a fixture failed: {type(error).__name__}: {error}"
    if isinstance(error, pytest.FixtureLookupError):
        text = (
            f"there is no fixture {error.argname!r}; is `setup` right, and can the case see its conftest.py?"
        )
    run.journal.started(item.nodeid, rerun_of(item))
    attempts = [
        Attempt(number, "error", text, stage="agent", reason="agent_error", error=text)
        for number in range(1, run.context.choices.attempts_of(case)[0] + 1)
    ]
    for attempt in attempts:
        run.journal.attempt(item.nodeid, rerun_of(item), attempt)
    result = CaseResult("error", text, attempts, stage="agent", reason="agent_error")
    item_state(item).scalars = _scalars(run, item, case, result)
