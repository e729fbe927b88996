from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal

import pytest
from result_runs import NOW, Journal, answered, item, judged

from pytest_agenteval.errors import ResultsError
from pytest_agenteval.results.document.document import from_folder, write_document
from pytest_agenteval.results.document.load import answer_of, read_document
from pytest_agenteval.results.journal.resume import find_earlier, keep
from pytest_agenteval.results.journal.run_folder import RunFolder
from pytest_agenteval.table import Table
from pytest_agenteval.types import Extraction, ToolCall

ITEMS = [item(name, k=2) for name in ("done", "half", "later", "never")]


@pytest.fixture
def interrupted(outputs):
    """done: judged twice; half: judged once, then answered; later: two errors; never: not started."""
    folder = RunFolder.reserve(outputs, NOW)
    journal = Journal(folder, "main")
    journal.planned(ITEMS)
    done, half, later, _ = (planned.nodeid for planned in ITEMS)
    table = Table.from_rows(["x"], [[Decimal("1.5")]], ["DECIMAL(2,1)"])
    data = answered("first", data=table)
    journal.started(done)
    journal.attempt(done, 0, judged(1, answer=data, extraction=Extraction(table, "given"), reference=table))
    journal.attempt(done, 0, judged(2, "failed"))
    journal.started(half)
    journal.attempt(half, 0, judged(1, "review"))
    journal.answer(half, 0, 2, answered("paid", data=table))
    journal.started(later)
    journal.attempt(later, 0, judged(1, "error", stage="checks", answer=answered("kept")))
    journal.attempt(later, 0, judged(2, "error", stage="timeout", answer=answered("too late")))
    return folder


EXPECTED = {
    "done": ["keep", "keep"],
    "half": ["keep", "judge"],
    "later": ["judge", "call"],
    "never": ["call", "call"],
}


def actions(earlier, items=ITEMS):
    return {planned.name: [step.action for step in earlier.steps(planned)] for planned in items}


def test_only_what_has_no_finished_answer_is_asked_again(interrupted, outputs, tmp_path):
    earlier = find_earlier(None, outputs, tmp_path)
    assert (earlier.path, earlier.folder) == (interrupted.path, interrupted)
    assert actions(earlier) == EXPECTED
    steps = earlier.steps(ITEMS[1])
    answer = steps[1].answer()
    assert answer is not None
    assert (answer.text, list(answer.data.rows())) == ("paid", [(Decimal("1.5"),)])
    kept = steps[0].attempt()
    assert (kept.number, kept.verdict, kept.message) == (1, "review", "review")
    with pytest.raises(ValueError, match="attempt 1 is to be asked, there is nothing to keep"):
        earlier.steps(ITEMS[3])[0].attempt()


@pytest.mark.parametrize("how", ["folder", "document", "document without folder"])
def test_it_can_go_on_from_a_folder_or_from_a_file(interrupted, outputs, tmp_path, how):
    written = write_document(from_folder(interrupted), interrupted.document)
    if how == "document without folder":
        interrupted.remove()
    place = interrupted.path if how == "folder" else written
    earlier = find_earlier(str(place.relative_to(tmp_path)), outputs, tmp_path)
    assert actions(earlier) == EXPECTED
    assert (earlier.folder is None) == (how == "document without folder")


def test_an_error_of_the_agent_is_asked_again_and_an_answer_is_judged(outputs, tmp_path):
    folder = RunFolder.reserve(outputs, NOW)
    journal = Journal(folder, "main")
    planned = item(k=4)
    journal.planned([planned])
    journal.started(planned.nodeid)
    for number, stage in enumerate(("agent", "timeout", "reference", "extraction"), 1):
        journal.attempt(planned.nodeid, 0, judged(number, "error", stage=stage, answer=answered("half")))
    assert actions(find_earlier(None, outputs, tmp_path), [planned]) == {
        "revenue": ["call", "call", "judge", "judge"]
    }


def test_a_changed_case_is_judged_again_and_a_changed_question_asked_again(interrupted, outputs, tmp_path):
    earlier = find_earlier(None, outputs, tmp_path)
    assert actions(earlier, [replace(ITEMS[0], case_hash="new")]) == {"done": ["judge", "judge"]}
    assert actions(earlier, [replace(ITEMS[0], ask_hash="new")]) == {"done": ["call", "call"]}
    assert actions(earlier, [replace(ITEMS[2], case_hash="new")]) == {"later": ["judge", "call"]}
    assert actions(earlier, [replace(ITEMS[0], k=3)]) == {"done": ["keep", "keep", "call"]}
    assert actions(earlier, [replace(ITEMS[0], model="other")]) == {"done": ["call", "call"]}
    assert actions(earlier, [replace(ITEMS[0], ask_hash="")]) == {"done": ["call", "call"]}


def test_a_review_without_an_answer_cannot_be_judged_again(outputs, tmp_path):
    folder = RunFolder.reserve(outputs, NOW)
    planned = item()
    journal = Journal(folder, "main")
    journal.planned([planned])
    journal.started(planned.nodeid)
    journal.attempt(planned.nodeid, 0, judged(1, answer=None))
    earlier = find_earlier(None, outputs, tmp_path)
    assert actions(earlier, [planned]) == {"revenue": ["keep"]}
    assert actions(earlier, [replace(planned, case_hash="new")]) == {"revenue": ["call"]}


def test_an_answer_cut_in_the_document_is_asked_again(outputs, tmp_path):
    """Judging part of the rows would be another verdict."""
    folder = RunFolder.reserve(outputs, NOW)
    planned = item()
    rows = [{"x": n} for n in range(1500)]
    journal = Journal(folder, "main")
    journal.planned([planned])
    journal.started(planned.nodeid)
    calls = (ToolCall("execute_sql", {}, {"data": rows}),)
    attempt = judged(1, "error", stage="checks", answer=answered(tool_calls=calls))
    journal.attempt(planned.nodeid, 0, attempt)
    assert actions(find_earlier(None, outputs, tmp_path), [planned]) == {"revenue": ["judge"]}
    write_document(from_folder(folder), folder.document)
    folder.remove()
    assert actions(find_earlier(None, outputs, tmp_path), [planned]) == {"revenue": ["call"]}


def resume(earlier, outputs):
    """What a resumed run does, with an agent that always answers right."""
    folder = RunFolder.resume(earlier.folder.path) if earlier.folder else RunFolder.reserve(outputs, NOW)
    called = []
    journal = Journal(folder, "main")
    journal.planned(ITEMS)
    for planned in ITEMS:
        journal.started(planned.nodeid)
        for step in earlier.steps(planned):
            if step.action == "keep":
                keep(journal, planned.nodeid, 0, step)
                continue
            if step.action == "call":
                called.append((planned.name, step.number))
            answer = step.answer() if step.action == "judge" else answered("new")
            if step.action == "judge":
                journal.judged_again(planned.nodeid, 0, step.number, answer, step.row.answered_at)
            journal.attempt(planned.nodeid, 0, judged(step.number, answer=answer, message="again"))
    return folder, called


@pytest.mark.parametrize("from_file", [False, True], ids=["folder", "file"])
def test_a_resumed_run_gives_one_complete_document(interrupted, outputs, tmp_path, from_file):
    before = from_folder(interrupted)
    if from_file:
        before = read_document(write_document(before, interrupted.document))
        interrupted.remove()
    folder, called = resume(find_earlier(None, outputs, tmp_path), outputs)
    assert called == [("later", 2), ("never", 1), ("never", 2)]
    document = from_folder(folder)
    shown = [(row.name, row.attempt, row.verdict, row.message) for row in document.rows]
    assert shown == [
        ("done", 1, "passed", "match"),
        ("done", 2, "failed", "values differ"),
        ("half", 1, "review", "review"),
        ("half", 2, "passed", "again"),
        ("later", 1, "passed", "again"),
        ("later", 2, "passed", "again"),
        ("never", 1, "passed", "again"),
        ("never", 2, "passed", "again"),
    ]
    assert document.header["cases"]["not_run"] == document.header["cases"]["errors"] == 0
    old, new = before.entry(0), document.entry(0)
    assert new["details"] == old["details"]
    assert new["answered_at"] == old["answered_at"]
    assert {key: new[key] for key in new if key != "rerun"} == {
        key: old[key] for key in old if key != "rerun"
    }
    assert answer_of(new).data.types == ["DECIMAL(2,1)"]
    # in the run's own folder, what an attempt had cost that timed out was paid, too
    assert document.header["summary"]["total_tokens"] == (8 if from_file else 9) * 30
    json.loads(write_document(document, folder.document).read_text())


def test_a_run_can_be_resumed_twice(interrupted, outputs, tmp_path):
    first, _ = resume(find_earlier(None, outputs, tmp_path), outputs)
    again = find_earlier(None, outputs, tmp_path)
    assert {action for found in actions(again).values() for action in found} == {"keep"}
    second, called = resume(again, outputs)
    assert (called, second.generation, second.path) == ([], 2, first.path)
    a, b = list(from_folder(first).entries()), list(from_folder(second).entries())
    assert [entry["details"] for entry in a] == [entry["details"] for entry in b]


def test_what_cannot_be_resumed_says_so(outputs, tmp_path):
    with pytest.raises(ResultsError, match=r"--agent-resume: there is no run in .*outputs"):
        find_earlier(None, outputs, tmp_path)
    with pytest.raises(ResultsError, match=r"--agent-resume-from nope: no such file or folder"):
        find_earlier("nope", outputs, tmp_path)
    RunFolder.reserve(outputs, NOW)
    with pytest.raises(ResultsError, match="not the folder of a run"):
        find_earlier("tests/outputs/results_20260301_120000", outputs, tmp_path)


def test_a_kept_attempt_without_an_answer_is_taken_over_from_a_file(outputs, tmp_path):
    folder = RunFolder.reserve(outputs, NOW)
    planned = item()
    journal = Journal(folder, "main")
    journal.planned([planned])
    journal.started(planned.nodeid)
    journal.attempt(planned.nodeid, 0, judged(1, answer=None))
    write_document(from_folder(folder), folder.document)
    folder.remove()
    (step,) = find_earlier(None, outputs, tmp_path).steps(planned)
    new = RunFolder.reserve(outputs, NOW)
    journal = Journal(new, "main")
    journal.planned([planned])
    keep(journal, planned.nodeid, 0, step)
    (row,) = from_folder(new).rows
    assert (row.verdict, row.answered_at) == ("passed", None)
