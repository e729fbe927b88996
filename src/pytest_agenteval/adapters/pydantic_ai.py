"""pydantic-ai: a ``pydantic_ai.Agent``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from pytest_agenteval.adapters.base import stopped, with_output
from pytest_agenteval.adapters.messages import read_messages
from pytest_agenteval.types import Answer, Task


def agent(framework_agent: Any, **options: Any) -> PydanticAiAgent:
    """Return an agent that asks a ``pydantic_ai.Agent``; ``options`` go to its ``run``."""
    return PydanticAiAgent(framework_agent, options)


@dataclass(frozen=True, slots=True)
class PydanticAiAgent:
    """Asks a ``pydantic_ai.Agent`` once per turn."""

    agent: Any
    options: dict[str, Any] = field(default_factory=dict)

    async def run(self, task: Task) -> Answer:
        """Answer the last turn. Raises ``AgentFailed`` with the calls made until then."""
        from pydantic_ai import capture_run_messages  # type: ignore[import-not-found]
        from pydantic_ai.messages import ModelMessagesTypeAdapter  # type: ignore[import-not-found]

        earlier = task.conversation
        history = ModelMessagesTypeAdapter.validate_python(earlier) if earlier else None
        with capture_run_messages() as messages:
            try:
                result = await self.agent.run(task.prompt, message_history=history, **self.options)
            except Exception as error:
                raise stopped(error, read_messages(messages)) from error
        return answer(result)


def answer(result: Any) -> Answer:
    """Return the answer that an ``AgentRunResult`` is."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    read = with_output(read_messages(result.new_messages(), last_turn=False), result.output)
    history = ModelMessagesTypeAdapter.dump_python(result.all_messages(), mode="json")
    return replace(read, conversation=history)
