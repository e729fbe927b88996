"""Diagnoses of one column of numbers or times: rounded, truncated, scaled, shifted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate, product
from typing import Any

from pytest_agenteval.compare.diagnosis.context import PythonDiagnosisContext, number_of, numbers_of
from pytest_agenteval.compare.diagnosis.one_column import MOMENTS, aligned, found
from pytest_agenteval.compare.python_engine.matching import PairedColumn
from pytest_agenteval.compare.result import Diagnosis
from pytest_agenteval.compare.values.cells import NUMBER, Cell
from pytest_agenteval.compare.values.numbers import (
    NO,
    WIDE,
    Number,
    NumberRule,
    as_float,
    numpy_round,
    shortest,
    shown_decimals,
)
from pytest_agenteval.compare.values.temporal import DAY, SECOND
from pytest_agenteval.support.text import counted

FACTORS = tuple(Fraction(f) for f in (100, 1000, 10**6, 10**9, 60, 3600))
_SHORT = Context(prec=40, Emax=999999, Emin=-999999)
LISTED = (*FACTORS, *(1 / f for f in FACTORS))


def finite(cells: Sequence[Cell]) -> list[Number]:
    """The finite numbers among cells."""
    return [n for n in numbers_of(cells) if not (isinstance(n, float) and n in (float("inf"), float("-inf")))]


def mapped(cells: Sequence[Cell], function: Callable[[Number], Number]) -> list[Cell]:
    """Cells with every finite number replaced, as tolerant cells."""
    out: list[Cell] = []
    for cell in cells:
        number = number_of(cell)
        inf = isinstance(number, float) and number in (float("inf"), float("-inf"))
        out.append(cell if number is None or inf else (NUMBER, (function(number),)))
    return out


def _same(number: Number) -> Number:
    return number


def _numeric(scene: PythonDiagnosisContext, position: int) -> PairedColumn | None:
    return scene.paired[position] if scene.kind(position).numeric else None


def _agrees(
    scene: PythonDiagnosisContext,
    position: int,
    function: Callable[[Number], Number],
    rule: NumberRule,
    both: bool = False,
) -> bool:
    column = scene.paired[position]
    expected = mapped(column.expected, function)
    actual = mapped(column.actual, function if both else _same)
    return scene.agrees_with(position, PairedColumn(expected, actual, rule))


EQUAL = NumberRule(rtol=1e-9, atol=0.0, decimals=None)


def _precision(numbers: Sequence[Number]) -> int:
    """Decimals shown at most; below 0 where all are multiples of ten."""
    most = max(map(shown_decimals, numbers), default=0)
    if most or not any(numbers):
        return most
    whole = [str(int(n)) for n in numbers if n and abs(as_float(n)) < 1e15]
    zeros = [len(text) - len(text.rstrip("0")) for text in whole]
    return -min(zeros, default=0)


def rounded(scene: PythonDiagnosisContext, position: int) -> Diagnosis | None:
    """The answer shows fewer decimals than may be lost."""
    return _cut(scene, position, "rounded", (ROUND_HALF_UP, ROUND_HALF_EVEN))


def truncated(scene: PythonDiagnosisContext, position: int) -> Diagnosis | None:
    """The expected value is cut, not rounded; a timestamp lost its time of day."""
    if scene.kind(position).name in MOMENTS:
        return _cut_time(scene, position)
    return _cut(scene, position, "truncated", (ROUND_DOWN, ROUND_FLOOR))


def _cut(scene: PythonDiagnosisContext, position: int, word: str, modes: Sequence[str]) -> Diagnosis | None:
    column = _numeric(scene, position)
    if column is None:
        return None
    xs, ys = finite(column.expected), finite(column.actual)
    places = _precision(ys)
    if not xs or not ys or places >= (most := max(map(shown_decimals, xs))):
        return None
    # 1000 is a multiple of 1,000 and a whole number: the finer of the two is meant where both hold
    finer = [0] * (places < 0 < most) + [places] * (places >= 0 or len(set(xs)) > 2)
    shown = set(map(shortest, ys)) if word == "rounded" else set()
    for mode, places in product(modes, finer):
        cut = {x: _rounded_as(shown, x, places, mode) for x in xs}
        vanish = all(not cut[x] for x in xs if x)
        if vanish and (word == "rounded" or all(abs(as_float(x)) < 0.01 for x in xs)):
            continue
        if word == "rounded" and not any(_beyond_tie(x, places) for x in xs):
            continue
        if _agrees(scene, position, cut.__getitem__, EQUAL):
            how = "rounded" if word == "rounded" else "cut, not rounded,"
            unit = counted(places, "decimal") if places > 0 else f"multiples of {10**-places:,}"
            if not places:
                unit = "whole numbers"
            text = f"`{scene.name(position)}`: {how} to {unit}"
            return found(scene, position, word, text, decimals=places)
    return None


def _rounded_as(shown: set[Decimal], x: Number, places: int, mode: str) -> Decimal:
    """``x`` as the answer shows it: rounded half up, to even or in binary, cell by cell; else by ``mode``."""
    forms = [cut_to(x, places, mode) for mode in (ROUND_HALF_UP, ROUND_HALF_EVEN)]
    size = as_float(x)
    if abs(size) < 1e300:
        forms += [Decimal(repr(numpy_round(size, places))), Decimal(repr(round(size, places)))]
    return next((form for form in forms if form in shown), cut_to(x, places, mode))


def cut_to(x: Number, places: int, mode: str) -> Decimal:
    """``x`` in its shortest form at ``places`` decimals."""
    with localcontext(WIDE):
        return shortest(x).scaleb(places).to_integral_value(mode).scaleb(-places)


def _beyond_tie(x: Number, places: int) -> bool:
    """Whether rounding ``x`` says more than cutting it: it is changed, and is no exact tie."""
    with localcontext(WIDE):
        rest = abs(shortest(x).scaleb(places)) % 1
        return rest not in (0, Decimal("0.5"))


def _cut_time(scene: PythonDiagnosisContext, position: int) -> Diagnosis | None:
    column = scene.paired[position]
    for unit, name in ((1000, "milliseconds"), (SECOND, "seconds"), (60 * SECOND, "minutes"), (DAY, "days")):
        if not all(isinstance(c[0], int) and c[0] % unit == 0 for c in column.actual if c[0] is not None):
            return None
        cut: list[Cell] = [(c[0] - c[0] % unit, ()) if isinstance(c[0], int) else c for c in column.expected]
        if scene.agrees_with(position, PairedColumn(cut, column.actual)):
            text = f"`{scene.name(position)}`: cut to {name}"
            if unit == DAY:
                text = f"`{scene.name(position)}`: the time of day is lost"
            return found(scene, position, "truncated", text, unit=name)
    return None


def scaled(scene: PythonDiagnosisContext, position: int) -> Diagnosis | None:
    """All values are a constant factor times the expected ones."""
    column = _numeric(scene, position)
    if column is None:
        return None
    xs, ys = finite(column.expected), finite(column.actual)
    x, y = (max((abs(as_float(n)) for n in side), default=0.0) for side in (xs, ys))
    if not x or not y or x == float("inf") or y == float("inf"):
        return None
    listed = sorted(LISTED, key=lambda f: abs(as_float(f.numerator) / f.denominator * x / y - 1))
    places = max(map(shown_decimals, ys))
    near = NumberRule(rtol=1e-6, atol=0.0, decimals=places, guard=0.01)
    for factor in listed[:1]:
        if _agrees(scene, position, lambda n, f=factor: _multiplied(n, f), near):  # type: ignore[misc]
            return _scaled(scene, position, str(factor), len(ys))
    if len({n for n in xs if n}) < 2:
        return None
    top, bottom = (max(abs(Fraction(shortest(n))) for n in side) for side in (ys, xs))
    ratio = top / bottom
    exact = scene.kind(position).name == "integer"
    if ratio == 1 or (not exact and abs(ratio - 1) < 1e-4):
        return None
    rule = NumberRule(0.0 if exact else 1e-6, 0.0, None)
    if _agrees(scene, position, lambda n: _multiplied(n, ratio), rule):
        size = _SHORT.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
        shown = f"{as_float(size):.6g}" if abs(size.adjusted()) < 300 else f"{size:.2e}"
        return _scaled(scene, position, shown, len(ys))
    return None


def _multiplied(number: Number, factor: Fraction) -> Number:
    with localcontext(WIDE):
        value = shortest(number) * factor.numerator
        if factor.denominator in (1, 100, 1000, 10**6, 10**9):
            return value.scaleb(1 - len(str(factor.denominator)))
        if value % factor.denominator == 0:
            return value / factor.denominator
    return as_float(_SHORT.divide(value, Decimal(factor.denominator)))


def _scaled(scene: PythonDiagnosisContext, position: int, factor: str, count: int) -> Diagnosis:
    if factor.isdigit():
        factor = f"{int(factor):,}"
    amount = f"{factor} times" if "/" not in factor else f"{factor} of"
    many = f"all {count:,} values are" if count > 1 else "the value is"
    text = f"`{scene.name(position)}`: {many} {amount} the expected"
    return found(scene, position, "scaled", text, factor=factor)


def sign(scene: PythonDiagnosisContext, position: int) -> Diagnosis | None:
    """Values with the other sign."""
    column = _numeric(scene, position)
    if column is None:
        return None

    def undo(cell: Cell) -> Cell:
        number = number_of(cell)
        if number is None:
            return cell
        size: Number = -number if number < 0 else number
        return (NUMBER, (size,)) if cell[1] else (size, ())

    both = PairedColumn([undo(c) for c in column.expected], [undo(c) for c in column.actual], column.rule)
    if not scene.agrees_with(position, both):
        return None
    return found(scene, position, "sign", f"`{scene.name(position)}`: the sign differs")


def cumulative(scene: PythonDiagnosisContext, position: int) -> Diagnosis | None:
    """A running sum where single values are expected, or the other way round."""
    column = _numeric(scene, position)
    if column is None or scene.expected_rows != scene.actual_rows or scene.expected_rows < 2:
        return None
    pairs = (
        aligned(scene, position) if len(scene.paired) > 1 else [(i, i) for i in range(scene.expected_rows)]
    )
    xs = [number_of(column.expected[e]) for e, _ in pairs]
    ys = [number_of(column.actual[a]) for _, a in pairs]
    if len(pairs) != scene.expected_rows or None in xs or None in ys:
        return None
    singles, sums = [as_float(x or 0) for x in xs], [as_float(y or 0) for y in ys]
    for order in _orders(scene, position, pairs):
        if _runs_up([singles[i] for i in order], [sums[i] for i in order]):
            text = f"`{scene.name(position)}`: running sums where single values are expected"
            return found(scene, position, "cumulative", text)
        if _runs_up([sums[i] for i in order], [singles[i] for i in order]):
            text = f"`{scene.name(position)}`: single values where running sums are expected"
            return found(scene, position, "cumulative", text)
    return None


def _orders(scene: PythonDiagnosisContext, position: int, pairs: list[tuple[int, int]]) -> list[list[int]]:
    """The orders a running sum may follow: either table's rows, or any other column."""
    orders = [
        sorted(range(len(pairs)), key=lambda i: pairs[i][0]),
        sorted(range(len(pairs)), key=lambda i: pairs[i][1]),
    ]
    for other, column in enumerate(scene.paired):
        if other == position:
            continue
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


def column_offset(scene: PythonDiagnosisContext, position: int) -> Diagnosis | None:
    """All values are off by the same amount."""
    column = _numeric(scene, position)
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
        scene, position, lambda n: shortest(n) + gap, NumberRule(min(rule.rtol, 1e-6), rule.atol, None)
    ):
        return None
    text = f"`{scene.name(position)}`: all {len(ys):,} values are off by {gap.normalize():+f}"
    return found(scene, position, "column_offset", text, offset=str(gap))


def date_shift(scene: PythonDiagnosisContext, position: int) -> Diagnosis | None:
    """All dates are off by the same number of whole days."""
    gap = _shift(scene, position)
    if not gap or gap % DAY:
        return None
    days = gap // DAY
    text = f"`{scene.name(position)}`: every date is off by {days:+,} {'day' if abs(days) == 1 else 'days'}"
    return found(scene, position, "date_shift", text, days=days)


def timezone_shift(scene: PythonDiagnosisContext, position: int) -> Diagnosis | None:
    """All times are off by the same quarter hours, at most 14 hours."""
    gap = _shift(scene, position)
    if not gap or gap % (900 * SECOND) or abs(gap) > 14 * 3600 * SECOND:
        return None
    hours = gap / (3600 * SECOND)
    text = f"`{scene.name(position)}`: every time is off by {hours:+g} h: another time zone"
    return found(scene, position, "timezone_shift", text, hours=hours)


def _shift(scene: PythonDiagnosisContext, position: int) -> int | None:
    """The one shift (microseconds) that makes a column of dates or timestamps match."""
    if scene.kind(position).name not in MOMENTS:
        return None
    column = scene.paired[position]
    xs, ys = ([c[0] for c in side if isinstance(c[0], int)] for side in (column.expected, column.actual))
    if not xs or not ys:
        return None
    gap = min(ys) - min(xs)
    moved: list[Cell] = [(c[0] + gap, ()) if isinstance(c[0], int) else c for c in column.expected]
    return gap if gap and scene.agrees_with(position, PairedColumn(moved, column.actual)) else None
