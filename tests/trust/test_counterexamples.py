"""A few made-up rows tell a wrong statement from its reference, and never a right one."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pytest_agenteval.errors import SettingsError
from pytest_agenteval.trust import Luck, find_counterexample

SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, state VARCHAR, joined DATE NOT NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers (id),
  status VARCHAR NOT NULL, total DECIMAL(10, 2) NOT NULL, ordered_at TIMESTAMP NOT NULL, note VARCHAR);
INSERT INTO customers VALUES (1, 'Ann', 'CA', '2024-01-05'), (2, 'Bob', 'NY', '2024-02-01'),
  (3, 'Cid', 'CA', '2024-03-01');
INSERT INTO orders VALUES (1, 1, 'completed', 10, '2024-01-06 10:00', 'x'), (2, 1, 'completed', 20,
  '2024-02-06 10:00', NULL), (3, 2, 'completed', 5, '2024-02-10 10:00', 'y'), (4, 3, 'completed', 7,
  '2024-03-10 10:00', NULL), (5, 3, 'returned', 8, '2024-04-01 10:00', NULL);
"""

TOTAL = (
    "SELECT c.state, sum(o.total) AS total FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY 1"
)

DIFFERENT = [
    (f"{TOTAL}", TOTAL.replace("sum(", "avg(")),
    (TOTAL, TOTAL.replace("sum(", "sum(DISTINCT ")),
    (
        "SELECT count(*) FROM orders WHERE ordered_at BETWEEN '2024-01-01' AND '2024-03-31 23:59:59'",
        "SELECT count(*) FROM orders WHERE ordered_at BETWEEN '2024-01-01' AND '2024-03-31'",
    ),
    (
        "SELECT c.name FROM customers c LEFT JOIN orders o ON o.customer_id = c.id WHERE o.id IS NULL",
        "SELECT c.name FROM customers c JOIN orders o ON o.customer_id = c.id WHERE o.id IS NULL",
    ),
    ("SELECT count(note) FROM orders", "SELECT count(*) FROM orders"),
    (
        "SELECT state, count(*) FROM customers GROUP BY state ORDER BY 2 DESC LIMIT 2",
        "SELECT state, count(*) FROM customers GROUP BY state ORDER BY 2 DESC LIMIT 3",
    ),
    (
        "SELECT customer_id FROM orders GROUP BY 1 HAVING count(*) > 2",
        "SELECT customer_id FROM orders GROUP BY 1 HAVING count(*) >= 2",
    ),
    (
        "SELECT id, rank() OVER (ORDER BY total) AS r FROM orders",
        "SELECT id, dense_rank() OVER (ORDER BY total) AS r FROM orders",
    ),
]

EQUAL = [
    (TOTAL, TOTAL.replace(" JOIN", " LEFT JOIN")),
    (
        "SELECT sum(o.total) FROM orders o JOIN customers c ON c.id = o.customer_id",
        "SELECT sum(total) FROM orders",
    ),
    ("SELECT count(id) FROM orders", "SELECT count(*) FROM orders"),
    (
        "SELECT count(*) FROM orders WHERE status = 'completed'",
        "SELECT count(*) FROM orders WHERE status IN ('completed')",
    ),
    (
        "SELECT count(*) FROM customers WHERE joined BETWEEN '2024-01-01' AND '2024-12-31'",
        "SELECT count(*) FROM customers WHERE year(joined) = 2024",
    ),
    ("SELECT DISTINCT id, name FROM customers", "SELECT id, name FROM customers"),
    (
        "SELECT id FROM orders ORDER BY total DESC LIMIT 2",
        "SELECT id FROM orders ORDER BY total DESC, 1 LIMIT 2",
    ),
    ("SELECT id FROM customers", "SELECT id FROM customers WHERE true"),
    # only a third status would tell them apart, and the statements compare it with a closed list
    (
        "SELECT count(*) FROM orders WHERE status = 'completed'",
        "SELECT count(*) FROM orders WHERE status <> 'returned'",
    ),
]


@pytest.fixture
def shop() -> Any:
    connection = duckdb.connect()
    connection.execute(SHOP)
    yield connection
    connection.close()


def rerun(luck: Luck, schema: str, statements: tuple[str, str]) -> list[list[tuple[Any, ...]]]:
    """Both statements on the shown rows, in a database that has every declared constraint."""
    connection = duckdb.connect()
    connection.execute(
        "\n".join(line for line in schema.split(";\n") if "INSERT" not in line).replace(")\n", ");\n")
    )
    connection.close()
    connection = duckdb.connect()
    for part in schema.split(";"):
        if "CREATE" in part:
            connection.execute(part)
    # parents before children
    for name in sorted(luck.tables, key=lambda key: "orders" in key):
        table = luck.tables[name]
        for row in table.rows():
            connection.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", list(row))
    found = [sorted(connection.execute(sql).fetchall(), key=repr) for sql in statements]
    connection.close()
    return found


@pytest.mark.parametrize(("reference", "other"), DIFFERENT)
def test_a_wrong_statement_is_told_by_a_few_rows_that_obey_the_declared_rules(
    shop: Any, reference: str, other: str
) -> None:
    luck = find_counterexample(reference, other, shop)
    assert luck
    assert luck.checked
    assert luck.why_not is None
    assert luck.row_count <= 8
    # an engine that enforces the keys and foreign keys takes the rows, and the two differ there
    one, two = rerun(luck, SHOP, (reference, other))
    assert one != two


@pytest.mark.parametrize(("reference", "other"), EQUAL)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_statement_that_is_equal_under_the_rules_is_never_reported(
    shop: Any, reference: str, other: str, seed: int
) -> None:
    luck = find_counterexample(reference, other, shop, seed=seed)
    assert luck.checked
    assert not luck, (luck.tables, luck.reference, luck.answer)


def test_the_same_seed_finds_the_same_rows_and_another_may_find_others(shop: Any) -> None:
    reference, other = DIFFERENT[0]
    shown = [
        {
            name: list(table.rows())
            for name, table in find_counterexample(reference, other, shop, seed=5).tables.items()
        }
        for _ in range(2)
    ]
    assert shown[0] == shown[1]


@pytest.mark.parametrize(
    ("reference", "other", "why"),
    [
        ("SELECT 1", "SELECT 2", "the SQL reads no table"),
        ("SELECT now() FROM orders", "SELECT 1 FROM orders", "another value at each run"),
        ("SELECT random() FROM orders", "SELECT 1 FROM orders", "another value at each run"),
        ("SELECT 1 FROM nowhere", "SELECT 1 FROM orders", "nowhere, which is no table of the database"),
        ("DELETE FROM orders", "SELECT 1 FROM orders", "the SQL is not one SELECT"),
        ("SELECT 1 FROM orders", "SELECT 1; SELECT 2", "the SQL is not one SELECT"),
        ("SELECT FROM WHERE", "SELECT 1 FROM orders", "cannot be parsed"),
        ("SELECT * FROM read_csv('x.csv')", "SELECT 1 FROM orders", "the table function read"),
        ("SELECT id + name FROM customers", "SELECT id FROM customers", "does not run on made-up rows"),
    ],
)
def test_what_cannot_be_tried_says_why(shop: Any, reference: str, other: str, why: str) -> None:
    luck = find_counterexample(reference, other, shop)
    assert not luck.checked
    assert not luck
    assert luck.why_not is not None
    assert why in luck.why_not


def test_a_stated_rule_keeps_rows_from_being_made_that_the_data_alone_would_allow(shop: Any) -> None:
    reference = "SELECT count(*) FROM orders"
    other = "SELECT count(DISTINCT customer_id) FROM orders"
    assert find_counterexample(reference, other, shop)
    stated = find_counterexample(reference, other, shop, constraints="orders.customer_id unique")
    assert stated.checked
    assert not stated


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("orders = 3", "agenteval_constraints: cannot read 'orders = 3'; the forms are: orders(id) key;"),
        ("order(id) key", "no table 'order'; there are: customers, orders"),
        ("orders.nr -> customers.id", "orders has no column 'nr'; it has: id, customer_id, status"),
    ],
)
def test_a_stated_rule_that_cannot_be_read_is_named(shop: Any, text: str, told: str) -> None:
    with pytest.raises(SettingsError) as caught:
        find_counterexample(TOTAL, TOTAL, shop, constraints=text)
    assert told in str(caught.value)


def test_views_are_read_through_and_the_database_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    connection = duckdb.connect(str(path))
    connection.execute(SHOP + "CREATE VIEW done AS SELECT * FROM orders WHERE status = 'completed'")
    connection.close()
    before = path.read_bytes()
    luck = find_counterexample("SELECT sum(total) FROM done", "SELECT sum(total) FROM orders", path)
    assert luck
    assert set(luck.tables) <= {"main.orders", "main.customers"}
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["shop.duckdb"]


def test_sqlite_is_tried_in_sqlite_with_its_own_functions(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, day TEXT NOT NULL, total REAL NOT NULL);"
            "INSERT INTO orders VALUES (1, '2024-01-05', 2), (2, '2024-02-05', 3), (3, '2024-02-07', 4)"
        )
    connection.close()
    reference = "SELECT strftime('%Y-%m', day) AS m, sum(total) FROM orders GROUP BY 1"
    assert not find_counterexample(
        reference, "SELECT substr(day, 1, 7), sum(total) FROM orders GROUP BY 1", path
    )
    assert find_counterexample(
        reference, "SELECT strftime('%Y', day), sum(total) FROM orders GROUP BY 1", path
    )


def test_a_difference_that_rests_on_a_tie_of_the_reference_is_none(shop: Any) -> None:
    # which of two equal totals comes first is open in both
    luck = find_counterexample(
        "SELECT id FROM orders ORDER BY total LIMIT 1",
        "SELECT id FROM orders ORDER BY total, id DESC LIMIT 1",
        shop,
    )
    assert luck.checked
    assert not luck
