"""Every word of the contract: a small table where it is the first that holds, and its sentence."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from pytest_agenteval.compare import compare, parse_options
from pytest_agenteval.compare import tables as comparing
from pytest_agenteval.table import Table

NAMES = ["north", "south", "east", "west", "centre", "isles"]
KN = (["k", "n"], ["VARCHAR", "INTEGER"])
KX = (["k", "x"], ["VARCHAR", "DOUBLE"])
DAY = dt.date(2024, 1, 31)
TWO_FLAGS = [("a", True), ("b", False), ("c", None)]


def named(values):
    return list(zip(NAMES, values, strict=False))


N6 = named([10, 20, 30, 40, 50, 60])
X6 = named([5.5, 6.25, 7.5, 8.125, 9.5, 10.0])

CASES = {
    "pivoted": (
        (["region", "year", "n"], ["VARCHAR", "INTEGER", "INTEGER"]),
        [("E", 2023, 1), ("E", 2024, 2)],
        ["region", "2023", "2024"],
        [("E", 1, 2)],
        {},
        "the values of `year` are columns in the answer: pivoted",
    ),
    "transposed": (
        (["revenue", "cost"], ["INTEGER", "INTEGER"]),
        [(10, 4)],
        ["metric", "value"],
        [("Revenue", 10), ("Cost", 4)],
        {},
        "the expected columns are values of the answer's `metric`: transposed",
    ),
    "missing_column": (KN, N6, ["k"], [(k,) for k, _ in N6], {}, "1 expected column not in the answer: `n`"),
    "wrong_grain": (
        KN,
        [("E", 3), ("W", 4)],
        ["k", "month", "n"],
        [("E", 1, 1), ("E", 2, 2), ("W", 1, 4)],
        {},
        "3 rows where 2 are expected, but `n` sums to 7 in both: other grain (grouped by `month` as well)",
    ),
    "total_row": (
        KN,
        N6,
        ["k", "n"],
        [*N6, ("Total", 210)],
        {},
        "one row too many, holding the sums of the others: n = 210",
    ),
    "truncated_by_limit": (
        KN,
        N6,
        ["k", "n"],
        N6[:5],
        {},
        "5 of 6 rows, the rest missing: looks like LIMIT 5",
    ),
    "rows_missing": (KN, N6, ["k", "n"], N6[:4], {}, "2 rows of 6 missing, the others are right"),
    "rows_extra": (
        KN,
        N6[:4],
        ["k", "n"],
        N6,
        {},
        "2 rows too many; all 4 expected rows are there",
    ),
    "fan_out": (KN, N6, ["k", "n"], N6 * 3, {}, "each of the 6 rows is there 3 times: join fan-out"),
    "duplicates_extra": (
        KN,
        N6,
        ["k", "n"],
        [*N6, N6[0]],
        {},
        "the same 6 distinct rows, but 7 of them where 6 are expected: rows repeated",
    ),
    "duplicates_missing": (
        KN,
        [*N6, N6[0]],
        ["k", "n"],
        N6,
        {},
        "the same 6 distinct rows, but 6 of them where 7 are expected: DISTINCT too much",
    ),
    "rows_differ": (
        KN,
        N6,
        ["k", "n"],
        [*N6[:5], ("abroad", 60)],
        {},
        "1 of 6 expected rows not in the answer, 1 of 6 answered rows not expected",
    ),
    "order_reversed": (
        KN,
        N6,
        ["k", "n"],
        N6[::-1],
        {"ordered": True, "order_by": ["n"]},
        "all 6 rows are there, in reverse order (sorted by `n`)",
    ),
    "nulls_order": (
        KN,
        [("x", None), *N6],
        ["k", "n"],
        [*N6, ("x", None)],
        {"ordered": True, "order_by": ["n"]},
        "1 row with a NULL sort key elsewhere; the other rows are in order",
    ),
    "limit_tie": (
        KN,
        [("a", 9), ("b", 8), ("c", 7)],
        ["k", "n"],
        [("a", 9), ("b", 8), ("d", 7)],
        {"ordered": True, "order_by": ["n desc"]},
        "only rows that tie with the last one (sorted by `n`) differ: 1 row; the LIMIT cuts through a tie",
    ),
    "order": (
        KN,
        N6,
        ["k", "n"],
        [N6[1], N6[0], *N6[2:]],
        {"ordered": True, "order_by": ["n"]},
        "the same rows in another order (sorted by `n`): 2 out of place, the first at row 1",
    ),
    "columns_swapped": (
        (["won", "lost"], ["INTEGER", "INTEGER"]),
        [(5, 3), (2, 1)],
        ["won", "lost"],
        [(3, 5), (1, 2)],
        {},
        "`won` and `lost` are exchanged: with the names swapped the tables match",
    ),
    "type": (
        KX,
        X6,
        ["k", "x"],
        [*X6[:5], ("isles", "ten")],
        {},
        "`x`: 1 value cannot be read as DOUBLE, such as 'ten' (1 of 6 rows; expected 10, got 'ten')",
    ),
    "date_format": (
        (["d"], ["DATE"]),
        [(DAY,)],
        ["d"],
        [("31.01.2024",)],
        {},
        "`d`: 1 value not written as YYYY-MM-DD, such as '31.01.2024' "
        "(1 of 1 row; expected 2024-01-31, got '31.01.2024')",
    ),
    "rounded": (
        KX,
        X6,
        ["k", "x"],
        named([5.5, 6.3, 7.5, 8.1, 9.5, 10.0]),
        {},
        "`x`: rounded to 1 decimal (2 of 6 rows; expected 6.25, got 6.3)",
    ),
    "truncated": (
        KX,
        X6,
        ["k", "x"],
        named([5, 6, 7, 8, 9, 10]),
        {},
        "`x`: cut, not rounded, to whole numbers (5 of 6 rows; expected 5.5, got 5)",
    ),
    "precision_lost": (
        (["id"], ["BIGINT"]),
        [(1234567890123456789,), (3,)],
        ["id"],
        [(1234567890123456800,), (3,)],
        {},
        "`id`: integers beyond 2^53 went through a float64 and lost their last digits "
        "(1 of 2 rows; expected 1234567890123456789, got 1234567890123456800)",
    ),
    "leading_zeros": (
        (["zip", "n"], ["VARCHAR", "INTEGER"]),
        [("02134", 1), ("10001", 2)],
        ["zip", "n"],
        [(2134, 1), (10001, 2)],
        {},
        "`zip`: leading zeros lost or added (1 of 2 rows; expected '02134', got 2134)",
    ),
    "percent_text": (
        (["rate", "n"], ["VARCHAR", "INTEGER"]),
        [("12.5%", 1), ("7%", 2)],
        ["rate", "n"],
        [(12.5, 1), (7, 2)],
        {},
        "`rate`: a percentage with its sign is text, a number is not (2 of 2 rows; "
        "expected '12.5%', got 12.5)",
    ),
    "case": (
        KN,
        N6,
        ["k", "n"],
        [(k.upper(), n) for k, n in N6],
        {},
        "`k`: upper and lower case differ (6 of 6 rows; expected 'north', got 'NORTH')",
    ),
    "whitespace": (
        KN,
        [("New York", 1)],
        ["k", "n"],
        [("New\u00a0 York", 1)],
        {},
        "`k`: blanks inside the text differ (1 of 1 row; expected 'New York', got 'New\\xa0 York')",
    ),
    "inverted": (
        (["k", "flag"], ["VARCHAR", "BOOLEAN"]),
        TWO_FLAGS,
        ["k", "flag"],
        [("a", False), ("b", True), ("c", None)],
        {},
        "`flag`: true and false are exchanged (2 of 3 rows; expected true, got false)",
    ),
    "scaled": (
        KX,
        X6,
        ["k", "x"],
        [(k, x * 100) for k, x in X6],
        {},
        "`x`: all 6 values are 100 times the expected (6 of 6 rows; expected 5.5, got 550)",
    ),
    "sign": (
        KN,
        named([1, -2, 3, -4, 5, -6]),
        ["k", "n"],
        named([1, 2, 3, 4, 5, 6]),
        {},
        "`n`: the sign differs (3 of 6 rows; expected -2, got 2)",
    ),
    "cumulative": (
        KN,
        N6,
        ["k", "n"],
        named([10, 30, 60, 100, 150, 210]),
        {},
        "`n`: running sums where single values are expected (5 of 6 rows; expected 20, got 30)",
    ),
    "column_offset": (
        KN,
        named([3, 5, 9, 11, 12, 30]),
        ["k", "n"],
        named([4, 6, 10, 12, 13, 31]),
        {},
        "`n`: all 6 values are off by +1 (6 of 6 rows; expected 3, got 4)",
    ),
    "date_shift": (
        (["k", "d"], ["VARCHAR", "DATE"]),
        named([DAY, DAY]),
        ["k", "d"],
        named(["2024-01-30", "2024-01-30"]),
        {},
        "`d`: every date is off by -1 day (2 of 2 rows; expected 2024-01-31, got '2024-01-30')",
    ),
    "timezone_shift": (
        (["t"], ["TIMESTAMP"]),
        [(dt.datetime(2024, 1, 31, 10),), (dt.datetime(2024, 1, 31, 12),)],
        ["t"],
        [("2024-01-31 15:30:00",), ("2024-01-31 17:30:00",)],
        {},
        "`t`: every time is off by +5.5 h: another time zone "
        "(2 of 2 rows; expected 2024-01-31 10:00:00, got '2024-01-31 15:30:00')",
    ),
    "null_vs_zero": (
        KX,
        named([1.5, None]),
        ["k", "x"],
        named([1.5, 0]),
        {},
        "`x`: NULL on one side, 0 on the other (1 of 2 rows; expected NULL, got 0)",
    ),
    "null_vs_false": (
        (["k", "flag"], ["VARCHAR", "BOOLEAN"]),
        TWO_FLAGS,
        ["k", "flag"],
        [("a", True), ("b", False), ("c", False)],
        {},
        "`flag`: NULL on one side, false on the other (1 of 3 rows; expected NULL, got false)",
    ),
    "null_vs_empty": (
        (["k", "t"], ["VARCHAR", "VARCHAR"]),
        named(["x", None]),
        ["k", "t"],
        named(["x", ""]),
        {},
        "`t`: NULL on one side, an empty text on the other (1 of 2 rows; expected NULL, got '')",
    ),
    "null_vs_text": (
        (["k", "t"], ["VARCHAR", "VARCHAR"]),
        named(["x", None]),
        ["k", "t"],
        named(["x", "N/A"]),
        {},
        "`t`: NULL on one side, the text 'N/A' on the other (1 of 2 rows; expected NULL, got 'N/A')",
    ),
    "null_instead_of_value": (
        KN,
        N6,
        ["k", "n"],
        [*N6[:5], ("isles", None)],
        {},
        "`n`: NULL where a value is expected (1 of 6 rows; expected 60, got NULL)",
    ),
    "list_order": (
        (["k", "tags"], ["VARCHAR", "VARCHAR[]"]),
        [("a", ["x", "y"])],
        ["k", "tags"],
        [("a", ["y", "x"])],
        {},
        "`tags`: the same elements in another order (1 of 1 row; expected ['x', 'y'], got ['y', 'x'])",
    ),
    "duplicate_counts": (
        KN,
        [*N6, N6[0]],
        ["k", "n"],
        [*N6, N6[1]],
        {},
        "every answered row is an expected one, but 1 row of 7 should be another: "
        "rows repeated in their place",
    ),
    "rows_scrambled": (
        KN,
        N6,
        ["k", "n"],
        named([20, 10, 30, 40, 50, 60]),
        {},
        "every column holds the expected values, but 2 of 6 rows combine them differently",
    ),
    "values_differ": (
        KN,
        N6,
        ["k", "n"],
        named([10, 20, 30, 40, 50, 67]),
        {},
        "`n` differs in 1 of 6 rows: expected 60, got 67 where k = 'isles'",
    ),
}


@pytest.fixture(params=[10**9, -1], ids=["plain", "arrays"])
def path(request, monkeypatch):
    monkeypatch.setattr(comparing, "PLAIN_CELLS", request.param)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("word", CASES)
def test_word_and_sentence(word):
    (names, types), rows, answered, answer, options, sentence = CASES[word]
    found = compare(
        Table.from_rows(names, rows, types), Table.from_rows(answered, answer), parse_options(options)
    )
    assert not found.matched
    assert (found.diagnosis.word, found.diagnosis.sentence) == (word, sentence)


def test_no_answer():
    found = compare(Table.from_rows(["n"], [(1,)], ["INTEGER"]), None)
    assert (found.matched, found.message) == (False, "no data returned")
    assert found.diagnosis.word == "no_answer"
    assert found.diagnosis.sentence == "the agent returned no table; 1 row expected"


def test_empty_tables():
    none = Table.from_rows(["n"], [], ["INTEGER"])
    one = Table.from_rows(["n"], [(1,)], ["INTEGER"])
    assert compare(none, Table.from_records([])).message == "both empty"
    answered = compare(none, one)
    assert (answered.message, answered.diagnosis.word) == ("expected is empty", "rows_extra")
    assert answered.diagnosis.sentence == "1 row where none is expected"
    empty = compare(one, Table.from_records([]), parse_options({"order_by": ["n"]}))
    assert (empty.message, empty.diagnosis.word) == ("actual is empty", "rows_missing")
    assert empty.missing_columns == ()
    assert empty.notes


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize(
    ("factor", "text"),
    [
        (100, "100 times"),
        (1000, "1,000 times"),
        (1e6, "1,000,000 times"),
        (60, "60 times"),
        (1 / 3600, "1/3600 of"),
        (0.01, "1/100 of"),
        (1.19, "1.19 times"),
        (2, "2 times"),
    ],
)
def test_factors(factor, text):
    expected = Table.from_rows(*[["k", "x"], X6, ["VARCHAR", "DOUBLE"]])
    found = compare(expected, Table.from_rows(["k", "x"], [(k, x * factor) for k, x in X6]))
    assert found.diagnosis.word == "scaled"
    assert f"all 6 values are {text} the expected" in found.diagnosis.sentence


@pytest.mark.usefixtures("path")
def test_one_row_is_scaled_by_a_listed_factor_only():
    expected = Table.from_rows(["x"], [(2.5,)], ["DOUBLE"])
    assert compare(expected, Table.from_rows(["x"], [(250,)])).diagnosis.word == "scaled"
    assert compare(expected, Table.from_rows(["x"], [(5,)])).diagnosis.word == "values_differ"


@pytest.mark.usefixtures("path")
def test_set_semantics():
    options = parse_options({"duplicates": "set"})
    expected = Table.from_rows(["k", "x"], [("a", 1.0), ("a", 1.0), ("b", 2.0)], ["VARCHAR", "DOUBLE"])
    assert compare(expected, Table.from_rows(["k", "x"], [("b", 2.001), ("a", 1.0)]), options).matched
    missing = compare(expected, Table.from_rows(["k", "x"], [("b", 2.0)]), options)
    assert (missing.message, missing.diagnosis.word) == ("values differ", "rows_missing")
    extra = compare(expected, Table.from_rows(["k", "x"], [("b", 2), ("a", 1), ("c", 3)]), options)
    assert extra.diagnosis.word == "rows_extra"
    both = compare(expected, Table.from_rows(["k", "x"], [("b", 2), ("c", 3)]), options)
    assert both.diagnosis.word == "rows_differ"


def large(rows=1500):
    random = np.random.default_rng(11)
    return {
        "id": np.arange(rows),
        "name": [f"customer {i}" for i in range(rows)],
        "city": [["Oslo", "Rome", "Lima"][i % 3] for i in range(rows)],
        "x": np.round(random.random(rows) * 1000, 3),
        "y": np.round(random.random(rows), 6),
        "d": [DAY + dt.timedelta(i % 400) for i in range(rows)],
        "flag": random.random(rows) < 0.5,
    }


def as_table(data):
    return Table.from_arrow(pa.table(data))


def changed(**columns):
    return as_table({**large(), **columns})


def part(rows):
    table = pa.table(large())
    return Table.from_arrow(table.take(pa.array(rows)))


LARGE = {
    "scaled": lambda: changed(x=large()["x"] * 100),
    "sign": lambda: changed(x=-large()["x"]),
    "case": lambda: changed(city=[city.upper() for city in large()["city"]]),
    "inverted": lambda: changed(flag=~large()["flag"]),
    "date_shift": lambda: changed(d=[d + dt.timedelta(1) for d in large()["d"]]),
    "column_offset": lambda: changed(x=large()["x"] + 5),
    "truncated": lambda: changed(x=np.floor(large()["x"])),
    "rounded": lambda: changed(x=np.round(large()["x"], 1)),
    "null_instead_of_value": lambda: changed(
        x=[None if i % 7 == 0 else x for i, x in enumerate(large()["x"])]
    ),
    "rows_missing": lambda: part([i for i in range(1500) if i % 5]),
    "rows_extra": lambda: as_table(
        {k: [*v, v[0]] for k, v in {**large(), "id": [*large()["id"]]}.items()}
        | {"id": [*large()["id"], 9999]}
    ),
    "truncated_by_limit": lambda: part(range(1000)),
    "fan_out": lambda: part([*range(1500), *range(1500)]),
    "duplicates_extra": lambda: part([*range(1500), 3, 4]),
    "duplicate_counts": lambda: part([0, *range(1499)]),
    "rows_scrambled": lambda: changed(x=np.roll(large()["x"], 1)),
    "columns_swapped": lambda: changed(x=large()["y"], y=large()["x"]),
    "values_differ": lambda: changed(x=[x + 7 if i % 100 == 0 else x for i, x in enumerate(large()["x"])]),
    "rows_differ": lambda: changed(
        name=[f"client {i}" if i % 100 == 0 else f"customer {i}" for i in range(1500)],
        x=large()["x"] + (np.arange(1500) % 100 == 0),
    ),
}


@pytest.mark.parametrize("word", LARGE)
def test_large_tables_get_the_same_words(word):
    found = compare(as_table(large()), LARGE[word]())
    assert not found.matched
    assert found.diagnosis.word == word, found.diagnosis
    assert found.sample or word == "fan_out"
    assert found.counts.expected == 1500


@pytest.mark.parametrize(
    ("word", "order"),
    [("order_reversed", range(1499, -1, -1)), ("order", [1, 0, *range(2, 1500)])],
)
def test_large_lists(word, order):
    options = parse_options({"ordered": True, "order_by": ["id"]})
    found = compare(as_table(large()), part(order), options)
    assert found.diagnosis.word == word
    assert compare(as_table(large()), part(range(1500)), options).matched


def test_a_word_of_a_large_table_holds_for_all_of_its_rows():
    found = compare(as_table(large()), LARGE["scaled"]())
    assert "all 1,500 values are 100 times the expected (1,500 of 1,500 rows;" in found.diagnosis.sentence
    assert found.diagnosis.proof["differing"] == 1500
