"""What the diagnosis looks at: two tables, the column map, the pairing of rows, and questions about them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from decimal import Decimal
from typing import Any

from pytest_agenteval.compare.columns import ColumnMap
from pytest_agenteval.compare.options import ComparisonOptions
from pytest_agenteval.compare.python_engine.engine import PythonEngine, exactly
from pytest_agenteval.compare.python_engine.matching import (
    PairedColumn,
    Pairing,
    pair_all,
    pair_bag,
    pair_list,
    pair_set,
)
from pytest_agenteval.compare.values.canonical import label
from pytest_agenteval.compare.values.cells import NUMBER, Cell, Unreadable, read_cell
from pytest_agenteval.compare.values.numbers import NO, Number, as_float
from pytest_agenteval.compare.values.sql_types import Kind
from pytest_agenteval.support.scalars import is_null, plain
from pytest_agenteval.table import Table, arrow_value

MOST_LABELS = 300
MANY_COLUMNS = 60


class DiagnosisContext(ABC):
    """One failed comparison: what both the plain and the array scene know.

    ``runs`` are the tie runs of an ordered comparison, else ``None``. ``order`` are the expected
    indexes of the sort keys, ``None`` where they are not known. ``lost`` are expected rows without
    a partner, ``spare`` answered ones, as bags.
    """

    def __init__(
        self,
        engine: Any,
        options: ComparisonOptions,
        columns: ColumnMap,
        runs: Sequence[range] | None = None,
        order: Sequence[int] | None = None,
    ) -> None:
        self.engine, self.options, self.columns = engine, options, columns
        self.runs, self.order = runs, order
        self.expected: Table = engine.expected
        self.actual: Table = engine.actual
        self.expected_rows: int = engine.expected.row_count
        self.actual_rows: int = engine.actual.row_count
        self.pairs = list(columns.pairs)
        self.paired: list[Any] = [engine.column(e, a) for e, a in self.pairs]
        self.scope = ""
        self.key: Any = ...  # the positions of a unique key, once they were looked for
        bag = self._paired_rows()
        self.lost: Sequence[int] = bag.lost
        self.spare: Sequence[int] = bag.spare
        self.matched: bool = bag.matched
        self.exhausted: bool = bag.exhausted

    @abstractmethod
    def _paired_rows(self) -> Any:
        """All rows paired on all mapped columns, as far as they can be."""
        ...

    def name(self, position: int) -> str:
        """The expected name of the mapped column at ``position``."""
        return self.expected.columns[self.pairs[position][0]].name

    def kind(self, position: int) -> Kind:
        """The kind of the mapped column at ``position``."""
        kind: Kind = self.engine.kind(self.pairs[position][0])
        return kind

    def value(self, position: int, row: int, expected: bool) -> Any:
        """One value of a mapped column as it came."""
        e, a = self.pairs[position]
        data = self.expected.values[e] if expected else self.actual.values[a]
        found = data[row]
        return arrow_value(found) if hasattr(found, "as_py") else plain(found)

    def cell(self, position: int, row: int, expected: bool) -> Cell:
        """One cell of a mapped column as it is compared."""
        reading = self.engine.reading(*self.pairs[position])
        return read_cell(self.value(position, row, expected), reading)

    @abstractmethod
    def match(self, columns: Sequence[Any]) -> bool:
        """Whether the tables would match with these columns."""
        ...

    def agrees_without(self, position: int) -> bool:
        """Whether the tables match when one column is left out: it alone is to blame."""
        return self.match(self.rest(position))

    def rest(self, position: int) -> list[Any]:
        """All mapped columns but the one at ``position``."""
        return [column for i, column in enumerate(self.paired) if i != position]

    def loose(self) -> tuple[list[int], list[int]]:
        """Columns on either side that no name, alias or position ties together."""
        free = [(e, a) for e, a in self.pairs if self.columns.how[e] in ("value", "likeness")]
        return [*(e for e, _ in free), *self.columns.missing], [*(a for _, a in free), *self.columns.extra]

    def labels(self, expected: bool, index: int) -> set[str]:
        """The distinct values of a column as headers would show them; none where there are many."""
        table = (self.expected if expected else self.actual).head(10 * MOST_LABELS)
        found = {label(value) for value in map(plain, table.column(index)) if not is_null(value)}
        return found if len(found) <= MOST_LABELS else set()

    @abstractmethod
    def total(self, position: int, expected: bool) -> Number | None:
        """The sum of a numeric column; ``None`` where it holds no number but 0."""
        ...

    @abstractmethod
    def unknown(self, rows: Sequence[int], expected: bool) -> bool:
        """Whether any of ``rows`` of one side has no equal at all on the other side."""
        ...

    @abstractmethod
    def multiplied(self, times: int) -> bool:
        """Whether the answer is every expected row ``times`` times."""
        ...

    @abstractmethod
    def same_sets(self) -> bool:
        """Whether both sides hold the same distinct rows."""
        ...

    @abstractmethod
    def distinct(self, expected: bool) -> int:
        """How many different rows a side holds (numbers compared exactly)."""
        ...

    @abstractmethod
    def list_match(self, es: Sequence[int], as_: Sequence[int]) -> bool:
        """Whether these rows match as a list, ties of the sort keys free."""
        ...

    @abstractmethod
    def bag_match(self, es: Sequence[int], as_: Sequence[int]) -> bool:
        """Whether these rows match as a bag."""
        ...

    @abstractmethod
    def without_nulls(self, expected: bool) -> Sequence[int]:
        """Rows of a side none of whose sort keys is NULL."""
        ...

    @abstractmethod
    def before_last(self, expected: bool) -> Sequence[int]:
        """Rows of a side whose sort keys are not those of the last expected row."""
        ...

    @abstractmethod
    def differ(self, position: int, pairs: Sequence[tuple[int, int]]) -> list[bool]:
        """Which of the row pairs differ in a column."""
        ...

    @abstractmethod
    def moved(self) -> list[int]:
        """Rows that differ from the row at the same place (both sides have as many)."""
        ...

    def suspects(self, alignment: Any) -> list[int]:
        """Columns that may be to blame alone, cheaply told."""
        return list(range(len(self.pairs)))

    def swaps(self, alignment: Any) -> list[tuple[int, int]]:
        """Pairs of columns that may have been exchanged."""
        size = range(len(self.pairs)) if len(self.pairs) <= MANY_COLUMNS else alignment.differing
        return [(i, j) for i in size for j in size if i < j] if len(size) <= MANY_COLUMNS else []

    @abstractmethod
    def join(
        self, positions: Sequence[int], lost: Sequence[int], spare: Sequence[int]
    ) -> list[tuple[int, int]]:
        """Rows of either side that agree in these columns (which tell the rows of each side apart)."""
        ...

    @abstractmethod
    def unique(self, positions: Sequence[int], expected: bool) -> bool:
        """Whether these columns (which have no tolerance) tell all rows of a side apart."""
        ...

    @abstractmethod
    def exact(self, position: int) -> bool:
        """Whether a column is compared without tolerance."""
        ...

    @abstractmethod
    def close_up(self, position: int) -> PythonDiagnosisContext:
        """A plain scene in which one column can be studied value by value."""
        ...


class PythonDiagnosisContext(DiagnosisContext):
    """A scene over Python values; small tables, and samples of large ones."""

    engine: PythonEngine
    paired: list[PairedColumn]

    def _paired_rows(self) -> Pairing:
        return pair_all(self.paired, self.options, *self.engine.rows, self.engine.work)

    def raw(self, position: int) -> tuple[list[Any], list[Any]]:
        """The values of the mapped column at ``position`` as they came, expected and answered."""
        e, a = self.pairs[position]
        return self.engine.raw(True, e), self.engine.raw(False, a)

    def match(self, columns: Sequence[PairedColumn]) -> bool:
        """Whether the tables would match with these columns."""
        if self.runs is None:
            return pair_all(
                columns, self.options, self.expected_rows, self.actual_rows, self.engine.work
            ).matched
        sizes = self.actual_rows, self.expected_rows
        return sizes[0] == sizes[1] and pair_list(columns, self.runs, *sizes, self.engine.work).matched

    def agrees_with(self, position: int, column: PairedColumn) -> bool:
        """Whether the tables match when one column is replaced."""
        columns = list(self.paired)
        columns[position] = column
        return self.match(columns)

    def total(self, position: int, expected: bool) -> Number | None:
        """The sum of a numeric column; ``None`` where it holds no number but 0."""
        column = self.paired[position]
        return sum_of(numbers_of(column.expected if expected else column.actual))

    def unknown(self, rows: Sequence[int], expected: bool) -> bool:
        """Whether any of ``rows`` of one side has no equal at all on the other side."""
        size = self.expected_rows
        if expected:
            pairing = pair_set(self.paired, rows, range(self.actual_rows), size, self.engine.work)
            return any(pairing.partner[e] < 0 for e in rows)
        return bool(pair_set(self.paired, range(size), rows, size, self.engine.work).spare)

    def multiplied(self, times: int) -> bool:
        """Whether the answer is every expected row ``times`` times."""
        columns = [PairedColumn(list(c.expected) * times, c.actual, c.rule) for c in self.paired]
        size = self.expected_rows * times
        return pair_bag(columns, range(size), range(self.actual_rows), size, self.engine.work).matched

    def same_sets(self) -> bool:
        """Whether both sides hold the same distinct rows."""
        size = self.expected_rows
        return pair_set(self.paired, range(size), range(self.actual_rows), size, self.engine.work).matched

    def distinct(self, expected: bool) -> int:
        """How many different rows a side holds (numbers compared exactly)."""
        sides = [c.expected if expected else c.actual for c in self.paired]
        rows = range(self.expected_rows if expected else self.actual_rows)
        return len({tuple([exactly(side[row]) for side in sides]) for row in rows})

    def keys(self) -> list[PairedColumn]:
        """The columns of the sort keys."""
        partners = dict(self.pairs)
        return [self.engine.column(e, partners[e]) for e in self.order or ()]

    def list_match(self, es: Sequence[int], as_: Sequence[int]) -> bool:
        """Whether these rows match as a list, ties of the sort keys free."""
        keys, runs, start = self.keys(), [], 0
        for row in range(1, len(es) + 1):
            if row == len(es) or not keys or any(k.expected[es[row]] != k.expected[es[start]] for k in keys):
                runs.append(range(start, row))
                start = row
        columns = [
            PairedColumn([c.expected[i] for i in es], [c.actual[i] for i in as_], c.rule) for c in self.paired
        ]
        return pair_list(columns, runs, len(as_), len(es), self.engine.work).matched

    def bag_match(self, es: Sequence[int], as_: Sequence[int]) -> bool:
        """Whether these rows match as a bag."""
        return pair_bag(self.paired, es, as_, self.expected_rows, self.engine.work).matched

    def without_nulls(self, expected: bool) -> Sequence[int]:
        """Rows of a side none of whose sort keys is NULL."""
        sides = [k.expected if expected else k.actual for k in self.keys()]
        rows = range(self.expected_rows if expected else self.actual_rows)
        return [row for row in rows if all(side[row][0] is not None for side in sides)]

    def before_last(self, expected: bool) -> Sequence[int]:
        """Rows of a side whose sort keys are not those of the last expected row."""
        keys = self.keys()
        last = [key.expected[self.expected_rows - 1] for key in keys]
        sides = [k.expected if expected else k.actual for k in keys]
        rows = range(self.expected_rows if expected else self.actual_rows)
        return [row for row in rows if [side[row] for side in sides] != last]

    def differ(self, position: int, pairs: Sequence[tuple[int, int]]) -> list[bool]:
        """Which of the row pairs differ in a column."""
        column = self.paired[position]
        return [column.grade(e, a) == NO for e, a in pairs]

    def moved(self) -> list[int]:
        """Rows that differ from the row at the same place (both sides have as many)."""
        rows = range(self.expected_rows)
        return [row for row in rows if any(column.grade(row, row) == NO for column in self.paired)]

    def _codes(self, positions: Sequence[int], expected: bool, rows: Sequence[int]) -> list[Hashable]:
        sides = [self.paired[i].expected if expected else self.paired[i].actual for i in positions]
        return [tuple([side[row][0] for side in sides]) for row in rows]

    def _all_codes(self, positions: Sequence[int], expected: bool) -> set[Hashable]:
        rows = range(self.expected_rows if expected else self.actual_rows)
        return set(self._codes(positions, expected, rows))

    def join(
        self, positions: Sequence[int], lost: Sequence[int], spare: Sequence[int]
    ) -> list[tuple[int, int]]:
        """Rows of either side that agree in these columns (which tell the rows of each side apart)."""
        theirs = dict(zip(self._codes(positions, False, spare), spare, strict=True))
        mine = zip(lost, self._codes(positions, True, lost), strict=True)
        return [(e, theirs[key]) for e, key in mine if key in theirs]

    def unique(self, positions: Sequence[int], expected: bool) -> bool:
        """Whether these columns (which have no tolerance) tell all rows of a side apart."""
        rows = self.expected_rows if expected else self.actual_rows
        return len(self._all_codes(positions, expected)) == rows

    def exact(self, position: int) -> bool:
        """Whether a column is compared without tolerance."""
        return self.paired[position].rule is None

    def close_up(self, position: int) -> PythonDiagnosisContext:
        """This scene: it is small enough."""
        return self


def sum_of(numbers: Sequence[Number]) -> Number | None:
    """The sum of numbers; ``None`` where there is none but 0."""
    if not any(numbers):
        return None
    if any(isinstance(number, float) for number in numbers):
        return sum(as_float(number) for number in numbers)
    return sum((Decimal(number) for number in numbers), Decimal(0))


def number_of(cell: Cell) -> Number | None:
    """The number a cell of a numeric column holds (an infinity too); ``None`` for anything else."""
    key, numbers = cell
    if numbers:
        return numbers[0] if key == NUMBER else None
    return key if isinstance(key, (int, float, Decimal)) and not isinstance(key, bool) else None


def numbers_of(cells: Iterable[Cell]) -> list[Number]:
    """The numbers among the cells of a numeric column."""
    return [number for number in map(number_of, cells) if number is not None]


def unreadable(cell: Cell) -> bool:
    """Whether a cell could not be read as its column's kind."""
    return isinstance(cell[0], Unreadable)


def plural(count: int, word: str) -> str:
    """``1 row``, ``2 rows``."""
    return f"{count:,} {word}" + ("" if count == 1 else "s")


def listed(names: Iterable[str], most: int = 4) -> str:
    """``a``, ``b`` and 3 more, in back quotes."""
    names = list(names)
    shown = ", ".join(f"`{name}`" for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
