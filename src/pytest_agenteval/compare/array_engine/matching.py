"""Pairing rows of large tables: by hashes of the exact columns, then under tolerance.

The steps are those of docs/comparing.md: hash the exact part, sort, compare exactly along the two orders;
unique hashes pair at once; larger groups are sorted by their numbers; what still fails is cut into
pieces that no tolerance crosses and solved as a maximum flow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_agenteval.compare.array_engine.arrays import ColumnKeys, exact_codes
from pytest_agenteval.compare.array_engine.near_pairs import (
    RowClasses,
    close,
    graded,
    largest_flow,
    near_pairs,
    pieces,
)
from pytest_agenteval.compare.array_engine.number_rule import reach
from pytest_agenteval.compare.array_engine.row_hashes import (
    ArrayColumn,
    among,
    distinct,
    exact_ids,
    hash_rows,
    leveled,
)
from pytest_agenteval.compare.array_engine.text_hashes import BLOCK

Rows = NDArray[np.int64]
Ids = tuple[NDArray[np.uint64], NDArray[np.uint64]]


@dataclass(slots=True)
class ArrayPairing:
    """``partner[e]`` is the answered row of expected row e, or -1; ``unmatched_actual`` are left over."""

    partner: Rows
    unmatched_actual: Rows
    matched: bool
    exhausted: bool = False

    @property
    def unmatched_expected(self) -> Rows:
        """Expected rows without a partner."""
        return np.flatnonzero(self.partner < 0)


@dataclass(frozen=True, slots=True)
class _Sorted:
    """Rows of both sides in the order of their ids, those ids, and whether they are the same bag."""

    e: Rows
    a: Rows
    own: NDArray[np.uint64]
    others: NDArray[np.uint64]
    same: bool

    @classmethod
    def of(
        cls, ids: Ids, expected_part: Rows | None, actual_part: Rows | None, stable: bool = False
    ) -> _Sorted:
        """Sort rows (``None``: all) by their ids. ``stable``: rows of one id stay in their order."""
        e, a = (
            np.argsort(side) if rows is None else rows[np.argsort(side[rows])]
            for side, rows in zip(ids, (expected_part, actual_part), strict=True)
        )
        own, others = ids[0][e], ids[1][a]
        if stable:
            _in_order(e, own)
            _in_order(a, others)
        return cls(e, a, own, others, bool(np.array_equal(own, others)))


def _in_order(rows: Rows, ids: NDArray[np.uint64]) -> None:
    """Put rows that share an id in the order of their numbers, in place; few do."""
    again = ids[1:] == ids[:-1]
    if not bool(again.any()):
        return
    shared = np.zeros(len(ids), bool)
    shared[1:] = again
    shared[:-1] |= again
    places = np.flatnonzero(shared)
    rows[places] = rows[places][np.lexsort((rows[places], ids[places]))]


class Matcher:
    """Pairs all (or given) rows of two tables on some columns."""

    def __init__(
        self, columns: Sequence[ArrayColumn], rows: tuple[int, int], runs: tuple[Rows, Rows] | None = None
    ) -> None:
        self.rules = [rule for column in columns for rule in column.rules]
        self.rows = rows
        columns = (
            [*columns, ArrayColumn(ColumnKeys(None, runs[0]), ColumnKeys(None, runs[1]))] if runs else columns
        )
        self.left, self.right = leveled(columns, rows)
        self.exhausted = False
        self._ids: Ids | None = None
        self._all: _Sorted | None = None

    def ids(self) -> Ids:
        """Return the hash of every row's exact part, for both sides."""
        if self._ids is None:
            self._ids = hash_rows(self.left, self.rows[0]), hash_rows(self.right, self.rows[1])
        return self._ids

    def _ordered(self, expected_part: Rows | None, actual_part: Rows | None, stable: bool) -> _Sorted:
        """Return rows of both sides sorted by their hashes (kept for all rows)."""
        if expected_part is not None or actual_part is not None or stable:
            return _Sorted.of(self.ids(), expected_part, actual_part, stable)
        if self._all is None:
            self._all = _Sorted.of(self.ids(), None, None)
        return self._all

    def _given(self, rows: Rows | None, side: int) -> Rows:
        return np.arange(self.rows[side]) if rows is None else rows

    def pair(
        self, expected_part: Rows | None = None, actual_part: Rows | None = None, full: bool = False
    ) -> ArrayPairing:
        """Pair the rows. Without ``full`` the work ends as soon as no perfect pairing can exist."""
        partner = np.full(self.rows[0], -1, np.int64)
        sizes = [
            n if rows is None else len(rows)
            for rows, n in zip((expected_part, actual_part), self.rows, strict=True)
        ]
        if sizes[0] != sizes[1] and not full:
            return ArrayPairing(partner, self._given(actual_part, 1), False)
        ids = self.ids()
        if not full and expected_part is None and actual_part is None and ids[0].sum() != ids[1].sum():
            return ArrayPairing(partner, self._given(None, 1), False)
        ordered = self._ordered(expected_part, actual_part, full)
        expected_part, actual_part = self._given(expected_part, 0), self._given(actual_part, 1)
        if ordered.same and not self.agree(ordered.e, ordered.a):
            ids = exact_ids(self.left, self.right, self.rows)
            ordered = _Sorted.of(ids, expected_part, actual_part, full)
        same = ordered.same
        if not same and not full:
            return ArrayPairing(partner, actual_part, False)
        done = self._pair_groups(ordered, partner, full)
        if not done:
            return ArrayPairing(np.full(self.rows[0], -1, np.int64), actual_part, False, self.exhausted)
        if same and not self.exhausted and len(expected_part) == self.rows[0] and bool((partner >= 0).all()):
            return ArrayPairing(partner, np.zeros(0, np.int64), True)
        used = np.zeros(self.rows[1], bool)
        used[partner[partner >= 0]] = True
        unmatched_actual = actual_part[~used[actual_part]]
        matched = (
            same
            and not len(unmatched_actual)
            and bool((partner[expected_part] >= 0).all())
            and not self.exhausted
        )
        return ArrayPairing(partner, np.sort(unmatched_actual), matched, self.exhausted)

    def _pair_singles(self, e: Rows, a: Rows, partner: Rows, full: bool) -> bool:
        """Return rows whose exact part is unique on either side: a number that does not fit is final."""
        e, a = self._straight(e, a)
        good = close(self.rules, e, a, stop=not full)
        if bool(good.all()):
            partner[e] = a
            return True
        partner[e[good]] = a[good]
        return full

    def _straight(self, e: Rows, a: Rows) -> tuple[Rows, Rows]:
        """Return the same pairs in the order of the answered rows: one side is then read straight on."""
        order = np.full(self.rows[1], -1, np.int64)
        order[a] = e
        a = np.flatnonzero(order >= 0)
        return order[a], a

    def agree(self, e: Rows, a: Rows) -> bool:
        """Return whether all exact parts agree along two orders of rows."""
        e, a = self._straight(e, a)
        for one, two in zip(self.left, self.right, strict=True):
            if one.texts is not None and two.texts is not None:
                if one.texts.differ(e, two.texts, a):
                    return False
            elif not _same(one.values, two.values, e, a):
                return False
            if not _same(one.classes, two.classes, e, a):
                return False
        return True

    def _pair_groups(self, ordered: _Sorted, partner: Rows, full: bool) -> bool:
        """Pair group by group; False when no perfect pairing exists and ``full`` is off."""
        e, a, own, others, same = ordered.e, ordered.a, ordered.own, ordered.others, ordered.same
        if _unique(own) and (same or _unique(others)):
            if not same:
                at, there = _found(own, others)
                e, a = e[there], a[at[there]]
            return self._pair_singles(e, a, partner, full)
        first_e, count_e, own = _groups(own)
        first_a, count_a = first_e, count_e
        if not same:
            first_a, count_a, others = _groups(others)
            at, there = _found(own, others)
            first_a, count_a = first_a[at], np.where(there, count_a[at], 0)
        if not self.rules:
            self._pair_in_order(e, a, first_e, count_e, first_a, count_a, partner)
            return True
        single = (count_e == 1) & (count_a == 1)
        if not self._pair_singles(e[first_e[single]], a[first_a[single]], partner, full):
            return False
        many = ~single & (count_a > 0)
        if not many.any():
            return True
        return self._pair_many(
            _expand(e, first_e[many], count_e[many]),
            _expand(a, first_a[many], count_a[many]),
            partner,
            full,
        )

    def pair_sets(self, expected_part: Rows | None = None, actual_part: Rows | None = None) -> ArrayPairing:
        """Pair as sets: each row needs an equal one on the other side, counts are not looked at."""
        expected_part = np.arange(self.rows[0]) if expected_part is None else expected_part
        actual_part = np.arange(self.rows[1]) if actual_part is None else actual_part
        partner = np.full(self.rows[0], -1, np.int64)
        reached = np.zeros(self.rows[1], bool)
        ids_e, ids_a = self._numbered(expected_part, actual_part)
        if not self.rules:
            known, at = np.unique(ids_a[actual_part], return_index=True)
            place = np.clip(np.searchsorted(known, ids_e[expected_part]), 0, max(len(known) - 1, 0))
            hit = known[place] == ids_e[expected_part] if len(known) else np.zeros(len(expected_part), bool)
            partner[expected_part[hit]] = actual_part[at[place[hit]]]
            reached[actual_part] = among(ids_a[actual_part], distinct(ids_e[expected_part]))
        elif len(expected_part) and len(actual_part):
            self._reach_sets(ids_e, ids_a, expected_part, actual_part, partner, reached)
        unmatched_actual = actual_part[~reached[actual_part]]
        matched = (
            not len(unmatched_actual) and bool((partner[expected_part] >= 0).all()) and not self.exhausted
        )
        return ArrayPairing(partner, unmatched_actual, matched, self.exhausted)

    def _numbered(self, expected_part: Rows, actual_part: Rows) -> tuple[Rows, Rows]:
        """Return small ids per row, equal where the hashes of the exact parts are."""
        hashes = self.ids()
        out = [np.zeros(n, np.int64) for n in self.rows]
        both = np.concatenate([hashes[0][expected_part], hashes[1][actual_part]])
        ids = np.unique(both, return_inverse=True)[1]
        out[0][expected_part], out[1][actual_part] = ids[: len(expected_part)], ids[len(expected_part) :]
        return out[0], out[1]

    def _reach_sets(
        self,
        ids_e: Rows,
        ids_a: Rows,
        expected_part: Rows,
        actual_part: Rows,
        partner: Rows,
        reached: NDArray[np.bool_],
    ) -> None:
        """Mark every row that has a near one of the same exact part on the other side."""
        # equal rows have the same neighbours: one of each is looked at
        one_e, same_e = self._distinct_rows(ids_e, expected_part, expected=True)
        one_a, same_a = self._distinct_rows(ids_a, actual_part, expected=False)
        edges = near_pairs(self.rules, ids_e[one_e], one_e, ids_a[one_a], one_a)
        if edges is None:
            self.exhausted = True
            return
        heads, tails = one_e[edges[0]], one_a[edges[1]]
        grades = graded(self.rules, heads, tails)
        order = np.lexsort((-tails, -grades.astype(np.int64)))  # the best partner comes last, and stays
        partner[heads[order]] = tails[order]
        reached[tails] = True
        partner[expected_part] = partner[one_e][same_e]
        reached[actual_part] = reached[one_a][same_a]

    def _distinct_rows(self, ids: Rows, part: Rows, expected: bool) -> tuple[Rows, NDArray[np.intp]]:
        """Return the first of each set of equal rows, and for each row which of those it is."""
        sides = [rule.expected if expected else rule.actual for rule in self.rules]
        columns = [ids[part], *(exact_codes(numbers, part) for numbers in sides)]
        _, first, inverse = np.unique(
            np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True
        )
        return part[first], inverse.reshape(-1)

    @staticmethod
    def _pair_in_order(
        e: Rows, a: Rows, first_e: Rows, count_e: Rows, first_a: Rows, count_a: Rows, partner: Rows
    ) -> None:
        least = np.minimum(count_e, count_a)
        _, left = _expand(e, first_e, least)
        _, right = _expand(a, first_a, least)
        partner[left] = right

    def _pair_many(
        self, left: tuple[Rows, Rows], right: tuple[Rows, Rows], partner: Rows, full: bool
    ) -> bool:
        """Pair groups of several rows: sorted by their numbers, else solved exactly."""
        group_e, e = self._by_numbers(*left, True)
        group_a, a = self._by_numbers(*right, False)
        even = len(e) == len(a) and bool(np.array_equal(group_e, group_a))
        if even:
            good = close(self.rules, e, a)
            broken = distinct(group_e[~good])
            whole = ~among(group_e, broken)
            partner[e[whole]] = a[whole]
            if not len(broken):
                return True
            if not full and len(self.rules) == 1 and self.rules[0].monotone:
                return False
            keep = ~whole
            group_e, e, group_a, a = group_e[keep], e[keep], group_a[keep], a[keep]
        return self._pair_broken(group_e, e, group_a, a, partner, full)

    def _by_numbers(self, group: Rows, rows: Rows, expected: bool) -> tuple[Rows, Rows]:
        keys = [(r.expected if expected else r.actual).floats[rows] for r in reversed(self.rules)]
        order = np.lexsort([*keys, group])
        return group[order], rows[order]

    def _pair_broken(self, group_e: Rows, e: Rows, group_a: Rows, a: Rows, partner: Rows, full: bool) -> bool:
        """Pair groups that sorting did not: cut into pieces, then a maximum flow over what is near."""
        x, y = self.rules[0].expected.floats[e], self.rules[0].actual.floats[a]
        near = reach(self.rules[0].base, x)
        piece_e, piece_a = pieces(group_e, x, near, group_a, y)
        size = int(max(piece_e.max(initial=0), piece_a.max(initial=0))) + 1
        counts_e, counts_a = np.bincount(piece_e, minlength=size), np.bincount(piece_a, minlength=size)
        if not full and not np.array_equal(counts_e, counts_a):
            return False
        even = counts_e == counts_a
        keep_e, keep_a = even[piece_e], even[piece_a]
        one, two = e[keep_e], a[keep_a]
        good = close(self.rules, one, two)
        broken = ~even
        broken[np.unique(piece_e[keep_e][~good])] = True
        solved = ~broken[piece_e[keep_e]]
        partner[one[solved]] = two[solved]
        open_e, open_a = broken[piece_e], broken[piece_a]
        if not open_e.any() or not open_a.any():
            return True
        return self._flow(piece_e[open_e], e[open_e], piece_a[open_a], a[open_a], partner, full)

    def _flow(self, piece_e: Rows, e: Rows, piece_a: Rows, a: Rows, partner: Rows, full: bool) -> bool:
        """Return a maximum matching of what is near; rows that hold the same numbers are one node of the
        graph.
        """
        left = RowClasses.of([rule.expected for rule in self.rules], piece_e, e)
        right = RowClasses.of([rule.actual for rule in self.rules], piece_a, a)
        edges = near_pairs(
            self.rules, piece_e[left.first], e[left.first], piece_a[right.first], a[right.first]
        )
        if edges is None:
            self.exhausted = True
            return full
        heads, tails, flow = largest_flow(*edges, left.counts, right.counts)
        pairs_e, pairs_a = left.rows(np.repeat(heads, flow)), right.rows(np.repeat(tails, flow))
        partner[e[pairs_e]] = a[pairs_a]
        return full or len(pairs_e) == len(e)


def run_ids(runs: Sequence[range], rows: tuple[int, int]) -> tuple[Rows, Rows]:
    """Return the run each row position belongs to; answered rows past the end have runs of their own."""
    ids = np.repeat(np.arange(len(runs)), [len(run) for run in runs])
    longest = max(rows)
    both = np.concatenate([ids, np.arange(len(runs), len(runs) + longest - len(ids))]).astype(np.int64)
    return both[: rows[0]], both[: rows[1]]


def _groups(ordered: NDArray[np.uint64]) -> tuple[Rows, Rows, NDArray[np.uint64]]:
    """Return where the runs of equal ids begin in a sorted array, how long they are, and their ids."""
    new = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    first = np.flatnonzero(new)
    return first, np.diff(first, append=len(ordered)), ordered[first]


def _unique(ordered: NDArray[np.uint64]) -> bool:
    """Return whether no id of a sorted array stands there twice."""
    return bool((ordered[1:] != ordered[:-1]).all())


def _found(ids: NDArray[np.uint64], others: NDArray[np.uint64]) -> tuple[Rows, NDArray[np.bool_]]:
    """Return where ids stand among ``others`` (sorted, without repeats), and which of them do."""
    if not len(others):
        return np.zeros(len(ids), np.int64), np.zeros(len(ids), bool)
    at = np.searchsorted(others, ids)
    np.minimum(at, len(others) - 1, out=at)
    return at, others[at] == ids


def _same(one: NDArray[Any] | None, two: NDArray[Any] | None, e: Rows, a: Rows) -> bool:
    """Return whether two arrays agree along two orders of rows."""
    if one is None or two is None:
        return True
    blocks = range(0, len(e), BLOCK)
    return all(np.array_equal(one[e[i : i + BLOCK]], two[a[i : i + BLOCK]]) for i in blocks)


def _expand(rows: Rows, first: Rows, count: Rows) -> tuple[Rows, Rows]:
    """Group numbers and rows of groups given by their first positions and sizes."""
    group = np.repeat(np.arange(len(count)), count)
    offset = np.arange(len(group)) - np.repeat(np.cumsum(count) - count, count)
    return group, rows[np.repeat(first, count) + offset]
