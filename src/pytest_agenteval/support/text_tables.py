"""Tables written as text: Markdown, boxes, CSV, pandas' ``to_string``, and Python's own ``repr`` of rows.

A ``repr`` is read as the literal it is, with the few constructors that drivers' values have; nothing is
ever evaluated.
"""

from __future__ import annotations

import ast
import csv
import datetime
import math
import re
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

LONGEST = 5_000_000
"""Characters of a text that is looked at."""

_RULE = re.compile(r"\s*+[|+:┌├└]?(?>\s*+:?[-─═]++:?\s*+[|+┼┬┴┤┐┘]?)++\s*+")
_FOOTER = re.compile(r"\s*\(?\[?\d+ rows?(?: (?:x|\u00d7) \d+ columns| in set.*)?\]?\)?\s*")
_NAME = re.compile(r"[^\W\d][\w .%#()*$/-]*")
_NULLS = frozenset(("", "null", "none", "nan", "<na>", "nat", "\\n"))


def table_in_text(text: str) -> tuple[list[str] | None, Any] | None:
    """Return column names and rows of texts; names ``None``: what a Python literal holds. ``None``:
    no table.
    """
    if not text or len(text) > LONGEST:
        return None
    if text[0] in "[({":
        found = literal(text)
        return None if found is ... else (None, found)
    lines = [line for line in text.splitlines() if line.strip()]
    while lines and _FOOTER.fullmatch(lines[-1]):
        lines.pop()
    for read in (_ruled, _separated, _indexed):
        table = read(lines)
        if table is not None:
            return table
    return None


def _ruled(lines: list[str]) -> tuple[list[str], list[list[Any]]] | None:
    """Return Markdown tables and the boxes of psql, MySQL and DuckDB."""
    bar = next((bar for bar in "|│" if sum(bar in line for line in lines) >= 2), None)
    if bar is None or not any(_RULE.fullmatch(line) for line in lines):
        return None
    first = next(i for i, line in enumerate(lines) if bar in line and not _RULE.fullmatch(line))
    rows: list[list[str]] = []
    for line in lines[first:]:
        if _RULE.fullmatch(line):
            continue
        if bar not in line:
            return None if len(rows) < 2 or bar in "".join(lines[lines.index(line) + 1 :]) else _headed(rows)
        rows.append([cell.strip() for cell in line.strip().strip(bar).split(bar)])
    return _headed(rows)


def _headed(rows: list[list[str]]) -> tuple[list[str], list[list[Any]]] | None:
    names, *body = rows
    if (
        len(body) > 1
        and all(cell.islower() and cell.isidentifier() for cell in body[0])
        and body[0][0] in _TYPES
    ):
        body = body[1:]  # DuckDB writes the types below the names
    if not all(names) or any(len(row) != len(names) for row in body):
        return None
    return names, [[_cell(cell) for cell in row] for row in body]


_TYPES = frozenset(
    [
        "varchar",
        "int32",
        "int64",
        "int128",
        "int16",
        "int8",
        "double",
        "float",
        "decimal",
        "date",
        "timestamp",
        "boolean",
    ]
)


def _cell(text: str) -> str | None:
    return None if text.strip().lower() in _NULLS else text


def _separated(lines: list[str]) -> tuple[list[str], list[list[Any]]] | None:
    """Return CSV with a header: at least two lines of one width, names that are names."""
    if len(lines) < 2:
        return None
    for mark in (",", "\t", ";"):
        try:
            rows = list(csv.reader(lines, delimiter=mark, strict=True))
        except csv.Error:
            continue
        width = len(rows[0])
        if width < 2 or any(len(row) != width for row in rows) or len(set(rows[0])) != width:
            continue
        # sentences have blanks behind their commas
        prose = any(cell.startswith(" ") and not cell.strip()[:1].isdigit() for row in rows for cell in row)
        if all(_NAME.fullmatch(name.strip()) for name in rows[0]) and not prose:
            return [name.strip() for name in rows[0]], [[_cell(cell) for cell in row] for row in rows[1:]]
    alone = len(lines[0].split()) == 1 and _NAME.fullmatch(lines[0].strip())
    if alone and all(re.fullmatch(r"-?\d+(?:\.\d+)?", line.strip()) for line in lines[1:]):
        return [lines[0].strip()], [[line.strip()] for line in lines[1:]]
    return None


def _indexed(lines: list[str]) -> tuple[list[str], list[list[Any]]] | None:
    """Read ``DataFrame.to_string()``, which counts the rows from 0 before their values."""
    if len(lines) < 2:
        return None
    names = lines[0].split()
    rows = [line.split() for line in lines[1:]]
    counted = all(row[0] == str(number) and len(row) == len(names) + 1 for number, row in enumerate(rows))
    return (names, [[_cell(cell) for cell in row[1:]] for row in rows]) if counted and names else None


def literal(text: str) -> Any:
    """Return what a Python literal says; ``...`` where the text is none. Nothing is called but what is
    listed.
    """
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (
        SyntaxError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        ArithmeticError,
        RecursionError,
        MemoryError,
    ):
        return ...


def _value(node: Any) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        items = [_value(item) for item in node.elts]
        return tuple(items) if isinstance(node, ast.Tuple) else items
    if isinstance(node, ast.Dict):
        return {_value(key): _value(item) for key, item in zip(node.keys, node.values, strict=True)}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        number = _value(node.operand)
        return -number if isinstance(node.op, ast.USub) else +number
    if isinstance(node, ast.Name | ast.Attribute):
        return _CONSTANTS[_dotted(node)]
    if isinstance(node, ast.Call):
        made = _MAKERS[_dotted(node.func)]
        keywords = {str(word.arg): _value(word.value) for word in node.keywords}
        return made(*[_value(item) for item in node.args], **keywords)
    raise ValueError(ast.dump(node)[:50])


def _dotted(node: Any) -> str:
    """Return a name such as ``datetime.date`` without its module."""
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value)
        return node.attr if owner in _MODULES else f"{owner}.{node.attr}"
    return str(node.id)


_MODULES = frozenset(("datetime", "decimal", "uuid", "np", "numpy", "pd", "pandas", "math"))
_CONSTANTS: Mapping[str, Any] = {
    "nan": math.nan, "inf": math.inf, "NaT": None, "NA": None, "null": None, "true": True, "false": False,
    "utc": datetime.UTC, "timezone.utc": datetime.UTC, "UTC": datetime.UTC,
}  # fmt: skip


def _decimal(text: Any) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise ValueError(text) from error


def _timestamp(text: str, tz: Any = None) -> Any:
    return datetime.datetime.fromisoformat(text)


def _same(value: Any = None, **_: Any) -> Any:
    return value


_MAKERS: Mapping[str, Callable[..., Any]] = {
    "Decimal": _decimal,
    "date": datetime.date,
    "datetime": datetime.datetime,
    "time": datetime.time,
    "timedelta": datetime.timedelta,
    "timezone": datetime.timezone,
    "UUID": uuid.UUID,
    "Timestamp": _timestamp,
    "array": _same,
    **dict.fromkeys(
        ("int64", "int32", "int16", "int8", "float64", "float32", "str_", "bool_", "bool"), _same
    ),
}
"""The constructors in the ``repr`` of drivers' values."""
