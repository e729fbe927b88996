"""Answered columns for expected ones by value in large tables: colours first, then a bounded search.

Colour refinement gives each row and each column a colour that no renaming can change, and refines them
by each other. Different bags of colours on the two sides mean that no assignment exists. Columns
that still look alike are tied one by one, and a complete assignment is confirmed on whole rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_agenteval.compare.array_engine.arrays import bits
from pytest_agenteval.compare.array_engine.number_rule import ArrayNumberRule, reach
from pytest_agenteval.compare.array_engine.row_hashes import distinct

Hashes = NDArray[np.uint64]
Pairs = list[tuple[int, int]]
BUDGET = 60_000_000
STEP, CONFIRMATION = 3_000, 1_000_000
"""What a step and a pairing of rows cost however small the tables are, in cells."""
MOST_COLOURED = 20_000
MOST_CLUSTERED = 4_000_000


def mix(values: Any) -> Hashes:
    """Spread 64 bits (splitmix64)."""
    out = np.asarray(values, np.uint64).copy()
    out ^= out >> np.uint64(30)
    out *= np.uint64(0xBF58476D1CE4E5B9)
    out ^= out >> np.uint64(27)
    out *= np.uint64(0x94D049BB133111EB)
    out ^= out >> np.uint64(31)
    return out


def assign(
    engine: Any, fixed: Sequence[tuple[int, int]], es: Sequence[int], as_: Sequence[int]
) -> tuple[Pairs | None, bool]:
    """An injective assignment of answered columns under which whole rows agree.

    Returns it (``None`` where there is none) and whether the search was cut short by its budget.
    """
    candidates = {e: [a for a in as_ if engine.alike(e, a)] for e in es}
    if any(not found for found in candidates.values()):
        return None, False
    same = {e: [a for a in found if _holds_the_same(engine, e, a)] for e, found in candidates.items()}
    if all(same.values()):  # what is equal is not taken for what is only near
        found = ColumnSearch(engine, list(fixed), same, exact=True).run(len(as_))
        if found is not None:
            return found, False
    search = ColumnSearch(engine, list(fixed), candidates)
    found = search.run(len(as_))
    return found, found is None and search.budget <= 0


def _holds_the_same(engine: Any, e: int, a: int) -> bool:
    """Whether two columns hold the same bag of values without any tolerance (a hash decides)."""
    reading = engine.base_reading(e)
    mine, theirs = engine.content(True, e, reading), engine.content(False, a, reading)
    if mine.print != theirs.print or len(mine.sorted) != len(theirs.sorted):
        return False
    return all(np.array_equal(x, y) for x, y in zip(mine.sorted, theirs.sorted, strict=True))


class ColumnSearch:
    """The search for one pair of tables; ``budget`` counts cells looked at.

    ``exact``: without any tolerance in the columns that are looked for.
    """

    def __init__(
        self, engine: Any, fixed: Pairs, candidates: dict[int, list[int]], exact: bool = False
    ) -> None:
        self.engine, self.fixed, self.candidates, self.exact = engine, fixed, candidates, exact
        self.budget = BUDGET
        self.cells: dict[tuple[bool, int, int], Hashes] = {}
        self.as_set = engine.options.duplicates == "set"

    def run(self, answered: int) -> Pairs | None:
        """Search with colours where every column can only be read one way, else depth first."""
        start = self._rows()
        if start is None:
            return None
        readings: dict[int, set[Any]] = {}
        for e, found in self.candidates.items():
            for a in found:
                readings.setdefault(a, set()).add(self.engine.base_reading(e))
        alone = all(len(ways) == 1 for ways in readings.values())
        small = max(self.engine.rows) <= MOST_COLOURED
        if alone and small and not self.as_set and answered == len(self.candidates) == len(readings):
            return self._coloured(*start)
        order = sorted(self.candidates, key=lambda e: len(self.candidates[e]))
        return self._descend(order, *start, {})

    def _rows(self) -> tuple[Hashes, Hashes] | None:
        """Row hashes over the columns that are fixed already; ``None`` where they disagree."""
        mine, theirs = (np.zeros(rows, np.uint64) for rows in self.engine.rows)
        for e, a in self.fixed:
            both = self._extend(mine, theirs, e, a)
            if both is None:
                return None
            mine, theirs = both
        return mine, theirs

    def _cell(self, expected: bool, e: int, a: int) -> Hashes:
        """A hash per cell of a column read as expected column ``e`` says."""
        key = (expected, e, -1 if expected else a)
        if key not in self.cells:
            content = self.engine.content(expected, e if expected else a, self._way(expected, e, a))
            hashes = content.hashes
            for numbers in content.numbers:
                # columns of one name may well be near only
                exact = self.exact and e in self.candidates
                codes = bits(numbers).view(np.uint64) if exact else self._clusters(e, numbers)
                hashes = mix(hashes + codes)
            self.cells[key] = hashes
        return self.cells[key]

    def _raw(self, e: int, a: int) -> bytes:
        """What an answered column holds, its numbers as they are: clusters join what is only near."""
        content = self.engine.content(False, a, self._way(False, e, a))
        return b"".join([content.hashes.tobytes(), *(n.floats.tobytes() for n in content.numbers)])

    def _way(self, expected: bool, e: int, a: int) -> Any:
        """How a column is read: answered percentages by the factor that was found for them."""
        scaled = not expected and (self.engine.percent(a) or self.engine.options_of(e).percent == "either")
        return self.engine.reading(e, a) if scaled else self.engine.base_reading(e)

    def _clusters(self, e: int, numbers: Any) -> Hashes:
        """Numbers that a tolerance could join get one code: a coarse but safe stand-in for the rule."""
        options = self.engine.options_of(e)
        reading = self.engine.base_reading(e)
        key = (options, reading)
        if not hasattr(self, "_cuts"):
            self._cuts: dict[Any, NDArray[np.float64]] = {}
        if key not in self._cuts:
            self._cuts[key] = self._cut_points(options, reading)
        return np.asarray(np.searchsorted(self._cuts[key], numbers.floats), np.uint64)

    def _cut_points(self, options: Any, reading: Any) -> NDArray[np.float64]:
        """Middles of the gaps that no tolerance crosses, over all columns that are read alike."""
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
        rule = ArrayNumberRule(options, None, None)  # type: ignore[arg-type]
        near = reach(rule.base, values)
        apart = np.diff(values) > np.maximum(near[1:], near[:-1])
        return np.asarray((values[:-1][apart] + values[1:][apart]) / 2, np.float64)

    def _extend(self, mine: Hashes, theirs: Hashes, e: int, a: int) -> tuple[Hashes, Hashes] | None:
        """Row hashes with one more column; ``None`` where the rows no longer agree."""
        self.budget -= STEP + len(mine) + len(theirs)
        one, two = mix(mine + self._cell(True, e, a)), mix(theirs + self._cell(False, e, a))
        if self.as_set:
            return (one, two) if np.array_equal(distinct(one), distinct(two)) else None
        return (one, two) if mix(one).sum() == mix(two).sum() else None

    def _confirmed(self, chosen: dict[int, int]) -> Pairs | None:
        pairs = sorted(chosen.items())
        self.budget -= CONFIRMATION + 10 * len(pairs) * max(self.engine.rows)
        return pairs if self.engine.pair([*self.fixed, *pairs]).matched else None

    def _descend(
        self, order: list[int], mine: Hashes, theirs: Hashes, chosen: dict[int, int]
    ) -> Pairs | None:
        if len(chosen) == len(order):
            return self._confirmed(chosen)
        e = order[len(chosen)]
        tried: set[bytes] = set()
        for a in self.candidates[e]:
            if a in chosen.values() or self.budget <= 0:
                continue
            content = self._raw(e, a)
            if content in tried:
                continue
            tried.add(content)
            both = self._extend(mine, theirs, e, a)
            if both is not None:
                found = self._descend(order, *both, {**chosen, e: a})
                if found is not None:
                    return found
        return None

    def _coloured(self, mine: Hashes, theirs: Hashes) -> Pairs | None:
        es, as_ = list(self.candidates), sorted({a for found in self.candidates.values() for a in found})
        way = {a: e for e, found in self.candidates.items() for a in found}
        left = np.stack([self._cell(True, e, -1) for e in es])
        right = np.stack([self._cell(False, way[a], a) for a in as_])
        kinds = [hash(self.engine.base_reading(e)) % 2**63 for e in es]
        others = [hash(self.engine.base_reading(way[a])) % 2**63 for a in as_]
        colours = (mix(np.array(kinds, np.uint64)), mix(np.array(others, np.uint64)))
        return self._refine(es, as_, (left, right), (mine, theirs), colours)

    def _refine(
        self,
        es: list[int],
        as_: list[int],
        cells: tuple[Hashes, Hashes],
        rows: tuple[Hashes, Hashes],
        colours: tuple[Hashes, Hashes],
    ) -> Pairs | None:
        """Refine colours until they stop splitting; tie one pair of alike columns and go on."""
        count = 0
        while True:
            if self.budget <= 0:
                return None
            rows = (_row_colours(cells[0], rows[0], colours[0]), _row_colours(cells[1], rows[1], colours[1]))
            colours = (
                _column_colours(cells[0], rows[0], colours[0]),
                _column_colours(cells[1], rows[1], colours[1]),
            )
            self.budget -= STEP + 4 * (cells[0].size + cells[1].size)
            if not np.array_equal(np.sort(colours[0]), np.sort(colours[1])):
                return None
            now = len(np.unique(colours[0]))
            if now == count or now == len(es):
                break
            count = now
        return self._tie(es, as_, cells, rows, colours, now)

    def _tie(
        self,
        es: list[int],
        as_: list[int],
        cells: tuple[Hashes, Hashes],
        rows: tuple[Hashes, Hashes],
        colours: tuple[Hashes, Hashes],
        different: int,
    ) -> Pairs | None:
        if different == len(es):
            order_e, order_a = np.argsort(colours[0]), np.argsort(colours[1])
            return self._confirmed({es[i]: as_[j] for i, j in zip(order_e, order_a, strict=True)})
        values, counts = np.unique(colours[0], return_counts=True)
        colour = values[counts > 1][np.argmin(counts[counts > 1])]
        first = int(np.flatnonzero(colours[0] == colour)[0])
        tried: set[bytes] = set()
        for j in np.flatnonzero(colours[1] == colour):
            way = next(e for e, found in self.candidates.items() if as_[j] in found)
            content = self._raw(way, as_[j])
            if content in tried:
                continue
            tried.add(content)
            mark = mix(colour + np.uint64(1))
            one, two = colours[0].copy(), colours[1].copy()
            one[first] = two[j] = mark
            found = self._refine(es, as_, cells, rows, (one, two))
            if found is not None or self.budget <= 0:
                return found
        return None


def _row_colours(cells: Hashes, rows: Hashes, colours: Hashes) -> Hashes:
    return mix(rows + mix(cells + colours[:, None]).sum(axis=0, dtype=np.uint64))


def _column_colours(cells: Hashes, rows: Hashes, colours: Hashes) -> Hashes:
    return mix(colours + mix(cells ^ rows[None, :]).sum(axis=1, dtype=np.uint64))
