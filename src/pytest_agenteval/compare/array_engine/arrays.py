"""Columns as arrays: exact parts as integer codes, numbers as floats (with scaled integers for Decimals)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_agenteval.compare.array_engine.text_hashes import TextBytes
from pytest_agenteval.compare.values.numbers import Float32, Number, Whole, shown_decimals

NULL_CLASS, VALUE_CLASS, CODE_CLASS, NUMBER_CLASS, INFINITE_CLASS = 0, 1, 2, 3, 4

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Classes = NDArray[np.uint8]


@dataclass(slots=True)
class ColumnKeys:
    """The exact part of a column: equal cells have equal class and value.

    ``classes`` is ``None`` where every cell is a plain value; ``values`` is ``None`` where no cell
    has one to compare (a column of numbers under tolerance). With ``texts`` the values are hashes of
    them, so equal values are only likely equal.
    """

    classes: Classes | None
    values: Ints | None
    texts: TextBytes | None = None


@dataclass(slots=True)
class ToleranceNumbers:
    """Numbers of one side under tolerance: ``floats`` (rows long), and how to get one exactly.

    ``scaled`` are Decimals times 10^``scale``; ``given`` the Number objects where they were read
    one by one; ``single``: some are 32-bit floats. ``present`` marks the rows that hold a number.
    """

    floats: Floats
    present: NDArray[np.bool_] | None = None
    scaled: Ints | None = None
    scale: int = 0
    given: Sequence[Number | None] | None = None
    single: bool = False
    _shows: dict[int, bool] = field(default_factory=dict)
    _strict: NDArray[np.bool_] | bool | None = None

    def at(self, row: int) -> Number:
        """Return the exact number of a row."""
        if self.given is not None:
            return self.given[row] or 0
        if self.scaled is not None:
            return Decimal(int(self.scaled[row])).scaleb(-self.scale)
        value = float(self.floats[row])
        return Float32(value) if self.single else value

    def all_present(self, held: Any) -> list[Number]:
        """Return the numbers of the rows that ``held`` (a mask or a slice) picks, exactly."""
        if self.given is not None:
            rows = np.arange(len(self.floats))[held]
            return [self.given[row] or 0 for row in rows.tolist()]
        if self.scaled is not None:
            return [Decimal(whole).scaleb(-self.scale) for whole in self.scaled[held].tolist()]
        return list(self.floats[held].tolist())

    @property
    def strict(self) -> NDArray[np.bool_] | None:
        """Which numbers are compared without tolerance; ``None`` where none is."""
        if self.given is None or self._strict is False:
            return None
        if self._strict is None:
            found = np.array([isinstance(self.given[row], Whole) for row in range(len(self.floats))], bool)
            self._strict = found if bool(found.any()) else False
        return None if isinstance(self._strict, bool) else self._strict

    def shows_at_most(self, decimals: int) -> bool:
        """Return whether no number of the column shows more than ``decimals`` decimals."""
        if decimals not in self._shows:
            self._shows[decimals] = self._measure(decimals)
        return self._shows[decimals]

    def _measure(self, decimals: int) -> bool:
        if self.given is not None:
            return all(n is None or shown_decimals(n) <= decimals for n in self.given)
        if self.scaled is not None:
            if decimals >= self.scale:
                return True
            return not bool(np.any(self._present(self.scaled) % 10 ** (self.scale - decimals)))
        return self._floats_show(self._present(self.floats), decimals)

    def _present(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if self.present is None else values[self.present]

    def _floats_show(self, values: Floats, decimals: int) -> bool:
        """Return a double is the nearest one to m / 10^k exactly when scaling and rounding give it back."""
        if decimals > 22:
            return all(shown_decimals(float(value)) <= decimals for value in values)
        for start in (0, 1000):
            part = values[start : 1000 if not start else None]
            with np.errstate(over="ignore", invalid="ignore"):
                whole = np.rint(part * 10.0**decimals)
                back = whole / 10.0**decimals
                if self.single:
                    odd = part[np.float32(back) != np.float32(part)]
                else:
                    odd = part[(back != part) | (np.abs(whole) >= 2.0**53)]
            odd = odd[np.isfinite(odd) & (odd != np.rint(odd))]
            # doubles above 2**53 cannot represent decimals this fine
            if len(odd) and (self.single or np.any(np.abs(odd) * 10.0**decimals < 2.0**53)):
                return False
        return True


def exact_codes(numbers: ToleranceNumbers, rows: NDArray[Any]) -> Ints:
    """Return integers for the numbers of ``rows`` (absent ones too) that are equal where the numbers are."""
    if numbers.given is not None:
        known: dict[Any, int] = {}
        codes = [known.setdefault(numbers.given[row], len(known)) for row in rows.tolist()]
        return np.array(codes, np.int64)
    if numbers.scaled is not None:
        return np.asarray(numbers.scaled[rows], np.int64)
    return np.asarray(bits(numbers)[rows], np.int64)


def bits(numbers: ToleranceNumbers) -> Ints:
    """Return numbers as exact keys: equal ones have equal bits (0.0 and -0.0 too)."""
    return (numbers.floats + 0.0).view(np.int64)


@dataclass(slots=True)
class ArraySide:
    """One side of a column pair: its keys and the numbers of its cells, column by column."""

    keys: ColumnKeys
    numbers: list[ToleranceNumbers]

    def padded(self, count: int, rows: int) -> list[ToleranceNumbers]:
        """Return the numbers of ``rows`` rows, filled up to ``count`` columns in which none is present."""
        missing = range(count - len(self.numbers))
        return [*self.numbers, *(ToleranceNumbers(np.zeros(rows), np.zeros(rows, bool)) for _ in missing)]


@dataclass(slots=True)
class KeyCoder:
    """Codes for keys that are not plain integers, shared by both sides of a column pair."""

    codes: dict[Hashable, int] = field(default_factory=dict)

    def code(self, key: Hashable) -> int:
        """Return the code of a key, the same for equal keys."""
        return self.codes.setdefault(key, len(self.codes))
