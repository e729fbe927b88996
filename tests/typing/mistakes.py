"""Mistakes that mypy --strict and pyright find; each line says so, and nothing here is run."""

from __future__ import annotations

from typing import Any, Literal

from pytest_agenteval import Answer, Check, CheckResult, Evidence, Table, Task, ToolCall, compare
from pytest_agenteval.checks import Registry


class MaxWords(Check):
    """The check of docs/extending.md, gone wrong."""

    type: Literal["max_words"] = "max_words"
    words: int

    def check(self, evidence: Evidence) -> CheckResult:
        if evidence.text == "":
            return True  # error
        if evidence.txt:  # error
            return self.result(True, 1234)  # error
        return self.result(True, "fine", scor=1.0)  # error


class NotACheck:
    """Lacks everything."""


def pytest_agenteval_register(registry: Registry) -> None:
    registry.add(NotACheck)  # error
    registry.register(MaxWords)  # error


def run(task: Task) -> Answer:
    print(task.promt)  # error
    ToolCall(5)  # error
    return Answer(txt=5, tool_callz=3)  # error


def look(expected: Table, answered: list[dict[str, Any]]) -> None:
    compare(expected, answered)  # error
    compare(expected).matched  # error  # noqa: B018
    expected.colums  # error  # noqa: B018
