"""Answered columns for expected ones by value: depth first, whole rows must agree column by column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from pytest_agenteval.compare.engine import Assignment, ComparisonEngine, Mapping
from pytest_agenteval.compare.python_engine.matching import PairedColumn, Pairing, TooMuchWork, exactly
from pytest_agenteval.compare.values.numbers import as_float

SEARCH_BUDGET = 400_000


Tables = ComparisonEngine[PairedColumn, Pairing]


def assign(
    engine: Tables,
    fixed: Mapping,
    expected_indexes: Sequence[int],
    actual_indexes: Sequence[int],
    runs: Sequence[range] | None = None,
) -> Assignment:
    """Find an injective assignment of answered columns under which whole rows agree.

    With ``runs`` the rows agree as a list in which each run is a bag. Raises ``TooMuchWork`` where
    the search comes to its budget.
    """
    candidates = engine.candidates(expected_indexes, actual_indexes)
    if not all(candidates.values()):
        return None, False
    same = {e: [a for a in found if _holds_the_same(engine.column(e, a))] for e, found in candidates.items()}
    if all(same.values()):  # what is equal is not taken for what is only near
        chosen = _Search(engine, fixed, same, runs, exact=True).run()
        if chosen is not None:
            return chosen, False
    return _Search(engine, fixed, candidates, runs).run(), False


def _holds_the_same(column: PairedColumn) -> bool:
    left, right = exact_codes(column)
    return Counter(left) == Counter(right)


class _Search:
    """Depth first over expected columns; a prefix of columns must agree as rows to go on.

    ``exact``: without any tolerance in the columns that are looked for.
    """

    def __init__(
        self,
        engine: Tables,
        fixed: Mapping,
        candidates: dict[int, list[int]],
        runs: Sequence[range] | None,
        exact: bool = False,
    ) -> None:
        self.engine, self.fixed = engine, list(fixed)
        self.candidates, self.exact, self.runs = candidates, exact, runs
        self.order = sorted(candidates, key=lambda e: len(candidates[e]))
        self.budget = SEARCH_BUDGET
        self.codes: dict[tuple[int, int], tuple[list[Hashable], list[Hashable]]] = {}

    def run(self) -> list[tuple[int, int]] | None:
        mine, theirs = self._places()
        for e, a in self.fixed:
            both = self._extend(mine, theirs, e, a)
            if both is None:
                return None
            mine, theirs = both
        chosen = self._descend(0, mine, theirs, {})
        if chosen is None and self.budget <= 0:
            raise TooMuchWork
        return chosen

    def _places(self) -> tuple[list[Any], list[Any]]:
        """Return row codes before any column is looked at: the run of each row, where order matters."""
        sizes = self.engine.rows
        if self.runs is None:
            return [0] * sizes[0], [0] * sizes[1]
        run_of = [number for number, run in enumerate(self.runs) for _ in run]
        return run_of[: sizes[0]], run_of[: sizes[1]]

    def _pair(self, pairs: Mapping) -> bool:
        mapping = [*self.fixed, *pairs]
        if self.runs is None:
            return self.engine.pair(mapping).matched
        return self.engine.pair_runs(mapping, self.runs).matched

    def _descend(
        self, depth: int, mine: list[Any], theirs: list[Any], chosen: dict[int, int]
    ) -> list[tuple[int, int]] | None:
        if depth == len(self.order):
            pairs = sorted(chosen.items())
            self.budget -= len(mine) * 4
            return pairs if self._pair(pairs) else None
        e = self.order[depth]
        tried: set[Hashable] = set()
        for a in self.candidates[e]:
            if a in chosen.values():
                continue
            content = tuple(self.engine.column(e, a).actual)  # codes join what is only near
            if content in tried:
                continue
            tried.add(content)
            if self.budget <= 0:
                return None
            both = self._extend(mine, theirs, e, a)
            if both is not None:
                found = self._descend(depth + 1, *both, {**chosen, e: a})
                if found is not None:
                    return found
        return None

    def _extend(
        self, mine: list[Any], theirs: list[Any], e: int, a: int
    ) -> tuple[list[Any], list[Any]] | None:
        """Return row codes with one more column; ``None`` where the rows no longer agree."""
        left, right = self._code(e, a)
        self.budget -= len(left) + len(right)
        numbering: dict[Hashable, int] = {}
        one = [numbering.setdefault(key, len(numbering)) for key in zip(mine, left, strict=True)]
        two = [numbering.setdefault(key, len(numbering)) for key in zip(theirs, right, strict=True)]
        if self.engine.options.duplicates == "set":
            return (one, two) if set(one) == set(two) else None
        return (one, two) if Counter(one) == Counter(two) else None

    def _code(self, e: int, a: int) -> tuple[list[Hashable], list[Hashable]]:
        if (e, a) not in self.codes:
            # columns of one name may well be near only
            codes = exact_codes if self.exact and e in self.candidates else column_codes
            self.codes[e, a] = codes(self.engine.column(e, a))
        return self.codes[e, a]


def exact_codes(column: PairedColumn) -> tuple[list[Hashable], list[Hashable]]:
    """Return codes that equal cells share, and no others."""
    return [exactly(cell) for cell in column.expected], [exactly(cell) for cell in column.actual]


def column_codes(column: PairedColumn) -> tuple[list[Hashable], list[Hashable]]:
    """Return codes under which equal cells have equal codes; with a tolerance, near ones may share one."""
    if column.rule is None:
        return [key for key, _ in column.expected], [key for key, _ in column.actual]
    firsts = sorted(
        {as_float(numbers[0]) for side in (column.expected, column.actual) for _, numbers in side if numbers}
    )
    cluster: dict[float, int] = {}
    number, last = 0, None
    for value in firsts:
        if last is not None and value - last > max(column.rule.reach(value), column.rule.reach(last)):
            number += 1
        cluster[value] = number
        last = value

    def codes(side: Sequence[Any]) -> list[Hashable]:
        return [(key, cluster[as_float(numbers[0])]) if numbers else key for key, numbers in side]

    return codes(column.expected), codes(column.actual)
