"""Column types of SQLite and Postgres in DuckDB's spelling."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from typing import Any

from pytest_agenteval.databases.limits import decimal_type, type_of

_PROBE = "agenteval_probe"


def sqlite_types(connection: Any, sql: str, width: int) -> list[str | None]:
    """Return the declared type of each output column (``None``: an expression), from a temporary view.

    sqlite3 has no other way to ask; the view lives in the connection's own temporary space.
    """
    import sqlite3

    nothing: list[str | None] = [None] * width
    try:
        cursor = connection.cursor()
        cursor.execute(f"DROP VIEW IF EXISTS temp.{_PROBE}")
        cursor.execute(f"CREATE TEMP VIEW {_PROBE} AS {sql}")
        try:
            found = cursor.execute(f"PRAGMA temp.table_info({_PROBE})")
            types = [_declared(row[2]) for row in found]
        finally:
            cursor.execute(f"DROP VIEW IF EXISTS temp.{_PROBE}")
    except sqlite3.Error:
        # types are a help for the comparison, not a need: without them the values decide
        return nothing
    return types if len(types) == width else nothing


def _declared(kind: Any) -> str | None:
    """The declared type; a connection of the user may give its texts as bytes."""
    return (kind.decode() if isinstance(kind, bytes) else str(kind)) or None


def sqlite_column(declared: str | None, values: list[Any]) -> tuple[str | None, list[Any]]:
    """Return SQL type and values of a SQLite column: the declared type, where every value really has it.

    SQLite stores dates as text and booleans as 0/1; where the whole column conforms they become
    dates and booleans. A column whose values do not conform keeps them, without a type.
    """
    word = (declared or "").upper()
    for pattern, convert in _CONVERSIONS:
        if re.search(pattern, word):
            return convert(values)
    return (None, values) if declared else _expression(values)


def _expression(values: list[Any]) -> tuple[str | None, list[Any]]:
    """A column of no declared type: dates and timestamps in ISO form are what ``max(day)`` gives of one."""
    given = [value for value in values if value is not None]
    if not given or not all(isinstance(value, str) for value in given):
        return None, values
    kind, parsed = _dates(values)
    if kind is None and all(re.fullmatch(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d.*)?", value) for value in given):
        kind, parsed = _timestamps(values)
    return kind, parsed


def _integers(values: list[Any]) -> tuple[str | None, list[Any]]:
    return ("BIGINT" if _all(values, int) else None), values


def _texts(values: list[Any]) -> tuple[str | None, list[Any]]:
    return ("VARCHAR" if _all(values, str) else None), values


def _blobs(values: list[Any]) -> tuple[str | None, list[Any]]:
    return ("BLOB" if _all(values, bytes) else None), values


def _numbers(values: list[Any]) -> tuple[str | None, list[Any]]:
    return ("DOUBLE" if _all(values, (int, float)) else None), values


def _booleans(values: list[Any]) -> tuple[str | None, list[Any]]:
    if all(value is None or (isinstance(value, int) and value in (0, 1)) for value in values):
        return "BOOLEAN", [None if value is None else bool(value) for value in values]
    return None, values


def _dates(values: list[Any]) -> tuple[str | None, list[Any]]:
    return _parsed(values, datetime.date.fromisoformat, r"\d{4}-\d\d-\d\d", "DATE")


def _timestamps(values: list[Any]) -> tuple[str | None, list[Any]]:
    kind, parsed = _parsed(values, datetime.datetime.fromisoformat, r"\d{4}-\d\d-\d\d([ T].*)?", "TIMESTAMP")
    if kind is not None and any(value is not None for value in parsed):
        zones = {value.tzinfo is not None for value in parsed if value is not None}
        if zones == {True}:
            return "TIMESTAMP WITH TIME ZONE", parsed
        if zones != {False}:
            return None, values
    return kind, parsed


def _parsed(values: list[Any], parse: Any, form: str, kind: str) -> tuple[str | None, list[Any]]:
    try:
        parsed = [
            None if value is None else parse(value) if re.fullmatch(form, value) else _refuse()
            for value in values
        ]
    except (ValueError, TypeError):
        return None, values
    return kind, parsed


def _refuse() -> Any:
    raise ValueError


def _all(values: list[Any], kinds: type | tuple[type, ...]) -> bool:
    return all(value is None or isinstance(value, kinds) for value in values)


# In the order of https://www.sqlite.org/datatype3.html section 3.1, dates and booleans before it.
_CONVERSIONS: tuple[tuple[str, Callable[[list[Any]], tuple[str | None, list[Any]]]], ...] = (
    (r"^BOOL", _booleans),
    (r"^(DATETIME|TIMESTAMP)", _timestamps),
    (r"^DATE", _dates),
    (r"INT", _integers),
    (r"CHAR|CLOB|TEXT", _texts),
    (r"BLOB", _blobs),
    (r"REAL|FLOA|DOUB", _numbers),
    (r"^(DECIMAL|NUMERIC)", _numbers),
)

_BASE = {
    16: "BOOLEAN",
    17: "BLOB",
    18: "VARCHAR",
    19: "VARCHAR",
    20: "BIGINT",
    21: "SMALLINT",
    23: "INTEGER",
    25: "VARCHAR",
    26: "BIGINT",
    114: "JSON",
    142: "VARCHAR",
    600: "VARCHAR",
    650: "CIDR",
    700: "FLOAT",
    701: "DOUBLE",
    774: "VARCHAR",
    790: "MONEY",
    829: "VARCHAR",
    869: "INET",
    1042: "VARCHAR",
    1043: "VARCHAR",
    1082: "DATE",
    1083: "TIME",
    1114: "TIMESTAMP",
    1184: "TIMESTAMP WITH TIME ZONE",
    1186: "INTERVAL (year = 365 days)",
    1266: "TIME WITH TIME ZONE",
    1560: "BIT",
    1562: "BIT",
    2950: "UUID",
    3614: "VARCHAR",
    3802: "JSON",
    3904: "INT4RANGE",
    3906: "NUMRANGE",
    3908: "TSRANGE",
    3910: "TSTZRANGE",
    3912: "DATERANGE",
    3926: "INT8RANGE",
    4451: "INT4MULTIRANGE",
    4532: "NUMMULTIRANGE",
    4533: "TSMULTIRANGE",
    4534: "TSTZMULTIRANGE",
    4535: "DATEMULTIRANGE",
    4536: "INT8MULTIRANGE",
}
"""Type OIDs: https://github.com/postgres/postgres/blob/master/src/include/catalog/pg_type.dat."""

_ARRAYS = {
    1000: 16, 1001: 17, 1002: 18, 1003: 19, 1016: 20, 1005: 21, 1007: 23, 1009: 25, 1028: 26, 199: 114,
    651: 650, 1021: 700, 1022: 701, 775: 774, 791: 790, 1040: 829, 1041: 869, 1014: 1042, 1015: 1043,
    1182: 1082, 1183: 1083, 1115: 1114, 1185: 1184, 1187: 1186, 1270: 1266, 1561: 1560, 1563: 1562,
    2951: 2950, 3643: 3614, 3807: 3802, 3905: 3904, 3907: 3906, 3909: 3908, 3911: 3910, 3913: 3912,
    3927: 3926,
}  # fmt: skip
"""Array type -> type of its elements; Postgres does not say how many dimensions there are."""

_NUMERIC, _NUMERICS = 1700, 1231


def postgres_types(
    description: Sequence[Any], values: Sequence[list[Any]], names_of: Callable[[list[int]], dict[int, str]]
) -> list[str | None]:
    """Return the types a Postgres driver describes; NUMERIC without a declared scale takes the values'.

    ``names_of`` gives the names of types that an extension or a user has defined.
    """
    known = {*_BASE, *_ARRAYS, _NUMERIC, _NUMERICS}
    others = names_of([entry[1] for entry in description if entry[1] not in known])
    return [_postgres_type(entry, data, others) for entry, data in zip(description, values, strict=True)]


def _postgres_type(entry: Any, values: list[Any], others: dict[int, str]) -> str | None:
    oid = entry[1]
    if oid == _NUMERIC:
        precision, scale = entry[4], entry[5]
        declared = precision and scale is not None and 0 < precision < 65535 and 0 <= scale <= 1000
        return f"DECIMAL({precision},{scale})" if declared else decimal_type(values)
    if oid == _NUMERICS or oid in _ARRAYS:
        inner = "DECIMAL" if oid == _NUMERICS else _BASE[_ARRAYS[oid]]
        return inner + "[]" * max(1, *map(_dimensions, values), 1)
    known = _BASE.get(oid)
    if known is None and others.get(oid) in ("HSTORE", "GEOMETRY", "GEOGRAPHY", "VARCHAR", "CITEXT", "LTREE"):
        known = others[oid]
    return known or type_of(values)


def _dimensions(value: Any) -> int:
    """Return how deep the lists of a value go; empty lists do not tell."""
    if not isinstance(value, list):
        return 0
    return 1 + max(map(_dimensions, value), default=0)
