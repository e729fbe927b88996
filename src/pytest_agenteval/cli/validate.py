"""``agenteval validate``: is the governance configuration consistent, and does it fit the databases?"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agenteval.cli.output import refuse
from pytest_agenteval.config.location import ProjectLocation, conftest_speaks, find_place
from pytest_agenteval.errors import AgentEvalError
from pytest_agenteval.support.text import counted

if TYPE_CHECKING:
    from pytest_agenteval.governance.validate import Validation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options: which project, and whether its databases are asked."""
    parser.add_argument(
        "folder", metavar="DIR", nargs="?", type=Path, default=Path(), help="the project (default: here)"
    )
    parser.add_argument(
        "--no-database",
        action="store_true",
        help="judge the files alone; else tables and columns are looked up in the configured databases",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code: 0: consistent (warnings allowed); 1: errors;
    2: the project cannot be read.
    """
    from pytest_agenteval.governance.files import load_governance
    from pytest_agenteval.governance.scorecard import scorecard
    from pytest_agenteval.governance.validate import validate

    folder: Path = arguments.folder.resolve()
    if not folder.is_dir():
        return refuse(NotADirectoryError(f"{arguments.folder}: no such folder"))
    try:
        place = find_place([folder])
        names, schemas, notes = _databases(place, ask=not arguments.no_database)
    except AgentEvalError as wrong:
        return refuse(wrong)
    found = validate(folder, names, schemas)
    for line in (*_lines(found, folder), *notes):
        print(line)
    for entry in scorecard(load_governance(folder)):
        print(f"{'yes' if entry.yes else 'no ':3}  {entry.name}: {entry.detail}")
    return 1 if found.errors else 0


def _lines(found: Validation, folder: Path) -> list[str]:
    lines = []
    for problem in found.problems:
        word = "" if problem.severity == "error" else "warning: "
        place, _, text = problem.render(folder).partition(": ")
        lines.append(f"{place}: {word}{text}")
    warnings = len(found.problems) - found.errors
    counts = f"{counted(found.errors, 'error')}, {counted(warnings, 'warning')}"
    return [*lines, f"{counts} in {counted(len(found.files), 'governance file')}"]


def _databases(
    place: ProjectLocation, *, ask: bool
) -> tuple[list[str] | None, Mapping[str, Mapping[str, Sequence[str]]], list[str]]:
    """Return (configured names, schemas of those that could be asked, what could not be asked).

    The names are ``None`` where a fixture defines the databases: only pytest can call it.
    """
    from pytest_agenteval.governance.schemas import ask_databases

    sources, unusable = place.project.usable_urls(dict(place.settings.databases))
    if not sources and not unusable and conftest_speaks(place.root, r"\bagenteval_databases\b"):
        return None, {}, ["no database was asked: the fixture agenteval_databases defines them"]
    schemas, notes = ask_databases(sources if ask else {}, place.root, place.settings)
    if ask:
        notes += [f"database {name!r} was not asked: {reason}" for name, reason in unusable.items()]
    return [*sources, *unusable], schemas, notes
