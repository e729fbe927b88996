"""``agenteval freeze``: keep the rows of references as files, and say when the data has moved on."""

from __future__ import annotations

import argparse
import fnmatch
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agenteval.cli.output import refuse
from pytest_agenteval.errors import AgentEvalError, DatabaseError

if TYPE_CHECKING:
    from pytest_agenteval.cases.model import Case
    from pytest_agenteval.config.location import ProjectLocation
    from pytest_agenteval.databases import Database, Databases
    from pytest_agenteval.table import Table

MOST_ROWS = 500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add which cases, and what to do with files that are there already."""
    parser.add_argument("paths", metavar="PATH", nargs="*", type=Path, help="files and folders of cases")
    parser.add_argument("-k", dest="pattern", metavar="EXPR", help="only cases whose name has this in it")
    do = parser.add_mutually_exclusive_group()
    do.add_argument("--check", action="store_true", help="write nothing; exit 1 where the data has moved")
    do.add_argument("--update", action="store_true", help="write the files again whose rows have changed")
    parser.add_argument("--prune", action="store_true", help="remove files that belong to no case")
    parser.add_argument("--max-rows", type=int, default=MOST_ROWS, metavar="N", help="rows of a file")
    parser.add_argument(
        "--force-pii", action="store_true", help="freeze columns that hold personal data, too"
    )


@dataclass(slots=True)
class FreezeCounts:
    """What a freeze found: files by what became of them."""

    written: int = 0
    unchanged: int = 0
    drifted: int = 0
    missing: int = 0
    refused: int = 0
    unused: int = 0


def run(arguments: argparse.Namespace) -> int:
    """0: all frozen references are of this SQL and data; 1: one is not, or was refused; 2: no case."""
    from pytest_agenteval.cli.check import examine
    from pytest_agenteval.config.location import find_place, open_databases

    counts = FreezeCounts()
    try:
        place = find_place(arguments.paths)
        cases = [case for case in examine(place, arguments.paths).cases if case.variant_of is None]
        if not cases:
            raise AgentEvalError("no case file here: agenteval_files names them, else they lie below tests")
        chosen = [case for case in cases if _is_chosen(case, arguments.pattern) and not case.skip]
        with open_databases(place) as databases:
            for case in chosen:
                _freeze_case(case, place, databases, arguments, counts)
        _unused(cases, place, arguments, counts)
    except (AgentEvalError, OSError) as error:
        return refuse(error)
    print(_summary(counts, arguments))
    bad = counts.refused or (arguments.check and (counts.drifted or counts.missing or counts.unused))
    return 1 if bad or (counts.drifted and not arguments.update) else 0


def _is_chosen(case: Case, pattern: str | None) -> bool:
    return pattern is None or pattern.lower() in case.name.lower() or fnmatch.fnmatch(case.name, pattern)


def _freeze_case(
    case: Case,
    place: ProjectLocation,
    databases: Databases,
    arguments: argparse.Namespace,
    counts: FreezeCounts,
) -> None:
    from pytest_agenteval.cases.frozen_files import frozen_files
    from pytest_agenteval.databases.frozen import frozen_text
    from pytest_agenteval.support.files import shown_path, write_atomic
    from pytest_agenteval.support.text import counted

    for sql, path in frozen_files(case).items():
        shown = shown_path(path, place.root)
        try:
            database = databases.get(case.database)
            table = database.query(sql)
            if reason := _refused(case, table, arguments):
                raise DatabaseError(reason)
            text = frozen_text(
                table, sql, database.name, _data(database), ordered=_is_ordered(case, sql, database)
            )
        except DatabaseError as wrong:
            print(f"refused: {case.name}: {' '.join(str(wrong).split())}")
            counts.refused += 1
            continue
        if not path.exists():
            counts.missing += 1
            if arguments.check:
                print(f"missing: {shown}")
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomic(path, text)
                path.chmod(0o644)
                counts.written += 1
                print(f"written: {shown} ({counted(table.row_count, 'row')})")
            continue
        drift = _drift(case, place, path, sql, table)
        if not drift:
            counts.unchanged += 1
            continue
        counts.drifted += 1
        print(f"{'updated' if arguments.update else 'changed'}: {shown}")
        for line in drift:
            print(f"    {line}")
        if arguments.update:
            write_atomic(path, text)
            path.chmod(0o644)


def _data(database: Database) -> str | None:
    found = database.fingerprint()
    return None if found is None or not found.startswith("sha256:") else found.removeprefix("sha256:")[:12]


def _is_ordered(case: Case, sql: str, database: Database) -> bool:
    from pytest_agenteval.databases import outermost_order_by

    return bool(outermost_order_by(sql, database.dialect))


def _refused(case: Case, table: Table, arguments: argparse.Namespace) -> str:
    """Return why a reference may not lie in the repository ('': it may)."""
    from pytest_agenteval.authoring.importing.personal_data import personal_data

    if table.row_count > arguments.max_rows:
        return f"{table.row_count:,} rows, more than --max-rows {arguments.max_rows:,}"
    if arguments.force_pii:
        return ""
    forbidden = {
        column.lower()
        for check in case.assertions
        for columns in (getattr(check, "forbidden_columns", None) or {}).values()
        for column in columns
    }
    for at, name in enumerate(table.names):
        if name.lower() in forbidden:
            return f"column {name!r} is one of its forbidden_columns; --force-pii freezes it all the same"
        for row in table.rows():
            found = next(personal_data(row[at]), None) if isinstance(row[at], str) else None
            if found is not None:
                return (
                    f"column {name!r} holds personal data ({found[0]}); --force-pii freezes it all the same"
                )
    return ""


def _drift(case: Case, place: ProjectLocation, path: Path, sql: str, table: Table) -> list[str]:
    """Return how a file differs from what the database gives now, under the case's own comparison."""
    from pytest_agenteval.compare import compare, parse_options, render
    from pytest_agenteval.databases.frozen import read_frozen, sql_hash

    try:
        held = read_frozen(path)
    except (DatabaseError, UnicodeDecodeError) as wrong:
        return [str(wrong)]
    if held.sql != sql_hash(sql):
        return ["it is of another SQL"]
    if held.table.names != table.names:
        return [f"columns: {', '.join(held.table.names)} -> {', '.join(table.names)}"]
    options = parse_options({**case.comparison, "extra_columns": "forbid"}, place.project.comparison)
    found = compare(held.table, table, options)
    return [] if found.matched else list(render(found))


def _unused(
    cases: Sequence[Case], place: ProjectLocation, arguments: argparse.Namespace, counts: FreezeCounts
) -> None:
    """Name, and under --prune remove, the frozen references that belong to no statement of a case."""
    from pytest_agenteval.cases.frozen_files import FOLDER, frozen_files
    from pytest_agenteval.support.files import shown_path

    used = {path for case in cases for path in frozen_files(case).values()}
    folders = {case.path.parent / FOLDER / case.path.stem for case in cases}
    for path in _frozen_in(folders):
        if path not in used:
            counts.unused += 1
            print(f"{'removed' if arguments.prune else 'unused'}: {shown_path(path, place.root)}")
            if arguments.prune:
                path.unlink()


def _frozen_in(folders: set[Path]) -> Iterator[Path]:
    for folder in sorted(folders):
        for path in sorted(folder.glob("*.csv")):
            with open(path, encoding="utf-8", errors="replace") as file:
                if file.readline().startswith("# agenteval 1 "):
                    yield path


def _summary(counts: FreezeCounts, arguments: argparse.Namespace) -> str:
    moved = "updated" if arguments.update else "changed"
    parts = [
        (counts.written, "written"), (counts.unchanged, "as they were"), (counts.drifted, moved),
        (counts.missing if arguments.check else 0, "missing"),
        (counts.unused, "removed" if arguments.prune else "unused"), (counts.refused, "refused"),
    ]  # fmt: skip
    return "references: " + (", ".join(f"{number} {word}" for number, word in parts if number) or "none")
