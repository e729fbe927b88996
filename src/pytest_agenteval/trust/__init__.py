"""Trust: what a wrong answer's SQL did, and whether a right answer is right on other data too.

::

    from pytest_agenteval.trust import find_counterexample
    luck = find_counterexample(reference, other, "shop.duckdb")
    if luck:
        print(luck.tables, luck.reference, luck.answer)

A counterexample is a handful of made-up rows that obey the rules of the data (keys, NOT NULL, foreign
keys, orders of dates, signs of numbers) and on which two statements differ. None found does not prove that
they are equal. sqlglot takes the statements apart, DuckDB or SQLite in memory runs them; no solver.
"""

from __future__ import annotations

from pytest_agenteval.trust.cause import Cause, prove_cause
from pytest_agenteval.trust.constraints import Constraints, ForeignKey
from pytest_agenteval.trust.counterexample import find_counterexample
from pytest_agenteval.trust.difference import SqlDifference, sql_difference
from pytest_agenteval.trust.errors import NotCheckedError
from pytest_agenteval.trust.known import KnownData
from pytest_agenteval.trust.mutants import Mutant, mutants
from pytest_agenteval.trust.search import Luck

__all__ = [
    "Cause",
    "Constraints",
    "ForeignKey",
    "KnownData",
    "Luck",
    "Mutant",
    "NotCheckedError",
    "SqlDifference",
    "find_counterexample",
    "mutants",
    "prove_cause",
    "sql_difference",
]
