"""Lints of ``agenteval check``: each hits what it is for, stays silent beside it, and can be silenced."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import duckdb
import pytest

from pytest_agenteval.authoring.lints.rules import CODES
from pytest_agenteval.cli import main

LINTS = Path(__file__).parents[3] / "shared" / "data" / "lints" / "lints.yml"
PLANTED = {
    "table names in prompt": {"names-in-question", "unnamed"},
    "dup two": {"duplicate"},
    "moving date": {"moving-date", "relative-time"},
    "limit without order": {"limit-no-order"},
    "select star": {"star"},
    "unit": {"unit", "unnamed"},
    "no rows": {"star"},
    "no owner expired": {"stale-review"},
}
WITH_REFERENCES = {
    "dup two": {"contradiction"},
    "tie at the edge": {"tie-at-limit"},
    "unknown table": {"unknown-table"},
    "no rows": {"empty-reference"},
}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE orders AS SELECT i AS order_id, DATE '2025-01-01' + (i % 365)::INT AS ordered_on, "
            "['web', 'store'][1 + i % 2] AS channel, (5 + i % 37 * 0.35)::DECIMAL(10, 2) AS amount, "
            "['completed', 'returned'][1 + (i % 9 = 0)::INT] AS status FROM range(2000) t(i)"
        )
        connection.execute("CREATE TABLE customers AS SELECT i AS customer_id FROM range(50) t(i)")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nagenteval_databases =\n    shop = duckdb:///shop.duckdb\n"
    )
    (tmp_path / "tests").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(capsys, *words: str) -> dict[str, set[str]]:
    """Name of the case -> codes, of ``agenteval check --json``."""
    main(["check", "--json", *words])
    report = json.loads(capsys.readouterr().out)
    out: dict[str, set[str]] = {}
    for problem in report["problems"]:
        if problem["code"]:
            out.setdefault(problem["text"].partition(":")[0], set()).add(problem["code"])
    return out


def case(prompt: str, sql: str = "SELECT count(*) AS n FROM orders", more: str = "") -> str:
    return f"prompt: {json.dumps(prompt)}\nsql: {json.dumps(sql)}\n{more}\n"


@pytest.mark.skipif(not LINTS.is_file(), reason="needs ../shared/data/lints")
def test_the_planted_faults_are_found_and_nothing_else(shop: Path, capsys) -> None:
    (shop / "tests" / "lints.yml").write_text(LINTS.read_text())
    assert found(capsys) == PLANTED
    both = {
        name: PLANTED.get(name, set()) | WITH_REFERENCES.get(name, set())
        for name in PLANTED | WITH_REFERENCES
    }
    assert found(capsys, "--references") == both


@pytest.mark.parametrize(
    ("code", "hit", "silent"),
    [
        ("relative-time", "Orders in the last 7 days?", "What is the last name of customer 7?"),
        ("relative-time", "How many orders came in yesterday?", "Orders of last month (May 2025)?"),
        ("relative-time", "Wie viele Bestellungen gab es im letzten Monat?", "Die letzte Bestellung?"),
        ("relative-time", "Combien de commandes le mois dernier ?", "Le dernier client ?"),
        ("relative-time", "¿Cuántos pedidos el mes pasado?", "¿El último cliente?"),
        ("relative-time", "Revenue year to date?", "Revenue of the current customers?"),
        ("relative-time", "Orders three weeks ago?", "Which order is past due?"),
        ("order-asked", "Channels ranked by revenue?", "How many orders in order 7?"),
        ("order-asked", "Revenue by channel, from highest to lowest?", "Which channel is highest?"),
        ("names-in-question", "What is orders.amount in total?", "What is the total amount of orders?"),
        ("names-in-question", "Use a left join of orders?", "Who left and who joined?"),
    ],
)
def test_lints_of_questions(shop: Path, code: str, hit: str, silent: str, capsys) -> None:
    (shop / "tests" / "hit.yml").write_text(case(hit, "SELECT sum(orders.amount) AS n FROM orders"))
    (shop / "tests" / "silent.yml").write_text(case(silent, "SELECT sum(orders.amount) AS n FROM orders"))
    codes = found(capsys)
    assert code in codes["hit"]
    assert code not in codes.get("silent", set())


@pytest.mark.parametrize(
    ("code", "hit", "silent"),
    [
        ("moving-date", "SELECT now() AS n", "SELECT DATE '2025-01-01' AS n"),
        ("moving-date", "SELECT 1 AS n FROM orders WHERE ordered_on > 'today'::DATE", "SELECT 'now' AS n"),
        ("moving-date", "SELECT random() AS n", "SELECT count(*) AS n FROM orders WHERE channel = 'today'"),
        ("limit-no-order", "SELECT order_id FROM orders LIMIT 5", "SELECT count(*) AS n FROM orders LIMIT 1"),
        ("limit-no-order", "SELECT channel FROM orders GROUP BY 1 LIMIT 1", "SELECT order_id FROM orders"),
        ("star", "SELECT * FROM orders", "SELECT count(*) AS n FROM orders"),
        ("star", "SELECT o.* FROM orders AS o", "SELECT n FROM (SELECT *, 1 AS n FROM orders) AS o"),
        ("unnamed", "SELECT count(*) FROM orders", "SELECT channel FROM orders"),
        ("unit", "SELECT amount / 2 AS quota FROM orders", "SELECT amount / 2 AS ratio FROM orders"),
        ("unit", "SELECT round(avg(CASE WHEN status = 'x' THEN 1 ELSE 0 END), 2) AS back FROM orders",
         "SELECT avg(amount) AS mean FROM orders"),
    ],
)  # fmt: skip
def test_lints_of_references(shop: Path, code: str, hit: str, silent: str, capsys) -> None:
    (shop / "tests" / "hit.yml").write_text(case("A question of one kind?", hit))
    (shop / "tests" / "silent.yml").write_text(case("Something else is asked here?", silent))
    codes = found(capsys)
    assert code in codes["hit"]
    assert code not in codes.get("silent", set())


def test_an_order_that_is_checked_is_no_fault(shop: Path, capsys) -> None:
    sql = "SELECT channel, sum(amount) AS revenue FROM orders GROUP BY channel ORDER BY revenue DESC"
    (shop / "tests" / "a.yml").write_text(
        case("Channels ranked by revenue?", sql, "comparison: {ordered: true}")
    )
    (shop / "tests" / "b.yml").write_text(case("Rank the channels by their revenue?", sql))
    assert found(capsys) == {"b": {"order-asked"}}


def test_duplicates_and_near_ones(shop: Path, capsys) -> None:
    sql = "SELECT count(*) AS n FROM orders WHERE channel = '{}'"
    texts = {
        "a": case("How many orders came in through the web shop in 2025?", sql.format("web")),
        "b": case("how many ORDERS came in through the  web shop, in 2025", "SELECT 1 AS n"),
        "c": case("How many orders came in through the store shop in 2025?", "SELECT 2 AS m, 'x' AS y"),
        "d": case("And what about the other one?", sql.format("store")),
        "e": case(
            "How many orders came in through the web shop in 2025?", "SELECT 3 AS n", "context: of Spain"
        ),
    }
    for name, text in texts.items():
        (shop / "tests" / f"{name}.yml").write_text(text)
    codes = found(capsys)
    assert codes.pop("b") == {"duplicate"}
    assert codes == {"c": {"near-duplicate"}, "d": {"near-duplicate"}, "e": {"near-duplicate"}}


def test_what_the_agent_is_shown_is_known(shop: Path, capsys) -> None:
    (shop / "RULES.md").write_text("How many orders are there?  SELECT count(*) FROM orders\n")
    (shop / "tests" / "a.yml").write_text(case("How many orders are there?"))
    (shop / "tests" / "b.yml").write_text(case("How many customers?", more="metadata: {known: true}"))
    (shop / "tests" / "c.yml").write_text(
        case("Which channels are there?", "SELECT DISTINCT channel FROM orders")
    )
    assert found(capsys, "--select", "known") == {"a": {"known"}, "b": {"known"}}


@pytest.mark.parametrize("code", sorted(CODES))
def test_each_lint_can_be_silenced(shop: Path, code: str, capsys) -> None:
    if not LINTS.is_file():
        pytest.skip("needs ../shared/data/lints")
    text = LINTS.read_text()
    (shop / "tests" / "lints.yml").write_text(text)
    (shop / "tests" / "known.yml").write_text(
        case("A known one?", "SELECT 1 AS n", "metadata: {known: true}")
    )
    (shop / "tests" / "ranked.yml").write_text(case("Orders sorted by size?", "SELECT 2 AS n"))
    (shop / "tests" / "near.yml").write_text(case("Orders sorted by their size?", "SELECT 7 AS n"))
    every = found(capsys, "--references")
    assert any(code in codes for codes in every.values())
    without = {name: codes - {code} for name, codes in every.items() if codes - {code}}
    assert found(capsys, "--references", "--ignore", code) == without
    (shop / "pytest.ini").write_text((shop / "pytest.ini").read_text() + f"agenteval_lint_ignore = {code}\n")
    assert found(capsys, "--references") == without


def test_a_case_silences_its_own(shop: Path, capsys) -> None:
    sql = "SELECT * FROM orders LIMIT 5"
    for name, ignored in {"a": "[star]", "b": "{limit-no-order: any five will do}", "c": "star"}.items():
        (shop / "tests" / f"{name}.yml").write_text(
            case(f"Show five of {name}?", sql, f"metadata: {{ignore: {ignored}}}")
        )
    codes = found(capsys, "--select", "star, limit-no-order")
    assert codes == {"a": {"limit-no-order"}, "b": {"star"}, "c": {"limit-no-order"}}


def test_levels_places_and_hints(shop: Path, capsys) -> None:
    (shop / "tests" / "a.yml").write_text("prompt: Show five?\n\nsql: SELECT * FROM orders LIMIT 5\n")
    assert main(["check"]) == 0
    out = capsys.readouterr().out
    assert (
        "tests/a.yml:3:1: warning: [limit-no-order] a: the reference has a LIMIT and no ORDER BY; order it by"
        in out
    )
    assert "tests/a.yml:3:1: note: [star] a: the reference selects *\n" in out
    assert out.endswith("1 file, 1 case: 0 errors, 1 warning\n")
    assert main(["check", "--strict", "--fix-hint"]) == 1
    out = capsys.readouterr().out
    assert "note: [star] a: the reference selects *; name the columns that the answer needs\n" in out
    assert "tests/a.yml:3:1: [limit-no-order] a:" in out
    assert main(["check", "--select", "none"]) == 0
    assert main(["check", "--select", "limit"]) == 2
    assert "--select: there is no lint 'limit'" in capsys.readouterr().err


def test_owners_and_reviews_can_be_required(shop: Path, capsys) -> None:
    ini = shop / "pytest.ini"
    ini.write_text(ini.read_text() + "agenteval_require = owner, reviewed\n")
    (shop / "tests" / "a.yml").write_text(case("One?", more="owner: ana\nmetadata: {reviewed: {by: ana}}"))
    (shop / "tests" / "b.yml").write_text(case("Another one?", "SELECT 1 AS n"))
    main(["check"])
    out = capsys.readouterr().out
    assert re.findall(r"\[stale-review\] (.+)", out) == [
        "b: it has no owner; write owner: NAME",
        "b: nobody has approved it; agenteval review --approve",
    ]


@pytest.mark.parametrize(
    ("sql", "tie"),
    [
        ("SELECT order_id FROM orders ORDER BY amount DESC LIMIT 5", True),
        ("SELECT order_id, amount FROM orders ORDER BY 2 DESC LIMIT 5", True),
        ("SELECT channel, count(*) AS n FROM orders GROUP BY channel ORDER BY n LIMIT 1", True),
        ("SELECT order_id FROM orders ORDER BY amount DESC, order_id LIMIT 5", False),
        ("SELECT order_id FROM orders ORDER BY amount DESC LIMIT 5000", False),
        ("SELECT DISTINCT channel FROM orders ORDER BY upper(channel) LIMIT 1", False),
        ("SELECT order_id FROM orders ORDER BY amount DESC LIMIT 5 OFFSET 1", False),
    ],
)
def test_ties_at_a_limit(shop: Path, sql: str, tie: bool, capsys) -> None:
    (shop / "tests" / "a.yml").write_text(case("Which?", sql))
    assert ("tie-at-limit" in found(capsys, "--references").get("a", set())) is tie


def test_a_thousand_cases_are_quick_and_open_no_database(shop: Path, capsys) -> None:
    lines = ["cases:"]
    for number in range(1000):
        lines.append(f"  - prompt: How many orders does the shop number {number} of town {number % 7} have?")
        lines.append(f"    sql: SELECT count(*) AS n{number} FROM orders WHERE order_id > {number}")
    (shop / "tests" / "many.yml").write_text("\n".join(lines) + "\n")
    (shop / "shop.duckdb").unlink()
    start = time.process_time()
    assert main(["check", "--ignore", "near-duplicate"]) == 0
    assert time.process_time() - start < 15
    assert "1 file, 1,000 cases: 0 errors" in capsys.readouterr().out.replace("1000", "1,000")
