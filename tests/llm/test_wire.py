from __future__ import annotations

import gzip
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from email.utils import formatdate

import pytest
from rawserver import http

from pytest_agenteval.errors import AgentFailed, AgentTimeout
from pytest_agenteval.llm.http_client import HttpClient
from pytest_agenteval.llm.http_response import retry_after
from pytest_agenteval.llm.rate_limiter import RateLimiter

OK = http(200, {"ok": 1})


@pytest.fixture
def wire():
    made = HttpClient(first_pause=0.02)
    yield made
    made.close()


def send(wire: HttpClient, url: str, seconds: float = 5.0, **more):
    return wire.send(
        "POST",
        url + "/api?key=hidden",
        service="nao server",
        json={"a": 1},
        deadline=time.monotonic() + seconds,
        **more,
    )


def test_an_answer_with_its_one_request(raw, wire) -> None:
    raw.says(OK)
    reply = send(wire, raw.url, headers={"Authorization": "Bearer T"})
    assert reply.json() == {"ok": 1}
    (attempt,) = reply.attempts
    assert (attempt.url, attempt.status, attempt.error) == (raw.url + "/api", 200, None)
    assert 0 < attempt.duration_ms < 5000
    first, headers, body = raw.requests[0]
    assert first == "POST /api?key=hidden HTTP/1.1"
    assert headers["authorization"] == "Bearer T"
    assert "origin" not in headers
    assert body == b'{"a":1}'


def test_429_twice_with_retry_after_then_200(raw, wire) -> None:
    date = formatdate(time.time() + 1, usegmt=True)
    now = formatdate(time.time(), usegmt=True)
    raw.says(
        http(429, {"error": "slow"}, {"Retry-After": "0.3"}),
        http(429, {"error": "slow"}, {"Retry-After": date, "Date": now}),
        OK,
    )
    reply = send(wire, raw.url)
    assert [attempt.status for attempt in reply.attempts] == [429, 429, 200]
    assert [attempt.retry_after_s for attempt in reply.attempts] == [0.3, 1.0, None]
    assert raw.times[1] - raw.times[0] >= 0.3
    assert raw.times[2] - raw.times[1] >= 1.0


@pytest.mark.parametrize("status", [500, 502, 503, 529])
def test_always_5xx_gives_the_answer_after_all_tries(raw, wire, status: int) -> None:
    raw.says(then=http(status, {"error": {"message": "model is down"}}))
    reply = send(wire, raw.url)
    assert len(raw.requests) == 3
    assert [attempt.status for attempt in reply.attempts] == [status] * 3
    assert str(reply.failure()) == f"nao server answered HTTP {status}: model is down (tried 3 times)"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 413, 422, 504])
def test_other_statuses_are_asked_once(raw, wire, status: int) -> None:
    raw.says(then=http(status, {"error": "Bad Request", "message": "no"}))
    reply = send(wire, raw.url)
    assert len(raw.requests) == 1
    place = f" at {reply.url}" if status == 404 else ""  # where the address itself may be wrong
    assert str(reply.failure()) == f"nao server answered HTTP {status}: no{place}"


def test_pauses_grow(raw) -> None:
    wire = HttpClient(retries=3, first_pause=0.2)
    raw.says(then=http(500))
    send(wire, raw.url)
    wire.close()
    gaps = [later - sooner for sooner, later in zip(raw.times, raw.times[1:], strict=False)]
    for number, gap in enumerate(gaps):
        assert 0.1 * 2**number <= gap <= 0.2 * 2**number + 0.3


@pytest.mark.parametrize("way", ["hang", "drip body", "drip headers", "hang in body"])
def test_one_deadline_over_all_tries(raw, way: str) -> None:
    wire = HttpClient(retries=5)
    whole = http(200, {"ok": "x" * 100})
    steps = {
        "hang": raw.hang,
        "drip body": lambda c: (c.sendall(whole[:-50]), raw.drip(whole[-50:])(c)),
        "drip headers": raw.drip(whole),
        "hang in body": lambda c: (c.sendall(whole[:-5]), raw.hang(c)),
    }
    raw.says(http(503), then=steps[way])
    began = time.monotonic()
    with pytest.raises(AgentTimeout) as caught:
        send(wire, raw.url, seconds=1.5)
    took = time.monotonic() - began
    wire.close()
    assert 1.4 <= took <= 3.0
    text = str(caught.value)
    assert text.startswith("nao server did not answer in time: ")
    said = re.search(r"after ([\d.]+) s, request 2", text)
    assert said is not None
    assert float(said[1]) == pytest.approx(took, abs=0.4)
    assert caught.value.answer is not None
    statuses = [attempt.status for attempt in caught.value.answer.wire_attempts]
    assert statuses == [503, None]
    if way == "hang in body":
        assert "105 of 110 bytes of its answer had come" in text
    if way == "hang":
        assert "nothing of its answer had come" in text


def test_a_host_that_does_not_accept_ends_at_the_deadline(wire) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        fillers = []
        for _ in range(4):  # the backlog is full: further connections hang
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(address)
            fillers.append(filler)
        began = time.monotonic()
        with pytest.raises(AgentTimeout, match="nothing of its answer had come"):
            send(wire, f"http://127.0.0.1:{address[1]}", seconds=1.0)
        assert time.monotonic() - began < 1.5
        for filler in fillers:
            filler.close()


def test_a_pause_past_the_deadline_is_not_waited_for(raw, wire) -> None:
    raw.says(then=http(429, {"error": "quota"}, {"Retry-After": "60"}))
    began = time.monotonic()
    reply = send(wire, raw.url, seconds=2.0)
    assert time.monotonic() - began < 1
    text = str(reply.failure())
    assert text.startswith(
        "nao server answered HTTP 429: quota; not tried again: the next try is due in 60.0 s, "
        "the deadline in "
    )


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def test_a_dropped_connection(raw, wire) -> None:
    raw.says(reset, lambda connection: None, OK)
    reply = send(wire, raw.url)
    assert [attempt.status for attempt in reply.attempts] == [None, None, 200]
    assert reply.attempts[0].error == (
        f"nao server at {raw.url}/api dropped the connection before it answered; see its log"
    )
    raw.says(then=lambda connection: None)
    with pytest.raises(AgentFailed) as caught:
        send(wire, raw.url)
    assert str(caught.value) == f"{reply.attempts[0].error} (tried 3 times)"
    assert not isinstance(caught.value, AgentTimeout)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_truncated_body(raw, wire, chunked: bool) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    if chunked:
        data = head + b'Transfer-Encoding: chunked\r\n\r\n8\r\n{"text":\r\n'
    else:
        data = head + b'Content-Length: 4000\r\n\r\n{"text":'
    raw.says(then=lambda connection: connection.sendall(data))
    with pytest.raises(AgentFailed) as caught:
        send(wire, raw.url)
    amount = "8 bytes" if chunked else "8 of 4,000 bytes"
    assert str(caught.value) == (
        f"nao server dropped the connection in the middle of its answer (after {amount}) (tried 3 times)"
    )


def test_nobody_listens(wire) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(AgentFailed) as caught:
        send(wire, f"http://localhost:{port}")
    assert str(caught.value) == (
        f"cannot connect to nao server at http://localhost:{port}/api: Connection refused; is it running? "
        "(tried 3 times)"
    )


def test_a_host_without_an_address(wire) -> None:
    with pytest.raises(AgentFailed) as caught:
        send(wire, "http://agent.invalid")
    text = str(caught.value)
    assert text.startswith("cannot connect to nao server at http://agent.invalid/api: ")
    assert "is it running? (tried 3 times)" in text


@pytest.mark.parametrize("url", ["localhost:5005", "ftp://x/y", "http://", "http://[::1"])
def test_no_url(wire, url: str) -> None:
    with pytest.raises(AgentFailed, match="is not a URL that can be called"):
        wire.send("GET", url, service="nao server")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            http(200, "<html><head><title>Sign in</title></head></html>", {"Content-Type": "text/html"}),
            "nao server answered HTTP 200 with an HTML page ('Sign in'), JSON was expected: is SERVER/api "
            "the API's URL, or does a proxy or login page stand before it?",
        ),
        (http(200, ""), "nao server answered HTTP 200 with an empty body, JSON was expected"),
        (
            http(200, '{"text": "abc'),
            'nao server answered HTTP 200 with a body that is not JSON (application/json): \'{"text": "abc\'',
        ),
    ],
)
def test_a_body_that_is_not_json(raw, wire, answer: bytes, text: str) -> None:
    raw.says(answer)
    with pytest.raises(AgentFailed) as caught:
        send(wire, raw.url).json()
    assert str(caught.value) == text.replace("SERVER", raw.url)
    assert len(caught.value.answer.wire_attempts) == 1


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (http(404, "<!doctype html><h1>Not &amp; found</h1>"), "HTTP 404: an HTML page ('Not & found')"),
        (http(404, "nothing here\nat all"), "HTTP 404: nothing here at all"),
        (http(404, ""), "HTTP 404"),
        (http(404, {"errors": [{"message": "deep"}]}), "HTTP 404: deep"),
        (http(404, {"code": 7}), 'HTTP 404: {"code": 7}'),
        (http(302, "", {"Location": "/login?next=1"}), "HTTP 302: redirected to /login"),
    ],
)
def test_what_the_other_side_said(raw, wire, answer: bytes, text: str) -> None:
    raw.says(answer)
    reply = send(wire, f"{raw.url}?key=S3CRET")
    place = f" at {reply.url.partition('?')[0]}" if reply.status == 404 else ""
    assert str(reply.failure()) == f"nao server answered {text}{place}"
    assert "S3CRET" not in place


def test_a_field_that_a_service_does_not_find_is_named(raw, wire) -> None:
    missing = {"type": "missing", "loc": ["body", "question"], "msg": "Field required"}
    raw.says(http(422, {"detail": [missing]}))
    assert str(send(wire, raw.url).failure()) == "nao server answered HTTP 422: Field required: body.question"


def test_gzip_is_understood_and_broken_gzip_named(raw, wire) -> None:
    packed = gzip.compress(b'{"ok": 2}')
    raw.says(http(200, packed, {"Content-Encoding": "gzip"}))
    assert send(wire, raw.url).json() == {"ok": 2}
    raw.says(then=http(200, b"not gzip", {"Content-Encoding": "gzip"}))
    with pytest.raises(AgentFailed, match="a body that its Content-Encoding does not describe"):
        send(wire, raw.url)


def test_no_secret_in_errors_or_records(raw) -> None:
    wire = HttpClient(retries=0, redact=lambda text: text.replace("S3CRET", "***"))
    raw.says(http(403, {"error": "token S3CRET is not allowed"}))
    reply = wire.send("GET", f"{raw.url.replace('//', '//me:S3CRET@')}/x?key=S3CRET", service="server")
    error = reply.failure()
    assert str(error) == "server answered HTTP 403: token *** is not allowed"
    assert "S3CRET" not in repr(error.answer)
    assert reply.attempts[0].error == "HTTP 403: token *** is not allowed"
    wire.close()


def test_after_429_the_endpoint_is_spared_by_all_threads(raw) -> None:
    wire = HttpClient(retries=2, first_pause=0.02)
    raw.says(http(429, {}, {"Retry-After": "0.5"}), then=OK)
    send(wire, raw.url)
    raw.times.clear()
    threads = [threading.Thread(target=send, args=(wire, raw.url)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wire.close()
    assert raw.times[-1] - raw.times[0] >= 0.15  # gaps of about 0.08, 0.06, 0.05


def test_a_turn_past_the_deadline_is_an_error_at_once(raw) -> None:
    wire = HttpClient(retries=0)
    raw.says(then=http(429, {}, {"Retry-After": "30"}))
    send(wire, raw.url)
    with pytest.raises(AgentFailed, match=r"\(429\) and asked for a pause that ends in (30|29) s, after the"):
        send(wire, raw.url, seconds=1)
    wire.close()


def test_a_turn_that_other_calls_take_is_an_error_at_once(raw) -> None:
    wire = HttpClient(retries=0)
    raw.says(then=http(429, {}, {"Retry-After": "5"}))
    send(wire, raw.url)
    with pytest.raises(AgentFailed, match=r"is limiting the rate \(429\), and this request's turn"):
        send(wire, raw.url, seconds=1)
    wire.close()


def test_the_limiter_doubles_its_gap_and_forgets_it() -> None:
    limiter = RateLimiter()
    assert limiter.gap == 0
    limiter.slow_down(0)
    assert limiter.gap == 0.1
    limiter.slow_down(0)
    assert limiter.gap == 0.2
    for _ in range(20):
        limiter.slow_down(0)
    assert limiter.gap == 10
    for _ in range(40):
        limiter.speed_up()
    assert limiter.gap == 0


def test_abort_ends_calls_under_way_and_pauses(raw) -> None:
    for step in (raw.hang, http(503, {}, {"Retry-After": "20"})):
        wire = HttpClient()
        raw.says(then=step)
        errors: list[BaseException] = []

        def ask(wire: HttpClient = wire, errors: list[BaseException] = errors) -> None:
            try:
                send(wire, raw.url, seconds=25)
            except AgentFailed as error:
                errors.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        time.sleep(0.4)
        began = time.monotonic()
        wire.abort()
        thread.join(5)
        assert time.monotonic() - began < 1
        assert str(errors[0]) == "the run was stopped while nao server was being asked"
        with pytest.raises(AgentFailed, match="the run was stopped"):
            send(wire, raw.url)
        wire.close()


def test_a_proxy_of_the_environment_is_used(raw, wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", raw.url.replace("//", "//me:proxy-pass@"))
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")
    raw.says(then=OK)
    assert wire.send("GET", "http://agent.invalid/x", service="server").json() == {"ok": 1}
    assert raw.requests[0][0] == "GET http://agent.invalid/x HTTP/1.1"
    assert raw.requests[0][1]["proxy-authorization"].startswith("Basic ")
    send(wire, raw.url)  # loopback never goes through a proxy
    assert raw.requests[1][0] == "POST /api?key=hidden HTTP/1.1"
    monkeypatch.setenv("http_proxy", "socks5://127.0.0.1:1")
    with pytest.raises(AgentFailed, match="socks5 proxies cannot be used, only http and https ones"):
        wire.send("GET", "http://agent.invalid/x", service="server")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "soon"}, None),
        (
            {"retry-after": "Mon, 30 Nov 2026 12:00:30 GMT", "date": "Mon, 30 Nov 2026 12:00:00 GMT"},
            30.0,
        ),
        ({"retry-after": "Mon, 30 Nov 2020 12:00:30 GMT"}, 0.0),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_httpx_is_not_imported_before_the_first_request() -> None:
    code = (
        "import sys; from pytest_agenteval.llm.http_client import HttpClient; HttpClient(); "
        "print([m for m in ('httpx', 'httpcore', 'anyio') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_a_wire_that_nobody_closes_leaves_no_socket_open(raw) -> None:
    raw.says(OK)
    code = (
        "import sys, gc; from pytest_agenteval.llm.http_client import HttpClient\n"
        "def ask(): HttpClient().send('GET', sys.argv[1], service='server')\n"
        "ask(); gc.collect(); kept = HttpClient(); kept.send('GET', sys.argv[1], service='server')\n"
    )
    raw.says(then=OK)
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", code, raw.url]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
