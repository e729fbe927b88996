from __future__ import annotations

from pathlib import Path

import pytest
from result_runs import NOW, Journal, item, judged

from pytest_agenteval.errors import ResultsError
from pytest_agenteval.results.document.document import from_folder, write_document
from pytest_agenteval.results.document.load import read_document
from pytest_agenteval.results.document.merge import merge_documents
from pytest_agenteval.results.journal.run_folder import RunFolder

NAO = Path(__file__).parent.parent / "data" / "nao"


def run_of(outputs, plan, skipped=(), info=None):
    """A stored run; ``plan`` maps items to the verdicts of their attempts."""
    folder = RunFolder.reserve(outputs, NOW)
    folder.write_run({"started_at": "2026-03-01T12:00:00+00:00", **(info or {})})
    journal = Journal(folder, "main")
    journal.planned([*plan, *skipped])
    for planned in skipped:
        journal.skipped(planned.nodeid, "later")
    for planned, verdicts in plan.items():
        if verdicts is not None:
            journal.started(planned.nodeid)
            for number, verdict in enumerate(verdicts, 1):
                journal.attempt(planned.nodeid, 0, judged(number, verdict, score=1.0))
    return read_document(write_document(from_folder(folder), folder.document))


TIMES = ("timestamp", "started_at", "answered_at")


def without_times(document):
    header = {key: value for key, value in document.header.items() if key not in (*TIMES, "run")}
    return header, [{k: v for k, v in entry.items() if k not in TIMES} for entry in document.entries()]


def test_two_shards_give_the_document_of_the_whole_run(outputs, tmp_path):
    items = [item(name, model, k=2) for name in ("a", "b", "c", "d") for model in ("m:1", "m:2")]
    verdicts = [["passed", "failed"], ["passed", "passed"], ["error", "error"], ["failed", "failed"]] * 2
    skip = item("s", "m:1")
    whole = run_of(outputs, dict(zip(items, verdicts, strict=True)), [skip])
    shards = [
        run_of(outputs, dict(zip(items[:4], verdicts[:4], strict=True)), [skip]),
        run_of(outputs, dict(zip(items[4:], verdicts[4:], strict=True)), [skip]),
    ]
    merged = merge_documents(shards)
    assert without_times(merged) == without_times(whole)
    assert merged.run["merged"] == 2
    again = read_document(write_document(merged, tmp_path / "merged.json"))
    assert without_times(again) == without_times(whole)
    assert merged.header["timestamp"] == max(s.header["timestamp"] for s in shards)


def test_a_resumed_run_fills_what_the_first_left_open(outputs):
    first = run_of(outputs, {item("a"): ["passed"], item("b"): ["error"], item("c"): None})
    second = run_of(outputs, {item("b"): ["passed"], item("c"): ["failed"]})
    for documents in ([first, second], [second, first]):
        merged = merge_documents(documents)
        found = {row.name: row.verdict for row in merged.rows}
        assert found == {"a": "passed", "b": "passed", "c": "failed"}
        assert merged.header["summary"]["total"] == 3


def test_the_same_results_twice_count_once(outputs):
    run = run_of(outputs, {item("a", k=2): ["passed", "failed"], item("b"): ["error"], item("c"): None})
    merged = merge_documents([run, run, run])
    assert without_times(merged) == without_times(run)
    nao = read_document(NAO / "results_3cases_k3.json")
    assert merge_documents([nao, nao]).header["summary"] == nao.header["summary"]


def test_repeated_runs_are_further_attempts_and_estimated_without_bias(outputs):
    runs = [run_of(outputs, {item("a", k=3): v}) for v in (["passed"] * 3, ["passed", "failed", "passed"])]
    merged = merge_documents(runs)
    assert [row.attempt for row in merged.rows] == [1, 2, 3, 4, 5, 6]
    (test,) = merged.header["pass_metrics"]["by_test"]
    assert (test["k"], test["pass_at_1"], test["pass_at_k"]) == (3, pytest.approx(5 / 6), 1.0)
    assert test["pass_hat_k"] == pytest.approx(10 / 20)
    assert [entry["attempt"] for entry in merged.entries()] == [1, 2, 3, 4, 5, 6]


def test_an_item_skipped_here_and_run_there_has_run(outputs):
    one = run_of(outputs, {item("a"): ["passed"]}, [item("b")])
    two = run_of(outputs, {item("b"): ["passed"]})
    merged = merge_documents([one, two])
    assert (merged.header["cases"]["skipped"], merged.header["cases"]["passed"]) == (0, 2)
    assert "skipped" not in merged.run


def test_what_runs_disagree_on_is_not_claimed(outputs):
    runs = [
        run_of(outputs, {item(name): ["passed"]}, info={"context_hash": hash_, "git_sha": "s", "gates": [{}]})
        for name, hash_ in (("a", "x"), ("b", "y"))
    ]
    assert merge_documents(runs).run == {"context_hash": None, "git_sha": "s", "merged": 2}
    same = merge_documents([runs[0], runs[0]])
    assert same.run["context_hash"] == "x"


def test_files_of_nao_are_merged_into_ours(tmp_path):
    documents = [
        read_document(NAO / f"results_{name}.json") for name in ("3cases_2models", "3cases_2models_k2")
    ]
    merged = merge_documents(documents)
    assert merged.header["summary"]["total"] == 18
    again = read_document(write_document(merged, tmp_path / "x.json"))
    assert list(again.rows) == list(merged.rows)
    assert again.entry(0)["details"]["response_text"]


def test_nothing_cannot_be_merged():
    with pytest.raises(ResultsError, match="nothing to merge"):
        merge_documents([])
