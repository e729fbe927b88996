"""An interrupted run is taken up again: finished answers are kept, the rest is asked."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

AGENT = """
import pathlib, time, pytest
@pytest.fixture(scope="session")
def agent():
    def answer(prompt):
        with open("asked.txt", "a") as file:
            file.write(prompt + "\\n")
        if prompt == "3" and pathlib.Path("stall").exists():
            pathlib.Path("stalling").touch()
            time.sleep(60)
        return [{"n": int(prompt)}]
    return answer
"""


def write_cases(project: pytest.Pytester) -> None:
    """Eight cases, asked in order; the fourth stalls while a file named stall is there."""
    project.makeconftest(AGENT)
    for number in range(8):
        text = f"prompt: '{number}'\nexpected: [{{n: {number}}}]\n"
        (project.path / "tests" / f"c{number}.yml").write_text(text, "utf-8")
    (project.path / "stall").touch()


def interrupt(path: Path, extra: list[str], how: signal.Signals) -> int:
    """Start the run, wait until it stalls, end it with ``how``."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *extra]
    env = {**os.environ, "TMPDIR": str(path)}  # where a run that is killed, and its late workers, leave files
    with open(path / "log.txt", "wb") as log:
        process = subprocess.Popen(command, cwd=path, env=env, stdout=log, stderr=log, start_new_session=True)
        give_up = time.monotonic() + 60
        while not (path / "stalling").exists() and time.monotonic() < give_up:
            time.sleep(0.05)
        time.sleep(0.5)
        if how == signal.SIGKILL:
            os.killpg(process.pid, how)
        else:
            process.send_signal(how)
        try:
            return process.wait(20)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("extra", [["-n", "0"], ["-n", "2"]], ids=["n0", "n2"])
def test_resume_asks_only_what_has_no_answer(
    shop: pytest.Pytester, extra: list[str], how: signal.Signals
) -> None:
    write_cases(shop)
    interrupt(shop.path, extra, how)
    before = (shop.path / "asked.txt").read_text("utf-8").splitlines()
    (shop.path / "stall").unlink()
    (shop.path / "asked.txt").unlink()
    result = shop.runpytest_subprocess("--agent-resume", *extra)
    assert result.ret == 0
    result.assert_outcomes(passed=8)
    asked = (shop.path / "asked.txt").read_text("utf-8").splitlines()
    finished = set(before) - {"3"}
    (line,) = [line for line in result.outlines if line.startswith("went on with ")]
    assert re.fullmatch(
        rf"went on with results_\w+: {len(finished)} answers? taken over, {8 - len(finished)} asked now", line
    )
    assert "3" in asked
    assert not finished & set(asked)
    (file,) = (shop.path / "tests" / "outputs").glob("results_*.json")
    document: dict[str, Any] = json.loads(file.read_text("utf-8"))
    assert [entry["verdict"] for entry in document["results"]] == ["passed"] * 8
    assert [entry["name"] for entry in document["results"]] == [f"c{n}" for n in range(8)]


def test_resume_without_a_run_is_a_usage_error(shop: pytest.Pytester) -> None:
    write_cases(shop)
    result = shop.runpytest("--agent-resume")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--agent-resume: there is no run in *outputs*"])
    missing = shop.runpytest("--agent-resume-from", "gone.json")
    missing.stderr.fnmatch_lines(["*--agent-resume-from gone.json: no such file or folder*"])


def test_a_changed_comparison_is_judged_again_without_a_call(shop: pytest.Pytester) -> None:
    write_cases(shop)
    (shop.path / "stall").unlink()
    case = shop.path / "tests" / "c5.yml"
    case.write_text("prompt: '5'\nexpected: [{n: 6}]\n", "utf-8")
    shop.runpytest().assert_outcomes(passed=7, failed=1)
    (shop.path / "asked.txt").unlink()
    case.write_text("prompt: '5'\nexpected: [{n: 5}]\n", "utf-8")
    result = shop.runpytest("--agent-resume")
    result.assert_outcomes(passed=8)
    assert not (shop.path / "asked.txt").exists()
    changed = shop.runpytest("--agent-changed")
    changed.assert_outcomes(deselected=8)


def test_changed_looks_at_the_last_results_of_each_case(shop: pytest.Pytester) -> None:
    write_cases(shop)
    (shop.path / "stall").unlink()
    shop.runpytest().assert_outcomes(passed=8)
    (shop.path / "tests" / "c5.yml").write_text("prompt: ' 5'\nexpected: [{n: 5}]\n", "utf-8")
    shop.runpytest("--agent-changed").assert_outcomes(passed=1, deselected=7)
    shop.runpytest("--agent-changed").assert_outcomes(deselected=8)


def test_a_run_that_only_skips_is_not_gone_on_with(shop: pytest.Pytester) -> None:
    write_cases(shop)
    explicit = ("-o", "agenteval_run=explicit")
    interrupt(shop.path, [*explicit, "--agent-run"], signal.SIGKILL)
    (shop.path / "stall").unlink()
    (shop.path / "asked.txt").unlink()
    shop.runpytest(*explicit).assert_outcomes(skipped=8)
    shop.runpytest(*explicit, "--agent-run", "--agent-resume").assert_outcomes(passed=8)
    assert (shop.path / "asked.txt").read_text("utf-8").split() == ["3", "4", "5", "6", "7"]


def test_the_command_to_go_on_with_asks_the_same_models(shop: pytest.Pytester) -> None:
    write_cases(shop)
    (shop.path / "stall").unlink()
    broken = AGENT.replace('        return [{"n"', '        assert prompt != "3"\n        return [{"n"')
    shop.makeconftest(broken)
    result = shop.runpytest_subprocess("--agent-model", "a:b,a:c", "--agent-k", "2", "tests")
    assert "next: asks again only what has no answer:" in result.outlines
    (hint,) = [line for line in result.outlines if "--agent-resume" in line]
    hint = re.sub(r"--basetemp=\S+ ", "", hint)  # pytester's own
    assert hint == "  pytest --agent-model a:b,a:c --agent-k 2 tests --agent-resume"
    (shop.path / "asked.txt").unlink()
    shop.makeconftest(AGENT)
    again = shop.runpytest_subprocess(*hint.split()[1:])
    again.assert_outcomes(passed=16)
    assert (shop.path / "asked.txt").read_text("utf-8").split() == ["3"] * 4
    assert "went on with" in again.stdout.str()


def test_a_changed_prompt_is_asked_again(shop: pytest.Pytester) -> None:
    write_cases(shop)
    (shop.path / "stall").unlink()
    shop.runpytest().assert_outcomes(passed=8)
    (shop.path / "asked.txt").unlink()
    (shop.path / "tests" / "c5.yml").write_text("prompt: ' 5'\nexpected: [{n: 5}]\n", "utf-8")
    shop.runpytest("--agent-resume").assert_outcomes(passed=8)
    assert (shop.path / "asked.txt").read_text("utf-8").split() == ["5"]
