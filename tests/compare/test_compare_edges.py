"""Corners that no other test meets: odd inputs, odd types, odd mappings."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pytest_agenteval.compare import compare, parse_options, render
from pytest_agenteval.compare import tables as comparing
from pytest_agenteval.compare.ordering import order_indexes
from pytest_agenteval.compare.result import MappedColumn
from pytest_agenteval.compare.values.canonical import plain_form
from pytest_agenteval.compare.values.sql_types import ANY, Kind, kind_of, kind_of_values
from pytest_agenteval.support.scalars import is_null, plain
from pytest_agenteval.support.text import escape_line
from pytest_agenteval.table import Table


@pytest.fixture(params=[10**9, -1], ids=["plain", "arrays"])
def path(request, monkeypatch):
    monkeypatch.setattr(comparing, "PLAIN_CELLS", request.param)


@pytest.mark.usefixtures("path")
def test_rows_of_one_text_column_are_replaced_not_changed():
    expected = Table.from_rows(["city"], [("Paris",), ("Rome",), ("Oslo",)], ["VARCHAR"])
    found = compare(expected, Table.from_records([{"city": c} for c in ("Paris", "Rome", "Lima")]))
    assert found.diagnosis.word == "rows_differ"
    assert [row.state for row in found.sample] == ["missing", "extra"]
    numbers = Table.from_rows(["n"], [(1,), (2,), (3,)], ["INTEGER"])
    assert compare(numbers, Table.from_rows(["n"], [(1,), (2,), (9,)])).diagnosis.word == "values_differ"


@pytest.mark.usefixtures("path")
def test_one_value_per_side_differs_in_every_row():
    expected = Table.from_rows(["city"], [("Paris",), ("Rome",)], ["VARCHAR"])
    found = compare(expected, Table.from_records([{"city": "Oslo"}, {"city": "Lima"}]))
    assert found.diagnosis.word == "values_differ"


@pytest.mark.usefixtures("path")
def test_infinities_beside_numbers():
    inf = float("inf")
    expected = Table.from_rows(["x"], [(inf,), (-inf,), (1.5,), (None,)], ["DOUBLE"])
    actual = Table.from_rows(["x"], [(None,), ("-inf",), (1.5,), (Decimal("Infinity"),)])
    assert compare(expected, actual).matched
    other = compare(expected, Table.from_rows(["x"], [(inf,), (-inf,), (2.5,), (None,)]))
    assert other.sample[0].cells[0].delta == "+1"
    worse = compare(expected, Table.from_rows(["x"], [(7.0,), (-inf,), (1.5,), (None,)]))
    assert worse.sample[0].cells[0].delta == ""


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("kind", ["TIMESTAMP", "DATE", "TIME"])
def test_arrow_moments_of_every_unit(kind):
    moment = dt.datetime(2024, 1, 31)
    for unit in ("s", "ms", "us", "ns"):
        if kind == "TIME":
            if unit in ("s", "ms"):
                data = pa.array([dt.time(10)], pa.time32(unit))
            else:
                data = pa.array([dt.time(10)], pa.time64(unit))
            expected = Table.from_rows(["t"], [(dt.time(10),)], ["TIME"])
        else:
            data = pa.array([moment], pa.timestamp(unit))
            expected = Table.from_rows(["t"], [(moment,)], [kind])
        assert compare(expected, Table.from_arrow(pa.table({"t": data}))).matched
    assert compare(
        Table.from_rows(["d"], [(moment.date(),)], ["DATE"]),
        Table.from_arrow(pa.table({"d": pa.array([moment.date()], pa.date64())})),
    ).matched


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("INTEGER", pa.array([1, 2], pa.uint64())),
        ("INTEGER", pa.array([1.0, 2.0])),
        ("INTEGER", pa.array([Decimal(1), Decimal(2)])),
        ("INTEGER", pa.array(["1", "2"]).dictionary_encode()),
        ("INTEGER", np.array([1, 2], np.uint8)),
        ("INTEGER", np.array([1, 2], object)),
        ("DOUBLE", pa.array([1, 2])),
        ("DOUBLE", pa.array([1.0, 2.0], pa.float32())),
        ("DOUBLE", pa.array([Decimal("1.000"), Decimal("2.000")])),
        ("DOUBLE", pa.array([Decimal("1.0"), Decimal("2.0")], pa.decimal256(60, 1))),
        ("DECIMAL(38,10)", pa.array([Decimal(1), Decimal(2)], pa.decimal128(38, 30))),
        ("VARCHAR", pa.array(["1", " 2"], pa.large_string())),
        ("VARCHAR", pa.array([1, 2])),
        ("BOOLEAN", pa.array([1, 1])),
        ("VARCHAR", pa.chunked_array([pa.array(["1"]), pa.array(["2"])])),
        ("VARCHAR", pa.chunked_array([], pa.string())),
        ("INTEGER", pa.nulls(2)),
        ("UBIGINT", pa.array([2**64 - 1, 1], pa.uint64())),
        ("BIGINT", pa.array([None, None], pa.float64())),
    ],
)
def test_every_form_of_an_arrow_column(kind, data):
    values = {
        "BOOLEAN": [True, True],
        "VARCHAR": ["1", "2"],
        "UBIGINT": [2**64 - 1, 1],
        "DECIMAL(38,10)": [Decimal(1), Decimal(2)],
        "BIGINT": [None, None],
    }.get(kind, [1, 2])
    size = len(data)
    if isinstance(data, pa.Array) and pa.types.is_null(data.type):
        values = [None, None]
    expected = Table.from_rows(["v"], [(v,) for v in values[:size]], [kind])
    actual = Table((type(expected.columns[0])("v"),), (data,), size)
    assert compare(expected, actual).matched


@pytest.mark.usefixtures("path")
def test_big_numbers_in_arrow():
    whole = 2**60 + 1
    expected = Table.from_rows(["x"], [(float(whole),), (1e18,)], ["DOUBLE"])
    assert compare(expected, Table.from_arrow(pa.table({"x": [whole, 10**18]}))).matched
    exact = Table.from_rows(["n"], [(10**30,)], ["HUGEINT"])
    assert compare(exact, Table.from_arrow(pa.table({"n": pa.array([Decimal(10) ** 30])}))).matched
    assert compare(exact, Table.from_arrow(pa.table({"n": pa.array([1e30])}))).matched
    far = Table.from_arrow(pa.table({"t": pa.array([2**62], pa.timestamp("s"))}))
    assert not compare(Table.from_rows(["t"], [(None,)], ["TIMESTAMP"]), far).matched


@pytest.mark.usefixtures("path")
def test_texts_of_every_kind():
    long = "x" * 100
    for mine, theirs in [
        (["é", "b"], ["b", "e\u0301"]),
        ([long, "b"], ["b", long]),
        (["", "b"], ["b", ""]),
        ([None, "b"], ["b", None]),
        (["a" * 9, "a" * 17], ["a" * 17, "a" * 9]),
        (["b", "c"] * 200, ["c", "b"] * 200),
    ]:
        expected = Table.from_arrow(pa.table({"t": mine}))
        assert compare(expected, Table.from_arrow(pa.table({"t": theirs}))).matched
        theirs = [*theirs[:-1], "other"]
        assert not compare(expected, Table.from_arrow(pa.table({"t": theirs}))).matched


@pytest.mark.usefixtures("path")
def test_lists_with_free_ties_by_text():
    rows = [(f"group {i // 3}", i) for i in range(400)]
    expected = Table.from_rows(["g", "n"], rows, ["VARCHAR", "INTEGER"])
    options = parse_options({"ordered": True, "order_by": ["g"]})
    moved = [rows[i - i % 3 + (i + 1) % 3] if i < 399 else rows[i] for i in range(400)]
    assert compare(expected, Table.from_rows(["g", "n"], moved), options).matched
    assert not compare(expected, Table.from_rows(["g", "n"], rows[3:] + rows[:3]), options).matched


@pytest.mark.usefixtures("path")
def test_a_strict_list_without_known_keys():
    expected = Table.from_rows(["n"], [(3,), (1,), (2,)], ["INTEGER"])
    options = parse_options({"ordered": True, "order_by": ["somewhere else"]})
    assert compare(expected, Table.from_rows(["n"], [(3,), (1,), (2,)]), options).matched
    found = compare(expected, Table.from_rows(["n"], [(1,), (3,), (2,)]), options)
    assert found.diagnosis.sentence == "the same rows in another order: 2 out of place, the first at row 1"
    assert order_indexes(expected, parse_options({"order_by": ["N"]})) == [0]
    assert order_indexes(expected, parse_options({"order_by": ["1"]})) == [0]
    assert order_indexes(expected, parse_options({"order_by": ["2"]})) is None


@pytest.mark.usefixtures("path")
def test_ordered_sets_keep_the_first_of_equal_rows():
    expected = Table.from_rows(["n", "x"], [(1, 1.5), (1, 1.5), (2, 2.5)], ["INTEGER", "DOUBLE"])
    options = parse_options({"ordered": True, "duplicates": "set"})
    assert compare(expected, Table.from_rows(["n", "x"], [(1, 1.5), (2, 2.5), (2, 2.5)]), options).matched
    turned = compare(expected, Table.from_rows(["n", "x"], [(2, 2.5), (1, 1.5)]), options)
    assert turned.diagnosis.word == "order_reversed"
    fewer = compare(expected, Table.from_rows(["n", "x"], [(1, 1.5)]), options)
    assert (fewer.message, fewer.diagnosis.word) == ("values differ", "rows_missing")


@pytest.mark.usefixtures("path")
def test_a_limit_through_a_tie_without_ordered():
    expected = Table.from_rows(["k", "n"], [("a", 9), ("b", 8), ("c", 7)], ["VARCHAR", "INTEGER"])
    actual = Table.from_rows(["k", "n"], [("d", 7), ("b", 8), ("a", 9)])
    assert compare(expected, actual, parse_options({"order_by": ["n desc"]})).diagnosis.word == "limit_tie"
    lost = Table.from_rows(["k", "m"], [("d", 7), ("b", 8), ("a", 9)])
    found = compare(expected, lost, parse_options({"order_by": ["n desc"], "columns": "name"}))
    assert (found.message, found.diagnosis.word) == ("missing columns: ['n']", "limit_tie")
    assert found.diagnosis.sentence.startswith("`n` ~ `m` (names differ): only rows that tie with the last")


@pytest.mark.usefixtures("path")
def test_percent_either_leaves_a_trace():
    expected = Table.from_rows(["k", "rate"], [("a", 0.1), ("b", 0.25)], ["VARCHAR", "DOUBLE"])
    actual = Table.from_rows(["k", "rate"], [("a", 10.0), ("b", 25.0)])
    found = compare(expected, actual, parse_options({"percent": "either"}))
    assert found.leniencies == ("`rate`: taken times 0.01 (percent: either)",)
    renamed = Table.from_rows(["k", "quota"], [("a", "10%"), ("b", "25%")])
    assert compare(expected, renamed).matched
    hundreds = Table.from_rows(["k", "rate"], [("a", 10.0), ("b", 25.0)], ["VARCHAR", "DOUBLE"])
    assert compare(hundreds, renamed).matched
    plain_renamed = Table.from_rows(["k", "quota"], [("a", 10), ("b", 25)])
    assert compare(expected, plain_renamed, parse_options({"percent": "either"})).matched
    worse = Table.from_rows(["k", "rate"], [("a", "11%"), ("b", "25%")])
    assert not compare(expected, worse).matched


def test_kinds():
    assert kind_of("STRUCT(,)") == ANY
    assert kind_of("MAP(VARCHAR)") == ANY
    assert kind_of("TIME WITH TIME ZONE") == Kind("time")
    assert kind_of("DATETIME WITH TIME ZONE") == Kind("instant")
    assert kind_of("double precision") == Kind("float")
    assert kind_of("ARRAY(INTEGER)").parts == (Kind("integer"),)
    assert kind_of("") is None
    assert kind_of("NOTHING KNOWN") is None
    assert kind_of_values([dt.date(2024, 1, 1), dt.datetime(2024, 1, 1)]) == Kind("timestamp")
    assert kind_of_values([1, Decimal("1.5")]) == Kind("decimal")
    assert kind_of_values([1, 1.5]) == Kind("float")
    assert kind_of_values([np.int64(1), None, float("nan")]) == Kind("integer")
    assert kind_of_values([1, "a"]) == ANY


def test_nulls_and_wrappers():
    assert is_null(np.float64("nan"))
    assert is_null(pd.NA)
    assert plain(np.datetime64("NaT", "us")) is None
    assert plain(np.timedelta64("NaT", "us")) is None
    assert plain(np.bool_(True)) is True
    assert plain_form(float("nan")) == "nan"
    assert plain_form(Decimal("Infinity")) == "Infinity"
    assert plain_form(Decimal("1E+9000")) == "1E+9000"


def test_text_that_may_act_is_written_out():
    assert escape_line("a\u200bb\u00a0c\ud800\x07\u2028") == "a\\u200bb c\\ud800\\x07\\u2028"
    assert MappedColumn("a", "a", "name").text == "a"
    found = compare(Table.from_rows(["k"], [("a",)], ["VARCHAR"]), Table.from_rows(["k"], [("b" * 300,)]))
    assert all(len(line) <= 40 for line in render(found, 10))


@pytest.mark.usefixtures("path")
def test_values_inside_untyped_nests():
    values = [[True, 10**30000, float("inf"), dt.time(1), b"x"], {"a": None}]
    expected = Table.from_rows(["v"], [(v,) for v in values])
    assert compare(expected, Table.from_rows(["v"], [(v,) for v in values[::-1]])).matched
    assert not compare(expected, Table.from_rows(["v"], [([False],), ({"a": 1},)])).matched
    typed = Table.from_rows(["v"], [({"a": 1},)], ["MAP(VARCHAR, INTEGER)"])
    assert not compare(typed, Table.from_rows(["v"], [([[1, 2, 3]],)])).matched
    nulls = Table.from_rows(["n"], [(None,), (0,)], ["INTEGER"])
    options = parse_options({"per_column": {"n": {"atol": 1, "null_as_zero": True}}})
    assert compare(nulls, Table.from_rows(["n"], [(0,), (None,)]), options).matched
