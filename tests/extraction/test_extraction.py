"""Steps 1 and 2: the table handed over, the query that matches; and what counts as a query."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_agenteval.errors import ExtractionFailed
from pytest_agenteval.extraction import executed_queries, extract, statements
from pytest_agenteval.extraction.executed_queries import unread_calls
from pytest_agenteval.table import Table
from pytest_agenteval.types import Answer, ToolCall, UnreadCall


def call(data: Any = None, columns: list[str] | None = None, **fields: Any) -> ToolCall:
    result = {"data": data, "columns": columns or [], "id": fields.pop("result_id", None)}
    fields.setdefault("args", {"sql_query": "SELECT 1"})
    return ToolCall(fields.pop("name", "execute_sql"), result=fields.pop("result", result), **fields)


def answer(*calls: ToolCall, data: Any = None, text: str = "", value: Any = None) -> Answer:
    return Answer(text=text, data=data, value=value, tool_calls=calls)


A = call([{"a": 1}], ["a"], args={"sql_query": "SELECT a"})
B = call([{"b": 2}], ["b"], args={"sql_query": "SELECT b"})


def rows(found: Any) -> list[tuple[Any, ...]]:
    return list(found.table.rows())


def test_a_table_handed_over_is_the_answer():
    given = Table.from_rows(["x"], [[1]])
    found = extract(answer(A, data=given), expected_columns=["a"])
    assert found.table is given
    assert (found.source, found.query) == ("given", None)


def test_the_last_query_that_covers_the_names_matches():
    late = call([{"A ": 3, "z": 0}], ["A ", "z"], args={"sql": "SELECT late"})
    found = extract(answer(A, late, B), expected_columns=["a"])
    assert (rows(found), found.source, found.query) == ([(3, 0)], "matched", "SELECT late")


def test_without_expected_names_the_last_table_matches():
    found = extract(answer(A, B, call(result=None)))
    assert (rows(found), found.source) == ([(2,)], "matched")


def test_the_only_query_is_the_answer_whatever_its_names():
    found = extract(answer(A, call(None, status="error", result=None)), expected_columns=["total"])
    assert (rows(found), found.source, found.query) == ([(1,)], "only query", "SELECT a")


def test_without_a_query_there_is_no_data():
    found = extract(answer(call(status="error"), call(result="done"), text="42"), expected_columns=["a"])
    assert (found.table, found.source) == (None, "none")


def test_one_value_is_a_table_where_one_column_is_asked_for():
    found = extract(answer(value=300), expected_columns=["n"])
    assert (found.table.names, rows(found), found.source) == (["n"], [(300,)], "given")
    assert rows(extract(answer(A, value=300), expected_columns=["n"], mode="given")) == [(300,)]
    # a query's table says more, and one value is no row of two columns
    assert rows(extract(answer(A, value=300), expected_columns=["n"])) == [(1,)]
    assert extract(answer(value=300), expected_columns=["n", "m"]).table is None
    assert extract(answer(value=300)).table is None


def test_several_queries_and_no_model_cannot_be_decided():
    with pytest.raises(ExtractionFailed) as caught:
        extract(answer(A, B), expected_columns=["total", "month"])
    assert str(caught.value) == (
        "2 queries returned a table and none has the columns total, month: query_1 (a); query_2 (b). "
        "Name the columns in the prompt or in comparison.column_aliases, let the agent hand its table over, "
        "or set --agent-extract-model provider:model, which then writes one query over them"
    )


def test_modes_take_one_step_only():
    given = Table.from_rows(["x"], [[1]])
    assert extract(answer(A), mode="given").table is None
    assert extract(answer(A, data=given), mode="given").table is given
    assert extract(answer(A, data=given), mode="matched").source == "matched"
    with pytest.raises(ExtractionFailed, match="2 queries returned a table"):
        extract(answer(A, B), mode="matched", expected_columns=["c"], model=object())  # type: ignore[arg-type]
    for mode in ("query", "json"):
        with pytest.raises(ExtractionFailed, match=f"'{mode}' needs a model; set --agent-extract-m"):
            extract(answer(A), mode=mode)


@pytest.mark.parametrize(
    ("names", "expected", "covered"),
    [
        (["a", "b"], ["b"], True),
        (["Total Revenue"], ["total_revenue"], True),
        (["TOTAL"], ["total"], True),
        (["a"], ["a", "a"], False),
        (["a", "A"], ["a", "a"], True),
        (["revenue"], ["total"], True),
        (["revenue"], ["total", "sum"], False),
        (["other"], ["total"], False),
        (["_id"], ["id"], True),
    ],
)
def test_names_are_covered_as_the_comparison_matches_them(names, expected, covered):
    first = call([dict.fromkeys(names, 1)], names)
    found = answer(first, call([{"zz": 1}, {"zz": 2}], ["zz"]))
    if covered:
        assert rows(extract(found, expected_columns=expected, aliases={"total": ["Revenue"]}))[0][0] == 1
    else:
        with pytest.raises(ExtractionFailed):
            extract(found, expected_columns=expected, aliases={"total": ["Revenue"]})


def test_what_is_a_query():
    calls = (
        ToolCall("execute_sql", {"sql_query": "S1"}, {"data": [{"a": 1}], "columns": ["a"]}, id="call_1"),
        ToolCall("run", {"sql": "S2"}, [{"a": 2}]),
        ToolCall("run", {"sql": 7}, [{"a": 2}]),
        ToolCall("run", {"query": "not SQL"}, [{"a": 2}]),
        ToolCall(
            "execute_sql", {"query": "S3"}, {"rows": [[3]], "columns": [{"name": "a", "type": "INTEGER"}]}
        ),
        ToolCall("execute_sql", '{"sql_query": "S4"}', '{"data": [], "columns": [["a", "DATE"], ["b"], 7]}'),
        ToolCall("execute_sql", '{"sql_query": "S5', "[broken"),
        ToolCall("execute_sql", None, {"data": [[1, 2]], "columns": ["a"]}),
        ToolCall("execute_sql", {"sql_query": "S6"}, status="error"),
        ToolCall("query_metrics", {"sql": "no"}, {"data": [{"m": 1}], "columns": ["m"], "id": "query_9"}),
        ToolCall("list_tables", {}, [{"name": "orders"}]),
        ToolCall("execute_sql", "SELECT 7", {"data": [{"a": 1}, {"b": 2}], "id": "call_1"}, turn=1),
    )
    found = executed_queries(answer(*calls))
    assert [(q.id, q.tool, q.sql, q.turn) for q in found] == [
        ("call_1", "execute_sql", "S1", 0),
        ("query_2", "run", "S2", 0),
        ("query_3", "execute_sql", "S3", 0),
        ("query_4", "execute_sql", "S4", 0),
        ("query_5", "execute_sql", '{"sql_query": "S5', 0),
        ("query_6", "execute_sql", None, 0),
        ("query_9", "query_metrics", None, 0),
        ("call_1_2", "execute_sql", "SELECT 7", 1),
    ]
    shown = [q.table and (q.table.names, q.table.types, list(q.table.rows())) for q in found]
    assert shown == [
        (["a"], [None], [(1,)]),
        (["a"], [None], [(2,)]),
        (["a"], ["INTEGER"], [(3,)]),
        (["a", "b"], ["DATE", None], []),
        None,
        None,
        (["m"], [None], [(1,)]),
        (["a", "b"], [None, None], [(1, None), (None, 2)]),
    ]
    assert [s.sql for s in statements(found)] == ["S1", "S2", "S3", "S4", '{"sql_query": "S5', "SELECT 7"]


def test_other_tools_can_be_named_as_sql_tools():
    found = executed_queries(answer(ToolCall("ask_db", {"statement": "S"}, [])), ["ask_db"])
    assert [(q.sql, q.table and q.table.row_count) for q in found] == [("S", 0)]
    assert executed_queries(answer(ToolCall("execute_sql", "S", [])), ["ask_db"]) == ()


def test_a_table_as_a_result_is_taken_as_it_is():
    table = Table.from_rows(["a"], [[1]])
    assert executed_queries(answer(call(result=table)))[0].table is table


def test_recorded_answers_of_a_real_server(request: pytest.FixtureRequest):
    folder = request.config.rootpath / "tests" / "data" / "nao"
    body = json.loads((folder / "run_ok_bearer_nosql.json").read_text())["response"]["body"]
    calls = [ToolCall(c["toolName"], c["args"], c.get("result"), c["toolCallId"]) for c in body["toolCalls"]]
    found = extract(answer(*calls), expected_columns=["total_revenue"])
    assert (rows(found), found.source) == ([(249595,)], "matched")
    assert executed_queries(answer(*calls))[0].id == "query_41866215"


SQL = [
    "SELECT count(*) FROM orders",
    "  -- how many\n/* all */ (select * from t)",
    "```sql\nSELECT a FROM b\n```",
    "select 1",
    "SELECT now()",
    "WITH recent AS (SELECT 1) SELECT * FROM recent",
    'with recursive "r" (n) as materialized (select 1) table r',
    "INSERT INTO t VALUES (1)",
    "insert or replace into t values (1)",
    "UPDATE t SET a = 1",
    "DELETE FROM shipments",
    "DROP TABLE t",
    "create or replace temporary view v as select 1",
    "ALTER TABLE t ADD COLUMN a INT",
    "TRUNCATE orders;",
    "MERGE INTO a USING b ON true",
    "GRANT SELECT ON t TO me",
    "REVOKE ALL ON t FROM me",
    "COPY t TO 'x.csv'",
    "COPY t (a) FROM stdin",
    "ATTACH 'x.db' AS x",
    "PRAGMA writable_schema = 1",
    "CALL refresh_all()",
]


@pytest.mark.parametrize("sql", SQL)
def test_a_tool_that_nobody_named_was_given_sql(sql: str):
    (found,) = unread_calls(
        answer(ToolCall("run_query", {"limit": 5, "query": sql}, turn=1)), ["execute_sql"]
    )
    assert found == UnreadCall("run_query", sql.strip(), 1)


@pytest.mark.parametrize(
    "text",
    [
        "How many orders?",
        "Select 3 good customers",
        "Update me on the progress",
        "Delete the draft",
        "Drop me a note",
        "Create a chart of revenue",
        "With regard to orders",
        "Grant access to Bob",
        "Copy this to the clipboard",
        "Call the customer",
        "insert coin",
        "",
    ],
)
def test_plain_words_are_no_sql(text: str):
    assert unread_calls(answer(ToolCall("search", {"query": text})), ["execute_sql"]) == ()


def test_where_sql_is_looked_for():
    sql = "DELETE FROM t"
    seen = [
        ToolCall("a", {"steps": [{"body": sql}]}),
        ToolCall("b", json.dumps({"statement": sql})),
        ToolCall("c", sql),
    ]
    assert [found.tool for found in unread_calls(answer(*seen), ["execute_sql"])] == ["a", "b", "c"]
    others = [
        ToolCall("execute_sql", {"query": sql}),  # a query
        ToolCall("any", {"sql": sql}),  # one too
        ToolCall("failed", {"query": sql}, status="error"),
        ToolCall("query_metrics", {"note": sql}),
        ToolCall("none", None),
    ]
    assert unread_calls(answer(*others), ["execute_sql"]) == ()
