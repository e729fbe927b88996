"""Column types of SQLite and Postgres in DuckDB's spelling."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from typing import Any

from pytest_agenteval.databases.limits import decimal_type, type_of

_PROBE = "agenteval_probe"


def sqlite_types(connection: Any, sql: str, width: int) -> list[str | None]:
    """The declared type of each output column (``None``: an expression), from a temporary view.

    sqlite3 has no other way to ask; the view lives in the connection's own temporary space.
    """
    import sqlite3

    nothing: list[str | None] = [None] * width
    try:
        cursor = connection.cursor()
        cursor.execute(f"DROP VIEW IF EXISTS temp.{_PROBE}")
        cursor.execute(f"CREATE TEMP VIEW {_PROBE} AS {sql}")
        try:
            types = [row[2] or None for row in cursor.execute(f"PRAGMA temp.table_info({_PROBE})")]
        finally:
            cursor.execute(f"DROP VIEW IF EXISTS temp.{_PROBE}")
    except sqlite3.Error:
        # types are a help for the comparison, not a need: without them the values decide
        return nothing
    return types if len(types) == width else nothing


def sqlite_column(declared: str | None, values: list[Any]) -> tuple[str | None, list[Any]]:
    """SQL type and values of a SQLite column: the declared type, where every value really has it.

    SQLite stores dates as text and booleans as 0/1; where the whole column conforms they become
    dates and booleans. A column whose values do not conform keeps them, without a type.
    """
    word = (declared or "").upper()
    for pattern, convert in _CONVERSIONS:
        if re.search(pattern, word):
            return convert(values)
    return None, values


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

_POSTGRES = {
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
    700: "FLOAT",
    701: "DOUBLE",
    790: "VARCHAR",
    1000: "BOOLEAN[]",
    1005: "SMALLINT[]",
    1007: "INTEGER[]",
    1009: "VARCHAR[]",
    1015: "VARCHAR[]",
    1016: "BIGINT[]",
    1021: "FLOAT[]",
    1022: "DOUBLE[]",
    1042: "VARCHAR",
    1043: "VARCHAR",
    1082: "DATE",
    1083: "TIME",
    1114: "TIMESTAMP",
    1115: "TIMESTAMP[]",
    1182: "DATE[]",
    1184: "TIMESTAMP WITH TIME ZONE",
    1185: "TIMESTAMP WITH TIME ZONE[]",
    1186: "INTERVAL",
    1266: "TIME WITH TIME ZONE",
    2950: "UUID",
    3802: "JSON",
}
"""Type OIDs: https://github.com/postgres/postgres/blob/master/src/include/catalog/pg_type.dat."""

_NUMERIC = 1700


def postgres_types(description: Sequence[Any], values: Sequence[list[Any]]) -> list[str | None]:
    """The types a Postgres driver describes; NUMERIC without a declared scale takes the values'."""
    return [_postgres_type(entry, data) for entry, data in zip(description, values, strict=True)]


def _postgres_type(entry: Any, values: list[Any]) -> str | None:
    oid = entry[1]
    if oid == _NUMERIC:
        precision, scale = entry[4], entry[5]
        declared = precision and scale is not None and 0 < precision < 65535 and 0 <= scale <= 1000
        return f"DECIMAL({precision},{scale})" if declared else decimal_type(values)
    return _POSTGRES.get(oid) or type_of(values)
