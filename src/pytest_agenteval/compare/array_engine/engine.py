"""The engine for large tables: columns stay arrays, rows are paired by hashes and sorting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pytest_agenteval.compare.array_engine.arrays import (
    ArraySide,
    ColumnKeys,
    KeyCoder,
    ToleranceNumbers,
    bits,
)
from pytest_agenteval.compare.array_engine.column_search import assign
from pytest_agenteval.compare.array_engine.matching import ArrayPairing, Matcher
from pytest_agenteval.compare.array_engine.number_rule import ArrayNumberRule, reach
from pytest_agenteval.compare.array_engine.reading import read_side, read_texts
from pytest_agenteval.compare.array_engine.row_hashes import ArrayColumn, hash_rows, level
from pytest_agenteval.compare.options import ComparisonOptions
from pytest_agenteval.compare.python_engine.engine import (
    Engine,
    factors,
    has_percent,
    structured,
    texts_of_objects,
)
from pytest_agenteval.compare.values.cells import ColumnReading
from pytest_agenteval.compare.values.numbers import CLOSE, ROUNDED
from pytest_agenteval.table import Table

Rows = NDArray[np.int64]
MOST_EXACT = 20_000


class ContentCoder(KeyCoder):
    """Codes that depend on the key alone, so that columns read apart can be compared."""

    def code(self, key: Any) -> int:
        """A 64-bit hash of the key."""
        return hash(key)


@dataclass(slots=True)
class ColumnContent:
    """What a column holds, read by itself: a hash per cell without its numbers, and the numbers sorted."""

    hashes: NDArray[np.uint64]
    numbers: list[ToleranceNumbers]
    print: int = 0
    sorted: list[NDArray[np.float64]] = field(default_factory=list)


class ArrayEngine(Engine[ArrayColumn]):
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
            theirs = texts_of_objects(self.expected.column(e), self.actual.column(a))
        coder = KeyCoder()
        left = read_side(mine, reading, coder)
        tried: list[tuple[ArrayColumn, ColumnReading]] = []
        ways = factors(self.answered_reading(reading, a), theirs, options.percent)
        for factor in ways:
            right = read_side(theirs, factor, coder)
            tried.append((_paired(left, right, reading, options, self.rows), factor))
            if len(ways) == 1 or Matcher([tried[-1][0]], self.rows).pair().matched:
                return tried[-1]
        return max(tried, key=lambda entry: _hits(entry[0], self.rows))

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
        """What pairs rows on these columns."""
        columns = [self.column(e, a) for e, a in mapping]
        if runs is not None:
            return Matcher(columns, self.rows, runs)
        key = tuple(mapping)
        if key not in self._matchers:
            self._matchers[key] = Matcher(columns, self.rows)
        return self._matchers[key]

    def pair(self, mapping: Sequence[tuple[int, int]]) -> Any:
        """Pair the rows on these columns, as a bag or as a set."""
        if self.options.duplicates == "set":
            return self.matcher(mapping).pair_sets()
        return self.matcher(mapping).pair()

    def pair_runs(self, mapping: Sequence[tuple[int, int]], runs: Sequence[range]) -> ArrayPairing:
        """Pair the rows on these columns as a list in which each run is a bag."""
        ids = run_ids(runs, self.rows)
        return self.matcher(mapping, ids).pair()

    def first_rows(self, mapping: Sequence[tuple[int, int]], expected: bool) -> list[int]:
        """The first of all rows that hold the same in these columns (numbers exactly), in order."""
        keys: list[ColumnKeys] = []
        for e, a in mapping:
            column = self.column(e, a)
            keys.append(column.expected if expected else column.actual)
            sides = [rule.expected if expected else rule.actual for rule in column.rules]
            keys += [ColumnKeys(None, bits(numbers)) for numbers in sides]
        ids = hash_rows(keys, self.rows[0 if expected else 1])
        rows: list[int] = np.sort(np.unique(ids, return_index=True)[1]).tolist()
        return rows

    def run_starts(self, keys: Sequence[tuple[int, int]]) -> list[int]:
        """Where runs of equal sort keys begin in the expected table."""
        new = np.zeros(self.rows[0], bool)
        new[:1] = True
        for e, a in keys:
            column = self.column(e, a)
            sort_key = column.expected
            arrays: list[Any] = [sort_key.classes, sort_key.values]
            if sort_key.texts is not None:
                arrays[1] = np.asarray(
                    pc.dictionary_encode(sort_key.texts.array, null_encoding="encode").indices
                )
            arrays += [rule.expected.floats for rule in column.rules]
            for array in arrays:
                if array is not None:
                    new[1:] |= array[1:] != array[:-1]
        starts: list[int] = np.flatnonzero(new).tolist()
        return starts

    def content(self, expected: bool, index: int, reading: ColumnReading) -> ColumnContent:
        """What a column holds when read by itself."""
        key = (expected, index, reading)
        if key not in self._contents:
            table = self.expected if expected else self.actual
            own = reading if expected else self.answered_reading(reading, index)
            data = table.values[index]
            if reading.kind.name == "text" and self._objects:
                data = [structured(value) for value in table.column(index)]
            side = read_side(data, own, ContentCoder())
            self._contents[key] = _content(side, table.row_count)
        return self._contents[key]

    def alike(self, e: int, a: int) -> bool:
        """Whether the two columns may hold the same bag of values (a hash decides; rows confirm it)."""
        if (e, a) in self._columns or self.options.duplicates == "set":
            return bool(self.pair([(e, a)]).matched)
        options, reading = self.options_of(e), self.base_reading(e)
        if options.percent == "either" or (reading.kind.numeric and self.percent(a)):
            return bool(self.pair([(e, a)]).matched)
        mine, theirs = self.content(True, e, reading), self.content(False, a, reading)
        if self.rows[0] != self.rows[1] or len(mine.sorted) != len(theirs.sorted):
            return False
        if mine.print != theirs.print:
            return False
        return all(
            len(x) == len(y) and bool(np.all(np.abs(x - y) <= _bound(options, x)))
            for x, y in zip(mine.sorted, theirs.sorted, strict=True)
        )

    def percent(self, a: int) -> bool:
        """Whether an answered column holds cells with %, which a factor may still bring together."""
        if a not in self._percents:
            self._percents[a] = has_percent(self.actual.values[a])
        return self._percents[a]

    def agreement(self, e: int, a: int) -> float:
        """The share of rows in which the two columns agree, as bags (of two rows at least)."""
        rows = max(min(self.rows), min(2, max(self.rows)), 1)
        return _hits(self.column(e, a), self.rows) / rows

    def assign(
        self, fixed: Sequence[tuple[int, int]], es: Sequence[int], as_: Sequence[int]
    ) -> tuple[list[tuple[int, int]] | None, bool]:
        """An injective assignment of answered columns under which whole rows agree."""
        return assign(self, fixed, es, as_)

    def leniency(self, e: int, a: int, pairing: ArrayPairing) -> tuple[int, int, int]:
        """Cells of a matched column that were close, that were rounded, and rounded ones below 1."""
        close = rounded = small = 0
        for rule in self.column(e, a).rules:
            if not rule.differed:
                continue
            rows = np.flatnonzero(pairing.partner >= 0)
            es = rows if rule.expected.present is None else rows[rule.expected.present[rows]]
            grades = rule.grade(es, pairing.partner[es])
            close += int((grades == CLOSE).sum())
            rounded += int((grades == ROUNDED).sum())
            small += int((np.abs(rule.expected.floats[es[grades == ROUNDED]]) < 1).sum())
        return close, rounded, small


def _content(side: ArraySide, rows: int) -> ColumnContent:
    hashes = hash_rows([level(side.keys, True, True, rows)], rows)
    # a column of NULLs alone holds no number, whichever way it was read
    numbers = [n for n in side.numbers if n.present is None or bool(n.present.any())]
    ordered = [np.sort(n.floats if n.present is None else n.floats[n.present]) for n in numbers]
    mixed = hashes * np.uint64(0xD1342543DE82EF95)
    mixed ^= mixed >> np.uint64(31)
    return ColumnContent(hashes, numbers, int(mixed.sum(dtype=np.uint64)), ordered)


def _bound(options: Any, x: NDArray[np.float64]) -> NDArray[np.float64]:
    empty = ToleranceNumbers(x)
    return reach(ArrayNumberRule(options, empty, empty).base, x)


def _paired(
    left: ArraySide, right: ArraySide, reading: ColumnReading, options: Any, rows: tuple[int, int]
) -> ArrayColumn:
    count = max(len(left.numbers), len(right.numbers))
    integer = reading.kind.name == "integer"
    rules = tuple(
        ArrayNumberRule(options, x, y, integer)
        for x, y in zip(_padded(left, count, rows[0]), _padded(right, count, rows[1]), strict=True)
    )
    return ArrayColumn(left.keys, right.keys, rules)


def _padded(side: ArraySide, count: int, rows: int) -> list[ToleranceNumbers]:
    nothing = [
        ToleranceNumbers(np.zeros(rows), np.zeros(rows, bool)) for _ in range(count - len(side.numbers))
    ]
    return [*side.numbers, *nothing]


def run_ids(runs: Sequence[range], rows: tuple[int, int]) -> tuple[Rows, Rows]:
    """The run each row position belongs to; answered rows past the end have runs of their own."""
    ids = np.repeat(np.arange(len(runs)), [len(run) for run in runs])
    longest = max(rows)
    both = np.concatenate([ids, np.arange(len(runs), len(runs) + longest - len(ids))]).astype(np.int64)
    return both[: rows[0]], both[: rows[1]]


def _hits(column: ArrayColumn, rows: tuple[int, int]) -> int:
    """How many rows of a column pair find a partner (of many numbers: about how many)."""
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
