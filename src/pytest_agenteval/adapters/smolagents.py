"""smolagents: a ``ToolCallingAgent`` or a ``CodeAgent``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pytest_agenteval.adapters.base import stopped, with_output
from pytest_agenteval.adapters.messages import parsed, says_failed
from pytest_agenteval.adapters.usage import part, read_usage
from pytest_agenteval.types import Answer, Task, ToolCall, Usage

_CODE = "python_interpreter"
_LAST = "final_answer"


def agent(framework_agent: Any, **options: Any) -> SmolagentsAgent:
    """Return an agent that asks a smolagents agent; ``options`` go to its ``run``.

    Its memory is set back before the first turn of every attempt.
    """
    return SmolagentsAgent(framework_agent, options)


@dataclass(frozen=True, slots=True)
class SmolagentsAgent:
    """Asks once per turn."""

    agent: Any
    options: dict[str, Any] = field(default_factory=dict)

    def run(self, task: Task) -> Answer:
        """Answer the last turn. Raises ``AgentFailed`` with the calls made until then."""
        first = task.conversation is None
        before = 0 if first else len(self.agent.memory.steps)
        try:
            output = self.agent.run(task.prompt, reset=first, **self.options)
        except Exception as error:
            raise stopped(error, self._answer(before, None)) from error
        return self._answer(before, output)

    def _answer(self, before: int, output: Any) -> Answer:
        steps = self.agent.memory.steps[before:]
        return answer(
            part(output, "output") if hasattr(output, "token_usage") else output, steps, self._model()
        )

    def _model(self) -> str | None:
        name = getattr(getattr(self.agent, "model", None), "model_id", None)
        return name if isinstance(name, str) else None


def answer(output: Any, steps: list[Any], model: str | None = None) -> Answer:
    """Return the answer that a run's ``output`` and the ``steps`` of the agent's memory are."""
    calls: list[ToolCall] = []
    usage: Usage | None = None
    for step in steps:
        calls.extend(_calls(step))
        one = read_usage(part(step, "token_usage"), model)
        usage = one if usage is None else usage if one is None else usage + one
    return with_output(
        Answer(tool_calls=tuple(calls), usage=usage, conversation={"remembered": True}), output
    )


def _calls(step: Any) -> Iterator[ToolCall]:
    # a step that failed holds its calls in the model's message alone
    made = part(step, "tool_calls") or part(step, "model_output_message.tool_calls") or ()
    listed = [call for call in made if _named(call, "name") != _LAST]
    error = part(step, "error")
    said = part(step, "observations")
    for number, call in enumerate(listed):
        name, args = _named(call, "name"), parsed(_named(call, "arguments"))
        if name == _CODE:
            found = list(_in_code(args))
            yield from found
            continue
        # what several calls of one step observed is one text, in no order
        result = said if len(listed) == 1 else None
        failed = str(part(error, "message") or error) if error is not None else says_failed(result)
        status: Any = "error" if failed else "ok"
        yield ToolCall(
            name,
            args,
            None if failed else result,
            id=part(call, "id") or str(number),
            error=failed,
            status=status,
        )


def _named(call: Any, name: str) -> Any:
    found = part(call, name)
    return part(call, f"function.{name}") if found is None else found


def _in_code(code: Any) -> Iterator[ToolCall]:
    """Yield calls of functions with text in the code that a ``CodeAgent`` wrote, without their results."""
    try:
        tree = ast.parse(str(code))
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if node.func.id in (_LAST, "print"):
            continue
        try:
            named = {key.arg: ast.literal_eval(key.value) for key in node.keywords if key.arg}
            listed = [ast.literal_eval(arg) for arg in node.args]
        except ValueError:
            continue
        if any(isinstance(value, str) for value in (*named.values(), *listed)):
            yield ToolCall(node.func.id, named or ({"sql": listed[0]} if len(listed) == 1 else listed))
