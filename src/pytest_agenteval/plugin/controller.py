"""The controller's side of a run: what cases report while it goes on, and what is done at its end.

A case's report carries one short JSON string (``report.agenteval``): ids and scalars. It is taken off
here, so that terminal, JUnit and json-report never keep or transport more.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_agenteval.plugin.items import LINE_KEY, REPORT_KEY, has_cases, session_state
from pytest_agenteval.plugin.notes import has_note, note_lines, receive_notes
from pytest_agenteval.plugin.options import given, home_of
from pytest_agenteval.support import clock

LETTERS = {"passed": ".", "failed": "F", "error": "E"}


class ControllerPlugin:
    """Counts cases as they arrive. ``results`` holds the scalars of each, the last rerun only."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.results: dict[str, dict[str, Any]] = {}
        self.run_id = uuid.uuid4().hex
        self.stamp = clock.now().astimezone().strftime("%Y%m%d_%H%M%S")
        self.spent = 0.0
        self.session: Any = None
        self.stopped = False
        self.ended = False
        self.held_back = False
        self.ending: Any = None
        self.complaints: list[str] = []
        self.left_out: list[str] = []
        self.unaware: dict[str, set[str]] = {}
        self.token: Path | None = None
        self.login: str | None = None

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Remember the session: it says when the run is to end early."""
        self.session = session

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, None, None]:
        """Take what a case reports; after the last failure that is tolerated, no call begins any more.

        xdist ends its workers a while later.
        """
        self._take(report)
        yield
        why = self.session.shouldfail or self.session.shouldstop
        if why and not self.stopped:
            self._stop(str(why))

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """Begin no further call in any process."""
        self._stop("it was interrupted")

    def _stop(self, why: str) -> None:
        self.stopped = True
        if session_state(self.config).run is not None or self.token is not None:
            from pytest_agenteval.plugin.options import run_of

            run_of(self.config).stop(why)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        """End like Ctrl-C at SIGTERM and SIGHUP, as soon as a worker has found cases."""
        if any(nodeid.partition("::")[0].lower().endswith((".yml", ".yaml")) for nodeid in ids):
            from pytest_agenteval.plugin.planning import take_signals

            take_signals(self.config)

    def _take(self, report: pytest.TestReport) -> None:
        """Take our one string off a report that has arrived."""
        text = report.__dict__.pop(REPORT_KEY, None)
        if text is None:
            return
        sent = json.loads(text)
        self._write_lines(sent["lines"])
        scalars = sent["scalars"]
        if scalars is None:
            return
        self.results[report.nodeid] = scalars
        if sent["unaware"] is not None:
            self.unaware.setdefault(sent["unaware"], set()).add(scalars["model"])
        self.spent += scalars.get("cost") or 0.0
        report.__dict__[LINE_KEY] = live_line(scalars, self.spent)
        self.tell("pytest_agenteval_result", result=dict(scalars))

    def tell(self, hook: str, **arguments: Any) -> None:
        """Call one of this plugin's hooks; what it raises may not cost a run that is paid for its results."""
        try:
            getattr(self.config.hook, hook)(config=self.config, **arguments)
        except Exception as error:
            from pytest_agenteval.agents.runtime.agent_errors import where

            place = where(error.__traceback__, self.config.rootpath)
            text = f"hook {hook} raised {type(error).__name__}: {error}" + (f" ({place})" if place else "")
            if text not in self.complaints:
                self.complaints.append(text)

    def _write_lines(self, lines: list[str] | None) -> None:
        """Write the journal lines of a worker that cannot see the run's folder (another machine)."""
        if lines:
            from pytest_agenteval.errors import JournalFailed
            from pytest_agenteval.plugin.options import run_of

            try:
                run_of(self.config).journal.write_lines(lines)
            except JournalFailed as error:
                self.complaints.append(str(error))

    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, str | tuple[str, dict[str, bool]]] | None:
        """Show the live line of a case at -v; the short summary at the end keeps pytest's words."""
        line = getattr(report, LINE_KEY, None)
        if line is None or self.ended or report.outcome not in ("passed", "failed"):
            return None
        if hasattr(report, "wasxfail"):
            return None
        verdict = self.results[report.nodeid]["verdict"]
        category = "error" if verdict == "error" else report.outcome
        word = "ERROR" if verdict == "error" else report.outcome.upper()
        colour = "green" if report.passed else "red"
        return category, LETTERS[category], (f"{word} {line}", {colour: True})

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Notice a broken case file; under xdist it must end the run as it does without."""
        if report.failed and report.nodeid.lower().endswith((".yml", ".yaml")):
            self.held_back = True

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell an xdist worker which run it belongs to, and where to see that it is on this machine."""
        if self.token is None:
            import tempfile

            from pytest_agenteval.plugin.options import run_of
            from pytest_agenteval.support.processes import temp_prefix

            handle, name = tempfile.mkstemp(prefix=temp_prefix())
            with open(handle, "w", encoding="ascii") as file:
                file.write(self.run_id)
            self.token = Path(name)
            self.login = run_of(self.config).login()
        facts = {
            "run_id": self.run_id,
            "stamp": self.stamp,
            "token": str(self.token),
            "login": self.login,
            "earlier": self._go_on(),
            "home": os.path.relpath(home_of(self.config).path, self.config.rootpath),
        }
        node.workerinput["agenteval"] = json.dumps(facts)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what an xdist worker has noticed."""
        receive_notes(self.config, node)

    def _go_on(self) -> str | None:
        """Return the run to go on with; its folder is taken over before a worker can."""
        run = session_state(self.config).run
        if run is None:
            return None
        if run.context.process.earlier is not None:
            from pytest_agenteval.results.journal.run_folder import RunHeld

            try:
                run.folder()
            except RunHeld as error:
                pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
        return run.context.process.earlier

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the results document and set the exit status."""
        self.ended = True
        if self.token is not None:
            self.token.unlink(missing_ok=True)
        going_on = self.config.getoption("continue_on_collection_errors")
        if self.held_back and not going_on and session.exitstatus == pytest.ExitCode.TESTS_FAILED:
            session.exitstatus = pytest.ExitCode.INTERRUPTED
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and has_note(self.config, "unchanged"):
            session.exitstatus = pytest.ExitCode.OK
        if self._cases_ran():
            from pytest_agenteval.plugin.session_end import finish_or_tell

            self.ending, why_not = finish_or_tell(session, self.results, self.tell)
            self.complaints += [why_not] if why_not is not None else []
        if self.complaints and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _cases_ran(self) -> bool:
        """Return whether any case was about to run: a report came, or a folder of this run is there."""
        if self.results:
            return True
        from pytest_agenteval.plugin.options import run_of

        if not (has_cases(self.config) or self.token):
            return False
        return run_of(self.config).find_folder() is not None

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the summary table."""
        state = session_state(self.config)
        if given(self.config, "dry_run") and state.session is not None:
            from pytest_agenteval.plugin.dry_run import print_plan

            print_plan(terminalreporter, self.config, state.planned)
        for text in self.left_out:
            terminalreporter.write_line(f"earlier results left out: {text}", yellow=True)
        for complaint in self.complaints:
            terminalreporter.write_line(complaint, red=True)
        if self.ending is not None:
            from pytest_agenteval.plugin.session_end import print_summary

            print_summary(terminalreporter, self.config, self.ending)
        for line in note_lines(self.config):
            terminalreporter.write_line(line, yellow=True)
        if self.unaware:
            from pytest_agenteval.plugin.model_warning import unaware_lines

            for line in unaware_lines(self.unaware):
                terminalreporter.write_line(f"warning: {line}", yellow=True)


def live_line(scalars: dict[str, Any], spent: float) -> str:
    """Return ``match · 1,250 tok · $0.0125 · 0.2s · 2 tools · Σ $0.0300``; what is unknown is left out."""
    from pytest_agenteval.reports.text import cost_text
    from pytest_agenteval.support.text import one_line

    parts = [one_line(str(scalars["message"]))]
    if scalars.get("tokens") is not None:
        parts.append(f"{scalars['tokens']:,} tok")
    if scalars.get("cost") is not None:
        parts.append(cost_text(scalars["cost"]))
    parts.append(f"{scalars['duration_ms'] / 1000:.1f}s")
    if scalars.get("tool_calls"):
        count = scalars["tool_calls"]
        parts.append(f"{count} tool{'s' if count != 1 else ''}")
    if spent:
        parts.append(f"Σ {cost_text(spent)}")
    if noted := scalars.get("noted"):
        more = f", {len(noted) - 2} more" if len(noted) > 2 else ""
        parts.append(f"{', '.join(noted[:2])}{more} (-rP)")
    return " · ".join(parts)
