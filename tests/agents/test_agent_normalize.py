"""What agents return, and what becomes of it."""

import datetime as dt
import decimal
import json
import sqlite3
import uuid

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agenteval.agents.kinds.replay import answer_from_fields, recording_line
from pytest_agenteval.agents.normalize import answer_from_mapping, normalize
from pytest_agenteval.errors import AgentFailed
from pytest_agenteval.support.json_codec import decode, pack, unpack
from pytest_agenteval.support.scalars import clean_text, plain_tree
from pytest_agenteval.table import Table
from pytest_agenteval.types import Answer, Task, ToolCall, Usage

D = decimal.Decimal


def rows(answer):
    return answer.data.names, list(answer.data.rows())


def test_text_is_the_answers_text():
    assert normalize("42 orders") == Answer(text="42 orders")
    assert normalize("") == Answer()


def test_dicts_become_a_table_with_the_keys_in_first_seen_order():
    answer = normalize([{"a": 1, "b": "x"}, {"b": "y", "c": None}])
    assert rows(answer) == (["a", "b", "c"], [(1, "x", None), (None, "y", None)])
    assert normalize(({"a": D("1.10")},)).data.column(0) == [D("1.10")]


def test_no_rows_are_an_empty_table_not_nothing():
    answer = normalize([])
    assert (answer.data.row_count, answer.data.columns) == (0, ())


def test_rows_of_sqlite_and_sqlalchemy_are_records():
    import sqlalchemy

    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    found = connection.execute("select 1 as a, 'x' as b").fetchall()
    connection.close()
    assert rows(normalize(found)) == (["a", "b"], [(1, "x")])
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.connect() as open_connection:
        mapped = open_connection.execute(sqlalchemy.text("select 1 as a, 'x' as b")).all()
    engine.dispose()
    assert rows(normalize(mapped)) == (["a", "b"], [(1, "x")])


def test_dataframes_keep_dates_decimals_and_missing_values():
    frame = pd.DataFrame(
        {
            "n": pd.array([1, None], dtype="Int64"),
            "when": [pd.Timestamp("2024-05-01 10:00"), pd.NaT],
            "price": [D("1.10"), None],
            "name": ["x", None],
        }
    )
    names, cells = rows(normalize(frame))
    assert names == ["n", "when", "price", "name"]
    assert cells[0] == (1, dt.datetime(2024, 5, 1, 10), D("1.10"), "x")
    assert cells[1] == (None, None, None, None)


def test_a_dataframe_that_arrow_refuses_is_read_cell_by_cell():
    frame = pd.DataFrame({"a": [1, "x", 2**70], "b": [D("1.1"), float("nan"), pd.NA]}, dtype=object)
    assert rows(normalize(frame)) == (["a", "b"], [(1, D("1.1")), ("x", None), (2**70, None)])
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    assert rows(normalize(twice)) == (["a", "a"], [(1, 2)])
    numbered = pd.DataFrame([[1, 2]])
    assert rows(normalize(numbered)) == (["0", "1"], [(1, 2)])
    surrogate = pd.DataFrame({"a": pd.Series(["\ud800"], dtype=object)})
    assert rows(normalize(surrogate)) == (["a"], [("�",)])


def test_series_arrow_and_duckdb_relations_are_tables():
    assert rows(normalize(pd.Series([1, 2], name="n"))) == (["n"], [(1,), (2,)])
    assert rows(normalize(pa.table({"n": [1, 2]}))) == (["n"], [(1,), (2,)])
    assert rows(normalize(duckdb.sql("select 1 as n, 1.5::decimal(4,2) as d"))) == (
        ["n", "d"],
        [(1, D("1.50"))],
    )
    assert rows(normalize(Table.from_rows(["n"], [[np.int64(3)]]))) == (["n"], [(3,)])


def test_one_number_or_date_is_a_value():
    assert normalize(42) == Answer(text="42", value=42)
    assert normalize(np.float64(1.5)).value == 1.5
    assert normalize(dt.date(2024, 1, 2)).value == dt.date(2024, 1, 2)
    assert type(normalize(np.int64(7)).value) is int


class Strange:
    def __str__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        (
            None,
            "returned None (did it forget to return its answer?): my agent (conftest.py:3); allowed: text",
        ),
        ({1, 2}, "returned a set: my agent"),
        (
            {"a": {"b": 1}, "c": {"d": 2}},
            "returned a dict (one row is [{...}], an answer is Answer(...)): my agent",
        ),
        ([{"a": 1}, 2], "returned a list that holds int: my agent"),
        (("text", [1]), "returned a tuple that holds str: my agent"),
        (Strange(), "returned a Strange: my agent"),
        (Answer(data={"a": {"b": 1}, "c": {}}), "returned an Answer whose data is a dict"),
        (Answer(data="x"), "returned an Answer whose data is a str; allowed: a list of dicts, a DataFrame"),
        (Answer(tool_calls=("x",)), "returned a tool call that is a str; allowed: a ToolCall, or a dict"),
        (Answer(tool_calls=({"args": {}},)), "a tool call that has no name but ['args']; known: name, args"),
        (
            Answer(tool_calls=({"name": "x", "argz": {}},)),
            "has an unknown key 'argz', did you mean 'args'?",
        ),
        (Answer(usage={"inputs": 3}), "usage with an unknown key 'inputs', did you mean 'input'?"),
        (Answer(usage=3), "returned usage that is an int; allowed: a Usage"),
    ],
)
def test_another_type_is_an_error_naming_it_and_what_is_allowed(raw, named):
    with pytest.raises(AgentFailed) as caught:
        normalize(raw, "my agent (conftest.py:3)")
    # what is wrong comes first, or behind one place
    assert str(caught.value).startswith(("the agent returned ", "my agent (conftest.py:3) returned "))
    assert named in str(caught.value)


def test_tool_calls_are_made_plain_and_tables_in_results_become_rows():
    frame = pd.DataFrame({"n": [1]})
    answer = normalize(
        Answer(
            tool_calls=[
                {
                    "toolName": "execute_sql",
                    "toolCallId": "c1",
                    "args": {"sql": "x"},
                    "result": {"data": frame},
                },
                ToolCall("f", result=pa.table({"n": [D("1.5")]}), error="boom"),
                ToolCall("g", args={"n": np.int64(3), 5: {1}}, result=frame),
            ]
        )
    )
    first, second, third = answer.tool_calls
    assert (first.name, first.id) == ("execute_sql", "c1")
    assert first.result == {"data": {"columns": ["n"], "data": [{"n": 1}], "row_count": 1}}
    assert second.result == {"columns": ["n"], "data": [{"n": D("1.5")}], "row_count": 1}
    assert (second.status, second.error) == ("error", "boom")
    assert third.args == {"n": 3, 5: [1]}


def test_fields_of_an_answer_are_brought_to_their_types():
    answer = normalize(
        Answer(
            text=None,
            cost=D("0.5"),
            usage=Usage(input=np.int64(5), output=float("nan")),
            value=np.bool_(True),
            duration_ms="x",
            steps=2.0,
            finish_reason=3,
            logs=None,
            turns=["one", [{"a": 1}]],
        )
    )
    assert (answer.text, answer.cost, answer.steps, answer.finish_reason) == ("", 0.5, 2, "3")
    assert answer.usage == Usage(input=5)
    assert answer.value is True
    assert answer.duration_ms is None
    assert [turn.text for turn in answer.turns] == ["one", ""]
    assert normalize(Answer(cost=float("inf"))).cost is None
    assert normalize(Answer(usage={"input": 3, "output": None})).usage == Usage(input=3)


def replayed(answer):
    """The answer as a recording gives it back."""
    line = json.loads(json.dumps(recording_line(Task(("q",)), answer), allow_nan=False))
    return answer_from_fields(unpack(line, line.pop("types", {}))["answer"])


HOSTILE = [
    2**70,
    -(2**70),
    float("nan"),
    float("-inf"),
    D("NaN"),
    D("1.10"),
    np.float32(1.5),
    np.datetime64("2024-01-02T03:04:05.000000006"),
    np.datetime64("NaT", "us"),
    np.timedelta64(5, "s"),
    np.timedelta64(5, "us"),
    np.datetime64("2024-01"),
    np.array([[1, 2]]),
    np.array(["2024-01-01"], dtype="datetime64[ns]"),
    np.void(b"ab"),
    pd.Timestamp("2024-01-01", tz="Europe/Berlin"),
    pd.Timestamp(1, unit="ns"),
    pd.Timedelta("1s"),
    pd.Interval(1, 2),
    pd.NA,
    pd.NaT,
    "\ud800 lone",
    "x" * 1_000_000,
    b"\xff\x00",
    bytearray(b"a"),
    memoryview(b"a"),
    uuid.UUID(int=5),
    dt.timedelta(days=-1),
    dt.time(1, 2, tzinfo=dt.UTC),
    {"$type": "mine", "value": 1},
    {1: 2, (1, 2): 3, None: 4},
    {1, 2},
    object(),
    Strange(),
    10**5000,
]


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: type(value).__name__)
def test_hostile_values_never_break_an_answer_or_its_json(value):
    answer = normalize(
        Answer(
            text="\udfff",
            data=[{"v": value, "w": [value]}],
            value=value,
            tool_calls=(ToolCall("t", args={"v": value}, result=[{"v": value}]),),
            conversation=[value],
        )
    )
    back = replayed(answer)
    assert recording_line(Task(("q",)), back) == recording_line(Task(("q",)), answer)
    cell = answer.data.column(0)[0]
    if cell == cell:
        assert back.data.column(0)[0] == cell
        assert type(back.data.column(0)[0]) is type(cell) or isinstance(cell, dt.datetime)


def test_cycles_and_depth_end():
    loop: list = []
    loop.append(loop)
    mapping: dict = {}
    mapping["self"] = mapping
    answer = normalize(Answer(tool_calls=(ToolCall("t", args=loop, result=mapping),), conversation=loop))
    replayed(answer)


def test_the_meaning_of_foreign_scalars_is_kept():
    assert plain_tree(np.datetime64("2024-01-02")) == dt.date(2024, 1, 2)
    assert plain_tree(np.timedelta64(5, "s")) == dt.timedelta(seconds=5)
    assert plain_tree(pd.Timestamp("2024-01-02 03:04:05")) == dt.datetime(2024, 1, 2, 3, 4, 5)
    assert plain_tree(np.array(["2024-01-02"], "datetime64[ns]")) == [dt.datetime(2024, 1, 2)]
    assert plain_tree(np.datetime64("20000-01-02")) == "20000-01-02"
    assert plain_tree(pd.NA) is None
    assert clean_text("a\ud83d\ude00b\ud800") == "a\U0001f600b�"


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.decimals(allow_nan=False)
    | st.dates()
    | st.datetimes()
    | st.times()
    | st.timedeltas()
    | st.binary()
    | st.uuids()
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(scalars | st.just("$type"), inner, max_size=3)
    ),
)


@given(values)
def test_what_is_written_down_is_read_as_the_same_values(value):
    plain, kinds = json.loads(json.dumps(pack(plain_tree(value), exact=True), allow_nan=False))
    assert unpack(plain, kinds) == plain_tree(value)


def test_a_type_that_nobody_knows_is_named():
    with pytest.raises(ValueError, match=r"unknown \$type 'x'; known: bytes, date"):
        decode({"$type": "x"})


def test_an_answer_in_json_by_a_program():
    answer = answer_from_mapping(
        {
            "text": "done",
            "data": {"columns": ["n", ["d", "DATE"]], "rows": [[1, None]], "types": {"n": "BIGINT"}},
            "tool_calls": [{"name": "execute_sql", "args": {"sql": "select 1"}}],
            "usage": {"input": 3},
            "turns": [{"text": "one"}],
        },
        "command x",
    )
    assert (answer.data.names, answer.data.types) == (["n", "d"], ["BIGINT", "DATE"])
    assert answer.turns == (Answer(text="one"),)
    assert rows(answer_from_mapping({"data": {"columns": ["b"], "data": [{"a": 1, "b": 2}]}}, "x")) == (
        ["b"],
        [(2,)],
    )


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ({"txt": "x"}, "command x answered with an unknown key 'txt', did you mean 'text'?"),
        (
            {"data": {"a": 1}},
            "answered with data that is no table: found the keys ['a']; allowed: a list of objects",
        ),
        ({"data": {"columns": ["a"], "rows": [[1, 2]]}}, "row 0 has 2 values, expected 1"),
        ({"data": {"columns": [5], "rows": []}}, "answered with data that is no table"),
    ],
)
def test_a_bad_answer_in_json_says_what_is_wrong(form, text):
    with pytest.raises(AgentFailed) as caught:
        answer_from_mapping(form, "command x")
    assert text in str(caught.value)


def test_what_holds_itself_or_lies_too_deep_is_dots_that_tell_values_apart():
    """Dots stand for what is not followed; two of them are equal only where what they stand for is."""

    def nested(leaf, levels):
        for _ in range(levels):
            leaf = {"a": [leaf]}
        return leaf

    itself: list = []
    itself += [itself, itself]
    assert str(plain_tree({"a": itself})).count("...") == 16
    for levels in (29, 31, 90):
        assert plain_tree(nested(1, levels)) == plain_tree(nested(1, levels))
        assert plain_tree(nested(1, levels)) != plain_tree(nested(2, levels))
    endless = nested(1, 3000)
    assert plain_tree(endless) == plain_tree(endless)
    assert plain_tree(endless) != plain_tree(nested(1, 3000))  # cannot be looked at: never taken for equal
