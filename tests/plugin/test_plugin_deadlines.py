"""A deadline holds for code that does not come back to Python, in every mode."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

SLOW = "select sum(a.range * b.range) as n from range(1000000) a, range(1000000) b"
AGENT = """
import hashlib, re, duckdb, pytest
from pytest_agenteval.agents.runtime import deadlines
deadlines.WATCHDOG_GRACE, deadlines.STUCK_GRACE = 1.5, 2.5
deadlines.LOCK_GRACE = SECONDS
own = duckdb.connect()

class Client:
    def __init__(self):
        self.connection = duckdb.connect()

    def query(self):
        return self.connection.execute(SLOW).fetchall()

def default():
    return duckdb.sql(SLOW).fetchall()

def module():
    return own.execute(SLOW).fetchall()

def attribute():
    return Client().query()

def swallowed():
    try:
        return Client().query()
    except BaseException:
        return [{"n": 1}]

def stuck():
    hashlib.pbkdf2_hmac("sha256", b"x", b"y", 2**31 - 1)

def locked():
    re.match("(a+)+$", "a" * 40 + "b")

@pytest.fixture(scope="session")
def agent():
    def ask(prompt):
        return [{"n": 1}] if prompt == "quick" else globals()[prompt]()
    return ask
"""


def project(shop: pytest.Pytester, *prompts: str, lock: float = 10.0) -> None:
    shop.makeconftest(AGENT.replace("SLOW", repr(SLOW)).replace("SECONDS", str(lock)))
    for number, prompt in enumerate(prompts):
        text = f"name: {prompt}\nprompt: {prompt}\nexpected: [{{n: 1}}]\ntimeout: 0.7\n"
        (shop.path / "tests" / f"c{number}.yml").write_text(text, "utf-8")


def results(path: Path) -> dict[str, Any]:
    (file,) = (path / "tests" / "outputs").glob("results_*.json")
    document: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return {entry["name"]: entry for entry in document["results"]}


@pytest.fixture(autouse=True)
def no_coverage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave coverage out of the processes: what it does at their ends takes longer than these deadlines."""
    for name in [name for name in os.environ if name.startswith("COVERAGE_PROCESS")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize("mode", [(), ("-n", "2"), ("--agent-concurrency", "2")], ids=str)
def test_the_deadline_holds_within_a_query(shop: pytest.Pytester, mode: tuple[str, ...]) -> None:
    project(shop, "default", "attribute", "module", "swallowed", "quick")
    result = shop.runpytest_subprocess(*mode, timeout=60)
    result.assert_outcomes(passed=1, errors=4)
    found = results(shop.path)
    assert found.pop("quick")["verdict"] == "passed"
    for entry in found.values():
        assert (entry["verdict"], entry["stage"], entry["reason"]) == ("error", "timeout", "timeout")
        assert entry["message"].startswith("no answer within 0.7 s")


def test_a_call_that_cannot_be_interrupted_ends_the_run_with_its_results(shop: pytest.Pytester) -> None:
    project(shop, "quick", "stuck", "later")
    result = shop.runpytest_subprocess(timeout=60)
    assert result.ret == 1
    said = result.stderr.str()
    assert "tests/c1.yml::stuck attempt 1 is past its deadline and cannot be interrupted" in said
    assert "agenteval_thread = true or --agent-concurrency 2 leave such a call behind" in said
    assert "Results so far: tests/outputs/results_" in said
    assert "--agent-resume goes on with the run" in said
    found = results(shop.path)
    assert [entry["verdict"] for entry in found.values()] == ["passed", "error", "not_run"]
    assert found["stuck"]["stage"] == "timeout"


def test_a_worker_that_cannot_be_interrupted_is_replaced(shop: pytest.Pytester) -> None:
    project(shop, "stuck", "quick", "default")
    result = shop.runpytest_subprocess("-n", "1", timeout=60)
    assert result.ret == 1
    found = results(shop.path)
    assert {name: entry["stage"] for name, entry in found.items()} == {
        "stuck": "timeout", "quick": None, "default": "timeout",
    }  # fmt: skip


def test_a_thread_that_holds_the_interpreter_ends_the_process(shop: pytest.Pytester) -> None:
    project(shop, "quick", "locked", lock=1.0)
    result = shop.runpytest_subprocess("--agent-concurrency", "2", timeout=60)
    assert result.ret == 1
    assert "Timeout (0:00:0" in result.stderr.str()
    assert "in locked" in result.stderr.str()
    again = shop.runpytest_subprocess("--agent-resume", "-k", "quick", timeout=60)
    again.assert_outcomes(passed=1)
