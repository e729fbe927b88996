"""The command line as a shell uses it: into a pipe that closes early, over runs of two models."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def stored(path: Path, model: str, verdicts: list[str]) -> Path:
    """A results file of nao's shape with one entry per verdict."""
    results = [
        {"name": f"c{n:04}", "model": model, "passed": verdict == "passed", "message": verdict}
        for n, verdict in enumerate(verdicts)
    ]
    path.write_text(json.dumps({"timestamp": "2026-11-30T12:00:00", "results": results}), "utf-8")
    return path


def test_two_models_are_paired_by_case(tmp_path: Path) -> None:
    old = stored(tmp_path / "old.json", "demo:a", ["passed", "passed"])
    new = stored(tmp_path / "new.json", "demo:b", ["passed", "failed"])
    command = [sys.executable, "-m", "pytest_agenteval", "diff", str(old), str(new)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Regressions (1)" in done.stdout
    assert "c0001" in done.stdout


def test_a_reader_that_goes_away_is_no_crash(tmp_path: Path) -> None:
    old = stored(tmp_path / "old.json", "demo:a", ["passed"] * 5000)
    new = stored(tmp_path / "new.json", "demo:a", ["failed"] * 5000)
    command = f"{sys.executable} -m pytest_agenteval diff {old} {new} | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.stderr == ""


def test_view_takes_results_and_nothing_else(tmp_path, capsys):
    from pytest_agenteval.cli import main

    (tmp_path / "junit.xml").write_text("<testsuite/>")
    assert main(["view", str(tmp_path / "junit.xml")]) == 2
    assert "junit.xml is not a results file (results_*.json), nor a folder of them" in capsys.readouterr().err
