from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from result_runs import NOW, Journal, answered, item, judged

from pytest_agenteval.errors import ResultsError
from pytest_agenteval.results.document import load as load_module
from pytest_agenteval.results.document.document import from_folder, write_document
from pytest_agenteval.results.document.entries import upgraded
from pytest_agenteval.results.document.load import answer_of, read_document, table_of
from pytest_agenteval.results.journal.run_folder import RunFolder
from pytest_agenteval.table import Table
from pytest_agenteval.types import Extraction, ToolCall

NAO = Path(__file__).parent.parent / "data" / "nao"
NAO_FILES = sorted(NAO.glob("results_*.json"))

KEYS = [
    "schema_version",
    "timestamp",
    "started_at",
    "run",
    "cases",
    "summary",
    "by_model",
    "pass_metrics",
    "results",
]


def test_the_keys_stand_in_order_and_each_entry_on_one_line(stored):
    document = stored({item("a"): ["passed"], item("b"): ["failed"]})
    text = document.path.read_text("ascii")
    assert list(json.loads(text)) == KEYS
    lines = [line for line in text.splitlines() if line.startswith('{"name"')]
    assert len(lines) == 2
    entry = json.loads(lines[0].rstrip(","))
    assert list(entry)[:10] == [
        "name",
        "model",
        "passed",
        "message",
        "tokens",
        "cost",
        "duration_ms",
        "tool_call_count",
        "error",
        "attempt",
    ]
    assert list(entry)[-1] == "details"
    before = list(entry)[: list(entry).index("checks")]
    behind = [key for key in entry if key not in before]
    assert behind == ["checks", "wire_attempts", "diff", "mapping", "traceback", "details"]


def test_the_document_is_a_pure_function_of_the_folder(run_folder, tmp_path):
    folder = run_folder({item("a", k=2): ["passed", "failed"], item("b"): None})
    first = write_document(from_folder(folder), tmp_path / "1.json").read_bytes()
    second = write_document(from_folder(RunFolder.open(folder.path)), tmp_path / "2.json").read_bytes()
    assert first == second
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_it_reads_back_as_it_was_written(stored, outputs):
    document = stored({item("a", k=2): ["passed", "failed"], item("b", "demo:b"): ["error"], item("c"): None})
    built = from_folder(RunFolder.open(document.path.with_suffix("")))
    assert document.header == built.header
    assert list(document.rows) == list(built.rows)
    assert list(document.entries()) == list(built.entries())
    assert document.entry(2) == list(built.entries())[2] == built.entry(2)


def test_the_run_says_when_and_what(stored):
    header = stored({item(): ["passed"]}, {"git_sha": "abc", "command": ["pytest"]}).header
    assert header["run"] == {"label": "nightly", "git_sha": "abc", "command": ["pytest"]}
    assert header["started_at"] == "2026-03-01T12:00:00+00:00"
    assert header["timestamp"] > header["started_at"]
    assert header["schema_version"] == 1


def test_entries_go_by_model_then_by_file_order_whatever_ran_first(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    items = [item(name, model) for name in ("b", "a") for model in ("m:2", "m:1")]
    journals = [Journal(folder, f"gw{n}") for n in range(2)]
    journals[0].planned(items)
    for number, planned in enumerate(reversed(items)):
        journals[number % 2].started(planned.nodeid)
        journals[number % 2].attempt(planned.nodeid, 0, judged())
    found = [(row.model, row.name) for row in from_folder(folder).rows]
    assert found == [("m:2", "b"), ("m:2", "a"), ("m:1", "b"), ("m:1", "a")]


def test_what_was_started_and_has_no_attempt_is_an_error_of_the_worker(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    journal = Journal(folder, "gw0")
    planned = item(k=3)
    journal.planned([planned, item("later")])
    journal.started(planned.nodeid)
    journal.attempt(planned.nodeid, 0, judged(1))
    journal.answer(planned.nodeid, 0, 2, answered("paid"))
    document = from_folder(folder)
    assert [(row.verdict, row.stage, row.message) for row in document.rows] == [
        ("passed", None, "match"),
        (
            "error",
            "worker",
            "answered, but the process ended before the verdict; --agent-resume judges it without a call",
        ),
        ("error", "worker", "the process ended before this attempt had an answer"),
        ("not_run", None, "the run ended before it"),
    ]
    assert document.rows[1].tokens == 30
    assert document.rows[2].tokens is None
    assert document.entry(1)["details"]["response_text"] == "paid"
    assert document.header["cases"] | {"score": None} == {
        "total": 2,
        "passed": 0,
        "failed": 0,
        "errors": 1,
        "review": 0,
        "not_run": 1,
        "skipped": 0,
        "xfailed": 0,
        "quarantined": 0,
        "unreviewed": 0,
        "quarantined_passed": 0,
        "pass_rate": 0.0,
        "score": None,
    }


def test_the_last_rerun_counts(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    journal = Journal(folder, "main")
    planned = item()
    journal.planned([planned])
    for rerun, verdict in enumerate(["failed", "passed"]):
        journal.started(planned.nodeid, rerun)
        journal.attempt(planned.nodeid, rerun, judged(1, verdict))
    (row,) = from_folder(folder).rows
    assert row.verdict == "passed"
    journal.started(planned.nodeid, 2)
    (row,) = from_folder(folder).rows
    assert (row.verdict, row.stage) == ("error", "worker")


def test_skipped_items_are_counted_and_named_and_have_no_entry(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    journal = Journal(folder, "main")
    journal.planned([item("a"), item("b")])
    journal.skipped(item("b").nodeid, "not today")
    journal.started(item("a").nodeid)
    journal.attempt(item("a").nodeid, 0, judged())
    document = from_folder(folder)
    assert [row.name for row in document.rows] == ["a"]
    assert document.header["cases"]["skipped"] == 1
    assert document.header["cases"]["total"] == 2
    assert document.run["skipped"] == [{"nodeid": item("b").nodeid, "reason": "not today"}]
    journal.started(item("b").nodeid, 1)
    journal.attempt(item("b").nodeid, 1, judged())
    assert [row.name for row in from_folder(folder).rows] == ["a", "b"]


def test_an_item_nobody_planned_is_shown_all_the_same(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    Journal(folder, "main").attempt("tests/x.yml::y[m]", 0, judged())
    (row,) = from_folder(folder).rows
    assert (row.path, row.name) == ("tests/x.yml", "y[m]")


def test_an_empty_folder_is_an_empty_document(outputs, tmp_path):
    folder = RunFolder.reserve(outputs, NOW)
    document = from_folder(folder)
    assert (list(document.rows), document.header["timestamp"]) == ([], "")
    assert read_document(write_document(document, tmp_path / "x.json")).header == document.header
    with pytest.raises(ResultsError, match=r"not the folder of a run \(no \.jsonl file in it\)"):
        read_document(folder.path)


def attempt_with_tables(rows: int) -> Any:
    table = Table.from_rows(["id", "x"], [[n, Decimal(n)] for n in range(rows)], ["INTEGER", "DECIMAL(9,0)"])
    records = table.records()
    call = ToolCall("execute_sql", {"sql_query": "SELECT"}, {"data": records, "columns": ["id", "x"]})
    calls = (call, ToolCall("other", {}, [records[0]] * rows), ToolCall("t", {}, table), ToolCall("u", {}, 5))
    return judged(
        answer=answered(data=table, tool_calls=calls),
        extraction=Extraction(table, "given"),
        reference=table,
        reference_sql="SELECT id, x",
    )


def test_tables_are_cut_in_the_document_and_say_so(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    Journal(folder, "main").attempt("n", 0, attempt_with_tables(1500))
    details = read_document(write_document(from_folder(folder), folder.document)).entry(0)["details"]
    for name in ("expected_table", "actual_table"):
        assert (len(details[name]["rows"]), details[name]["row_count"]) == (1000, 1500)
        assert details[name]["columns"] == [["id", "INTEGER"], ["x", "DECIMAL(9,0)"]]
    assert details["expected_table"]["sha256"] == details["actual_table"]["sha256"]
    assert (len(details["expected_data"]), details["expected_data"][1]) == (100, {"id": 1, "x": 1})
    assert details["expected_table"]["rows"][1] == [1, "1"]  # the exact value, its kind in types
    assert details["cut"] == {
        "/tool_calls/0/result/data": 1500,
        "/tool_calls/1/result": 1500,
        "/tool_calls/2/result/rows": 1500,
        "/answer/data/rows": 1500,
    }
    assert len(details["tool_calls"][0]["result"]["data"]) == 1000
    assert details["reference_sql"] == "SELECT id, x"


def test_records_as_nao_writes_them_hold_decimals_as_numbers(outputs):
    rows = [
        [Decimal("3198.60"), [Decimal("0.5"), None], {"a": Decimal("7.00")}, Decimal("NaN"), 2**60, "1.50"],
        [None, None, {"a": None}, Decimal(10) ** 30, 1, "x"],
    ]
    names = ["total", "parts", "nested", "odd", "large", "text"]
    table = Table.from_rows(names, rows, ["DECIMAL", "DECIMAL[]", "STRUCT", "DECIMAL", "BIGINT", "VARCHAR"])
    folder = RunFolder.reserve(outputs, NOW)
    Journal(folder, "main").attempt("n", 0, judged(reference=table, extraction=Extraction(table, "given")))
    entry = read_document(write_document(from_folder(folder), folder.document)).entry(0)
    expected = [
        {"total": 3198.6, "parts": [0.5, None], "nested": {"a": 7}, "odd": None, "large": str(2**60)},
        {"total": None, "parts": None, "nested": {"a": None}, "odd": 1e30, "large": 1},
    ]
    shown = [{key: row[key] for key in names[:-1]} for row in entry["details"]["expected_data"]]
    assert shown == expected
    assert entry["details"]["expected_data"] == entry["details"]["actual_data"]
    assert [row["text"] for row in entry["details"]["expected_data"]] == ["1.50", "x"]  # text stays text
    back = table_of(entry["details"], "expected_table")
    assert back is not None
    assert back.column(0) == [Decimal("3198.60"), None]


def test_a_table_without_rows_is_an_empty_list_of_records(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    empty = Table.from_rows(["n"], [], ["INTEGER"])
    Journal(folder, "main").attempt("n", 0, judged(reference=empty))
    details = read_document(write_document(from_folder(folder), folder.document)).entry(0)["details"]
    assert (details["expected_data"], details["actual_data"]) == ([], None)


def test_small_tables_and_answers_come_back_whole_from_the_document(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    attempt = attempt_with_tables(3)
    Journal(folder, "main").attempt("n", 0, attempt)
    entry = read_document(write_document(from_folder(folder), folder.document)).entry(0)
    assert "cut" not in entry["details"]
    back = answer_of(entry)
    assert back is not None
    assert back.tool_calls[0] == attempt.answer.tool_calls[0]
    assert back.tool_calls[1].result == attempt.answer.tool_calls[1].result
    assert list(back.data.rows()) == list(attempt.answer.data.rows())
    assert (back.usage.input, back.usage.output, back.usage.tokens) == (20, 10, 30)
    for name in ("expected_table", "actual_table"):
        table = table_of(entry["details"], name)
        assert table is not None
        assert list(table.rows()) == list(attempt.reference.rows())
        assert table.types == ["INTEGER", "DECIMAL(9,0)"]


def test_an_entry_without_answer_or_table_says_none(stored):
    entry = stored({item(): None}).entry(0)
    assert answer_of(entry) is None
    assert table_of(entry["details"], "expected_table") is None
    assert answer_of({}) is None


# --- files of others


@pytest.mark.parametrize("path", NAO_FILES, ids=lambda path: path.stem)
def test_the_files_of_nao_are_read_and_counted_as_nao_counted_them(path):
    document = read_document(path)
    theirs = json.loads(path.read_text())
    for part in ("summary",):
        ours = document.header[part]
        assert {key: ours[key] for key in theirs[part]} == pytest.approx(theirs[part])
    for ours, known in zip(document.header["by_model"], theirs["by_model"], strict=True):
        assert {key: ours[key] for key in known} == pytest.approx(known)
    ours = document.header["pass_metrics"]
    assert (ours["k"], ours["aggregate"]) == (
        theirs["pass_metrics"]["k"],
        pytest.approx(theirs["pass_metrics"]["aggregate"]),
    )
    for test, known in zip(ours["by_test"], theirs["pass_metrics"]["by_test"], strict=True):
        assert {key: test[key] for key in known} == known
    assert document.header["timestamp"] == theirs["timestamp"]
    assert len(list(document.entries())) == len(document.rows) == len(theirs["results"])
    assert document.run == {}


@pytest.mark.parametrize("path", NAO_FILES, ids=lambda path: path.stem)
def test_a_large_foreign_file_is_streamed_to_the_same_document(path, monkeypatch):
    whole = read_document(path)
    monkeypatch.setattr(load_module, "LARGE", 10)
    streamed = read_document(path)
    assert streamed.header == whole.header
    assert list(streamed.rows) == list(whole.rows)
    assert list(streamed.entries()) == list(whole.entries())
    assert streamed.entry(0) == whole.entry(0)


def test_a_table_of_nao_is_read_from_its_records():
    details = read_document(NAO / "results_1case_pass.json").entry(0)["details"]
    table = table_of(details, "actual_table")
    assert table is not None
    assert table.records() == [{"total_revenue": 249595}]
    answer = answer_of(read_document(NAO / "results_1case_pass.json").entry(0))
    assert answer is not None
    assert answer.tool_calls[0].name == "execute_sql"
    assert answer.tool_calls[0].status == "ok"


def test_an_older_file_without_totals_is_read(tmp_path):
    """What dazense and early nao versions write: no by_model, no attempt, errors as text."""
    old = {
        "timestamp": "2025-01-01T00:00:00",
        "results": [
            {"name": "a", "passed": True, "message": "match", "tokens": None, "cost": 0},
            {"name": "b", "passed": False, "message": "error", "error": "HTTP 500"},
            {"name": "c", "passed": False, "message": "values differ", "details": None},
        ],
        "note": {"nested": [1, {"x": [2]}]},
    }
    path = tmp_path / "results_old.json"
    path.write_text("\ufeff" + json.dumps(old), encoding="utf-8")
    document = read_document(path)
    assert [row.verdict for row in document.rows] == ["passed", "error", "failed"]
    assert document.header["cases"]["errors"] == 1
    assert document.header["note"] == {"nested": [1, {"x": [2]}]}
    assert answer_of(document.entry(2)) is None


def test_nan_in_a_small_file_of_nao_is_read(tmp_path):
    path = tmp_path / "results_nan.json"
    path.write_text('{"results": [{"name": "a", "passed": true, "details": {"actual_data": [{"x": NaN}]}}]}')
    assert len(read_document(path).rows) == 1


def test_our_file_pretty_printed_by_somebody_is_still_read(stored, tmp_path):
    document = stored({item(k=2): ["passed", "failed"]})
    pretty = tmp_path / "pretty.json"
    pretty.write_text(json.dumps(json.loads(document.path.read_text()), indent=2))
    again = read_document(pretty)
    assert again.header["cases"] == document.header["cases"]
    assert again.run == document.run
    assert list(again.rows) == list(document.rows)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not a results file"),
        ("[]", "not a results file"),
        (
            "{}",
            "not a results file but JSON without `results`; needed is the results file of a run, "
            "results_\\*.json in tests/outputs",
        ),
        ("[1]", "not a results file but JSON without `results`"),
        ('{"results": {}}', "'results' is not a list"),
        ('{"results": [5]}', "not a results file"),
        ("not json", "not a results file but no JSON \\(Expecting value: line 1, column 1\\); needed is "),
        ("\xff\xfe", "not a results file"),
    ],
)
def test_a_broken_file_is_named_and_its_fault_too(tmp_path, content, message):
    path = tmp_path / "results_x.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(ResultsError, match=message) as caught:
        read_document(path)
    assert str(path) in str(caught.value)


def test_a_file_of_ours_that_was_cut_is_refused(stored):
    document = stored({item("a"): ["passed"], item("b"): ["passed"]})
    text = document.path.read_text()
    for keep in (len(text) - 4, len(text) // 2, 30):
        document.path.write_text(text[:keep])
        with pytest.raises(ResultsError, match="not a results file"):
            read_document(document.path)


def test_a_missing_file_and_a_newer_version_say_what_to_do(tmp_path, stored):
    with pytest.raises(ResultsError, match="no such results file or folder"):
        read_document(tmp_path / "nope.json")
    document = stored({item(): ["passed"]})
    document.path.write_text(document.path.read_text().replace('"schema_version": 1', '"schema_version": 2'))
    with pytest.raises(ResultsError, match=r"schema_version 2 is newer than 1.*install a newer"):
        read_document(document.path)


def test_what_a_hook_adds_to_the_run_is_written_whatever_it_is(stored, tmp_path):
    document = stored({item(): ["passed"]})
    document.header["run"]["odd"] = {"cost": Decimal("1.5"), "x": float("nan"), "o": object}
    document.header["results"] = "never"
    again = read_document(write_document(document, tmp_path / "x.json"))
    assert again.run["odd"] == {"cost": "1.5", "x": None, "o": "<class 'object'>"}
    assert list(again.rows) == list(document.rows)


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(stored, outputs):
    document = stored({item(): ["passed"]})
    before = document.path.read_bytes()

    def broken() -> Any:
        raise OSError("disk full")
        yield

    bad = type(document)(document.header, document.rows, broken)
    with pytest.raises(OSError, match="disk full"):
        write_document(bad, document.path)
    assert document.path.read_bytes() == before
    assert [p.name for p in outputs.iterdir() if p.suffix == ".tmp" or ".json." in p.name] == []


def test_a_foreign_entry_is_written_as_ours(tmp_path):
    document = read_document(NAO / "results_3cases_k3.json")

    def entries() -> Any:
        for entry, row in zip(document.entries(), document.rows, strict=True):
            yield upgraded(entry, row)

    ours = type(document)({"schema_version": 1, **document.header}, document.rows, entries)
    again = read_document(write_document(ours, tmp_path / "x.json"))
    assert list(again.rows) == list(document.rows)
    assert again.entry(0)["details"] == document.entry(0)["details"]
