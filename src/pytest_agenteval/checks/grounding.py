"""``grounded``: does every number of the prose come from somewhere?"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pytest_agenteval.checks.table import as_number
from pytest_agenteval.checks.text_numbers import Quantity, all_numbers, quantities
from pytest_agenteval.support.scalars import is_null
from pytest_agenteval.table import Table
from pytest_agenteval.types import Evidence

_HALF = Decimal("0.5")
_SLACK = Decimal("1e-9")


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a number may come from: cells of tables, numbers of the question, counts of rows."""

    cells: frozenset[Decimal]
    given: frozenset[Decimal]


def ungrounded(evidence: Evidence) -> list[str]:
    """Return the numbers of the prose, as written, that occur nowhere in rows, question or row counts.

    Rows are those of the answer's table and of every statement the agent executed.
    """
    sources = sources_of(evidence)
    return [entry.text for entry in quantities(evidence.text) if not grounded(entry, sources)]


def sources_of(evidence: Evidence) -> Sources:
    """Return all numbers the agent was given or got back."""
    tables = [evidence.table, *(entry.table for entry in evidence.statements)]
    known = [table for table in tables if table is not None]
    questions = [evidence.prompt, *(turn.prompt for turn in evidence.turns)]
    given = {number for text in questions for number in all_numbers(text)}
    given |= {Decimal(table.row_count) for table in known}
    cells = {abs(number) for table in known for number in _numbers(table)}
    return Sources(frozenset(cells), frozenset(given))


def grounded(entry: Quantity, sources: Sources) -> bool:
    """Return whether a source is this number, as precisely as it is written."""
    wanted = abs(entry.value)
    if wanted in sources.given:
        return True
    factors = (1, 100) if entry.percent else (1,)
    return any(_shows(entry, wanted, cell * factor) for cell in sources.cells for factor in factors)


def _shows(entry: Quantity, wanted: Decimal, source: Decimal) -> bool:
    """Return ``wanted`` is ``source`` rounded to the digits shown; a hedged one may be rounder."""
    if abs(source - wanted) <= entry.step * _HALF + _SLACK * source:
        return True
    if entry.hedge == "about":
        return abs(source - wanted) <= entry.zeros * _HALF
    if entry.hedge == "over":
        return wanted <= source < wanted + entry.zeros
    if entry.hedge == "under":
        return wanted - entry.zeros < source <= wanted
    return False


def _numbers(table: Table) -> Iterator[Decimal]:
    for index in range(len(table.columns)):
        yield from _numbers_of(table.column(index))


def _numbers_of(values: Iterable[Any]) -> Iterator[Decimal]:
    """Yield the numbers of cells: as such, inside texts, inside nested values; dates are none."""
    for value in values:
        if isinstance(value, str):
            yield from all_numbers(value)
        elif isinstance(value, Mapping):
            yield from _numbers_of(value.values())
        elif isinstance(value, list | tuple):
            yield from _numbers_of(value)
        elif isinstance(value, dt.timedelta):
            yield Decimal(str(value.total_seconds()))
        elif not is_null(value):
            number = as_number(value)
            if number is not None:
                yield number
