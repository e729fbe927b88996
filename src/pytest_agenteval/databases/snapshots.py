"""Copies of database files: one snapshot per run and file, fresh ones per isolated attempt."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_agenteval.databases import file_copy as copier
from pytest_agenteval.databases.sources import DatabaseSource
from pytest_agenteval.errors import DatabaseError


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A copy of a database file: its path and the sha256 of what was copied (file and log)."""

    path: Path
    digest: str
    copied: str = ""
    """The sha256 of the copy itself: what was copied with its log folded in."""


class Snapshots:
    """The snapshots of one run, in ``folder``; every process of the run uses the same folder.

    ``limit`` is in bytes (file and log): above it no snapshot is taken.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self.limit = limit
        self._known: dict[tuple[Path, str], Snapshot] = {}
        self._seen: dict[Snapshot, tuple[int, ...]] = {}

    def of(self, source: DatabaseSource, *, fresh: bool = False) -> Snapshot | None:
        """Return the snapshot of ``source``'s file, taken on first need; ``None`` above the limit.

        ``fresh``: the file may be rewritten between uses, so a changed file gives a new snapshot.
        Raises ``DatabaseError`` when the file is missing, unreadable or held by another process.
        """
        assert source.path is not None
        known = self._known.get((source.path, ""))
        if known is not None and not fresh:
            return known
        path = source.path.resolve()
        state = copier.stamp(str(path), source.kind)
        key = (source.path, json.dumps(state) if fresh else "")
        if key in self._known:
            return self._known[key]
        if sum(entry[0] for entry in state if entry) > self.limit:
            return None
        self._known[key] = self._shared(source, path, key[1])
        return self._known[key]

    def _shared(self, source: DatabaseSource, path: Path, stamp: str) -> Snapshot:
        """Return taken by the first process of the run; the others wait for it."""
        assert source.path is not None
        file = source.path.name
        name = hashlib.sha256(f"{path}\0{file}\0{stamp}".encode()).hexdigest()[:16]
        home = self.folder / name
        done = home / "snapshot.json"
        with locked(self.folder / f"{name}.lock"):
            if not done.exists():
                _require_file(source, path)
                _register(self.folder)
                partial = self.folder / f"{name}.{os.getpid()}.part"
                (partial / "data").mkdir(mode=0o700, parents=True, exist_ok=True)
                os.chmod(partial, 0o700)
                try:
                    # under its own name: DuckDB calls the catalog after the file (shop.main.orders)
                    taken = copy_file(source, path, partial / "data" / file, _pids(self.folder))
                    (partial / done.name).write_text(json.dumps(taken), encoding="utf-8")
                    os.chmod(partial / "data" / file, 0o400)
                    partial.replace(home)
                finally:
                    shutil.rmtree(partial, ignore_errors=True)
            taken = json.loads(done.read_text(encoding="utf-8"))
        return Snapshot(home / "data" / file, taken["digest"], taken["copied"])

    def require_unchanged(self, snapshot: Snapshot, source: DatabaseSource) -> None:
        """Refuse a copy that was changed since it was taken: references would be those of who did.

        Looks at the file again whenever its status changed (``os.stat``). Raises ``DatabaseError``.
        """
        try:
            state = os.stat(snapshot.path)
            stamp = (state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)
            if self._seen.get(snapshot) == stamp:
                return
            digest = copier.digest_of(str(snapshot.path))
        except OSError as error:
            raise DatabaseError(f"{source.where}: the copy of the data is gone: {error.strerror}") from error
        if digest != snapshot.copied:
            raise DatabaseError(
                f"{source.where}: the copy of the data was changed while the run went on (a program that was "
                "tested may have done it); references cannot be trusted from here on"
            )
        self._seen[snapshot] = stamp


class Isolated:
    """Fresh copies of databases for one attempt: ``urls`` by name, gone after ``close``."""

    def __init__(self, urls: Mapping[str, str], folder: Path, originals: tuple[DatabaseSource, ...]) -> None:
        self.urls = dict(urls)
        self._folder = folder
        self._originals = originals
        self._before = [_stamp(source) for source in originals]

    def changed(self) -> tuple[str, ...]:
        """Return names of databases whose original file changed since the copies were made (``os.stat``
        only).
        """
        pairs = zip(self._originals, self._before, strict=True)
        return tuple(source.name for source, before in pairs if _stamp(source) != before)

    def close(self) -> None:
        """Remove the copies."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Isolated:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def isolated(sources: Mapping[str, tuple[DatabaseSource, Snapshot]], folder: Path) -> Isolated:
    """Return a fresh, writable copy of each snapshot, below ``folder``, as URLs of the same kind."""
    home = folder / uuid.uuid4().hex[:12]
    home.mkdir(mode=0o700, parents=True)
    urls = {}
    for number, (name, (source, snapshot)) in enumerate(sources.items(), start=1):
        target = home / str(number) / snapshot.path.name
        target.parent.mkdir()
        copy_file(source, snapshot.path, target, [])
        urls[name] = f"{source.kind}:///{target}"
    return Isolated(urls, home, tuple(source for source, _ in sources.values()))


def copy_file(source: DatabaseSource, path: Path, target: Path, pids: list[int]) -> dict[str, Any]:
    """Have a child process copy ``path`` and its log to ``target``; returns what ``copier.copy`` does."""
    request = {"source": str(path), "target": str(target), "kind": source.kind, "pids": pids}
    command = [sys.executable, "-I", "-S", copier.__file__, json.dumps(request)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        answer = {"error": f"the copying process ended with {done.returncode}: {done.stderr.strip()[-500:]}"}
    if "error" in answer:
        why = str(answer["error"])
        full = os.strerror(errno.ENOSPC)
        if full in why:  # it names the file that was read
            why = f"{full} in {target.parent}, where copies are made"
        raise DatabaseError(f"{source.where}: no snapshot, {why}")
    return answer


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on ``path`` (made where missing); threads and processes wait for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _require_file(source: DatabaseSource, path: Path) -> None:
    if not path.exists():
        raise DatabaseError(
            f"{source.where}: no such file: {source.path}; build it first, or correct the URL "
            "(three slashes: relative to the project's root, four: absolute)"
        )
    if not path.is_file():
        raise DatabaseError(f"{source.where}: not a file: {source.path}")


def _stamp(source: DatabaseSource) -> list[list[int] | None]:
    return copier.stamp(str(source.path), source.kind)


def _register(folder: Path) -> None:
    """Register this process's run; under xdist the controller is its parent and started the other workers."""
    home = folder / "pids"
    home.mkdir(parents=True, exist_ok=True)
    own = [os.getpid()] + ([os.getppid()] if "PYTEST_XDIST_WORKER" in os.environ else [])
    for pid in own:
        (home / str(pid)).touch()


def _pids(folder: Path) -> list[int]:
    return [int(entry.name) for entry in (folder / "pids").iterdir() if entry.name.isdigit()]
