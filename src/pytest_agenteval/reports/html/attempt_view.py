"""One attempt to show: everything its page says, as text and grids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_agenteval.compare.result import MappedColumn
from pytest_agenteval.errors import ResultsError
from pytest_agenteval.extraction.executed_queries import executed_queries, result_table, statement_of
from pytest_agenteval.reports.html.grids import Diff, Grid, diff_of, grid_of, marks_of
from pytest_agenteval.results.document.load import answer_of, table_of
from pytest_agenteval.results.document.rows import Row
from pytest_agenteval.table import Table
from pytest_agenteval.types import DEFAULT_SQL_TOOLS, Answer, ToolCall

SOURCES = {
    "given": "handed over by the agent",
    "matched": "the last query whose columns cover the expected ones",
    "only query": "the only query that returned rows",
    "query": "a query written over the agent's own results",
    "none": "the agent gave no data",
}


@dataclass(frozen=True, slots=True)
class CallView:
    """A tool call: its SQL apart from the other arguments; rows as a grid, any other result as JSON."""

    name: str
    id: str | None
    status: str
    sql: str | None
    args: Any
    grid: Grid | None
    result: Any
    error: str | None
    turn: int


@dataclass(frozen=True, slots=True)
class AttemptView:
    """What the page of an attempt shows; ``number`` is that of the results entry, from 1."""

    number: int
    row: Row
    entry: Mapping[str, Any]
    turns: Sequence[str]
    text: str
    diff: Diff | None
    expected: Grid | None
    actual: Grid | None
    reference_sql: str | None
    agent_sql: str | None
    source: str
    calls: Sequence[CallView]
    conversation: Any
    raw: str
    comparison: Mapping[str, Any]
    compared_now: bool

    @property
    def renamed(self) -> list[str]:
        """``total <- revenue (by value)`` for each column that the answer calls otherwise."""
        columns = [
            MappedColumn(c["expected"], c["actual"], c["how"]) for c in self.comparison.get("mapping") or []
        ]
        return [column.text for column in columns if column.expected != column.actual]

    @property
    def checks(self) -> Sequence[Mapping[str, Any]]:
        """The checks as stored."""
        return self.entry.get("checks") or []

    @property
    def usage(self) -> list[tuple[str, Mapping[str, Any]]]:
        """(part, tokens and cost) of the parts that used any."""
        held = self.entry.get("usage") or {}
        return [(part, held[part]) for part in ("agent", "extraction", "judge") if held.get(part)]


def attempt_view(
    number: int,
    row: Row,
    entry: Mapping[str, Any],
    *,
    rows: int,
    raw: str = "",
    sql_tools: Sequence[str] = DEFAULT_SQL_TOOLS,
) -> AttemptView:
    """Return the view of a results entry; tables are cut at ``rows`` rows. ``entry`` is used up by it.

    ``sql_tools`` are the tools whose calls are queries: ``Document.sql_tools``.
    """
    details = entry.get("details") or {}
    expected, actual = _table(details, "expected_table"), _table(details, "actual_table")
    stored = entry.get("diff")
    diff = stored or _compared(expected, actual, row) or {}
    answer = _answer(entry)
    extraction = entry.get("extraction") or {}
    source = str(extraction.get("source") or ("query" if details.get("verification_sql") else ""))
    return AttemptView(
        number=number,
        row=row,
        entry=entry,
        turns=[str(turn) for turn in entry.get("turns") or [entry.get("prompt")] if turn],
        text=str(details.get("response_text") or ""),
        diff=diff_of(diff),
        expected=grid_of(expected, rows, _total(details, "expected_table"), marks_of(diff, "expected")),
        actual=grid_of(actual, rows, _total(details, "actual_table"), marks_of(diff, "actual")),
        reference_sql=_text(details.get("reference_sql")),
        agent_sql=_agent_sql(answer, extraction.get("query") or details.get("verification_sql"), sql_tools),
        source=source,
        calls=[_call(call, rows, sql_tools) for call in (answer.tool_calls if answer else ())],
        conversation=details.get("conversation"),
        raw=raw,
        comparison=diff,
        compared_now=bool(diff and not stored),
    )


def _compared(expected: Table | None, actual: Table | None, row: Row) -> Mapping[str, Any] | None:
    """Return the difference of stored tables where the file has none:
    other programs say only that there is one.
    """
    if expected is None or actual is None or row.verdict != "failed":
        return None
    from pytest_agenteval.compare import compare

    return compare(expected, actual).to_json()


def agent_sql_of(entry: Mapping[str, Any], sql_tools: Sequence[str] = DEFAULT_SQL_TOOLS) -> str | None:
    """Return the last statement that the agent ran and that worked, None if there is none."""
    extraction = entry.get("extraction") or {}
    return _agent_sql(_answer(entry), extraction.get("query"), sql_tools)


def _answer(entry: Mapping[str, Any]) -> Answer | None:
    try:
        return answer_of(entry)
    except (ResultsError, TypeError, ValueError, KeyError, AttributeError):
        return None  # another program's file, damaged there; the raw JSON still shows it


def _table(details: Mapping[str, Any], name: str) -> Table | None:
    try:
        return table_of(details, name)
    except (TypeError, ValueError, KeyError, AttributeError):
        return None


def _total(details: Mapping[str, Any], name: str) -> int | None:
    held = details.get(name)
    count = held.get("row_count") if isinstance(held, Mapping) else None
    return count if isinstance(count, int) else None


def _text(value: Any) -> str | None:
    if isinstance(value, list):
        return ";\n\n".join(map(str, value)) or None
    return str(value) if value else None


def _agent_sql(answer: Answer | None, extracted: Any, sql_tools: Sequence[str]) -> str | None:
    """Return the statement whose rows were taken; nao's query over stored results stands for its last one."""
    queries = executed_queries(answer, sql_tools) if answer else ()
    ran = [query.sql for query in queries if query.sql]
    if isinstance(extracted, str) and extracted.strip() and (extracted in ran or not ran):
        return extracted
    return ran[-1] if ran else None


def _call(call: ToolCall, rows: int, sql_tools: Sequence[str]) -> CallView:
    sql = statement_of(call, sql_tools)
    args = call.args
    if sql is not None and isinstance(args, Mapping):
        args = {key: value for key, value in args.items() if value != sql}
    elif sql is not None:
        args = None
    table = result_table(call.result)
    result = call.result if table is None else _beside_rows(call.result)
    grid = grid_of(table, rows) if table is not None and table.columns else None
    return CallView(call.name, call.id, call.status, sql, args or None, grid, result, call.error, call.turn)


def _beside_rows(result: Any) -> Any:
    """Return what a result with rows says besides them."""
    if not isinstance(result, Mapping):
        return None
    return {key: value for key, value in result.items() if key not in ("data", "rows", "columns")} or None
