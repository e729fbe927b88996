"""The labelled pairs of ``../shared/corpus/sql_pairs.jsonl``, and the databases they were written for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from pytest_agenteval.databases import Databases
from pytest_agenteval.trust import KnownData

SHARED = Path(__file__).parents[3] / "shared"
PAIRS = SHARED / "corpus" / "sql_pairs.jsonl"
DEFOG = SHARED / "data" / "defog"
NAMES = ("academic", "broker", "car_dealership", "ewallet", "restaurants")

needs_pairs = pytest.mark.skipif(
    not PAIRS.is_file() or not DEFOG.is_dir(), reason="../shared/corpus/sql_pairs.jsonl is absent"
)


@cache
def pairs() -> tuple[dict[str, Any], ...]:
    """All pairs; what Calcite names ``EXPR$1`` is ``EXPR_1``, as DuckDB reads it."""
    with PAIRS.open(encoding="utf-8") as file:
        return tuple(json.loads(re.sub(r"(EXPR|\$cor|\$f)\$?", _plain, line)) for line in file)


def _plain(match: re.Match[str]) -> str:
    return match[0].replace("$", "_") if match[0] != "EXPR" else "EXPR"


@cache
def references(name: str) -> tuple[str, ...]:
    """The reference SQL of every case of a database: the joins of the suite."""
    found = []
    for path in sorted((DEFOG / "tests" / name).glob("*.yml")):
        sql = yaml.safe_load(path.read_text(encoding="utf-8"))["sql"]
        found += sql if isinstance(sql, list) else [sql]
    return tuple(found)


@contextmanager
def defog(folder: Path) -> Iterator[dict[str, KnownData]]:
    """What is known of the five databases, by name."""
    sources = {name: f"duckdb:///{DEFOG / 'db' / name}.duckdb" for name in NAMES}
    with Databases(sources, folder=folder, root=folder) as databases:
        yield {name: KnownData(databases.get(name), references=references(name)) for name in NAMES}


@contextmanager
def published(pair: dict[str, Any], folder: Path) -> Iterator[KnownData]:
    """An empty database with the schema of a published pair, its constraints stated."""
    connection = duckdb.connect()
    for table, columns in pair["schema"].items():
        listed = ", ".join(f'"{name}" {kind or "INT"}' for name, kind in columns.items())
        connection.execute(f'CREATE TABLE "{table}" ({listed})')
    with Databases({"pair": connection}, folder=folder, root=folder, cached=False) as databases:
        yield KnownData(databases.get("pair"), "; ".join(_stated(pair)))
    connection.close()


def _stated(pair: dict[str, Any]) -> Iterator[str]:
    known = {f"{table}__{column}" for table, columns in pair["schema"].items() for column in columns}
    for constraint in pair["constraint"] or ():
        for kind, value in constraint.items():
            cells = [entry["value"] for entry in (value if isinstance(value, list) else [value])]
            if not set(cells) <= known:
                continue
            places = [re.fullmatch(r"(.+)__(.+?)", cell) or pytest.fail(cell) for cell in cells]
            columns = ", ".join(place[2] for place in places)
            if kind == "primary":
                yield f"{places[0][1]}({columns}) key"
            if kind in ("primary", "not_null"):
                yield from (f"{place[1]}.{place[2]} not null" for place in places)
            if kind == "foreign":
                yield " -> ".join(f"{place[1]}.{place[2]}" for place in places)
