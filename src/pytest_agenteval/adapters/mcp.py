"""MCP: what a client's ``call_tool`` returns as a tool call; a session whose calls are kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pytest_agenteval.adapters.messages import says_failed
from pytest_agenteval.adapters.usage import part
from pytest_agenteval.types import ToolCall


def tool_call(name: str, args: Any, result: Any) -> ToolCall:
    """Return the call that a ``CallToolResult`` (of ``mcp`` or ``fastmcp``) answers.

    The structured content is preferred to the text blocks; ``isError`` is the error of the call.
    """
    blocks = part(result, "content") or []
    texts = [part(block, "text") for block in blocks]
    said = "\n".join(text for text in texts if isinstance(text, str))
    failed = any(part(result, name) is True for name in ("isError", "is_error"))
    error = (said or "the tool failed") if failed else says_failed(said)
    if error is not None:
        return ToolCall(name, args, error=error, status="error")
    for key in ("structuredContent", "structured_content"):
        if part(result, key) is not None:
            return ToolCall(name, args, part(result, key))
    return ToolCall(name, args, said)


def recorded(session: Any) -> RecordedSession:
    """Return ``session`` (a ``ClientSession`` or a fastmcp ``Client``) with its calls kept in ``calls``."""
    return RecordedSession(session)


@dataclass(slots=True)
class RecordedSession:
    """A session that passes everything on and keeps the calls of tools."""

    session: Any
    calls: list[ToolCall] = field(default_factory=list)

    async def call_tool(self, name: str, arguments: Any = None, *more: Any, **options: Any) -> Any:
        """Call the tool; what it raises is kept as the call's error and raised."""
        try:
            result = await self.session.call_tool(name, arguments, *more, **options)
        except Exception as error:
            self.calls.append(ToolCall(name, arguments, error=str(error), status="error"))
            raise
        self.calls.append(tool_call(name, arguments, result))
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self.session, name)
