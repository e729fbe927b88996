"""Tokens and a model are a price, whatever kind of agent reports them; budgets hold for all."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ANSWER = {"data": [{"total": 47}], "usage": {"input": 1000, "output": 100}}
USD = (1000 * 2 + 100 * 8) / 1e6  # gpt-4.1's published prices: 2 and 8 USD per million
PROGRAM = f"import json, sys\nsys.stdin.read()\nprint(json.dumps({ANSWER!r}))\n"


@pytest.fixture(params=["python", "command", "http", "replay"])
def ask(request, pytester: pytest.Pytester, httpserver):
    """Run pytest with an agent of each kind that reports tokens and no cost."""
    pytester.makepyfile(program=PROGRAM, priced=f"def ask(task):\n    return {ANSWER!r}\n")
    httpserver.expect_request("/ask").respond_with_json(ANSWER)
    for name in ("a", "b", "c"):
        text = f"prompt: what is {name}?\nexpected: [{{total: 47}}]\n"
        path = pytester.path / "tests" / f"{name}.yml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    targets = {
        "python": "python:priced:ask",
        "command": f"command:{sys.executable} program.py",
        "http": f"http:{httpserver.url_for('/ask')}",
        "replay": "replay:said.jsonl",
    }
    model = ("--agent-model", "openai:gpt-4.1")
    if request.param == "replay":  # recorded where the model had no price
        target = ("--agent-target", targets["python"])
        pytester.runpytest(*target, *model, "--agent-record=said.jsonl").assert_outcomes(passed=3)
        lines = (pytester.path / "said.jsonl").read_text("utf-8").splitlines()
        forms = [json.loads(line) for line in lines]
        for form in forms:
            form.get("answer", {}).pop("cost", None)
        text = "".join(json.dumps(form) + "\n" for form in forms)
        (pytester.path / "said.jsonl").write_text(text, "utf-8")

    def run(*arguments: str) -> pytest.RunResult:
        return pytester.runpytest("--agent-target", targets[request.param], *model, *arguments)

    return run


def rows(folder: Path) -> list[dict]:
    found = max(folder.glob("tests/outputs/results_*.json"), key=lambda path: path.stat().st_mtime_ns)
    return json.loads(found.read_text("utf-8"))["results"]


def test_tokens_and_a_model_are_a_price(ask, pytester) -> None:
    result = ask()
    result.assert_outcomes(passed=3)
    assert "unpriced" not in result.stdout.str()
    assert [row["cost"] for row in rows(pytester.path)] == [pytest.approx(USD)] * 3


def test_the_project_files_costs_come_first_and_a_cases_budget_holds(ask, pytester) -> None:
    costs = "{input_no_cache: 1000.0, output: 1000.0}"
    pytester.makefile(
        ".yaml",
        agenteval="llm:\n  providers:\n    - provider: openai\n      models:\n"
        f"        - id: gpt-4.1\n          costs: {costs}\n",
    )
    case = pytester.path / "tests" / "a.yml"
    case.write_text(case.read_text("utf-8") + "budget: {cost: 0.50}\n", encoding="utf-8")
    result = ask()
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*budget: $1.1000 of $0.5000*"])
    assert {row["cost"] for row in rows(pytester.path)} == {1.1}


def test_the_runs_budget_stops_every_kind(ask) -> None:
    result = ask("--agent-budget", f"{USD * 1.5:.6f}")
    result.assert_outcomes(passed=1, skipped=2)
    assert "not enforced" not in result.stdout.str()


def test_a_files_budget_counts_what_every_kind_costs(ask, pytester) -> None:
    for name in ("a", "b", "c"):
        (pytester.path / "tests" / f"{name}.yml").unlink()
    cases = "".join(f"  - {{prompt: what is {name}?, expected: [{{total: 47}}]}}\n" for name in "abc")
    text = f"budget: {{cost: {USD * 1.5:.6f}}}\ncases:\n{cases}"
    (pytester.path / "tests" / "all.yml").write_text(text, encoding="utf-8")
    outcomes = ask().parseoutcomes()
    assert (outcomes["passed"], outcomes["skipped"]) == (1, 2)


def test_what_an_agent_used_before_it_failed_is_priced(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        priced="from pytest_agenteval.errors import AgentFailed\n"
        "from pytest_agenteval import Answer, Usage\n"
        "def ask(task):\n"
        "    spent = Answer(usage=Usage(input=1000, output=100, model='gpt-4.1'))\n"
        "    raise AgentFailed('asleep', answer=spent)\n"
    )
    for name in ("a", "b"):
        path = pytester.path / "tests" / f"{name}.yml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"prompt: what is {name}?\nexpected: [{{total: 47}}]\n", encoding="utf-8")
    result = pytester.runpytest("--agent-target", "python:priced:ask", "--agent-budget", "0.002")
    result.assert_outcomes(errors=1, skipped=1)
    assert rows(pytester.path)[0]["cost"] == pytest.approx(USD)
