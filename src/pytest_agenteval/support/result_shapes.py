"""The shapes in which tools, services and programs hand rows over, each read as one table.

Rows are looked for in what a result holds, never made up: a shape that is not known is not a table. What
declares columns and then holds rows of others is a fault, never a table of NULLs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_agenteval.support.json_codec import loads_exact
from pytest_agenteval.support.text_tables import table_in_text
from pytest_agenteval.table import Column, Table

DEEPEST = 6
"""Wrappers around rows that are opened."""

_ROWS = ("rows", "records", "data", "data_array", "results", "result", "items", "values", "resultset")
_WRAPPERS = ("output", "response", "structuredcontent", "content", "statement_response", "table", "payload",
             "body", "dataframe", "query_result", "queryresult")  # fmt: skip
_COLUMNS = ("columns", "cols", "colnames", "column_names", "columnnames", "headers", "header", "meta",
            "fields", "rowtype", "columnmetadata", "columninfo")  # fmt: skip
_SCHEMAS = ("schema", "manifest", "resultsetmetadata")
_NAMES = ("name", "Name", "label", "column_name", "columnName", "display_name")
_BLOCKS = ("text", "image", "audio", "resource", "resource_link", "json", "tool_result", "output_text")
_BLOCK_KEYS = frozenset(
    [
        "type",
        "text",
        "json",
        "annotations",
        "citations",
        "_meta",
        "meta",
        "cache_control",
        "data",
        "mimeType",
        "resource",
        "uri",
        "name",
        "id",
        "tool_use_id",
        "content",
        "is_error",
        "isError",
    ]
)
_CELLS = (
    "v",
    "VarCharValue",
    "stringValue",
    "longValue",
    "doubleValue",
    "booleanValue",
    "blobValue",
    "isNull",
)
_FACTS = frozenset(
    [
        "status",
        "success",
        "ok",
        "message",
        "msg",
        "error",
        "errors",
        "row_count",
        "rowcount",
        "rows_affected",
        "affected_rows",
        "total",
        "totalrows",
        "id",
        "query_id",
        "sql",
        "query",
        "statement",
        "dialect",
        "duration",
        "duration_ms",
        "elapsed",
        "truncated",
        "iserror",
        "is_error",
    ]
)


class UnfitRows(ValueError):
    """Rows that do not hold the columns that are declared for them."""


@dataclass(frozen=True, slots=True)
class ResultShape:
    """What a result holds: a ``table``, or ``rows`` whose columns have no names here.

    ``rows`` are lists of one length. ``error`` is what a tool said of its own failure, ``fault`` why its
    rows cannot be read. All ``None``: nothing that is a table.
    """

    table: Table | None = None
    rows: list[list[Any]] | None = None
    error: str | None = None
    fault: str | None = None


NOTHING = ResultShape()


def read_result(result: Any) -> ResultShape:
    """Return what ``result`` holds: JSON text, content blocks, the forms of services and data frames."""
    failed = failure_of(result)
    if failed is not None:
        return ResultShape(error=failed)
    try:
        return _read(result, [], 0)
    except UnfitRows as error:
        return ResultShape(fault=str(error))


def failure_of(result: Any) -> str | None:
    """Return what a result says of its own failure (``is_error``, ``isError``); ``None``: it says none."""
    if isinstance(result, Mapping):
        if result.get("isError") is True or result.get("is_error") is True:
            return _words(result.get("content", result)) or "the tool says is_error"
        return None
    if isinstance(result, list) and any(isinstance(item, Mapping) for item in result):
        blocks = [item for item in result if isinstance(item, Mapping) and item.get("type") == "tool_result"]
        return next((found for found in map(failure_of, blocks) if found is not None), None)
    return None


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content.strip()
    if isinstance(content, list):
        return "\n".join(filter(None, map(_words, content)))
    if isinstance(content, Mapping):
        return _words(
            next((content[key] for key in ("text", "content", "error", "message") if key in content), "")
        )
    return ""


def _read(value: Any, columns: list[Column], depth: int) -> ResultShape:
    if depth > DEEPEST:
        return NOTHING
    if isinstance(value, Table):
        return ResultShape(value)
    if isinstance(value, str):
        return _text(value, columns, depth)
    if isinstance(value, Mapping):
        return _mapping(value, columns, depth)
    if isinstance(value, list | tuple):
        return _list(list(value), columns, depth)
    if value is None:
        return NOTHING
    # one value and nothing around it
    return _named([[value]], columns) if depth == 0 or columns else NOTHING


def _text(text: str, columns: list[Column], depth: int) -> ResultShape:
    text = _unfenced(text.strip())
    if text[:1] in ("{", "["):
        parsed = _json(text)
        if parsed is not ...:
            return _read(parsed, columns, depth + 1)
    found = table_in_text(text)
    if found is None:
        return NOTHING
    names, rows = found
    if names is None:
        return _read(rows, columns, depth + 1)
    return ResultShape(Table.from_rows(names, rows))


def _unfenced(text: str) -> str:
    """Return the inside of one code fence around the whole text."""
    if not text.startswith("```") or not text.endswith("```") or "\n" not in text:
        return text
    return text[text.index("\n") + 1 : -3].strip()


def _json(text: str) -> Any:
    """Return what JSON or lines of JSON say; ``...`` where the text is neither."""
    try:
        return loads_exact(text)
    except (ValueError, RecursionError):
        lines = text.splitlines()
    if len(lines) < 2 or not all(line.lstrip()[:1] == "{" for line in lines if line.strip()):
        return ...
    try:
        return [loads_exact(line) for line in lines if line.strip()]
    except (ValueError, RecursionError):
        return ...


def _list(items: list[Any], columns: list[Column], depth: int) -> ResultShape:
    if not items:
        return ResultShape(Table(tuple(columns), tuple([] for _ in columns), 0))
    if all(map(_is_block, items)):
        return _blocks(items, depth)
    if all(isinstance(item, Mapping) for item in items):
        return _records(items, columns, depth)
    if all(isinstance(item, list | tuple) for item in items):
        return _named([[_cell(cell) for cell in item] for item in items], columns)
    if any(isinstance(item, Mapping | list | tuple) for item in items):
        if columns:
            raise UnfitRows(f"rows of several kinds under {_listed(columns)}")
        return NOTHING
    return _named([[item] for item in items], columns) if len(columns) < 2 else NOTHING


def _is_block(item: Any) -> bool:
    """Return whether it is a content block of MCP, Anthropic or OpenAI:
    its type and all its keys are theirs.
    """
    return (
        isinstance(item, Mapping)
        and item.get("type") in _BLOCKS
        and set(item) <= _BLOCK_KEYS
        and len(item) > 1
    )


def _blocks(items: list[Any], depth: int) -> ResultShape:
    """Return one table in several blocks, a block for each row, or the only block that holds one."""
    held = [next((item[key] for key in ("text", "json", "content") if key in item), None) for item in items]
    parts: list[Any] = [part for part in held if part is not None]
    values = [_json(part.strip()) if isinstance(part, str) else part for part in parts]
    if len(values) > 1 and all(isinstance(value, Mapping) for value in values):
        return _list(values, [], depth + 1)
    found = [shape for shape in (_read(part, [], depth + 1) for part in parts) if shape != NOTHING]
    if not found and len(parts) > 1 and all(isinstance(part, str) for part in parts):
        return _read("\n".join(parts), [], depth + 1)
    return found[0] if len(found) == 1 else NOTHING


def _records(items: list[Any], columns: list[Column], depth: int) -> ResultShape:
    if all(set(item) == {"f"} and isinstance(item["f"], list) for item in items):  # BigQuery
        return _named([[_cell(cell) for cell in item["f"]] for item in items], columns)
    if all(set(item) == {"Data"} and isinstance(item["Data"], list) for item in items):  # Athena
        rows = [[_cell(cell) for cell in item["Data"]] for item in items]
        headed = bool(columns) and rows[0] == [column.name for column in columns]
        return _named(rows[1:] if headed else rows, columns)
    inner = [key for key in items[0] if str(key).lower() in ("data", "rows", "records")]
    if len(items) == 1 and inner and isinstance(items[0][inner[0]], list | Mapping):  # Superset
        return _read(items[0], columns, depth + 1)
    return ResultShape(_table_of_records(items, columns))


def _table_of_records(items: Sequence[Mapping[Any, Any]], columns: list[Column]) -> Table:
    if columns and not any(column.name in item for column in columns for item in items):
        found = ", ".join(map(str, list(items[0])[:8]))
        raise UnfitRows(
            f"the columns {_listed(columns)} are declared, and no row has one of them (rows hold {found})"
        )
    known = {column.name for column in columns}
    extra = dict.fromkeys(str(key) for item in items for key in item if str(key) not in known)
    named = [*columns, *(Column(name) for name in extra)]
    names = {column.name: column.name for column in named}
    rows = [{str(key): value for key, value in item.items()} for item in items]
    if not columns:
        names = _short(list(names))
    values = tuple([_cell(row.get(column.name)) for row in rows] for column in named)
    return Table(tuple(Column(names[c.name], c.type) for c in named), values, len(rows))


def _short(names: list[str]) -> dict[str, str]:
    """Return ``orders.channel`` as ``channel`` where every name has such a prefix (Cube) and none is lost."""
    parts = {name: name.rpartition(".")[2] for name in names}
    prefixed = all("." in name and " " not in name for name in names)
    return parts if prefixed and len(set(parts.values())) == len(names) else {name: name for name in names}


def _named(rows: list[list[Any]], columns: list[Column]) -> ResultShape:
    widths = {len(row) for row in rows}
    if not columns:
        return ResultShape(rows=rows) if len(widths) == 1 else NOTHING
    if widths != {len(columns)}:
        counts = ", ".join(map(str, sorted(widths)))
        raise UnfitRows(
            f"{len(columns)} columns are declared ({_listed(columns)}), and rows have {counts} values"
        )
    values = tuple([row[index] for row in rows] for index in range(len(columns)))
    return ResultShape(Table(tuple(columns), values, len(rows)))


def _listed(columns: Sequence[Column]) -> str:
    return ", ".join(column.name for column in columns[:8])


def _cell(cell: Any) -> Any:
    """Return a cell of BigQuery, Athena or the Redshift data API as its value."""
    if isinstance(cell, Mapping) and len(cell) == 1:
        ((key, value),) = cell.items()
        if key in _CELLS:
            return None if key == "isNull" else _cell(value)
    return cell


def _mapping(value: Mapping[Any, Any], columns: list[Column], depth: int) -> ResultShape:
    lower = {str(key).lower(): item for key, item in value.items()}
    if set(value) <= _BLOCK_KEYS and _is_block(value):
        return _blocks([value], depth)
    known = _declared(lower) or columns
    known = _without_index(known, lower)
    for keys in (_ROWS, _WRAPPERS):
        for key in keys:
            inner = lower.get(key)
            if isinstance(inner, list | tuple | Mapping) or (
                isinstance(inner, str) and inner.strip()[:1] in "[{|"
            ):
                inner = _without_counter(inner, lower)
                found = _read(inner, known, depth + 1)
                nested = isinstance(inner, list | tuple) and any(
                    isinstance(row, list | tuple) for row in inner
                )
                if found != NOTHING and (found.rows is None or nested or _columnar(value) is None):
                    return found
    for shape in (_columnar, _by_index, _one_row):
        table = shape(value)
        if table is not None:
            return ResultShape(table)
    if len(value) == 1 and isinstance(only := next(iter(value.values())), list | Mapping):
        return _read(only, columns, depth + 1)
    return NOTHING


def _holds_lists(rows: Sequence[Any]) -> bool:
    return any(isinstance(row, list | tuple) for row in rows)


def _declared(lower: Mapping[str, Any]) -> list[Column]:
    """Return the columns that a mapping declares for its rows; ``[]``: none."""
    for key in _COLUMNS:
        found = _columns(lower.get(key))
        if found:
            return found
    for key in _SCHEMAS:
        inner = lower.get(key)
        if isinstance(inner, Mapping):
            found = _declared({str(name).lower(): item for name, item in inner.items()})
            if found:
                return found
        elif found := _columns(inner):
            return found
    return []


def _columns(entries: Any) -> list[Column]:
    """Return column names as texts, ``{name, type}`` or ``[name, type]``; ``[]`` where they are none."""
    found = []
    for entry in entries if isinstance(entries, list | tuple) else ():
        if isinstance(entry, str):
            found.append(Column(entry))
        elif isinstance(entry, Mapping) and any(key in entry for key in _NAMES):
            name = next(entry[key] for key in _NAMES if key in entry)
            kind = entry.get("type")
            found.append(Column(str(name), kind if isinstance(kind, str) else None))
        elif isinstance(entry, list | tuple) and entry and isinstance(entry[0], str):
            kind = entry[1] if len(entry) > 1 else None
            found.append(Column(str(entry[0]), kind if isinstance(kind, str) else None))
    return found


def _without_index(columns: list[Column], lower: Mapping[str, Any]) -> list[Column]:
    schema = lower.get("schema")
    pandas = isinstance(schema, Mapping) and "pandas_version" in schema
    return [column for column in columns if column.name != "index"] if pandas else columns


def _without_counter(inner: Any, lower: Mapping[str, Any]) -> Any:
    """Return rows of pandas' ``orient='table'`` without the index that counts them."""
    schema = lower.get("schema")
    if not (isinstance(schema, Mapping) and "pandas_version" in schema and isinstance(inner, list)):
        return inner
    return [{key: cell for key, cell in row.items() if key != "index"} if isinstance(row, Mapping) else row
            for row in inner]  # fmt: skip


def _columnar(value: Mapping[Any, Any]) -> Table | None:
    """Return ``{column: [values]}`` and pandas' ``{column: {index: value}}``."""
    columns = list(value.values())
    if columns and all(isinstance(column, list | tuple) for column in columns):
        flat = not any(isinstance(cell, Mapping) for column in columns for cell in column)
        if flat and len({len(column) for column in columns}) == 1:
            names = tuple(Column(str(name)) for name in value)
            return Table(names, tuple(list(column) for column in columns), len(columns[0]))
    if columns and all(isinstance(column, Mapping) for column in columns):
        index = list(columns[0])
        if index and all(_counts(key) for key in index) and all(list(column) == index for column in columns):
            names = tuple(Column(str(name)) for name in value)
            if not all(_counts(name) for name in value):
                return Table(names, tuple(list(column.values()) for column in columns), len(index))
    return None


def _by_index(value: Mapping[Any, Any]) -> Table | None:
    """Return pandas' ``{index: {column: value}}``."""
    rows = list(value.values())
    if rows and all(_counts(key) for key in value) and all(isinstance(row, Mapping) for row in rows):
        return _table_of_records(rows, [])
    return None


def _counts(key: Any) -> bool:
    return str(key).isdecimal() and str(key).isascii()


def _one_row(value: Mapping[Any, Any]) -> Table | None:
    """Return a mapping of single values, not all of which only tell how the query went."""
    names = [str(name) for name in value]
    plain = not any(isinstance(cell, Mapping | list | tuple) for cell in value.values())
    return (
        _table_of_records([value], [])
        if names and plain and not {n.lower() for n in names} <= _FACTS
        else None
    )
