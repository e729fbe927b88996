"""A project whose agent writes down what it is given and answers by script, and whole runs of it.

The agent is a real one (a fixture in the project's conftest.py); its statements are executed on the
databases that the task names. The judge is an endpoint on loopback.
"""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
from pytest_httpserver import HTTPServer
from user_run import environment
from werkzeug import Request, Response

CONFTEST = '''
import json, os, pathlib, sqlite3
import duckdb, pytest
from pytest_agenteval import Answer, Task, ToolCall, Usage

ANSWERS = json.loads(pathlib.Path("answers.json").read_text())
COPIES = []


def given(task):
    """What the agent can see of a task, as JSON."""
    return {
        "turns": task.turns, "input": task.input, "model": task.model, "database": task.database,
        "databases": dict(task.databases), "caller": task.caller, "vars": dict(task.vars),
        "context": task.context, "approve": task.approve, "clarification": task.clarification,
        "conversation": task.conversation, "attempt": task.attempt, "timeout": task.limits.timeout,
        "tokens": task.limits.tokens, "cost": task.limits.cost, "tool_calls": task.limits.tool_calls,
        "today": os.environ.get("TODAY"), "copies": dict(COPIES[-1]) if COPIES else None,
    }


def executed(sql, url):
    """The call of a statement that is really executed, with its rows."""
    place = url.partition("///")[2]
    if url.startswith("duckdb"):
        connection = duckdb.connect(place, read_only=True)
    else:
        connection = sqlite3.connect(place)
    try:
        cursor = connection.execute(sql)
        columns = [entry[0] for entry in cursor.description]
        data = [dict(zip(columns, row)) for row in cursor.fetchall()]
    finally:
        connection.close()
    return ToolCall("execute_sql", {"sql_query": sql}, {"columns": columns, "data": data})


def write(task, sql, original):
    """A statement that changes the data: the attempt's copy, or (an agent that cheats) the original."""
    place = f"{task.database}.duckdb" if original else task.databases[task.database].partition("///")[2]
    library = sqlite3 if task.databases[task.database].startswith("sqlite") else duckdb
    connection = library.connect(place)
    connection.execute(sql)
    connection.commit()
    connection.close()


def answer(task, who="fixture"):
    """What stands in answers.json for the prompt (a list: one per attempt)."""
    with open("asked.jsonl", "a") as log:
        print(json.dumps({**given(task), "who": who}), file=log)
    script = ANSWERS[task.prompt or json.dumps(task.input)]
    script = dict(script[task.attempt - 1] if isinstance(script, list) else script)
    if "write" in script:
        write(task, script.pop("write"), script.pop("original", False))
    calls = [ToolCall(**call) for call in script.pop("calls", [])]
    queries = script.pop("sql", [])
    for sql in [queries] if isinstance(queries, str) else queries:
        calls.append(executed(sql, task.databases[task.database or "shop"]))
    if "usage" in script:
        script["usage"] = Usage(*script["usage"])
    return Answer(tool_calls=tuple(calls), **script)


@pytest.fixture(scope="session")
def agent():
    def ask(task: Task):
        return answer(task)

    return ask


@pytest.fixture
def april(monkeypatch):
    """For setup."""
    monkeypatch.setenv("TODAY", "2024-04-09")


@pytest.fixture
def copies(agenteval_isolated_databases):
    """For setup, of a case with isolate: the fixture of the plugin, as the agent's neighbour sees it."""
    COPIES.append(agenteval_isolated_databases)
    yield
    COPIES.pop()
'''

FLOWS = """
from pytest_agenteval import Task
from conftest import answer

def refund(task: Task):
    return answer(task, who="refund")
"""

BROKEN = "import json\nraise ValueError('half written')\n"

SCORES = '''
def about_finance(evidence):
    """Sees what a person wrote beside the case."""
    return evidence.metadata.get("team") == "finance"
'''

INI = """
[pytest]
agenteval_databases =
    shop = duckdb:///shop.duckdb
    spare = duckdb:///spare.duckdb
    crm = sqlite:///crm.db
markers = nightly: of the project
filterwarnings = error
"""

JUDGE = ("--agent-judge-model", "openai:judge")

ORDERS = """
CREATE TABLE orders(id INTEGER, region VARCHAR, amount DECIMAL(10,2));
INSERT INTO orders VALUES (1,'north',10.50),(2,'south',20.00),(3,'north',5.25),(4,'east',7.00),(5,'west',1.25)
"""


WORDS = {
    "PASSED": "passed",
    "FAILED": "failed",
    "ERROR": "error",
    "SKIPPED": "skipped",
    "XFAIL": "xfailed",
    "XPASS": "xpassed",
}

PEOPLE = "CREATE TABLE people(id INTEGER, name TEXT); INSERT INTO people VALUES (1, 'Ann'), (2, 'Bo')"

TOTAL = "SELECT sum(amount) AS total FROM orders"
REGIONS = "SELECT region, sum(amount) AS total FROM orders GROUP BY region"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One case file, what its agent answers by prompt, and what must come of it.

    ``answers``: what the agent's fixture reads, a list where the attempts differ. ``received``: for every
    call of the agent, in order, what it must have been given (other things may stand in a task too).
    ``verdicts``: by pytest id, or the one of the case that is called like its file. ``says``: pieces of
    its messages; ``silent``: pieces that must not occur. ``judged``: how often the judge was asked for a
    check.
    """

    name: str
    case: str
    answers: Mapping[str, Any] = field(default_factory=dict)
    received: tuple[Mapping[str, Any], ...] | None = None
    verdicts: Mapping[str, str] | str = "passed"
    says: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    judged: int | None = None
    files: Mapping[str, str] = field(default_factory=dict)

    def expected(self) -> Mapping[str, str]:
        """Verdicts by pytest id."""
        return {self.name: self.verdicts} if isinstance(self.verdicts, str) else self.verdicts


@dataclass(frozen=True, slots=True)
class Done:
    """A finished run: its exit status and output, the results by file, what the agent and the judge got."""

    status: int
    out: str
    document: Mapping[str, Any]
    asked: list[dict[str, Any]]
    judged: list[dict[str, Any]]
    root: Path

    def results(self, row: Row) -> list[dict[str, Any]]:
        """The attempts of the cases of ``row``, in the document."""
        return [entry for entry in self.document["results"] if entry["path"] == f"tests/{row.name}.yml"]

    def verdicts(self, row: Row) -> dict[str, str]:
        """What pytest said of each item of ``row``, in our words: skips told apart by the document."""
        found = {}
        for line in self.out.splitlines():
            seen = re.match(rf"tests/{row.name}\.yml::(\S+) ([A-Z]+)\b", line)
            if seen is not None:
                found[seen[1]] = WORDS[seen[2]]
        for entry in self.results(row):
            name = entry["nodeid"].partition("::")[2]
            if found.get(name) == "skipped":
                found[name] = entry["verdict"]
        return found

    def received(self, row: Row) -> list[dict[str, Any]]:
        """What the agent was given for ``row``: by attempt, then in the order of ``answers``."""
        order = list(row.answers)
        mine = [call for call in self.asked if _key(call) in order]
        return sorted(mine, key=lambda call: (call["attempt"], order.index(_key(call))))

    def judged_for(self, row: Row) -> int:
        """How often the judge was asked about ``row``'s answers."""
        texts = [text for script in row.answers.values() for text in _texts(script)]
        asked = [one for one in self.judged if "expected" in one or "rule" in one]
        return sum(one["answer"] in texts for one in asked)


def _key(call: Mapping[str, Any]) -> str:
    return call["turns"][-1] if call["turns"] else json.dumps(call["input"])


def _texts(script: Any) -> list[str]:
    return [one.get("text", "") for one in (script if isinstance(script, list) else [script])]


def judgement(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A judge that looks for words: the expected text or the rule must stand in the answer."""
    answer = payload["answer"]
    if "rule" in payload:
        return {"rationale": "read", "score": 1.0 if payload["rule"] in answer else 0.0}
    if "expected" in payload:
        return {"rationale": "read", "letter": "C" if payload["expected"] in answer else "D"}
    return {"rationale": "read", "letter": "Q" if "?" in answer else "R" if "cannot" in answer else "A"}


def build(root: Path, rows: tuple[Row, ...]) -> None:
    """Write the project: databases, agent, cases."""
    for name in ("shop", "spare"):
        with duckdb.connect(str(root / f"{name}.duckdb")) as connection:
            connection.execute(ORDERS)
    crm = sqlite3.connect(root / "crm.db")
    crm.executescript(PEOPLE)
    crm.close()
    texts = {
        "conftest.py": CONFTEST,
        "flows.py": FLOWS,
        "scores.py": SCORES,
        "broken.py": BROKEN,
        "pytest.ini": INI,
    }
    for name, text in texts.items():
        (root / name).write_text(text, encoding="utf-8")
    answers = {prompt: script for row in rows for prompt, script in row.answers.items()}
    assert len(answers) == sum(len(row.answers) for row in rows), "two rows share a prompt"
    (root / "answers.json").write_text(json.dumps(answers), encoding="utf-8")
    (root / "tests").mkdir()
    for row in rows:
        for name, text in {f"{row.name}.yml": row.case, **row.files}.items():
            (root / "tests" / name).write_text(text, encoding="utf-8")


def run(root: Path, rows: tuple[Row, ...], *arguments: str, judge: bool = True) -> Done:
    """A new project, and its cases run in a process of their own, as a user does."""
    build(root, rows)
    return run_again(root, "tests/outputs", *arguments, judge=judge)


def run_again(root: Path, output: str, *arguments: str, judge: bool = True) -> Done:
    """Run the project's cases; results go to ``output``."""
    requests: list[dict[str, Any]] = []

    def reply(request: Request) -> Response:
        messages = request.get_json()["messages"]
        payload = json.loads(messages[-1]["content"])
        requests.append(payload)
        message = {"role": "assistant", "content": json.dumps(judgement(payload))}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55}
        return Response(json.dumps({"choices": [choice], "usage": usage}), content_type="application/json")

    with HTTPServer(host="127.0.0.1", port=0) as server:
        server.expect_request("/v1/chat/completions", method="POST").respond_with_handler(reply)
        more = {"OPENAI_BASE_URL": server.url_for("/v1"), "OPENAI_API_KEY": "on-loopback"}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *(JUDGE if judge else ()), "--agent-output", output, *arguments],
            cwd=root,
            env={**environment(), **more},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
    found = list((root / output).glob("results_*.json"))
    document = json.loads(found[0].read_text(encoding="utf-8")) if found else {"results": []}
    log = root / "asked.jsonl"
    asked = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return Done(done.returncode, done.stdout + done.stderr, document, asked, requests, root)
