"""What came back over the wire, and what can be said of it in one line."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from pytest_agenteval.errors import AgentFailed
from pytest_agenteval.support import clock
from pytest_agenteval.support.json_codec import loads_exact
from pytest_agenteval.support.text import cut_line
from pytest_agenteval.types import Answer, HttpAttempt

SHOWN = 400  # characters of the other side's text in a message


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A whole answer. ``headers`` have lower-case names; ``attempts`` are all requests of the call.

    ``tries`` says how often this very request was sent (a call may hold others, such as a login).
    ``arrivals``: how many bytes of the body had come after how many ms, for each piece of it.
    """

    service: str
    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    attempts: tuple[HttpAttempt, ...] = ()
    tries: int = 1
    note: str = ""
    redact: Callable[[str], str] = field(default=str, repr=False)
    arrivals: tuple[tuple[int, float], ...] = field(default=(), repr=False)

    def having(self, attempts: tuple[HttpAttempt, ...]) -> HttpResponse:
        """Return the same with the call's requests so far."""
        return replace(self, attempts=attempts)

    def noting(self, note: str) -> HttpResponse:
        """Return the same with something to add to its failure's text."""
        return replace(self, note=note)

    @property
    def text(self) -> str:
        """The body as text; bytes that are not UTF-8 are replaced."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """Return the body's JSON value, numbers with all their digits.

        Raises ``AgentFailed`` that says what came instead.
        """
        try:
            return loads_exact(self.body)
        except (ValueError, RecursionError):
            raise self.failed(self._not_json()) from None

    def _not_json(self) -> str:
        text = self.text.strip()
        if not text:
            return f"{self.service} answered HTTP {self.status} with an empty body, JSON was expected"
        if self._is_html(text):
            return (
                f"{self.service} answered HTTP {self.status} with an HTML page{_title(text)}, JSON was "
                f"expected: is {self.url} the API's URL, or does a proxy or login page stand before it?"
            )
        kind = self.headers.get("content-type", "").partition(";")[0]
        return (
            f"{self.service} answered HTTP {self.status} with a body that is not JSON"
            f"{f' ({kind})' if kind else ''}: {cut_line(text, SHOWN)!r}"
        )

    def _is_html(self, text: str) -> bool:
        return "html" in self.headers.get("content-type", "") or bool(
            re.match(r"(?i)<!doctype html|<html", text)
        )

    def problem(self) -> str:
        """Return ``HTTP 500: what the other side said``, in one line."""
        said = self.said()
        return f"HTTP {self.status}" + (f": {said}" if said else "")

    def said(self) -> str:
        """Return the other side's own error text, wherever its body keeps it ('' when there is none)."""
        text = self.text.strip()
        if self.status in (301, 302, 303, 307, 308):
            return f"redirected to {self.headers.get('location', '(nowhere)').partition('?')[0]}"
        try:
            value = json.loads(text)
        except ValueError:
            if self._is_html(text):
                return f"an HTML page{_title(text)}"
            return cut_line(text, SHOWN)
        return cut_line(error_text(value) or text, SHOWN)

    def failure(self) -> AgentFailed:
        """Return the error for an answer whose status is not a success."""
        tries = f" (tried {self.tries} times)" if self.tries > 1 else ""
        # where the address itself may be wrong, it is what a person must look at
        place = f" at {self.url.partition('?')[0]}" if self.status in (404, 405, 410) else ""
        return self.failed(f"{self.service} answered {self.problem()}{place}{tries}{self.note}")

    def failed(self, text: str) -> AgentFailed:
        """Return an error with this text that carries the requests of the call."""
        return AgentFailed(self.redact(text), answer=Answer(wire_attempts=self.attempts))


def error_text(value: Any) -> str:
    """Return the message in an error body: ``error`` (text or object), ``message``, ``detail``;
    '' if none.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value:
        return error_text(value[0])
    if isinstance(value, Mapping) and isinstance(value.get("loc"), list) and value.get("msg"):
        # what FastAPI says of a field that it does not find
        return f"{value['msg']}: {'.'.join(map(str, value['loc']))}"
    if not isinstance(value, Mapping):
        return ""
    for key in ("message", "error", "detail", "errors", "msg"):
        found = error_text(value.get(key))
        if found:
            return found
    return ""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return seconds that the answer asks to wait: ``retry-after-ms``, ``Retry-After`` in seconds or a date.

    A date is measured against the answer's own ``Date``, so that the clocks need not agree.
    """
    millis = headers.get("retry-after-ms", "")
    if re.fullmatch(r"\d+(\.\d+)?", millis):
        return float(millis) / 1000
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", value):
        return float(value)
    due = _moment(value)
    if due is None:
        return None
    now = _moment(headers.get("date", ""))
    return max(0.0, due - (clock.epoch() if now is None else now))


def _moment(text: str) -> float | None:
    """Return an HTTP date as seconds since 1970."""
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _title(page: str) -> str:
    found = re.search(r"(?is)<title[^>]*>(.*?)</title>", page) or re.search(r"(?is)<h1[^>]*>(.*?)</h1>", page)
    words = " ".join(html.unescape(found.group(1)).split()) if found else ""
    return f" ({cut_line(words, SHOWN)!r})" if words else ""
