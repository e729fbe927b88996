"""``--agent-concurrency``: agent calls of coming items begin while earlier ones are judged.

Items stay serial: only calls overlap. A later item's call begins early if nothing that pytest would
do for it alone (a function-scoped fixture, a setup, a skip) could change what the agent sees.
"""

from __future__ import annotations

import functools
from contextlib import nullcontext
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agenteval.plugin.items import case_of, fixture_definition, item_state, rerun_of, session_state
from pytest_agenteval.plugin.notes import add_note
from pytest_agenteval.plugin.options import run_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_agenteval.agents.runtime.call_pool import CallPool, PoolReport
    from pytest_agenteval.agents.runtime.runtime import AgentRuntime
    from pytest_agenteval.engine.case_runner import CaseRunner

PLUGIN_FIXTURES = ("agenteval_model", "agenteval_databases", "request")


class OutputWatch:
    """Keeps what agents print out of other items' output: pytest replaces ``sys.stdout`` in every phase.

    ``capture`` is pytest's capture manager. Agents print at any moment, so the router is back as soon as
    the manager has switched, and stands before the file that the manager itself puts there.
    """

    def __init__(self, runtime: AgentRuntime, capture: Any) -> None:
        self._runtime = runtime
        for name in ("resume_global_capture", "suspend_global_capture"):
            if capture is not None:
                setattr(capture, name, self._then_watch(getattr(capture, name)))
        runtime.watch_output(*_streams(capture))

    def _then_watch(self, switch: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(switch)
        def switched(*args: Any, **options: Any) -> None:
            switch(*args, **options)
            self._runtime.watch_output()

        return switched

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self) -> None:
        """Restore the capture, whatever a fixture did to ``sys.stdout``."""
        self._runtime.watch_output()


def _streams(capture: Any) -> Iterator[tuple[Any, str]]:
    """Yield where pytest's capturing of file descriptors keeps what it makes ``sys.stdout`` and
    ``sys.stderr``.

    Replacing the descriptor takes long enough for an agent to print in between. Capturing by ``sys`` reads
    its own file, which stays as it is.
    """
    for name in ("out", "err"):
        part = getattr(getattr(capture, "_global_capturing", None), name, None)
        part = getattr(part, "syscapture", None)
        yield from ((part, attribute) for attribute in ("tmpfile", "_old") if hasattr(part, attribute))


def pool_of(config: pytest.Config) -> CallPool | None:
    """Return the pool of this process (``None`` at concurrency 1)."""
    state = session_state(config)
    if state.pool is None:
        size = run_of(config).context.settings.concurrency
        if size < 2:
            return None
        from pytest_agenteval.agents.runtime.call_pool import CallPool

        state.pool = CallPool(size, stops_early=bool(config.getoption("maxfail", 0)))
        capture = config.pluginmanager.getplugin("capturemanager")
        config.pluginmanager.register(OutputWatch(run_of(config).runtime, capture), "agenteval-output")
    return state.pool


def start_calls(item: pytest.Item, runner: CaseRunner, follow: Callable[[pytest.Item], CaseRunner]) -> None:
    """Begin the calls of ``item`` and, without xdist, of those that come after it.

    ``follow`` makes the case runner of a later item with the fixtures that ``item`` has.
    """
    pool = pool_of(item.config)
    if pool is None:
        return
    ready = [runner] if runner.submitted == 0 else []
    session = session_state(item.config)
    if not hasattr(item.config, "workerinput"):
        for later in _next_cases(item, pool.window):
            state = item_state(later)
            if state.early is not None:
                continue
            reason = why_not_early(item, later)
            if reason is not None:
                _print_reason(item, later, reason)
                session.serial_reason = session.serial_reason or _in_full(later, reason)
                continue
            state.early = follow(later)
            ready.append(state.early)
    elif runner.k == 1 and len(session.planned) > 1:
        session.serial_reason = (
            "under xdist only the attempts of one case do; leave out -n, or ask more often"
        )
    session.overlapped |= len(ready) > 1 or runner.k > 1
    # every reference of the window before its first call: an agent may write to the database
    for early in [runner for runner in ready if runner.can_be_asked()]:
        early.submit(pool)


def _in_full(later: pytest.Item, reason: str) -> str:
    """Return a reason with the place of the fixture that it names, and what to do."""
    name = reason.removeprefix("fixture ").partition(" ")[0]
    if not reason.endswith("is function-scoped"):
        return reason
    place, _ = fixture_definition(later, name)
    return f'fixture {name}{f" ({place})" if place else ""} is made for each case; scope="session" lets them'


def note_serial(config: pytest.Config) -> None:
    """Say at the end why ``--agent-concurrency`` changed nothing, where it did not."""
    state = session_state(config)
    if state.serial_reason is not None and not state.overlapped:
        add_note(config, "overlap", state.serial_reason)


def _next_cases(item: pytest.Item, window: int) -> Iterator[pytest.Item]:
    """Yield the next ``window`` cases after ``item``, none beyond a case with ``setup``.

    What its fixtures change (environment, clock, data) is there for its own calls only.
    """
    case = case_of(item)
    if case is not None and case.setup:
        return
    items = item.session.items
    start = items.index(item) + 1
    cases = ((later, case) for later in items[start:] if (case := case_of(later)) is not None)
    for later, case in islice(cases, window):
        yield later
        if case.setup:
            return


def why_not_early(item: pytest.Item, later: pytest.Item) -> str | None:
    """Return why a later item's call may not begin while ``item`` runs; ``None``: it may."""
    case = case_of(later)
    if case is None or case.setup or case.isolate:
        return "it has a setup or data of its own"
    if any(later.iter_markers("skip")) or any(later.iter_markers("skipif")):
        return "it may be skipped"
    fixtures, before = _definitions(later), _definitions(item)
    if fixtures is None or before is None:
        return "this pytest does not tell its fixtures"
    for name, definitions in fixtures.items():
        if name in PLUGIN_FIXTURES or not definitions:
            continue
        last = definitions[-1]
        if _is_pytests(last):
            continue
        if str(getattr(last, "scope", "function")) == "function":
            return f"fixture {name} is function-scoped"
        if before.get(name) is None or before[name][-1] is not last:
            return f"fixture {name} is another one there"
        if getattr(last, "params", None):
            return f"fixture {name} is parametrized"
    return None


def _definitions(item: pytest.Item) -> dict[str, Any] | None:
    """Return the fixture definitions an item uses, by name; the one place that reads pytest's own."""
    info = getattr(item, "_fixtureinfo", None)
    definitions = getattr(info, "name2fixturedefs", None)
    return dict(definitions) if definitions is not None else None


def _is_pytests(definition: Any) -> bool:
    """Return whether a fixture belongs to pytest itself, which does nothing to an agent's world."""
    module = getattr(getattr(definition, "func", None), "__module__", "") or ""
    return module.startswith("_pytest.")


def _print_reason(item: pytest.Item, later: pytest.Item, reason: str) -> None:
    if item.config.get_verbosity() > 0 and not item_state(later).reason_shown:
        item_state(later).reason_shown = True
        reporter = item.config.pluginmanager.getplugin("terminalreporter")
        capture = item.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled() if capture is not None else nullcontext():
            if reporter is not None:
                reporter.write_line(f"agenteval: {later.nodeid} is not asked early: {reason}")


def early_run(item: pytest.Item) -> CaseRunner | None:
    """Return the case runner whose calls began early, once: a rerun asks afresh."""
    if rerun_of(item):
        return None
    state = item_state(item)
    runner, state.early = state.early, None
    return runner


def end_calls(config: pytest.Config) -> PoolReport | None:
    """Begin no further call; return what became of those under way."""
    state = session_state(config)
    if state.pool is not None:
        pool, state.pool = state.pool, None
        state.calls = pool.shutdown()
    return state.calls
