"""Redaction never decides: what was masked is marked, and never judged, replayed or saved as a test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_agenteval.authoring.save_case import NoCase, draft_of
from pytest_agenteval.cli import main
from pytest_agenteval.results.document.load import read_document

CONFTEST = """
import pytest
from pytest_agenteval import Answer, ToolCall

@pytest.fixture
def agent():
    def ask(prompt):
        if prompt == "city":
            return [{"city": "Mannheim"}]
        if prompt == "sql":
            return Answer(tool_calls=(ToolCall("execute_sql", {"sql": "select 'Mannheim' as city"},
                {"columns": ["city"], "data": [["Mannheim"]]}),))
        return [{"order_no": "sk-12345678901234567", "note": "password: Hunter12 for all"}]
    return ask
"""

CASES = """
cases:
  - name: shape
    prompt: order
    expected: [{order_no: sk-12345678901234567, note: "password: Hunter12 for all"}]
  - {name: known, prompt: city, expected: [{city: Mannheim}]}
  - {name: query, prompt: sql, expected: [{city: Mannheim}]}
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("CITY_KEY", "Mannheim")
    pytester.makeconftest(CONFTEST)
    pytester.makeini("[pytest]\naddopts = -p no:asyncio\n")
    (pytester.mkdir("tests") / "c.yml").write_text(CASES, encoding="utf-8")
    return pytester


def results_of(project: pytest.Pytester) -> Path:
    return next((project.path / "tests" / "outputs").glob("results_*.json"))


def test_cells_are_masked_only_for_known_secrets_and_marked(project: pytest.Pytester) -> None:
    project.runpytest_inprocess().assert_outcomes(passed=3)
    document = read_document(results_of(project))
    shape, known, query = (document.entry(number)["details"] for number in range(3))
    assert shape["actual_data"] == [
        {"order_no": "sk-12345678901234567", "note": "password: Hunter12 for all"}
    ]
    assert "masked" not in shape
    assert known["actual_data"] == [{"city": "***"}]
    assert known["masked"] == 3  # the reference, the table, the answer it came from
    assert query["masked"] == 4


def test_rescore_keeps_the_verdict_of_what_was_masked(
    project: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    project.runpytest_inprocess().assert_outcomes(passed=3)
    assert main(["rescore", str(results_of(project))]) == 0
    shown = capsys.readouterr().out
    assert "not rescorable: 3 values were masked, 1 of 3" in shown
    assert "not rescorable: 4 values were masked, 1 of 3" in shown
    assert "Regressions" not in shown


def test_replay_of_a_masked_answer_is_an_error_and_no_failure(project: pytest.Pytester) -> None:
    project.runpytest_inprocess("--agent-record", "rec.jsonl").assert_outcomes(passed=3)
    lines = (project.path / "rec.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line).get("masked") for line in lines] == [None, 1, 2]
    done = project.runpytest_inprocess("--agent-target", "replay:rec.jsonl")
    done.assert_outcomes(passed=1, errors=2)
    done.stdout.fnmatch_lines(["*rec.jsonl:2: not replayable: 1 value was*"])


def test_resume_asks_again_instead_of_judging_a_masked_answer(project: pytest.Pytester) -> None:
    project.runpytest_inprocess().assert_outcomes(passed=3)
    text = CASES.replace("{city: Mannheim}", "{city: Mannheim, n: 1}")
    (project.path / "tests" / "c.yml").write_text(text, encoding="utf-8")
    done = project.runpytest_inprocess("--agent-resume")
    done.stdout.fnmatch_lines(["*went on with*: 1 answer taken over, 2 asked now"])


def test_save_as_test_refuses_masked_values(project: pytest.Pytester) -> None:
    project.runpytest_inprocess().assert_outcomes(passed=3)
    entry = read_document(results_of(project)).entry(1)
    with pytest.raises(NoCase, match="known: 3 values of its answer were masked as secrets"):
        draft_of(entry, {})
