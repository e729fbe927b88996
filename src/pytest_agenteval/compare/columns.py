"""Expected columns to answered columns: by name, by alias, by position, and what remains by value."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_agenteval.compare.engine import PlainEngine
from pytest_agenteval.compare.numbers import as_float
from pytest_agenteval.compare.options import ComparisonOptions
from pytest_agenteval.compare.pairing import hopcroft_karp

SEARCH_BUDGET = 1_500_000


@dataclass(frozen=True, slots=True)
class ColumnMap:
    """Which answered column stands for which expected one.

    ``pairs`` are (expected index, answered index) in expected order; ``how`` says for each expected
    index ``name``, ``alias``, ``position``, ``value``, or ``likeness`` (some values agree: shown,
    never a match). ``ambiguous``: the search by value was cut short.
    """

    pairs: tuple[tuple[int, int], ...]
    how: dict[int, str] = field(default_factory=dict)
    missing: tuple[int, ...] = ()
    extra: tuple[int, ...] = ()
    ambiguous: bool = False


def normal(name: str) -> str:
    """Lower case, runs of what is no letter or digit as ``_``, none at the ends."""
    return re.sub(r"[\W_]+", "_", name.lower()).strip("_")


def map_columns(engine: Any, options: ComparisonOptions) -> ColumnMap:
    """Map the columns of the engine's two tables under ``options``."""
    expected = [column.name for column in engine.expected.columns]
    actual = [column.name for column in engine.actual.columns]
    ignored = {name.lower() for name in options.ignore_columns}
    es = [i for i, name in enumerate(expected) if name.lower() not in ignored]
    as_ = [i for i, name in enumerate(actual) if name.lower() not in ignored]
    if options.columns == "position":
        pairs = tuple(zip(es, as_, strict=False))
        how = {e: "position" for e, _ in pairs}
        return ColumnMap(pairs, how, tuple(es[len(pairs) :]), tuple(as_[len(pairs) :]))
    finder = _Finder(engine, expected, actual, es, as_)
    finder.by_name(options)
    if options.columns == "auto":
        finder.by_value()
    return finder.result()


class _Finder:
    def __init__(
        self, engine: PlainEngine, expected: list[str], actual: list[str], es: list[int], as_: list[int]
    ) -> None:
        self.engine, self.expected, self.actual = engine, expected, actual
        self.es, self.as_ = es, as_
        self.found: dict[int, int] = {}
        self.how: dict[int, str] = {}
        self.ambiguous = False

    def open(self) -> tuple[list[int], list[int]]:
        taken = set(self.found.values())
        return [e for e in self.es if e not in self.found], [a for a in self.as_ if a not in taken]

    def by_name(self, options: ComparisonOptions) -> None:
        steps: list[Callable[[str], str]] = [str, str.lower, normal]
        for key in steps:
            self._step("name", key, key)
        aliases = {
            normal(alias): normal(name) for name, names in options.column_aliases.items() for alias in names
        }
        if aliases:
            self._step("alias", normal, lambda name: aliases.get(normal(name), ""))

    def _step(self, how: str, mine: Callable[[str], str], theirs: Callable[[str], str]) -> None:
        es, as_ = self.open()
        groups: dict[str, tuple[list[int], list[int]]] = {}
        for e in es:
            groups.setdefault(mine(self.expected[e]), ([], []))[0].append(e)
        for a in as_:
            key = theirs(self.actual[a])
            if key in groups:
                groups[key][1].append(a)
        for own, others in groups.values():
            for e, a in self._settle(own, others):
                self.found[e], self.how[e] = a, how

    def _settle(self, es: list[int], as_: list[int]) -> list[tuple[int, int]]:
        """Candidates of one name: the only one, else by value among them, else in order."""
        if len(es) <= 1 and len(as_) <= 1:
            return list(zip(es, as_, strict=False))
        if len(as_) >= len(es):
            chosen, _ = assign(self.engine, sorted(self.found.items()), es, as_)
            if chosen is not None:
                return chosen
        return self._likely(es, as_, least=0.0)

    def _likely(self, es: list[int], as_: list[int], least: float) -> list[tuple[int, int]]:
        """As many columns of the same bag as possible, then the most agreeing ones."""
        agree = {
            (e, a): 1.0 if self.engine.alike(e, a) else self.engine.agreement(e, a) for e in es for a in as_
        }
        best = _paired(es, as_, {pair for pair, share in agree.items() if share == 1.0}, agree)
        rest_e = [e for e in es if all(e != done for done, _ in best)]
        rest_a = [a for a in as_ if all(a != done for _, done in best)]
        usable = {pair for pair, share in agree.items() if share >= least}
        best += _paired(rest_e, rest_a, usable, agree)
        if len(best) < min(len(es), len(as_)):
            other = _paired(es, as_, usable, agree)
            best = other if len(other) > len(best) else best
        return best

    def by_value(self) -> None:
        es, as_ = self.open()
        if not es or not as_:
            return
        chosen = None
        same = self.engine.expected.row_count == self.engine.actual.row_count
        if len(as_) >= len(es) and (same or self.engine.options.duplicates == "set"):
            chosen, self.ambiguous = assign(self.engine, sorted(self.found.items()), es, as_)
        how = "value" if chosen is not None else "likeness"
        for e, a in chosen if chosen is not None else self._likely(es, as_, least=0.5):
            self.found[e], self.how[e] = a, how

    def result(self) -> ColumnMap:
        missing, extra = self.open()
        pairs = tuple(sorted(self.found.items()))
        return ColumnMap(pairs, self.how, tuple(missing), tuple(extra), self.ambiguous)


def _paired(
    es: list[int], as_: list[int], usable: set[tuple[int, int]], agree: dict[tuple[int, int], float]
) -> list[tuple[int, int]]:
    """As many usable pairs as there can be, the most agreeing tried first."""
    edges = [
        sorted((j for j, a in enumerate(as_) if (e, a) in usable), key=lambda j: -agree[e, as_[j]])
        for e in es
    ]
    return [(es[i], as_[j]) for i, j in hopcroft_karp(edges, len(as_))]


def assign(
    engine: Any, fixed: Sequence[tuple[int, int]], es: Sequence[int], as_: Sequence[int]
) -> tuple[list[tuple[int, int]] | None, bool]:
    """An injective assignment of answered columns under which whole rows agree.

    Returns it (``None`` where there is none) and whether the search was cut short by its budget.
    """
    candidates = {e: [a for a in as_ if engine.alike(e, a)] for e in es}
    if any(not found for found in candidates.values()):
        return None, False
    search = _Search(engine, fixed, candidates)
    return search.run()


class _Search:
    """Depth first over expected columns; a prefix of columns must agree as rows to go on."""

    def __init__(
        self, engine: Any, fixed: Sequence[tuple[int, int]], candidates: dict[int, list[int]]
    ) -> None:
        self.engine, self.fixed = engine, list(fixed)
        self.candidates = candidates
        self.order = sorted(candidates, key=lambda e: len(candidates[e]))
        self.budget = SEARCH_BUDGET
        self.codes: dict[tuple[int, int], tuple[list[Hashable], list[Hashable]]] = {}

    def run(self) -> tuple[list[tuple[int, int]] | None, bool]:
        mine: list[Any] = [0] * self.engine.expected.row_count
        theirs: list[Any] = [0] * self.engine.actual.row_count
        for e, a in self.fixed:
            both = self._extend(mine, theirs, e, a)
            if both is None:
                return None, False
            mine, theirs = both
        chosen = self._descend(0, mine, theirs, {})
        return chosen, chosen is None and self.budget <= 0

    def _descend(
        self, depth: int, mine: list[Any], theirs: list[Any], chosen: dict[int, int]
    ) -> list[tuple[int, int]] | None:
        if depth == len(self.order):
            pairs = sorted(chosen.items())
            self.budget -= len(mine) * 4
            return pairs if self.engine.pair([*self.fixed, *pairs]).matched else None
        e = self.order[depth]
        tried: set[Hashable] = set()
        for a in self.candidates[e]:
            if a in chosen.values():
                continue
            content = tuple(self._code(e, a)[1])
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
        """Row codes with one more column; ``None`` where the rows no longer agree."""
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
            self.codes[e, a] = column_codes(self.engine.column(e, a))
        return self.codes[e, a]


def column_codes(column: Any) -> tuple[list[Hashable], list[Hashable]]:
    """Codes under which equal cells have equal codes; with a tolerance, near ones may share one."""
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
