"""Errors and expected failures are counted as what they are, on pages and in the terminal."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from result_runs import item

from pytest_agenteval.engine.run_metadata import git_sha
from pytest_agenteval.reports import terminal
from pytest_agenteval.reports.html.filters import PageQuery
from pytest_agenteval.reports.html.run_view import run_view
from pytest_agenteval.reports.tables import cell_text
from pytest_agenteval.results.document.document import from_folder
from pytest_agenteval.viewer.server import bind

sys.path.insert(0, str(Path(__file__).parent.parent / "viewer"))

from viewer_site import site_of


@pytest.fixture
def folder(run_folder):
    """Two right, one wrong, one in error, two wrong as expected."""
    known = {item(name, xfail="upstream"): ["failed"] for name in ("known", "known too")}
    return run_folder(
        {item("a"): ["passed"], item("b"): ["passed"], item("c"): ["failed"], item("d"): ["error"], **known}
    )


def test_passed_and_pass_rate_have_one_denominator(folder):
    view = run_view("results_1", from_folder(folder), PageQuery())
    cards = {card.name: (card.value, card.note) for card in view.cards}
    assert cards["Passed"] == ("2", "of 4")
    assert cards["Errors"] == ("1", "no verdict on the answer")
    assert cards["Expected failures"] == ("2", "")


def test_expected_failures_have_a_filter_of_their_own(folder):
    view = run_view("results_1", from_folder(folder), PageQuery())
    assert (view.counts["failures"], view.counts["expected"], view.counts["all"]) == (1, 2, 6)
    chosen = run_view("results_1", from_folder(folder), PageQuery.read({"show": "expected"})).chosen
    assert [line.case.key[1] for line in chosen] == ["known", "known too"]
    assert [cell_text(line.case) for line in view.lines] == [
        "✓ 1/1",
        "✓ 1/1",
        "✗ 0/1",
        "E 0/1",
        "x 0/1",
        "x 0/1",
    ]


def test_the_pages_say_so(folder, outputs, tmp_path):
    with site_of(outputs, tmp_path, bind(0)) as site:
        listed = " ".join(site.ask("/")[2].split())
        assert "2 passed, 1 failed, 1 error, 2 expected failures" in listed
        page = " ".join(site.ask(f"/runs/{folder.path.name}")[2].split())
        assert 'Failures <span class="count">1</span>' in page
        assert 'Expected failures <span class="count">2</span>' in page


def test_the_viewer_is_named_where_it_can_be_used(folder, monkeypatch):
    document = from_folder(folder)
    assert "agenteval view (what differs, cell by cell)" in terminal.suggested_steps(document)
    monkeypatch.setattr(terminal, "VIEWER", ("starlette", "not_installed_here"))
    assert not [step for step in terminal.suggested_steps(document) if "agenteval view" in step]


def test_cases_that_a_gate_counts_are_not_asked_again_by_lf(run_folder):
    plan = {item("a"): ["failed"]}
    assert "pytest --lf (asks the failed cases again)" in terminal.suggested_steps(
        from_folder(run_folder(plan))
    )
    gates = {"gates": [{"gate": "g", "holds": False, "text": "g"}]}
    steps = terminal.suggested_steps(from_folder(run_folder(plan, gates)))
    assert not [step for step in steps if "--lf" in step]


def test_a_repository_without_a_commit_has_none(tmp_path):
    import subprocess

    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert git_sha(tmp_path) is None
