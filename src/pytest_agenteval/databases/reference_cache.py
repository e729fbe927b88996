"""Reference tables, run once per run: shared by workers through files, by attempts through memory."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from pytest_agenteval.databases import codec as serial
from pytest_agenteval.databases.snapshots import locked
from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.support.files import write_atomic
from pytest_agenteval.table import Table

_KEPT_CELLS = 5_000_000
"""Cells kept in this process's memory; the files hold all."""

_OK, _ERROR = b"T", b"E"


class ReferenceCache:
    """Results of reference queries by key; an error is a result, too.

    ``folder`` (``None``: memory only) is shared by all processes of a run: the first one that needs a
    key runs the query under a lock, the others wait for its file.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._memory: OrderedDict[str, Table | str] = OrderedDict()
        self._cells = 0
        self._guard = threading.Lock()
        self._turns: dict[str, threading.RLock] = {}

    def get(self, key: str, run: Callable[[], Table], *, shared: bool) -> Table:
        """The table for ``key``, from memory, a file or ``run``. Raises its ``DatabaseError``."""
        with self._turn(key):
            with self._guard:
                found = self._memory.get(key)
            if found is None:
                found = self._from_files(key, run) if shared and self._folder is not None else _attempt(run)
                self._keep(key, found)
        if isinstance(found, str):
            raise DatabaseError(found)
        return found

    def _turn(self, key: str) -> threading.RLock:
        """One thread at a time per key, so that none runs what another is running."""
        with self._guard:
            return self._turns.setdefault(key, threading.RLock())

    def _from_files(self, key: str, run: Callable[[], Table]) -> Table | str:
        assert self._folder is not None
        name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        path = self._folder / f"{name}.table"
        if not path.exists():
            with locked(self._folder / f"{name}.lock"):
                if not path.exists():
                    found = _attempt(run)
                    _write(path, found)
                    return found
        data = path.read_bytes()
        return serial.load(data[1:]) if data[:1] == _OK else str(json.loads(data[1:]))

    def _keep(self, key: str, found: Table | str) -> None:
        with self._guard:
            self._memory[key] = found
            self._cells += _cells(found)
            while self._cells > _KEPT_CELLS and len(self._memory) > 1:
                self._cells -= _cells(self._memory.popitem(last=False)[1])


def _attempt(run: Callable[[], Table]) -> Table | str:
    try:
        return run()
    except DatabaseError as error:
        return str(error)


def _write(path: Path, found: Table | str) -> None:
    """Write the file at once or not at all; a value without an exact form stays in this process."""
    try:
        data = _ERROR + json.dumps(found).encode() if isinstance(found, str) else _OK + serial.dump(found)
    except serial.NotSerialisable:
        return
    write_atomic(path, data)


def _cells(found: Table | str) -> int:
    return 1 if isinstance(found, str) else found.row_count * max(1, len(found.columns))
