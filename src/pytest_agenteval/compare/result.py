"""``Comparison``: what a comparison found, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

RowState = Literal["differs", "missing", "extra", "same"]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is wrong: a ``word`` of the contract, a ``sentence`` with the numbers that prove it.

    ``columns`` are the expected columns it is about; ``proof`` holds the numbers.
    """

    word: str
    sentence: str
    columns: tuple[str, ...] = ()
    proof: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """One expected column and the answered one taken for it.

    ``how``: name, alias, position, value, likeness (some values agree; shown, never a match).
    """

    expected: str
    actual: str
    how: str
    type: str | None = None

    @property
    def text(self) -> str:
        """``total_revenue <- revenue (by value)``."""
        if self.expected == self.actual:
            return self.expected
        label = {"name": "by name", "alias": "by alias", "position": "by position", "value": "by value"}
        return f"{self.expected} <- {self.actual} ({label.get(self.how, 'closest by value')})"


@dataclass(frozen=True, slots=True)
class SampleCell:
    """One cell of a sample row: both values as they came and whether they differ."""

    expected: Any
    actual: Any
    differs: bool
    delta: str = ""


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One row of the aligned sample.

    ``state`` is ``differs`` (both rows), ``missing`` (expected only), ``extra`` (answered only),
    or ``same``. Row numbers count from 1; ``cells`` follow ``Comparison.mapping``.
    """

    state: RowState
    expected_row: int | None
    actual_row: int | None
    cells: tuple[SampleCell, ...]


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows on each side, and how many agree, differ (aligned), are missing or extra."""

    expected: int = 0
    actual: int = 0
    equal: int = 0
    differing: int = 0
    missing: int = 0
    extra: int = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict on two tables, and everything there is to say about it.

    ``message`` uses nao's words. ``leniencies`` say which freedom a match needed, ``warnings`` where
    it may hide something, ``notes`` what the reader may want to know. ``sample`` holds at most 50
    aligned rows, ``keys`` the columns (indexes into ``mapping``) that name a row.
    """

    matched: bool
    message: str
    diagnosis: Diagnosis | None = None
    mapping: tuple[MappedColumn, ...] = ()
    missing_columns: tuple[str, ...] = ()
    extra_columns: tuple[str, ...] = ()
    leniencies: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    counts: Counts = Counts()
    sample: tuple[SampleRow, ...] = ()
    keys: tuple[int, ...] = ()
    differing_columns: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the same as strict JSON: no NaN, no value of a driver, at most 50 rows."""
        from pytest_agenteval.compare.jsonable import comparison_json

        return comparison_json(self)
