"""``--agent-dry-run`` tells what would be asked and what it would cost; it asks nobody."""

from __future__ import annotations

import pytest

AGENT = """
import pytest
from pytest_agenteval import Answer
@pytest.fixture
def agent():
    def answer(prompt):
        with open("asked.txt", "a") as file:
            file.write(prompt)
        return Answer(data=[{"n": 1}], cost=0.25)
    return answer
"""


@pytest.mark.parametrize("extra", [[], ["-n", "2"]], ids=["plain", "xdist"])
def test_dry_run(shop: pytest.Pytester, extra: list[str]) -> None:
    shop.makeconftest(AGENT)
    (shop.path / "tests" / "one.yml").write_text("prompt: One?\nexpected: [{n: 1}]\nk: 3\n", "utf-8")
    first = shop.runpytest("--agent-dry-run", *extra)
    first.stdout.fnmatch_lines(["*nothing was asked*", "1 cases, 3 calls", "no cost is known: *"])
    assert not (shop.path / "asked.txt").exists()
    assert not (shop.path / "tests" / "outputs").exists()
    shop.runpytest().assert_outcomes(passed=1)
    (shop.path / "asked.txt").unlink()
    second = shop.runpytest("--agent-dry-run", *extra)
    second.stdout.fnmatch_lines(
        ["*1 cases, 3 calls, about $0.7500", "costs are those of results_*.json; 0 calls*"]
    )
    assert second.ret == 0
    assert not (shop.path / "asked.txt").exists()


def test_each_case_has_the_cost_of_its_own_last_results(shop: pytest.Pytester) -> None:
    shop.makeconftest(AGENT)
    for name in ("one", "two", "new"):
        (shop.path / "tests" / f"{name}.yml").write_text("prompt: One?\nexpected: [{n: 1}]\n", "utf-8")
    shop.runpytest("-k", "one or two").assert_outcomes(passed=2, deselected=1)
    shop.runpytest("-k", "one").assert_outcomes(passed=1, deselected=2)
    shop.runpytest("--agent-dry-run").stdout.fnmatch_lines(
        [
            "agent: 3 calls, at least $0.5000; 1 of 3 calls unknown",
            "3 cases, 3 calls, at least $0.5000; 1 of 3 calls unknown",
            "costs are those of results_*.json and 1 older; 1 calls have none there",
        ]
    )
    shop.runpytest("-k", "new", "--agent-dry-run").stdout.fnmatch_lines(
        ["agent: 1 calls", "1 cases, 1 calls", "no cost is known: no results yet say what these cases cost"]
    )
    # a plain run in which every case is skipped is no source
    shop.runpytest("-o", "agenteval_run=explicit").assert_outcomes(skipped=3)
    shop.runpytest("--agent-dry-run", "-k", "two").stdout.fnmatch_lines(["1 cases, 1 calls, about $0.2500"])
