"""Services that tests may need, each a fixture: a PostgreSQL server of the tests' own.

``tests/conftest.py`` offers them to every test. A missing program is a skip that names it; TEST_REQUIRE
turns that skip into a failure.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

USER = "agenteval"


@dataclass(frozen=True)
class Postgres:
    """A running server on loopback, its data gone after the session."""

    port: int

    def url(self, database: str = "postgres", user: str = USER) -> str:
        """The SQLAlchemy URL of a database."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def run(self, sql: str, database: str = "postgres") -> None:
        """Run statements outside of a transaction."""
        import psycopg

        address = f"host=127.0.0.1 port={self.port} user={USER} dbname={database}"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(sql)  # type: ignore[call-overload]

    def create(self, database: str, sql: str = "") -> str:
        """A new database with what ``sql`` makes in it; returns its URL."""
        self.run(f'DROP DATABASE IF EXISTS "{database}"')
        self.run(f'CREATE DATABASE "{database}"')
        if sql:
            self.run(sql, database)
        return self.url(database)


def postgres_programs() -> Path | None:
    """The folder of ``initdb`` and ``postgres``: Debian keeps them out of PATH."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return versions[-1].parent if versions else None


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server of this session's own."""
    programs = postgres_programs()
    if programs is None:
        pytest.skip("needs PostgreSQL (initdb)")
    # the server refuses to run as root, so root lends it Debian's user
    account: dict[str, Any] = {}
    if os.getuid() == 0:
        account = {"user": "postgres", "group": "postgres", "extra_groups": []}
    with tempfile.TemporaryDirectory(prefix="agenteval-postgres-") as home:
        if account:
            shutil.chown(home, "postgres", "postgres")
        data = Path(home, "data")
        common: dict[str, Any] = {"cwd": home, "stdin": subprocess.DEVNULL, **account}
        subprocess.run(
            [programs / "initdb", "-D", data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "-N"],
            check=True, capture_output=True, timeout=120, **common,
        )  # fmt: skip
        port = free_port()
        options = ["-c", "fsync=off", "-c", "timezone=UTC", "-c", "shared_buffers=16MB"]
        with open(Path(home, "log"), "wb") as log:
            server = subprocess.Popen(
                [programs / "postgres", "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", home, *options],
                stdout=log, stderr=log, **common,
            )  # fmt: skip
        try:
            _wait_for(server, port, Path(home, "log"))
            yield Postgres(port)
        finally:
            server.send_signal(signal.SIGINT)
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def free_port() -> int:
    """A TCP port on loopback that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            Postgres(port).run("SELECT 1")
            return
        except OSError as error:
            problem: Exception = error
        except Exception as error:
            if type(error).__module__.partition(".")[0] != "psycopg":
                raise
            problem = error
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"PostgreSQL did not start: {problem}\n{log.read_text()[-2000:]}")
        time.sleep(0.1)


@dataclass(frozen=True)
class MariaDb:
    """A running MariaDB on loopback, its data gone after the session."""

    port: int

    def url(self, database: str = "test") -> str:
        """Return the SQLAlchemy URL of a database."""
        return f"mysql+pymysql://{USER}:mariapw1@127.0.0.1:{self.port}/{database}"

    def run(self, *statements: str) -> None:
        """Run statements, each committed."""
        import pymysql

        with (
            pymysql.connect(host="127.0.0.1", port=self.port, user=USER, password="mariapw1") as connection,
            connection.cursor() as cursor,
        ):
            for statement in statements:
                cursor.execute(statement)
            connection.commit()


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDb]:
    """A MariaDB server of this session's own."""
    programs = [shutil.which(name, path=PROGRAMS) for name in ("mariadb-install-db", "mariadbd")]
    if None in programs:
        pytest.skip("needs MariaDB (mariadbd)")
    install, server = (str(program) for program in programs)
    with tempfile.TemporaryDirectory(prefix="agenteval-mariadb-") as home:
        account: dict[str, Any] = {}
        if os.getuid() == 0:
            account = {"user": "mysql", "group": "mysql", "extra_groups": []}
            shutil.chown(home, "mysql", "mysql")
        common: dict[str, Any] = {"cwd": home, "stdin": subprocess.DEVNULL, **account}
        data = Path(home, "data")
        subprocess.run(
            [install, "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal",
             "--skip-test-db"],
            check=True, capture_output=True, timeout=120, **common,
        )  # fmt: skip
        port, start = free_port(), Path(home, "start.sql")
        start.write_text(
            f"CREATE DATABASE test;\nCREATE USER {USER}@'localhost' IDENTIFIED BY 'mariapw1';\n"
            f"GRANT ALL ON *.* TO {USER}@'localhost';\n",
            encoding="ascii",
        )
        start.chmod(0o644)
        options = [
            f"--datadir={data}", f"--port={port}", "--bind-address=127.0.0.1", f"--socket={home}/s",
            f"--pid-file={home}/pid", f"--init-file={start}", "--innodb-flush-log-at-trx-commit=0",
            "--innodb-buffer-pool-size=16M", "--skip-log-bin",
        ]  # fmt: skip
        with open(Path(home, "log"), "wb") as log:
            process = subprocess.Popen([server, "--no-defaults", *options], stdout=log, stderr=log, **common)
        try:
            _wait_for_mariadb(process, MariaDb(port), Path(home, "log"))
            yield MariaDb(port)
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


PROGRAMS = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])


def _wait_for_mariadb(process: subprocess.Popen[bytes], server: MariaDb, log: Path) -> None:
    import pymysql

    deadline = time.monotonic() + 60
    while True:
        try:
            server.run("SELECT 1")
            return
        except pymysql.err.Error as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"MariaDB did not start: {error}\n{log.read_text()[-2000:]}") from error
        time.sleep(0.1)
