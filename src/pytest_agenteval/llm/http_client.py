"""The one way a request leaves this process: retries, one deadline, a pace per endpoint, a record.

Used by the nao, http and llm agents, by extraction and by judges. httpx is imported with the first
request. Nothing here raises an error that holds a secret: every text goes through ``redact``.
"""

from __future__ import annotations

import random
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pytest_agenteval.errors import AgentFailed, AgentTimeout
from pytest_agenteval.llm.http_response import HttpResponse, retry_after
from pytest_agenteval.llm.rate_limiter import LARGEST_GAP, RateLimiter, RateLimiters
from pytest_agenteval.support import clock
from pytest_agenteval.support.redaction import bare_url
from pytest_agenteval.types import DEFAULT_RETRIES, DEFAULT_TIMEOUT, Answer, HttpAttempt

if TYPE_CHECKING:
    import httpx

    from pytest_agenteval.llm.deadline_transport import DeadlineTransport

RETRIED = frozenset({429, 500, 502, 503, 529})
SLOWED = frozenset({429, 529})
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
LARGEST_BODY = 512 * 1024**2


@dataclass(slots=True)
class _HttpCall:
    """One call under way: what is to be sent, until when, and what has happened so far."""

    service: str
    method: str
    url: str
    headers: Mapping[str, str]
    json: Any
    deadline: float
    began: float = field(default_factory=clock.monotonic)
    attempts: list[HttpAttempt] = field(default_factory=list)
    received: int = 0
    expected: int | None = None
    answering: bool = False


@dataclass(frozen=True, slots=True)
class _Lost:
    """A request that got no whole answer."""

    text: str
    final: bool = False  # trying again cannot help


class HttpClient:
    """Sends requests; one per run and process, shared by all threads.

    ``retries`` counts repetitions after the first try. ``redact`` takes secrets out of a text.
    """

    def __init__(
        self,
        *,
        retries: int = DEFAULT_RETRIES,
        redact: Callable[[str], str] = str,
        first_pause: float = FIRST_PAUSE,
        limiters: RateLimiters | None = None,
    ) -> None:
        self.retries = retries
        self._redact = redact
        self._first_pause = first_pause
        self._limiters = limiters or RateLimiters()
        self._random = random.Random()
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None
        self._transport: DeadlineTransport | None = None

    def send(
        self,
        method: str,
        url: str,
        *,
        service: str,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        deadline: float | None = None,
    ) -> HttpResponse:
        """Return one call: the answer, whatever its status, after the retries that its status allows.

        ``service`` names the other side in messages (``nao server``). ``deadline`` is a
        ``time.monotonic()`` value and covers every try and pause; without one ``DEFAULT_TIMEOUT`` holds.
        Raises ``AgentTimeout`` at the deadline and ``AgentFailed`` when no whole answer came; both
        carry the tries in ``answer.wire_attempts``.
        """
        until = clock.monotonic() + DEFAULT_TIMEOUT if deadline is None else deadline
        call = _HttpCall(service, method, url, headers or {}, json, until)
        if not _callable(url):
            raise self._failed(call, f"{service}: {bare_url(url)!r} is not a URL that can be called")
        limiter = self._limiters.of(_endpoint(url))
        for number in range(self.retries + 1):
            self._wait_for_turn(call, limiter)
            outcome = self._once(call)
            again, asked = self._judge(outcome, limiter)
            if not again:
                break
            pause = self._pause(number) if asked is None else asked
            if isinstance(outcome, HttpResponse) and outcome.status in SLOWED:
                limiter.slow_down(pause)
            if number == self.retries:
                break
            if clock.monotonic() + pause >= call.deadline:
                outcome = _not_again(outcome, pause, call)
                break
            self._sleep(call, pause)
        if isinstance(outcome, _Lost):
            raise self._failed(call, outcome.text)
        return outcome

    def abort(self) -> None:
        """Stop: calls under way end with an error at once, later ones do not start."""
        self._stopped.set()
        if self._transport is not None:
            self._transport.backend.abort()

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        with self._lock:
            client, self._client, self._transport = self._client, None, None
        if client is not None:
            client.close()

    def _judge(self, outcome: HttpResponse | _Lost, limiter: RateLimiter) -> tuple[bool, float | None]:
        """Return whether to try again, and the seconds that the other side asked for."""
        if isinstance(outcome, _Lost):
            return not outcome.final, None
        if outcome.status in RETRIED:
            return True, retry_after(outcome.headers)
        limiter.speed_up()
        return False, None

    def _once(self, call: _HttpCall) -> HttpResponse | _Lost:
        """Return one request on the wire, recorded."""
        import httpcore
        import httpx

        call.received, call.expected, call.answering = 0, None, False
        began = clock.monotonic()
        reply: HttpResponse | None = None
        lost: _Lost | None = None
        try:
            reply = self._exchange(call)
        except (httpcore.TimeoutException, httpx.TimeoutException) as error:
            raise self._late(call, began) from error
        except _broken() as error:
            lost = self._stopped_text(call) or _describe(call, error)
        status = reply.status if reply else None
        asked = retry_after(reply.headers) if reply else None
        text = lost.text if lost else reply.problem() if reply and reply.status >= 400 else None
        self._record(call, began, status, text, asked)
        if lost is not None:
            return lost
        assert reply is not None
        return replace(reply, attempts=tuple(call.attempts), tries=len(call.attempts))

    def _exchange(self, call: _HttpCall) -> HttpResponse:
        client, transport = self._open()
        transport.clock.deadline = call.deadline
        left = max(0.001, call.deadline - clock.monotonic())
        body = bytearray()
        began, arrivals = clock.monotonic(), []
        with client.stream(
            call.method, call.url, headers=call.headers, json=call.json, timeout=left
        ) as response:
            call.answering = True
            length = response.headers.get("content-length", "")
            call.expected = int(length) if length.isdigit() else None
            encodings = response.headers.get("content-encoding", "")
            if "," in encodings:
                # each of them may multiply a small body a thousand times
                raise self._failed(
                    call, f"{call.service} packed its answer more than once ({encodings[:80]})"
                )
            for chunk in response.iter_bytes():
                body += chunk
                arrivals.append((len(body), (clock.monotonic() - began) * 1000))
                call.received = response.num_bytes_downloaded
                if len(body) > LARGEST_BODY:
                    raise self._failed(call, f"{call.service} sent more than {LARGEST_BODY:,} bytes")
            headers = {name.lower(): value for name, value in response.headers.items()}
        return HttpResponse(
            call.service,
            bare_url(call.url),
            response.status_code,
            headers,
            bytes(body),
            redact=self._redact,
            arrivals=tuple(arrivals),
        )

    def _open(self) -> tuple[httpx.Client, DeadlineTransport]:
        import httpx

        from pytest_agenteval.llm.deadline_transport import DeadlineTransport

        with self._lock:
            if self._client is None or self._transport is None:
                self._transport = DeadlineTransport()
                self._client = httpx.Client(
                    transport=self._transport,
                    # a login's cookie sent along without an Origin is refused by nao servers (403)
                    cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
                    follow_redirects=False,
                    trust_env=False,
                    headers={"User-Agent": "pytest-agenteval"},
                )
                # connections kept alive are closed with us, also when no one calls close()
                weakref.finalize(self, self._client.close)
            return self._client, self._transport

    def _wait_for_turn(self, call: _HttpCall, limiter: RateLimiter) -> None:
        """Wait until the endpoint's limiter lets the request go."""
        start = limiter.reserve(call.deadline)
        if start is None and limiter.pause > LARGEST_GAP:  # longer than any gap of ours
            raise self._failed(
                call,
                f"{call.service} is limiting the rate (429) and asked for a pause that ends in "
                f"{limiter.pause:,.0f} s, after the attempt's deadline; wait, or raise --agent-timeout",
            )
        if start is None:
            raise self._failed(
                call,
                f"{call.service} is limiting the rate (429), and this request's turn would come after "
                "the attempt's deadline; lower --agent-concurrency or raise --agent-timeout",
            )
        self._sleep(call, start - clock.monotonic())

    def _sleep(self, call: _HttpCall, seconds: float) -> None:
        stopped = self._stopped.wait(seconds) if seconds > 0 else self._stopped.is_set()
        if stopped:
            raise self._failed(call, _STOPPED.format(service=call.service))

    def _pause(self, number: int) -> float:
        """Return seconds before try ``number + 1``: exponential, between half and all of it."""
        whole = min(LONGEST_PAUSE, self._first_pause * 2.0**number)
        return whole * self._random.uniform(0.5, 1.0)

    def _record(
        self, call: _HttpCall, began: float, status: int | None, error: str | None, asked: float | None
    ) -> None:
        took = (clock.monotonic() - began) * 1000
        text = None if error is None else self._redact(error)
        call.attempts.append(HttpAttempt(self._redact(bare_url(call.url)), status, text, took, asked))

    def _stopped_text(self, call: _HttpCall) -> _Lost | None:
        return _Lost(_STOPPED.format(service=call.service), final=True) if self._stopped.is_set() else None

    def _late(self, call: _HttpCall, began: float) -> AgentTimeout:
        """Return the deadline has come: what was known of the answer by then."""
        seconds = clock.monotonic() - call.began
        if call.received:
            total = f" of {call.expected:,}" if call.expected else ""
            progress = f"{call.received:,}{total} bytes of its answer had come"
        else:
            progress = "nothing of its answer had come" if not call.answering else "only headers had come"
        self._record(call, began, None, f"deadline: {progress}", None)
        tries = f", request {len(call.attempts)}" if len(call.attempts) > 1 else ""
        text = (
            f"{call.service} did not answer in time: {progress} after {seconds:.1f} s{tries}, "
            "when the attempt's deadline came"
        )
        return AgentTimeout(self._redact(text), answer=_so_far(call))

    def _failed(self, call: _HttpCall, text: str) -> AgentFailed:
        tries = f" (tried {len(call.attempts)} times)" if len(call.attempts) > 1 else ""
        return AgentFailed(self._redact(text + tries), answer=_so_far(call))


_STOPPED = "the run was stopped while {service} was being asked"


def _so_far(call: _HttpCall) -> Answer:
    return Answer(wire_attempts=tuple(call.attempts))


def _broken() -> tuple[type[Exception], ...]:
    """Return what httpx and httpcore raise when a request gets no whole answer."""
    import httpcore
    import httpx

    return (
        httpx.HTTPError,
        OSError,
        httpcore.NetworkError,
        httpcore.ProtocolError,
        httpcore.ProxyError,
    )


def _not_again(outcome: HttpResponse | _Lost, pause: float, call: _HttpCall) -> HttpResponse | _Lost:
    """Return the pause before the next try would pass the deadline: say so instead of waiting."""
    left = max(0.0, call.deadline - clock.monotonic())
    note = f"; not tried again: the next try is due in {pause:.1f} s, the deadline in {left:.1f} s"
    if isinstance(outcome, _Lost):
        return _Lost(outcome.text + note, final=True)
    return outcome.noting(note)


def _describe(call: _HttpCall, error: Exception) -> _Lost:
    """Describe what happened to a request that got no whole answer."""
    import httpcore
    import httpx

    where = bare_url(call.url)
    said = str(error)
    if isinstance(error, httpx.DecodingError):
        return _Lost(f"{call.service} sent a body that its Content-Encoding does not describe: {said}")
    if "CERTIFICATE_VERIFY_FAILED" in said:
        return _Lost(f"{call.service} at {where}: its TLS certificate is not trusted: {said}", final=True)
    if isinstance(error, httpcore.ConnectError):
        reason = said.rpartition("] ")[2] or said
        return _Lost(f"cannot connect to {call.service} at {where}: {reason}; is it running?")
    if isinstance(error, httpcore.ProxyError):
        return _Lost(f"the proxy on the way to {call.service} refused: {said}", final=True)
    if not call.answering:
        return _Lost(f"{call.service} at {where} dropped the connection before it answered; see its log")
    if call.expected is not None:
        amount = f"{call.received:,} of {call.expected:,} bytes"
    else:
        amount = f"{call.received:,} bytes"
    return _Lost(f"{call.service} dropped the connection in the middle of its answer (after {amount})")


def _callable(url: str) -> bool:
    import httpx

    try:
        parts = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        return False
    return parts.scheme in ("http", "https") and bool(parts.host)


def _endpoint(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
