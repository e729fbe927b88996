"""A resumed run sees every edit of a case, however the last one ended, and pays for no answer twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

AGENT = """
import os, pathlib, signal, threading, time, pytest

ENDINGS = {
    "kill": lambda: os._exit(9),
    "interrupt": lambda: os.kill(os.getpid(), signal.SIGINT),
    "pass": lambda: None,
}

@pytest.fixture(scope="session")
def agent():
    def answer(prompt):
        with open("asked.txt", "a") as file:
            file.write(prompt + "\\n")
        if "3" in prompt and pathlib.Path("ending").exists():
            how = pathlib.Path("ending").read_text()
            pathlib.Path("ending").unlink()
            ENDINGS[how]()
            time.sleep(0.1)
        return [{"n": int(prompt.split()[-1])}]
    return answer
"""
INI = "[pytest]\nasyncio_default_fixture_loop_scope = function\n"


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """Five cases; the run ends as the file ``ending`` says while the fourth is asked."""
    pytester.makefile(".ini", pytest=INI)
    pytester.makeconftest(AGENT)
    (pytester.path / "tests").mkdir()
    for number in range(5):
        write(pytester, number, f"give {number}", number)
    return pytester


def write(project: pytest.Pytester, number: int, prompt: str, expected: int, more: str = "") -> None:
    text = f"name: c{number}\nprompt: {prompt}\nexpected: [{{n: {expected}}}]\n{more}"
    (project.path / "tests" / f"c{number}.yml").write_text(text, "utf-8")


def run(project: pytest.Pytester, *options: str, ending: str | None = None) -> pytest.RunResult:
    if ending is not None:
        (project.path / "ending").write_text(ending)
    return project.runpytest_subprocess(*options, timeout=60)


def asked(project: pytest.Pytester) -> list[str]:
    """What was asked since the last look."""
    path = project.path / "asked.txt"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return sorted(lines)


def verdicts(path: Path) -> dict[str, str]:
    return {name: entry["verdict"] for name, entry in entries(path).items()}


def entries(path: Path) -> dict[str, Any]:
    newest = max(
        (path / "tests" / "outputs").glob("results_*.json"), key=lambda file: file.stat().st_mtime_ns
    )
    return {entry["name"]: entry for entry in json.loads(newest.read_text("utf-8"))["results"]}


@pytest.mark.parametrize("how", [(), ("-n", "2"), ("--agent-concurrency", "4")], ids=["n0", "n2", "c4"])
@pytest.mark.parametrize("ending", ["kill", "interrupt", "pass"])
def test_every_edit_counts_after_every_end(
    project: pytest.Pytester, ending: str, how: tuple[str, ...]
) -> None:
    run(project, ending=ending)
    before = asked(project)
    assert before[:3] == ["give 0", "give 1", "give 2"]
    write(project, 0, "give 0", 99)
    write(project, 1, "please give 1", 1)
    write(project, 2, "give 2", 2, "k: 2\ntags: [new]\n")
    result = run(project, "--agent-resume", *how)
    assert result.ret == 1
    again = asked(project)
    expected = ["give 2", "please give 1"]
    assert [prompt for prompt in again if prompt not in ("give 3", "give 4")] == expected
    found = entries(project.path)
    assert {name: entry["verdict"] for name, entry in found.items()} == {
        "c0": "failed", "c1": "passed", "c2": "passed", "c3": "passed", "c4": "passed",
    }  # fmt: skip
    assert (found["c1"]["prompt"], found["c2"]["k"], found["c2"]["tags"]) == ("please give 1", 2, ["new"])
    (line,) = [line for line in result.outlines if line.startswith("went on with ")]
    assert line.endswith(f": {6 - len(again)} answers taken over, {len(again)} asked now")


def test_an_edit_is_seen_after_two_interruptions(project: pytest.Pytester) -> None:
    run(project, ending="kill")
    write(project, 4, "give 4 or 9", 9)
    write(project, 2, "give 9", 2)
    run(project, "--agent-resume", "-k", "c3", ending="kill")
    assert asked(project).count("give 9") == 0
    result = run(project, "--agent-resume")
    assert asked(project) == ["give 3", "give 4 or 9", "give 9"]
    assert (result.ret, verdicts(project.path)["c2"]) == (1, "failed")


def test_an_edit_that_was_taken_back_finds_its_old_answer(project: pytest.Pytester) -> None:
    run(project, ending="kill")
    write(project, 2, "give 9", 2)
    run(project, "--agent-resume", "-k", "c3", ending="kill")
    asked(project)
    write(project, 2, "give 2", 2)
    assert run(project, "--agent-resume").ret == 0
    assert asked(project) == ["give 3", "give 4"]


def test_an_unfinished_document_does_not_file_an_old_answer_under_a_new_question(
    project: pytest.Pytester,
) -> None:
    run(project, ending="interrupt")
    write(project, 1, "give 7", 7)
    write(project, 2, "give 2", 7)
    run(
        project,
        "--agent-resume",
        "tests/c0.yml",
        "tests/c3.yml",
        "tests/c1.yml",
        "tests/c2.yml",
        ending="interrupt",
    )
    found = entries(project.path)
    assert (found["c1"]["verdict"], found["c1"]["prompt"]) == ("not_run", "give 7")
    assert found["c1"]["details"]["response_text"] is None
    assert found["c2"]["verdict"] == "error"
    assert "--agent-resume judges it without a call" in found["c2"]["message"]


SLOW = """
import os, signal, threading, time, pytest
@pytest.fixture(scope="session")
def agent():
    def answer(prompt):
        with open("asked.txt", "a") as file:
            file.write(prompt + "\\n")
        if not os.path.exists("interrupted"):
            open("interrupted", "w").close()
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        time.sleep(0.8)
        return [{"n": int(prompt.split()[-1])}]
    return answer
"""


def test_an_answer_that_arrives_after_ctrl_c_is_judged_without_a_call(project: pytest.Pytester) -> None:
    project.makeconftest(SLOW)
    first = run(project, "--agent-concurrency", "5")
    assert first.ret == pytest.ExitCode.INTERRUPTED
    assert len(asked(project)) == 5
    result = run(project, "--agent-resume")
    assert (result.ret, asked(project)) == (0, [])
    (line,) = [line for line in result.outlines if line.startswith("went on with ")]
    assert line.endswith(": 5 answers taken over, 0 asked now")
    assert set(verdicts(project.path).values()) == {"passed"}


def test_an_answer_that_arrives_after_pytest_timeout_is_judged_without_a_call(
    project: pytest.Pytester,
) -> None:
    project.makeconftest(SLOW.replace("if not os.path.exists", "if False and not os.path.exists"))
    for number in range(5):
        write(project, number, f"give {number}", number, "marks: ['timeout(0.4)']\n")
    first = run(project, "--agent-concurrency", "5")
    assert first.ret == 1
    assert len(asked(project)) == 5
    assert "error" in verdicts(project.path).values()
    assert run(project, "--agent-resume").ret == 0
    assert asked(project) == []
    assert set(verdicts(project.path).values()) == {"passed"}


def test_what_an_agent_had_said_when_it_failed_is_no_answer_to_judge(project: pytest.Pytester) -> None:
    project.makeconftest(
        """
        import os, pytest
        from pytest_agenteval import Answer
        @pytest.fixture(scope="session")
        def agent():
            def answer(prompt):
                with open("asked.txt", "a") as file:
                    file.write(prompt + "\\n")
                bad = not os.path.exists("good")
                return Answer("so far", data=object() if bad else [{"n": int(prompt.split()[-1])}], cost=0.5)
            return answer
        """
    )
    assert run(project).ret == 1
    (project.path / "good").touch()
    asked(project)
    assert run(project, "--agent-resume").ret == 0
    assert len(asked(project)) == 5


@pytest.mark.parametrize("how", [(), ("-n", "2")], ids=["n0", "n2"])
def test_cases_that_were_deleted_or_renamed_meanwhile_are_left_out(
    project: pytest.Pytester, how: tuple[str, ...]
) -> None:
    run(project, ending="kill")
    asked(project)
    write(project, 1, "give 1", 99)
    (project.path / "tests" / "c0.yml").unlink()
    (project.path / "tests" / "c3.yml").unlink()
    text = (project.path / "tests" / "c4.yml").read_text("utf-8")
    (project.path / "tests" / "c4.yml").write_text(text.replace("name: c4", "name: new"), "utf-8")
    result = run(project, "--agent-resume", *how)
    assert verdicts(project.path) == {
        "c1": "failed", "c2": "passed", "new": "passed",
    }  # fmt: skip
    assert (result.ret, asked(project)) == (1, ["give 4"])
    assert not [path for path in (project.path / "tests" / "outputs").glob("results_*") if path.is_dir()]


def test_cases_that_are_only_not_selected_stay_to_be_asked(project: pytest.Pytester) -> None:
    run(project, ending="kill")
    run(project, "--agent-resume", "tests/c3.yml")
    found = verdicts(project.path)
    assert (found["c3"], found["c4"], found["c0"]) == ("passed", "not_run", "passed")
    asked(project)
    assert run(project, "--agent-resume").ret == 0
    assert asked(project) == ["give 4"]
