"""Cases that nobody has approved: run and shown, counted nowhere."""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from result_runs import item

from pytest_agenteval.cases.loader import load_cases
from pytest_agenteval.cases.model import Case
from pytest_agenteval.cases.review import is_made, review_sha, review_state
from pytest_agenteval.checks.registry import default_registry
from pytest_agenteval.results.analysis.diff import diff_documents
from pytest_agenteval.results.analysis.gates import against_baseline, exit_status, fail_under
from pytest_agenteval.results.document.document import from_folder


def case(tmp_path: Path, reviewed: str = "", more: str = "") -> Case:
    path = tmp_path / "a.yml"
    lines = ["prompt: How many?", "sql: SELECT 1 AS n", "metadata:", "  note: x"]
    lines += [f"  reviewed: {reviewed}"] if reviewed else []
    path.write_text("\n".join([*lines, more]) + "\n")
    (loaded,) = load_cases(path, checks=default_registry()).cases
    return loaded


@pytest.mark.parametrize(
    ("reviewed", "more", "state"),
    [
        ("", "", "unknown"),
        ("", "  source: {format: csv}", "unreviewed"),
        ("false", "", "unreviewed"),
        ("true", "  source: {format: csv}", "approved"),
        ("{by: ana}", "", "approved"),
        ("{by: ana, sha: 000000000000}", "", "stale"),
        ("{by: ana, expires: 2026-05-01}", "", "approved"),
        ("{by: ana, expires: 2026-04-30}", "", "stale"),
        ("{by: ana, expires: 2026-04-30 10:00:00}", "", "stale"),
        ("{by: ana, expires: '2026-04-30'}", "", "stale"),
        ("{by: ana, expires: soon}", "", "stale"),
    ],
)
def test_the_state_of_a_case(tmp_path: Path, reviewed: str, more: str, state: str) -> None:
    assert review_state(case(tmp_path, reviewed, more), date(2026, 5, 1)) == state


def test_an_approval_holds_for_the_prompt_and_reference_it_was_given_for(tmp_path: Path) -> None:
    sha = review_sha(case(tmp_path))
    assert review_state(case(tmp_path, f"{{by: ana, sha: {sha!r}}}")) == "approved"
    path = tmp_path / "a.yml"
    path.write_text(path.read_text().replace("SELECT 1 AS n", "SELECT 2 AS n"))
    (changed,) = load_cases(path, checks=default_registry()).cases
    assert review_state(changed) == "stale"
    assert not is_made(changed)
    assert isinstance(changed.metadata["reviewed"]["by"], str)
    assert datetime.now().date() >= date(2024, 1, 1)


def quarantined(name: str, **more: Any) -> Any:
    return item(name, quarantined=True, reviewed=False, **more)


def test_they_are_in_no_rate_gate_or_comparison(run_folder) -> None:
    plan = {item("a"): ["passed"], quarantined("b"): ["passed"], quarantined("c"): ["failed"]}
    document = from_folder(run_folder(plan))
    cases = document.header["cases"]
    assert (cases["passed"], cases["failed"], cases["quarantined"], cases["quarantined_passed"]) == (
        1,
        0,
        2,
        1,
    )
    assert (cases["pass_rate"], cases["unreviewed"]) == (100.0, 2)
    assert document.header["by_model"][0]["pass_at_1"] == 1.0
    assert all(gate.holds for gate in fail_under(document.cases, [("", 100)]))
    assert against_baseline(None, document).holds
    old = from_folder(run_folder({item("a"): ["passed"], item("b"): ["failed"], item("c"): ["passed"]}))
    diff = diff_documents(old, document)
    assert [entry.change for entry in diff.changes if entry.new.quarantined] == ["other", "other"]
    assert against_baseline(old, document).holds
    back = diff_documents(document, old)
    assert {entry.new.key[1]: entry.change for entry in back.changes}["b"] == "other"
    assert json.loads(json.dumps(document.entry(1)))["quarantined"] is True


def test_a_run_of_them_alone_has_judged_nothing(run_folder) -> None:
    cases = from_folder(run_folder({quarantined("b"): ["passed"]})).header["cases"]
    assert exit_status(cases).warning == "nothing was judged: 1 to review"
    assert exit_status(cases, all_reviewed=True).reasons == ("nobody has approved 1 of 1 cases",)


CASES = """
cases:
  - name: mine
    prompt: one
    expected: [{n: 1}]
  - name: right
    prompt: two
    expected: [{n: 1}]
    metadata: {reviewed: false, source: {format: csv}}
  - name: wrong
    prompt: three
    expected: [{n: 2}]
    metadata: {source: {format: csv}}
  - name: late
    prompt: raise
    expected: [{n: 2}]
    metadata: {source: {format: csv}}
  - name: approved
    prompt: four
    expected: [{n: 1}]
    metadata: {reviewed: {by: ana}, source: {format: csv}}
"""
AGENT = """
import pytest
@pytest.fixture
def agent():
    def answer(prompt):
        if prompt == "raise":
            raise RuntimeError("no")
        return [{"n": 1}]
    return answer
"""


@pytest.mark.parametrize(
    ("words", "said", "outcomes"),
    [
        ((), "cases: 2 passed, 3 quarantined (1 passed)", {"passed": 2, "skipped": 3}),
        (("--agent-unreviewed", "quarantine"), "3 quarantined (1 passed)", {"passed": 2, "skipped": 3}),
        (
            ("--agent-unreviewed", "count"),
            "3 passed, 1 failed, 1 error",
            {"passed": 3, "failed": 1, "errors": 1},
        ),
        (("--agent-unreviewed", "skip"), "cases: 2 passed", {"passed": 2, "skipped": 3}),
        (
            ("--agent-unreviewed", "fail", "-k", "right"),
            "nobody has approved 1 of 1 cases",
            {"passed": 1, "deselected": 4},
        ),
    ],
)
def test_what_a_run_does_with_them(pytester: pytest.Pytester, words, said: str, outcomes) -> None:
    pytester.makeini("[pytest]\n")
    pytester.makeconftest(AGENT)
    (pytester.path / "tests").mkdir()
    (pytester.path / "tests" / "a.yml").write_text(CASES)
    result = pytester.runpytest("-rs", *words)
    result.assert_outcomes(**outcomes)
    result.stdout.fnmatch_lines([f"*{said}*"])
    if not words:
        assert result.ret == 0
        text = result.stdout.str()
        assert "quarantined: nobody has approved this case; it failed: values differ: `n`" in text
        assert "quarantined: nobody has approved this case; it ended in an error:" in text
