"""SQLite files, Postgres and every other server, through SQLAlchemy; and connections of the user."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from pytest_agenteval.databases.column_types import postgres_types, sqlite_column, sqlite_types
from pytest_agenteval.databases.drivers import asynchronous, chosen_driver, driver_advice
from pytest_agenteval.databases.limits import (
    MAX_BYTES,
    failed,
    rows_within,
    time_limit,
    too_slow,
    type_of,
    within,
)
from pytest_agenteval.databases.postgres import keep_every_moment, type_names, volatile_functions
from pytest_agenteval.databases.select_only import bare, require_one_select
from pytest_agenteval.databases.sources import DatabaseSource
from pytest_agenteval.databases.sql_dangers import called_names
from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.support.scalars import plain_tree
from pytest_agenteval.table import Column, Table

_CONNECT_SECONDS = 15


class SqlEngine:
    """A SQLAlchemy engine: each query in a transaction of its own, rolled back.

    Postgres: the transaction is read-only with a statement timeout. SQLite: ``mode=ro``, no ATTACH.
    Elsewhere the parsed single SELECT is the only guard: use a role without write rights.
    """

    def __init__(self, engine: Any, source: DatabaseSource, *, keep: bool = True, ours: bool = True) -> None:
        self.dialect = source.dialect
        self._engine = engine
        self._where = source.where
        self._keep = keep
        self._ours = ours
        self._running: set[Any] = set()

    def query(self, sql: str, timeout: float, max_rows: int) -> Table:
        """Run one SELECT. Raises ``DatabaseError``."""
        require_one_select(sql, self.dialect, self._where)

        def body() -> Table:
            try:
                with self._transaction(timeout) as connection:
                    return self._run(connection.connection.dbapi_connection, sql, timeout, max_rows)
            finally:
                if self._ours and not self._keep:
                    self._engine.dispose()

        # SQLite's engine in memory has another database in every thread
        return body() if self._inline else within(timeout, self._where, body)

    @property
    def _inline(self) -> bool:
        return self.dialect == "sqlite" and not self._ours

    def schema(self, timeout: float) -> dict[str, tuple[str, ...]]:
        """Return column names by ``schema.table``, the database's own tables left out."""
        import sqlalchemy

        def body() -> dict[str, tuple[str, ...]]:
            with self._transaction(timeout) as connection:
                return _schema(sqlalchemy.inspect(connection))

        try:
            return body() if self._inline else within(timeout, self._where, body)
        except sqlalchemy.exc.SQLAlchemyError as error:
            raise failed(self._where, error) from error

    @contextmanager
    def _transaction(self, timeout: float) -> Iterator[Any]:
        import sqlalchemy

        try:
            connection = self._engine.connect()
            if self.dialect == "postgres" and not self._ours:
                # an engine of the user may be in autocommit, where nothing is read-only
                connection = connection.execution_options(isolation_level="READ COMMITTED")
        except (sqlalchemy.exc.SQLAlchemyError, OSError) as error:
            raise DatabaseError(f"{failed(self._where, error)}; is it running and may we connect?") from error
        with connection:
            if self.dialect == "mysql":
                _begin_reading(connection, timeout)
            if self.dialect == "postgres":
                connection.exec_driver_sql("SET TRANSACTION READ ONLY")
                connection.exec_driver_sql(f"SET LOCAL statement_timeout = {max(1, int(timeout * 1000))}")
            try:
                yield connection
            finally:
                _roll_back(connection)
                if self._ours:
                    _reset(connection, self.dialect)

    def _run(self, raw: Any, sql: str, timeout: float, max_rows: int) -> Table:
        end = interrupter(raw) or self._killer(raw)
        self._running.add(end)
        try:
            if self.dialect == "postgres":
                # a cursor of the server's: the driver must not load what the row limit refuses. The server
                # limits the time of each fetch, our interrupt that of all of them
                limits: dict[str, Any] = {"name": "agenteval", "grace": 2.0}
            else:
                limits = {"end": end}
            return execute(raw, sql, self._where, self.dialect, timeout, max_rows, **limits)
        finally:
            self._running.discard(end)

    def _killer(self, raw: Any) -> Callable[[], Any] | None:
        """Return what ends a running query of MySQL or MariaDB, by another connection."""
        if self.dialect != "mysql" or not callable(getattr(raw, "thread_id", None)):
            return None
        number = int(raw.thread_id())

        def kill() -> None:
            with suppress(Exception), self._engine.connect() as other:
                other.exec_driver_sql(f"KILL QUERY {number}")

        return kill

    def interrupt(self) -> None:
        """End what is running, from any thread, where the driver can."""
        for end in list(self._running):
            if end is not None:
                end()

    def close(self) -> None:
        """Close our engine's connections; the user's stay."""
        if self._ours:
            self._engine.dispose()


class _Given:
    """The user's connection: it is never closed and never ended from outside a query."""

    def __init__(self, source: DatabaseSource) -> None:
        self.dialect = source.dialect
        self._connection = source.connection
        self._where = source.where

    def interrupt(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class SqlConnection(_Given):
    """A SQLAlchemy connection of the user: used as it is, its open transaction left alone."""

    def query(self, sql: str, timeout: float, max_rows: int) -> Table:
        """Run one SELECT. Raises ``DatabaseError``."""
        require_one_select(sql, self.dialect, self._where)
        with self._left_alone():
            raw = self._connection.connection.dbapi_connection
            return execute(raw, sql, self._where, self.dialect, timeout, max_rows)

    def schema(self, timeout: float) -> dict[str, tuple[str, ...]]:
        """Return column names by ``schema.table``."""
        import sqlalchemy

        with self._left_alone():
            return _schema(sqlalchemy.inspect(self._connection))

    @contextmanager
    def _left_alone(self) -> Iterator[None]:
        begun = self._connection.in_transaction()
        try:
            yield
        finally:
            if not begun:
                self._connection.rollback()  # ends what SQLAlchemy knows of
                self._connection.connection.dbapi_connection.rollback()


class DbApiConnection(_Given):
    """A DB-API connection of the user: one cursor per query."""

    def query(self, sql: str, timeout: float, max_rows: int) -> Table:
        """Run one SELECT. Raises ``DatabaseError``."""
        require_one_select(sql, self.dialect, self._where)
        return execute(self._connection, sql, self._where, self.dialect, timeout, max_rows)

    def schema(self, timeout: float) -> dict[str, tuple[str, ...]]:
        """Return column names by ``schema.table`` (SQLite and what has an information_schema)."""
        from pytest_agenteval.databases.duckdb_engine import grouped

        sql = _SQLITE_SCHEMA if self.dialect == "sqlite" else _STANDARD_SCHEMA
        return grouped(self.query(sql, timeout, 10_000_000))


_SQLITE_SCHEMA = (
    "SELECT 'main', m.name, c.name FROM sqlite_master AS m, pragma_table_xinfo(m.name) AS c "
    "WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, c.cid"
)
_STANDARD_SCHEMA = (
    "SELECT table_schema, table_name, column_name FROM information_schema.columns "
    "WHERE table_schema NOT IN ('information_schema', 'pg_catalog') "
    "ORDER BY table_schema, table_name, ordinal_position"
)


def open_source(source: DatabaseSource, path: Path | None, *, keep: bool) -> SqlEngine:
    """Return an engine for a URL. ``path``: the SQLite file to open instead of the URL's (a snapshot).

    Raises ``DatabaseError`` naming the package when the driver is missing.
    """
    import sqlalchemy

    try:
        if source.kind == "sqlite":
            return SqlEngine(_sqlite_engine(path), source, keep=keep)
        url = sqlalchemy.make_url(str(source.url))
        instead = asynchronous(url.drivername)
        if instead is not None:
            raise DatabaseError(f"{source.where}: {instead}")
        url = url.set(drivername=chosen_driver(url.drivername))
        return SqlEngine(sqlalchemy.create_engine(url, **_server_options(url)), source)
    except (sqlalchemy.exc.NoSuchModuleError, ImportError) as error:
        name = str(source.url).partition(":")[0]
        backend = name.partition("+")[0]
        raise DatabaseError(
            f"{source.where}: no driver for {backend} ({error}); {driver_advice(name)}"
        ) from error
    except (sqlalchemy.exc.ArgumentError, ValueError) as error:
        raise DatabaseError(f"{source.where}: the URL cannot be read: {type(error).__name__}") from error


def _sqlite_engine(path: Path | None) -> Any:
    import sqlalchemy
    from sqlalchemy.pool import NullPool, StaticPool

    if path is None:
        return sqlalchemy.create_engine("sqlite://", poolclass=StaticPool)

    def connect() -> Any:
        import sqlite3
        from urllib.parse import quote

        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, check_same_thread=False)
        # mode=ro alone lets ATTACH create a file
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        # one value as long as all of a result may be; SQLite looks for an interrupt only between values
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_BYTES // 4)
        return connection

    return sqlalchemy.create_engine("sqlite://", creator=connect, poolclass=NullPool)


def _server_options(url: Any) -> dict[str, Any]:
    options: dict[str, Any] = {"pool_pre_ping": True, "pool_size": 2}
    if url.drivername in ("postgresql+psycopg", "postgresql+psycopg2") and "connect_timeout" not in url.query:
        options["connect_args"] = {"connect_timeout": _CONNECT_SECONDS}
    return options


def interrupter(connection: Any) -> Callable[[], Any] | None:
    """Return what ends a running query from another thread: sqlite3, psycopg;
    ``None`` where there is nothing.
    """
    for name in ("interrupt", "cancel_safe", "cancel"):
        method = getattr(connection, name, None)
        if callable(method):
            return method  # type: ignore[no-any-return]
    return None


def _begin_reading(connection: Any, timeout: float) -> None:
    """Begin a transaction of MySQL or MariaDB in which nothing can be written, with a limit of time.

    What speaks its protocol without having these (StarRocks, Doris) does without.
    """
    import sqlalchemy

    # MariaDB answers BENCHMARK with a value when its time is up: it ends after us, who call that late
    limit = (
        f"SET SESSION max_statement_time = {timeout + 0.5:g}"
        if getattr(connection.dialect, "is_mariadb", False)
        else f"SET SESSION max_execution_time = {max(1, int(timeout * 1000))}"
    )
    for statement in (limit, "START TRANSACTION READ ONLY"):
        with suppress(sqlalchemy.exc.SQLAlchemyError):
            connection.exec_driver_sql(statement)


def _reset(connection: Any, dialect: str) -> None:
    """Give up what a query may have left in the session: locks, settings, temporary tables."""
    if dialect not in ("postgres", "mysql") or connection.closed or connection.invalidated:
        return
    raw = connection.connection.dbapi_connection
    try:
        cursor = raw.cursor()
        if dialect == "mysql":
            cursor.execute("DO RELEASE_ALL_LOCKS()")
        else:
            raw.autocommit = True
            cursor.execute("DISCARD ALL")
            raw.autocommit = False
        cursor.close()
    except Exception:
        connection.invalidate()  # a server or a driver that has no such thing: the session ends instead


def _roll_back(connection: Any) -> None:
    """End the transaction; a connection that cannot even do that is thrown away."""
    import sqlalchemy

    try:
        connection.rollback()
    except sqlalchemy.exc.SQLAlchemyError:
        connection.invalidate()


def execute(
    raw: Any,
    sql: str,
    where: str,
    dialect: str,
    timeout: float,
    max_rows: int,
    name: str | None = None,
    grace: float = 0.0,
    end: Callable[[], Any] | None = None,
) -> Table:
    """Run ``sql`` as it stands on a DB-API connection, within the limits.

    No parameters are passed, so ``%`` and ``:name`` are text. ``name``: a cursor of the server's (Postgres
    drivers). ``grace``: seconds more before we interrupt, where the server keeps the time limit itself.
    ``end`` interrupts; else what the driver has for it does.
    Raises ``DatabaseError``.
    """
    with readable_text(raw), time_limit(timeout + grace, end or interrupter(raw)) as watch:
        try:
            if dialect == "postgres":
                _require_reading(raw, sql, where)
            cursor = raw.cursor(name=name) if name else raw.cursor()
            try:
                keep_every_moment(cursor)
                # a named cursor is "DECLARE ... FOR <sql>": a semicolon would end that
                cursor.execute(bare(sql, dialect))
                if cursor.description is None and not name:
                    raise DatabaseError(f"{where}: the statement returned no rows, not even their names")
                rows = rows_within(cursor.fetchmany, where, max_rows)
                table = read(cursor, rows, sql, where, dialect, raw)
                if watch.fired:
                    raise too_slow(where, timeout)
                return table
            finally:
                cursor.close()
        except DatabaseError:
            raise
        except Exception as error:
            # the errors of DB-API drivers have no common base class
            if watch.fired or any(words in str(error) for words in _ENDED):
                raise too_slow(where, timeout) from error
            raise failed(where, error) from error


def _require_reading(raw: Any, sql: str, where: str) -> None:
    """Refuse a call of a function that Postgres itself says may change something."""
    found = volatile_functions(raw, called_names(sql, "postgres"))
    if found:
        raise DatabaseError(
            f"{where}: refused, the statement holds {found[0]}(), which is VOLATILE: it may change "
            "something; declare a function that only reads STABLE"
        )


_ENDED = ("statement timeout", "max_statement_time exceeded", "maximum statement execution time exceeded")
"""What servers say where they have ended a query at its limit of time."""


@contextmanager
def readable_text(raw: Any) -> Iterator[None]:
    """Have sqlite3 give text that is not UTF-8 with U+FFFD for what cannot be read, where it would fail.

    A text_factory of the user's stays; ours is taken back.
    """
    if getattr(raw, "text_factory", None) is not str:
        yield
        return
    raw.text_factory = lambda data: data.decode("utf-8", "replace")
    try:
        yield
    finally:
        raw.text_factory = str


def read(cursor: Any, rows: Sequence[Any], sql: str, where: str, dialect: str, raw: Any) -> Table:
    """Return the fetched rows as a table, typed by the driver's description, never by inference over text."""
    names = [str(entry[0]) for entry in cursor.description]
    values = [[plain_tree(value) for value in column] for column in zip(*rows, strict=True)]
    values = values or [[] for _ in names]
    if dialect == "sqlite":
        declared = sqlite_types(raw, bare(sql, dialect), len(names))
        pairs = [sqlite_column(kind, data) for kind, data in zip(declared, values, strict=True)]
        return _table(names, [data for _, data in pairs], [kind for kind, _ in pairs], len(rows))
    if dialect in ("postgres", "redshift"):
        types = postgres_types(cursor.description, values, partial(type_names, raw))
    else:
        types = [type_of(data) for data in values]
    return _table(names, values, types, len(rows))


def _table(names: list[str], values: list[list[Any]], types: Sequence[str | None], count: int) -> Table:
    columns = tuple(Column(name, kind) for name, kind in zip(names, types, strict=True))
    return Table(columns, tuple(values), count)


def _schema(inspector: Any) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for schema in inspector.get_schema_names():
        if schema.lower() in ("information_schema", "pg_catalog", "sys", "performance_schema", "mysql"):
            continue
        for (owner, name), columns in inspector.get_multi_columns(schema=schema, kind=_everything()).items():
            found[f"{owner or schema}.{name}"] = tuple(column["name"] for column in columns)
    return dict(sorted(found.items()))


def _everything() -> Any:
    from sqlalchemy.engine.reflection import ObjectKind

    return ObjectKind.ANY
