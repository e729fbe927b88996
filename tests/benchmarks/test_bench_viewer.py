"""Large results in the viewer: a page of 200 MB of ours, the index of a foreign file against json.load.

The margin of 1.5 is for a busy machine. About half a minute.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_agenteval.results.document.document import Document, write_document
from pytest_agenteval.results.document.load import read_document

MARGIN = 1.5
NAO = Path(__file__).resolve().parents[1] / "data" / "nao" / "results_3cases_2models.json"
COUNT = 10_000


def timed(act: Callable[[], Any]) -> float:
    """CPU seconds of the better of two."""
    taken = []
    for _ in range(2):
        begun = time.process_time()
        act()
        taken.append(time.process_time() - begun)
    return min(taken)


@pytest.fixture(scope="module")
def entries() -> list[dict[str, Any]]:
    held: list[dict[str, Any]] = json.loads(NAO.read_bytes())["results"]
    rows = [{"id": n, "region": f"region {n}", "revenue": n * 1.5} for n in range(100)]
    made = []
    for number in range(COUNT):
        entry = held[number % len(held)]
        details = {**entry["details"], "actual_data": rows, "response_text": "x" * 14_000}
        made.append({**entry, "name": f"case {number}", "details": details})
    return made


@pytest.mark.timeout(120)
def test_first_page_of_ours(entries: list[dict[str, Any]], tmp_path: Path) -> None:
    pytest.importorskip("starlette")
    from starlette.requests import Request

    from pytest_agenteval.reports.html.environment import make_environment
    from pytest_agenteval.viewer.app import Viewer, run_page
    from pytest_agenteval.viewer.library import Library
    from pytest_agenteval.viewer.security import Access

    nao = read_document(NAO)
    place = tmp_path / "results_20250101_000000.json"
    header = {**nao.header, "schema_version": 1}
    write_document(Document({"schema_version": 1, **header}, nao.rows, lambda: iter(entries)), place)
    assert place.stat().st_size > 190e6

    def first_page() -> None:
        viewer = Viewer(Library(tmp_path), tmp_path, Access(1), make_environment())
        viewer.library.open(viewer.listed(place.stem), wait=60)  # a page itself does not wait so long
        scope = {"type": "http", "path_params": {"run": place.stem}, "query_string": b"", "headers": []}
        page = bytes(run_page(viewer, Request(scope)).body).decode()
        assert "Page 1 of 100" in page
        viewer.library.close()

    assert timed(first_page) < 2 * MARGIN


@pytest.mark.timeout(120)
def test_index_of_a_foreign_file(entries: list[dict[str, Any]], tmp_path: Path) -> None:
    place = tmp_path / "results_1.json"
    with open(place, "w", encoding="utf-8") as file:
        json.dump({"results": entries, "summary": {}}, file)
    assert place.stat().st_size > 190e6

    def load() -> None:
        with open(place, encoding="utf-8") as file:
            json.load(file)

    assert timed(lambda: read_document(place)) < 2 * MARGIN * timed(load)
