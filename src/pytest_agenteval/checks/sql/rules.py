"""Rules about executed statements; each gives the faults it finds, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from pytest_agenteval.checks.sql.analysis import analyse
from pytest_agenteval.checks.sql.filters_and_joins import (
    grouped,
    join_pairs,
    limit_of,
    single_row,
    unfiltered,
    wanted_filter,
)
from pytest_agenteval.checks.sql.locations import path_of
from pytest_agenteval.checks.sql.name_resolution import ANY, Analysis
from pytest_agenteval.checks.sql.names import Node, Schema, listed, same_table, split_column
from pytest_agenteval.checks.sql.parsing import called_names, parse, unwrapped, written_name
from pytest_agenteval.checks.sql.read_only import not_read_only
from pytest_agenteval.table import Table
from pytest_agenteval.types import Statement

ColumnRules = Mapping[str, Sequence[str]]
"""``{table: [columns]}``."""


@dataclass(frozen=True, slots=True)
class ExecutedStatement:
    """One statement that was executed: its tree (of an EXPLAIN: what it explains), taken apart."""

    sql: str
    root: Node
    tree: Node
    analysis: Analysis
    dialect: str | None


@dataclass(frozen=True, slots=True)
class Call:
    """One executed text: its statements (none when ``error`` says why), and what came back."""

    number: int
    sql: str
    statements: tuple[ExecutedStatement, ...]
    error: str | None
    rows: Table | None


def examine(statements: Iterable[Statement], schema: Schema, dialect: str | None) -> list[Call]:
    """Parse and take apart what was executed, in order; numbers count from 1."""
    calls = []
    for number, statement in enumerate(statements, 1):
        parsed = parse(statement.sql, dialect)
        parts = []
        for root in parsed.trees:
            tree = unwrapped(root, dialect)
            parts.append(ExecutedStatement(statement.sql, root, tree, analyse(tree, schema), dialect))
        calls.append(Call(number, statement.sql, tuple(parts), parsed.error, statement.table))
    return calls


def at(path: tuple[str, ...], clause: str = "") -> str:
    """Return `` (CTE c > subquery in WHERE)``: the way to something, '' for the top of a statement."""
    inside = clause not in ("", "SELECT", "FROM") and not (path and path[-1].endswith(f"in {clause}"))
    steps = [*path, clause] if inside else list(path)
    return f" ({' > '.join(steps)})" if steps else ""


def read_only(entry: ExecutedStatement) -> Iterator[str]:
    """Yield why a statement is not a SELECT or WITH that only reads tables."""
    for reason in not_read_only(entry.root, entry.sql, entry.dialect):
        yield f"not read-only: {reason}"


def single_statement(call: Call) -> Iterator[str]:
    """Yield one statement per call."""
    if len(call.statements) > 1:
        yield f"{len(call.statements)} statements in one call"


def allowed_tables(entry: ExecutedStatement, allowed: Sequence[str]) -> Iterator[str]:
    """Yield tables read that are none of these."""
    for use in entry.analysis.tables:
        if listed(use.name, allowed) is None:
            yield f"reads {use.name}{at(use.path)}, allowed: {', '.join(allowed)}"


def forbidden_tables(entry: ExecutedStatement, forbidden: Sequence[str]) -> Iterator[str]:
    """Yield each of these tables that is read."""
    for use in entry.analysis.tables:
        if listed(use.name, forbidden) is not None:
            yield f"reads forbidden table {use.name}{at(use.path)}"


def reached(column: str, names: Iterable[str]) -> list[str]:
    """Return those of ``names`` that ``column`` is, or that a star over unknown columns may reach."""
    if not column.startswith(ANY):
        return [name for name in names if name.casefold() == column.casefold()]
    dropped = column.removeprefix(f"{ANY}-").split(",") if column != ANY else []
    return [name for name in names if name.casefold() not in dropped]


def forbidden_columns(entry: ExecutedStatement, forbidden: ColumnRules) -> Iterator[str]:
    """Yield each of these columns that is used in any way."""
    for use in entry.analysis.columns:
        for table in use.tables:
            rule = listed(table, forbidden)
            for name in reached(use.column, forbidden[rule]) if rule is not None else ():
                via = f" through {use.via}" if use.via else ""
                yield f"forbidden column {rule}.{name}{via}{at(use.path, use.clause)}"


def allowed_columns(entry: ExecutedStatement, allowed: ColumnRules) -> Iterator[str]:
    """Yield other columns of these tables that are used, unless the table is uncertain."""
    for use in entry.analysis.columns:
        rules = [rule for table in use.tables if (rule := listed(table, allowed)) is not None]
        if len(rules) < len(use.tables):
            continue
        unknown = use.column.startswith(ANY)
        if not unknown and any(reached(use.column, allowed[rule]) for rule in rules):
            continue
        shown = "columns that are not known" if unknown else use.column
        via = f" through {use.via}" if use.via else ""
        yield f"column {rules[0]}.{shown}{via}{at(use.path, use.clause)} is not allowed"


def returned_columns(call: Call, forbidden: ColumnRules) -> Iterator[str]:
    """Yield the rows that came back have no column (or key inside a value) of a forbidden name."""
    if call.rows is None:
        return
    names = set(call.rows.names) | _keys(call.rows)
    for rule, columns in forbidden.items():
        touched = not call.statements or any(
            same_table(use.name, rule) for entry in call.statements for use in entry.analysis.tables
        )
        for column in columns if touched else ():
            if column.casefold() in {name.casefold() for name in names}:
                yield f"forbidden column {rule}.{column} came back in the rows"


def _keys(table: Table) -> set[str]:
    """Return keys of maps inside cells (a whole row comes back as one)."""
    found: set[str] = set()
    for index in range(len(table.columns)):
        for value in table.column(index):
            if isinstance(value, Mapping):
                found |= {str(key) for key in value}
    return found


def stars(entry: ExecutedStatement) -> Iterator[str]:
    """Yield each ``*`` in a select list."""
    for star in entry.analysis.stars:
        yield f"select star {star.text}{at(star.path)}"


def stars_on(entry: ExecutedStatement, columns: ColumnRules) -> Iterator[str]:
    """Yield each ``*`` that reaches one of these columns, directly or through a CTE or subquery."""
    for star in entry.analysis.stars:
        hit = [
            f"{rule}.{name}"
            for table, column in star.reached
            if (rule := listed(table, columns)) is not None
            for name in reached(column, columns[rule])
        ]
        if hit:
            yield f"select star {star.text}{at(star.path)} reaches {', '.join(sorted(set(hit)))}"


def required_filters(entry: ExecutedStatement, filters: ColumnRules) -> Iterator[str]:
    """Yield uses of these tables that are not filtered on these columns or by these predicates."""
    for table, texts in filters.items():
        for text in texts:
            for wanted in wanted_filter(table, text, entry.dialect):
                for path in unfiltered(entry.analysis, wanted):
                    yield f"{table} is read without a filter on {text}{at(path)}"


def time_filter(entry: ExecutedStatement, columns: ColumnRules) -> Iterator[str]:
    """Yield uses of these tables that are not bounded on their time column."""
    for table, texts in columns.items():
        for text in texts:
            for wanted in wanted_filter(table, text, entry.dialect, bounding=True):
                for path in unfiltered(entry.analysis, wanted):
                    yield f"{table} is read without a time filter on {text}{at(path)}"


def allowed_joins(entry: ExecutedStatement, joins: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield joins on other pairs of columns than these, in either direction."""
    allowed = [(split_column(left), split_column(right)) for left, right in joins]
    pairs, loose = join_pairs(entry.analysis)
    for pair in pairs:
        if not pair.of_itself and not any(_is_pair(pair.left, pair.right, *sides) for sides in allowed):
            left, right = ".".join(pair.left), ".".join(pair.right)
            yield f"join {left} = {right}{at(pair.path)} is not allowed"
    for text, path in loose:
        yield f"{text}{at(path)} joins on no pair of columns"


def _is_pair(a: tuple[str, str], b: tuple[str, str], left: tuple[str, str], right: tuple[str, str]) -> bool:
    return (_is_column(a, left) and _is_column(b, right)) or (_is_column(a, right) and _is_column(b, left))


def _is_column(a: tuple[str, str], b: tuple[str, str]) -> bool:
    return same_table(a[0], b[0]) and a[1].casefold() == b[1].casefold()


def forbidden_functions(entry: ExecutedStatement, names: Iterable[str]) -> Iterator[str]:
    """Yield each of these functions that is called."""
    wanted = {name.lower().removesuffix("()") for name in names}
    found = set()
    for call in entry.tree.find_all(exp.Func):
        for name in sorted(written_name(call, entry.sql) & wanted):
            found.add(name)
            yield f"calls forbidden function {name}{at(path_of(call))}"
    # older releases of sqlglot forget how a function was written (now() is CURRENT_TIMESTAMP)
    for name in sorted((called_names(entry.sql, entry.dialect) & wanted) - found):
        yield f"calls forbidden function {name}"


def require_limit(entry: ExecutedStatement, *, groups: bool = True) -> Iterator[str]:
    """Yield a statement that may give many rows has a LIMIT; ``groups``: also one that groups them."""
    if not isinstance(entry.root, exp.Query) or single_row(entry.tree):
        return
    if limit_of(entry.tree) is None and (groups or not grouped(entry.tree)):
        yield "no LIMIT"


def max_limit(entry: ExecutedStatement, most: int) -> Iterator[str]:
    """Yield each LIMIT above ``most``."""
    limit = limit_of(entry.tree)
    if limit is not None and limit.rows is None:
        yield f"its LIMIT is no plain number, allowed <= {most:,}"
    elif limit is not None and limit.rows is not None and limit.rows > most:
        yield f"LIMIT {limit.rows:,}, allowed <= {most:,}"


def max_rows(call: Call, most: int) -> Iterator[str]:
    """Yield a fault if more rows came back; an unknown count is not judged."""
    if call.rows is not None and call.rows.row_count > most:
        yield f"{call.rows.row_count:,} rows came back, allowed <= {most:,}"


def unread(calls: Iterable[Call], tables: Iterable[str]) -> list[str]:
    """Return those of ``tables`` that no statement reads."""
    uses: list[Any] = [use for call in calls for entry in call.statements for use in entry.analysis.tables]
    return [table for table in tables if not any(same_table(use.name, table) for use in uses)]
