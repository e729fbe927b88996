"""LangChain and LangGraph: a compiled graph, an agent executor or any other Runnable."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from pytest_agenteval.adapters.base import stopped, with_output
from pytest_agenteval.adapters.messages import read_messages, says_failed
from pytest_agenteval.types import Answer, Task, ToolCall


def agent(runnable: Any, **options: Any) -> LangchainAgent:
    """Return an agent that asks a Runnable; ``options`` go to its ``ainvoke`` or ``astream``."""
    return LangchainAgent(runnable, options)


@dataclass(frozen=True, slots=True)
class LangchainAgent:
    """Asks a Runnable once per turn."""

    runnable: Any
    options: dict[str, Any] = field(default_factory=dict)

    async def run(self, task: Task) -> Answer:
        """Answer the last turn. Raises ``AgentFailed`` with the calls that a graph had made until then."""
        from langchain_core.messages import (  # type: ignore[import-not-found]
            HumanMessage,
            convert_to_messages,
            messages_from_dict,
        )

        if not hasattr(self.runnable, "get_graph") or not hasattr(self.runnable, "stream_mode"):
            keys = getattr(self.runnable, "input_keys", None)
            asks = {keys[0]: task.prompt} if keys else task.prompt
            return answer(await self.runnable.ainvoke(asks, **self.options))
        earlier = task.conversation or []
        known = (
            messages_from_dict(earlier) if earlier and "data" in earlier[0] else convert_to_messages(earlier)
        )
        asked: Any = {"messages": [*known, HumanMessage(task.prompt)]}
        state = asked
        try:
            async for later in self.runnable.astream(asked, stream_mode="values", **self.options):
                state = later
        except Exception as error:
            raise stopped(error, answer(state)) from error
        return answer(state)


def answer(result: Any) -> Answer:
    """Return the answer that a state with ``messages``, an executor's result, a message or a text is."""
    if isinstance(result, dict) and isinstance(result.get("messages"), list):
        read = with_output(read_messages(result["messages"]), result.get("structured_response"))
        if all(hasattr(message, "model_dump") for message in result["messages"]):
            from langchain_core.messages import messages_to_dict

            return replace(read, conversation=messages_to_dict(result["messages"]))
        return read
    if isinstance(result, dict) and "output" in result:
        calls = tuple(_step(*step) for step in result.get("intermediate_steps", ()))
        return with_output(Answer(tool_calls=calls), result["output"])
    if hasattr(result, "content"):
        return read_messages([result])
    return with_output(Answer(), result)


def _step(action: Any, observation: Any) -> ToolCall:
    args = action.tool_input if isinstance(action.tool_input, dict) else {"input": action.tool_input}
    error = says_failed(observation)
    if error is not None:
        return ToolCall(action.tool, args, error=error, status="error")
    return ToolCall(action.tool, args, observation)
