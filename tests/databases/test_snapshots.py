"""Snapshots: the user's file is never touched where an agent may live."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import textwrap
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pytest_agenteval.databases import Databases
from pytest_agenteval.databases import file_copy as copier
from pytest_agenteval.databases.snapshots import locked
from pytest_agenteval.errors import DatabaseError

COUNT = "SELECT count(*) AS n FROM t"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS i FROM range(5)")
    return path


def opened(tmp_path: Path, url: str = "duckdb:///data.duckdb", **options: Any) -> Databases:
    return Databases({"data": url}, folder=tmp_path / "run", root=tmp_path, **options)


def count(databases: Databases) -> int:
    return int(databases.get().query(COUNT).column(0)[0])


def elsewhere(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Python in a process of its own that says "ready" and ends when its input does."""
    script = textwrap.dedent(code) + "\nprint('ready', flush=True)\nsys.stdin.read()\n"
    command = [sys.executable, "-c", "import sys\n" + script, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def ended(process: subprocess.Popen[str]) -> None:
    process.communicate(timeout=20)


HOLDER = "import duckdb; connection = duckdb.connect(sys.argv[1])"


def test_an_agent_in_this_process_keeps_its_lock_its_settings_and_its_writes(file: Path, tmp_path: Path):
    agent = duckdb.connect(str(file))
    agent.execute("SET threads = 1")
    databases = opened(tmp_path)
    assert count(databases) == 5
    agent.execute("INSERT INTO t VALUES (5)")
    agent.execute("CREATE TABLE own (a INTEGER)")
    agent.execute("COPY (SELECT 1) TO '" + str(tmp_path / "own.csv") + "'")
    assert count(databases) == 5
    assert databases.get().schema() == {"main.t": ("i",)}
    databases.close()
    assert agent.execute("SELECT current_setting('threads'), (SELECT count(*) FROM t)").fetchall() == [(1, 6)]
    other = subprocess.run(
        [sys.executable, "-c", "import duckdb, sys; duckdb.connect(sys.argv[1])", str(file)],
        capture_output=True,
        text=True,
    )
    assert f"(PID {os.getpid()})" in other.stderr
    agent.close()
    with duckdb.connect(str(file), read_only=True) as reader:
        assert reader.execute(COUNT).fetchall() == [(6,)]


def test_an_agent_may_come_after_the_snapshot(file: Path, tmp_path: Path):
    databases = opened(tmp_path)
    databases.prepare()
    with duckdb.connect(str(file)) as agent:
        agent.execute("DELETE FROM t")
    assert count(databases) == 5
    databases.close()


def test_the_file_is_as_it_was(file: Path, tmp_path: Path):
    before = (file.read_bytes(), file.stat().st_mtime_ns, sorted(p.name for p in tmp_path.iterdir()))
    with opened(tmp_path) as databases:
        count(databases)
        digest = hashlib.sha256(before[0]).hexdigest()
        assert databases.get().fingerprint() == f"sha256:{digest}"
    after = sorted(p.name for p in tmp_path.iterdir() if p.name != "run")
    assert (file.read_bytes(), file.stat().st_mtime_ns, after) == before


def test_a_write_ahead_log_is_copied_too(file: Path, tmp_path: Path):
    writer = duckdb.connect(str(file))
    writer.execute("SET wal_autocheckpoint = '1GB'")
    writer.execute("INSERT INTO t VALUES (5)")
    assert Path(f"{file}.wal").stat().st_size > 0
    with opened(tmp_path) as databases:
        assert count(databases) == 6
    writer.close()


def test_another_process_that_writes_is_named(file: Path, tmp_path: Path):
    holder = elsewhere(HOLDER, str(file))
    request = {"source": str(file), "target": str(tmp_path / "copy"), "kind": "duckdb", "pids": []}
    answer = copier.main(json.dumps(request))
    ended(holder)
    assert re.fullmatch(
        rf"{re.escape(str(file))} is held for writing by \S+ \(PID {holder.pid}\); stop it or let it close",
        answer["error"],
    )


def test_a_stranger_that_writes_is_an_error_of_the_database(file: Path, tmp_path: Path):
    ready = tmp_path / "ready"
    script = (
        "import duckdb, pathlib, sys, time; c = duckdb.connect(sys.argv[1]); "
        "pathlib.Path(sys.argv[2]).touch(); time.sleep(60)"
    )
    # a double fork: its parent is init, so it is nobody's child here
    middle = (
        "import subprocess, sys; "
        "print(subprocess.Popen([sys.executable, '-c', *sys.argv[1:]], stdout=subprocess.DEVNULL).pid)"
    )
    command = [sys.executable, "-c", middle, script, str(file), str(ready)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    pid = int(done.stdout)
    try:
        for _ in range(200):
            if ready.exists():
                break
            threading.Event().wait(0.05)
        with pytest.raises(DatabaseError) as caught:
            count(opened(tmp_path))
    finally:
        os.kill(pid, 9)
    assert str(caught.value).startswith("database 'data' (duckdb:///data.duckdb): no snapshot, ")
    assert "is held for writing by python" in str(caught.value)
    assert f"(PID {pid}); stop it or let it close" in str(caught.value)


def test_a_process_of_this_run_may_hold_the_file(file: Path, tmp_path: Path):
    holder = elsewhere(HOLDER, str(file))
    with opened(tmp_path) as databases:
        assert count(databases) == 5
    ended(holder)


def test_all_processes_of_a_run_share_one_snapshot(file: Path, tmp_path: Path):
    code = """
    from pathlib import Path
    from pytest_agenteval.databases import Databases
    root = Path(sys.argv[1])
    found = Databases({"data": "duckdb:///data.duckdb"}, folder=root / "run", root=root)
    found.prepare()
    """
    workers = [elsewhere(code, str(tmp_path)) for _ in range(3)]
    with opened(tmp_path) as databases:
        assert count(databases) == 5
    for worker in workers:
        ended(worker)
    assert len(list((tmp_path / "run" / "databases").glob("*/data/data.duckdb"))) == 1
    assert not list((tmp_path / "run" / "databases").glob("*.part"))


def test_threads_share_one_snapshot_and_read_at_once(file: Path, tmp_path: Path):
    databases = opened(tmp_path)
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(count(databases))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [5] * 8
    databases.close()


def test_above_the_limit_the_file_is_read_and_closed_again(file: Path, tmp_path: Path):
    databases = opened(tmp_path, snapshot_limit=100)
    assert count(databases) == 5
    assert not list((tmp_path / "run").rglob("data.duckdb"))
    assert re.fullmatch(r"stat:\d+@\d+", str(databases.get().fingerprint()))
    with pytest.raises(DatabaseError, match="disabled by configuration"):
        databases.get().query("FROM read_csv('x.csv')")
    with duckdb.connect(str(file)) as agent:  # nothing of ours is open any more
        agent.execute("INSERT INTO t VALUES (9)")
        with pytest.raises(DatabaseError) as caught:
            count(databases)
    assert "already open in this process with another configuration, and too large for a snapshot" in str(
        caught.value
    )
    assert "raise agenteval_snapshot_limit" in str(caught.value)
    assert count(databases) == 6
    with pytest.raises(DatabaseError, match=r"larger than agenteval_snapshot_limit \(100 bytes\); raise it"):
        databases.isolate()


def test_above_the_limit_sqlite_too(tmp_path: Path):
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("CREATE TABLE t (i INTEGER)")
    connection.close()
    databases = opened(tmp_path, "sqlite:///x.db", snapshot_limit=0)
    assert count(databases) == 0
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("INSERT INTO t VALUES (1)")
    connection.close()
    assert count(databases) == 1


def test_isolated_copies_are_fresh_and_writable(file: Path, tmp_path: Path):
    databases = opened(tmp_path)
    for _ in range(2):
        with databases.isolate() as copies:
            path = copies.urls["data"].removeprefix("duckdb:///")
            with duckdb.connect(path) as agent:
                agent.execute("DELETE FROM t WHERE i > 1")
                assert agent.execute(COUNT).fetchall() == [(2,)]
            assert copies.changed() == ()
        assert not Path(path).exists()
    assert count(databases) == 5
    databases.close()


def test_isolated_copies_of_sqlite(tmp_path: Path):
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("CREATE TABLE t (i INTEGER)")
    connection.close()
    with opened(tmp_path, "sqlite:///x.db") as databases, databases.isolate("data") as copies:
        agent = sqlite3.connect(copies.urls["data"].removeprefix("sqlite:///"))
        agent.execute("INSERT INTO t VALUES (1)")
        agent.commit()
        agent.close()
        assert count(databases) == 0


def test_a_write_to_the_original_is_seen(file: Path, tmp_path: Path):
    with opened(tmp_path) as databases, databases.isolate() as copies:
        with duckdb.connect(str(file)) as agent:
            agent.execute("INSERT INTO t VALUES (9)")
        assert copies.changed() == ("data",)


def test_a_file_of_the_other_engine_is_named(file: Path, tmp_path: Path):
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("CREATE TABLE t (a)")
    with pytest.raises(DatabaseError) as caught:
        opened(tmp_path, "duckdb:///x.db").get().query("SELECT 1")
    assert str(caught.value) == (
        "database 'data' (duckdb:///x.db): no snapshot, this is a SQLite file; "
        "write sqlite:/// in place of duckdb:/// (or type: sqlite)"
    )
    with pytest.raises(DatabaseError) as caught:
        opened(tmp_path, "sqlite:///data.duckdb").get().query("SELECT 1")
    assert str(caught.value) == (
        "database 'data' (sqlite:///data.duckdb): no snapshot, this is a DuckDB file; "
        "write duckdb:/// in place of sqlite:/// (or type: duckdb)"
    )


def test_what_has_no_file_cannot_be_isolated(tmp_path: Path):
    with (
        opened(tmp_path, ":memory:") as databases,
        pytest.raises(DatabaseError, match="isolate needs a DuckDB or SQLite file to copy"),
    ):
        databases.isolate()


def test_only_files_are_isolated(file: Path, tmp_path: Path):
    sources = {"data": "duckdb:///data.duckdb", "server": "postgresql://h/d", "memory": ":memory:"}
    databases = Databases(sources, folder=tmp_path / "run", root=tmp_path)
    with databases.isolate() as copies:
        assert list(copies.urls) == ["data"]
    with databases.isolate("data") as copies:
        assert list(copies.urls) == ["data"]
    with pytest.raises(DatabaseError, match=r"'server' \(postgresql://h/d\): isolate needs a DuckDB"):
        databases.isolate("server")
    del sources["data"]
    with pytest.raises(DatabaseError, match=r"'server' .*: isolate needs a DuckDB or SQLite file"):
        Databases(sources, folder=tmp_path / "run", root=tmp_path).isolate()


def test_snapshots_can_be_taken_before_they_are_needed(file: Path, tmp_path: Path):
    sources = {"data": "duckdb:///data.duckdb", "gone": "duckdb:///gone.duckdb"}
    databases = Databases(sources, folder=tmp_path / "run", root=tmp_path)
    databases.prepare()
    file.unlink()
    assert databases.get("data").query(COUNT).column(0) == [5]
    with pytest.raises(DatabaseError, match="no such file"):
        databases.prepare(["data", "gone"])


def test_a_missing_file(tmp_path: Path):
    with pytest.raises(DatabaseError) as caught:
        count(opened(tmp_path))
    assert str(caught.value) == (
        f"database 'data' (duckdb:///data.duckdb): no such file: {tmp_path}/data.duckdb; build it first, or "
        "correct the URL (three slashes: relative to the project's root, four: absolute)"
    )
    (tmp_path / "data.duckdb").mkdir()
    with pytest.raises(DatabaseError, match="not a file: "):
        count(opened(tmp_path))


def test_what_is_no_duckdb_file(tmp_path: Path):
    (tmp_path / "data.duckdb").write_text("no database at all" * 400)
    with pytest.raises(DatabaseError, match=r"\(duckdb:///data\.duckdb\): .*not a valid DuckDB"):
        count(opened(tmp_path))


def test_files_of_function_scoped_fixtures_may_change(file: Path, tmp_path: Path):
    databases = opened(tmp_path, cached=False)
    assert databases.get().reference(COUNT).column(0) == [5]
    with duckdb.connect(str(file)) as connection:
        connection.execute("DELETE FROM t")
    assert databases.get().reference(COUNT).column(0) == [0]
    databases.close()


def test_the_copier_reports_what_stops_it(file: Path, tmp_path: Path):
    target = str(tmp_path / "copy")
    with pytest.raises(copier.CopyError, match="changed 0 times while it was copied; stop what writes to it"):
        copier.copy(str(file), target, "duckdb", [], tries=0)
    request = {"source": f"{tmp_path}/none", "target": target, "kind": "duckdb", "pids": []}
    assert copier.main(json.dumps(request)) == {"error": f"No such file or directory: {tmp_path}/none"}
    assert copier.main(json.dumps(request | {"source": str(file)}))["size"] > 0


def test_a_sqlite_writer_is_waited_for_and_named(tmp_path: Path):
    path = tmp_path / "x.db"
    code = """
    import sqlite3
    connection = sqlite3.connect(sys.argv[1], isolation_level=None)
    connection.execute("CREATE TABLE t (i)")
    connection.execute("BEGIN EXCLUSIVE")
    """
    holder = elsewhere(code, str(path))
    with pytest.raises(copier.CopyError, match=rf"held for writing by \S+ \(PID {holder.pid}\)"):
        copier.copy(str(path), str(tmp_path / "copy"), "sqlite", [], patience=0.2)
    threading.Timer(0.3, lambda: ended(holder)).start()
    assert copier.copy(str(path), str(tmp_path / "copy"), "sqlite", [], patience=20)["size"] > 0


def test_an_old_log_beside_a_target_does_not_stay(file: Path, tmp_path: Path):
    target = tmp_path / "copy.duckdb"
    Path(f"{target}.wal").write_text("stale")
    copier.copy(str(file), str(target), "duckdb", [])
    assert not Path(f"{target}.wal").exists()


def test_who_belongs_to_a_run():
    assert copier.of_this_run(os.getpid(), [os.getppid()])
    assert not copier.of_this_run(os.getpid(), [999_999_999])
    assert not copier.of_this_run(999_999_998, [999_999_999])
    assert copier.described(0) == "a process that cannot be seen from here (another container?)"
    assert copier.described(999_999_999) == "PID 999999999"


def test_a_full_disk_is_named_by_its_folder(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    full = tmp_path / "full.py"
    error = {"error": f"No space left on device: {file}"}
    full.write_text(f"import json\nprint(json.dumps({error!r}))\n")
    monkeypatch.setattr(copier, "__file__", str(full))
    with pytest.raises(
        DatabaseError, match=r"no snapshot, No space left on device in .*, where copies are made"
    ):
        count(opened(tmp_path))


def test_a_copying_process_that_dies_is_an_error(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(copier, "__file__", str(tmp_path / "gone.py"))
    with pytest.raises(DatabaseError, match=r"no snapshot, the copying process ended with 2: .*gone\.py"):
        count(opened(tmp_path))


def test_workers_of_xdist_count_the_controller_in(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    with opened(tmp_path) as databases:
        count(databases)
    pids = {entry.name for entry in (tmp_path / "run" / "databases" / "pids").iterdir()}
    assert pids == {str(os.getpid()), str(os.getppid())}


def test_a_lock_is_for_threads_too(tmp_path: Path):
    order: list[str] = []
    inside = threading.Event()

    def second() -> None:
        inside.wait()
        with locked(tmp_path / "a" / "lock"):
            order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with locked(tmp_path / "a" / "lock"):
        inside.set()
        thread.join(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


@pytest.mark.parametrize(
    "name", ["shop.duckdb", "my shop.v2.duckdb", "select.db", "1st.duckdb", "main.duckdb", "ü.x"]
)
def test_a_copy_has_the_catalog_of_the_file(tmp_path: Path, name: str) -> None:
    """DuckDB calls the catalog after the file; compiled dbt models name it in every relation."""
    path = tmp_path / name
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE orders AS SELECT 1 AS id, 10.5 AS amount")
        (catalog,) = connection.execute("SELECT current_database()").fetchone() or ("",)
    found = Databases({"data": f"duckdb:///{name}"}, folder=tmp_path / "run", root=tmp_path)
    quoted = '"' + catalog.replace('"', '""') + '"'
    asked = f"SELECT current_database() AS c, sum(amount) AS n FROM {quoted}.main.orders"
    tables = "SELECT table_catalog FROM information_schema.tables WHERE table_name = 'orders'"
    with found:
        assert list(found.get().query(asked).rows()) == [(catalog, Decimal("10.5"))]
        assert found.get().query(tables).column(0) == [catalog]
        with found.isolate() as copies, duckdb.connect(copies.urls["data"].removeprefix("duckdb:///")) as own:
            assert own.execute(asked).fetchall() == [(catalog, Decimal("10.5"))]
            assert own.execute("INSERT INTO orders VALUES (2, 1)").fetchall() == [(1,)]
        assert found.get().schema() == {"main.orders": ("id", "amount")}


def test_two_files_of_one_name_and_a_link_are_told_apart(tmp_path: Path) -> None:
    for folder, value in (("a", 1), ("b", 2)):
        (tmp_path / folder).mkdir()
        with duckdb.connect(str(tmp_path / folder / "shop.duckdb")) as connection:
            connection.execute(f"CREATE TABLE t AS SELECT {value} AS n")
    (tmp_path / "other.duckdb").symlink_to(tmp_path / "a" / "shop.duckdb")
    urls = {"a": "duckdb:///a/shop.duckdb", "b": "duckdb:///b/shop.duckdb", "link": "duckdb:///other.duckdb"}
    with Databases(urls, folder=tmp_path / "run", root=tmp_path) as found:
        rows = [
            found.get(name).query("SELECT current_database() AS c, n FROM t").records()[0] for name in urls
        ]
        assert rows == [{"c": "shop", "n": 1}, {"c": "shop", "n": 2}, {"c": "other", "n": 1}]
        with found.isolate("a") as copies:
            assert len(set(copies.urls.values())) == 3
