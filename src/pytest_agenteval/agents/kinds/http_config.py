"""The ``http`` block of a project file, checked when the agent is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_agenteval.agents.kinds.http_template import Template, template
from pytest_agenteval.agents.kinds.json_path import Path, path
from pytest_agenteval.errors import SettingsError
from pytest_agenteval.support.text import did_you_mean

KEYS = (
    "url", "method", "headers", "body", "text", "rows", "columns", "value", "sql", "tool_calls", "tool_call",
    "usage", "cost", "finish_reason", "conversation", "error", "poll",
)  # fmt: skip
POLL_KEYS = ("url", "method", "body", "every", "status", "done", "failed")
CALL_KEYS = ("name", "args", "result", "id", "error", "asked", "approved")
USAGE_KEYS = ("input", "output", "cache_read", "cache_write", "reasoning", "total", "model")
METHODS = ("GET", "POST", "PUT", "PATCH")
DONE = ("succeeded", "success", "completed", "complete", "done", "finished", "ok")
FAILED = ("failed", "failure", "error", "errored", "cancelled", "canceled", "expired", "timeout")
_PATHS = (
    "text",
    "rows",
    "columns",
    "value",
    "sql",
    "tool_calls",
    "cost",
    "finish_reason",
    "conversation",
    "error",
)


@dataclass(frozen=True, slots=True)
class Poll:
    """How to wait for an asynchronous job: which URL, how often (seconds), which status ends it.

    ``body`` is filled from the task and from the first answer, as ``url`` is.
    """

    url: Template
    method: str = "GET"
    body: Template | None = None
    every: float = 1.0
    status: Path | None = None
    done: frozenset[str] = frozenset(DONE)
    failed: frozenset[str] = frozenset(FAILED)


@dataclass(frozen=True, slots=True)
class HttpConfig:
    """A request template and the paths into its answer (``written``: as the file has them).

    ``body`` is ``None`` when nothing is configured: the task itself is sent. Without any path the
    answer is read as a program's (``command:``) is.
    """

    url: Template
    method: str = "POST"
    headers: Template | None = None
    body: Template | None = None
    paths: Mapping[str, Path] = field(default_factory=dict)
    call: Mapping[str, Path] = field(default_factory=dict)
    usage: Mapping[str, Path] = field(default_factory=dict)
    poll: Poll | None = None
    written: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """The names of the task that the request passes on (all of them without a body template)."""
        used = self.url.names | (self.headers.names if self.headers else frozenset())
        if self.body is not None:
            return used | self.body.names
        whole = ("turns", "caller", "approve", "input", "conversation") if self.method != "GET" else ()
        return used | frozenset(whole)


def read_config(block: Mapping[str, Any], url: str, place: str = "http") -> HttpConfig:
    """Return the configuration; ``url`` (of the target) beats the block's. Raises ``SettingsError``."""
    _known(block, KEYS, place)
    address = url or block.get("url") or ""
    if not isinstance(address, str) or not address.startswith(("http://", "https://")):
        raise SettingsError(
            f"{place}: no URL: expected --agent-target http:URL or {place}.url, "
            f"http:// or https:// in front, found {address!r}"
        )
    body = block.get("body")
    return HttpConfig(
        url=template(address, f"{place}.url"),
        method=_method(block.get("method", "POST"), f"{place}.method"),
        headers=_headers(block.get("headers"), f"{place}.headers"),
        body=None if body is None else template(body, f"{place}.body"),
        paths={key: path(block[key], f"{place}.{key}") for key in _PATHS if block.get(key) is not None},
        call=_paths(block.get("tool_call"), CALL_KEYS, f"{place}.tool_call"),
        usage=_paths(block.get("usage"), USAGE_KEYS, f"{place}.usage"),
        poll=_poll(block["poll"], f"{place}.poll") if block.get("poll") is not None else None,
        written={key: str(block[key]) for key in _PATHS if block.get(key) is not None},
    )


def _known(block: Any, keys: tuple[str, ...], place: str) -> None:
    if not isinstance(block, Mapping):
        raise SettingsError(f"{place}: expected a mapping, found {block!r}")
    for key in block:
        if key not in keys:
            raise SettingsError(f"{place}: unknown key {key!r}{did_you_mean(str(key), keys)}")


def _method(value: Any, place: str) -> str:
    method = str(value).upper()
    if method not in METHODS:
        raise SettingsError(f"{place}: {value!r} is not one of {', '.join(METHODS)}")
    return method


def _headers(value: Any, place: str) -> Template | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(isinstance(item, str | int) for item in value.values()):
        raise SettingsError(f"{place}: expected a mapping of names to text")
    return template({str(key): str(item) for key, item in value.items()}, place)


def _paths(value: Any, keys: tuple[str, ...], place: str) -> dict[str, Path]:
    if value is None:
        return {}
    _known(value, keys, place)
    return {key: path(item, f"{place}.{key}") for key, item in value.items() if item is not None}


def _poll(value: Any, place: str) -> Poll:
    _known(value, POLL_KEYS, place)
    address = value.get("url")
    if not isinstance(address, str) or not address:
        raise SettingsError(f"{place}.url: expected a URL such as /jobs/{{{{ $.id }}}}, found {address!r}")
    every = value.get("every", 1.0)
    if isinstance(every, bool) or not isinstance(every, int | float) or every <= 0:
        raise SettingsError(f"{place}.every: {every!r} is not a number of seconds above 0")
    status, body = value.get("status"), value.get("body")
    return Poll(
        url=template(address, f"{place}.url", answers=True),
        method=_method(value.get("method", "GET" if body is None else "POST"), f"{place}.method"),
        body=None if body is None else template(body, f"{place}.body", answers=True),
        every=float(every),
        status=None if status is None else path(status, f"{place}.status"),
        done=_words(value.get("done"), DONE, f"{place}.done"),
        failed=_words(value.get("failed"), FAILED, f"{place}.failed"),
    )


def _words(value: Any, default: tuple[str, ...], place: str) -> frozenset[str]:
    if value is None:
        return frozenset(default)
    words = value if isinstance(value, list) else [value]
    if not words or not all(isinstance(word, str | bool | int) for word in words):
        raise SettingsError(f"{place}: expected a word or a list of words, found {value!r}")
    return frozenset(word_of(word) for word in words)


def word_of(value: Any) -> str:
    """Return a status as it is compared: folded text; ``true`` for True."""
    return str(value).strip().casefold()
