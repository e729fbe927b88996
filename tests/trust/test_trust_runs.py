"""What a run says of right answers that are right by luck, and of why wrong ones are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

CONFTEST = """
import pytest
from pytest_agenteval import Answer, ToolCall

SAID = {said!r}

@pytest.fixture
def agent():
    def run(task):
        sql = SAID[task.prompt]
        if sql is None:
            return Answer("I know: 3", data=[{{"n": 3}}])
        import duckdb
        with duckdb.connect("shop.duckdb", read_only=True) as connection:
            cursor = connection.execute(sql)
            names = [entry[0] for entry in cursor.description]
            rows = [dict(zip(names, row)) for row in cursor.fetchall()]
        call = ToolCall("execute_sql", {{"sql": sql}}, {{"rows": rows}})
        return Answer("done", tool_calls=(call,))
    return run
"""

INI = """
[pytest]
agenteval_databases = shop = duckdb:///shop.duckdb
asyncio_default_fixture_loop_scope = function
"""

EXACTLY = "the answer is exactly what the reference gives"
REFERENCE = "SELECT count(*) AS n FROM orders WHERE status = 'completed' AND day < '2024-06-01'"
LUCKY = "SELECT count(*) AS n FROM orders WHERE status = 'completed'"
SAME = "SELECT count(id) AS n FROM orders AS o WHERE o.day < '2024-06-01' AND o.status IN ('completed')"
WRONG = "SELECT count(*) AS n FROM orders WHERE day < '2024-06-01'"


@pytest.fixture
def shop(pytester: pytest.Pytester) -> Any:
    with duckdb.connect(str(pytester.path / "shop.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, status VARCHAR NOT NULL, day DATE NOT NULL);"
            "INSERT INTO orders VALUES (1, 'completed', '2024-01-01'), (2, 'completed', '2024-02-01'),"
            " (3, 'completed', '2024-03-01'), (4, 'returned', '2024-03-02'), (5, 'returned', '2024-04-02')"
        )
    pytester.makeini(INI)

    def write(**said: str | None) -> None:
        pytester.makeconftest(CONFTEST.format(said={f"{name}?": sql for name, sql in said.items()}))
        folder = pytester.path / "tests"
        folder.mkdir(exist_ok=True)
        for name in said:
            text = f"name: {name}\nprompt: {name}?\nsql: {json.dumps(REFERENCE)}\n"
            (folder / f"{name}.yml").write_text(text, encoding="utf-8")

    return write


def document(pytester: pytest.Pytester) -> dict[str, Any]:
    (path,) = (pytester.path / "tests" / "outputs").glob("results_*.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def entries(pytester: pytest.Pytester) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in document(pytester)["results"]}


def test_a_right_answer_by_luck_passes_and_is_shown_with_the_rows(
    shop: Any, pytester: pytest.Pytester
) -> None:
    shop(lucky=LUCKY, same=SAME)
    result = pytester.runpytest_inprocess("-v", "-rP")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "*right by luck: the SQL differs from the reference on other data*",
            "*1 row is enough*",
            "*orders*status*day*",
            "*completed*2024-*",
            "*reference*0*",
            "*this SQL*1*",
            "*why*no filter orders.day < '2024-06-01'*",
            "*--agent-luck=off hides it, =fail makes it a failure*",
            "*right by luck: 1 of 2 passed (lucky)*",
        ]
    )
    found = entries(pytester)
    luck = found["lucky"]["luck"]
    assert (luck["checked"], luck["found"], luck["assumption"], luck["why_not"]) == (
        True,
        True,
        "strict",
        None,
    )
    assert luck["tables"].keys() == {"main.orders"}
    assert (luck["reference"], luck["answer"]) == ([{"n": 0}], [{"n": 1}])
    assert found["lucky"]["verdict"] == "passed"
    assert [line["text"] for line in found["lucky"]["sql_difference"]] == [
        "no filter orders.day < '2024-06-01'"
    ]
    assert found["same"]["luck"]["found"] is False
    assert found["same"]["luck"]["trials"] > 0


def test_luck_is_a_failure_or_not_looked_for_where_that_is_asked(
    shop: Any, pytester: pytest.Pytester
) -> None:
    shop(lucky=LUCKY)
    result = pytester.runpytest_inprocess("--agent-luck=fail")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*right by luck: the SQL differs from the reference on other data; match*"])
    (path,) = (pytester.path / "tests" / "outputs").glob("results_*.json")
    assert entries(pytester)["lucky"]["reason"] == "luck"
    path.unlink()
    pytester.runpytest_inprocess("--agent-luck=off").assert_outcomes(passed=1)
    assert entries(pytester)["lucky"]["luck"] is None


def test_an_answer_that_no_statement_gives_is_not_checked(shop: Any, pytester: pytest.Pytester) -> None:
    shop(told=None)
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
    assert entries(pytester)["told"]["luck"] is None


def test_rules_of_the_ini_keep_luck_silent(shop: Any, pytester: pytest.Pytester) -> None:
    shop(
        unique="SELECT count(DISTINCT day) AS n FROM orders WHERE status = 'completed' AND day < '2024-06-01'"
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
    assert entries(pytester)["unique"]["luck"]["found"] is True
    pytester.makeini(INI + "agenteval_constraints = orders.day unique\n")
    for path in (pytester.path / "tests" / "outputs").glob("results_*.json"):
        path.unlink()
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
    assert entries(pytester)["unique"]["luck"]["found"] is False


def test_a_failure_says_what_its_sql_did_and_failures_are_grouped(
    shop: Any, pytester: pytest.Pytester
) -> None:
    shop(one=WRONG, two=WRONG, right=SAME)
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "why       the answer is exactly what the reference gives without the filter",
            "          orders.status = 'completed'",
            "causes: 2 of 2 failures: no filter on orders.status",
        ]
    )
    run = document(pytester)["run"]
    assert run["causes"] == [
        {"kind": "no filter", "table": "orders", "column": "status", "count": 2, "cases": ["one", "two"]}
    ]
    entry = entries(pytester)["one"]
    assert entry["cause"] == {
        "proved": True,
        "kind": "no filter",
        "table": "orders",
        "column": "status",
        "text": f"{EXACTLY} without the filter orders.status = 'completed'",
    }
    assert entry["sql_difference"] == [
        {
            "kind": "no filter",
            "table": "orders",
            "column": "status",
            "text": "no filter orders.status = 'completed'",
            "verified": True,
        }
    ]


def test_the_summary_in_markdown_names_the_causes(shop: Any, pytester: pytest.Pytester) -> None:
    shop(one=WRONG)
    pytester.runpytest_inprocess("--agent-summary=summary.md")
    text = (pytester.path / "summary.md").read_text(encoding="utf-8")
    assert "- causes: 1 of 1 failure: no filter on orders.status" in text.replace("\\", "")


def test_mistakes_are_tried_without_the_agents_sql_where_that_is_asked(
    shop: Any, pytester: pytest.Pytester
) -> None:
    shop(told=None)
    (pytester.path / "tests" / "told.yml").write_text(
        "name: told\nprompt: told?\n"
        "sql: SELECT count(DISTINCT status) AS n FROM orders WHERE day < '2024-03-02'\n",
        encoding="utf-8",
    )
    pytester.runpytest_inprocess().assert_outcomes(failed=1)
    assert entries(pytester)["told"]["cause"] is None
    for path in (pytester.path / "tests" / "outputs").glob("results_*.json"):
        path.unlink()
    pytester.runpytest_inprocess("--agent-cause").assert_outcomes(failed=1)
    told = entries(pytester)["told"]["cause"]["text"]
    assert (
        told
        == "the answer is exactly what the reference gives without DISTINCT in COUNT(DISTINCT orders.status)"
    )


def test_resume_and_rescore_keep_what_was_found_out(shop: Any, pytester: pytest.Pytester) -> None:
    from pytest_agenteval.cli import main

    shop(lucky=LUCKY, one=WRONG)
    pytester.runpytest_inprocess()
    before = entries(pytester)
    (path,) = (pytester.path / "tests" / "outputs").glob("results_*.json")
    assert main(["rescore", str(path)]) == 0
    newest = max((pytester.path / "tests" / "outputs").glob("results_*.json"))
    after = {e["name"]: e for e in json.loads(newest.read_text(encoding="utf-8"))["results"]}
    for name in before:
        for key in ("luck", "cause", "sql_difference"):
            assert after[name][key] == before[name][key]


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    from pytest_agenteval.cli import main

    code = main(["check", *arguments])
    return code, capsys.readouterr().out


def test_check_mutants_lists_what_the_data_cannot_notice(
    shop: Any, pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    shop(one=None)
    code, told = check(capsys, "--mutants")
    assert code == 0
    lines = told.splitlines()
    assert "tests/one.yml:3: the data do not tell the reference from these" in lines
    assert "  without the filter orders.day < '2024-06-01'" in lines
    assert (
        "  An agent that makes one of these mistakes passes. Rows that would tell the first apart:" in lines
    )
    assert "    reference       0" in lines
    assert "    mistake         1" in lines
    assert (
        "1 reference: 0 without a blind spot found, 1 with (agenteval check --mutants -v lists all)" in lines
    )
    # without the filter on the status the data give 5
    assert not any("without the filter orders.status" in line for line in lines)


def test_check_mutants_is_strict_where_asked_and_prints_json_and_rules(
    shop: Any, pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    shop(one=None)
    code, told = check(capsys, "--mutants", "--strict", "--json")
    facts = json.loads(told)
    assert code == 1
    assert facts["mutants"][0]["where"] == "tests/one.yml:3"
    assert "without the filter orders.day < '2024-06-01'" in facts["mutants"][0]["not_caught"]
    assert any("the data do not notice" in problem["text"] for problem in facts["problems"])
    code, told = check(capsys, "--mutants", "-v")
    assert code == 0
    assert "  main.orders(id) key" in told.splitlines()


def test_check_mutants_says_why_a_reference_is_not_checked(
    shop: Any, pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    shop(one=None)
    (pytester.path / "tests" / "one.yml").write_text(
        "name: one\nprompt: one?\nsql: SELECT count(*) AS n FROM nowhere\n", encoding="utf-8"
    )
    _, told = check(capsys, "--mutants")
    assert "tests/one.yml:3: one: mutants not checked: " in told
    assert "1 reference: 0 without a blind spot found, 0 with, 1 not checked" in told


def test_no_run_without_statements_loads_a_parser(shop: Any, pytester: pytest.Pytester) -> None:
    shop(told=None)
    pytester.makepyfile(
        test_last="""
        import sys

        def test_light():
            assert "pytest_agenteval.trust.search" not in sys.modules
        """
    )
    result = pytester.runpytest_subprocess("tests", "test_last.py", "-p", "no:randomly")
    result.assert_outcomes(passed=2)


def test_outputs_stay_below_the_project(shop: Any, pytester: pytest.Pytester) -> None:
    shop(lucky=LUCKY)
    before = Path(pytester.path / "shop.duckdb").read_bytes()
    pytester.runpytest_inprocess()
    assert Path(pytester.path / "shop.duckdb").read_bytes() == before


def test_frozen_references_without_a_database_are_not_checked(shop: Any, pytester: pytest.Pytester) -> None:
    from pytest_agenteval.cli import main

    shop(lucky=LUCKY)
    assert main(["freeze"]) == 0
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.runpytest_inprocess("--agent-references=frozen").assert_outcomes(passed=1)
    luck = entries(pytester)["lucky"]["luck"]
    assert (luck["checked"], luck["why_not"]) == (False, "references are frozen")


def test_junit_carries_that_a_case_is_right_by_luck(shop: Any, pytester: pytest.Pytester) -> None:
    shop(lucky=LUCKY, same=SAME)
    pytester.runpytest_inprocess("--junitxml=junit.xml")
    text = (pytester.path / "junit.xml").read_text(encoding="utf-8")
    assert text.count('name="agenteval_luck"') == 1
