"""Diagnoses of one column of numbers or times: rounded, truncated, scaled, shifted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate, product
from typing import Any

from pytest_agenteval.compare.diagnosis.column_context import ColumnContext
from pytest_agenteval.compare.diagnosis.context import number_of, numbers_of
from pytest_agenteval.compare.diagnosis.one_column import found
from pytest_agenteval.compare.fitting import MOMENTS
from pytest_agenteval.compare.python_engine.matching import PairedColumn
from pytest_agenteval.compare.result import Diagnosis
from pytest_agenteval.compare.values.cells import NUMBER, Cell
from pytest_agenteval.compare.values.numbers import (
    NO,
    WIDE,
    Number,
    NumberRule,
    as_float,
    shortest,
    shown_decimals,
)
from pytest_agenteval.compare.values.temporal import DAY, SECOND
from pytest_agenteval.support.text import counted

FACTORS = tuple(Fraction(f) for f in (100, 1000, 10**6, 10**9, 60, 3600))
_SHORT = Context(prec=40, Emax=999999, Emin=-999999)
LISTED = (*FACTORS, *(1 / f for f in FACTORS))


def finite(cells: Sequence[Cell]) -> list[Number]:
    """Return the finite numbers among cells."""
    return [n for n in numbers_of(cells) if not (isinstance(n, float) and n in (float("inf"), float("-inf")))]


def mapped(cells: Sequence[Cell], function: Callable[[Number], Number]) -> list[Cell]:
    """Return cells with every finite number replaced, as tolerant cells."""
    out: list[Cell] = []
    for cell in cells:
        number = number_of(cell)
        inf = isinstance(number, float) and number in (float("inf"), float("-inf"))
        out.append(cell if number is None or inf else (NUMBER, (function(number),)))
    return out


def _same(number: Number) -> Number:
    return number


def _numeric(context: ColumnContext, position: int) -> PairedColumn | None:
    return context.cells(position) if context.kind(position).numeric else None


def _agrees(
    context: ColumnContext,
    position: int,
    function: Callable[[Number], Number],
    rule: NumberRule,
    both: bool = False,
) -> bool:
    column = context.cells(position)
    expected = mapped(column.expected, function)
    actual = mapped(column.actual, function if both else _same)
    return context.agrees_with(position, PairedColumn(expected, actual, rule))


EQUAL = NumberRule(rtol=1e-9, atol=0.0, decimals=None)


def _precision(numbers: Sequence[Number]) -> int:
    """Return the decimals shown at most; below 0 where all are multiples of ten."""
    most = max(map(shown_decimals, numbers), default=0)
    if most or not any(numbers):
        return most
    whole = [str(int(n)) for n in numbers if n and abs(as_float(n)) < 1e15]
    zeros = [len(text) - len(text.rstrip("0")) for text in whole]
    return -min(zeros, default=0)


def rounded(context: ColumnContext, position: int) -> Diagnosis | None:
    """Diagnose an answer that shows fewer decimals than may be lost."""
    return _cut(context, position, "rounded", (ROUND_HALF_UP,))


def truncated(context: ColumnContext, position: int) -> Diagnosis | None:
    """Diagnose expected values that were cut, not rounded, and timestamps that lost their time of day."""
    if context.kind(position).name in MOMENTS:
        return _cut_time(context, position)
    return _cut(context, position, "truncated", (ROUND_DOWN, ROUND_FLOOR))


def _cut(context: ColumnContext, position: int, word: str, modes: Sequence[str]) -> Diagnosis | None:
    column = _numeric(context, position)
    if column is None:
        return None
    xs, ys = finite(column.expected), finite(column.actual)
    places = _precision(ys)
    if not xs or not ys or places >= (most := max(map(shown_decimals, xs))):
        return None
    # 1000 is a multiple of 1,000 and a whole number: the finer of the two is meant where both hold
    finer = [0] * (places < 0 < most) + [places] * (places >= 0 or len(set(xs)) > 2)
    for mode, places in product(modes, finer):
        cut = {x: cut_to(x, places, mode) for x in xs}
        vanish = all(not cut[x] for x in xs if x)
        if vanish and (word == "rounded" or all(abs(as_float(x)) < 0.01 for x in xs)):
            continue
        if word == "rounded" and not any(_beyond_tie(x, places) for x in xs):
            continue
        # rounded either way at a tie: at most half a unit off, and no finer than the unit
        half = NumberRule(1e-14, 0.5 * 10.0**-places, None)
        undone = (_same, half) if word == "rounded" else (cut.__getitem__, EQUAL)
        if _agrees(context, position, *undone) and not (
            word == "rounded" and _cut_only(context, position, places)
        ):
            how = "rounded" if word == "rounded" else "cut, not rounded,"
            unit = counted(places, "decimal") if places > 0 else f"multiples of {10**-places:,}"
            if not places:
                unit = "whole numbers"
            text = f"`{context.name(position)}`: {how} to {unit}"
            return found(context, position, word, text, decimals=places)
    return None


def _cut_only(context: ColumnContext, position: int, places: int) -> bool:
    """Return whether values that rounding explains (ties either way) are rather cut:
    no one rounding gives them.
    """
    for mode in (ROUND_HALF_UP, ROUND_HALF_EVEN):
        if _agrees(context, position, lambda x, m=mode: cut_to(x, places, m), EQUAL):  # type: ignore[misc]
            return False
    return any(
        _agrees(context, position, lambda x, m=mode: cut_to(x, places, m), EQUAL)  # type: ignore[misc]
        for mode in (ROUND_DOWN, ROUND_FLOOR)
    )


def cut_to(x: Number, places: int, mode: str) -> Decimal:
    """Return ``x`` in its shortest form at ``places`` decimals."""
    with localcontext(WIDE):
        return shortest(x).scaleb(places).to_integral_value(mode).scaleb(-places)


def _beyond_tie(x: Number, places: int) -> bool:
    """Return whether rounding ``x`` says more than cutting it: it is changed, and is not an exact tie."""
    with localcontext(WIDE):
        rest = abs(shortest(x).scaleb(places)) % 1
        return rest not in (0, Decimal("0.5"))


def _cut_time(context: ColumnContext, position: int) -> Diagnosis | None:
    column = context.cells(position)
    for unit, name in ((1000, "milliseconds"), (SECOND, "seconds"), (60 * SECOND, "minutes"), (DAY, "days")):
        if not all(isinstance(c[0], int) and c[0] % unit == 0 for c in column.actual if c[0] is not None):
            return None
        cut: list[Cell] = [(c[0] - c[0] % unit, ()) if isinstance(c[0], int) else c for c in column.expected]
        if context.agrees_with(position, PairedColumn(cut, column.actual)):
            text = f"`{context.name(position)}`: cut to {name}"
            if unit == DAY:
                text = f"`{context.name(position)}`: the time of day is lost"
            return found(context, position, "truncated", text, unit=name)
    return None


def scaled(context: ColumnContext, position: int) -> Diagnosis | None:
    """Diagnose values that are a constant factor times the expected ones."""
    column = _numeric(context, position)
    if column is None:
        return None
    xs, ys = finite(column.expected), finite(column.actual)
    x, y = (max((abs(as_float(n)) for n in side), default=0.0) for side in (xs, ys))
    if not x or not y or x == float("inf") or y == float("inf"):
        return None
    listed = sorted(LISTED, key=lambda f: abs(as_float(f.numerator) / f.denominator * x / y - 1))
    places = max(map(shown_decimals, ys))
    near = NumberRule(rtol=1e-6, atol=0.0, decimals=places, guard=0.01)
    # a percentage without decimals: at most half a unit off, where units are small beside the values
    half = NumberRule(rtol=1e-9, atol=0.5 * 10.0**-places, decimals=None)
    unit = counted(places, "decimal") if places else "whole numbers"
    factor = listed[0]
    for rule, more in ((near, ""), (half, f", rounded to {unit}")):
        if more and y < 10 * 10.0**-places:
            continue
        if _agrees(context, position, lambda n: _multiplied(n, factor), rule):
            return _scaled(context, position, str(factor), len(ys), more)
    if len({n for n in xs if n}) < 2:
        return None
    top, bottom = (max(abs(Fraction(shortest(n))) for n in side) for side in (ys, xs))
    ratio = top / bottom
    exact = context.kind(position).name == "integer"
    if ratio == 1 or (not exact and abs(ratio - 1) < 1e-4):
        return None
    rule = NumberRule(0.0 if exact else 1e-6, 0.0, None)
    if _agrees(context, position, lambda n: _multiplied(n, ratio), rule):
        size = _SHORT.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
        shown = f"{as_float(size):.6g}" if abs(size.adjusted()) < 300 else f"{size:.2e}"
        return _scaled(context, position, shown, len(ys))
    return None


def _multiplied(number: Number, factor: Fraction) -> Number:
    with localcontext(WIDE):
        value = shortest(number) * factor.numerator
        if factor.denominator in (1, 100, 1000, 10**6, 10**9):
            return value.scaleb(1 - len(str(factor.denominator)))
        if value % factor.denominator == 0:
            return value / factor.denominator
    return as_float(_SHORT.divide(value, Decimal(factor.denominator)))


def _scaled(
    context: ColumnContext, position: int, factor: str, count: int, more: str = ""
) -> Diagnosis | None:
    if factor.isdigit():
        factor = f"{int(factor):,}"
    amount = f"{factor} times" if "/" not in factor else f"{factor} of"
    many = f"all {count:,} values are" if count > 1 else "the value is"
    text = f"`{context.name(position)}`: {many} {amount} the expected{more}"
    return found(context, position, "scaled", text, factor=factor)


def sign(context: ColumnContext, position: int) -> Diagnosis | None:
    """Diagnose values with the other sign."""
    column = _numeric(context, position)
    if column is None:
        return None

    def undo(cell: Cell) -> Cell:
        number = number_of(cell)
        if number is None:
            return cell
        size: Number = -number if number < 0 else number
        return (NUMBER, (size,)) if cell[1] else (size, ())

    both = PairedColumn([undo(c) for c in column.expected], [undo(c) for c in column.actual], column.rule)
    if not context.agrees_with(position, both):
        return None
    return found(context, position, "sign", f"`{context.name(position)}`: the sign differs")


def cumulative(context: ColumnContext, position: int) -> Diagnosis | None:
    """Diagnose a running sum where single values are expected, or the other way round."""
    column = _numeric(context, position)
    if column is None or context.expected_rows != context.actual_rows or context.expected_rows < 2:
        return None
    pairs = context.aligned(position) if context.width > 1 else [(i, i) for i in range(context.expected_rows)]
    xs = [number_of(column.expected[e]) for e, _ in pairs]
    ys = [number_of(column.actual[a]) for _, a in pairs]
    if len(pairs) != context.expected_rows or None in xs or None in ys:
        return None
    singles, sums = [as_float(x or 0) for x in xs], [as_float(y or 0) for y in ys]
    for order in _orders(context, position, pairs):
        if _runs_up([singles[i] for i in order], [sums[i] for i in order]):
            text = f"`{context.name(position)}`: running sums where single values are expected"
            return found(context, position, "cumulative", text)
        if _runs_up([sums[i] for i in order], [singles[i] for i in order]):
            text = f"`{context.name(position)}`: single values where running sums are expected"
            return found(context, position, "cumulative", text)
    return None


def _orders(context: ColumnContext, position: int, pairs: list[tuple[int, int]]) -> list[list[int]]:
    """Return the orders a running sum may follow: either table's rows, or any other column."""
    orders = [
        sorted(range(len(pairs)), key=lambda i: pairs[i][0]),
        sorted(range(len(pairs)), key=lambda i: pairs[i][1]),
    ]
    for other in range(context.width):
        if other == position:
            continue
        column = context.cells(other)
        cells = [column.expected[e] for e, _ in pairs]
        numbers = numbers_of(cells)
        keys: list[Any] = numbers if len(numbers) == len(cells) else [key for key, _ in cells]
        if len(numbers) == len(cells) or all(isinstance(key, str) for key in keys):
            order = sorted(range(len(pairs)), key=keys.__getitem__)
            orders += [order, order[::-1]]
    return orders


def _runs_up(singles: list[float], sums: list[float]) -> bool:
    return all(
        EQUAL.grade(x, y) != NO or abs(x - y) <= 1e-6 * abs(x)
        for x, y in zip(accumulate(singles), sums, strict=True)
    )


def column_offset(context: ColumnContext, position: int) -> Diagnosis | None:
    """Diagnose values that are all off by the same amount."""
    column = _numeric(context, position)
    if column is None:
        return None
    xs, ys = finite(column.expected), finite(column.actual)
    if len(set(xs)) < 2 or not ys:
        return None
    with localcontext(WIDE):
        gap = shortest(min(ys)) - shortest(min(xs))
    if not gap or abs(gap.adjusted()) > 300:
        return None
    rule = column.rule or NumberRule(0.0, 0.0, None)
    if not _agrees(
        context, position, lambda n: shortest(n) + gap, NumberRule(min(rule.rtol, 1e-6), rule.atol, None)
    ):
        return None
    text = f"`{context.name(position)}`: all {len(ys):,} values are off by {gap.normalize():+f}"
    return found(context, position, "column_offset", text, offset=str(gap))


def date_shift(context: ColumnContext, position: int) -> Diagnosis | None:
    """Diagnose dates that are all off by the same number of whole days."""
    gap = _shift(context, position)
    if not gap or gap % DAY:
        return None
    days = gap // DAY
    text = f"`{context.name(position)}`: every date is off by {days:+,} {'day' if abs(days) == 1 else 'days'}"
    return found(context, position, "date_shift", text, days=days)


def timezone_shift(context: ColumnContext, position: int) -> Diagnosis | None:
    """Diagnose times that are all off by the same quarter hours, at most 14 hours."""
    gap = _shift(context, position)
    if not gap or gap % (900 * SECOND) or abs(gap) > 14 * 3600 * SECOND:
        return None
    hours = gap / (3600 * SECOND)
    text = f"`{context.name(position)}`: every time is off by {hours:+g} h: another time zone"
    return found(context, position, "timezone_shift", text, hours=hours)


def _shift(context: ColumnContext, position: int) -> int | None:
    """Return the one shift (microseconds) that makes a column of dates or timestamps match."""
    if context.kind(position).name not in MOMENTS:
        return None
    column = context.cells(position)
    xs, ys = ([c[0] for c in side if isinstance(c[0], int)] for side in (column.expected, column.actual))
    if not xs or not ys:
        return None
    gap = min(ys) - min(xs)
    moved: list[Cell] = [(c[0] + gap, ()) if isinstance(c[0], int) else c for c in column.expected]
    return gap if gap and context.agrees_with(position, PairedColumn(moved, column.actual)) else None
