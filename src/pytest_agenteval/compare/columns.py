"""Expected columns to answered columns: by name, by alias, by position, and what remains by value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pytest_agenteval.compare.options import ComparisonOptions
from pytest_agenteval.compare.python_engine.engine import PythonEngine
from pytest_agenteval.compare.python_engine.matching import hopcroft_karp
from pytest_agenteval.support.column_names import NAME_RULES, expected_by_alias, fold_name


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


def map_columns(engine: Any, options: ComparisonOptions) -> ColumnMap:
    """Map the columns of the engine's two tables under ``options``."""
    expected = [column.name for column in engine.expected.columns]
    actual = [column.name for column in engine.actual.columns]
    ignored = set(map(fold_name, options.ignore_columns))
    es = [i for i, name in enumerate(expected) if fold_name(name) not in ignored]
    as_ = [i for i, name in enumerate(actual) if fold_name(name) not in ignored]
    if options.columns == "position":
        pairs = tuple(zip(es, as_, strict=False))
        how = {e: "position" for e, _ in pairs}
        return ColumnMap(pairs, how, tuple(es[len(pairs) :]), tuple(as_[len(pairs) :]))
    finder = _Finder(engine, expected, actual, es, as_)
    finder.by_name(options)
    if options.columns == "auto":
        finder.by_value()
    return finder.result()


MOST_MEASURED = 900


class _Finder:
    def __init__(
        self, engine: PythonEngine, expected: list[str], actual: list[str], es: list[int], as_: list[int]
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
        for rule in NAME_RULES:
            self._step("name", rule, rule)
        by_alias = expected_by_alias(options.column_aliases)
        if by_alias:
            self._step("alias", fold_name, lambda name: by_alias.get(fold_name(name)))

    def _step(self, how: str, mine: Callable[[str], str], theirs: Callable[[str], str | None]) -> None:
        es, as_ = self.open()
        groups: dict[str, tuple[list[int], list[int]]] = {}
        for e in es:
            groups.setdefault(mine(self.expected[e]), ([], []))[0].append(e)
        for a in as_:
            key = theirs(self.actual[a])
            if key is not None and key in groups:
                groups[key][1].append(a)
        for own, others in groups.values():
            for e, a in self._settle(own, others):
                self.found[e], self.how[e] = a, how

    def _settle(self, es: list[int], as_: list[int]) -> list[tuple[int, int]]:
        """Candidates of one name: the only one, else by value among them, else in order."""
        if len(es) <= 1 and len(as_) <= 1:
            return list(zip(es, as_, strict=False))
        if len(as_) >= len(es):
            chosen, _ = self.engine.assign(sorted(self.found.items()), es, as_)
            if chosen is not None:
                return chosen
        return self._likely(es, as_, least=0.0)

    def _likely(self, es: list[int], as_: list[int], least: float) -> list[tuple[int, int]]:
        """As many columns of the same bag as possible, then the most agreeing ones."""
        agree = {(e, a): 1.0 for e in es for a in as_ if self.engine.alike(e, a)}
        best = _paired(es, as_, agree)
        rest_e = [e for e in es if all(e != done for done, _ in best)]
        rest_a = [a for a in as_ if all(a != done for _, done in best)]
        self._measure(rest_e, rest_a, least, agree)
        best += _paired(rest_e, rest_a, agree)
        if len(best) < min(len(es), len(as_)) and len(es) * len(as_) <= MOST_MEASURED:
            self._measure(es, as_, least, agree)
            other = _paired(es, as_, agree)
            best = other if len(other) > len(best) else best
        return best

    def _measure(
        self, es: list[int], as_: list[int], least: float, agree: dict[tuple[int, int], float]
    ) -> None:
        for e in es if len(es) * len(as_) <= MOST_MEASURED else ():
            for a in as_:
                if (e, a) not in agree:
                    share = self.engine.agreement(e, a)
                    agree.update({(e, a): share} if share >= least else {})

    def by_value(self) -> None:
        es, as_ = self.open()
        if not es or not as_:
            return
        chosen = None
        same = self.engine.expected.row_count == self.engine.actual.row_count
        if len(as_) >= len(es) and (same or self.engine.options.duplicates == "set"):
            chosen, self.ambiguous = self.engine.assign(sorted(self.found.items()), es, as_)
        how = "value" if chosen is not None else "likeness"
        for e, a in chosen if chosen is not None else self._likely(es, as_, least=0.5):
            self.found[e], self.how[e] = a, how

    def result(self) -> ColumnMap:
        missing, extra = self.open()
        pairs = tuple(sorted(self.found.items()))
        return ColumnMap(pairs, self.how, tuple(missing), tuple(extra), self.ambiguous)


def _paired(es: list[int], as_: list[int], agree: dict[tuple[int, int], float]) -> list[tuple[int, int]]:
    """As many pairs as there can be, the most agreeing tried first."""

    def edges(e: int) -> list[int]:
        found = [j for j, a in enumerate(as_) if (e, a) in agree]
        return sorted(found, key=lambda j: -agree[e, as_[j]])

    return [(es[i], as_[j]) for i, j in hopcroft_karp([edges(e) for e in es], len(as_))]
