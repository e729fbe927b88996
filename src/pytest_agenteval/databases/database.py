"""``Databases``: every database of a run by name, opened when first asked."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from pytest_agenteval.databases.duckdb_engine import DuckDBConnection, DuckDBFile
from pytest_agenteval.databases.reference_cache import ReferenceCache
from pytest_agenteval.databases.snapshots import Isolated, Snapshot, Snapshots, isolated
from pytest_agenteval.databases.sources import DatabaseSource, source_of
from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.support.text import did_you_mean
from pytest_agenteval.table import Table
from pytest_agenteval.types import DEFAULT_SNAPSHOT_LIMIT, DEFAULT_SQL_MAX_ROWS, DEFAULT_SQL_TIMEOUT


class _Engine(Protocol):
    def query(self, sql: str, timeout: float, max_rows: int) -> Table: ...
    def schema(self, timeout: float) -> dict[str, tuple[str, ...]]: ...
    def interrupt(self) -> None: ...
    def close(self) -> None: ...


class Databases:
    """The databases of one process of a run. Nothing is opened or copied before it is needed.

    Args:
        sources: name -> URL (``duckdb:///shop.duckdb``, ``sqlite:///x.db``, ``postgresql://...``,
            ``:memory:``), or a connection: DuckDB, DB-API, SQLAlchemy engine or connection.
        unusable: name -> why a configured database has no source; the error of the code that asks for it.
        folder: the run's folder, the same for all of its processes: snapshots, references, copies.
        root: relative files of URLs are relative to it.
        timeout: seconds a query may take.
        max_rows: rows a query may return.
        snapshot_limit: bytes up to which a file is copied before use.
        cached: references are run once; False for connections that live shorter than the session.
        shared: other processes of the run share the references through files in ``folder``; ``None``:
            where this is a worker of pytest-xdist.
        key: what those files are signed with; ``None``: they are not.

    Raises ``DatabaseError`` for a source that is neither a URL nor a connection.
    """

    def __init__(
        self,
        sources: Mapping[str, Any],
        unusable: Mapping[str, str] | None = None,
        *,
        folder: Path,
        root: Path,
        timeout: float = DEFAULT_SQL_TIMEOUT,
        max_rows: int = DEFAULT_SQL_MAX_ROWS,
        snapshot_limit: int = DEFAULT_SNAPSHOT_LIMIT,
        cached: bool = True,
        shared: bool | None = None,
        key: bytes | None = None,
    ) -> None:
        self.folder = folder / "databases"
        self.root = root
        self.timeout = timeout
        self.max_rows = max_rows
        self.snapshot_limit = snapshot_limit
        self.key = key
        snapshots = Snapshots(self.folder, snapshot_limit)
        self.shared = "PYTEST_XDIST_WORKER" in os.environ if shared is None else shared
        cache = ReferenceCache(self.folder / "references" if self.shared else None, key) if cached else None
        self._all = {
            str(name): Database(source_of(str(name), value, root), self, snapshots, cache)
            for name, value in sources.items()
        }
        self._snapshots = snapshots
        self.unusable = dict(unusable or {})

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order they were given; last those that are configured and cannot be used."""
        return (*self._all, *self.unusable)

    @property
    def urls(self) -> dict[str, str]:
        """Name -> URL, files absolute, for an agent's task; connections have none."""
        return {name: found.url for name, found in self._all.items() if found.url is not None}

    def get(self, name: str | None = None) -> Database:
        """Return the database ``name``; without a name the only one. Raises ``DatabaseError`` naming them."""
        if name is None and len(self.names) == 1:
            name = self.names[0]
        if name is None:
            known = ", ".join(self.names)
            known = (
                f"{known}; name one with `database`"
                if known
                else "none; set agenteval_databases (name = url)"
            )
            raise DatabaseError(f"which database? configured: {known}")
        if name in self.unusable:
            raise DatabaseError(self.unusable[name])
        if name not in self._all:
            raise DatabaseError(f"unknown database {name!r}{did_you_mean(name, self.names)}")
        return self._all[name]

    def with_given(self, given: Any, *, cached: bool) -> Databases:
        """Return the databases of a fixture, in place of these, with the same folder and limits.

        ``given``: a mapping like ``sources``, or one URL or connection (named ``default``). ``cached``
        is right for session-scoped fixtures only.
        """
        mapping = given if isinstance(given, Mapping) else {"default": given}
        return Databases(
            mapping,
            folder=self.folder.parent,
            root=self.root,
            timeout=self.timeout,
            max_rows=self.max_rows,
            snapshot_limit=self.snapshot_limit,
            cached=cached,
            shared=self.shared,
            key=self.key,
        )

    def prepare(self, names: Iterable[str] | None = None) -> None:
        """Take the snapshots of ``names`` (all) now, before an agent can write.

        Raises ``DatabaseError`` for the ``names`` given; without names, what fails is reported when it is
        asked for.
        """
        for name in self.names if names is None else names:
            with suppress(*([] if names is not None else [DatabaseError])):
                self.get(name).prepare()

    def isolate(self, database: str | None = None) -> Isolated:
        """Return fresh writable copies of every database that is a file, for one attempt;
        close it afterwards.

        Servers, connections and ``:memory:`` have no copy and no URL there. ``database`` (where there is
        but one, that) must have one: else ``DatabaseError``.
        """
        needed = [self.get(database)] if database is not None or len(self.names) == 1 else []
        files = [found for found in self._all.values() if found.has_file]
        chosen = dict.fromkeys([*needed, *files]) or dict.fromkeys(self._all.values())
        return isolated({found.name: found.for_copies() for found in chosen}, self.folder / "isolated")

    def interrupt(self) -> None:
        """End every query of a case that is running, from any thread."""
        for found in self._all.values():
            found.interrupt()

    def close(self) -> None:
        """Close every connection that was opened here. The files in the run's folder stay:
        others may need them.
        """
        for found in self._all.values():
            found.close()

    def __enter__(self) -> Databases:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Database:
    """One database: read-only queries, reference tables, schema, fingerprint."""

    def __init__(
        self, source: DatabaseSource, limits: Databases, snapshots: Snapshots, cache: ReferenceCache | None
    ) -> None:
        self.name = source.name
        self.dialect = source.dialect
        self.url = source.url
        self.shown = source.shown
        self._source = source
        self._limits = limits
        self._snapshots = snapshots
        self._cache = cache
        self._guard = threading.RLock()
        self._engine: _Engine | None = None
        self._opened: Snapshot | None = None

    def query(self, sql: str, timeout: float | None = None, max_rows: int | None = None) -> Table:
        """Run one SELECT (never cached). Raises ``DatabaseError`` saying what, where, what to do."""
        seconds = self._limits.timeout if timeout is None else timeout
        rows = self._limits.max_rows if max_rows is None else max_rows
        return self._open().query(sql, seconds, rows)

    def reference(self, sql: str) -> Table:
        """Return the table of a reference, run once per run and data. Raises ``DatabaseError``, also once."""
        if self._cache is None:
            return self.query(sql)
        shared = self._source.kind != "given" and not self._in_memory
        identity = self.fingerprint() or f"{self.name} {self._source.url}"
        return self._cache.get(f"{identity}\0{sql}", lambda: self.query(sql), shared=shared)

    def schema(self) -> dict[str, tuple[str, ...]]:
        """Return column names by ``schema.table``. Raises ``DatabaseError``."""
        return self._open().schema(self._limits.timeout)

    def fingerprint(self) -> str | None:
        """Return what data this is: the snapshot's digest, else the file's size and time;
        ``None``: not known.
        """
        if self._source.path is None:
            return None
        snapshot = self._snapshot()
        if snapshot is not None:
            return f"sha256:{snapshot.digest}"
        from pytest_agenteval.databases.file_copy import stamp

        states = [entry for entry in stamp(str(self._source.path), self._source.kind) if entry]
        return "stat:" + ",".join(f"{size}@{time}" for size, time, *_ in states)

    def prepare(self) -> None:
        """Take the snapshot of a file now. Raises ``DatabaseError``."""
        if self._source.path is not None:
            self._snapshot()

    def for_copies(self) -> tuple[DatabaseSource, Snapshot]:
        """Return what an isolated copy is made from. Raises ``DatabaseError`` where there is no snapshot."""
        if self._source.path is None:
            raise DatabaseError(
                f"{self._source.where}: isolate needs a DuckDB or SQLite file to copy for each attempt"
            )
        snapshot = self._snapshot()
        if snapshot is None:
            raise DatabaseError(
                f"{self._source.where}: isolate needs a snapshot, and the file is larger than "
                f"agenteval_snapshot_limit ({self._limits.snapshot_limit:,} bytes); raise it"
            )
        return self._source, snapshot

    def interrupt(self) -> None:
        """End what is running, from any thread."""
        if self._engine is not None:
            self._engine.interrupt()

    def close(self) -> None:
        """Close our connection; the next query opens it again."""
        with self._guard:
            if self._engine is not None:
                self._engine.close()
                self._engine = None

    @property
    def has_file(self) -> bool:
        """Whether a DuckDB or SQLite file is behind it, that can be copied."""
        return self._source.path is not None

    @property
    def file_size(self) -> int | None:
        """Bytes of the DuckDB or SQLite file behind it (``None``: there is no file)."""
        path = self._source.path
        return path.stat().st_size if path is not None and path.is_file() else None

    @property
    def _in_memory(self) -> bool:
        return self._source.kind in ("duckdb", "sqlite") and self._source.path is None

    def _snapshot(self) -> Snapshot | None:
        return self._snapshots.of(self._source, fresh=self._cache is None)

    def _open(self) -> _Engine:
        with self._guard:
            snapshot = self._snapshot() if self._source.path is not None else None
            if snapshot is not None:
                self._snapshots.require_unchanged(snapshot, self._source)
            if self._engine is None or snapshot != self._opened:
                self.close()
                self._engine, self._opened = self._engine_for(snapshot), snapshot
            return self._engine

    def _engine_for(self, snapshot: Snapshot | None) -> _Engine:
        source = self._source
        if source.kind == "given":
            return _given(source)
        path = snapshot.path if snapshot else source.path
        keep = snapshot is not None or source.path is None
        if source.kind == "duckdb":
            return DuckDBFile(path, source.where, keep=keep)
        from pytest_agenteval.databases.sqlalchemy_engine import open_source

        return open_source(source, path, keep=keep)


def _given(source: DatabaseSource) -> _Engine:
    if source.dialect == "duckdb" and not hasattr(source.connection, "dialect"):
        return DuckDBConnection(source.connection, source.where)
    from pytest_agenteval.databases import sqlalchemy_engine as alchemy

    if hasattr(source.connection, "exec_driver_sql"):
        return alchemy.SqlConnection(source)
    if hasattr(source.connection, "dialect"):
        return alchemy.SqlEngine(source.connection, source, ours=False)
    return alchemy.DbApiConnection(source)
