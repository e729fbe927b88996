"""Rows of one table to rows of the other: a perfect matching under tolerance, or what has none."""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_agenteval.compare.engine import RowNumbers
from pytest_agenteval.compare.values.cells import Cell
from pytest_agenteval.compare.values.numbers import EXACT, NO, Number, NumberRule, as_float, shortest

MOST_TESTS = 20_000


class TooMuchWork(Exception):
    """More pairs of rows lie near each other than Python values are fit for: that is for arrays."""


@dataclass(slots=True)
class WorkBudget:
    """How many pairs of rows may still be tested under tolerance; one for a whole comparison."""

    left: int = field(default_factory=lambda: MOST_TESTS)

    def spend(self, tests: int) -> None:
        """Count ``tests``. Raises ``TooMuchWork`` once they are too many."""
        self.left -= tests
        if self.left < 0:
            raise TooMuchWork


@dataclass(frozen=True, slots=True)
class PairedColumn:
    """An expected and an answered column, read the same way; ``rule`` compares their numbers."""

    expected: Sequence[Cell]
    actual: Sequence[Cell]
    rule: NumberRule | None = None

    def grade(self, e: int, a: int) -> int:
        """Return how expected cell ``e`` agrees with answered cell ``a``: EXACT, CLOSE, ROUNDED or NO."""
        (key, xs), (other, ys) = self.expected[e], self.actual[a]
        if key != other:
            return NO
        if not xs or self.rule is None:
            return EXACT
        return max(self.rule.grade(x, y) for x, y in zip(xs, ys, strict=True))


def exactly(cell: Cell) -> Hashable:
    """Return a key that cells of equal numbers share, however they came (``'1.1'``, 1.1, Decimal)."""
    key, numbers = cell
    return (key, *map(shortest, numbers)) if numbers else key


@dataclass(slots=True)
class Pairing:
    """Which rows belong together. ``partner[e]`` is the answered row of expected row e, or -1."""

    partner: list[int]
    unmatched_actual: list[int]
    matched: bool
    exhausted: bool = False

    @property
    def unmatched_expected(self) -> list[int]:
        """Expected rows without a partner."""
        return [e for e, a in enumerate(self.partner) if a < 0]


Rows = RowNumbers


def pair_bag(
    columns: Sequence[PairedColumn], expected: Rows, actual: Rows, size: int, work: WorkBudget
) -> Pairing:
    """Pair the given rows as bags. ``size``: rows of the whole expected table."""
    partner = [-1] * size
    unmatched_actual: list[int] = []
    groups: dict[Hashable, tuple[list[int], list[int]]] = {}
    for e in expected:
        groups.setdefault(tuple([c.expected[e][0] for c in columns]), ([], []))[0].append(e)
    for a in actual:
        groups.setdefault(tuple([c.actual[a][0] for c in columns]), ([], []))[1].append(a)
    tolerant = [c for c in columns if c.rule is not None]
    for expected_part, actual_part in groups.values():
        pairs = (
            _pair_group(tolerant, expected_part, actual_part, work) if expected_part and actual_part else []
        )
        for e, a in pairs:
            partner[e] = a
        if len(pairs) < len(actual_part):
            used = {a for _, a in pairs}
            unmatched_actual += [a for a in actual_part if a not in used]
    return Pairing(partner, sorted(unmatched_actual), not unmatched_actual and len(expected) == len(actual))


def _pair_group(
    columns: Sequence[PairedColumn], expected_part: list[int], actual_part: list[int], work: WorkBudget
) -> list[tuple[int, int]]:
    """Return pairs of rows with equal keys, as many as there can be."""
    xs = [_numbers(columns, e, True) for e in expected_part]
    if not xs[0][0]:
        return list(zip(expected_part, actual_part, strict=False))
    ys = [_numbers(columns, a, False) for a in actual_part]
    rules = xs[0][1]
    left = sorted(range(len(expected_part)), key=lambda i: xs[i][0])
    right = sorted(range(len(actual_part)), key=lambda i: ys[i][0])
    if len(expected_part) == len(actual_part):
        both = zip(left, right, strict=True)
        if all(near(rules, xs[i][0], ys[j][0]) for i, j in both):
            return [(expected_part[i], actual_part[j]) for i, j in zip(left, right, strict=True)]
    found = _match([xs[i][0] for i in left], [ys[j][0] for j in right], rules, work)
    return [(expected_part[left[i]], actual_part[right[j]]) for i, j in found]


def _numbers(
    columns: Sequence[PairedColumn], row: int, expected: bool
) -> tuple[tuple[Number, ...], tuple[NumberRule, ...]]:
    numbers: list[Number] = []
    rules: list[NumberRule] = []
    for column in columns:
        own = (column.expected if expected else column.actual)[row][1]
        numbers += own
        rules += [column.rule] * len(own) if column.rule else []
    return tuple(numbers), tuple(rules)


def near(rules: Sequence[NumberRule], xs: Sequence[Number], ys: Sequence[Number]) -> bool:
    """Return whether numbers agree one by one."""
    return all(rule.grade(x, y) != NO for rule, x, y in zip(rules, xs, ys, strict=True))


Vectors = Sequence[tuple[Number, ...]]


def _match(xs: Vectors, ys: Vectors, rules: Sequence[NumberRule], work: WorkBudget) -> list[tuple[int, int]]:
    """Return a largest matching of sorted vectors: edges in a window over the first number,
    then Hopcroft-Karp.
    """
    starts = [as_float(y[0]) for y in ys]
    floats = [[as_float(v) for v in y] for y in ys]
    edges: list[list[int]] = []
    for x in xs:
        reach = [rule.reach(v) for rule, v in zip(rules, x, strict=True)]
        centre = [as_float(v) for v in x]
        low = bisect.bisect_left(starts, centre[0] - reach[0])
        high = bisect.bisect_right(starts, centre[0] + reach[0])
        within = [
            j
            for j in range(low, high)
            if all(abs(f - c) <= r or f == c for f, c, r in zip(floats[j], centre, reach, strict=True))
        ]
        work.spend((high - low) // 8 + len(within))
        edges.append([j for j in within if near(rules, x, ys[j])])
    return hopcroft_karp(edges, len(ys))


def hopcroft_karp(edges: Sequence[Sequence[int]], right: int) -> list[tuple[int, int]]:
    """Return a maximum matching of a bipartite graph, ``edges[i]`` the right-hand neighbours of i."""
    mate = [-1] * len(edges)
    owner = [-1] * right
    for i, targets in enumerate(edges):
        j = next((j for j in targets if owner[j] < 0), -1)
        if j >= 0:
            mate[i], owner[j] = j, i
    while True:
        level = _levels(edges, mate, owner)
        if level is None:
            return [(i, j) for i, j in enumerate(mate) if j >= 0]
        cursor = [0] * len(edges)
        for i in range(len(edges)):
            if mate[i] < 0:
                _augment(i, edges, mate, owner, level, cursor)


def _levels(edges: Sequence[Sequence[int]], mate: list[int], owner: list[int]) -> list[int] | None:
    level = [0 if j < 0 else -1 for j in mate]
    queue = deque(i for i, j in enumerate(mate) if j < 0)
    free = False
    while queue:
        i = queue.popleft()
        for j in edges[i]:
            nxt = owner[j]
            if nxt < 0:
                free = True
            elif level[nxt] < 0:
                level[nxt] = level[i] + 1
                queue.append(nxt)
    return level if free else None


def _augment(
    root: int,
    edges: Sequence[Sequence[int]],
    mate: list[int],
    owner: list[int],
    level: list[int],
    cursor: list[int],
) -> None:
    """Search depth first from a free row along rising levels, without recursion."""
    path = [root]
    while path:
        i = path[-1]
        while cursor[i] < len(edges[i]):
            j = edges[i][cursor[i]]
            cursor[i] += 1
            nxt = owner[j]
            if nxt < 0:
                for step in reversed(path):
                    mate[step], j = j, mate[step]
                    owner[mate[step]] = step
                return
            if level[nxt] == level[i] + 1:
                path.append(nxt)
                break
        else:
            path.pop()


def pair_set(
    columns: Sequence[PairedColumn], expected: Rows, actual: Rows, size: int, work: WorkBudget
) -> Pairing:
    """Pair as sets: each row needs an equal one on the other side, counts are not looked at."""
    partner = [-1] * size
    by_key: dict[Hashable, list[int]] = {}
    for a in actual:
        by_key.setdefault(tuple([c.actual[a][0] for c in columns]), []).append(a)
    reached: set[int] = set()
    tolerant = [c for c in columns if c.rule is not None]
    for e in expected:
        best = NO
        for a in by_key.get(tuple([c.expected[e][0] for c in columns]), ()):
            if not tolerant and partner[e] >= 0 and a in reached:
                break
            work.spend(1)
            grade = max((c.grade(e, a) for c in tolerant), default=EXACT)
            if grade == NO:
                continue
            reached.add(a)
            if grade < best:
                partner[e], best = a, grade
    unmatched_actual = [a for a in actual if a not in reached]
    return Pairing(partner, unmatched_actual, not unmatched_actual and all(partner[e] >= 0 for e in expected))


def pair_list(
    columns: Sequence[PairedColumn], runs: Sequence[range], actual: int, size: int, work: WorkBudget
) -> Pairing:
    """Pair as a list whose ``runs`` of expected rows (ties of the sort keys) are bags."""
    partner = [-1] * size
    unmatched_actual: list[int] = []
    for run in runs:
        inner = pair_bag(columns, run, range(run.start, min(run.stop, actual)), size, work)
        unmatched_actual += inner.unmatched_actual
        for e in run:
            partner[e] = inner.partner[e]
    unmatched_actual += range(size, actual)
    return Pairing(partner, unmatched_actual, not unmatched_actual and -1 not in partner)


def pair_all(
    columns: Sequence[PairedColumn], options: Any, expected: int, actual: int, work: WorkBudget
) -> Pairing:
    """Pair all rows of two tables of the given sizes, by the ``duplicates`` option."""
    pair = pair_set if options.duplicates == "set" else pair_bag
    return pair(columns, range(expected), range(actual), expected, work)
