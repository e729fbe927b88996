"""Columns: the steps of the contract, and the search by value in both paths."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

from pytest_agenteval.compare import compare, parse_options
from pytest_agenteval.compare import tables as comparing
from pytest_agenteval.table import Column, Table


@pytest.fixture(params=[10**9, -1], ids=["plain", "arrays"])
def path(request, monkeypatch):
    monkeypatch.setattr(comparing, "PLAIN_CELLS", request.param)


def mapped(found):
    return {column.expected: (column.actual, column.how) for column in found.mapping}


@pytest.mark.usefixtures("path")
def test_each_step_runs_over_all_columns_before_the_next():
    expected = Table.from_rows(["a b", "A_B", "x"], [(1, 2, 3)], ["INTEGER"] * 3)
    found = compare(expected, Table.from_rows(["A_B", "A B", "y"], [(2, 1, 3)]))
    assert found.matched
    assert mapped(found) == {"a b": ("A B", "name"), "A_B": ("A_B", "name"), "x": ("y", "value")}


@pytest.mark.usefixtures("path")
def test_aliases_come_before_values():
    expected = Table.from_rows(["revenue"], [(1,), (2,)], ["INTEGER"])
    actual = Table.from_rows(["Turn-Over", "other"], [(1, 2), (2, 1)])
    found = compare(expected, actual, parse_options({"column_aliases": {"Revenue": "turn over"}}))
    assert mapped(found) == {"revenue": ("Turn-Over", "alias")}
    assert found.message == "match (extra columns ignored: other)"
    assert "`revenue` <- `Turn-Over` by alias" in found.leniencies


@pytest.mark.usefixtures("path")
def test_several_candidates_of_one_name_are_decided_by_value():
    expected = Table.from_rows(["Id", "n"], [(1, 5), (2, 6)], ["INTEGER"] * 2)
    actual = Table.from_rows(["ID", "id", "n"], [(9, 1, 5), (9, 2, 6)])
    assert mapped(compare(expected, actual))["Id"] == ("id", "name")
    nothing = compare(expected, Table.from_rows(["ID", "id", "n"], [(9, 8, 5), (9, 2, 6)]))
    assert not nothing.matched
    assert mapped(nothing)["Id"] == ("id", "name")


@pytest.mark.usefixtures("path")
def test_duplicate_names_of_a_reference_stay_two_columns():
    expected = Table.from_rows(["n", "n"], [(1, 2), (3, 4)], ["INTEGER"] * 2)
    assert compare(expected, Table.from_rows(["n", "n"], [(2, 1), (4, 3)])).matched
    assert compare(expected, Table.from_rows(["n", "m"], [(1, 2), (3, 4)])).matched
    one = compare(expected, Table.from_rows(["n"], [(1,), (3,)]))
    assert one.message == "missing columns: ['n']"


@pytest.mark.usefixtures("path")
def test_a_name_match_is_final():
    expected = Table.from_rows(["won", "lost"], [(5, 3), (4, 1)], ["INTEGER"] * 2)
    found = compare(expected, Table.from_rows(["won", "lost"], [(3, 5), (1, 4)]))
    assert found.diagnosis.word == "columns_swapped"
    assert found.diagnosis.columns == ("won", "lost")


@pytest.mark.usefixtures("path")
def test_by_position_and_by_name():
    expected = Table.from_rows(["a", "b"], [(1, 2)], ["INTEGER"] * 2)
    actual = Table.from_rows(["x", "y", "z"], [(1, 2, 3)])
    found = compare(expected, actual, parse_options({"columns": "position"}))
    assert found.message == "match (extra columns ignored: z)"
    assert "`a` <- `x` by position" in found.leniencies
    assert (
        compare(expected, actual, parse_options({"columns": "name"})).message == "missing columns: ['a', 'b']"
    )
    short = compare(expected, Table.from_rows(["x"], [(1,)]), parse_options({"columns": "position"}))
    assert short.message == "missing columns: ['b']"


@pytest.mark.usefixtures("path")
def test_forbidden_extra_columns_come_first():
    expected = Table.from_rows(["a"], [(1,)], ["INTEGER"])
    actual = Table.from_rows(["a", "b"], [(2, 2)])
    found = compare(expected, actual, parse_options({"extra_columns": "forbid"}))
    assert (found.message, found.diagnosis.word) == ("extra columns: ['b']", "extra_column")
    assert found.diagnosis.sentence == "1 column too many: `b`; extra columns are forbidden"


@pytest.mark.usefixtures("path")
def test_an_absent_key_is_null_and_an_absent_column_is_missing():
    expected = Table.from_rows(["a", "b"], [(1, None), (2, None)], ["INTEGER"] * 2)
    assert compare(expected, Table.from_records([{"a": 1, "b": None}, {"a": 2}])).matched
    found = compare(expected, Table.from_records([{"a": 1}, {"a": 2}]))
    assert found.message == "missing columns: ['b']"
    assert found.diagnosis.word == "missing_column"


def permuted(cells, names, random):
    order = random.permutation(len(cells))
    rows = random.permutation(cells.shape[1])
    expected = Table.from_arrow(pa.table({f"c{i}": row for i, row in enumerate(cells)}))
    actual = Table.from_arrow(pa.table({f"{names}{i}": cells[j][rows] for i, j in enumerate(order)}))
    return expected, actual


def cubic(random, size):
    """The incidence matrix of a random graph in which every node has three edges."""
    while True:
        ends = random.permutation(np.repeat(np.arange(size), 3)).reshape(-1, 2)
        edges = {tuple(sorted(pair)) for pair in ends.tolist()}
        if len(edges) == 3 * size // 2 and all(a != b for a, b in edges):
            break
    cells = np.zeros((size, len(edges)), int)
    for number, pair in enumerate(sorted(edges)):
        cells[list(pair), number] = 1
    return cells


def test_look_alike_columns_are_found():
    random = np.random.default_rng(5)
    for cells in (
        random.integers(0, 2, (60, 400)),
        np.eye(60, dtype=int),
        np.eye(30, dtype=int),
        cubic(random, 60),
        cubic(random, 20),
        random.integers(0, 2, (40, 300)) * 1.0,
        random.integers(0, 2, (12, 30)),
    ):
        found = compare(*permuted(cells, "h", random))
        assert found.matched, found.diagnosis
        assert all(column.how == "value" for column in found.mapping)


@pytest.mark.parametrize("size", [20, 60])
def test_look_alike_columns_that_do_not_fit_end_in_a_verdict(size):
    random = np.random.default_rng(6)
    left, right = cubic(random, size), cubic(random, size)
    expected = Table.from_arrow(pa.table({f"c{i}": row for i, row in enumerate(left)}))
    actual = Table.from_arrow(pa.table({f"h{i}": row for i, row in enumerate(right)}))
    found = compare(expected, actual)
    assert not found.matched
    assert found.diagnosis.word in ("rows_scrambled", "ambiguous_columns")


def test_a_search_at_its_bound_says_so(monkeypatch):
    from pytest_agenteval.compare.array_engine import column_search as vector_search
    from pytest_agenteval.compare.python_engine import column_search as search

    monkeypatch.setattr(vector_search, "BUDGET", 0)
    monkeypatch.setattr(search, "SEARCH_BUDGET", 0)
    random = np.random.default_rng(7)
    for size in (10, 60):
        found = compare(*permuted(random.integers(0, 2, (size, 50)), "h", random))
        assert not found.matched
        assert found.diagnosis.word == "ambiguous_columns"
        assert "use column_aliases" in found.diagnosis.sentence


@pytest.mark.usefixtures("path")
def test_by_value_with_extra_columns_and_a_set():
    rows = list(itertools.product((0, 1), (0, 1), (1.5, 2.5)))
    expected = Table.from_rows(["k", "l", "m"], rows, ["INTEGER", "INTEGER", "DOUBLE"])
    actual = Table.from_rows(["a", "b", "c", "d"], [(7, m, k, n) for k, n, m in rows + rows])
    assert not compare(expected, actual).matched
    assert compare(expected, actual, parse_options({"duplicates": "set"})).matched
    once = Table.from_rows(["a", "b", "c", "d"], [(7, m, k, n) for k, n, m in rows])
    assert compare(expected, once).matched


@pytest.mark.usefixtures("path")
def test_left_over_columns_that_agree_in_half_of_the_rows_are_shown_not_matched():
    expected = Table.from_rows(["k", "total"], [(i, i * 10) for i in range(6)], ["INTEGER"] * 2)
    actual = Table.from_rows(["k", "amount"], [(i, i * 10 + (i > 3)) for i in range(6)])
    found = compare(expected, actual)
    assert not found.matched
    assert found.message == "missing columns: ['total']"
    assert found.missing_columns == ("total",)
    assert found.mapping[1].text == "total <- amount (closest by value)"
    assert found.diagnosis.sentence == (
        "`total` ~ `amount` (names differ): `total` differs in 2 of 6 rows: expected 40, got 41 where k = 4"
    )
    none = compare(expected, Table.from_rows(["k", "amount"], [(i, f"note {i}") for i in range(6)]))
    assert none.message == "missing columns: ['total']"
    assert "no value fits in what is left over: `amount`" in none.diagnosis.sentence


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("arrow", [False, True])
@pytest.mark.parametrize("others", [1, 2])
def test_json_objects_under_another_name_are_found_by_value(arrow, others):
    texts = [f'{{"id": {i}, "tags": ["a", {i}.0]}}' for i in range(299)]
    objects = [{"tags": ["a", i], "id": i} for i in range(299)]
    if arrow:
        texts = [f'{{"id": {i}, "tags": [{i}]}}' for i in range(299)]
        objects = pa.array([{"id": i, "tags": [i]} for i in range(299)])
    notes = ["{no json", *("x" * (i % 7) for i in range(298))]
    expected = Table.from_arrow(pa.table({"payload": texts, "note": notes, "n": list(range(299))}))
    columns = {"p": objects, "m": notes, "n": list(range(299))}
    more = {"spare": notes[::-1]} if others == 2 else {}
    answered = columns | more
    actual = Table(tuple(Column(name) for name in answered), tuple(answered.values()), 299)
    found = compare(expected, actual)
    assert found.matched, found.diagnosis
    assert mapped(found)["payload"] == ("p", "value")
