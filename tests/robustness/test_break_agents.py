"""Agents that leave in every other way than by answering: an error of theirs, and the run goes on."""

from __future__ import annotations

import json

import pytest

DEEDS = {
    "raise Own(7)": "Own: 7",
    "raise asyncio.CancelledError(7)": "CancelledError: 7",
    "raise GeneratorExit": "GeneratorExit",
    "sys.exit(0)": "the agent called exit (SystemExit: 0)",
    "pytest.skip(str(7))": "the agent called pytest.skip: 7; skip in the case's file or a fixture",
    "pytest.xfail(str(7))": "the agent called pytest.xfail: 7; xfail in the case's file or a fixture",
    "pytest.fail(str(7))": "the agent called pytest.fail: 7 (",
    "pytest.exit(str(7))": "Exit: 7",
}


@pytest.mark.parametrize("concurrency", ["1", "4"])
def test_whatever_an_agent_raises_is_an_error_everywhere(project, concurrency):
    shop = project(*DEEDS, "pass")
    status, output = shop.run("--agent-concurrency", concurrency, "--tb=no", "--junitxml=j.xml", "-v")
    assert status == 1
    assert f"1 passed, {len(DEEDS)} errors in" in output
    (written,) = (shop.path / "tests/outputs").glob("results_*.json")
    rows = json.loads(written.read_text(encoding="ascii"))["results"]
    assert [(row["verdict"], row["stage"], row["reason"]) for row in rows] == [
        *[("error", "agent", "agent_error")] * len(DEEDS),
        ("passed", None, None),
    ]
    for row, expected in zip(rows, DEEDS.values(), strict=False):
        assert row["message"].startswith(expected)
    assert 'skipped="0"' in (shop.path / "j.xml").read_text(encoding="utf-8")


def test_ctrl_c_in_an_agent_still_ends_the_run(project):
    shop = project("raise KeyboardInterrupt", "pass")
    status, output = shop.run()
    assert status == 2
    assert shop.asked == 1
    assert "2 not run" in output  # an interrupt is no verdict on the agent


def test_the_short_summary_says_why_not_only_that(project):
    shop = project("raise ValueError(str(7))")
    text = (shop.path / "tests/cases.yml").read_text(encoding="utf-8")
    (shop.path / "tests/wrong.yml").write_text(
        text.replace("raise ValueError(str(7))", "pass").replace("a: 1", "a: 2")
    )
    status, output = shop.run("--junitxml=j.xml")
    assert status == 1
    assert "ERROR tests/cases.yml::c0 - ValueError: 7 (conftest.py:" in output
    assert "FAILED tests/wrong.yml::c0 - values differ: `" in output
    junit = (shop.path / "j.xml").read_text(encoding="utf-8")
    assert '<failure message="values differ: `' in junit


def test_a_cost_below_zero_is_unknown_and_frees_no_budget(project):
    shop = project("pass")
    source = (shop.path / "conftest.py").read_text(encoding="utf-8")
    answer = "pytest_agenteval.Answer(data=[{'a': 1}], cost=-5.0, usage={'input': -3, 'output': 4})"
    (shop.path / "conftest.py").write_text(
        "import pytest_agenteval\n" + source.replace('return [{"a": 1}]', f"return {answer}"),
        encoding="utf-8",
    )
    status, output = shop.run()
    assert status == 0
    (written,) = (shop.path / "tests/outputs").glob("results_*.json")
    (row,) = json.loads(written.read_text(encoding="ascii"))["results"]
    assert (row["cost"], row["tokens"], row["passed"]) == (None, 4, True)
    assert "$" not in output
