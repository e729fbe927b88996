"""Cases that would pass although nothing of the answer was looked at."""

from __future__ import annotations

import json

import pytest

AGENT = """
import pytest
from pytest_agenteval import Answer

@pytest.fixture
def agent():
    return lambda task: {"nothing": Answer(), "blank": " ", "rows": [{"n": 1}]}[task.prompt]
"""


def verdict(pytester: pytest.Pytester, *arguments: str) -> tuple[str, str]:
    """Of the only case: its verdict and its message."""
    pytester.runpytest_inprocess("-q", *arguments)
    newest = max(
        (pytester.path / "tests/outputs").glob("results_*.json"), key=lambda path: path.stat().st_mtime_ns
    )
    (row,) = json.loads(newest.read_text(encoding="ascii"))["results"]
    return row["verdict"], row["message"]


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makeconftest(AGENT)
    (pytester.path / "tests").mkdir()
    return pytester


@pytest.mark.parametrize(
    "check",
    [
        "{type: no_tool_call, tool: drop_table}",
        "{type: text, not_contains: password}",
        "{type: text, grounded: true}",
        "{type: sql, read_only: true, forbidden_tables: [salaries]}",
    ],
)
@pytest.mark.parametrize("prompt", ["nothing", "blank"])
def test_prohibitions_do_not_pass_an_agent_that_says_and_does_nothing(suite, prompt, check):
    (suite.path / "tests/a.yml").write_text(f"prompt: {prompt}\nassertions:\n- {check}\n", encoding="utf-8")
    found, message = verdict(suite)
    assert found == "failed"
    assert message.endswith("the answer is empty: no text, no rows, no tool call")


def test_an_empty_answer_to_a_case_without_checks_is_still_for_a_person(suite):
    (suite.path / "tests/a.yml").write_text("prompt: nothing\n", encoding="utf-8")
    assert verdict(suite, "--agent-k=1") == ("review", "nothing was checked")


def test_a_prohibition_holds_of_an_answer(suite):
    text = "prompt: rows\nassertions:\n- {type: no_tool_call, tool: drop_table}\n"
    (suite.path / "tests/a.yml").write_text(text, encoding="utf-8")
    assert verdict(suite) == ("passed", "no tool_call: drop_table")


def test_a_comparison_that_ignores_every_column_is_an_error(suite):
    text = "prompt: rows\nexpected: [{n: 2}]\ncomparison: {ignore_columns: [N]}\n"
    (suite.path / "tests/a.yml").write_text(text, encoding="utf-8")
    assert verdict(suite) == (
        "error",
        "ignore_columns leaves out every expected column (n): nothing would be compared",
    )


def test_a_pattern_that_matches_every_text_is_refused(suite):
    text = "prompt: rows\nassertions:\n- {type: text, pattern: ''}\n"
    (suite.path / "tests/a.yml").write_text(text, encoding="utf-8")
    result = suite.runpytest_inprocess()
    result.stdout.fnmatch_lines(["tests/a.yml:3:*: pattern: should not be empty, found '' (taken for*"])
    assert result.ret == 2


def test_a_recording_of_one_turn_does_not_answer_a_conversation(suite):
    text = "prompt:\n- {say: one, expected: [{n: 1}]}\n- {say: two, expected: [{n: 3}]}\n- {say: three}\n"
    (suite.path / "tests/a.yml").write_text(text, encoding="utf-8")
    line = {"turns": ["one", "two", "three"], "model": None, "answer": {"text": "x", "data": [{"n": 1}]}}
    (suite.path / "hand.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    assert verdict(suite, "--agent-target=replay:hand.jsonl") == (
        "error",
        "the answer holds 1 of 3 turns, and turn 2 of 3 is to be checked",
    )
