"""What a person came for: failures first, one denominator, differing statements, models side by side."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browsing import Browser
from viewer_site import Site, number_of, site_of

from pytest_agenteval.reports.html.markup import sql_difference
from pytest_agenteval.results.document.load import read_document
from pytest_agenteval.results.document.overrides import read_overrides
from pytest_agenteval.viewer.pages import equal_attempts
from pytest_agenteval.viewer.server import bind

Changed = Callable[..., Path]


def verdicts(text: str) -> list[str]:
    """The verdicts of the results table, in the order of the page."""
    table = text.partition('<table class="lines results')[2].partition("</table>")[0]
    return re.findall(r'<span class="badge (\w+)">', table)


def test_failures_stand_first_and_passes_last(outputs: Path, results: Path, changed: Changed) -> None:
    def change(entry: dict[str, Any]) -> None:
        if entry["name"] == "latest_order":
            entry.update(verdict="error", stage="agent", error="no route")
        if entry["name"] == "zip_codes":
            entry.update(verdict="review")

    changed(results, change)
    with site_of(outputs, outputs.parents[1], bind(0)) as site:
        shown = verdicts(site.ask(f"/runs/{results.stem}")[2])
        order = ["failed", "error", "review", "passed"]
        assert list(dict.fromkeys(shown)) == order
        assert shown == sorted(shown, key=order.index)
        # asked for another order, that one holds
        by_name = verdicts(site.ask(f"/runs/{results.stem}?sort=name")[2])
        assert by_name != shown
        assert sorted(by_name) == sorted(shown)


@pytest.mark.chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_failure_and_its_cause_are_seen_without_scrolling(
    browser: Browser, home: str, jaffle_results: Path, scheme: str
) -> None:
    page = browser.window(home, scheme=scheme).page
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{home}/runs/{jaffle_results.stem}")
    first = page.locator("table.results tbody tr").first
    assert first.locator(".badge").inner_text() == "failed"
    for part in (first.locator(".badge"), first.locator("td.message")):
        box = part.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 800
    rate = page.locator(".card.main strong").bounding_box()
    assert rate is not None
    assert rate["y"] < 300


def test_rate_and_passed_have_one_denominator(outputs: Path, results: Path, changed: Changed) -> None:
    changed(
        results,
        lambda entry: entry.update(verdict="error") if entry["name"] == "latest_order" else None,
        cases=None,
    )
    document = read_document(results)
    from pytest_agenteval.results.document.totals import case_totals

    totals = case_totals(document.cases)
    changed(results, lambda entry: None, cases=totals)
    counted = totals["passed"] + totals["failed"] + totals["errors"]
    assert totals["errors"] > 0
    with site_of(outputs, outputs.parents[1], bind(0)) as site:
        text = site.ask(f"/runs/{results.stem}")[2]
    card = re.search(r"Passed</span><strong>(\d+)</strong><span class=\"note\">of (\d+)</span>", text)
    assert card is not None
    assert (int(card[1]), int(card[2])) == (totals["passed"], counted)
    assert f"{100 * int(card[1]) / int(card[2]):.1f} %" in text


def test_statements_are_shown_line_by_line(shown_site: Site, jaffle_results: Path) -> None:
    number = number_of(jaffle_results, "average_order_value")
    text = shown_site.ask(f"/runs/{jaffle_results.stem}/attempts/{number}")[2]
    assert '<details class="sqldiff" open>' in text
    assert " (agent only)" in text
    assert " (reference only)" in text


def test_the_difference_of_statements_is_of_their_layout_not_of_their_writing() -> None:
    assert sql_difference("select a from t", "SELECT a\nFROM t") == []
    found = sql_difference("SELECT a, b FROM t", "SELECT a, c FROM t LIMIT 5")
    assert [(state, re.sub("<[^>]+>", "", line).strip()) for state, line in found] == [
        ("same", "SELECT"),
        ("same", "a,"),
        ("gone", "b"),
        ("new", "c"),
        ("same", "FROM t"),
        ("new", "LIMIT 5"),
    ]
    hostile = sql_difference("SELECT '<script>'", "SELECT '<b>'")
    assert "<script>" not in "".join(line for _, line in hostile)


def test_the_case_can_be_asked_again(shown_site: Site, jaffle_results: Path) -> None:
    number = number_of(jaffle_results, "average_order_value")
    text = shown_site.ask(f"/runs/{jaffle_results.stem}/attempts/{number}")[2]
    nodeid = "tests/revenue/average_order_value.yml::average_order_value[demo:hasty]"
    again = f"pytest &#39;{nodeid}&#39;"
    assert f'<figcaption>Ask it again</figcaption><pre tabindex="0">{again}</pre>' in text
    file = "tests/revenue/average_order_value.yml"
    assert f'<figcaption>File</figcaption><pre tabindex="0">{file}</pre>' in text


def test_models_stand_side_by_side(shown_site: Site, jaffle_results: Path) -> None:
    run, number = jaffle_results.stem, number_of(jaffle_results, "average_order_value")
    attempt = shown_site.ask(f"/runs/{run}/attempts/{number}")[2]
    assert f'href="/runs/{run}/attempts/{number}/models"' in attempt
    status, _, text = shown_site.ask(f"/runs/{run}/attempts/{number}/models")
    assert status == 200
    for word in (
        "demo:careful",
        "demo:hasty",
        "Reference",
        "rounded to whole numbers",
        "2 models side by side",
    ):
        assert word in text
    assert text.count('<section class="column"') == 3
    assert shown_site.ask(f"/runs/{run}/attempts/9999/models")[0] == 404


@pytest.mark.chromium
def test_side_by_side_fits_a_phone(browser: Browser, home: str, jaffle_results: Path) -> None:
    number = number_of(jaffle_results, "average_order_value")
    for width in (1280, 400):
        window = browser.window(home, width=width)
        window.page.goto(f"{home}/runs/{jaffle_results.stem}/attempts/{number}/models")
        assert window.page.locator(".column").count() == 3
        assert window.sideways <= 0


def test_a_verdict_holds_for_every_attempt_with_the_same_answer(outputs: Path, results: Path) -> None:
    number = number_of(results, "average_order_value")
    document = read_document(results)
    equal = equal_attempts(document, number)
    assert len(equal) == 1  # k = 2, and the demo answers alike
    with site_of(outputs, outputs.parents[1], bind(0)) as site:
        address = f"/runs/{results.stem}/attempts/{number}"
        assert "also for the 1 other attempt with the same answer" in site.ask(address)[2]
        form = {"form_token": site.access.form_token, "verdict": "passed", "note": "fine"}
        assert site.post(f"{address}/override", form)[0] == 303
        assert len(read_overrides(results)) == 1
        assert site.post(f"{address}/override", {**form, "all": "yes"})[0] == 303
        held = read_overrides(results)
        assert [(o.verdict, o.note) for o in held.values()] == [("passed", "fine")] * 2
        assert site.post(f"{address}/override", {**form, "verdict": "none", "all": "yes"})[0] == 303
        assert read_overrides(results) == {}


def test_another_answer_is_not_an_equal_one(results: Path, changed: Changed) -> None:
    number = number_of(results, "average_order_value")

    def change(entry: dict[str, Any]) -> None:
        if entry["attempt"] == 2:
            entry["details"]["response_text"] = "something else"
        if entry["name"] == "latest_order":
            entry["details"] = {}

    changed(results, change)
    document = read_document(results)
    assert equal_attempts(document, number) == []
    assert equal_attempts(document, number_of(results, "latest_order")) == []  # no answer, so none is equal


def test_a_judges_reasons_are_shown_of_a_pass_too(outputs: Path, results: Path, changed: Changed) -> None:
    """False passes of a judge are found by reading why it was content."""
    said = {"type": "factuality", "name": None, "passed": True, "score": 1.0, "severity": "fail"}
    told = {**said, "why": "A: agrees", "details": {"letter": "A", "rationale": "both say <b>12</b> stores"}}
    kind = {"rationale": "kind and short"}
    again = {**said, "type": "judge", "why": "judge: kind and short", "details": kind}

    def change(entry: dict[str, Any]) -> None:
        if entry["name"] == "total_revenue":
            entry["checks"] = [told, again]

    changed(results, change)
    with site_of(outputs, outputs.parents[1], bind(0)) as site:
        number = number_of(results, "total_revenue")
        text = site.ask(f"/runs/{results.stem}/attempts/{number}")[2]
    assert "the judge: both say &lt;b&gt;12&lt;/b&gt; stores" in text
    assert "the judge: kind and short" not in text  # it stands in the line already


def test_the_trend_is_of_whole_runs_of_the_same_models(
    outputs: Path, results: Path, changed: Changed, jaffle_results: Path
) -> None:
    shutil.copy(jaffle_results, outputs / "results_20250101_000000.json")
    changed(
        outputs / "results_20250201_000000.json", lambda entry: None, timestamp="2025-02-01T00:00:00+00:00"
    )
    header = json.loads(json.dumps(read_document(jaffle_results).header))
    part = {"cases": {**header["cases"], "total": 2, "pass_rate": 0.0}}
    changed(outputs / "results_20300101_000000.json", lambda entry: None, **part)
    with site_of(outputs, outputs.parents[1], bind(0)) as site:
        text = site.ask("/")[2]
    (label,) = re.findall(r'aria-label="(Pass rate over [^"]+)"', text)
    assert label == "Pass rate over 3 full runs: 86.4 % first, 86.4 % last"
    assert 'class="first-date" aria-hidden="true">' in text
    chart = text.partition("trend-rate")[2].partition("</svg>")[0]
    assert re.findall(r'-date" aria-hidden="true">([\d-]+)<', chart)[-1].startswith("20")
