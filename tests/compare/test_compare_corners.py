"""Branches that only some tables reach, each with a table of its own (nothing is left to random draws)."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from test_compare_twins import both, one, table

from pytest_agenteval.compare import compare, parse_options
from pytest_agenteval.compare.array_engine import number_rule as vector_rule
from pytest_agenteval.compare.render import render
from pytest_agenteval.table import Table


def test_decimals_stay_exact_in_json() -> None:
    found = both(one("DECIMAL(18,2)", [Decimal("1.10")]), one(None, [Decimal("Infinity")]))
    cell = found.to_json()["sample"][0]["cells"][0]
    assert (cell["expected"], cell["actual"]) == ("1.10", "Infinity")


def test_intervals_of_arrow_are_durations() -> None:
    spans = pa.array([pa.MonthDayNano([1, 2, 3_000_000_000]), pa.MonthDayNano([0, 0, 5_000])])
    asked = [dt.timedelta(days=32, seconds=3), dt.timedelta(microseconds=5)]
    assert both(one("INTERVAL", asked), one(None, spans)).matched
    assert not both(one("INTERVAL", asked[::-1]), one(None, spans[:1].take([0, 0]))).matched
    unread = both(one("INTERVAL", asked), one(None, [asked[0], 5]))
    assert unread.diagnosis is not None
    assert unread.diagnosis.word == "type"


def test_running_sums_are_told_either_way() -> None:
    keys, single, sums = ["a", "b", "c"], [1.0, 2.0, 4.0], [1.0, 3.0, 7.0]
    for mine, theirs, said in (
        (single, sums, "`v`: running sums where single values are expected"),
        (sums, single, "`v`: single values where running sums are expected"),
    ):
        expected = table(("k", "VARCHAR", keys), ("v", "DOUBLE", mine))
        found = both(expected, table(("k", None, keys), ("v", None, theirs)))
        assert found.diagnosis is not None
        assert found.diagnosis.word == "cumulative"
        assert found.diagnosis.sentence.startswith(said)


def test_running_sums_beside_a_column_of_mixed_values() -> None:
    for keys in (["a", 1, "b"], [[1, "x"], ["y", 2], [3]], [1.5, 2.5, 0.5]):
        expected = table(("k", None, keys), ("v", "DOUBLE", [1.0, 2.0, 4.0]))
        found = both(expected, table(("k", None, keys), ("v", None, [1.0, 3.0, 7.0])))
        assert found.diagnosis is not None
        assert found.diagnosis.word == "cumulative"


@pytest.mark.parametrize(("answered", "matched"), [(1004.0, True), (1019.0, False), (994.0, False)])
def test_significant_digits_near_their_step(answered: float, matched: bool) -> None:
    options = {"significant": 3, "rtol": 0, "atol": 0}
    assert both(one("DOUBLE", [1000.0]), one(None, [answered]), **options).matched == matched


def test_a_limit_cannot_cut_through_a_tie_of_all_rows() -> None:
    expected = table(("n", "BIGINT", [7, 7]), ("k", "VARCHAR", ["a", "b"]))
    found = both(expected, table(("n", None, [7, 7]), ("k", None, ["a", "c"])), order_by=["n"])
    assert found.diagnosis is not None
    assert found.diagnosis.word != "limit_tie"


@pytest.mark.parametrize(
    ("amounts", "answered", "word"),
    [
        ([1.5, 2.5, 4.0], [4.0, 4.0], "wrong_grain"),
        ([1.5, 2.5, 4.0], [4.0, 5.0], "missing_column"),
        ([0.0, 0.0, 0.0], [0.0, 0.0], "missing_column"),
    ],
)
def test_another_grain_needs_equal_sums(amounts: list[float], answered: list[float], word: str) -> None:
    expected = table(
        ("region", "VARCHAR", ["n", "n", "s"]), ("city", "VARCHAR", ["a", "b", "c"]), ("v", "DOUBLE", amounts)
    )
    found = both(expected, table(("region", None, ["n", "s"]), ("v", None, answered)))
    assert found.diagnosis is not None
    assert found.diagnosis.word == word


def test_percentages_beside_other_row_counts() -> None:
    expected = table(("k", "VARCHAR", ["a", "b"]), ("rate", "DOUBLE", [0.125, 0.5]))
    actual = table(("k", None, ["a", "b", "c"]), ("rate", None, ["12.5%", "50%", "7%"]))
    found = both(expected, actual)
    assert (found.message, found.diagnosis and found.diagnosis.word) == ("row count: 3 vs 2", "rows_extra")


def test_a_number_that_fits_nowhere_beside_repeated_keys() -> None:
    expected = table(("k", "BIGINT", [1, 2, 2]), ("v", "DOUBLE", [1.5, 2.5, 3.5]))
    assert both(expected, table(("k", None, [2, 1, 2]), ("v", None, [3.5, 1.5, 2.5]))).matched
    assert not both(expected, table(("k", None, [2, 1, 2]), ("v", None, [3.5, 9.0, 2.5]))).matched


@pytest.mark.parametrize("options", [{"rtol": 0.5, "atol": 0.6}, {"rtol": 0, "atol": 0.6}])
def test_near_rows_of_two_columns_that_sorting_does_not_pair(options: dict[str, Any]) -> None:
    """(0, 0) is near both answers, (0.1, 1) near the first only; a third row is near none."""
    spots = [(0.0, 0.0), (0.1, 1.0), (900.0, 900.0)]
    near = [(0.05, 0.5), (0.1, -0.5), (90.0, 90.0)]
    expected = table(("x", "DOUBLE", [x for x, _ in spots]), ("y", "DOUBLE", [y for _, y in spots]))
    actual = table(("x", None, [x for x, _ in near]), ("y", None, [y for _, y in near]))
    found = both(expected, actual, decimals=None, **options)
    assert (found.matched, found.counts.equal) == (False, 2)


def test_one_number_is_refused_at_once_beside_one_to_look_at() -> None:
    expected = table(("k", "BIGINT", [1, 2]), ("v", "DOUBLE", [0.1, 1.004995]))
    refused = table(("k", None, [1, 2]), ("v", None, [0.106, 1.01]))
    assert not both(expected, refused).matched


def test_decimals_of_scale_0_with_nulls_in_arrow() -> None:
    data = pa.array([Decimal(5), None, Decimal(-7)], pa.decimal128(38, 0))
    assert both(one("DECIMAL(18,0)", [None, -7, 5]), one(None, data)).matched
    assert not both(one("DECIMAL(18,0)", [0, -7, 5]), one(None, data)).matched


def test_a_float_column_whose_values_need_64_bits() -> None:
    wide = np.array([0.1, 1.5])
    assert both(one("FLOAT", [0.1, 1.5]), one("FLOAT", wide)).matched
    assert not both(one("FLOAT", [0.1, 1.5]), one("FLOAT", np.array([0.1, 2.5]))).matched


def test_a_renamed_column_is_found_behind_others_of_the_same_values() -> None:
    expected = table(("k", "VARCHAR", ["p", "q", "r"]), ("a", "BIGINT", [1, 2, 3]))
    answered = [("k", None, ["p", "q", "r"]), ("x", None, [3, 2, 1]), ("y", None, [2, 1, 3])]
    found = both(expected, table(*answered, ("z", None, [1, 2, 3])))
    assert found.message == "match (extra columns ignored: x, y)"
    assert [(c.expected, c.actual) for c in found.mapping] == [("k", "k"), ("a", "z")]
    assert not both(expected, table(*answered)).matched


def test_columns_not_asked_for_are_named_above_the_rows() -> None:
    expected = table(("k", "BIGINT", [1, 2]), ("v", "BIGINT", [3, 4]))
    found = both(expected, table(("k", None, [1, 2]), ("v", None, [3, 9]), ("note", None, ["x", "y"])))
    assert "columns: not asked for: note" in render(found)


def test_combining_characters_take_no_room() -> None:
    found = both(one("VARCHAR", ["x\u0336y"]), one(None, ["z"]))
    line = next(line for line in render(found) if "x\u0336y" in line)
    assert line.index("z") - line.index("x") > 3


def test_repeated_keys_that_only_one_side_holds() -> None:
    expected = table(("k", "BIGINT", [1, 2, 2]), ("v", "DOUBLE", [1.5, 2.5, 3.5]))
    found = both(expected, table(("k", None, [3, 1, 3]), ("v", None, [2.5, 1.5, 3.5])))
    assert (found.matched, found.counts.equal) == (False, 1)


@pytest.mark.parametrize("most", [0, 1])
def test_what_is_remembered_of_numbers_changes_no_verdict(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_rule, "MOST_KNOWN", most)
    expected = table(("k", "BIGINT", [1, 2, 3]), ("v", "DOUBLE", [1.005, 2.005, 1.004995]))
    assert both(expected, table(("k", None, [1, 2, 3]), ("v", None, [1.01, 2.01, 1.0]))).matched
    assert not both(expected, table(("k", None, [1, 2, 3]), ("v", None, [1.01, 2.01, 1.01]))).matched


def test_rounding_is_told_beside_a_number_beyond_all_rounding() -> None:
    expected = table(("k", "BIGINT", [1, 2]), ("v", "DOUBLE", [1e301, 1.26]))
    found = both(expected, table(("k", None, [1, 2]), ("v", None, [1e301, 1.3])))
    assert found.diagnosis is not None
    assert found.diagnosis.word == "rounded"


def test_a_long_list_is_studied_in_part() -> None:
    keys = list(range(900))
    expected = table(("k", "BIGINT", keys), ("v", "BIGINT", [k * k for k in keys]))
    found = both(expected, table(("k", None, keys), ("v", None, [k * k + 5 for k in keys])), ordered=True)
    assert found.diagnosis is not None
    assert found.diagnosis.word == "column_offset"


@pytest.mark.parametrize(
    ("expected", "answered", "word"),
    [
        (["12.5%", "7%"], [0.125, 0.07], "percent_text"),
        (["12.5%", "7%"], ["12.5", "7"], "percent_text"),
        (["12.5", "7"], ["12.5 %", "7 %"], "percent_text"),
        (["12.5%", "7%"], [12.5, 8], "values_differ"),
        (["12.5%", "no"], ["12.50%", "no"], "rows_differ"),
        (["12.5%", "inf"], [12.5, "inf"], "percent_text"),
    ],
)
def test_percentages_as_text(expected, answered, word):
    found = compare(Table.from_rows(["r"], [[v] for v in expected], ["VARCHAR"]),
                    Table.from_rows(["r"], [[v] for v in answered]))  # fmt: skip
    assert not found.matched
    assert found.diagnosis.word == word


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT (i % 7) / 3.0::DOUBLE AS a FROM range(20000) t(i)",
        "SELECT (i % 5)::DECIMAL(12,4) / 7 AS a, 'x' || i % 3 AS t FROM range(30000) t(i)",
        "SELECT (i % 3)::DECIMAL(10,2) AS a, (i % 2)::DOUBLE + 0.5 AS b FROM range(10000) t(i)",
        "SELECT CASE WHEN i % 4 = 0 THEN NULL ELSE (i % 3)::DOUBLE END AS a FROM range(10000) t(i)",
        "SELECT CASE WHEN i % 2 = 0 THEN '1.5' ELSE '2.5' END AS a FROM range(10000) t(i)",
    ],
)
def test_a_set_of_few_values_equals_itself_however_often_they_come(sql):
    import duckdb

    options = parse_options({"duplicates": "set"})
    whole = Table.from_duckdb(duckdb.sql(sql))
    columns = tuple(type(c)(c.name, "DOUBLE" if c.name == "a" else c.type) for c in whole.columns)
    typed = Table(columns, whole.values, whole.row_count)
    assert compare(typed, whole, options).matched
    once = Table.from_duckdb(duckdb.sql(f"SELECT DISTINCT * FROM ({sql})"))
    assert compare(typed, once, options).matched
    less = Table.from_duckdb(duckdb.sql(f"SELECT DISTINCT * FROM ({sql}) OFFSET 1"))
    assert not compare(typed, less, options).matched
