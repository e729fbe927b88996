"""``agenteval coverage``: what a suite asks about, counted by hand first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot
from user_run import copy_of_the_example, run_pytest

from pytest_agenteval.authoring.coverage import difficulty
from pytest_agenteval.cli import main


def report(capsys, *words: str) -> dict[str, Any]:
    code = main(["coverage", "--json", *words])
    held: dict[str, Any] = json.loads(capsys.readouterr().out)
    return {**held, "code": code}


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = copy_of_the_example(tmp_path_factory.mktemp("coverage") / "jaffle_shop")
    run_pytest(place, "-q", "tests/revenue/total_revenue.yml")  # builds the database
    return place


def test_the_example_as_counted_by_hand(example: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(example)
    found = report(capsys)
    assert {name: len(cases) for name, cases in found["tables"].items()} == {
        "orders": 12, "products": 5, "customers": 4, "payments": 2,
    }  # fmt: skip
    untouched = sorted(name for name, number in found["columns"].items() if not number)
    assert untouched == [
        "customers.zip", "orders.coupon", "orders.quantity", "payments.payment_id", "products.price",
    ]  # fmt: skip
    assert found["outcomes"] == {"answer": 19, "clarify": 1, "no_data": 1, "refuse": 1}
    assert (found["cases"], found["with_reference"], found["conversations"]) == (22, 20, 1)
    assert (found["rates"]["tables"], found["code"]) == (100.0, 0)
    assert main(["coverage"]) == 0
    out = capsys.readouterr().out
    assert "tables   4 of 4: orders 12, products 5, customers 4, payments 2\n" in out
    assert "missing: no reference has a ratio\n" in out


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        for table in ("orders", "returns", "visits"):
            connection.execute(f"CREATE TABLE {table} (id INT, day DATE, amount DOUBLE)")
        connection.execute("CREATE VIEW sales AS SELECT * FROM orders WHERE amount > 0")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nagenteval_databases =\n    shop = duckdb:///shop.duckdb\n"
    )
    (tmp_path / "tests").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_views_ctes_and_what_cannot_be_read(shop: Path, capsys) -> None:
    (shop / "tests" / "a.yml").write_text(
        "cases:\n"
        "  - {name: view, prompt: a b, sql: SELECT sum(amount) AS n FROM sales}\n"
        "  - name: cte\n    prompt: c d\n"
        "    sql: WITH orders AS (SELECT day FROM returns) SELECT count(*) AS n FROM orders\n"
        "  - {name: hidden, prompt: e f, sql: SELECT n FROM query('SELECT 1 AS n'), skip: true}\n"
    )
    found = report(capsys)
    assert found["tables"] == {"orders": ["view"], "returns": ["cte"], "visits": []}
    assert found["columns"]["returns.day"] == 1
    assert found["unparsable"] == ["hidden"]
    assert found["missing"][0] == "no case reads visits"


def test_a_log_ranks_what_is_missing(shop: Path, capsys) -> None:
    (shop / "tests" / "a.yml").write_text("prompt: a\nsql: SELECT 1 AS n FROM orders\n")
    (shop / "log.csv").write_text(
        "query,calls,total_exec_time,userid\nSELECT count(*) FROM visits,40,1,1\n"
        "SELECT sum(amount) FROM returns,2,1,1\n"
    )
    found = report(capsys, "--log", "log.csv")
    assert found["missing"][:2] == [
        "no case reads visits (asked 40 times)",
        "no case reads returns (asked 2 times)",
    ]
    (shop / "log.csv").write_text("question,sql\nx,SELECT 1\n")
    assert main(["coverage", "--log", "log.csv"]) == 2
    assert "is no query log" in capsys.readouterr().err


def test_a_least_share_can_be_asked_for(shop: Path, capsys) -> None:
    (shop / "tests" / "a.yml").write_text("prompt: a\nsql: SELECT sum(amount) AS n FROM orders\n")
    assert main(["coverage", "--min", "tables=30,unseen=100"]) == 0
    assert main(["coverage", "--min", "tables=50, reviewed=10"]) == 1
    out = capsys.readouterr().out
    assert "below --min: tables: 33.3 %, wanted 50 %\nbelow --min: reviewed: 0.0 %, wanted 10 %\n" in out
    assert main(["coverage", "--min", "table=50"]) == 2
    assert "there is no rate 'table', did you mean 'tables'?" in capsys.readouterr().err
    assert main(["coverage", "--min", "tables"]) == 2
    (shop / "tests" / "a.yml").unlink()
    assert main(["coverage"]) == 2


@pytest.mark.parametrize(
    ("sql", "level"),
    [
        ("SELECT 1 AS n", "simple"),
        ("SELECT count(*) FROM a JOIN b USING (x)", "simple"),
        ("SELECT count(*) FROM a JOIN b USING (x) JOIN c USING (x)", "moderate"),
        ("SELECT x FROM a WHERE y IN (SELECT y FROM b)", "moderate"),
        ("SELECT count(*) FROM a JOIN b USING (x) JOIN c USING (x) JOIN d USING (x)", "challenging"),
        ("SELECT sum(x) OVER (ORDER BY y) AS n FROM a", "challenging"),
        ("SELECT avg(n) FROM (SELECT count(*) AS n FROM a GROUP BY x) AS t", "challenging"),
    ],
)
def test_how_hard_a_reference_is(sql: str, level: str) -> None:
    assert difficulty(sqlglot.parse_one(sql, read="duckdb")) == level
