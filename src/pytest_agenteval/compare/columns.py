"""Expected columns to answered columns: by name, by alias, by position, and what remains by value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_agenteval.compare.engine import ComparisonEngine
from pytest_agenteval.compare.fitting import Fitting
from pytest_agenteval.compare.options import ComparisonOptions
from pytest_agenteval.compare.python_engine.matching import hopcroft_karp
from pytest_agenteval.support.column_names import NAME_RULES, expected_by_alias, fold_name

PARTIAL = "partial_match"
MOST_MEASURED = 900
LEAST_SHARE = 0.5
MOST_CROSSED = 20
MANY_ROWS = 200_000
Pairs = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class ColumnMap:
    """Which answered column stands for which expected one.

    ``pairs`` are (expected index, answered index) in expected order; ``how`` says for each expected
    index ``name``, ``alias``, ``position``, ``value``, or ``partial_match`` (no name ties the two and
    their values differ: shown and explained, never a match). ``ambiguous``: the search by value was
    cut short.
    """

    pairs: tuple[tuple[int, int], ...]
    how: dict[int, str] = field(default_factory=dict)
    missing: tuple[int, ...] = ()
    extra: tuple[int, ...] = ()
    ambiguous: bool = False

    @property
    def partial(self) -> list[tuple[int, int]]:
        """Pairs that stand side by side only to be explained."""
        return [(e, a) for e, a in self.pairs if self.how[e] == PARTIAL]

    @property
    def unnamed(self) -> list[int]:
        """Expected columns that nothing in the answer stands for."""
        return sorted([*self.missing, *(e for e, _ in self.partial)])

    def with_partial(self, more: Iterable[tuple[int, int]]) -> ColumnMap:
        """Return this map with further pairs to be explained."""
        added = dict(more)
        taken = set(added.values())
        return ColumnMap(
            tuple(sorted([*self.pairs, *added.items()])),
            {**self.how, **dict.fromkeys(added, PARTIAL)},
            tuple(e for e in self.missing if e not in added),
            tuple(a for a in self.extra if a not in taken),
            self.ambiguous,
        )


def words_of(name: str) -> frozenset[str]:
    """Return the words of a column name: ``winsCount`` and ``Wins (count)`` both hold wins and count."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return frozenset(word for word in fold_name(apart).split("_") if word)


def affinity(one: str, two: str) -> float:
    """Return how much of two names is the same words (0 to 1)."""
    mine, theirs = words_of(one), words_of(two)
    return len(mine & theirs) / max(len(mine | theirs), 1)


def _includes(mine: frozenset[str], theirs: frozenset[str]) -> bool:
    """Return whether the words of one name all stand in the other: ``wins`` and ``wins_count``."""
    return bool(mine) and bool(theirs) and (mine <= theirs or theirs <= mine)


def map_columns(
    engine: ComparisonEngine[Any, Any], options: ComparisonOptions, runs: Sequence[range] | None = None
) -> ColumnMap:
    """Map the columns of the engine's two tables under ``options``.

    ``runs`` are those of an ordered comparison: what is tied by value then agrees as a list.
    """
    expected = [column.name for column in engine.expected.columns]
    actual = [column.name for column in engine.actual.columns]
    ignored = set(map(fold_name, options.ignore_columns))
    expected_indexes = [i for i, name in enumerate(expected) if fold_name(name) not in ignored]
    actual_indexes = [i for i, name in enumerate(actual) if fold_name(name) not in ignored]
    if options.columns == "position":
        pairs = tuple(zip(expected_indexes, actual_indexes, strict=False))
        how = {e: "position" for e, _ in pairs}
        return ColumnMap(
            pairs, how, tuple(expected_indexes[len(pairs) :]), tuple(actual_indexes[len(pairs) :])
        )
    finder = _Finder(engine, expected_indexes, actual_indexes, runs)
    finder.by_name(options)
    if options.columns == "auto":
        finder.by_value()
    return finder.result()


MOST_OFFERED = 50
"""Answered columns without a name in common, for each expected one, that are searched by value ..."""

FEW_ROWS = 10
"""... where the tables have fewer rows than this."""


class _Finder:
    """The steps of the contract, each over all columns before the next."""

    def __init__(
        self,
        engine: ComparisonEngine[Any, Any],
        expected_indexes: list[int],
        actual_indexes: list[int],
        runs: Sequence[range] | None,
    ) -> None:
        self.engine, self.runs, self.fitting = engine, runs, Fitting(engine)
        self.expected, self.actual = engine.expected.names, engine.actual.names
        self.expected_indexes, self.actual_indexes = expected_indexes, actual_indexes
        self.found: dict[int, int] = {}
        self.how: dict[int, str] = {}
        self.ambiguous = False

    def open(self) -> tuple[list[int], list[int]]:
        """Return the columns of either side that have no partner yet."""
        taken = set(self.found.values())
        return (
            [e for e in self.expected_indexes if e not in self.found],
            [a for a in self.actual_indexes if a not in taken],
        )

    def by_name(self, options: ComparisonOptions) -> None:
        """Map by name: as written, without case, folded, then by alias."""
        for rule in NAME_RULES:
            self._step("name", rule, rule)
        by_alias = expected_by_alias(options.column_aliases)
        if by_alias:
            self._step("alias", fold_name, lambda name: by_alias.get(fold_name(name)))

    def _step(self, how: str, mine: Callable[[str], str], theirs: Callable[[str], str | None]) -> None:
        expected_indexes, actual_indexes = self.open()
        groups: dict[str, tuple[list[int], list[int]]] = {}
        for e in expected_indexes:
            groups.setdefault(mine(self.expected[e]), ([], []))[0].append(e)
        for a in actual_indexes:
            key = theirs(self.actual[a])
            if key is not None and key in groups:
                groups[key][1].append(a)
        for own, others in groups.values():
            for e, a in self._settle(own, others):
                self.found[e], self.how[e] = a, how

    def _settle(self, expected_indexes: list[int], actual_indexes: list[int]) -> Pairs:
        """Return candidates of one name: the only one, else by value among them, else in order."""
        if len(expected_indexes) <= 1 and len(actual_indexes) <= 1:
            return list(zip(expected_indexes, actual_indexes, strict=False))
        if len(actual_indexes) >= len(expected_indexes):
            chosen, _ = self._assign(expected_indexes, actual_indexes)
            if chosen is not None:
                return chosen
        return self._likely(expected_indexes, actual_indexes, least=0.0)

    def _assign(self, expected_indexes: list[int], actual_indexes: list[int]) -> tuple[Pairs | None, bool]:
        fixed = sorted(self.found.items())
        return self.engine.assign(fixed, expected_indexes, actual_indexes, self.runs)

    def _likely(self, expected_indexes: list[int], actual_indexes: list[int], least: float) -> Pairs:
        """Return as many columns of the same bag as possible, then the most agreeing ones."""
        candidates = self.engine.candidates(expected_indexes, actual_indexes)
        agree = {(e, a): 1.0 for e, found in candidates.items() for a in found}
        best = best_pairs(expected_indexes, actual_indexes, agree)
        done, taken = {e for e, _ in best}, {a for _, a in best}
        rest_e = [e for e in expected_indexes if e not in done]
        rest_a = [a for a in actual_indexes if a not in taken]
        self._measure(rest_e, rest_a, least, agree)
        best += best_pairs(rest_e, rest_a, agree)
        most = min(len(expected_indexes), len(actual_indexes))
        if len(best) < most and len(expected_indexes) * len(actual_indexes) <= MOST_MEASURED:
            self._measure(expected_indexes, actual_indexes, least, agree)
            other = best_pairs(expected_indexes, actual_indexes, agree)
            best = other if len(other) > len(best) else best
        return best

    def _measure(
        self,
        expected_indexes: list[int],
        actual_indexes: list[int],
        least: float,
        agree: dict[tuple[int, int], float],
    ) -> None:
        few = len(expected_indexes) * len(actual_indexes) <= MOST_MEASURED
        for e in expected_indexes if few else ():
            for a in actual_indexes:
                if (e, a) not in agree and (not least or self._worth(e, a)):
                    share = self.engine.agreement(e, a)
                    agree.update({(e, a): share} if share >= least else {})

    def _worth(self, e: int, a: int) -> bool:
        """Return whether two columns are worth comparing: of one kind where there are many rows."""
        if max(self.engine.rows) > MANY_ROWS:
            kind, other = self.engine.kind(e), self.fitting.head(a)[0]
            return kind == other or (kind.tolerant and other.numeric)
        return self.fitting.fits(e, a)

    def by_value(self) -> None:
        """Map what remains by value, confirmed on whole rows; else what agrees in part."""
        expected_indexes, actual_indexes = self.open()
        if not expected_indexes or not actual_indexes:
            return
        chosen = None
        if self._too_many(len(expected_indexes), len(actual_indexes)):
            return
        same = self.engine.expected.row_count == self.engine.actual.row_count
        if same or self.engine.options.duplicates == "set":
            if len(actual_indexes) >= len(expected_indexes):
                chosen, self.ambiguous = self._assign(expected_indexes, actual_indexes)
            if chosen is None and not self.ambiguous:
                chosen = self._in_part(expected_indexes, actual_indexes)
        crossed = self._crossed(chosen or [])
        for e, a in chosen or []:
            self.found[e], self.how[e] = crossed.get(e, a), "name" if e in crossed else "value"
        expected_indexes, actual_indexes = self.open()
        if expected_indexes and actual_indexes:
            for e, a in self._likely(expected_indexes, actual_indexes, least=LEAST_SHARE):
                self.found[e], self.how[e] = a, PARTIAL

    def _too_many(self, wanted: int, offered: int) -> bool:
        """Return whether so many columns are offered that one fits by chance: a value alone proves nothing.

        In rows enough a column does not fit by chance; in a few, among hundreds of columns, one does.
        """
        return offered > MOST_OFFERED * wanted and self.engine.expected.row_count < FEW_ROWS

    def _in_part(self, expected_indexes: list[int], actual_indexes: list[int]) -> Pairs | None:
        """Return those columns alone whose values are there: the others are what is wrong."""
        candidates = self.engine.candidates(expected_indexes, actual_indexes)
        if sum(map(len, candidates.values())) > MOST_MEASURED:
            return None
        some = [e for e in expected_indexes if any(self.engine.agreement(e, a) == 1 for a in candidates[e])]
        if not some or len(some) == len(expected_indexes) or len(some) > len(actual_indexes):
            return None
        return self._assign(some, actual_indexes)[0]

    def _crossed(self, chosen: Pairs) -> dict[int, int]:
        """Return columns whose values were found exchanged while the words of their names say otherwise.

        ``wins``, ``losses`` answered as ``wins_count``, ``losses_count`` with each other's values is a
        mistake of the agent's; there the names are taken, so that it is reported.
        """
        mine = {e: words_of(self.expected[e]) for e, _ in chosen}
        theirs = {a: words_of(self.actual[a]) for _, a in chosen}
        owner = {a: e for e, a in chosen}
        by_word: dict[str, list[int]] = {}
        for a, words in theirs.items():
            for word in words:
                by_word.setdefault(word, []).append(a)
        out: dict[int, int] = {}
        for e, a in chosen:
            near = {b for word in mine[e] for b in by_word.get(word, ())}
            if len(near) > MOST_CROSSED or _includes(mine[e], theirs[a]):
                continue
            for b in near:
                f = owner[b]
                told = _includes(mine[e], theirs[b]) and _includes(mine[f], theirs[a])
                if told and not _includes(mine[f], theirs[b]) and not self._alike(e, b):
                    out.update({e: b, f: a})
        return out

    def _alike(self, e: int, a: int) -> bool:
        """Return whether the columns hold the same in each row, so that either may stand for the other."""
        fixed = list(self.found.items())
        return self.engine.agreement(e, a, fixed) == 1.0

    def result(self) -> ColumnMap:
        """Return what was found."""
        missing, extra = self.open()
        pairs = tuple(sorted(self.found.items()))
        return ColumnMap(pairs, self.how, tuple(missing), tuple(extra), self.ambiguous)


def best_pairs(
    expected_indexes: Sequence[int], actual_indexes: Sequence[int], agree: dict[tuple[int, int], float]
) -> Pairs:
    """Return as many pairs as there can be, the most agreeing tried first."""

    def edges(e: int) -> list[int]:
        found = [j for j, a in enumerate(actual_indexes) if (e, a) in agree]
        return sorted(found, key=lambda j: -agree[e, actual_indexes[j]])

    matched = hopcroft_karp([edges(e) for e in expected_indexes], len(actual_indexes))
    return [(expected_indexes[i], actual_indexes[j]) for i, j in matched]
