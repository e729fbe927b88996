"""``blind_spots``: the mistakes in a reference that a case's own data cannot notice."""

from __future__ import annotations

import time
from dataclasses import dataclass

from pytest_agenteval.compare import ComparisonOptions, compare
from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.trust.errors import NotCheckedError
from pytest_agenteval.trust.known import KnownData
from pytest_agenteval.trust.mutants import Mutant, mutants
from pytest_agenteval.trust.search import Limits, Luck, PairSearch

SECONDS = 5.0
"""Seconds of CPU that a reference may take."""

PAIR_SECONDS = 5.0
"""Seconds that one mutant may take, on however busy a machine."""

TRIALS = 40


@dataclass(frozen=True, slots=True)
class BlindSpot:
    """A mistake that gives the same table on the data, and rows on which it does not."""

    mutant: Mutant
    luck: Luck


@dataclass(frozen=True, slots=True)
class BlindSpots:
    """What became of the mutants of one reference.

    ``caught``: the data tell them from it. ``spots``: they do not, and made-up rows do. ``equal``: nothing
    tells them apart, so they are probably equal and not counted. ``left``: there was no time to try them.
    """

    caught: int
    spots: tuple[BlindSpot, ...]
    equal: int
    left: int = 0

    @property
    def total(self) -> int:
        """Return how many mutants there are."""
        return self.caught + len(self.spots) + self.equal + self.left


def blind_spots(reference: str, known: KnownData, options: ComparisonOptions | None = None) -> BlindSpots:
    """Return which mistakes in a reference its data do not notice.

    Takes at most about 5 seconds of CPU. Raises ``NotCheckedError`` for SQL that cannot be taken apart,
    ``DatabaseError`` for a reference that does not run.
    """
    options = options or ComparisonOptions()
    deadline = time.thread_time() + SECONDS
    wanted = known.run(reference)
    caught, survivors = 0, []
    for mutant in mutants(reference, known.catalog):
        try:
            table = known.run_briefly(mutant.sql)
        except DatabaseError:
            continue
        if compare(wanted, table, options).matched and compare(table, wanted, options).matched:
            survivors.append(mutant)
        else:
            caught += 1
    spots, equal, left = [], 0, 0
    for mutant in survivors:
        if time.thread_time() > deadline:
            left += 1
            continue
        luck = _tried(reference, mutant, known, options)
        if luck:
            spots.append(BlindSpot(mutant, luck))
        else:
            equal += 1
    return BlindSpots(caught, tuple(spots), equal, left)


def _tried(reference: str, mutant: Mutant, known: KnownData, options: ComparisonOptions) -> Luck:
    try:
        search = PairSearch(reference, mutant.sql, known, options)
    except NotCheckedError as error:
        return Luck(False, why_not=str(error))
    try:
        return search.find(Limits(trials=TRIALS, seconds=PAIR_SECONDS))
    except NotCheckedError as error:
        return Luck(False, why_not=str(error))
    finally:
        search.close()
