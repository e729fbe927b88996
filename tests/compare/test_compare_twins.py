"""Columns as drivers hand them over (Arrow of every type, NumPy, lists), on both engines alike."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pytest_agenteval.compare import compare, parse_options
from pytest_agenteval.compare import tables as comparing
from pytest_agenteval.compare.result import Comparison
from pytest_agenteval.table import Column, Table


def table(*columns: tuple[str, str | None, Any]) -> Table:
    """A table of columns as they come: (name, SQL type, list or array)."""
    rows = len(columns[0][2])
    return Table(tuple(Column(n, t) for n, t, _ in columns), tuple(data for *_, data in columns), rows)


def one(kind: str | None, data: Any) -> Table:
    return table(("x", kind, data))


def both(expected: Table, actual: Table, **options: Any) -> Comparison:
    """What both engines say, which must be the same."""
    found = []
    for cells in (10**9, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(comparing, "PLAIN_CELLS", cells)
            found.append(compare(expected, actual, parse_options(options)))
    plain, vector = found
    assert (plain.matched, plain.message, plain.diagnosis and plain.diagnosis.word) == (
        vector.matched,
        vector.message,
        vector.diagnosis and vector.diagnosis.word,
    )
    return vector


DAY = dt.date(2024, 1, 31)
TIMES = [dt.time(1, 2, 3), None, dt.time(23, 59, 59, 999999)]


@pytest.mark.parametrize(
    ("kind", "expected", "actual"),
    [
        ("BIGINT", [1, None, 3], pa.array([1.0, None, 3.0])),
        ("BIGINT", [None, None], pa.array([None, None], pa.float64())),
        ("BIGINT", [None, None], pa.nulls(2)),
        ("BIGINT", [1, 2], np.array([2, 1])),
        ("BIGINT", [1, 2], pa.array([1, 2], pa.decimal128(18, 0))),
        ("BIGINT", [1, 2], pa.chunked_array([[1], [2]])),
        ("BIGINT", [1, 2], pa.array([2, 1]).dictionary_encode()),
        ("DOUBLE", [2.0**60, 1.0], pa.array([2**60, 1])),
        ("DOUBLE", [1.5, None], np.array([1.5, np.nan])),
        ("FLOAT", pa.array([0.1, 1.5], pa.float32()), pa.array([1.5, 0.1], pa.float32())),
        ("TIME", TIMES, pa.array(TIMES, pa.time64("us"))),
        ("TIME", [dt.time(1, 2, 3)], pa.array([dt.time(1, 2, 3)], pa.time32("s"))),
        ("TIME", pa.array(TIMES, pa.time64("ns")), TIMES),
        ("TIME", [dt.time(1, 2, 3)], ["01:02:03"]),
        ("DATE", [DAY], pa.array([DAY], pa.date64())),
        ("TIMESTAMP", [dt.datetime(2024, 1, 31)], pa.array([DAY], pa.date32())),
        ("INTEGER[]", [[1, 2], None], pa.array([[1, 2], None])),
        ("MAP(VARCHAR, INTEGER)", [{"a": 1}], [[("a", 1)]]),
        ("VARCHAR", ["a" * 70, "b"], pa.array(["b", "a" * 70])),
        ("VARCHAR", [None, None], pa.array([None, None], pa.string())),
        ("VARCHAR", pa.nulls(2, pa.string()), pa.array([None, None], pa.string())),
        ("VARCHAR", ["1.5", None], [1.5, Decimal("sNaN")]),
        ("JSON", [{"a": float("inf")}], [{"a": float("inf")}]),
        (None, [DAY, dt.datetime(2024, 1, 31, 5)], [dt.datetime(2024, 1, 31, 5), dt.datetime(2024, 1, 31)]),
    ],
)
def test_the_same_values_in_other_clothes(kind: str | None, expected: Any, actual: Any) -> None:
    found = both(one(kind, expected), one(None, actual))
    assert found.matched, found.diagnosis


@pytest.mark.parametrize(
    ("kind", "expected", "actual"),
    [
        ("BIGINT", [1, 2], pa.array([1.0, 2.5])),
        ("BIGINT", [1, 2], pa.array([1, 2**64 - 1], pa.uint64())),
        ("DOUBLE", [2.0**60, 1.0], pa.array([2**61, 1])),
        ("TIME", TIMES, pa.array([*TIMES[::-1][:2], dt.time(5)], pa.time64("us"))),
        ("TIMESTAMP", [dt.datetime(2024, 1, 31)], pa.array([2**62], pa.timestamp("s"))),
        ("VARCHAR", ["a", "b"], pa.array([None, None], pa.string())),
        ("VARCHAR", ["Infinity", "x"], [Decimal("1E+90000"), "x"]),
        ("JSON", ["[1]", "2"], [["9" * 10], 2]),
        ("BIGINT", [[1]], [2]),
    ],
)
def test_other_values_in_other_clothes(kind: str | None, expected: Any, actual: Any) -> None:
    assert not both(one(kind, expected), one(None, actual)).matched


@pytest.mark.parametrize(
    ("options", "expected", "actual", "matched"),
    [
        ({"decimals": 2}, [1.234, 2.0], pa.array([Decimal("1.23"), Decimal("2.00")]), True),
        ({"decimals": 1, "atol": 0}, [1.268, 2.0], pa.array([Decimal("1.23"), Decimal("2.00")]), False),
        ({"decimals": 1}, [1.234, 2.0], pa.array([Decimal("1.20"), Decimal("2.00")]), True),
        ({"decimals": 2}, [1.234, 2.0], pa.array([1.23, 2.0]), True),
        ({"decimals": 2}, [1.234, 7e15], pa.array([1.23, 7e15]), True),
        ({"decimals": 2}, [1.234, 2.0], [Decimal("1.23"), Decimal(2)], True),
        ({"null_as_zero": True}, [0.0, 1.0], pa.array([None, 1.0]), True),
        ({"null_as_zero": True}, [0.0, 1.0], pa.array([float("nan"), 1.0]), True),
        ({"null_as_zero": True}, [0.0, float("inf")], pa.array([None, float("inf")]), True),
        ({"significant": 2}, [123.4, 2.0], pa.array([120.0, 2.0]), True),
        ({"rtol": 0.1, "duplicates": "set"}, [1.0, 2.0], pa.array([1.05, 2.1, 1.0]), True),
        ({"duplicates": "set"}, [1.0, 2.0], pa.array([1.0, 3.0, 3.0]), False),
        ({"percent": "either"}, [0.125, 0.5], pa.array([12.5, 50.0]), True),
        ({"percent": "either"}, [0.125, 0.5], ["12.5%", "50%"], True),
        ({"percent": "either"}, [0.125, 0.5], pa.array(["12.5%", "51%"]), False),
    ],
)
def test_options_on_numbers(options: dict[str, Any], expected: Any, actual: Any, matched: bool) -> None:
    assert both(one("DOUBLE", expected), one(None, actual), **options).matched == matched


def test_whole_numbers_take_a_tolerance_that_was_asked_for() -> None:
    expected, actual = one("BIGINT", pa.array([100, None])), one(None, pa.array([None, 104]))
    assert both(expected, actual, per_column={"x": {"rtol": 0.05}}).matched
    assert not both(expected, actual, per_column={"x": {"rtol": 0.01}}).matched
    assert not both(expected, actual, rtol=0.05).matched


def test_dates_that_python_has_no_value_for_are_equal_to_themselves_only() -> None:
    far = pa.array([2**62, 0], pa.timestamp("s"))
    assert both(one("TIMESTAMP", far), one(None, far)).matched
    found = both(one("TIMESTAMP", far), one(None, pa.array([2**61, 0], pa.timestamp("s"))))
    assert [cell.expected for row in found.sample for cell in row.cells if row.expected_row] == [
        "146138514283-06-19 07:45:04"
    ]


@pytest.mark.parametrize(
    ("options", "expected", "actual", "matched"),
    [
        ({"null_as_empty": True}, ["a", None], pa.array(["", "a"]), True),
        ({"null_as_empty": True}, ["a", ""], pa.array([None, "a"]), True),
        ({"null_as_empty": True}, ["a", ""], [None, "a"], True),
        ({}, ["a", ""], pa.array([None, "a"]), False),
        ({"string_case": "insensitive"}, ["Straße", " a"], pa.array(["A ", "STRASSE"]), True),
        ({"string_case": "insensitive", "null_as_empty": True}, ["a" * 70], pa.array(["A" * 70]), True),
    ],
)
def test_options_on_texts(options: dict[str, Any], expected: Any, actual: Any, matched: bool) -> None:
    assert both(one("VARCHAR", expected), one(None, actual), **options).matched == matched


@pytest.mark.parametrize(
    ("kind", "empty"),
    [
        ("BIGINT", []),
        ("DECIMAL(18,0)", pa.array([], pa.decimal128(18, 0))),
        ("VARCHAR", pa.array([], pa.string())),
        ("TIME", []),
        (None, []),
    ],
)
def test_a_reference_without_rows_is_looked_at_all_the_same(kind: str | None, empty: Any) -> None:
    answered = ["a"] if kind == "VARCHAR" else [1]
    found = both(
        table(("x", kind, empty), ("y", "BIGINT", [])), table(("x", None, answered), ("y", None, [2]))
    )
    assert (found.matched, found.message) == (False, "expected is empty")


def test_rows_that_arrays_hold_are_shown_as_they_came() -> None:
    found = both(
        table(("k", "BIGINT", np.arange(6)), ("v", "DOUBLE", np.arange(6) * 1.5)),
        table(("k", None, np.arange(6)), ("v", None, np.array([0.0, 1.5, 3.0, 4.5, 6.0, 8.0]))),
    )
    assert found.message == "values differ"
    wrong = [row for row in found.sample if row.state == "differs"]
    assert [[(cell.expected, cell.actual) for cell in row.cells] for row in wrong] == [[(5, 5), (7.5, 8.0)]]


def test_an_order_key_of_texts_keeps_its_runs_on_arrays() -> None:
    names = pa.array(["a", "a", "b", "c"])
    order = {"ordered": True, "order_by": ["NAME"]}
    expected = table(("name", "VARCHAR", names), ("n", "BIGINT", [1, 2, 3, 4]))
    tied = table(("name", None, names), ("n", None, [2, 1, 3, 4]))
    assert both(expected, tied, **order).matched
    moved = table(("name", None, pa.array(["b", "a", "a", "c"])), ("n", None, [3, 1, 2, 4]))
    found = both(expected, moved, **order)
    assert (found.matched, found.diagnosis and found.diagnosis.word) == (False, "order")
    fewer = table(("name", None, names[:3]), ("n", None, [1, 2, 3]))
    assert not both(expected, fewer, **order).matched
    other = table(("name", None, names), ("n", None, [1, 2, 3, 5]))
    assert both(expected, other, **order).message == "values differ"


def test_ties_at_the_end_of_an_ordered_top_n_are_told() -> None:
    expected = table(("amount", "DOUBLE", [9.0, 8.0, 5.0, 5.0]), ("id", "BIGINT", [1, 2, 3, 4]))
    cut = table(("amount", None, [9.0, 8.0, 5.0, 5.0]), ("id", None, [1, 2, 7, 3]))
    found = both(expected, cut, ordered=True, order_by=["amount desc"])
    assert found.diagnosis is not None
    assert found.diagnosis.word == "limit_tie"
    shuffled = table(("amount", None, [8.0, 9.0, 5.0, 5.0]), ("id", None, [2, 1, 7, 3]))
    free = both(expected, shuffled, order_by=["amount desc"])
    assert free.diagnosis is not None
    assert free.diagnosis.word == "limit_tie"
