"""A resumed run is a later generation of the same files: each attempt belongs to the plan it followed."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from result_runs import NOW, Journal, answered, item, judged

from pytest_agenteval.results.document.document import from_folder
from pytest_agenteval.results.document.merge import merge_documents
from pytest_agenteval.results.journal.index import index_folder
from pytest_agenteval.results.journal.resume import find_earlier
from pytest_agenteval.results.journal.run_folder import RunFolder, RunHeld, check_not_resumed, started_at

OLD = item("old", k=1)


@pytest.fixture
def asked(outputs):
    """One case that was asked, answered and judged in the first generation."""
    folder = RunFolder.reserve(outputs, NOW)
    journal = Journal(folder, "main")
    journal.planned([OLD])
    journal.started(OLD.nodeid)
    journal.call(OLD.nodeid, 0, 1)
    journal.answer(OLD.nodeid, 0, 1, answered("first"))
    journal.attempt(OLD.nodeid, 0, judged(1, answer=answered("first")))
    return folder


def resumed(folder, *planned):
    again = RunFolder.resume(folder.path)
    journal = Journal(again, "main")
    journal.planned(list(planned))
    return again, journal


def test_an_old_answer_is_not_filed_under_a_new_question(asked):
    folder, _ = resumed(asked, replace(OLD, ask_hash="new", prompt="new?"))
    (row,) = from_folder(folder).rows
    assert (row.verdict, row.answered_at, row.cost) == ("not_run", None, None)
    assert from_folder(folder).header["summary"]["total_cost"] == 0.01  # it was paid for


def test_an_old_verdict_is_not_one_by_new_rules(asked):
    folder, _ = resumed(asked, replace(OLD, case_hash="new"))
    (row,) = from_folder(folder).rows
    assert (row.verdict, row.stage) == ("error", "worker")
    assert "--agent-resume judges it without a call" in row.message


def test_calls_and_answers_are_counted_by_generation(asked):
    folder, journal = resumed(asked, OLD, item("more"))
    journal.carried(OLD.nodeid, 0, 1, f"{OLD.nodeid}|0|1")
    journal.call(item("more").nodeid, 0, 1)
    journal.answer(item("more").nodeid, 0, 1, answered("second"))
    index = index_folder(folder)
    assert [index.calls(generation) for generation in (0, 1)] == [1, 1]
    assert index.taken_over(1) == 1
    journal.judged_again(
        OLD.nodeid, 0, 1, answered("first"), index.items[OLD.nodeid].answers[0, 1].head["at"]
    )
    assert from_folder(folder).header["run"].get("superseded") is None


def test_what_this_run_has_written_is_no_part_of_the_earlier_one(asked, outputs, tmp_path):
    changed = replace(OLD, case_hash="new")
    folder, journal = resumed(asked, changed)
    journal.started(changed.nodeid)
    earlier = find_earlier(str(asked.path), outputs, tmp_path, token=folder.token)
    assert [step.action for step in earlier.steps(changed)] == ["judge"]
    assert [step.action for step in earlier.steps(replace(OLD, ask_hash="new"))] == ["call"]
    assert [step.action for step in earlier.steps(OLD)] == ["keep"]


def test_a_case_that_is_gone_counts_by_its_cost_alone(asked):
    folder, journal = resumed(asked, item("more"))
    journal.gone(OLD.nodeid)
    document = from_folder(folder)
    assert [row.name for row in document.rows] == ["more"]
    superseded = {"demo:a": {"answers": 1, "tokens": 30, "cost": 0.01}}
    assert document.run["superseded"] == superseded
    assert merge_documents([document, document]).run["superseded"]["demo:a"]["answers"] == 2
    again, _ = resumed(folder, OLD)
    assert [row.name for row in from_folder(again).rows if row.name == "old"] == ["old"]


def facts(folder, **changed):
    session = folder.path / "session.json"
    session.write_text(json.dumps({**json.loads(session.read_text()), **changed}))


def test_a_run_is_held_by_the_process_that_goes_on(asked, outputs):
    facts(asked, pid=os.getppid(), birth=None)
    said = rf"results_20260301_120000 is still running \(PID {os.getppid()}\); wait for it, or end it first"
    with pytest.raises(RunHeld, match=said):
        RunFolder.resume(asked.path)
    facts(asked, birth="another process had this pid")
    assert RunFolder.resume(asked.path).generation == 1


def test_results_are_gone_on_with_by_one_run(outputs):
    outputs.mkdir(parents=True)
    first = RunFolder.reserve(outputs, NOW, goes_on_with="/x/results_1.json")
    check_not_resumed(outputs, "/x/results_1.json")  # it is this process
    facts(first, pid=os.getppid(), birth=None)
    with pytest.raises(RunHeld, match=rf"goes on with results_1.json already \(PID {os.getppid()}\)"):
        RunFolder.reserve(outputs, NOW, goes_on_with="/x/results_1.json")
    assert RunFolder.reserve(outputs, NOW, goes_on_with="/x/results_2.json").path.name.endswith("_2")


def test_a_stopped_run_says_so_to_every_process_until_it_is_resumed(asked):
    assert asked.stopped is None
    asked.stop("Ctrl-C")
    assert RunFolder.open(asked.path).stopped == "Ctrl-C"
    assert RunFolder.resume(asked.path).stopped is None


def test_the_start_of_a_run_is_what_it_says_else_what_its_name_says(asked, outputs):
    facts(asked, started_at="2026-03-01T07:00:00-05:00")
    assert started_at(asked.path) == datetime(2026, 3, 1, 12, tzinfo=UTC)
    facts(asked, started_at="soon")
    assert started_at(asked.path) == NOW.astimezone(UTC)
    other = outputs / "results_other.json"
    other.write_text('{\n"schema_version": 1,\n"started_at": {,\n')
    assert started_at(other) == datetime.min.replace(tzinfo=UTC)
