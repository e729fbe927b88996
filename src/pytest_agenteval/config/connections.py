"""``databases`` of a project file: nao's connection types as SQLAlchemy URLs."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from pytest_agenteval.errors import DatabaseError, SettingsError
from pytest_agenteval.support.text import did_you_mean

Fields = Mapping[str, Any]
"""The connection's own keys, environment references read."""


@dataclass(frozen=True, slots=True)
class Connection:
    """One database of a project file. ``place`` is ``file:line``; the URL is made when it is used."""

    name: str
    type: str
    place: str
    read: Callable[[], Fields] = field(repr=False)
    folder: Path

    @property
    def url(self) -> str:
        """The SQLAlchemy URL; relative files are relative to the project file.

        Raises ``SettingsError`` naming the place: a missing variable, a missing key, a way to
        connect that is not supported.
        """
        from pytest_agenteval.databases.sources import source_of

        given = self.read()
        fields = {name: value for name, value in given.items() if value not in (None, "")}
        if "url" in fields:
            try:
                source_of(self.name, str(fields["url"]), self.folder)
            except DatabaseError as wrong:
                raise SettingsError(f"{self.place}: {wrong}") from None
            return _anchored(str(fields["url"]), self.folder)
        if (unknown := check_type(self.type)) is not None:
            raise SettingsError(f"{self.place}: database {self.name!r}: {unknown}")
        if self.type in ("duckdb", "sqlite") and "path" in given and "path" not in fields:
            raise SettingsError(f"{self.place}: database {self.name!r}, {self.type}: its path is empty")
        try:
            return BUILDERS[self.type](fields, self.folder)
        except KeyError as missing:
            raise SettingsError(
                f"{self.place}: database {self.name!r} of type {self.type} needs {missing.args[0]!r}"
            ) from None
        except ValueError as wrong:
            raise SettingsError(f"{self.place}: database {self.name!r}: {wrong}") from None


def check_type(kind: str) -> str | None:
    """Return what is wrong with a connection type (``None``: it is known)."""
    if kind in BUILDERS:
        return None
    return f"unknown database type {kind!r}{did_you_mean(kind, BUILDERS)} (or give a url)"


def _anchored(url: str, folder: Path) -> str:
    """Return a URL whose relative file is relative to ``folder``."""
    for scheme in ("duckdb:///", "sqlite:///"):
        rest = url.removeprefix(scheme)
        if rest != url and rest and not rest.startswith(("/", ":")):
            return f"{scheme}{folder / rest}"
    return url


def _file(scheme: str, default: str | None = None) -> Callable[[Fields, Path], str]:
    def build(fields: Fields, folder: Path) -> str:
        path = str(fields["path"] if default is None else fields.get("path", default))
        return f"{scheme}:///{path if path == ':memory:' else (folder / Path(path).expanduser())}"

    return build


def _server(
    scheme: str, port: int, extra: Callable[[Fields], Mapping[str, Any]] = lambda fields: {}
) -> Callable[[Fields, Path], str]:
    """Return ``scheme://user:password@host:port/database?extra``."""

    def build(fields: Fields, folder: Path) -> str:
        if "ssh_tunnel" in fields:
            raise ValueError("ssh_tunnel is not supported here; open the tunnel and give host and port")
        if fields.get("auth_mode") not in (None, "password", "sql_password"):
            raise ValueError(f"auth_mode {fields['auth_mode']!r} is not supported here; give a url")
        address = f"{fields['host']}:{fields.get('port', port)}"
        database = fields.get("database", "")
        return f"{scheme}://{_login(fields)}{address}/{quote(str(database), safe='')}{_query(extra(fields))}"

    return build


def _login(fields: Fields, user_key: str = "user", password_key: str = "password") -> str:
    user, password = fields.get(user_key), fields.get(password_key)
    if user is None:
        return ""
    secret = "" if password is None else ":" + quote(str(password), safe="")
    return f"{quote(str(user), safe='')}{secret}@"


def _query(values: Mapping[str, Any]) -> str:
    given = {name: str(value) for name, value in values.items() if value not in (None, "")}
    return "?" + urlencode(given) if given else ""


def _postgres(fields: Fields) -> Mapping[str, Any]:
    schema = fields.get("schema_name")
    return {"sslmode": fields.get("sslmode"), "options": f"-csearch_path={schema}" if schema else None}


def _mssql(fields: Fields) -> Mapping[str, Any]:
    return {"driver": fields.get("driver", "ODBC Driver 18 for SQL Server")}


def _snowflake(fields: Fields, folder: Path) -> str:
    path = quote(str(fields["database"]), safe="")
    if "schema_name" in fields:
        path += "/" + quote(str(fields["schema_name"]), safe="")
    if "private_key" in fields:
        raise ValueError("private_key as text is not supported here; give private_key_path")
    key = fields.get("private_key_path")
    options = {
        "warehouse": fields.get("warehouse"),
        "role": fields.get("role"),
        "authenticator": fields.get("authenticator"),
        "token": fields.get("token"),
        "private_key_file": folder / Path(str(key)).expanduser() if key else None,
        "private_key_file_pwd": fields.get("passphrase") if key else None,
    }
    login = _login({"user": fields["username"], **fields})
    return f"snowflake://{login}{fields['account_id']}/{path}{_query(options)}"


def _bigquery(fields: Fields, folder: Path) -> str:
    path, inline = fields.get("credentials_path"), fields.get("credentials_json")
    if isinstance(inline, str):
        inline = json.loads(inline)
    options = {
        "location": fields.get("location"),
        "credentials_path": folder / Path(str(path)).expanduser() if path else None,
        "credentials_base64": base64.b64encode(json.dumps(inline).encode()).decode() if inline else None,
    }
    dataset = f"/{fields['dataset_id']}" if "dataset_id" in fields else ""
    return f"bigquery://{fields['project_id']}{dataset}{_query(options)}"


def _databricks(fields: Fields, folder: Path) -> str:
    options = {
        "http_path": fields["http_path"],
        "catalog": fields.get("catalog"),
        "schema": fields.get("schema_name"),
    }
    token = quote(str(fields["access_token"]), safe="")
    return f"databricks://token:{token}@{fields['server_hostname']}{_query(options)}"


def _clickhouse(fields: Fields, folder: Path) -> str:
    native = fields.get("protocol") == "native"
    secure = str(fields.get("secure", False)).lower() in ("true", "yes", "on", "1")
    port = (9440 if secure else 9000) if native else (8443 if secure else 8123)
    options = {"secure": "true"} if native and secure else {"protocol": "https"} if secure else {}
    scheme = f"clickhouse+{'native' if native else 'http'}"
    return _server(scheme, port, lambda _: options)(fields, folder)


def _trino(fields: Fields, folder: Path) -> str:
    path = quote(str(fields["catalog"]), safe="")
    if "schema_name" in fields:
        path += "/" + quote(str(fields["schema_name"]), safe="")
    options = {"access_token": fields.get("jwt_token"), "http_scheme": fields.get("http_scheme")}
    address = f"{fields['host']}:{fields.get('port', 8080)}"
    return f"trino://{_login({**fields, 'user': fields['user']})}{address}/{path}{_query(options)}"


def _athena(fields: Fields, folder: Path) -> str:
    keys = _login(fields, "aws_access_key_id", "aws_secret_access_key")
    schema = fields.get("schema_name", "default")
    options = {
        "s3_staging_dir": fields.get("s3_staging_dir"),
        "work_group": fields.get("work_group"),
        "profile_name": fields.get("profile_name"),
        "aws_session_token": fields.get("aws_session_token"),
    }
    return (
        f"awsathena+rest://{keys}athena.{fields['region_name']}.amazonaws.com:443/{schema}{_query(options)}"
    )


BUILDERS: Mapping[str, Callable[[Fields, Path], str]] = {
    # nao's own default; SQLite is not a type of nao's, and an empty one in memory is of no use
    "duckdb": _file("duckdb", ":memory:"),
    "sqlite": _file("sqlite"),
    "postgres": _server("postgresql", 5432, _postgres),
    "postgresql": _server("postgresql", 5432, _postgres),
    "redshift": _server("redshift+redshift_connector", 5439, lambda f: {"sslmode": f.get("sslmode")}),
    "mysql": _server("mysql+pymysql", 3306),
    "mariadb": _server("mariadb+pymysql", 3306),
    "starrocks": _server("mysql+pymysql", 9030),
    "mssql": _server("mssql+pyodbc", 1433, _mssql),
    "fabric": _server("mssql+pyodbc", 1433, _mssql),
    "snowflake": _snowflake,
    "bigquery": _bigquery,
    "databricks": _databricks,
    "clickhouse": _clickhouse,
    "trino": _trino,
    "athena": _athena,
}
"""Connection type -> its URL; a ``KeyError`` names a key that is missing."""
