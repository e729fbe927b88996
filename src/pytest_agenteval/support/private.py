"""What a run keeps out of the working folder, where agents have their hands: copies of data, budgets, a key.

Everything lies in a folder of the user (``$XDG_STATE_HOME/agenteval``, else ``~/.local/state/agenteval``,
else one for temporary files), 0700, one folder per run.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

_KEPT = 30 * 24 * 3600
"""Seconds for which the key of an unfinished run is kept, so that it can be resumed."""

_KEY = "key"
_CODE = b',"code":"'
_DIGITS = 32


def private_folder(name: str) -> Path:
    """Return the folder of the run ``name`` (made where missing). Raises ``OSError``."""
    folder = _base() / hashlib.sha256(name.encode()).hexdigest()[:24]
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _base() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    for place in (Path(state) / "agenteval", Path(tempfile.gettempdir()) / f"agenteval-{os.getuid()}"):
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        if place.stat().st_uid == os.getuid() and os.access(place, os.W_OK | os.X_OK):
            return place
    raise PermissionError(f"no folder for what a run keeps to itself: {state}, {place} cannot be used")


def make_key(name: str) -> None:
    """Make the key by which the lines of the run ``name`` are signed."""
    place = private_folder(name) / _KEY
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
    with os.fdopen(descriptor, "wb") as file:
        file.write(secrets.token_bytes(32))


def key_of(name: str) -> bytes | None:
    """Return the key of the run ``name``; ``None`` where it is not known (of another machine, too old)."""
    try:
        return (private_folder(name) / _KEY).read_bytes() if name else None
    except OSError:
        return None


def remove_private(name: str) -> None:
    """Remove what the run ``name`` has kept."""
    if name:
        with suppress(OSError):
            shutil.rmtree(private_folder(name), ignore_errors=True)


def remove_old() -> None:
    """Remove the keys of runs that no one has resumed for a month."""
    with suppress(OSError):
        for folder in _base().iterdir():
            key = folder / _KEY
            if not key.exists() or time.time() - key.stat().st_mtime > _KEPT:
                _remove_if_idle(folder)


def _remove_if_idle(folder: Path) -> None:
    if time.time() - folder.stat().st_mtime > _KEPT:
        shutil.rmtree(folder, ignore_errors=True)


def signed(line: bytes, key: bytes) -> bytes:
    """Return a line of JSON (an object, with its line feed) with a code of ``key`` as its last entry."""
    body = line.rstrip(b"\n")[:-1]
    return body + _CODE + _code(body, key) + b'"}\n'


def is_signed(line: bytes, key: bytes) -> bool:
    """Return whether a line carries the code that ``key`` gives it."""
    body, mark, code = line.rpartition(_CODE)
    return bool(mark) and hmac.compare_digest(code, _code(body, key) + b'"}\n')


def sealed(data: bytes, key: bytes | None) -> bytes:
    """Return ``data`` with a code of ``key`` before it; as it is without a key."""
    return data if key is None else _code(data, key) + data


def unsealed(data: bytes, key: bytes | None) -> bytes | None:
    """Return the data of :func:`sealed`; ``None`` where the code is not that of ``key``."""
    if key is None:
        return data
    code, rest = data[:_DIGITS], data[_DIGITS:]
    return rest if hmac.compare_digest(code, _code(rest, key)) else None


def _code(body: bytes, key: bytes) -> bytes:
    return hmac.new(key, body, "sha256").hexdigest()[:_DIGITS].encode()
