"""Dates, times and durations as whole microseconds, in every form the contract accepts."""

from __future__ import annotations

import datetime
import re
from typing import Any

DAY = 86_400_000_000
SECOND = 1_000_000

_DATE = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?(Z|[+-][0-9]{2}(?::[0-9]{2})?)?)?"
)
_TIME = re.compile(r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?")
_CLOCK = re.compile(r"([+-]?)([0-9]+):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?")
_SPAN = re.compile(r"([+-]?[0-9]+(?:\.[0-9]+)?)\s*([a-z]+)", re.IGNORECASE)
_ISO_SPAN = re.compile(
    r"(-?)P(?:(-?[\d.]+)Y)?(?:(-?[\d.]+)M)?(?:(-?[\d.]+)W)?(?:(-?[\d.]+)D)?"
    r"(?:T(?:(-?[\d.]+)H)?(?:(-?[\d.]+)M)?(?:(-?[\d.]+)S)?)?"
)
# DuckDB's client counts a month as 30 days and a year as 12 months.
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
    "mon": 30 * DAY,
    "month": 30 * DAY,
    "y": 360 * DAY,
    "year": 360 * DAY,
}


def read_moment(value: Any) -> int | None:
    """Microseconds since the year 1 of a date or timestamp; ``None`` where it cannot be read.

    A value with an offset is taken to UTC, a naive one is its wall clock; so a naive value equals
    the same wall clock with ``Z``.
    """
    if isinstance(value, datetime.datetime):
        offset = value.utcoffset()
        clock = (value.hour * 3600 + value.minute * 60 + value.second) * SECOND + value.microsecond
        return value.toordinal() * DAY + clock - (_micros(offset) if offset else 0)
    if isinstance(value, datetime.date):
        return value.toordinal() * DAY
    return _read_iso(value) if isinstance(value, str) else None


def _read_iso(text: str) -> int | None:
    found = _DATE.fullmatch(text.strip())
    if not found:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        days = datetime.date(int(year), int(month), int(day)).toordinal()
    except ValueError:
        return None
    clock = _clock(hour or "0", minute or "0", second, fraction)
    if clock is None or clock >= DAY:
        return None
    shift = 0
    if zone and zone != "Z":
        hours, minutes = int(zone[1:3]), int(zone[4:6] or 0)
        if hours > 23 or minutes > 59:
            return None
        shift = (hours * 3600 + minutes * 60) * SECOND * (-1 if zone[0] == "-" else 1)
    return days * DAY + clock - shift


def _clock(hour: str, minute: str, second: str | None, fraction: str | None) -> int | None:
    if int(minute) > 59 or int(second or 0) > 59:
        return None
    micros = int((fraction or "0")[:6].ljust(6, "0"))
    return (int(hour) * 3600 + int(minute) * 60 + int(second or 0)) * SECOND + micros


def read_time(value: Any) -> int | None:
    """Microseconds since midnight of a time of day; ``None`` where it cannot be read."""
    if isinstance(value, datetime.time):
        clock = (value.hour * 3600 + value.minute * 60 + value.second) * SECOND
        return clock + value.microsecond
    if isinstance(value, datetime.timedelta):
        micros = _micros(value)
        return micros if 0 <= micros < DAY else None
    found = _TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    if not found:
        return None
    clock_or_none = _clock(*found.groups())
    return clock_or_none if clock_or_none is not None and clock_or_none < DAY else None


def read_interval(value: Any) -> int | None:
    """Microseconds of a duration; ``None`` where it cannot be read."""
    if isinstance(value, datetime.timedelta):
        return _micros(value)
    if isinstance(value, tuple) and hasattr(value, "nanoseconds"):
        months, days, nanos = value
        return int(months) * 30 * DAY + int(days) * DAY + int(nanos) // 1000
    if not isinstance(value, str) or len(value) > 200:
        return None
    text = value.strip()
    return _iso_span(text) if "P" in text else _spelled_span(text)


def _iso_span(text: str) -> int | None:
    found = _ISO_SPAN.fullmatch(text)
    if not found or not any(found.groups()[1:]):
        return None
    sizes = (360 * DAY, 30 * DAY, 7 * DAY, DAY, 3600 * SECOND, 60 * SECOND, SECOND)
    try:
        total = sum(_times(part, size) for part, size in zip(found.groups()[1:], sizes, strict=True) if part)
    except ValueError:
        return None
    return -total if found[1] else total


def _times(number: str, size: int) -> int:
    whole, _, part = number.partition(".")
    if "." in part or not whole.strip("-"):
        raise ValueError(number)
    micros = int(whole) * size
    fraction = int(part[:9].ljust(9, "0")) * size // 10**9 if part else 0
    return micros - fraction if number.startswith("-") else micros + fraction


def _spelled_span(text: str) -> int | None:
    total, rest = 0, text
    clock = re.search(r"(?:^|\s)([+-]?[0-9]+:[0-9:.]+)$", text)
    if clock:
        found = _CLOCK.fullmatch(clock[1])
        micros = _clock(*found.groups()[1:]) if found else None
        if found is None or micros is None:
            return None
        total = -micros if found[1] == "-" else micros
        rest = text[: clock.start()]
    rest = rest.strip()
    if not rest:
        return total if clock else None
    for number, unit in _SPAN.findall(rest):
        size = _UNITS.get(unit.lower()) or _UNITS.get(unit.lower().removesuffix("s"))
        if size is None:
            return None
        total += _times(number.lstrip("+"), size)
    return total if not _SPAN.sub("", rest).replace(",", "").strip() else None


def _micros(span: datetime.timedelta) -> int:
    return (span.days * 86400 + span.seconds) * SECOND + span.microseconds


def show_clock(micros: int) -> str:
    """``HH:MM:SS[.f]`` of microseconds (more than 24 hours stay hours)."""
    seconds, rest = divmod(micros, SECOND)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return text + f".{rest:06d}".rstrip("0") if rest else text
