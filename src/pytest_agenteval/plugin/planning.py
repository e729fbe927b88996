"""What a run is about to do: the items that are to run, written down before the first one does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_agenteval.plugin.items import case_of, model_of, our_items, session_state
from pytest_agenteval.plugin.options import run_of
from pytest_agenteval.types import LONGEST_TIMEOUT

if TYPE_CHECKING:
    from pytest_agenteval.engine.run import Run
    from pytest_agenteval.results.journal.records import PlannedItem

SPARE_SECONDS = 30.0
"""Beside its attempts and its reference: what pytest-timeout leaves a case."""


def plan(session: pytest.Session) -> None:
    """Keep the items that are to run; they are written down when the first is about to."""
    items = our_items(session.items)
    state = session_state(session.config)
    state.planned, state.session = items, session
    if any("callspec" in item.__dict__ for item in items):
        from pytest_agenteval.plugin.callspecs import hide_callspecs

        hide_callspecs(session.config, items)
    if session.config.pluginmanager.hasplugin("timeout"):
        for item in items:
            _limit(item, run_of(session.config))


def _limit(item: pytest.Item, run: Run) -> None:
    """Keep pytest-timeout from ending a case that stays within its limits."""
    case = case_of(item)
    if case is None or item.get_closest_marker("timeout") is not None:
        return
    k, _ = run.context.choices.attempts_of(case)
    seconds = k * run.context.choices.timeout_of(case) + run.context.settings.sql_timeout + SPARE_SECONDS
    item.add_marker(pytest.mark.timeout(min(seconds, LONGEST_TIMEOUT)))


def begin(config: pytest.Config) -> Run:
    """Return the run, with its folder made and every planned item written down. Raises ``JournalFailed``."""
    run = run_of(config)
    if not run.begun:
        planned = session_state(config).planned
        take_signals(config)
        from pytest_agenteval.errors import JournalFailed
        from pytest_agenteval.results.journal.run_folder import RunHeld

        try:
            write_plan(config, planned)
        except RunHeld as error:  # taken over between the start and the first case
            pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
        except OSError as error:
            raise JournalFailed(
                f"no results can be kept in {run.context.output}: {error.strerror or error}; "
                "nothing is asked. Choose another folder with --agent-output"
            ) from error
        cases = [case for item in planned if (case := case_of(item)) is not None]
        live = run.context.settings.references != "frozen"
        run.prepare(case.database for case in cases if (case.statements and live) or case.isolate)
    return run


def take_signals(config: pytest.Config) -> None:
    """Let SIGTERM and SIGHUP end the run as Ctrl-C does, from now on."""
    from pytest_agenteval.plugin.signals import EndSignals

    state = session_state(config)
    if state.signals is None:
        state.signals = EndSignals()
    state.signals.install()


def write_plan(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Write the run's items down, once per run."""
    from pytest_agenteval.engine.run_metadata import run_info

    run = run_of(config)

    def planned() -> list[PlannedItem]:
        pairs = [(item, case) for item in items if (case := case_of(item)) is not None]
        return [run.context.planned_item(case, item.nodeid, model_of(item)) for item, case in pairs]

    run.begin(planned, lambda: run_info(run.context, config.invocation_params.args))
