"""Vanna 2: a ``vanna.Agent``; calls come from its store of conversations, rows from the tables it shows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pytest_agenteval.adapters.base import stopped
from pytest_agenteval.adapters.messages import read_messages
from pytest_agenteval.adapters.usage import part
from pytest_agenteval.types import Answer, Task


def agent(framework_agent: Any, request: Any = None) -> VannaAgent:
    """Return an agent that asks a ``vanna.Agent`` as the user that ``request`` (a RequestContext) names."""
    return VannaAgent(framework_agent, request)


@dataclass(frozen=True, slots=True)
class VannaAgent:
    """Asks once per turn; a conversation is Vanna's own, by its id."""

    agent: Any
    request: Any = None

    async def run(self, task: Task) -> Answer:
        """Answer the last turn. Raises ``AgentFailed`` with the calls made until then."""
        import uuid

        from vanna.core.user.request_context import RequestContext  # type: ignore[import-not-found]

        request = self.request or RequestContext()
        conversation = task.conversation if isinstance(task.conversation, str) else str(uuid.uuid4())
        shown: list[Any] = []
        fault: BaseException | None = None
        try:
            async for component in self.agent.send_message(
                request, task.prompt, conversation_id=conversation
            ):
                shown.append(component)
        except Exception as error:
            fault = error
        user = await self.agent.user_resolver.resolve_user(request)
        kept = await self.agent.conversation_store.get_conversation(conversation, user)
        read = replace(answer(kept.messages if kept else [], shown), conversation=conversation)
        if fault is not None:
            raise stopped(fault, read) from fault
        return read


def answer(messages: list[Any], components: list[Any]) -> Answer:
    """Return the answer that the messages of a conversation and the components shown are.

    Vanna tells the model a part of the rows only; the tables it shows are the results, in order.
    """
    read = read_messages(messages)
    tables = [
        {
            "columns": list(shown.columns),
            "rows": [[row.get(name) for name in shown.columns] for row in shown.rows],
        }
        for shown in (part(component, "rich_component") for component in components)
        if isinstance(part(shown, "rows"), list) and part(shown, "columns")
    ]
    calls = list(read.tool_calls)
    cards = _cards(components)
    if len(cards) == len(calls):  # one is shown for each call
        for place, status in enumerate(cards):
            if status == "error" and calls[place].status == "ok":
                said = str(calls[place].result)
                calls[place] = replace(calls[place], result=None, error=said, status="error")
    ran = [n for n, call in enumerate(calls) if call.status == "ok" and isinstance(call.args, dict)
           and any(isinstance(call.args.get(key), str) for key in ("sql", "sql_query", "query"))]  # fmt: skip
    if len(ran) == len(tables):
        for place, table in zip(ran, tables, strict=True):
            calls[place] = replace(calls[place], result=table)
    return replace(read, tool_calls=tuple(calls))


def _cards(components: list[Any]) -> list[str]:
    """Return the last status of every tool call that was shown, in the order in which they began."""
    found: dict[str, str] = {}
    for shown in (part(component, "rich_component") for component in components):
        if str(part(shown, "title")).startswith("Executing ") and part(shown, "status"):
            found[str(part(shown, "id"))] = str(shown.status)
    return list(found.values())
