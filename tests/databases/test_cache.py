"""Reference tables: run once per run, kept exactly."""

from __future__ import annotations

import datetime
import json
import math
import sqlite3
import subprocess
import sys
import textwrap
import threading
import uuid
import zoneinfo
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_agenteval.databases import Databases
from pytest_agenteval.databases import reference_cache as cache
from pytest_agenteval.databases.reference_cache import ReferenceCache, dump, load
from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.support.json_codec import NotExact
from pytest_agenteval.table import Column, Table

ZONES = [datetime.UTC, zoneinfo.ZoneInfo("Europe/Berlin"), datetime.timezone(datetime.timedelta(hours=5.5))]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**130), 2**130),
    st.floats(),
    st.text(st.characters(codec=None)),
    st.decimals(),
    st.dates(),
    st.datetimes(timezones=st.none() | st.sampled_from(ZONES)),
    st.times(timezones=st.none() | st.just(datetime.UTC)),
    st.timedeltas(),
    st.binary(),
    st.uuids(),
)
KEYS = st.one_of(st.text(), st.integers(), st.dates(), st.tuples(st.integers(), st.text()))
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=6,
)
UNIFORM = st.sampled_from(
    [st.decimals(), st.dates(), st.uuids(), st.floats(), st.integers(), st.binary(), st.timedeltas()]
)
SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def same(a: Any, b: Any) -> bool:
    """Equal in value and in type, NaN equal to NaN, 0.0 not to -0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    if isinstance(a, float):
        return repr(a) == repr(b)
    if isinstance(a, Decimal):
        return str(a) == str(b)
    if isinstance(a, datetime.datetime | datetime.time):
        parts = [(moment.replace(tzinfo=None), str(moment.tzinfo), moment.fold) for moment in (a, b)]
        return parts[0] == parts[1]
    return bool(a == b)


class Odd(datetime.tzinfo):
    """A zone that has an offset on some days only."""

    def utcoffset(self, moment: datetime.datetime | None) -> datetime.timedelta | None:
        return datetime.timedelta(hours=3) if moment else None


def test_a_zone_of_another_library_is_kept_as_its_offset():
    moment = datetime.datetime(2024, 1, 1, 12, tzinfo=Odd())
    back = load(dump(Table((Column("x"),), ([moment],), 1))).column(0)[0]
    assert back.isoformat() == moment.isoformat() == "2024-01-01T12:00:00+03:00"


@SETTINGS
@given(st.lists(VALUES, max_size=5))
def test_every_value_comes_back_as_it_was(values: list[Any]):
    table = Table((Column("x", "ANY"), Column("x")), (values, values), len(values))
    back = load(dump(table))
    assert (back.columns, back.row_count) == (table.columns, table.row_count)
    assert same(back.column(0), values)
    assert same(back.column(1), values)


@SETTINGS
@given(UNIFORM.flatmap(lambda kind: st.lists(st.none() | kind, max_size=8)))
def test_columns_of_one_type_come_back_as_they_were(values: list[Any]):
    assert same(load(dump(Table((Column("x"),), (values,), len(values)))).column(0), values)


def test_a_column_of_one_type_is_written_compactly():
    prices = [Decimal("1.10"), None, Decimal("2.20")]
    data = dump(Table((Column("x", "DECIMAL(3,2)"),), (prices,), 3))
    assert json.loads(data[1:]) == [
        {"columns": [["x", "DECIMAL(3,2)"]], "rows": [["1.10"], [None], ["2.20"]], "row_count": 3},
        {"": "table", "/rows/*/0": "decimal"},
    ]


def test_small_tables_need_no_arrow():
    code = """
    import sys
    from decimal import Decimal
    from pytest_agenteval.databases.reference_cache import dump, load
    from pytest_agenteval.table import Table
    load(dump(Table.from_rows(["a"], [[Decimal("1.5")]])))
    print(sorted({"pyarrow", "numpy", "pandas", "duckdb", "sqlalchemy", "sqlglot"} & set(sys.modules)))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_arrow_columns_stay_arrow():
    connection = duckdb.connect()
    arrow = connection.sql("SELECT range AS i, range::DECIMAL(9,2) AS d FROM range(5000)").to_arrow_table()
    table = Table((Column("i", "BIGINT"), Column("i", "DECIMAL(9,2)")), tuple(arrow.columns), 5000)
    back = load(dump(table))
    assert back.columns == table.columns
    assert back.values[0].equals(arrow.column(0))
    assert back.values[1].equals(arrow.column(1))


@pytest.mark.parametrize("value", [object(), frozenset({1}), range(3), 1j, datetime.time(12, tzinfo=Odd())])
def test_other_values_have_no_form(value: Any):
    with pytest.raises(NotExact):
        dump(Table((Column("x"),), ([value],), 1))
    with pytest.raises(NotExact):
        dump(Table((Column("x"),), ([[value], 1],), 2))


class Runs:
    """A query that counts how often it is run."""

    def __init__(self, *results: Table | Exception) -> None:
        self.results = list(results)
        self.count = 0

    def __call__(self) -> Table:
        self.count += 1
        result = self.results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result


ONE = Table.from_rows(["a"], [[1]])


def test_a_result_is_kept_in_memory_and_in_a_file(tmp_path: Path):
    run = Runs(ONE)
    first = ReferenceCache(tmp_path)
    assert first.get("key", run, shared=True) is ONE
    assert first.get("key", run, shared=True) is ONE
    assert list(ReferenceCache(tmp_path).get("key", run, shared=True).rows()) == [(1,)]
    assert run.count == 1
    assert not list(tmp_path.glob("*.part"))


def test_a_file_of_another_form_is_written_anew(tmp_path: Path):
    run = Runs(ONE, ONE)
    ReferenceCache(tmp_path).get("key", run, shared=True)
    [path] = tmp_path.glob("*.table")
    good = path.read_bytes()
    path.write_bytes(b'T{"columns": [["a", null]], "rows": 1, "form": "json"}\n[["", [7]]]')  # version 0.1
    assert list(ReferenceCache(tmp_path).get("key", run, shared=True).rows()) == [(1,)]
    assert (run.count, path.read_bytes()) == (2, good)


def test_a_result_that_is_not_shared_stays_in_memory(tmp_path: Path):
    run = Runs(ONE, ONE)
    found = ReferenceCache(tmp_path)
    assert found.get("key", run, shared=False) is found.get("key", run, shared=False)
    ReferenceCache(None).get("key", run, shared=True)
    assert (run.count, list(tmp_path.iterdir())) == (2, [])


def test_threads_wait_for_the_one_that_runs_it():
    begun, go_on = threading.Event(), threading.Event()
    counts: list[int] = []
    found = ReferenceCache(None)

    def run() -> Table:
        counts.append(1)
        begun.set()
        go_on.wait(10)
        return ONE

    threads = [
        threading.Thread(target=found.get, args=("key", run), kwargs={"shared": True}) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    begun.wait(10)
    go_on.set()
    for thread in threads:
        thread.join()
    assert counts == [1]


def test_only_workers_of_xdist_write_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, expected in (("alone", 0), ("worker", 1)):
        with Databases({"m": "sqlite:///x.db"}, folder=tmp_path / name, root=tmp_path) as found:
            sqlite3.connect(tmp_path / "x.db").close()
            assert found.get().reference("SELECT 1 AS a").column(0) == [1]
        assert len(list(tmp_path.glob(f"{name}/databases/references/*.table"))) == expected
        monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")


def test_an_error_is_a_result_too(tmp_path: Path):
    run = Runs(DatabaseError("no such table: ü"))
    for found in (ReferenceCache(tmp_path), ReferenceCache(tmp_path)):
        for _ in range(2):
            with pytest.raises(DatabaseError, match="no such table: ü"):
                found.get("key", run, shared=True)
    assert run.count == 1


def test_what_cannot_be_written_is_run_by_each_process(tmp_path: Path):
    odd = Table((Column("x"),), ([range(3)],), 1)
    run = Runs(odd, odd)
    assert ReferenceCache(tmp_path).get("key", run, shared=True) is odd
    assert ReferenceCache(tmp_path).get("key", run, shared=True) is odd
    assert run.count == 2


def test_memory_is_bounded_the_files_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cache, "_KEPT_CELLS", 5)
    found = ReferenceCache(tmp_path)
    tables = [Table.from_rows(["a"], [[number]] * 3) for number in range(3)]
    run = Runs(*tables)
    for number in range(3):
        found.get(str(number), run, shared=True)
    assert list(found._memory) == ["2"]
    assert list(found.get("0", run, shared=True).rows()) == [(0,)] * 3
    assert run.count == 3


def test_four_processes_run_a_reference_once(tmp_path: Path):
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    code = """
    import sys, json
    from pathlib import Path
    from pytest_agenteval.databases import Databases
    root = Path(sys.argv[1])
    with Databases({"x": "duckdb:///x.duckdb"}, folder=root / "run", root=root, shared=True) as found:
        tables = [found.get().reference(f"SELECT random() + {n} AS r") for n in range(5)]
        print(json.dumps([list(table.rows()) for table in tables]))
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    answers = {worker.communicate(timeout=60)[0] for worker in workers}
    assert len(answers) == 1
    assert math.isfinite(json.loads(answers.pop())[0][0][0])


def test_the_key_is_the_data_and_the_sql(tmp_path: Path):
    for name, value in (("a", 1), ("b", 2)):
        with duckdb.connect(str(tmp_path / f"{name}.duckdb")) as connection:
            connection.execute(f"CREATE TABLE t AS SELECT {value} AS v")
    urls = {"a": "duckdb:///a.duckdb", "b": "duckdb:///b.duckdb", "m": ":memory:"}
    with Databases(urls, folder=tmp_path / "run", root=tmp_path, shared=True) as found:
        assert found.get("a").reference("SELECT v FROM t").column(0) == [1]
        assert found.get("b").reference("SELECT v FROM t").column(0) == [2]
        assert found.get("a").reference("SELECT v + 1 FROM t").column(0) == [2]
        first = found.get("m").reference("SELECT random() AS r, uuid() AS u")
        assert found.get("m").reference("SELECT random() AS r, uuid() AS u") is first
        assert isinstance(first.column(1)[0], uuid.UUID)
    assert len(list((tmp_path / "run" / "databases" / "references").glob("*.table"))) == 3


def test_without_a_session_scope_nothing_is_kept(tmp_path: Path):
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT 1 AS v")
    base = Databases({}, folder=tmp_path, root=tmp_path)
    found = base.with_given(connection, cached=False).get()
    assert found.name == "default"
    assert found.reference("SELECT v FROM t").column(0) == [1]
    connection.execute("UPDATE t SET v = 2")
    assert found.reference("SELECT v FROM t").column(0) == [2]
    kept = base.with_given({"own": connection}, cached=True).get("own")
    assert kept.reference("SELECT v FROM t").column(0) == [2]
    connection.execute("UPDATE t SET v = 3")
    assert kept.reference("SELECT v FROM t").column(0) == [2]
