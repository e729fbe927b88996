"""``evaluate_cases``: the same verdicts as with pytest, as a DataFrame."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

import pytest_agenteval
from pytest_agenteval import Answer, Task, evaluate_cases
from pytest_agenteval.errors import SettingsError

CASES = """cases:
  - {name: total, prompt: "SELECT sum(n) AS total FROM t", sql: "SELECT sum(n) AS total FROM t"}
  - {name: count, prompt: "SELECT 4 AS n", sql: "SELECT count(*) AS n FROM t"}
  - {name: broken, prompt: "raise", sql: "SELECT 1 AS n"}
  - {name: later, prompt: "x", sql: "SELECT 1 AS n", skip: not yet}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with duckdb.connect(str(tmp_path / "t.duckdb")) as con:
        con.execute("CREATE TABLE t AS SELECT * FROM range(5) r(n)")
    (tmp_path / "pytest.ini").write_text("[pytest]\nagenteval_databases = t = duckdb:///t.duckdb\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "cases.yml").write_text(CASES, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sql_agent(prompt: str) -> Answer:
    if prompt == "raise":
        raise RuntimeError("out of luck")
    with duckdb.connect("t.duckdb", read_only=True) as con:
        cursor = con.execute(prompt)
        names = [column[0] for column in cursor.description]
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return Answer("done", data=rows, cost=0.25)


def test_attempts_come_as_a_frame(project: Path) -> None:
    frame = evaluate_cases("tests", agent=sql_agent)
    assert list(frame["name"]) == ["total", "count", "broken"]
    assert list(frame["verdict"]) == ["passed", "failed", "error"]
    assert list(frame["path"].unique()) == ["tests/cases.yml"]
    assert frame["cost"].sum() == 0.5
    assert "out of luck" in frame["message"][2]
    results = Path(frame.attrs["results"])
    assert results.parent == project / "tests" / "outputs"
    document = json.loads(results.read_text("utf-8"))
    assert document["run"]["command"] == ["evaluate_cases"]
    assert document["cases"]["skipped"] == 1
    assert not results.with_suffix("").exists()


def test_models_and_k_win_and_the_task_names_the_model(project: Path) -> None:
    seen: list[tuple[str | None, int]] = []

    class Agent:
        def run(self, task: Task) -> Answer:
            seen.append((task.model, task.attempt))
            return sql_agent(task.prompt)

    frame = evaluate_cases([project / "tests" / "cases.yml"], agent=Agent(), models=["a:x", "a:y"], k=2)
    assert len(frame) == 12
    assert set(frame["model"]) == {"a:x", "a:y"}
    assert sorted(set(seen), key=str) == [("a:x", 1), ("a:x", 2), ("a:y", 1), ("a:y", 2)]
    one = evaluate_cases("tests", agent=Agent(), models="a:z")
    assert set(one["model"]) == {"a:z"}


async def async_agent(task: Task) -> Answer:
    return sql_agent(task.prompt)


def test_an_async_agent_and_a_target_as_text(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(project))
    (project / "own_agent.py").write_text("def ask(prompt):\n    return [{'total': 10}]\n")
    assert list(evaluate_cases("tests", agent=async_agent)["verdict"])[:2] == ["passed", "failed"]
    frame = evaluate_cases("tests", agent="python:own_agent:ask")
    assert frame["verdict"][0] == "passed"


def test_databases_may_be_given(project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\n")
    (project / "tests" / "cases.yml").write_text(
        CASES.replace("name: total,", "name: total, database: other,")
    )
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT 10 AS n")
        frame = evaluate_cases(
            "tests", agent=sql_agent, databases={"other": con, "more": "duckdb:///t.duckdb"}
        )
        assert frame["verdict"][0] == "passed"
    single = evaluate_cases("tests", agent=sql_agent, databases="duckdb:///t.duckdb")
    assert "other" in single["message"][0]


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("prompt: x\nsqll: SELECT 1\n", {}, "tests/cases.yml:2:1: unknown key 'sqll', did you mean 'sql'?"),
        ("name: a\nprompt: x\nsetup: [stop]\n", {}, "tests/cases.yml:1: a has a setup: fixtures need pytest"),
        (None, {"paths": "gone"}, "no such file or folder: gone"),
        (None, {"paths": "empty"}, "no case in empty"),
        (None, {"k": 0}, "k: "),
    ],
)
def test_what_cannot_be_evaluated_is_refused_before_anything_is_asked(
    project: Path, text: str | None, options: dict[str, Any], said: str
) -> None:
    (project / "empty").mkdir()
    if text is not None:
        (project / "tests" / "cases.yml").write_text(text, "utf-8")
    asked: list[str] = []
    with pytest.raises(SettingsError) as caught:
        evaluate_cases(**{"paths": "tests", "agent": asked.append, **options})
    assert said in str(caught.value)
    assert asked == []
    assert not (project / "tests" / "outputs").exists()


def test_an_interrupted_evaluation_can_be_gone_on_with(project: Path) -> None:
    def impatient(prompt: str) -> Answer:
        if prompt.startswith("SELECT 4"):
            raise KeyboardInterrupt
        return sql_agent(prompt)

    with pytest.raises(KeyboardInterrupt):
        evaluate_cases("tests", agent=impatient)
    (results,) = (project / "tests" / "outputs").glob("results_*.json")
    document = json.loads(results.read_text("utf-8"))
    assert [entry["verdict"] for entry in document["results"]] == ["passed", "not_run", "not_run"]
    (project / "conftest.py").write_text(
        "import pytest\n@pytest.fixture\ndef agent():\n    return lambda prompt: [{'n': 5}]\n"
    )
    again = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--agent-resume"], capture_output=True, text=True, check=False
    )
    assert "1 answer taken over, 2 asked now" in again.stdout


def test_pytest_is_not_imported(project: Path) -> None:
    code = (
        "import sys; from pytest_agenteval import evaluate_cases\n"
        "frame = evaluate_cases('tests', agent=lambda prompt: [{'total': 10}])\n"
        "print(list(frame['verdict'])[0], 'pytest' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["passed", "False"]
    assert "evaluate_cases" in pytest_agenteval.__all__
