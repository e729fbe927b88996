"""Days and ticks since 1970 as dates and timestamps; as text where Python has no value for them.

Python's dates end at the years 1 and 9999 and have no infinity. What lies beyond is the text that DuckDB
writes: ``infinity``, ``-infinity``, ``20000-01-01``, ``0044-03-15 (BC) 10:00:00``.
"""

from __future__ import annotations

import datetime

DAY_MICROS = 86_400_000_000
EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()
LAST_ORDINAL = datetime.date.max.toordinal()
PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def moment_of_days(days: int) -> datetime.date | str:
    """Return the date of a day counted from 1970; +-(2**31 - 1) is infinity, as in DuckDB and Postgres."""
    if abs(days) >= 2**31 - 1:
        return "infinity" if days > 0 else "-infinity"
    ordinal = days + EPOCH_ORDINAL
    return datetime.date.fromordinal(ordinal) if 0 < ordinal <= LAST_ORDINAL else _day_text(days)


def moment_of_ticks(ticks: int, unit: str, zoned: bool = False) -> datetime.datetime | str:
    """Return the timestamp of a count of ``unit`` (s, ms, us, ns) from 1970; +-(2**63 - 1) is infinity.

    ``zoned``: a moment in UTC. Fractions beyond the microsecond are cut off.
    """
    if abs(ticks) >= 2**63 - 1:
        return "infinity" if ticks > 0 else "-infinity"
    micros = ticks * 1_000_000 // PER_SECOND[unit]
    days, clock = divmod(micros, DAY_MICROS)
    if 0 < days + EPOCH_ORDINAL <= LAST_ORDINAL:
        moment = datetime.datetime.fromordinal(days + EPOCH_ORDINAL) + datetime.timedelta(microseconds=clock)
        return moment.replace(tzinfo=datetime.UTC) if zoned else moment
    return f"{_day_text(days)} {clock_text(clock)}" + ("+00" if zoned else "")


def duration_text(months: int, days: int, nanos: int) -> str:
    """Return a duration as ISO 8601 writes it: ``P14M3DT1.5S``; months, days and the rest are not mixed."""
    sign, rest = ("-", -nanos) if nanos < 0 else ("", nanos)
    seconds, fraction = divmod(rest, 1_000_000_000)
    digits = f".{fraction:09d}".rstrip("0") if fraction else ""
    return f"P{months}M{days}DT{sign}{seconds}{digits}S"


def clock_text(micros: int) -> str:
    """Return ``HH:MM:SS[.f]`` of microseconds since midnight; 24:00:00 is one."""
    seconds, rest = divmod(micros, 1_000_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return text + f".{rest:06d}".rstrip("0") if rest else text


def _day_text(days: int) -> str:
    """Return the proleptic Gregorian date, years before 1 with ``(BC)``."""
    # from 0000-03-01, so that the leap day ends a year: http://howardhinnant.github.io/date_algorithms.html
    era, day = divmod(days + 719_468, 146_097)
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5 - 1
    year += era * 400 + (month >= 10)
    month += 3 if month < 10 else -9
    return f"{year:04d}-{month:02d}-{day:02d}" if year > 0 else f"{1 - year:04d}-{month:02d}-{day:02d} (BC)"
