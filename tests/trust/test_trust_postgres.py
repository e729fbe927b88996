"""SQL of a server is tried through its translation to DuckDB, only where both agree on the real data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_agenteval.compare import ComparisonOptions
from pytest_agenteval.databases import Databases
from pytest_agenteval.trust.explain import Explainer, Question

pytestmark = pytest.mark.postgres

SHOP = """
CREATE TABLE customers (id integer PRIMARY KEY, name text NOT NULL, state text);
CREATE TABLE orders (id integer PRIMARY KEY, customer_id integer NOT NULL REFERENCES customers (id),
  total numeric(10, 2) NOT NULL, placed timestamp NOT NULL);
INSERT INTO customers VALUES (1, 'Ann', 'CA'), (2, 'Bob', 'NY'), (3, 'Cid', 'CA');
INSERT INTO orders VALUES (1, 1, 10, '2024-01-05 10:00'), (2, 1, 20, '2024-02-05 10:00'),
  (3, 2, 5, '2024-02-07 10:00'), (4, 3, 9, '2024-03-01 10:00');
"""

BY_MONTH = "SELECT date_trunc('month', placed) AS month, sum(total) AS total FROM orders GROUP BY 1"


@pytest.fixture(scope="module")
def url(postgres: Any) -> str:
    return str(postgres.create("trust", SHOP))


@pytest.fixture
def databases(url: str, tmp_path: Path) -> Iterator[Databases]:
    with Databases({"shop": url}, folder=tmp_path / "run", root=tmp_path) as found:
        yield found


def luck_of(databases: Databases, reference: str, other: str, *, asked: bool = True) -> Any:
    database = databases.get()
    table = database.query(other)
    question = Question(reference, [(other, table)], table, True, database, ComparisonOptions())
    return Explainer(luck="warn", asked=asked, causes=False).explain(question).luck


def test_a_lucky_answer_is_told_by_rows_and_an_equal_one_is_not(databases: Databases) -> None:
    lucky = luck_of(databases, BY_MONTH, f"{BY_MONTH.replace('GROUP', 'WHERE id < 5 GROUP')}")
    assert lucky["checked"]
    assert lucky["found"]
    assert lucky["tables"].keys() == {"main.orders"}
    equal = luck_of(
        databases,
        BY_MONTH,
        BY_MONTH.replace("orders", "orders AS o JOIN customers AS c ON c.id = o.customer_id"),
    )
    assert equal["checked"]
    assert not equal["found"]


def test_what_the_translation_changes_is_not_checked(databases: Databases) -> None:
    # 2.5 and 3 in DuckDB, whole numbers in PostgreSQL
    halves = "SELECT id, id / 2 AS half FROM orders"
    found = luck_of(databases, halves, "SELECT o.id, o.id / 2 AS half FROM orders AS o")
    assert found["why_not"] == "translated from postgres to DuckDB, the SQL gives another table"


def test_what_cannot_be_translated_is_not_checked(databases: Databases) -> None:
    other = "SELECT count(*) AS n FROM orders WHERE to_tsvector('english', 'order') @@ to_tsquery('order')"
    found = luck_of(databases, "SELECT count(*) AS n FROM orders", other)
    assert not found["checked"]
    assert "DuckDB" in found["why_not"]


def test_a_server_is_not_asked_without_being_told_to(databases: Databases) -> None:
    assert luck_of(databases, BY_MONTH, BY_MONTH.replace("sum", "avg"), asked=False) is None


def test_large_tables_are_not_copied(postgres: Any, tmp_path: Path) -> None:
    url = postgres.create(
        "trust_large", "CREATE TABLE n (i integer); INSERT INTO n SELECT generate_series(1, 20001)"
    )
    with Databases({"shop": url}, folder=tmp_path / "run", root=tmp_path) as databases:
        found = luck_of(databases, "SELECT count(*) AS n FROM n", "SELECT count(i) AS n FROM n")
    assert not found["checked"]
    assert "more than 20,000 rows would have to be copied" in found["why_not"]
