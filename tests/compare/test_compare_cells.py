"""Which cells are equal, type by type: the table of the contract, each line on both paths."""

import datetime as dt
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from pytest_agenteval.compare import compare, parse_options
from pytest_agenteval.compare import tables as comparing
from pytest_agenteval.table import Table

UUID = uuid.UUID("3f2504e0-4f89-11d3-9a0c-0305e82c3301")
UTC = dt.UTC
EAST = dt.timezone(dt.timedelta(hours=1))
MOMENT = dt.datetime(2024, 1, 31, 10, 0)
D = Decimal

EQUAL = [
    ("VARCHAR", " a\u0301 ", "\u00e1"),
    ("VARCHAR", "12345", 12345.0),
    ("VARCHAR", "1.5", 1.5),
    ("VARCHAR", "true", True),
    ("VARCHAR", "0.0000001", 1e-7),
    ("VARCHAR", "10000000000000000000000", 1e22),
    ("VARCHAR", "Infinity", float("inf")),
    ("VARCHAR", "1.50", D("1.50")),
    ("VARCHAR", "100", D("1E+2")),
    ("VARCHAR", '{"a": 1, "b": [true, null]}', {"b": [True, None], "a": 1.0}),
    ("VARCHAR", "[1.5]", [1.5]),
    ("VARCHAR", "2024-01-31", dt.date(2024, 1, 31)),
    ("VARCHAR", str(UUID), UUID),
    ("ENUM('a', 'b')", "a", " a"),
    ("INTEGER", 1234, "$1,234"),
    ("INTEGER", 1234, "1.234,00"),
    ("INTEGER", 1234, "1 234 EUR"),
    ("INTEGER", -7, "(7)"),
    ("INTEGER", -7, "7-"),
    ("INTEGER", -7, "- 7"),
    ("INTEGER", 1, True),
    ("INTEGER", 1, "+1.0"),
    ("INTEGER", 12, "12%"),
    ("BIGINT", 1234567890123456800, 1.2345678901234568e18),
    ("HUGEINT", 10**30, "1" + "0" * 30),
    ("DECIMAL(10,0)", D(5), 5),
    ("DECIMAL(12)", D(5), "5.0"),
    ("INTEGER", None, "  "),
    ("INTEGER", 3, np.int64(3)),
    ("INTEGER", None, pd.NA),
    ("DOUBLE", 1234.5, "US$1'234.50"),
    ("DOUBLE", 1234.5, "A$ 1,234.50"),
    ("DOUBLE", 1234.5, "1\u202f234,5"),
    ("DOUBLE", 1.5, "1,5"),
    ("DOUBLE", 1.2345, "1,2345"),
    ("DOUBLE", 1234.0, "1,234"),
    ("DOUBLE", 1.234, "1.234"),
    ("DOUBLE", 1234567.5, "12,34,567.5"),
    ("DOUBLE", -0.125, "-12.5 %"),
    ("DOUBLE", 12.5, "12.5%"),
    ("DOUBLE", 1e-7, "1E-7"),
    ("DOUBLE", 0.5, ".5"),
    ("DOUBLE", 5.0, "5."),
    ("DOUBLE", 1e22, 10**22),
    ("DOUBLE", float("nan"), None),
    ("DOUBLE", None, "NaN"),
    ("DOUBLE", float("-inf"), "-Infinity"),
    ("DOUBLE", float("inf"), D("Infinity")),
    ("DOUBLE", None, D("NaN")),
    ("FLOAT", np.float32(0.1).item(), 0.1),
    ("REAL", 0.5, "0.5"),
    ("DECIMAL(38,2)", D("12345678901234567890.12"), "12345678901234567890.12"),
    ("NUMERIC", D("1.5"), 1.5),
    ("BOOLEAN", True, "TRUE"),
    ("BOOLEAN", False, "F"),
    ("BOOLEAN", True, 1.0),
    ("BOOLEAN", False, "0"),
    ("DATE", dt.date(2024, 1, 31), dt.datetime(2024, 1, 31)),
    ("DATE", dt.date(2024, 1, 31), "2024-01-31 00:00"),
    ("DATE", dt.date(1, 1, 1), "0001-01-01"),
    ("DATE", dt.date(9999, 12, 31), "9999-12-31T00:00:00.000Z"),
    ("TIMESTAMP", MOMENT, "2024-01-31T11:00:00+01:00"),
    ("TIMESTAMP", MOMENT, "2024-01-31 10:00:00.0000009Z"),
    ("TIMESTAMP", MOMENT, MOMENT.replace(tzinfo=UTC)),
    ("TIMESTAMP", MOMENT, np.datetime64("2024-01-31T10:00:00")),
    ("TIMESTAMP", MOMENT, pd.Timestamp(MOMENT)),
    ("TIMESTAMP", None, pd.NaT),
    ("TIMESTAMP", dt.datetime(2024, 1, 31), dt.date(2024, 1, 31)),
    ("TIMESTAMP WITH TIME ZONE", MOMENT.replace(tzinfo=UTC), "2024-01-31T05:30:00-04:30"),
    ("TIMESTAMPTZ", MOMENT.replace(tzinfo=UTC), MOMENT.replace(hour=11, tzinfo=EAST)),
    ("TIME", dt.time(10, 0), "10:00"),
    ("TIME", dt.time(10, 0, 0, 500000), "10:00:00.5"),
    ("TIME", dt.time(10, 0), dt.timedelta(hours=10)),
    ("INTERVAL", dt.timedelta(days=1, hours=2, minutes=30), "1 day 02:30:00"),
    ("INTERVAL", dt.timedelta(days=1, hours=2, minutes=30), "P1DT2H30M"),
    ("INTERVAL", dt.timedelta(seconds=-90.5), "-00:01:30.5"),
    ("INTERVAL", dt.timedelta(days=60, seconds=1.5), "2 months 1.5 secs"),
    ("INTERVAL", dt.timedelta(days=-7), "-P1W"),
    ("INTERVAL", dt.timedelta(hours=3), np.timedelta64(3, "h")),
    ("JSON", '{"a": [1, 2.5], "b": null}', {"b": None, "a": [1.0, 2.5]}),
    ("JSON", '"x"', "x"),
    ("JSON", "null", None),
    ("UUID", UUID, str(UUID).upper()),
    ("BLOB", b"\xde\xad", "DEAD"),
    ("BLOB", b"\xdeA", "\\xDEA"),
    ("BLOB", b"ab", bytearray(b"ab")),
    ("INTEGER[]", [1, None, 3], "[1, null, 3]"),
    ("INTEGER[]", [1, 2], np.array([1, 2])),
    ("DOUBLE[]", [0.1, 0.3], [0.1, 0.30000000000000004]),
    ("INTEGER[][]", [[1], []], ((1,), ())),
    ("INTEGER[3]", (1, 2, 3), [1, 2, 3]),
    ("LIST<DATE>", [dt.date(2024, 1, 31)], ["2024-01-31"]),
    ('STRUCT(x INTEGER, "y z" DATE)', {"x": 1, "y z": dt.date(2024, 1, 1)}, '{"y z": "2024-01-01", "x": 1}'),
    ("STRUCT(a INTEGER, b DOUBLE)", {"a": 1, "b": None}, {"a": 1}),
    ("MAP(INTEGER, DOUBLE)", {1: 0.5, 2: 1.5}, '{"2": 1.5, "1": 0.5}'),
    ("MAP(VARCHAR, INTEGER)", {"a": 1, "b": 2}, [("b", 2), ("a", 1)]),
    (None, 3, "3"),
    (None, "a", " a"),
    (None, 2.5, "2.5"),
    (None, D("2.5"), 2.5),
    (None, True, "t"),
    (None, dt.date(2024, 1, 31), "2024-01-31"),
    (None, MOMENT.replace(tzinfo=UTC), "2024-01-31T10:00:00Z"),
    (None, dt.time(1), "01:00"),
    (None, dt.timedelta(1), "1 day"),
    (None, b"a", "61"),
    (None, UUID, str(UUID)),
    (None, [1, {"a": 2}], [1, {"a": 2.0}]),
    (None, None, None),
    ("GEOMETRY", "POINT (1 1)", "POINT (1 1)"),
]

DIFFERENT = [
    ("VARCHAR", "02134", 2134, "leading_zeros"),
    ("VARCHAR", "1.10", "1.1", "values_differ"),
    ("VARCHAR", "1,2", 12, "values_differ"),
    ("VARCHAR", '{"a": 1}', '{"a":1}', "whitespace"),
    ("VARCHAR", '{"a": 1}', {"a": 2}, "type"),
    ("VARCHAR", "[1", [1], "type"),
    ("VARCHAR", "x", b"x", "type"),
    ("VARCHAR", None, "", "null_vs_empty"),
    ("VARCHAR", None, "None", "null_vs_text"),
    ("VARCHAR", "x", None, "null_instead_of_value"),
    ("VARCHAR", None, 0, "null_vs_zero"),
    ("VARCHAR", None, False, "null_vs_false"),
    ("INTEGER", 0, 0.004, "values_differ"),
    ("INTEGER", 1234, "1.234", "scaled"),
    ("INTEGER", 3, "3k", "type"),
    ("INTEGER", 2, float("inf"), "values_differ"),
    ("INTEGER", 1, "0,123", "type"),
    ("INTEGER", 7, "1.234.567", "type"),
    ("INTEGER", 7, "7 apples", "type"),
    ("INTEGER", 7, "XYZ 7", "type"),
    ("INTEGER", 7, "$7%", "type"),
    ("INTEGER", 7, "--7", "type"),
    ("INTEGER", 7, 10**30000, "type"),
    ("INTEGER", 7, "1e6000", "type"),
    ("BIGINT", 9007199254740993, 9007199254740992.0, "precision_lost"),
    ("DOUBLE", 1.0, True, "type"),
    ("DOUBLE", 1.0, "1_0", "type"),
    ("DOUBLE", 1.0, [1.0], "type"),
    ("DOUBLE", 1.0, D("1E+9000"), "type"),
    ("DOUBLE", 15.0, "1,5", "values_differ"),
    ("DOUBLE", float("inf"), 1e308, "values_differ"),
    ("DOUBLE", None, 0, "null_vs_zero"),
    ("DOUBLE", float("nan"), 0, "values_differ"),
    ("DOUBLE", None, "None", "null_vs_text"),
    ("BOOLEAN", True, "yes", "type"),
    ("BOOLEAN", True, 2, "type"),
    ("BOOLEAN", False, None, "null_vs_false"),
    ("DATE", dt.date(2024, 1, 31), "20240131", "date_format"),
    ("DATE", dt.date(2024, 1, 31), "2024-01", "date_format"),
    ("DATE", dt.date(2024, 1, 31), "2024-02-30", "date_format"),
    ("DATE", dt.date(2024, 1, 31), 1706659200, "date_format"),
    ("DATE", dt.date(2024, 1, 31), "2024-01-31T25:00:00", "date_format"),
    ("DATE", dt.date(2024, 1, 31), "2024-01-31T10:61", "date_format"),
    ("DATE", dt.date(2024, 1, 31), "2024-01-31T00:00+99:00", "date_format"),
    ("DATE", dt.date(2024, 1, 31), "2024-02-02", "date_shift"),
    ("TIMESTAMP", MOMENT, "2024-01-31", "truncated"),
    ("TIMESTAMP", MOMENT, "2024-01-31T12:30:00", "timezone_shift"),
    ("TIMESTAMP", MOMENT.replace(second=30, microsecond=5), "2024-01-31T10:00:30", "truncated"),
    ("TIME", dt.time(10, 0), "22:00", "values_differ"),
    ("TIME", dt.time(10, 0), "25:00", "type"),
    ("TIME", dt.time(10, 0), dt.timedelta(days=2), "type"),
    ("TIME", dt.time(10, 0), 36000, "type"),
    ("INTERVAL", dt.timedelta(hours=1), "1 fortnight", "type"),
    ("INTERVAL", dt.timedelta(hours=1), "P", "type"),
    ("INTERVAL", dt.timedelta(hours=1), "P1.2.3D", "type"),
    ("INTERVAL", dt.timedelta(hours=1), "1:99", "type"),
    ("INTERVAL", dt.timedelta(hours=1), "2 hours", "values_differ"),
    ("INTERVAL", dt.timedelta(hours=1), "", "type"),
    ("UUID", UUID, UUID.hex, "type"),
    ("BLOB", b"\xde\xad", "3q0=", "type"),
    ("BLOB", b"\xde\xad", 57005, "type"),
    ("INTEGER[]", [1, 2], [2, 1], "list_order"),
    ("INTEGER[]", [1, 2], "1, 2", "type"),
    ("VARCHAR", "a, b", "b, a", "list_order"),
    ("STRUCT(a INTEGER)", {"a": 1}, {"a": 1, "b": 2}, "values_differ"),
    ("STRUCT(a INTEGER)", {"a": 1}, "nope", "type"),
    ("MAP(VARCHAR, INTEGER)", {"a": 1}, 3, "type"),
    ("JSON", '{"a": 1}', "not json", "values_differ"),
    ("JSON", "[1.5]", [1.6], "values_differ"),
]


def shown_id(value):
    return type(value).__name__ if isinstance(value, int) and value > 10**100 else repr(value)[:40]


@pytest.fixture(params=[10**9, -1], ids=["plain", "arrays"])
def path(request, monkeypatch):
    monkeypatch.setattr(comparing, "PLAIN_CELLS", request.param)


def one(kind, expected, actual, **options):
    left = Table.from_rows(["v"], [(expected,)], [kind])
    return compare(left, Table.from_records([{"v": actual}]), parse_options(options))


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize(("kind", "expected", "actual"), EQUAL, ids=shown_id)
def test_equal(kind, expected, actual):
    found = one(kind, expected, actual)
    assert found.matched, found.diagnosis


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize(("kind", "expected", "actual", "word"), DIFFERENT, ids=shown_id)
def test_different_with_its_word(kind, expected, actual, word):
    found = one(kind, expected, actual)
    assert not found.matched
    assert found.diagnosis.word in word.split("_or_")


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize(
    ("kind", "expected", "actual", "options"),
    [
        ("VARCHAR", "Straße", "STRASSE", {"string_case": "insensitive"}),
        ("VARCHAR", None, " ", {"null_as_empty": True}),
        ("INTEGER", None, 0, {"null_as_zero": True}),
        ("DOUBLE", 0.0, None, {"null_as_zero": True}),
        ("DOUBLE", 0.125, 12.5, {"percent": "either"}),
        ("DOUBLE", 12.5, "0.125", {"percent": "either"}),
        ("INTEGER", 1000, 1009, {"per_column": {"V": {"rtol": 0.01}}}),
        ("INTEGER", 2**70, 2**70 + 5, {"per_column": {"v": {"atol": 5}}}),
        ("DOUBLE", 123456.0, 123000.0, {"significant": 3}),
        ("DOUBLE", 0.9, 0.88, {"significant": 1}),
        ("DOUBLE", 1.5, 1.6, {"per_column": {"v": {"decimals": 0, "rounding_guard": None}}}),
    ],
)
def test_options_that_allow(kind, expected, actual, options):
    assert not one(kind, expected, actual).matched
    assert one(kind, expected, actual, **options).matched


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize(
    ("kind", "expected", "actual", "options"),
    [
        ("INTEGER", 1, 100, {"percent": "either"}),
        ("INTEGER", 1000, 1009, {"rtol": 0.01}),
        ("DOUBLE", 123456.0, 124000.0, {"significant": 3}),
        ("DOUBLE", 10.0, 10.001, {"decimals": None}),
        ("DOUBLE", 0.0, 0.004, {}),
        ("DECIMAL(18,4)", D("100000.0000"), D("100000.0001"), {"rtol": 0, "atol": 0, "decimals": None}),
        (
            "DECIMAL(38,2)",
            D("12345678901234567890.12"),
            "12345678901234567890.13",
            {"rtol": 0, "decimals": None},
        ),
    ],
)
def test_options_that_do_not(kind, expected, actual, options):
    assert not one(kind, expected, actual, **options).matched


def test_percent_cells_are_all_scaled_by_the_same_factor():
    left = Table.from_rows(["k", "v"], [("a", 0.125), ("b", 7.0), ("c", 0.5)], ["VARCHAR", "DOUBLE"])
    right = [{"k": "a", "v": "12.5%"}, {"k": "b", "v": 7}, {"k": "c", "v": "50 %"}]
    assert compare(left, Table.from_records(right)).matched
    right[2]["v"] = "0.5%"
    assert not compare(left, Table.from_records(right)).matched


def test_a_float_column_of_the_answer_shows_its_short_form():
    """0.03 as FLOAT is 0.029999999329447746; shown as 0.03 it is two decimals of 0.0312."""
    left = Table.from_rows(["v"], [(0.0312,)], ["DOUBLE"])
    right = Table.from_rows(["v"], [(np.float32(0.03).item(),)], ["FLOAT"])
    assert compare(left, right).message == "match (rounded)"


def test_mixed_columns_without_a_type():
    left = Table.from_rows(["v"], [(1,), ("a",), (2.5,), (b"x",), (dt.date(2024, 1, 1),), (None,)])
    right = Table.from_rows(
        ["v"], [("a",), (2.5000000001,), (1.0,), (dt.date(2024, 1, 1),), (b"x",), (None,)]
    )
    assert compare(left, right).matched


def test_several_spellings_of_one_object():
    left = Table.from_rows(["v"], [('{"a": 1}',), ('{"a":1}',)], ["VARCHAR"])
    assert compare(left, Table.from_records([{"v": {"a": 1}}, {"v": {"a": 1.0}}])).matched
    assert not compare(left, Table.from_records([{"v": {"a": 1}}, {"v": {"a": 2}}])).matched
