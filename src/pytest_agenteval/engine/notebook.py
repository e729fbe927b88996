"""``evaluate_cases``: cases without pytest, for notebooks and scripts."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agenteval.engine.case_runner import CaseRunner, Fixtures
from pytest_agenteval.engine.context import RunContext
from pytest_agenteval.engine.process import Process
from pytest_agenteval.engine.run import Run
from pytest_agenteval.engine.run_metadata import run_info
from pytest_agenteval.errors import SettingsError

if TYPE_CHECKING:
    import pandas

    from pytest_agenteval.cases.model import Case
    from pytest_agenteval.config.location import ProjectLocation

CasePath = str | os.PathLike[str]


def evaluate_cases(
    paths: CasePath | Iterable[CasePath],
    *,
    agent: Any = None,
    databases: Any = None,
    models: str | Sequence[str] = (),
    k: int | None = None,
) -> pandas.DataFrame:
    """Ask the agent every case and return the attempts as a DataFrame, one row each, without pytest.

    ``paths`` are case files and folders of them. ``agent`` is what the fixture ``agent`` would return (a
    callable that takes the prompt or the task, an object with ``run``), or a target as text
    (``"python:pkg.mod:name"``, ``"llm:"``, ``"replay:answers.jsonl"``); without one, the target of the
    project's settings answers. ``databases`` is a URL or a connection, or a mapping of names to those;
    without it, the project's. ``models`` and ``k`` win over those of the cases, as on the command line.
    All other settings come from the ini file, the environment and the project file.

    Columns are those of ``read_results``. The results file is kept like a run's of pytest, and
    ``frame.attrs["results"]`` is its path: an interrupted evaluation is in it, too, and
    ``pytest --agent-resume`` goes on with it.

    Raises ``SettingsError`` for a broken case file or setting, for cases that need fixtures (``setup``),
    and where there is no case at all. What goes wrong in a case is a row of verdict ``error``.
    """
    from pytest_agenteval.config.location import find_place
    from pytest_agenteval.results import read_results

    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    places = [Path(path).resolve() for path in given]
    if missing := [str(path) for path in given if not Path(path).exists()]:
        raise SettingsError(f"no such file or folder: {', '.join(missing)}")
    target = agent if isinstance(agent, str) else None
    names = [models] if isinstance(models, str) else list(models)
    options = {"target": target, "model": names or None, "k": None if k is None else str(k)}
    place = find_place(places, given={name: value for name, value in options.items() if value is not None})
    run = Run(_context(place))
    try:
        fixtures = Fixtures(
            agent=None if target is not None else agent,
            agent_place="agent of evaluate_cases",
            databases=databases,
            databases_cached=databases is not None,
        )
        results = _evaluate(run, _cases(run, place, places, databases is not None), fixtures)
    finally:
        run.close()
    frame = read_results(results)
    frame.attrs["results"] = str(results)
    return frame


def _context(place: ProjectLocation) -> RunContext:
    from pytest_agenteval.config.known_secrets import redactor_of

    return RunContext(
        root=place.root,
        settings=place.settings,
        project=place.project,
        process=Process("main", secrets.token_hex(16), f"{datetime.now():%Y%m%d_%H%M%S}"),
        redactor=redactor_of(place.project, place.settings),
        speaks=place.speaks,
        find_checks=place.find_checks,
    )


def _cases(run: Run, place: ProjectLocation, paths: Sequence[Path], own_databases: bool) -> list[Case]:
    """Load every case, before one is asked. Raises ``SettingsError``."""
    from pytest_agenteval.cases.discovery import find

    cases: list[Case] = []
    faults: list[str] = []
    for path, claim in find(paths, place.claims):
        loaded = run.files.load(path, claim=claim, own_databases=own_databases, marks=())
        faults += [problem.render(place.root) for problem in loaded.errors]
        cases += loaded.cases
    for case in cases:
        if case.setup:
            shown = f"{run.context.shown(case.path)}:{case.line}"
            faults.append(f"{shown}: {case.name} has a setup: fixtures need pytest")
    if not cases and not faults:
        faults.append(f"no case in {', '.join(map(run.context.shown, paths))}")
    if faults:
        raise SettingsError("\n".join(faults))
    return cases


def _evaluate(run: Run, cases: Sequence[Case], fixtures: Fixtures) -> Path:
    """Ask and judge every case; returns the results file, which is written whatever ends the evaluation."""
    from pytest_agenteval.results.document.document import from_folder, write_document

    context = run.context
    has_fixture = fixtures.agent is not None
    items = [
        (case, model, f"{context.shown(case.path)}::{case.id}" + (f"[{model}]" if model else ""))
        for case in cases
        if not context.choices.is_without_model(case)
        for model in context.choices.models_of(case, fixture=has_fixture) or (None,)
    ]
    planned = [context.planned_item(case, nodeid, model) for case, model, nodeid in items]
    run.begin(lambda: planned, lambda: run_info(context, ("evaluate_cases",)))
    run.prepare(case.database for case in cases if case.statements or case.isolate)
    try:
        for case, _, nodeid in items:
            if case.skip is not None:
                run.journal.skipped(nodeid, case.skip)
        for case, model, nodeid in items:
            if case.skip is None:
                CaseRunner(run, case, nodeid, model, 0, fixtures).result()
    finally:
        run.journal.close()
        folder = run.folder()
        document = from_folder(folder)
        results = write_document(document, folder.document)
        if not any(row.verdict == "not_run" or row.stage == "worker" for row in document.rows):
            folder.remove()
        else:
            folder.end()
    return results
