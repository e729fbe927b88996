"""The search for a few rows on which two statements differ, and the proof of what it finds."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_agenteval.compare import ComparisonOptions, compare
from pytest_agenteval.table import Table
from pytest_agenteval.trust.constraints import Constraints
from pytest_agenteval.trust.engines import TrialEngine, TrialError, open_engine
from pytest_agenteval.trust.errors import NotCheckedError
from pytest_agenteval.trust.fitting import Fitter
from pytest_agenteval.trust.known import KnownData
from pytest_agenteval.trust.reading import ReadStatement
from pytest_agenteval.trust.schema import Catalog, Cell, Rows
from pytest_agenteval.trust.ties import tie_variants
from pytest_agenteval.trust.traps import TrapMaker
from pytest_agenteval.trust.values import ColumnValues, column_values

MOST_ROWS = 8
"""Rows of a counterexample, at most: what a reader takes in."""

TRIALS = 60
SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Luck:
    """Whether rows were found on which a statement differs from its reference.

    ``bool(luck)`` is whether some were found. Not found proves nothing: "no difference found in 60 tries".

    Attributes:
        checked: whether trials were made; ``why_not`` says why none were.
        found: whether the two statements differ on made-up rows.
        assumption: which rules the rows obey: ``strict``, all that are declared, stated or mined.
        tables: the rows, by table, all columns.
        reference, answer: what the reference and the other statement give on them.
        kind: ``rows``; or ``row order`` where only the answer depends on the order of rows.
        trials: sets of rows that were tried.
        why_not: why none were.
        telling: by table, the columns that the statements name, and its keys.
    """

    checked: bool
    found: bool = False
    assumption: str = "strict"
    tables: Mapping[str, Table] = field(default_factory=dict)
    reference: Table | None = None
    answer: Table | None = None
    kind: str = ""
    trials: int = 0
    why_not: str | None = None
    telling: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return whether rows were found."""
        return self.found

    @property
    def row_count(self) -> int:
        """Return how many rows the counterexample has, over all tables."""
        return sum(table.row_count for table in self.tables.values())


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a search may take: trials, seconds, and the seed of its random choices."""

    trials: int = TRIALS
    seconds: float = SECONDS
    seed: int = 0


class PairSearch:
    """One pair of statements, the rules of the data, and an engine to try rows on. Close it afterwards.

    Raises ``NotCheckedError`` where the pair cannot be tried.
    """

    def __init__(
        self, reference: str, other: str, known: KnownData, options: ComparisonOptions | None = None
    ) -> None:
        self.options = options or ComparisonOptions()
        self.queries = (known.query(reference), known.query(other))
        self.catalog: Catalog = known.catalog
        tables = self.queries[0].tables | self.queries[1].tables
        if not tables:
            raise NotCheckedError("the SQL reads no table")
        tables, mined = known.with_parents(tables, self.queries[0].equal_cells())
        self.rules = _rules_for(mined.rules, mined.values, self.queries)
        self.pool = known.pool(tables, self.queries, self.rules)
        try:
            made = [self.catalog.tables[table] for table in sorted(tables)]
            views = sorted(self.queries[0].views | self.queries[1].views)
            self.engine: TrialEngine = open_engine(known.dialect, made, views)
        except TrialError as error:
            raise NotCheckedError(str(error)) from error
        self.variants = tuple(tie_variants(query.tree, known.dialect) for query in self.queries)
        used = self.queries[0].used | self.queries[1].used
        self.values = self._values(used)
        self.fitter = Fitter(self.catalog, self.rules, self.pool, self.values, used)

    def _values(self, used: set[Cell]) -> dict[Cell, ColumnValues]:
        values = {}
        for cell in sorted(used):
            table = self.catalog.tables[cell[0]]
            at = table.index(cell[1])
            seen = list(dict.fromkeys(_plain(row[at]) for row in self.pool[cell[0]]))
            tests = [test for query in self.queries for test in query.tests if test.cell == cell]
            allowed, least = self.rules.domains.get(cell), self.rules.least.get(cell)
            values[cell] = column_values(cell, table.columns[at], seen, tests, self.engine, allowed, least)
        return values

    def close(self) -> None:
        """Give the engine's memory back."""
        self.engine.close()

    def find(self, limits: Limits) -> Luck:
        """Return what the trials found."""
        deadline = time.monotonic() + limits.seconds
        stop = threading.Timer(limits.seconds + 0.5, self.engine.interrupt)
        stop.daemon = True
        stop.start()
        try:
            return self._search(limits, deadline)
        finally:
            stop.cancel()

    def load(self, luck: Luck) -> None:
        """Put the rows of a counterexample into the engine. Raises ``TrialError``."""
        self.engine.load({key: [list(row) for row in table.rows()] for key, table in luck.tables.items()})

    def _search(self, limits: Limits, deadline: float) -> Luck:
        maker = TrapMaker(self.catalog, self.queries, self.fitter, self.values, self.engine, limits.seed)
        ran, failure, trials = 0, "", 0
        smallest: Rows | None = None
        for number in range(limits.trials):
            if time.monotonic() > deadline:
                break
            trials += 1
            rows = maker.make(number)
            try:
                differs = self._differ(rows)
                ran += 1
            except TrialError as error:
                failure = str(error)
                continue
            if differs and self._proved(rows):
                found = self._shrunk(rows, deadline)
                if smallest is None or _size(found) < _size(smallest):
                    smallest = found
                if _size(smallest) <= MOST_ROWS:
                    break
        if not ran:
            raise NotCheckedError(
                f"the SQL does not run on made-up rows: {failure.splitlines()[0] if failure else ''}"
            )
        if smallest is None or _size(smallest) > MOST_ROWS:
            return Luck(True, trials=trials)
        return self._luck(smallest, trials)

    def _luck(self, rows: Rows, trials: int) -> Luck:
        kind = self._kind(rows)
        self.engine.load(rows)
        reference, answer = (self.engine.run(query.sql) for query in self.queries)
        tables = {key: self._shown(key, found) for key, found in rows.items() if found}
        telling = {key: self._telling(key) for key in tables}
        return Luck(True, True, "strict", tables, reference, answer, kind, trials, telling=telling)

    def _telling(self, key: str) -> tuple[str, ...]:
        used = self.queries[0].used | self.queries[1].used
        columns = self.catalog.tables[key].columns
        named = tuple(c.name for c in columns if (key, c.name.lower()) in used)
        return named or tuple(c.name for c in columns)[:1]

    def _shown(self, key: str, rows: Sequence[Sequence[Any]]) -> Table:
        """Return the rows of one table, all columns."""
        columns = self.catalog.tables[key].columns
        return Table.from_rows([c.name for c in columns], rows, [c.type or None for c in columns])

    def _same(self, one: Table, two: Table) -> bool:
        if len(one.columns) == len(two.columns) and not self.options.ordered and _bag(one) == _bag(two):
            return True
        return compare(one, two, self.options).matched

    def _differ(self, rows: Rows) -> bool:
        """Return whether the two statements differ on the rows as they stand."""
        self.engine.load(rows)
        reference, other = (self.engine.run(query.sql) for query in self.queries)
        return not self._same(reference, other)

    def _proved(self, rows: Rows) -> bool:
        """Return whether the difference is one whatever the order of the rows,
        and no tie decides the reference.
        """
        try:
            return bool(self._kind(rows))
        except TrialError:
            return False

    def _kind(self, rows: Rows) -> str:
        """Return ``rows`` where every run differs, ``row order`` where the answer varies, else ''."""
        references: list[Table] = []
        others: list[Table] = []
        for order in _orders(rows):
            self.engine.load(order)
            references.append(self.engine.run(self.queries[0].sql))
            others.append(self.engine.run(self.queries[1].sql))
        references += [self.engine.run(sql) for sql in self.variants[0]]
        first = references[0]
        if not all(self._same(first, found) for found in references[1:]):
            return ""
        if first.row_count == 0 and not any(found.row_count for found in others):
            return ""
        others += [self.engine.run(sql) for sql in self.variants[1]]
        differing = [not self._same(first, found) for found in others]
        if all(differing):
            return "rows"
        return "row order" if any(differing) else ""

    def _shrunk(self, rows: Rows, deadline: float) -> Rows:
        from pytest_agenteval.trust.shrinking import shrink

        def holds(candidate: Rows) -> bool:
            try:
                return self._differ(candidate) and self._proved(candidate)
            except TrialError:
                return False

        return shrink(rows, self.fitter.valid, holds, deadline)


def _rules_for(
    rules: Constraints, closed: Mapping[Cell, frozenset[Any]], queries: Sequence[ReadStatement]
) -> Constraints:
    """Return the rules with the closed lists of the columns that a statement compares with values."""
    tested = {test.cell for query in queries for test in query.tests}
    return replace(rules, domains={**rules.domains, **{c: v for c, v in closed.items() if c in tested}})


def _orders(rows: Rows) -> list[Rows]:
    """Return the rows as they are, reversed and shuffled."""
    shuffled = {table: list(found) for table, found in rows.items()}
    draw = random.Random(7)
    for found in shuffled.values():
        draw.shuffle(found)
    return [rows, {table: found[::-1] for table, found in rows.items()}, shuffled]


def _bag(table: Table) -> Counter[str]:
    return Counter(repr(row) for row in table.rows())


def _size(rows: Rows) -> int:
    return sum(len(found) for found in rows.values())


def _plain(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return None
    return value
