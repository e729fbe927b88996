"""``--agent-concurrency`` overlaps calls, keeps answers apart, and says what it could not."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

AGENT = """
import threading, time, pytest
busy, most, lock = 0, 0, threading.Lock()

@pytest.fixture(scope="SCOPE")
def agent():
    def answer(prompt):
        global busy, most
        with lock:
            busy += 1
            most = max(most, busy)
        time.sleep(0.3)
        with lock:
            busy -= 1
        print("asked", prompt)
        if prompt == "fail":
            raise RuntimeError("out of luck")
        return [{"n": int(prompt)}]
    return answer

def pytest_sessionfinish():
    if not most:
        return
    with open("most.txt", "w") as file:
        file.write(str(most))
"""


def write_cases(project: pytest.Pytester, count: int, scope: str = "session") -> None:
    project.makeconftest(AGENT.replace("SCOPE", scope))
    for number in range(count):
        text = f"prompt: '{number}'\nexpected: [{{n: {number}}}]\n"
        (project.path / "tests" / f"c{number:02}.yml").write_text(text, "utf-8")


def most_at_once(project: pytest.Pytester) -> int:
    return int((project.path / "most.txt").read_text("utf-8"))


def test_calls_overlap_and_answers_stay_with_their_case(shop: pytest.Pytester) -> None:
    write_cases(shop, 12)
    result = shop.runpytest_subprocess("--agent-concurrency", "6")
    result.assert_outcomes(passed=12)
    assert 3 <= most_at_once(shop) <= 6


def test_prints_land_in_the_report_of_their_case(shop: pytest.Pytester) -> None:
    write_cases(shop, 4)
    (shop.path / "tests" / "c02.yml").write_text("prompt: '2'\nexpected: [{n: 99}]\n", "utf-8")
    result = shop.runpytest_subprocess("--agent-concurrency", "4")
    result.assert_outcomes(passed=3, failed=1)
    text = result.stdout.str()
    section = text[text.index("Captured agent call") :]
    assert "asked 2" in section
    assert "asked 1" not in section


CHATTY = """
import time, pytest

@pytest.fixture(scope="session")
def agent():
    def answer(prompt):
        for line in range(150):
            print(f"case {prompt} line {line};")
            time.sleep(0.001 * (int(prompt) + 1))
        return [{"n": int(prompt)}]
    return answer
"""


@pytest.mark.parametrize("capture", ["fd", "sys"])
def test_no_line_is_lost_while_pytest_switches_its_capturing(shop: pytest.Pytester, capture: str) -> None:
    write_cases(shop, 8)
    shop.makeconftest(CHATTY)
    result = shop.runpytest_subprocess("--agent-concurrency", "8", "-rP", f"--capture={capture}")
    result.assert_outcomes(passed=8)
    passes = result.stdout.str().partition("= PASSES =")[2]
    # a section for each case, in whatever order
    sections = re.split(r"^_+ (c\d\d) _+$", passes, flags=re.MULTILINE)[1:]
    for name, text in zip(sections[::2], sections[1::2], strict=True):
        lines = re.findall(r"case (\d+) line (\d+);", text)
        assert lines == [(str(int(name[1:])), str(line)) for line in range(150)], name


def test_a_function_scoped_agent_is_asked_serially_and_v_says_why(shop: pytest.Pytester) -> None:
    write_cases(shop, 3, scope="function")
    result = shop.runpytest_subprocess("--agent-concurrency", "4", "-v")
    result.assert_outcomes(passed=3)
    assert most_at_once(shop) == 1
    result.stdout.fnmatch_lines(["*c01.yml::c01 is not asked early: fixture agent is function-scoped"])


def test_the_attempts_of_one_case_overlap_under_xdist(shop: pytest.Pytester) -> None:
    write_cases(shop, 2)
    result = shop.runpytest_subprocess("-n", "1", "--agent-concurrency", "8", "--agent-k", "8")
    result.assert_outcomes(passed=2)
    assert 4 <= most_at_once(shop) <= 8


def test_an_error_of_an_early_call_belongs_to_its_case(shop: pytest.Pytester) -> None:
    write_cases(shop, 3)
    (shop.path / "tests" / "c01.yml").write_text("prompt: fail\nexpected: [{n: 1}]\n", "utf-8")
    result = shop.runpytest_subprocess("--agent-concurrency", "4")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*ERROR*c01*"])


def test_stopping_at_the_first_failure_says_what_was_paid_for_nothing(shop: pytest.Pytester) -> None:
    write_cases(shop, 8)
    (shop.path / "tests" / "c00.yml").write_text("prompt: '0'\nexpected: [{n: 99}]\n", "utf-8")
    result = shop.runpytest_subprocess("-x", "--agent-concurrency", "3")
    result.assert_outcomes(failed=1)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["agent calls: *unused*"])
    (file,) = (shop.path / "tests" / "outputs").glob("results_*.json")
    document = json.loads(file.read_text("utf-8"))
    assert document["cases"]["not_run"] == 7
    assert document["cases"]["errors"] == 0
    paid = [entry for entry in document["results"] if "answered (asked early)" in entry["message"]]
    assert paid
    resumed = shop.runpytest_subprocess("--agent-resume", "-v")
    resumed.assert_outcomes(passed=7, failed=1)


def test_ctrl_c_ends_at_once_and_names_abandoned_calls(shop: pytest.Pytester) -> None:
    shop.makeconftest(
        "import pathlib, time, pytest\n@pytest.fixture(scope='session')\ndef agent():\n"
        "    def answer(prompt):\n        pathlib.Path('asked').touch()\n        time.sleep(300)\n"
        "    return answer\n"
    )
    for number in range(4):
        (shop.path / "tests" / f"c{number}.yml").write_text(
            f"prompt: '{number}'\nexpected: [{{n: 1}}]\n", "utf-8"
        )
    code, output, seconds = interrupt(shop.path, ["--agent-concurrency", "2"])
    assert code == 2
    assert seconds < 60  # with the machine under load; the agent would take 300
    assert "abandoned (tests/c0.yml::c0 attempt 1" in output


def interrupt(path: Path, options: list[str]) -> tuple[int, str, float]:
    """Run pytest, send Ctrl-C once the agent is asked; its exit code, its output, the seconds it took."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, cwd=path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env
    )
    give_up = time.monotonic() + 60
    while not (path / "asked").exists() and time.monotonic() < give_up:
        time.sleep(0.05)
    time.sleep(0.3)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    try:
        output, _ = process.communicate(timeout=100)
    finally:
        process.kill()
    return process.returncode, output, time.monotonic() - sent


def test_an_agent_stuck_in_c_code_past_its_deadline(shop: pytest.Pytester) -> None:
    """It loops over database queries in a thread: the run must end with 1, not abort."""
    shop.makeconftest(
        "import duckdb, pytest\n@pytest.fixture(scope='session')\ndef agent():\n"
        "    def answer(prompt):\n        con = duckdb.connect()\n        while True:\n"
        "            con.execute('SELECT sum(a.i*b.i) FROM range(20000) a(i), range(20000) b(i)')\n"
        "    return answer\n"
    )
    (shop.path / "pytest.ini").write_text("[pytest]\nagenteval_thread = true\n", "utf-8")
    (shop.path / "tests" / "one.yml").write_text("prompt: One?\nexpected: [{n: 1}]\n", "utf-8")
    result = shop.runpytest_subprocess("--agent-timeout", "1")
    assert result.ret == 1
    result.assert_outcomes(errors=1)
    (file,) = (shop.path / "tests" / "outputs").glob("results_*.json")
    (entry,) = json.loads(file.read_text("utf-8"))["results"]
    assert (entry["verdict"], entry["stage"]) == ("error", "timeout")
