"""Single values: what is NULL, what NumPy and pandas scalars mean, text that is valid Unicode."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

DEEPEST = 60
"""Levels of lists and maps that are followed; what lies deeper is shown as dots."""

NULL_WORDS = frozenset({"null", "none", "nan", "n/a", "na", "nil", "<na>", "nat", "(null)", "undefined"})


def is_null(value: Any) -> bool:
    """NULL in any driver's clothes: None, NaN (equal to NULL by the contract), NaT, NA."""
    if value is None:
        return True
    kind = type(value)
    if kind is float:
        return bool(value != value)
    if kind in (str, int, bool):
        return False
    if isinstance(value, float):
        return bool(value != value)
    if isinstance(value, Decimal):
        return value.is_nan()
    if kind.__module__ == "numpy" and kind.__name__ != "ndarray":
        return is_null(plain(value))
    return kind.__name__ in ("NAType", "NaTType")


def is_nan(value: Any) -> bool:
    """Whether a value is a floating NaN: NULL to the comparison, but not to the ``null_vs_`` words."""
    if isinstance(value, float):
        return bool(value != value)
    return isinstance(value, Decimal) and value.is_nan()


def plain(value: Any) -> Any:
    """Return the Python value inside a NumPy scalar or array; anything else as it is.

    A moment that Python has no value for (beyond the year 9999) becomes its text.
    """
    if type(value).__module__ != "numpy" or not hasattr(value, "tolist"):
        return value
    if value.dtype.kind not in "mM":
        return value.tolist()
    unit = "datetime64[us]" if value.dtype.kind == "M" else "timedelta64[us]"
    done = value.astype(unit).tolist()
    return str(value) if isinstance(done, int) else done


def clean_text(text: str) -> str:
    """Return ``text`` as valid Unicode: lone surrogates become U+FFFD."""
    if text.isascii():
        return str(text)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def safe_str(value: Any) -> str:
    """Return ``str(value)``, or what went wrong where its class raises there."""
    try:
        return clean_text(str(value))
    except Exception as error:
        return f"<{type(value).__name__}: its text could not be made: {type(error).__name__}>"


def plain_tree(value: Any, depth: int = 0) -> Any:
    """Return ``value`` in Python's own types, all it holds as well.

    NumPy and pandas scalars become what they mean, NA and NaT
    ``None``; dicts, lists, tuples and sets keep their shape (as dict and list);
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
        return {_key(key): plain_tree(item, depth + 1) for key, item in list(value.items())}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain_tree(item, depth + 1) for item in value]
    return _foreign(value, kind, depth)


def _key(key: Any) -> Any:
    done = plain_tree(key)
    return done if isinstance(done, str | int | float | bool | Decimal | date | bytes | None) else str(done)


def _foreign(value: Any, kind: type, depth: int) -> Any:
    """Scalars of NumPy and pandas, enums, subclasses of Python's types; else the text."""
    try:
        home = kind.__module__.partition(".")[0]
        if home == "pandas":
            return _pandas_scalar(value, kind)
        if home == "numpy":
            done = plain(value)  # NumPy has floats that Python has none for
            return safe_str(value) if type(done).__module__ == "numpy" else plain_tree(done, depth + 1)
        if isinstance(value, int | float | str):
            return plain_tree(next(base(value) for base in (int, float, str) if isinstance(value, base)))
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
