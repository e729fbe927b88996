"""``agenteval coverage``: which tables, columns and kinds of questions a suite asks about, and which not."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agenteval.cli.output import refuse
from pytest_agenteval.errors import AgentEvalError, DatabaseError

if TYPE_CHECKING:
    from pytest_agenteval.authoring.coverage import SuiteCoverage
    from pytest_agenteval.authoring.importing.items import LoggedQuery
    from pytest_agenteval.cases.model import Case
    from pytest_agenteval.databases import Databases

RATES = ("tables", "columns", "reviewed", "unseen")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the cases, the log, and what is wanted at least."""
    parser.add_argument("paths", metavar="PATH", nargs="*", type=Path, help="files and folders of cases")
    parser.add_argument("--log", metavar="FILE", type=Path, help="a query log: which tables people ask most")
    parser.add_argument("--min", metavar="NAME=PERCENT", help=f"exit 1 below that: {', '.join(RATES)}")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code: 0: done; 1: a rate is below --min;
    2: nothing can be measured.
    """
    from pytest_agenteval.authoring.coverage import below, measure
    from pytest_agenteval.cli.check import examine
    from pytest_agenteval.config.location import find_place, open_databases

    try:
        wanted = _wanted(arguments.min or "")
        place = find_place(arguments.paths)
        cases = examine(place, arguments.paths).cases
        if not cases:
            raise AgentEvalError("no case file here: agenteval_files names them, else they lie below tests")
        with open_databases(place) as databases:
            schemas = _Schemas(databases)
            found = measure(cases, schemas.of, schemas.dialect_of, schemas.views(), _log(arguments.log))
    except (AgentEvalError, OSError) as error:
        return refuse(error)
    short = below(found, wanted)
    if arguments.json:
        held = {entry.name: getattr(found, entry.name) for entry in fields(found)}
        facts = {**held, "rates": found.rates, "missing": found.missing, "below": short}
        print(json.dumps(facts, ensure_ascii=False, indent=2))
    else:
        for line in _lines(found):
            print(line)
        for text in short:
            print(f"below --min: {text}")
    return 1 if short else 0


def _wanted(text: str) -> dict[str, float]:
    from pytest_agenteval.support.text import did_you_mean

    wanted = {}
    for part in filter(None, (word.strip() for word in text.split(","))):
        name, _, value = part.partition("=")
        if name not in RATES:
            raise AgentEvalError(f"--min {part}: there is no rate {name!r}{did_you_mean(name, RATES)}")
        try:
            wanted[name] = float(value)
        except ValueError:
            raise AgentEvalError(f"--min {part}: write {name}=80, a share in percent") from None
    return wanted


def _log(path: Path | None) -> Sequence[LoggedQuery]:
    from pytest_agenteval.authoring.importing.formats import read_items
    from pytest_agenteval.authoring.importing.sources import read_source

    if path is None:
        return ()
    _, read = read_items(read_source(path))
    if not read.queries:
        raise AgentEvalError(
            f"--log {path}: is no query log; agenteval import --formats lists those that are read"
        )
    return read.queries


class _Schemas:
    """The schema of each case's database; {} where it cannot be read."""

    def __init__(self, databases: Databases) -> None:
        self._databases = databases
        self._known: dict[str | None, Mapping[str, Sequence[str]]] = {}

    def of(self, case: Case) -> Mapping[str, Sequence[str]]:
        if case.database not in self._known:
            try:
                self._known[case.database] = self._databases.get(case.database).schema()
            except DatabaseError:
                self._known[case.database] = {}
        return self._known[case.database]

    def dialect_of(self, case: Case) -> str | None:
        try:
            return self._databases.get(case.database).dialect or None
        except DatabaseError:
            return None

    def views(self) -> dict[str, tuple[str, ...]]:
        """Return the tables that each view of a DuckDB or SQLite database reads, one level deep."""
        from pytest_agenteval.authoring.importing.bi import tables_of

        found: dict[str, tuple[str, ...]] = {}
        for name in self._databases.names:
            database = self._databases.get(name)
            catalog = {"duckdb": _DUCKDB_VIEWS, "sqlite": _SQLITE_VIEWS}.get(database.dialect)
            if catalog is None:
                continue
            try:
                rows = list(database.query(catalog).rows())
            except DatabaseError:
                continue
            for view, sql in rows:
                body = str(sql).partition(" AS ")[2].rstrip("; \n")
                read = tables_of(body, database.dialect).lower().split()
                found[str(view).lower()] = tuple(read)
        return found


_DUCKDB_VIEWS = "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal"
_SQLITE_VIEWS = "SELECT name, sql FROM sqlite_master WHERE type = 'view'"


def _lines(found: SuiteCoverage) -> Iterator[str]:
    from pytest_agenteval.authoring.coverage import CONSTRUCTS, DIFFICULTIES, SHAPES, grouped
    from pytest_agenteval.support.text import counted

    tables = grouped(found.tables)
    touched = sum(map(bool, tables.values()))
    columns = sum(map(bool, found.columns.values()))
    yield f"{counted(found.cases, 'case')}, {found.with_reference} with a reference"
    yield f"tables   {touched} of {len(tables)}: {_counts(tables)}"
    yield f"columns  {columns} of {len(found.columns)}"
    if found.columns:
        unused = [name for name, number in found.columns.items() if not number and tables[name.split(".")[0]]]
        if unused:
            more = f" and {len(unused) - 10} more" if len(unused) > 10 else ""
            yield f"         not asked: {', '.join(unused[:10])}{more}"
    for title, counter, order in (
        ("joins", found.joins, sorted(found.joins)),
        ("kinds", found.constructs, CONSTRUCTS),
        ("shapes", found.shapes, SHAPES),
        ("level", found.difficulty, DIFFICULTIES),
        ("outcome", found.outcomes, sorted(found.outcomes)),
        ("owners", found.owners, sorted(found.owners)),
        ("metrics", found.metrics, sorted(found.metrics)),
    ):
        if counter:
            yield f"{title:8} {_counts({name: counter[name] for name in order})}"
    yield (
        f"         {counted(found.conversations, 'conversation')}, {counted(found.variants, 'variant')}, "
        f"{found.known} known, {found.reviewed} reviewed"
    )
    for name in dict.fromkeys(found.unparsable):
        yield f"not read: the reference of {name!r} cannot be parsed"
    for text in found.missing:
        yield f"missing: {text}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counts.items()) or "none"
