"""Answered columns for expected ones by value in large tables.

Where other columns name every row, each pair of columns is judged along those rows, and the rest is a
matching of columns. Else colour refinement gives each row and each column a colour that no renaming
can change, and refines them by each other: other colours on the two sides mean that no assignment
exists. Columns that still look alike are tied one by one, and a complete assignment is confirmed on
whole rows. Numbers are coded finely first and as coarsely as the tolerance last: what is found is
confirmed in any case, and only the coarsest codes may say that there is nothing to find.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pytest_agenteval.compare.array_engine.arrays import ToleranceNumbers, bits
from pytest_agenteval.compare.array_engine.contents import ColumnContent, bound
from pytest_agenteval.compare.array_engine.matching import ArrayPairing, Matcher, run_ids
from pytest_agenteval.compare.array_engine.near_pairs import close
from pytest_agenteval.compare.array_engine.row_hashes import ArrayColumn, distinct
from pytest_agenteval.compare.engine import Assignment, ComparisonEngine, Mapping
from pytest_agenteval.compare.options import ColumnOptions
from pytest_agenteval.compare.python_engine.matching import hopcroft_karp
from pytest_agenteval.compare.values.cells import ColumnReading

Hashes = NDArray[np.uint64]
Rows = NDArray[np.int64]
Pairs = list[tuple[int, int]]
BUDGET = 60_000_000
"""Cells looked at in one search."""
SECONDS = 3.0
"""CPU seconds of all searches for one table."""
STEP, CONFIRMATION = 3_000, 1_000_000
"""What a step and a pairing of rows cost however small the tables are, in cells."""
MOST_COLOURED = 8_000_000
"""Cells of one side that colours are given to."""
BLOCK_CELLS = 1_000_000
MOST_CLUSTERED = 4_000_000
MOST_DECIMALS = 6
EXACT, FINE, SHOWN, COARSE = "exact", "fine", "shown", "coarse"


class Tables(ComparisonEngine[ArrayColumn, ArrayPairing], Protocol):
    """What the search asks of the array engine besides."""

    def options_of(self, e: int) -> ColumnOptions:
        """Return the options of an expected column."""
        ...

    def base_reading(self, e: int) -> ColumnReading:
        """Return how an expected column is read."""
        ...

    def content(self, expected: bool, index: int, reading: ColumnReading) -> ColumnContent:
        """Return what a column holds when read by itself."""
        ...

    def percent(self, a: int) -> bool:
        """Return whether an answered column holds cells with %."""
        ...


def mix(values: Any) -> Hashes:
    """Spread 64 bits (splitmix64)."""
    out = np.asarray(values, np.uint64).copy()
    out ^= out >> np.uint64(30)
    out *= np.uint64(0xBF58476D1CE4E5B9)
    out ^= out >> np.uint64(27)
    out *= np.uint64(0x94D049BB133111EB)
    out ^= out >> np.uint64(31)
    return out


@dataclass(slots=True)
class Bounds:
    """How much may still be done: cells looked at, and a point in CPU time."""

    cells: int
    until: float

    def spent(self) -> bool:
        """Return whether the search has to stop."""
        return self.cells <= 0 or time.process_time() > self.until


def assign(
    engine: Tables,
    fixed: Mapping,
    expected_indexes: Sequence[int],
    actual_indexes: Sequence[int],
    runs: Sequence[range] | None = None,
) -> Assignment:
    """Find an injective assignment of answered columns under which whole rows agree.

    ``fixed`` are the pairs that names have made. With ``runs`` the rows agree as a list in which
    each run is a bag. Returns the assignment (``None`` where there is none) and whether the search
    was cut short by its bounds.
    """
    candidates = engine.candidates(expected_indexes, actual_indexes)
    if not all(candidates.values()):
        return None, False
    ties = None if runs is None else run_ids(runs, engine.rows)
    ahead, candidates = _forced(candidates)
    if not all(candidates.values()):
        return None, False
    if not candidates:
        return (sorted(ahead) if _pair(engine, [*fixed, *ahead], ties) else None), False
    known = [*fixed, *ahead]
    rows = None if engine.options.duplicates == "set" else _named_rows(engine, known, ties)
    if rows is not None:
        found = _along(engine, candidates, rows)
        good = found is not None and _pair(engine, [*known, *found], ties)
        return (sorted([*ahead, *(found or [])]) if good else None), False
    until = time.process_time() + SECONDS
    for codes in (EXACT, FINE, SHOWN, COARSE):
        bounds = Bounds(BUDGET, until)
        search = ColumnSearch(engine, known, candidates, ties, codes, bounds)
        found = search.run()
        if found is not None:
            return sorted([*ahead, *found]), False
    return None, bounds.spent()


def _forced(candidates: dict[int, list[int]]) -> tuple[Pairs, dict[int, list[int]]]:
    """Return pairs that every assignment holds: columns with one candidate,
    and what that leaves of the others.
    """
    ahead: Pairs = []
    left = dict(candidates)
    while single := [e for e, found in left.items() if len(found) == 1]:
        taken = {left[e][0] for e in single}
        if len(taken) < len(single):
            return ahead, {single[0]: []}
        ahead += [(e, left.pop(e)[0]) for e in single]
        left = {e: [a for a in found if a not in taken] for e, found in left.items()}
    return ahead, left


def _pair(engine: Tables, pairs: Mapping, ties: tuple[Rows, Rows] | None) -> bool:
    if ties is None:
        return engine.pair(pairs).matched
    return Matcher([engine.column(e, a) for e, a in pairs], engine.rows, ties).pair().matched


def _named_rows(engine: Tables, known: Mapping, ties: tuple[Rows, Rows] | None) -> tuple[Rows, Rows] | None:
    """Return rows that belong together in any pairing, where columns without tolerance name each row."""
    columns = [column for column in (engine.column(e, a) for e, a in known) if not column.rules]
    if not columns and ties is None:
        return None
    matcher = Matcher(columns, engine.rows, ties)
    ids = matcher.ids()
    if any(len(distinct(side)) < len(side) for side in ids):
        return None
    pairing = matcher.pair()
    return (np.arange(len(pairing.partner)), pairing.partner) if pairing.matched else None


def _along(engine: Tables, candidates: dict[int, list[int]], rows: tuple[Rows, Rows]) -> Pairs | None:
    """Return a matching of columns each of which agrees along the rows."""
    columns = sorted({a for found in candidates.values() for a in found})
    place = {a: i for i, a in enumerate(columns)}
    edges = []
    for e, found in candidates.items():
        edges.append([place[a] for a in found if _agrees(engine, e, a, rows)])
        if not edges[-1]:
            return None
    es = list(candidates)
    chosen = hopcroft_karp(edges, len(columns))
    return [(es[i], columns[j]) for i, j in chosen] if len(chosen) == len(es) else None


def _agrees(engine: Tables, e: int, a: int, rows: tuple[Rows, Rows]) -> bool:
    """Return whether two columns agree along the rows: first by what they hold, then by the rule."""
    mine, theirs = rows
    if not (engine.percent(a) or engine.options_of(e).percent == "either"):
        reading = engine.base_reading(e)
        one, two = engine.content(True, e, reading), engine.content(False, a, reading)
        if not np.array_equal(one.hashes[mine], two.hashes[theirs]):
            return False
        for x, y in zip(one.numbers, two.numbers, strict=False):
            left = x.floats[mine]
            if bool(np.any(np.abs(left - y.floats[theirs]) > bound(engine.options_of(e), left))):
                return False
    column = engine.column(e, a)
    return Matcher([column], engine.rows).agree(mine, theirs) and bool(
        close(column.rules, mine, theirs, stop=True).all()
    )


@dataclass(frozen=True, slots=True)
class _Colours:
    """Colours of rows and columns on both sides (expected, answered)."""

    rows: tuple[Hashes, Hashes]
    columns: tuple[Hashes, Hashes]


class ColumnSearch:
    """The search for one pair of tables; ``codes`` say how finely numbers are distinguished."""

    def __init__(
        self,
        engine: Tables,
        fixed: Mapping,
        candidates: dict[int, list[int]],
        ties: tuple[Rows, Rows] | None,
        codes: str,
        bounds: Bounds,
    ) -> None:
        self.engine, self.fixed, self.candidates, self.ties = engine, list(fixed), candidates, ties
        self.codes, self.bounds = codes, bounds
        self.as_set = engine.options.duplicates == "set"
        self._cells: dict[tuple[bool, int, int], Hashes] = {}
        self._cuts: dict[Any, NDArray[np.float64]] = {}

    def run(self) -> Pairs | None:
        """Search with colours where every column can only be read one way, else depth first."""
        start = self._rows()
        if start is None or (self.codes == SHOWN and self._decimals() is None):
            return None
        readings: dict[int, set[Any]] = {}
        for e, found in self.candidates.items():
            for a in found:
                readings.setdefault(a, set()).add(self.engine.base_reading(e))
        alone = all(len(ways) == 1 for ways in readings.values())
        small = max(self.engine.rows) * len(readings) <= MOST_COLOURED
        if alone and small and not self.as_set and len(self.candidates) == len(readings):
            return self._coloured(*start)
        return self._depth_first(start)

    def _rows(self) -> tuple[Hashes, Hashes] | None:
        """Return row hashes over the columns that are fixed already; ``None`` where they disagree."""
        mine, theirs = (np.zeros(rows, np.uint64) for rows in self.engine.rows)
        if self.ties is not None:
            mine, theirs = (mix(ids.astype(np.uint64)) for ids in self.ties)
        for e, a in self.fixed:
            both = self._extend(mine, theirs, e, a)
            if both is None:
                return None
            mine, theirs = both
        return mine, theirs

    def _cell(self, expected: bool, e: int, a: int) -> Hashes:
        """Return a hash per cell of a column read as expected column ``e`` says."""
        key = (expected, e, -1 if expected else a)
        if key not in self._cells:
            content = self.engine.content(expected, e if expected else a, self._way(expected, e, a))
            hashes = content.hashes
            for numbers in content.numbers:
                hashes = mix(hashes + self._number_codes(e, numbers))
            self._cells[key] = hashes
        return self._cells[key]

    def _number_codes(self, e: int, numbers: ToleranceNumbers) -> Hashes:
        """Return codes of numbers; columns of one name may well be near only."""
        if e in self.candidates:
            if self.codes == EXACT:
                return bits(numbers).view(np.uint64)
            if self.codes == SHOWN:
                with np.errstate(over="ignore", invalid="ignore"):
                    shown = np.round(numbers.floats, self._decimals() or 0)
                return (shown + 0.0).view(np.uint64)
        options = self.engine.options_of(e)
        if self.codes == FINE and e in self.candidates:
            options = replace(options, rtol=1e-9, atol=1e-12, decimals=None, significant=None)
        return self._clusters(options, self.engine.base_reading(e), numbers)

    def _decimals(self) -> int | None:
        """Return the decimals that the answered numbers show, where they are few."""
        numbers = [
            found
            for e, columns in self.candidates.items()
            for a in columns
            for found in self.engine.content(False, a, self._way(False, e, a)).numbers
        ]
        shown = range(MOST_DECIMALS + 1)
        return next((k for k in shown if all(n.shows_at_most(k) for n in numbers)), None) if numbers else None

    def _raw(self, e: int, a: int) -> bytes:
        """Return what an answered column holds, its numbers as they are: codes join what is only near."""
        content = self.engine.content(False, a, self._way(False, e, a))
        return b"".join([content.hashes.tobytes(), *(n.floats.tobytes() for n in content.numbers)])

    def _way(self, expected: bool, e: int, a: int) -> ColumnReading:
        """Return how a column is read: answered percentages by the factor that was found for them."""
        scaled = not expected and (self.engine.percent(a) or self.engine.options_of(e).percent == "either")
        return self.engine.reading(e, a) if scaled else self.engine.base_reading(e)

    def _clusters(self, options: ColumnOptions, reading: ColumnReading, numbers: ToleranceNumbers) -> Hashes:
        """Give one code to numbers that a tolerance could join: a coarse but safe stand-in for the rule."""
        key = (options, reading)
        if key not in self._cuts:
            self._cuts[key] = self._cut_points(options, reading)
        return np.asarray(np.searchsorted(self._cuts[key], numbers.floats), np.uint64)

    def _cut_points(self, options: ColumnOptions, reading: ColumnReading) -> NDArray[np.float64]:
        """Return middles of the gaps that no tolerance crosses, over all columns that are read alike."""
        columns = [(True, e) for e in self.candidates if self.engine.base_reading(e) == reading]
        columns += [
            (False, a)
            for e, found in self.candidates.items()
            if self.engine.base_reading(e) == reading
            for a in found
        ]
        columns += [(side, pair[0 if side else 1]) for pair in self.fixed for side in (True, False)]
        pools = [
            values
            for side, index in dict.fromkeys(columns)
            for values in self.engine.content(side, index, reading).sorted
        ]
        if not pools or sum(map(len, pools)) > MOST_CLUSTERED:
            return np.zeros(0)
        values = np.unique(np.concatenate(pools))
        near = bound(options, values)
        apart = np.diff(values) > np.maximum(near[1:], near[:-1])
        return np.asarray((values[:-1][apart] + values[1:][apart]) / 2, np.float64)

    def _extend(self, mine: Hashes, theirs: Hashes, e: int, a: int) -> tuple[Hashes, Hashes] | None:
        """Return row hashes with one more column; ``None`` where the rows no longer agree."""
        self.bounds.cells -= STEP + len(mine) + len(theirs)
        one, two = mix(mine + self._cell(True, e, a)), mix(theirs + self._cell(False, e, a))
        if self.as_set:
            return (one, two) if np.array_equal(distinct(one), distinct(two)) else None
        return (one, two) if mix(one).sum() == mix(two).sum() else None

    def _confirmed(self, chosen: dict[int, int]) -> Pairs | None:
        pairs = sorted(chosen.items())
        self.bounds.cells -= CONFIRMATION + 10 * len(pairs) * max(self.engine.rows)
        return pairs if _pair(self.engine, [*self.fixed, *pairs], self.ties) else None

    def _depth_first(self, start: tuple[Hashes, Hashes]) -> Pairs | None:
        """Choose column after column while the rows agree; a stack, for tables may be wide."""
        order = sorted(self.candidates, key=lambda e: len(self.candidates[e]))
        chosen: dict[int, int] = {}
        rows = [start]
        ways = [self._ways(order[0], chosen)]
        while ways:
            e = order[len(ways) - 1]
            chosen.pop(e, None)
            a = None if self.bounds.spent() else next(ways[-1], None)
            if a is None:
                ways.pop()
                rows.pop()
                continue
            both = self._extend(*rows[-1], e, a)
            if both is None:
                continue
            chosen[e] = a
            if len(chosen) == len(order):
                found = self._confirmed(chosen)
                if found is not None:
                    return found
                continue
            rows.append(both)
            ways.append(self._ways(order[len(ways)], chosen))
        return None

    def _ways(self, e: int, chosen: dict[int, int]) -> Iterator[int]:
        """Yield candidates of a column that are free, each content once."""
        taken, tried = set(chosen.values()), set()
        for a in self.candidates[e]:
            if a in taken:
                continue
            content = self._raw(e, a)
            if content not in tried:
                tried.add(content)
                yield a

    def _coloured(self, mine: Hashes, theirs: Hashes) -> Pairs | None:
        """Refine colours; tie columns that stay alike one pair at a time."""
        self.expected_indexes = list(self.candidates)
        self.actual_indexes = sorted({a for found in self.candidates.values() for a in found})
        self.way = {a: e for e, found in self.candidates.items() for a in found}
        self.cells = (
            np.stack([self._cell(True, e, -1) for e in self.expected_indexes]),
            np.stack([self._cell(False, self.way[a], a) for a in self.actual_indexes]),
        )
        kinds = [hash(self.engine.base_reading(e)) % 2**63 for e in self.expected_indexes]
        others = [hash(self.engine.base_reading(self.way[a])) % 2**63 for a in self.actual_indexes]
        columns = mix(np.array(kinds, np.uint64)), mix(np.array(others, np.uint64))
        every = tuple(np.arange(len(side)) for side in (self.expected_indexes, self.actual_indexes))
        first = self._refined(_Colours((mine, theirs), columns), (every[0], every[1]), True)
        if first is None:
            return None
        stack = [(first, self._ties(first))]
        while stack and not self.bounds.spent():
            colours, ties = stack[-1]
            tie = next(ties, None)
            if tie is None:
                stack.pop()
                continue
            if tie == (-1, -1):
                found = self._confirmed(self._read_off(colours))
                if found is not None:
                    return found
                continue
            refined = self._tied(colours, *tie)
            if refined is not None:
                stack.append((refined, self._ties(refined)))
        return None

    def _ties(self, colours: _Colours) -> Iterator[tuple[int, int]]:
        """Yield pairs of alike columns to tie; (-1, -1) where every column has a colour of its own."""
        values, counts = np.unique(colours.columns[0], return_counts=True)
        if len(values) == len(self.expected_indexes):
            yield -1, -1
            return
        colour = values[counts > 1][np.argmin(counts[counts > 1])]
        first = int(np.flatnonzero(colours.columns[0] == colour)[0])
        tried = set()
        for j in np.flatnonzero(colours.columns[1] == colour).tolist():
            content = self._raw(self.way[self.actual_indexes[j]], self.actual_indexes[j])
            if content not in tried:
                tried.add(content)
                yield first, j

    def _read_off(self, colours: _Colours) -> dict[int, int]:
        one, two = (np.argsort(side) for side in colours.columns)
        return {
            self.expected_indexes[i]: self.actual_indexes[j]
            for i, j in zip(one.tolist(), two.tolist(), strict=True)
        }

    def _tied(self, colours: _Colours, i: int, j: int) -> _Colours | None:
        """Give one column on each side a colour of its own, and refine what follows from that."""
        one, two = colours.columns[0].copy(), colours.columns[1].copy()
        mark = mix(one[i] + np.uint64(1))
        one[i] = two[j] = mark
        return self._refined(
            _Colours(colours.rows, (one, two)), (np.array([i], np.int64), np.array([j], np.int64)), False
        )

    def _refined(self, colours: _Colours, changed: tuple[Rows, Rows], everything: bool) -> _Colours | None:
        """Refine until nothing splits; ``None`` where the two sides' colours part.

        Only what changed is looked at: the largest part of a colour that splits keeps it, so a
        column that singles out one row costs one row, not the table.
        """
        rows, columns = colours.rows, colours.columns
        while len(changed[0]):
            if self.bounds.spent():
                return None
            self.bounds.cells -= STEP + 2 * len(changed[0]) * len(rows[0])
            sums = [_summed(self.cells[side][changed[side]], columns[side][changed[side]]) for side in (0, 1)]
            split = _split(rows, (sums[0], sums[1]))
            if split is None:
                return None
            moved = [np.flatnonzero(new != old) for new, old in zip(split, rows, strict=True)]
            if everything:
                moved = [np.arange(len(side)) for side in split]
            rows, everything = split, False
            if not len(moved[0]):
                break
            self.bounds.cells -= 2 * len(moved[0]) * len(columns[0])
            sums = [_summed(self.cells[side][:, moved[side]].T, rows[side][moved[side]]) for side in (0, 1)]
            split = _split(columns, (sums[0], sums[1]))
            if split is None:
                return None
            now = [np.flatnonzero(new != old) for new, old in zip(split, columns, strict=True)]
            columns, changed = split, (now[0], now[1])
        return _Colours(rows, columns)


def _summed(cells: Hashes, colours: Hashes) -> Hashes:
    """Sum over the first axis of ``cells`` (n x m) mixed with the n ``colours``: m sums, in any order."""
    out = np.zeros(cells.shape[1], np.uint64)
    step = max(1, BLOCK_CELLS // max(1, cells.shape[1]))
    for start in range(0, len(cells), step):
        part = slice(start, start + step)
        out += mix(cells[part] + mix(colours[part])[:, None]).sum(axis=0, dtype=np.uint64)
    return out


def _split(colours: tuple[Hashes, Hashes], sums: tuple[Hashes, Hashes]) -> tuple[Hashes, Hashes] | None:
    """Split colours by what was summed (``None`` where the sides differ); the largest part keeps its own."""
    one, two = (mix(colour + mix(total)) for colour, total in zip(colours, sums, strict=True))
    values, first, back, counts = np.unique(one, return_index=True, return_inverse=True, return_counts=True)
    at = np.searchsorted(values, two)
    if len(one) != len(two) or not np.array_equal(np.sort(one), np.sort(two)):
        return None
    old = colours[0][first]
    order = np.lexsort((values, -counts, old))
    keeps = np.zeros(len(values), bool)
    keeps[order[np.r_[True, old[order][1:] != old[order][:-1]]]] = True
    new = np.where(keeps, old, values)
    return new[back], new[at]
