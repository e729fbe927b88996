"""Anthropic's SDK: its tool runner, or the messages of a loop of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_agenteval.adapters.base import asked, stopped
from pytest_agenteval.adapters.messages import read_messages
from pytest_agenteval.types import Answer, Task


def agent(client: Any, **options: Any) -> AnthropicAgent:
    """Return an agent around ``client.beta.messages.tool_runner``.

    ``options`` go to the runner: ``tools`` (functions with ``@beta_tool``), ``max_tokens``, ``system``,
    ``model`` (else the task's).
    """
    return AnthropicAgent(client, options)


@dataclass(frozen=True, slots=True)
class AnthropicAgent:
    """Lets the SDK's tool runner answer each turn."""

    client: Any
    options: dict[str, Any] = field(default_factory=dict)

    def run(self, task: Task) -> Answer:
        """Answer the last turn. Raises ``AgentFailed`` with the calls made until then."""
        options = {"max_tokens": 4096, **self.options}
        options.setdefault("model", (task.model or "").rpartition(":")[2])
        messages = asked(task)
        try:
            runner = self.client.beta.messages.tool_runner(messages=list(messages), **options)
            for message in runner:
                messages.append(message)
                returned = runner.generate_tool_call_response()
                if returned is not None:
                    messages.append(returned)
        except Exception as error:
            raise stopped(error, read_messages(messages)) from error
        return answer(messages)


def answer(messages: Sequence[Any]) -> Answer:
    """Return the answer that the messages of a loop are: responses of the API, and the results of tools."""
    told = [
        {"role": "assistant", "content": [_block(block) for block in message.content]}
        if hasattr(message, "model_dump")
        else message
        for message in messages
    ]
    return replace(read_messages(messages), conversation=told)


def _block(block: Any) -> Any:
    names = {"text": ("type", "text"), "tool_use": ("type", "id", "name", "input")}.get(block.type)
    if names is None:
        return block.model_dump(exclude_none=True)
    return {name: getattr(block, name) for name in names}
