"""The text of a failed case: the cause in the first line, where everything came from in the last."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_agenteval.cases.model import Case, Turn
from pytest_agenteval.compare import compare
from pytest_agenteval.reports.failure import failure_text
from pytest_agenteval.table import Table
from pytest_agenteval.types import Answer, Attempt, CaseResult, CheckResult, Extraction

EXPECTED = Table.from_rows(["total"], [[47]], ["BIGINT"])
GIVEN = Table.from_rows(["total"], [[46]], ["BIGINT"])


def case(prompt: str = "What is the total?") -> Case:
    return Case(path=Path("tests/x.yml"), line=1, name="x", id="x", turns=(Turn(prompt),))


def attempt(number: int = 1, verdict: str = "failed", **more: object) -> Attempt:
    return Attempt(number, verdict, more.pop("message", "values differ"), **more)  # type: ignore[arg-type]


def test_the_cause_stands_first() -> None:
    found = attempt(
        comparison=compare(EXPECTED, GIVEN),
        reference_sql="SELECT sum(amount) AS total\nFROM orders",
        extraction=Extraction(GIVEN, "only query", "SELECT 46 AS total"),
    )
    lines = failure_text(case(), CaseResult("failed", "values differ", [found])).splitlines()
    assert lines[0].startswith("values differ: `total`")
    assert lines[-3:] == [
        "prompt    What is the total?",
        "reference SELECT sum(amount) AS total FROM orders",
        "answer    from the only query: SELECT 46 AS total",
    ]


def test_data_that_matched_is_not_shown_beside_checks_that_failed() -> None:
    failed = CheckResult("tool_call", False, "missing tool_call: load", "loads", turn=1)
    warned = CheckResult("text", False, "no 'EUR'", severity="warn")
    data = CheckResult("data", True, "match")
    found = attempt(comparison=compare(EXPECTED, EXPECTED), checks=(failed, warned, data))
    talk = replace(case(), turns=(Turn("Load it."), Turn("And now?")))
    lines = failure_text(talk, CaseResult("failed", "m", [found])).splitlines()
    assert lines[:4] == [
        "failed tool_call 'loads' of turn 2 of 2: missing tool_call: load",
        "warning from text: no 'EUR'",
        "",
        "prompt    Load it. / And now?",
    ]


def test_data_that_differs_stands_before_the_checks() -> None:
    failed = CheckResult("text", False, "no 'EUR'")
    found = attempt(comparison=compare(EXPECTED, GIVEN), checks=(failed,))
    text = failure_text(case(), CaseResult("failed", "m", [found]))
    assert text.index("values differ") < text.index("failed text: no 'EUR'")


def test_of_several_turns_one_is_shown_and_the_others_are_named() -> None:
    shown, other = compare(EXPECTED, GIVEN), compare(EXPECTED, GIVEN)
    checks = tuple(
        CheckResult("data", False, "values differ", turn=turn, details={"comparison": made})
        for turn, made in ((0, shown), (2, other))
    )
    talk = replace(case(), turns=(Turn("How much?"), Turn("So?"), Turn("And now?")))
    lines = failure_text(
        talk, CaseResult("failed", "m", [attempt(comparison=shown, checks=checks)])
    ).splitlines()
    assert lines[0] == "data of turn 1 of 3:"
    assert lines[1].startswith("values differ: `total`")
    assert "failed data of turn 3 of 3: values differ" in lines


def test_checks_alone_and_a_message_alone() -> None:
    failed = CheckResult("text", False, "no 'EUR'")
    text = failure_text(case(), CaseResult("failed", "m", [attempt(checks=(failed,))]))
    assert text.startswith("failed text: no 'EUR'\n")
    kept = failure_text(case(), CaseResult("failed", "m", [attempt(message="row count: 1 vs 2")]))
    assert kept.startswith("row count: 1 vs 2\n")


def test_an_error_names_its_stage_and_keeps_its_lines() -> None:
    found = attempt(verdict="error", stage="agent", error="RuntimeError: \x1b[31mdown\nconftest.py:3")
    lines = failure_text(case(), CaseResult("error", "m", [found])).splitlines()
    assert lines[:2] == ["error in stage agent: RuntimeError: \\x1b[31mdown", "conftest.py:3"]


def test_the_middle_of_a_long_error_is_left_to_the_results() -> None:
    found = attempt(verdict="error", stage="agent", error="ValueError: " + "word " * 10_000 + "end")
    lines = failure_text(case(), CaseResult("error", "m", [found])).splitlines()
    assert len(lines) < 50
    assert lines[20] == "  … 628 more lines, all in the results"
    assert lines[40].endswith("end")


def test_what_was_said_stands_in_for_a_table() -> None:
    found = attempt(answer=Answer(text="I do not know. " * 60))
    lines = failure_text(case(), CaseResult("failed", "m", [found])).splitlines()
    assert lines[-6].startswith("said      I do not know.")
    assert lines[-1].strip().startswith("… ")
    assert max(map(len, lines)) <= 80


def test_several_attempts_name_the_one_that_is_shown() -> None:
    attempts = [attempt(1, "passed"), attempt(2, message="values differ")]
    result = CaseResult("failed", "1/2: values differ", attempts)
    first = failure_text(case(), result).splitlines()[0]
    assert first == "attempts 1/2: ✓ ✗, the text is that of attempt 2"


def test_a_case_that_was_not_run_says_why() -> None:
    assert failure_text(case(), CaseResult("failed", "not\nrun", [])) == "not run"


def test_an_input_stands_where_there_is_no_prompt() -> None:
    only = Case(path=Path("x.yml"), line=1, name="x", id="x", turns=(), input={"region": "EU"})
    text = failure_text(only, CaseResult("failed", "m", [attempt()]))
    assert "prompt    {'region': 'EU'}" in text
