"""What axe-core finds on the pages. It comes from npm: without npm this skips, naming npm."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import Browser, faults

from pytest_agenteval.reports.html import write_html
from pytest_agenteval.results.document.load import read_document

NAO = Path(__file__).resolve().parents[1] / "data" / "nao"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view(browser: Browser, home: str, addresses: dict[str, str], scheme: str, axe: str) -> None:
    window = browser.window(home, scheme=scheme)
    wrong = {}
    for address in addresses:
        window.page.goto(home + address)
        wrong[address] = faults(window, axe)
    assert {address: found for address, found in wrong.items() if found} == {}


def test_on_a_phone(browser: Browser, home: str, addresses: dict[str, str], axe: str) -> None:
    window = browser.window(home, width=400)
    window.page.goto(home + next(address for address in addresses if "attempts" in address))
    assert faults(window, axe) == []


def test_the_one_file_report(browser: Browser, tmp_path: Path, axe: str) -> None:
    place = write_html(read_document(NAO / "results_3cases_2models_k2.json"), tmp_path / "report.html")
    window = browser.window(place.as_uri())
    for address in ("", "#attempt-3"):
        window.page.goto(place.as_uri() + address)
        assert faults(window, axe) == []
