"""The jaffle shop's database: the same everywhere, complete whoever builds it, and not in git's way."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from user_run import EXAMPLE

# Of the rows of all four tables. Other rows need other CSV and inline expectations in the cases.
DIGEST = "98955300bc18"

BUILD_AND_COUNT = """
import sys, pathlib, duckdb, shop
path = shop.build(pathlib.Path(sys.argv[1]))
with duckdb.connect(str(path), read_only=True) as connection:
    print(path.stat().st_ino, *connection.execute("SELECT count(*) FROM payments").fetchone())
"""


def start(target: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", BUILD_AND_COUNT, str(target)],
        cwd=EXAMPLE,
        env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("shop") / "shop.duckdb"
    _, errors = (process := start(target)).communicate(timeout=60)
    assert process.returncode == 0, errors
    return target


def test_four_workers_that_build_at_once_get_one_complete_file(tmp_path: Path) -> None:
    workers = [start(tmp_path / "shop.duckdb") for _ in range(4)]
    seen = [worker.communicate(timeout=60) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0, 0], seen
    assert len({out for out, _ in seen}) == 1, "each saw the same file with all its payments"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shop.duckdb", "shop.lock", "shop.version"]


def test_a_build_cut_off_leaves_nothing_that_is_taken_for_the_shop(tmp_path: Path, shop: Path) -> None:
    (tmp_path / "shop.unfinished").write_bytes(shop.read_bytes()[:4096])
    (tmp_path / "shop.duckdb").write_bytes(b"of an older recipe")
    (tmp_path / "shop.version").write_text("older")
    out, errors = start(tmp_path / "shop.duckdb").communicate(timeout=60)
    assert out.split()[1:] == ["4116"], errors


def test_the_rows_are_the_same_in_every_build(shop: Path) -> None:
    found = hashlib.sha256()
    with duckdb.connect(str(shop), read_only=True) as connection:
        for table in ("products", "customers", "orders", "payments"):
            found.update(repr(connection.execute(f"SELECT * FROM {table} ORDER BY ALL").fetchall()).encode())
    assert found.hexdigest()[:12] == DIGEST


@pytest.mark.parametrize(
    ("what", "sql"),
    [
        ("thousands of rows", "SELECT count(*) > 4000 FROM orders"),
        ("codes with leading zeros", "SELECT bool_and(sku LIKE '0%') FROM products"),
        (
            "zip codes with and without",
            "SELECT count(DISTINCT zip[1]) > 0 AND bool_or(zip LIKE '0%') FROM customers",
        ),
        ("NULLs", "SELECT count(*) > 100 FROM customers WHERE referred_by IS NULL"),
        (
            "cents",
            "SELECT bool_or(amount % 1 <> 0) AND typeof(any_value(amount)) = 'DECIMAL(10,2)' FROM orders",
        ),
        (
            "customers who never bought",
            "SELECT count(*) > 100 FROM customers ANTI JOIN orders USING (customer_id)",
        ),
        ("an order for every payment", "SELECT count(*) = 0 FROM payments ANTI JOIN orders USING (order_id)"),
        (
            "a buyer for every order",
            "SELECT count(*) = 0 FROM orders ANTI JOIN customers USING (customer_id)",
        ),
        (
            "instalments that add up",
            """SELECT bool_and(parts = 2 AND paid = amount) FROM orders JOIN (
               SELECT order_id, count(*) AS parts, sum(payments.amount) AS paid FROM payments
               WHERE method = 'instalment' GROUP BY order_id) USING (order_id)""",
        ),
    ],
)
def test_the_shop_has(what: str, sql: str, shop: Path) -> None:
    with duckdb.connect(str(shop), read_only=True) as connection:
        assert connection.execute(sql).fetchone() == (True,), what
