"""Tables that were once judged wrongly, crashed or took too long; each on both engines."""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Callable
from itertools import accumulate
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pytest_agenteval.compare import Comparison, compare, parse_options
from pytest_agenteval.compare import tables as comparing
from pytest_agenteval.table import Column, Table

Judge = Callable[..., Comparison]
LARGE = 1300
"""Rows that are more than a sample holds."""


@pytest.fixture(params=[10**9, 0], ids=["plain", "array"])
def judge(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Judge:
    """``judge(expected, actual, **options)`` on one engine."""
    monkeypatch.setattr(comparing, "PLAIN_CELLS", request.param)
    return lambda expected, actual, **options: compare(expected, actual, parse_options(options))


def table(columns: str, *rows: Any) -> Table:
    """``table("a INTEGER, b", [1, 2])``; a column without a type has none."""
    pairs = [column.strip().partition(" ") for column in columns.split(",")]
    return Table.from_rows([name for name, _, _ in pairs], rows, [kind or None for _, _, kind in pairs])


def word(found: Comparison) -> str | None:
    assert not found.matched
    return found.diagnosis.word if found.diagnosis else None


@pytest.mark.parametrize(
    ("kind", "cells"),
    [
        ("MAP(VARCHAR; DOUBLE)", [{"a": 1.5}, {}]),
        ("JSON", ['{"a":1}', '{"a":null}']),
        ("VARCHAR[]", [["a"], [None]]),
    ],
)
def test_nested_cells_are_no_order_for_a_running_sum(judge: Judge, kind: str, cells: list[Any]) -> None:
    expected = table(f"m {kind}, v INTEGER", *zip(cells, (1, 2), strict=True))
    expected = Table.from_rows(["m", "v"], list(expected.rows()), [kind.replace(";", ","), "INTEGER"])
    answered = table("m, v", *zip(cells, (1, 4), strict=True))
    assert word(judge(expected, answered)) == "rows_differ"


def test_a_factor_beyond_all_floats_is_none(judge: Judge) -> None:
    expected = table("k VARCHAR, v DOUBLE", ["a", 4991552.470396114], ["b", 1e300])
    answered = table("k, v", ["a", 4991552.470396114], ["b", 4991552.470396114])
    assert word(judge(expected, answered)) == "values_differ"
    tiny = table("k VARCHAR, v DOUBLE", ["a", 1e-300], ["b", 2e-300])
    found = judge(tiny, table("k, v", ["a", 1e300], ["b", 2e300]))
    assert (word(found), found.diagnosis and found.diagnosis.proof["factor"]) == ("scaled", "1.00e+600")


def test_what_is_a_whole_number_is_not_told_as_a_thousand(judge: Judge) -> None:
    strict = {"decimals": None, "rtol": 0, "atol": 0}
    found = judge(table("v DOUBLE", [1000.004]), table("v", [1000]), **strict)
    assert found.diagnosis
    assert found.diagnosis.sentence.startswith("`v`: rounded to whole numbers (1 of 1 row;")
    assert word(judge(table("v DOUBLE", [51.0]), table("v", [100.0]))) == "values_differ"
    found = judge(table("v INTEGER", [1234], [2345], [5678]), table("v", [1000], [2000], [6000]))
    assert found.diagnosis
    assert found.diagnosis.sentence.startswith("`v`: rounded to multiples of 1,000 (3 of 3 rows;")


def test_rounded_in_binary_is_rounded(judge: Judge) -> None:
    values = [0.35, 12.77, 5.125, 0.45, 2.675]
    expected = table("k VARCHAR, v DOUBLE", *([f"k{x}", x] for x in values))
    for how in (lambda x: round(x, 1), lambda x: float(np.round(x, 1))):
        found = judge(expected, table("k, v", *([f"k{x}", how(x)] for x in values)))
        assert word(found) == "rounded"
        assert found.diagnosis and "rounded to 1 decimal (" in found.diagnosis.sentence  # noqa: PT018


def rows_of(count: int, *columns: Callable[[int], Any]) -> list[list[Any]]:
    return [[column(i) for column in columns] for i in range(count)]


def test_columns_of_arrows_own_types_are_read(judge: Judge) -> None:
    pd = pytest.importorskip("pandas")
    ids = [uuid.UUID(int=i) for i in range(1100)]
    expected = table("u UUID", *([u] for u in ids))
    assert judge(expected, Table.from_pandas(pd.DataFrame({"u": ids}))).message == "match"


def test_a_column_of_nulls_is_found_by_value_however_it_came(judge: Judge) -> None:
    keys = [f"k{i}" for i in range(600)]
    columns = (Column("k", "VARCHAR"), Column("discount", "DOUBLE"))
    expected = Table(columns, (pa.array(keys), pa.array([None] * 600, pa.float64())), 600)
    found = judge(expected, table("k, rabatt", *([key, None] for key in keys)))
    assert (found.message, found.mapping[1].text) == ("match", "discount <- rabatt (by value)")


@pytest.mark.filterwarnings("error")
def test_the_smallest_integer_has_no_warning(judge: Judge) -> None:
    values = pa.array([-(2**63), *range(1, 1100)])
    expected = table("v DOUBLE", *([float(i)] for i in range(1100)))
    assert word(judge(expected, Table((Column("v", "BIGINT"),), (values,), 1100))) == "values_differ"


def test_equal_columns_are_taken_before_near_ones(judge: Judge) -> None:
    expected = table("a DOUBLE, b DOUBLE", [1.001, 1.004], [1.002, 1.003])
    found = judge(expected, table("y, x", [1.004, 1.001], [1.003, 1.002]))
    assert (found.message, [column.actual for column in found.mapping]) == ("match", ["x", "y"])
    # a column of one name may be near only
    named = table("n DOUBLE, a DOUBLE, b DOUBLE", [7.0, 1.001, 1.004], [8.0, 1.002, 1.003])
    found = judge(named, table("n, y, x", [7.001, 1.004, 1.001], [8.001, 1.003, 1.002]))
    assert (found.message, [column.actual for column in found.mapping]) == (
        "match (rounded)",
        ["n", "x", "y"],
    )


@pytest.mark.parametrize("size", [(10, 12), (30, 8), (60, 12)])
def test_equal_tables_of_near_columns_without_names_match_at_once(
    judge: Judge, size: tuple[int, int]
) -> None:
    random = Random(5)
    rows = [[1 + random.random() * 0.012 for _ in range(size[1])] for _ in range(size[0])]
    order = random.sample(range(size[1]), size[1])
    expected = table(", ".join(f"c{i} DOUBLE" for i in range(size[1])), *rows)
    answered = table(", ".join(f"z{i}" for i in range(size[1])), *([row[i] for i in order] for row in rows))
    began = time.process_time()
    assert judge(expected, answered).message == "match"
    assert time.process_time() - began < 1


def test_repeated_rows_of_a_set_in_order_are_known_by_their_value(judge: Judge) -> None:
    expected = table("k VARCHAR, v DOUBLE", ["a", 1.1], ["b", 0.0])
    options = {"ordered": True, "duplicates": "set"}
    assert judge(
        expected, table("k, v", ["a", 1.1], ["a", "1.1"], ["b", 0.0], ["b", -0.0]), **options
    ).matched
    assert not judge(expected, table("k, v", ["b", 0.0], ["a", 1.1]), **options).matched


def test_sums_beyond_64_bits_are_sums(judge: Judge) -> None:
    rows = rows_of(600, lambda i: f"k{i}", lambda i: 2**64 + i)
    expected = table("k VARCHAR, v HUGEINT", *rows)
    total = sum(row[1] for row in rows)
    found = judge(expected, table("k, v", *rows, ["Total", total]))
    assert (word(found), found.diagnosis and f"v = {total}" in found.diagnosis.sentence) == (
        "total_row",
        True,
    )
    wide = [[*row, "q"] for row in rows[1:]]
    assert word(judge(expected, table("k, v, extra", *wide))) == "rows_missing"
    long = rows_of(600, lambda i: f"k{i}", lambda i: 2**62 + i)
    total = sum(row[1] for row in long)
    found = judge(table("k VARCHAR, v BIGINT", *long), table("k, v", *long, ["Total", total]))
    assert (word(found), found.diagnosis and f"v = {total}" in found.diagnosis.sentence) == (
        "total_row",
        True,
    )


@pytest.mark.parametrize("options", [{}, {"ordered": True, "order_by": ["k"]}])
def test_running_sums_are_told_in_tables_of_some_size(judge: Judge, options: dict[str, Any]) -> None:
    rows = rows_of(600, lambda i: f"m{i:04}", lambda i: 10.0 + i % 7)
    sums = accumulate(row[1] for row in rows)
    answered = [[row[0], total] for row, total in zip(rows, sums, strict=True)]
    assert (
        word(judge(table("k VARCHAR, x DOUBLE", *rows), table("k, x", *answered), **options)) == "cumulative"
    )


def test_exchanged_columns_may_share_values(judge: Judge) -> None:
    rows = rows_of(600, lambda i: i, lambda i: 500 + i)
    expected = table("a INTEGER, b INTEGER", *rows)
    assert word(judge(expected, table("a, b", *(row[::-1] for row in rows)))) == "columns_swapped"


@pytest.mark.parametrize(
    ("kind", "value", "wrong"),
    [
        ("DOUBLE", float, 30000.0),
        ("DATE", lambda i: dt.date(2024, 1, 1) + dt.timedelta(i), dt.date(2023, 1, 1)),
        (
            "TIMESTAMP",
            lambda i: dt.datetime(2024, 1, 1) + dt.timedelta(hours=i),
            dt.datetime(2024, 1, 13, 14),
        ),
    ],
)
def test_one_wrong_cell_in_order_is_no_rule_of_its_column(
    judge: Judge, kind: str, value: Callable[[int], Any], wrong: Any
) -> None:
    rows = rows_of(LARGE, lambda i: i, value)
    answered = [list(row) for row in rows]
    answered[300][1] = wrong
    options = {"ordered": True, "order_by": ["id"]}
    assert word(judge(table(f"id INTEGER, v {kind}", *rows), table("id, v", *answered), **options)) == (
        "values_differ"
    )


def test_two_exchanged_booleans_in_order_are_not_inverted(judge: Judge) -> None:
    rows = rows_of(LARGE, lambda i: i, lambda i: i % 3 == 0)
    answered = [list(row) for row in rows]
    answered[300][1], answered[301][1] = False, True
    found = judge(
        table("id INTEGER, f BOOLEAN", *rows), table("id, f", *answered), ordered=True, order_by=["id"]
    )
    assert word(found) == "rows_scrambled"


def test_a_word_of_all_rows_in_order_holds(judge: Judge) -> None:
    rows = rows_of(LARGE, lambda i: i, lambda i: 1.5 * i + 1)
    answered = [[i, x * 100] for i, x in rows]
    options = {"ordered": True, "order_by": ["id"]}
    found = judge(table("id INTEGER, x DOUBLE", *rows), table("id, x", *answered), **options)
    assert word(found) == "scaled"


def test_a_word_holds_over_ties_of_the_sort_key(judge: Judge) -> None:
    expected = table("n VARCHAR, f BOOLEAN, t INTEGER", ["a", False, 1], ["b", True, 1], ["c", False, 2])
    answered = table("n, f, t", ["b", True, 1], ["a", None, 1], ["c", None, 2])
    assert word(judge(expected, answered, ordered=True, order_by=["t"])) == "null_vs_false"


def test_a_column_without_a_type_keeps_its_kind(judge: Judge) -> None:
    rows = rows_of(LARGE, lambda i: i, lambda i: ["x", 1, 2.5, None][i % 4])
    answered = [list(row) for row in rows]
    answered[302][1] = "2.5"
    found = judge(table("id INTEGER, m", *rows), table("id, m", *answered), ordered=True, order_by=["id"])
    assert word(found) == "values_differ"


def test_one_changed_cell_is_named_where_an_id_names_the_rows(judge: Judge) -> None:
    expected = table(
        "id INTEGER, who VARCHAR, state VARCHAR", [1, "ann", "open"], [2, "ann", "paid"], [3, "bob", "open"]
    )
    found = judge(
        expected, table("id, who, state", [1, "ann", "open"], [2, "ann", "paid"], [3, "bob", "paid"])
    )
    assert word(found) == "values_differ"
    assert found.diagnosis and found.diagnosis.sentence == (  # noqa: PT018
        "`state` differs in 1 of 3 rows: expected 'open', got 'paid' where id = 3"
    )
    # of another who, with another amount: another row, whatever number it has
    expected = table("id INTEGER, who VARCHAR, x INTEGER", [1, "ann", 5], [2, "eve", 6], [3, "bob", 7])
    assert (
        word(judge(expected, table("id, who, x", [1, "ann", 5], [2, "eve", 6], [3, "joe", 9])))
        == "rows_differ"
    )


def test_unlike_tables_of_near_columns_without_names_end_in_a_verdict(judge: Judge) -> None:
    random = Random(5)
    rows = [[[1 + random.random() * 0.012 for _ in range(8)] for _ in range(30)] for _ in range(2)]
    expected = table(", ".join(f"c{i} DOUBLE" for i in range(8)), *rows[0])
    began = time.process_time()
    assert word(judge(expected, table(", ".join(f"z{i}" for i in range(8)), *rows[1]))) == "ambiguous_columns"
    assert time.process_time() - began < 3
