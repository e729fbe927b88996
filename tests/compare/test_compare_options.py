"""Options: validated with a suggestion, merged from suite, case and column."""

import pytest

from pytest_agenteval.compare import (
    ComparisonOptions,
    OptionsError,
    OrderKey,
    compare,
    option_faults,
    parse_options,
)
from pytest_agenteval.table import Table


@pytest.mark.parametrize(
    ("mapping", "path", "text"),
    [
        ({"rtoll": 1}, ("rtoll",), "unknown option 'rtoll', did you mean 'rtol'?"),
        ({"rtol": "x"}, ("rtol",), "rtol: a number, 0 or more is expected, found 'x'"),
        ({"rtol": True}, ("rtol",), "rtol: a number, 0 or more is expected, found True"),
        ({"atol": -1}, ("atol",), "atol: a number, 0 or more is expected, found -1"),
        ({"atol": float("inf")}, ("atol",), "atol: a number, 0 or more is expected, found inf"),
        (
            {"decimals": 2.5},
            ("decimals",),
            "decimals: a whole number from 0 to 300, or null is expected, found 2.5",
        ),
        (
            {"significant": 0},
            ("significant",),
            "significant: a whole number from 1 to 300, or null is expected, found 0",
        ),
        ({"ordered": "yes"}, ("ordered",), "ordered: true or false is expected, found 'yes'"),
        (
            {"duplicates": "sett"},
            ("duplicates",),
            "duplicates: one of bag, set, did you mean 'set'? is expected, found 'sett'",
        ),
        ({"columns": 3}, ("columns",), "columns: one of auto, name, position is expected, found 3"),
        ({"order_by": [1]}, ("order_by",), "order_by: a list of names, or null is expected, found [1]"),
        (
            {"column_aliases": {"a": [1]}},
            ("column_aliases",),
            "column_aliases: expected names, each with the names accepted for it is expected, "
            "found {'a': [1]}",
        ),
        (
            {"per_column": {"rate": {"rtool": 1}}},
            ("per_column", "rate", "rtool"),
            "unknown option 'rtool', did you mean 'rtol'?",
        ),
        (
            {"per_column": {"rate": {"ordered": True}}},
            ("per_column", "rate", "ordered"),
            "unknown option 'ordered'; known: atol, decimals, null_as_empty, null_as_zero, percent, "
            "rounding_guard, rtol, significant, string_case",
        ),
        (
            {"per_column": ["rate"]},
            ("per_column",),
            "per_column: columns with their options are expected, found ['rate']",
        ),
        (
            {"per_column": {"rate": 0.1}},
            ("per_column", "rate"),
            "rate: a mapping of options is expected, found 0.1",
        ),
        ([1], (), "comparison: a mapping of options is expected, found [1]"),
    ],
)
def test_faults_name_the_place_and_what_is_allowed(mapping, path, text):
    faults = option_faults(mapping)
    assert [(fault.path, fault.text) for fault in faults] == [(path, text)]


def test_all_faults_are_reported_at_once():
    with pytest.raises(OptionsError) as caught:
        parse_options({"rtol": -1, "ordred": True})
    assert [fault.path for fault in caught.value.faults] == [("rtol",), ("ordred",)]
    assert "did you mean 'ordered'?" in str(caught.value)


def test_long_values_are_cut_in_faults():
    fault = option_faults({"ordered": "x" * 100})[0]
    assert fault.text.endswith("xxx...")
    assert len(fault.text) < 110


def test_case_beats_suite_and_columns_are_merged():
    options = parse_options(
        {"rtol": 0, "order_by": "n desc", "per_column": {"Rate": {"decimals": 3}}},
        suite={"rtol": 0.1, "atol": 1, "per_column": {"rate": {"rtol": 0.5}, "x": {"rtol": 1}}},
    )
    assert (options.rtol, options.atol, options.order_by) == (0, 1, ("n desc",))
    rate = options.for_column("RATE")
    assert (rate.rtol, rate.decimals, rate.atol, rate.explicit) == (0.5, 3, 1, True)
    assert options.for_column("other").explicit is False


def test_defaults():
    options = parse_options(None)
    assert options == ComparisonOptions()
    assert (options.rtol, options.atol, options.decimals, options.rounding_guard) == (1e-5, 1e-8, 2, 0.01)
    assert options.with_order(["a"]).order_by == ("a",)
    assert parse_options({"order_by": ["b"]}).with_order(["a"]).order_by == ("b",)
    assert parse_options({"order_by": None, "ignore_columns": "x"}).ignore_columns == ("x",)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("total", OrderKey("total")),
        ("total DESC", OrderKey("total")),
        ("total asc nulls first", OrderKey("total")),
        ("my total desc NULLS LAST", OrderKey("my total")),
        ('"total ""desc"" asc" desc', OrderKey('total "desc" asc')),
        ("2", OrderKey("2")),
    ],
)
def test_order_keys(text, key):
    assert OrderKey.parse(text) == key


def test_ignored_columns_act_first_on_both_sides():
    expected = Table.from_rows(["k", "loaded_at"], [("a", 1)], ["VARCHAR", "INTEGER"])
    actual = Table.from_records([{"k": "a", "LOADED_AT": 9}])
    assert compare(expected, actual, parse_options({"ignore_columns": ["Loaded_At"]})).message == "match"
