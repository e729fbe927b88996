"""Whole runs of every key of a case: what the agent received, and what came of it."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb
import pytest
import yaml
from case_rows import MODELS, ROWS
from seed_project import Done, Row, run, run_again
from user_run import environment

from pytest_agenteval.cases.fields import CANONICAL, EXPECT_PART, FILE_KEYS, TURN_KEYS

OPTIONS = ("-v", "-p", "no:cacheprovider")


def named(row: Row) -> str:
    return row.name


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """One run of the whole table; the answers are recorded."""
    return run(tmp_path_factory.mktemp("keys"), ROWS, *OPTIONS, "--agent-record", "answers.jsonl")


@pytest.fixture(scope="module")
def overlapping(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """The same with calls that overlap: nothing may come of it but speed."""
    return run(tmp_path_factory.mktemp("overlapping"), ROWS, *OPTIONS, "--agent-concurrency", "4")


@pytest.fixture(scope="module")
def with_models(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """A run with two models."""
    models = ("--agent-model", "openai:large", "--agent-model", "openai:small")
    return run(tmp_path_factory.mktemp("models"), MODELS, *OPTIONS, *models)


def told(done: Done, row: Row) -> str:
    """All that results and terminal say of a row: messages, reasons, checks."""
    return "\n".join(line for line in done.out.splitlines() if f"/{row.name}.yml::" in line) + "\n".join(
        f"{entry['name']}: {entry['verdict']}: {entry['message']} ({entry['reason']})\n"
        + "".join(f"  {check['type']}: {check['why']}\n" for check in entry["checks"])
        for entry in done.results(row)
    )


def judge(done: Done, row: Row) -> None:
    """Hold a row against the run."""
    text = told(done, row)
    assert done.verdicts(row) == row.expected(), text or done.out
    for piece in row.says:
        assert piece in text
    for piece in row.silent:
        assert piece not in text
    if row.received is not None:
        received = done.received(row)
        assert [
            {key: call[key] for key in expected}
            for call, expected in zip(received, row.received, strict=True)
        ] == [dict(expected) for expected in row.received]
    if row.judged is not None:
        assert done.judged_for(row) == row.judged


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_the_agent_receives_what_the_case_says_and_the_case_ends_as_it_should(done: Done, row: Row) -> None:
    judge(done, row)


# a budget of a file may be overrun by the calls in flight
@pytest.mark.parametrize("row", [row for row in ROWS if row.name != "file_budget"], ids=named)
def test_overlapping_calls_change_nothing(overlapping: Done, row: Row) -> None:
    judge(overlapping, row)


@pytest.mark.parametrize("row", MODELS, ids=named)
def test_cases_and_models(with_models: Done, row: Row) -> None:
    judge(with_models, row)


def test_a_case_without_a_model_left_is_deselected_and_counted(with_models: Done) -> None:
    assert "1 deselected" in with_models.out


def verdicts(document: Mapping[str, Any]) -> dict[tuple[str, int], tuple[Any, ...]]:
    """What was found, by attempt; one case reads what its agent left behind, which is no answer."""
    return {
        (entry["nodeid"], entry["attempt"]): tuple(
            entry[key] for key in ("verdict", "reason", "observed", "score")
        )
        for entry in document["results"]
        if entry["path"] != "tests/isolate_cheating.yml"
    }


def test_recorded_answers_are_judged_as_the_agents_own(done: Done) -> None:
    asked = (done.root / "asked.jsonl").read_text()
    replayed = run_again(done.root, "replayed", *OPTIONS, "--agent-target", "replay:answers.jsonl")
    assert verdicts(replayed.document) == verdicts(done.document)
    assert (done.root / "asked.jsonl").read_text() == asked


def test_rescoring_without_a_judge_takes_what_the_judge_said(done: Done) -> None:
    (file,) = (done.root / "tests" / "outputs").glob("results_*.json")
    told = subprocess.run(
        [sys.executable, "-m", "pytest_agenteval", "rescore", str(file), "-o", "rescored.json"],
        cwd=done.root,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert "0 regressions, 0 fixes, 0 added, 0 removed, " in told.stdout
    document = json.loads((done.root / "rescored.json").read_text(encoding="utf-8"))
    assert verdicts(document) == verdicts(done.document)


def mappings(node: Any) -> Iterator[Mapping[str, Any]]:
    """Every mapping of a document."""
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    if isinstance(node, list):
        for part in node:
            yield from mappings(part)


def test_the_table_holds_every_key_there_is() -> None:
    documents = [yaml.load(row.case, Loader=yaml.CSafeLoader) for row in (*ROWS, *MODELS)]
    written = {key for document in documents for part in mappings(document) for key in part}
    known = {*CANONICAL, *FILE_KEYS, *TURN_KEYS, *EXPECT_PART["properties"]}
    assert known - written == set()


def test_the_agent_never_receives_what_only_the_case_may_know(done: Done) -> None:
    for row in ROWS:
        root = yaml.load(row.case, Loader=yaml.CSafeLoader)
        secrets = [f"{row.name}.yml", *([sql] if isinstance(sql := root.get("sql"), str) else [])]
        for call in done.received(row):
            assert not [secret for secret in secrets if secret in str(call)]


def test_every_attempt_of_an_isolated_case_gets_a_copy_of_its_own(done: Done) -> None:
    (row,) = (row for row in ROWS if row.name == "isolate")
    calls = done.received(row)
    assert [call["copies"] for call in calls] == [call["databases"] for call in calls]
    original = f"duckdb:///{done.root / 'shop.duckdb'}"
    assert len({call["databases"]["shop"] for call in calls} | {original}) == 3
    with duckdb.connect(str(done.root / "shop.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM orders").fetchall() == [(5,)]
    crm = sqlite3.connect(done.root / "crm.db")
    assert crm.execute("SELECT count(*) FROM people").fetchall() == [(2,)]
    crm.close()


def test_other_cases_get_the_databases_themselves(done: Done) -> None:
    (row,) = (row for row in ROWS if row.name == "plain")
    (call,) = done.received(row)
    assert call["databases"] == {
        "shop": f"duckdb:///{done.root / 'shop.duckdb'}",
        "spare": f"duckdb:///{done.root / 'spare.duckdb'}",
        "crm": f"sqlite:///{done.root / 'crm.db'}",
    }


def test_what_is_written_for_people_stands_in_the_results(done: Done) -> None:
    (row,) = (row for row in ROWS if row.name == "named")
    (entry,) = done.results(row)
    assert (entry["name"], entry["nodeid"]) == ("A name: with ü & more", "tests/named.yml::by_id")
    assert (entry["owner"], entry["tags"]) == ("growth", ["churn", "quick"])


def test_the_results_say_which_of_several_references_matched(done: Done) -> None:
    (row,) = (row for row in ROWS if row.name == "several_sql")
    (entry,) = done.results(row)
    assert entry["message"] == "match (reference 2 of 3)"


def test_each_attempt_stands_in_the_results(done: Done) -> None:
    (row,) = (row for row in ROWS if row.name == "two_thirds")
    assert [(entry["attempt"], entry["verdict"]) for entry in done.results(row)] == [
        (1, "passed"),
        (2, "failed"),
        (3, "passed"),
    ]


def test_reasons_of_marks_are_told(done: Done) -> None:
    for reason in ("the table is gone", "not today", "drops the free plan"):
        assert f"({reason})" in done.out


def test_what_the_judge_used_stands_apart(done: Done) -> None:
    (row,) = (row for row in ROWS if row.name == "judge_asked")
    (entry,) = done.results(row)
    assert (entry["usage"]["agent"], entry["usage"]["judge"]["total"]) == (None, 55)
    assert entry["tokens"] is None
