"""What the comparison asks of an engine, and what both engines share.

Two engines answer: ``PythonEngine`` for small tables (no array library is loaded) and
``ArrayEngine`` for large ones. Whoever compares or explains knows this protocol alone, so that
either engine can stand for the other, and each is the other's oracle in the tests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pytest_agenteval.compare.options import ColumnOptions, ComparisonOptions
from pytest_agenteval.compare.values.cells import ColumnReading, is_infinite
from pytest_agenteval.compare.values.sql_types import Kind, kind_of, kind_of_values
from pytest_agenteval.table import Table

if TYPE_CHECKING:
    from pytest_agenteval.compare.columns import ColumnMap
    from pytest_agenteval.compare.diagnosis.context import DiagnosisContext

Mapping = Sequence[tuple[int, int]]
"""(expected index, answered index) of columns."""
Assignment = tuple[list[tuple[int, int]] | None, bool]
"""What a search by value found (``None``: nothing), and whether it was cut short."""


class RowNumbers(Protocol):
    """Row numbers from 0: a list or a range of the plain engine, an array of the other."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...

    def __getitem__(self, index: Any, /) -> Any: ...


class RowPairing(Protocol):
    """Which rows belong together, as far as what is left without a partner."""

    @property
    def matched(self) -> bool:
        """Whether every row of either side has its partner."""
        ...

    @property
    def exhausted(self) -> bool:
        """Whether the work was given up at its bound."""
        ...

    @property
    def unmatched_expected(self) -> RowNumbers:
        """Expected rows without a partner."""
        ...

    @property
    def unmatched_actual(self) -> RowNumbers:
        """Answered rows without a partner."""
        ...


C = TypeVar("C")
P = TypeVar("P", bound=RowPairing)


class ComparisonEngine(Protocol[C, P]):
    """Two tables under options; ``C`` is a column pair as read, ``P`` a pairing of rows."""

    expected: Table
    actual: Table
    options: ComparisonOptions
    rows: tuple[int, int]

    def kind(self, index: int) -> Kind:
        """Return the kind of an expected column."""
        ...

    def column(self, e: int, a: int) -> C:
        """Return expected column ``e`` and answered column ``a``, both read as ``e`` says."""
        ...

    def reading(self, e: int, a: int) -> ColumnReading:
        """Return how the two columns were read."""
        ...

    def pair(self, mapping: Mapping) -> P:
        """Pair the rows on these columns, as a bag or as a set."""
        ...

    def pair_runs(self, mapping: Mapping, runs: Sequence[range]) -> P:
        """Pair the rows on these columns as a list in which each run is a bag."""
        ...

    def first_rows(self, mapping: Mapping, expected: bool) -> list[int]:
        """Return the first of all rows of a side that hold the same in these columns."""
        ...

    def run_starts(self, expected_indexes: Sequence[int]) -> list[int]:
        """Return where runs of equal sort keys begin in the expected table."""
        ...

    def alike(self, e: int, a: int) -> bool:
        """Return whether two columns may hold the same bag of values."""
        ...

    def candidates(
        self, expected_indexes: Sequence[int], actual_indexes: Sequence[int]
    ) -> dict[int, list[int]]:
        """Return for each expected column the answered ones that may hold the same bag of values."""
        ...

    def agreement(self, e: int, a: int, fixed: Mapping = ()) -> float:
        """Return the share (0 to 1) of rows that agree in ``fixed`` and these two columns, as bags."""
        ...

    def assign(
        self,
        fixed: Mapping,
        expected_indexes: Sequence[int],
        actual_indexes: Sequence[int],
        runs: Sequence[range] | None = None,
    ) -> Assignment:
        """Find answered columns for expected ones by value, under which whole rows agree."""
        ...

    def leniency(self, e: int, a: int, pairing: P) -> tuple[int, int, int]:
        """Count the cells that were close, that were rounded, and rounded ones below 1."""
        ...

    def diagnosis_context(
        self, columns: ColumnMap, runs: Sequence[range] | None, order: Sequence[int] | None
    ) -> DiagnosisContext[C]:
        """Return what the diagnosis asks about a failed comparison."""
        ...


class BaseEngine(ABC, Generic[C]):
    """How columns are read: once, as the expected column of their pair says."""

    def __init__(self, expected: Table, actual: Table, options: ComparisonOptions) -> None:
        self.expected, self.actual, self.options = expected, actual, options
        self.rows = (expected.row_count, actual.row_count)
        self._kinds: dict[int, Kind] = {}
        self._bases: dict[int, ColumnReading] = {}
        self._columns: dict[tuple[int, int], C] = {}
        self._readings: dict[tuple[int, int], ColumnReading] = {}

    def kind(self, index: int) -> Kind:
        """Return the kind of an expected column: its SQL type, else that of its values."""
        if index not in self._kinds:
            known = kind_of(self.expected.columns[index].type)
            self._kinds[index] = known or kind_of_values(self.expected.column(index))
        return self._kinds[index]

    def options_of(self, e: int) -> ColumnOptions:
        """Return the options of expected column ``e``."""
        return self.options.for_column(self.expected.columns[e].name)

    def base_reading(self, e: int) -> ColumnReading:
        """Return how expected column ``e`` is read."""
        if e not in self._bases:
            reading = ColumnReading.of(self.kind(e), self.options_of(e))
            infinite = is_infinite(self.kind(e), self.expected.values[e])
            self._bases[e] = replace(reading, infinite=infinite)
        return self._bases[e]

    def answered_reading(self, reading: ColumnReading, a: int) -> ColumnReading:
        """Return ``reading`` for answered column ``a``: its type says whether it shows 32-bit floats."""
        kind = kind_of(self.actual.columns[a].type)
        # an array of dates holds infinity as such; only a list of Python's dates cannot
        infinite = reading.infinite and isinstance(self.actual.values[a], list)
        return replace(reading, single=kind is not None and kind.name == "single", infinite=infinite)

    def column(self, e: int, a: int) -> C:
        """Return expected column ``e`` and answered column ``a``, both read as ``e`` says."""
        if (e, a) not in self._columns:
            self._columns[e, a], self._readings[e, a] = self._read(e, a)
        return self._columns[e, a]

    def reading(self, e: int, a: int) -> ColumnReading:
        """Return how the two columns were read: which factor percentages were given."""
        self.column(e, a)
        return self._readings[e, a]

    def take_kinds(self, other: BaseEngine[Any], expected_indexes: Sequence[int]) -> None:
        """Reuse the column kinds of the full tables; a sample may not determine them."""
        self._kinds.update({e: other.kind(e) for e in expected_indexes})

    @abstractmethod
    def _read(self, e: int, a: int) -> tuple[C, ColumnReading]: ...
