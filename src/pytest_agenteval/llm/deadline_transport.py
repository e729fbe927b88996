"""An httpx transport whose every socket operation ends at one moment: the call's deadline.

httpx knows a timeout per read only: a server that sends one byte per second never exceeds it. Here
each connect, read and write gets what is left until the deadline of the calling thread. Built on
httpcore's public ``NetworkBackend`` border; imported only when a request is about to be sent.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
import urllib.request
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import httpcore
import httpx

from pytest_agenteval.support import clock

CONNECTIONS = 256  # as many as --agent-concurrency may ask for; the endpoint's limiter does the pacing
WRITE_PIECE = 65_536
LOOPBACK = ("localhost", "::1")


class ThreadDeadline(threading.local):
    """The deadline of the calling thread, a ``time.monotonic()`` value."""

    deadline: float = float("inf")

    def left(self, timeout: float | None) -> float:
        """Return seconds left, at most ``timeout``; raises ``httpcore.ReadTimeout`` when there are none."""
        left = min(self.deadline - clock.monotonic(), float("inf") if timeout is None else timeout)
        if left <= 0:
            raise httpcore.ReadTimeout("deadline")
        return left


class DeadlineStream(httpcore.NetworkStream):
    """A connection whose reads and writes end at the deadline of the thread that uses it."""

    def __init__(self, inner: httpcore.NetworkStream, clock: ThreadDeadline) -> None:
        self._inner = inner
        self._clock = clock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read what has come, at most until the deadline."""
        return self._inner.read(max_bytes, self._clock.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write in pieces, each within what is left."""
        for start in range(0, len(buffer), WRITE_PIECE):
            self._inner.write(buffer[start : start + WRITE_PIECE], self._clock.left(timeout))

    def close(self) -> None:
        """Close the connection."""
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        """Return the same connection under TLS."""
        secured = self._inner.start_tls(ssl_context, server_hostname, self._clock.left(timeout))
        return DeadlineStream(secured, self._clock)

    def get_extra_info(self, info: str) -> Any:
        """Return what httpcore asks of a connection."""
        return self._inner.get_extra_info(info)


class DeadlineBackend(httpcore.NetworkBackend):
    """Opens connections that know the deadline, and can break all of them."""

    def __init__(self, clock: ThreadDeadline) -> None:
        self._inner = httpcore.SyncBackend()
        self._clock = clock
        self._lock = threading.Lock()
        self._open: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Try the host's addresses in turn; the deadline holds for all of them together."""
        options = list(socket_options or [])
        error: Exception | None = None
        for address in self._addresses(host, port):
            try:
                left = self._clock.left(timeout)
                stream = self._inner.connect_tcp(address, port, left, local_address, options)
            except httpcore.ConnectError as refused:
                error = refused
                continue
            with self._lock:
                self._open.add(stream.get_extra_info("socket"))
            return DeadlineStream(stream, self._clock)
        raise error or httpcore.ConnectError(f"no address for {host}")

    @staticmethod
    def _addresses(host: str, port: int) -> list[str]:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise httpcore.ConnectError(f"cannot resolve the host name {host!r}: {error}") from error
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    def sleep(self, seconds: float) -> None:
        """Sleep, as httpcore's interface asks (for its retries, which are off)."""
        time.sleep(seconds)

    def abort(self) -> None:
        """Break every open connection: reads in other threads return at once."""
        with self._lock:
            open_now = list(self._open)
        for sock in open_now:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


class _Body(httpx.SyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        yield from self._stream

    def close(self) -> None:
        self._stream.close()


class DeadlineTransport(httpx.BaseTransport):
    """httpx over httpcore pools with the deadline backend; proxies as the environment names them.

    What goes wrong on the wire is raised as httpcore's exceptions; ``wire`` turns them into texts.
    """

    def __init__(self) -> None:
        self.clock = ThreadDeadline()
        self.backend = DeadlineBackend(self.clock)
        self._lock = threading.Lock()
        self._pools: dict[str | None, httpcore.ConnectionPool] = {}
        self._tls: ssl.SSLContext | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; the body is read by the code that iterates over the response."""
        url = request.url
        target = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        sent = self._pool(url).handle_request(
            httpcore.Request(
                method=request.method,
                url=target,
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            sent.status, headers=sent.headers, stream=_Body(sent.stream), extensions=sent.extensions
        )

    def _pool(self, url: httpx.URL) -> httpcore.ConnectionPool:
        proxy = _proxy_for(url)
        with self._lock:
            if self._tls is None and (url.scheme == "https" or proxy):
                self._tls = httpx.create_ssl_context()
            key = proxy if self._tls is None else f"tls {proxy}"
            if key not in self._pools:
                self._pools[key] = self._new_pool(proxy)
            return self._pools[key]

    def _new_pool(self, proxy: str | None) -> httpcore.ConnectionPool:
        common: dict[str, Any] = {
            "ssl_context": self._tls,
            "max_connections": CONNECTIONS,
            "max_keepalive_connections": 20,
            "keepalive_expiry": 5.0,
            "network_backend": self.backend,
        }
        if proxy is None:
            return httpcore.ConnectionPool(**common)
        parts = httpx.URL(proxy)
        if parts.scheme not in ("http", "https"):
            raise httpcore.ProxyError(f"{parts.scheme} proxies cannot be used, only http and https ones")
        login = (parts.username, parts.password) if parts.username else None
        return httpcore.HTTPProxy(proxy_url=str(parts.copy_with(userinfo=b"")), proxy_auth=login, **common)

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.close()


def _proxy_for(url: httpx.URL) -> str | None:
    """Return the proxy that HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY name for ``url``;
    none for loopback.
    """
    if url.host in LOOPBACK or url.host.startswith("127.") or urllib.request.proxy_bypass(url.host):
        return None
    proxies = urllib.request.getproxies()
    found = proxies.get(url.scheme) or proxies.get("all")
    return found if found and "://" in found else f"http://{found}" if found else None
