"""A locked DuckDB that holds only what the agent fetched, and the guards of a query over it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from pytest_agenteval.databases.duckdb_engine import LOCKED, run
from pytest_agenteval.databases.limits import decimal_type, type_of, within
from pytest_agenteval.databases.select_only import require_one_select_duckdb, uncoloured
from pytest_agenteval.databases.sql_dangers import disagreement
from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.extraction.executed_queries import Query
from pytest_agenteval.extraction.lineage import retyped, typed_numbers
from pytest_agenteval.table import Table

WHERE = "the extraction query"


class Sandbox:
    """Tables named by query id in a DuckDB of their own: no files, no settings, no other tables."""

    def __init__(self, queries: Sequence[Query]) -> None:
        import duckdb

        self.tables = {query.id: query.table for query in queries if query.table is not None}
        self._connection = duckdb.connect(":memory:")
        for name, table in self.tables.items():
            _load(self._connection, name, table)
        for option, value in LOCKED.items():
            if option != "lock_configuration":
                self._connection.execute(f"SET {option} = '{value}'")
        self._connection.execute("SET lock_configuration = true")

    def types(self, name: str) -> list[tuple[str, str]]:
        """Return column names and SQL types of a table."""
        rows = self._connection.execute(f"DESCRIBE {quoted(name)}").fetchall()
        return [(row[0], row[1]) for row in rows]

    def query(self, sql: str, timeout: float, max_rows: int, columns: Sequence[str] | None = None) -> Table:
        """Run one SELECT over the tables; ``columns`` of its output are compared (``None``: all).

        Raises ``DatabaseError`` saying which guard refused it.
        """
        require_one_select_duckdb(sql, WHERE)
        typed = self._require_own_tables(sql, columns)
        table = within(timeout, WHERE, lambda: self._read(self._connection, sql, timeout, max_rows))
        if typed and (kept := _numbers_of(table) & typed):
            self._require_moving(sql, timeout, max_rows, kept)
        return table

    def _read(self, connection: Any, sql: str, timeout: float, max_rows: int) -> Table:
        cursor = connection.cursor()
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        try:
            return run(cursor, sql, WHERE, timeout, max_rows)
        finally:
            cursor.close()

    def _require_moving(self, sql: str, timeout: float, max_rows: int, kept: set[float]) -> None:
        """Refuse a number typed into the query that comes out whatever the tables hold.

        ``total * 0 + 42`` reads a column and is typed all the same: with other numbers in the tables it
        would be another one.
        """
        import duckdb

        with duckdb.connect(":memory:") as other:
            for name in self.tables:
                _load(other, name, self.tables[name])
                moved = [
                    f"({quoted(own)} * 3 + 7)::DOUBLE AS {quoted(own)}" if _is_number(kind) else quoted(own)
                    for own, kind in self.types(name)
                ]
                own = quoted(name)
                other.execute(f"CREATE OR REPLACE TABLE {own} AS SELECT {', '.join(moved)} FROM {own}")
            other.execute("SET enable_external_access = false")
            try:
                table = within(timeout, WHERE, lambda: self._read(other, sql, timeout, max_rows))
            except DatabaseError:
                return  # with other numbers it does not even run
        if still := sorted(kept & _numbers_of(table)):
            raise DatabaseError(
                f"{WHERE}: refused, {still[0]:g} is typed into the query and comes out whatever the tables "
                f"hold (a retyped answer); select it from {', '.join(self.tables)}"
            )

    def _require_own_tables(self, sql: str, columns: Sequence[str] | None) -> set[float]:
        """Refuse what reads other tables, writes, or is typed. Returns the numbers typed into it."""
        import sqlglot
        from sqlglot import exp
        from sqlglot.errors import SqlglotError

        known = {name: [column for column, _ in self.types(name)] for name in self.tables}
        try:
            unclear = disagreement(sql, "duckdb")
            if unclear is not None:
                raise DatabaseError(f"{WHERE}: refused, it {unclear}")
            tree = sqlglot.parse_one(sql, read="duckdb")
            writing = tree.find(exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.DDL, exp.Command, exp.Into)
            if writing is not None and not isinstance(writing, exp.Query):
                raise DatabaseError(f"{WHERE}: refused, it holds {writing.key.upper()}; it may only read")
            foreign = foreign_sources(tree, self.tables)
            if foreign:
                raise DatabaseError(
                    f"{WHERE}: refused, it reads {', '.join(foreign)}; only these tables may be read: "
                    f"{', '.join(self.tables)}"
                )
            typed = retyped(tree, known, columns)
        except (SqlglotError, RecursionError) as error:
            raise DatabaseError(
                f"{WHERE}: refused, what it reads cannot be told: {uncoloured(error)}"
            ) from error
        if typed:
            raise DatabaseError(
                f"{WHERE}: refused, its values are literals (a retyped answer); select them from "
                f"{', '.join(self.tables)}"
            )
        return typed_numbers(tree)

    def close(self) -> None:
        """Drop everything."""
        self._connection.close()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _numbers_of(table: Table) -> set[float]:
    """Return every finite number in a table."""
    return {
        float(value)
        for index in range(len(table.columns))
        for value in table.column(index)
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool) and math.isfinite(value)
    }


def _is_number(kind: str) -> bool:
    return re.match(r"DECIMAL|U?(?:TINY|SMALL|BIG|HUGE)?INT|FLOAT|DOUBLE", kind) is not None


def quoted(name: str) -> str:
    """Return a DuckDB identifier."""
    return '"' + name.replace('"', '""') + '"'


def foreign_sources(tree: Any, tables: Any) -> list[str]:
    """Return what a query reads besides ``tables``, its own CTEs, VALUES and unnested lists."""
    from sqlglot import exp
    from sqlglot.optimizer.scope import traverse_scope

    own = {name.lower() for name in tables}
    found: dict[str, None] = {}
    seen: set[int] = set()
    for scope in traverse_scope(tree):
        for source in scope.sources.values():
            if isinstance(source, exp.Table):
                seen.add(id(source))
                _note(source, own, found)
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        # what scopes do not show (a query inside a function call) must be ours by name
        if id(table) not in seen:
            _note(table, own | ctes, found)
    return list(found)


def _note(table: Any, allowed: set[str], found: dict[str, None]) -> None:
    from sqlglot import exp

    plain = isinstance(table.this, exp.Identifier)
    if plain and table.name.lower() in allowed and table.db in ("", "main") and not table.catalog:
        return
    text = table.copy()
    text.set("alias", None)
    found[text.sql(dialect="duckdb")] = None


def _load(connection: Any, name: str, table: Table) -> None:
    """Create ``name`` with every row and type of ``table``."""
    import duckdb
    import pyarrow

    if not table.columns:
        connection.execute(f'CREATE TABLE {quoted(name)} ("empty" BOOLEAN)')
        return
    columns = [
        _array(pyarrow, table.values[index], table.column(index), column.type)
        for index, column in enumerate(table.columns)
    ]
    try:
        _create(connection, name, unique_names(table.names), columns)
    except duckdb.Error:
        # a value that does not fit the type its tool declared: as text it does
        texts = [_as_text(pyarrow, table.column(index)) for index in range(len(table.columns))]
        _create(connection, name, unique_names(table.names), [(text, None) for text in texts])


def _create(connection: Any, name: str, names: list[str], columns: list[tuple[Any, str | None]]) -> None:
    """Create a table from Arrow arrays, each cast to a type (``None``: as it is)."""
    import pyarrow

    arrays = [array for array, _ in columns]
    casts = [
        f"{quoted(own)}::{kind} AS {quoted(own)}" if kind else quoted(own)
        for own, (_, kind) in zip(names, columns, strict=True)
    ]
    frame = pyarrow.table(arrays, names=names)
    connection.register("agenteval_fetched", frame)
    try:
        connection.execute(f"CREATE TABLE {quoted(name)} AS SELECT {', '.join(casts)} FROM agenteval_fetched")
    finally:
        connection.unregister("agenteval_fetched")


def unique_names(names: Sequence[str]) -> list[str]:
    """Return column names as DuckDB takes them: unique without case, the first keeps its own."""
    found: list[str] = []
    taken = {""}
    for number, name in enumerate(names, start=1):
        own, count = name or f"column_{number}", 1
        while own.lower() in taken:
            own, count = f"{name}_{count}", count + 1
        taken.add(own.lower())
        found.append(own)
    return found


def _array(pyarrow: Any, data: Any, values: list[Any], declared: str | None) -> tuple[Any, str | None]:
    """Return an Arrow array of a column, and the type DuckDB must cast it to (``None``: as it is)."""
    if isinstance(data, pyarrow.Array | pyarrow.ChunkedArray):
        return data, None
    kind = _number_kind(values) or type_of(values)
    if kind in ("HUGEINT", "UUID") or (kind or "").startswith("DECIMAL"):
        texts = [None if value is None else str(value) for value in values]
        return pyarrow.array(texts, type=pyarrow.string()), _fitting(str(kind), values, declared)
    try:
        if kind is not None and kind != "JSON":
            return pyarrow.array(values), None
        if all(value is None for value in values):
            return pyarrow.array([None] * len(values), type=pyarrow.string()), declared_or_text(declared)
    except (pyarrow.ArrowException, OverflowError, ValueError, TypeError):
        pass  # then as text, below: nothing of a value is lost there
    return _as_text(pyarrow, values), _json_kind(values)


def _as_text(pyarrow: Any, values: list[Any]) -> Any:
    return pyarrow.array([_json(value) for value in values], type=pyarrow.string())


def _number_kind(values: list[Any]) -> str | None:
    """Return one exact type for columns that mix integers, decimals and floats."""
    kinds = {type(value) for value in values if value is not None}
    if Decimal in kinds and kinds <= {int, Decimal}:
        return decimal_type([Decimal(value) for value in values if value is not None])
    return None


def _fitting(kind: str, values: list[Any], declared: str | None) -> str:
    """Return a type DuckDB has: integers beyond 128 bits, decimals beyond 38 digits and NaN stay text."""
    known = [value for value in values if value is not None]
    if kind == "HUGEINT":
        return kind if all(abs(value) < 2**127 for value in known) else "VARCHAR"
    if not kind.startswith("DECIMAL"):
        return kind
    if not all(Decimal(value).is_finite() for value in known):
        return "VARCHAR"
    if declared is not None and declared.startswith("DECIMAL("):
        return declared
    return kind if int(kind[8:].partition(",")[0]) <= 38 else "VARCHAR"


def declared_or_text(declared: str | None) -> str:
    """Return the type of a column without a value: its declared one where it is a plain name."""
    return declared if declared is not None and declared.replace(" ", "").isalpha() else "VARCHAR"


def _json(value: Any) -> str | None:
    """Return a value as plain text, lists and dicts as JSON."""
    import json

    if value is None:
        return None
    if isinstance(value, dict | list | bool):
        return json.dumps(value, default=str, ensure_ascii=False)
    # a lone surrogate is not text for Arrow
    return str(value).encode("utf-8", "replace").decode("utf-8")


def _json_kind(values: list[Any]) -> str:
    return "JSON" if all(value is None or isinstance(value, dict | list) for value in values) else "VARCHAR"
