"""Values of frames, drivers and libraries: what each means, and nothing is changed on the way in."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import ipaddress
import sqlite3
import uuid
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pydantic
import pytest
import sqlalchemy
from sqlalchemy.dialects.postgresql import Range

from pytest_agenteval.agents.normalize import normalize
from pytest_agenteval.compare import compare
from pytest_agenteval.errors import AgentFailed
from pytest_agenteval.extraction import executed_queries
from pytest_agenteval.support.scalars import plain as shallow
from pytest_agenteval.support.scalars import plain_tree as plain
from pytest_agenteval.table import Table
from pytest_agenteval.types import Answer, ToolCall

D = decimal.Decimal
MASKED = np.ma.MaskedArray


class Colour(enum.Enum):
    RED = "red"
    PAIR = (1, 2)


class Level(enum.IntEnum):
    LOW = 1


class Amount(D):
    pass


class Fake(dt.datetime):
    pass


class Day(dt.date):
    pass


class Clock(dt.time):
    pass


class Span(dt.timedelta):
    pass


class Point(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass
class Row:
    n: int
    tags: list[str]


class Model(pydantic.BaseModel):
    n: int


class Bounds:
    def __init__(self, lower: Any, upper: Any, lower_inc: bool = True, upper_inc: bool = False) -> None:
        self.lower, self.upper, self.lower_inc, self.upper_inc = lower, upper, lower_inc, upper_inc
        self.isempty = lower == upper is not None


class Spark(tuple):
    def asDict(self) -> dict[str, Any]:
        return {"a": self[0]}


class Duration:
    years, months, days, hours, minutes, seconds, microseconds = 1, 2, 3, 4, 5, 6, 500_000


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError("no")

    @property
    def months(self) -> int:
        raise ZeroDivisionError


class Items(collections.UserList):  # type: ignore[type-arg]
    pass


MEANINGS: list[tuple[Any, Any]] = [
    (Colour.RED, "red"),
    (Colour.PAIR, "PAIR"),
    (Level.LOW, 1),
    (Amount("1.10"), D("1.10")),
    (Fake(2024, 1, 2, 3, tzinfo=dt.UTC), dt.datetime(2024, 1, 2, 3, tzinfo=dt.UTC)),
    (Day(2024, 1, 2), dt.date(2024, 1, 2)),
    (Clock(3, 4, fold=1), dt.time(3, 4, fold=1)),
    (Span(days=1), dt.timedelta(days=1)),
    (fractions.Fraction(1, 4), 0.25),
    (1 + 2j, "(1+2j)"),
    (ipaddress.ip_address("10.0.0.1"), "10.0.0.1"),
    (ipaddress.ip_network("10.0.0.0/8"), "10.0.0.0/8"),
    (Bounds(1, 5), "[1,5)"),
    (Bounds(None, dt.date(2024, 1, 2), upper_inc=True), "(,2024-01-02]"),
    (Bounds(dt.datetime(2024, 1, 1), None), '["2024-01-01 00:00:00",)'),
    (Bounds(3, 3), "empty"),
    (Range(1, 5, bounds="[]"), "[1,5]"),
    (Range(empty=True), "empty"),
    (Items([Bounds(1, 2), Bounds(4, 5)]), "{[1,2),[4,5)}"),
    (Point(1, 2), {"x": 1, "y": 2}),
    (Row(1, ["a"]), {"n": 1, "tags": ["a"]}),
    (Model(n=3), {"n": 3}),
    (Spark((7,)), {"a": 7}),
    (collections.OrderedDict(a=1), {"a": 1}),
    (collections.deque([1, 2]), [1, 2]),
    ({3, 1}, [1, 3]),
    (pa.MonthDayNano([14, 3, 1_500_000_000]), "P14M3DT1.5S"),
    (Duration(), "P14M3DT14706.5S"),
    (pa.scalar(5), 5),
    (pa.array([1, None]), [1, None]),
    (np.int64(3), 3),
    (np.bool_(True), True),
    (np.float32(0.5), 0.5),
    (np.longdouble(0.5), 0.5),
    (np.str_("a"), "a"),
    (np.clongdouble(1), "(1+0j)"),
    (np.datetime64("2024-01"), dt.date(2024, 1, 1)),
    (np.datetime64("2024-01-02T03:04:05.5"), dt.datetime(2024, 1, 2, 3, 4, 5, 500_000)),
    (np.datetime64("2024-01-02T03"), dt.datetime(2024, 1, 2, 3)),
    (np.datetime64("20000-01-02"), "20000-01-02"),
    (np.datetime64("NaT", "us"), None),
    (np.timedelta64(90, "s"), dt.timedelta(seconds=90)),
    (np.timedelta64("NaT", "us"), None),
    (np.array([(1, "a")], dtype=[("n", "i4"), ("t", "U1")])[0], {"n": 1, "t": "a"}),
    (np.array([1, 2]), [1, 2]),
    (np.array(["2024-01-01", "NaT"], "datetime64[ns]"), [dt.datetime(2024, 1, 1), None]),
    (MASKED([1, 2], mask=[False, True]), [1, None]),
    (MASKED(["2024-01-01", "2024-01-02"], [False, True], "datetime64[us]"), [dt.datetime(2024, 1, 1), None]),
    (np.array([MASKED([1, 2], [False, True]), MASKED([3], [True])], dtype=object), [[1, None], [None]]),
    (np.ma.masked, None),
    (pd.NA, None),
    (pd.NaT, None),
    (pd.Timestamp("2024-01-02 03:04"), dt.datetime(2024, 1, 2, 3, 4)),
    (pd.Timestamp(np.datetime64(2**63 - 1, "us")), "infinity"),
    (pd.Timestamp(np.datetime64("20000-01-01T10:00:00", "us")), "20000-01-01 10:00:00"),
    (pd.Timedelta("1 day"), dt.timedelta(days=1)),
    (pd.Period("2024-01", "M"), "2024-01"),
    (pd.Period("2024Q1"), "2024Q1"),
    (pd.Interval(0, 10), "(0, 10]"),
    (pd.Series([1, 2]), [1, 2]),
    (pd.DataFrame({"a": [1]}), [{"a": 1}]),
    (polars.Series([1, None]), [1, None]),
    (polars.DataFrame({"a": [1]}), [{"a": 1}]),
]


@pytest.mark.parametrize(("value", "meaning"), MEANINGS, ids=lambda value: type(value).__name__)
def test_a_value_means_the_same_on_both_sides(value: Any, meaning: Any) -> None:
    found = plain(value)
    assert found == meaning
    assert type(found) is type(meaning)
    # the reference's side reads a driver's objects by the same function, and so does the comparison
    expected = Table.from_rows(["x"], [[plain(value)]])
    for answered in (Table.from_rows(["x"], [[value]]), normalize([{"x": value}]).data):
        assert compare(expected, answered).matched
    assert plain({"deep": [[value]]}) == {"deep": [[found]]}


def test_what_cannot_be_read_is_said_and_stops_nothing() -> None:
    assert plain(Hostile()) == "<Hostile: its text could not be made: RuntimeError>"
    assert shallow(Hostile()).startswith("<Hostile")
    assert shallow(uuid.UUID(int=5)) == uuid.UUID(int=5)


def test_null_in_a_list_of_a_frame_is_null() -> None:
    frame = duckdb.sql("SELECT [1, 2, NULL]::INT[] AS x, [[true, NULL]] AS y").df()
    assert normalize(frame).data.records() == [{"x": [1, 2, None], "y": [[True, None]]}]
    numpy = duckdb.sql("SELECT [1, 2, NULL]::INT[] AS x").fetchnumpy()
    assert normalize([{"x": numpy["x"][0]}]).data.column(0) == [[1, 2, None]]
    call = ToolCall("execute_sql", {"sql": "SELECT 1"}, frame)
    (query,) = executed_queries(normalize(Answer(tool_calls=(call,))))
    assert query.table is not None
    assert query.table.column(0) == [[1, 2, None]]
    zero = Table.from_rows(["x"], [[[1, 2, 0]]], ["INTEGER[]"])
    assert not compare(zero, normalize(frame[["x"]]).data).matched
    assert not compare(zero, query.table).matched


@pytest.mark.parametrize(
    ("frame", "records"),
    [
        (pd.DataFrame({"r": ["EU"], "v": [1.5]}).groupby("r").sum(), [{"r": "EU", "v": 1.5}]),
        (
            pd.DataFrame({"r": ["EU"], "s": [1], "v": [2]}).groupby(["r", "s"]).sum(),
            [{"r": "EU", "s": 1, "v": 2}],
        ),
        (pd.DataFrame({"r": ["EU", "EU"]})["r"].value_counts(), [{"r": "EU", "count": 2}]),
        (pd.DataFrame({"v": [1, 2]}, index=[5, 6]), [{"v": 1}, {"v": 2}]),
        (pd.DataFrame({"v": [1, 2]})[1:], [{"v": 2}]),
        (pd.DataFrame({"d": ["x"], "v": [1]}).pivot(columns="d", values="v"), [{"x": 1}]),
        (
            pd.DataFrame({"r": ["EU"], "v": [1]}).groupby("r").agg({"v": ["sum", "max"]}),
            [{"r": "EU", "v_sum": 1, "v_max": 1}],
        ),
        (pd.Series([1, 2], name="n"), [{"n": 1}, {"n": 2}]),
        (
            pd.DataFrame({"m": pd.to_datetime(["2024-01-05"]).to_period("M"), "b": pd.cut([3], [0, 10])}),
            [{"m": "2024-01", "b": "(0, 10]"}],
        ),
        (pd.DataFrame({"c": pd.Categorical(["a", None])}), [{"c": "a"}, {"c": None}]),
        (pd.DataFrame({"d": [dt.date(2024, 1, 2), dt.datetime(2024, 1, 2, 10)]}, dtype=object),
         [{"d": dt.date(2024, 1, 2)}, {"d": dt.datetime(2024, 1, 2, 10)}]),
        (pd.DataFrame({"d": [{"a": 1}, {"b": 2}]}), [{"d": {"a": 1}}, {"d": {"b": 2}}]),
        (pd.DataFrame({"t": pd.Series(["a", None, float("nan")], dtype=object)}),
         [{"t": "a"}, {"t": None}, {"t": None}]),
        (pd.DataFrame({"t": pd.arrays.SparseArray([1, 0])}), [{"t": 1}, {"t": 0}]),
        (pd.DataFrame({"n": [2**70, None]}, dtype=object), [{"n": 2**70}, {"n": None}]),
    ],
)  # fmt: skip
def test_what_a_frame_says_arrives(frame: Any, records: list[dict[str, Any]]) -> None:
    assert normalize(frame).data.records() == records
    call = normalize(Answer(tool_calls=(ToolCall("t", {}, frame),))).tool_calls[0]
    assert call.result["data"] == records


def test_an_arrow_table_of_a_frame_says_the_same() -> None:
    named = pd.DataFrame({"r": ["EU"], "v": [1.5]}).groupby("r").sum()
    assert normalize(pa.Table.from_pandas(named)).data.records() == [{"v": 1.5, "r": "EU"}]
    unnamed = pd.DataFrame({"v": [1, 2]}, index=[5, 6])
    assert normalize(pa.Table.from_pandas(unnamed)).data.records() == [{"v": 1}, {"v": 2}]
    times = pd.DataFrame({"m": pd.to_datetime(["2024-01-05"]).to_period("M"), "b": pd.cut([3], [0, 10])})
    assert normalize(pa.Table.from_pandas(times)).data.records() == [{"m": "2024-01", "b": "(0, 10]"}]


def test_rows_of_drivers_are_records_also_inside_a_cell() -> None:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    row = connection.execute("SELECT 1 AS n, 'a' AS t").fetchone()
    assert plain([row]) == [{"n": 1, "t": "a"}]
    with sqlalchemy.create_engine("sqlite://").connect() as opened:
        found = opened.execute(sqlalchemy.text("SELECT 1 AS n")).fetchall()
    assert plain({"cell": found}) == {"cell": [{"n": 1}]}
    assert normalize(found).data.records() == [{"n": 1}]


def rows_of(raw: Any) -> list[dict[str, Any]]:
    return normalize(raw).data.records()  # type: ignore[no-any-return]


def counted() -> Any:
    yield {"n": 1}
    yield {"n": 2}


TWO = [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize(
    ("raw", "records"),
    [
        ([Point(1, 2), Point(3, 4)], [{"x": 1, "y": 2}, {"x": 3, "y": 4}]),
        ([Row(1, ["a"])], [{"n": 1, "tags": ["a"]}]),
        (Row(1, ["a"]), [{"n": 1, "tags": ["a"]}]),
        ([Model(n=1), Model(n=2)], TWO),
        (Model(n=1), TWO[:1]),
        (Point(1, 2), [{"x": 1, "y": 2}]),
        ({"columns": ["n"], "rows": [[1], [2]]}, TWO),
        ({"columns": ["n"], "data": TWO}, TWO),
        ({"n": [1, 2]}, TWO),
        ({"n": 1}, TWO[:1]),
        ({"result": TWO}, TWO),
        ({"text": "Two.", "data": TWO}, TWO),
        ({"data": {"columns": ["n"], "rows": [[1], [2]]}}, TWO),
        (counted(), TWO),
        (iter(TWO), TWO),
        (map(dict, TWO), TWO),
        ([{"type": "text", "text": '[{"n": 1}, {"n": 2}]'}], TWO),
        (polars.DataFrame({"n": [1, 2]}), TWO),
        (polars.LazyFrame({"n": [1, 2]}), TWO),
        (polars.Series("n", [1, 2]), TWO),
        (pd.Series([1, 2], name="n"), TWO),
        (np.array([(1,), (2,)], dtype=[("n", "i4")]), TWO),
        (duckdb.sql("SELECT range + 1 AS n FROM range(2)"), TWO),
        (pa.table({"n": [1, 2]}), TWO),
        (pa.table({"n": [1, 2]}).to_reader(), TWO),
        ([], []),
        (Answer(data=counted()), TWO),
        (Answer(data=[(1,), (2,)], tool_calls=({"name": "x", "args": {"sql": "SELECT n FROM t"}},)), TWO),
        (Answer(data={"n": [1, 2]}), TWO),
    ],
    ids=lambda raw: type(raw).__name__,
)  # fmt: skip
def test_what_python_agents_return_as_a_table(raw: Any, records: list[dict[str, Any]]) -> None:
    assert rows_of(raw) == records


def test_results_and_cursors_of_databases_are_tables() -> None:
    with sqlalchemy.create_engine("sqlite://").connect() as opened:
        assert rows_of(opened.execute(sqlalchemy.text("SELECT 1 AS n"))) == [{"n": 1}]
        empty = normalize(opened.execute(sqlalchemy.text("SELECT 1 AS n WHERE 1 = 0"))).data
        assert (empty.names, empty.row_count) == (["n"], 0)
    assert rows_of(sqlite3.connect(":memory:").execute("SELECT 1 AS n")) == [{"n": 1}]
    assert rows_of(duckdb.connect().execute("SELECT 1 AS n")) == [{"n": 1}]


@pytest.mark.parametrize("rows", [[(1, 2)], [[1, 2], [3, 4]], {"result": [(1, 2)]}])
def test_rows_without_names_say_what_would_name_them(rows: Any) -> None:
    with pytest.raises(AgentFailed) as caught:
        normalize(rows)
    assert str(caught.value) == (
        "the agent returned rows without column names; return dicts or a DataFrame (.df() of a DuckDB "
        "result), {columns: [...], rows: [...]}, or the query's ToolCall with its sql, whose SELECT list "
        "names them"
    )
    call = {"name": "execute_sql", "args": {"sql": "SELECT a, b, c FROM t"}}
    with pytest.raises(AgentFailed, match="rows without column names"):
        normalize(Answer(data=[(1, 2)], tool_calls=(call,)))


def test_rows_of_other_columns_are_an_error() -> None:
    with pytest.raises(AgentFailed, match="returned rows that cannot be read: the columns n are declared"):
        normalize({"columns": ["n"], "rows": [{"m": 1}]})
    with pytest.raises(AgentFailed, match="no row has one of the columns n"):
        normalize({"text": "", "data": {"columns": ["n"], "rows": [{"m": 1}]}})


def test_a_dict_with_text_is_an_answer_as_from_a_program() -> None:
    answer = normalize({"text": "Three.", "tool_calls": [{"name": "t", "args": {}}], "usage": {"input": 3}})
    assert (answer.text, answer.tool_calls[0].name, answer.usage.input) == ("Three.", "t", 3)  # type: ignore[union-attr]
    assert rows_of({"text": "Three.", "id": 3}) == [{"text": "Three.", "id": 3}]
    assert normalize({"value": 3}).value == 3
