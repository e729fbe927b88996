"""Copy a database file and its log, in a process of its own.

Run as a script with one JSON argument, ``Request``; prints one JSON object: ``{"digest", "size"}`` or
``{"error"}``. It exists because POSIX locks belong to a process: closing any descriptor of a file drops
all locks the process holds on it, so a process in which an agent may live must not even read the file.
Only the standard library, so that it starts in about 20 ms.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_CHUNK = 1 << 20
_SQLITE_SHARED = (0x40000002, 510)
"""Where SQLite locks: https://www.sqlite.org/src/file/src/os_unix.c (SHARED_FIRST, SHARED_SIZE)."""

_FLOCK = "hhqqi4x" if sys.platform == "linux" else "qqihh"
"""``struct flock``; Linux begins with the type, macOS and the BSDs with the start."""


_MAGIC = (("sqlite", 0, b"SQLite format 3\0"), ("duckdb", 8, b"DUCK"))
"""What a database file of each kind has at which byte."""


class CopyError(Exception):
    """The copy cannot be taken; the text says why and what to do."""


def kind_of(path: str) -> str | None:
    """Return the engine that wrote a file, by its first bytes; ``None``: not known."""
    with open(path, "rb") as file:
        start = file.read(16)
    return next((kind for kind, at, magic in _MAGIC if start[at : at + len(magic)] == magic), None)


def copy(
    source: str, target: str, kind: str, pids: list[int], tries: int = 5, patience: float = 5.0
) -> dict[str, Any]:
    """Copy ``source`` and its log to ``target``; returns the sha256 of both and the size in bytes.

    ``pids`` are the processes of this run: a lock they (or their children) hold does not stop the copy.
    Copied again when the files changed meanwhile, up to ``tries`` times. Raises ``CopyError``.
    """
    written = kind_of(source)
    if written not in (None, kind):
        named = {"sqlite": "SQLite", "duckdb": "DuckDB"}
        instead = f"write {written}:/// in place of {kind}:/// (or type: {written})"
        raise CopyError(f"this is a {named[written]} file; {instead}")
    for _ in range(tries):
        with _locked(source, kind, pids, patience):
            before = stamp(source, kind)
            digest, size = _copy_all(source, target, kind)
            if stamp(source, kind) == before:
                break
        time.sleep(0.05)
    else:
        raise CopyError(f"{source} changed {tries} times while it was copied; stop what writes to it")
    if kind == "sqlite":
        _fold_log(target)
    return {"digest": digest, "size": size, "copied": digest_of(target)}


def digest_of(path: str) -> str:
    """Return the sha256 of one file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def logs(path: str, kind: str) -> list[str]:
    """Return the files beside a database that hold changes not yet in it."""
    return [path + ".wal"] if kind == "duckdb" else [path + "-wal", path + "-journal"]


def stamp(path: str, kind: str) -> list[list[int] | None]:
    """Return size, mtime (ns) and inode of a database file and its logs, from ``os.stat`` alone."""
    found: list[list[int] | None] = []
    for name in [path, *logs(path, kind)]:
        try:
            state = os.stat(name)
        except FileNotFoundError:
            found.append(None)
        else:
            found.append([state.st_size, state.st_mtime_ns, state.st_ino, state.st_ctime_ns])
    return found


def _copy_all(source: str, target: str, kind: str) -> tuple[str, int]:
    digest = hashlib.sha256()
    size = _copy_one(source, target, digest)
    for log, copied in zip(logs(source, kind), logs(target, kind), strict=True):
        try:
            size += _copy_one(log, copied, digest)
        except FileNotFoundError:
            if os.path.exists(copied):
                os.remove(copied)
    return digest.hexdigest(), size


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _copy_one(source: str, target: str, digest: Any) -> int:
    size = 0
    with open(source, "rb") as read, open(target, "wb", opener=_private) as write:
        while chunk := read.read(_CHUNK):
            digest.update(chunk)
            write.write(chunk)
            size += len(chunk)
    return size


@contextmanager
def _locked(source: str, kind: str, pids: list[int], patience: float) -> Iterator[None]:
    """Hold a shared lock where the engine would; a writer outside this run is an error."""
    start, length = (0, 0) if kind == "duckdb" else _SQLITE_SHARED
    with open(source, "rb") as file:
        deadline = time.monotonic() + (patience if kind == "sqlite" else 0)
        while True:
            try:
                fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, length, start)
                break
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EAGAIN):
                    break  # a file system without locks: the stamps before and after must do
            pid = _holder(file.fileno(), start, length)
            if pid is None or of_this_run(pid, pids):
                break
            if time.monotonic() >= deadline:
                raise CopyError(f"{source} is held for writing by {described(pid)}; stop it or let it close")
            time.sleep(0.05)
        yield


def _holder(descriptor: int, start: int, length: int) -> int | None:
    """Return the process whose lock stands against a shared one (0: not visible from here)."""
    if sys.platform == "linux":
        ask = struct.pack(_FLOCK, fcntl.F_RDLCK, os.SEEK_SET, start, length, 0)
        kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, ask))
    else:
        ask = struct.pack(_FLOCK, start, length, 0, fcntl.F_RDLCK, os.SEEK_SET)
        _, _, pid, kind, _ = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, ask))
    return None if kind == fcntl.F_UNLCK else int(pid)


def of_this_run(pid: int, pids: list[int]) -> bool:
    """Return whether ``pid`` is one of ``pids`` or a descendant of one."""
    for _ in range(64):
        if pid in pids:
            return True
        if pid <= 1:
            return False
        pid = _parent(pid)
    return False


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def described(pid: int) -> str:
    """Return ``python3 (PID 400)``: the program's short name only, command lines may hold secrets."""
    if pid <= 0:
        return "a process that cannot be seen from here (another container?)"
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return f"{file.read().strip()} (PID {pid})"
    except OSError:
        return f"PID {pid}"


def _fold_log(target: str) -> None:
    """Put the log of a SQLite copy into the file, so that it opens read-only without side files."""
    import sqlite3

    connection = sqlite3.connect(target, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode=DELETE").fetchall()
    except sqlite3.DatabaseError as error:
        raise CopyError(f"cannot be read as a SQLite database: {error}") from error
    finally:
        connection.close()


def main(argument: str) -> dict[str, Any]:
    """Carry out one JSON request; every failure is an ``error`` in the answer."""
    request = json.loads(argument)
    try:
        return copy(request["source"], request["target"], request["kind"], request["pids"])
    except CopyError as error:
        return {"error": str(error)}
    except OSError as error:
        return {"error": f"{error.strerror or error}: {error.filename or request['source']}"}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
