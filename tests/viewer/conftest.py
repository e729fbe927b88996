"""What the tests of pages share: results of a real run, and a way to change them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import axe, browser, chromium  # noqa: F401
from viewer_site import Site, number_of, site_of

from pytest_agenteval.viewer.server import bind

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "jaffle_shop"
NAO = ROOT / "tests" / "data" / "nao"
OLD = "results_20250101_000000"
"""The older run in ``shown``."""


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
        from pytest_agenteval.results.document.load import read_document
        from pytest_agenteval.support.json_codec import dumps

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


@pytest.fixture(scope="session")
def shown(
    jaffle: Path, jaffle_results: Path, tmp_path_factory: pytest.TempPathFactory, changed: Callable[..., Path]
) -> Path:
    """Outputs with a run, an older one that differs, nao's files, a broken file and an unfinished run."""
    outputs = tmp_path_factory.mktemp("shown") / "tests" / "outputs"
    outputs.mkdir(parents=True)
    shutil.copy(jaffle_results, outputs)
    turned = {"total_revenue": "failed", "category_ranking": "passed"}

    def change(entry: dict[str, Any]) -> None:
        if entry["model"] == "demo:hasty" and entry["name"] in turned:
            entry["verdict"] = turned[entry["name"]]
        if entry["name"] == "zip_codes" and entry["attempt"] == 2:
            entry["verdict"] = "failed"
        if entry["name"] == "latest_order":
            entry.update(verdict="error", stage="agent", reason="agent_error", error="AgentFailed: no route")

    changed(outputs / f"{OLD}.json", change, timestamp="2025-01-01T00:00:00+00:00")
    shutil.copy(NAO / "results_3cases_2models.json", outputs)
    (outputs / "results_20250202_000000.json").write_text('{"schema_version": 1,')
    return outputs


@pytest.fixture(scope="session")
def shown_site(shown: Path) -> Iterator[Site]:
    """A viewer over ``shown``."""
    with site_of(shown, shown.parents[1], bind(0)) as running:
        yield running


@pytest.fixture
def home(shown_site: Site) -> str:
    """The address of a viewer over ``shown``."""
    return f"http://127.0.0.1:{shown_site.port}"


@pytest.fixture(scope="session")
def addresses(jaffle_results: Path) -> dict[str, str]:
    """Every view, and a heading or text it must show."""
    run = jaffle_results.stem
    failed = number_of(jaffle_results, "average_order_value")
    return {
        "/": "Runs",
        "/?q=nothing-like-it": "No run is like that",
        f"/runs/{run}": "Performance by Model",
        f"/runs/{run}?show=failures&sort=-cost&q=revenue": "Pass / Fail by Test and Model",
        f"/runs/{run}/attempts/{failed}": "rounded to whole numbers",
        f"/runs/{run}/attempts/{failed}/models": "2 models side by side",
        f"/runs/{OLD}?show=flaky": "flaky",
        f"/runs/{OLD}/attempts/{number_of(jaffle_results, 'latest_order')}": "Error in stage agent",
        f"/compare?old={OLD}&new={run}": "Regressions",
        "/history?path=tests/revenue/total_revenue.yml&name=total_revenue": "Changes of verdict",
        "/runs/results_3cases_2models": "written by another program",
        "/runs/results_3cases_2models/attempts/2": "The difference was made just now",
        "/runs/results_20250202_000000": "This file cannot be shown",
    }
