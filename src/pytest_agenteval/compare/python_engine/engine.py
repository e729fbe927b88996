"""The plain engine: reads columns of both tables as Python values and pairs their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pytest_agenteval.compare.engine import Assignment, BaseEngine, Mapping
from pytest_agenteval.compare.json_cells import JSON_LIKE, loosened, texts_of_objects
from pytest_agenteval.compare.options import ComparisonOptions
from pytest_agenteval.compare.python_engine.column_search import assign
from pytest_agenteval.compare.python_engine.matching import (
    PairedColumn,
    Pairing,
    WorkBudget,
    exactly,
    pair_all,
    pair_bag,
    pair_list,
)
from pytest_agenteval.compare.values.cells import Cell, ColumnReading, read_cell
from pytest_agenteval.compare.values.numbers import CLOSE, NO, ROUNDED, NumberRule
from pytest_agenteval.table import Table, arrow_values

if TYPE_CHECKING:
    from pytest_agenteval.compare.columns import ColumnMap
    from pytest_agenteval.compare.diagnosis.context import DiagnosisContext


class PythonEngine(BaseEngine[PairedColumn]):
    """The engine for small tables: Python values, no array library."""

    def __init__(self, expected: Table, actual: Table, options: ComparisonOptions) -> None:
        super().__init__(expected, actual, options)
        self.work = WorkBudget()
        self._raw: dict[tuple[bool, int], list[Any]] = {}
        self._bags: dict[tuple[bool, int, ColumnReading], int] = {}

    def raw(self, expected: bool, index: int) -> list[Any]:
        """Return a column's values as they came."""
        key = (expected, index)
        if key not in self._raw:
            self._raw[key] = (self.expected if expected else self.actual).column(index)
        return self._raw[key]

    def _read(self, e: int, a: int) -> tuple[PairedColumn, ColumnReading]:
        options, reading = self.options_of(e), self.base_reading(e)
        mine, theirs = self.raw(True, e), self.raw(False, a)
        if reading.kind.name == "text":
            mine, theirs = texts_of_objects(mine, theirs)
        expected = [read_cell(value, reading) for value in mine]
        reading = self.answered_reading(reading, a)
        tried = []
        for factor in factors(reading, theirs, options.percent):
            actual = [read_cell(value, factor) for value in theirs]
            column = paired(expected, actual, reading, options)
            size = len(expected)
            pairing = pair_bag([column], range(size), range(len(actual)), size, self.work)
            tried.append((column, replace(factor)))
            if pairing.matched:
                return column, factor
        if len(tried) == 1:
            return tried[0]
        return max(tried, key=lambda entry: self._hits(entry[0]))

    def _hits(self, column: PairedColumn) -> int:
        size = len(column.expected)
        return size - len(
            pair_bag([column], range(size), range(len(column.actual)), size, self.work).unmatched_expected
        )

    def pair(self, mapping: Mapping) -> Pairing:
        """Pair the rows on these columns, as a bag or as a set."""
        columns = [self.column(e, a) for e, a in mapping]
        return pair_all(columns, self.options, *self.rows, self.work)

    def pair_runs(self, mapping: Mapping, runs: Sequence[range]) -> Pairing:
        """Pair the rows on these columns as a list in which each run is a bag."""
        columns = [self.column(e, a) for e, a in mapping]
        return pair_list(columns, runs, self.rows[1], self.rows[0], self.work)

    def first_rows(self, mapping: Mapping, expected: bool) -> list[int]:
        """Return the first of all rows that hold the same in these columns (numbers exactly), in order."""
        columns = [self.column(e, a) for e, a in mapping]
        sides = [column.expected if expected else column.actual for column in columns]
        first: dict[Any, int] = {}
        for row in range((self.expected if expected else self.actual).row_count):
            first.setdefault(tuple([exactly(side[row]) for side in sides]), row)
        return list(first.values())

    def run_starts(self, expected_indexes: Sequence[int]) -> list[int]:
        """Return where runs of equal sort keys begin in the expected table."""
        sides = [
            [read_cell(value, self.base_reading(e)) for value in self.raw(True, e)] for e in expected_indexes
        ]
        rows = range(self.expected.row_count)
        return [row for row in rows if not row or any(side[row] != side[row - 1] for side in sides)]

    def alike(self, e: int, a: int) -> bool:
        """Return whether the two columns hold the same bag of values."""
        options = self.options_of(e)
        quick = options.percent == "strict" and self.options.duplicates == "bag"
        quick = quick and self.kind(e).name not in JSON_LIKE
        if quick and self._bag(True, e, e) != self._bag(False, a, e):
            numeric = self.kind(e).numeric or self.kind(e).name == "text"
            if not numeric or not self._special(a):
                return False
        return self.pair([(e, a)]).matched

    def _bag(self, expected: bool, index: int, e: int) -> int:
        """Return a hash over the exact parts of a column read as expected column ``e`` says."""
        reading = self.base_reading(e)
        key = (expected, index, reading)
        if key not in self._bags:
            cells = Counter(read_cell(value, reading)[0] for value in self.raw(expected, index))
            self._bags[key] = hash(frozenset(cells.items()))
        return self._bags[key]

    def _special(self, a: int) -> bool:
        """Return whether an answered column holds values whose reading depends on the expected ones."""
        return any(
            isinstance(value, (dict, list)) or (isinstance(value, str) and "%" in value)
            for value in self.raw(False, a)
        )

    def assign(
        self,
        fixed: Mapping,
        expected_indexes: Sequence[int],
        actual_indexes: Sequence[int],
        runs: Sequence[range] | None = None,
    ) -> Assignment:
        """Find answered columns for expected ones by value, under which whole rows agree.

        Raises ``TooMuchWork`` where the columns look too much alike: that is for arrays.
        """
        return assign(self, fixed, expected_indexes, actual_indexes, runs)

    def diagnosis_context(
        self, columns: ColumnMap, runs: Sequence[range] | None, order: Sequence[int] | None
    ) -> DiagnosisContext[PairedColumn]:
        """Return what the diagnosis asks about a failed comparison."""
        from pytest_agenteval.compare.python_engine.context import PythonDiagnosisContext

        return PythonDiagnosisContext(self, self.options, columns, runs, order)

    def leniency(self, e: int, a: int, pairing: Pairing) -> tuple[int, int, int]:
        """Return cells of a matched column that were close, that were rounded, and rounded ones below 1."""
        column = self.column(e, a)
        close = rounded = small = 0
        partners: list[int] = pairing.partner if column.rule else []
        for row, partner in enumerate(partners):
            grade = column.grade(row, partner) if partner >= 0 else NO
            close += grade == CLOSE
            rounded += grade == ROUNDED
            small += grade == ROUNDED and any(-1 < x < 1 for x in column.expected[row][1])
        return close, rounded, small

    def agreement(self, e: int, a: int, fixed: Mapping = ()) -> float:
        """Return the share (0 to 1) of rows that agree in ``fixed`` and these two columns, as bags."""
        sizes = self.rows
        rows = max(min(sizes), min(2, max(sizes)), 1)
        columns = [self.column(*pair) for pair in (*fixed, (e, a))]
        found = pair_bag(columns, range(sizes[0]), range(sizes[1]), sizes[0], self.work)
        return (sizes[0] - len(found.unmatched_expected)) / rows

    def candidates(
        self, expected_indexes: Sequence[int], actual_indexes: Sequence[int]
    ) -> dict[int, list[int]]:
        """Return for each expected column the answered ones that hold the same bag of values."""
        return {e: [a for a in actual_indexes if self.alike(e, a)] for e in expected_indexes}


def paired(
    expected: Sequence[Cell], actual: Sequence[Cell], reading: ColumnReading, options: Any
) -> PairedColumn:
    """Return the two columns with the number rule that their values call for."""
    if reading.kind.name in JSON_LIKE:
        expected, actual = loosened(expected, actual)
    if not reading.tolerant:
        return PairedColumn(expected, actual)
    xs = [number for _, numbers in expected for number in numbers]
    ys = [number for _, numbers in actual for number in numbers]
    rule = NumberRule.of(options, xs, ys, integer=reading.kind.name == "integer")
    return PairedColumn(expected, actual, rule)


def factors(reading: ColumnReading, values: Any, percent: str) -> list[ColumnReading]:
    """Return the readings to try, the likeliest first: cells with %, then the whole column's factor."""
    if not reading.kind.numeric:
        return [reading]
    cells = [Decimal("0.01")]
    if has_percent(values):
        cells.append(Decimal(1))
    wholes = [Decimal(1)]
    if percent == "either" and reading.kind.tolerant:
        wholes += [Decimal(100), Decimal("0.01")]
    return [replace(reading, percent=cell, factor=whole) for whole in wholes for cell in cells]


def has_percent(values: Any) -> bool:
    """Return whether a column (a list, a NumPy or an Arrow array) holds text with a percent sign."""
    if hasattr(values, "dtype") and values.dtype.kind in "iufb":
        return False
    if hasattr(values, "type") and hasattr(values, "to_pylist"):
        if not str(values.type).startswith(("string", "large_string", "dictionary")):
            return False
        values = arrow_values(values)
    if isinstance(values, list) and not any(issubclass(kind, str) for kind in set(map(type, values))):
        return False
    return any(isinstance(value, str) and "%" in value for value in values)
