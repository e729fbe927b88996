"""Totals and budgets count every call that was paid for, whatever became of its answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_agenteval import read_results
from pytest_agenteval.cli import main

AGENT = """
import os, pytest
from pytest_agenteval import Answer, Usage
@pytest.fixture(scope="session")
def agent():
    def answer(prompt):
        with open("asked.txt", "a") as file:
            file.write(prompt + "\\n")
        with open("asked.txt") as file:
            again = file.read().split("\\n").count(prompt)
        wrong = prompt == "1" and again < 3
        data = object() if prompt == "bad" else [{"n": -1 if wrong else int(prompt)}]
        return Answer("x", data=data, usage=Usage(8, 2), cost=0.1)
    return answer
"""


def write(shop: pytest.Pytester, *prompts: str) -> None:
    shop.makeconftest(AGENT)
    for number, prompt in enumerate(prompts):
        expected = prompt if prompt.isdigit() else "0"
        text = f"prompt: '{prompt}'\nexpected: [{{n: {expected}}}]\n"
        (shop.path / "tests" / f"c{number:02}.yml").write_text(text, "utf-8")


def document(path: Path) -> dict[str, Any]:
    (file,) = (path / "tests" / "outputs").glob("results_*.json")
    read: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return read


@pytest.mark.parametrize("options", [("--reruns", "2"), ("--reruns", "2", "-n", "2")], ids=["n0", "n2"])
def test_reruns_are_paid_for(shop: pytest.Pytester, options: tuple[str, ...]) -> None:
    write(shop, "0", "1", "2")
    result = shop.runpytest_subprocess("-v", *options)
    result.assert_outcomes(passed=3)
    assert result.parseoutcomes()["rerun"] == 2
    made = document(shop.path)
    assert made["summary"]["total_cost"] == made["by_model"][0]["total_cost"] == 0.5
    assert made["summary"]["total_tokens"] == 50
    assert made["run"]["superseded"] == {"agent": {"answers": 2, "tokens": 20, "cost": 0.2}}
    assert sum(entry["cost"] for entry in made["results"]) == pytest.approx(0.3)
    (last,) = [line for line in result.outlines if line.startswith("cases: ")]
    assert "$0.5000" in last
    assert any("Σ $0.5000" in line for line in result.outlines)


def test_each_worker_that_asks_is_paid_for(shop: pytest.Pytester) -> None:
    write(shop, "0", "2", "3")
    shop.runpytest_subprocess("-n", "2", "--dist", "each")
    assert document(shop.path)["summary"]["total_cost"] == 0.6


def test_what_was_paid_before_a_run_was_resumed_stays_in_its_totals(shop: pytest.Pytester) -> None:
    write(shop, "0", "bad")
    assert shop.runpytest_subprocess("-x").ret == 1
    (shop.path / "tests" / "c02.yml").write_text("prompt: '4'\nexpected: [{n: 4}]\n", "utf-8")
    made = document(shop.path)
    assert made["summary"]["total_cost"] == 0.2
    merged = shop.path / "merged.json"
    (file,) = (shop.path / "tests" / "outputs").glob("results_*.json")
    assert main(["merge", str(file), "-o", str(merged)]) == 0
    assert json.loads(merged.read_text("utf-8"))["summary"]["total_cost"] == 0.2


def test_totals_of_merged_files_keep_what_was_superseded(shop: pytest.Pytester) -> None:
    write(shop, "0", "1")
    shop.runpytest_subprocess("--reruns", "2")
    (file,) = (shop.path / "tests" / "outputs").glob("results_*.json")
    copy = shop.path / "copy.json"
    copy.write_text(file.read_text("utf-8").replace('"model":"agent"', '"model":"other"'), "utf-8")
    merged = shop.path / "merged.json"
    assert main(["merge", str(file), str(copy), "-o", str(merged)]) == 0
    made = json.loads(merged.read_text("utf-8"))
    assert made["run"]["superseded"]["agent"] == {"answers": 4, "tokens": 40, "cost": 0.4}
    assert made["summary"]["total_cost"] == 0.8


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["n0", "n2"])
def test_an_answer_of_a_bad_type_counts_against_the_budget(
    shop: pytest.Pytester, options: tuple[str, ...]
) -> None:
    write(shop, *["bad"] * 12)
    result = shop.runpytest_subprocess("--agent-budget", "0.5", *options)
    assert result.ret == 1
    assert len((shop.path / "asked.txt").read_text("utf-8").split()) == 5
    made = document(shop.path)
    assert made["summary"]["total_cost"] == 0.5
    verdicts = [entry["verdict"] for entry in made["results"]]
    assert (verdicts.count("error"), verdicts.count("not_run")) == (5, 7)
    (file,) = (shop.path / "tests" / "outputs").glob("results_*.json")
    assert read_results(file)["cost"].sum() == pytest.approx(0.5)
