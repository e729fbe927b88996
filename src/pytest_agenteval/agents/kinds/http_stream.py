"""Streamed answers of an API: server-sent events and NDJSON, as a list of events that paths lead into."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_agenteval.llm.http_response import HttpResponse
from pytest_agenteval.support.json_codec import loads_exact

SSE = "text/event-stream"
NDJSON = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines",
          "application/stream+json")  # fmt: skip
_PIECES = ("delta", "text", "content", "token", "choices.delta.content", "data")
"""Where a piece of text stands in an event, where no path says it."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event: its JSON value and the byte at which it ends. Text that is no JSON is ``{"data": text}``."""

    value: Any
    end: int


def is_stream(reply: HttpResponse) -> bool:
    """Return whether the answer is a stream of events."""
    kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == SSE or kind in NDJSON


def events_of(reply: HttpResponse) -> list[StreamEvent]:
    """Return the events in order; the name of a server-sent event is its key ``event``.

    Comments, empty events and the closing ``[DONE]`` are left out. Raises ``AgentFailed`` for a line of
    NDJSON that is no JSON.
    """
    if reply.headers.get("content-type", "").lower().startswith(SSE):
        return list(_server_sent(reply.body))
    return list(_lines(reply))


def _server_sent(body: bytes) -> Iterator[StreamEvent]:
    name, data, end = "", [], 0
    for line in [*body.splitlines(keepends=True), b"\n"]:
        end += len(line)
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        field, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
        elif not text:
            joined = "\n".join(data)
            if joined and joined.strip() != "[DONE]":
                yield StreamEvent(_named(_parsed(joined), name), min(end, len(body)))
            name, data = "", []


def _parsed(text: str) -> Any:
    try:
        return loads_exact(text)
    except ValueError:
        return {"data": text}


def _named(value: Any, name: str) -> Any:
    return {"event": name, **value} if name and isinstance(value, Mapping) else value


def _lines(reply: HttpResponse) -> Iterator[StreamEvent]:
    end = 0
    for line in reply.body.splitlines(keepends=True):
        end += len(line)
        if not line.strip():
            continue
        try:
            yield StreamEvent(loads_exact(line), end)
        except ValueError:
            shown = line.decode("utf-8", "replace").strip()[:200]
            raise reply.failed(f"{reply.service} sent a line that is not JSON: {shown!r}") from None


def piece_of(event: Any) -> str:
    """Return the text that an event adds, where no path says where it stands ('' for none)."""
    if not isinstance(event, Mapping):
        return event if isinstance(event, str) else ""
    for name in _PIECES:
        found: Any = event
        for step in name.split("."):
            found = found[0] if isinstance(found, list) and found else found
            found = found.get(step) if isinstance(found, Mapping) else None
        if isinstance(found, str):
            return found
        if isinstance(found, Mapping) and isinstance(found.get("text"), str):
            return str(found["text"])
    return ""


def arrived_ms(reply: HttpResponse, end: int) -> float | None:
    """Return when the byte at ``end`` had come, in ms since the request was sent; ``None``: not known."""
    return next((ms for count, ms in reply.arrivals if count >= end), None)
