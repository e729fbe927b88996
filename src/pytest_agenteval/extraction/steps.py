"""``extract``: an answer into the agent's table, step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_agenteval.errors import DatabaseError, ExtractionFailed, QueryLimitReached
from pytest_agenteval.extraction.executed_queries import (
    Query,
    UnnamedQuery,
    executed_queries,
    unnamed_queries,
    written_statement,
)
from pytest_agenteval.extraction.model_extraction import ExtractionLimits, by_json, by_query
from pytest_agenteval.support.column_names import covers
from pytest_agenteval.support.statement_names import parsed_select
from pytest_agenteval.table import Table
from pytest_agenteval.types import DEFAULT_SQL_TOOLS, Answer, ChatModel, Extraction

NOTHING = Extraction(None, "none")
"""The agent gave no data: ``no data returned``."""


def extract(
    answer: Answer,
    *,
    mode: str = "auto",
    expected_columns: Sequence[str] | None = None,
    question: str = "",
    sql_tools: Sequence[str] = DEFAULT_SQL_TOOLS,
    model: ChatModel | None = None,
    limits: ExtractionLimits | None = None,
    aliases: Mapping[str, Sequence[str]] | None = None,
    rerun: Callable[[str], Table] | None = None,
    fits: Callable[[Table], bool] | None = None,
) -> Extraction:
    """Return the agent's table and where it came from; ``table`` is ``None`` when there is no data.

    Args:
        answer: a normalised answer (``data`` is a ``Table`` or ``None``).
        mode: ``auto`` (given, matched, rerun, query), or one of ``given``, ``matched``, ``rerun``,
            ``query``, ``json``.
        expected_columns: names of the reference's columns; never values.
        question: what was asked, for the model.
        sql_tools: tools whose calls are queries; ``*`` stands for anything.
        model: writes the query or the JSON; ``None``: there is none.
        limits: of the written query and of the model calls.
        aliases: expected name -> accepted names (``comparison.column_aliases``).
        rerun: gives the table of a reading statement on the case's database, or raises
            ``DatabaseError``; ``None``: nothing may be run again.
        fits: whether a table passes the comparison; a first guess that does not leaves the word to the
            model's query.

    Raises ``ExtractionFailed`` when the table cannot be decided, and what ``model`` raises.
    """
    steps = _Steps(
        answer,
        tuple(expected_columns or ()),
        question,
        sql_tools,
        model,
        limits or ExtractionLimits(),
        aliases,
        rerun,
        fits,
    )
    if mode == "auto":
        return steps.auto()
    return {
        "given": steps.given_only,
        "matched": steps.matched_only,
        "rerun": steps.rerun_only,
        "query": steps.query_only,
        "json": steps.json_only,
    }[mode]()


@dataclass(slots=True)
class _Steps:
    answer: Answer
    expected: tuple[str, ...]
    question: str
    sql_tools: Sequence[str]
    model: ChatModel | None
    limits: ExtractionLimits
    aliases: Mapping[str, Sequence[str]] | None
    rerun: Callable[[str], Table] | None
    fits: Callable[[Table], bool] | None
    executed: tuple[Query, ...] = ()
    queries: list[Query] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.executed = executed_queries(self.answer, self.sql_tools)
        self.queries = [query for query in self.executed if query.table is not None]

    def auto(self) -> Extraction:
        """Try given, matched, re-run, a model's query; return the first table."""
        if (given := self._given()) is not None:
            return given
        covering = self._covering()
        if covering:
            return self._unless_unfit(
                Extraction(covering[-1].table, "matched", covering[-1].sql), len(covering) > 1
            )
        again = self._rerun()
        if again is not None and again.table is not None:
            return again
        if len(self.queries) == 1:
            only = self.queries[0]
            return self._unless_unfit(Extraction(only.table, "only query", only.sql), True)
        if self.queries:
            if self.model is not None:
                return self._by_query(self.model)
            raise ExtractionFailed(self._undecided())
        return self._value() or self._nothing(again)

    def given_only(self) -> Extraction:
        """Return the table handed over, or the one value."""
        return self._given() or self._value() or NOTHING

    def matched_only(self) -> Extraction:
        """Return the last query that covers the names, else the only one."""
        covering = self._covering() or (self.queries if len(self.queries) == 1 else [])
        if covering:
            source = "matched" if self._covering() else "only query"
            return Extraction(covering[-1].table, source, covering[-1].sql)
        if not self.queries:
            return self._nothing(None)
        raise ExtractionFailed(self._undecided())

    def rerun_only(self) -> Extraction:
        """Return the last statement of the agent that only reads, run here."""
        if self.rerun is None:
            raise ExtractionFailed(
                "extraction 'rerun' needs a database to run the agent's statement on; set "
                "agenteval_databases (name = url) and leave agenteval_rerun on"
            )
        return self._rerun(always=True) or self._nothing(None)

    def query_only(self) -> Extraction:
        """Return one query that a model writes over the fetched rows."""
        return self._by_query(self._needed("query"))

    def json_only(self) -> Extraction:
        """Return the final rows as JSON, by a model."""
        return by_json(self.answer, self._needed("json"), self.question, self.expected, self.limits)

    def _given(self) -> Extraction | None:
        return Extraction(self.answer.data, "given") if isinstance(self.answer.data, Table) else None

    def _value(self) -> Extraction | None:
        """Return the one value that an agent gave instead of a table, where one column is asked for."""
        if self.answer.value is None or len(self.expected) != 1:
            return None
        return Extraction(Table.from_rows(self.expected, [[self.answer.value]], [None]), "given")

    def _covering(self) -> list[Query]:
        """Return the queries whose columns cover the expected ones by name (any, where none are expected)."""
        tables = [(query, query.table) for query in self.queries if query.table is not None]
        return [query for query, table in tables if covers(table.names, self.expected, self.aliases)]

    def _unless_unfit(self, found: Extraction, doubtful: bool) -> Extraction:
        """Return a first guess; where it fails the comparison and a model may say more, that one's table."""
        table, model, fits = found.table, self.model, self.fits
        if not doubtful or model is None or fits is None or table is None or fits(table):
            return found
        said = self._by_query(model)
        # null: the rows do not hold the answer; then the agent's own table shows what is wrong
        return said if said.table is not None else replace(found, usage=said.usage, cost=said.cost)

    def _by_query(self, model: ChatModel) -> Extraction:
        return by_query(self.queries, model, self.question, self.expected, self.limits, self.answer.text)

    def _rerun(self, always: bool = False) -> Extraction | None:
        """Return the last statement, run where its own table cannot be read;
        ``None``: there is nothing to run.
        """
        sql = self._last_statement(always)
        if sql is None or self.rerun is None:
            return None
        try:
            return Extraction(self.rerun(sql), "re-run", sql)
        except QueryLimitReached as error:
            raise ExtractionFailed(f"the agent's statement was run again: {error}") from error
        except DatabaseError as error:
            return replace(NOTHING, note=f"the agent's statement was run again and failed: {error}")

    def _last_statement(self, always: bool) -> str | None:
        reading = [
            query for query in self.executed if query.sql is not None and parsed_select(query.sql) is not None
        ]
        if reading:
            last = reading[-1]
            return last.sql if always or last.table is None else None
        if self.executed or self.answer.tool_calls:
            return None
        written = written_statement(self.answer.text)
        return written if written is not None and parsed_select(written) is not None else None

    def _nothing(self, again: Extraction | None) -> Extraction:
        """Return no table: what ran and could not be read is an error, never a wrong answer."""
        faults = [query for query in self.executed if query.fault is not None]
        if faults and (again is None or again.table is None):
            last = faults[-1]
            raise ExtractionFailed(
                f"the result of {last.tool} ({last.id}) cannot be read as a table: {last.fault}"
            )
        if again is not None:
            return again
        unnamed = unnamed_queries(self.answer, self.sql_tools)
        if unnamed and not self.executed:
            raise ExtractionFailed(_unnamed_text(unnamed, self.sql_tools))
        return NOTHING

    def _needed(self, mode: str) -> ChatModel:
        if self.model is None:
            raise ExtractionFailed(
                f"extraction {mode!r} needs a model; set --agent-extract-model provider:model, "
                "or --agent-extract auto"
            )
        return self.model

    def _undecided(self) -> str:
        tables = [(query.id, query.table) for query in self.queries[-5:]]
        shown = "; ".join(
            f"{name} ({', '.join(table.names[:8])})" for name, table in tables if table is not None
        )
        return (
            f"{len(self.queries)} queries returned a table and none has the columns "
            f"{', '.join(self.expected)}: {shown}. Name the columns in the prompt or in "
            "comparison.column_aliases, let the agent hand its table over, or set "
            "--agent-extract-model provider:model, which then writes one query over them"
        )


def _unnamed_text(unnamed: Sequence[UnnamedQuery], sql_tools: Sequence[str]) -> str:
    tool, rows = unnamed[-1].tool, unnamed[-1].rows
    gave = (
        f"it seemed to return {rows:,} row{'s' * (rows != 1)}" if rows else "its result has no rows to read"
    )
    return (
        f"no table, but the tool {tool!r} may have run a query ({gave}) and is not among those that do "
        f"({', '.join(sql_tools)}); set agenteval_sql_tools = {tool} (several: one a line, * stands for "
        "anything, as in mcp__*__query)"
    )
