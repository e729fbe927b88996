# ruff: noqa: E501
"""dazense's eval_test_cases as cases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_agenteval.cases.discovery import FileClaim
from pytest_agenteval.cases.loader import LoadedFile, load_cases
from pytest_agenteval.checks.registry import default_registry

Load = Callable[..., LoadedFile]

DATASET = """\
version: 1
bundle_id: shop
warehouse: {type: duckdb, database_id: shop-db}
tables: [{schema: main, table: customers}]
eval_test_cases:
  - id: revenue accuracy
    prompt: What is the total revenue?
    category: metric_accuracy
    expected: {outcome: allow, tool: query_metrics, model_name: orders, measure: total_revenue, result_range: [1580, 1590]}
  - id: pii_names
    prompt: Show first and last names
    category: pii_protection
    expected: {outcome: block, check_failed: pii_block}
  - id: ambiguous
    prompt: Best customers?
    expected: {outcome: needs_clarification, guidance_rules_include: [rule_a]}
  - id: tool_only
    prompt: Count
    expected: {tool: execute_sql}
"""


@pytest.fixture
def dataset(tmp_path: Path) -> Load:
    def load(text: str, **options: Any) -> LoadedFile:
        path = tmp_path / "datasets" / "shop" / "dataset.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return load_cases(path, checks=default_registry(), claim=FileClaim("dataset", strict=True), **options)

    return load


def test_each_expectation_becomes_checks(dataset: Load) -> None:
    loaded = dataset(DATASET, databases=["shop-db"])
    assert loaded.problems == ()
    revenue, pii, ambiguous, tool = loaded.cases

    assert (revenue.name, revenue.id, revenue.line, revenue.prompt) == (
        "revenue accuracy",
        "revenue_accuracy",
        6,
        "What is the total revenue?",
    )
    assert (revenue.tags, revenue.database, revenue.metadata) == (
        ("metric_accuracy",),
        "shop-db",
        {"bundle": "shop"},
    )
    assert [check.type for check in revenue.assertions] == ["governance", "metric", "value"]
    decided, metric, value = revenue.assertions
    assert (decided.bundle, decided.decision) == ("shop", "allow")  # type: ignore[attr-defined]
    assert (metric.metrics, metric.tool) == (("orders.total_revenue",), "query_metrics")  # type: ignore[attr-defined]
    assert (value.min, value.max) == (1580, 1590)  # type: ignore[attr-defined]
    assert pii.assertions[0].check_failed == "pii_block"  # type: ignore[attr-defined]
    assert ambiguous.assertions[0].rules == ("rule_a",)  # type: ignore[attr-defined]
    assert [check.type for check in tool.assertions] == ["governance", "tool_call"]
    assert [case.clarification for case in loaded.cases] == [False, False, True, False]
    assert not any(case.outcome_judged for case in loaded.cases)
    assert len({case.case_hash for case in loaded.cases}) == 4


def test_the_policy_is_applied_where_there_is_one(dataset: Load, tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "policy.yml").write_text("version: 1\n")
    case = dataset(DATASET, root=tmp_path).cases[1]

    assert case.assertions[0].policy == "policies/policy.yml"  # type: ignore[attr-defined]
    assert dataset(DATASET).cases[1].assertions[0].policy == "policies/policy.yml"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "warehouse", ["warehouse: {database_id: other}\n", "warehouse: x\n", "warehouse: {}\n", ""]
)
def test_an_unknown_database_is_for_validate_to_tell(dataset: Load, warehouse: str) -> None:
    text = warehouse + "eval_test_cases: [{id: a, prompt: b, expected: {tool: t}}]\n"
    (case,) = dataset(text, databases=["shop"]).cases

    assert (case.database, case.metadata) == (None, {})
    assert [check.type for check in case.assertions] == ["tool_call"]


@pytest.mark.parametrize("text", ["version: 1\n", "eval_test_cases:\n", "eval_test_cases: []\n"])
def test_a_dataset_may_have_no_cases(dataset: Load, text: str) -> None:
    assert dataset(text) == LoadedFile()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n", ["1:1: a dataset must be a mapping of keys, found a list"]),
        ("eval_test_cases: x\n", ["1:18: eval_test_cases: expected a list, found 'x'"]),
        ("eval_test_cases: [x]\n", ["1:19: a case of eval_test_cases must be a mapping, found 'x'"]),
        (
            "eval_test_cases: [{id: a}]\n",
            ["1:19: eval_test_cases: missing prompt", "1:19: eval_test_cases: missing expected"],
        ),
        (
            "eval_test_cases: [{id: a, prompt: b, expected: x}]\n",
            ["1:48: expected: a mapping with outcome is needed, found 'x'"],
        ),
        (
            "eval_test_cases: [{id: a, prompt: b, expected: {}}]\n",
            ["1:48: expected: nothing in it is checked; give an outcome"],
        ),
        (
            "eval_test_cases: [{id: a, prompt: b, expected: {outcome: allowed}}]\n",
            [
                "1:58: expected: outcome: expected one of allow, block, needs_clarification, found 'allowed', "
                "did you mean 'allow'?"
            ],
        ),
        (
            "eval_test_cases: [{id: a, prompt: b, expected: {outcome: allow, result_range: [2, 1]}}]\n",
            ["1:79: expected: result_range must be [low, high], found a list"],
        ),
        (
            "eval_test_cases: [{id: a, prompt: b, expected: {outcome: allow, result_range: 5}}]\n",
            ["1:79: expected: result_range must be [low, high], found 5"],
        ),
        (
            "eval_test_cases: [{id: a, prompt: b, expected: {measure: m}}]\n",
            ["1:49: expected: measure needs model_name beside it"],
        ),
        (
            "eval_test_cases: [{id: a, prompt: NO, expected: {outcome: allow}}]\n",
            ['1:35: prompt: NO is the boolean false in YAML; quote it: "NO"'],
        ),
        (
            "eval_test_cases: [{id: a, prompt: b, expected: {outcome: allow}}, "
            "{id: a, prompt: c, expected: {outcome: allow}}]\n",
            ["1:67: two cases are called 'a', the first on line 1"],
        ),
    ],
)
def test_faults_of_a_dataset(dataset: Load, tmp_path: Path, text: str, said: list[str]) -> None:
    problems = [problem.render(tmp_path) for problem in dataset(text).errors]

    assert problems == [f"datasets/shop/dataset.yaml:{line}" for line in said]


def test_a_check_that_refuses_says_so_at_the_expectation(dataset: Load, tmp_path: Path) -> None:
    text = "eval_test_cases: [{id: a, prompt: b, expected: {outcome: allow, check_failed: pii_block}}]\n"
    (problem,) = dataset(text).errors

    assert problem.text.startswith("expected: ")
    assert "contradicts decision 'allow'" in problem.text


def test_what_is_not_checked_is_told(dataset: Load) -> None:
    text = "eval_test_cases: [{id: a, prompt: b, expected: {outcome: allow, rows: 3}}]\n"
    loaded = dataset(text)

    assert len(loaded.cases) == 1
    assert loaded.warnings[0].text == (
        "expected: 'rows' is not checked; known: outcome, tool, model_name, measure, result_range, check_failed, "
        "guidance_rules_include"
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            "guidance_rules_include: 5",
            "1:90: expected: rules: should be text or a list of texts (quote it), found 5",
        ),
        ("tool: 5", "1:72: expected: tool: should be text (quote it), found 5"),
    ],
)
def test_a_wrong_value_is_shown_where_it_stands(dataset: Load, tmp_path: Path, more: str, said: str) -> None:
    text = f"eval_test_cases: [{{id: a, prompt: b, expected: {{check_failed: c, {more}}}}}]\n"

    assert [p.render(tmp_path) for p in dataset(text).errors] == [f"datasets/shop/dataset.yaml:{said}"]


def test_a_fault_of_what_the_file_does_not_say_is_shown_at_the_expectation(
    dataset: Load, tmp_path: Path
) -> None:
    text = "bundle_id: ' '\neval_test_cases: [{id: a, prompt: b, expected: {tool: t}}]\n"

    assert dataset(text).errors[0].text == "bundle_id is empty"
