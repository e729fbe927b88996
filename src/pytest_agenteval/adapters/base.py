"""What the adapters share: the question as messages, what a framework's output is, errors with evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_agenteval.errors import AgentFailed
from pytest_agenteval.types import Answer, Task


def asked(task: Task) -> list[Any]:
    """Return the conversation so far and the question, as messages of a role and a content."""
    earlier = task.conversation if isinstance(task.conversation, list) else []
    return [*earlier, {"role": "user", "content": task.prompt}]


def with_output(answer: Answer, output: Any) -> Answer:
    """Return ``answer`` with a framework's final output: text, one value, or rows.

    Only a list of mappings or of models is rows: an object with an explanation in it is no table.
    """
    if output is None:
        return answer
    if isinstance(output, str):
        return replace(answer, text=output or answer.text)
    if isinstance(output, list) and output and all(_is_record(item) for item in output):
        return replace(answer, data=output, text=answer.text or str(output))
    if isinstance(output, bool | int | float):
        return replace(answer, value=output, text=str(output))
    return replace(answer, text=str(output))


def _is_record(item: Any) -> bool:
    return isinstance(item, Mapping) or hasattr(type(item), "model_fields")


def stopped(error: BaseException, answer: Answer) -> AgentFailed:
    """Return the error of an agent that raised, with what it had done until then.

    A call without a result is the one that raised.
    """
    said = f"{type(error).__name__}: {error}"
    calls = tuple(
        replace(call, error=said, status="error") if call.result is None and call.error is None else call
        for call in answer.tool_calls
    )
    return AgentFailed(said, answer=replace(answer, tool_calls=calls))
