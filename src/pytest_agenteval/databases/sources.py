"""What a database is before it is opened: a URL or a connection, its kind, its file, its dialect."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.support.redaction import url_without_secrets

Kind = Literal["duckdb", "sqlite", "server", "given"]

_URL = re.compile(r"(?P<scheme>[A-Za-z][\w.+-]*)://(?P<rest>.*)", re.DOTALL)

_SAME = (
    "athena bigquery clickhouse databricks doris drill duckdb hive mysql oracle presto redshift risingwave "
    "snowflake spark sqlite starrocks teradata trino"
)
_DIALECTS = dict(zip(_SAME.split(), _SAME.split(), strict=True)) | {
    "awsathena": "athena",
    "cockroachdb": "postgres",
    "mariadb": "mysql",
    "mssql": "tsql",
    "postgresql": "postgres",
}
"""SQLAlchemy backend -> sqlglot dialect; what is not here is read as plain SQL ('')."""

DRIVERS = {
    "athena": "PyAthena[SQLAlchemy]",
    "awsathena": "PyAthena[SQLAlchemy]",
    "bigquery": "sqlalchemy-bigquery",
    "clickhouse": "clickhouse-sqlalchemy",
    "databricks": "databricks-sqlalchemy",
    "mariadb": "PyMySQL",
    "mssql": "pyodbc",
    "mysql": "PyMySQL",
    "oracle": "oracledb",
    "postgresql": "psycopg[binary]",
    "redshift": "sqlalchemy-redshift redshift-connector",
    "snowflake": "snowflake-sqlalchemy",
    "trino": "trino[sqlalchemy]",
}
"""What to ``pip install`` for a SQLAlchemy backend."""


@dataclass(frozen=True, slots=True)
class DatabaseSource:
    """Where the data of one database comes from.

    ``url`` is what an agent is given (files are absolute); it may hold a password: messages show
    ``shown``, the URL as configured without one. ``path`` is the file
    behind it (``None`` for servers, ``:memory:`` and connections); ``dialect`` is sqlglot's name of
    the SQL it speaks ('' where sqlglot has none).
    """

    name: str
    kind: Kind
    dialect: str
    shown: str
    url: str | None = None
    path: Path | None = None
    connection: Any = None

    @property
    def where(self) -> str:
        """``database 'shop' (duckdb:///shop.duckdb)``: how messages begin."""
        return f"database {self.name!r} ({self.shown})"


def source_of(name: str, value: Any, root: Path) -> DatabaseSource:
    """Return the source behind what a project file, an ini line or a fixture gave for ``name``.

    Relative files are relative to ``root``. Raises ``DatabaseError`` for what is neither a URL nor a
    connection.
    """
    if isinstance(value, str):
        return _from_url(name, value.strip(), root)
    if isinstance(value, Path):
        scheme = "sqlite" if value.suffix in (".db", ".sqlite", ".sqlite3") else "duckdb"
        return _from_url(name, f"{scheme}:///{value}", root)
    return _from_connection(name, value)


def _from_url(name: str, url: str, root: Path) -> DatabaseSource:
    if url == ":memory:":
        url = "duckdb:///:memory:"
    match = _URL.fullmatch(url)
    if match is None:
        raise DatabaseError(
            f"database {name!r}: {url!r} is not a URL; write for example duckdb:///shop.duckdb, "
            "sqlite:///shop.db or postgresql://user@host/db"
        )
    scheme = match["scheme"].lower()
    backend = scheme.partition("+")[0]
    if backend in ("duckdb", "sqlite"):
        path = _file(match["rest"], root)
        # absolute: an agent's working directory need not be the root
        full = url if path is None else f"{scheme}:///{path}" + _query(match["rest"])
        return DatabaseSource(name, "duckdb" if backend == "duckdb" else "sqlite", backend, url, full, path)
    if backend == "postgres":
        backend, url = "postgresql", "postgresql" + url[len("postgres") :]
    return DatabaseSource(name, "server", _DIALECTS.get(backend, ""), url_without_secrets(url), url)


def dialects_of(urls: Mapping[str, str]) -> dict[str, str]:
    """Return the SQL of each database, by its URL: sqlglot's name, '' where that has none."""
    backends = {name: url.partition(":")[0].partition("+")[0].lower() for name, url in urls.items()}
    return {name: _DIALECTS.get(backend, "") for name, backend in backends.items()}


def _query(rest: str) -> str:
    return "".join(rest.partition("?")[1:])


def _file(rest: str, root: Path) -> Path | None:
    """Return the file of ``duckdb:///x`` (relative) or ``duckdb:////x`` (absolute), SQLAlchemy's way."""
    text = rest.partition("?")[0].removeprefix("/")
    return None if text in ("", ":memory:") else root / text


def _from_connection(name: str, value: Any) -> DatabaseSource:
    module = type(value).__module__.partition(".")[0].lstrip("_")
    if module == "duckdb" and hasattr(value, "cursor"):
        dialect = "duckdb"
    elif module == "sqlalchemy" and hasattr(value, "dialect"):
        backend = str(value.dialect.name)
        dialect = _DIALECTS.get(backend, "")
    elif callable(getattr(value, "cursor", None)):
        known = {"sqlite3": "sqlite", "psycopg": "postgres", "psycopg2": "postgres", "pymysql": "mysql"}
        dialect = known.get(module, "")
    else:
        raise DatabaseError(
            f"database {name!r}: {type(value).__module__}.{type(value).__qualname__} is neither a URL nor "
            "a connection; give a URL, a DuckDB or DB-API connection, or a SQLAlchemy engine or connection"
        )
    return DatabaseSource(name, "given", dialect, f"a {module} connection", connection=value)
