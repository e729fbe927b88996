"""Arrow arrays as Python values, by what their types mean and not by how they are stored."""

from __future__ import annotations

import datetime
import json
import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from pytest_agenteval.table.moments import (
    DAY_MICROS,
    EPOCH_ORDINAL,
    LAST_ORDINAL,
    PER_SECOND,
    clock_text,
    duration_text,
    moment_of_days,
    moment_of_ticks,
)


def arrow_values(data: Any) -> list[Any]:
    """Return an Arrow array as Python values; a date or timestamp that Python has no value for as text."""
    if _steady(data.type) or within_python(data):
        return list(data.to_pylist())
    return [arrow_value(scalar) for scalar in data]


def arrow_value(scalar: Any) -> Any:
    """Return an Arrow scalar as a Python value, at any depth; see :func:`arrow_values`."""
    import pyarrow.types as arrow

    kind = scalar.type
    if not scalar.is_valid:
        return None
    if hasattr(kind, "extension_name"):
        return _extension_value(kind, scalar)
    for test, read in _READERS:
        if getattr(arrow, test, _never)(kind):
            return read(scalar)
    return scalar.as_py()


def _never(_: Any) -> bool:
    return False


def _steady(kind: Any) -> bool:
    """Return whether ``to_pylist`` gives every value of this type as it is."""
    import pyarrow.types as arrow

    if arrow.is_temporal(kind) or arrow.is_dictionary(kind) or arrow.is_run_end_encoded(kind):
        return False
    if hasattr(kind, "extension_name") or arrow.is_union(kind):
        return False
    return all(_steady(kind.field(index).type) for index in range(kind.num_fields))


def within_python(data: Any) -> bool:
    """Return whether every date, time or timestamp of a column is one that Python has, to the microsecond."""
    import pyarrow
    import pyarrow.compute as compute
    import pyarrow.types as arrow

    kind = data.type
    if arrow.is_date32(kind):
        width, lowest, highest = pyarrow.int32(), -EPOCH_ORDINAL + 1, LAST_ORDINAL - EPOCH_ORDINAL
    elif arrow.is_timestamp(kind) and kind.unit != "ns":
        per_day = 86_400 * PER_SECOND[kind.unit]
        # a day less at the ends: zones are added to what is stored in UTC
        width, lowest, highest = (
            pyarrow.int64(),
            (-EPOCH_ORDINAL + 2) * per_day,
            (LAST_ORDINAL - EPOCH_ORDINAL) * per_day - 1,
        )
    elif arrow.is_time(kind):
        width = pyarrow.int32() if arrow.is_time32(kind) else pyarrow.int64()
        lowest, highest = 0, 86_400 * PER_SECOND[kind.unit] - 1
    else:
        return False
    ends = compute.min_max(data.cast(width)).as_py()
    return ends["min"] is None or (lowest <= ends["min"] and ends["max"] <= highest)


def _ticks(scalar: Any) -> Any:
    return moment_of_ticks(scalar.value, scalar.type.unit, zoned=scalar.type.tz is not None)


def _clock(scalar: Any) -> Any:
    micros = scalar.value * 1_000_000 // PER_SECOND[scalar.type.unit]
    # 24:00:00 is a time of day in SQL, and none in Python
    return clock_text(micros) if micros >= DAY_MICROS else _time_of(micros)


def _time_of(micros: int) -> datetime.time:
    return (datetime.datetime.min + datetime.timedelta(microseconds=micros)).time()


def _months(scalar: Any) -> str:
    return duration_text(*scalar.as_py())


def _span(scalar: Any) -> Any:
    micros = scalar.value * 1_000_000 // PER_SECOND[scalar.type.unit]
    try:
        return datetime.timedelta(microseconds=micros)
    except OverflowError:
        return f"{micros} microseconds"


def _days(scalar: Any) -> Any:
    return moment_of_days(scalar.value)


def _millis(scalar: Any) -> Any:
    return moment_of_days(scalar.value // 86_400_000)


def _items(scalar: Any) -> list[Any]:
    return [arrow_value(item) for item in scalar.values]


def _pairs(scalar: Any) -> list[Any]:
    return [(arrow_value(entry[0]), arrow_value(entry[1])) for entry in scalar.values]


def _fields(scalar: Any) -> dict[str, Any]:
    return {field.name: arrow_value(scalar[index]) for index, field in enumerate(scalar.type)}


def _inner(scalar: Any) -> Any:
    return arrow_value(scalar.value)


_READERS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("is_date32", _days),
    ("is_date64", _millis),
    ("is_timestamp", _ticks),
    ("is_time", _clock),
    ("is_duration", _span),
    ("is_interval", _months),
    ("is_map", _pairs),
    ("is_list", _items),
    ("is_large_list", _items),
    ("is_fixed_size_list", _items),
    ("is_list_view", _items),
    ("is_large_list_view", _items),
    ("is_struct", _fields),
    ("is_union", _inner),
    ("is_dictionary", _inner),
)


def _extension_value(kind: Any, scalar: Any) -> Any:
    """Return the value of an extension type that is known here; else that of its storage."""
    stored = arrow_value(scalar.value)
    read = _EXTENSIONS.get(_extension_name(kind))
    return stored if read is None else read(stored, _described(kind))


def _extension_name(kind: Any) -> str:
    if kind.extension_name == "arrow.opaque":
        return f"{kind.vendor_name}.{kind.type_name}".lower()
    return str(kind.extension_name)


def _described(kind: Any) -> Mapping[str, Any]:
    """Return what an extension type says about itself (``{}``: nothing)."""
    try:
        found = json.loads(kind.__arrow_ext_serialize__())
    except (AttributeError, ValueError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _uuid(stored: Any, _: Mapping[str, Any]) -> Any:
    return uuid.UUID(bytes=stored) if isinstance(stored, bytes) else stored


def _period(stored: Any, about: Mapping[str, Any]) -> Any:
    import pandas

    return str(pandas.Period(ordinal=stored, freq=about["freq"]))


def _interval(stored: Any, about: Mapping[str, Any]) -> str:
    closed = about.get("closed", "right")
    start = "[" if closed in ("left", "both") else "("
    end = "]" if closed in ("right", "both") else ")"
    return f"{start}{stored['left']}, {stored['right']}{end}"


def _bit(stored: bytes, _: Mapping[str, Any]) -> str:
    return bit_text(stored)


def bit_text(stored: bytes) -> str:
    """Return the digits of DuckDB's BIT: the first byte says how many bits of the second are padding."""
    return "".join(f"{byte:08b}" for byte in stored[1:])[stored[0] :]


def _bignum(stored: bytes, _: Mapping[str, Any]) -> int:
    """Return DuckDB's BIGNUM: three bytes of sign and length, then the digits;
    all inverted where negative.
    """
    if stored[0] & 0x80:
        return int.from_bytes(stored[3:], "big")
    return -int.from_bytes(bytes(255 - byte for byte in stored[3:]), "big")


def _time_with_zone(stored: bytes, _: Mapping[str, Any]) -> str:
    """Return DuckDB's TIMETZ: microseconds in 40 bits above 24 bits that count the offset down from
    +15:59:59.
    """
    bits = int.from_bytes(stored, "little")
    offset = 15 * 3600 + 59 * 60 + 59 - (bits & 0xFFFFFF)
    hours, rest = divmod(abs(offset), 3600)
    minutes, seconds = divmod(rest, 60)
    zone = f"{'-' if offset < 0 else '+'}{hours:02d}:{minutes:02d}" + (f":{seconds:02d}" if seconds else "")
    return clock_text(bits >> 24) + zone


_EXTENSIONS: Mapping[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "arrow.uuid": _uuid,
    "arrow.bool8": lambda stored, _: bool(stored),
    "pandas.period": _period,
    "pandas.interval": _interval,
    "duckdb.bit": _bit,
    "duckdb.bignum": _bignum,
    "duckdb.varint": _bignum,
    "duckdb.hugeint": lambda stored, _: int.from_bytes(stored, "little", signed=True),
    "duckdb.uhugeint": lambda stored, _: int.from_bytes(stored, "little"),
    "duckdb.time_tz": _time_with_zone,
}
"""What the stored values of an extension type mean, by its name."""


def standard_array(data: Any) -> Any:
    """Return the column as an array of Arrow's basic types, or as a list of Python values where there is
    none.

    Encodings (dictionary, run ends, views) and 32 and 64 bit decimals become what they stand for;
    extension types and what is nested over any of these become Python values.
    """
    import pyarrow
    import pyarrow.types as arrow

    kind = data.type
    if not _exotic(kind):
        return data
    if arrow.is_dictionary(kind) and not _exotic(kind.value_type):
        return data.cast(kind.value_type)
    if arrow.is_run_end_encoded(kind) and not _exotic(kind.value_type):
        return _decoded(pyarrow, data)
    plain = _plain_type(pyarrow, kind)
    return arrow_values(data) if plain is None else data.cast(plain)


def _decoded(pyarrow: Any, data: Any) -> Any:
    import pyarrow.compute as compute

    chunks = data.chunks if hasattr(data, "chunks") else [data]
    return pyarrow.chunked_array([compute.run_end_decode(chunk) for chunk in chunks], data.type.value_type)


def _plain_type(pyarrow: Any, kind: Any) -> Any:
    """Return the basic type of a flat one that others cannot handle; ``None``: there is none."""
    import pyarrow.types as arrow

    if getattr(arrow, "is_string_view", _never)(kind):
        return pyarrow.large_string()
    if getattr(arrow, "is_binary_view", _never)(kind):
        return pyarrow.large_binary()
    if _short_decimal(kind):
        return pyarrow.decimal128(kind.precision, kind.scale)
    return None


def _short_decimal(kind: Any) -> bool:
    import pyarrow.types as arrow

    return bool(arrow.is_decimal(kind) and kind.bit_width < 128)


def _exotic(kind: Any) -> bool:
    """Return whether a type, or one inside it, is not one of those that every reader knows."""
    import pyarrow.types as arrow

    if arrow.is_nested(kind) and not arrow.is_run_end_encoded(kind):
        views = ("is_list_view", "is_large_list_view", "is_union")
        if any(getattr(arrow, test, _never)(kind) for test in views):
            return True
        return any(_exotic(kind.field(index).type) for index in range(kind.num_fields))
    return (
        hasattr(kind, "extension_name")
        or arrow.is_dictionary(kind)
        or arrow.is_run_end_encoded(kind)
        or getattr(arrow, "is_string_view", _never)(kind)
        or getattr(arrow, "is_binary_view", _never)(kind)
        or _short_decimal(kind)
    )


def column_values(field: Any, data: Any) -> Any:
    """Return a column of an Arrow table: its array, by what its type, or the note at its field, says it is.

    Where an extension type is not registered in this process, Arrow gives its storage and a note.
    """
    note = field.metadata or {}
    name = note.get(b"ARROW:extension:name", b"").decode("utf-8", "replace")
    if hasattr(data.type, "extension_name") or name not in _EXTENSIONS:
        return standard_array(data)
    try:
        about = json.loads(note.get(b"ARROW:extension:metadata", b"{}") or b"{}")
    except ValueError:
        about = {}
    read = _EXTENSIONS[name]
    return [None if value is None else read(value, about) for value in arrow_values(data)]


def sql_type(kind: Any) -> str | None:
    """Return the SQL name of an Arrow type (``None`` where there is no plain one)."""
    import pyarrow.types as arrow

    if arrow.is_dictionary(kind) or arrow.is_run_end_encoded(kind):
        return sql_type(kind.value_type)
    if arrow.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if arrow.is_timestamp(kind):
        return "TIMESTAMPTZ" if kind.tz else "TIMESTAMP"
    return next((name for test, name in _SQL_TYPES.items() if getattr(arrow, test, _never)(kind)), None)


_SQL_TYPES = {
    "is_boolean": "BOOLEAN",
    "is_float32": "FLOAT",
    "is_floating": "DOUBLE",
    "is_integer": "BIGINT",
    "is_date": "DATE",
    "is_time": "TIME",
    "is_duration": "INTERVAL",
    "is_interval": "INTERVAL",
    "is_string": "VARCHAR",
    "is_large_string": "VARCHAR",
    "is_string_view": "VARCHAR",
    "is_binary": "BLOB",
    "is_large_binary": "BLOB",
    "is_binary_view": "BLOB",
}


def is_unnamed_index(name: str) -> bool:
    """Return whether a column is the index without a name that pandas left in an Arrow table."""
    return name.startswith("__index_level_") and name.endswith("__")


_LOST = re.compile(r"\b(TIME WITH TIME ZONE|TIMETZ|TIME|TIME_NS|BIT|UHUGEINT|VARIANT)\b")


def lost_in_arrow(duckdb_type: str) -> bool:
    """Return whether DuckDB's Arrow form of a type loses something: offsets, 24:00:00, a BIT's length."""
    return bool(_LOST.search(re.sub(r"TIMESTAMP[A-Z_]* WITH TIME ZONE", "", duckdb_type)))
