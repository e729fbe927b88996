"""Signals, kills and files that cannot be written: nothing goes on that costs, nothing paid for is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_agenteval.support.processes import is_alive

PROGRAM = """
import json, os, pathlib, subprocess, sys, time
task = json.load(sys.stdin)
with open("asked.txt", "a") as file:
    file.write(task["prompt"] + "\\n")
if task["prompt"] == "slow":
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stdout=subprocess.DEVNULL)
    pathlib.Path(f"pids-{os.getpid()}").write_text(f"{os.getpid()} {child.pid}")
    time.sleep(60)
print(json.dumps([{"n": 1}]))
"""
INI = """[pytest]
asyncio_default_fixture_loop_scope = function
agenteval_databases = shop = duckdb:///shop.duckdb
"""


@pytest.fixture
def project(shop: pytest.Pytester) -> pytest.Pytester:
    """A quick case and a slow one, answered by a program; the conftest has no agent."""
    shop.makefile(".ini", pytest=INI)
    shop.makeconftest("")
    (shop.path / "program.py").write_text(PROGRAM, "utf-8")
    for number, prompt in enumerate(("quick", "slow", "later")):
        text = f"name: {prompt}\nprompt: {prompt}\nsql: SELECT 1 AS n\n"
        (shop.path / "tests" / f"c{number}.yml").write_text(text, "utf-8")
    return shop


def start(path: Path, *options: str) -> subprocess.Popen[bytes]:
    target = f"command:{sys.executable} program.py"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--agent-target", target, *options]
    env = {**os.environ, "TMPDIR": str(path)}
    with open(path / "log.txt", "wb") as log:
        return subprocess.Popen(command, cwd=path, stdout=log, stderr=log, env=env, start_new_session=True)


def programs(path: Path, count: int = 1) -> list[int]:
    """The processes of the slow program, as soon as ``count`` programs have begun."""
    give_up = time.monotonic() + 30
    while time.monotonic() < give_up:
        texts = [file.read_text("utf-8").split() for file in path.glob("pids-*")]
        if len(texts) >= count and all(len(pids) == 2 for pids in texts):
            return [int(pid) for pids in texts for pid in pids]
        time.sleep(0.02)
    raise AssertionError((path / "log.txt").read_text("utf-8"))


def gone(pids: list[int], within: float = 3.0) -> bool:
    give_up = time.monotonic() + within
    while any(map(is_alive, pids)) and time.monotonic() < give_up:
        time.sleep(0.02)
    return not any(map(is_alive, pids))


def results(path: Path) -> dict[str, Any]:
    (file,) = (path / "tests" / "outputs").glob("results_*.json")
    return {entry["name"]: entry for entry in json.loads(file.read_text("utf-8"))["results"]}


N2, C3 = ("-n", "2"), ("--agent-concurrency", "3")


@pytest.mark.parametrize(
    ("options", "how", "group"),
    [
        ((), signal.SIGTERM, False),
        ((), signal.SIGHUP, True),
        (N2, signal.SIGTERM, True),
        (N2, signal.SIGHUP, False),
        (C3, signal.SIGTERM, False),
        (C3, signal.SIGINT, True),
    ],
    ids=["n0-term", "n0-hup-group", "n2-term-group", "n2-hup", "c3-term", "c3-int-group"],
)
def test_a_signal_ends_the_run_as_ctrl_c_does(
    project: pytest.Pytester, options: tuple[str, ...], how: signal.Signals, group: bool
) -> None:
    process = start(project.path, *options)
    pids = programs(project.path)
    time.sleep(0.3)
    if group:
        os.killpg(process.pid, how)
    else:
        process.send_signal(how)
    assert process.wait(30) in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.TESTS_FAILED)
    assert gone(pids)
    found = results(project.path)
    assert found["quick"]["verdict"] == "passed"
    assert found["slow"]["verdict"] in ("not_run", "error")
    assert "--agent-resume" in (project.path / "log.txt").read_text("utf-8")
    left = [path.name for path in project.path.rglob("*.duckdb") if path.name != "shop.duckdb"]
    assert left == []


@pytest.mark.parametrize("options", [(), N2, C3], ids=["n0", "n2", "c3"])
def test_programs_end_with_a_process_that_was_killed(
    project: pytest.Pytester, options: tuple[str, ...]
) -> None:
    process = start(project.path, *options)
    pids = programs(project.path)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)
    assert gone(pids)


def test_a_second_signal_ends_the_process_at_once(project: pytest.Pytester) -> None:
    project.makeconftest(
        """
        import time, pytest
        @pytest.fixture(scope="session")
        def data():
            yield
            open("leaving", "w").close()
            time.sleep(30)
        @pytest.fixture(autouse=True)
        def use(data):
            pass
        """
    )
    process = start(project.path)
    pids = programs(project.path)
    process.terminate()
    give_up = time.monotonic() + 20
    while not (project.path / "leaving").exists() and time.monotonic() < give_up:
        time.sleep(0.02)
    process.terminate()
    assert process.wait(5) == -signal.SIGTERM
    assert gone(pids)


AGENT = """
import os, time, pytest
@pytest.fixture(scope="session")
def agent():
    def answer(prompt):
        with open("asked.txt", "a") as file:
            file.write(prompt + "\\n")
        time.sleep(DELAY)
        return [{"n": int(prompt)}]
    return answer
"""


def simple(shop: pytest.Pytester, count: int, wrong: int = -1, delay: float = 0.0) -> None:
    shop.makeconftest(AGENT.replace("DELAY", str(delay)))
    for number in range(count):
        expected = 99 if number == wrong else number
        text = f"prompt: '{number}'\nexpected: [{{n: {expected}}}]\n"
        (shop.path / "tests" / f"c{number:02}.yml").write_text(text, "utf-8")


def asked(shop: pytest.Pytester) -> int:
    path = shop.path / "asked.txt"
    return len(path.read_text("utf-8").split()) if path.exists() else 0


@pytest.mark.parametrize("dist", ["load", "worksteal"])
def test_no_call_begins_after_the_last_failure_that_is_tolerated(shop: pytest.Pytester, dist: str) -> None:
    simple(shop, 24, wrong=0, delay=0.15)
    shop.runpytest_subprocess("-n", "2", "--dist", dist, "--maxfail", "1", timeout=60)
    assert asked(shop) <= 5
    found = results(shop.path)
    assert sum(entry["verdict"] == "not_run" for entry in found.values()) >= 19


@pytest.mark.parametrize(
    ("option", "name", "why"),
    [
        ("--agent-record", "tests", "it is a folder"),
        ("--agent-html", "tests", "it is a folder"),
        ("--agent-summary", "conftest.py/sum.md", "conftest.py is a file"),
    ],
)
def test_files_that_cannot_be_written_are_refused_before_anything_is_asked(
    shop: pytest.Pytester, option: str, name: str, why: str
) -> None:
    simple(shop, 2)
    result = shop.runpytest_subprocess(option, name)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = result.stderr.str()
    assert f"{option} {name}: " in said
    assert why in said
    assert asked(shop) == 0


@pytest.mark.parametrize("options", [(), ("--agent-concurrency", "2")], ids=["n0", "c2"])
def test_a_recording_that_fails_stops_the_run_before_the_next_call(
    shop: pytest.Pytester, options: tuple[str, ...]
) -> None:
    simple(shop, 8, delay=0.2)
    full = shop.runpytest_subprocess(*options, "--agent-record=/dev/full", timeout=30)
    assert full.ret == 1
    assert asked(shop) <= 2
    assert "--agent-record /dev/full: No space left on device; nothing more is asked" in full.stdout.str()
    (shop.path / "asked.txt").rename(shop.path / "before.txt")
    paid = len((shop.path / "before.txt").read_text("utf-8").split())
    assert shop.runpytest_subprocess("--agent-resume", timeout=30).ret == 0
    assert asked(shop) == 8 - paid


def test_half_a_line_in_a_recording_is_taken_away(shop: pytest.Pytester) -> None:
    simple(shop, 3)
    assert shop.runpytest_subprocess("--agent-record", "rec.jsonl", "tests/c00.yml").ret == 0
    whole = (shop.path / "rec.jsonl").read_bytes()
    (shop.path / "rec.jsonl").write_bytes(whole + whole[: len(whole) // 2])
    assert shop.runpytest_subprocess("--agent-record", "rec.jsonl", "tests/c01.yml", "tests/c02.yml").ret == 0
    lines = (shop.path / "rec.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["turns"] for line in lines] == [["0"], ["1"], ["2"]]
    replayed = shop.runpytest_subprocess("--agent-target", "replay:rec.jsonl")
    replayed.assert_outcomes(passed=3)
    (shop.path / "rec.jsonl").write_bytes(whole.rstrip(b"\n"))  # by hand, without its last newline
    assert shop.runpytest_subprocess("--agent-record", "rec.jsonl", "tests/c01.yml").ret == 0
    assert len((shop.path / "rec.jsonl").read_bytes().splitlines()) == 2


def test_a_side_file_that_cannot_be_written_does_not_hide_the_results(
    shop: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    simple(shop, 2)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "/dev/full")
    result = shop.runpytest_subprocess("--agent-html", "out.html")
    assert result.ret == 1
    assert "could not be written: GITHUB_STEP_SUMMARY /dev/full: No space left on device" in result.outlines
    assert "the run was not ended as it should" not in result.stdout.str()
    assert any(line.startswith("cases: 2 passed") for line in result.outlines)
    assert (shop.path / "out.html").is_file()
    assert [path.suffix for path in (shop.path / "tests" / "outputs").glob("results_*")] == [".json"]
