"""Typical mistakes of agents over the jaffle shop: under any names of columns they are told alike."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest

from pytest_agenteval.compare import Comparison, compare, render
from pytest_agenteval.compare import tables as comparing
from pytest_agenteval.table import Table

SHOP = Path(__file__).parents[2] / "docs" / "examples" / "jaffle_shop" / "shop.py"


class Mistake(NamedTuple):
    """A question's reference, what an agent ran instead, the word for it, and what the sentence holds."""

    reference: str
    answer: str
    word: str
    says: str


BY_CATEGORY = "SELECT category, {0} AS revenue FROM orders JOIN products USING (sku){1} GROUP BY category"
BY_MONTH = (
    "SELECT date_trunc('month', ordered_at)::DATE AS month, {0} AS revenue FROM orders "
    "WHERE year(ordered_at) = {1} GROUP BY 1 ORDER BY 1"
)
ITEMS = "SELECT order_id, orders.amount FROM orders {0} WHERE order_id <= 400 {1}"
HALVES = "JOIN (VALUES (1), (2)) AS halves(part) ON true"
BEST = "SELECT customer_id, sum(amount) AS revenue FROM orders GROUP BY 1 ORDER BY revenue {0}, 1 LIMIT 5"
CHANNELS = "SELECT channel, {0} AS orders FROM orders {1} GROUP BY channel"

MISTAKES = {
    "fan_out": Mistake(
        ITEMS.format("", ""), ITEMS.format(HALVES, ""), "fan_out", "each of the 400 rows is there 2 times"
    ),
    "wrong_column": Mistake(
        BY_CATEGORY.format("sum(amount)", ""),
        BY_CATEGORY.format("sum(price)", ""),
        "values_differ",
        "`revenue` differs in 6 of 6 rows: expected ",
    ),
    "factor": Mistake(
        BY_CATEGORY.format("sum(amount)", ""),
        BY_CATEGORY.format("sum(amount) * 100", ""),
        "scaled",
        "all 6 values are 100 times the expected (6 of 6 rows; expected ",
    ),
    "thousands": Mistake(
        BY_CATEGORY.format("sum(amount)", ""),
        BY_CATEGORY.format("round(sum(amount) / 1000) * 1000", ""),
        "rounded",
        "rounded to multiples of 1,000 (6 of 6 rows; expected ",
    ),
    "doubling": Mistake(
        BY_CATEGORY.format("sum(amount)", ""),
        BY_CATEGORY.format("2 * sum(amount)", ""),
        "scaled",
        "all 6 values are 2 times the expected (6 of 6 rows; expected ",
    ),
    "missing_filter": Mistake(
        CHANNELS.format("count(*)", "WHERE status = 'completed'"),
        CHANNELS.format("count(*)", ""),
        "values_differ",
        "`orders` differs in 4 of 4 rows: expected ",
    ),
    "scalar_rounded": Mistake(
        "SELECT avg(amount) AS average FROM orders",
        "SELECT round(avg(amount)) AS average FROM orders",
        "rounded",
        "rounded to whole numbers (1 of 1 row; expected ",
    ),
    "wrong_year": Mistake(
        BY_MONTH.format("sum(amount)", 2025),
        BY_MONTH.format("sum(amount)", 2024),
        "rows_differ",
        "12 of 12 expected rows not in the answer, 12 of 12 answered rows not expected",
    ),
    "last_month_missing": Mistake(
        BY_MONTH.format("sum(amount)", 2025),
        BY_MONTH.format("sum(amount)", "2025 AND month(ordered_at) < 12"),
        "rows_missing",
        "1 row of 12 missing, the others are right",
    ),
    "one_cell": Mistake(
        BY_CATEGORY.format("sum(amount)", ""),
        BY_CATEGORY.format("sum(amount) + CASE category WHEN 'cakes' THEN 7 ELSE 0 END", ""),
        "values_differ",
        "`revenue` differs in 1 of 6 rows: expected ",
    ),
    "seven_of_twelve_cells": Mistake(
        BY_MONTH.format("sum(amount)", 2025),
        BY_MONTH.format("sum(amount) + CASE WHEN month(min(ordered_at)) <= 7 THEN 13 ELSE 0 END", 2025),
        "values_differ",
        "`revenue` differs in 7 of 12 rows: expected ",
    ),
    "running_sum": Mistake(
        BY_MONTH.format("sum(amount)", 2025),
        BY_MONTH.format("sum(sum(amount)) OVER (ORDER BY 1)", 2025).replace(
            "(ORDER BY 1)", "(ORDER BY min(ordered_at))"
        ),
        "cumulative",
        "running sums where single values are expected (11 of 12 rows; expected ",
    ),
    "worst_for_top": Mistake(
        BEST.format("DESC"),
        BEST.format("ASC"),
        "rows_differ",
        "5 of 5 expected rows not in the answer, 5 of 5 answered rows not expected",
    ),
    "three_of_five": Mistake(
        BEST.format("DESC"),
        f"FROM ({BEST.format('DESC')}) LIMIT 3",
        "rows_missing",
        "2 rows of 5 missing, the others are right",
    ),
}
OTHER = {
    "revenue": "net_sales",
    "amount": "order_total",
    "orders": "n",
    "average": "avg_order",
    "category": "product_group",
    "month": "period",
    "channel": "sold_through",
    "customer_id": "buyer",
    "order_id": "number",
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    spec = importlib.util.spec_from_file_location("jaffle_shop_recipe", SHOP)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path = module.build(tmp_path_factory.mktemp("mistakes") / "shop.duckdb")
    return duckdb.connect(str(path), read_only=True)


def records(shop: duckdb.DuckDBPyConnection, sql: str, names: dict[str, str]) -> Table:
    cursor = shop.execute(sql)
    columns = [names.get(entry[0], entry[0]) for entry in cursor.description]
    return Table.from_records([dict(zip(columns, row, strict=True)) for row in cursor.fetchall()])


def answered(shop: duckdb.DuckDBPyConnection, mistake: Mistake, names: dict[str, str]) -> Comparison:
    expected = Table.from_duckdb(shop.sql(mistake.reference))
    return compare(expected, records(shop, mistake.answer, names))


@pytest.fixture(params=["plain", "arrays"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "arrays":
        monkeypatch.setattr(comparing, "PLAIN_CELLS", -1)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("renamed", ["none", "measure", "all"])
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_alike_under_any_names(
    shop: duckdb.DuckDBPyConnection, name: str, renamed: str
) -> None:
    mistake = MISTAKES[name]
    expected = Table.from_duckdb(shop.sql(mistake.reference))
    measure = expected.names[-1]
    names = {"none": {}, "measure": {measure: OTHER[measure]}, "all": OTHER}[renamed]
    found = answered(shop, mistake, names)
    plain = answered(shop, mistake, {})
    assert not found.matched
    assert found.diagnosis is not None
    assert plain.diagnosis is not None
    assert found.diagnosis.word == mistake.word, found.diagnosis
    assert mistake.says in found.diagnosis.sentence
    assert found.counts == plain.counts
    assert [row.state for row in found.sample] == [row.state for row in plain.sample]
    if renamed != "none":
        assert "missing columns: " in found.message
        assert f"'{measure}'" in found.message
        assert f"`{measure}` ~ `{OTHER[measure]}`" in found.diagnosis.sentence
        assert found.diagnosis.proof["names"][measure] == OTHER[measure]
        assert "differ): " in " ".join(render(found))
