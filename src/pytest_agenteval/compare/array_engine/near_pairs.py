"""Rows near each other: numbers graded pair by pair, pieces that no tolerance crosses, a maximum flow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pytest_agenteval.compare.array_engine.arrays import ColumnKeys, KeyCoder, ToleranceNumbers, bits
from pytest_agenteval.compare.array_engine.number_rule import ArrayNumberRule, reach
from pytest_agenteval.compare.array_engine.row_hashes import hash_rows
from pytest_agenteval.compare.values.numbers import NO

Rows = NDArray[np.int64]
MOST_EDGES = 20_000_000
CHUNK = 2_000_000
GRADED = 16_000


def close(
    rules: Sequence[ArrayNumberRule], expected_part: Rows, actual_part: Rows, stop: bool = False
) -> NDArray[np.bool_]:
    """Return which pairs of rows (of equal exact parts) agree in all numbers."""
    good = np.ones(len(expected_part), bool)
    if len(expected_part) > GRADED and rules:
        for start in range(0, len(expected_part), GRADED):
            part = slice(start, start + GRADED)
            good[part] = close(rules, expected_part[part], actual_part[part], stop)
            if stop and not good[part].all():
                break
        return good
    for rule in rules:
        held = rule.expected.present
        # filtering does not pay off while more than 7/8 of the rows still match
        if held is None and np.count_nonzero(good) * 8 > len(expected_part) * 7:
            good &= rule.grade(expected_part, actual_part, stop) != NO
        else:
            live = np.flatnonzero(good if held is None else good & held[expected_part])
            good[live] = rule.grade(expected_part[live], actual_part[live], stop) != NO
        if stop and not good.all():
            break
    return good


def graded(rules: Sequence[ArrayNumberRule], es: Rows, as_: Rows) -> NDArray[np.uint8]:
    """Return how near pairs of rows agree: the worst grade of their numbers."""
    out = np.zeros(len(es), np.uint8)
    for rule in rules:
        held = rule.expected.present
        live = np.arange(len(es)) if held is None else np.flatnonzero(held[es])
        out[live] = np.maximum(out[live], rule.grade(es[live], as_[live]))
    return out


def near_pairs(
    rules: Sequence[ArrayNumberRule], piece_e: Rows, e: Rows, piece_a: Rows, a: Rows
) -> tuple[Rows, Rows] | None:
    """Return positions in ``e`` and ``a`` of rows near each other; ``None`` where there are too many to test.

    With two tolerant columns the first one puts rows into buckets as wide as its tolerance, and
    the window slides over the second one inside a bucket and its two neighbours.
    """
    nth = 0
    shifts: tuple[int, ...] = (0,)
    if len(rules) > 1:
        cells = _buckets(rules[0], piece_e, e, piece_a, a)
        if cells is not None:
            piece_e, piece_a = cells
            nth, shifts = 1, (-1, 0, 1)
    rule = rules[nth]
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
    found = [_edges(rules, e, a[order], low, counts) for low, counts in windows]
    heads, tails = (np.concatenate([pair[side] for pair in found]) for side in (0, 1))
    return heads, order[tails]


def _edges(rules: Sequence[ArrayNumberRule], e: Rows, a: Rows, low: Rows, counts: Rows) -> tuple[Rows, Rows]:
    """Return pairs of positions that are near in every column, tested in chunks."""
    heads, tails = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    ends = np.cumsum(counts)
    start = 0
    while start < len(e):
        stop = max(start + 1, int(np.searchsorted(ends, (ends[start - 1] if start else 0) + CHUNK, "right")))
        part = counts[start:stop]
        head = np.repeat(np.arange(start, stop), part)
        offset = np.arange(len(head)) - np.repeat(np.cumsum(part) - part, part)
        tail = np.repeat(low[start:stop], part) + offset
        good = close(rules, e[head], a[tail])
        heads.append(head[good])
        tails.append(tail[good])
        start = stop
    return np.concatenate(heads), np.concatenate(tails)


def pieces(
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
    """Return where the groups start when the array is read backwards."""
    ends = np.r_[start[1:], size]
    return np.sort(size - ends)


def _running(values: NDArray[np.float64], start: Rows, function: np.ufunc) -> NDArray[np.float64]:
    """Return the running maximum or minimum within groups that begin at ``start``."""
    if len(start) == 1:
        return np.asarray(function.accumulate(values))
    out = np.empty_like(values)
    ends = np.r_[start[1:], len(values)]
    for a, b in zip(start.tolist(), ends.tolist(), strict=True):
        out[a:b] = function.accumulate(values[a:b])
    return out


def _buckets(
    rule: ArrayNumberRule, piece_e: Rows, e: Rows, piece_a: Rows, a: Rows
) -> tuple[Rows, Rows] | None:
    """Return pieces cut further into buckets of one tolerance; near numbers are at most one bucket apart.

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
    """Return for each (piece, at) how many sorted (piece, value) stand before it (or up to it)."""
    pieces = np.concatenate([piece, at_piece])
    values = np.concatenate([value, at])
    side = np.concatenate([np.ones(len(piece)), np.full(len(at), 0 if before else 2)])
    order = np.lexsort([side, values, pieces])
    counted = np.cumsum(order < len(piece))
    out = np.empty(len(order), np.int64)
    out[order] = counted
    return out[len(piece) :]


@dataclass(frozen=True, slots=True)
class RowClasses:
    """Rows that hold the same numbers: the first of each class, how many there are, and rows by class."""

    first: Rows
    counts: Rows
    ordered: Rows
    starts: Rows

    @classmethod
    def of(cls, numbers: Sequence[ToleranceNumbers], piece: Rows, rows: Rows) -> RowClasses:
        """Put ``rows`` that lie in one piece and hold equal numbers, exactly, into one class."""
        keys = [ColumnKeys(None, piece)]
        for column in numbers:
            keys.append(ColumnKeys(None, bits(column)[rows]))
            if column.scaled is not None:
                keys.append(ColumnKeys(None, column.scaled[rows]))
            if column.given is not None:
                coder = KeyCoder()
                given = [(type(column.given[row]), column.given[row]) for row in rows.tolist()]
                keys.append(ColumnKeys(None, np.array([coder.code(key) for key in given], np.int64)))
        hashes = hash_rows(keys, len(rows))
        _, first, back, counts = np.unique(hashes, return_index=True, return_inverse=True, return_counts=True)
        return cls(first, counts, np.argsort(back, kind="stable"), np.cumsum(counts) - counts)

    def rows(self, classes: Rows) -> Rows:
        """Return a row for each of ``classes``, another one for each time that a class comes."""
        order = np.argsort(classes, kind="stable")
        ranked = classes[order]
        new = np.r_[True, ranked[1:] != ranked[:-1]] if len(ranked) else np.zeros(0, bool)
        nth = np.arange(len(ranked)) - np.maximum.accumulate(np.where(new, np.arange(len(ranked)), 0))
        out = np.empty(len(classes), np.int64)
        out[order] = self.ordered[self.starts[ranked] + nth]
        return out


def largest_flow(heads: Rows, tails: Rows, left: Rows, right: Rows) -> tuple[Rows, Rows, Rows]:
    """Return a largest matching of classes of ``left`` and ``right`` sizes along edges (Dinic, in SciPy).

    The edges that are used (heads, tails), and how many rows each pairs.
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_flow

    source, sink = len(left) + len(right), len(left) + len(right) + 1
    starts = np.concatenate([heads, np.full(len(left), source), len(left) + np.arange(len(right))])
    ends = np.concatenate([len(left) + tails, np.arange(len(left)), np.full(len(right), sink)])
    sizes = np.concatenate([np.minimum(left[heads], right[tails]), left, right]).astype(np.int32)
    graph = csr_matrix((sizes, (starts, ends)), shape=(sink + 1, sink + 1))
    flow = maximum_flow(graph, source, sink).flow.tocoo()
    used = (flow.data > 0) & (flow.row < len(left)) & (flow.col >= len(left)) & (flow.col < source)
    rows, columns, counts = flow.row[used], flow.col[used] - len(left), flow.data[used]
    return rows.astype(np.int64), columns.astype(np.int64), counts.astype(np.int64)
