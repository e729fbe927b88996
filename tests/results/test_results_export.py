"""``agenteval export``: attempts for other programs."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import duckdb
import pytest
from pytest_httpserver import HTTPServer
from result_runs import item

from pytest_agenteval.cli import main

NAO = Path(__file__).parent.parent / "data" / "nao" / "results_3cases_2models_k2.json"


@pytest.fixture
def results(stored) -> Path:
    return stored({item("a", tags=("x", "y")): ["passed"], item("b"): ["failed"], item("c"): ["error"]}).path


def test_csv_and_json_lines_have_a_row_per_attempt(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(results), "--to", "csv"]) == 0
    out, err = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["name"], row["verdict"], row["tags"]) for row in rows] == [
        ("a", "passed", "x,y"), ("b", "failed", ""), ("c", "error", ""),
    ]  # fmt: skip
    assert err == "agenteval: 3 attempts\n"
    assert main(["export", str(results), str(NAO), "--to", "jsonl"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 15
    assert lines[0]["tags"] == ["x", "y"]
    assert {line["run"] for line in lines} == {results.stem, NAO.stem}
    assert lines[2]["score"] is None


def test_parquet_is_read_by_duckdb(results: Path, tmp_path: Path) -> None:
    out = tmp_path / "attempts.parquet"
    assert main(["export", str(results), "--to", "parquet", "-o", str(out)]) == 0
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT name, verdict, len(tags) FROM '{out}' ORDER BY name").fetchall()
    assert found == [("a", "passed", 2), ("b", "failed", 0), ("c", "error", 0)]


def test_spans_carry_verdict_usage_and_time(results: Path, tmp_path: Path) -> None:
    out = tmp_path / "spans.json"
    assert main(["export", str(results), "--to", "otlp", "-o", str(out)]) == 0
    (resource,) = json.loads(out.read_text())["resourceSpans"]
    first, second, third = resource["scopeSpans"][0]["spans"]
    facts = {entry["key"]: entry["value"] for entry in first["attributes"]}
    assert facts["gen_ai.request.model"] == {"stringValue": "demo:a"}
    assert facts["gen_ai.usage.input_tokens"] == {"intValue": "20"}
    assert facts["agenteval.cost_usd"] == {"doubleValue": 0.01}
    assert facts["agenteval.tags"]["arrayValue"]["values"] == [{"stringValue": "x"}, {"stringValue": "y"}]
    assert first["status"] == {"code": 1}
    assert second["status"] == {"code": 2, "message": "values differ"}
    assert third["status"]["code"] == 2
    assert len({first["traceId"], second["traceId"], third["traceId"]}) == 1
    assert len({first["spanId"], second["spanId"], third["spanId"]}) == 3
    assert int(first["endTimeUnixNano"]) - int(first["startTimeUnixNano"]) == 1_000_000_000


def test_a_collector_is_sent_each_run(results: Path, httpserver: HTTPServer, capsys) -> None:
    httpserver.expect_request("/v1/traces", method="POST").respond_with_json({})
    assert main(["export", str(results), "--to", "otlp", "--endpoint", httpserver.url_for("/")]) == 0
    (request, _) = httpserver.log[0]
    assert len(request.get_json()["resourceSpans"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"agenteval: 3 spans sent to {httpserver.url_for('/')}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--to", "csv", "--endpoint", "http://x"], "--endpoint goes with --to otlp, not with --to csv"),
        (["--to", "parquet"], "--to parquet needs -o OUT: it is not text"),
        (["--to", "csv", "-o", "no/such/folder/x.csv"], "No such file or directory"),
    ],
)
def test_what_does_not_fit_is_refused(results: Path, words: list[str], said: str, capsys) -> None:
    assert main(["export", str(results), *words]) == 2
    assert said in capsys.readouterr().err


def test_a_collector_that_refuses_or_is_away_is_named(results: Path, httpserver: HTTPServer, capsys) -> None:
    httpserver.expect_request("/v1/traces").respond_with_data("quota", status=429)
    assert main(["export", str(results), "--to", "otlp", "--endpoint", httpserver.url_for("/v1/traces")]) == 2
    assert f"{httpserver.url_for('/v1/traces')}: HTTP 429: quota" in capsys.readouterr().err
    assert main(["export", str(results), "--to", "otlp", "--endpoint", "http://127.0.0.1:9"]) == 2
    assert "http://127.0.0.1:9/v1/traces: " in capsys.readouterr().err
