"""One column of a large table studied in all rows: cells read once, rows matched on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_agenteval.compare.array_engine.arrays import KeyCoder
from pytest_agenteval.compare.array_engine.matching import Matcher
from pytest_agenteval.compare.array_engine.number_rule import ArrayNumberRule
from pytest_agenteval.compare.array_engine.reading import cells_side
from pytest_agenteval.compare.array_engine.row_hashes import ArrayColumn
from pytest_agenteval.compare.diagnosis.column_context import ColumnContext
from pytest_agenteval.compare.json_cells import texts_of_objects
from pytest_agenteval.compare.options import ColumnOptions
from pytest_agenteval.compare.python_engine.engine import paired
from pytest_agenteval.compare.python_engine.matching import PairedColumn
from pytest_agenteval.compare.values.cells import read_cell
from pytest_agenteval.compare.values.numbers import NumberRule
from pytest_agenteval.compare.values.sql_types import Kind

if TYPE_CHECKING:
    from pytest_agenteval.compare.array_engine.context import ArrayDiagnosisContext


@dataclass(slots=True)
class GivenNumberRule(ArrayNumberRule):
    """A number rule that a word brings along, for arrays."""

    given: NumberRule | None = None

    @property
    def base(self) -> NumberRule:
        """The rule without rule 2."""
        rule = self.given or NumberRule(0.0, 0.0, None)
        return NumberRule(rule.rtol, rule.atol, rule.decimals, rule.guard, rule.significant)

    def _shown(self, base: NumberRule, finest: int) -> tuple[int, ...]:
        return tuple(k for k in self.given.shown if k <= finest) if self.given else ()


class ArrayColumnContext(ColumnContext):
    """All rows of a failed comparison of arrays, one column of them as Python values."""

    def __init__(self, context: ArrayDiagnosisContext) -> None:
        self.context, self.engine = context, context.engine
        self.expected_rows, self.actual_rows = context.expected_rows, context.actual_rows
        self.runs = context.runs
        self._cells: dict[int, PairedColumn] = {}

    @property
    def width(self) -> int:
        """How many columns are mapped."""
        return len(self.context.paired)

    def name(self, position: int) -> str:
        """Return the expected name of the mapped column at ``position``."""
        return self.context.name(position)

    def sql_type(self, position: int) -> str | None:
        """Return the SQL type of the expected column."""
        return self.context.expected.columns[self.context.pairs[position][0]].type

    def kind(self, position: int) -> Kind:
        """Return the kind of the mapped column at ``position``."""
        return self.context.kind(position)

    def raw(self, position: int) -> tuple[list[Any], list[Any]]:
        """Return the values of a mapped column as they came, expected and answered."""
        e, a = self.context.pairs[position]
        return self.context.expected.column(e), self.context.actual.column(a)

    def cells(self, position: int) -> PairedColumn:
        """Return the cells of a mapped column as they are compared (read once)."""
        if position not in self._cells:
            e, a = self.context.pairs[position]
            mine, theirs = self.raw(position)
            if self.kind(position).name == "text":
                mine, theirs = texts_of_objects(mine, theirs)
            base, reading = self.engine.base_reading(e), self.engine.reading(e, a)
            self._cells[position] = paired(
                [read_cell(value, base) for value in mine],
                [read_cell(value, reading) for value in theirs],
                base,
                self.engine.options_of(e),
            )
        return self._cells[position]

    def agrees_with(self, position: int, column: PairedColumn) -> bool:
        """Return whether the tables match when one column is replaced."""
        columns = list(self.context.paired)
        columns[position] = self._array(column)
        return self.context.match(columns)

    def _array(self, column: PairedColumn) -> ArrayColumn:
        coder = KeyCoder()
        left, right = cells_side(column.expected, coder), cells_side(column.actual, coder)
        rule = column.rule or NumberRule(0.0, 0.0, None)
        options = ColumnOptions(rule.rtol, rule.atol, rule.decimals, rule.guard, rule.significant)
        count, rows = max(len(left.numbers), len(right.numbers)), self.engine.rows
        rules = tuple(
            GivenNumberRule(options, x, y, given=rule)
            for x, y in zip(left.padded(count, rows[0]), right.padded(count, rows[1]), strict=True)
        )
        return ArrayColumn(left.keys, right.keys, rules)

    def aligned(self, position: int) -> list[tuple[int, int]]:
        """Return pairs of rows that agree in all other columns (equal rows with each other)."""
        if self.runs is not None and self.expected_rows == self.actual_rows:
            return [(i, i) for i in range(self.expected_rows)]
        first = self.engine.matcher(self.context.pairs).pair(full=True)
        partner = first.partner.copy()
        lost, spare = first.unmatched_expected, first.unmatched_actual
        rest = Matcher(self.context.rest(position), self.engine.rows).pair(lost, spare, full=True)
        partner[lost] = rest.partner[lost]
        rows = np.flatnonzero(partner >= 0)
        return list(zip(rows.tolist(), partner[rows].tolist(), strict=True))

    def agrees_but_for(self, position: int, rows: Sequence[int]) -> bool:
        """Return whether the tables match when one column is not looked at in these answered rows."""
        column = self.cells(position)
        if self.runs is not None:
            open_rows = set(rows)
            mine, theirs = (
                [(None, ()) if i in open_rows else cell for i, cell in enumerate(side)]
                for side in (column.expected, column.actual)
            )
            return self.agrees_with(position, PairedColumn(mine, theirs, column.rule))
        others = np.setdiff1d(np.arange(self.actual_rows), np.asarray(rows, np.int64))
        first = self.engine.matcher(self.context.pairs).pair(None, others, full=True)
        if len(first.unmatched_actual):
            return False
        rest = Matcher(self.context.rest(position), self.engine.rows)
        return rest.pair(first.unmatched_expected, np.asarray(rows, np.int64)).matched
