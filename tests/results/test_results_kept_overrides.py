"""A person's verdict stays with the answer when results are merged or judged again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from result_runs import item

from pytest_agenteval.cli import main
from pytest_agenteval.results.document.load import read_document
from pytest_agenteval.results.document.overrides import (
    Override,
    overrides_path,
    read_overrides,
    with_overrides,
    write_override,
)

SURE = Override("passed", "looked at it", "the case is wrong", "2026-03-01T12:00:00+00:00")


def test_merged_files_keep_them_under_the_new_numbers(stored, tmp_path, capsys):
    first = stored({item(k=2): ["failed", "passed"], item("b"): ["failed"]})
    second = stored({item(k=2): ["failed", "failed"]})
    write_override(first.path, first.rows[0], SURE)
    write_override(second.path, second.rows[1], SURE)
    out = tmp_path / "merged.json"
    assert main(["merge", str(first.path), str(second.path), "-o", str(out)]) == 0
    assert "2 verdicts of a person taken over" in capsys.readouterr().out
    merged = with_overrides(read_document(out))
    # by attempt, then by file: the first and the last of them were overridden
    verdicts = [row.verdict for row in merged.rows if row.name == "revenue"]
    assert verdicts == ["passed", "failed", "passed", "passed"]
    assert [row.verdict for row in read_document(out).rows[:4]] == ["failed", "failed", "passed", "failed"]
    assert merged.run["overrides"] == 2
    assert set(read_overrides(out).values()) == {SURE}


def test_files_without_any_get_none(stored, tmp_path, capsys):
    first, second = stored({item("a"): ["failed"]}), stored({item("b"): ["failed"]})
    out = tmp_path / "merged.json"
    assert main(["merge", str(first.path), str(second.path), "-o", str(out)]) == 0
    assert "of a person" not in capsys.readouterr().out
    assert not overrides_path(out).exists()


def test_results_that_are_judged_again_keep_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "tests" / "a.yml").write_text("name: a\nprompt: x?\nsql: SELECT 1 AS n\n")
    details = {"response_text": "x", "actual_data": [{"n": 2}], "expected_data": [{"n": 1}]}
    details |= {"reference_sql": "SELECT 1 AS n"}
    entry = {"name": "a", "model": "m:1", "passed": False, "message": "values differ", "details": details}
    path, out = tmp_path / "results_x.json", tmp_path / "again.json"
    path.write_text(json.dumps({"results": [entry]}))
    write_override(path, read_document(path).rows[0], SURE)
    assert main(["rescore", str(path), "-o", str(out)]) == 0
    assert "1 verdict of a person taken over" in capsys.readouterr().out
    assert with_overrides(read_document(out)).rows[0].verdict == "passed"
    assert read_document(out).rows[0].verdict == "failed"
