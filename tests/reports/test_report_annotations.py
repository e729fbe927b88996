"""Annotations of GitHub: one command a case, at its line, escaped as the format wants it."""

from __future__ import annotations

import re
from pathlib import Path

from result_runs import item

from pytest_agenteval.cli import main
from pytest_agenteval.reports.annotations import MOST, annotation_lines
from pytest_agenteval.results.document.document import from_folder


def test_what_did_not_pass_is_annotated_worst_first(run_folder, tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a.yml").write_text(
        "cases:\n  - {name: good, prompt: q, sql: select 1}\n\n  - {name: bad, prompt: q, sql: select 1,\n"
        "     assertions: [{type: of_a_plugin}]}\n"
    )
    plan = {
        item("doubt", path="tests/b.yml"): ["review"],
        item("good", path="tests/a.yml"): ["passed"],
        item("down", path="tests/gone, 100%.yml"): ["error"],
        item("bad", path="tests/a.yml"): ["failed"],
    }
    lines = list(annotation_lines(from_folder(run_folder(plan)), tmp_path))
    assert [line.partition("::")[2].partition("::")[0] for line in lines] == [
        "error file=tests/a.yml,line=4,title=bad [demo%3Aa]%3A failed",
        "error file=tests/gone%2C 100%25.yml,title=down [demo%3Aa]%3A error",
        "notice file=tests/b.yml,title=doubt [demo%3Aa]%3A review",
    ]
    assert all("\n" not in line for line in lines)


def test_a_large_run_ends_in_a_count(run_folder, tmp_path: Path) -> None:
    document = from_folder(run_folder({item(f"c{n}"): ["failed"] for n in range(MOST + 3)}))
    lines = list(annotation_lines(document, tmp_path))
    assert len(lines) == MOST + 1
    assert lines[-1] == "::notice title=agenteval::3 more cases did not pass; the report lists them"


def test_the_command_prints_them(run_folder, tmp_path: Path, monkeypatch, capsys) -> None:
    folder = run_folder({item("bad"): ["failed"]})
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(folder.path), "--format", "github"]) == 0
    assert re.fullmatch(r"::error file=\S+,title=bad \[demo%3Aa\]%3A failed::.+\n", capsys.readouterr().out)
