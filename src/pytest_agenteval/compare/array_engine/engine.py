"""The engine for large tables: columns stay arrays, rows are paired by hashes and sorting."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pytest_agenteval.compare.array_engine.arrays import (
    ArraySide,
    ColumnKeys,
    KeyCoder,
    bits,
)
from pytest_agenteval.compare.array_engine.column_search import assign
from pytest_agenteval.compare.array_engine.contents import (
    ColumnContent,
    ContentCoder,
    ContentIndex,
    content_of,
)
from pytest_agenteval.compare.array_engine.matching import ArrayPairing, Matcher, run_ids
from pytest_agenteval.compare.array_engine.number_rule import ArrayNumberRule, reach
from pytest_agenteval.compare.array_engine.reading import cells_side, read_side, read_texts
from pytest_agenteval.compare.array_engine.row_hashes import ArrayColumn, hash_rows
from pytest_agenteval.compare.engine import Assignment, BaseEngine, Mapping
from pytest_agenteval.compare.fitting import Fitting
from pytest_agenteval.compare.json_cells import JSON_LIKE, loosened, structured, texts_of_objects
from pytest_agenteval.compare.options import ComparisonOptions
from pytest_agenteval.compare.python_engine.engine import (
    factors,
    has_percent,
)
from pytest_agenteval.compare.values.cells import ColumnReading, read_cell
from pytest_agenteval.compare.values.numbers import CLOSE, ROUNDED
from pytest_agenteval.table import Table

if TYPE_CHECKING:
    from pytest_agenteval.compare.columns import ColumnMap
    from pytest_agenteval.compare.diagnosis.context import DiagnosisContext

Rows = NDArray[np.int64]
MOST_EXACT = 20_000


class ArrayEngine(BaseEngine[ArrayColumn]):
    """The engine for large tables: columns stay arrays."""

    def __init__(self, expected: Table, actual: Table, options: ComparisonOptions) -> None:
        super().__init__(expected, actual, options)
        self._percents: dict[int, bool] = {}
        self._matchers: dict[tuple[tuple[int, int], ...], Matcher] = {}
        self._contents: dict[tuple[bool, int, ColumnReading], ColumnContent] = {}

    def _read(self, e: int, a: int) -> tuple[ArrayColumn, ColumnReading]:
        options, reading = self.options_of(e), self.base_reading(e)
        mine, theirs = self.expected.values[e], self.actual.values[a]
        if reading.kind.name == "text":
            texts = read_texts(mine, theirs, reading)
            if texts is not None:
                return ArrayColumn(texts[0].keys, texts[1].keys), reading
            mine, theirs = texts_of_objects(self.expected.column(e), self.actual.column(a))
        coder = KeyCoder()
        if reading.kind.name in JSON_LIKE:
            return self._read_json(e, a, coder), reading
        left = read_side(mine, reading, coder)
        tried: list[tuple[ArrayColumn, ColumnReading]] = []
        ways = factors(self.answered_reading(reading, a), theirs, options.percent)
        for factor in ways:
            right = read_side(theirs, factor, coder)
            tried.append((_paired(left, right, reading, options, self.rows), factor))
            if len(ways) == 1 or Matcher([tried[-1][0]], self.rows).pair().matched:
                return tried[-1]
        return max(tried, key=lambda entry: _hits(entry[0], self.rows))

    def _read_json(self, e: int, a: int, coder: KeyCoder) -> ArrayColumn:
        """Read cells of JSON one by one: how a number counts depends on the whole column."""
        reading = self.base_reading(e)
        cells = loosened(
            [read_cell(value, reading) for value in self.expected.column(e)],
            [read_cell(value, self.answered_reading(reading, a)) for value in self.actual.column(a)],
        )
        left, right = (cells_side(side, coder) for side in cells)
        return _paired(left, right, reading, self.options_of(e), self.rows)

    @cached_property
    def _objects(self) -> bool:
        """Whether the answer holds JSON objects, which may stand for the text of one."""
        return any(
            pa.types.is_nested(data.type)
            if isinstance(data, (pa.Array, pa.ChunkedArray))
            else any(isinstance(value, (dict, list)) for value in data)
            for data in self.actual.values
        )

    def matcher(self, mapping: Sequence[tuple[int, int]], runs: tuple[Rows, Rows] | None = None) -> Matcher:
        """Return what pairs rows on these columns."""
        columns = [self.column(e, a) for e, a in mapping]
        if runs is not None:
            return Matcher(columns, self.rows, runs)
        key = tuple(mapping)
        if key not in self._matchers:
            self._matchers[key] = Matcher(columns, self.rows)
        return self._matchers[key]

    def pair(self, mapping: Mapping) -> ArrayPairing:
        """Pair the rows on these columns, as a bag or as a set."""
        if self.options.duplicates == "set":
            return self.matcher(mapping).pair_sets()
        return self.matcher(mapping).pair()

    def pair_runs(self, mapping: Sequence[tuple[int, int]], runs: Sequence[range]) -> ArrayPairing:
        """Pair the rows on these columns as a list in which each run is a bag."""
        ids = run_ids(runs, self.rows)
        return self.matcher(mapping, ids).pair()

    def first_rows(self, mapping: Sequence[tuple[int, int]], expected: bool) -> list[int]:
        """Return the first of all rows that hold the same in these columns (numbers exactly), in order."""
        keys: list[ColumnKeys] = []
        for e, a in mapping:
            column = self.column(e, a)
            keys.append(column.expected if expected else column.actual)
            sides = [rule.expected if expected else rule.actual for rule in column.rules]
            keys += [ColumnKeys(None, bits(numbers)) for numbers in sides]
        ids = hash_rows(keys, self.rows[0 if expected else 1])
        rows: list[int] = np.sort(np.unique(ids, return_index=True)[1]).tolist()
        return rows

    def run_starts(self, expected_indexes: Sequence[int]) -> list[int]:
        """Return where runs of equal sort keys begin in the expected table."""
        new = np.zeros(self.rows[0], bool)
        new[:1] = True
        for e in expected_indexes:
            side = read_side(self.expected.values[e], self.base_reading(e), KeyCoder())
            for array in (side.keys.classes, side.keys.values, *(n.floats for n in side.numbers)):
                if array is not None:
                    new[1:] |= array[1:] != array[:-1]
        starts: list[int] = np.flatnonzero(new).tolist()
        return starts

    def content(self, expected: bool, index: int, reading: ColumnReading) -> ColumnContent:
        """Return what a column holds when read by itself."""
        key = (expected, index, reading)
        if key not in self._contents:
            table = self.expected if expected else self.actual
            own = reading if expected else self.answered_reading(reading, index)
            data = table.values[index]
            if reading.kind.name == "text" and self._objects:
                data = [structured(value) for value in table.column(index)]
            side = read_side(data, own, ContentCoder())
            self._contents[key] = content_of(side, table.row_count)
        return self._contents[key]

    def alike(self, e: int, a: int) -> bool:
        """Return whether two columns may hold the same bag of values (a hash decides; rows confirm it)."""
        return bool(self.candidates([e], [a])[e])

    def candidates(
        self, expected_indexes: Sequence[int], actual_indexes: Sequence[int]
    ) -> dict[int, list[int]]:
        """Return for each expected column the answered ones that may hold the same bag of values.

        Columns are distinguished by what they hold, not pair by pair, so that wide tables stay cheap.
        """
        scaled = {a for a in actual_indexes if self.percent(a)}
        fitting = Fitting(self) if max(self.rows) > MOST_EXACT else None
        indexes: dict[ColumnReading, ContentIndex] = {}
        out: dict[int, list[int]] = {}
        for e in expected_indexes:
            options, reading = self.options_of(e), self.base_reading(e)
            by_rows = self.options.duplicates == "set" or options.percent == "either"
            if by_rows or reading.kind.name in JSON_LIKE:
                out[e] = [a for a in actual_indexes if self.pair([(e, a)]).matched]
                continue
            if fitting and not all(fitting.fits(e, a) for a in actual_indexes):
                # a long column of another kind is not worth reading, value by value
                some = [a for a in actual_indexes if fitting.fits(e, a)]
                out[e] = self.candidates([e], some)[e] if some else []
                continue
            if reading not in indexes:
                indexes[reading] = self._index(reading, actual_indexes)
            asked = scaled if reading.kind.numeric else set()
            asked = asked | {a for a in actual_indexes if (e, a) in self._columns}
            found = set(indexes[reading].like(self.content(True, e, reading), options)) - asked
            found |= {a for a in asked if self.pair([(e, a)]).matched}
            out[e] = sorted(found)
        return out

    def _index(self, reading: ColumnReading, actual_indexes: Sequence[int]) -> ContentIndex:
        """Return the answered columns by what they hold when read in one way;
        none where row counts differ.
        """
        same = self.rows[0] == self.rows[1]
        return ContentIndex([(a, self.content(False, a, reading)) for a in actual_indexes if same])

    def percent(self, a: int) -> bool:
        """Return whether an answered column holds cells with %, which a factor may still bring together."""
        if a not in self._percents:
            self._percents[a] = has_percent(self.actual.values[a])
        return self._percents[a]

    def agreement(self, e: int, a: int, fixed: Mapping = ()) -> float:
        """Return the share (0 to 1) of rows that agree in ``fixed`` and these two columns, as bags."""
        rows = max(min(self.rows), min(2, max(self.rows)), 1)
        if fixed:
            pairing = Matcher([self.column(*pair) for pair in (*fixed, (e, a))], self.rows).pair(full=True)
            return int((pairing.partner >= 0).sum()) / rows
        return _hits(self.column(e, a), self.rows) / rows

    def assign(
        self,
        fixed: Mapping,
        expected_indexes: Sequence[int],
        actual_indexes: Sequence[int],
        runs: Sequence[range] | None = None,
    ) -> Assignment:
        """Find answered columns for expected ones by value, under which whole rows agree."""
        return assign(self, fixed, expected_indexes, actual_indexes, runs)

    def diagnosis_context(
        self, columns: ColumnMap, runs: Sequence[range] | None, order: Sequence[int] | None
    ) -> DiagnosisContext[ArrayColumn]:
        """Return what the diagnosis asks about a failed comparison."""
        from pytest_agenteval.compare.array_engine.context import ArrayDiagnosisContext

        return ArrayDiagnosisContext(self, self.options, columns, runs, order)

    def leniency(self, e: int, a: int, pairing: ArrayPairing) -> tuple[int, int, int]:
        """Return cells of a matched column that were close, that were rounded, and rounded ones below 1."""
        close = rounded = small = 0
        for rule in self.column(e, a).rules:
            if not rule.differed:
                continue
            rows = np.flatnonzero(pairing.partner >= 0)
            expected_indexes = rows if rule.expected.present is None else rows[rule.expected.present[rows]]
            grades = rule.grade(expected_indexes, pairing.partner[expected_indexes])
            close += int((grades == CLOSE).sum())
            rounded += int((grades == ROUNDED).sum())
            small += int((np.abs(rule.expected.floats[expected_indexes[grades == ROUNDED]]) < 1).sum())
        return close, rounded, small


def _paired(
    left: ArraySide, right: ArraySide, reading: ColumnReading, options: Any, rows: tuple[int, int]
) -> ArrayColumn:
    count = max(len(left.numbers), len(right.numbers))
    integer = reading.kind.name == "integer"
    rules = tuple(
        ArrayNumberRule(options, x, y, integer)
        for x, y in zip(left.padded(count, rows[0]), right.padded(count, rows[1]), strict=True)
    )
    return ArrayColumn(left.keys, right.keys, rules)


def _hits(column: ArrayColumn, rows: tuple[int, int]) -> int:
    """Return how many rows of a column pair find a partner (of many numbers: about how many)."""
    matcher = Matcher([column], rows)
    if max(rows) <= MOST_EXACT:
        return int((matcher.pair(full=True).partner >= 0).sum())
    present = [np.zeros(n, bool) for n in rows]
    near = 0
    if column.rules:
        rule = column.rules[0]
        for side, numbers in zip(present, (rule.expected, rule.actual), strict=True):
            side[:] = True if numbers.present is None else numbers.present
        x = rule.expected.floats[present[0]]
        y = np.sort(rule.actual.floats[present[1]])
        far = reach(rule.base, x)
        low, high = np.searchsorted(y, x - far, "left"), np.searchsorted(y, x + far, "right")
        near = min(int((high > low).sum()), len(y))
    ids = (
        hash_rows(side, n)[~mask]
        for side, n, mask in zip((matcher.left, matcher.right), rows, present, strict=True)
    )
    (mine, count), (theirs, other) = (np.unique(hashes, return_counts=True) for hashes in ids)
    _, left, right = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
    return near + int(np.minimum(count[left], other[right]).sum())
