"""Dates, times and durations as whole microseconds, in every form the contract accepts."""

from __future__ import annotations

import datetime
import math
import re
from typing import Any

DAY = 86_400_000_000
SECOND = 1_000_000

_DATE = re.compile(
    r"(?P<year>[+-]?[0-9]{4,12})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})(?P<era> BC| \(BC\))?"
    r"(?:[Tt ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?)?"
    r"(?P<zone>[Zz]| UTC|[+-][0-9]{2}(?::?[0-9]{2}(?::[0-9]{2})?)?)?(?P<late> BC)?)?"
)
_TIME = re.compile(
    r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?"
    r"([Zz]| UTC|[+-][0-9]{2}(?::?[0-9]{2}(?::[0-9]{2})?)?)?"
)
_INFINITE = {"infinity": math.inf, "+infinity": math.inf, "-infinity": -math.inf}
_ERA = 146_097
"""Days of 400 years, after which the calendar repeats."""

_CLOCK = re.compile(r"([+-]?)([0-9]+):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?")
_SPAN = re.compile(r"([+-]?(?<![0-9])[0-9]++(?:\.[0-9]++)?+)\s*+([a-z]++)", re.IGNORECASE)
_ISO_SPAN = re.compile(
    r"(-?)P(?:(-?[\d.]+)Y)?(?:(-?[\d.]+)M)?(?:(-?[\d.]+)W)?(?:(-?[\d.]+)D)?"
    r"(?:T(?:(-?[\d.]+)H)?(?:(-?[\d.]+)M)?(?:(-?[\d.]+)S)?)?"
)
_MONTH, _YEAR = 30 * DAY, 360 * DAY
_UNITS = {
    "us": 1,
    "usec": 1,
    "microsecond": 1,
    "ms": 1000,
    "millisecond": 1000,
    "s": SECOND,
    "sec": SECOND,
    "second": SECOND,
    "m": 60 * SECOND,
    "min": 60 * SECOND,
    "minute": 60 * SECOND,
    "h": 3600 * SECOND,
    "hour": 3600 * SECOND,
    "d": DAY,
    "day": DAY,
    "week": 7 * DAY,
    "mon": _MONTH,
    "month": _MONTH,
    "y": _YEAR,
    "year": _YEAR,
}


def read_moment(value: Any) -> int | float | None:
    """Return microseconds since the year 1 of a date or timestamp; ``None`` where it cannot be read.

    A value with an offset is taken to UTC, a naive one is its wall clock; so a naive value equals
    the same wall clock with ``Z``. Infinity is a float, years before 1 are less than 0.
    """
    if isinstance(value, datetime.datetime):
        offset = value.utcoffset()
        clock = (value.hour * 3600 + value.minute * 60 + value.second) * SECOND + value.microsecond
        return value.toordinal() * DAY + clock - (_micros(offset) if offset else 0)
    if isinstance(value, datetime.date):
        return value.toordinal() * DAY
    if isinstance(value, float) and math.isinf(value):
        return value
    return _read_iso(value) if isinstance(value, str) else None


def beyond_python(text: str) -> bool:
    """Return whether a text is a date or timestamp for which Python has no value (infinity, BC,
    year 20000).
    """
    found = read_moment(text)
    return found is not None and not DAY <= found < _AFTER


_AFTER = (datetime.date.max.toordinal() + 1) * DAY


def _read_iso(text: str) -> int | float | None:
    text = text.strip()
    if text.lower() in _INFINITE:
        return _INFINITE[text.lower()]
    found = _DATE.fullmatch(text)
    if not found:
        return None
    year = int(found["year"])
    if found["era"] or found["late"]:
        if year < 1 or (found["era"] and found["late"]):
            return None
        year = 1 - year
    elif found["year"] == "0000":
        return None
    days = _ordinal(year, int(found["month"]), int(found["day"]))
    clock = _clock(found["hour"] or "0", found["minute"] or "0", found["second"], found["fraction"])
    if days is None or clock is None or clock >= DAY:
        return None
    shift = _offset(found["zone"])
    return None if shift is None else days * DAY + clock - shift


def _ordinal(year: int, month: int, day: int) -> int | None:
    """Return days since the day before 0001-01-01 in the proleptic calendar; year 0 is 1 BC."""
    alike = 2000 + year % 400
    try:
        return datetime.date(alike, month, day).toordinal() + (year - alike) // 400 * _ERA
    except ValueError:
        return None


def _offset(zone: str | None) -> int | None:
    """Return microseconds to the east; ``None`` for an offset that is none."""
    if not zone or zone in ("Z", "z", " UTC"):
        return 0
    digits = zone[1:].replace(":", "")
    hours, minutes, seconds = int(digits[:2]), int(digits[2:4] or 0), int(digits[4:6] or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    return (hours * 3600 + minutes * 60 + seconds) * SECOND * (-1 if zone[0] == "-" else 1)


def _clock(hour: str, minute: str, second: str | None, fraction: str | None) -> int | None:
    if int(minute) > 59 or int(second or 0) > 59:
        return None
    micros = int((fraction or "0")[:6].ljust(6, "0"))
    return (int(hour) * 3600 + int(minute) * 60 + int(second or 0)) * SECOND + micros


def read_time(value: Any) -> int | None:
    """Return microseconds since midnight of a time of day; ``None`` where it cannot be read.

    24:00:00 is one. A time with an offset is taken to UTC, a naive one is its wall clock.
    """
    if isinstance(value, datetime.time):
        clock = (value.hour * 3600 + value.minute * 60 + value.second) * SECOND + value.microsecond
        offset = value.utcoffset()
        return (clock - _micros(offset)) % DAY if offset else clock
    if isinstance(value, datetime.timedelta):
        micros = _micros(value)
        return micros if 0 <= micros <= DAY else None
    found = _TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    if not found:
        return None
    *parts, zone = found.groups()
    read, shift = _clock(*parts), _offset(zone)
    if read is None or shift is None or read > DAY:
        return None
    return (read - shift) % DAY if shift else read


def read_interval(value: Any, year_days: int = 360) -> int | None:
    """Return microseconds of a duration; ``None`` where it cannot be read.

    A month is 30 days; 12 months are a year of ``year_days``: 360 as DuckDB counts, 365 as the drivers
    of Postgres do.
    """
    if isinstance(value, datetime.timedelta):
        return _micros(value)
    if isinstance(value, tuple) and hasattr(value, "nanoseconds"):
        months, days, nanos = value
        return _months(int(months), year_days) + int(days) * DAY + int(nanos) // 1000
    if not isinstance(value, str) or len(value) > 200:
        return None
    text = value.strip()
    found = _iso_span(text) if "P" in text else _spelled_span(text)
    return None if found is None else found[1] + _months(found[0], year_days)


def _months(count: int, year_days: int) -> int:
    years, months = divmod(abs(count), 12)
    return (years * year_days + months * 30) * DAY * (-1 if count < 0 else 1)


def _iso_span(text: str) -> tuple[int, int] | None:
    """Return whole months and microseconds."""
    found = _ISO_SPAN.fullmatch(text)
    if not found or not any(found.groups()[1:]):
        return None
    try:
        years, months, *others = (_parts(part) for part in found.groups()[1:])
    except ValueError:
        return None
    sizes = (7 * DAY, DAY, 3600 * SECOND, 60 * SECOND, SECOND)
    micros = sum(_times(*part, size) for part, size in zip(others, sizes, strict=True))
    # parts of a year or of a month are days
    micros += _times(0, years[1], 360 * DAY) + _times(0, months[1], 30 * DAY)
    whole = years[0] * 12 + months[0]
    return (-whole, -micros) if found[1] else (whole, micros)


def _parts(number: str | None) -> tuple[int, int]:
    """Return a number as whole and billionths, both with its sign. Raises ``ValueError``."""
    whole, _, part = (number or "0").partition(".")
    if "." in part or not whole.strip("-+"):
        raise ValueError(number)
    fraction = int(part[:9].ljust(9, "0")) if part else 0
    return int(whole), -fraction if whole.startswith("-") else fraction


def _times(whole: int, billionths: int, size: int) -> int:
    sign = -1 if billionths < 0 else 1
    return whole * size + sign * (abs(billionths) * size // 10**9)


def _spelled_span(text: str) -> tuple[int, int] | None:
    """Return whole months and microseconds of ``1 year 2 mons 3 days 04:05:06``."""
    text, ago = (text[:-4], True) if text.endswith(" ago") else (text, False)
    rest, months, micros = text.removeprefix("@").strip(), 0, 0
    clock = re.search(r"(?:^|\s)([+-]?[0-9]+:[0-9:.]+)$", rest)
    if clock:
        found = _CLOCK.fullmatch(clock[1])
        read = _clock(*found.groups()[1:]) if found else None
        if found is None or read is None:
            return None
        micros = -read if found[1] == "-" else read
        rest = rest[: clock.start()].strip()
    if not rest and not clock:
        return None
    for number, unit in _SPAN.findall(rest):
        size = _UNITS.get(unit.lower()) or _UNITS.get(unit.lower().removesuffix("s"))
        if size is None:
            return None
        whole, fraction = _parts(number)
        if size in (_MONTH, _YEAR):
            months += whole * (12 if size == _YEAR else 1)
            whole = 0
        micros += _times(whole, fraction, size)
    if _SPAN.sub("", rest).replace(",", "").strip():
        return None
    return (-months, -micros) if ago else (months, micros)


def _micros(span: datetime.timedelta) -> int:
    return (span.days * 86400 + span.seconds) * SECOND + span.microseconds


def show_clock(micros: int) -> str:
    """Return ``HH:MM:SS[.f]`` of microseconds (more than 24 hours stay hours)."""
    seconds, rest = divmod(micros, SECOND)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return text + f".{rest:06d}".rstrip("0") if rest else text
