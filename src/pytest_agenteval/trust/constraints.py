"""``Constraints``: the rules that made-up rows obey, the test of finished rows, and their text form."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_agenteval.errors import SettingsError

if TYPE_CHECKING:
    from pytest_agenteval.trust.schema import Catalog, Cell, Rows


@dataclass(frozen=True, slots=True, order=True)
class ForeignKey:
    """``child(columns) -> parent(parent_columns)``: a value that is not NULL occurs in the parent."""

    child: str
    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Constraints:
    """What holds for the rows of a database; tables and columns in lower case.

    Attributes:
        not_null: columns in which no NULL stands.
        keys: (table, columns) whose values together do not repeat; a NULL among them never repeats.
        references: foreign keys.
        orders: (table, low, high): ``low <= high`` in a row where neither is NULL.
        least: numeric columns that are never negative (``>= 0``) or always positive (``> 0``).
        domains: the only values of a text column, where the statements compare it with values.
    """

    not_null: frozenset[Cell] = frozenset()
    keys: frozenset[tuple[str, tuple[str, ...]]] = frozenset()
    references: frozenset[ForeignKey] = frozenset()
    orders: frozenset[tuple[str, str, str]] = frozenset()
    least: Mapping[Cell, str] = field(default_factory=dict)
    domains: Mapping[Cell, frozenset[Any]] = field(default_factory=dict)

    def __or__(self, other: Constraints) -> Constraints:
        """Return the rules of both."""
        return Constraints(
            self.not_null | other.not_null,
            self.keys | other.keys,
            self.references | other.references,
            self.orders | other.orders,
            {**self.least, **other.least},
            {**self.domains, **other.domains},
        )

    def of_tables(self, tables: frozenset[str]) -> Constraints:
        """Return the rules that speak of these tables alone."""
        return Constraints(
            frozenset(cell for cell in self.not_null if cell[0] in tables),
            frozenset(key for key in self.keys if key[0] in tables),
            frozenset(r for r in self.references if r.child in tables and r.parent in tables),
            frozenset(order for order in self.orders if order[0] in tables),
            {cell: rule for cell, rule in self.least.items() if cell[0] in tables},
            {cell: values for cell, values in self.domains.items() if cell[0] in tables},
        )

    def lines(self) -> list[str]:
        """Return the rules in the grammar of ``agenteval_constraints``, sorted; domains as a comment."""
        found = [f"{table}({', '.join(columns)}) key" for table, columns in self.keys]
        found += [f"{table}.{column} not null" for table, column in self.not_null]
        found += [f"{table}.{low} <= {table}.{high}" for table, low, high in self.orders]
        found += [f"{table}.{column} {rule}" for (table, column), rule in self.least.items()]
        for rule in self.references:
            ends = [(rule.child, rule.columns), (rule.parent, rule.parent_columns)]
            found.append(" -> ".join(f"{table}({', '.join(columns)})" for table, columns in ends))
        for (table, column), values in self.domains.items():
            found.append(
                f"{table}.{column} in ({', '.join(repr(value) for value in sorted(values, key=str))})"
            )
        return sorted(found)


def breaches(rows: Rows, rules: Constraints, columns: Mapping[str, Sequence[str]]) -> list[tuple[str, int]]:
    """Return (table, row index) of every row that breaks a rule, as the finished rows stand.

    ``columns``: the column names of each table in lower case. Of rows that repeat a key the later
    ones break it.
    """
    found: set[tuple[str, int]] = set()
    place = {(table, name): i for table, names in columns.items() for i, name in enumerate(names)}
    for cell in rules.not_null:
        at = place[cell]
        found |= {(cell[0], i) for i, row in enumerate(rows.get(cell[0], ())) if row[at] is None}
    for table, key in rules.keys:
        found |= {(table, i) for i in _repeated(rows.get(table, []), [place[table, name] for name in key])}
    for table, low, high in rules.orders:
        a, b = place[table, low], place[table, high]
        for i, row in enumerate(rows.get(table, ())):
            if row[a] is not None and row[b] is not None and not _ordered(row[a], row[b]):
                found.add((table, i))
    for cell, rule in rules.least.items():
        at = place[cell]
        for i, row in enumerate(rows.get(cell[0], ())):
            if row[at] is not None and (row[at] < 0 or (rule == "> 0" and row[at] == 0)):
                found.add((cell[0], i))
    for cell, values in rules.domains.items():
        at = place[cell]
        for i, row in enumerate(rows.get(cell[0], ())):
            if row[at] is not None and row[at] not in values:
                found.add((cell[0], i))
    for rule_ in rules.references:
        found |= _orphans(rows, rule_, place)
    return sorted(found)


def _repeated(rows: Sequence[Sequence[Any]], places: Sequence[int]) -> list[int]:
    seen: set[tuple[Any, ...]] = set()
    repeated = []
    for i, row in enumerate(rows):
        value = tuple(row[at] for at in places)
        if None in value:
            continue
        if value in seen:
            repeated.append(i)
        seen.add(value)
    return repeated


def _ordered(low: Any, high: Any) -> bool:
    try:
        return bool(low <= high)
    except TypeError:  # a date beside a timestamp
        return str(low) <= str(high)


def _orphans(rows: Rows, rule: ForeignKey, place: Mapping[Cell, int]) -> set[tuple[str, int]]:
    parents = [place[rule.parent, name] for name in rule.parent_columns]
    known = {tuple(row[at] for at in parents) for row in rows.get(rule.parent, ())}
    children = [place[rule.child, name] for name in rule.columns]
    found = set()
    for i, row in enumerate(rows.get(rule.child, ())):
        value = tuple(row[at] for at in children)
        if None not in value and value not in known:
            found.add((rule.child, i))
    return found


_COLUMNS = r"(?P<{0}>[\w.\"]+?)\s*(?:\(\s*(?P<{0}_list>[^)]*)\)|\.(?P<{0}_one>[\w\"]+))"
_REFERENCE = re.compile(_COLUMNS.format("child") + r"\s*->\s*" + _COLUMNS.format("parent"))
_KEY = re.compile(_COLUMNS.format("table") + r"\s+(?:primary\s+)?(?:key|unique)", re.IGNORECASE)
_NOT_NULL = re.compile(r"(?P<table>[\w.\"]+)\.(?P<column>[\w\"]+)\s+not\s+null", re.IGNORECASE)
_LEAST = re.compile(r"(?P<table>[\w.\"]+)\.(?P<column>[\w\"]+)\s*(?P<rule>>=?)\s*0")
_ORDER = re.compile(
    r"(?<![\w.\"])(?P<table>[\w\"]++(?:\.[\w\"]++)*?)\.(?P<low>[\w\"]++)\s*+<=\s*+(?:[\w\"]++\.)*(?P<high>[\w\"]++)"
)

GRAMMAR = (
    "orders(id) key; customers.name unique; orders.customer_id -> customers.id; orders.total not null; "
    "orders.total > 0; orders.start_date <= orders.end_date"
)


def parse_constraints(text: str, catalog: Catalog) -> Constraints:
    """Return the rules of an ``agenteval_constraints`` text, separated by ``;`` or line ends.

    Raises ``SettingsError`` naming the rule that cannot be read and the forms there are.
    """
    found = Constraints()
    for part in re.split(r"[;\n]", text):
        if part.strip():
            found = found | _rule(part.strip(), catalog)
    return found


def _rule(text: str, catalog: Catalog) -> Constraints:
    if match := _REFERENCE.fullmatch(text):
        child, columns = _ends(match, "child", catalog, text)
        parent, others = _ends(match, "parent", catalog, text)
        return Constraints(references=frozenset({ForeignKey(child, columns, parent, others)}))
    if match := _KEY.fullmatch(text):
        return Constraints(keys=frozenset({_ends(match, "table", catalog, text)}))
    if match := _NOT_NULL.fullmatch(text):
        table, (column,) = _known(match["table"], [match["column"]], catalog, text)
        return Constraints(not_null=frozenset({(table, column)}))
    if match := _LEAST.fullmatch(text):
        table, (column,) = _known(match["table"], [match["column"]], catalog, text)
        return Constraints(least={(table, column): f"{match['rule']} 0"})
    if match := _ORDER.fullmatch(text):
        table, (low, high) = _known(match["table"], [match["low"], match["high"]], catalog, text)
        return Constraints(orders=frozenset({(table, low, high)}))
    raise SettingsError(f"agenteval_constraints: cannot read {text!r}; the forms are: {GRAMMAR}")


def _ends(match: re.Match[str], end: str, catalog: Catalog, text: str) -> tuple[str, tuple[str, ...]]:
    listed = match[f"{end}_list"]
    columns = [match[f"{end}_one"]] if listed is None else listed.split(",")
    return _known(match[end], columns, catalog, text)


def _known(table: str, columns: Sequence[str], catalog: Catalog, text: str) -> tuple[str, tuple[str, ...]]:
    found = catalog.find(table)
    if found is None:
        known = ", ".join(sorted(entry.name for entry in catalog.tables.values()))
        raise SettingsError(f"agenteval_constraints: {text!r}: no table {table!r}; there are: {known}")
    lowered = tuple(column.strip('" ').lower() for column in columns)
    for column in lowered:
        if column not in found.names:
            names = ", ".join(found.names)
            raise SettingsError(
                f"agenteval_constraints: {text!r}: {found.name} has no column {column!r}; it has: {names}"
            )
    return found.key, lowered
