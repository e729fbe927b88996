"""Values, tables and answers as strict JSON, and back without losing a type.

Journals and recordings share this form. What JSON has no word for is an object with one key
``$type``: ``{"$type": "decimal", "value": "1.10"}``; integers beyond 2**53 are written so too, since
other readers of JSON would round them. Text is valid Unicode: a lone surrogate becomes U+FFFD.
"""

from __future__ import annotations

import base64
import math
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from pytest_agenteval.table import Column, Table
from pytest_agenteval.types import Answer, HttpAttempt, ToolCall, Usage

TAG = "$type"
DEEPEST = 60
LARGEST_EXACT = 2**53


def clean_text(text: str) -> str:
    """``text`` as valid Unicode: lone surrogates become U+FFFD."""
    if text.isascii():
        return str(text)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def safe_str(value: Any) -> str:
    """``str(value)``, whatever its class does there."""
    try:
        return clean_text(str(value))
    except Exception as error:
        return f"<{type(value).__name__}: its text could not be made: {type(error).__name__}>"


def plain(value: Any, depth: int = 0) -> Any:
    """``value`` in Python's own types: NumPy and pandas scalars become what they mean.

    NA and NaT become ``None``; dicts, lists, tuples and sets keep their shape (as dict and list);
    objects of other classes become their text. Never raises, ends on cycles.
    """
    kind = type(value)
    if value is None or kind in (int, bool, float):
        return value
    if kind is str:
        return value if value.isascii() else clean_text(value)
    if kind in (Decimal, date, datetime, time, timedelta, bytes, uuid.UUID):
        return value
    if depth >= DEEPEST:
        return "..."
    if isinstance(value, Mapping):
        return {_key(key): plain(item, depth + 1) for key, item in list(value.items())}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item, depth + 1) for item in value]
    return _foreign(value, kind, depth)


def _key(key: Any) -> Any:
    done = plain(key)
    return done if isinstance(done, str | int | float | bool | Decimal | date | bytes | None) else str(done)


def _foreign(value: Any, kind: type, depth: int) -> Any:
    """Scalars of NumPy and pandas, enums, subclasses of Python's types; else the text."""
    try:
        home = kind.__module__.partition(".")[0]
        if home == "pandas":
            return _pandas_scalar(value, kind)
        if home == "numpy":
            return _numpy_value(value, kind, depth)
        if isinstance(value, int | float | str):
            return plain(next(base(value) for base in (int, float, str) if isinstance(value, base)))
        if isinstance(value, datetime | date | time | timedelta | Decimal | uuid.UUID):
            return value
        if isinstance(value, bytearray | memoryview):
            return bytes(value)
    except Exception:
        return safe_str(value)
    return safe_str(value)


def _pandas_scalar(value: Any, kind: type) -> Any:
    if kind.__name__ in ("NAType", "NaTType"):
        return None
    if kind.__name__ == "Timestamp":
        return value.to_pydatetime(warn=False)
    if kind.__name__ == "Timedelta":
        return value.to_pytimedelta()
    return safe_str(value)


def _numpy_value(value: Any, kind: type, depth: int) -> Any:
    if kind.__name__ == "datetime64":
        done = value.astype("datetime64[us]").item() if "generic" not in str(value.dtype) else None
        return done if done is None or isinstance(done, date) else safe_str(value)
    if kind.__name__ == "timedelta64":
        done = value.astype("timedelta64[us]").item()
        return done if done is None or isinstance(done, timedelta) else safe_str(value)
    if hasattr(value, "tolist"):
        done = value.tolist()
        return plain(done, depth + 1) if type(done).__module__ == "builtins" else safe_str(value)
    return safe_str(value)


def encode(value: Any) -> Any:
    """``value`` as what ``json.dumps(..., allow_nan=False)`` accepts; ``decode`` gives it back."""
    return _encode(plain(value))


def _encode(value: Any) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= LARGEST_EXACT else _tagged("int", _digits(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else _tagged("float", repr(value))
    if isinstance(value, list):
        return [_encode(item) for item in value]
    if isinstance(value, dict):
        if TAG not in value and all(isinstance(key, str) for key in value):
            return {key: _encode(item) for key, item in value.items()}
        return _tagged("map", [[_encode(key), _encode(item)] for key, item in value.items()])
    if isinstance(value, timedelta):
        return _tagged("timedelta", [value.days, value.seconds, value.microseconds])
    if isinstance(value, bytes):
        return _tagged("bytes", base64.b64encode(value).decode("ascii"))
    for name, kind in (("datetime", datetime), ("date", date), ("time", time)):
        if isinstance(value, kind):
            return _tagged(name, value.isoformat())
    return _tagged("uuid" if isinstance(value, uuid.UUID) else "decimal", str(value))


def _digits(value: int) -> str:
    """The integer in hexadecimal: Python refuses more than 4,300 decimal digits."""
    return hex(value)


def _tagged(kind: str, value: Any) -> dict[str, Any]:
    return {TAG: kind, "value": value}


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "int": lambda text: int(text, 0),
    "float": float,
    "decimal": Decimal,
    "uuid": uuid.UUID,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda parts: timedelta(*parts),
    "bytes": lambda text: base64.b64decode(text),
    "map": lambda pairs: {decode(key): decode(item) for key, item in pairs},
}


def decode(value: Any) -> Any:
    """What ``encode`` was given. Raises ``ValueError`` for an unknown ``$type``."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if TAG not in value:
        return {key: decode(item) for key, item in value.items()}
    kind = value[TAG]
    if kind not in _READERS:
        raise ValueError(f"unknown $type {kind!r}; known: {', '.join(sorted(_READERS))}")
    return _READERS[kind](value["value"])


def table_to_json(table: Table, limit: int | None = None) -> dict[str, Any]:
    """``{columns: [[name, type]], rows, row_count}``; ``row_count`` is the whole table's."""
    return {
        "columns": [[clean_text(column.name), column.type] for column in table.columns],
        "rows": [[encode(cell) for cell in row] for row in table.rows(limit)],
        "row_count": table.row_count,
    }


def table_from_json(form: Mapping[str, Any]) -> Table:
    """The table of :func:`table_to_json`; written by hand, columns may be names alone."""
    pairs = [(entry, None) if isinstance(entry, str) else entry for entry in form["columns"]]
    columns = tuple(Column(str(name), kind) for name, kind in pairs)
    rows = [[decode(cell) for cell in row] for row in form["rows"]]
    values = tuple([row[i] for row in rows] for i in range(len(columns)))
    return Table(columns, values, len(rows) if columns else int(form.get("row_count", len(rows))))


def answer_to_json(answer: Answer) -> dict[str, Any]:
    """A normalised answer (``data`` a ``Table`` or ``None``); what has its default is left out."""
    form: dict[str, Any] = {}
    for field, default in _DEFAULTS.items():
        value = getattr(answer, field)
        if isinstance(value, Table):
            form[field] = table_to_json(value)
        elif field == "turns":
            form.update({"turns": [answer_to_json(turn) for turn in value]} if value else {})
        elif field in ("tool_calls", "wire_attempts"):
            form.update({field: [_compact(entry) for entry in value]} if value else {})
        elif field == "usage":
            form.update({"usage": _compact(value)} if value is not None else {})
        elif value is not default and value != default:
            form[field] = encode(value)
    return form


_DEFAULTS: Mapping[str, Any] = {field.name: field.default for field in fields(Answer)}


def _compact(entry: Any) -> dict[str, Any]:
    """A dataclass without its defaults, its values encoded."""
    return {
        field.name: encode(getattr(entry, field.name))
        for field in fields(entry)
        if getattr(entry, field.name) is not field.default
    }


def answer_from_json(form: Mapping[str, Any]) -> Answer:
    """The answer of :func:`answer_to_json`; unknown keys (of a later version) are left out.

    ``data`` written by hand may be a list of objects, which stays one.
    """
    values: dict[str, Any] = {}
    for name in _DEFAULTS:
        if name not in form:
            continue
        value = form[name]
        if name == "data":
            values[name] = table_from_json(value) if isinstance(value, Mapping) else decode(value)
        elif name == "turns":
            values[name] = tuple(answer_from_json(turn) for turn in value)
        elif name == "tool_calls":
            values[name] = tuple(ToolCall(**_known(ToolCall, call)) for call in value)
        elif name == "wire_attempts":
            values[name] = tuple(HttpAttempt(**_known(HttpAttempt, wire)) for wire in value)
        elif name == "usage":
            values[name] = Usage(**_known(Usage, value)) if value is not None else None
        else:
            values[name] = decode(value)
    return Answer(**values)


def _known(kind: type, form: Mapping[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(kind)}
    return {name: decode(value) for name, value in form.items() if name in names}


def usage_to_json(usage: Usage | None) -> dict[str, Any] | None:
    """Every part of ``usage``, unknown ones as null."""
    return None if usage is None else asdict(usage)
