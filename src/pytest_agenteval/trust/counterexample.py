"""``find_counterexample``: rows on which two statements differ, of a database given in any form."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_agenteval.compare import ComparisonOptions
from pytest_agenteval.databases import Database, Databases
from pytest_agenteval.trust.errors import NotCheckedError
from pytest_agenteval.trust.known import KnownData
from pytest_agenteval.trust.search import SECONDS, TRIALS, Limits, Luck, PairSearch


def find_counterexample(
    reference: str,
    other: str,
    database: Any,
    *,
    trials: int = TRIALS,
    seconds: float = SECONDS,
    seed: int = 0,
    options: ComparisonOptions | None = None,
    constraints: str = "",
    references: Sequence[str] = (),
) -> Luck:
    """Return whether a handful of made-up rows tell ``other`` from ``reference``, and those rows.

    Args:
        reference: the SELECT that is right.
        other: the SELECT that is asked about.
        database: the database both were written for: a path or URL of a DuckDB or SQLite file, a DuckDB
            connection, a ``Database`` of a run, or ``KnownData`` to ask several pairs of one database.
            It is only read.
        trials: sets of rows to try.
        seconds: the most that trials and shrinking may take.
        seed: of the random choices; the same seed finds the same rows.
        options: how the case compares tables.
        constraints: rules that cannot be mined (``orders(id) key; orders.customer_id -> customers.id``).
        references: other statements that are known to be right; what they join refers to each other.

    Returns ``Luck``; ``checked`` is False, with the reason, for what cannot be tried: SQL of no known table,
    volatile functions, table functions, statements that fail on made-up rows. Raises ``DatabaseError`` for a
    database that cannot be opened and ``SettingsError`` for a constraint that cannot be read.
    """
    if isinstance(database, KnownData):
        return search_pair(reference, other, database, Limits(trials, seconds, seed), options)
    if isinstance(database, Database):
        known = KnownData(database, constraints, references)
        return search_pair(reference, other, known, Limits(trials, seconds, seed), options)
    with tempfile.TemporaryDirectory(prefix="agenteval-trust-") as folder:
        given = as_source(database)
        with Databases({"data": given}, folder=Path(folder), root=Path.cwd(), cached=False) as databases:
            known = KnownData(databases.get("data"), constraints, references)
            return search_pair(reference, other, known, Limits(trials, seconds, seed), options)


def search_pair(
    reference: str, other: str, known: KnownData, limits: Limits, options: ComparisonOptions | None = None
) -> Luck:
    """Return what trials find out about one pair; never raises for what its SQL is."""
    try:
        search = PairSearch(reference, other, known, options)
    except NotCheckedError as error:
        return Luck(False, why_not=str(error))
    try:
        return search.find(limits)
    except NotCheckedError as error:
        return Luck(False, why_not=str(error))
    finally:
        search.close()


def as_source(database: Any) -> Any:
    """Return a URL for the path of a file; URLs and connections as they are."""
    text = str(database) if isinstance(database, str | Path) else ""
    if not text or "://" in text or text == ":memory:":
        return database
    kind = "sqlite" if Path(text).suffix in (".db", ".sqlite", ".sqlite3") else "duckdb"
    return f"{kind}:///{Path(text).resolve()}"
