"""Every reference run twice: does it work, does it return rows, does it return the same rows.

And every name in a sql check: is there such a table, such a column.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pytest_agenteval.cli.check_lints import as_problems, wanted_codes, wanted_only
from pytest_agenteval.config.location import ProjectLocation, conftest_speaks, open_databases
from pytest_agenteval.errors import DatabaseError, Problem
from pytest_agenteval.support.text import counted

if TYPE_CHECKING:
    from pytest_agenteval.cases.model import Case
    from pytest_agenteval.checks.sql.names import Schema
    from pytest_agenteval.cli.check import CheckFindings
    from pytest_agenteval.databases import Database, Databases
    from pytest_agenteval.table import Table


def only_pytest_opens(
    place: ProjectLocation, cases: Sequence[Case], findings: CheckFindings, undone: str
) -> bool:
    """Note what is left undone where a fixture alone defines the databases, and return whether it is so."""
    sources, unusable = place.project.usable_urls(dict(place.settings.databases))
    fixture = conftest_speaks(place.root, r"\bagenteval_databases\b")
    if sources or unusable or not cases or not fixture:
        return False
    findings.notes.append(
        f"{undone}: the fixture agenteval_databases defines the databases, and only pytest can call it"
    )
    return True


def run_references(place: ProjectLocation, findings: CheckFindings, arguments: argparse.Namespace) -> None:
    """Run the references of all good cases, adding what is wrong to ``findings``."""
    from pytest_agenteval.authoring.lints.with_references import lint_references

    # what is never run is not held against the suite: import writes a reference that fails with `skip`
    cases = [case for case in findings.cases if case.statements and not case.skip]
    if only_pytest_opens(place, cases, findings, "references were not run"):
        return
    wanted = wanted_codes(place, arguments)
    with open_databases(place) as databases:
        for case in cases:
            findings.references += len(case.statements)
            findings.add(wanted_only(_problems(place, databases, case), case, wanted))
        findings.add(list(_unknown_names(databases, findings.cases)))
        lints = lint_references(cases, databases, place.project.comparison)
        findings.add(as_problems(lints, wanted, hints=arguments.fix_hint))


def _unknown_names(databases: Databases, cases: Sequence[Case]) -> Iterator[Problem]:
    """Yield a warning for each name in a sql check that the case's database does not have."""
    from pytest_agenteval.checks.sql.check import SqlCheck
    from pytest_agenteval.checks.sql.unknown_names import unknown_names

    schemas: dict[str | None, Schema] = {}
    for case in cases:
        checks = [*case.assertions, *(check for turn in case.turns for check in turn.assertions)]
        for check in (check for check in checks if isinstance(check, SqlCheck)):
            if case.database not in schemas:
                schemas[case.database] = _schema(databases, case.database)
            if schema := schemas[case.database]:
                for text in unknown_names(check, schema):
                    yield _problem(case, text, "warning", at_sql=False)


def _schema(databases: Databases, name: str | None) -> Schema:
    """Return the columns of the tables of a database, of all where there is no name; {}: not known."""
    merged: dict[str, list[str]] = {}
    try:
        for database in [databases.get(known) for known in (databases.names if name is None else (name,))]:
            for table, columns in database.schema().items():
                merged.setdefault(table, []).extend(columns)
    except DatabaseError:
        return {}  # a reference says so, or the run
    return merged


def _problems(place: ProjectLocation, databases: Databases, case: Case) -> Iterator[Problem]:
    """Yield what is wrong with the references of a case, and with options that name their columns."""
    from pytest_agenteval.checks.data import unknown_columns

    seen: list[list[str]] = []
    for sql in case.statements:
        if (problem := _judged(place, databases, case, sql, seen)) is not None:
            yield problem
    if len(seen) == len(case.statements) and (unknown := unknown_columns(case.comparison, seen)) is not None:
        yield _problem(case, unknown, "error")


def _judged(
    place: ProjectLocation, databases: Databases, case: Case, sql: str, seen: list[list[str]]
) -> Problem | None:
    from pytest_agenteval.authoring.lints.with_references import unknown_names

    severity = "error"
    try:
        database = databases.get(case.database)
        first, second = database.query(sql), database.query(sql)
    except DatabaseError as wrong:
        missing = unknown_names(_schema(databases, case.database), sql, _dialect(databases, case.database))
        code, why = ("[unknown-table] ", f"{missing}: {wrong}") if missing else ("", str(wrong))
        return _problem(case, f"{code}the reference fails: {why}", severity)
    seen.append(first.names)
    if (difference := _difference(place, database, case, sql, first, second)) is not None:
        return _problem(case, f"the reference is not deterministic: run twice, {difference}", severity)
    if case.outcome == "no_data" and first.row_count:
        found = counted(first.row_count, "row")
        return _problem(case, f"outcome no_data, but the reference returns {found}", severity)
    if case.outcome != "no_data" and not first.row_count:
        text = "the reference is empty: 0 rows; say outcome: no_data where that is right"
        return _problem(case, f"[empty-reference] {text}", "warning")
    return None


def _dialect(databases: Databases, name: str | None) -> str | None:
    try:
        return databases.get(name).dialect or None
    except DatabaseError:
        return None


def _problem(case: Case, text: str, severity: str, *, at_sql: bool = True) -> Problem:
    line, column = (case.sql_place if at_sql else None) or (case.line, case.column)
    code, found, rest = text.partition("] ") if text.startswith("[") else ("", "", text)
    return Problem(case.path, line, column, f"{code}{found}{case.name}: {' '.join(rest.split())}", severity)


def _difference(
    place: ProjectLocation, database: Database, case: Case, sql: str, first: Table, second: Table
) -> str | None:
    """Return how two runs of a reference differ under the case's own comparison; ``None``: they match."""
    from pytest_agenteval.compare import compare, parse_options
    from pytest_agenteval.databases import outermost_order_by

    options = parse_options(case.comparison, place.project.comparison)
    if options.ordered:
        options = options.with_order(outermost_order_by(sql, database.dialect) or ())
    found = compare(first, second, options)
    return None if found.matched else found.message
