"""The tools of our SQL analyst: list_tables, describe_table, execute_sql on one database."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_agenteval.databases import Database
from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.support import clock
from pytest_agenteval.support.json_codec import dumps, pack
from pytest_agenteval.support.scalars import safe_str
from pytest_agenteval.support.text import did_you_mean
from pytest_agenteval.table import Table
from pytest_agenteval.types import DEFAULT_SQL_TIMEOUT

SHOWN_ROWS = 50
SHOWN_CHARACTERS = 6_000
SAMPLE_ROWS = 3
OVERVIEW_CHARACTERS = 4_000

CLARIFICATION: Mapping[str, Any] = {
    "name": "clarification",
    "description": (
        "Ask the user one question when the request cannot be answered without knowing more. "
        "The conversation stops until the user answers."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "question": {"type": "string"},
            "options": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["question"],
    },
}

TOOLS: tuple[Mapping[str, Any], ...] = (
    {
        "name": "list_tables",
        "description": "The tables and views of the database, with their column names.",
        "parameters": {"type": "object", "properties": {}},
    },
    {
        "name": "describe_table",
        "description": "The columns of a table with their types, and a few of its rows.",
        "parameters": {
            "type": "object",
            "properties": {"table": {"type": "string", "description": "a name that list_tables gave"}},
            "required": ["table"],
        },
    },
    {
        "name": "execute_sql",
        "description": "Run one SELECT statement and get its rows.",
        "parameters": {
            "type": "object",
            "properties": {"sql_query": {"type": "string", "description": "one SELECT, without a semicolon"}},
            "required": ["sql_query"],
        },
    },
)


class ToolFailed(Exception):
    """A tool refuses or failed; the text is what the model is shown."""


class SqlTools:
    """Runs tool calls on ``database``, within ``deadline`` (``time.monotonic()``)."""

    def __init__(
        self, database: Database, deadline: float | None, limit: float = DEFAULT_SQL_TIMEOUT
    ) -> None:
        self._database = database
        self._deadline = deadline
        self._limit = limit
        self._queries = 0

    def run(self, name: str, args: Mapping[str, Any]) -> tuple[Any, str]:
        """Return what the tool gave: everything for the record, and the text that the model is shown.

        Raises ``ToolFailed``.
        """
        try:
            if name == "list_tables":
                return self._list_tables()
            if name == "describe_table":
                return self._describe(_text(args, "table", name))
            if name == "execute_sql":
                return self._execute(_text(args, "sql_query", name))
        except DatabaseError as error:
            # the model knows which database it asks, and has no use for a path of this machine
            where = f"database {self._database.name!r} ({self._database.shown}): "
            raise ToolFailed(str(error).removeprefix(where)) from error
        known = [tool["name"] for tool in TOOLS]
        raise ToolFailed(f"unknown tool {name!r}; there are {', '.join(known)}")

    def overview(self) -> str:
        """Return the tables and columns for the prompt, '' where they are too many. Raises
        ``DatabaseError``.
        """
        text = _tables(self._database.schema())
        return text if len(text) <= OVERVIEW_CHARACTERS else ""

    def _list_tables(self) -> tuple[Any, str]:
        schema = self._database.schema()
        tables = {table: list(columns) for table, columns in schema.items()}
        return {"tables": tables}, _cut(_tables(schema) or "(no tables)")

    def _describe(self, asked: str) -> tuple[Any, str]:
        schema = self._database.schema()
        word = asked.lower()
        fitting = [name for name in schema if word in (name.lower(), name.lower().rpartition(".")[2])]
        if not fitting:
            raise ToolFailed(f"no table {asked!r}{did_you_mean(asked, schema)}")
        sample = self._query(self._select(fitting[0]), SAMPLE_ROWS)
        result = {"table": fitting[0], "columns": _columns(sample), "sample": _records(sample)}
        lines = [f"{column.name} {column.type or ''}".rstrip() for column in sample.columns]
        return result, _cut(f"{fitting[0]}\n" + "\n".join(lines) + f"\nsome rows:\n{_shown(sample)}")

    def _select(self, table: str) -> str:
        """Return a few rows of a table in the database's own words."""
        from sqlglot import exp

        parts = [exp.to_identifier(part, quoted=True) for part in table.split(".")]
        source = exp.Table(this=parts[-1], db=parts[-2] if len(parts) > 1 else None)
        statement = exp.select("*").from_(source).limit(SAMPLE_ROWS)
        return str(statement.sql(dialect=self._database.dialect or None))

    def _execute(self, sql: str) -> tuple[Any, str]:
        table = self._query(sql, None)
        self._queries += 1
        result = {
            "id": f"query_{self._queries}",
            "columns": _columns(table),
            "data": _records(table),
            "row_count": table.row_count,
            "dialect": self._database.dialect,
        }
        count = f"{table.row_count:,} rows"
        if table.row_count > SHOWN_ROWS:
            count += f", the first {SHOWN_ROWS} of them"
        return result, _cut(f"{count}:\n{_shown(table)}")

    def _query(self, sql: str, rows: int | None) -> Table:
        left = self._limit
        if self._deadline is not None:
            left = min(left, max(0.1, self._deadline - clock.monotonic()))
        return self._database.query(sql, timeout=left, max_rows=rows)


def _tables(schema: Mapping[str, Sequence[str]]) -> str:
    return "\n".join(f"{table}({', '.join(columns)})" for table, columns in schema.items())


def _text(args: Mapping[str, Any], key: str, tool: str) -> str:
    value = args.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ToolFailed(f"{tool} needs {key!r} as text, got {dumps(pack(dict(args))[0])[:200]}")
    return value


def _columns(table: Table) -> list[dict[str, Any]]:
    return [{"name": column.name, "type": column.type} for column in table.columns]


def _records(table: Table) -> list[Any]:
    """Return all rows: as dicts, or as lists where a column name repeats."""
    if len(set(table.names)) < len(table.names):
        return [list(row) for row in table.rows()]
    return table.records()


def _shown(table: Table) -> str:
    """Return the first rows as the model reads them: a header and one JSON list per row."""
    lines = [json.dumps(table.names, ensure_ascii=False)]
    lines += [json.dumps([_cell(cell) for cell in row], ensure_ascii=False) for row in table.rows(SHOWN_ROWS)]
    return "\n".join(lines)


def _cell(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else safe_str(value)


def _cut(text: str) -> str:
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return text[:SHOWN_CHARACTERS] + f"\n... (cut, {len(text):,} characters)"
