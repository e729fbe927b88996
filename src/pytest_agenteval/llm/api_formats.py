"""Our messages in the words of an API, and its answers in ours.

A message is ``{"role": "system" | "user" | "assistant" | "tool", "content": text}``. An assistant's may
hold ``tool_calls`` (a sequence of ``ToolCall``); a tool's holds ``tool_call_id`` and may hold
``is_error``. A tool is ``{"name", "description", "parameters": JSON Schema}``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pytest_agenteval.types import Completion, ToolCall, Usage

Message = Mapping[str, Any]
ANSWER_TOOL = "answer"  # Anthropic gives JSON of a schema as the arguments of a tool it must call


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a model, before it is put in an API's words.

    ``native_schema``: the endpoint is asked to keep to ``schema``, else the prompt says so.
    ``limit_key``: the name of the output limit (newer OpenAI models want another one).
    """

    model: str
    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]]
    schema: Mapping[str, Any] | None
    max_tokens: int
    native_schema: bool = True
    limit_key: str = "max_tokens"


class ApiFormat(Protocol):
    """One style of API."""

    def url(self, base: str) -> str:
        """Return where a request goes."""
        ...

    def headers(self, key: str | None) -> dict[str, str]:
        """Return what authorises a request."""
        ...

    def body(self, request: Request) -> dict[str, Any]:
        """Return the request's JSON."""
        ...

    def completion(self, answer: Mapping[str, Any]) -> Completion | None:
        """Return what the model said; ``None`` when the answer has no place for it."""
        ...


class OpenAIChat:
    """``/chat/completions`` as OpenAI and nearly everybody else has it."""

    def url(self, base: str) -> str:
        """Return the completions route below the base URL."""
        return base if base.endswith("/chat/completions") else base + "/chat/completions"

    def headers(self, key: str | None) -> dict[str, str]:
        """Return a bearer token."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, request: Request) -> dict[str, Any]:
        """Return messages, functions and the response format."""
        messages = [self._message(message) for message in with_schema(request)]
        body: dict[str, Any] = {
            "model": request.model,
            "messages": messages,
            request.limit_key: request.max_tokens,
        }
        if request.tools:
            body["tools"] = [{"type": "function", "function": dict(tool)} for tool in request.tools]
        if request.schema is not None and request.native_schema:
            schema = {"name": ANSWER_TOOL, "schema": request.schema, "strict": _is_strict(request.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body

    @staticmethod
    def _message(message: Message) -> dict[str, Any]:
        role, content = message["role"], message.get("content") or ""
        if role == "tool":
            return {"role": "tool", "tool_call_id": message["tool_call_id"], "content": content}
        shown: dict[str, Any] = {"role": role, "content": content}
        if message.get("tool_calls"):
            shown["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": json.dumps(sent_arguments(call))},
                }
                for call in message["tool_calls"]
            ]
        return shown

    def completion(self, answer: Mapping[str, Any]) -> Completion | None:
        """Return the first choice."""
        choices = answer.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
            return None
        message = choices[0].get("message")
        if not isinstance(message, Mapping):
            return None
        asked = message.get("tool_calls")
        calls = tuple(
            _openai_call(call, number)
            for number, call in enumerate(asked if isinstance(asked, list) else [])
            if isinstance(call, Mapping)
        )
        finish = choices[0].get("finish_reason")
        return Completion(
            text=_text(message.get("content")) or _text(message.get("refusal")),
            tool_calls=calls,
            usage=_openai_usage(answer.get("usage")),
            finish_reason="tool-calls" if finish in ("tool_calls", "function_call") else finish,
        )


class AnthropicMessages:
    """``/v1/messages`` as Anthropic has it."""

    def url(self, base: str) -> str:
        """Return the messages route, whether or not the base URL ends in ``/v1``."""
        if base.endswith("/messages"):
            return base
        return base + ("/messages" if base.endswith("/v1") else "/v1/messages")

    def headers(self, key: str | None) -> dict[str, str]:
        """Return the key in its own header, and the API's version."""
        version = {"anthropic-version": "2023-06-01"}
        return {**version, "x-api-key": key} if key else version

    def body(self, request: Request) -> dict[str, Any]:
        """Return system text apart, tool results as user messages, tools by ``input_schema``."""
        forced = request.schema is not None and request.native_schema and not request.tools
        messages = request.messages if forced else with_schema(request)
        system = "\n\n".join(m["content"] for m in messages if m["role"] == "system")
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.max_tokens,
            "messages": _alternating([self._message(m) for m in messages if m["role"] != "system"]),
        }
        if system:
            body["system"] = system
        if forced:
            instruction = "Give the answer by calling this tool."
            body["tools"] = [
                {"name": ANSWER_TOOL, "description": instruction, "input_schema": request.schema}
            ]
            body["tool_choice"] = {"type": "tool", "name": ANSWER_TOOL}
        elif request.tools:
            body["tools"] = [_anthropic_tool(tool) for tool in request.tools]
        elif called := sorted({call.name for m in messages for call in m.get("tool_calls") or ()}):
            # a conversation that has tool calls must still name its tools, even for the last word
            body["tools"] = [{"name": name, "input_schema": {"type": "object"}} for name in called]
            body["tool_choice"] = {"type": "none"}
        return body

    @staticmethod
    def _message(message: Message) -> dict[str, Any]:
        role, content = message["role"], message.get("content") or ""
        if role == "tool":
            result = {
                "type": "tool_result",
                "tool_use_id": message["tool_call_id"],
                "content": content,
                "is_error": bool(message.get("is_error")),
            }
            return {"role": "user", "content": [result]}
        blocks: list[dict[str, Any]] = [{"type": "text", "text": content}] if content else []
        blocks += [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": sent_arguments(call)}
            for call in message.get("tool_calls") or ()
        ]
        return {"role": role, "content": blocks or [{"type": "text", "text": "(nothing)"}]}

    def completion(self, answer: Mapping[str, Any]) -> Completion | None:
        """Return the text blocks and the tool calls; a forced answer's arguments are the text."""
        blocks = answer.get("content")
        if not isinstance(blocks, list):
            return None
        parts = [block for block in blocks if isinstance(block, Mapping)]
        text = "".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")
        asked = [part for part in parts if part.get("type") == "tool_use"]
        given = [part for part in asked if part.get("name") == ANSWER_TOOL]
        if given:
            text = json.dumps(given[0].get("input"), ensure_ascii=False)
        calls = tuple(
            _call(part.get("name"), part.get("id"), part.get("input"), number)
            for number, part in enumerate(asked)
            if part.get("name") != ANSWER_TOOL
        )
        reason: Any = answer.get("stop_reason")
        words = {
            "end_turn": "stop",
            "stop_sequence": "stop",
            "max_tokens": "length",
            "tool_use": "stop" if given and not calls else "tool-calls",
        }
        return Completion(text, calls, _anthropic_usage(answer.get("usage")), None, words.get(reason, reason))


CODECS: Mapping[str, type[OpenAIChat] | type[AnthropicMessages]] = {
    "openai": OpenAIChat,
    "anthropic": AnthropicMessages,
}


def with_schema(request: Request) -> list[Message]:
    """Return the messages, and the schema in words where the endpoint is not asked to keep to it."""
    messages = list(request.messages)
    if request.schema is None or (request.native_schema and not request.tools):
        return messages
    instruction = (
        "Answer with one JSON value that follows this JSON Schema, without any other text:\n"
        + json.dumps(request.schema, ensure_ascii=False)
    )
    return [*messages, {"role": "user", "content": instruction}] if messages else messages


def sent_arguments(call: ToolCall) -> dict[str, Any]:
    """Return a call's arguments as they are sent back: an object in any case, broken ones wrapped."""
    return dict(call.args) if isinstance(call.args, Mapping) else {"malformed_arguments": call.args}


def _call(name: Any, call_id: Any, args: Any, number: int) -> ToolCall:
    """Return a tool call; arguments that are not an object keep their text and carry an error."""
    error = None
    if isinstance(args, str):
        try:
            value = json.loads(args) if args.strip() else {}
        except ValueError as broken:
            error = f"the arguments are not valid JSON ({broken}): {args[:200]}"
        else:
            args = value
    if args is None:
        args = {}
    if error is None and not isinstance(args, Mapping):
        error = f"the arguments are not a JSON object: {json.dumps(args)[:200]}"
    return ToolCall(
        name=str(name or ""),
        args=args,
        id=str(call_id or f"call_{number}"),
        error=error,
        status="ok" if error is None else "error",
    )


def _openai_call(call: Mapping[str, Any], number: int) -> ToolCall:
    function = call.get("function")
    asked = function if isinstance(function, Mapping) else {}
    return _call(asked.get("name"), call.get("id"), asked.get("arguments"), number)


def _anthropic_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": tool["name"],
        "description": tool.get("description", ""),
        "input_schema": tool.get("parameters") or {"type": "object", "properties": {}},
    }


def _alternating(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages of one role in a row as one: the results of parallel calls belong together."""
    merged: list[dict[str, Any]] = []
    for message in messages:
        if merged and merged[-1]["role"] == message["role"]:
            merged[-1]["content"] = merged[-1]["content"] + message["content"]
        else:
            merged.append(dict(message))
    return merged


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return ""


def _is_strict(schema: Any) -> bool:
    """Return whether a schema is one that OpenAI's strict mode takes: closed objects, everything required."""
    if isinstance(schema, list):
        return all(_is_strict(part) for part in schema)
    if not isinstance(schema, Mapping):
        return True
    if "properties" in schema or schema.get("type") == "object":
        names = set(schema.get("properties", {}))
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != names:
            return False
    return all(_is_strict(part) for part in schema.values())


def _count(source: Any, *path: str) -> int | None:
    for step in path:
        source = source.get(step) if isinstance(source, Mapping) else None
    return source if isinstance(source, int) and not isinstance(source, bool) else None


def _openai_usage(usage: Any) -> Usage | None:
    if not isinstance(usage, Mapping):
        return None
    return Usage(
        input=_count(usage, "prompt_tokens"),
        output=_count(usage, "completion_tokens"),
        cache_read=_count(usage, "prompt_tokens_details", "cached_tokens"),
        cache_write=_count(usage, "prompt_tokens_details", "cache_write_tokens"),
        reasoning=_count(usage, "completion_tokens_details", "reasoning_tokens"),
        total=_count(usage, "total_tokens"),
    )


def _anthropic_usage(usage: Any) -> Usage | None:
    """Return the usage: Anthropic counts cached tokens beside ``input_tokens``, ``input`` includes them."""
    if not isinstance(usage, Mapping):
        return None
    fresh = _count(usage, "input_tokens")
    read, write = _count(usage, "cache_read_input_tokens"), _count(usage, "cache_creation_input_tokens")
    output = _count(usage, "output_tokens")
    whole = None if fresh is None else fresh + (read or 0) + (write or 0)
    total = None if whole is None or output is None else whole + output
    return Usage(input=whole, output=output, cache_read=read, cache_write=write, total=total)
