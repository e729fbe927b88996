"""Small projects in which real use found a wrong verdict, as triples: each is one example of a kind.

The answers are made as the library makes them that the report named.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address
from typing import Any

import duckdb
import pandas
import pyarrow
from triples import Triple, reference_of

from pytest_agenteval.table import Table
from pytest_agenteval.types import Answer, Reference, ToolCall

SHARES = {"region": ["EU", "US"], "revenue": [10.5, 20.0]}


def _frame(sql: str) -> Any:
    with duckdb.connect() as connection:
        return connection.execute(sql).df()


def _sql(sql: str) -> Table:
    """What DuckDB gives for a statement, read as references are."""
    with duckdb.connect() as connection:
        return reference_of(connection, sql).table


def _typed(name: str, kind: str, *values: Any) -> Table:
    return Table.from_rows([name], [[value] for value in values], [kind])


def _called(rows: list[dict[str, Any]], text: str = "done", tool: str = "execute_sql") -> Answer:
    result = {"columns": list(rows[0]) if rows else [], "data": rows}
    return Answer(text=text, tool_calls=(ToolCall(tool, {"sql_query": "SELECT 1"}, result),))


def found() -> Iterator[Triple]:
    """Every one of them."""
    for number, (name, reference, answer, right, more) in enumerate(_listed(), 1):
        sql = f"SELECT {number}"
        case = {"name": name, "prompt": "What is asked?", "sql": sql, **more}
        yield Triple(
            id=name,
            group="projects in which real use found a fault",
            form="as found",
            case=json.dumps(case),
            answer=answer,
            right=right,
            references={sql: Reference(reference, sql)},
            why=name,
        )


Row = tuple[str, Table, Callable[[], Any], str, dict[str, Any]]


def _listed() -> Iterator[Row]:
    yield from _containers()
    yield from _moments()
    yield from _values()
    yield from _answers()


def _containers() -> Iterator[Row]:
    nulls = "SELECT [1, 2, NULL]::INT[] AS x"
    yield "NULL in a list of a DataFrame is NULL", _sql(nulls), lambda: _frame(nulls), "passed", {}
    zero = _sql("SELECT [1, 2, 0]::INT[] AS x")
    yield "NULL in a list of a DataFrame is not 0", zero, lambda: _frame(nulls), "failed", {}
    flags, held = "SELECT [true, NULL]::BOOLEAN[] AS x", _sql("SELECT [true, false] AS x")
    yield "NULL in a list of flags is not false", held, lambda: _frame(flags), "failed", {}
    shares = Table.from_rows(["region", "revenue"], [["EU", 10.5], ["US", 20.0]], ["VARCHAR", "DOUBLE"])
    grouped = pandas.DataFrame(SHARES).groupby("region")
    yield "the named index of a frame is a column", shares, lambda: grouped.sum(), "passed", {}
    yield "the named index of a series is a column", shares, lambda: grouped["revenue"].sum(), "passed", {}
    months = _typed("month", "VARCHAR", "2024-01")
    period = pandas.DataFrame({"month": pandas.to_datetime(["2024-01-05"]).to_period("M")})
    yield "a period is its text", months, lambda: period, "passed", {}
    masked = pandas.DataFrame({"n": pandas.array([1, None], dtype="Int64")})
    yield "a masked integer is NULL", _typed("n", "INTEGER", 1, None), lambda: masked, "passed", {}
    kinds = pandas.DataFrame({"k": pandas.Categorical(["b", "a"])})
    yield "a category is its value", _typed("k", "VARCHAR", "a", "b"), lambda: kinds, "passed", {}
    ends = pyarrow.table({"n": pyarrow.array([1, 1, 2])})
    yield "an Arrow table of another order", _typed("n", "INTEGER", 2, 1, 1), lambda: ends, "passed", {}


def _moments() -> Iterator[Row]:
    endless = "SELECT 'infinity'::TIMESTAMP AS valid_to"
    yield "infinity of a frame", _sql(endless), lambda: _frame(endless), "passed", {}
    yield "infinity as JSON says it", _sql(endless), lambda: [{"valid_to": "infinity"}], "passed", {}
    day = _sql("SELECT 'infinity'::DATE AS valid_to")
    yield "infinity is no day of the year 9999", day, lambda: [{"valid_to": "9999-12-31"}], "failed", {}
    yield "infinity is not minus infinity", day, lambda: [{"valid_to": "-infinity"}], "failed", {}
    moment = _sql("SELECT TIMESTAMPTZ '2024-01-02 03:04:05+00' AS t")
    yield "an offset without a colon", moment, lambda: [{"t": "2024-01-02T03:04:05+0000"}], "passed", {}
    yield "an offset as UTC", moment, lambda: [{"t": "2024-01-02 03:04:05 UTC"}], "passed", {}
    yield "another hour", moment, lambda: [{"t": "2024-01-02 04:04:05 UTC"}], "failed", {}
    mixed = [dt.date(2024, 1, 1), dt.datetime(2024, 1, 2, 3, 4, 5)]
    exact = _typed("t", "TIMESTAMP", dt.datetime(2024, 1, 1), mixed[1])
    yield "a day before a moment in a column", exact, lambda: [{"t": value} for value in mixed], "passed", {}
    cut = _typed("t", "TIMESTAMP", dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2))
    yield "the time of day is not lost", cut, lambda: pandas.DataFrame({"t": mixed}), "failed", {}


def _values() -> Iterator[Row]:
    address = _typed("ip", "INET", IPv4Address("192.168.0.1"))
    yield "a driver's address is its text", address, lambda: [{"ip": "192.168.0.1"}], "passed", {}
    yield "another address", address, lambda: [{"ip": "192.168.0.2"}], "failed", {}
    raw = _typed("b", "BYTEA", b"\xde\xad")
    yield "bytes as Postgres writes them", raw, lambda: [{"b": "\\xdead"}], "passed", {}
    yield "other bytes", raw, lambda: [{"b": "\\xdeae"}], "failed", {}
    parts = _sql("SELECT [1.10, 2.20]::DECIMAL(4,2)[] AS a")
    yield "decimals of an array as text", parts, lambda: [{"a": ["1.10", "2.20"]}], "passed", {}
    ids = _sql("SELECT 'order_' || i AS id FROM range(500) t(i)")
    turned = [{"id": f"order_{i}"} for i in reversed(range(500))]
    yield "ids of growing length in another order", ids, lambda: turned, "passed", {}
    yield "one id too few", ids, lambda: turned[1:], "failed", {}
    large = _typed("n", "BIGINT", 2**53 + 1)
    yield "a whole number beyond doubles", large, lambda: [{"n": 2**53 + 1}], "passed", {}
    yield "its neighbour", large, lambda: [{"n": 2**53}], "failed", {}


def _answers() -> Iterator[Row]:
    six = _typed("n", "INTEGER", 6)
    yield "words without a table", six, lambda: "There are 6 stores.", "failed", {}
    yield "the table in a tool call, the words beside it", six, lambda: _called([{"n": 6}]), "passed", {}
    yield "an answer with no rows", six, lambda: _called([]), "failed", {}
    ask = _called([{"n": 6}], "Which year do you mean?")
    yield "rows with a question behind them are an answer", six, lambda: ask, "passed", {}
    failed = ToolCall("execute_sql", {}, error="no such table", status="error")
    gone = Answer(text="done", tool_calls=(failed,))
    yield "a query that failed", six, lambda: gone, "failed", {}
    called = {"assertions": [{"type": "tool_call", "tool": "charge"}]}
    yield "right rows, and a tool that was not called", six, lambda: _called([{"n": 6}]), "failed", called
    said = {"assertions": [{"type": "text", "contains": "six"}]}
    yield "right rows, and words that are missing", six, lambda: _called([{"n": 6}]), "failed", said
    wrong = {"assertions": [{"type": "text", "contains": "done"}]}
    yield "right words, and rows that differ", six, lambda: _called([{"n": 5}]), "failed", wrong
