"""Rare values, rare tables, narrow terminals: what the other tests of the comparison never meet."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from test_compare_twins import both, one, table

from pytest_agenteval.compare import compare, parse_options
from pytest_agenteval.compare import tables as comparing
from pytest_agenteval.compare.array_engine import (
    column_search as vector_search,
)
from pytest_agenteval.compare.array_engine import (
    matching as vector_match,
)
from pytest_agenteval.compare.array_engine import (
    near_pairs as vector_near,
)
from pytest_agenteval.compare.array_engine.arrays import ToleranceNumbers
from pytest_agenteval.compare.array_engine.engine import ArrayEngine
from pytest_agenteval.compare.array_engine.reading import _Spread
from pytest_agenteval.compare.render import render
from pytest_agenteval.compare.result import MappedColumn
from pytest_agenteval.compare.values.canonical import label
from pytest_agenteval.compare.values.numbers import (
    Float32,
    fits_single,
    numpy_round,
    read_number,
    shortest,
    shown_decimals,
)
from pytest_agenteval.compare.values.sql_types import kind_of
from pytest_agenteval.support.scalars import is_null
from pytest_agenteval.support.text import clip


def arrays_only(expected: Any, actual: Any, **options: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparing, "PLAIN_CELLS", 0)
        return compare(expected, actual, parse_options(options))


@pytest.mark.parametrize("text", ["%", "$", "-", "()", "", "1e99999999999999999999"])
def test_what_only_looks_like_a_number_is_none(text: str) -> None:
    assert read_number(text) is None


def test_numbers_at_the_edges_of_their_types() -> None:
    assert not fits_single(1e300)
    assert not fits_single(-1e300)
    assert fits_single(float("-inf"))
    assert not fits_single(0.1)
    assert shortest(Float32(float(np.float32(0.1)))) == Decimal("0.1")
    assert shortest(Float32(float(np.finfo(np.float32).max))) == Decimal("3.4028235E+38")
    assert shown_decimals(float("inf")) == 0
    assert numpy_round(1e308, 10) == 1e308
    assert numpy_round(125.0, -1) == 120.0
    assert label(float("nan")) == "nan"
    assert is_null(np.float64("nan"))
    assert not is_null(np.float64(1))


def test_a_struct_with_a_field_without_a_name_is_of_any_kind() -> None:
    kind = kind_of("STRUCT(a INTEGER, )")
    assert kind is not None
    assert kind.name == "any"


def test_a_mapped_column_of_the_same_name_is_only_named() -> None:
    assert MappedColumn("a", "a", "name").text == "a"
    assert MappedColumn("a", "b", "value").text == "a <- b (by value)"


def test_a_text_that_fits_is_not_cut() -> None:
    assert (clip("abc", 3), clip("abc", 2), clip("日本", 3)) == ("abc", "ab", "日")


class Blank:
    def __str__(self) -> str:
        return " "


def test_an_object_without_a_text_is_empty() -> None:
    assert both(one("VARCHAR", [None]), one(None, [Blank()]), null_as_empty=True).matched


def nested(depth: int) -> tuple[str, Any]:
    kind, value = "INTEGER", 1
    made: Any = value
    for _ in range(depth):
        kind, made = f"MAP(VARCHAR, {kind})", {"k": made}
    return kind, made


def test_maps_within_maps_are_read_as_deep_as_lists_are() -> None:
    for depth in (3, 200):
        kind, value = nested(depth)
        assert both(one(kind, [value]), one(None, [value])).matched
    kind, _ = nested(200)
    assert both(one(kind, [value]), one(None, [{"k": 1}])).message == "values differ"


def test_a_number_beyond_all_bounds_within_json_is_itself_only() -> None:
    huge = Decimal("1E+90000")
    assert both(one("JSON", [[huge, 1]]), one(None, [[huge, 1]])).matched
    assert not both(one("JSON", [[huge, 1]]), one(None, [[1, huge]])).matched


def test_missing_values_of_pandas_are_null_in_json() -> None:
    found = both(one(None, [1, 2]), one(None, [1, pd.NaT]))
    cells = [cell for row in found.to_json()["sample"] for cell in row["cells"]]
    assert [cell["actual"] for cell in cells] == [None]


@pytest.mark.parametrize("width", [24, 5])
def test_long_words_are_cut_in_a_narrow_terminal(width: int) -> None:
    name = "a_name_without_any_blank_in_it_" * 3
    found = both(
        table((name, "VARCHAR", ["x" * 60, "z"]), ("v", "BIGINT", [1, 10**12])),
        table((name, None, ["x" * 60, "z"]), ("v", None, [1, 10**13])),
    )
    lines = render(found, width)
    whole = "".join(line.strip() for line in lines)
    assert "valuesdiffer" in whole.replace(" ", "")
    assert name in whole


def word(found: Any) -> str | None:
    return found.diagnosis.word if found.diagnosis else None


@pytest.mark.parametrize(
    ("expected", "actual", "options", "said"),
    [
        # sets: how often a row stands there does not count
        (one("BIGINT", [1, 2]), one(None, [1, 1]), {"duplicates": "set"}, "rows_missing"),
        (one("BIGINT", [1, 1]), one(None, [1, 2]), {"duplicates": "set"}, "rows_extra"),
        (one("BIGINT", [1, 2, 3]), one(None, [1, 2]), {"duplicates": "set", "ordered": True}, "rows_missing"),
        (
            table(("a", "BIGINT", [1, 2, 3]), ("b", "VARCHAR", ["x", "y", "z"])),
            table(("a", None, [1, 2, 3]), ("b", None, ["y", "x", "z"])),
            {"duplicates": "set"},
            "rows_scrambled",
        ),
        (one("BIGINT", [1, 2, 2]), one(None, [1, 1, 2]), {}, "duplicate_counts"),
        # one column, in an ordered list
        (
            table(("k", "BIGINT", [1, 2]), ("s", "VARCHAR", ["ab", "cd"])),
            table(("k", None, [1, 2]), ("s", None, ["AB", "CD"])),
            {"ordered": True},
            "case",
        ),
        (
            table(("k", "BIGINT", [1, 2, 3]), ("n", "BIGINT", [5, 6, 7])),
            table(("k", None, [1, 2, 3]), ("n", None, [5, None, 7])),
            {"ordered": True},
            "null_instead_of_value",
        ),
        (
            table(("k", "BIGINT", [1, 2, 3]), ("n", "BIGINT", [5, 6, 7])),
            table(("k", None, [1, 2, 3]), ("n", None, [5, None, 8])),
            {"ordered": True},
            "values_differ",
        ),
        (
            table(("k", "BIGINT", [1, 2]), ("n", "HUGEINT", [10**301, 2**60 + 1])),
            table(("k", None, [1, 2]), ("n", None, [10**301, 2**60])),
            {},
            "precision_lost",
        ),
        (
            table(("k", "BIGINT", [None, 1, 2]), ("n", "BIGINT", [3, 4, 5])),
            table(("k", None, [1, 2, None]), ("n", None, [4, 5, 3])),
            {"ordered": True, "order_by": ["k"]},
            "nulls_order",
        ),
        # columns without names in common, alike one by one, not together
        (
            table(("a", "BIGINT", [1, 2]), ("b", "BIGINT", [1, 2]), ("c", "BIGINT", [2, 1])),
            table(("x", None, [1, 2]), ("y", None, [1, 2]), ("z", None, [1, 2])),
            {},
            None,
        ),
        (
            table(("k", "BIGINT", [7, 8]), ("a", "BIGINT", [1, 2]), ("b", "BIGINT", [2, 1])),
            table(("k", None, [7, 9]), ("c", None, [2, 1]), ("d", None, [1, 2])),
            {},
            "rows_differ",
        ),
        (
            table(("k", "BIGINT", [7, 8]), ("a", "DOUBLE", [1.0, 2.0]), ("b", "DOUBLE", [2.0, 1.0])),
            table(("k", None, [7, 8]), ("c", None, [1.0, 2.0]), ("d", None, [1.0, 2.0])),
            {},
            None,
        ),
        (
            table(("a", "BIGINT", [1, 2, 3]), ("b", "DOUBLE", [3.0, 1.0, 2.0])),
            table(("x", None, [1, 2, 3]), ("y", None, [1, 2, 3])),
            {},
            None,
        ),
        # lists taken as sets; rows that only repeat others
        (one("DOUBLE", [1.5, 2.5]), one(None, [1.5, 2.5, 2.5]), {}, None),
        (one("DOUBLE", [1.5, 2.5, 2.5]), one(None, [1.5, 2.5]), {}, None),
    ],
)
def test_words_of_rare_failures(
    expected: Any, actual: Any, options: dict[str, Any], said: str | None
) -> None:
    found = both(expected, actual, **options)
    assert not found.matched
    if said is not None:
        assert word(found) == said, found.diagnosis


def test_decimals_whose_scales_lie_far_apart() -> None:
    small = pa.array([Decimal("1.5000"), Decimal("2.0000")], pa.decimal128(20, 4))
    large = pa.array([Decimal(2), Decimal(9 * 10**15)], pa.decimal128(18, 0))
    assert not both(one("DECIMAL(20,4)", small), one(None, large)).matched
    assert both(one("DECIMAL(20,4)", small), one(None, pa.array([2.0, 1.5]))).matched


def test_a_refused_row_beside_one_that_floats_cannot_decide() -> None:
    expected = table(("k", "BIGINT", [1, 2]), ("v", "DOUBLE", [1.005, 1.004995]))
    assert not both(expected, table(("k", None, [1, 2]), ("v", None, [1.01, 1.01])), decimals=2).matched
    assert both(expected, table(("k", None, [1, 2]), ("v", None, [1.01, 1.0])), decimals=2).matched


def test_thousands_of_numbers_over_all_magnitudes_under_a_tiny_tolerance() -> None:
    random = np.random.default_rng(5)
    numbers = random.choice([-1.0, 1.0], 3000) * 10.0 ** random.uniform(-5, 300, 3000)
    tiny = {"rtol": 0, "atol": 1e-8, "decimals": None}
    assert arrays_only(one("DOUBLE", numbers), one(None, random.permutation(numbers)), **tiny).matched
    other = numbers.copy()
    other[7] += 1e-3 + abs(other[7])
    assert not arrays_only(one("DOUBLE", numbers), one(None, random.permutation(other)), **tiny).matched


def test_pairs_of_numbers_over_all_magnitudes_under_a_tiny_tolerance() -> None:
    random = np.random.default_rng(8)
    size = 2500
    x, y = (random.choice([-1.0, 1.0], size) * 10.0 ** random.uniform(-5, 300, size) for _ in range(2))
    order = random.permutation(size)
    expected = table(("x", "DOUBLE", x), ("y", "DOUBLE", y))
    tiny = {"rtol": 0, "atol": 1e-8, "decimals": None}
    assert arrays_only(expected, table(("x", None, x[order]), ("y", None, y[order])), **tiny).matched
    assert not arrays_only(expected, table(("x", None, x[order]), ("y", None, y)), **tiny).matched


def test_columns_that_no_counting_tells_apart_are_tried() -> None:
    """A ring of six and two rings of three look alike from each of their columns and rows."""

    def ring(columns: list[tuple[int, int]], names: str) -> Any:
        cells = [[1 if row in ends else 0 for row in range(6)] for ends in columns for _ in range(2)]
        return table(*((f"{names}{i}", "BIGINT", column) for i, column in enumerate(cells)))

    six = [(i, (i + 1) % 6) for i in range(6)]
    threes = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)]
    assert both(ring(six, "a"), ring([six[i] for i in (3, 1, 5, 0, 2, 4)], "b")).matched
    assert not both(ring(six, "a"), ring(threes, "b")).matched


def test_columns_of_nulls_have_no_numbers_to_go_by() -> None:
    nothing = [None, None, None]
    expected = table(("a", "DOUBLE", nothing), ("b", "DOUBLE", nothing), ("n", "BIGINT", [1, 2, 3]))
    assert both(expected, table(("x", None, nothing), ("y", None, nothing), ("z", None, [3, 1, 2]))).matched


def test_random_pairs_of_near_numbers() -> None:
    """Which rows are near which is a puzzle of its own; both engines solve it alike."""
    random = np.random.default_rng(9)
    seen = set()
    for _ in range(150):
        size = int(random.integers(3, 8))
        x, y = (random.integers(0, 6, size) / 2 for _ in range(2))
        u, v = x + random.integers(-1, 2, size) / 2, y + random.integers(-1, 2, size) / 2
        order = random.permutation(size)
        expected = table(("x", "DOUBLE", x.tolist()), ("y", "DOUBLE", y.tolist()))
        actual = table(("x", None, u[order].tolist()), ("y", None, v[order].tolist()))
        near = {"rtol": 0, "atol": float(random.choice([0.3, 0.6])), "decimals": None}
        found = both(expected, actual, **near)
        assert found.matched or near["atol"] < 0.5
        seen.add(found.matched)
    assert seen == {True, False}
    for _ in range(60):
        size = int(random.integers(4, 9))
        x, u = random.integers(0, 6, size) / 2, random.integers(0, 6, size) / 2
        expected = table(("x", "DOUBLE", x.tolist()), ("y", "DOUBLE", [0.0] * size))
        actual = table(("x", None, u.tolist()), ("y", None, [0.0] * size))
        seen.add(both(expected, actual, rtol=0, atol=0.6, decimals=None).matched)


def test_columns_of_many_rows_are_likened_by_hashes() -> None:
    random = np.random.default_rng(6)
    rows = 24_000
    amounts, names = random.normal(100, 30, rows), random.integers(0, 9000, rows)
    other = amounts.copy()
    other[:2000] += 5
    texts = [f"name {n}" for n in names]
    expected = table(("amount", "DOUBLE", amounts), ("name", "VARCHAR", texts))
    found = arrays_only(expected, table(("total", None, other), ("who", None, [*texts[1:], "nobody"])))
    assert [(c.expected, c.actual, c.how) for c in found.mapping] == [
        ("amount", "total", "partial_match"),
        ("name", "who", "partial_match"),
    ]


def test_a_hash_that_tells_nothing_apart_changes_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_match, "hash_rows", lambda keys, rows: np.zeros(rows, np.uint64))
    whole = one("BIGINT", [1, 2, 3])
    assert arrays_only(whole, one(None, [3, 1, 2])).matched
    assert not arrays_only(whole, one(None, [3, 1, 4])).matched
    assert not arrays_only(one("BIGINT", [0, None]), one(None, [0, 0])).matched
    assert not arrays_only(one("VARCHAR", ["a", "b"]), one(None, ["a", "c"])).matched
    assert not arrays_only(one("VARCHAR", ["a", "b"]), one(None, ["a", "cc"])).matched


def test_many_numbers_are_graded_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_near, "GRADED", 4)
    keys, numbers = list(range(10)), [n + 0.5 for n in range(10)]
    expected = table(("k", "BIGINT", keys), ("v", "DOUBLE", numbers))
    assert arrays_only(expected, table(("k", None, keys), ("v", None, numbers))).matched
    wrong = [*numbers[:5], 77.0, *numbers[6:]]
    assert not arrays_only(expected, table(("k", None, keys), ("v", None, wrong))).matched


def test_a_set_without_rows_has_no_partners() -> None:
    engine = ArrayEngine(one("DOUBLE", [1.0]), one(None, [1.0]), parse_options({"duplicates": "set"}))
    matcher = engine.matcher([(0, 0)])
    assert matcher.pair_sets().matched
    found = matcher.pair_sets(np.zeros(0, np.int64))
    assert (found.matched, list(found.unmatched_actual)) == (False, [0])


def test_columns_of_too_many_numbers_are_told_apart_without_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_search, "MOST_CLUSTERED", 0)
    names = ["p", "q", "r"]
    a, b = [1.0, 2.0, 3.0], [2.0, 3.0, 4.0]
    expected = table(("k", "VARCHAR", names), ("a", "DOUBLE", a), ("b", "DOUBLE", b))
    assert arrays_only(expected, table(("k", None, names), ("x", None, b), ("y", None, a))).matched
    near = [[v + 1e-7 for v in values] for values in (b, a)]
    assert arrays_only(
        expected, table(("k", None, names), ("x", None, near[0]), ("y", None, near[1]))
    ).matched


@pytest.mark.parametrize("swapped", [False, True])
def test_columns_that_a_wide_tolerance_makes_alike_are_all_tried(swapped: bool) -> None:
    keys, a, b = ["p", "q", "r", "s"], [0.0, 1.0, 2.0, 3.0], [3.0, 2.0, 1.0, 0.0]
    first, second = (b, a) if swapped else (a, b)
    expected = table(("k", "VARCHAR", keys), ("a", "DOUBLE", a), ("b", "DOUBLE", b))
    actual = table(("k", None, keys), ("x", None, first), ("y", None, second))
    assert both(expected, actual, rtol=0, atol=1, decimals=None).matched


def test_exact_numbers_are_told_by_the_row_that_holds_them() -> None:
    spread = _Spread([None, Decimal("0.10"), 7], np.array([1, 1, 2]))
    assert (len(spread), spread[0], spread[2]) == (3, Decimal("0.10"), 7)


@pytest.mark.parametrize(
    ("numbers", "shown"),
    [
        (ToleranceNumbers(np.array([1.5, 2.25])), {1: False, 2: True, 30: True}),
        (ToleranceNumbers(np.array([1e-25])), {24: False, 25: True}),
        (ToleranceNumbers(np.array([0.1, 2.0], np.float32).astype(float), single=True), {0: False, 1: True}),
        (ToleranceNumbers(np.array([1e17 / 3])), {0: True}),
        (ToleranceNumbers(np.array([9.1e13 + 1 / 64])), {1: False, 2: True}),
        (
            ToleranceNumbers(np.array([1.2]), scaled=np.array([120]), scale=2),
            {0: False, 1: True, 2: True, 3: True},
        ),
        (ToleranceNumbers(np.array([1.5]), given=[Decimal("1.50")]), {0: False, 1: True}),
    ],
)
def test_how_many_decimals_a_column_shows(numbers: ToleranceNumbers, shown: dict[int, bool]) -> None:
    assert {decimals: numbers.shows_at_most(decimals) for decimals in shown} == shown
