"""Expected tables written in a case or in a CSV file beside it.

Types: a quoted scalar is text, else YAML's type; a CSV column is text when a value has a leading
zero or does not parse, else the narrowest of integer, decimal, date, timestamp, boolean; ``types``
overrides both.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

from pytest_agenteval.cases.yaml_reader import MappingEntry, Node, Reader, decode, file_bytes, found
from pytest_agenteval.support.text import did_you_mean
from pytest_agenteval.table import Table

_INTEGER = re.compile(r"[+-]?(0|[1-9]\d*)")
_DECIMAL = re.compile(r"[+-]?(0|[1-9]\d*)\.\d+")
_FLOAT = re.compile(r"[+-]?(0|[1-9]\d*)(\.\d*)?[eE][+-]?\d+")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|z| UTC|[+-]\d\d(:?\d\d)?)?")
_ENDLESS = re.compile(r"[+-]?infinity", re.IGNORECASE)
_NO_NUMBER = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_INTEGERS = (
    "TINYINT", "SMALLINT", "INTEGER", "INT", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER",
    "UBIGINT", "UHUGEINT", "INT2", "INT4", "INT8", "INT64", "LONG",
)  # fmt: skip
_DECIMALS = ("DECIMAL", "NUMERIC", "NUMBER", "MONEY", "BIGNUMERIC")
_FLOATS = ("DOUBLE", "DOUBLE PRECISION", "FLOAT", "FLOAT4", "FLOAT8", "FLOAT64", "REAL")
_TEXTS = ("VARCHAR", "TEXT", "STRING", "CHAR", "BPCHAR", "NVARCHAR", "UUID", "INTERVAL", "ENUM")
_TIMES = ("TIMESTAMP", "DATETIME", "TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITHOUT TIME ZONE",
          "TIMESTAMP_NTZ", "TIMESTAMP_TZ")  # fmt: skip
_AS_THEY_ARE = (
    "JSON",
    "VARIANT",
    "STRUCT",
    "MAP",
    "LIST",
    "ARRAY",
    "UNION",
    "OBJECT",
    "BLOB",
    "BYTES",
    "BYTEA",
)
TYPES = (*_INTEGERS, *_DECIMALS, *_FLOATS, *_TEXTS, "BOOLEAN", "BOOL", "DATE", "TIME", *_TIMES, *_AS_THEY_ARE)
"""SQL types that ``types`` may name (``DECIMAL(10,2)`` and ``INTEGER[]`` too)."""


NO_COLUMNS = "a row without columns fits any answer; no rows at all are written []"


@dataclass(frozen=True, slots=True)
class Cell:
    """A value and, for a scalar, how it is written."""

    value: Any
    text: str | None
    place: Node


def expected_table(reader: Reader, node: Node) -> Table | None:
    """Return the table of an ``expected`` key; ``None`` after an error was reported."""
    if node.id == "sequence":
        return _from_maps(reader, node, {})
    if node.id != "mapping":
        reader.error(
            node, f"expected: rows, {{columns, rows, types}} or {{file: x.csv}}, found {found(node)}"
        )
        return None
    entries = reader.entries(node)
    known = ("columns", "rows", "types", "file")
    for name, entry in entries.items():
        if name not in known:
            reader.error(entry.key, f"expected: unknown key {name!r}{did_you_mean(name, known)}")
    types = _types(reader, entries.get("types"))
    if "file" in entries:
        if other := next((name for name in ("columns", "rows") if name in entries), None):
            reader.error(entries[other].key, f"expected: give file or {other}, not both")
        return _from_csv(reader, entries["file"].value, types)
    if "rows" not in entries:
        reader.error(node, "expected: missing rows (or file)")
        return None
    rows = entries["rows"].value
    if rows.id != "sequence":
        reader.error(rows, f"expected: rows must be a list, found {found(rows)}")
        return None
    if "columns" not in entries:
        return _from_maps(reader, rows, types)
    return _from_lists(reader, entries["columns"].value, rows, types)


def _types(reader: Reader, entry: MappingEntry | None) -> dict[str, tuple[str, Node]]:
    """Return column -> its declared SQL type and the place where it stands."""
    if entry is None:
        return {}
    if entry.value.id != "mapping":
        reader.error(
            entry.value, f"expected: types must map columns to SQL types, found {found(entry.value)}"
        )
        return {}
    declared = {}
    for column, pair in reader.entries(entry.value).items():
        name = pair.value.value if pair.value.id == "scalar" else ""
        if (base := _base(name)) in TYPES:
            declared[column] = (name.upper(), pair.key)
        else:
            close = did_you_mean(base, TYPES) if base else "; for example VARCHAR, DECIMAL(10,2), DATE"
            close = close if close.startswith(",") else "; for example VARCHAR, DECIMAL(10,2), DATE"
            reader.error(pair.value, f"expected: unknown type {name!r} of column {column!r}{close}")
    return declared


def _base(name: str) -> str:
    """Return ``DECIMAL`` of ``decimal(10, 2)``; ``LIST`` of ``INTEGER[]``."""
    return "LIST" if name.endswith("[]") else re.sub(r"\s*\(.*\)", "", name).strip().upper()


def _cell(reader: Reader, node: Node, declared: tuple[str, Node] | None) -> Cell:
    """Return a value; where its type is declared, how it is written counts, whatever YAML makes of it."""
    if declared is not None and node.id == "scalar" and _base(declared[0]) not in _AS_THEY_ARE:
        return Cell(None if node.tag.endswith(":null") else node.value, node.value, node)
    return Cell(reader.plain(node), node.value if node.id == "scalar" else None, node)


def _from_maps(reader: Reader, node: Node, types: Mapping[str, tuple[str, Node]]) -> Table | None:
    rows: list[dict[str, Cell]] = []
    for row in node.value:
        if row.id != "mapping":
            text = "expected: a row must be a mapping of columns to values"
            reader.error(row, f"{text} (or give columns and rows), found {found(row)}")
            continue
        if not row.value:
            reader.error(row, f"expected: {NO_COLUMNS}")
        rows.append(
            {name: _cell(reader, entry.value, types.get(name)) for name, entry in reader.entries(row).items()}
        )
    names = list(dict.fromkeys(name for row in rows for name in row))
    empty = Cell(None, None, node)
    columns = [[row.get(name, empty) for row in rows] for name in names]
    return _table(reader, names, columns, types, _yaml_type, len(rows))


def _from_lists(
    reader: Reader, columns: Node, rows: Node, types: Mapping[str, tuple[str, Node]]
) -> Table | None:
    if columns.id != "sequence" or any(entry.id != "scalar" for entry in columns.value):
        reader.error(columns, f"expected: columns must be a list of names, found {found(columns)}")
        return None
    names = [entry.value for entry in columns.value]
    if not names and rows.value:
        reader.error(rows.value[0], f"expected: {NO_COLUMNS}")
        return None
    kept: list[list[Cell]] = []
    for row in rows.value:
        if row.id == "mapping":
            entries = reader.entries(row)
            for name, entry in entries.items():
                if name not in names:
                    reader.error(entry.key, f"expected: unknown column {name!r}{did_you_mean(name, names)}")
            empty = Cell(None, None, row)
            kept.append(
                [_cell(reader, entries[n].value, types.get(n)) if n in entries else empty for n in names]
            )
        elif row.id != "sequence":
            reader.error(row, f"expected: a row must be a list of values, found {found(row)}")
        elif len(row.value) != len(names):
            reader.error(row, f"expected: a row of {len(row.value)} values for {len(names)} columns")
        else:
            pairs = zip(names, row.value, strict=True)
            kept.append([_cell(reader, value, types.get(name)) for name, value in pairs])
    cells = [[row[i] for row in kept] for i in range(len(names))]
    return _table(reader, names, cells, types, _yaml_type, len(kept))


def _from_csv(reader: Reader, node: Node, types: Mapping[str, tuple[str, Node]]) -> Table | None:
    if node.id != "scalar" or not node.value.strip():
        reader.error(node, f"expected: file must be the name of a CSV file, found {found(node)}")
        return None
    path = reader.beside(node, "expected.file", node.value)
    if path is None:
        return None
    try:
        text, problem = decode(path, file_bytes(path))
    except OSError as wrong:
        reader.error(node, f"expected: cannot read {node.value!r} beside the case file: {wrong.strerror}")
        return None
    if problem is not None:
        reader.error(node, f"expected: {node.value}:{problem.line}:{problem.column}: {problem.text}")
        return None
    lines = csv.reader(text.splitlines(keepends=True))
    try:
        header, *records = [(lines.line_num, row) for row in lines] or [(0, [])]
    except csv.Error as wrong:
        reader.error(node, f"expected: {node.value}:{lines.line_num}: {wrong}")
        return None
    names = [name.strip() for name in header[1]]
    if not any(names):
        reader.error(node, f"expected: {node.value} is empty; its first line must name the columns")
        return None
    rows = [row for _, row in records if len(row) == len(names)]
    for line, row in records:
        if row and len(row) != len(names):
            place = f"{node.value}:{line}"
            reader.error(node, f"expected: {place}: {len(row)} values for {len(names)} columns")
    columns = [[Cell(row[i] or None, row[i] or None, node) for row in rows] for i in range(len(names))]
    return _table(reader, names, columns, types, _csv_type, len(rows))


def _table(
    reader: Reader,
    names: Sequence[str],
    columns: Sequence[list[Cell]],
    types: Mapping[str, tuple[str, Node]],
    infer: Callable[[list[Cell]], tuple[str | None, list[Any]]],
    row_count: int,
) -> Table | None:
    before = reader.errors
    for column, (_, place) in types.items():
        if column not in names:
            reader.error(place, f"expected: types names a column that is not there: {column!r}"
                         f"{did_you_mean(column, names)}")  # fmt: skip
    kinds: list[str | None] = []
    values: list[list[Any]] = []
    for name, cells in zip(names, columns, strict=True):
        if name in types:
            kinds.append(types[name][0])
            values.append([_declared(reader, cell, types[name][0], name) for cell in cells])
        else:
            kind, converted = infer(cells)
            kinds.append(kind)
            values.append(converted)
    if reader.errors > before:
        return None
    rows = list(zip(*values, strict=True)) if names else [()] * row_count
    return Table.from_rows(names, rows, kinds)


def _yaml_type(cells: list[Cell]) -> tuple[str | None, list[Any]]:
    """Return the column type of YAML's own values; ``None`` where they are of several kinds."""
    values = [cell.value for cell in cells]
    kinds = {_kind(value) for value in values if value is not None}
    if kinds == {"BIGINT", "DOUBLE"}:
        return "DOUBLE", values
    if kinds == {"BIGINT", "HUGEINT"}:
        return "HUGEINT", values
    if kinds == {"DATE", "TIMESTAMP"}:
        return "TIMESTAMP", values
    return (kinds.pop() if len(kinds) == 1 else None), values


def _kind(value: Any) -> str | None:
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, int):
        return "BIGINT" if -(2**63) <= value < 2**63 else "HUGEINT"
    if isinstance(value, datetime):
        return "TIMESTAMPTZ" if value.tzinfo else "TIMESTAMP"
    simple = {float: "DOUBLE", str: "VARCHAR", date: "DATE"}
    return simple.get(type(value))


def _csv_type(cells: list[Cell]) -> tuple[str | None, list[Any]]:
    """Return the narrowest type every value of a CSV column parses as; an empty field is NULL."""
    texts = [cell.text for cell in cells]
    given = [text for text in texts if text is not None]
    if not given:
        return None, texts
    for kind, parse in _csv_kinds(given):
        try:
            return kind, [None if text is None else parse(text) for text in texts]
        except ValueError:
            continue
    return "VARCHAR", texts


def _csv_kinds(given: list[str]) -> list[tuple[str, Callable[[str], Any]]]:
    """Return types to try, narrowest first, of those whose form all values have."""

    def all_match(*forms: re.Pattern[str]) -> bool:
        return all(any(form.fullmatch(text) for form in forms) for text in given)

    if all_match(_INTEGER):
        wide = any(not -(2**63) <= int(text) < 2**63 for text in given)
        return [("HUGEINT" if wide else "BIGINT", int)]
    if all_match(_INTEGER, _DECIMAL):
        scale = max(len(text.partition(".")[2]) for text in given)
        whole = max(len(text.partition(".")[0].lstrip("+-")) for text in given)
        return (
            [(f"DECIMAL({whole + scale},{scale})", Decimal)] if whole + scale <= 38 else [("DOUBLE", float)]
        )
    # words that a column of numbers or of dates may hold beside them, and none of which is one alone
    if not all_match(_NO_NUMBER):
        if all_match(_INTEGER, _DECIMAL, _FLOAT, _NO_NUMBER):
            return [("DOUBLE", float)]
        if all_match(_DATE, _ENDLESS):
            return [("DATE", _date)]
        if all_match(_DATE, _TIMESTAMP, _ENDLESS):
            zoned = any(datetime_zone(text) for text in given)
            return [("TIMESTAMPTZ" if zoned else "TIMESTAMP", _moment)]
    if all(text.lower() in ("true", "false") for text in given):
        return [("BOOLEAN", lambda text: text.lower() == "true")]
    return []


def datetime_zone(text: str) -> bool:
    """Return whether an ISO timestamp names an offset."""
    return bool(re.search(r"(Z|z| UTC|[+-]\d\d(:?\d\d)?)$", text[10:]))


def _date(text: str) -> date | str:
    """Return a date; infinity, which Python does not have, as its text."""
    return text.lower() if _ENDLESS.fullmatch(text) else date.fromisoformat(text)


def _moment(text: str) -> datetime | str:
    """Return a timestamp with the offset as written; infinity as its text."""
    if _ENDLESS.fullmatch(text):
        return text.lower()
    return datetime.fromisoformat(text.upper().replace(" UTC", "Z"))


def _declared(reader: Reader, cell: Cell, kind: str, column: str) -> Any:
    """Return a cell as its declared type, read from how it is written (``02134`` stays that as VARCHAR)."""
    if cell.value is None:
        return None
    if cell.text is None:
        return cell.value
    base = _base(kind)
    try:
        return _parse(base, cell.text.strip(), cell)
    except (ValueError, InvalidOperation):
        reader.error(cell.place, f"expected: {cell.text!r} in column {column!r} is not {_article(kind)}")
        return None


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'AEIOU' else 'a'} {kind}"


def _parse(base: str, text: str, cell: Cell) -> Any:
    if base in _INTEGERS:
        return int(text)
    if base in _DECIMALS:
        return Decimal(text)
    if base in _FLOATS:
        return float(text.replace(".", "") if text.lower().endswith((".inf", ".nan")) else text)
    if base in ("BOOLEAN", "BOOL"):
        return _boolean(text)
    if base == "DATE":
        return _date(text)
    if base == "TIME":
        return time.fromisoformat(text)
    if base in _TIMES:
        return _moment(text)
    return cell.text if base in _TEXTS else cell.value


def _boolean(text: str) -> bool:
    words = {
        "true": True,
        "t": True,
        "1": True,
        "yes": True,
        "false": False,
        "f": False,
        "0": False,
        "no": False,
    }
    if text.lower() not in words:
        raise ValueError(text)
    return words[text.lower()]
