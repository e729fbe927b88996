"""A run that goes on: what it has so far, told apart from a run whose process died."""

from __future__ import annotations

import json
import os
import time

import pytest
from result_runs import NOW, Journal, answered, item, judged

from pytest_agenteval.cli import main
from pytest_agenteval.reports.junit import junit_xml
from pytest_agenteval.results import read_results
from pytest_agenteval.results.document.load import read_document
from pytest_agenteval.results.document.verdicts import decide, parse_rule
from pytest_agenteval.results.journal.resume import find_earlier
from pytest_agenteval.results.journal.run_folder import RunFolder

SHOWN = [
    ("done", 1, "passed", "match"),
    ("half", 1, "failed", "values differ"),
    ("half", 2, "running", "answered, it is being judged"),
    ("asked", 1, "running", "it is being asked now"),
    ("later", 1, "not_run", "it waits for its turn"),
]


@pytest.fixture
def folder(outputs):
    """done: judged; half: one of two judged, the other answered; asked: being asked; later: not begun."""
    folder = RunFolder.reserve(outputs, NOW)
    folder.write_run({"started_at": "2026-03-01T12:00:00+00:00"})
    journal = Journal(folder, "main")
    done, half, asked = item("done"), item("half", k=2, rule="any"), item("asked")
    journal.planned([done, half, asked, item("later")])
    for planned in (done, half, asked):
        journal.started(planned.nodeid)
    journal.attempt(done.nodeid, 0, judged())
    journal.attempt(half.nodeid, 0, judged(1, "failed"))
    journal.answer(half.nodeid, 0, 2, answered("paid"))
    return folder


def elsewhere(folder: RunFolder) -> None:
    """Make it the folder of a run on another machine."""
    place = folder.path / "session.json"
    place.write_text(json.dumps({**json.loads(place.read_text()), "host": "another.example"}))


def test_what_is_being_asked_is_running_and_outside_of_the_rate(folder):
    document = read_document(folder.path)
    assert [(row.name, row.attempt, row.verdict, row.message) for row in document.rows] == SHOWN
    cases = document.header["cases"]
    counts = {key: cases[key] for key in ("total", "passed", "failed", "errors", "not_run", "running")}
    assert counts == {"total": 4, "passed": 1, "failed": 0, "errors": 0, "not_run": 1, "running": 2}
    assert cases["pass_rate"] == 100.0
    assert document.run["running"] is True
    assert document.entry(3)["verdict"] == "running"
    assert document.entry(2)["details"]["response_text"] == "paid"
    assert list(read_results(folder.path)["verdict"]) == [row[2] for row in SHOWN]
    assert 'skipped="3"' in junit_xml(document)


def test_a_report_of_it_says_how_far_it_is_and_offers_no_resume(folder, capsys):
    assert main(["report", str(folder.path)]) == 0
    out = capsys.readouterr().out
    assert "the run goes on, 1 of 4 cases so far: 1 passed, 2 running, 1 waiting · 100.0 %" in out
    assert "--agent-resume" not in out
    assert "… running asked: it is being asked now" in out
    assert " ERROR " not in out
    assert "the process ended" not in out


def test_the_same_files_of_a_dead_process_are_a_run_that_did_not_end(folder):
    folder.end()
    document = read_document(folder.path)
    assert [row.verdict for row in document.rows] == ["passed", "failed", "error", "error", "not_run"]
    assert "running" not in document.header["cases"]
    assert "running" not in document.run


def test_of_another_machine_the_last_line_tells(folder):
    elsewhere(folder)
    assert read_document(folder.path).run.get("running") is True
    old = time.time() - 1000
    for path in folder.journals():
        os.utime(path, (old, old))
    assert "running" not in read_document(folder.path).run
    for path in folder.journals():
        path.unlink()
    assert folder.live is False


def test_no_finished_document_holds_it(folder, tmp_path, capsys):
    out = tmp_path / "merged.json"
    assert main(["merge", str(folder.path), "-o", str(out)]) == 2
    assert f"{folder.path}: this run goes on; merge it when it has ended" in capsys.readouterr().err
    elsewhere(folder)  # a shard that was copied here a moment ago
    assert main(["merge", str(folder.path), "-o", str(out)]) == 0
    assert [entry["verdict"] for entry in json.loads(out.read_text())["results"]] == [
        "passed",
        "failed",
        "error",
        "error",
        "not_run",
    ]
    assert "running" not in json.loads(out.read_text())["run"]


def test_a_run_goes_on_from_what_its_process_left_even_while_its_pid_is_alive(folder, outputs, tmp_path):
    earlier = find_earlier(None, outputs, tmp_path)
    assert [step.action for step in earlier.steps(item("half", k=2, rule="any"))] == ["keep", "judge"]
    assert [step.action for step in earlier.steps(item("asked"))] == ["call"]


@pytest.mark.parametrize(
    ("verdicts", "rule", "verdict", "label"),
    [
        (["running", "error", "passed"], "all", "running", "1/1 (+1 error, 1 running)"),
        (["failed", "running"], "all", "failed", "0/1 (+1 running)"),
        (["passed", "running"], "any", "passed", "1/1 (+1 running)"),
    ],
)
def test_a_running_attempt_leaves_the_case_open_unless_the_others_decide(verdicts, rule, verdict, label):
    decision = decide(verdicts, parse_rule(rule), len(verdicts))
    assert (decision.verdict, decision.label) == (verdict, label)
