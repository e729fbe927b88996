"""OpenAI Agents SDK: an ``agents.Agent`` is asked by its ``Runner``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from pytest_agenteval.adapters.base import asked, stopped, with_output
from pytest_agenteval.adapters.messages import read_messages
from pytest_agenteval.adapters.usage import read_usage
from pytest_agenteval.types import Answer, Task, Usage


def agent(framework_agent: Any, **options: Any) -> OpenaiAgentsAgent:
    """Return an agent that asks an ``agents.Agent``; ``options`` go to ``Runner.run``."""
    return OpenaiAgentsAgent(framework_agent, options)


@dataclass(frozen=True, slots=True)
class OpenaiAgentsAgent:
    """Asks an ``agents.Agent`` once per turn."""

    agent: Any
    options: dict[str, Any] = field(default_factory=dict)

    async def run(self, task: Task) -> Answer:
        """Answer the last turn. Raises ``AgentFailed`` with the calls made until then."""
        from agents import Runner  # type: ignore[import-not-found]

        try:
            result = await Runner.run(self.agent, asked(task), **self.options)
        except Exception as error:
            data = getattr(error, "run_data", None)
            raise stopped(error, Answer() if data is None else _evidence(data)) from error
        return answer(result)


def answer(result: Any) -> Answer:
    """Return the answer that a ``RunResult`` is."""
    return replace(with_output(_evidence(result), result.final_output), conversation=result.to_input_list())


def _evidence(result: Any) -> Answer:
    read = read_messages([_raw(item) for item in result.new_items], last_turn=False)
    model = getattr(getattr(result, "last_agent", None), "model", None)
    usage: Usage | None = None
    for response in result.raw_responses:
        one = read_usage(response.usage, model if isinstance(model, str) else None)
        usage = one if usage is None or one is None else usage + one
    return replace(read, usage=usage, steps=len(result.raw_responses) or None)


def _raw(item: Any) -> Any:
    """Return an item as the model saw it; a tool's output as the tool gave it."""
    raw = item.raw_item
    if getattr(item, "type", "") != "tool_call_output_item":
        return raw
    call_id = raw.get("call_id") if isinstance(raw, dict) else getattr(raw, "call_id", None)
    return {"type": "function_call_output", "call_id": call_id, "output": item.output}
