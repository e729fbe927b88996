"""The public names as a user of mypy --strict and pyright writes them; nothing here is run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, assert_type

import pytest

import pytest_agenteval
import pytest_agenteval.checks
from pytest_agenteval import (
    Agent,
    AgentEvalWarning,
    Answer,
    Check,
    CheckResult,
    Comparison,
    Evidence,
    Table,
    Task,
    ToolCall,
    Usage,
    compare,
    evaluate_cases,
    read_results,
)
from pytest_agenteval.checks import Registry
from pytest_agenteval.compare import compare as compare_tables
from pytest_agenteval.compare import parse_options, render
from pytest_agenteval.errors import AgentEvalError, CheckFailed


class MaxWords(Check):
    """The check of docs/extending.md."""

    type: Literal["max_words"] = "max_words"
    words: int

    def check(self, evidence: Evidence) -> CheckResult:
        if evidence.table is None and not evidence.text:
            raise CheckFailed("no text")
        found = len(evidence.text.split())
        return self.result(found <= self.words, f"{found} words", score=0.5, cost=0.1)


def pytest_agenteval_register(registry: Registry) -> None:
    registry.add(MaxWords)


def pytest_agenteval_result(config: pytest.Config, result: dict[str, Any]) -> None:
    print(config.rootpath, result["verdict"])


class Assistant:
    """The agent of docs/extending.md."""

    def run(self, task: Task) -> Answer:
        call = ToolCall("execute_sql", {"sql": "SELECT 1"}, [{"n": 1}])
        return Answer(text=task.prompt, tool_calls=(call,), usage=Usage(input=3), data=[{"n": 1}])


async def answer(task: Task) -> Answer:
    return Answer(value=len(task.turns))


agent: Agent = Assistant()
expected = Table.from_rows(["n"], [[1]], ["INTEGER"])
assert_type(compare(expected, expected), Comparison)
assert_type(compare(expected, None, parse_options({"ordered": True})), Comparison)
assert_type(compare_tables(expected, expected), Comparison)
assert_type(render(compare(expected, expected)), list[str])
assert_type(expected.names, list[str])
assert_type(Answer().usage, Usage | None)
assert_type(pytest_agenteval.Answer().text, str)
warning: type[Warning] = AgentEvalWarning
error: type[Exception] = AgentEvalError
rows: Sequence[Any] = list(read_results("outputs/results.json").itertuples())
passed: int = len(
    evaluate_cases("tests", agent=lambda prompt: "1", models=["a:b"], k=2).query("verdict == 'passed'")
)
