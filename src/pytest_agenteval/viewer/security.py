"""What stands between a browser and the viewer: who may ask, from where, and what the answer allows."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # not no-referrer: with it a browser hides the origin of our own forms
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
LARGEST_FORM = 256 * 1024


def new_token() -> str:
    """Return a random access token."""
    return secrets.token_urlsafe(24)


def is_loopback(host: str) -> bool:
    """Return whether a ``--host`` is reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Access:
    """Who may use a viewer on ``port``.

    ``host`` is what it is bound to beyond loopback (``None``: loopback alone); then ``token`` must be
    known. ``form_token`` goes with every change; none is made when ``read_only``.
    """

    port: int
    host: str | None = None
    token: str | None = None
    read_only: bool = False
    form_token: str = field(default_factory=new_token)

    def allows_host(self, header: str) -> bool:
        """Return whether a Host header is ours. A page of another site can have its name lead to us (DNS
        rebinding), but it cannot change the name in the header.
        """
        name, _, port = header.rpartition(":")
        if port != str(self.port) or not name:
            return False
        name = name.lower()
        if name in LOOPBACK:
            return True
        if self.host is None:
            return False
        if name == self.host.lower().rstrip(".") or name == socket.gethostname().lower():
            return True
        try:  # a number is not a name that could be led elsewhere
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return True

    @property
    def cookie(self) -> str:
        """The cookie that holds the token."""
        return f"agenteval_{self.port}"


class Guard:
    """ASGI middleware that refuses what :class:`Access` does not allow, and adds the headers."""

    def __init__(self, app: Any, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer, or pass on."""
        if scope["type"] != "http":
            return
        headers = _headers(scope["headers"])

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in HEADERS}
                kept = [(n, v) for n, v in message["headers"] if n.lower() not in own]
                message = {**message, "headers": [*kept, *HEADERS]}
            await send(message)

        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _answer(guarded, *refusal)
            return
        await self._app(scope, receive, guarded)

    def _refusal(self, scope: Any, headers: Mapping[str, list[str]]) -> tuple[int, str, Any] | None:
        access = self._access
        hosts = headers.get("host", [])
        if len(hosts) != 1 or not access.allows_host(hosts[0]):
            return 421, "This viewer does not answer to that host name.", ()
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "Only GET, HEAD and POST.", ()
        if access.token is not None:
            refused = self._without_token(scope, headers)
            if refused is not None:
                return refused
        if scope["method"] == "POST":
            if access.read_only:
                return 403, "This viewer is read-only.", ()
            if not _same_origin(headers, hosts[0]):
                return 403, "Changes are only made from the viewer's own pages.", ()
        return None

    def _without_token(self, scope: Any, headers: Mapping[str, list[str]]) -> tuple[int, str, Any] | None:
        access = self._access
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = query.pop("token", [""])[0]
        if _equal(given, access.token) and scope["method"] != "POST":
            rest = urlencode(query, doseq=True)
            place = scope["path"] if scope["path"].startswith("/") else "/"
            cookie = f"{access.cookie}={access.token}; HttpOnly; SameSite=Lax; Path=/"
            target = (_quoted(place) + (f"?{rest}" if rest else "")).encode("ascii")
            return 303, "", ((b"location", target), (b"set-cookie", cookie.encode()))
        if _equal(_cookie(headers.get("cookie", []), access.cookie), access.token):
            return None
        return 401, "Open the address with its token, as agenteval view printed it.", ()


def _quoted(path: str) -> str:
    """Return a path for a Location header: one slash in front, or it would name another host."""
    from urllib.parse import quote

    return "/" + quote(path.lstrip("/\\"), safe="/")


def _equal(given: str, wanted: str | None) -> bool:
    return hmac.compare_digest(given.encode(), (wanted or "").encode()) and bool(wanted)


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in raw:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _cookie(headers: Iterable[str], name: str) -> str:
    for header in headers:
        for part in header.split(";"):
            key, _, value = part.strip().partition("=")
            if key == name:
                return value
    return ""


def _same_origin(headers: Mapping[str, list[str]], host: str) -> bool:
    """Return whether a request comes from the viewer's own pages, as far as the browser says.

    Requests without these headers come from other programs and must carry the token.
    """
    origins = headers.get("origin", [])
    sites = headers.get("sec-fetch-site", [])
    return all(o == f"http://{host}" for o in origins) and all(s == "same-origin" for s in sites)


async def _answer(send: Any, status: int, text: str, headers: Any = ()) -> None:
    body = f"{text}\n".encode() if text else b""
    plain = ((b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": [*plain, *headers]})
    await send({"type": "http.response.body", "body": body})


async def read_form(receive: Any, access: Access, content_type: str) -> dict[str, str] | None:
    """Return the fields of a posted form; ``None``: too large, of another type, or without our token."""
    if content_type.partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        return None
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > LARGEST_FORM:
            return None
        if not message.get("more_body"):
            break
    try:
        fields = parse_qs(body.decode("ascii"), keep_blank_values=True, errors="replace")
    except ValueError:
        return None
    form = {name: values[-1] for name, values in fields.items()}
    return form if _equal(form.pop("form_token", ""), access.form_token) else None
