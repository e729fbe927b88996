from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from rawserver import http

from pytest_agenteval.agents.base import AgentContext
from pytest_agenteval.agents.kinds.context_files import find_context_files, read_context
from pytest_agenteval.agents.runtime.runtime import AgentRuntime
from pytest_agenteval.agents.targets import make_agent
from pytest_agenteval.databases import Databases
from pytest_agenteval.errors import AgentFailed, AgentTimeout, BudgetSpent, SettingsError
from pytest_agenteval.llm.budget import Ledger
from pytest_agenteval.llm.client import Models
from pytest_agenteval.llm.http_client import HttpClient
from pytest_agenteval.llm.providers import Prices, Provider
from pytest_agenteval.types import Answer, AttemptLimits, Task

QUERY = ("execute_sql", {"sql_query": "SELECT sum(amount) AS total FROM orders"})


def said(text: str | None = None, *calls: tuple[str, object], finish: str = "stop") -> bytes:
    message: dict = {"role": "assistant", "content": text}
    if calls:
        finish = "tool_calls"
        message["tool_calls"] = [
            {
                "id": f"c{n}",
                "function": {"name": name, "arguments": a if isinstance(a, str) else json.dumps(a)},
            }
            for n, (name, a) in enumerate(calls)
        ]
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    return http(200, {"choices": [{"message": message, "finish_reason": finish}], "usage": usage})


class House:
    """A shop's database, its context files, and an analyst over a scripted model."""

    def __init__(self, root: Path, raw) -> None:
        self.root = root
        self.raw = raw
        self.wire = HttpClient(retries=0)
        with duckdb.connect(root / "shop.duckdb") as shop:
            shop.execute("CREATE TABLE orders(id INTEGER, amount DECIMAL(10,2), placed DATE)")
            shop.execute(
                "INSERT INTO orders SELECT i, i * 1.5, DATE '2026-01-01' + i::INT FROM range(200) r(i)"
            )
            shop.execute('CREATE SCHEMA "odd one"')
            shop.execute('CREATE TABLE "odd one"."my table" AS SELECT 1 AS "a b"')
        (root / "RULES.md").write_text("Revenue is the sum of amount.\n")
        self.databases = Databases({"shop": "duckdb:///shop.duckdb"}, folder=root / "run", root=root)

    def agent(self, ledger: Ledger | None = None, databases: object = None):
        providers = [Provider.fixed("openai", self.raw.url, models={"m": Prices(1, 1, 1, 1)})]
        models = Models(self.wire, providers=providers, environ={}, ledger=ledger)
        context = AgentContext(
            root=self.root, environ={}, models=models, databases=databases or self.databases
        )
        return make_agent("llm:", context)

    def ask(self, prompt: str = "Total?", ledger: Ledger | None = None, **more) -> Answer:
        limits = more.pop("limits", AttemptLimits(deadline=time.monotonic() + 20))
        return self.agent(ledger).agent.run(Task((prompt,), model="openai:m", limits=limits, **more))


@pytest.fixture
def house(tmp_path, raw):
    made = House(tmp_path, raw)
    yield made
    made.databases.close()
    made.wire.close()


def told(raw, turn: int) -> list[str]:
    """What the tools said before model turn ``turn``."""
    return [m["content"] for m in raw.bodies()[turn]["messages"] if m["role"] == "tool"]


def test_a_whole_analysis_with_its_trace(house, raw) -> None:
    raw.says(
        said(None, ("list_tables", {}), ("describe_table", {"table": "orders"})),
        said("let me see", QUERY),
        said("The total is 29,850."),
    )
    answer = house.ask(context="Be brief.")
    assert answer.text == "The total is 29,850."
    assert (answer.finish_reason, answer.steps) == ("stop", 3)
    assert answer.usage.total == 330
    assert answer.cost == pytest.approx(330 / 1e6)
    assert [attempt.status for attempt in answer.wire_attempts] == [200, 200, 200]
    tables, described, query = answer.tool_calls
    assert tables.result["tables"]["main.orders"] == ["id", "amount", "placed"]
    assert described.result["columns"][1] == {"name": "amount", "type": "DECIMAL(10,2)"}
    assert query.args == QUERY[1]
    assert query.result == {
        "id": "query_1",
        "columns": [{"name": "total", "type": "DECIMAL(38,2)"}],
        "data": [{"total": Decimal("29850.00")}],
        "row_count": 1,
        "dialect": "duckdb",
    }
    system, user = raw.bodies()[0]["messages"]
    assert "SQL dialect: duckdb" in system["content"]
    assert "## RULES.md\nRevenue is the sum of amount." in system["content"]
    assert system["content"].endswith("Be brief.")
    assert "Tables:\nmain.orders(id, amount, placed)\nodd one.my table(a b)\n" in system["content"]
    assert user == {"role": "user", "content": "Total?"}
    names = [tool["function"]["name"] for tool in raw.bodies()[0]["tools"]]
    assert names == ["list_tables", "describe_table", "execute_sql"]
    assert told(raw, 2)[2] == '1 rows:\n["total"]\n["29850.00"]'
    assert told(raw, 1)[1].startswith(
        "main.orders\nid INTEGER\namount DECIMAL(10,2)\nplaced DATE\nsome rows:\n"
    )


def test_all_rows_and_types_are_kept_the_model_sees_the_first(house, raw) -> None:
    sql = "SELECT id, amount, placed, id AS id FROM orders ORDER BY 1"
    raw.says(said(None, ("execute_sql", {"sql_query": sql})), said("done"))
    (call,) = house.ask().tool_calls
    assert call.result["row_count"] == len(call.result["data"]) == 200
    assert call.result["data"][1][1] == Decimal("1.50")
    assert call.result["data"][1][2].isoformat() == "2026-01-02"
    shown = told(raw, 1)[0]
    assert shown.startswith("200 rows, the first 50 of them:\n")
    assert len(shown.splitlines()) == 52


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (("execute_sql", {"sql_query": "SELECT nope FROM orders"}), 'column "nope" not found'),
        (("execute_sql", {"sql_query": "DROP TABLE orders"}), "only one SELECT"),
        (("execute_sql", {"sql_query": "SELECT * FROM read_csv('/etc/passwd')"}), "disabled"),
        (("execute_sql", {"query": 5}), "execute_sql needs 'sql_query' as text, got {\"query\":5}"),
        (("describe_table", {"table": "order"}), "no table 'order', did you mean 'main.orders'?"),
        (("drop_everything", {}), "unknown tool 'drop_everything'; there are list_tables, describe_table"),
        (("clarification", {"question": "?"}), "unknown tool 'clarification'"),
        (("execute_sql", '{"sql_query": "SELECT'), "the arguments are not valid JSON"),
    ],
)
def test_errors_go_back_to_the_model(house, raw, call, error: str) -> None:
    raw.says(said(None, call, QUERY), said("done"))
    failed, good = house.ask().tool_calls
    assert (failed.status, failed.result, good.status) == ("error", None, "ok")
    assert error in failed.error
    assert str(house.root) not in told(raw, 1)[0]
    assert told(raw, 1)[0].startswith("Error: ")
    assert error in told(raw, 1)[0]


def test_a_query_that_is_only_written_is_asked_for_once(house, raw) -> None:
    written = "Like this:\n```sql\n-- all of it\nSELECT sum(amount) AS total FROM orders\n```"
    raw.says(said(written), said(None, QUERY), said("29,850"))
    answer = house.ask()
    assert (answer.text, len(answer.tool_calls)) == ("29,850", 1)
    assert raw.bodies()[1]["messages"][-1]["content"].startswith("That query has not been run.")
    raw.says(said(written), said(written))
    assert house.ask().text == written
    raw.says(said(None, QUERY), said(written))
    assert house.ask().text == written


def test_too_many_tables_are_looked_up(house, raw) -> None:
    with duckdb.connect(house.root / "wide.duckdb") as wide:
        for number in range(60):
            columns = ", ".join(f"a_rather_long_column_name_{i} INTEGER" for i in range(6))
            wide.execute(f"CREATE TABLE t{number}({columns})")
    databases = Databases({"wide": "duckdb:///wide.duckdb"}, folder=house.root / "w", root=house.root)
    raw.says(said(None, ("list_tables", {})), said("done"))
    house.agent(databases=databases).agent.run(Task(("x",), model="openai:m"))
    databases.close()
    system = raw.bodies()[0]["messages"][0]["content"]
    assert "Find the tables with list_tables." in system
    assert "a_rather_long" not in system
    assert "... (cut, " in told(raw, 1)[0]


def test_names_are_quoted(house, raw) -> None:
    raw.says(said(None, ("describe_table", {"table": "odd one.my table"})), said("done"))
    assert house.ask().tool_calls[0].result["sample"] == [{"a b": 1}]


def test_another_kind_of_database(house, raw) -> None:
    with contextlib.closing(sqlite3.connect(house.root / "shop.db")) as shop:
        shop.execute('CREATE TABLE "odd name"(a INTEGER)')
        shop.execute('INSERT INTO "odd name" VALUES (5)')
        shop.commit()
    raw.says(
        said(None, ("list_tables", {}), ("describe_table", {"table": "odd name"})),
        said(None, ("execute_sql", {"sql_query": 'SELECT a FROM "odd name"'})),
        said("5"),
    )
    databases = Databases({"shop": "sqlite:///shop.db"}, folder=house.root / "lite", root=house.root)
    task = Task(("how many?",), model="openai:m")
    tables, described, query = house.agent(databases=databases).agent.run(task).tool_calls
    databases.close()
    assert list(tables.result["tables"].values()) == [["a"]]
    assert described.result["sample"] == [{"a": 5}]
    assert query.result["data"] == [{"a": 5}]
    assert "SQL dialect: sqlite" in raw.bodies()[0]["messages"][0]["content"]


def test_a_call_that_is_made_again_is_told_and_ends_the_queries(house, raw) -> None:
    wrong = ("execute_sql", {"sql_query": "SELECT nope FROM orders"})
    raw.says(then=said("The error says so.", wrong))
    answer = house.ask()
    # once, three times again, and the last word
    assert (len(answer.tool_calls), answer.steps) == (4, 5)
    assert "You have made this very call" not in told(raw, 1)[0]
    assert told(raw, 2)[1].endswith(
        "\nYou have made this very call before, and it will fail again. Write another query; "
        "describe_table tells which columns a table has."
    )
    assert raw.bodies()[-1]["messages"][-1]["content"].startswith("No more tools can be called.")
    raw.requests.clear()
    raw.says(said(None, QUERY), said(None, QUERY), then=said("29,850"))
    assert house.ask().text == "29,850"
    assert told(raw, 2)[1].endswith("and the result is the same. Answer the question now.")


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "execute_sql", "arguments": {"sql_query": "SELECT 1 AS n"}}',
        '```json\n{"name": "execute_sql", "parameters": {"sql_query": "SELECT 1 AS n"}}\n```',
    ],
)
def test_a_call_that_is_said_instead_of_made_is_made(house, raw, text: str) -> None:
    raw.says(said(text), said("one"))
    answer = house.ask()
    assert (answer.text, answer.tool_calls[0].result["data"]) == ("one", [{"n": 1}])
    spoken, tool = raw.bodies()[1]["messages"][-2:]
    assert spoken["tool_calls"][0]["id"] == tool["tool_call_id"] == "spoken_1"


@pytest.mark.parametrize(
    "text", ['{"name": "drop", "arguments": {}}', '{"total": 3}', '{"name": "execute_sql"}', "{so it is}"]
)
def test_json_that_is_no_call_is_the_answer(house, raw, text: str) -> None:
    raw.says(said(text))
    assert house.ask().text == text


def test_the_last_word_comes_without_tools(house, raw) -> None:
    turns = [said("again", ("execute_sql", {"sql_query": f"SELECT {n} AS n"})) for n in range(12)]
    raw.says(*turns, then=said("again", QUERY))
    answer = house.ask()
    assert len(raw.requests) == 13
    assert len(answer.tool_calls) == 12
    assert [call.result["id"] for call in answer.tool_calls][-1] == "query_12"
    last = raw.bodies()[-1]
    assert "tools" not in last
    assert last["messages"][-1]["content"].startswith("No more tools can be called.")
    assert (answer.text, answer.steps) == ("again", 13)


def test_a_clarification_ends_the_run_and_the_next_turn_goes_on(house, raw) -> None:
    question = {"question": "Which year?", "options": ["2025", "2026"]}
    raw.says(said("", ("clarification", question)), said("It is 5."))
    runnable = house.agent()
    task = Task(("Total?", "2026"), model="openai:m", clarification=True)
    answer = AgentRuntime(root=house.root).call(runnable, task, timeout=20)
    first, second = answer.turns
    assert (first.text, first.finish_reason) == ("", "tool-calls")
    assert first.tool_calls[0].args == question
    assert first.tool_calls[0].status == "ok"
    assert second.text == "It is 5."
    assert [m["role"] for m in raw.bodies()[1]["messages"]] == ["system", "user", "assistant", "tool", "user"]
    assert raw.bodies()[1]["messages"][2]["tool_calls"][0]["id"] == "c0"
    names = [tool["function"]["name"] for tool in raw.bodies()[0]["tools"]]
    assert names[-1] == "clarification"


def test_a_conversation_remembers_rows(house, raw) -> None:
    raw.says(said(None, QUERY), said("29,850"), said("half is 14,925"))
    task = Task(("Total?", "And half of it?"), model="openai:m")
    answer = AgentRuntime(root=house.root).call(house.agent(), task, timeout=20)
    assert [turn.text for turn in answer.turns] == ["29,850", "half is 14,925"]
    assert told(raw, 2) == ['1 rows:\n["total"]\n["29850.00"]']
    assert answer.usage.total == 330


@pytest.mark.parametrize(
    "limits",
    [AttemptLimits(tokens=150), AttemptLimits(cost=0.00015), AttemptLimits(tool_calls=1)],
    ids=["tokens", "cost", "calls"],
)
def test_an_attempt_past_its_own_budget_stops(house, raw, limits: AttemptLimits) -> None:
    raw.says(then=said(None, QUERY))
    answer = house.ask(limits=limits)
    assert (answer.finish_reason, answer.steps) == ("budget", 2)


def test_the_runs_budget_is_asked_before_every_model_turn(house, raw) -> None:
    raw.says(then=said(None, QUERY))
    ledger = Ledger(0.00025)
    with pytest.raises(BudgetSpent) as caught, ledger.call():
        house.ask(ledger=ledger)
    assert len(raw.requests) == 3
    assert len(caught.value.answer.tool_calls) == 3
    assert ledger.spent().usd == pytest.approx(0.00033)


def test_what_was_done_before_an_error_is_kept(house, raw) -> None:
    text = "This model's maximum context length is 8192 tokens."
    raw.says(said(None, QUERY), http(400, {"error": {"message": text}}))
    with pytest.raises(AgentFailed) as caught:
        house.ask()
    assert str(caught.value).startswith("the conversation does not fit the context window of model openai:m")
    answer = caught.value.answer
    assert [attempt.status for attempt in answer.wire_attempts] == [200, 400]
    assert len(answer.tool_calls) == 1
    assert answer.cost == pytest.approx(110 / 1e6)


def test_the_deadline_covers_all_turns(house, raw) -> None:
    raw.says(said(None, QUERY), raw.hang)
    began = time.monotonic()
    with pytest.raises(AgentTimeout) as caught:
        house.ask(limits=AttemptLimits(deadline=time.monotonic() + 1.5))
    assert 1.4 < time.monotonic() - began < 2
    assert len(caught.value.answer.tool_calls) == 1


def test_an_isolated_copy_is_read_where_it_is(house, raw) -> None:
    raw.says(said(None, QUERY), said("ok"))
    with house.databases.isolate() as isolated:
        url = isolated.urls["shop"]
        with duckdb.connect(url.removeprefix("duckdb:///")) as copy:
            copy.execute("DELETE FROM orders")
        answer = house.ask(database="shop", databases=isolated.urls)
    assert answer.tool_calls[0].result["data"] == [{"total": None}]


def test_without_a_database_or_with_several(house, raw) -> None:
    both = Databases(
        {"a": "duckdb:///shop.duckdb", "b": "duckdb:///shop.duckdb"}, folder=house.root / "r", root=house.root
    )
    with pytest.raises(AgentFailed, match="which database\\? configured: a, b"):
        house.agent(databases=both).agent.run(Task(("x",), model="openai:m"))
    with pytest.raises(AgentFailed, match="analyst needs a database; set agenteval_databases"):
        make_agent("llm:", AgentContext(environ={})).agent.run(Task(("x",)))
    with pytest.raises(AgentFailed, match="no address is known for provider 'lab'"):
        house.agent().agent.run(Task(("x",), model="lab:m"))


def test_the_target(house) -> None:
    made = house.agent()
    assert (made.kind, made.model_name, made.is_builtin) == ("llm", "openai:gpt-4.1", True)
    with pytest.raises(SettingsError, match="give 'openai:m' by --agent-model"):
        make_agent("llm:openai:m", AgentContext(environ={}))


def test_context_files_never_hold_tests(tmp_path) -> None:
    root = tmp_path / "project"
    for name in ("RULES.md", "docs/a.md", "docs/b.md", "tests/c.md", "docs/tests/d.md", "tests/outputs/e.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"text of {name}\n")
    (tmp_path / "outside.md").write_text("secret")
    (root / "docs" / "link.md").symlink_to(tmp_path / "outside.md")
    (root / "docs" / "sly.md").symlink_to(root / "tests" / "c.md")
    found = find_context_files(root, ["./docs/*.md", "**/*.md", "missing.md"])
    assert [path.relative_to(root).as_posix() for path in found] == ["docs/a.md", "docs/b.md", "RULES.md"]
    assert read_context(root, ["RULES.md"]) == "## RULES.md\ntext of RULES.md"
    assert read_context(root, []) == ""
