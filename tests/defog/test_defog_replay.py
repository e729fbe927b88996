"""Forty real answers of a real model, replayed against 140 real cases over five databases."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
from right_answers import RIGHT

DEFOG = Path(__file__).resolve().parents[3] / "shared" / "data" / "defog"
DATABASES = ("academic", "broker", "car_dealership", "ewallet", "restaurants")
pytestmark = [
    pytest.mark.defog,
    pytest.mark.skipif(not DEFOG.is_dir(), reason="needs ../shared/data/defog (140 real questions)"),
    pytest.mark.skipif(duckdb.__version__ < "2", reason="needs DuckDB 2, which wrote the defog files"),
]


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The results of the replay, by case name."""
    import subprocess

    place = tmp_path_factory.mktemp("defog")
    shutil.copytree(DEFOG / "tests", place / "tests")
    for name in DATABASES:
        shutil.copy(DEFOG / "db" / f"{name}.duckdb", place / f"{name}.duckdb")
    lines = "".join(f"    {name} = duckdb:///{name}.duckdb\n" for name in DATABASES)
    (place / "pytest.ini").write_text(f"[pytest]\nagenteval_databases =\n{lines}", encoding="utf-8")
    script = Path(__file__).with_name("convert_answers.py")
    subprocess.run([sys.executable, script, DEFOG, place / "answers.jsonl"], check=True)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--agent-target", "replay:answers.jsonl"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    (file,) = (place / "tests" / "outputs").glob("results_*.json")
    return {entry["name"]: entry for entry in json.loads(file.read_text("utf-8"))["results"]}


def answered() -> list[dict[str, Any]]:
    lines = (DEFOG / "model_answers.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_sql_errors_are_no_data(entries: dict[str, dict[str, Any]]) -> None:
    names = [record["name"] for record in answered() if "error" in record]
    assert len(names) == 21
    assert {(entries[name]["verdict"], entries[name]["message"]) for name in names} == {
        ("failed", "no data returned")
    }


def test_the_other_hundred_have_no_recorded_answer(entries: dict[str, dict[str, Any]]) -> None:
    names = {record["name"] for record in answered()}
    others = [entry for name, entry in entries.items() if name not in names]
    assert len(others) == 100
    assert {entry["verdict"] for entry in others} == {"error"}
    assert all("no recorded answer" in entry["error"] for entry in others)


def test_verdicts_with_tables_agree_with_a_check_by_hand(entries: dict[str, dict[str, Any]]) -> None:
    """Each of the 19 tables was laid beside its reference by a person; these are the right ones."""
    names = [record["name"] for record in answered() if "error" not in record]
    assert len(names) == 19
    passed = {name for name in names if entries[name]["verdict"] == "passed"}
    assert {entries[name]["verdict"] for name in names} <= {"passed", "failed"}
    assert passed == RIGHT
