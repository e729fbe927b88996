"""Claude Agent SDK: ``claude_agent_sdk.query`` with ``ClaudeAgentOptions``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pytest_agenteval.adapters.base import stopped
from pytest_agenteval.adapters.messages import read_messages
from pytest_agenteval.adapters.usage import part, read_usage
from pytest_agenteval.errors import AgentFailed
from pytest_agenteval.types import Answer, Task


def agent(options: Any) -> ClaudeAgentAgent:
    """Return an agent that asks with ``ClaudeAgentOptions``; a conversation resumes its session."""
    return ClaudeAgentAgent(options)


@dataclass(frozen=True, slots=True)
class ClaudeAgentAgent:
    """Asks once per turn."""

    options: Any

    async def run(self, task: Task) -> Answer:
        """Answer the last turn. Raises ``AgentFailed`` with the calls made until then."""
        from claude_agent_sdk import query  # type: ignore[import-not-found]

        earlier = task.conversation if isinstance(task.conversation, dict) else {}
        options = replace(self.options, resume=earlier["session"]) if earlier.get("session") else self.options
        messages: list[Any] = []
        try:
            async for message in query(prompt=task.prompt, options=options):
                messages.append(message)
        except Exception as error:
            raise stopped(error, answer(messages, earlier)) from error
        read = answer(messages, earlier)
        failed = next((m for m in messages if part(m, "is_error") is True), None)
        if failed is not None:
            raise AgentFailed(f"{failed.subtype}: {failed.result or failed.errors or ''}", answer=read)
        return read


def answer(messages: list[Any], earlier: dict[str, Any] | None = None) -> Answer:
    """Return the answer that the messages of ``query`` are.

    The cost of a resumed session counts all its turns; ``earlier`` is the previous turn's
    ``conversation``, whose cost is taken off.
    """
    # tokens stand in the last message for the whole query; those of single messages repeat
    spoken = [m for m in messages if part(m, "subtype") is None]
    read = replace(read_messages(spoken, last_turn=False), usage=None)
    done = next((m for m in reversed(messages) if part(m, "total_cost_usd") is not None), None)
    done = done or next((m for m in reversed(messages) if part(m, "num_turns") is not None), None)
    if done is None:
        return read
    total = part(done, "total_cost_usd")
    before = float((earlier or {}).get("cost") or 0.0)
    # a new session counts from 0 again
    cost = None if total is None else total - before if total >= before else total
    model = next((part(m, "model") for m in spoken if isinstance(part(m, "model"), str)), None)
    return replace(
        read,
        text=part(done, "result") or read.text,
        usage=read_usage(part(done, "usage"), model),
        cost=cost,
        steps=part(done, "num_turns"),
        conversation={"session": part(done, "session_id"), "cost": total},
    )
