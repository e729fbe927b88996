"""Conditions on rows in one spelling: ranges of dates, lists of values, patterns, NOT."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

_FLIPPED = {"GT": "LT", "LT": "GT", "GTE": "LTE", "LTE": "GTE", "EQ": "EQ", "NEQ": "NEQ"}
_SIGNS = {"GT": ">", "LT": "<", "GTE": ">=", "LTE": "<=", "EQ": "=", "NEQ": "<>"}
_OPPOSITE = {"GT": "LTE", "LT": "GTE", "GTE": "LT", "LTE": "GT", "EQ": "NEQ", "NEQ": "EQ"}
_UNITS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}


@dataclass(frozen=True, slots=True)
class Bound:
    """One condition: its text, and the ``table.column`` it is about ('' where it is about several)."""

    text: str
    column: str


def filters_of(conjuncts: Sequence[Any], is_day: Callable[[str], bool]) -> list[Bound]:
    """Return the conditions of a conjunction in one spelling; ``is_day`` tells columns that hold days."""
    found: list[Bound] = []
    parts: dict[str, dict[str, int]] = {}
    for node in conjuncts:
        for piece in _pieces(_unwrapped(node)):
            period = _named_period(piece)
            if period is not None:
                found += _period(*period)
                continue
            named = _date_part(piece)
            if named is not None:
                parts.setdefault(named[0], {})[named[1]] = named[2]
                continue
            found += _bounds(piece, is_day)
    for column, named_parts in parts.items():
        found += _period(column, named_parts)
    return [bound for bound in found if bound.text]


def _unwrapped(node: Any) -> Any:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Not):
        inner = _unwrapped(node.this)
        name = type(inner).__name__
        if name in _OPPOSITE:
            return getattr(exp, _OPPOSITE[name])(this=inner.this.copy(), expression=inner.expression.copy())
        return exp.Not(this=inner.copy())
    return node


def _pieces(node: Any) -> list[Any]:
    if isinstance(node, exp.Between):
        return [
            exp.GTE(this=node.this.copy(), expression=node.args["low"].copy()),
            exp.LTE(this=node.this.copy(), expression=node.args["high"].copy()),
        ]
    return [node]


def _date_part(node: Any) -> tuple[str, str, int] | None:
    """Return (column, unit, number) of ``EXTRACT(YEAR FROM x) = 2023``, ``YEAR(x) = 2023``."""
    if not isinstance(node, exp.EQ) or not isinstance(node.expression, exp.Literal):
        return None
    function, number = node.this, node.expression.name
    if isinstance(function, exp.Cast):
        function = function.this
    unit = ""
    if isinstance(function, exp.Extract):
        unit, column = function.name.upper(), function.expression
    elif isinstance(function, exp.Year | exp.Month | exp.Quarter):
        unit, column = type(function).__name__.upper(), function.this
    else:
        return None
    while isinstance(column, exp.Cast | exp.TsOrDsToDate | exp.Paren):
        column = column.this
    if unit not in _UNITS or not isinstance(column, exp.Column) or not number.isdigit():
        return None
    return f"{column.table}.{column.name}".lower(), unit, int(number)


_FORMS = {"%Y-%m": r"(\d{4})-(\d\d)", "%Y": r"(\d{4})", "%Y%m": r"(\d{4})(\d\d)"}


def _named_period(node: Any) -> tuple[str, dict[str, int]] | None:
    """Return (column, parts) of ``strftime(x, '%Y-%m') = '2025-05'`` and ``date_trunc('month', x) = d``."""
    if not isinstance(node, exp.EQ):
        return None
    function = node.this
    column = (
        function.this if isinstance(function, exp.TimeToStr | exp.DateTrunc | exp.TimestampTrunc) else None
    )
    while isinstance(column, exp.Cast | exp.TsOrDsToTimestamp | exp.TsOrDsToDate | exp.Paren):
        column = column.this
    if not isinstance(column, exp.Column):
        return None
    name = f"{column.table}.{column.name}".lower()
    if isinstance(function, exp.TimeToStr):
        form = function.args.get("format")
        match = re.fullmatch(_FORMS.get(form.name if form is not None else "", "(?!)"), node.expression.name)
        if match is None:
            return None
        return name, {"YEAR": int(match[1]), **({"MONTH": int(match[2])} if match.lastindex == 2 else {})}
    start, unit = _moment(node.expression), str(function.args["unit"].name).upper()
    if start is None or unit not in _UNITS or _truncated(start, unit) != start:
        return None
    parts = {"YEAR": start.year}
    if unit == "MONTH":
        parts["MONTH"] = start.month
    if unit == "QUARTER":
        parts["QUARTER"] = (start.month + 2) // 3
    return name, parts


def _period(column: str, parts: dict[str, int]) -> list[Bound]:
    """Return the range of days of a year, or of a quarter or month in it."""
    if "YEAR" not in parts:
        return [Bound(f"{unit}({column}) = {number}", column) for unit, number in sorted(parts.items())]
    first, months = 1, 12
    if "QUARTER" in parts:
        first, months = 3 * parts["QUARTER"] - 2, 3
    if "MONTH" in parts:
        first, months = parts["MONTH"], 1
    start = datetime.date(parts["YEAR"], first, 1)
    end = _months_on(start, months)
    return [Bound(f"{column} >= '{start}'", column), Bound(f"{column} < '{end}'", column)]


def _months_on(day: datetime.date, months: int) -> datetime.date:
    number = day.year * 12 + day.month - 1 + months
    return datetime.date(number // 12, number % 12 + 1, 1)


def _bounds(node: Any, is_day: Callable[[str], bool]) -> list[Bound]:
    name = type(node).__name__
    if name in _SIGNS:
        return _comparison(node, name, is_day)
    if isinstance(node, exp.Boolean) and node.this:
        return []
    if isinstance(node, exp.Or):
        return [_disjunction(node, is_day)]
    if isinstance(node, exp.In) and node.expressions:
        return [_members(node.this, node.expressions)]
    if isinstance(node, exp.Like | exp.ILike):
        return [_pattern(node)]
    if isinstance(node, exp.RegexpLike):
        expression = node.expression
        if isinstance(expression, exp.Literal):
            bare = re.sub(r"^\((.*)\)$", r"\1", expression.name)
            return [Bound(f"{_shown(node.this)} matches '{bare}'", _column(node))]
    return [Bound(_shown(node), _column(node))]


def _comparison(node: Any, name: str, is_day: Callable[[str], bool]) -> list[Bound]:
    left, right = node.this, node.expression
    if left.find(exp.Column) is None and right.find(exp.Column) is not None:
        left, right, name = right, left, _FLIPPED[name]
    while isinstance(left, exp.Paren):
        left = left.this
    column = _column(node)
    if isinstance(right, exp.Boolean):
        wanted = right.this == (name == "EQ")
        return [Bound(_shown(left) if wanted else f"NOT {_shown(left)}", column)]
    value = _constant(right)
    is_plain = isinstance(left, exp.Column)
    if (
        isinstance(left, exp.Cast)
        and isinstance(left.this, exp.Column)
        and isinstance(value, datetime.datetime)
    ):
        if name == "EQ" and left.to.this == exp.DataType.Type.DATE:
            low, high = value, value + datetime.timedelta(days=1)
            return [_bound(left.this, "GTE", low, column), _bound(left.this, "LT", high, column)]
        left, is_plain = left.this, True
    if isinstance(value, datetime.datetime) and is_plain and is_day(column) and name in ("LTE", "GT"):
        name, value = ("LT" if name == "LTE" else "GTE"), _day_after(value)
    if value is not None:
        return [_bound(left, name, value, column)]
    return [Bound(f"{_shown(left)} {_SIGNS[name]} {_shown(right)}", column)]


def _day_after(moment: datetime.datetime) -> datetime.datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0) + datetime.timedelta(days=1)


def _bound(left: Any, name: str, value: Any, column: str) -> Bound:
    shown = value
    if isinstance(value, datetime.datetime):
        text = value.isoformat(sep=" ")
        shown = f"'{text.removesuffix(' 00:00:00')}'"
    return Bound(f"{_shown(left)} {_SIGNS[name]} {shown}", column)


def _disjunction(node: Any, is_day: Callable[[str], bool]) -> Bound:
    sides = [_unwrapped(side) for side in _alternatives(node)]
    equal = [side for side in sides if isinstance(side, exp.EQ)]
    same = {_shown(side.this) for side in equal}
    if len(equal) == len(sides) and len(same) == 1:
        return _members(equal[0].this, [side.expression for side in equal])
    texts = sorted(
        " AND ".join(b.text for piece in _pieces(side) for b in _bounds(piece, is_day)) for side in sides
    )
    return Bound(" OR ".join(texts), _column(node))


def _alternatives(node: Any) -> list[Any]:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Or):
        return [*_alternatives(node.this), *_alternatives(node.expression)]
    return [node]


def _members(left: Any, values: Sequence[Any]) -> Bound:
    shown = sorted({_shown(value) for value in values})
    column = _column(left)
    if len(shown) == 1:
        return Bound(f"{_shown(left)} = {shown[0]}", column)
    return Bound(f"{_shown(left)} IN ({', '.join(shown)})", column)


def _pattern(node: Any) -> Bound:
    left, right = node.this, node.expression
    word = "ILIKE" if isinstance(node, exp.ILike) else "LIKE"
    if isinstance(left, exp.Lower | exp.Upper) and isinstance(right, exp.Literal):
        left, word = left.this, "ILIKE"
    if word == "ILIKE" and isinstance(right, exp.Literal):
        right = exp.Literal.string(right.name.lower())
    return Bound(f"{_shown(left)} {word} {_shown(right)}", _column(node))


def _column(node: Any) -> str:
    names = {f"{column.table}.{column.name}".lower() for column in node.find_all(exp.Column)}
    return min(names) if names else ""


def _shown(node: Any) -> str:
    if isinstance(node, exp.Column):
        return f"{node.table}.{node.name}".lower().lstrip(".")
    value = _constant(node) if not isinstance(node, exp.Literal) else None
    if isinstance(value, datetime.datetime):
        return f"'{value.isoformat(sep=' ').removesuffix(' 00:00:00')}'"
    return re.sub(r"\s+NULLS (FIRST|LAST)", "", str(node.sql(dialect="duckdb")))


def _constant(node: Any) -> Any:
    """Return a moment for an expression over dates, else its text for a literal (``None``: no constant)."""
    if node.find(exp.Column) is not None or node.find(exp.Query) is not None:
        return None
    moment = _moment(node)
    if moment is not None:
        return moment
    return node.sql(dialect="duckdb") if isinstance(node, exp.Literal | exp.Neg) else None


def _moment(node: Any) -> datetime.datetime | None:
    while isinstance(node, exp.Paren | exp.TsOrDsToDate):
        node = node.this
    if isinstance(node, exp.Cast):
        return _moment(node.this)
    if isinstance(node, exp.Literal):
        return _read(node.name) if node.is_string else None
    if isinstance(node, exp.Add | exp.Sub):
        base, step = _moment(node.this), node.expression
        return _shifted(base, step, -1 if isinstance(node, exp.Sub) else 1) if base is not None else None
    if isinstance(node, exp.DateTrunc | exp.TimestampTrunc):
        base = _moment(node.this)
        return _truncated(base, str(node.args["unit"].name).upper()) if base is not None else None
    return None


def _read(text: str) -> datetime.datetime | None:
    if not re.match(r"\d{4}-\d\d-\d\d", text):
        return None
    try:
        return datetime.datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        return None


def _shifted(base: datetime.datetime, step: Any, sign: int) -> datetime.datetime | None:
    if not isinstance(step, exp.Interval) or step.this is None:
        return None
    match = re.fullmatch(r"\s*+(-?\d++)\s*+(\w++)?\s*+", step.this.name)
    unit = (
        str(step.args["unit"].name) if step.args.get("unit") else (match[2] if match else "") or ""
    ).upper()
    unit = unit.removesuffix("S")
    if match is None:
        return None
    number = sign * int(match[1])
    if unit in _UNITS:
        first = _months_on(base.date().replace(day=1), number * _UNITS[unit])
        last = (_months_on(first, 1) - datetime.timedelta(days=1)).day
        return datetime.datetime.combine(first.replace(day=min(base.day, last)), base.time())
    days = {"DAY": 1.0, "WEEK": 7.0, "HOUR": 1 / 24, "MINUTE": 1 / 1440, "SECOND": 1 / 86400}.get(unit)
    return None if days is None else base + number * datetime.timedelta(days=days)


def _truncated(base: datetime.datetime, unit: str) -> datetime.datetime | None:
    day = base.replace(hour=0, minute=0, second=0, microsecond=0)
    starts = {
        "DAY": day,
        "WEEK": day - datetime.timedelta(days=day.weekday()),
        "MONTH": day.replace(day=1),
        "QUARTER": day.replace(month=3 * ((day.month - 1) // 3) + 1, day=1),
        "YEAR": day.replace(month=1, day=1),
    }
    return starts.get(unit.removeprefix("'").removesuffix("'"))
