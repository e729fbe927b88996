"""Steps 3 and 4: a model writes one query over the fetched rows, or the final rows as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_agenteval.errors import AgentFailed, BudgetSpent, DatabaseError, ExtractionFailed
from pytest_agenteval.extraction.executed_queries import Query
from pytest_agenteval.extraction.sandbox import Sandbox
from pytest_agenteval.support import clock
from pytest_agenteval.support.json_codec import loads_exact
from pytest_agenteval.table import Table
from pytest_agenteval.types import (
    DEFAULT_SQL_MAX_ROWS,
    DEFAULT_SQL_TIMEOUT,
    Answer,
    ChatModel,
    Extraction,
    Usage,
)

_SAMPLE_ROWS = 3
_SAMPLE_CELL = 200

_QUERY_SCHEMA = {
    "type": "object",
    "properties": {"sql": {"type": ["string", "null"]}},
    "required": ["sql"],
    "additionalProperties": False,
}

_QUERY_RULES = """\
A data agent answered a question. The tables below hold every row it fetched. Write ONE DuckDB SELECT over \
these tables that gives the agent's final answer as a table.
- Read only these tables, by their quoted names. No files, no other tables, no functions that read any.
- Every value must come from the tables. Never type a value of the answer into the query.
- Give the columns exactly the names asked for, in that order.
- The answer's text says which rows the agent means; do not correct the agent, do not compute what it did not.
Reply with JSON: {"sql": "SELECT ..."}, or {"sql": null} when the tables do not hold the answer."""

_JSON_RULES = """\
Based on your analysis above, give the final answer to the question as data. Return an array of rows, each \
an object keyed by column name, every row of the answer and nothing else. Numbers as numbers, dates as \
YYYY-MM-DD, an unknown value as null. Reply with JSON: {"rows": [...]}, or {"rows": null} when the question \
could not be answered."""


@dataclass(frozen=True, slots=True)
class ExtractionLimits:
    """Seconds and rows of the written query; ``deadline`` (``time.monotonic()``) of the model calls."""

    timeout: float = DEFAULT_SQL_TIMEOUT
    max_rows: int = DEFAULT_SQL_MAX_ROWS
    deadline: float | None = None
    max_tokens: int = 4096


class _Refused(Exception):
    """What the model wrote cannot be used; the text goes back to it once."""


def by_query(
    queries: Sequence[Query],
    model: ChatModel,
    question: str,
    expected: Sequence[str],
    limits: ExtractionLimits,
    text: str = "",
) -> Extraction:
    """Return a table by one query that ``model`` writes; no table when nothing was fetched or it says so.

    Raises ``ExtractionFailed`` when the query is refused or fails twice, or the model cannot be asked.
    """
    if not queries:
        return Extraction(None, "none")
    with Sandbox(queries) as sandbox:

        def use(said: Any) -> tuple[Table | None, str | None]:
            if not isinstance(said, Mapping) or "sql" not in said:
                raise _Refused('expected {"sql": "SELECT ..."} or {"sql": null}')
            sql = said["sql"]
            if sql is None:
                return None, None
            if not isinstance(sql, str):
                raise _Refused('"sql" must be a text or null')
            try:
                return sandbox.query(sql, _seconds_left(limits), limits.max_rows, expected), sql
            except DatabaseError as error:
                raise _Refused(str(error)) from error

        asked = _describe(queries, sandbox, question, expected, text)
        messages = [
            {"role": "system", "content": _QUERY_RULES},
            {"role": "user", "content": json.dumps(asked, ensure_ascii=False, default=str)},
        ]
        return _ask(model, messages, _QUERY_SCHEMA, limits, use, "query")


def by_json(
    answer: Answer, model: ChatModel, question: str, expected: Sequence[str], limits: ExtractionLimits
) -> Extraction:
    """Return the rows that ``model`` retypes from the conversation; ``null`` stands for no data.

    Raises ``ExtractionFailed`` when it does not answer in this form twice, or cannot be asked.
    """

    def use(said: Any) -> tuple[Table | None, str | None]:
        rows = said["rows"] if isinstance(said, Mapping) and "rows" in said else said
        if rows is None:
            return None, None
        if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
            raise _Refused('expected {"rows": [{...}, ...]} or {"rows": null}')
        if len(rows) > limits.max_rows:
            raise _Refused(f"more than {limits.max_rows:,} rows")
        table = Table.from_records(rows)
        return (table if rows else Table.from_rows(list(expected), [])), None

    columns = f"\nThe columns: {json.dumps(list(expected), ensure_ascii=False)}" if expected else ""
    messages = [*_conversation(answer, question), {"role": "user", "content": _JSON_RULES + columns}]
    return _ask(model, messages, _json_schema(expected), limits, use, "json")


def _ask(
    model: ChatModel,
    messages: list[dict[str, Any]],
    schema: Mapping[str, Any],
    limits: ExtractionLimits,
    use: Callable[[Any], tuple[Table | None, str | None]],
    source: str,
) -> Extraction:
    """Ask, use the reply; when it cannot be used, say why and ask once more."""
    usage: Usage | None = None
    cost: float | None = None
    problems: list[str] = []
    while True:
        try:
            done = model.complete(
                messages, schema=schema, max_tokens=limits.max_tokens, deadline=limits.deadline
            )
        except BudgetSpent:
            raise  # the attempt is not_run, not broken
        except AgentFailed as error:
            raise ExtractionFailed(
                f"the extraction model {model.name}: {error}", usage=usage, cost=cost
            ) from error
        usage, cost = _plus(usage, done.usage), _plus(cost, done.cost)
        try:
            table, query = use(_json(done.text))
            return Extraction(table, source if table is not None else "none", query, usage, cost)
        except _Refused as error:
            problems.append(str(error))
        if len(problems) == 2:
            raise ExtractionFailed(
                f"the extraction by {source} of model {model.name} failed twice: {problems[0]}; "
                f"then: {problems[1]}",
                usage=usage,
                cost=cost,
            )
        messages = [
            *messages,
            {"role": "assistant", "content": done.text or "(nothing)"},
            {"role": "user", "content": f"That cannot be used: {problems[0]}\nReply again, corrected."},
        ]


def _describe(
    queries: Sequence[Query], sandbox: Sandbox, question: str, expected: Sequence[str], text: str
) -> dict[str, Any]:
    """Return what the model is shown: names, types and a few of the agent's own rows; no expected values."""
    tables = []
    for query in queries:
        assert query.table is not None
        tables.append(
            {
                "name": query.id,
                "columns": [{"name": name, "type": kind} for name, kind in sandbox.types(query.id)],
                "row_count": query.table.row_count,
                "first_rows": [[_shown(v) for v in row] for row in query.table.rows(_SAMPLE_ROWS)],
                "made_by": query.sql or query.tool,
            }
        )
    return {"question": question, "columns": list(expected), "answer": text, "tables": tables}


def _shown(value: Any) -> Any:
    if value is None or isinstance(value, int | float | bool):
        return value
    return str(value)[:_SAMPLE_CELL]


def _conversation(answer: Answer, question: str) -> list[dict[str, Any]]:
    """Return the question, every tool call with its whole result, the answer."""
    calls = [
        {"tool": call.name, "args": call.args, "result": call.result, "error": call.error}
        for call in answer.tool_calls
    ]
    said = answer.text or "(no text)"
    if calls:
        said = f"{json.dumps(calls, ensure_ascii=False, default=str)}\n\n{said}"
    return [{"role": "user", "content": question}, {"role": "assistant", "content": said}]


def _json_schema(expected: Sequence[str]) -> dict[str, Any]:
    cell = {"type": ["string", "number", "boolean", "null"]}
    row: dict[str, Any] = {"type": "object"}
    if expected:
        names = list(dict.fromkeys(expected))
        row |= {"properties": dict.fromkeys(names, cell), "required": names, "additionalProperties": False}
    return {
        "type": "object",
        "properties": {"rows": {"anyOf": [{"type": "array", "items": row}, {"type": "null"}]}},
        "required": ["rows"],
        "additionalProperties": False,
    }


def _json(text: str) -> Any:
    from pytest_agenteval.llm.client import json_part

    try:
        return loads_exact(json_part(text))
    except ValueError as error:
        raise _Refused(f"not JSON: {error}") from error


def _seconds_left(limits: ExtractionLimits) -> float:
    if limits.deadline is None:
        return limits.timeout
    return max(0.1, min(limits.timeout, limits.deadline - clock.monotonic()))


def _plus(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b
