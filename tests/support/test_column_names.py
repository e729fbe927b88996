"""One rule for column names: what one side accepts, no other calls unknown."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agenteval.checks.data import unknown_columns
from pytest_agenteval.checks.table import RowsCheck
from pytest_agenteval.compare import Comparison, parse_options, render
from pytest_agenteval.compare import compare as compare_tables
from pytest_agenteval.extraction.steps import extract
from pytest_agenteval.support.column_names import covers, find_name, fold_name
from pytest_agenteval.table import Table
from pytest_agenteval.types import Answer, Evidence, ToolCall


def compare(expected: Any, actual: Any, **options: Any) -> Comparison:
    sides = [x if isinstance(x, Table) else Table.from_records(x) for x in (expected, actual)]
    return compare_tables(*sides, parse_options(options))


SPELLINGS = ["total_revenue", "Total Revenue", "TOTAL-REVENUE", "total revenue ", "Total_Revenue"]


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("expected", SPELLINGS)
def test_an_alias_is_found_in_every_spelling_by_extraction_and_comparison(
    spelling: str, expected: str
) -> None:
    aliases = {spelling: ("um satz",)}
    found = compare([{expected: 60.0}], [{"Um_Satz": 60.0}], column_aliases=aliases, columns="name")
    assert found.matched, "\n".join(render(found))
    assert found.mapping[0].how == "alias"
    assert covers(["probe", "Um_Satz"], [expected], aliases)
    assert unknown_columns({"column_aliases": aliases}, [[expected]]) is None


def call(columns: list[str]) -> ToolCall:
    table = {"columns": columns, "rows": [[60.0]]}
    return ToolCall("execute_sql", {"sql": f"SELECT 60.0 AS {columns[0]}"}, table)


@pytest.mark.parametrize("alias_key", ["revenue", "Revenue", "REVENUE"])
def test_extraction_takes_the_query_that_the_alias_names(alias_key: str) -> None:
    answer = Answer(tool_calls=[call(["probe"]), call(["umsatz"]), call(["probe"])])
    found = extract(answer, expected_columns=["revenue"], aliases={alias_key: ["Umsatz"]})
    assert found.source == "matched"
    assert found.table is not None
    assert found.table.names == ["umsatz"]


@pytest.mark.parametrize("actual", ["STRASSE", "strasse", "Straße"])
def test_names_without_case_are_equal_by_case_folding(actual: str) -> None:
    assert compare([{"straße": 1}], [{actual: 1}], columns="name").matched
    assert covers([actual], ["straße"])


def test_a_column_rule_applies_to_every_spelling_of_its_column() -> None:
    for spelling in SPELLINGS:
        options = {"per_column": {spelling: {"atol": 1.0}}}
        assert compare([{"total_revenue": 10.0}], [{"total_revenue": 10.5}], **options).matched, spelling
        assert unknown_columns(options, [["total_revenue"]]) is None
        ignored = compare(
            [{"total_revenue": 1, "n": 2}], [{"n": 2}], ignore_columns=[spelling], extra_columns="forbid"
        )
        assert ignored.matched, spelling


def test_a_sort_key_and_a_table_check_find_a_column_by_the_same_rule() -> None:
    table = Table.from_rows(["Total Revenue"], [[2], [1]], [None])
    for spelling in SPELLINGS:
        assert compare(table, table, ordered=True, order_by=[spelling]).matched
        evidence = Evidence("p", "", table=table)
        check = RowsCheck(not_null=(spelling,))
        assert check.check(evidence).passed, spelling


def test_the_first_rule_that_finds_a_name_decides() -> None:
    names = ["Total Revenue", "TOTAL_REVENUE", "total_revenue"]
    assert find_name(names, "total_revenue") == 2
    assert find_name(names, "Total_revenue") == 1
    assert find_name(names, "total-revenue") == 0
    assert find_name(names, "margin") is None


def test_a_name_of_signs_is_itself() -> None:
    assert fold_name("%") == "%"
    assert not covers(["#"], ["%"])
    assert covers(["%"], ["%"])


def test_every_expected_column_needs_one_of_its_own() -> None:
    assert not covers(["a"], ["a", "A"])
    assert covers(["a", "A"], ["A", "a"])
