"""What nao's own viewer and scripts compute with is there and of its type, in every document of ours.

The keys are those that the page of ``nao test server`` (nao-core 0.3.29, commands/test/server.py) reads
without asking whether they are there; tests/real_nao opens the same files in that page itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from result_runs import NOW, Journal, answered, item, judged

from pytest_agenteval.results import read_results
from pytest_agenteval.results.document.document import from_folder, write_document
from pytest_agenteval.results.document.load import read_document
from pytest_agenteval.results.document.merge import merge_documents
from pytest_agenteval.results.document.overrides import Override, with_overrides, write_override
from pytest_agenteval.results.journal.run_folder import RunFolder

SUMMARY = {
    "total": int,
    "passed": int,
    "failed": int,
    "total_tokens": int,
    "total_cost": float,
    "total_duration_ms": int,
    "total_duration_s": float,
    "total_tool_calls": int,
    "avg_duration_ms": float,
    "avg_tool_calls": float,
}
BY_MODEL = {
    "model": str,
    "total": int,
    "passed": int,
    "failed": int,
    "pass_rate": float,
    "total_tokens": int,
    "total_cost": float,
    "total_duration_ms": int,
    "avg_duration_ms": float,
    "total_tool_calls": int,
    "avg_tool_calls": float,
}
RESULT = {"name": str, "model": str, "passed": bool, "message": str}
NUMBERS = ("tokens", "cost", "duration_ms", "tool_call_count")


def attempts_of(kind: str) -> list[Any]:
    """Attempts of one case: of a run without prices, without tokens, of a server that was down, of none."""
    return {
        "unpriced": [judged(answer=answered(cost=None))],
        "silent": [judged(answer=answered(tokens=None, cost=None))],
        "down": [judged(verdict="error")],
        "priced": [judged()],
        "not run": [],
    }[kind]


@pytest.fixture(params=["unpriced", "silent", "down", "priced", "not run"])
def results(request, outputs) -> Path:
    folder = RunFolder.reserve(outputs, NOW)
    journal = Journal(folder, "main")
    items = [item("a", model) for model in ("m:1", "m:2")]
    journal.planned(items)
    for planned in items:
        for attempt in attempts_of(request.param):
            journal.started(planned.nodeid)
            journal.attempt(planned.nodeid, 0, attempt)
    return write_document(from_folder(folder), folder.document)


def hold(document: dict[str, Any]) -> None:
    """The document is one that nao's page can show."""
    typed(document["summary"], SUMMARY)
    assert document["by_model"]
    for entry in document["by_model"]:
        typed(entry, BY_MODEL)
        assert entry["pass_rate"] == round(100 * entry["passed"] / entry["total"], 1)
    for entry in document["results"]:
        typed(entry, RESULT)
        for key in NUMBERS:  # nao's page takes 0 for null here
            assert entry[key] is None or type(entry[key]) in (int, float)
        assert isinstance(entry["details"], dict)
        assert all(type(call["toolName"]) is str for call in entry["details"]["tool_calls"])


def typed(values: dict[str, Any], wanted: dict[str, type]) -> None:
    for key, kind in wanted.items():
        found = values[key]
        assert type(found) is kind or (kind is float and type(found) is int), f"{key}: {found!r}"


def test_a_run_is_one_that_the_viewer_of_nao_can_show(results):
    hold(json.loads(results.read_text()))


def test_so_are_what_merge_and_a_person_make_of_it(results, tmp_path):
    document = read_document(results)
    other = read_document(results)
    hold(json.loads(write_document(merge_documents([document, other]), tmp_path / "m.json").read_text()))
    write_override(results, document.rows[0], Override("passed", "looked at it"))
    overridden = with_overrides(document)
    typed(overridden.header["summary"], SUMMARY)
    typed(overridden.header["by_model"][0], BY_MODEL)


def test_a_frame_of_results_can_be_summed_whatever_is_unknown(results):
    frame = read_results(results)
    known = json.loads(results.read_text())["summary"]
    assert frame["tokens"].sum() == known["total_tokens"]
    assert frame["cost"].sum() == pytest.approx(known["total_cost"])
    assert [str(frame[name].dtype) for name in ("tokens", "cost", "score")] == ["float64"] * 3
