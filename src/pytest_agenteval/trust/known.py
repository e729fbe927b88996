"""``KnownData``: what is known of one database, found out once: catalog, rules, rows to start from."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.table import Table
from pytest_agenteval.trust.constraints import Constraints, parse_constraints
from pytest_agenteval.trust.errors import NotCheckedError
from pytest_agenteval.trust.mining import Mined, mine, quoted, table_sql
from pytest_agenteval.trust.reading import ReadStatement, read_query
from pytest_agenteval.trust.schema import Catalog, Cell, Rows, Source, read_catalog

MINING_SECONDS = 5.0
"""Seconds that one look at the rows of a table may take."""

BRIEF_SECONDS = 2.0
"""Seconds that a statement with a mistake may take: a lost join condition multiplies large tables."""

POOL_ROWS = 40
"""Rows of a table that made-up rows start from, at most."""


class KnownData:
    """What is known of one database. Safe to use from several threads; every look-up is made once.

    Args:
        source: the database (its dialect, and one SELECT at a time).
        constraints: rules that cannot be mined, in the grammar of ``agenteval_constraints``.
        references: statements that are known to be right; the columns they join refer to each other.
    """

    def __init__(self, source: Source, constraints: str = "", references: Sequence[str] = ()) -> None:
        self._source = source
        self._stated = constraints
        self._references = references
        self._guard = threading.RLock()
        self._catalog: Catalog | None = None
        self._joins: set[tuple[Cell, Cell]] | None = None
        self._mined: dict[tuple[frozenset[str], frozenset[tuple[Cell, Cell]]], Mined] = {}
        self._rows: dict[tuple[str, str], list[list[Any]]] = {}

    @property
    def dialect(self) -> str:
        """Return the SQL dialect of the database."""
        return self._source.dialect

    @property
    def catalog(self) -> Catalog:
        """Return the tables and what is declared. Raises ``NotCheckedError`` where they cannot be read."""
        with self._guard:
            if self._catalog is None:
                try:
                    self._catalog = read_catalog(self._source)
                except DatabaseError as error:
                    raise NotCheckedError(f"the tables of the database cannot be read: {error}") from error
            return self._catalog

    def run(self, sql: str) -> Table:
        """Run one SELECT on the data. Raises ``DatabaseError``."""
        return self._source.query(sql)

    def run_briefly(self, sql: str) -> Table:
        """Run one SELECT that may be a mistake, within 2 seconds. Raises ``DatabaseError``."""
        return self._source.query(sql, BRIEF_SECONDS)

    def query(self, sql: str) -> ReadStatement:
        """Return a statement taken apart. Raises ``NotCheckedError``."""
        return read_query(sql, self.catalog)

    def mined(self, tables: Iterable[str], joins: Iterable[tuple[Cell, Cell]]) -> Mined:
        """Return the rules of ``tables``, stated ones too. Raises ``NotCheckedError``, ``SettingsError``."""
        with self._guard:
            key = (frozenset(tables), frozenset(joins))
            if key not in self._mined:
                try:
                    found = mine(_Bounded(self._source), self.catalog, key[0], key[1] | self._suite_joins())
                except DatabaseError as error:
                    raise NotCheckedError(f"the data cannot be counted: {error}") from error
                stated = parse_constraints(self._stated, self.catalog).of_tables(key[0])
                self._mined[key] = replace(found, rules=found.rules | stated)
            return self._mined[key]

    def with_parents(
        self, tables: frozenset[str], joins: set[tuple[Cell, Cell]]
    ) -> tuple[frozenset[str], Mined]:
        """Return the tables and all that their declared foreign keys lead to, with the rules of them."""
        wanted, more = set(tables), True
        while more:
            found = {r.parent for r in self.catalog.declared.references if r.child in wanted} - wanted
            wanted |= {table for table in found if table in self.catalog.tables}
            more = bool(found & set(self.catalog.tables))
            if not found:
                break
        kept = frozenset(wanted)
        return kept, self.mined(kept, joins)

    def pool(self, tables: Iterable[str], queries: Sequence[ReadStatement], rules: Constraints) -> Rows:
        """Return some rows of each table: those that meet the conditions, others, and their parents."""
        pool: Rows = {}
        for table in sorted(tables):
            rows = list(self._fetch(table, ""))
            for query in queries:
                required = [t.sql for t in query.tests if t.cell[0] == table and t.required]
                if required:
                    rows += self._fetch(table, " AND ".join(self._conditions(query, table)))
            pool[table] = _distinct(rows)
        return pool

    def rule_lines(self) -> list[str]:
        """Return the rules found so far, in the grammar of ``agenteval_constraints``."""
        return sorted({line for found in self._mined.values() for line in found.rules.lines()})

    def _conditions(self, query: ReadStatement, table: str) -> list[str]:
        info = self.catalog.tables[table]
        found = []
        for test in query.tests:
            if test.cell[0] == table and test.required:
                column = info.columns[info.index(test.cell[1])]
                shown = quoted(column.name, self.dialect)
                found.append(f"(SELECT ({test.sql}) FROM (SELECT {shown} AS v) AS x)")
        return found

    def _fetch(self, table: str, where: str) -> list[list[Any]]:
        with self._guard:
            if (table, where) not in self._rows:
                info = self.catalog.tables[table]
                columns = ", ".join(quoted(column.name, self.dialect) for column in info.columns)
                condition = f" WHERE {where}" if where else ""
                limit = POOL_ROWS // 4 if where else POOL_ROWS // 2
                sql = f"SELECT {columns} FROM {table_sql(info, self.dialect)}{condition} LIMIT {limit}"
                try:
                    self._rows[table, where] = [list(row) for row in self._source.query(sql).rows()]
                except DatabaseError:  # a condition that needs its query around it: the plain rows do
                    self._rows[table, where] = []
            return self._rows[table, where]

    def _suite_joins(self) -> set[tuple[Cell, Cell]]:
        if self._joins is None:
            self._joins = set()
            for sql in self._references:
                try:
                    self._joins |= read_query(sql, self.catalog).equal_cells()
                except NotCheckedError:  # it joins nothing that can be read
                    continue
        return self._joins


class _Bounded:
    """A database whose queries take a few seconds at most: what cannot be counted soon is not known."""

    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def dialect(self) -> str:
        return self._source.dialect

    def query(self, sql: str, timeout: float | None = None) -> Table:
        return self._source.query(sql, min(timeout or MINING_SECONDS, MINING_SECONDS))


def _distinct(rows: list[list[Any]]) -> list[list[Any]]:
    seen: set[str] = set()
    kept = []
    for row in rows:
        text = repr(row)
        if text not in seen:
            seen.add(text)
            kept.append(row)
    return kept[:POOL_ROWS]
