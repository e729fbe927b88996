"""Which of the collected cases run: models, ``--agent-select``, ``explicit``, broken case files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agenteval.plugin.items import case_of, model_of, our_items
from pytest_agenteval.plugin.notes import add_note
from pytest_agenteval.plugin.options import given, run_of
from pytest_agenteval.plugin.planning import write_plan

if TYPE_CHECKING:
    from pytest_agenteval.engine.run import Run


def choose_items(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Change ``items`` in place. Raises ``pytest.UsageError`` for an unknown selection."""
    run = run_of(config)
    dropped = [item for item in our_items(items) if not _has_model(run, item)]
    if run.context.settings.changed:
        dropped += _unchanged(run, our_items(items))
    if run.context.settings.select:
        dropped += _not_selected(run, config, items)
    if dropped:
        # several rules may drop the same item; pytest counts what it is given
        gone = {id(item): item for item in dropped}
        items[:] = [item for item in items if id(item) not in gone]
        config.hook.pytest_deselected(items=list(gone.values()))
        if run.context.settings.changed and not items:
            add_note(config, "unchanged", "nothing has changed since the last results: no case is asked")
    if run.context.settings.run == "explicit" and not _asked_for(session, config):
        _skip_until_asked(session, items)
    if session.testsfailed and not config.getoption("continue_on_collection_errors"):
        held = our_items(items)
        items[:] = [item for item in items if case_of(item) is None]
        if hasattr(config, "workerinput") and held:
            write_plan(config, held)


def _has_model(run: Run, item: pytest.Item) -> bool:
    """Return a case whose ``models`` leave none of the run's has no item to run."""
    case = case_of(item)
    return case is None or model_of(item) is not None or not run.context.choices.is_without_model(case)


def _not_selected(run: Run, config: pytest.Config, items: list[pytest.Item]) -> list[pytest.Item]:
    """Put the selected cases into the order of the selection; returns the others."""
    from pytest_agenteval.cases.selection import select
    from pytest_agenteval.errors import SettingsError

    ours = our_items(items)
    found = {id(case): case for case in map(case_of, ours) if case is not None}
    try:
        chosen = select(list(found.values()), run.context.settings.select, root=config.rootpath)
    except SettingsError as error:
        raise pytest.UsageError(str(error)) from None
    rank = {id(case): number for number, case in enumerate(chosen)}
    kept = [item for item in ours if id(case_of(item)) in rank]
    kept.sort(key=lambda item: rank[id(case_of(item))])
    places = iter(kept)
    wanted = set(map(id, kept))
    items[:] = [next(places) if id(item) in wanted else item for item in items]
    return [item for item in ours if id(item) not in wanted]


def _unchanged(run: Run, items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return cases whose own last results are those of the same case (its hash),
    in whichever run they are.
    """
    from pytest_agenteval.results.document.load import past_documents

    planned = [(item, run.context.planned_item(case, item.nodeid, model_of(item)))
               for item in items if (case := case_of(item)) is not None]  # fmt: skip
    open_ones = {(plan.path, plan.name, plan.model) for _, plan in planned}
    known: dict[Any, str] = {}
    for document in past_documents(run.context.output):
        known = {row.key: row.case_hash for row in document.rows} | known
        if open_ones <= known.keys():
            break
    return [item for item, plan in planned if known.get((plan.path, plan.name, plan.model)) == plan.case_hash]


def _asked_for(session: pytest.Session, config: pytest.Config) -> bool:
    expression: str = config.getoption("markexpr", "") or ""
    return "agenteval" in expression or given(config, "run") == "always"


def _skip_until_asked(session: pytest.Session, items: Sequence[pytest.Item]) -> None:
    hint = "agenteval_run is explicit: add --agent-run, name the file, or use -m agenteval"
    for item in our_items(items):
        if not session.isinitpath(item.path):
            item.add_marker(pytest.mark.skip(reason=hint))
