"""What the tests of pages share: results of a real run, and a way to change them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "jaffle_shop"
NAO = ROOT / "tests" / "data" / "nao"


@pytest.fixture(scope="session")
def jaffle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example after a real run with two models and two attempts; its root."""
    root = tmp_path_factory.mktemp("shop") / "jaffle"
    shutil.copytree(EXAMPLE, root, ignore=shutil.ignore_patterns("outputs", "__pycache__", "*.duckdb"))
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--agent-label", "first"),
            *(
                "--agent-model",
                "demo:careful,demo:hasty",
                "--agent-k",
                "2",
                "--agent-html",
                "out/report.html",
            ),
        ],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 1, run.stdout + run.stderr
    return root


@pytest.fixture(scope="session")
def jaffle_results(jaffle: Path) -> Path:
    """The results file of that run."""
    (found,) = (jaffle / "tests" / "outputs").glob("results_*.json")
    return found


@pytest.fixture
def outputs(jaffle: Path, jaffle_results: Path, tmp_path: Path) -> Path:
    """A project of its own with a copy of those results; its outputs folder."""
    shutil.copytree(jaffle, tmp_path / "jaffle", ignore=shutil.ignore_patterns("out"))
    return tmp_path / "jaffle" / "tests" / "outputs"


@pytest.fixture
def results(outputs: Path) -> Path:
    """The results file in ``outputs``."""
    (found,) = outputs.glob("results_*.json")
    return found


@pytest.fixture(scope="session")
def changed(jaffle_results: Path) -> Callable[..., Path]:
    """``changed(path, change)``: the results with ``change(entry)`` applied to each entry, at ``path``.

    ``keep(entry)`` chooses among the entries.
    """

    def make(path: Path, change: Callable[[dict[str, Any]], Any], keep: Any = None, **header: Any) -> Path:
        from pytest_agenteval.results.load import read_document
        from pytest_agenteval.results.values import dumps

        document = read_document(jaffle_results)
        entries = [entry for entry in document.entries() if keep is None or keep(entry)]
        for entry in entries:
            change(entry)
        lines = [f"{dumps(key)}: {dumps(value)},\n" for key, value in {**document.header, **header}.items()]
        body = ",\n".join(map(dumps, entries))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{\n" + "".join(lines) + f'"results": [\n{body}\n]\n}}\n', encoding="ascii")
        return path

    return make


def read_json(path: Path) -> Any:
    """A JSON file."""
    return json.loads(path.read_bytes())
