"""Reference tables, run once per run: shared by workers through files, by attempts through memory."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from pytest_agenteval.databases.snapshots import locked
from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.support.files import write_atomic
from pytest_agenteval.support.json_codec import NotExact, pack, unpack
from pytest_agenteval.support.private import sealed, unsealed
from pytest_agenteval.table import Column, Table

_KEPT_CELLS = 5_000_000
"""Cells kept in this process's memory; the files hold all."""

_ARROW, _JSON, _ERROR = b"A", b"J", b"E"
"""First byte of a file: how the rest is written. Files of another form (of version 0.1) are written anew."""


class ReferenceCache:
    """Results of reference queries by key; an error is a result, too.

    ``folder`` (``None``: memory only) is shared by all processes of a run: the first one that needs a
    key runs the query under a lock, the others wait for its file. With a ``key`` the files carry its
    code; one without it, which another program has written, is run again.
    """

    def __init__(self, folder: Path | None, key: bytes | None = None) -> None:
        self._folder = folder
        self._key = key
        self._memory: OrderedDict[str, Table | str] = OrderedDict()
        self._cells = 0
        self._guard = threading.Lock()
        self._turns: dict[str, threading.RLock] = {}

    def get(self, key: str, run: Callable[[], Table], *, shared: bool) -> Table:
        """Return the table for ``key``, from memory, a file or ``run``. Raises its ``DatabaseError``."""
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
        """Return one thread at a time per key, so that none runs what another is running."""
        with self._guard:
            return self._turns.setdefault(key, threading.RLock())

    def _from_files(self, key: str, run: Callable[[], Table]) -> Table | str:
        assert self._folder is not None
        name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        path = self._folder / f"{name}.table"
        found = _read(path, self._key)
        if found is None:
            with locked(self._folder / f"{name}.lock"):
                found = _read(path, self._key)
                if found is None:
                    found = _attempt(run)
                    _write(path, found, self._key)
        return found

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


def _write(path: Path, found: Table | str, key: bytes | None) -> None:
    """Write the file at once or not at all; a value without an exact form stays in this process."""
    with contextlib.suppress(NotExact):
        write_atomic(path, sealed(dump(found), key))


def _read(path: Path, key: bytes | None) -> Table | str | None:
    """Return what the file holds, None where there is none yet, or none of this run."""
    try:
        data = unsealed(path.read_bytes(), key)
        return None if data is None else load(data)
    except FileNotFoundError:
        return None


def dump(found: Table | str) -> bytes:
    """Return a table, exactly, or an error's text as bytes.

    Arrow columns as Arrow, all others as JSON: a file must never be able to run code (pickle can).
    Raises ``NotExact`` for a value of a type that has no exact form.
    """
    if isinstance(found, str):
        return _ERROR + json.dumps(found).encode()
    if not found.values or not all(hasattr(data, "to_pylist") for data in found.values):
        return _JSON + json.dumps(pack(found, exact=True), separators=(",", ":")).encode()
    import pyarrow

    head = {"columns": [[column.name, column.type] for column in found.columns], "rows": found.row_count}
    frame = pyarrow.table(list(found.values), names=[str(number) for number in range(len(found.columns))])
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, frame.schema) as writer:
        writer.write_table(frame)
    return _ARROW + json.dumps(head).encode() + b"\n" + bytes(sink.getvalue())


def load(data: bytes) -> Table | str | None:
    """Return what :func:`dump` made ``data`` from; None for bytes of another form."""
    if data[:1] == _ERROR:
        return str(json.loads(data[1:]))
    if data[:1] == _JSON:
        table: Table = unpack(*json.loads(data[1:]))
        return table
    if data[:1] != _ARROW:
        return None
    import pyarrow

    line, _, body = data[1:].partition(b"\n")
    head = json.loads(line)
    with pyarrow.ipc.open_stream(body) as reader:
        values = tuple(reader.read_all().columns)
    return Table(tuple(Column(name, kind) for name, kind in head["columns"]), values, head["rows"])


def _cells(found: Table | str) -> int:
    return 1 if isinstance(found, str) else found.row_count * max(1, len(found.columns))
