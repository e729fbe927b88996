"""Rules that the rows of a database obey: keys, NOT NULL, foreign keys, orders of dates, value ranges.

Thresholds are those of the study behind ``shared/spec/trust.md``: what few rows suggest is taken as a
rule where it keeps the made-up rows closer to the real ones, never the other way round.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.trust.constraints import Constraints, ForeignKey
from pytest_agenteval.trust.schema import Catalog, Cell, ColumnInfo, Source, TableInfo

_ID_NAME = re.compile(r"(^|_)(id|key|code|sku|email|uuid)$|id$|key$", re.IGNORECASE)
_NUMBER = re.compile(r"INT|DECIMAL|NUMERIC|DOUBLE|FLOAT|REAL|HUGEINT|NUMBER", re.IGNORECASE)
_TEXT = re.compile(r"CHAR|TEXT|STRING|ENUM|CLOB", re.IGNORECASE)
_TIME = re.compile(r"DATE|TIMESTAMP|TIME", re.IGNORECASE)
_LOW_HIGH = (("low", "high"), ("min", "max"), ("start", "end"), ("from", "to"))

MOST_VALUES = 30
"""Values up to which a text column that repeats them is a closed list."""

SURE_ROWS = 100
"""Rows from which any column without a repeated value is a key."""

LARGE_ROWS = 300_000
"""Rows above which only columns that look like a key are counted exactly."""


def is_number(kind: str) -> bool:
    """Return whether a column type is numeric."""
    return bool(_NUMBER.search(kind)) and "INTERVAL" not in kind.upper() and "[" not in kind


def is_text(kind: str) -> bool:
    """Return whether a column type is text."""
    return bool(_TEXT.search(kind)) and "[" not in kind


def is_time(kind: str) -> bool:
    """Return whether a column type is a date, a time or a timestamp."""
    return bool(_TIME.search(kind)) and "[" not in kind


@dataclass(frozen=True, slots=True)
class ColumnCount:
    """How many rows have a value, how many values there are (0: not counted), the least of them."""

    filled: int
    distinct: int
    least: Any


@dataclass(frozen=True, slots=True)
class Mined:
    """What was found out about the tables: their rules, row counts and closed lists of text values.

    ``values``: the values of text columns that repeat a few; a rule only where statements test them.
    """

    rules: Constraints
    row_counts: Mapping[str, int]
    values: Mapping[Cell, frozenset[Any]]


def mine(
    source: Source, catalog: Catalog, tables: Iterable[str], joins: Iterable[tuple[Cell, Cell]] = ()
) -> Mined:
    """Return the rules of ``tables``; ``joins`` are pairs of columns that trusted statements equate.

    Raises ``DatabaseError`` where a table cannot be counted.
    """
    wanted = [catalog.tables[key] for key in sorted(set(tables))]
    counts: dict[str, dict[str, ColumnCount]] = {}
    rows: dict[str, int] = {}
    for table in wanted:
        rows[table.key], counts[table.key] = _count(source, catalog.dialect, table)
    declared = catalog.declared.of_tables(frozenset(table.key for table in wanted))
    not_null, keys, orders = set(declared.not_null), set(declared.keys), set()
    least: dict[Cell, str] = {}
    values: dict[Cell, frozenset[Any]] = {}
    for table in wanted:
        if not rows[table.key]:
            continue
        found = counts[table.key]
        not_null |= {(table.key, name) for name, count in found.items() if count.filled == rows[table.key]}
        least |= _least(table, found)
        orders |= _orders(source, catalog.dialect, table, found)
        values |= _closed_lists(source, catalog.dialect, table, found)
    accidental = _keys(wanted, rows, counts, keys)
    references = set(declared.references)
    references |= _references(source, catalog, wanted, keys, rows, set(joins), references)
    keys -= {key for key in keys - declared.keys if _only_refers(key, references, catalog, rows)}
    references = {rule for rule in references if (rule.parent, rule.parent_columns) in keys}
    keys |= accidental - {key for key in accidental if _only_refers(key, references, catalog, rows)}
    rules = Constraints(frozenset(not_null), frozenset(keys), frozenset(references), frozenset(orders), least)
    return Mined(rules, rows, values)


def quoted(name: str, dialect: str) -> str:
    """Return an identifier as the dialect quotes it."""
    mark = "`" if dialect in ("mysql", "bigquery", "databricks", "hive", "spark") else '"'
    return f"{mark}{name.replace(mark, mark * 2)}{mark}"


def table_sql(table: TableInfo, dialect: str) -> str:
    """Return the quoted name of a table."""
    parts = [table.schema, table.name] if table.schema else [table.name]
    return ".".join(quoted(part, dialect) for part in parts)


def _count(source: Source, dialect: str, table: TableInfo) -> tuple[int, dict[str, ColumnCount]]:
    name = table_sql(table, dialect)
    rows = int(next(iter(source.query(f"SELECT count(*) AS n FROM {name}").rows()))[0])
    parts, wanted = [], [c for c in table.columns if _countable(c)]
    for number, column in enumerate(wanted):
        shown = quoted(column.name, dialect)
        exact = rows <= LARGE_ROWS or _ID_NAME.search(column.name)
        distinct = f"count(DISTINCT {shown})" if exact else "0"
        least = f"min({shown})" if is_number(column.type) else "NULL"
        parts.append(f"count({shown}) AS f{number}, {distinct} AS d{number}, {least} AS m{number}")
    if not parts:
        return rows, {}
    found = next(iter(source.query(f"SELECT {', '.join(parts)} FROM {name}").rows()))
    return rows, {
        column.name.lower(): ColumnCount(int(found[3 * i]), int(found[3 * i + 1]), found[3 * i + 2])
        for i, column in enumerate(wanted)
    }


def _countable(column: ColumnInfo) -> bool:
    return not re.search(r"\[|STRUCT|MAP|JSON|BLOB|BYTEA|UNION", column.type, re.IGNORECASE)


def _least(table: TableInfo, found: Mapping[str, ColumnCount]) -> dict[Cell, str]:
    rules: dict[Cell, str] = {}
    for column in table.columns:
        count = found.get(column.name.lower())
        if count is None or count.least is None or isinstance(count.least, str):
            continue
        if count.least >= 0:
            rules[table.key, column.name.lower()] = "> 0" if count.least > 0 else ">= 0"
    return rules


def _orders(
    source: Source, dialect: str, table: TableInfo, found: Mapping[str, ColumnCount]
) -> set[tuple[str, str, str]]:
    """Return pairs of dates, or of numbers named low and high, that no row has the wrong way round."""
    pairs = []
    for one, two in combinations([c for c in table.columns if c.name.lower() in found], 2):
        if is_time(one.type) and is_time(two.type) and not {"TIME"} & {one.type.upper(), two.type.upper()}:
            pairs += [(one, two), (two, one)]
        elif is_number(one.type) and is_number(two.type):
            pairs += [pair for pair in ((one, two), (two, one)) if _low_and_high(*pair)]
    if not pairs:
        return set()
    parts = []
    for low, high in pairs:
        a, b = quoted(low.name, dialect), quoted(high.name, dialect)
        parts.append(
            f"sum(CASE WHEN {a} <= {b} THEN 1 ELSE 0 END), sum(CASE WHEN {a} > {b} THEN 1 ELSE 0 END)"
        )
    try:
        query = f"SELECT {', '.join(parts)} FROM {table_sql(table, dialect)}"
        row = next(iter(source.query(query).rows()))
    except DatabaseError:  # types that do not compare: no rule then
        return set()
    orders = set()
    for number, (low, high) in enumerate(pairs):
        right, wrong = int(row[2 * number] or 0), int(row[2 * number + 1] or 0)
        if right >= 3 and not wrong:
            orders.add((table.key, low.name.lower(), high.name.lower()))
    return orders


def _low_and_high(low: ColumnInfo, high: ColumnInfo) -> bool:
    a, b = low.name.lower(), high.name.lower()
    return any(small in a and a.replace(small, large, 1) == b for small, large in _LOW_HIGH)


def _closed_lists(
    source: Source, dialect: str, table: TableInfo, found: Mapping[str, ColumnCount]
) -> dict[Cell, frozenset[Any]]:
    lists = {}
    for column in table.columns:
        count = found.get(column.name.lower())
        if count is None or not is_text(column.type):
            continue
        if 0 < count.distinct <= MOST_VALUES and count.filled >= 1.5 * count.distinct:
            shown = quoted(column.name, dialect)
            query = f"SELECT DISTINCT {shown} FROM {table_sql(table, dialect)} WHERE {shown} IS NOT NULL"
            lists[table.key, column.name.lower()] = frozenset(row[0] for row in source.query(query).rows())
    return lists


def _keys(
    tables: Sequence[TableInfo],
    rows: Mapping[str, int],
    counts: Mapping[str, Mapping[str, ColumnCount]],
    keys: set[tuple[str, tuple[str, ...]]],
) -> set[tuple[str, tuple[str, ...]]]:
    """Add the keys that data show; return text columns that are unique by accident, which stay so."""
    accidental: set[tuple[str, tuple[str, ...]]] = set()
    for table in tables:
        count_of = counts[table.key]
        names = [column.name.lower() for column in table.columns]
        if len(names) == 2 and all(_ID_NAME.search(name) for name in names):
            keys.add((table.key, tuple(names)))
            continue
        full = [
            column
            for column in table.columns
            if (count := count_of.get(column.name.lower())) and count.distinct == count.filled > 0
        ]
        for column in full:
            name = column.name.lower()
            key = (table.key, (name,))
            complete = count_of[name].filled == rows[table.key]
            if complete and (_ID_NAME.search(name) or rows[table.key] >= SURE_ROWS):
                keys.add(key)
            elif is_text(column.type) and count_of[name].filled >= 2:
                accidental.add(key)
    return accidental


def _only_refers(
    key: tuple[str, tuple[str, ...]], references: set[ForeignKey], catalog: Catalog, rows: Mapping[str, int]
) -> bool:
    """Return whether a unique column names another table's key: it is a reference there, not a key here."""
    table, columns = key
    if len(columns) != 1 or rows.get(table, 0) >= SURE_ROWS:
        return False
    first = catalog.tables[table].names[0]
    own = columns[0] == first and not any(r.child == table and r.columns == columns for r in references)
    return not own and any(r.child == table and r.columns == columns for r in references)


def _references(
    source: Source,
    catalog: Catalog,
    tables: Sequence[TableInfo],
    keys: set[tuple[str, tuple[str, ...]]],
    rows: Mapping[str, int],
    joins: set[tuple[Cell, Cell]],
    declared: set[ForeignKey],
) -> set[ForeignKey]:
    """Return foreign keys: inclusion holds, and the name or a trusted join says so."""
    found = set()
    both = joins | {(b, a) for a, b in joins}
    taken = {(rule.child, rule.columns) for rule in declared if len(rule.columns) == 1}
    for parent, columns in sorted(keys):
        if len(columns) != 1 or not rows.get(parent):
            continue
        parent_table = catalog.tables[parent]
        kind = catalog.column((parent, columns[0])).type
        for child in tables:
            for column in child.columns:
                name = column.name.lower()
                cell, target = (child.key, name), (parent, columns[0])
                if cell == target or (child.key, (name,)) in taken or not _comparable(column.type, kind):
                    continue
                own = (child.key, (name,)) in keys and name == child.names[0]
                joined = (cell, target) in both and not (own and target[1] != parent_table.names[0])
                named = child.key != parent and _named_after(child, name, parent_table, columns[0], own)
                if not joined and not named:
                    continue
                if rows.get(child.key) and _included(source, catalog, cell, target):
                    found.add(ForeignKey(child.key, (name,), parent, columns))
    return _one_parent(found)


def _comparable(one: str, two: str) -> bool:
    return (is_number(one) and is_number(two)) or (is_text(one) and is_text(two)) or one == two


def _named_after(child: TableInfo, column: str, parent: TableInfo, key: str, own: bool) -> bool:
    """Return whether a column's name says that it holds the key of ``parent``;
    ``own``: it is the child's key.
    """
    if own and column in ("id", "key"):
        return False
    if column == key:
        return key not in ("id", "key", "code", "name") and not own
    table = parent.name.lower()
    singular = {table, table.removesuffix("s"), table.removesuffix("es"), re.sub(r"ies$", "y", table)}
    bare = re.sub(r"_?(id|key|code)$", "", column)
    if bare != column and (bare in singular or any(bare.endswith(f"_{name}") for name in singular)):
        return True
    common = 0
    while common < min(len(column), len(key)) and column[-1 - common] == key[-1 - common]:
        common += 1
    return common >= 5 and common >= len(key) - 3 and bool(_ID_NAME.search(key))


def _included(source: Source, catalog: Catalog, child: Cell, parent: Cell) -> bool:
    dialect = catalog.dialect
    one, two = catalog.tables[child[0]], catalog.tables[parent[0]]
    a, b = (quoted(catalog.column(cell).name, dialect) for cell in (child, parent))
    query = (
        f"SELECT count(*) FROM {table_sql(one, dialect)} AS c WHERE c.{a} IS NOT NULL AND NOT EXISTS "
        f"(SELECT 1 FROM {table_sql(two, dialect)} AS p WHERE p.{b} = c.{a})"
    )
    try:
        return not int(next(iter(source.query(query).rows()))[0])
    except DatabaseError:
        return False


def _one_parent(references: set[ForeignKey]) -> set[ForeignKey]:
    """Drop one of two references that point at each other: the child is where the key is not first."""
    pairs = {(r.child, r.columns, r.parent, r.parent_columns) for r in references}
    return {
        r
        for r in references
        if (r.parent, r.parent_columns, r.child, r.columns) not in pairs
        or (r.child, r.columns) > (r.parent, r.parent_columns)
    }
