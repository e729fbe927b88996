"""What an agent really executed: its tool calls that are queries, with the tables they gave."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_agenteval.table import Column, Table
from pytest_agenteval.types import DEFAULT_SQL_TOOLS, Answer, Statement, ToolCall, UnreadCall

METRIC_TOOLS = ("query_metrics",)
"""Tools whose result is a table that no statement stands behind."""

_STATEMENT_KEYS = ("sql_query", "sql")
_TOOL_STATEMENT_KEYS = (*_STATEMENT_KEYS, "query", "statement")
_ROW_KEYS = ("data", "rows")
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


@dataclass(frozen=True, slots=True)
class Query:
    """One executed query: its id, the statement (``None``: a metric) and the table it gave, if any."""

    id: str
    tool: str
    sql: str | None
    table: Table | None
    turn: int = 0


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
        sql = None if metric else statement_of(call, sql_tools)
        if call.status != "ok" or (sql is None and not metric and call.name not in sql_tools):
            continue
        result = _parsed(call.result)
        name = _unique(_own_id(result) or call.id or f"query_{len(found) + 1}", taken)
        found.append(Query(name, call.name, sql, result_table(result), call.turn))
    return tuple(found)


def statements(queries: Iterable[Query]) -> tuple[Statement, ...]:
    """Return the statements among ``queries``, for evidence."""
    return tuple(Statement(query.sql, query.table, query.turn) for query in queries if query.sql is not None)


def unread_calls(answer: Answer, sql_tools: Sequence[str]) -> tuple[UnreadCall, ...]:
    """Return calls that are not queries, worked, and were given a text that is SQL."""
    return tuple(
        UnreadCall(call.name, sql, call.turn)
        for call in answer.tool_calls
        if call.status == "ok"
        and call.name not in (*sql_tools, *METRIC_TOOLS)
        and statement_of(call, sql_tools) is None
        and (sql := _written(_parsed(call.args))) is not None
    )


def _written(value: Any) -> str | None:
    """Return the first text in the arguments of a call that is SQL."""
    if isinstance(value, str):
        return value.strip() if _SQL.match(value[:_LOOKED_AT]) else None
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return next((found for entry in inner if (found := _written(entry)) is not None), None)


def statement_of(call: ToolCall, sql_tools: Sequence[str]) -> str | None:
    """Return the SQL a call carries (``None``: it is not a query, or its statement is not text)."""
    known = call.name in sql_tools
    args = _parsed(call.args)
    if isinstance(args, Mapping):
        keys = _TOOL_STATEMENT_KEYS if known else _STATEMENT_KEYS
        return next((args[key] for key in keys if isinstance(args.get(key), str) and args[key].strip()), None)
    # broken JSON (seen) or bare SQL: what a SQL tool was given is looked at as it is
    return args if known and isinstance(args, str) and args.strip() else None


def result_table(result: Any) -> Table | None:
    """Return the table in a tool's result: ``{data, columns}``, ``{rows, columns}`` or rows; ``None``: none.

    Rows are dicts, or lists where ``columns`` names them. All rows are kept as they are.
    """
    if isinstance(result, Table):
        return result
    if isinstance(result, Mapping):
        rows = next((result[key] for key in _ROW_KEYS if isinstance(result.get(key), list)), None)
        return None if rows is None else _from_rows(rows, _columns(result.get("columns")))
    return _from_rows(result, []) if isinstance(result, list) else None


def _from_rows(rows: list[Any], columns: list[Column]) -> Table | None:
    if all(isinstance(row, Mapping) for row in rows):
        known = {column.name for column in columns}
        extra = dict.fromkeys(str(key) for row in rows for key in row if str(key) not in known)
        columns = [*columns, *(Column(name) for name in extra)]
        return Table(tuple(columns), tuple([row.get(c.name) for row in rows] for c in columns), len(rows))
    width = len(columns)
    if width and all(isinstance(row, list | tuple) and len(row) == width for row in rows):
        return Table(tuple(columns), tuple([row[i] for row in rows] for i in range(width)), len(rows))
    return None


def _columns(entries: Any) -> list[Column]:
    """Return column names as texts, ``{name, type}`` or ``[name, type]``."""
    found = []
    for entry in entries if isinstance(entries, list | tuple) else ():
        if isinstance(entry, str):
            found.append(Column(entry))
        elif isinstance(entry, Mapping) and "name" in entry:
            kind = entry.get("type")
            found.append(Column(str(entry["name"]), kind if isinstance(kind, str) else None))
        elif isinstance(entry, list | tuple) and entry:
            kind = entry[1] if len(entry) > 1 else None
            found.append(Column(str(entry[0]), kind if isinstance(kind, str) else None))
    return found


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
