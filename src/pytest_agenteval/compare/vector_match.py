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
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pytest_agenteval.compare.numbers import NO
from pytest_agenteval.compare.vector_rule import VectorRule, reach
from pytest_agenteval.compare.vectors import BLOCK, NUMBER_CLASS, VALUE_CLASS, Keys

Rows = NDArray[np.int64]
MOST_EDGES = 20_000_000
CHUNK = 2_000_000
GRADED = 32_768


@dataclass(frozen=True, slots=True)
class VectorColumn:
    """One column pair: exact parts, and the rules of the numbers in it."""

    expected: Keys
    actual: Keys
    rules: tuple[VectorRule, ...] = ()


@dataclass(slots=True)
class VectorPairing:
    """``partner[e]`` is the answered row of expected row e, or -1; ``spare`` answered rows are left over."""

    partner: Rows
    spare: Rows
    matched: bool
    exhausted: bool = False

    @property
    def lost(self) -> Rows:
        """Expected rows without a partner."""
        return np.flatnonzero(self.partner < 0)


_ODD = [np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93)]


def hash_rows(keys: Sequence[Keys], rows: int) -> NDArray[np.uint64]:
    """64 bits per row over the exact parts of its cells (in blocks that stay in the cache)."""
    out = np.full(rows, np.uint64(0x243F6A8885A308D3))
    spare = np.empty(BLOCK, np.uint64)
    for start in range(0, rows, BLOCK):
        block = out[start : start + BLOCK]
        work = spare[: len(block)]
        for key in keys:
            if key.values is not None:
                np.multiply(key.values[start : start + BLOCK].view(np.uint64), _ODD[0], out=work)
                block ^= work
            if key.classes is not None:
                np.multiply(key.classes[start : start + BLOCK], _ODD[1], out=work, dtype=np.uint64)
                work += _ODD[0]
                block ^= work
            if key.values is not None or key.classes is not None:
                block *= _ODD[2]
                np.right_shift(block, np.uint64(29), out=work)
                block ^= work
    return out


def exact_ids(
    left: Sequence[Keys], right: Sequence[Keys], rows: tuple[int, int]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Ids that are equal exactly where all exact parts are: the way out of a hash collision."""
    ids = np.zeros(rows[0] + rows[1], np.int64)
    for one, two in zip(left, right, strict=True):
        for mine, theirs in (_exact_values(one, two), (one.classes, two.classes)):
            if mine is None and theirs is None:
                continue
            a = np.zeros(rows[0], np.int64) if mine is None else mine.astype(np.int64)
            b = np.zeros(rows[1], np.int64) if theirs is None else theirs.astype(np.int64)
            codes = np.unique(np.concatenate([a, b]), return_inverse=True)[1]
            ids = np.unique(ids * (codes.max() + 1) + codes, return_inverse=True)[1] if len(codes) else ids
    unsigned = ids.astype(np.uint64)
    return unsigned[: rows[0]], unsigned[rows[0] :]


def _exact_values(one: Keys, two: Keys) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
    """Values that are equal exactly where the cells are (texts are encoded, not hashed)."""
    if one.texts is None or two.texts is None:
        return one.values, two.values
    arrays = [texts.array.cast(pa.large_string()) for texts in (one.texts, two.texts)]
    both = pa.chunked_array(arrays)
    chunks = pc.dictionary_encode(both, null_encoding="encode").chunks
    codes = [chunk.indices.to_numpy(zero_copy_only=False) for chunk in chunks]
    return codes[0], codes[1]


def leveled(columns: Sequence[VectorColumn], rows: tuple[int, int]) -> tuple[list[Keys], list[Keys]]:
    """Both sides' keys in the same form, so that equal cells hash alike."""
    left, right = [], []
    for column in columns:
        one, two = column.expected, column.actual
        classes = one.classes is not None or two.classes is not None
        values = one.values is not None or two.values is not None
        left.append(level(one, classes or values, values, rows[0]))
        right.append(level(two, classes or values, values, rows[1]))
        if all(keys.values is not None and keys.classes is None for keys in (one, two)):
            left[-1], right[-1] = one, two
    return left, right


def level(keys: Keys, classes: bool, values: bool, rows: int) -> Keys:
    """Keys with their classes or values written out where they went without saying."""
    own = keys.classes
    if classes and own is None:
        plain = NUMBER_CLASS if keys.values is None else VALUE_CLASS
        own = np.full(rows, plain, np.uint8)
    full = keys.values
    if values and full is None:
        full = np.zeros(rows, np.int64)
    return Keys(own, full, keys.texts)


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """The distinct values, sorted (sorting beats NumPy's hash table by far on 64 bits)."""
    ordered = np.sort(values)
    keep = np.ones(len(ordered), bool)
    keep[1:] = ordered[1:] != ordered[:-1]
    return ordered[keep]


def among(values: NDArray[Any], ordered: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values are in a sorted array."""
    if not len(ordered):
        return np.zeros(len(values), bool)
    at = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.asarray(ordered[at] == values)


class Matcher:
    """Pairs all (or given) rows of two tables on some columns."""

    def __init__(
        self, columns: Sequence[VectorColumn], rows: tuple[int, int], runs: tuple[Rows, Rows] | None = None
    ) -> None:
        self.rules = [rule for column in columns for rule in column.rules]
        self.rows = rows
        columns = [*columns, VectorColumn(Keys(None, runs[0]), Keys(None, runs[1]))] if runs else columns
        self.left, self.right = leveled(columns, rows)
        self.exhausted = False
        self._ids: tuple[NDArray[np.uint64], NDArray[np.uint64]] | None = None
        self._orders: tuple[Rows, Rows, bool] | None = None

    def ids(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """The hash of every row's exact part, for both sides."""
        if self._ids is None:
            self._ids = hash_rows(self.left, self.rows[0]), hash_rows(self.right, self.rows[1])
        return self._ids

    def _ordered(self, es: Rows | None, as_: Rows | None) -> tuple[Rows, Rows, bool]:
        """Rows of both sides sorted by their hashes (kept for all rows), and whether these agree."""
        if es is not None or as_ is not None:
            return _sorted(*self.ids(), self._given(es, 0), self._given(as_, 1))
        if self._orders is None:
            self._orders = _sorted(*self.ids(), None, None)
        return self._orders

    def _given(self, rows: Rows | None, side: int) -> Rows:
        return np.arange(self.rows[side]) if rows is None else rows

    def pair(self, es: Rows | None = None, as_: Rows | None = None, full: bool = False) -> VectorPairing:
        """Pair the rows. Without ``full`` the work ends as soon as no perfect pairing can exist."""
        partner = np.full(self.rows[0], -1, np.int64)
        sizes = [n if rows is None else len(rows) for rows, n in zip((es, as_), self.rows, strict=True)]
        if sizes[0] != sizes[1] and not full:
            return VectorPairing(partner, self._given(as_, 1), False)
        ids = self.ids()
        e, a, same = self._ordered(es, as_)
        es, as_ = self._given(es, 0), self._given(as_, 1)
        if same and not self._equal(e, a):
            ids = exact_ids(self.left, self.right, self.rows)
            e, a, same = _sorted(*ids, es, as_)
        if not same and not full:
            return VectorPairing(partner, as_, False)
        done = self._pair_groups(ids, e, a, partner, same, full)
        if not done:
            return VectorPairing(np.full(self.rows[0], -1, np.int64), as_, False, self.exhausted)
        if same and not self.exhausted and len(es) == self.rows[0] and bool((partner >= 0).all()):
            return VectorPairing(partner, np.zeros(0, np.int64), True)
        used = np.zeros(self.rows[1], bool)
        used[partner[partner >= 0]] = True
        spare = as_[~used[as_]]
        matched = same and not len(spare) and bool((partner[es] >= 0).all()) and not self.exhausted
        return VectorPairing(partner, np.sort(spare), matched, self.exhausted)

    def _pair_singles(self, e: Rows, a: Rows, partner: Rows, full: bool) -> bool:
        """Rows whose exact part is unique on either side: a number that does not fit is final."""
        good = self.close(e, a, stop=not full)
        if bool(good.all()):
            partner[e] = a
            return True
        partner[e[good]] = a[good]
        return full

    def _straight(self, e: Rows, a: Rows) -> tuple[Rows, Rows]:
        """The same pairs in the order of the answered rows: one side is then read straight on."""
        if len(a) != self.rows[1]:
            return e, a
        order = np.empty(len(a), np.int64)
        order[a] = e
        return order, np.arange(len(a))

    def _equal(self, e: Rows, a: Rows) -> bool:
        """Whether all exact parts agree along two orders of rows."""
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

    def _pair_groups(
        self,
        ids: tuple[NDArray[np.uint64], NDArray[np.uint64]],
        e: Rows,
        a: Rows,
        partner: Rows,
        same: bool,
        full: bool,
    ) -> bool:
        """Pair group by group; False when no perfect pairing exists and ``full`` is off."""
        sorted_e = ids[0][e]
        apart = sorted_e[1:] != sorted_e[:-1]
        if same and bool(apart.all()):
            return self._pair_singles(*self._straight(e, a), partner, full)
        first_e = np.flatnonzero(np.r_[True, apart][: len(sorted_e)])
        groups, count_e = sorted_e[first_e], np.diff(np.r_[first_e, len(sorted_e)])
        first_a, count_a = first_e, count_e
        if not same:
            sorted_a = ids[1][a]
            first_a = np.searchsorted(sorted_a, groups, "left")
            count_a = np.searchsorted(sorted_a, groups, "right") - first_a
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

    def pair_sets(self, es: Rows | None = None, as_: Rows | None = None) -> VectorPairing:
        """Pair as sets: each row needs an equal one on the other side, counts are not looked at."""
        es = np.arange(self.rows[0]) if es is None else es
        as_ = np.arange(self.rows[1]) if as_ is None else as_
        partner = np.full(self.rows[0], -1, np.int64)
        reached = np.zeros(self.rows[1], bool)
        ids_e, ids_a = self._numbered(es, as_)
        if not self.rules:
            known, at = np.unique(ids_a[as_], return_index=True)
            place = np.clip(np.searchsorted(known, ids_e[es]), 0, max(len(known) - 1, 0))
            hit = known[place] == ids_e[es] if len(known) else np.zeros(len(es), bool)
            partner[es[hit]] = as_[at[place[hit]]]
            reached[as_] = among(ids_a[as_], distinct(ids_e[es]))
        elif len(es) and len(as_):
            self._reach_sets(ids_e, ids_a, es, as_, partner, reached)
        spare = as_[~reached[as_]]
        matched = not len(spare) and bool((partner[es] >= 0).all()) and not self.exhausted
        return VectorPairing(partner, spare, matched, self.exhausted)

    def _numbered(self, es: Rows, as_: Rows) -> tuple[Rows, Rows]:
        """Small ids per row, equal where the hashes of the exact parts are."""
        hashes = self.ids()
        out = [np.zeros(n, np.int64) for n in self.rows]
        both = np.concatenate([hashes[0][es], hashes[1][as_]])
        ids = np.unique(both, return_inverse=True)[1]
        out[0][es], out[1][as_] = ids[: len(es)], ids[len(es) :]
        return out[0], out[1]

    def _reach_sets(
        self, ids_e: Rows, ids_a: Rows, es: Rows, as_: Rows, partner: Rows, reached: NDArray[np.bool_]
    ) -> None:
        """Mark every row that has a near one of the same exact part on the other side."""
        edges = self._near(ids_e[es], es, ids_a[as_], as_)
        if edges is None:
            self.exhausted = True
            return
        partner[es[edges[0]]] = as_[edges[1]]
        reached[as_[edges[1]]] = True

    @staticmethod
    def _pair_in_order(
        e: Rows, a: Rows, first_e: Rows, count_e: Rows, first_a: Rows, count_a: Rows, partner: Rows
    ) -> None:
        least = np.minimum(count_e, count_a)
        _, left = _expand(e, first_e, least)
        _, right = _expand(a, first_a, least)
        partner[left] = right

    def close(self, es: Rows, as_: Rows, stop: bool = False) -> NDArray[np.bool_]:
        """Which pairs of rows (of equal exact parts) agree in all numbers."""
        good = np.ones(len(es), bool)
        if len(es) > GRADED and self.rules:
            for start in range(0, len(es), GRADED):
                part = slice(start, start + GRADED)
                good[part] = self.close(es[part], as_[part], stop)
                if stop and not good[part].all():
                    break
            return good
        for rule in self.rules:
            live = np.flatnonzero(good & _held(rule, es))
            if len(live):
                good[live] = rule.grade(es[live], as_[live], stop) != NO
                if stop and not good.all():
                    return good
        return good

    def _pair_many(
        self, left: tuple[Rows, Rows], right: tuple[Rows, Rows], partner: Rows, full: bool
    ) -> bool:
        """Groups of several rows: sorted by their numbers, else solved exactly."""
        group_e, e = self._by_numbers(*left, True)
        group_a, a = self._by_numbers(*right, False)
        even = len(e) == len(a) and bool(np.array_equal(group_e, group_a))
        if even:
            good = self.close(e, a)
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
        """Groups that sorting did not pair: cut into pieces, then a maximum flow over what is near."""
        x, y = self.rules[0].expected.floats[e], self.rules[0].actual.floats[a]
        near = reach(self.rules[0].base, x)
        piece_e, piece_a = _pieces(group_e, x, near, group_a, y)
        size = int(max(piece_e.max(initial=0), piece_a.max(initial=0))) + 1
        counts_e, counts_a = np.bincount(piece_e, minlength=size), np.bincount(piece_a, minlength=size)
        if not full and not np.array_equal(counts_e, counts_a):
            return False
        even = counts_e == counts_a
        keep_e, keep_a = even[piece_e], even[piece_a]
        one, two = e[keep_e], a[keep_a]
        good = self.close(one, two)
        broken = ~even
        broken[np.unique(piece_e[keep_e][~good])] = True
        solved = ~broken[piece_e[keep_e]]
        partner[one[solved]] = two[solved]
        open_e, open_a = broken[piece_e], broken[piece_a]
        if not open_e.any() or not open_a.any():
            return True
        return self._flow(piece_e[open_e], e[open_e], piece_a[open_a], a[open_a], partner, full)

    def _flow(self, piece_e: Rows, e: Rows, piece_a: Rows, a: Rows, partner: Rows, full: bool) -> bool:
        """A maximum matching of what is near, piece by piece."""
        edges = self._near(piece_e, e, piece_a, a)
        if edges is None:
            self.exhausted = True
            return full
        pairs_e, pairs_a = _largest_matching(*edges, len(e), len(a))
        partner[e[pairs_e]] = a[pairs_a]
        return full or len(pairs_e) == len(e)

    def _near(self, piece_e: Rows, e: Rows, piece_a: Rows, a: Rows) -> tuple[Rows, Rows] | None:
        """Positions in ``e`` and ``a`` of rows near each other; ``None`` where there are too many to test.

        With two tolerant columns the first one puts rows into buckets as wide as its tolerance, and
        the window slides over the second one inside a bucket and its two neighbours.
        """
        nth = 0
        shifts: tuple[int, ...] = (0,)
        if len(self.rules) > 1:
            cells = _buckets(self.rules[0], piece_e, e, piece_a, a)
            if cells is not None:
                piece_e, piece_a = cells
                nth, shifts = 1, (-1, 0, 1)
        rule = self.rules[nth]
        x, y = rule.expected.floats[e], rule.actual.floats[a]
        order = np.lexsort([y, piece_a])
        near = reach(rule.base, x)
        windows = []
        for shift in shifts:
            low = _ranks(piece_a[order], y[order], piece_e + shift, x - near, before=True)
            high = _ranks(piece_a[order], y[order], piece_e + shift, x + near, before=False)
            windows.append((low, np.maximum(high - low, 0)))
        if sum(int(counts.sum()) for _, counts in windows) > MOST_EDGES:
            return None
        found = [self._edges(e, a[order], low, counts) for low, counts in windows]
        heads, tails = (np.concatenate([pair[side] for pair in found]) for side in (0, 1))
        return heads, order[tails]

    def _edges(self, e: Rows, a: Rows, low: Rows, counts: Rows) -> tuple[Rows, Rows]:
        """Pairs of positions that are near in every column, tested in chunks."""
        heads, tails = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        ends = np.cumsum(counts)
        start = 0
        while start < len(e):
            stop = max(
                start + 1, int(np.searchsorted(ends, (ends[start - 1] if start else 0) + CHUNK, "right"))
            )
            part = counts[start:stop]
            head = np.repeat(np.arange(start, stop), part)
            offset = np.arange(len(head)) - np.repeat(np.cumsum(part) - part, part)
            tail = np.repeat(low[start:stop], part) + offset
            good = self.close(e[head], a[tail])
            heads.append(head[good])
            tails.append(tail[good])
            start = stop
        return np.concatenate(heads), np.concatenate(tails)


def _sorted(
    ids_e: NDArray[np.uint64], ids_a: NDArray[np.uint64], es: Rows | None, as_: Rows | None
) -> tuple[Rows, Rows, bool]:
    """Rows of both sides (``None``: all) sorted by their ids, and whether the ids are the same bag."""
    e, a = (
        np.argsort(ids) if rows is None else rows[np.argsort(ids[rows])]
        for ids, rows in ((ids_e, es), (ids_a, as_))
    )
    return e, a, len(e) == len(a) and bool(np.array_equal(ids_e[e], ids_a[a]))


def _same(one: NDArray[Any] | None, two: NDArray[Any] | None, e: Rows, a: Rows) -> bool:
    """Whether two arrays agree along two orders of rows."""
    if one is None or two is None:
        return True
    blocks = range(0, len(e), BLOCK)
    return all(np.array_equal(one[e[i : i + BLOCK]], two[a[i : i + BLOCK]]) for i in blocks)


def _held(rule: VectorRule, es: Rows) -> NDArray[np.bool_]:
    present = rule.expected.present
    return np.ones(len(es), bool) if present is None else present[es]


def _expand(rows: Rows, first: Rows, count: Rows) -> tuple[Rows, Rows]:
    """Group numbers and rows of groups given by their first positions and sizes."""
    group = np.repeat(np.arange(len(count)), count)
    offset = np.arange(len(group)) - np.repeat(np.cumsum(count) - count, count)
    return group, rows[np.repeat(first, count) + offset]


def _pieces(
    group_e: Rows, x: NDArray[np.float64], near: NDArray[np.float64], group_a: Rows, y: NDArray[np.float64]
) -> tuple[Rows, Rows]:
    """Cut each group where neighbours are further apart than any tolerance there reaches."""
    group = np.concatenate([group_e, group_a])
    value = np.concatenate([x, y])
    # A partner of y lies within the reach of some x; give y the widest reach its size allows.
    widest = np.concatenate([near, np.full(len(y), -1.0)])
    order = np.lexsort([value, group])
    group, value, widest = group[order], value[order], widest[order]
    far = np.where(widest >= 0, value + widest, -np.inf)
    close = np.where(widest >= 0, value - widest, np.inf)
    start = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    ends = _running(far, start, np.maximum)
    begins = _running(close[::-1], _mirrored(start, len(group)), np.minimum)[::-1]
    new = np.ones(len(group), bool)
    new[1:] = (group[1:] != group[:-1]) | ((value[1:] > ends[:-1]) & (value[:-1] < begins[1:]))
    piece = np.empty(len(group), np.int64)
    piece[order] = np.cumsum(new) - 1
    return piece[: len(x)], piece[len(x) :]


def _mirrored(start: Rows, size: int) -> Rows:
    """Where the groups start when the array is read backwards."""
    ends = np.r_[start[1:], size]
    return np.sort(size - ends)


def _running(values: NDArray[np.float64], start: Rows, function: np.ufunc) -> NDArray[np.float64]:
    """The running maximum or minimum within groups that begin at ``start``."""
    if len(start) == 1:
        return np.asarray(function.accumulate(values))
    out = np.empty_like(values)
    ends = np.r_[start[1:], len(values)]
    for a, b in zip(start.tolist(), ends.tolist(), strict=True):
        out[a:b] = function.accumulate(values[a:b])
    return out


def _buckets(rule: VectorRule, piece_e: Rows, e: Rows, piece_a: Rows, a: Rows) -> tuple[Rows, Rows] | None:
    """Pieces cut further into buckets of one tolerance; near numbers are at most one bucket apart.

    The tolerance grows with the number, so buckets are even in t(x), the integral of 1 / reach.
    """
    base = rule.base
    rise = base.rtol + (20 * 10.0 ** (1 - base.significant) if base.significant is not None else 0.0)
    least = float(reach(base, np.zeros(1))[0])
    if rise > 0.4 or least < 1e-300:
        return None
    rise = rise * (1 + 1e-6) + 1e-12
    spots = []
    for values in (rule.expected.floats[e], rule.actual.floats[a]):
        size = np.log1p(np.abs(values) * (rise / least)) / rise
        spots.append(np.floor(np.sign(values) * size * (1 - rise) * (1 - 1e-6)))
    lowest = min(float(spot.min()) for spot in spots)
    span = max(float(spot.max()) for spot in spots) - lowest + 4
    pieces = int(max(piece_e.max(), piece_a.max())) + 1
    if span * pieces > 2.0**60:
        return None
    one, two = (
        (piece * int(span) + (spot - lowest).astype(np.int64) + 1)
        for piece, spot in zip((piece_e, piece_a), spots, strict=True)
    )
    return one, two


def _ranks(
    piece: Rows, value: NDArray[np.float64], at_piece: Rows, at: NDArray[np.float64], before: bool
) -> Rows:
    """For each (piece, at): how many sorted (piece, value) stand before it (or up to it)."""
    pieces = np.concatenate([piece, at_piece])
    values = np.concatenate([value, at])
    side = np.concatenate([np.ones(len(piece)), np.full(len(at), 0 if before else 2)])
    order = np.lexsort([side, values, pieces])
    counted = np.cumsum(order < len(piece))
    out = np.empty(len(order), np.int64)
    out[order] = counted
    return out[len(piece) :]


def _largest_matching(heads: Rows, tails: Rows, left: int, right: int) -> tuple[Rows, Rows]:
    """A maximum bipartite matching by unit-capacity flow (Dinic, in SciPy)."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_flow

    source, sink = left + right, left + right + 1
    starts = np.concatenate([heads, np.full(left, source), left + np.arange(right)])
    ends = np.concatenate([left + tails, np.arange(left), np.full(right, sink)])
    ones = np.ones(len(starts), np.int32)
    graph = csr_matrix((ones, (starts, ends)), shape=(sink + 1, sink + 1))
    flow = maximum_flow(graph, source, sink).flow.tocoo()
    used = (flow.data > 0) & (flow.row < left) & (flow.col >= left) & (flow.col < source)
    return flow.row[used].astype(np.int64), flow.col[used].astype(np.int64) - left
