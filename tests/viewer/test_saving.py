"""Cases from answers and conversations: the files load, run, and say that nobody has reviewed them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_agenteval.authoring.conversations import rating_of, read_conversations
from pytest_agenteval.authoring.save_case import Draft, NoCase, case_text, draft_of, save_case, slug
from pytest_agenteval.checks.registry import default_registry
from pytest_agenteval.cli import main
from pytest_agenteval.errors import ResultsError
from pytest_agenteval.results.document.load import read_document
from pytest_agenteval.results.document.overrides import read_overrides, with_overrides


def loaded(path: Path) -> Any:
    """The one case of a file, without faults. The folder is named tests, so it is found in a run."""
    from pytest_agenteval.cases.loader import load_cases

    found = load_cases(path, checks=default_registry(), root=path.parent, databases=None)
    assert not found.errors
    (case,) = found.cases
    return case


def add(*words: str | Path) -> int:
    return main(["add", *map(str, words)])


def test_an_answer_becomes_a_case_that_runs(
    outputs: Path, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = outputs.parents[1]
    code = add(
        results, "revenue_by_channel", "-m", "demo:careful", "--name", "by channel", "--into", root / "tests"
    )
    place = root / "tests" / "by_channel.yml"
    told = capsys.readouterr().out
    assert (code, told) == (0, f"added: {place}  (reference: the agent's last SQL; reviewed: false)\n")
    case = loaded(place)
    assert case.name == "by channel"
    assert case.metadata["reviewed"] is False
    assert case.metadata["source"]["answered_by"] == "demo:careful"
    assert case.metadata["source"]["results"] == results.name
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(place)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "1 passed" in run.stdout, run.stdout + run.stderr


def test_a_wrong_answer_says_so_wherever_it_becomes_a_case(
    outputs: Path, results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    document = read_document(results)
    row = next(row for row in document.rows if row.verdict == "failed" and row.why_text)
    root = outputs.parents[1]
    monkeypatch.chdir(root)
    assert add(results, row.name, "-m", row.model, "--attempt", str(row.attempt), "--name", "wrong one") == 0
    told = capsys.readouterr().out
    place = Path(row.path).parent / "wrong_one.yml"  # beside the case, shown as seen from here
    assert told.startswith(f"added: {place}  (reference: the agent's last SQL; reviewed: false)\n")
    said = f"this answer failed its case: {row.why_text}"[:80]
    assert f"\nCAREFUL: {said}" in told
    assert told.endswith("\n  the case takes this answer for the right one: correct its reference\n")
    lines = (root / place).read_text("utf-8").splitlines()
    assert lines[1].startswith(f"# {said}")
    assert loaded(root / place).metadata["reviewed"] is False
    main(["check", str(place)])
    note = "note: 1 case is not reviewed (metadata.reviewed: false): wrong one"
    assert note in capsys.readouterr().out.splitlines()


def test_nothing_is_overwritten(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    into = tmp_path / "tests"
    into.mkdir()
    (into / "total_revenue.yml").write_text("mine")
    words = (results, "total_revenue", "-m", "demo:hasty", "--into", into)
    assert add(*words) == 0
    assert add(*words) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith(f"added: {into / 'total_revenue_2.yml'}  ")
    assert told[1].startswith(f"already there: {into / 'total_revenue_2.yml'}  ")
    assert sorted(path.name for path in into.iterdir()) == ["total_revenue.yml", "total_revenue_2.yml"]
    assert (into / "total_revenue.yml").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "which case? never_ordered, "),
        (["total_revenu"], "has no case 'total_revenu'; did you mean 'total_revenue'"),
        (["zzz"], "has no case 'zzz'; there are never_ordered, "),
        (["total_revenue"], "was asked of several models; choose with -m: demo:careful, demo:hasty"),
        (["total_revenue", "-m", "x:y"], "was not asked of 'x:y', but demo:careful, demo:hasty"),
        (["total_revenue", "-m", "demo:hasty", "--attempt", "9"], "there is no attempt 9; there are 1, 2"),
    ],
)
def test_what_is_meant_must_be_there(
    results: Path, words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add(results, *words) == 2
    assert text in capsys.readouterr().err


def test_a_verdict_by_command(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (results, "revenue_by_month", "-m", "demo:hasty")
    assert add(*words, "--verdict", "passed", "--label", "case", "--note", "monthly was meant") == 0
    assert "revenue_by_month [demo:hasty], 2 attempts: passed, by a person" in capsys.readouterr().out
    kept = list(read_overrides(results).values())
    assert [(o.verdict, o.label, o.note) for o in kept] == [
        ("passed", "the case is wrong", "monthly was meant")
    ] * 2
    before, after = read_document(results), with_overrides(read_document(results))
    assert after.header["cases"]["passed"] == before.header["cases"]["passed"] + 1
    assert main(["report", str(results)]) == 0
    assert "overridden" in capsys.readouterr().out
    assert add(*words, "--verdict", "none") == 0
    assert read_overrides(results) == {}


def test_a_conversation_of_several_turns(changed: Callable[..., Path], tmp_path: Path) -> None:
    def change(entry: dict[str, Any]) -> None:
        entry["turns"] = ["How many?", "And in May?"]

    source = changed(tmp_path / "results_1.json", change)
    draft = draft_of(next(read_document(source).entries()), {})
    place, new = save_case(tmp_path / "tests", draft)
    assert new
    assert [turn.say for turn in loaded(place).turns] == ["How many?", "And in May?"]


def test_rows_where_there_was_no_sql(changed: Callable[..., Path], tmp_path: Path) -> None:
    def change(entry: dict[str, Any]) -> None:
        entry["details"]["tool_calls"] = []
        entry["extraction"] = {"source": "given", "query": None}

    document = read_document(changed(tmp_path / "results_1.json", change))
    at = next(n for n, row in enumerate(document.rows) if row.name == "category_ranking")
    place, _ = save_case(tmp_path / "tests", draft_of(document.entry(at), {}))
    case = loaded(place)
    assert case.sql == ()
    assert case.expected.names == ["category", "revenue"]
    assert case.expected.row_count == 6


def test_a_refusal_stays_one(jaffle_results: Path, tmp_path: Path) -> None:
    document = read_document(jaffle_results)
    at = next(n for n, row in enumerate(document.rows) if row.name == "private_data")
    place, _ = save_case(tmp_path / "tests", draft_of(document.entry(at), {}))
    assert loaded(place).outcome == "refuse"


def test_results_without_prompts_make_no_case() -> None:
    nao = Path(__file__).resolve().parents[1] / "data" / "nao" / "results_1case_pass.json"
    with pytest.raises(NoCase, match="the results do not say what was asked"):
        draft_of(read_document(nao).entry(0), {})


HOSTILE = (
    "a: \"b' \\ #c\n- {x}: [\ty]  \n\x1b[31m\u202e\x85 --- "
    '!!python/object:os.system {{ env("HOME") }} ${HOME}'
)


@pytest.mark.parametrize(
    "text", [HOSTILE, "NO", "12:30", "2024-01-01", "- a", "---", "#", "é\u2028ü", "x" * 3000]
)
def test_any_text_survives(text: str, tmp_path: Path) -> None:
    from pytest_agenteval.support.text import escape_text

    draft = Draft(name=text, turns=[text], sql=f"SELECT '{text}'\n  AS x", source={"comment": text})
    place, _ = save_case(tmp_path / "tests", draft)
    case = loaded(place)
    assert case.prompt == escape_text(text).strip("\n")
    assert case.metadata["comment"] == escape_text(text)
    assert place.parent == tmp_path / "tests"


def test_sql_stands_as_a_block() -> None:
    text = case_text(Draft("n", ["q?"], sql="\n   SELECT 1  \n\tFROM t   "))
    assert "sql: |\n  SELECT 1\n      FROM t\n" in text


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("../../etc/passwd", "etc_passwd"),
        ("Ümsatz je Kanal?", "umsatz_je_kanal"),
        ("///", "case"),
        ("a" * 99, "a" * 60),
    ],
)
def test_file_names(name: str, file: str) -> None:
    assert slug(name) == file


def lines(path: Path, *values: Any) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


def test_conversations_disliked_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = lines(
        tmp_path / "chats.jsonl",
        {"question": "Liked?", "sql": "SELECT 1 AS a", "rating": "up"},
        {"question": "Not rated?", "sql": "SELECT 2 AS a"},
        {"question": "Disliked?", "sql": "SELECT 3 AS a", "rating": "thumbs-down", "comment": "all wrong"},
        {"question": "disliked? ", "sql": "SELECT 4 AS a", "rating": "up"},
        {"answer": "no question"},
    )
    with open(source, "a") as file:
        file.write("{broken\n")
    into = tmp_path / "tests"
    assert add(source, "--into", into, "--database", "shop") == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.partition("  ")[2] for line in told[:3]] == [
        "thumbs down: Disliked?",
        "not rated: Not rated?",
        "thumbs up: Liked?",
    ]
    assert told[3].startswith("left out: chats.jsonl:6: not JSON") or told[4].startswith(
        "left out: chats.jsonl:6"
    )
    assert any(line.startswith("left out: chats.jsonl:5: no question in it") for line in told)
    assert told[-1] == "3 added, marked reviewed: false; check their references"
    held = yaml.safe_load((into / "disliked.yml").read_text())
    assert held["metadata"] == {
        "reviewed": False,
        "source": {"file": "chats.jsonl", "line": 3},
        "rating": "down",
        "comment": "all wrong",
    }
    assert "a person did not like this answer" in (into / "disliked.yml").read_text()
    assert "did not like" not in (into / "liked.yml").read_text()
    assert held["database"] == "shop"
    assert add(source, "--into", into, "--database", "shop") == 0
    assert capsys.readouterr().out.endswith("0 added, marked reviewed: false; check their references\n")


def test_only_the_disliked_and_the_first(tmp_path: Path) -> None:
    source = lines(
        tmp_path / "c.jsonl",
        *({"question": f"q{n}", "sql": "SELECT 1 AS a", "rating": n % 2} for n in range(6)),
    )
    assert add(source, "--into", tmp_path / "tests", "--only-down", "--limit", "2") == 0
    assert sorted(path.name for path in (tmp_path / "tests").iterdir()) == ["q0.yml", "q2.yml"]


def test_messages_with_tool_calls(tmp_path: Path) -> None:
    call = {"function": {"name": "execute_sql", "arguments": json.dumps({"sql_query": "SELECT 1 AS n"})}}
    part = {"type": "tool-execute_sql", "input": {"sql_query": "SELECT 2 AS n"}}
    source = lines(
        tmp_path / "c.jsonl",
        {
            "messages": [
                {"role": "user", "content": "First?"},
                {
                    "role": "assistant",
                    "content": "Sure",
                    "tool_calls": [call, {"function": {"arguments": "{"}}],
                },
                {"role": "user", "content": [{"type": "text", "text": "Second?"}]},
                {
                    "role": "assistant",
                    "parts": [part],
                    "feedback": {"vote": "down", "explanation": "off by one"},
                },
            ]
        },
    )
    (told,), problems = read_conversations(source)
    assert not problems
    assert told.draft.turns == ["First?", "Second?"]
    assert told.draft.sql == "SELECT 2 AS n"
    assert told.rating == "down"


def test_a_question_without_sql_is_a_case_for_review(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = lines(tmp_path / "c.jsonl", {"question": "Why?"})
    assert add(source, "--into", tmp_path / "tests") == 0
    assert "no SQL: ends in review until it has a reference" in capsys.readouterr().out
    assert loaded(tmp_path / "tests" / "why.yml").prompt == "Why?"


def test_no_conversation_at_all(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"no conversation in it: c.jsonl:1: not a JSON object"):
        read_conversations(lines(tmp_path / "c.jsonl", [1]))


@pytest.mark.parametrize(
    ("value", "stars", "rating"),
    [
        ("👎", False, "down"),
        ("👎🏽", False, "down"),
        ("Thumbs Up", False, "up"),
        ("-1", False, "down"),
        ("5", True, "up"),
        ("meh", False, "none"),
        (True, False, "up"),
        (False, False, "down"),
        (0, False, "down"),
        (1, False, "up"),
        (1, True, "down"),
        (3, True, "none"),
        (5, True, "up"),
        (None, False, "none"),
    ],
)
def test_ratings(value: Any, stars: bool, rating: str) -> None:
    assert rating_of(value, stars) == rating
