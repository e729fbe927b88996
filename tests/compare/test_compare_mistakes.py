"""What real SQL does wrong is named rightly, and alike under the agent's own names of columns."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from single_mistakes import MISTAKES, Mistake

from pytest_agenteval.compare import compare, parse_options
from pytest_agenteval.table import Table

SHOP = Path(__file__).parents[2] / "docs" / "examples" / "jaffle_shop" / "shop.py"
# under other names a pivoted table has no label that is known, and exchanged columns are found by value
NAMED_ONLY = ("pivoted", "columns_swapped")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    spec = importlib.util.spec_from_file_location("shop_of_mistakes", SHOP)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path = module.build(tmp_path_factory.mktemp("single_mistakes") / "shop.duckdb")
    with duckdb.connect(str(path), read_only=True) as connection:
        yield connection


def answered(shop: duckdb.DuckDBPyConnection, sql: str, prefix: str) -> Table:
    cursor = shop.execute(sql)
    names = [prefix + entry[0] for entry in cursor.description]
    return Table.from_records([dict(zip(names, row, strict=True)) for row in cursor.fetchall()])


ASKED = [(mistake, "") for mistake in MISTAKES]
ASKED += [(mistake, "my_") for mistake in MISTAKES if mistake.word not in NAMED_ONLY]


@pytest.mark.parametrize(
    ("mistake", "prefix"), ASKED, ids=[f"{prefix}{mistake.what}" for mistake, prefix in ASKED]
)
def test_a_mistake_has_its_word(shop: duckdb.DuckDBPyConnection, mistake: Mistake, prefix: str) -> None:
    expected = Table.from_duckdb(shop.sql(mistake.reference))
    found = compare(expected, answered(shop, mistake.answer, prefix), parse_options(mistake.options))
    assert not found.matched
    assert found.diagnosis is not None
    assert found.diagnosis.word == mistake.word, found.diagnosis.sentence
    names = [name for name in expected.names if mistake.says.startswith(f"`{name}`: ")]
    says = mistake.says.removeprefix(f"`{names[0]}`: ") if prefix and names else mistake.says
    assert says in found.diagnosis.sentence.replace("`my_", "`")
