"""nao's own functions on our file, where nao-core is installed (or set up by tox -e nao)."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from result_runs import item


@pytest.fixture(scope="module")
def nao_summary() -> ModuleType:
    """nao-core's summary module alone: the package around it would load a whole server."""
    place = Path("nao_core", "commands", "test", "summary.py")
    folders = [Path(entry) for entry in sys.path if entry]
    setup = os.environ.get("AGENTEVAL_TEST_NAO_DIR")
    if setup:
        folders += Path(setup).glob("venv/lib/python*/site-packages")
    found = next((folder / place for folder in folders if (folder / place).is_file()), None)
    if found is None:
        pytest.skip("nao-core is not installed")
    spec = importlib.util.spec_from_file_location("agenteval_test_nao_summary", found)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_nao_counts_our_results_as_we_do(nao_summary, stored):
    plan = {
        item(name, model, k=2): ["passed", second]
        for model in ("m:1", "m:2")
        for name, second in (("a", "passed"), ("b", "failed"), ("c", "passed"))
    }
    ours = json.loads(stored(plan).path.read_text())
    theirs = nao_summary.summarize(ours["results"])
    assert {key: ours["summary"][key] for key in theirs} == pytest.approx(theirs)
    metrics = nao_summary.summarize_pass_metrics(ours["results"])
    assert ours["pass_metrics"]["aggregate"] == pytest.approx(metrics["aggregate"])
    assert ours["pass_metrics"]["k"] == metrics["k"]
    for mine, entry in zip(ours["pass_metrics"]["by_test"], metrics["by_test"], strict=True):
        assert {key: mine[key] for key in entry} == entry
    for mine, entry in zip(ours["by_model"], nao_summary.summarize_by_model(ours["results"]), strict=True):
        assert mine["model"] == entry.model
        assert (mine["passed"], mine["pass_at_1"]) == (entry.passed, pytest.approx(entry.pass_at_1))
        assert mine["total_cost"] == pytest.approx(entry.total_cost)
    assert nao_summary.with_model_summaries(ours) is ours


def test_nao_reads_errors_and_unknown_costs(nao_summary, stored):
    ours = json.loads(stored({item("a"): ["error"], item("b"): None, item("c"): ["passed"]}).path.read_text())
    theirs = nao_summary.summarize(ours["results"])
    assert (theirs["total"], theirs["passed"]) == (3, 1)
    assert theirs["failed"] == 2  # nao counts errors as failures; we keep them apart
