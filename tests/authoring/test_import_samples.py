"""The handed samples of 28 formats: what each must give was written down before its reader."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_agenteval.authoring.importing.formats import read_items
from pytest_agenteval.authoring.importing.sources import read_source
from pytest_agenteval.cli import main

SAMPLES = Path(__file__).parents[3] / "shared" / "data" / "import"
pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="needs ../shared/data/import")

EXPECTED = {
    # file: (format, cases, with a reference, left out, statements without a question)
    "analysts.csv": ("spreadsheet", 3, 1, 1, 0),
    "analysts.xlsx": ("spreadsheet", 2, 1, 0, 0),
    "analysts_de.csv": ("spreadsheet", 2, 1, 0, 0),
    "bedrock_curated_queries.json": ("bedrock", 1, 1, 0, 0),
    "bigquery_jobs.csv": ("bigquery-log", 0, 0, 0, 1),
    "bird_dev.json": ("bird", 1, 1, 0, 0),
    "braintrust.jsonl": ("braintrust", 2, 1, 0, 0),
    "cortex_revenue_timeseries.real.yaml": ("cortex", 2, 2, 0, 0),
    "cortex_shop.yaml": ("cortex", 2, 2, 0, 0),
    "cube_eval_questions.yml": ("cube", 2, 1, 0, 0),
    "dbt/saved_queries.yml": ("dbt", 1, 0, 1, 0),
    "defog.csv": ("defog", 2, 2, 0, 0),
    "evalbench.json": ("evalbench", 1, 1, 1, 0),
    "fabric_ground_truth.csv": ("spreadsheet", 1, 0, 0, 0),
    "genie_space.json": ("genie", 4, 2, 0, 0),
    "langfuse_items.json": ("langfuse", 1, 1, 1, 0),
    "langsmith.csv": ("langsmith", 1, 1, 0, 0),
    "langsmith.jsonl": ("langsmith", 2, 1, 0, 0),
    "lightdash_agent.yml": ("lightdash", 2, 0, 0, 0),
    "looker_golden_queries.json": ("looker", 2, 1, 0, 0),
    "metabase_cards.json": ("metabase", 3, 3, 1, 0),
    "pg_stat_statements.csv": ("postgres-log", 0, 0, 1, 2),
    "phoenix.jsonl": ("phoenix", 1, 0, 0, 0),
    "promptfooconfig.yaml": ("promptfoo", 3, 0, 2, 0),
    "snowflake_query_history.csv": ("snowflake-log", 0, 0, 1, 1),
    "spider2/spider2-lite.jsonl": ("spider2", 1, 1, 0, 0),
    "spider_dev.json": ("spider", 1, 1, 0, 0),
    "spider_gold.txt": ("spider-gold", 0, 0, 0, 1),
    "superset/returned_orders.yaml": ("superset", 1, 1, 0, 0),
    "vanna_training.csv": ("vanna", 1, 1, 2, 0),
    "whoop_verified_queries.real.yml": ("whoop", 2, 2, 0, 0),
    "wrenai_sql_pairs.json": ("pairs", 1, 1, 0, 0),
}


@pytest.mark.parametrize("file", EXPECTED)
def test_a_sample_gives_what_was_written_down(file: str) -> None:
    form, read = read_items(read_source(SAMPLES / file))
    references = sum(bool(item.sql) for item in read.items)
    assert (form, len(read.items), references, len(read.left_out), len(read.queries)) == EXPECTED[file]


def test_every_sample_is_in_the_table() -> None:
    ours = {"README.md", "make_shop.py", "dbt/assert_no_negative_amount.sql"}
    gold = {"spider2/gold/spider2lite_eval.jsonl", "spider2/gold/sql/shop001.sql"}
    there = {str(path.relative_to(SAMPLES)) for path in SAMPLES.rglob("*") if path.is_file()}
    assert there - ours - gold == set(EXPECTED)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project over the samples' database, all of them imported."""
    place = tmp_path_factory.mktemp("import")
    subprocess.run([sys.executable, str(SAMPLES / "make_shop.py")], cwd=place, check=True)
    (place / "pytest.ini").write_text("[pytest]\nagenteval_databases =\n    shop = duckdb:///shop.duckdb\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        assert main(["import", str(SAMPLES)]) == 1  # a formula, and SQL that cannot run here
    return place


def cases(place: Path, stem: str) -> list[dict[str, Any]]:
    held: list[dict[str, Any]] = yaml.safe_load((place / "tests/imported" / f"{stem}.yml").read_text())[
        "cases"
    ]
    return held


def test_the_references_run_and_what_does_not_is_skipped(shop: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(shop)
    assert main(["check", "--references"]) == 0, capsys.readouterr().out
    skipped = {
        (path.stem, case["name"]): case["skip"]
        for path in (shop / "tests/imported").glob("*.yml")
        for case in cases(shop, path.stem)
        if "skip" in case
    }
    assert {stem for stem, _ in skipped} <= {
        "cortex_revenue_timeseries_real", "whoop_verified_queries_real", "cube_eval_questions", "genie_space",
        "cortex_shop",
    }  # fmt: skip
    assert skipped["genie_space", "Revenue in a month"] == "import: its SQL has a parameter: :month"
    assert skipped["cube_eval_questions", "orders_total"].startswith("import: its SQL calls MEASURE()")


def test_a_second_import_changes_no_byte(shop: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(shop)
    before = {path: path.read_bytes() for path in (shop / "tests").rglob("*") if path.is_file()}
    main(["import", str(SAMPLES)])
    assert {path: path.read_bytes() for path in (shop / "tests").rglob("*") if path.is_file()} == before
    out = capsys.readouterr().out
    assert "analysts.yml: unchanged" in out
    assert ": new" not in out


def test_a_german_spreadsheet(shop: Path) -> None:
    first, second = cases(shop, "analysts_de")
    assert first["assertions"] == [{"type": "value", "equals": 170}]
    assert (first["owner"], first["tags"]) == ("ana", ["orders", "critical"])
    assert second["assertions"] == [{"type": "value", "approx": 11.29, "rtol": 0.000443}]
    assert "sql" not in second


def test_what_a_source_says_of_a_case_is_kept(shop: Path) -> None:
    (first, second) = cases(shop, "cortex_shop")
    assert first["metadata"]["reviewed"]["by"] == "renee"
    assert first["metadata"]["reviewed"]["at"] == "2024-05-03"
    assert first["metadata"]["known"] is True
    assert first["tags"] == ["onboarding"]
    assert second["sql"].startswith("WITH __orders AS (")
    refuse = cases(shop, "analysts")[2]
    assert refuse["outcome"] == "refuse"
    looker = cases(shop, "looker_golden_queries")
    assert looker[0]["variants"] == ["Orders by channel"]
    rate = cases(shop, "defog")
    assert [sql.split(" FROM")[0] for sql in rate[1]["sql"]] == [
        "SELECT avg((status='returned')::int) AS share",
        "SELECT 100*avg((status='returned')::int) AS share",
    ]
    assert rate[1]["context"] == "RR = returned / all"
    promptfoo = cases(shop, "promptfooconfig")[0]
    assert promptfoo["prompt"] == "What was the revenue in 2025?"
    assert {check["type"] for check in promptfoo["assertions"]} == {"text", "judge"}
    assert promptfoo["budget"] == {"cost": 0.01, "duration_ms": 30000}
    assert cases(shop, "bird_dev")[0]["context"] == "came back refers to status = 'returned'"
    assert cases(shop, "metabase_cards")[1]["sql"].endswith("WHERE 1=1 AND status = 'completed'")


def test_the_real_semantic_model_runs_on_its_tables(tmp_path: Path, monkeypatch, capsys) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "cortex_analyst_demo.duckdb")) as connection:
        connection.execute("CREATE SCHEMA revenue_timeseries")
        for table, columns in {
            "daily_revenue": "date DATE, product_id INT, region_id INT, revenue DOUBLE, cogs DOUBLE, "
            "forecasted_revenue DOUBLE",
            "product_dim": "product_id INT, product_line VARCHAR",
            "region_dim": "region_id INT, sales_region VARCHAR, state VARCHAR",
        }.items():
            connection.execute(f"CREATE TABLE revenue_timeseries.{table} ({columns})")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nagenteval_databases =\n    demo = duckdb:///cortex_analyst_demo.duckdb\n"
    )
    shutil.copy(SAMPLES / "cortex_revenue_timeseries.real.yaml", tmp_path / "model.yaml")
    monkeypatch.chdir(tmp_path)
    rename = "cortex_analyst_demo.revenue_timeseries=revenue_timeseries"
    code = main(["import", "model.yaml", "--rename", rename, "--dialect", "snowflake"])
    out = capsys.readouterr().out
    assert code == 0, out
    assert out.endswith("2 cases, 2 references (2 ran, 2 empty); 0 left out, 0 with skip\n")
