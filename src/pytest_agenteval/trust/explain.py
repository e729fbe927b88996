"""``Explainer``: what is found out about the attempts of a run: luck, causes, differences in the SQL."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_agenteval.compare import ComparisonOptions, compare
from pytest_agenteval.compare.jsonable import json_value
from pytest_agenteval.databases import Database
from pytest_agenteval.errors import DatabaseError, SettingsError
from pytest_agenteval.table import Table
from pytest_agenteval.trust.cause import Cause, explaining_mutants, one_cause
from pytest_agenteval.trust.difference import (
    MOST_LINES,
    SqlDifference,
    luck_lines,
    proved_lines,
    sql_difference,
)
from pytest_agenteval.trust.errors import NotCheckedError
from pytest_agenteval.trust.known import KnownData
from pytest_agenteval.trust.search import TRIALS, Limits, Luck, PairSearch
from pytest_agenteval.trust.translated import translated_pair
from pytest_agenteval.types import Findings

_LOG = logging.getLogger(__name__)

LARGEST_FILE = 1024**3
"""Bytes of a database file up to which luck is looked for without being asked."""

SHARE = 0.1
"""Part of a run's time that luck may take without being asked."""

FEW_TRIALS = 20
"""Sets of rows for statements that differ in their spelling only, as far as they can be taken apart."""

FIRST_SECONDS = 1.5
"""Seconds that luck may take in any run, however short."""


@dataclass(frozen=True, slots=True)
class Question:
    """An attempt that was judged: what is needed to say why.

    Attributes:
        reference: the reference SQL.
        statements: what the agent executed, with the table of each where it is known.
        answer: the agent's table.
        passed: whether it equals the reference's.
        database: where both run.
        options: how the case compares tables.
    """

    reference: str
    statements: Sequence[tuple[str, Table | None]]
    answer: Table
    passed: bool
    database: Database
    options: ComparisonOptions


class Explainer:
    """Explains attempts; what it learns of a database and of a pair of statements it keeps.

    Args:
        luck: ``off``, ``warn`` or ``fail``.
        asked: whether luck was asked for; else it keeps to files of 1 GB and a tenth of the run's time.
        causes: whether mistakes are tried on the data also where the agent's SQL is not known.
        constraints: the rules of ``agenteval_constraints``.
        references: gives the reference statements of a database's cases.
    """

    def __init__(
        self,
        *,
        luck: str,
        asked: bool,
        causes: bool,
        constraints: str = "",
        references: Callable[[str], Sequence[str]] = lambda name: (),
    ) -> None:
        self._luck, self._asked, self._causes = luck, asked, causes
        self._constraints, self._references = constraints, references
        self._guard = threading.RLock()
        self._known: dict[int, tuple[Database, KnownData]] = {}
        self._found: dict[tuple[Any, ...], tuple[Luck, tuple[SqlDifference, ...]]] = {}
        self._began, self._spent = time.monotonic(), 0.0

    def explain(self, question: Question) -> Findings:
        """Return what is found out about an attempt; what cannot be said is left out or says why."""
        try:
            return self._passed(question) if question.passed else self._failed(question)
        except (NotCheckedError, DatabaseError, SettingsError) as error:
            why = str(error)
        except Exception as error:  # a defect of ours in here is no reason to lose a verdict
            why = f"internal error: {type(error).__name__}: {error}"
            _LOG.warning("%s, about the reference %s", why, question.reference, exc_info=True)
        return Findings(luck=_luck_json(Luck(False, why_not=why))) if question.passed else Findings()

    def known(self, database: Database) -> KnownData:
        """Return what is known of a database, read when first asked."""
        with self._guard:
            kept = self._known.get(id(database))
            if kept is None:
                data = KnownData(database, self._constraints, self._references(database.name))
                kept = self._known[id(database)] = (database, data)
            return kept[1]

    # -- failed -----------------------------------------------------------------------------

    def _failed(self, question: Question) -> Findings:
        sql = _own_statement(question)
        if sql is None and not self._causes:
            return Findings()
        known = self.known(question.database)
        lines: tuple[SqlDifference, ...] = ()
        if sql is not None:
            lines = sql_difference(
                question.reference, sql, known.dialect, catalog=known.catalog, options=question.options
            )
        explaining = explaining_mutants(
            question.reference, question.answer, known.catalog, known.run_briefly, question.options
        )
        lines = proved_lines(lines, explaining)
        cause = one_cause(question.answer, explaining)
        if cause is not None and not (self._causes or any(line.verified for line in lines)):
            cause = None
        return Findings(None, _cause_json(cause), [_line_json(line) for line in lines[:MOST_LINES]])

    # -- passed -----------------------------------------------------------------------------

    def _passed(self, question: Question) -> Findings:
        if self._luck == "off" or not question.statements:
            return Findings()
        if not self._asked and not _is_small_file(question.database):
            return Findings()
        sql = _own_statement(question)
        if sql is None:
            return Findings(luck=_luck_json(Luck(False, why_not="no statement gives the answer's table")))
        luck, lines = self._lucky(question, sql)
        found = [_line_json(line) for line in lines[:MOST_LINES]] if luck.found else []
        return Findings(_luck_json(luck), None, found)

    def _lucky(self, question: Question, sql: str) -> tuple[Luck, tuple[SqlDifference, ...]]:
        """Return what trials say of a statement, once for each pair and schema."""
        data = question.database.fingerprint() or f"{id(question.database)}"
        key = (question.reference, sql, data, repr(question.options))
        with self._guard:  # one pair at a time: a second thread that asks the same finds it
            if key not in self._found:
                if not self._asked and self._spent > FIRST_SECONDS + SHARE * (time.monotonic() - self._began):
                    told = "luck has had its tenth of the run's time; --agent-luck=warn takes what it needs"
                    return Luck(False, why_not=told), ()
                started = time.monotonic()
                try:
                    self._found[key] = self._tried(question, sql)
                finally:
                    self._spent += time.monotonic() - started
            return self._found[key]

    def _tried(self, question: Question, sql: str) -> tuple[Luck, tuple[SqlDifference, ...]]:
        reference, known = question.reference, self.known(question.database)
        if known.dialect not in ("duckdb", "sqlite"):
            reference, sql, known = translated_pair(reference, sql, known, question.options)
        lines = sql_difference(reference, sql, known.dialect, catalog=known.catalog, options=question.options)
        search = PairSearch(reference, sql, known, question.options)
        try:
            luck = search.find(Limits(trials=TRIALS if lines else FEW_TRIALS))
            return luck, luck_lines(lines, luck, search, reference) if luck else ()
        finally:
            search.close()


def _own_statement(question: Question) -> str | None:
    """Return the last statement that gives the agent's table (``None``: what it answered is no query's)."""
    for sql, table in reversed(question.statements):
        if table is None:
            try:
                table = question.database.query(sql)
            except DatabaseError:
                continue
        if _same(table, question.answer):
            return sql
    return None


def _same(table: Table, answer: Table) -> bool:
    return table is answer or (
        table.row_count == answer.row_count
        and compare(table, answer).matched
        and compare(answer, table).matched
    )


def _is_small_file(database: Database) -> bool:
    """Whether a database is one that luck is looked for in without being asked."""
    if database.dialect not in ("duckdb", "sqlite"):
        return False
    return database.file_size is None or database.file_size <= LARGEST_FILE


def _cause_json(cause: Cause | None) -> dict[str, Any] | None:
    if cause is None:
        return None
    return {
        "proved": cause.proved,
        "kind": cause.kind,
        "table": cause.table,
        "column": cause.column,
        "text": cause.sentence,
    }


def _line_json(line: SqlDifference) -> dict[str, Any]:
    return {name: getattr(line, name) for name in ("kind", "table", "column", "text", "verified")}


def _luck_json(luck: Luck) -> dict[str, Any]:
    tables = {name: _records(table, luck.telling.get(name)) for name, table in luck.tables.items()}
    return {
        "checked": luck.checked,
        "found": luck.found,
        "assumption": luck.assumption,
        "kind": luck.kind or None,
        "tables": tables,
        "reference": None if luck.reference is None else _records(luck.reference),
        "answer": None if luck.answer is None else _records(luck.answer),
        "trials": luck.trials,
        "why_not": luck.why_not,
    }


def _records(table: Table, wanted: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return rows as JSON, of all columns or of the ``wanted`` ones."""
    kept: Mapping[str, None] = dict.fromkeys(wanted if wanted is not None else table.names)
    return [
        {name: json_value(value) for name, value in record.items() if name in kept}
        for record in table.records()
    ]
