from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from result_runs import item

import pytest_agenteval
from pytest_agenteval.errors import ResultsError
from pytest_agenteval.results.document.document import from_folder
from pytest_agenteval.results.document.overrides import (
    LABELS,
    Override,
    overrides_path,
    read_overrides,
    row_id,
    with_overrides,
    write_override,
)

NAO = Path(__file__).parent.parent / "data" / "nao"


def test_results_are_a_frame_with_a_row_per_attempt(stored):
    document = stored({item("a", k=2, tags=("x",)): ["passed", "failed"], item("b"): None})
    frame = pytest_agenteval.read_results(document.path, NAO / "results_1case_pass.json")
    assert list(frame["name"]) == ["a", "a", "b", "total_revenue"]
    assert list(frame["verdict"]) == ["passed", "failed", "not_run", "passed"]
    assert list(frame["run"]) == ["results_20260301_120000"] * 3 + ["results_1case_pass"]
    assert frame["label"][0] == "nightly"
    assert frame["tags"][0] == ("x",)
    assert frame["cost"].sum() == pytest.approx(0.0263)
    assert not frame["overridden"].any()
    assert "usage" not in frame.columns
    by_case = frame.groupby(["run", "name"])["verdict"].apply(lambda v: (v == "passed").mean())
    assert by_case["results_20260301_120000", "a"] == 0.5


def test_an_unfinished_run_is_read_from_its_folder(run_folder):
    folder = run_folder({item("a"): ["passed"], item("b"): None})
    frame = pytest_agenteval.read_results(str(folder.path))
    assert list(frame["verdict"]) == ["passed", "not_run"]


def test_reading_nothing_or_rubbish_is_an_error(tmp_path):
    with pytest.raises(TypeError, match=r"read_results\(\) needs at least one results file or folder"):
        pytest_agenteval.read_results()
    with pytest.raises(ResultsError, match="no such results file"):
        pytest_agenteval.read_results(tmp_path / "x.json")


def test_a_persons_verdict_stands_in_place_of_ours(stored):
    document = stored({item("a"): ["failed"], item("b"): ["review"], item("c"): ["passed"]})
    a, b, _ = document.rows
    write_override(document.path, a, Override("passed", "the reference is stale", LABELS[0], "2026-03-02"))
    write_override(document.path, b, Override("failed"))
    read = with_overrides(document)
    assert [row.verdict for row in read.rows] == ["passed", "failed", "passed"]
    assert read.rows[0].message == "overridden: passed (the reference is stale); was: values differ"
    assert read.rows[1].message == "overridden: failed; was: review"
    assert (read.run["overrides"], read.header["cases"]["passed"]) == (2, 2)
    frame = pytest_agenteval.read_results(document.path)
    assert list(frame["overridden"]) == [True, True, False]
    write_override(document.path, a, None)
    assert [row.verdict for row in with_overrides(document).rows] == ["failed", "failed", "passed"]
    place = overrides_path(document.path)
    assert json.loads(place.read_text()) == {
        "schema_version": 1,
        "overrides": {row_id(b): {"verdict": "failed", "note": "", "label": None, "at": None}},
    }
    assert read_overrides(document.path) == {"tests/a.yml|b|demo:a|1": Override("failed")}
    assert overrides_path(document.path.with_suffix("")) == place


def test_without_overrides_the_document_is_the_same(stored, run_folder):
    document = stored({item(): ["passed"]})
    assert with_overrides(document) is document
    built = from_folder(run_folder({item(): ["passed"]}))
    assert with_overrides(built) is built


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"overrides": {"x": {"verdict": "maybe"}}}', '{"overrides": {"x": 5}}']
)
def test_a_broken_overrides_file_is_named(stored, content):
    document = stored({item(): ["passed"]})
    overrides_path(document.path).write_text(content)
    with pytest.raises(
        ResultsError, match=r"results_20260301_120000\.overrides\.json: not an overrides file"
    ):
        with_overrides(document)


def test_overrides_of_rows_that_are_gone_are_ignored(stored):
    document = stored({item(): ["failed"]})
    write_override(document.path, replace(document.rows[0], name="gone"), Override("passed"))
    assert with_overrides(document).run["overrides"] == 0
    assert [row.verdict for row in with_overrides(document).rows] == ["failed"]
