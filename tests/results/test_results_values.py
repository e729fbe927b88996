from __future__ import annotations

import datetime as dt
import enum
import json
import math
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agenteval.results.document.load import answer_of, read_document
from pytest_agenteval.support.json_codec import dumps, pack, plain_column, unpack
from pytest_agenteval.table import Table

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.floats()
    | st.decimals(allow_nan=False)
    | st.text()
    | st.binary(max_size=8)
    | st.dates()
    | st.datetimes(timezones=st.none() | st.just(dt.UTC))
    | st.times()
    | st.timedeltas()
    | st.uuids()
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


def there_and_back(value: Any) -> Any:
    plain, kinds = pack(value)
    return unpack(strict(dumps(plain)), json.loads(dumps(kinds)))


def strict(text: str) -> Any:
    """Parse as a strict reader would: no NaN, no number beyond 2**53."""
    assert text.isascii()

    def refuse(word: str) -> Any:
        raise AssertionError(f"not strict JSON: {word}")

    def whole(digits: str) -> int:
        assert abs(int(digits)) <= 2**53, digits
        return int(digits)

    return json.loads(text, parse_constant=refuse, parse_int=whole)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or a == b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and a == b


@settings(max_examples=300)
@given(values)
def test_any_value_comes_back_through_strict_json_as_it_was(value):
    assert same(there_and_back(value), value)


def test_a_column_of_one_kind_is_noted_once_and_nulls_do_not_break_it():
    rows = [{"x": Decimal("1.10"), "y": 1}, {"x": None}, {"x": Decimal(2)}]
    assert pack(rows) == ([{"x": "1.10", "y": 1}, {"x": None}, {"x": "2"}], {"/*/x": "decimal"})


def test_a_column_of_several_kinds_is_noted_cell_by_cell():
    assert pack([Decimal(1), "1", dt.date(2026, 1, 2)])[1] == {"/0": "decimal", "/2": "date"}
    assert pack([math.nan, None])[1] == {"/0": "nan"}
    assert pack([[Decimal(1)], [None, Decimal(2)], 5])[1] == {"/*/*": "decimal"}
    assert pack([[Decimal(1)], ["1"]])[1] == {"/0/*": "decimal"}
    assert pack([{"0": Decimal(1)}, ["1"]])[1] == {"/0/0": "decimal"}
    stars = [[Decimal(1)], {"*": "1"}]
    assert unpack(*pack(stars)) == stars
    assert pack([{"0": Decimal(1)}, []])[1] == {"/*/0": "decimal"}


def test_keys_that_look_like_pointers_are_escaped():
    value = {"*": [2**60], "a/b": {"~": Decimal(1)}, "~2": Decimal(2)}
    plain, kinds = pack(value)
    assert kinds == {"/~2/*": "int", "/a~1b/~0": "decimal", "/~02": "decimal"}
    assert unpack(plain, kinds) == value


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (2**53, 2**53),
        (2**70, "1180591620717411303424"),
        (-(2**70), "-1180591620717411303424"),
        (math.nan, None),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (Decimal("NaN"), "NaN"),
        (b"\x00\xff", "00ff"),
        (bytearray(b"a"), "61"),
        (memoryview(b"a"), "61"),
        ((1, "a"), [1, "a"]),
        ({"b": 1, 2: "x", None: 0}, {"b": 1, "2": "x", "null": 0}),
        (frozenset({3}), [3]),
        (PurePosixPath("a/b"), "a/b"),
        (enum.Enum("Colour", {"RED": "red"}).RED, "red"),
        (enum.IntEnum("Number", {"TWO": 2}).TWO, 2),
        (np.int64(7), 7),
        (np.uint64(2**63), str(2**63)),
        (np.bool_(True), True),
        (np.float64(1.5), 1.5),
        (np.float64("nan"), None),
        (np.float32("inf"), "Infinity"),
        (np.str_("x"), "x"),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.datetime64("2026-01-02T03:04:05.000000006"), "2026-01-02T03:04:05"),
        (np.datetime64("NaT", "us"), None),
        (pd.NaT, None),
        (pd.NA, None),
        (pd.Timestamp("2026-01-02"), "2026-01-02T00:00:00"),
        (pd.Series([1, 2]), [1, 2]),
        (pa.scalar(5), 5),
        (type("Text", (str,), {"__str__": lambda self: "other"})("own"), "own"),
    ],
)
def test_hostile_and_foreign_values_have_a_plain_form(value, plain):
    found = pack(value)[0]
    assert found == plain
    assert type(found) is type(plain)
    strict(dumps(found))


def test_a_float32_comes_back_as_one():
    back = there_and_back({"x": np.float32(0.1)})["x"]
    assert isinstance(back, np.float32)
    assert back == np.float32(0.1)


def test_tables_frames_and_arrow_tables_come_back_as_tables():
    table = Table.from_rows(["a", "a"], [[1, Decimal("1.5")], [2, None]], ["INTEGER", "DECIMAL(3,1)"])
    back = there_and_back({"data": table})["data"]
    assert (back.names, back.types, list(back.rows())) == (table.names, table.types, list(table.rows()))
    frame = pd.DataFrame({"x": [1.5, None], "when": pd.to_datetime(["2026-01-02", None])})
    assert list(there_and_back(frame).rows()) == [(1.5, dt.datetime(2026, 1, 2)), (None, None)]
    arrow = pa.table({"x": pa.array([Decimal("1.10")])})
    assert list(there_and_back(arrow).rows()) == [(Decimal("1.10"),)]
    empty = there_and_back(Table((), (), 3))
    assert (empty.columns, empty.row_count) == ((), 3)


@pytest.mark.parametrize(
    ("column", "kinds"),
    [
        (["a", None, True], 0),
        ([1.5, None], 0),
        ([1, None, 2], 0),
        ([1, 2**60], 1),
        ([1.5, math.inf], 1),
        ([Decimal(1), None], 1),
        ([dt.date(2026, 1, 1), "x"], 1),
    ],
)
def test_columns_take_a_quick_path_only_where_nothing_is_lost(column, kinds):
    plain, found = plain_column(column)
    assert len(found) == kinds
    strict(dumps(plain))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\ud800", '"\\\\ud800"'),
        ("a\udfffb", '"a\\\\udfffb"'),
        ("😀", '"\\ud83d\\ude00"'),
        ("\\ud800", '"\\\\ud800"'),
        ("\\\ud800", '"\\\\\\\\ud800"'),
        ("\ud800😀\udc00", '"\\\\ud800\\ud83d\\ude00\\\\udc00"'),
    ],
)
def test_lone_surrogates_become_text_and_nothing_else_does(text, shown):
    assert dumps(text) == shown
    json.loads(dumps(text)).encode("utf-8")


def test_cycles_depth_and_odd_objects_end_in_text():
    loop: list[Any] = []
    loop.append(loop)
    assert pack(loop)[0] == ["<circular>"]
    deep: Any = "end"
    for _ in range(3000):
        deep = [deep]
    strict(dumps(pack(deep)[0]))

    class Odd:
        def __repr__(self) -> str:
            raise ValueError("no")

    assert pack(Odd())[0] == "<Odd: its text could not be made: ValueError>"
    assert pack({Odd(): 1})[0] == {"<Odd: its repr raised ValueError>": 1}
    assert pack(object)[0] == "<class 'object'>"
    assert pack(np.array([1], dtype=[("a", "i4")])[0])[0] == {"a": 1}
    assert pack(np.dtype("int64"))[0] == "int64"
    mixed = pd.DataFrame({"x": [1, "a"]}, dtype=object)  # Arrow has no column for that
    assert pack(mixed)[0]["rows"] == [[1], ["a"]]
    far = pa.array([2**62], pa.timestamp("s"))  # no date of Python's reaches there
    assert pack(far)[0] == ["146138514283-06-19 07:45:04"]


def test_kinds_that_do_not_fit_leave_the_value_as_it_stands():
    assert unpack({"a": "x", "l": [1]}, {"/a": "decimal", "/b": "int", "/l/7": "int", "/l/x": "int"}) == {
        "a": "x",
        "l": [1],
    }
    assert unpack("x", {"": "no such kind"}) == "x"
    assert unpack("x", {"/deeper": "int"}) == "x"
    assert unpack({"s": [[1]]}, {"/s": "set"}) == {"s": {(1,)}}


def test_uuid_is_read_back():
    value = UUID(int=5)
    assert there_and_back([value]) == [value]


def test_an_integer_too_long_for_decimal_text_is_kept_in_hexadecimal():
    plain, kinds = pack([10**5000])
    assert (plain, kinds) == ([hex(10**5000)], {"/*": "int"})
    assert unpack(plain, kinds) == [10**5000]


def test_results_of_version_0_1_are_read_with_their_types() -> None:
    document = read_document(Path(__file__).parents[1] / "data" / "version_0_1" / "results.json")
    answer = answer_of(document.entry(0))
    first = next(iter(answer.data.rows()))
    assert first[:4] == (
        Decimal("1.10"),
        dt.date(2024, 1, 2),
        dt.datetime(2024, 1, 2, 3, 4, tzinfo=dt.UTC),
        2**70,
    )
    assert first[4:] == (
        b"\x00\xff",
        UUID(int=5),
        dt.timedelta(days=-1, seconds=5),
        float("inf"),
        [Decimal("2.5")],
    )
    assert answer.value == Decimal("7.50")
    assert answer.tool_calls[0].result == {"data": [{"t": dt.time(1)}]}
