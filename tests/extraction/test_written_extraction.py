"""Steps 3 and 4: a query or rows that a model writes, and every guard of them."""

from __future__ import annotations

import datetime
import json
import time
import uuid
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest

from pytest_agenteval.errors import AgentFailed, BudgetSpent, ExtractionFailed
from pytest_agenteval.extraction import ExtractionLimits, Query, extract
from pytest_agenteval.extraction.sandbox import Sandbox
from pytest_agenteval.table import Column, Table
from pytest_agenteval.types import Answer, Completion, ToolCall, Usage


class Scripted:
    """A model that says what it was told to say, one text per request."""

    name = "test:scripted"

    def __init__(self, *replies: str | Exception) -> None:
        self.replies = list(replies)
        self.requests: list[list[Mapping[str, Any]]] = []
        self.schemas: list[Any] = []

    def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int = 4096,
        deadline: float | None = None,
    ) -> Completion:
        self.requests.append(list(messages))
        self.schemas.append(schema)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return Completion(reply, usage=Usage(10, 2), cost=0.5)


def sql(text: str | None) -> str:
    return json.dumps({"sql": text})


def fetched(**tables: list[dict[str, Any]]) -> Answer:
    calls = [
        ToolCall("execute_sql", {"sql_query": "SELECT"}, {"data": rows, "id": name})
        for name, rows in tables.items()
    ]
    return Answer("the answer is 3", tool_calls=tuple(calls))


TWO = fetched(q1=[{"city": "Rome", "n": 1}, {"city": "Oslo", "n": 2}], q2=[{"city": "Rome", "pay": 1.5}])


def ask(model: Scripted, answer: Answer = TWO, expected: Sequence[str] = ("total",), **options: Any) -> Any:
    return extract(answer, expected_columns=expected, question="How many?", model=model, **options)


def refusal(statement: str, answer: Answer = TWO, **options: Any) -> str:
    """What the model is told when it writes ``statement``."""
    model = Scripted(sql(statement), sql(None))
    ask(model, answer, **options)
    return str(model.requests[1][-1]["content"])


def test_a_model_writes_one_query_over_the_fetched_rows():
    model = Scripted(sql("SELECT sum(n) AS total FROM q1"))
    found = ask(model)
    assert list(found.table.rows()) == [(3,)]
    assert (found.source, found.query) == ("query", "SELECT sum(n) AS total FROM q1")
    assert (found.usage, found.cost) == (Usage(10, 2), 0.5)
    told = json.loads(model.requests[0][1]["content"])
    assert told == {
        "question": "How many?",
        "columns": ["total"],
        "answer": "the answer is 3",
        "tables": [
            {
                "name": "q1",
                "columns": [{"name": "city", "type": "VARCHAR"}, {"name": "n", "type": "BIGINT"}],
                "row_count": 2,
                "first_rows": [["Rome", 1], ["Oslo", 2]],
                "made_by": "SELECT",
            },
            {
                "name": "q2",
                "columns": [{"name": "city", "type": "VARCHAR"}, {"name": "pay", "type": "DOUBLE"}],
                "row_count": 1,
                "first_rows": [["Rome", 1.5]],
                "made_by": "SELECT",
            },
        ],
    }


def test_null_is_no_data():
    found = ask(Scripted(sql(None)))
    assert (found.table, found.source, found.query, found.cost) == (None, "none", None, 0.5)


def test_one_repair_with_the_error():
    model = Scripted(sql("SELECT nope FROM q1"), sql("SELECT n AS total FROM q1"))
    found = ask(model)
    assert found.table.row_count == 2
    assert (found.usage, found.cost) == (Usage(20, 4, total=24), 1.0)
    assert model.requests[1][2] == {"role": "assistant", "content": sql("SELECT nope FROM q1")}
    assert (
        'That cannot be used: the extraction query: Binder Error: Referenced column "nope" not found'
        in (model.requests[1][3]["content"])
    )


def test_two_failures_are_an_error_of_extraction():
    with pytest.raises(ExtractionFailed) as caught:
        ask(Scripted("so sorry", '{"sql": 7}'))
    assert str(caught.value) == (
        "the extraction by query of model test:scripted failed twice: "
        'not JSON: Expecting value: line 1 column 1 (char 0); then: "sql" must be a text or null'
    )
    assert (caught.value.usage, caught.value.cost) == (Usage(20, 4, total=24), 1.0)


def test_a_reply_without_sql_is_said_so():
    model = Scripted('{"query": "SELECT 1"}', sql(None))
    ask(model)
    assert 'expected {"sql": "SELECT ..."} or {"sql": null}' in model.requests[1][-1]["content"]


def test_a_model_that_cannot_be_asked_is_an_error_of_extraction():
    with pytest.raises(ExtractionFailed, match="the extraction model test:scripted: HTTP 500") as caught:
        ask(Scripted("no", AgentFailed("HTTP 500")))
    assert caught.value.cost == 0.5
    with pytest.raises(BudgetSpent):
        ask(Scripted(BudgetSpent("spent")))


def test_no_fetched_table_means_no_call():
    model = Scripted()
    assert ask(model, Answer("42"), mode="query").table is None
    assert model.requests == []


LITERALS = "refused, its values are literals (a retyped answer); select them from q1, q2"


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("SELECT 3 AS total", LITERALS),
        ("SELECT 3 AS total FROM q1 LIMIT 1", LITERALS),
        ("SELECT v.total FROM (VALUES (3)) v(total)", LITERALS),
        ("SELECT v.total FROM (VALUES (3)) v(total), q1 LIMIT 1", LITERALS),
        ("WITH a AS (SELECT 3 AS total) SELECT total FROM a", LITERALS),
        ("SELECT n AS total FROM q1 UNION ALL SELECT 3", LITERALS),
        ("SELECT unnest([1, 2]) AS total FROM q1", LITERALS),
        ("SELECT (SELECT 3) AS total FROM q1", LITERALS),
        ("SELECT count(*) AS total FROM (VALUES (1), (2)) v(x)", LITERALS),
        ("SELECT 1; SELECT 2", "refused, found 2 statements; only one SELECT"),
        ("DROP TABLE q1", "refused, the statement is DROP; only one SELECT"),
        ("ATTACH 'x.db'", "refused, the statement is ATTACH"),
        ("SET memory_limit = '1GB'", "refused, the statement is SET"),
        (
            "SELECT * FROM read_csv('any.csv')",
            "refused, it reads READ_CSV('any.csv'); only these tables may be",
        ),
        ("FROM 'any.csv'", 'refused, it reads "any.csv"; only these tables may be read: q1, q2'),
        ("SELECT * FROM orders", "refused, it reads orders; only these tables may be read: q1, q2"),
        ("SELECT n FROM q1 WHERE n IN (SELECT id FROM orders)", "refused, it reads orders;"),
        ("WITH q1 AS (SELECT * FROM orders) SELECT * FROM q1", "refused, it reads orders;"),
        ("SELECT * FROM duckdb_settings()", "refused, it reads DUCKDB_SETTINGS();"),
        ("SELECT * FROM information_schema.tables", "refused, it reads information_schema.tables;"),
        ("SELECT * FROM other.q1", "refused, it reads other.q1;"),
        ("SELECT * FROM query('SELECT 3')", "refused, it reads QUERY('SELECT 3');"),
        ("SELECT n FROM q1, glob('/etc/*')", "refused, it reads GLOB('/etc/*');"),
        ("SELECT n FROM q1 AS a, q2 AS a", "refused, what it reads cannot be told: Alias already used: a"),
        ("SELECT max(3) AS total FROM q1", LITERALS),
        ("SELECT first_value(3) OVER (ORDER BY n) AS total FROM q1", LITERALS),
        ("WITH a AS (SELECT 3 AS x, n FROM q1) SELECT x AS total FROM a", LITERALS),
        ("SELECT n, read_text('x') FROM q1", LITERALS),
    ],
)
def test_guards_have_their_own_words(statement: str, text: str):
    assert text in refusal(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) AS total FROM q1",
        "SELECT * FROM q1",
        "FROM q1",
        "SELECT 'all' AS label, sum(n) AS total FROM q1",
        "WITH a AS (SELECT n FROM q1) SELECT n AS total FROM a",
        "SELECT city, n FROM q1 UNION ALL SELECT 'total', sum(n) FROM q1",
        "SELECT row_number() OVER () AS total FROM q1",
        "SELECT (SELECT max(n) FROM q1) AS total",
        "SELECT a.city, b.pay FROM q1 a JOIN q2 b ON a.city = b.city",
        "SELECT unnest([n, n]) AS total FROM q1",
        "SELECT u.x AS total FROM q1, unnest([q1.n]) AS u(x)",
        "SELECT n AS total FROM main.q1",
        "WITH RECURSIVE r AS (SELECT min(n) AS n FROM q1 UNION ALL SELECT n + 1 FROM r WHERE n < 2) FROM r",
        "SELECT city FROM q1 WHERE EXISTS (SELECT 1 FROM q2 WHERE q2.city = q1.city)",
        "PIVOT q1 ON city IN ('Rome', 'Oslo') USING sum(n)",
        "SELECT COLUMNS('n') FROM q1",
        "SELECT sum(1) AS total FROM q1",
        "SELECT rank() OVER (ORDER BY n) AS total FROM q1",
        "SELECT max(n) OVER () AS total FROM q1",
        "SELECT * EXCLUDE (city) FROM q1",
        "SELECT city, sum(n) AS total FROM q1 GROUP BY ALL ORDER BY ALL",
        "SELECT n AS total FROM q1 QUALIFY row_number() OVER (ORDER BY n DESC) = 1",
        "FROM q1 SELECT n AS total",
        "SELECT t.n AS total FROM (SELECT * FROM q1) AS t",
        "SELECT a.c AS total FROM (SELECT city, n FROM q1) AS a(b, c)",
        "SELECT x AS total FROM (SELECT n FROM q1) AS a(x)",
        "SELECT q1.n AS total FROM q1 POSITIONAL JOIN q2",
        "SELECT sum(n) FILTER (WHERE city = 'Rome') AS total FROM q1",
        "SELECT (SELECT q1.n) AS total FROM q1",
        "SELECT count(*) FILTER (WHERE n > 1)::INTEGER AS total FROM q1",
        "SELECT 'q1' AS which, count(*) AS total FROM q1",
        "SELECT max(CASE WHEN city = 'Rome' THEN n END) AS total FROM q1",
    ],
)
def test_honest_queries_pass(statement: str):
    model = Scripted(sql(statement))
    found = ask(model)
    assert found.table.row_count >= 1
    assert len(model.requests) == 1


def test_time_and_row_limits():
    many = fetched(q1=[{"n": i} for i in range(2000)], q2=[{"m": 1}])
    limits = ExtractionLimits(timeout=0.3)
    slow = "SELECT sum(a.n * b.n + c.n * d.n) AS t FROM q1 a, q1 b, q1 c, q1 d"
    assert "ended after 0.3 s" in refusal(slow, many, limits=limits)
    assert "more than 10 rows" in refusal("SELECT n FROM q1", many, limits=ExtractionLimits(max_rows=10))
    late = ExtractionLimits(deadline=time.monotonic() - 1)
    assert "ended after 0.1 s" in refusal(slow, many, limits=late)


def test_5000_rows_keep_every_row_and_type():
    day = datetime.date(2024, 1, 1)
    kinds: dict[str, Any] = {
        "big": lambda i: 2**70 + i,
        "whole": lambda i: i,
        "money": lambda i: Decimal(i) + Decimal("0.10"),
        "mixed": lambda i: i if i % 2 else Decimal("0.5"),
        "ratio": lambda i: i / 7,
        "part": lambda i: i if i % 2 else i / 7,
        "day": lambda i: day + datetime.timedelta(i),
        "at": lambda i: datetime.datetime(2024, 1, 1, 12, 0, 0, 1) + datetime.timedelta(i),
        "zoned": lambda i: datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(i),
        "clock": lambda i: datetime.time(i % 24, 30),
        "span": lambda i: datetime.timedelta(i, 5),
        "zip": lambda i: f"{i:05d}",
        "flag": lambda i: i % 2 == 0,
        "key": lambda i: uuid.UUID(int=i),
        "raw": lambda i: bytes([i % 256]),
        "null": lambda i: None,
        "sometimes": lambda i: None if i % 3 else i,
    }
    expected = {name: [make(i) for i in range(5000)] for name, make in kinds.items()}
    table = Table(tuple(Column(name) for name in expected), tuple(expected.values()), 5000)
    with Sandbox([Query("q", "execute_sql", None, table)]) as sandbox:
        types = dict(sandbox.types("q"))
        found = sandbox.query("SELECT * FROM q", 30, 5000)
    assert found.row_count == 5000
    for index, name in enumerate(expected):
        assert found.column(index) == expected[name], name
    assert types == {
        "big": "HUGEINT",
        "whole": "BIGINT",
        "money": "DECIMAL(38,2)",
        "mixed": "DECIMAL(38,1)",
        "ratio": "DOUBLE",
        "part": "DOUBLE",
        "day": "DATE",
        "at": "TIMESTAMP",
        "zoned": "TIMESTAMP WITH TIME ZONE",
        "clock": "TIME",
        "span": "INTERVAL",
        "zip": "VARCHAR",
        "flag": "BOOLEAN",
        "key": "UUID",
        "raw": "BLOB",
        "null": "VARCHAR",
        "sometimes": "BIGINT",
    }


def test_odd_columns_lose_nothing():
    table = Table(
        (
            Column("a"),
            Column("A"),
            Column(""),
            Column("price", "DECIMAL(10,2)"),
            Column("wide"),
            Column("huge"),
            Column("nan"),
            Column("date", "DATE"),
            Column("odd", "ENUM('x')"),
            Column("exact"),
        ),
        (
            [{"k": [1, 2]}],
            [[1, {"x": None}]],
            [
                "",
            ],
            [Decimal("1.10")],
            [Decimal("1" * 40)],
            [2**200],
            [Decimal("NaN")],
            [None],
            [None],
            [2**60 + 1],
        ),
        1,
    )
    mixed = Table((Column("m"), Column("f")), ([1, "x", [1], None], [0.5, 2**60 + 1, None, 1]), 4)
    empty = Table((), (), 0)
    queries = [Query(name, "t", None, t) for name, t in (("q", table), ("m", mixed), ("e", empty))]
    with Sandbox(queries) as sandbox:
        assert sandbox.types("q") == [
            ("a", "JSON"),
            ("A_1", "JSON"),
            ("column_3", "VARCHAR"),
            ("price", "DECIMAL(10,2)"),
            ("wide", "VARCHAR"),
            ("huge", "VARCHAR"),
            ("nan", "VARCHAR"),
            ("date", "DATE"),
            ("odd", "VARCHAR"),
            ("exact", "BIGINT"),
        ]
        row = next(sandbox.query("SELECT * FROM q", 30, 10).rows())
        assert row[2:] == ("", Decimal("1.10"), "1" * 40, str(2**200), "NaN", None, None, 2**60 + 1)
        assert list(sandbox.query("SELECT * FROM m", 30, 10).rows()) == [
            ("1", "0.5"),
            ("x", str(2**60 + 1)),
            ("[1]", None),
            (None, "1"),
        ]
        assert sandbox.types("e") == [("empty", "BOOLEAN")]


def test_values_that_do_not_fit_their_declared_type_come_as_text():
    table = Table((Column("a", "DECIMAL(3,2)"), Column("b")), ([Decimal("123.45"), None], [1, 2]), 2)
    surrogates = Table.from_rows(["s"], [["a\ud800"], ["b"]])
    with Sandbox([Query("q", "t", None, table), Query("s", "t", None, surrogates)]) as sandbox:
        assert sandbox.types("q") == [("a", "VARCHAR"), ("b", "VARCHAR")]
        assert list(sandbox.query("SELECT * FROM q", 5, 5).rows()) == [("123.45", "1"), (None, "2")]
        assert sandbox.query("SELECT s FROM s", 5, 5).column(0) == ["a?", "b"]


def test_arrow_and_numpy_columns_come_as_they_are():
    import numpy
    import pyarrow

    table = Table(
        (Column("a"), Column("b")),
        (pyarrow.array([Decimal("1.50"), None]), numpy.array([1.5, 2.5])),
        2,
    )
    with Sandbox([Query("q", "t", None, table)]) as sandbox:
        assert sandbox.types("q") == [("a", "DECIMAL(3,2)"), ("b", "DOUBLE")]
        assert list(sandbox.query("SELECT * FROM q", 5, 5).rows()) == [(Decimal("1.50"), 1.5), (None, 2.5)]


def test_the_configuration_is_locked():
    with Sandbox([Query("q", "t", None, Table.from_rows(["a"], [[1]]))]) as sandbox:
        settings = dict(
            sandbox._connection.execute(
                "SELECT name, value FROM duckdb_settings() WHERE name IN "
                "('enable_external_access', 'lock_configuration', 'python_enable_replacements')"
            ).fetchall()
        )
    assert settings == {
        "enable_external_access": "false",
        "lock_configuration": "true",
        "python_enable_replacements": "false",
    }


def test_json_rows():
    reply = '{"rows": [{"total": 12345678901234567.89, "n": 0.1}, {"n": 9007199254740993}]}'
    model = Scripted(reply)
    found = ask(model, mode="json", expected=["total", "n"])
    assert list(found.table.rows()) == [(Decimal("12345678901234567.89"), 0.1), (None, 9007199254740993)]
    assert (found.source, found.query, found.cost) == ("json", None, 0.5)
    question, said, asked = model.requests[0]
    assert question == {"role": "user", "content": "How many?"}
    assert "Oslo" in said["content"]
    assert said["content"].endswith("the answer is 3")
    assert asked["content"].endswith('The columns: ["total", "n"]')
    assert model.schemas[0]["properties"]["rows"]["anyOf"][0]["items"]["required"] == ["total", "n"]


def test_json_null_is_no_data_and_no_rows_are_an_empty_table():
    assert ask(Scripted('{"rows": null}'), mode="json").source == "none"
    assert ask(Scripted("null"), mode="json").table is None
    found = ask(Scripted('{"rows": []}'), mode="json")
    assert (found.table.names, found.table.row_count) == (["total"], 0)
    assert ask(Scripted('```json\n[{"a": 1}]\n```'), mode="json", expected=()).table.row_count == 1


def test_json_in_another_form_is_repaired_once():
    model = Scripted('{"rows": [1]}', '{"rows": [{"a": 1}, {"a": 2}]}')
    with pytest.raises(ExtractionFailed, match=r"failed twice: expected .*; then: more than 1 rows"):
        ask(model, Answer(), mode="json", limits=ExtractionLimits(max_rows=1))
    assert model.requests[0][1]["content"] == "(no text)"
