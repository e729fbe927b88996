"""LlamaIndex: a query engine (NLSQL and others) or an agent workflow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_agenteval.adapters.base import stopped
from pytest_agenteval.adapters.messages import read_messages, says_failed
from pytest_agenteval.adapters.usage import part, read_usage
from pytest_agenteval.types import Answer, Task, ToolCall, Usage


def agent(engine: Any, **options: Any) -> LlamaIndexAgent:
    """Return an agent that asks a query engine (``aquery``) or an agent workflow (``run``)."""
    return LlamaIndexAgent(engine, options)


@dataclass(frozen=True, slots=True)
class LlamaIndexAgent:
    """Asks once per turn; a query engine keeps no conversation and tells no tokens."""

    engine: Any
    options: dict[str, Any] = field(default_factory=dict)

    async def run(self, task: Task) -> Answer:
        """Answer the last turn. Raises ``AgentFailed`` with the calls made until then."""
        if hasattr(self.engine, "aquery"):
            return answer(await self.engine.aquery(task.prompt, **self.options))
        from llama_index.core.llms import ChatMessage  # type: ignore[import-not-found]

        earlier = [ChatMessage(role=m["role"], content=m["content"]) for m in task.conversation or ()]
        handler = self.engine.run(user_msg=task.prompt, chat_history=earlier, **self.options)
        events: list[Any] = []
        try:
            async for event in handler.stream_events():
                events.append(event)
            await handler
        except Exception as error:
            raise stopped(error, from_events(events)) from error
        return from_events(events)


def answer(response: Any) -> Answer:
    """Return the answer that a query engine's ``Response`` is; its SQL and rows stand in ``metadata``."""
    said = str(response)
    metadata = response.metadata or {}
    sql = metadata.get("sql_query")
    if not isinstance(sql, str):
        return Answer(text=said)
    rows, names = metadata.get("result"), metadata.get("col_keys")
    if rows is None or not names:
        nodes = [str(part(node, "text") or "") for node in part(response, "source_nodes") or ()]
        error = next((text for text in map(says_failed, [*nodes, said]) if text), None)
        status: Any = "error" if error else "ok"
        return Answer(
            text=said, tool_calls=(ToolCall("execute_sql", {"sql": sql}, error=error, status=status),)
        )
    table = {"columns": list(names), "rows": [list(row) for row in rows]}
    return Answer(text=said, tool_calls=(ToolCall("execute_sql", {"sql": sql}, table),))


def from_events(events: Sequence[Any]) -> Answer:
    """Return the answer that the events of an agent workflow are."""
    calls, usage, text, steps = [], None, "", 0
    for event in events:
        if part(event, "tool_output") is not None:
            calls.append(_call(event))
        elif type(event).__name__ == "AgentOutput":  # pieces of a stream look alike
            steps += 1
            text = read_messages([part(event, "response")]).text or str(part(event, "response.content") or "")
            usage = _sum(usage, read_usage(part(event, "raw.usage"), part(event, "raw.model")))
    return replace(Answer(text=text, tool_calls=tuple(calls), usage=usage), steps=steps or None)


def _sum(one: Usage | None, other: Usage | None) -> Usage | None:
    return one if other is None else other if one is None else one + other


def _call(event: Any) -> ToolCall:
    output = event.tool_output
    content = part(output, "raw_output")
    content = part(output, "content") if content is None else content
    failed = part(output, "is_error") is True
    error = str(part(output, "content")) if failed else says_failed(content)
    status: Any = "error" if error else "ok"
    result = None if error else content
    return ToolCall(event.tool_name, event.tool_kwargs, result, id=event.tool_id, error=error, status=status)
