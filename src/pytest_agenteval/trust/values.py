"""Values for a column: what the data hold, what lies around the constants, in classes of truth."""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pytest_agenteval.trust.engines import SqliteTrials, TrialEngine, TrialError, literal
from pytest_agenteval.trust.mining import is_number, is_text, is_time
from pytest_agenteval.trust.reading import Condition
from pytest_agenteval.trust.schema import Cell, ColumnInfo

DAY = datetime.timedelta(days=1)
SECOND = datetime.timedelta(seconds=1)
_FIRST, _LAST = datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1)


@dataclass(slots=True)
class ColumnValues:
    """The values a column may be given.

    Attributes:
        kind: ``time``, ``number``, ``text``, ``dated text`` (ISO dates as text), ``boolean`` or ``other``.
        seen: values of the data.
        made: values around the constants, fit for the column's rules.
        signature: value -> which of ``tests`` hold for it (``None``: unknown).
        tests: the conditions of both statements on the column.
    """

    column: ColumnInfo
    kind: str
    seen: list[Any] = field(default_factory=list)
    made: list[Any] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    signature: dict[Any, tuple[bool | None, ...]] = field(default_factory=dict)

    @property
    def all(self) -> list[Any]:
        """Return every value there is."""
        return self.made + self.seen

    def holding(self, tests: Iterable[str], wanted: bool = True) -> list[Any]:
        """Return the values for which all of ``tests`` hold (or not all, with ``wanted`` False)."""
        places = [self.tests.index(test) for test in tests if test in self.tests]
        return [v for v, s in self.signature.items() if all(s[i] is True for i in places) == wanted]

    def telling(self, one: Iterable[str], other: Iterable[str]) -> list[Any]:
        """Return the values that satisfy all of one list of conditions and not all of the other."""
        a, b = ([self.tests.index(t) for t in tests if t in self.tests] for tests in (one, other))
        return [
            value
            for value, truth in self.signature.items()
            if all(truth[i] is True for i in a) != all(truth[i] is True for i in b)
        ]

    def classes(self) -> list[list[Any]]:
        """Return the values in groups that no condition tells apart."""
        groups: dict[tuple[bool | None, ...], list[Any]] = {}
        for value, truth in self.signature.items():
            groups.setdefault(truth, []).append(value)
        return list(groups.values())


def kind_of(column: ColumnInfo) -> str:
    """Return the kind of a column's type."""
    if re.fullmatch(r"BOOL(EAN)?", column.type, re.IGNORECASE):
        return "boolean"
    for name, test in (("time", is_time), ("number", is_number), ("text", is_text)):
        if test(column.type):
            return name
    return "other" if column.type else "number"


def column_values(
    cell: Cell,
    column: ColumnInfo,
    seen: Sequence[Any],
    tests: Sequence[Condition],
    engine: TrialEngine,
    allowed: frozenset[Any] | None,
    least: str | None,
) -> ColumnValues:
    """Return the values for one column; ``allowed`` is its closed list, ``least`` its rule on the sign."""
    kind = kind_of(column)
    seen = [value for value in seen if value is not None]
    if kind == "text" and seen and all(moment_of(value) is not None for value in seen):
        kind = "dated text"
    found = ColumnValues(column, kind, seen)
    found.tests = list(dict.fromkeys(test.sql for test in tests))
    made: list[Any] = []
    for test in tests:
        for constant in test.constants:
            value = _evaluated(constant, column, kind, engine)
            if value is not None:
                made += _around(value, kind, column, found.seen)
        if test.pattern is not None and kind == "text":
            made += _matching(test.pattern, found.seen)
        made += _of_years(test, kind, column, found.seen)
    if kind == "boolean":
        made += [True, False]
    if kind == "text":
        made += [f"{value} two" for value in found.seen[:2]] + ["other"]
    if kind == "number" and not found.seen:
        made += [0, 1, 2, 3]
    fit = [v for v in made if _fits(v, allowed, least)]
    found.made = list(dict.fromkeys(fit))
    found.signature = _signatures(found, engine)
    return found


def _fits(value: Any, allowed: frozenset[Any] | None, least: str | None) -> bool:
    if allowed is not None and value not in allowed:
        return False
    if least is not None and isinstance(value, int | float | Decimal):
        return bool(value > 0) if least == "> 0" else bool(value >= 0)
    return True


def _evaluated(constant: str, column: ColumnInfo, kind: str, engine: TrialEngine) -> Any:
    """Return what a constant expression is, as a value of the column's kind."""
    try:
        value = next(iter(engine.run(f"SELECT {constant}").rows()))[0]
    except (TrialError, StopIteration):
        return None
    if kind == "time":
        return as_time(value, column)
    if kind == "dated text":
        return as_time(value, _MOMENT)
    if kind == "number":
        if isinstance(value, str):
            return int(value) if re.fullmatch(r"-?\d+", value) else None
        return value if isinstance(value, int | float | Decimal) and not isinstance(value, bool) else None
    return value if kind != "text" or isinstance(value, str) else str(value)


def as_time(value: Any, column: ColumnInfo) -> Any:
    """Return a date or timestamp as the column holds it (``None``: it is none)."""
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(value.strip().replace("Z", ""))
        except ValueError:
            return None
    if isinstance(value, datetime.datetime):
        value = value.replace(tzinfo=None)
        return value.date() if holds_days(column) else value
    if isinstance(value, datetime.date):
        return value if holds_days(column) else datetime.datetime.combine(value, datetime.time())
    return None


def holds_days(column: ColumnInfo) -> bool:
    """Return whether a column holds dates without a time of day."""
    return column.type.upper() == "DATE"


_MOMENT = ColumnInfo("moment", "TIMESTAMP")
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?P<time>[ T]\d\d:\d\d(:\d\d)?)?")


def moment_of(value: Any) -> datetime.datetime | None:
    """Return the moment that a text such as ``2024-01-05 10:00:00`` is (``None``: it is none)."""
    if not isinstance(value, str) or not _ISO.fullmatch(value):
        return None
    found = as_time(value, _MOMENT)
    return found if isinstance(found, datetime.datetime) else None


def written_like(moment: datetime.datetime, like: str) -> str:
    """Return a moment written as ``like`` is: with or without a time, seconds, ``T``."""
    match = _ISO.fullmatch(like)
    form = "%Y-%m-%d"
    if match is not None and match["time"]:
        form += match["time"][0] + ("%H:%M:%S" if match["time"].count(":") == 2 else "%H:%M")
    return moment.strftime(form)


def _around(value: Any, kind: str, column: ColumnInfo, seen: Sequence[Any]) -> list[Any]:
    if kind == "dated text":
        return [written_like(moment, seen[0]) for moment in _around_time(value, _MOMENT)]
    if kind == "time":
        return _around_time(value, column)
    if kind == "number":
        return _around_number(value, column)
    return [value]


def _around_time(value: Any, column: ColumnInfo) -> list[Any]:
    days = holds_days(column)
    start = (
        value if isinstance(value, datetime.datetime) else datetime.datetime.combine(value, datetime.time())
    )
    midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
    month = midnight.replace(day=1)
    year = midnight.replace(month=1, day=1)
    after = (month + 32 * DAY).replace(day=1)
    before = (month - DAY).replace(day=1)
    found = [start, start - DAY, start + DAY, start - SECOND, start + SECOND, midnight, month, after, before]
    found += [midnight + DAY - SECOND, midnight + DAY / 2, midnight - DAY / 2, midnight - DAY - DAY / 2]
    found += [
        midnight + DAY,
        month - DAY,
        after - DAY,
        start - 7 * DAY,
        start + 7 * DAY,
        midnight + 1.5 * DAY,
    ]
    found += [year, year.replace(year=year.year - 1), year.replace(year=year.year + 1), year - DAY]
    found += [start - 31 * DAY, start + 31 * DAY, start - 366 * DAY, start + 366 * DAY]
    kept = [moment for moment in found if _FIRST < moment < _LAST]
    return [moment.date() for moment in kept] if days else list(kept)


def _around_number(value: Any, column: ColumnInfo) -> list[Any]:
    whole = re.search(r"INT", column.type, re.IGNORECASE) or not column.type
    if whole:
        near = int(value)
        return [near, near - 1, near + 1, near + 2, near - 2]
    number = Decimal(str(value))
    scale = re.search(r",\s*(\d+)\)", column.type)
    step = Decimal(1).scaleb(-int(scale[1])) if scale else Decimal("0.5")
    found = [number, number - 1, number + 1, number - step, number + step]
    return [float(entry) for entry in found] if re.search(r"FLOAT|DOUBLE|REAL", column.type, re.I) else found


def _of_years(test: Condition, kind: str, column: ColumnInfo, seen: Sequence[Any]) -> list[Any]:
    """Return days in and around the years and months that a condition on a part of a date names."""
    if kind not in ("time", "dated text"):
        return []
    found: list[datetime.datetime] = []
    for year in {int(y) for y in re.findall(r"(?<!\d)(19\d\d|20\d\d)(?!\d)", test.sql)}:
        for month, day in ((1, 1), (2, 10), (6, 30), (7, 1), (12, 31)):
            found.append(datetime.datetime(year, month, day, 12))
        found += [datetime.datetime(year - 1, 12, 31, 12), datetime.datetime(year + 1, 1, 1)]
    if not found and re.search(r"EXTRACT|DATE_PART|MONTH|QUARTER|DAY|WEEK|HOUR", test.sql, re.IGNORECASE):
        start = datetime.datetime(2024, 1, 1)
        found += [start + n * DAY for n in (0, 1, 2, 3, 4, 5, 6, 45, 100, 200, 300, 364)]
        found += [start + datetime.timedelta(hours=h) for h in (1, 6, 12, 18, 23)]
    if kind == "dated text":
        return [written_like(moment, seen[0]) for moment in found]
    return [moment.date() for moment in found] if holds_days(column) else list(found)


def _matching(pattern: str, seen: Sequence[Any]) -> list[str]:
    """Return texts that a LIKE or regular expression may or may not match, spelt as the data spell it."""
    bare = [part for part in re.split(r"[%_^$.*()|\\\[\]+?]+", pattern) if part]
    found: list[str] = []
    for part in bare[:8]:
        spelt = next((m[0] for v in seen if (m := re.search(re.escape(part), str(v), re.IGNORECASE))), part)
        found += [spelt, f"{spelt}x", f"x{spelt}", f"x{spelt}x", f"New {spelt}", f"{spelt} House"]
    if len(bare) > 1:
        found += [" ".join(bare), "".join(bare), f"x{' and '.join(bare)}x", " ".join(reversed(bare))]
    return found


def _signatures(values: ColumnValues, engine: TrialEngine) -> dict[Any, tuple[bool | None, ...]]:
    wanted = list(dict.fromkeys([v for v in values.all if _hashable(v)]))
    if not wanted:
        return {}
    if not values.tests:
        return dict.fromkeys(wanted, ())
    kind = values.column.type or "TEXT"
    listed = ", ".join(f"({i}, {literal(value)})" for i, value in enumerate(wanted))
    if isinstance(engine, SqliteTrials):
        source = f"(SELECT column1 AS i, column2 AS v FROM (VALUES {listed})) AS x"
    else:
        cast = f"SELECT c AS i, CAST(d AS {kind}) AS v"
        source = f"({cast} FROM (VALUES {listed}) AS w(c, d)) AS x"
    truth: list[list[bool | None]] = [[] for _ in wanted]
    for test in values.tests:
        try:
            found = dict(engine.run(f"SELECT i, ({test}) FROM {source}").rows())
        except TrialError:
            found = {}
        for i, entry in enumerate(truth):
            result = found.get(i)
            entry.append(None if result is None else bool(result))
    return {value: tuple(entry) for value, entry in zip(wanted, truth, strict=True)}


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def nearby(value: Any, column: ColumnInfo, draw: random.Random) -> Any:
    """Return another value close to ``value``: a day, week, month or year off, or a number off."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, datetime.datetime | datetime.date):
        steps = [DAY, 7 * DAY, 31 * DAY, 366 * DAY]
        if isinstance(value, datetime.datetime):
            steps += [SECOND, datetime.timedelta(hours=1)]
        try:
            return value + draw.choice((1, -1)) * draw.choice(steps)
        except OverflowError:
            return value
    if isinstance(value, int):
        return value + draw.choice((1, -1, 2, 5, 10))
    if isinstance(value, Decimal):
        return value + draw.choice((1, -1, 10, 100))
    if isinstance(value, float):
        return value + draw.choice((1.0, -1.0, 0.5))
    if isinstance(value, str) and (moment := moment_of(value)) is not None:
        return written_like(nearby(moment, column, draw), value)
    if isinstance(value, str):
        return f"{value} {draw.choice('abc')}"
    return value
