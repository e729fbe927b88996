"""Properties that hold for any tables: no exception, both paths agree, an oracle agrees."""

import datetime as dt
import importlib.util
import itertools
import json
import time
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pytest_agenteval.compare import compare, parse_options, render
from pytest_agenteval.compare import tables as comparing
from pytest_agenteval.compare.values.numbers import NO, NumberRule
from pytest_agenteval.table import Table

spec = importlib.util.spec_from_file_location("compare_tables", Path(__file__).with_name("compare_tables.py"))
make = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make)

FEW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
MANY = settings(FEW, max_examples=80)


@pytest.fixture(params=[10**9, -1], ids=["plain", "arrays"])
def path(request, monkeypatch):
    """Run a test on the plain path and on the array path."""
    monkeypatch.setattr(comparing, "PLAIN_CELLS", request.param)


def both(expected, actual, options):
    """Both paths' outcomes; each is finished within a second, renders and is strict JSON."""
    found = []
    for cells in (10**9, -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(comparing, "PLAIN_CELLS", cells)
            start = time.process_time()
            one = compare(expected, actual, parse_options(options))
            assert time.process_time() - start < 1
        json.dumps(one.to_json(), allow_nan=False).encode("ascii")
        for line in render(one):
            line.encode("utf-8")
        found.append(one)
    assert (found[0].matched, found[0].message) == (found[1].matched, found[1].message)
    return found[0]


@MANY
@given(make.tables(), make.wild_tables(), make.OPTIONS)
def test_any_answer_ends_in_the_same_verdict_on_both_paths(expected, actual, options):
    found = both(expected, actual, options)
    assert found.matched or found.diagnosis.sentence


@MANY
@given(make.tables(max_rows=8), make.tables(max_rows=8), make.OPTIONS)
def test_two_random_tables_end_in_a_verdict(expected, actual, options):
    both(expected, actual, options)


def shuffled(table, order):
    return Table(table.columns, tuple([data[i] for i in order] for data in table.values), table.row_count)


@FEW
@given(make.tables(max_rows=8), st.randoms(use_true_random=False), st.booleans())
def test_shuffling_rows_and_columns_never_changes_a_match(expected, random, columns):
    rows = list(range(expected.row_count))
    random.shuffle(rows)
    actual = shuffled(expected, rows)
    if columns:
        order = list(range(len(expected.columns)))
        random.shuffle(order)
        actual = Table(
            tuple(actual.columns[i] for i in order), tuple(actual.values[i] for i in order), actual.row_count
        )
    assert both(expected, actual, {}).matched


@FEW
@given(make.tables(min_rows=1))
def test_renaming_by_alias_never_changes_a_match(expected):
    renamed = [f"other {column.name}" for column in expected.columns]
    actual = Table.from_rows(renamed, list(expected.rows()))
    aliases = {column.name: [name] for column, name in zip(expected.columns, renamed, strict=True)}
    assert both(expected, actual, {"column_aliases": aliases, "columns": "name"}).matched


def answered_forms(value, kind):
    """Ways in which drivers and JSON carry a value of a type, where it survives them."""
    forms = [value]
    if kind in ("INTEGER", "BIGINT"):
        forms += [str(value), Decimal(value), f"{value:,}"]
        forms += [float(value)] if abs(value) < 2**53 else []
    elif kind == "DECIMAL(18,2)":
        forms += [str(value), float(value), f"${value}"]
    elif kind == "DOUBLE":
        forms += [repr(value), np.float64(value)]
        forms += [int(value)] if value.is_integer() else []
    elif kind == "DATE":
        forms += [value.isoformat(), dt.datetime(value.year, value.month, value.day), f"{value}T00:00:00Z"]
    elif kind == "TIMESTAMP":
        forms += [value.isoformat(), value.isoformat(" ") + "Z", value.replace(tzinfo=dt.UTC)]
    elif kind == "BOOLEAN":
        forms += [int(value), float(value), str(value), str(value)[0]]
    elif kind == "UUID":
        forms += [str(value), str(value).upper()]
    elif kind == "BLOB":
        forms += [value.hex(), bytearray(value)]
    return forms


TYPED = ("INTEGER", "BIGINT", "DECIMAL(18,2)", "DOUBLE", "DATE", "TIMESTAMP", "BOOLEAN", "UUID", "BLOB")


@MANY
@given(st.data())
def test_the_drivers_type_never_changes_a_match(data):
    expected = data.draw(make.tables(min_rows=1, kinds=TYPED, nulls=False))
    assume(
        not any(
            v != v or v in (float("inf"), float("-inf"))
            for col in expected.values
            for v in col
            if isinstance(v, float)
        )
    )
    values = []
    for column, cells in zip(expected.columns, expected.values, strict=True):
        values.append([data.draw(st.sampled_from(answered_forms(cell, column.type))) for cell in cells])
    actual = Table(tuple(type(c)(c.name) for c in expected.columns), tuple(values), expected.row_count)
    assert both(expected, actual, {}).matched


OTHER = {
    "INTEGER": lambda v: v + 11,
    "BIGINT": lambda v: v - 11 if v > 0 else v + 11,
    "DECIMAL(18,2)": lambda v: v + 9,
    "DOUBLE": lambda v: v + 9 + abs(v),
    "DATE": lambda v: v - dt.timedelta(3) if v.year > 5000 else v + dt.timedelta(3),
    "VARCHAR": lambda v: v + "!",
    "UUID": lambda v: type(v)(int=v.int ^ 2**70),
}


@MANY
@given(st.data())
def test_changing_one_cell_is_seen_and_named(data):
    others = data.draw(make.tables(min_rows=1, max_rows=8, kinds=tuple(OTHER), nulls=False))
    assume(all(abs(v) < 1e12 and v == v for col in others.values for v in col if isinstance(v, float)))
    names = ["id", *(column.name for column in others.columns)]
    rows = [(f"k{i}", *row) for i, row in enumerate(others.rows())]
    types = ["VARCHAR", *others.types]
    expected = Table.from_rows(names, rows, types)
    row = data.draw(st.integers(0, len(rows) - 1))
    column = data.draw(st.integers(1, len(names) - 1))
    changed = [list(r) for r in rows]
    changed[row][column] = OTHER[types[column]](changed[row][column])
    found = both(expected, Table.from_rows(names, changed), {"columns": "name"})
    assert not found.matched
    assert found.differing_columns == (names[column],)
    cells = {c.expected for r in found.sample for i, c in enumerate(r.cells) if i == column and c.differs}
    assert rows[row][column] in cells


NEAR = st.sampled_from([0.0, 0.4, 1.0, 1.5, 2.0, 2.9, 3.0, 4.1, -1.0])


def oracle(rows_e, rows_a, rule):
    """A perfect pairing by trying every order of the answered rows."""
    if len(rows_e) != len(rows_a):
        return False

    def fits(x, y):
        return all(
            (a is None and b is None) or (None not in (a, b) and rule.grade(a, b) != NO)
            for a, b in zip(x, y, strict=True)
        )

    return any(
        all(fits(x, y) for x, y in zip(rows_e, order, strict=True))
        for order in itertools.permutations(rows_a)
    )


@MANY
@given(st.data(), st.integers(1, 3), st.integers(1, 5), st.sampled_from([0.5, 1.0, 1.1]))
def test_pairing_under_tolerance_agrees_with_trying_everything(data, columns, rows, atol):
    cell = st.none() | NEAR if data.draw(st.booleans()) else NEAR
    row = st.tuples(*[cell] * columns)
    left = data.draw(st.lists(row, min_size=rows, max_size=rows))
    right = data.draw(st.lists(row, min_size=rows, max_size=rows))
    if data.draw(st.booleans()):
        right = [tuple(v if v is None else v + 0.9 * atol for v in r) for r in left][::-1]
    names = [f"x{i}" for i in range(columns)]
    options = {"atol": atol, "rtol": 0, "decimals": None, "columns": "name"}
    wanted = oracle(left, right, NumberRule(0.0, atol, None))
    expected = Table.from_rows(names, left, ["DOUBLE"] * columns)
    assert both(expected, Table.from_rows(names, right), options).matched == wanted


ROUNDING = st.floats(-3, 3).map(lambda x: round(x, 4)) | st.floats(-1e6, 1e6)


@MANY
@given(st.lists(st.tuples(ROUNDING, st.floats(-0.012, 0.012)), min_size=1, max_size=6), st.integers(0, 4))
def test_without_the_guard_nothing_that_nao_accepts_is_refused(pairs, decimals):
    left = [x for x, _ in pairs]
    right = [x + move for x, move in pairs]
    assume(all(x != int(x) for x in left + right))
    a, b = np.round(np.sort(right), decimals), np.round(np.sort(left), decimals)
    assume(np.allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=True))
    expected = Table.from_rows(["x"], [(x,) for x in left], ["DOUBLE"])
    actual = Table.from_records([{"x": y} for y in right])
    assert both(expected, actual, {"rounding_guard": None, "decimals": decimals}).matched


@FEW
@given(make.tables(min_rows=2, max_rows=8, nulls=False, kinds=("VARCHAR", "INTEGER", "DATE")), st.data())
def test_renamed_columns_are_found_by_value(expected, data):
    order = data.draw(st.permutations(range(len(expected.columns))))
    actual = Table.from_rows(
        [f"z{i}" for i in order],
        list(zip(*(expected.column(i) for i in order), strict=True)),
    )
    assert both(expected, actual, {}).matched
    forms = []
    for i in order:
        kind = expected.columns[i].type
        forms.append([data.draw(st.sampled_from(answered_forms(v, kind))) for v in expected.column(i)])
    other = Table.from_rows([f"z{i}" for i in order], list(zip(*forms, strict=True)))
    assert both(expected, other, {}).matched


def test_plain_and_array_paths_agree_on_the_corpus(path):
    """The fixture runs a few judged examples on both paths (the corpus test runs all on one)."""
    left = Table.from_rows(["k", "x"], [("a", 0.0), ("a", 1.0), ("b", 5.0)], ["VARCHAR", "DOUBLE"])
    right = Table.from_records([{"k": "b", "x": 5.4}, {"k": "a", "x": 1.9}, {"k": "a", "x": 0.9}])
    assert compare(left, right, parse_options({"atol": 1.0})).matched
    assert not compare(left, right, parse_options({"atol": 0.5})).matched
