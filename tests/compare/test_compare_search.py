"""Columns found by value where they are near, many, alike or part of a list; what other names are paired."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pytest_agenteval.compare import compare, parse_options
from pytest_agenteval.compare import tables as comparing
from pytest_agenteval.compare.array_engine import column_search as array_search
from pytest_agenteval.table import Table


@pytest.fixture(params=["plain", "arrays"], autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "arrays":
        monkeypatch.setattr(comparing, "PLAIN_CELLS", -1)


def table(kind: str | None = None, /, **columns: list[Any]) -> Table:
    rows = list(zip(*columns.values(), strict=True))
    return Table.from_rows(list(columns), rows, [kind] * len(columns))


def rates(count: int, rows: int) -> list[list[float]]:
    chance = random.Random(count)
    return [[chance.random() for _ in range(rows)] for _ in range(count)]


def answered(columns: list[list[float]], change: Any) -> Table:
    """The columns under other names in another order, rows shuffled, each value changed."""
    chance = random.Random(9)
    rows = chance.sample(range(len(columns[0])), len(columns[0]))
    order = chance.sample(range(len(columns)), len(columns))
    return table(**{f"a{n}": [change(columns[i][row]) for row in rows] for n, i in enumerate(order)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda value: value + 1e-12, "match (approximate)"),
        (lambda value: round(value, 3), "match (rounded)"),
    ],
)
def test_near_columns_under_other_names_are_found(change: Any, message: str) -> None:
    columns = rates(5, 400)
    expected = table("DOUBLE", **{f"e{n}": values for n, values in enumerate(columns)})
    found = compare(expected, answered(columns, change))
    assert found.message == message
    assert {column.how for column in found.mapping} == {"value"}


def test_rows_that_an_id_names_tie_rounded_columns() -> None:
    columns = [[float(i) for i in range(300)], *rates(6, 300)]
    names = ["id", *(f"rate_{n}" for n in range(6))]
    expected = table("DOUBLE", **dict(zip(names, columns, strict=True)))
    ids = [str(i) for i in range(300)]
    expected = Table.from_rows(
        ["id", *names[1:]], list(zip(ids, *columns[1:], strict=True)), ["VARCHAR"] + ["DOUBLE"] * 6
    )
    shown = [[round(value, 2) for value in values] for values in columns[1:]]
    chance = random.Random(3)
    rows = chance.sample(range(300), 300)
    other = {"id": [ids[row] for row in rows]}
    other |= {f"share_{n}": [shown[5 - n][row] for row in rows] for n in range(6)}
    found = compare(expected, table(**other))
    assert found.message == "match (rounded)"
    assert found.mapping[1].text == "rate_0 <- share_5 (by value)"
    other["share_5"] = [*other["share_5"][:-1], 7.0]
    assert compare(expected, table(**other)).message == "missing columns: ['rate_0']"


@pytest.mark.parametrize("width", [20, 60])
def test_one_hot_columns_under_other_names_are_found(width: int) -> None:
    chance = random.Random(1)
    flags = [[int(i == j) for i in range(width)] for j in range(width)]
    rows, order = (chance.sample(range(width), width) for _ in range(2))
    expected = table("INTEGER", **{f"c{n}": values for n, values in enumerate(flags)})
    actual = {f"a{n}": [flags[i][row] for row in rows] for n, i in enumerate(order)}
    assert compare(expected, table(**actual)).matched
    actual["a0"] = list(actual["a1"])
    wrong = compare(expected, table(**actual))
    assert not wrong.matched
    assert wrong.message.startswith("missing columns: ")


def test_a_list_finds_the_columns_under_which_it_is_in_order() -> None:
    expected = table("INTEGER", k=[1, 2, 3, 4], p=[0, 1, 0, 1], q=[1, 0, 1, 0])
    actual = table(k=[1, 2, 3, 4], x=[1, 0, 1, 0], y=[0, 1, 0, 1])
    options = parse_options({"ordered": True, "order_by": ["k"]})
    found = compare(expected, actual, options)
    assert found.matched
    assert [column.text for column in found.mapping[1:]] == ["p <- y (by value)", "q <- x (by value)"]
    alone = compare(
        table("INTEGER", p=[0, 1, 1, 0], q=[1, 0, 0, 1]),
        table(x=[1, 0, 0, 1], y=[0, 1, 1, 0]),
        parse_options({"ordered": True}),
    )
    assert alone.matched


def test_names_that_say_the_same_come_before_values() -> None:
    expected = table("INTEGER", team=[1, 2], wins=[5, 4], losses=[3, 1])
    turned = compare(expected, table(team=[1, 2], wins_count=[3, 1], losses_count=[5, 4]))
    assert not turned.matched
    assert turned.diagnosis is not None
    assert turned.diagnosis.sentence.startswith("`wins` and `losses` are exchanged")
    right = compare(expected, table(team=[1, 2], losses_count=[3, 1], wins_count=[5, 4]))
    assert right.matched
    assert right.mapping[1].text == "wins <- wins_count (by value)"
    alike = table("INTEGER", wins=[5, 4], losses=[5, 4])
    assert compare(alike, table(wins_count=[5, 4], losses_count=[5, 4])).matched


def test_values_that_are_all_there_are_said_where_names_alone_are_taken() -> None:
    expected = table("INTEGER", k=[1, 2], revenue=[10, 20])
    found = compare(expected, table(k=[1, 2], net_sales=[10, 20]), parse_options({"columns": "name"}))
    assert found.diagnosis is not None
    assert found.message == "missing columns: ['revenue']"
    assert found.diagnosis.word == "missing_column"
    assert found.diagnosis.sentence == (
        "1 expected column not in the answer: `revenue`; `net_sales` holds the values of `revenue`, "
        "and `columns: name` takes names alone"
    )


def test_what_is_there_is_found_where_a_column_is_missing() -> None:
    expected = table("INTEGER", k=[1, 2], total=[10, 20], n=[3, 4])
    found = compare(expected, table(key=[1, 2], sum=[10, 20]))
    assert found.message == "missing columns: ['n']"
    assert [column.how for column in found.mapping] == ["value", "value"]


@pytest.mark.parametrize(
    ("kind", "wanted", "given", "paired"),
    [
        ("VARCHAR", ["02134", "10001"], [2134, 10001], True),
        ("VARCHAR", ["north", "south"], [1, 2], False),
        ("INTEGER", [1, 2], ["one", "two"], False),
        ("INTEGER", [3, 4], [True, False], False),
        ("BOOLEAN", [True, False], [0, 0], True),
        ("BOOLEAN", [True, False], [7, 8], False),
        ("DATE", ["2024-01-31", "2024-02-01"], ["31.01.2024", "01.02.2024"], True),
        ("DATE", ["2024-01-31", "2024-02-01"], ["north", "south"], False),
        ("DATE", ["2024-01-31", "2024-02-01"], [20240131, 20240201], False),
        ("DOUBLE", [1.5, 2.5], [None, None], True),
    ],
)
def test_a_column_of_another_name_must_fit_in_type(
    kind: str, wanted: list[Any], given: list[Any], paired: bool
) -> None:
    expected = Table.from_rows(["k", "x"], list(zip("ab", wanted, strict=True)), ["VARCHAR", kind])
    found = compare(expected, table(k=["a", "b"], other=given))
    assert found.diagnosis is not None
    assert found.message == "missing columns: ['x']"
    assert ("`x` ~ `other` (names differ): " in found.diagnosis.sentence) is paired
    assert (found.diagnosis.word == "missing_column") is not paired


def test_the_pairing_under_which_a_word_holds_is_taken() -> None:
    expected = table("DOUBLE", k=[1.0, 2.0, 3.0], revenue=[12.5, 20.25, 31.75])
    actual = table(
        k=[1.0, 2.0, 3.0], tax=[0.3, 0.1, 0.2], gross=[1250.0, 2025.0, 3175.0], age=[44.5, 5.0, 6.25]
    )
    found = compare(expected, actual)
    assert found.diagnosis is not None
    assert found.diagnosis.sentence.startswith(
        "`revenue` ~ `gross` (names differ): all 3 values are 100 times"
    )
    named = compare(expected, table(k=[1.0, 2.0, 3.0], tax=[0.3, 0.1, 0.2], net_revenue=[9.5, 8.0, 7.25]))
    assert named.diagnosis is not None
    assert named.diagnosis.sentence.startswith(
        "`revenue` ~ `net_revenue` (names differ): `revenue` differs in 3"
    )
    most = compare(expected, table(k=[1.0, 2.0, 3.0], tax=[12.5, 1.0, 2.0], total=[12.5, 20.25, 99.0]))
    assert most.diagnosis is not None
    assert most.diagnosis.sentence.startswith(
        "`revenue` ~ `total` (names differ): `revenue` differs in 1 of 3"
    )


def test_several_columns_of_other_names_are_told_together() -> None:
    names = "abcde"
    expected = table("DOUBLE", k=[1.0, 2.0], **{name: [i + 0.5, i + 1.25] for i, name in enumerate(names)})
    actual = table(k=[1.0, 2.0], **{f"x{name}": [i + 70.5, i + 91.25] for i, name in enumerate(names)})
    found = compare(expected, actual)
    assert found.diagnosis is not None
    assert "`a` ~ `xa`, `b` ~ `xb`, `c` ~ `xc` and 2 more (names differ): " in found.diagnosis.sentence


def test_a_list_with_ties_finds_columns_by_value() -> None:
    expected = table("INTEGER", k=[1, 1, 2, 2], p=[0, 1, 0, 1], q=[1, 0, 0, 1], r=[0, 1, 1, 0])
    actual = table(k=[1, 1, 2, 2], x=[1, 0, 0, 1], y=[0, 1, 1, 0], z=[0, 1, 0, 1])
    options = parse_options({"ordered": True, "order_by": ["k"]})
    found = compare(expected, actual, options)
    assert found.matched
    moved = compare(expected, table(k=[1, 1, 2, 2], x=[1, 1, 0, 0], y=[0, 1, 1, 0], z=[0, 1, 0, 1]), options)
    assert not moved.matched


def test_percentages_are_tied_along_rows_that_an_id_names() -> None:
    ids = ["a", "b", "c", "d"]
    expected = Table.from_rows(
        ["id", "won", "lost"],
        list(zip(ids, [0.1, 0.2, 0.4, 0.3], [0.3, 0.1, 0.2, 0.4], strict=True)),
        ["VARCHAR", "DOUBLE", "DOUBLE"],
    )
    given = table(id=ids, x=["30%", "10%", "20%", "40%"], y=["10%", "20%", "40%", "30%"])
    found = compare(expected, given)
    assert found.matched
    assert [column.text for column in found.mapping[1:]] == ["won <- y (by value)", "lost <- x (by value)"]


def test_near_columns_that_agree_one_by_one_but_not_as_rows() -> None:
    expected = table("DOUBLE", a=[1.0, 2.0, 3.0, 4.0], b=[1.0, 2.0, 3.0, 4.0])
    options = parse_options({"atol": 0.6, "rtol": 0, "decimals": None})
    found = compare(expected, table(x=[1.5, 2.5, 3.5, 4.5], y=[2.5, 1.5, 4.5, 3.5], z=[7, 7, 7, 7]), options)
    assert not found.matched


def test_columns_that_no_code_tells_apart_are_tried_on_whole_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_search, "MOST_CLUSTERED", 0)
    one, two = [100.5, 201.5, 303.5, 404.5], [201.5, 100.5, 404.5, 303.5]
    near = [[value + 0.0023456789 for value in values] for values in (two, one)]
    expected = table("DOUBLE", a=one, b=two)
    found = compare(expected, table(x=near[0], y=near[1], z=[7, 7, 7, 7]))
    assert found.matched
    assert [column.actual for column in found.mapping] in (
        ["x", "y"],
        ["y", "x"],
    )  # rows may come in any order
    apart = [one, [303.5, 404.5, 100.5, 201.5]]
    whole = table("DOUBLE", k=[1.0, 1.0, 2.0, 2.0], a=one, b=two)
    assert not compare(whole, table(k=[1, 1, 2, 2], x=apart[0], y=apart[1], z=one)).matched
