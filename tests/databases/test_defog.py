"""140 real references over five real databases: every one runs, on DuckDB and on Postgres alike."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from pytest_agenteval.databases import Databases, outermost_order_by
from pytest_agenteval.table import Table

DEFOG = Path(__file__).resolve().parents[3] / "shared" / "data" / "defog"
NAMES = ("academic", "broker", "car_dealership", "ewallet", "restaurants")
pytestmark = [
    pytest.mark.defog,
    pytest.mark.skipif(not DEFOG.is_dir(), reason="needs ../shared/data/defog (140 real questions)"),
    pytest.mark.skipif(duckdb.__version__ < "2", reason="needs DuckDB 2, which wrote the defog files"),
]


@pytest.fixture(scope="module")
def references() -> dict[str, list[str]]:
    return {
        name: [
            str(yaml.safe_load(path.read_text())["sql"])
            for path in sorted((DEFOG / "tests" / name).glob("*.yml"))
        ]
        for name in NAMES
    }


@pytest.fixture(scope="module")
def duck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    urls = {name: f"duckdb:///{DEFOG}/db/{name}.duckdb" for name in NAMES}
    with Databases(urls, folder=tmp_path_factory.mktemp("duck"), root=DEFOG, shared=True) as found:
        yield found


def plain(value: Any) -> Any:
    """What both engines can agree on: numbers to six digits (32-bit floats), moments as text."""
    if isinstance(value, Decimal | float):
        return float(f"{value:.6g}")
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return str(value.date())
    if isinstance(value, datetime.date | datetime.timedelta | datetime.time):
        return str(value)
    return value


def bag(table: Table) -> Counter[Any]:
    return Counter(tuple(plain(value) for value in row) for row in table.rows())


def test_every_reference_runs_once_and_comes_back_from_the_cache(
    references: dict[str, list[str]], duck: Databases
):
    files = list((duck.folder / "references").glob("*.table"))
    assert files == []
    for name, statements in references.items():
        for sql in statements:
            first = duck.get(name).reference(sql)
            assert all(kind is not None for kind in first.types if first.row_count), sql
    with Databases(duck.urls, folder=duck.folder.parent, root=duck.root, shared=True) as again:
        for name, statements in references.items():
            for sql in statements:
                kept, first = again.get(name).reference(sql), duck.get(name).reference(sql)
                assert (kept.columns, list(kept.rows())) == (first.columns, list(first.rows()))
    assert len(list((duck.folder / "references").glob("*.table"))) == len(
        {(name, sql) for name, statements in references.items() for sql in statements}
    )


def test_sort_keys_are_found_in_every_ordered_reference(references: dict[str, list[str]], duck: Databases):
    ordered = 0
    for name, statements in references.items():
        for sql in statements:
            keys = outermost_order_by(sql, duck.get(name).dialect)
            ordered += keys is not None
            assert keys is None or all(key.split()[1:] for key in keys)
    assert ordered > 40


@pytest.mark.postgres
def test_postgres_gives_the_same_rows_and_columns(duck: Databases, postgres: Any, tmp_path: Path):
    urls = {name: postgres.create(name, (DEFOG / "postgres" / f"{name}.sql").read_text()) for name in NAMES}
    with Databases(urls, folder=tmp_path, root=tmp_path) as servers:
        for name in NAMES:
            there, here = servers.get(name).schema(), duck.get(name).schema()
            assert {
                table.replace("public.", "main."): sorted(columns) for table, columns in there.items()
            } == {table: sorted(columns) for table, columns in here.items()}
            for table, columns in there.items():
                chosen = ", ".join(f'"{column}"' for column in columns)
                rows = servers.get(name).reference(f"SELECT {chosen} FROM {table}")
                own = duck.get(name).reference(f"SELECT {chosen} FROM {table.replace('public.', 'main.')}")
                assert bag(rows) == bag(own), table
                assert rows.row_count > 0
