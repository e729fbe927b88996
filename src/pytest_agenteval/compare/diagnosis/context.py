"""What the diagnosis looks at: two tables, the column map, the pairing of rows, and questions about them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Generic

from pytest_agenteval.compare.columns import ColumnMap
from pytest_agenteval.compare.diagnosis.column_context import ColumnContext
from pytest_agenteval.compare.engine import C, ComparisonEngine, RowNumbers, RowPairing
from pytest_agenteval.compare.options import ComparisonOptions
from pytest_agenteval.compare.values.canonical import label
from pytest_agenteval.compare.values.cells import NUMBER, Cell, Unreadable, read_cell
from pytest_agenteval.compare.values.numbers import Number, as_float
from pytest_agenteval.compare.values.sql_types import Kind
from pytest_agenteval.support.scalars import is_null, plain
from pytest_agenteval.table import Table, arrow_value

MOST_LABELS = 300
MANY_COLUMNS = 60


class DiagnosisContext(ABC, Generic[C]):
    """One failed comparison: what the diagnosis asks of either engine's tables.

    ``runs`` are the tie runs of an ordered comparison, else ``None``. ``order`` are the expected
    indexes of the sort keys, ``None`` where they are not known. ``unmatched_expected`` are expected
    rows without a partner, ``unmatched_actual`` answered ones, as bags.
    """

    hands_over = False
    """Whether an engine for larger tables takes over where the work becomes too much."""

    def __init__(
        self,
        engine: ComparisonEngine[C, Any],
        options: ComparisonOptions,
        columns: ColumnMap,
        runs: Sequence[range] | None = None,
        order: Sequence[int] | None = None,
    ) -> None:
        self.engine: ComparisonEngine[C, Any] = engine
        self.options, self.columns = options, columns
        self.runs, self.order = runs, order
        self.expected: Table = engine.expected
        self.actual: Table = engine.actual
        self.expected_rows: int = engine.expected.row_count
        self.actual_rows: int = engine.actual.row_count
        self.pairs = list(columns.pairs)
        self.paired: list[C] = [engine.column(e, a) for e, a in self.pairs]
        self.key: Any = ...  # the positions of a unique key, once they were looked for
        bag = self._paired_rows()
        self.unmatched_expected: RowNumbers = bag.unmatched_expected
        self.unmatched_actual: RowNumbers = bag.unmatched_actual
        self.matched: bool = bag.matched
        self.exhausted: bool = bag.exhausted

    @abstractmethod
    def _paired_rows(self) -> RowPairing:
        """Return all rows paired on all mapped columns, as far as they can be."""
        ...

    def name(self, position: int) -> str:
        """Return the expected name of the mapped column at ``position``."""
        return self.expected.columns[self.pairs[position][0]].name

    def kind(self, position: int) -> Kind:
        """Return the kind of the mapped column at ``position``."""
        kind: Kind = self.engine.kind(self.pairs[position][0])
        return kind

    def value(self, position: int, row: int, expected: bool) -> Any:
        """Return one value of a mapped column as it came."""
        e, a = self.pairs[position]
        data = self.expected.values[e] if expected else self.actual.values[a]
        found = data[row]
        return arrow_value(found) if hasattr(found, "as_py") else plain(found)

    def cell(self, position: int, row: int, expected: bool) -> Cell:
        """Return one cell of a mapped column as it is compared."""
        reading = self.engine.reading(*self.pairs[position])
        return read_cell(self.value(position, row, expected), reading)

    @abstractmethod
    def match(self, columns: Sequence[C]) -> bool:
        """Return whether the tables would match with these columns."""
        ...

    def agrees_without(self, position: int) -> bool:
        """Return whether the tables match when one column is left out: it alone is to blame."""
        return self.match(self.rest(position))

    def rest(self, position: int) -> list[C]:
        """Return all mapped columns but the one at ``position``."""
        return [column for i, column in enumerate(self.paired) if i != position]

    def loose(self) -> tuple[list[int], list[int]]:
        """Return columns on either side that no name, alias or position ties together."""
        free = [(e, a) for e, a in self.pairs if self.columns.how[e] in ("value", "partial_match")]
        return [*(e for e, _ in free), *self.columns.missing], [*(a for _, a in free), *self.columns.extra]

    def labels(self, expected: bool, index: int) -> set[str]:
        """Return the distinct values of a column as headers would show them; none where there are many."""
        table = (self.expected if expected else self.actual).head(10 * MOST_LABELS)
        found = {label(value) for value in map(plain, table.column(index)) if not is_null(value)}
        return found if len(found) <= MOST_LABELS else set()

    @abstractmethod
    def total(self, position: int, expected: bool) -> Number | None:
        """Return the sum of a numeric column; ``None`` where it holds no number but 0."""
        ...

    @abstractmethod
    def unknown(self, rows: RowNumbers, expected: bool) -> bool:
        """Return whether any of ``rows`` of one side has no equal at all on the other side."""
        ...

    @abstractmethod
    def multiplied(self, times: int) -> bool:
        """Return whether the answer is every expected row ``times`` times."""
        ...

    @abstractmethod
    def same_sets(self) -> bool:
        """Return whether both sides hold the same distinct rows."""
        ...

    @abstractmethod
    def distinct(self, expected: bool) -> int:
        """Return how many different rows a side holds (numbers compared exactly)."""
        ...

    @abstractmethod
    def list_match(self, expected_part: RowNumbers, actual_part: RowNumbers) -> bool:
        """Return whether these rows match as a list, ties of the sort keys free."""
        ...

    @abstractmethod
    def bag_match(self, expected_part: RowNumbers, actual_part: RowNumbers) -> bool:
        """Return whether these rows match as a bag."""
        ...

    @abstractmethod
    def without_nulls(self, expected: bool) -> RowNumbers:
        """Return rows of a side none of whose sort keys is NULL."""
        ...

    @abstractmethod
    def before_last(self, expected: bool) -> RowNumbers:
        """Return rows of a side whose sort keys are not those of the last expected row."""
        ...

    @abstractmethod
    def differ(self, position: int, pairs: Sequence[tuple[int, int]]) -> list[bool]:
        """Return which of the row pairs differ in a column."""
        ...

    @abstractmethod
    def moved(self) -> list[int]:
        """Return rows that differ from the row at the same place (both sides have as many)."""
        ...

    def suspects(self, alignment: Any) -> list[int]:
        """Return columns that may be to blame alone, found cheaply."""
        return list(range(len(self.pairs)))

    def swaps(self, alignment: Any) -> list[tuple[int, int]]:
        """Return pairs of columns that may have been exchanged."""
        size = range(len(self.pairs)) if len(self.pairs) <= MANY_COLUMNS else alignment.differing
        return [(i, j) for i in size for j in size if i < j] if len(size) <= MANY_COLUMNS else []

    @abstractmethod
    def join(
        self, positions: Sequence[int], expected_part: RowNumbers, actual_part: RowNumbers
    ) -> list[tuple[int, int]]:
        """Return rows of either side that agree in these columns (which distinguish the rows of each
        side).
        """
        ...

    @abstractmethod
    def unique(self, positions: Sequence[int], expected: bool) -> bool:
        """Return whether these columns (which have no tolerance) distinguish all rows of a side."""
        ...

    @abstractmethod
    def exact(self, position: int) -> bool:
        """Return whether a column is compared without tolerance."""
        ...

    @abstractmethod
    def close_up(self, position: int) -> ColumnContext:
        """Return a part of the tables in which one column can be studied value by value."""
        ...

    @abstractmethod
    def whole(self, position: int) -> ColumnContext | None:
        """Return all rows for the study of one column: what is said of it must hold for all of them.

        ``None`` where they are too many to study: nothing is said then.
        """
        ...


def sum_of(numbers: Sequence[Number]) -> Number | None:
    """Return the sum of numbers; ``None`` where there is none but 0."""
    if not any(numbers):
        return None
    if any(isinstance(number, float) for number in numbers):
        floats = [as_float(number) for number in numbers]
        try:
            return math.fsum(floats)  # the same in whichever order the rows come
        except (OverflowError, ValueError):
            return sum(floats)
    return sum((Decimal(number) for number in numbers), Decimal(0))


def number_of(cell: Cell) -> Number | None:
    """Return the number a cell of a numeric column holds (an infinity too); ``None`` for anything else."""
    key, numbers = cell
    if numbers:
        return numbers[0] if key == NUMBER else None
    return key if isinstance(key, (int, float, Decimal)) and not isinstance(key, bool) else None


def numbers_of(cells: Iterable[Cell]) -> list[Number]:
    """Return the numbers among the cells of a numeric column."""
    return [number for number in map(number_of, cells) if number is not None]


def unreadable(cell: Cell) -> bool:
    """Return whether a cell could not be read as its column's kind."""
    return isinstance(cell[0], Unreadable)


def listed(names: Iterable[str], most: int = 4) -> str:
    """Return ``a``, ``b`` and 3 more, in back quotes."""
    names = list(names)
    shown = ", ".join(f"`{name}`" for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
