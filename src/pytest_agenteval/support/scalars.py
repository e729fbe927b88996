"""The edges of values: what is NULL, and Python values out of the wrappers of NumPy and pandas."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

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
    """The Python value inside a NumPy scalar or array; anything else as it is."""
    if type(value).__module__ != "numpy":
        return value
    if type(value).__name__ == "datetime64":
        moment = value.astype("datetime64[us]").item()
        return moment if isinstance(moment, (datetime.datetime, datetime.date)) else None
    if type(value).__name__ == "timedelta64":
        span = value.astype("timedelta64[us]").item()
        return span if isinstance(span, datetime.timedelta) else None
    return value.tolist() if hasattr(value, "tolist") else value
