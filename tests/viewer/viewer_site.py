"""A viewer over real HTTP, for tests."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from pytest_agenteval.results.document.load import read_document
from pytest_agenteval.viewer.server import Binding, make_server


class Site:
    """A viewer that runs, and plain requests to it: paths go out as they are written."""

    def __init__(self, binding: Binding) -> None:
        self.port = binding.access.port
        self.access = binding.access
        self.host = f"127.0.0.1:{self.port}"

    def ask(
        self, path: str, *, method: str = "GET", body: str | None = None, **headers: str | None
    ) -> tuple[int, dict[str, str], str]:
        """(status, headers, text); a header given as ``None`` is not sent."""
        wanted = {"Host": self.host, **{name.replace("_", "-"): value for name, value in headers.items()}}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in wanted.items():
                if value is not None:
                    connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Type", "application/x-www-form-urlencoded")
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body.encode() if body is not None else None)
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, text
        finally:
            connection.close()

    def post(self, path: str, form: dict[str, str], **headers: str | None) -> tuple[int, dict[str, str], str]:
        """A form."""
        return self.ask(path, method="POST", body=urlencode(form), **headers)


@contextmanager
def site_of(folder: Path, root: Path, binding: Binding) -> Iterator[Site]:
    server = make_server(folder, root, binding)
    thread = threading.Thread(target=server.run, kwargs={"sockets": list(binding.sockets)})
    thread.start()
    try:
        yield Site(binding)
    finally:
        server.should_exit = True
        thread.join(20)


def number_of(source: Path, name: str, model: str = "demo:hasty", attempt: int = 1) -> int:
    """The number of an attempt in the viewer."""
    rows = read_document(source).rows
    return next(n for n, r in enumerate(rows, 1) if (r.name, r.model, r.attempt) == (name, model, attempt))
