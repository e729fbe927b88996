"""Odd files, encodings, links and numbers end in a sentence, not in a crash or in silence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CASE = "prompt: one\nexpected: [{n: 1}]\n"


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makefile(".ini", pytest="[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makeconftest(
        "import pytest\n@pytest.fixture\ndef agent():\n    return lambda prompt: [{'n': 1}]\n"
    )
    (pytester.path / "tests").mkdir()
    (pytester.path / "tests" / "a.yml").write_text(CASE, "utf-8")
    return pytester


def check(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest_agenteval", "check"]
    return subprocess.run(command, cwd=path, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--agent-timeout", "inf"), "--agent-timeout: 'inf' is not a number, at most 1,000,000"),
        (("--agent-timeout", "1e10"), "--agent-timeout: '1e10' is not a number, at most 1,000,000"),
        (("--agent-k", "1000000000"), "--agent-k: '1000000000' is not a whole number, at most 10,000"),
    ],
)
def test_numbers_that_no_timer_takes_are_usage_errors(
    project: pytest.Pytester, options: tuple[str, ...], said: str
) -> None:
    result = project.runpytest(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert said in result.stderr.str()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("timeout: 10000000000", "timeout: expected at most 1,000,000 seconds, found 10000000000"),
        ("k: 1000000000", "k: expected at most 10,000, found 1000000000"),
    ],
)
def test_numbers_that_no_timer_takes_are_faults_of_the_case(
    project: pytest.Pytester, line: str, said: str
) -> None:
    (project.path / "tests" / "a.yml").write_text(f"{CASE}{line}\n", "utf-8")
    result = project.runpytest()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert f"tests/a.yml:3:{line.index(':') + 3}: {said}" in result.stdout.str()


def test_the_largest_numbers_pass(project: pytest.Pytester) -> None:
    text = f"{CASE}timeout: 1000000\nk: 3\nskip: too long\n"
    (project.path / "tests" / "a.yml").write_text(text, "utf-8")
    project.runpytest("--agent-timeout", "1000000").assert_outcomes(skipped=1)


def test_a_case_file_in_utf_16_is_an_error_and_not_left_out(project: pytest.Pytester) -> None:
    (project.path / "tests" / "b.yml").write_text(CASE, "utf-16")
    (project.path / "tests" / "c.yml").write_text("other: file\n", "utf-16")
    result = project.runpytest()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert "tests/b.yml:1:1: " in result.stdout.str()
    assert "tests/c.yml" not in result.stdout.str()
    checked = check(project.path)
    assert (checked.returncode, "tests/b.yml:1:1: " in checked.stdout + checked.stderr) == (1, True)


def test_the_suffix_may_be_in_capitals(project: pytest.Pytester) -> None:
    (project.path / "tests" / "b.YML").write_text(CASE, "utf-8")
    project.runpytest().assert_outcomes(passed=2)
    assert "2 files, 2 cases: 0 errors" in check(project.path).stdout


def test_links_to_nothing_and_pipes_are_passed_over(project: pytest.Pytester) -> None:
    (project.path / "tests" / ".#a.yml").symlink_to("user@host.4711")
    (project.path / "tests" / "gone.yml").symlink_to("nowhere")
    os.mkfifo(project.path / "tests" / "pipe.yml")
    checked = check(project.path)
    assert (checked.returncode, "1 file, 1 case: 0 errors" in checked.stdout) == (0, True), checked
    project.runpytest_subprocess(timeout=30).assert_outcomes(passed=1)


@pytest.mark.parametrize("form", ["crlf", "without its last newline", "with one more"])
def test_a_results_file_that_git_or_an_editor_touched_is_read(project: pytest.Pytester, form: str) -> None:
    project.runpytest("--agent-output", "out")
    (file,) = (project.path / "out").glob("results_*.json")
    data = file.read_bytes()
    forms = {
        "crlf": data.replace(b"\n", b"\r\n"),
        "without its last newline": data[:-1],
        "with one more": data + b"\n",
    }
    baseline = project.path / "baseline.json"
    baseline.write_bytes(forms[form])
    result = project.runpytest("--agent-baseline", "baseline.json")
    assert result.ret == 0
    baseline.write_bytes(data[:-3])
    torn = project.runpytest("--agent-baseline", "baseline.json")
    assert torn.ret == pytest.ExitCode.USAGE_ERROR
    assert "the file ends in the middle" in torn.stderr.str()


def test_a_separator_that_a_chat_has_pasted_is_named(project: pytest.Pytester) -> None:
    file = project.path / "tests" / "a.yml"
    file.write_text("name: a\nprompt: how\u2028many\nexpected: [{n: 1}]\n", "utf-8")
    said = project.runpytest("tests/a.yml").stdout.str()
    assert "tests/a.yml:2:12: U+2028, a separator that chats paste, ends the line for YAML: delete it" in said
    file.write_text('prompt: "how\u2028many"\nexpected: [{n: 1}]\n', "utf-8")
    project.runpytest("tests/a.yml").assert_outcomes(passed=1)


def test_a_log_record_with_any_object_does_not_end_the_run(project: pytest.Pytester) -> None:
    project.makeconftest(
        """
        import logging, pytest
        @pytest.fixture
        def agent():
            def answer(prompt):
                logging.getLogger("app").warning("asked", extra={"client": object()})
                return [{"n": 1}]
            return answer
        """
    )
    (project.path / "tests" / "b.yml").write_text(CASE, "utf-8")
    result = project.runpytest_subprocess("-n", "2", "--json-report", "--json-report-file=out.json")
    result.assert_outcomes(passed=2)
    assert "<object object at" in (project.path / "out.json").read_text("utf-8")
