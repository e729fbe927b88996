"""What the diagnosis asks about small tables, answered on Python values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from pytest_agenteval.compare.diagnosis.column_context import ColumnContext
from pytest_agenteval.compare.diagnosis.context import DiagnosisContext, numbers_of, sum_of
from pytest_agenteval.compare.engine import RowNumbers
from pytest_agenteval.compare.python_engine.engine import PythonEngine
from pytest_agenteval.compare.python_engine.matching import (
    PairedColumn,
    Pairing,
    exactly,
    pair_all,
    pair_bag,
    pair_list,
    pair_set,
)
from pytest_agenteval.compare.values.numbers import NO, Number


class PythonDiagnosisContext(DiagnosisContext[PairedColumn], ColumnContext):
    """A failed comparison of Python values: small tables, and samples of large ones."""

    engine: PythonEngine
    hands_over = True

    def _paired_rows(self) -> Pairing:
        return pair_all(self.paired, self.options, *self.engine.rows, self.engine.work)

    def raw(self, position: int) -> tuple[list[Any], list[Any]]:
        """Return the values of the mapped column at ``position`` as they came, expected and answered."""
        e, a = self.pairs[position]
        return self.engine.raw(True, e), self.engine.raw(False, a)

    def match(self, columns: Sequence[PairedColumn]) -> bool:
        """Return whether the tables would match with these columns."""
        if self.runs is None:
            return pair_all(
                columns, self.options, self.expected_rows, self.actual_rows, self.engine.work
            ).matched
        sizes = self.actual_rows, self.expected_rows
        return sizes[0] == sizes[1] and pair_list(columns, self.runs, *sizes, self.engine.work).matched

    def agrees_with(self, position: int, column: PairedColumn) -> bool:
        """Return whether the tables match when one column is replaced."""
        columns = list(self.paired)
        columns[position] = column
        return self.match(columns)

    def total(self, position: int, expected: bool) -> Number | None:
        """Return the sum of a numeric column; ``None`` where it holds no number but 0."""
        column = self.paired[position]
        return sum_of(numbers_of(column.expected if expected else column.actual))

    def unknown(self, rows: RowNumbers, expected: bool) -> bool:
        """Return whether any of ``rows`` of one side has no equal at all on the other side."""
        size = self.expected_rows
        if expected:
            pairing = pair_set(self.paired, rows, range(self.actual_rows), size, self.engine.work)
            return any(pairing.partner[e] < 0 for e in rows)
        return bool(pair_set(self.paired, range(size), rows, size, self.engine.work).unmatched_actual)

    def multiplied(self, times: int) -> bool:
        """Return whether the answer is every expected row ``times`` times."""
        columns = [PairedColumn(list(c.expected) * times, c.actual, c.rule) for c in self.paired]
        size = self.expected_rows * times
        return pair_bag(columns, range(size), range(self.actual_rows), size, self.engine.work).matched

    def same_sets(self) -> bool:
        """Return whether both sides hold the same distinct rows."""
        size = self.expected_rows
        return pair_set(self.paired, range(size), range(self.actual_rows), size, self.engine.work).matched

    def distinct(self, expected: bool) -> int:
        """Return how many different rows a side holds (numbers compared exactly)."""
        sides = [c.expected if expected else c.actual for c in self.paired]
        rows = range(self.expected_rows if expected else self.actual_rows)
        return len({tuple([exactly(side[row]) for side in sides]) for row in rows})

    def keys(self) -> list[PairedColumn]:
        """Return the columns of the sort keys."""
        partners = dict(self.pairs)
        return [self.engine.column(e, partners[e]) for e in self.order or ()]

    def list_match(self, expected_part: RowNumbers, actual_part: RowNumbers) -> bool:
        """Return whether these rows match as a list, ties of the sort keys free."""
        keys, runs, start = self.keys(), [], 0
        for row in range(1, len(expected_part) + 1):
            if (
                row == len(expected_part)
                or not keys
                or any(k.expected[expected_part[row]] != k.expected[expected_part[start]] for k in keys)
            ):
                runs.append(range(start, row))
                start = row
        columns = [
            PairedColumn([c.expected[i] for i in expected_part], [c.actual[i] for i in actual_part], c.rule)
            for c in self.paired
        ]
        return pair_list(columns, runs, len(actual_part), len(expected_part), self.engine.work).matched

    def bag_match(self, expected_part: RowNumbers, actual_part: RowNumbers) -> bool:
        """Return whether these rows match as a bag."""
        return pair_bag(self.paired, expected_part, actual_part, self.expected_rows, self.engine.work).matched

    def without_nulls(self, expected: bool) -> Sequence[int]:
        """Return rows of a side none of whose sort keys is NULL."""
        sides = [k.expected if expected else k.actual for k in self.keys()]
        rows = range(self.expected_rows if expected else self.actual_rows)
        return [row for row in rows if all(side[row][0] is not None for side in sides)]

    def before_last(self, expected: bool) -> Sequence[int]:
        """Return rows of a side whose sort keys are not those of the last expected row."""
        keys = self.keys()
        last = self.expected_rows - 1
        if expected:
            tied = [key.expected[last] for key in keys]
            return [row for row in range(last + 1) if [k.expected[row] for k in keys] != tied]
        # an answered key may be of another type, or rounded
        rows = range(self.actual_rows)
        return [row for row in rows if any(key.grade(last, row) == NO for key in keys)]

    def differ(self, position: int, pairs: Sequence[tuple[int, int]]) -> list[bool]:
        """Return which of the row pairs differ in a column."""
        column = self.paired[position]
        return [column.grade(e, a) == NO for e, a in pairs]

    def moved(self) -> list[int]:
        """Return rows that differ from the row at the same place (both sides have as many)."""
        rows = range(self.expected_rows)
        return [row for row in rows if any(column.grade(row, row) == NO for column in self.paired)]

    def _codes(self, positions: Sequence[int], expected: bool, rows: RowNumbers) -> list[Hashable]:
        sides = [self.paired[i].expected if expected else self.paired[i].actual for i in positions]
        return [tuple([side[row][0] for side in sides]) for row in rows]

    def _all_codes(self, positions: Sequence[int], expected: bool) -> set[Hashable]:
        rows = range(self.expected_rows if expected else self.actual_rows)
        return set(self._codes(positions, expected, rows))

    def join(
        self, positions: Sequence[int], expected_part: RowNumbers, actual_part: RowNumbers
    ) -> list[tuple[int, int]]:
        """Return rows of either side that agree in these columns (which distinguish the rows of each
        side).
        """
        theirs = dict(zip(self._codes(positions, False, actual_part), actual_part, strict=True))
        mine = zip(expected_part, self._codes(positions, True, expected_part), strict=True)
        return [(e, theirs[key]) for e, key in mine if key in theirs]

    def unique(self, positions: Sequence[int], expected: bool) -> bool:
        """Return whether these columns (which have no tolerance) distinguish all rows of a side."""
        rows = self.expected_rows if expected else self.actual_rows
        return len(self._all_codes(positions, expected)) == rows

    def exact(self, position: int) -> bool:
        """Return whether a column is compared without tolerance."""
        return self.paired[position].rule is None

    @property
    def width(self) -> int:
        """How many columns are mapped."""
        return len(self.paired)

    def sql_type(self, position: int) -> str | None:
        """Return the SQL type of the expected column."""
        return self.expected.columns[self.pairs[position][0]].type

    def cells(self, position: int) -> PairedColumn:
        """Return the cells of a mapped column as they are compared."""
        return self.paired[position]

    def aligned(self, position: int) -> list[tuple[int, int]]:
        """Return pairs of rows that agree in all other columns (in order where nothing tells them apart)."""
        if self.runs is not None and self.expected_rows == self.actual_rows:
            return [(i, i) for i in range(self.expected_rows)]
        size, work = self.expected_rows, self.engine.work
        first = pair_bag(self.paired, range(size), range(self.actual_rows), size, work)
        rest = pair_bag(self.rest(position), first.unmatched_expected, first.unmatched_actual, size, work)
        return sorted(
            [(e, a) for e, a in enumerate(first.partner) if a >= 0]
            + [(e, rest.partner[e]) for e in first.unmatched_expected if rest.partner[e] >= 0]
        )

    def agrees_but_for(self, position: int, rows: Sequence[int]) -> bool:
        """Return whether the tables match when one column is not looked at in these answered rows."""
        column, size = self.paired[position], self.expected_rows
        open_rows = set(rows)
        if self.runs is not None:
            expected = [(None, ()) if i in open_rows else c for i, c in enumerate(column.expected)]
            actual = [(None, ()) if i in open_rows else c for i, c in enumerate(column.actual)]
            return self.agrees_with(position, PairedColumn(expected, actual, column.rule))
        others = [a for a in range(self.actual_rows) if a not in open_rows]
        first = pair_bag(self.paired, range(size), others, size, self.engine.work)
        if first.unmatched_actual:
            return False
        rest = self.rest(position)
        return pair_bag(rest, first.unmatched_expected, rows, size, self.engine.work).matched

    def close_up(self, position: int) -> PythonDiagnosisContext:
        """Return these tables: they are small enough to be their own sample."""
        return self

    def whole(self, position: int) -> PythonDiagnosisContext:
        """Return these tables."""
        return self
