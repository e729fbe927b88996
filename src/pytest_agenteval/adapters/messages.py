"""The one reader of message lists: what an agent said, which tools it called, what its tokens were.

Messages may be dicts or objects, and of any of these families: OpenAI chat completions, OpenAI responses,
Anthropic messages, Gemini contents, LangChain messages, pydantic-ai messages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_agenteval.adapters.usage import part, read_usage
from pytest_agenteval.types import Answer, ToolCall, Usage

_ASSISTANT = ("assistant", "ai", "AIMessageChunk", "model", "response")
_PERSON = ("user", "human")
_CALLS = (
    "tool_use", "server_tool_use", "mcp_tool_use", "function_call", "tool_call", "tool-call", "mcp_call",
    "builtin-tool-call", "function",
)  # fmt: skip
_RETURNS = (
    "tool_result", "mcp_tool_result", "function_call_output", "tool-return", "builtin-tool-return",
    "retry-prompt",
)  # fmt: skip
_TEXTS = ("text", "output_text")
_SAYS_FAILED = re.compile(
    r"\s*(?:"
    r"error\s*:|(?:an )?error (?:occurred|executing|calling|running|invoking|while)\b|"
    r"traceback \(most recent call last\)|"
    r"tool (?:execution|call) failed\b|failed to execute\b|"
    r"\(?(?-i:(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception))\)?\s*(?::|\()"
    r")",
    re.IGNORECASE,
)


def says_failed(result: Any) -> str | None:
    """Return the error that a tool's result is, where it is text that begins as one; ``None``: it is none.

    Frameworks hand a failed tool back to the model as text: ``Error: (sqlite3.OperationalError) ...``,
    ``An error occurred while running the tool``, ``Error executing tool run_sql: ...``.
    """
    if isinstance(result, list | tuple) and len(result) == 1:
        result = part(result[0], "text")
    if isinstance(result, str) and _SAYS_FAILED.match(result):
        return result.strip()
    return None


@dataclass(slots=True)
class _Reading:
    texts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    answered: set[int] = field(default_factory=set)
    usages: list[Usage] = field(default_factory=list)
    finish_reason: str | None = None

    def call(self, name: Any, args: Any, call_id: Any) -> None:
        """Remember a call, unless it is known: some messages hold it in two places."""
        known = call_id is not None and any(call.id == str(call_id) for call in self.calls)
        if not known:
            self.calls.append(ToolCall(str(name), parsed(args), id=None if call_id is None else str(call_id)))
            self.texts.clear()  # what was said before is not the answer

    def returned(self, call_id: Any, name: Any, result: Any, failed: bool) -> None:
        """Give the call its result: by id, else the first call of that name without one."""
        place = self._place(call_id, name)
        if place is None:
            if not name:
                return
            self.calls.append(ToolCall(str(name), id=None if call_id is None else str(call_id)))
            place = len(self.calls) - 1
        error = (_words(result) or "the tool failed") if failed else says_failed(result)
        self.answered.add(place)
        status: Any = "error" if error else "ok"
        self.calls[place] = replace(
            self.calls[place], result=None if error else result, error=error, status=status
        )

    def _place(self, call_id: Any, name: Any) -> int | None:
        open_places = [n for n in range(len(self.calls)) if n not in self.answered]
        if call_id is not None:
            return next((n for n in open_places if self.calls[n].id == str(call_id)), None)
        return next((n for n in open_places if name in (None, self.calls[n].name)), None)


def read_messages(messages: Iterable[Any], *, last_turn: bool = True) -> Answer:
    """Return text, tool calls with their results, and usage (summed by model) of ``messages``.

    ``last_turn``: only what came after the last message that a person wrote. A response of an API (with
    ``choices``, ``output`` or ``candidates``) may stand among the messages.
    """
    found = _Reading()
    listed = list(messages)
    for message in listed[_start(listed) if last_turn else 0 :]:
        _message(message, found)
    usage = None
    for one in found.usages:
        usage = one if usage is None else usage + one
    return Answer(
        text="\n".join(text for text in found.texts if text.strip()),
        tool_calls=tuple(found.calls),
        usage=usage,
        finish_reason=found.finish_reason,
        steps=len(found.usages) or None,
    )


def _start(messages: Sequence[Any]) -> int:
    return next((n + 1 for n in range(len(messages) - 1, -1, -1) if _by_person(messages[n])), 0)


def _by_person(message: Any) -> bool:
    parts = _parts(message)
    if any(_kind(one) == "user-prompt" for one in parts):
        return True
    if _role(message) not in _PERSON:
        return False
    return not any(_kind(one) in _RETURNS or _gemini(one, "response") is not None for one in parts)


def _role(message: Any) -> str:
    for name in ("role", "content.role", "type", "kind"):
        role = part(message, name)
        role = getattr(role, "value", role)
        if isinstance(role, str) and role not in ("message", "request"):
            return role
    # the Claude Agent SDK tells who speaks by the class alone
    return {"AssistantMessage": "assistant", "UserMessage": "user"}.get(type(message).__name__, "")


def _parts(message: Any) -> list[Any]:
    """Return the blocks of a message's content."""
    for name in ("parts", "content.parts", "content", "blocks"):
        found = part(message, name)
        if isinstance(found, list | tuple):
            return list(found)
    return []


def _message(message: Any, found: _Reading) -> None:
    for inner in _inner(message):
        _message(inner, found)
    counts = next((u for u in _usages(message) if u is not None), None)
    if counts is not None:
        found.usages.append(counts)
    reason = next((r for r in (part(message, name) for name in _REASONS) if r is not None), None)
    if reason is not None:
        found.finish_reason = str(getattr(reason, "value", reason))
    if _block(message, found, _role(message)):
        return
    role = _role(message)
    if role in ("tool", "function", "tool-response") or _is_tool_message(message):
        _tool_message(message, found)
        return
    content = part(message, "content")
    if isinstance(content, str) and role in _ASSISTANT:
        found.texts.append(content)
    for one in _parts(message):
        # some classes offer the text of their blocks as content, too
        if not (isinstance(content, str) and _kind(one) in _TEXTS):
            _block(one, found, role)
    for call in part(message, "tool_calls") or part(message, "additional_kwargs.tool_calls") or ():
        _call(call, found)


_REASONS = ("finish_reason", "stop_reason", "response_metadata.finish_reason", "finishReason")
_MODELS = ("model", "model_name", "model_version", "modelVersion", "response_metadata.model_name",
           "response_metadata.model")  # fmt: skip


def _inner(message: Any) -> Iterator[Any]:
    """Yield the messages inside an API's response."""
    for name in ("choices", "candidates"):
        listed = part(message, name)
        if isinstance(listed, list | tuple):
            yield from (part(one, "message") or one for one in listed)
    output = part(message, "output")
    if isinstance(output, list | tuple) and _kind(message) not in _RETURNS:
        yield from output


def _usages(message: Any) -> Iterator[Usage | None]:
    models = (part(message, name) for name in _MODELS)
    model = next((name for name in models if isinstance(name, str) and name), None)
    for name in ("usage_metadata", "usage", "usageMetadata", "token_usage"):
        yield read_usage(part(message, name), model)


def _kind(block: Any) -> str:
    for name in ("part_kind", "block_type", "type"):
        kind = part(block, name)
        kind = getattr(kind, "value", kind)
        if isinstance(kind, str):
            return kind
    if part(block, "tool_use_id") is not None:  # blocks of the Claude Agent SDK have no type
        return "tool_result"
    if part(block, "id") is not None and part(block, "name") is not None and part(block, "input") is not None:
        return "tool_use"
    return "text" if isinstance(part(block, "text"), str) else ""


def _block(block: Any, found: _Reading, role: str) -> bool:
    """Read one block of a message; returns whether it was one that is known."""
    call, result = _gemini(block, "call"), _gemini(block, "response")
    if call is not None:
        found.call(part(call, "name"), part(call, "args") or {}, part(call, "id"))
        return True
    if result is not None:
        response = part(result, "response")
        failed = isinstance(response, Mapping) and set(response) == {"error"}
        held = response["error"] if failed else response
        found.returned(part(result, "id"), part(result, "name"), held, failed)
        return True
    kind = _kind(block)
    if kind in _CALLS:
        _call(block, found)
    elif kind in _RETURNS:
        _return(block, found, kind)
    elif kind in _TEXTS and part(block, "thought") is not True and role in _ASSISTANT:
        text = part(block, "text") or part(block, "content")
        found.texts.append(text if isinstance(text, str) else "")
    elif kind == "text" and isinstance(part(block, "content"), str):  # pydantic-ai
        found.texts.append(part(block, "content"))
    else:
        return False
    return True


def _gemini(block: Any, what: str) -> Any:
    """Return the call or the response in a Gemini part."""
    for name in (f"function_{what}", f"function{what.capitalize()}"):
        held = part(block, name)
        if held is not None and not isinstance(held, str) and part(held, "name") is not None:
            return held
    return None


def _call(call: Any, found: _Reading) -> None:
    inner = part(call, "function")
    source = inner if inner is not None and not isinstance(inner, str) else call
    names = ("name", "tool_name", "toolName", "tool_kwargs.name")
    name = next((part(source, key) for key in names if part(source, key)), None)
    if name is None:
        return
    keys = ("args", "arguments", "input", "tool_kwargs", "tool_args")
    args = next((part(source, key) for key in keys if part(source, key) is not None), None)
    ids = ("call_id", "id", "tool_call_id", "tool_id")
    found.call(name, args, next((part(call, key) for key in ids if part(call, key) is not None), None))
    for key in ("output", "result", "error"):  # a call that carries its own result
        held = part(call, key)
        if held is not None:
            call_id = next((part(call, one) for one in ids if part(call, one) is not None), None)
            found.returned(call_id, name, held, key == "error")
            return


def _return(block: Any, found: _Reading, kind: str) -> None:
    ids = ("tool_use_id", "tool_call_id", "call_id")
    call_id = next((part(block, key) for key in ids if part(block, key) is not None), None)
    result = part(block, "output") if kind == "function_call_output" else part(block, "content")
    failed = part(block, "is_error") is True or part(block, "outcome") in ("failed", "denied")
    name = part(block, "tool_name") or part(block, "name")
    if kind == "retry-prompt" and not name:
        return  # the model's text was refused, no tool's call
    found.returned(call_id, name, result, failed or kind == "retry-prompt")


def _is_tool_message(message: Any) -> bool:
    return part(message, "tool_call_id") is not None and not _parts(message)


def _tool_message(message: Any, found: _Reading) -> None:
    ids = ("tool_call_id", "additional_kwargs.tool_call_id")
    call_id = next((part(message, key) for key in ids if part(message, key) is not None), None)
    result = part(message, "artifact.structured_content") or part(message, "content")
    if result is None:
        result = [part(block, "text") for block in _parts(message)]
    found.returned(call_id, part(message, "name"), result, part(message, "status") == "error")


def _words(result: Any) -> str:
    if isinstance(result, str):
        return result.strip()
    if isinstance(result, list | tuple):
        texts = [part(one, "text") for one in result]
        return "\n".join(text for text in texts if isinstance(text, str)) or str(result)
    return "" if result is None else str(result)


def parsed(args: Any) -> Any:
    """Read arguments that are JSON text; broken ones stay text."""
    if not isinstance(args, str):
        return args
    try:
        return json.loads(args)
    except ValueError:
        return args
