"""The example as a user runs it: careful passes all, hasty and freehand make six mistakes, each named."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from user_run import copy_of_the_example, run_pytest

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


def document(project: Path) -> dict[str, Any]:
    (path,) = (project / "tests" / "outputs").glob("results_*.json")
    return dict(json.loads(path.read_text()))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Both models over all cases: what was printed, and the results document."""
    project = copy_of_the_example(tmp_path_factory.mktemp("example") / "jaffle_shop")
    done = run_pytest(project, "--agent-model", "demo:careful,demo:hasty")
    return done, document(project)


def test_careful_passes_all_with_four_workers_and_git_sees_nothing_after_it(tmp_path: Path) -> None:
    """The README's command in a fresh clone: the four build the shop at once."""
    project = copy_of_the_example(tmp_path / "jaffle_shop")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(project)]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "clone"]):
        subprocess.run([*git, *command], check=True, timeout=30)
    done = run_pytest(project, "-n", "4")
    assert done.returncode == 0, done.stdout
    assert re.search(r"\b22 passed in ", done.stdout), done.stdout
    assert {entry["model"] for entry in document(project)["results"]} == {"demo:careful"}
    status = subprocess.run(
        [*git, "status", "--porcelain"], capture_output=True, text=True, check=True, timeout=30
    )
    assert status.stdout == ""


def test_hasty_makes_six_mistakes_and_nothing_else_is_wrong(both: Any) -> None:
    done, found = both
    assert done.returncode == 1
    assert re.search(r"\b6 failed, 38 passed in ", done.stdout), done.stdout
    wrong = {entry["name"]: entry["reason"] for entry in found["results"] if entry["verdict"] != "passed"}
    assert wrong == MISTAKES
    assert {entry["model"] for entry in found["results"] if entry["verdict"] == "failed"} == {"demo:hasty"}
    assert found["cases"]["errors"] == 0


def test_freehand_makes_the_same_mistakes_under_names_of_its_own(tmp_path: Path) -> None:
    """What is right passes by its values; each mistake gets the word that hasty gets for it."""
    project = copy_of_the_example(tmp_path / "jaffle_shop")
    done = run_pytest(project, "--agent-model", "demo:freehand")
    assert re.search(r"\b6 failed, 16 passed in ", done.stdout), done.stdout
    found = document(project)
    wrong = {entry["name"]: entry["reason"] for entry in found["results"] if entry["verdict"] != "passed"}
    assert wrong == MISTAKES
    printed = re.sub(r"\s+", " ", done.stdout)
    assert "`average_order_value` ~ `aov` (names differ): rounded to whole numbers" in printed
    assert "`spent` ~ `customer_spend` (names differ): 1 row too many" in printed
    assert "other grain (grouped by `sold_through` as well)" in printed


def test_the_text_of_each_failure_is_the_one_that_readers_were_given(both: Any) -> None:
    """Readers named the mistakes from the texts in mistakes.txt; other words ask for other readers.

    ``UPDATE_SNAPSHOTS=1`` writes the file anew. Rows without an order may come in any, and how lines are
    wrapped and set in is nobody's mistake: hence the sorted words. Before DuckDB 2 the month of a date is
    a date, not midnight.
    """
    done, _ = both
    failures = re.search(r"^=+ FAILURES =+\n(.*?)^=+ Results =+$", done.stdout, re.DOTALL | re.MULTILINE)
    assert failures is not None, done.stdout
    if os.environ.get("UPDATE_SNAPSHOTS"):
        TEXTS.write_text(failures.group(1), encoding="utf-8")
    known = TEXTS.read_text(encoding="utf-8")
    assert max(len(line) for line in failures.group(1).splitlines()) <= 80
    # which row comes first is the sentence's example, too
    words = [
        re.sub(
            r"expected [\d.]+,\s+got [\d.]+\)", "expected one, got another)", text.replace(" 00:00:00", "")
        )
        for text in (failures.group(1), known)
    ]
    texts = [text.split() for text in words]
    assert sorted(texts[0]) == sorted(texts[1])


def test_the_text_of_each_failure_names_its_mistake() -> None:
    """What a reader needs stands in the text: the word, its proof, the question, both statements."""
    texts = re.split(r"^_+ (\w+)\[demo:hasty\] _+$", TEXTS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    by_name = dict(zip(texts[1::2], texts[2::2], strict=True))
    assert set(by_name) == set(MISTAKES)
    for name, word in MISTAKES.items():
        text = by_name[name]
        assert f"[{word}]" in text.replace("\n  ", " ")
        assert all(f"\n{part} " in text for part in ("prompt", "reference", "answer")), text
    assert "looks like LIMIT 100" in by_name["never_ordered"]
    assert "2 times: join fan-out" in by_name["instalments"]
    assert "rounded to whole numbers" in by_name["average_order_value"]
    assert "in another order" in by_name["category_ranking"]
    assert "grouped by `channel` as well" in by_name["revenue_by_month"]
    assert re.search(r"^extra +staff", by_name["revenue_by_channel"], re.MULTILINE)


def test_from_the_top_of_a_repository_the_example_is_a_project_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = ['--no-such-option']\n")
    copy_of_the_example(tmp_path / "docs" / "examples" / "jaffle_shop")
    done = run_pytest(tmp_path, "docs/examples/jaffle_shop", "-q", "-k", "total_revenue")
    assert done.returncode == 0, done.stdout + done.stderr
