"""Bounded work: what could hang, blow up or raise ends in a verdict, on both paths."""

import json
import sys
import time

import numpy as np
import pyarrow as pa
import pytest

from pytest_agenteval.compare import compare, parse_options, render
from pytest_agenteval.compare import tables as comparing
from pytest_agenteval.compare.values import canonical
from pytest_agenteval.table import Table

SELF: list = []
SELF += [SELF, SELF]
LAUGHS: list = ["ha"]
for _ in range(60):
    LAUGHS = [LAUGHS] * 10
DEEP: list = []
for _ in range(5000):
    DEEP = [DEEP]


class Hostile:
    def __str__(self):
        raise RuntimeError("no")

    def __eq__(self, other):
        raise RuntimeError("no")

    def __hash__(self):
        raise RuntimeError("no")

    def __bool__(self):
        raise RuntimeError("no")


@pytest.fixture(params=[10**9, -1], ids=["plain", "arrays"])
def path(request, monkeypatch):
    monkeypatch.setattr(comparing, "PLAIN_CELLS", request.param)


def checked(expected, actual, options=None, seconds=1.0):
    start = time.process_time()
    found = compare(expected, actual, parse_options(options))
    text = "\n".join(render(found))
    data = json.dumps(found.to_json(), allow_nan=False)
    took, most = time.process_time() - start, (10 if "coverage" in sys.modules else 1.5) * seconds
    if took > most:  # without a traceback: pytest would write the values out, and they are made to be endless
        pytest.fail(f"{took:.1f} CPU s, expected at most {most:.1f}", pytrace=False)
    assert len(data) < 500_000
    text.encode("utf-8")
    return found


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("kind", ["VARCHAR", "INTEGER[]", "JSON", None, "DOUBLE", "DATE", "BLOB", "BOOLEAN"])
@pytest.mark.parametrize("value", [SELF, LAUGHS, DEEP, {"a": LAUGHS}, Hostile(), "[" * 100_000], ids=range(6))
def test_hostile_values(kind, value):
    expected = Table.from_rows(["k", "v"], [(1, None), (2, None)], ["INTEGER", kind])
    found = checked(expected, Table.from_rows(["k", "v"], [(1, value), (2, None)]))
    assert not found.matched


def nested(leaf, levels):
    for _ in range(levels):
        leaf = {"a": [leaf]}
    return leaf


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("kind", ["JSON", "VARCHAR", "STRUCT(a INTEGER)", "INTEGER[]", None])
@pytest.mark.parametrize("form", [json.dumps, lambda value: value], ids=["text", "object"])
@pytest.mark.parametrize(
    "make",
    [lambda leaf: nested(leaf, 29), lambda leaf: nested(leaf, 31), lambda leaf: nested(leaf, 150),
     lambda leaf: [[*range(500)], [*range(500)], leaf]],
    ids=["60 levels", "62 levels", "300 levels", "more values"],
)  # fmt: skip
def test_what_is_too_deep_or_too_large_equals_only_itself(kind, form, make, monkeypatch):
    """A value that is not looked at part by part is looked at whole: never equal to another one."""
    monkeypatch.setattr(canonical, "MOST_NODES", 1_000)
    expected = Table.from_rows(["k", "v"], [(1, form(make(1)))], ["INTEGER", kind])
    assert compare(expected, Table.from_rows(["k", "v"], [(1, form(make(1)))])).matched
    assert not compare(expected, Table.from_rows(["k", "v"], [(1, form(make(2)))])).matched


@pytest.mark.usefixtures("path")
def test_many_columns():
    names = [f"c{i}" for i in range(250)]
    expected = Table.from_rows(names, [list(range(250))], ["INTEGER"] * 250)
    assert checked(expected, Table.from_rows(names[::-1], [list(range(249, -1, -1))])).matched
    found = checked(expected, Table.from_rows(names, [[*range(249), 5]]), seconds=3)
    assert found.differing_columns == ("c249",)
    renamed = Table.from_rows([f"x{i}" for i in range(250)], [list(range(249, -1, -1))])
    assert checked(expected, renamed, seconds=2).matched


@pytest.mark.usefixtures("path")
def test_near_ties_in_a_small_table():
    random = np.random.default_rng(1)
    spots = random.random((400, 2)).tolist()
    moved = [[x + 0.05, y - 0.05] for x, y in spots][::-1]
    expected = Table.from_rows(["x", "y"], spots, ["DOUBLE"] * 2)
    options = {"atol": 0.06, "rtol": 0, "decimals": None}
    assert checked(expected, Table.from_rows(["x", "y"], moved), options, seconds=4).matched
    moved[0] = [9.0, 9.0]
    assert not checked(expected, Table.from_rows(["x", "y"], moved), options, seconds=6).matched


@pytest.mark.usefixtures("path")
def test_ties_beyond_the_bound_are_named(monkeypatch):
    from pytest_agenteval.compare.array_engine import near_pairs as vector_near
    from pytest_agenteval.compare.python_engine import matching as pairing

    monkeypatch.setattr(pairing, "MOST_TESTS", 50)
    monkeypatch.setattr(vector_near, "MOST_EDGES", 50)
    random = np.random.default_rng(2)
    spots = random.random((40, 2)).tolist()
    expected = Table.from_rows(["x", "y"], spots, ["DOUBLE"] * 2)
    moved = [[x + random.uniform(-0.4, 0.4), y + random.uniform(-0.4, 0.4)] for x, y in spots]
    actual = Table.from_rows(["x", "y"], moved)
    for options in ({"atol": 0.5, "decimals": None}, {"atol": 0.5, "decimals": None, "duplicates": "set"}):
        found = checked(expected, actual, options)
        assert not found.matched
        assert found.diagnosis.word == "too_many_near_ties"


def test_a_hundred_thousand_near_ties():
    random = np.random.default_rng(3)
    spots = random.random((100_000, 2)) * 100
    moved = (spots + random.uniform(-0.09, 0.09, spots.shape))[random.permutation(100_000)]
    tables = [Table.from_arrow(pa.table({"x": s[:, 0], "y": s[:, 1]})) for s in (spots, moved)]
    start = time.process_time()
    assert compare(*tables, parse_options({"atol": 0.1, "decimals": None})).matched
    assert time.process_time() - start < 1.5 * 2


@pytest.mark.parametrize("rows", [30, 3000])
def test_one_tolerant_column_without_a_key(rows):
    random = np.random.default_rng(4)
    values = np.round((np.arange(rows) + random.random(rows) / 2) * 5, 3)
    expected = Table.from_arrow(pa.table({"x": values}))
    assert compare(expected, Table.from_arrow(pa.table({"x": np.round(values[::-1], 2)}))).matched
    fewer = compare(expected, Table.from_arrow(pa.table({"x": values[1:]})))
    assert fewer.diagnosis.word == "rows_missing"
    assert fewer.counts.missing == 1
    other = values.copy()
    other[7] = 700.0
    assert compare(expected, Table.from_arrow(pa.table({"x": other}))).counts.differing == 1


@pytest.mark.parametrize(("step", "noise"), [(0.5, 0), (0.5, 1), (0.003, 0.004)])
@pytest.mark.parametrize(
    "options",
    [{}, {"significant": 1}, {"significant": 3, "duplicates": "set"}, {"decimals": 0, "percent": "either"}],
    ids=str,
)
def test_many_near_numbers_in_a_small_table(step, noise, options):
    """Values that Python tests too slowly pair by pair are handed to the arrays."""
    random = np.random.default_rng(5)
    values = (random.integers(0, 40, (200, 5)) * step + 10).tolist()
    moved = [[x + noise * random.uniform(-1, 1) for x in row] for row in values][::-1]
    expected = Table.from_rows(list("abcde"), values, ["DOUBLE"] * 5)
    for names in ("abcde", "abxyz"):
        found = checked(expected, Table.from_rows(list(names), moved), options, seconds=2)
        assert found.matched or noise


def test_plain_values_are_handed_to_arrays_wherever_the_work_grows(monkeypatch):
    from pytest_agenteval.compare.python_engine import matching as pairing

    keys, values = [f"k{i}" for i in range(12)], [float(i * i) for i in range(12)]
    expected = Table.from_rows(["k", "v"], list(zip(keys, values, strict=True)), ["VARCHAR", "DOUBLE"])
    moved = Table.from_rows(["k", "v"], [(k, v + 0.008) for k, v in zip(keys, values, strict=True)])
    said = set()
    for tests in (0, 11, 12, 13, 24, 30, 40, 60, 100, 10_000):
        monkeypatch.setattr(pairing, "MOST_TESTS", tests)
        found = compare(expected, moved, parse_options({"rounding_guard": 1e-9}))
        assert not found.matched
        assert found.counts.differing == 12
        said.add(found.diagnosis.word)
    assert said == {"values_differ", "column_offset"}


def test_a_hash_collision_falls_back_to_exact_ids(monkeypatch):
    from pytest_agenteval.compare.array_engine import matching as vector_match

    monkeypatch.setattr(comparing, "PLAIN_CELLS", -1)
    monkeypatch.setattr(vector_match, "hash_rows", lambda keys, rows: np.zeros(rows, np.uint64))
    expected = Table.from_rows(
        ["k", "n", "x"], [("a", 1, 1.5), ("b", None, 2.5)], ["VARCHAR", "INTEGER", "DOUBLE"]
    )
    assert compare(expected, Table.from_rows(["k", "n", "x"], [("b", None, 2.5), ("a", 1, 1.5)])).matched
    assert not compare(expected, Table.from_rows(["k", "n", "x"], [("b", 1, 2.5), ("a", None, 1.5)])).matched
