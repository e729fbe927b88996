"""The number rule: no rounding boundary, and the same grades on arrays as one by one."""

import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_agenteval.compare.array_engine.arrays import KeyCoder, ToleranceNumbers
from pytest_agenteval.compare.array_engine.number_rule import ArrayNumberRule
from pytest_agenteval.compare.array_engine.reading import read_side
from pytest_agenteval.compare.options import ColumnOptions
from pytest_agenteval.compare.values.cells import ColumnReading, read_cell
from pytest_agenteval.compare.values.numbers import (
    CLOSE,
    EXACT,
    NO,
    ROUNDED,
    Float32,
    NumberRule,
    fits_single,
    numpy_round,
    read_number,
    shortest,
    shown_decimals,
)
from pytest_agenteval.compare.values.sql_types import kind_of

DEFAULT = ColumnOptions()
D = Decimal


@pytest.mark.parametrize(
    ("x", "y", "grade"),
    [
        (1.005, 1.0049999999, CLOSE),
        (2.675, 2.67, ROUNDED),
        (2.675, 2.68, ROUNDED),
        (1.234, 1.231, ROUNDED),
        (0.0312, 0.03, ROUNDED),
        (0.004, 0.001, NO),
        (0.0312, 0.0349, NO),
        (10.12, 10.13, NO),
        (0.0, 0.0, EXACT),
        (1.0, 1, EXACT),
        (D("0.10"), 0.1, EXACT),
        (D("12.50"), D("12.51"), NO),
        (D("2.665"), D("2.66"), ROUNDED),
        (1e308, -1e308, NO),
        (5, 10**400, NO),
        (10**400, 10**400 + 1, CLOSE),
        (D("1E+600"), 1e308, NO),
    ],
)
def test_rule(x, y, grade):
    assert NumberRule.of(DEFAULT, [x], [y]).grade(x, y) == grade


def test_rule_2_is_off_where_all_would_vanish():
    assert NumberRule.of(DEFAULT, [0.004], [0.0]).shown == (3,)
    assert NumberRule.of(DEFAULT, [0.0], [0.004]).shown == ()
    assert NumberRule.of(DEFAULT, [0.004, 5.0], [0.0, 5.0]).grade(0.004, 0.0) == ROUNDED


@pytest.mark.parametrize(
    ("value", "decimals"),
    [(1.5, 1), (120.0, 0), (D("1.500"), 1), (D("1E+2"), 0), (D("0.00"), 0), (1e-7, 7), (2**70, 0)],
)
def test_shown_decimals(value, decimals):
    assert shown_decimals(value) == decimals


def test_short_forms_of_32_bit_floats():
    assert shortest(Float32(np.float32(0.1).item())) == D("0.1")
    assert shortest(Float32(np.float32(3.4028235e38).item())) == D("3.4028235e38")
    assert shown_decimals(Float32(np.float32(0.03).item())) == 2
    assert not fits_single(0.1)
    assert not fits_single(1e300)


def test_numpy_round():
    for value in (2.675, 1.005, 0.125, -2.5, 1234.5678, 1e300):
        for decimals in (-2, 0, 2, 5):
            assert numpy_round(value, decimals) == np.round(value, decimals)
    assert numpy_round(1e308, 2) == 1e308


@pytest.mark.parametrize(
    "text", ["", "-", "$", "()", "1,23,4", "12 34", "1.2.3", "€$5", "5 USD EUR", "1 000,", "e5"]
)
def test_no_number(text):
    assert read_number(text) is None


SIZES = st.sampled_from([0.004, 0.0312, 0.5, 1.005, 2.675, 12.345, 100.0, 187.005, 1e6 + 0.125, 0.0])
GAPS = st.sampled_from([0.0, 1e-9, 1e-5, 0.001, 0.0049999, 0.005, 0.0050001, 0.0075, 0.01, 0.0125, 0.03, 1.0])
PLAIN = st.tuples(SIZES, GAPS, st.sampled_from([1, -1])).map(lambda t: (t[0], round(t[0] + t[1] * t[2], 9)))
ANY = st.tuples(st.floats(-1e4, 1e4), st.floats(-0.02, 0.02)).map(lambda t: (t[0], t[0] + t[1]))
COLUMN_OPTIONS = st.builds(
    ColumnOptions,
    rtol=st.sampled_from([0.0, 1e-5, 1e-3]),
    atol=st.sampled_from([0.0, 1e-8, 0.005]),
    decimals=st.sampled_from([None, 0, 1, 2, 4]),
    rounding_guard=st.sampled_from([None, 0.01, 0.5]),
    significant=st.sampled_from([None, None, 2, 4]),
)


def to_decimal(value):
    return D(repr(round(value, 6)))


FORMS = {
    "float": lambda values: values,
    "decimal": lambda values: [to_decimal(v) for v in values],
    "text": lambda values: [str(to_decimal(v)) for v in values],
    "single": lambda values: [np.float32(v).item() for v in values],
}
ARRAYS = {
    "float": lambda values: pa.array(values, pa.float64()),
    "decimal": lambda values: pa.array(values, pa.decimal128(18, 6)),
    "text": lambda values: values,
    "single": lambda values: pa.array(values, pa.float32()),
}
KIND = {"float": "DOUBLE", "decimal": "DECIMAL(18,6)", "single": "FLOAT"}


@settings(max_examples=250, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.one_of(PLAIN, ANY), min_size=1, max_size=8),
    COLUMN_OPTIONS,
    st.sampled_from(["float", "decimal", "single"]),
    st.sampled_from(["float", "decimal", "text", "single"]),
)
def test_arrays_grade_like_single_numbers(pairs, options, mine, theirs):
    left = FORMS[mine]([x for x, _ in pairs])
    right = FORMS[theirs]([y for _, y in pairs])
    reading = ColumnReading.of(kind_of(KIND[mine]), options)
    other = replace(reading, single=theirs == "single")
    xs = [read_cell(value, reading)[1][0] for value in left]
    ys = [read_cell(value, other)[1][0] for value in right]
    rule = NumberRule.of(options, xs, ys)
    wanted = [rule.grade(x, y) for x, y in zip(xs, ys, strict=True)]
    coder = KeyCoder()
    sides = read_side(ARRAYS[mine](left), reading, coder), read_side(ARRAYS[theirs](right), other, coder)
    arrays = ArrayNumberRule(options, sides[0].numbers[0], sides[1].numbers[0])
    rows = np.arange(len(pairs))
    assert arrays.grade(rows, rows).tolist() == wanted
    stopped = arrays.grade(rows, rows, stop=True)
    assert bool((stopped == NO).any()) == (NO in wanted)


@pytest.mark.parametrize("decimals", [0, 2, 5, 17, 25])
def test_what_a_column_shows_is_measured_exactly(decimals):
    values = [1.5, 0.12, 1e-20, 12345.678, 0.1 + 0.2, 1e15 + 0.5, float(2**60)]
    for value in values:
        numbers = ToleranceNumbers(np.array([value] * 1500))
        assert numbers.shows_at_most(decimals) == (shown_decimals(value) <= decimals), value
    scaled = ToleranceNumbers(np.array([1.25, 3.0]), scaled=np.array([12500, 30000]), scale=4)
    assert [scaled.shows_at_most(k) for k in (0, 1, 2, 4, 9)] == [False, False, True, True, True]
    assert math.isclose(float(scaled.at(0)), 1.25)
