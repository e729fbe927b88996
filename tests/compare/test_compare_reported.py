"""Tables that were once judged wrongly, crashed or took too long; each on both engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_agenteval.compare import Comparison, compare, comparing, parse_options
from pytest_agenteval.table import Table

Judge = Callable[..., Comparison]


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
    found = judge(table("v INTEGER", [1234], [2345], [5678]), table("v", [1000], [2000], [6000]))
    assert found.diagnosis
    assert found.diagnosis.sentence.startswith("`v`: rounded to multiples of 1,000 (3 of 3 rows;")
