from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable

Step = Callable[[socket.socket], None]


def http(status: int, body: str | bytes | dict | list = b"", headers: dict[str, str] | None = None) -> bytes:
    """A whole HTTP/1.1 answer."""
    if isinstance(body, dict | list):
        body = json.dumps(body)
    data = body.encode() if isinstance(body, str) else body
    lines = {"Content-Length": str(len(data)), "Content-Type": "application/json", **(headers or {})}
    head = f"HTTP/1.1 {status} X\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items()) + "\r\n"
    return head.encode() + data


class RawServer:
    """A loopback server that says exactly the bytes it is told to, one entry per request."""

    def __init__(self) -> None:
        self.script: list[bytes | Step] = []
        self.last: bytes | Step | None = None
        self.answers: Callable[[str, dict[str, str], bytes], bytes | Step] | None = None
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.times: list[float] = []
        self._stop = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def says(self, *script: bytes | Step, then: bytes | Step | None = None) -> None:
        self.script = list(script)
        self.last = then

    def bodies(self) -> list:
        return [json.loads(body) for _, _, body in self.requests if body]

    def _accept(self) -> None:
        while not self._stop.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            connection.settimeout(10)
            while not self._stop.is_set():
                try:
                    first = stream.readline().decode().strip()
                    if not first:
                        return
                    headers = {}
                    while line := stream.readline().decode().strip():
                        name, _, value = line.partition(":")
                        headers[name.lower()] = value.strip()
                    body = stream.read(int(headers.get("content-length", 0)))
                    self.times.append(time.monotonic())
                    self.requests.append((first, headers, body))
                    step = self.script.pop(0) if self.script else self.last
                    if self.answers is not None:
                        step = self.answers(first, headers, body)
                    if callable(step):
                        step(connection)
                        return
                    connection.sendall(step or http(404, {"error": "nothing scripted"}))
                except OSError:
                    return

    def drip(self, data: bytes, pause: float = 1.0) -> Step:
        def send(connection: socket.socket) -> None:
            for position in range(len(data)):
                connection.sendall(data[position : position + 1])
                if self._stop.wait(pause):
                    return

        return send

    def hang(self, connection: socket.socket) -> None:
        self._stop.wait(30)

    def close(self) -> None:
        self._stop.set()
        # a thread blocked in accept() is woken by a connection, not by closing the listener
        with socket.create_connection(self._listener.getsockname()):
            pass
        self._listener.close()
        for thread in self._threads:
            thread.join(2)
