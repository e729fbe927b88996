"""One run has one holder; the last run is the one that started last; what is no run is refused at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

AGENT = """
import os, pathlib, time, pytest
@pytest.fixture(scope="session")
def agent():
    def answer(prompt):
        with open("asked.txt", "a") as file:
            file.write(prompt + "\\n")
        if prompt == "2" and pathlib.Path("end").exists():
            pathlib.Path("end").unlink()
            os._exit(9)
        if prompt == "3" and pathlib.Path("wait").exists():
            pathlib.Path("waiting").touch()
            end = time.monotonic() + 30
            while pathlib.Path("wait").exists() and time.monotonic() < end:
                time.sleep(0.02)
        assert prompt != "4" or not pathlib.Path("break").exists()
        return [{"n": int(prompt)}]
    return answer
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """Five cases: the third ends the process while ``end`` is there, the fourth waits for ``wait`` to go."""
    pytester.makefile(".ini", pytest="[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makeconftest(AGENT)
    (pytester.path / "tests").mkdir()
    for number in range(5):
        text = f"prompt: '{number}'\nexpected: [{{n: {number}}}]\n"
        (pytester.path / "tests" / f"c{number}.yml").write_text(text, "utf-8")
    return pytester


def start(path: Path, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    return subprocess.Popen(command, cwd=path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.fixture
def waiting(project: pytest.Pytester, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    """A run that waits in its fourth case, started with the options of the parameter."""
    (project.path / "wait").touch()
    process = start(project.path, *request.param)
    give_up = time.monotonic() + 30
    while not (project.path / "waiting").exists() and time.monotonic() < give_up:
        time.sleep(0.02)
    yield process
    (project.path / "wait").unlink(missing_ok=True)
    process.communicate(timeout=30)


def asked(project: pytest.Pytester) -> list[str]:
    return sorted((project.path / "asked.txt").read_text("utf-8").split())


@pytest.mark.parametrize("waiting", [(), ("-n", "2")], ids=["n0", "n2"], indirect=True)
@pytest.mark.parametrize("options", [("--agent-resume",), ("--agent-resume", "-n", "2")], ids=["n0", "n2"])
def test_a_run_that_still_runs_is_not_gone_on_with(
    project: pytest.Pytester, waiting: subprocess.Popen[bytes], options: tuple[str, ...]
) -> None:
    result = project.runpytest_subprocess(*options, timeout=30)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (folder,) = (project.path / "tests" / "outputs").glob("results_*")
    said = f"{folder.name} is still running (PID {waiting.pid}); wait for it, or end it first"
    assert said in result.stderr.str()
    (project.path / "wait").unlink()
    out, _ = waiting.communicate(timeout=30)
    assert (waiting.returncode, asked(project)) == (0, ["0", "1", "2", "3", "4"]), out.decode()


def test_two_that_go_on_with_a_killed_run_pay_once(project: pytest.Pytester) -> None:
    (project.path / "end").touch()
    assert project.runpytest_subprocess(timeout=30).ret not in (0, 1)
    (project.path / "asked.txt").unlink()
    (project.path / "wait").touch()
    both = [start(project.path, "--agent-resume") for _ in range(2)]
    give_up = time.monotonic() + 30
    while not any(process.poll() for process in both) and time.monotonic() < give_up:
        time.sleep(0.02)
    (project.path / "wait").unlink()
    ended = sorted((process.wait(30), process.communicate()[0].decode()) for process in both)
    assert [status for status, _ in ended] == [0, 4], ended
    assert " is still running (PID " in ended[1][1]
    assert asked(project) == ["2", "3", "4"]


def test_two_that_go_on_with_the_same_results_pay_once(project: pytest.Pytester) -> None:
    (project.path / "break").touch()
    assert project.runpytest_subprocess(timeout=30).ret == 1
    (project.path / "tests" / "c3.yml").write_text("prompt: ' 3'\nexpected: [{n: 3}]\n", "utf-8")
    (project.path / "break").unlink()
    (project.path / "asked.txt").unlink()
    conftest = (project.path / "conftest.py").read_text("utf-8").replace('prompt == "3"', 'prompt == " 3"')
    (project.path / "conftest.py").write_text(conftest, "utf-8")
    (project.path / "wait").touch()
    first = start(project.path, "--agent-resume")
    give_up = time.monotonic() + 30
    while not (project.path / "waiting").exists() and time.monotonic() < give_up:
        time.sleep(0.02)
    (old,) = (project.path / "tests" / "outputs").glob("results_*.json")
    second = project.runpytest_subprocess("--agent-resume-from", str(old), timeout=30)
    assert second.ret == pytest.ExitCode.USAGE_ERROR
    assert f"goes on with {old.name} already (PID {first.pid}); wait for it" in second.stderr.str()
    (project.path / "wait").unlink()
    assert first.wait(30) == 0
    first.communicate()
    assert asked(project) == ["3", "4"]


@pytest.mark.parametrize("zones", [("UTC", "America/New_York"), ("America/New_York", "Asia/Tokyo")])
def test_the_last_run_is_the_one_that_started_last(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, zones: tuple[str, str]
) -> None:
    monkeypatch.setenv("TZ", zones[0])
    assert project.runpytest_subprocess(timeout=30).ret == 0
    monkeypatch.setenv("TZ", zones[1])
    (project.path / "end").touch()
    project.runpytest_subprocess(timeout=30)
    (project.path / "asked.txt").unlink()
    result = project.runpytest_subprocess("--agent-resume", timeout=30)
    result.assert_outcomes(passed=5)
    assert asked(project) == ["2", "3", "4"]
    baseline = project.runpytest_subprocess("--agent-baseline", "last", timeout=30)
    assert baseline.ret == 0


def test_what_is_no_run_is_refused_before_anything_is_asked(project: pytest.Pytester) -> None:
    (project.path / "tests" / "data.jsonl").write_text("{}\n", "utf-8")
    (project.path / "notes.json").write_text(json.dumps({"a": 1}), "utf-8")
    before = sorted(os.listdir(project.path / "tests"))
    for name, said in (
        ("tests", "not the folder of a run"),
        ("notes.json", "not a results file but JSON without `results`"),
        ("gone", "--agent-resume-from gone: no such file or folder"),
    ):
        result = project.runpytest("--agent-resume-from", name)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert said in result.stderr.str()
    assert sorted(os.listdir(project.path / "tests")) == before
    assert not (project.path / "asked.txt").exists()
