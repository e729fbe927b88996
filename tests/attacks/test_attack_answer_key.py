"""Agents that read the answer key fail; agents that list files do not; nobody is told the case's name."""

from __future__ import annotations

import pytest

CONFTEST = """
import os, pathlib, subprocess, sys, pytest
from pytest_agenteval import Answer, ToolCall

def told(name, args, result):
    return Answer(data=[{"revenue": 99, "orders": 7}], tool_calls=(ToolCall(name, args, result),))

@pytest.fixture
def agent():
    def ask(prompt):
        if prompt == "csv":
            return told("read_file", {"path": "tests/exp.csv"}, pathlib.Path("tests/exp.csv").read_text())
        if prompt == "grep":
            done = subprocess.run(["grep", "-rh", "revenue", "tests"], capture_output=True, text=True)
            return told("bash", {"cmd": "grep -rh revenue tests"}, done.stdout)
        if prompt == "find":
            done = subprocess.run(["find", ".", "-name", "*.yml"], capture_output=True, text=True)
            return told("bash", {"cmd": "find . -name '*.yml'"}, done.stdout)
        code = "import os; print(os.environ.get('PYTEST_CURRENT_TEST', 'nothing'))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        return [{"own": str(os.environ.get("PYTEST_CURRENT_TEST")), "program": done.stdout.strip()}]
    return ask
"""

CASES = """
cases:
  - {name: csv, prompt: csv, expected: {file: exp.csv}}
  - {name: grep, prompt: grep, expected: [{revenue: 99, orders: 7}]}
  - {name: find, prompt: find, expected: [{revenue: 99, orders: 7}]}
  - {name: name, prompt: name, expected: [{own: None, program: nothing}]}
"""


def test_what_counts_as_reading_the_key(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\naddopts = -p no:asyncio\n")
    pytester.makeconftest(CONFTEST)
    tests = pytester.mkdir("tests")
    (tests / "c.yml").write_text(CASES.replace("own: None", 'own: "None"'), encoding="utf-8")
    (tests / "exp.csv").write_text("revenue,orders\n99,7\n", encoding="utf-8")
    done = pytester.runpytest_subprocess("-v")
    done.assert_outcomes(passed=2, failed=2)
    done.stdout.fnmatch_lines(
        [
            "*c.yml::csv FAILED answer key read: read_file tests/exp.csv*",
            "*c.yml::grep FAILED answer key read: bash *",
            "*c.yml::find PASSED*warning: answer key listed: bash tests/c.yml*",
            "*c.yml::name PASSED*",
        ]
    )
