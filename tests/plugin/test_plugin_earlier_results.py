"""What a run takes from earlier ones: files that cannot be read, answers of older runs, their differences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from _pytest.pytester import RunResult

AGENT = """
import pytest
@pytest.fixture(scope="session")
def agent():
    def answer(prompt):
        with open("asked.txt", "a") as file:
            file.write(prompt + "\\n")
        return [{"n": int(prompt)}]
    return answer
"""
BROKEN = {"text": b"x", "empty": b"", "half": b'{\n"schema_version": 1,\n"results": [\n{"name": "a"'}


def write_cases(project: pytest.Pytester, count: int = 4, wrong: tuple[int, ...] = (1,)) -> None:
    project.makeconftest(AGENT)
    for number in range(count):
        expected = number + 10 if number in wrong else number
        text = f"prompt: '{number}'\nexpected: [{{n: {expected}}}]\n"
        (project.path / "tests" / f"c{number}.yml").write_text(text, "utf-8")


def asked(project: pytest.Pytester) -> list[str]:
    """What the agent was asked since this was last looked at."""
    place = project.path / "asked.txt"
    found = place.read_text("utf-8").split() if place.exists() else []
    place.unlink(missing_ok=True)
    return found


def outputs(project: pytest.Pytester) -> Path:
    return project.path / "tests" / "outputs"


def newest(project: pytest.Pytester) -> dict[str, Any]:
    found = max(outputs(project).glob("results_20[23]*.json"), key=lambda place: place.stat().st_mtime_ns)
    document: dict[str, Any] = json.loads(found.read_text("utf-8"))
    return document


def line_of(result: RunResult, beginning: str) -> str:
    (line,) = [line for line in result.outlines if line.startswith(beginning)]
    return line


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize(
    ("options", "outcomes", "calls"),
    [
        (["--agent-changed"], {"deselected": 4}, 0),
        (["--agent-dry-run"], {}, 0),
        (["--agent-resume"], {"passed": 3, "failed": 1}, 0),
        (["--agent-baseline", "last"], {"passed": 3, "xfailed": 1}, 4),
    ],
    ids=["changed", "dry-run", "resume", "baseline"],
)
def test_a_file_that_cannot_be_read_is_left_out_and_named(
    shop: pytest.Pytester, options: list[str], outcomes: dict[str, int], calls: int, kind: str
) -> None:
    write_cases(shop)
    shop.runpytest().assert_outcomes(passed=3, failed=1)
    assert len(asked(shop)) == 4
    (outputs(shop) / "results_20990101_000000.json").write_bytes(BROKEN[kind])
    result = shop.runpytest(*options)
    result.assert_outcomes(**outcomes)
    assert result.ret in (0, 1, 5)
    assert len(asked(shop)) == calls
    told = line_of(result, "earlier results left out: ")
    assert told.startswith("earlier results left out: results_20990101_000000.json: not a results file")
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_a_run_that_looks_at_no_other_names_none(shop: pytest.Pytester) -> None:
    write_cases(shop)
    outputs(shop).mkdir()
    (outputs(shop) / "results_20990101_000000.json").write_bytes(b"x")
    shop.runpytest().stdout.no_fnmatch_line("earlier results left out*")


def test_only_files_that_cannot_be_read_are_no_run(shop: pytest.Pytester) -> None:
    write_cases(shop)
    outputs(shop).mkdir()
    (outputs(shop) / "results_20990101_000000.json").write_bytes(b"x")
    result = shop.runpytest("--agent-resume")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "*--agent-resume: there is no run in *outputs; left out: results_20990101_000000.json: "
            "not a results file but no JSON*"
        ]
    )
    assert asked(shop) == []


def test_a_broken_file_to_go_on_with_is_refused_before_a_call(shop: pytest.Pytester) -> None:
    write_cases(shop)
    (shop.path / "half.json").write_bytes(b"x")
    for option in ("--agent-resume-from", "--agent-baseline"):
        result = shop.runpytest(option, "half.json")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(["*half.json: not a results file but no JSON*"])
    assert asked(shop) == []


def test_what_the_last_run_did_not_hold_is_taken_from_the_runs_before(shop: pytest.Pytester) -> None:
    write_cases(shop)
    shop.runpytest("-p", "cacheprovider").assert_outcomes(passed=3, failed=1)
    shop.runpytest("-p", "cacheprovider", "--lf").assert_outcomes(failed=1)
    assert len(asked(shop)) == 5
    result = shop.runpytest("--agent-resume")
    result.assert_outcomes(passed=3, failed=1)
    assert asked(shop) == []
    assert line_of(result, "went on with ").endswith(": 4 answers taken over, 0 asked now")
    assert [entry["verdict"] for entry in newest(shop)["results"]] == ["passed", "failed", "passed", "passed"]
    # a case that no run holds, and one whose question changed, are asked
    (shop.path / "tests" / "c9.yml").write_text("prompt: '9'\nexpected: [{n: 9}]\n", "utf-8")
    (shop.path / "tests" / "c2.yml").write_text("prompt: '02'\nexpected: [{n: 2}]\n", "utf-8")
    shop.runpytest("-k", "c3").assert_outcomes(passed=1, deselected=4)
    assert asked(shop) == ["3"]
    shop.runpytest("--agent-resume").assert_outcomes(passed=4, failed=1)
    assert sorted(asked(shop)) == ["02", "9"]


def test_answers_of_another_agent_are_not_taken_over(shop: pytest.Pytester) -> None:
    write_cases(shop)
    shop.makepyfile(others="def run(prompt):\n    return [{'n': int(prompt)}]\n")
    shop.runpytest("--agent-target", "python:others:run").assert_outcomes(passed=3, failed=1)
    shop.runpytest("-k", "c1").assert_outcomes(failed=1, deselected=3)
    assert asked(shop) == ["1"]
    shop.runpytest("--agent-resume").assert_outcomes(passed=3, failed=1)
    assert asked(shop) == ["0", "2", "3"]


@pytest.mark.parametrize("left", ["folder", "document"])
def test_a_failure_taken_over_shows_what_differs(shop: pytest.Pytester, left: str) -> None:
    write_cases(shop)
    more = "comparison: {ordered: true}\nassertions:\n  - {type: text, contains: EUR}\n"
    text = "prompt: '1'\nexpected: [{n: 11}]\n" + more
    (shop.path / "tests" / "c1.yml").write_text(text, "utf-8")
    # -x leaves the folder of an unfinished run
    first = shop.runpytest(*(["-x"] if left == "folder" else []))
    asked(shop)
    before = [line for line in first.outlines if line.startswith("FAILED")]
    again = shop.runpytest("--agent-resume")
    again.assert_outcomes(passed=3, failed=1)
    shown = [line for line in again.outlines if line.startswith("FAILED")]
    assert shown == before
    failure = again.outlines[: again.outlines.index(shown[0])]
    told = first.outlines[: first.outlines.index(before[0])]
    start, end = told.index(next(line for line in told if "values differ" in line)), len(told)
    block = [line for line in told[start:end] if line and not line.startswith(("=", "-", "Results"))][:4]
    assert any(line.startswith("failed text") for line in told)
    for line in [*block, next(line for line in told if line.startswith("failed text"))]:
        assert line in failure
    junit = shop.path / "out.xml"
    shop.runpytest("--agent-resume", f"--junitxml={junit}")
    assert "EUR" in junit.read_text("utf-8")


def test_answers_begun_early_are_counted_as_taken_over(shop: pytest.Pytester) -> None:
    write_cases(shop, count=4, wrong=(0,))
    result = shop.runpytest("-x", "--agent-concurrency", "8")
    result.assert_outcomes(failed=1)
    begun = asked(shop)
    assert len(begun) == 4
    again = shop.runpytest("--agent-resume")
    again.assert_outcomes(passed=3, failed=1)
    assert asked(shop) == []
    assert line_of(again, "went on with ").endswith(": 4 answers taken over, 0 asked now")
