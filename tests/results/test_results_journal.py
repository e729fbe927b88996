from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from result_runs import NOW, Journal, answered, item, judged

from pytest_agenteval.compare import compare
from pytest_agenteval.results.document.document import from_folder, index_folder
from pytest_agenteval.results.document.verdicts import parse_rule
from pytest_agenteval.results.journal.journal import head_of
from pytest_agenteval.results.journal.records import (
    answer_body,
    answer_from,
    planned_from,
    planned_record,
    table_hash,
)
from pytest_agenteval.results.journal.run_folder import RunFolder
from pytest_agenteval.support.json_codec import dumps
from pytest_agenteval.support.redaction import Redactor
from pytest_agenteval.table import Table
from pytest_agenteval.types import Answer, CheckResult, Extraction, HttpAttempt, ToolCall, Usage


def lines_of(folder: RunFolder, name: str = "main") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder.path / f"{name}.jsonl").read_text("ascii").splitlines()]


def test_every_event_is_on_disk_when_the_call_returns(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    with Journal(folder, "main") as journal:
        journal.started("n")
    assert [line["kind"] for line in lines_of(folder)] == ["started"]
    (folder.path / "main.jsonl").unlink()
    planned = item()
    journal.planned([planned])
    journal.started(planned.nodeid)
    assert [line["kind"] for line in lines_of(folder)] == ["started"]
    journal.answer(planned.nodeid, 0, 1, answered())
    assert [line["kind"] for line in lines_of(folder)] == ["started", "answer"]
    journal.attempt(planned.nodeid, 0, judged())
    kinds = [line["kind"] for line in lines_of(folder)]
    assert kinds == ["started", "answer", "attempt"]
    journal.skipped("tests/a.yml::other", "not today")
    assert lines_of(folder)[-1]["reason"] == "not today"
    assert lines_of(folder)[1]["head"] == {
        "tokens": 30,
        "cost": 0.01,
        "duration_ms": 1000.0,
        "tool_call_count": 0,
        "usage": {"agent": {"input": 20, "output": 10, "total": 30, "cost": 0.01}},
    }


def test_an_answer_that_nobody_wrote_is_written_with_its_attempt(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    Journal(folder, "main").attempt("n", 0, judged())
    assert [line["kind"] for line in lines_of(folder)] == ["answer", "attempt"]
    Journal(folder, "gw0").attempt("n", 0, judged(verdict="error"))
    assert [line["kind"] for line in lines_of(folder, "gw0")] == ["attempt"]


def test_the_items_are_planned_once_per_generation(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    assert Journal(folder, "gw0").planned([item("a"), item("b")])
    assert not Journal(folder, "gw1").planned([item("a"), item("b")])
    assert list(index_folder(folder).items) == [item("a").nodeid, item("b").nodeid]
    again = RunFolder.resume(folder.path)
    assert Journal(again, "gw0").planned([item("a", k=3)])
    assert index_folder(again).items[item("a").nodeid].planned.k == 3
    assert sorted(p.name for p in folder.path.iterdir() if p.name.startswith(".")) == []


def test_the_items_are_planned_once_where_files_cannot_be_linked(outputs, monkeypatch):
    def refuse(self: Path, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted", str(self))

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    folder = RunFolder.reserve(outputs, NOW)
    assert Journal(folder, "gw0").planned([item("a"), item("b")])
    assert not Journal(folder, "gw1").planned([item("a"), item("b")])
    (place,) = folder.path.glob("planned-*.jsonl")
    assert len(place.read_text().splitlines()) == 2
    assert not list(folder.path.glob(".planned*"))


def test_a_planned_item_comes_back_as_it_was():
    planned = item(k=3, rule="2/3", turns=("a", "b"), tags=("x",), owner="me", xfail="later", database="db")
    assert planned_from(json.loads(dumps(planned_record(planned, 0, "now")))) == planned
    assert planned.pass_rule == parse_rule("2/3")


def test_threads_write_whole_lines(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    journal = Journal(folder, "main")
    text = "x" * 100_000

    def work(worker: int) -> None:
        for number in range(1, 11):
            journal.answer(f"n{worker}", 0, number, answered(text))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = lines_of(folder)
    assert len(found) == 80
    assert {(line["nodeid"], line["attempt"]) for line in found} == {
        (f"n{w}", n) for w in range(8) for n in range(1, 11)
    }


def test_a_killed_process_loses_nothing_it_was_paid_for(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    script = textwrap.dedent(
        """
        import sys, time
        from pathlib import Path
        from pytest_agenteval.results.journal.run_folder import RunFolder
        from pytest_agenteval.results.journal.journal import Journal
        from pytest_agenteval.types import Answer, Attempt, Usage
        journal = Journal(RunFolder.open(Path(sys.argv[1])), "gw0")
        journal.started("tests/a.yml::one")
        journal.attempt("tests/a.yml::one", 0, Attempt(1, "passed", "match", answer=Answer("first")))
        journal.started("tests/a.yml::two")
        journal.answer("tests/a.yml::two", 0, 1, Answer("paid", usage=Usage(5, 6), cost=0.5))
        print("ready", flush=True)
        time.sleep(60)
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, folder.path], stdout=subprocess.PIPE, text=True, env=os.environ
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
    document = from_folder(folder)
    one, two = document.rows
    assert (one.verdict, two.verdict, two.stage) == ("passed", "error", "worker")
    assert (two.tokens, two.cost) == (11, 0.5)
    assert document.entry(1)["details"]["response_text"] == "paid"


def test_a_process_never_appends_to_an_earlier_file(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    (folder.path / "main.jsonl").write_text('{"kind":"started","nod')
    journal = Journal(folder, "main")
    journal.started("n")
    journal.close()
    journal.started("m")
    journal.close()
    journal.close()
    assert [line["nodeid"] for line in lines_of(folder, "main-2")] == ["n"]
    assert [line["nodeid"] for line in lines_of(folder, "main-3")] == ["m"]


@pytest.mark.parametrize(
    "line",
    ['{"kind":"sta', "[1]", '{"kind":"attempt","body":{"a":', "", "null"],
)
def test_a_torn_line_is_no_event(line):
    with pytest.raises(ValueError, match=r"line|object|Expecting|Unterminated"):
        head_of(line)


def test_torn_and_foreign_lines_are_left_out_and_counted(run_folder):
    folder = run_folder({item(): ["passed"]})
    with open(folder.path / "main.jsonl", "a") as file:
        file.write('not json\n{"kind":"started"}\nä\n')
        file.write('{"kind":"odd","nodeid":"n","at":"2026-03-01T12:00:00Z","rerun":0}\n')
        file.write('{"kind":"started","nodeid":"torn","at":"2026"')
    document = from_folder(folder)
    assert document.run["torn_lines"] == 4
    assert document.run["foreign_lines"] == ["main.jsonl"]
    assert [row.name for row in document.rows] == ["revenue"]


def test_lines_of_a_worker_on_another_machine_are_written_by_the_controller(outputs):
    folder = RunFolder.resume(RunFolder.reserve(outputs, NOW).path)
    far = Journal(None, "gw0", rerun_base=folder.rerun_base)
    planned = item()
    assert far.planned([planned])
    far.started(planned.nodeid)
    far.attempt(planned.nodeid, 0, judged())
    lines = far.take_lines()
    assert len(lines) == 4
    assert far.take_lines() == []
    far.close()
    here = Journal(folder, "main")
    here.write_lines(line.rstrip("\n") if n % 2 else line for n, line in enumerate(lines))
    (row,) = from_folder(folder).rows
    assert (row.verdict, row.name) == ("passed", "revenue")
    assert lines_of(folder)[1]["rerun"] == 1000


SECRET = "hunter2-sesame"


def test_secrets_never_reach_the_disk(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    journal = Journal(folder, "main", redactor=Redactor([SECRET]))
    calls = (ToolCall("t", {"url": f"https://u:{SECRET}@h", SECRET: [SECRET]}, {"rows": [[SECRET, 5]]}),)
    answer = answered(f"the key is {SECRET}", tool_calls=calls, logs=SECRET, conversation=[{"a": SECRET}])
    journal.planned([item(prompt=SECRET)])
    journal.attempt(item().nodeid, 0, judged(answer=answer, message=f"x {SECRET}", error=SECRET))
    written = "".join(path.read_text() for path in folder.path.glob("*.jsonl"))
    assert SECRET not in written
    assert "the key is ***" in written


def test_text_without_secrets_is_not_copied():
    value = {"a": ["x", {"b": "y"}], "n": 1, "none": None}
    assert Redactor([SECRET]).data(value) is value


def hostile_answer() -> Answer:
    return Answer(
        text="\ud800 \x1b[31m" + "x" * 1_000_000,
        data=[{"a": Decimal("1.10"), "b": 2**70, "c": float("nan"), "d": date(2026, 1, 2)}],
        value=np.int64(5),
        tool_calls=(
            ToolCall("execute_sql", {"sql_query": "SELECT 1"}, {"data": [{"x": np.float64(1.5)}]}, id="c1"),
            ToolCall("broken", '{"half', error="no", status="error", asked=True, approved=False, turn=1),
            ToolCall("odd", object(), b"\x00", id=None),
        ),
        usage=Usage(input=10, output=5, cache_read=1, reasoning=2, total=20),
        cost=np.float64(0.25),
        finish_reason="stop",
        conversation=[{"role": "user", "content": "hi"}],
        turns=(Answer("one", tool_calls=(ToolCall("t"),)), Answer("two", value=True)),
        wire_attempts=(
            HttpAttempt("http://x", 429, None, 12.5, 3.0),
            HttpAttempt("http://x", None, "eof", 1.0),
        ),
        duration_ms=12.5,
        steps=3,
        logs="a log",
    )


def test_an_answer_is_read_back_with_its_types():
    answer = hostile_answer()
    back = answer_from(json.loads(dumps(answer_body(answer))))
    assert back.text == "\\ud800" + answer.text[1:]
    assert back.data[0]["a"] == Decimal("1.10")
    assert back.data[0]["b"] == 2**70
    assert back.data[0]["c"] != back.data[0]["c"]
    assert back.data[0]["d"] == date(2026, 1, 2)
    assert back.tool_calls[:2] == answer.tool_calls[:2]
    assert back.tool_calls[2].result == b"\x00"
    assert back.tool_calls[2].args.startswith("<object object")
    assert (back.value, back.usage, back.cost, back.steps, back.logs) == (5, answer.usage, 0.25, 3, "a log")
    assert back.turns == answer.turns
    assert back.wire_attempts == answer.wire_attempts
    assert (back.duration_ms, back.finish_reason, back.conversation) == (12.5, "stop", answer.conversation)


def test_an_empty_answer_is_read_back():
    assert answer_from(json.loads(dumps(answer_body(Answer())))) == Answer()


def test_a_call_of_another_program_without_a_result_has_failed():
    body = {"tool_calls": [{"toolName": "t", "args": {}}, {"toolName": "u", "result": None}]}
    first, second = answer_from(body).tool_calls
    assert (first.status, second.status) == ("error", "ok")


def test_hostile_values_never_lose_an_attempt(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    journal = Journal(folder, "main")
    check = CheckResult("python", False, "\ud800", score=float("nan"), details={"x": object(), "n": 2**80})
    for number, verdict in enumerate(["passed", "failed", "review", "error"], 1):
        journal.attempt(
            "n",
            0,
            judged(
                number,
                verdict,
                answer=hostile_answer(),
                checks=(check,),
                score=float("inf"),
                message="\udfff",
            ),
        )
    assert [row.verdict for row in from_folder(folder).rows] == ["passed", "failed", "review", "error"]


def test_the_hash_of_a_table_knows_its_rows_not_their_order_nor_the_last_digit_of_a_sum():
    def of(rows: list[list[Any]], names: tuple[str, ...] = ("a", "b")) -> str:
        return table_hash(Table.from_rows(names, rows))

    base = of([[1, 0.1 + 0.2], [2, None]])
    assert of([[2, None], [1, 0.3]]) == base
    assert of([[1, 0.3], [2, 0]]) != base
    assert of([[1, 0.3]]) != base
    assert of([[1, 0.3], [2, None]], ("a", "c")) != base
    assert of([[1, Decimal("0.3")], [2, None]]) != of([[1, "0.30"], [2, None]])
    assert table_hash(Table((), (), 1)) != table_hash(Table((), (), 2))


def test_a_reference_is_hashed_once_for_its_attempts(outputs, monkeypatch):
    from pytest_agenteval.results.journal import journal as module

    calls: list[Table] = []
    real: Callable[[Table], str] = table_hash
    monkeypatch.setattr(module, "table_hash", lambda table: (calls.append(table), real(table))[1])
    reference, given = Table.from_rows(["a"], [[1]]), Table.from_rows(["a"], [[2]])
    journal = Journal(RunFolder.reserve(outputs, NOW), "main")
    for number in (1, 2, 3):
        journal.attempt("n", 0, judged(number, extraction=Extraction(given, "given"), reference=reference))
    assert len(calls) == 2


def test_a_comparison_is_kept_as_text_and_as_structure(outputs):
    expected = Table.from_rows(["month", "revenue"], [["jan", 1], ["feb", 2]])
    actual = Table.from_rows(["month", "revenue"], [["jan", 1], ["feb", 3]])
    differ, match = compare(expected, actual), compare(expected, expected)
    folder = RunFolder.reserve(outputs, NOW)
    journal = Journal(folder, "main")
    for number, (verdict, comparison) in enumerate([("failed", differ), ("passed", match)], 1):
        data = CheckResult("data", comparison.matched, comparison.message, details={"comparison": comparison})
        turn = CheckResult("data", False, "x", turn=1, reason="order", details={"comparison": differ, "n": 1})
        journal.attempt(
            "n",
            0,
            judged(
                number,
                verdict,
                comparison=comparison,
                reference=expected,
                extraction=Extraction(actual, "given"),
                checks=(data, turn),
            ),
        )
    failed, passed = from_folder(folder).entries()
    assert "feb" in failed["details"]["comparison"]
    assert failed["diff"]["message"] == "values differ"
    assert [column["expected"] for column in failed["mapping"]] == ["month", "revenue"]
    assert passed["details"]["comparison"] is None
    assert "details" not in failed["checks"][0]
    assert passed["checks"][1]["details"]["comparison"]["message"] == "values differ"
    assert passed["checks"][1]["reason"] == "order"
    assert passed["checks"][1]["turn"] == 1


def test_the_usage_of_extraction_and_judges_is_kept_apart(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    table = Table.from_rows(["a"], [[1]])
    checks = (
        CheckResult("judge", True, "ok", usage=Usage(5, 6), cost=0.1),
        CheckResult("factuality", True, "ok", usage=Usage(1, 2)),
        CheckResult("judge", True, "ok", cost=0.2),
        CheckResult("text", True, "ok"),
    )
    extraction = Extraction(table, "query", "SELECT 1", Usage(7, 8), 0.3)
    Journal(folder, "main").attempt("n", 0, judged(extraction=extraction, checks=checks))
    document = from_folder(folder)
    assert document.rows[0].usage == {
        "agent": {"input": 20, "output": 10, "total": 30, "cost": 0.01},
        "extraction": {"input": 7, "output": 8, "total": 15, "cost": 0.3},
        "judge": {"input": 6, "output": 8, "total": 14, "cost": pytest.approx(0.3)},
    }
    assert document.header["summary"]["total_cost"] == 0.01
    assert document.header["summary"]["usage"]["judge"]["cost"] == pytest.approx(0.3)
    entry = document.entry(0)
    assert entry["details"]["verification_sql"] == "SELECT 1"
    assert entry["extraction"] == {"source": "query", "query": "SELECT 1"}


def test_the_number_of_tool_calls_of_a_conversation_is_that_of_its_turns(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    turns = (Answer("a", tool_calls=(ToolCall("t"),)), Answer("b", tool_calls=(ToolCall("t"), ToolCall("u"))))
    Journal(folder, "main").attempt("n", 0, judged(answer=Answer("b", turns=turns)))
    assert from_folder(folder).rows[0].tool_call_count == 3


def test_importing_the_journal_loads_nothing_heavy():
    code = (
        "import sys, pytest_agenteval.results.journal.journal, pytest_agenteval.results.document.document\n"
        "heavy = {'pandas', 'numpy', 'scipy', 'pyarrow', 'duckdb', 'ijson', 'yaml', 'pydantic', 'sqlglot'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert Path(sys.executable).exists()
