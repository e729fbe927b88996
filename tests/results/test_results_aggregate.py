from __future__ import annotations

import pytest
from result_runs import NOW, Journal, answered, item, judged

from pytest_agenteval.reports.tables import attempts_sheet
from pytest_agenteval.results.analysis.statistics import wilson
from pytest_agenteval.results.document.document import from_folder
from pytest_agenteval.results.document.rows import row_of
from pytest_agenteval.results.document.totals import known_cost, known_tokens, mean_per_attempt
from pytest_agenteval.results.journal.run_folder import RunFolder


def test_a_share_of_passes_is_green_in_cases_although_attempts_failed(stored):
    header = stored({item(k=5, rule="0.6"): ["passed", "passed", "passed", "failed", "failed"]}).header
    assert (header["cases"]["passed"], header["cases"]["failed"], header["cases"]["pass_rate"]) == (
        1,
        0,
        100.0,
    )
    assert (header["summary"]["passed"], header["summary"]["failed"]) == (3, 2)
    assert header["by_model"][0]["cases"]["pass_rate"] == 100.0
    assert header["by_model"][0]["pass_rate"] == 60.0  # nao's key, nao's formula: attempts
    assert header["by_model"][0]["pass_at_1"] == pytest.approx(0.6)


def test_five_attempts_with_k_three_are_estimated_without_bias(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    journal = Journal(folder, "main")
    journal.planned([item(k=3)])
    journal.started(item().nodeid)
    for number in range(1, 6):
        journal.attempt(item().nodeid, 0, judged(number, "failed" if number == 2 else "passed"))
    (test,) = from_folder(folder).header["pass_metrics"]["by_test"]
    assert test == {
        "name": "revenue",
        "path": "tests/a.yml",
        "model": "demo:a",
        "k": 3,
        "pass_at_1": 0.8,
        "pass_at_k": 1.0,
        "pass_hat_k": pytest.approx(0.4),
    }


def test_one_hopeless_case_among_many_perfect_ones_is_not_averaged_away(stored):
    plan = {item(f"c{n:02}", k=10): ["passed"] * 10 for n in range(49)}
    plan[item("hopeless", k=10)] = ["failed"] * 10
    document = stored(plan)
    assert document.header["cases"]["failed"] == 1
    assert document.header["cases"]["pass_rate"] == 98.0
    assert [case.key[1] for case in document.cases if case.verdict == "failed"] == ["hopeless"]


def test_errors_count_neither_way(stored):
    header = stored(
        {item(k=3): ["passed", "error", "error"], item("b", k=3): ["passed", "failed", "error"]}
    ).header
    assert (header["cases"]["errors"], header["cases"]["failed"]) == (1, 1)
    assert (header["summary"]["failed"], header["summary"]["errors"]) == (1, 3)
    by_test = {test["name"]: test for test in header["pass_metrics"]["by_test"]}
    assert by_test["revenue"]["pass_at_1"] == 1.0
    assert by_test["revenue"]["pass_at_k"] == 1.0
    assert by_test["revenue"]["pass_hat_k"] is None
    assert by_test["b"]["pass_hat_k"] == 0.0
    # neither case has three judged attempts, so nothing is said of three tries
    assert header["pass_metrics"]["aggregate"] == {"pass_at_1": 0.75, "pass_at_k": None, "pass_hat_k": None}
    assert (header["pass_metrics"]["k"], header["pass_metrics"]["k_cases"]) == (3, 0)


def test_pass_k_is_a_mean_over_the_cases_that_were_asked_k_times(stored):
    plan = {item(f"once{n}"): ["passed"] for n in range(21)}
    plan |= {
        item("whole", k=3): ["passed", "failed", "passed"],
        item("cut", k=3): ["passed", "error", "error"],
    }
    plan |= {item("other", "demo:b"): ["passed"]}
    header = stored(plan).header
    metrics = header["pass_metrics"]
    assert (metrics["k"], metrics["k_cases"]) == (3, 1)
    assert metrics["aggregate"]["pass_at_k"] == 1.0
    assert metrics["aggregate"]["pass_hat_k"] == 0.0
    assert metrics["aggregate"]["pass_at_1"] == pytest.approx((23 + 2 / 3) / 24)
    ours = {entry["model"]: entry for entry in header["by_model"]}
    assert (ours["demo:a"]["k_cases"], ours["demo:a"]["pass_hat_k"], ours["demo:a"]["errors"]) == (1, 0.0, 2)
    assert (ours["demo:b"]["k"], ours["demo:b"]["k_cases"]) == (1, 1)
    sheet = attempts_sheet(stored(plan))
    assert [column.name for column in sheet.columns][3:] == ["pass@3", "pass^3", "of", "Errors"]
    assert {row[0]: list(row[3:]) for row in sheet.rows} == {
        "demo:a": ["100.0 %", "0.0 %", "1 case", "2"],
        "demo:b": ["-", "-", "0 cases", "0"],
    }


def test_expected_failures_are_outside_the_pass_rate(stored):
    header = stored(
        {item("a"): ["passed"], item("b", xfail="known"): ["failed"], item("c", xfail=""): ["passed"]}
    ).header
    assert (header["cases"]["passed"], header["cases"]["failed"], header["cases"]["xfailed"]) == (2, 0, 1)
    assert header["cases"]["pass_rate"] == 100.0
    assert header["by_model"][0]["pass_at_1"] == 1.0


def test_unknown_prices_are_counted_and_ranked_last_and_their_sums_are_numbers(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    journal = Journal(folder, "main")
    costs = {"m:free": None, "m:dear": 2.0, "m:cheap": 0.5, "m:silent": None}
    items = [item("a", model) for model in costs]
    journal.planned(items)
    for planned, cost in zip(items, costs.values(), strict=True):
        tokens = None if planned.model == "m:silent" else 30
        journal.started(planned.nodeid)
        journal.attempt(planned.nodeid, 0, judged(answer=answered(tokens=tokens, cost=cost)))
    header = from_folder(folder).header
    assert [entry["model"] for entry in header["by_model"]] == ["m:cheap", "m:dear", "m:free", "m:silent"]
    assert [entry["total_cost"] for entry in header["by_model"]] == [0.5, 2.0, 0, 0]
    assert [known_cost(entry) for entry in header["by_model"]] == [0.5, 2.0, None, None]
    assert [known_tokens(entry) for entry in header["by_model"]] == [30, 30, 30, None]
    assert [entry["unpriced"] for entry in header["by_model"]] == [0, 0, 1, 0]
    assert (header["summary"]["total_cost"], header["summary"]["unpriced"]) == (2.5, 1)
    assert header["summary"]["total_tokens"] == 90


def test_models_are_ranked_by_pass_rate_then_cost_then_name(stored):
    plan = {
        item("a", "m:z"): ["passed"],
        item("a", "m:y"): ["passed"],
        item("a", "m:bad"): ["failed"],
        item("a", "m:none"): None,
    }
    header = stored(plan).header
    assert [entry["model"] for entry in header["by_model"]] == ["m:y", "m:z", "m:bad", "m:none"]
    assert header["by_model"][-1]["cases"]["pass_rate"] is None
    assert header["by_model"][-1]["pass_rate"] == 0.0
    assert header["by_model"][-1]["interval"] is None
    assert header["by_model"][0]["interval"] == [round(100 * end, 1) for end in wilson(1, 1)]


def test_a_run_of_nothing_has_totals_all_the_same(stored):
    header = stored({item(): None}).header
    assert header["summary"] == {
        "total": 1,
        "passed": 0,
        "failed": 0,
        "total_tokens": 0,
        "total_cost": 0.0,
        "total_duration_ms": 0,
        "total_duration_s": 0.0,
        "total_tool_calls": 0,
        "avg_duration_ms": 0.0,
        "avg_tool_calls": 0.0,
        "errors": 0,
        "review": 0,
        "not_run": 1,
        "unpriced": 0,
        "score": None,
        "usage": {"agent": None, "extraction": None, "judge": None},
    }
    assert header["cases"]["pass_rate"] is None


def test_a_price_of_nothing_is_known_and_means_leave_out_what_did_not_run(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    journal = Journal(folder, "main")
    journal.planned([item("a"), item("b")])
    journal.started(item("a").nodeid)
    journal.attempt(item("a").nodeid, 0, judged(answer=answered(cost=0.0)))
    (entry,) = from_folder(folder).header["by_model"]
    assert (known_cost(entry), entry["unpriced"], entry["not_run"]) == (0.0, 0, 1)
    assert (entry["avg_duration_ms"], mean_per_attempt(entry, "total_duration_ms")) == (500.0, 1000.0)
    assert mean_per_attempt({"total": 2, "not_run": 2, "total_tool_calls": 0}, "total_tool_calls") == 0.0


def test_scores_are_means_of_attempts_then_of_cases(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    journal = Journal(folder, "main")
    for name, scores in {"a": [1.0, 0.5], "b": [0.0], "c": [None]}.items():
        planned = item(name, k=len(scores))
        journal.started(planned.nodeid)
        for number, score in enumerate(scores, 1):
            journal.attempt(planned.nodeid, 0, judged(number, score=score))
    header = from_folder(folder).header
    assert header["cases"]["score"] == header["summary"]["score"] == pytest.approx(0.375)


def test_flaky_cases_and_messages(stored):
    document = stored(
        {
            item("flaky", k=3): ["passed", "failed", "passed"],
            item("steady", k=2): ["passed", "passed"],
            item("broken", k=2): ["error", "error"],
            item("single"): ["failed"],
        }
    )
    cases = {case.key[1]: case for case in document.cases}
    assert [name for name, case in cases.items() if case.flaky] == ["flaky"]
    assert {name: case.message for name, case in cases.items()} == {
        "flaky": "2/3: values differ",
        "steady": "2/2",
        "broken": "0/0 (+2 errors): error",
        "single": "values differ",
    }
    assert cases["flaky"].deciding.attempt == 2
    assert cases["single"].score is None


def test_a_row_keeps_little_of_a_long_message():
    row = row_of({"name": "a", "message": "x" * 10_000, "error": "y" * 10_000, "passed": False})
    assert (len(row.message), len(row.error or "")) == (500, 500)
