"""The example as a user runs it: careful passes all, hasty makes six mistakes, and each is named."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "jaffle_shop"
TEXTS = Path(__file__).with_name("mistakes.txt")

# The six planted mistakes, and the word that says what went wrong.
MISTAKES = {
    "revenue_by_month": "wrong_grain",
    "revenue_by_channel": "rows_extra",
    "average_order_value": "rounded",
    "category_ranking": "order",
    "never_ordered": "truncated_by_limit",
    "instalments": "fan_out",
}


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``pytest`` in a process of its own, 80 columns wide, no settings of ours from outside."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("AGENTEVAL_", "GITHUB_"))
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=project,
        env=kept | {"COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def fresh(target: Path) -> Path:
    unwanted = shutil.ignore_patterns(
        "shop.duckdb*", "shop.version", "shop.lock", "outputs", "__pycache__", ".*_cache"
    )
    shutil.copytree(EXAMPLE, target, ignore=unwanted)
    return target


def document(project: Path) -> dict[str, Any]:
    (path,) = (project / "tests" / "outputs").glob("results_*.json")
    return dict(json.loads(path.read_text()))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Both models over all cases: what was printed, and the results document."""
    project = fresh(tmp_path_factory.mktemp("example") / "jaffle_shop")
    done = run(project, "--agent-model", "demo:careful,demo:hasty")
    return done, document(project)


def test_careful_passes_all_with_four_workers_that_build_the_shop_at_once(tmp_path: Path) -> None:
    project = fresh(tmp_path / "jaffle_shop")
    done = run(project, "-n", "4")
    assert done.returncode == 0, done.stdout
    assert re.search(r"\b22 passed in ", done.stdout), done.stdout
    assert {entry["model"] for entry in document(project)["results"]} == {"demo:careful"}


def test_hasty_makes_six_mistakes_and_nothing_else_is_wrong(both: Any) -> None:
    done, found = both
    assert done.returncode == 1
    assert re.search(r"\b6 failed, 38 passed in ", done.stdout), done.stdout
    wrong = {entry["name"]: entry["reason"] for entry in found["results"] if entry["verdict"] != "passed"}
    assert wrong == MISTAKES
    assert {entry["model"] for entry in found["results"] if entry["verdict"] == "failed"} == {"demo:hasty"}
    assert found["cases"]["errors"] == 0


def test_the_text_of_each_failure_is_the_one_that_readers_were_given(both: Any) -> None:
    """Six readers named the mistakes from these texts; a change of wording asks them again."""
    done, _ = both
    failures = done.stdout.partition(" FAILURES ")[2].partition("= agenteval")[0]
    assert failures.splitlines()[1:] == TEXTS.read_text().splitlines()
    assert max(len(line) for line in TEXTS.read_text().splitlines()) <= 80


def test_git_sees_nothing_after_a_run(tmp_path: Path) -> None:
    project = fresh(tmp_path / "jaffle_shop")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(project)]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "clone"]):
        subprocess.run([*git, *command], check=True, timeout=30)
    done = run(project, "-q", "-n", "2")
    assert done.returncode == 0, done.stdout
    status = subprocess.run(
        [*git, "status", "--porcelain"], capture_output=True, text=True, check=True, timeout=30
    )
    assert status.stdout == ""


def test_from_the_top_of_a_repository_the_example_is_a_project_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = ['--no-such-option']\n")
    fresh(tmp_path / "docs" / "examples" / "jaffle_shop")
    done = run(tmp_path, "docs/examples/jaffle_shop", "-q", "-k", "total_revenue")
    assert done.returncode == 0, done.stdout + done.stderr
