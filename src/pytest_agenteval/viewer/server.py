"""Binding and running the viewer: loopback in both families, or one given host behind a token."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agenteval.errors import AgentEvalError
from pytest_agenteval.viewer.security import Access, is_loopback, new_token

if TYPE_CHECKING:
    from uvicorn import Server


class CannotServe(AgentEvalError):
    """The port is taken, the host is not ours, or the packages are missing."""


@dataclass(frozen=True, slots=True)
class Binding:
    """Sockets that are bound, and the address to open."""

    sockets: Sequence[socket.socket]
    access: Access
    url: str


def bind(port: int, host: str | None = None, read_only: bool | None = None) -> Binding:
    """Bind ``port`` (0: a free one) on 127.0.0.1 and [::1], or on ``host``.

    A host beyond loopback asks for a token, and is read-only unless ``read_only`` says otherwise.
    Raises ``CannotServe``.
    """
    if host is None or is_loopback(host):
        sockets = _bind_loopback(port)
        found = sockets[0].getsockname()[1]
        access = Access(found, read_only=bool(read_only))
        return Binding(sockets, access, f"http://127.0.0.1:{found}/")
    bound = _bind(host.strip("[]"), port)
    found = bound.getsockname()[1]
    token = new_token()
    shown = f"[{host.strip('[]')}]" if ":" in host else host
    if shown in ("0.0.0.0", "[::]"):
        shown = socket.gethostname()
    access = Access(found, shown, token, read_only is not False)
    return Binding([bound], access, f"http://{shown}:{found}/?token={token}")


def _bind_loopback(port: int) -> list[socket.socket]:
    first = _bind("127.0.0.1", port)
    try:
        return [first, _bind("::1", first.getsockname()[1])]
    except CannotServe:
        return [first]  # no IPv6 on this machine, or the port is taken there


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise CannotServe(f"--host {host}: {error}") from None
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
        bound.listen(128)
    except OSError as error:
        bound.close()
        raise CannotServe(f"cannot listen on {host} port {port}: {error}; choose another with -p") from None
    return bound


def make_server(folder: Path, root: Path, binding: Binding) -> Server:
    """Return the server for the results in ``folder``; ``run(sockets=...)`` starts it,
    ``should_exit`` ends it.

    Raises ``CannotServe`` without starlette and uvicorn.
    """
    try:
        import uvicorn

        from pytest_agenteval.viewer.app import make_app
    except ImportError as error:
        raise CannotServe(
            f"the viewer needs {error.name}: pip install 'agenteval-pytest[viewer]' "
            "(agenteval report FILE --html OUT needs neither)"
        ) from None
    config = uvicorn.Config(
        make_app(folder, root, binding.access),
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        http="h11",
        loop="asyncio",
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


def serve(folder: Path, root: Path, binding: Binding, started: Callable[[], object] | None = None) -> None:
    """Serve until interrupted; ``started`` is called when the sockets answer. Raises ``CannotServe``."""
    server = make_server(folder, root, binding)
    if started is not None:
        started()
    server.run(sockets=list(binding.sockets))
