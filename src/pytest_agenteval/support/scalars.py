"""Single values: what is NULL, what objects of drivers and libraries mean, text that is valid Unicode."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import enum
import fractions
import itertools
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from hashlib import blake2b
from typing import Any

from pytest_agenteval.table import (
    Table,
    arrow_value,
    arrow_values,
    duration_text,
    moment_of_days,
    moment_of_ticks,
)

DEEPEST = 60
"""Levels of lists and maps that are followed; what lies deeper is shown as dots."""

MOST_VALUES = 50_000_000
"""Values that one value may hold; more come from one that holds the same parts again and again."""

SHALLOW = 4
"""Levels in which a container is not looked for among those it lies in: nearly all data end there."""

NULL_WORDS = frozenset({"null", "none", "nan", "n/a", "na", "nil", "<na>", "nat", "(null)", "undefined"})


def is_null(value: Any) -> bool:
    """Return NULL in any driver's clothes: None, NaN (equal to NULL by the contract), NaT, NA."""
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
    if kind.__module__ == "numpy" and kind.__name__ not in ("ndarray", "MaskedArray"):
        return is_null(plain(value))
    return kind.__name__ in ("NAType", "NaTType")


def is_nan(value: Any) -> bool:
    """Return whether a value is a floating NaN: NULL to the comparison, but not to the ``null_vs_`` words."""
    if isinstance(value, float):
        return bool(value != value)
    return isinstance(value, Decimal) and value.is_nan()


_PLAIN = frozenset(
    {
        *(type(None), bool, int, float, str, Decimal, datetime.date, datetime.datetime, datetime.time),
        *(datetime.timedelta, bytes, uuid.UUID, list, dict, tuple, Table),
    }
)


def plain(value: Any) -> Any:
    """Return what any value of a driver or a library means, as one of Python's own types; never raises.

    The reference's and the answer's values all pass here, so the same object means the same on both
    sides. Containers are made lists and dicts, their items are left as they are. What has no other
    meaning is its text.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    try:
        return _meaning(value, kind)
    except Exception:  # a hostile or broken object: nothing of it may stop a run
        return safe_str(value)


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


def plain_tree(value: Any) -> Any:
    """Return ``value`` in Python's own types, all it holds as well: what :func:`plain` gives at each level.

    Dicts, lists, tuples and sets keep their shape (as dict and list), text is valid Unicode. What holds
    itself, lies deeper than ``DEEPEST`` or is more than ``MOST_VALUES`` is dots, which differ where what
    they stand for differs or cannot be looked at. Never raises, always ends.
    """
    if value is None or type(value) in (int, bool, float):
        return value
    return _Tree().of(value, 0)


class _Tree:
    """One walk through a value: the containers it is in, and how much it may still hold."""

    def __init__(self) -> None:
        self.within: set[int] = set()
        self.left = MOST_VALUES

    def of(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if value is None or kind in (int, bool, float):
            return value
        if kind is str:
            return value if value.isascii() else clean_text(value)
        if kind not in (dict, list, tuple):
            return value if kind in _PLAIN or depth > 2 * DEEPEST else self.of(plain(value), depth + 1)
        self.left -= len(value)
        if depth >= DEEPEST or self.left < 0 or id(value) in self.within:
            return _dots(value)
        if depth < SHALLOW:  # what holds itself comes again deeper
            return self._parts(value, depth + 1)
        self.within.add(id(value))
        try:
            return self._parts(value, depth + 1)
        finally:
            self.within.remove(id(value))

    def _parts(self, value: Any, depth: int) -> Any:
        of = self.of
        if type(value) is dict:
            return {_key(key): of(item, depth) for key, item in list(value.items())}
        return [of(item, depth) for item in value]


def _dots(value: Any) -> str:
    """Return dots for a container that is not followed, the same for the same JSON; else like no other."""
    parts: list[str] = []
    with contextlib.suppress(Exception):  # it holds itself, is deeper than Python goes, or has odd keys
        text = json.JSONEncoder(sort_keys=True, default=safe_str).iterencode(value)
        parts = list(itertools.islice(text, 10_001))
    if not 0 < len(parts) <= 10_000:
        return f"... {id(value):x}"
    return f"... {blake2b(''.join(parts).encode(), digest_size=6).hexdigest()}"


def _key(key: Any) -> Any:
    done = plain_tree(key)
    kept = (str, int, float, bool, Decimal, datetime.date, bytes, type(None))
    return done if isinstance(done, kept) else str(done)


def _meaning(value: Any, kind: type) -> Any:
    home = kind.__module__.partition(".")[0]
    reader = _HOMES.get(home)
    found: Any = reader(value, kind) if reader is not None else ...
    if found is ...:
        found = _by_base(value)
    if found is ...:
        found = _by_shape(value)
    return safe_str(value) if found is ... else found


def _by_base(value: Any) -> Any:
    """Return subclasses of Python's own types as what they are derived from; ``...``: it is none."""
    if isinstance(value, enum.Enum):
        inner = value.value
        return inner if type(inner) in (bool, int, float, str, Decimal) else value.name
    if isinstance(value, datetime.datetime):
        clock = (value.hour, value.minute, value.second, value.microsecond)
        return datetime.datetime(*value.timetuple()[:3], *clock, tzinfo=value.tzinfo, fold=value.fold)
    for base, make in _BASES:
        if isinstance(value, base):
            return make(value)
    return ...


def _date(value: datetime.date) -> datetime.date:
    return datetime.date(value.year, value.month, value.day)


def _time(value: datetime.time) -> datetime.time:
    clock = (value.hour, value.minute, value.second, value.microsecond)
    return datetime.time(*clock, tzinfo=value.tzinfo, fold=value.fold)


def _timedelta(value: datetime.timedelta) -> datetime.timedelta:
    return datetime.timedelta(value.days, value.seconds, value.microseconds)


_BASES: tuple[tuple[Any, Any], ...] = (
    (int, int),
    (float, float),
    (str, str.__str__),
    (Decimal, Decimal),
    (datetime.date, _date),
    (datetime.time, _time),
    (datetime.timedelta, _timedelta),
    (uuid.UUID, lambda value: uuid.UUID(int=value.int)),
    ((bytes, bytearray, memoryview), bytes),
    (fractions.Fraction, float),
    (complex, safe_str),
)


def _by_shape(value: Any) -> Any:
    """Return ranges, durations, rows and containers, known by what they offer; ``...``: none of them."""
    if _is_range(value):
        return _range_text(value)
    if hasattr(value, "months") and hasattr(value, "days"):
        return _duration_text(value)
    fields = record_of(value)
    if fields is not None:
        return fields
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value, key=safe_str) if isinstance(value, (set, frozenset)) else list(value)
        return _several(items)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _several(list(value))
    return ...


def _several(items: list[Any]) -> Any:
    """Return a list; the ranges of a Postgres multirange as the text the server writes."""
    ranges = bool(items) and all(_is_range(item) for item in items)
    return "{" + ",".join(map(_range_text, items)) + "}" if ranges else items


def record_of(value: Any) -> dict[Any, Any] | None:
    """Return the fields of a row or record; ``None``: it is none.

    Mappings, rows of SQLAlchemy, sqlite3, Spark, BigQuery and Snowflake, namedtuples, dataclasses,
    pydantic models.
    """
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "_mapping"):
        return dict(value._mapping)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    for method in ("_asdict", "asDict", "as_dict", "model_dump"):
        make = getattr(value, method, None)
        if callable(make) and not isinstance(value, type):
            found = make()
            if isinstance(found, Mapping):
                return dict(found)
    if hasattr(value, "keys") and hasattr(value, "__getitem__"):
        return {key: value[key] for key in value.keys()}  # noqa: SIM118 (sqlite3.Row)
    return None


def _is_range(value: Any) -> bool:
    """Return a range of psycopg, psycopg2, asyncpg or SQLAlchemy."""
    if not (hasattr(value, "lower") and hasattr(value, "upper")) or isinstance(value, (str, bytes)):
        return False
    return any(hasattr(value, name) for name in ("lower_inc", "bounds"))


def _range_text(value: Any) -> str:
    """Return a range as Postgres writes it: ``[2024-01-01,2024-02-01)``, ``empty``."""
    if any(getattr(value, name, None) is True for name in ("isempty", "empty")):
        return "empty"
    bounds = getattr(value, "bounds", None)
    if not isinstance(bounds, str):
        bounds = ("[" if value.lower_inc else "(") + ("]" if value.upper_inc else ")")
    lower, upper = (_bound_text(end) for end in (value.lower, value.upper))
    start = "(" if value.lower is None else bounds[0]
    return f"{start}{lower},{upper}{')' if value.upper is None else bounds[1]}"


def _bound_text(end: Any) -> str:
    text = "" if end is None else safe_str(plain(end))
    return f'"{text}"' if any(char in text for char in ' ,()[]"\\') else text


def _duration_text(value: Any) -> str:
    """Return months, days and what is smaller, of Arrow, dateutil and others, as an ISO 8601 duration."""
    parts = {name: int(getattr(value, name, 0)) for name in ("years", *_NANOS)}
    nanos = sum(parts[name] * size for name, size in _NANOS.items())
    return duration_text(parts["years"] * 12 + int(value.months), int(value.days), nanos)


_NANOS = {
    "hours": 3_600_000_000_000,
    "minutes": 60_000_000_000,
    "seconds": 1_000_000_000,
    "microseconds": 1_000,
    "nanoseconds": 1,
}


def _numpy_value(value: Any, kind: type) -> Any:
    name = kind.__name__
    if name == "datetime64":
        return _numpy_moment(value)
    if name == "timedelta64":
        span = value.astype("timedelta64[us]").item()
        return span if isinstance(span, datetime.timedelta) else None
    if name == "void" and value.dtype.names:
        return {field: value[field] for field in value.dtype.names}
    if name in ("longdouble", "clongdouble"):
        return float(value) if name == "longdouble" else safe_str(value)
    if hasattr(value, "dtype") and value.dtype.kind in "mM" and value.shape:
        gaps = getattr(value, "mask", None)
        gaps = [False] * len(value) if gaps is None else gaps.tolist()
        gaps = gaps if isinstance(gaps, list) else [gaps] * len(value)
        return [None if gone is True else item for item, gone in zip(list(value), gaps, strict=True)]
    return value.tolist() if hasattr(value, "tolist") else ...


def _numpy_moment(value: Any) -> Any:
    """Return a NumPy datetime: a date where its unit is the day or longer; NaT is None."""
    import numpy

    unit, count = numpy.datetime_data(value.dtype)
    if numpy.isnat(value):
        return None
    if unit in ("Y", "M", "W", "D"):
        return moment_of_days(int(value.astype("datetime64[D]").astype(numpy.int64)))
    unit = unit if unit in ("s", "ms", "us", "ns") and count == 1 else "s" if unit in "hms" else "ns"
    return moment_of_ticks(int(value.astype(f"datetime64[{unit}]").astype(numpy.int64)), unit)


def _pandas_value(value: Any, kind: type) -> Any:
    name = kind.__name__
    if name in ("NAType", "NaTType"):
        return None
    if name == "Timestamp":
        try:
            return value.to_pydatetime(warn=False)
        except (ValueError, OverflowError, NotImplementedError):
            return moment_of_ticks(int(value.asm8.view("int64")), value.unit, zoned=value.tzinfo is not None)
    if name == "Timedelta":
        return value.to_pytimedelta()
    if name in ("Period", "Interval"):
        return safe_str(value)
    return _several_of(value)


def _several_of(value: Any) -> Any:
    """Return the items of a Series, an Index or an Arrow array, the records of a frame."""
    for method in ("to_pylist", "to_list", "tolist"):
        if callable(make := getattr(value, method, None)):
            return list(make())
    if hasattr(value, "to_dicts"):
        return value.to_dicts()
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        return value.to_dict("records")
    return ...


def _arrow_object(value: Any, kind: type) -> Any:
    if hasattr(value, "as_py"):
        found = arrow_value(value)
        return found if type(found) in _PLAIN else plain(found)
    # a MonthDayNano is not an array; it is known by its shape
    return ... if isinstance(value, tuple) else arrow_values(value) if hasattr(value, "to_pylist") else ...


_HOMES: Mapping[str, Callable[[Any, type], Any]] = {
    "numpy": _numpy_value,
    "pandas": _pandas_value,
    "pyarrow": _arrow_object,
    "polars": lambda value, kind: _several_of(value),
}
