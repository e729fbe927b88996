"""The number rule on arrays: decided in floats where that is safe, one by one where it is close."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pytest_agenteval.compare.array_engine.arrays import Floats, ToleranceNumbers
from pytest_agenteval.compare.options import ColumnOptions
from pytest_agenteval.compare.values.numbers import CLOSE, NO, ROUNDED, Number, NumberRule

Rows = NDArray[np.int64]
LeniencyCounts = NDArray[np.uint8]
FINEST = 330
MOST_KNOWN = 50_000


@dataclass(slots=True)
class ArrayNumberRule:
    """``NumberRule`` for the numbers of a whole column pair; what columns show is measured on demand.

    ``differed``: some pair that was graded held two different numbers.
    """

    options: ColumnOptions
    expected: ToleranceNumbers
    actual: ToleranceNumbers
    integer: bool = False
    differed: bool = False
    _rules: dict[int, NumberRule] = field(default_factory=dict)
    _grades: dict[tuple[type, Number, type, Number], int] = field(default_factory=dict)

    @property
    def base(self) -> NumberRule:
        """The rule without rule 2."""
        options = self.options
        decimals = None if self.integer else options.decimals
        significant = None if self.integer else options.significant
        guard = options.rounding_guard if significant is None else None
        return NumberRule(options.rtol, options.atol, decimals, guard, significant)

    @property
    def rounds(self) -> bool:
        """Whether rules 2 and 3 are on."""
        return self.base.decimals is not None or self.base.significant is not None

    @property
    def monotone(self) -> bool:
        """Whether larger numbers accept larger intervals' ends, so that sorting pairs them best."""
        if self.expected.strict is not None:
            return False
        return self.base.significant is None and self.options.rtol <= 1 and (self.base.guard or 0) < 1

    def rule(self, gap: float) -> NumberRule:
        """Return the rule as it acts on differences of ``gap`` and more."""
        base = self.base
        finest = FINEST
        if gap > 0:
            finest = 0 if gap > 1 else min(FINEST, math.floor(-math.log10(2 * gap)) + 1)
        if finest not in self._rules:
            self._rules[finest] = NumberRule(
                base.rtol, base.atol, base.decimals, base.guard, base.significant, self._shown(base, finest)
            )
        return self._rules[finest]

    def _shown(self, base: NumberRule, finest: int) -> tuple[int, ...]:
        """Return the decimals of rule 2, left out where they are too fine to accept the gap."""
        if base.significant is not None:
            return tuple(self._most(side, 0, FINEST) for side in (self.actual, self.expected))
        least = base.decimals or 0
        most = [self._most(side, least, finest) for side in (self.actual, self.expected)]
        return tuple(k for k in dict.fromkeys(most) if k <= finest and not self._vanish(k))

    @staticmethod
    def _most(side: ToleranceNumbers, least: int, finest: int) -> int:
        return next((k for k in range(least, finest + 1) if side.shows_at_most(k)), finest + 1)

    def _vanish(self, decimals: int) -> bool:
        values = self.expected.floats
        if self.expected.present is not None:
            values = values[self.expected.present]
        sizes = np.abs(values[values != 0])
        return bool(np.all(sizes < 0.5 * 10.0**-decimals * (1 - 1e-12)))

    def grade(self, expected_part: Rows, actual_part: Rows, stop: bool = False) -> LeniencyCounts:
        """Return grades of pairs of rows that hold numbers. ``stop``:
        once one is NO, others may be NO too.
        """
        x, y = self.expected.floats[expected_part], self.actual.floats[actual_part]
        grades = np.zeros(len(expected_part), np.uint8)
        unequal = np.flatnonzero(self._unequal(expected_part, actual_part, x, y))
        if not len(unequal):
            return grades
        self.differed = True
        x, y = x[unequal], y[unequal]
        with np.errstate(over="ignore", invalid="ignore"):
            gap = np.abs(x - y)
            tolerance = self.options.atol + self.options.rtol * np.abs(x)
        near = gap <= tolerance
        unsure = np.zeros(len(x), bool)
        if self._exact:
            unsure = np.abs(gap - tolerance) <= 1e-12 * (np.abs(x) + tolerance)
        grades[unequal] = np.where(near, CLOSE, NO)
        todo = np.flatnonzero(unsure | ~near)
        if len(todo):
            part = unequal[todo]
            graded = self._rounding(
                expected_part[part], actual_part[part], x[todo], y[todo], gap[todo], unsure[todo], stop
            )
            grades[part] = graded
        strict = self.expected.strict
        if strict is not None:
            grades[unequal[strict[expected_part[unequal]]]] = NO
        return grades

    def _unequal(self, expected_part: Rows, actual_part: Rows, x: Floats, y: Floats) -> NDArray[np.bool_]:
        """Return where the numbers differ, exactly where both sides hold exact ones."""
        mine, theirs = self.expected, self.actual
        if mine.scaled is not None and theirs.scaled is not None:
            left, right = mine.scaled[expected_part], theirs.scaled[actual_part]
            if mine.scale == theirs.scale:
                return np.asarray(left != right)
            scale = max(mine.scale, theirs.scale)
            one, two = 10 ** (scale - mine.scale), 10 ** (scale - theirs.scale)
            largest = max(int(np.abs(side).max()) if len(side) else 0 for side in (left, right))
            if largest * max(one, two) < 2**62:
                return np.asarray(left * one != right * two)
        unequal = np.asarray(x != y)
        if self._exact:
            for row in np.flatnonzero(~unequal):
                one_number, another = mine.at(int(expected_part[row])), theirs.at(int(actual_part[row]))
                unequal[row] = (
                    one_number != another
                    and not isinstance(one_number, float)
                    and not isinstance(another, float)
                )
        return unequal

    @property
    def _exact(self) -> bool:
        """Whether both sides may hold more digits than a float."""
        return all(side.scaled is not None or side.given is not None for side in (self.expected, self.actual))

    @property
    def _more_than_floats(self) -> bool:
        """Whether a side may hold what is not quite its float."""
        return any(
            side.single or side.scaled is not None or side.given is not None
            for side in (self.expected, self.actual)
        )

    def _rounding(
        self,
        expected_part: Rows,
        actual_part: Rows,
        x: Floats,
        y: Floats,
        gap: Floats,
        unsure: NDArray[np.bool_],
        stop: bool,
    ) -> LeniencyCounts:
        """Return grades of pairs that failed rule 1 (or lie too near its edge to tell)."""
        out = np.full(len(expected_part), NO, np.uint8)
        base = self.base
        open_ = unsure | (gap <= _within(base, x, y)) if self.rounds else unsure
        rows = np.flatnonzero(open_)
        if stop and len(rows) < len(expected_part):
            return out
        if self.rounds:
            decide = self._decide if base.significant is None else self._decide_significant
            rows = decide(rows, x, y, gap, unsure, out)
            if (
                stop
                and len(rows)
                and bool(np.any(out[np.flatnonzero(~np.isin(np.arange(len(expected_part)), rows))] == NO))
            ):
                return out
        if len(rows):
            rule = self.rule(float(gap[rows].min()))
            first, back = self._distinct(x[rows], y[rows])
            grades = np.full(len(first), NO, np.uint8)
            for at, row in enumerate(rows[first].tolist()):
                grades[at] = self._graded(
                    rule, self.expected.at(expected_part[row]), self.actual.at(actual_part[row])
                )
                if stop and grades[at] == NO:
                    break
            out[rows] = grades[back]
        return out

    def _distinct(self, x: Floats, y: Floats) -> tuple[Rows, Rows]:
        """Return the first of equal pairs, and which of these each pair is (all,
        where floats do not tell all).
        """
        if self._more_than_floats:
            return np.arange(len(x)), np.arange(len(x))
        _, first, back = np.unique(x + 1j * y, return_index=True, return_inverse=True)
        return first, back

    def _graded(self, rule: NumberRule, x: Number, y: Number) -> int:
        """Return one pair graded in Decimal: that takes time, and the same numbers come again."""
        key = (type(x), x, type(y), y)
        known = self._grades.get(key)
        if known is None:
            known = rule.grade(x, y)
            if len(self._grades) < MOST_KNOWN:
                self._grades[key] = known
        return known

    def _decide(
        self, rows: Rows, x: Floats, y: Floats, gap: Floats, unsure: NDArray[np.bool_], out: LeniencyCounts
    ) -> Rows:
        """Accept and refuse by rules 2 and 3 what is clear in floats; what is left is too near an edge."""
        sure = rows[~unsure[rows]]
        if not len(sure):
            return rows
        base, d = self.base, gap[sure]
        size = np.maximum(np.abs(x[sure]), np.abs(y[sure]))
        noise = self._noise(size)
        half = 0.5 * 10.0 ** -(base.decimals or 0)
        guarded = np.zeros(len(sure), bool)
        within = np.ones(len(sure), bool)
        if base.guard is not None:
            guarded = d - noise > base.guard * size * (1 + 1e-12)
            within = d + noise <= base.guard * size * (1 - 1e-12)
        with np.errstate(over="ignore", invalid="ignore"):
            slack = 4 * np.spacing(size)
        accepted = within & (d + noise <= half + slack)
        left = ~accepted
        refused = np.zeros(len(sure), bool)
        if bool(left.any()):
            shown = self.rule(float(d[left].min())).shown
            widest = 0.5 * 10.0 ** -min(shown) if shown else -1.0
            accepted |= d + noise <= widest
            refused = ~accepted & guarded & (d - noise > widest)
        out[sure[accepted]] = ROUNDED
        unclear = sure[~accepted & ~refused]
        return np.sort(np.concatenate([unclear, rows[unsure[rows]]]))

    def _noise(self, size: Floats) -> Floats:
        """Return how far the float difference of two numbers may be from that of their shortest forms."""
        with np.errstate(over="ignore", invalid="ignore"):
            return size * 2.0**-23 if self.expected.single or self.actual.single else 2 * np.spacing(size)

    def _decide_significant(
        self, rows: Rows, x: Floats, y: Floats, gap: Floats, unsure: NDArray[np.bool_], out: LeniencyCounts
    ) -> Rows:
        """Return ``_decide`` for significant digits, whose last one goes by the larger number of each
        pair.
        """
        sure = rows[~unsure[rows]]
        base, d, x, y = self.base, gap[sure], x[sure], y[sure]
        size = np.maximum(np.abs(x), np.abs(y))
        with np.errstate(all="ignore"):
            power = np.log10(size)
            whole = np.rint(power)
            edge = (np.abs(power - whole) <= 1e-9) & ((size != 10.0**whole) | self._more_than_floats)
            unit = 10.0 ** (np.where(size >= 10.0**whole, whole, whole - 1) - (base.significant or 0) + 1)
            noise = self._noise(size)
            u, v = x / unit, y / unit
            apart = np.abs(np.rint(u) - np.rint(v)) * unit
            bound = base.atol + base.rtol * np.abs(np.rint(u) * unit)
            clear = np.isfinite(u + v) & ~edge
            even = clear & _clear_of_ties(u, noise / unit) & _clear_of_ties(v, noise / unit)
        accepted = clear & (d + noise <= 0.5 * unit) | even & (apart <= bound * (1 - 1e-9))
        refused = even & ~accepted & (apart > bound * (1 + 1e-9)) & (d - 3 * noise > 0.5 * unit)
        out[sure[accepted]] = ROUNDED
        return np.sort(np.concatenate([sure[~accepted & ~refused], rows[unsure[rows]]]))


def _clear_of_ties(scaled: Floats, noise: Floats) -> NDArray[np.bool_]:
    """Return whether rounding to a whole number gives the same in every mode, and in Decimal."""
    return np.asarray(np.abs(scaled - np.floor(scaled) - 0.5) > 1e-6 + 4 * noise)


def _within(rule: NumberRule, x: Floats, y: Floats) -> Floats:
    """Return how far apart each pair may be at most: ``reach``, and the step of significant digits."""
    far = reach(rule, x)
    if rule.significant is None:
        return far
    with np.errstate(all="ignore"):
        largest = np.maximum(np.abs(x), np.abs(y))
        unit = 10.0 ** (np.floor(np.log10(largest) + 1e-9) - rule.significant + 1)
        step = (unit + rule.atol + rule.rtol * (largest + unit)) * (1 + 1e-9) + 8 * np.spacing(largest)
    return np.where(np.isfinite(step), np.minimum(far, step), far)


def reach(rule: NumberRule, x: Floats) -> Floats:
    """Return ``NumberRule.reach`` on an array."""
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.abs(x)
        near = rule.atol + rule.rtol * size
        if rule.significant is not None:
            near = np.maximum(near, 20 * size * 10.0 ** (1 - rule.significant))
        elif rule.decimals is not None:
            unit = 10.0**-rule.decimals
            near = np.maximum(near, unit + rule.atol + rule.rtol * (size + unit))
        return np.asarray(near * (1 + 1e-9) + 8 * np.spacing(size), np.float64)
