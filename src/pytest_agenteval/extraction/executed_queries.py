"""What an agent really executed: its tool calls that are queries, with the tables they gave."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_agenteval.support.result_shapes import ResultShape, read_result
from pytest_agenteval.support.statement_names import column_names_of
from pytest_agenteval.table import Table
from pytest_agenteval.types import DEFAULT_SQL_TOOLS, Answer, Statement, ToolCall, UnreadCall

METRIC_TOOLS = ("query_metrics",)
"""Tools whose result is a table that no statement stands behind."""

_STATEMENT_KEYS = ("sql_query", "sql")
_TOOL_STATEMENT_KEYS = (*_STATEMENT_KEYS, "query", "statement")
_LOOKED_AT = 10_000
"""Characters of a text that decide whether it is SQL."""

_SQL = re.compile(
    r"""(?: \s | \( | ```(?:sql)? | --[^\n]*\n | (?>/\*.*?\*/) )*+
    (?: select\b.*\bfrom\b | select\s+(?:[*'] | [\w.]+\s*\( | \d[\d.]*\s*(?:$|[;,*/+-]|as\b))
      | with\s+(?:recursive\s+)?["\w]+\s*(?:\([^)]*\)\s*)?as\s+(?:(?:not\s+)?materialized\s*)?\(
      | (?:insert(?:\s+or\s+\w+)?|replace|merge)\s+(?:into|overwrite)\b | attach\s+(?:database\s+)?'
      | pragma\s+\w+\s*[=(;] | call\s+[\w.]+\s*\( | update\b.*\bset\b | delete\s+from\b
      | (?:drop|alter|create|truncate)\s+(?:or\s+replace\s+|temp(?:orary)?\s+|unique\s+|materialized\s+)*
        (?:table|view|schema|database|index|sequence|function|role|user)\b
      | truncate\s+[\w."]+\s*;?\s*$ | (?:grant|revoke)\b(?>.*?\bon\b).*\b(?:to|from)\b
      | copy\b.*\b(?:from|to)\s+(?:'|stdin|stdout|program)
    )""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
"""What begins as a statement does; the second word keeps plain English (`Update me on ...`) out."""

_QUERYING = re.compile(r"(?:^|[^a-z])(?:sql|quer(?:y|ies)|warehouse|database|db)(?:$|[^a-z])", re.IGNORECASE)
"""A tool's name by which it may run queries: ``run_sql``, ``query``, ``mcp__warehouse__query``."""


@dataclass(frozen=True, slots=True)
class Query:
    """One executed query: its id, the statement (``None``: a metric) and the table it gave, if any.

    ``fault``: it gave rows that cannot be read as a table, and why.
    """

    id: str
    tool: str
    sql: str | None
    table: Table | None
    turn: int = 0
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class UnnamedQuery:
    """A call that may have been a query, of a tool that is not named as one; ``rows`` it seemed to give."""

    tool: str
    rows: int


def is_sql_tool(name: str, sql_tools: Sequence[str]) -> bool:
    """Return whether a tool is one of those that run SQL; ``*`` in ``sql_tools`` stands for anything."""
    return any(
        fnmatch.fnmatchcase(name, pattern) if "*" in pattern else name == pattern for pattern in sql_tools
    )


def executed_queries(answer: Answer, sql_tools: Sequence[str] = DEFAULT_SQL_TOOLS) -> tuple[Query, ...]:
    """Return the queries among the tool calls of ``answer`` whose status is ok, in order.

    A call is a query when its tool is one of ``sql_tools``, or when its arguments hold ``sql_query`` or
    ``sql`` as text. A ``query_metrics`` call counts too: it has a table, but no statement. Ids are
    unique: the result's own, else the call's, else ``query_1``.
    """
    found: list[Query] = []
    taken: set[str] = set()
    for call in answer.tool_calls:
        metric = call.name in METRIC_TOOLS
        known = is_sql_tool(call.name, sql_tools)
        sql = None if metric else statement_of(call, sql_tools)
        if call.status != "ok" or (sql is None and not metric and not known):
            continue
        shape = read_result(call.result)
        if shape.error is not None:
            continue
        name = _unique(_own_id(_parsed(call.result)) or call.id or f"query_{len(found) + 1}", taken)
        table, fault = _table_of(shape, sql)
        found.append(Query(name, call.name, sql, table, call.turn, fault))
    return tuple(found)


def _table_of(shape: ResultShape, sql: str | None) -> tuple[Table | None, str | None]:
    """Return the table of a shape, and why it is none; rows without names have those of the statement."""
    if shape.rows is None:
        return shape.table, shape.fault
    names = column_names_of(sql) if sql is not None else None
    rows = shape.rows[1:] if names is not None and shape.rows[0] == names else shape.rows
    width = len(shape.rows[0])
    if names is None or len(names) != width:
        # a bare value beside a statement of several columns tells how the query went, not what it gave
        return None, None if width == 1 else f"its rows have {width} values and no column names"
    return Table.from_rows(names, rows), None


def statements(queries: Iterable[Query]) -> tuple[Statement, ...]:
    """Return the statements among ``queries``, for evidence."""
    return tuple(Statement(query.sql, query.table, query.turn) for query in queries if query.sql is not None)


def unread_calls(answer: Answer, sql_tools: Sequence[str]) -> tuple[UnreadCall, ...]:
    """Return calls that are not queries, worked, and were given a text that is SQL."""
    return tuple(
        UnreadCall(call.name, sql, call.turn)
        for call in answer.tool_calls
        if _is_unnamed(call, sql_tools) and (sql := _written(_parsed(call.args))) is not None
    )


def unnamed_queries(answer: Answer, sql_tools: Sequence[str]) -> tuple[UnnamedQuery, ...]:
    """Return calls that may have been queries though their tool is not named:
    by their SQL, or name and rows.
    """
    found = []
    for call in answer.tool_calls:
        if not _is_unnamed(call, sql_tools):
            continue
        shape = read_result(call.result)
        rows = len(shape.rows or ()) if shape.table is None else shape.table.row_count
        written = _written(_parsed(call.args)) is not None
        if shape.error is None and (written or (rows and _QUERYING.search(call.name))):
            found.append(UnnamedQuery(call.name, rows))
    return tuple(found)


def _is_unnamed(call: ToolCall, sql_tools: Sequence[str]) -> bool:
    named = is_sql_tool(call.name, sql_tools) or call.name in METRIC_TOOLS
    return call.status == "ok" and not named and statement_of(call, sql_tools) is None


def written_statement(text: str) -> str | None:
    """Return the statement that a text is as a whole (a code fence around it left out);
    ``None``: it is none.
    """
    found = re.fullmatch(r"\s*```\w*\n(.*?)\n?```\s*", text, re.DOTALL)
    inside = (found[1] if found else text).strip()
    return inside if inside and _SQL.match(inside[:_LOOKED_AT]) else None


def _written(value: Any) -> str | None:
    """Return the first text in the arguments of a call that is SQL."""
    if isinstance(value, str):
        return value.strip() if _SQL.match(value[:_LOOKED_AT]) else None
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return next((found for entry in inner if (found := _written(entry)) is not None), None)


def statement_of(call: ToolCall, sql_tools: Sequence[str]) -> str | None:
    """Return the SQL a call carries (``None``: it is not a query, or its statement is not text)."""
    known = is_sql_tool(call.name, sql_tools)
    args = _parsed(call.args)
    if isinstance(args, Mapping):
        keys = _TOOL_STATEMENT_KEYS if known else _STATEMENT_KEYS
        return next((args[key] for key in keys if isinstance(args.get(key), str) and args[key].strip()), None)
    # broken JSON (seen) or bare SQL: what a SQL tool was given is looked at as it is
    return args if known and isinstance(args, str) and args.strip() else None


def result_table(result: Any, sql: str | None = None) -> Table | None:
    """Return the table in a tool's result, whatever its shape (``result_shapes``);
    ``None``: there is none.
    """
    return _table_of(read_result(result), sql)[0]


def _parsed(value: Any) -> Any:
    """Return JSON in a text as what it says; other values, and texts that are not JSON, as they are."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _own_id(result: Any) -> str | None:
    name = result.get("id") if isinstance(result, Mapping) else None
    return name if isinstance(name, str) and name else None


def _unique(name: str, taken: set[str]) -> str:
    found, number = name, 2
    while found.lower() in taken:
        found, number = f"{name}_{number}", number + 1
    taken.add(found.lower())
    return found
