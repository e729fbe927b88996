"""What the drivers of Postgres cannot give as Python values, and the types they do not name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any


def keep_every_moment(cursor: Any) -> None:
    """Have this cursor give dates, timestamps and intervals that Python cannot hold as the server's text.

    ``infinity``, years before 1 and above 9999 are errors in psycopg and psycopg2; months and years of an
    interval become days there. Only the cursor is changed, never the user's connection.
    """
    home = type(cursor).__module__.partition(".")[0]
    if home == "psycopg":
        _psycopg_loaders(cursor)
    elif home == "psycopg2":
        _psycopg2_casters(cursor)


def _psycopg_loaders(cursor: Any) -> None:
    from psycopg import DataError
    from psycopg.types import datetime as moments

    def kept(base: Any) -> Any:
        class ExactLoader(base):  # type: ignore[misc]
            def load(self, data: Any) -> Any:
                try:
                    return super().load(data)
                except (DataError, NotImplementedError, ValueError, OverflowError):
                    return bytes(data).decode()

        return ExactLoader

    class IntervalTextLoader(moments.IntervalLoader):
        def load(self, data: Any) -> Any:
            text = bytes(data).decode()
            if has_months(text):
                return text
            try:
                return super().load(data)
            except (DataError, NotImplementedError, ValueError, OverflowError):
                return text

    for name, base in (
        ("date", moments.DateLoader),
        ("timestamp", moments.TimestampLoader),
        ("timestamptz", moments.TimestamptzLoader),
        ("time", moments.TimeLoader),
        ("timetz", moments.TimetzLoader),
    ):
        cursor.adapters.register_loader(name, kept(base))
    cursor.adapters.register_loader("interval", IntervalTextLoader)


def has_months(interval: str) -> bool:
    """Return whether an interval, in any of the styles of Postgres, holds years or months."""
    date_part = interval.partition("T")[0] if interval.startswith("P") else interval
    if interval.startswith("P"):
        return "Y" in date_part or "M" in date_part
    words = interval.split()
    return "year" in interval or "mon" in interval or any(_is_year_month(word) for word in words)


def _is_year_month(word: str) -> bool:
    """Return ``1-2`` of the style sql_standard: one year and two months."""
    years, dash, months = word.lstrip("+-").partition("-")
    return bool(dash) and years.isdigit() and months.isdigit()


def _psycopg2_casters(cursor: Any) -> None:
    from psycopg2 import extensions  # type: ignore[import-untyped]

    def kept(base: Any) -> Any:
        def cast(text: Any, at: Any) -> Any:
            if text is None:
                return None
            try:
                value = base(text, at)
            except Exception:  # whatever the driver makes of a date that Python does not have
                return text
            # psycopg2 gives Python's last date for infinity
            return text if "infinity" in text else value

        return cast

    def interval(text: Any, at: Any) -> Any:
        if text is None or has_months(text):
            return text
        return extensions.PYINTERVAL(text, at)

    casters = (
        ((1082,), "DATE", kept(extensions.PYDATE)),
        ((1114,), "TIMESTAMP", kept(extensions.PYDATETIME)),
        ((1184,), "TIMESTAMPTZ", kept(extensions.PYDATETIMETZ)),
        ((1186,), "INTERVAL", interval),
    )
    for oids, name, cast in casters:
        extensions.register_type(extensions.new_type(oids, name, cast), cursor)


def type_names(connection: Any, oids: Sequence[int]) -> dict[int, str]:
    """Return the names of types that extensions and users have defined, by oid;
    ``{}`` where they cannot be read.
    """
    if not oids:
        return {}
    cursor = connection.cursor()
    try:
        known = ", ".join(str(int(oid)) for oid in dict.fromkeys(oids))
        cursor.execute(
            "SELECT oid::bigint, CASE WHEN typtype = 'e' THEN 'VARCHAR' ELSE upper(typname) END "
            f"FROM pg_catalog.pg_type WHERE oid IN ({known})"
        )
        return {int(oid): str(name) for oid, name in cursor.fetchall()}
    except Exception:  # drivers have no common error; a type is a help, not a need
        return {}
    finally:
        cursor.close()


_HARMLESS = frozenset(
    re.findall(
        r"\w+",
        "clock_timestamp timeofday random random_normal setseed gen_random_uuid uuidv4 uuidv7 "
        "uuid_generate_v1 uuid_generate_v1mc uuid_generate_v4 currval lastval pg_relation_size "
        "pg_total_relation_size "
        "pg_table_size pg_indexes_size pg_database_size pg_tablespace_size pg_is_in_recovery pg_sleep "
        "pg_sleep_for pg_sleep_until ts_debug pg_column_compression",
    )
)
"""Volatile functions of Postgres that change nothing; of these the limit of time is enough."""

_VOLATILE = (
    "SELECT DISTINCT p.proname FROM pg_catalog.pg_proc p WHERE p.provolatile = 'v' AND p.prokind <> 'a' "
    "AND p.proname = ANY(ARRAY[{}]::text[])"
)


def volatile_functions(raw: Any, names: Sequence[str]) -> list[str]:
    """Return those of the called ``names`` that the server says may change something (pg_proc: VOLATILE).

    Functions are volatile unless they were declared STABLE or IMMUTABLE.
    """
    bare = {name.rpartition(".")[2] for name in names}
    asked = sorted((bare | {name.lower() for name in bare}) - _HARMLESS)
    if not asked:
        return []
    cursor = raw.cursor()
    try:
        literals = ", ".join("'" + name.replace("'", "''") + "'" for name in asked)
        cursor.execute(_VOLATILE.format(literals))
        return sorted(row[0] for row in cursor.fetchall())
    finally:
        cursor.close()
