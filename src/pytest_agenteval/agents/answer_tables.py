"""What an agent in Python hands over as its table: rows of any library, frames, cursors, forms of JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_agenteval.errors import AgentFailed
from pytest_agenteval.support.result_shapes import read_result
from pytest_agenteval.support.scalars import plain_tree, record_of, safe_str
from pytest_agenteval.support.statement_names import column_names_of
from pytest_agenteval.table import Column, Table

NO_NAMES = (
    "rows without column names; return dicts or a DataFrame (.df() of a DuckDB result), {columns: [...], "
    "rows: [...]}, or the query's ToolCall with its sql, whose SELECT list names them"
)


def as_table(raw: Any, place: str = "the agent", sql: str | None = None) -> Table | None:
    """Return ``raw`` as a table when it is one; ``None`` when it is something else.

    Lists (also generators) of dicts, namedtuples, dataclasses, pydantic models and the rows of drivers;
    one of these as one row; ``{columns, rows}`` and ``{column: [values]}``; cursors; pandas, polars and
    Arrow tables, DuckDB relations and whatever offers the Arrow stream protocol. Rows without names take
    those of ``sql``, the statement that gave them. Raises ``AgentFailed`` when a table cannot be read.
    """
    if isinstance(raw, Table):
        return _plain_table(raw)
    try:
        table = _from_library(raw)
        if table is None and isinstance(raw, Iterator):
            raw = list(raw)
    except Exception as error:
        kind = type(raw).__name__
        raise AgentFailed(
            f"{place} returned a {kind} that cannot be read: {type(error).__name__}: {safe_str(error)}"
        ) from error
    if table is not None:
        return table
    if isinstance(raw, list | tuple) and not hasattr(raw, "_asdict"):
        return _from_rows(raw, place, sql)
    if isinstance(raw, Mapping):
        return _from_shape(raw, place, sql)
    row = _record(raw)
    return None if row is None else _from_records([row])


def _from_library(raw: Any) -> Table | None:
    home = type(raw).__module__.partition(".")[0].lstrip("_")
    if home == "pandas" and hasattr(raw, "to_frame") and not hasattr(raw, "iterrows"):
        raw = raw.to_frame()
    if home == "pandas" and hasattr(raw, "iloc"):
        return _plain_table(Table.from_pandas(raw))
    if home == "polars":
        if hasattr(raw, "collect"):
            raw = raw.collect()
        return _from_stream(raw.to_frame() if hasattr(raw, "to_frame") else raw)
    if home == "duckdb" and hasattr(raw, "fetchall") and hasattr(raw, "types"):
        return _plain_table(Table.from_duckdb(raw))
    if hasattr(raw, "__arrow_c_stream__"):
        return _from_stream(raw)
    if home == "sqlalchemy" and callable(getattr(raw, "mappings", None)):
        names = list(raw.keys())
        return _from_records([dict(row) for row in raw.mappings()], names)
    if getattr(raw, "description", None) and callable(getattr(raw, "fetchall", None)):
        return _plain_table(Table.from_cursor(raw))
    if home == "numpy" and getattr(getattr(raw, "dtype", None), "names", None) and raw.shape:
        return _from_records([plain_tree(row) for row in raw], list(raw.dtype.names))
    return None


def _record(item: Any) -> dict[Any, Any] | None:
    """Return the fields of a row; ``None`` for what is none, a plain tuple or list included."""
    if isinstance(item, str | int | float | list) or type(item) is tuple or item is None:
        return None
    return record_of(item)


def _from_rows(rows: Sequence[Any], place: str, sql: str | None) -> Table | None:
    blocks = rows and all(
        isinstance(row, Mapping) and row.get("type") in ("text", "tool_result") for row in rows
    )
    records = [_record(row) for row in rows]
    if all(record is not None for record in records) and not blocks:
        return _from_records([record for record in records if record is not None])
    if not blocks and not all(isinstance(row, list | tuple) for row in rows):
        return None
    return _from_shape(list(rows), place, sql)


def _from_shape(value: Any, place: str, sql: str | None) -> Table | None:
    shape = read_result(plain_tree(value))
    if shape.fault is not None:
        raise AgentFailed(f"{place} returned rows that cannot be read: {shape.fault}")
    if shape.rows is None:
        return shape.table
    names = column_names_of(sql) if sql is not None else None
    if names is None or len(names) != len(shape.rows[0]):
        raise AgentFailed(f"{place} returned {NO_NAMES}")
    return Table.from_rows(names, shape.rows)


def _from_records(rows: Sequence[Mapping[Any, Any]], names: Sequence[Any] = ()) -> Table:
    """Return the table of records; ``names`` are those of a result, which may have no rows."""
    if not rows and names:
        return Table(tuple(Column(safe_str(name)) for name in names), tuple([] for _ in names), 0)
    return _plain_table(Table.from_records([{safe_str(key): row[key] for key in row} for row in rows]))


def _plain_table(table: Table) -> Table:
    """Return the same table with plain values; Arrow columns are plain already."""
    values = tuple(data if _is_arrow(data) else _plain_column(data, table, i)
                   for i, data in enumerate(table.values))  # fmt: skip
    columns = tuple(Column(safe_str(column.name), column.type) for column in table.columns)
    return Table(columns, values, table.row_count)


def _is_arrow(data: Any) -> bool:
    return type(data).__module__.partition(".")[0] == "pyarrow"


def _plain_column(data: Any, table: Table, index: int) -> list[Any]:
    cells = data if isinstance(data, list) else table.column(index)
    return [plain_tree(cell) for cell in cells]


def _from_stream(raw: Any) -> Table:
    import pyarrow

    return Table.from_arrow(raw if isinstance(raw, pyarrow.Table) else pyarrow.table(raw))


def named(raw: Any) -> str:
    """Return what ``raw`` is, for a message."""
    if raw is None:
        return "None (did it forget to return its answer?)"
    kind = type(raw).__name__
    if isinstance(raw, list | tuple) and raw:
        first = next((item for item in raw if _record(item) is None), raw[0])
        return f"a {kind} that holds {type(first).__name__}"
    if isinstance(raw, Mapping):
        return f"a {kind} (one row is [{{...}}], an answer is Answer(...))"
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"
