"""What is paid for is never lost: killed workers, a killed controller, hostile values."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SUM = "SELECT sum(amount) AS total FROM orders"
Write = Callable[..., None]


def document(path: Path) -> dict[str, Any]:
    (file,) = sorted((path / "tests" / "outputs").glob("results_*.json"))
    loaded: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return loaded


def test_a_worker_killed_in_an_agent(shop: pytest.Pytester) -> None:
    shop.makeconftest(
        "import os, pytest\n@pytest.fixture\ndef agent():\n"
        "    def answer(prompt):\n"
        "        if 'die' in prompt:\n            os._exit(3)\n"
        "        return [{'n': 1}]\n    return answer\n"
    )
    for number in range(6):
        prompt = "die" if number == 3 else "live"
        (shop.path / "tests" / f"c{number}.yml").write_text(
            f"prompt: {prompt}\nsql: SELECT 1 AS n\n", "utf-8"
        )
    result = shop.runpytest("-n", "2")
    assert result.ret == 1
    found = {entry["name"]: entry for entry in document(shop.path)["results"]}
    assert sorted(found) == [f"c{n}" for n in range(6)]
    assert {name: entry["verdict"] for name, entry in found.items() if name != "c3"} == {
        f"c{n}": "passed" for n in range(6) if n != 3
    }
    assert (found["c3"]["verdict"], found["c3"]["stage"]) == ("error", "worker")


def test_hostile_values_never_lose_an_item(shop: pytest.Pytester) -> None:
    shop.makeconftest(
        textwrap.dedent(
            """
            import decimal, math, numpy, pytest
            from pytest_agenteval import Answer, ToolCall
            VALUES = [decimal.Decimal("1e400"), numpy.int64(7), numpy.float32("nan"), 2**70, math.nan,
                      math.inf, "\\ud800 lone", "x" * 1_000_000, b"\\xff\\x00", {1: {2, 3}}, object(),
                      [[[]]], None, True, complex(1, 2), "\\x1b[31mred\\x1b[0m", decimal.Decimal("NaN")]

            @pytest.fixture
            def agent():
                def answer(prompt):
                    value = VALUES[int(prompt)]
                    call = ToolCall("execute_sql", {"sql_query": value}, {"data": [{"n": value}]})
                    return Answer(text=str(prompt), data=[{"n": value}], value=value, tool_calls=(call,),
                                  cost=numpy.float64(0.5), conversation=value)
                return answer
            """
        )
    )
    count = 17
    for number in range(count):
        (shop.path / "tests" / f"c{number:02}.yml").write_text(
            f"prompt: '{number}'\nsql: SELECT 7 AS n\n", "utf-8"
        )
    result = shop.runpytest("-n", "2", "--json-report", "--junitxml=out.xml")
    outcomes = result.parseoutcomes()
    assert sum(outcomes.get(word, 0) for word in ("passed", "failed", "errors", "error")) == count
    assert outcomes.get("errors", 0) == 0
    found = document(shop.path)["results"]
    assert [entry["name"] for entry in found] == [f"c{n:02}" for n in range(count)]
    assert found[1]["verdict"] == "passed"


SLOW_AGENT = """
import os, pathlib, time, pytest
@pytest.fixture
def agent():
    def answer(prompt):
        time.sleep(0.2)
        if prompt == "stall":
            pathlib.Path("stalling").touch()
            time.sleep(60)
        return [{"n": 1}]
    return answer
"""


@pytest.mark.parametrize("extra", [[], ["-n", "2"]], ids=["plain", "xdist"])
def test_kill_9_of_the_controller_keeps_every_answer(shop: pytest.Pytester, extra: list[str]) -> None:
    shop.makeconftest(SLOW_AGENT)
    for number in range(4):
        (shop.path / "tests" / f"c{number}.yml").write_text("prompt: go\nsql: SELECT 1 AS n\n", "utf-8")
    (shop.path / "tests" / "d.yml").write_text("prompt: stall\nsql: SELECT 1 AS n\n", "utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", *extra]
    env = {**os.environ, "TMPDIR": str(shop.path)}  # where a run that is killed leaves its file
    with open(shop.path / "log.txt", "wb") as log:
        process = subprocess.Popen(
            command, cwd=shop.path, env=env, stdout=log, stderr=log, start_new_session=True
        )
        give_up = time.monotonic() + 60
        outputs = shop.path / "tests" / "outputs"
        while time.monotonic() < give_up:
            lines = [
                line
                for file in outputs.glob("results_*/*.jsonl")
                for line in file.read_text("utf-8").splitlines()
            ]
            if (shop.path / "stalling").exists() and sum('"attempt"' in line for line in lines) >= 4:
                break
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    (folder,) = [path for path in outputs.iterdir() if path.is_dir()]
    kinds = [
        json.loads(line)["kind"]
        for file in sorted(folder.glob("*.jsonl"))
        for line in file.read_text("utf-8").splitlines()
    ]
    assert kinds.count("answer") == 4
    assert kinds.count("attempt") == 4
