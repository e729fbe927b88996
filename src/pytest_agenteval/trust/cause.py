"""``prove_cause``: the one mistake that turns the reference's table into the agent's."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_agenteval.compare import ComparisonOptions, compare
from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.table import Table
from pytest_agenteval.trust.engines import TrialError
from pytest_agenteval.trust.errors import NotCheckedError
from pytest_agenteval.trust.mutants import MOST_MUTANTS, Mutant, mutants
from pytest_agenteval.trust.schema import Catalog

SECONDS = 2.0
SLOW_REFERENCE = 0.1
"""Seconds a statement may take; a slower reference is not run again for every mistake."""

MOST_SLOW = 2
"""Statements in a row that may be slow: one alone was the machine's doing."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What a wrong answer did: ``text`` follows "the answer is exactly what the reference gives"."""

    kind: str
    table: str
    column: str
    text: str
    proved: bool = True

    @property
    def sentence(self) -> str:
        """Return the whole sentence."""
        return f"the answer is exactly what the reference gives {self.text}"


def prove_cause(
    reference: str,
    answer: Table,
    catalog: Catalog,
    run: Callable[[str], Table],
    options: ComparisonOptions | None = None,
) -> Cause | None:
    """Return the mistake that explains ``answer`` exactly, if mistakes of only one kind do.

    Args:
        reference: the reference SQL of a failed attempt.
        answer: the agent's table.
        catalog: the tables of the database.
        run: runs a statement on the data; what raises ``DatabaseError`` explains nothing.
        options: how the case compares tables.

    An answer that is empty, or all NULL and 0, has no proved cause. At most 60 statements are run, for at
    most 2 seconds, none where one takes over 100 ms. No SQL of the agent's is needed.
    """
    if not _tells_something(answer):
        return None
    return one_cause(answer, explaining_mutants(reference, answer, catalog, run, options))


def one_cause(answer: Table, explaining: Sequence[Mutant]) -> Cause | None:
    """Return the cause where mistakes of one kind alone explain an answer that tells something."""
    if (
        not _tells_something(answer)
        or not explaining
        or len({(m.kind, m.table, m.column) for m in explaining}) > 1
    ):
        return None
    first = explaining[0]
    return Cause(first.kind, first.table, first.column, first.text)


def _tells_something(answer: Table) -> bool:
    """Return whether an answer has a value but NULL and 0: too many mistakes leave nothing."""
    return any(value for row in answer.rows(1_000) for value in row)


def explaining_mutants(
    reference: str,
    answer: Table,
    catalog: Catalog,
    run: Callable[[str], Table],
    options: ComparisonOptions | None = None,
) -> list[Mutant]:
    """Return the mistakes that give ``answer`` exactly; none where that takes too long to find out."""
    options = options or ComparisonOptions()
    try:
        tried = mutants(reference, catalog)[:MOST_MUTANTS]
    except NotCheckedError:
        return []
    found: list[Mutant] = []
    slow = 0
    deadline = time.monotonic() + SECONDS
    for mutant in tried:
        started = time.monotonic()
        try:
            table = run(mutant.sql)
        except (DatabaseError, TrialError):
            continue
        now = time.monotonic()
        # an output less explains only an answer that has no column in its place
        enough = mutant.kind != "output" or len(answer.columns) <= len(table.columns)
        if enough and compare(table, answer, options).matched:
            found.append(mutant)
        slow = slow + 1 if now - started > SLOW_REFERENCE else 0
        if slow == MOST_SLOW or now > deadline:
            return []
    return found
