"""Dates, times and durations in every spelling, and those that Python's own types cannot hold."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pyarrow as pa
import pytest

from pytest_agenteval.compare import compare
from pytest_agenteval.compare.values.sql_types import kind_of_values
from pytest_agenteval.compare.values.temporal import (
    beyond_python,
    read_interval,
    read_moment,
    read_time,
)
from pytest_agenteval.table import Column, Table

MOMENT = dt.datetime(2024, 1, 2, 3, 4, 5)


def one(kind: str | None, *values: Any) -> Table:
    return Table((Column("x", kind),), (list(values),), len(values))


def judged(kind: str | None, expected: Any, *answers: Any) -> list[bool]:
    """The verdict of both engines on each answer."""
    found = []
    for answer in answers:
        plain = compare(one(kind, expected), one(None, answer)).matched
        large = compare(one(kind, *[expected] * 1100), one(None, *[answer] * 1100)).matched
        assert plain == large
        found.append(plain)
    return found


@pytest.mark.parametrize(
    "text",
    ["2024-01-02T03:04:05+0000", "2024-01-02 03:04:05 UTC", "2024-01-02t03:04:05z", "2024-01-02T03:04:05Z",
     "2024-01-02 08:34:05+0530", "2024-01-02 08:34:05+05:30", "2024-01-02 05:04:05+02",
     "2024-01-02 03:50:13+00:46:08", "2024-01-01T22:04:05-05"],
)  # fmt: skip
def test_offsets_as_people_write_them(text: str) -> None:
    assert judged("TIMESTAMPTZ", MOMENT.replace(tzinfo=dt.UTC), text) == [True]
    assert judged("TIMESTAMP", MOMENT, text, text.replace("2024", "2025")) == [True, False]


@pytest.mark.parametrize("text", ["2024-01-02T03:04:05+24", "2024-01-02T03:04:05+00:60", "2024-01-02 03:04 X",
                                  "2024-13-02", "0000-01-01", "0000-01-01 BC", "2024-01-02 BC 10:00 BC",
                                  "2024-01-02 24:00:00", "infinit", "20240102", "2024-01", ""])  # fmt: skip
def test_what_is_no_date(text: str) -> None:
    assert read_moment(text) is None
    assert not beyond_python(text)


def test_dates_beyond_python_keep_their_order_and_distance() -> None:
    day = 86_400_000_000
    assert read_moment("0001-01-01") == day
    assert read_moment("0001-12-31 BC") == read_moment("0001-12-31 (BC)") == read_moment("+0001-01-01") - day  # type: ignore[operator]
    assert read_moment("10000-01-01") == read_moment("9999-12-31") + day  # type: ignore[operator]
    assert (
        read_moment("-0043-03-15") == read_moment("0044-03-15 (BC)") == read_moment("0044-03-15 00:00:00 BC")
    )
    assert read_moment("0044-03-15 (BC) 10:00:00") == read_moment("0044-03-15 10:00:00 BC")
    assert read_moment(" Infinity ") == math.inf == read_moment("+infinity") == read_moment(math.inf)
    assert read_moment("-infinity") == -math.inf
    assert read_moment(1.5) is None
    assert beyond_python("20000-01-01")
    assert beyond_python("infinity")
    assert not beyond_python("9999-12-31 23:59:59.999999")


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP", "TIMESTAMPTZ"])
def test_infinity_equals_infinity_and_nothing_else(kind: str) -> None:
    last = dt.date.max if kind == "DATE" else dt.datetime.max
    assert judged(kind, "infinity", "infinity", "Infinity", "-infinity", "9999-12-31", "infinite", None) == [
        True, True, False, False, False, False]  # fmt: skip
    assert judged(kind, last, "infinity", str(last)) == [False, True]
    # what DuckDB's client gives for it; a text says what it says
    assert judged(kind, "infinity", last) == [True]
    assert judged(kind, "-infinity", type(last).min, last) == [True, False]
    ends = Table((Column("x", kind),), (["infinity", last],), 2)
    assert not compare(ends, one(None, last, last)).matched


def test_an_array_holds_infinity_as_such() -> None:
    days = pa.array([2**31 - 1, 0], pa.int32()).cast(pa.date32())
    expected = Table((Column("x", "DATE"),), (days,), 2)
    assert compare(expected, one(None, "infinity", "1970-01-01")).matched
    assert compare(expected, expected).matched
    last = pa.array([dt.date.max, dt.date(1970, 1, 1)])
    assert not compare(expected, Table((Column("x"),), (last,), 2)).matched
    assert compare(Table((Column("x", "DATE"),), (last,), 2), one(None, dt.date.max, "1970-01-01")).matched
    ticks = pa.array([2**63 - 1, 0], pa.timestamp("ns"))
    assert compare(
        Table((Column("x", "TIMESTAMP"),), (ticks,), 2), one(None, "infinity", "1970-01-01")
    ).matched


@pytest.mark.parametrize("kind", ["DATE[]", "STRUCT(a DATE)", "MAP(VARCHAR, DATE)"])
def test_infinity_inside_a_value(kind: str) -> None:
    def wrapped(value: Any) -> Any:
        return [value] if kind == "DATE[]" else {"a": value}

    answers = [wrapped("infinity"), wrapped(dt.date.max), wrapped("9999-12-31"), wrapped("-infinity")]
    assert judged(kind, wrapped("infinity"), *answers) == [True, True, False, False]


def test_a_column_of_dates_without_a_type_may_hold_infinity() -> None:
    assert kind_of_values([dt.date(2024, 1, 1), "infinity", None]).name == "date"
    assert kind_of_values([dt.datetime(2024, 1, 1), "20000-01-01 10:00:00"]).name == "timestamp"
    assert kind_of_values([dt.date(2024, 1, 1), "soon"]).name == "any"
    assert kind_of_values(["infinity"]).name == "text"
    expected = one(None, dt.date(2024, 1, 1), "infinity")
    assert compare(expected, one(None, "infinity", "2024-01-01")).matched


def test_times_of_day() -> None:
    day = 86_400_000_000
    assert read_time("24:00:00") == day == read_time(dt.timedelta(days=1))
    assert read_time("24:00:01") is None
    assert read_time("12:34:56+25") is None
    assert read_time(5) is None
    zone = dt.timezone(dt.timedelta(hours=2))
    noon = dt.time(12, 34, 56, tzinfo=zone)
    assert judged("TIME WITH TIME ZONE", noon, "12:34:56+02", "12:34:56+02:00", "12:34:56+0200", "10:34:56Z",
                  "10:34:56", "12:34:56", "12:34:56+03", noon) == [
        True, True, True, True, True, False, False, True]  # fmt: skip
    assert judged("TIME", dt.time(0), "24:00:00", "00:00") == [False, True]
    assert read_time("00:30:00+02") == read_time("22:30:00")


@pytest.mark.parametrize(
    ("value", "duckdb", "postgres"),
    [
        ("1 year 2 mons 5 days", 425, 430),
        ("P1Y2M5D", 425, 430),
        ("14 mons 5 days", 425, 430),
        (pa.MonthDayNano([14, 5, 0]), 425, 430),
        ("-14 mons", -420, -425),
        ("@ 1 year 2 mons ago", -420, -425),
        ("-P1Y", -360, -365),
        ("2 mons", 60, 60),
        (dt.timedelta(days=430), 430, 430),
        ("1.5 months", 45, 45),
        ("P0.5Y", 180, 180),
        ("1 week 00:00:00", 7, 7),
    ],
)
def test_months_of_an_interval(value: Any, duckdb: int, postgres: int) -> None:
    day = 86_400_000_000
    assert read_interval(value) == duckdb * day
    assert read_interval(value, 365) == postgres * day


@pytest.mark.parametrize("text", ["P", "1 fortnight", "x", "", "1 day 99:99:99", "P1.2.3D", "a" * 300, 5])
def test_what_is_no_duration(text: Any) -> None:
    assert read_interval(text) is None


def test_postgres_counts_a_year_as_its_drivers_do() -> None:
    kind = "INTERVAL (year = 365 days)"
    assert judged(kind, "1 year", "P12M", dt.timedelta(days=365), "365 days", "360 days") == [
        True, True, True, False]  # fmt: skip
    assert judged("INTERVAL", dt.timedelta(days=360), "1 year", "12 months") == [True, True]


def test_other_values_of_typed_columns() -> None:
    """What is no bit, address, range, geometry, hstore or tuple is equal to itself alone."""
    assert judged("BIT", "101", b"\x05\xfd", "101", "102", 101, 5.5) == [True, True, False, True, False]
    assert judged("INET", "10.0.0.1", "10.0.0.1/32", "10.0.0.1/24", "home") == [True, False, False]
    assert judged("INT4RANGE", "[1,5)", "[1, 5)", " [1,5) ", "[1,5]", 5) == [True, True, False, False]
    point = "POINT (1 2)"
    assert judged("GEOMETRY", point, "SRID=4326;POINT(1.0 2)", "POINT(2 1)", "somewhere", 5, b"\x01") == [
        True, False, False, False, False]  # fmt: skip
    wkb = "0101000000000000000000f03f0000000000000040"
    line = "010200000002000000" + "00" * 32
    assert judged("GEOMETRY", "POINT (1 2)", wkb, wkb[:-2], "0109000000") == [True, False, False]
    assert judged("GEOMETRY", "LINESTRING (0 0, 0 0)", line, "LINESTRING(0 0,0 0)") == [True, True]
    assert judged("GEOMETRY", "POINT EMPTY", "0101000000000000000000f87f000000000000f87f") == [True]
    assert judged("HSTORE", '"a"=>"1"', {"a": 1}, '{"a": "1"}', '"a"=>"2"', '"a"=>"1" x', 5, "a") == [
        True, True, False, False, False, False]  # fmt: skip
    pair = (1, "a")
    assert judged("TUPLE(INTEGER, VARCHAR)", pair, [1, "a"], '[1, "a"]', {"x": 1, "y": "a"}, [1], "?") == [
        True, True, True, False, False]  # fmt: skip
    entries = [[["a", 1]], [("a", 1)], [["a", 1, 2]]]
    assert judged("MAP(VARCHAR, INTEGER)", {"a": 1}, *entries) == [True, True, False]
    assert judged("BIT VARYING(5)", "101", "101") == [True]
    spelled = ["\\xdead", "\\xDEAD", "0xdead", "dead", "\\xDE\\xAD", "\\xdeae", 5]
    assert judged("BYTEA", b"\xde\xad", *spelled) == [
        True, True, True, True, True, False, False]  # fmt: skip
    assert judged("MONEY", 12.5, "$12.50", 12.5, "12.6") == [True, True, False]


def test_columns_that_only_the_array_engine_reads_by_value() -> None:
    spans = pa.array([pa.MonthDayNano([1, 0, 0]), pa.MonthDayNano([2, 0, 0])])
    table = Table((Column("x", "INTERVAL"),), (pa.chunked_array([spans] * 600),), 1200)
    assert compare(table, one(None, *["P30D", "P60D"] * 600)).matched
    assert not compare(table, one(None, *["P30D", "P61D"] * 600)).matched
    far = pa.array([[2**31 - 1]] * 1100, pa.list_(pa.int32())).cast(pa.list_(pa.date32()))
    ends = Table((Column("x", "DATE[]"), Column("p")), (far, ["5 %"] * 1100), 1100)
    other = Table((Column("x"), Column("q")), (far, ["5"] * 1100), 1100)
    assert compare(ends, ends).matched
    assert not compare(ends, other).matched
