"""What the diagnosis asks about large tables: answered on arrays, one column studied on a sample first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_agenteval.compare.alignment import Alignment
from pytest_agenteval.compare.array_engine.arrays import (
    CODE_CLASS,
    INFINITE_CLASS,
    NULL_CLASS,
    VALUE_CLASS,
    ColumnKeys,
    ToleranceNumbers,
    bits,
)
from pytest_agenteval.compare.array_engine.column_context import ArrayColumnContext
from pytest_agenteval.compare.array_engine.engine import ArrayEngine
from pytest_agenteval.compare.array_engine.matching import ArrayPairing, Matcher, run_ids
from pytest_agenteval.compare.array_engine.near_pairs import close
from pytest_agenteval.compare.array_engine.row_hashes import ArrayColumn, among, distinct, hash_rows
from pytest_agenteval.compare.diagnosis.column_context import ColumnContext
from pytest_agenteval.compare.diagnosis.context import DiagnosisContext, numbers_of, sum_of
from pytest_agenteval.compare.engine import RowNumbers
from pytest_agenteval.compare.python_engine.context import PythonDiagnosisContext
from pytest_agenteval.compare.python_engine.engine import PythonEngine
from pytest_agenteval.compare.values.numbers import Number

Rows = NDArray[np.int64]
SAMPLE = 300
MOST_SAMPLED = 1200
MOST_SWAP_CELLS = 500_000
MOST_WHOLE = 2_000_000
"""Rows up to which a word is tried on all of them; beyond, no word of one column is said."""


class ArrayDiagnosisContext(DiagnosisContext[ArrayColumn]):
    """A failed comparison of arrays."""

    engine: ArrayEngine

    def _paired_rows(self) -> ArrayPairing:
        self.rows = self.engine.rows
        self._singles: dict[int, Matcher] = {}
        self._everything: ColumnContext | None = None
        self._hashes: dict[tuple[int, ...], tuple[NDArray[np.uint64], NDArray[np.uint64]]] = {}
        matcher = self.engine.matcher(self.pairs)
        return matcher.pair_sets() if self.options.duplicates == "set" else matcher.pair(full=True)

    def match(self, columns: Sequence[ArrayColumn]) -> bool:
        """Return whether the tables would match with these columns."""
        if self.options.duplicates == "set" and self.runs is None:
            return Matcher(columns, self.rows).pair_sets().matched
        ids = None if self.runs is None else run_ids(self.runs, self.rows)
        return self.rows[0] == self.rows[1] and Matcher(columns, self.rows, ids).pair().matched

    def _sides(self, expected: bool) -> list[tuple[ColumnKeys, list[ToleranceNumbers]]]:
        return [
            (
                c.expected if expected else c.actual,
                [rule.expected if expected else rule.actual for rule in c.rules],
            )
            for c in self.paired
        ]

    def total(self, position: int, expected: bool) -> Number | None:
        """Return the sum of a numeric column; ``None`` where it holds no number but 0."""
        keys, numbers = self._sides(expected)[position]
        if numbers:
            held = numbers[0].present
            infinite = keys.values if keys.classes is not None else None
            found = numbers[0].all_present(slice(None) if held is None else held)
            if infinite is not None and keys.classes is not None:
                signs = infinite[keys.classes == INFINITE_CLASS]
                found = [*found, *(float("inf") * int(sign) for sign in signs)]
            return sum_of(found)
        if keys.values is None:
            return None
        if keys.classes is not None and bool((keys.classes == CODE_CLASS).any()):  # beyond 64 bits
            rows = range(self.rows[0 if expected else 1])
            return sum_of(numbers_of(self.cell(position, row, expected) for row in rows))
        values = keys.values if keys.classes is None else keys.values[keys.classes == VALUE_CLASS]
        # in halves, so that no sum of 64-bit integers overflows
        whole = (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())
        return Decimal(whole) if bool(values.any()) else None

    def unknown(self, rows: RowNumbers, expected: bool) -> bool:
        """Return whether any of ``rows`` of one side has no equal at all on the other side."""
        part = np.asarray(rows, np.int64)
        mine, theirs = self._both_hashes(range(len(self.paired)))
        own, other = (mine, theirs) if expected else (theirs, mine)
        if not bool(among(own[part], np.sort(other)).all()):
            return True
        matcher = self.engine.matcher(self.pairs)
        facing = np.flatnonzero(among(other, distinct(own[part])))
        if expected:
            return bool((matcher.pair_sets(part, facing).partner[part] < 0).any())
        return bool(len(matcher.pair_sets(facing, part).unmatched_actual))

    def multiplied(self, times: int) -> bool:
        """Return whether the answer is every expected row ``times`` times."""
        columns = [
            ArrayColumn(
                _tiled_keys(c.expected, times),
                c.actual,
                tuple(replace(rule, expected=_tiled(rule.expected, times)) for rule in c.rules),
            )
            for c in self.paired
        ]
        return Matcher(columns, (self.rows[0] * times, self.rows[1])).pair().matched

    def same_sets(self) -> bool:
        """Return whether both sides hold the same distinct rows."""
        return self.engine.matcher(self.pairs).pair_sets().matched

    def distinct(self, expected: bool) -> int:
        """Return how many different rows a side holds (numbers compared exactly)."""
        keys: list[ColumnKeys] = []
        for key, numbers in self._sides(expected):
            keys += [key, *(ColumnKeys(None, bits(n)) for n in numbers)]
        return len(distinct(hash_rows(keys, self.rows[0 if expected else 1])))

    def _key_columns(self) -> list[ArrayColumn]:
        partners = dict(self.pairs)
        return [self.engine.column(e, partners[e]) for e in self.order or ()]

    def list_match(self, expected_part: RowNumbers, actual_part: RowNumbers) -> bool:
        """Return whether these rows match as a list, ties of the sort keys free."""
        e, a = np.asarray(expected_part, np.int64), np.asarray(actual_part, np.int64)
        new = np.ones(len(e), bool)
        keys = self._key_columns()
        if keys and len(e):
            new[1:] = False
            for array in _arrays(keys, True):
                new[1:] |= array[e][1:] != array[e][:-1]
        runs = np.cumsum(new)
        ids = np.zeros(self.rows[0], np.int64), np.zeros(self.rows[1], np.int64)
        ids[0][e], ids[1][a] = runs, runs
        return Matcher(self.paired, self.rows, ids).pair(e, a).matched

    def bag_match(self, expected_part: RowNumbers, actual_part: RowNumbers) -> bool:
        """Return whether these rows match as a bag."""
        return (
            Matcher(self.paired, self.rows).pair(np.asarray(expected_part), np.asarray(actual_part)).matched
        )

    def without_nulls(self, expected: bool) -> RowNumbers:
        """Return rows of a side none of whose sort keys is NULL."""
        good = np.ones(self.rows[0 if expected else 1], bool)
        for column in self._key_columns():
            classes = (column.expected if expected else column.actual).classes
            if classes is not None:
                good &= classes != NULL_CLASS
        return np.flatnonzero(good)

    def before_last(self, expected: bool) -> RowNumbers:
        """Return rows of a side whose sort keys are not those of the last expected row."""
        keys = self._key_columns()
        rows, last = self.rows[0 if expected else 1], self.rows[0] - 1
        if not expected:  # an answered key may be of another type, or rounded
            places = np.arange(rows)
            apart = np.zeros(rows, bool)
            for column in keys:
                apart |= self._differ(column, np.full(rows, last), places)
            return np.flatnonzero(apart)
        tied = np.ones(rows, bool)
        for array in _arrays(keys, True):
            tied &= array == array[last]
        return np.flatnonzero(~tied)

    def differ(self, position: int, pairs: Sequence[tuple[int, int]]) -> list[bool]:
        """Return which of the row pairs differ in a column."""
        if not len(pairs):
            return []
        both = np.asarray(pairs, np.int64)
        flags: list[bool] = self._differ(self.paired[position], both[:, 0], both[:, 1]).tolist()
        return flags

    def _differ(self, column: ArrayColumn, expected_part: Rows, actual_part: Rows) -> NDArray[np.bool_]:
        matcher = self._single(column)
        out = np.zeros(len(expected_part), bool)
        for left, right in zip(matcher.left, matcher.right, strict=True):
            for mine, theirs in ((left.values, right.values), (left.classes, right.classes)):
                if mine is not None and theirs is not None:
                    out |= mine[expected_part] != theirs[actual_part]
        same = np.flatnonzero(~out)
        out[same] = ~close(matcher.rules, expected_part[same], actual_part[same])
        return out

    def _single(self, column: ArrayColumn) -> Matcher:
        if id(column) not in self._singles:
            self._singles[id(column)] = Matcher([column], self.rows)
        return self._singles[id(column)]

    def moved(self) -> list[int]:
        """Return rows that differ from the row at the same place (both sides have as many)."""
        rows = np.arange(self.rows[0])
        out = np.zeros(len(rows), bool)
        for column in self.paired:
            out |= self._differ(column, rows, rows)
        moved: list[int] = np.flatnonzero(out).tolist()
        return moved

    def _both_hashes(self, positions: Sequence[int]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        key = tuple(positions)
        if key not in self._hashes:
            self._hashes[key] = self.engine.matcher([self.pairs[i] for i in positions]).ids()
        return self._hashes[key]

    def suspects(self, alignment: Alignment) -> list[int]:
        """Return where a key aligns the rows: the one column that differs, or the key itself."""
        ties = self.runs is not None and len(self.runs) < self.expected_rows
        if ties or not alignment.unique or not alignment.changed:
            return super().suspects(alignment)
        one = alignment.differing if len(alignment.differing) == 1 else ()
        return sorted({*one, *alignment.keys})

    def swaps(self, alignment: Alignment) -> list[tuple[int, int]]:
        """Return where a key aligns the rows: the two columns that differ;
        else all, if that is little work.
        """
        if alignment.unique and alignment.changed:
            if len(alignment.differing) == 2:
                return [(alignment.differing[0], alignment.differing[1])]
            if alignment.equal * 2 > self.expected_rows:
                return []
        pairs = super().swaps(alignment)
        return pairs if len(pairs) * max(self.rows) <= MOST_SWAP_CELLS else []

    def join(
        self, positions: Sequence[int], expected_part: RowNumbers, actual_part: RowNumbers
    ) -> list[tuple[int, int]]:
        """Return rows of either side that agree in these columns (which distinguish the rows of each
        side).
        """
        es, as_ = np.asarray(expected_part, np.int64), np.asarray(actual_part, np.int64)
        mine, theirs = self._both_hashes(positions)
        _, left, right = np.intersect1d(mine[es], theirs[as_], return_indices=True)
        return list(zip(es[left].tolist(), as_[right].tolist(), strict=True))

    def unique(self, positions: Sequence[int], expected: bool) -> bool:
        """Return whether these columns (which have no tolerance) distinguish all rows of a side."""
        hashes = self._both_hashes(positions)[0 if expected else 1]
        head = hashes[:2000]
        return len(distinct(head)) == len(head) and len(distinct(hashes)) == len(hashes)

    def exact(self, position: int) -> bool:
        """Return whether a column is compared without tolerance."""
        return not self.paired[position].rules

    def agrees_without(self, position: int) -> bool:
        """Return whether the tables match when one column is left out: it alone is to blame."""
        return self._likely(position) and self.match(self.rest(position))

    def _likely(self, position: int) -> bool:
        """Return a sum over row hashes says at once that the other columns disagree."""
        if self.options.duplicates == "set" or self.runs is not None:
            return True
        others = [i for i in range(len(self.paired)) if i != position]
        mine, theirs = self._both_hashes(others)
        mixed = [h * (h >> np.uint64(7) | np.uint64(1)) for h in (mine, theirs)]
        return bool(mixed[0].sum() == mixed[1].sum())

    def close_up(self, position: int) -> ColumnContext:
        """Return a sample of rows that belong together on both sides, as Python values."""
        if max(self.rows) <= MOST_SAMPLED and self._everything is not None:
            return self._everything
        expected_part, actual_part = self._sample(position)
        tables = self.expected.take(expected_part.tolist()), self.actual.take(actual_part.tolist())
        engine = PythonEngine(*tables, self.options)
        engine.take_kinds(self.engine, [e for e, _ in self.pairs])
        runs = None if self.runs is None else _runs_of(self._run_of[expected_part])
        found = PythonDiagnosisContext(engine, self.options, self.columns, runs, self.order)
        self._everything = found if max(self.rows) <= MOST_SAMPLED else None
        return found

    def whole(self, position: int) -> ColumnContext | None:
        """Return all rows for the study of one column; ``None`` where they are too many."""
        if max(self.rows) <= MOST_SAMPLED:
            return self.close_up(position)
        return ArrayColumnContext(self) if max(self.rows) <= MOST_WHOLE else None

    def _sample(self, position: int) -> tuple[Rows, Rows]:
        """Return rows of both sides that agree in all other columns, those that differ among them."""
        if max(self.rows) <= MOST_SAMPLED:
            return np.arange(self.rows[0]), np.arange(self.rows[1])
        if self.runs is not None:
            rows = self._whole_runs()
            return rows, rows
        others = [i for i in range(len(self.paired)) if i != position]
        mine, theirs = self._both_hashes(others)
        chosen = distinct(
            np.concatenate(
                [distinct(mine[np.asarray(self.unmatched_expected, np.int64)])[:SAMPLE], np.sort(mine)[:20]]
            )
        )
        expected_part, actual_part = (
            np.flatnonzero(among(mine, chosen)),
            np.flatnonzero(among(theirs, chosen)),
        )
        if max(len(expected_part), len(actual_part)) <= MOST_SAMPLED:
            return expected_part, actual_part
        return self._by_rank(position, expected_part, True), self._by_rank(position, actual_part, False)

    @cached_property
    def _run_of(self) -> Rows:
        """The run of ties that each row belongs to."""
        return run_ids(self.runs or (), self.rows)[0]

    def _whole_runs(self) -> Rows:
        """Return rows of whole runs: of those that hold a moved row, and of others between them.

        A word that is undone on the moved rows alone would not say that the others contradict it.
        """
        runs = self.runs or ()
        moved = distinct(self._run_of[np.asarray(self.moved(), np.int64)])
        others = np.linspace(0, len(runs) - 1, min(len(runs), SAMPLE)).astype(np.int64)
        chosen: list[range] = []
        for numbers, most in ((moved, 2 * SAMPLE), (np.setdiff1d(others, moved), SAMPLE)):
            held = 0
            for number in numbers.tolist():
                held += len(runs[number])
                if held > most and held > len(runs[number]):
                    break
                chosen.append(runs[number])
        rows = [row for run in sorted(chosen, key=lambda run: run.start) for row in run]
        return np.asarray(rows[:MOST_SAMPLED], np.int64)

    def _by_rank(self, position: int, rows: Rows, expected: bool) -> Rows:
        """Return rows at even distances in the order of a column, where nothing else distinguishes rows."""
        keys, numbers = self._sides(expected)[position]
        values: Any = numbers[0].floats if numbers else keys.values
        order = rows if values is None else rows[np.argsort(values[rows], kind="stable")]
        return order[np.linspace(0, len(order) - 1, min(len(order), SAMPLE)).astype(np.int64)]


def _runs_of(numbers: Rows) -> list[range]:
    """Return the runs of equal numbers, as ranges of places."""
    ends = [*np.flatnonzero(np.diff(numbers)) + 1, len(numbers)]
    return [range(int(start), int(end)) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def _arrays(columns: Sequence[ArrayColumn], expected: bool) -> list[NDArray[Any]]:
    """Return all arrays that make up the cells of one side."""
    found: list[Any] = []
    for column in columns:
        keys = column.expected if expected else column.actual
        found += [keys.classes, keys.values]
        found += [(rule.expected if expected else rule.actual).floats for rule in column.rules]
    return [array for array in found if array is not None]


def _tiled_keys(keys: ColumnKeys, times: int) -> ColumnKeys:
    classes, values = (None if x is None else np.tile(x, times) for x in (keys.classes, keys.values))
    return ColumnKeys(classes, values)  # type: ignore[arg-type]


def _tiled(numbers: ToleranceNumbers, times: int) -> ToleranceNumbers:
    return ToleranceNumbers(
        np.tile(numbers.floats, times),
        None if numbers.present is None else np.tile(numbers.present, times),
        None if numbers.scaled is None else np.tile(numbers.scaled, times),
        numbers.scale,
        None if numbers.given is None else [*(numbers.at(i) for i in range(len(numbers.floats)))] * times,
        numbers.single,
    )
