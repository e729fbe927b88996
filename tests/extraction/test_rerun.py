"""The agent's last reading statement run again, guesses that step 3 overrules, tools that nobody named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pytest

from pytest_agenteval.errors import DatabaseError, ExtractionFailed, QueryLimitReached
from pytest_agenteval.extraction import executed_queries, extract, result_table
from pytest_agenteval.extraction.executed_queries import is_sql_tool, unnamed_queries
from pytest_agenteval.extraction.steps import NOTHING
from pytest_agenteval.table import Table
from pytest_agenteval.types import Answer, ToolCall

THREE = Table.from_rows(["n"], [[3]])


def call(sql: str | None, result: Any = None, name: str = "execute_sql", **fields: Any) -> ToolCall:
    return ToolCall(name, {} if sql is None else {"sql": sql}, result, **fields)


def answer(*calls: ToolCall, text: str = "", data: Any = None) -> Answer:
    return Answer(text=text, data=data, tool_calls=calls)


class Again:
    """Runs nothing, and remembers what it was asked to run."""

    def __init__(self, error: Exception | None = None) -> None:
        self.ran: list[str] = []
        self.error = error

    def __call__(self, sql: str) -> Table:
        self.ran.append(sql)
        if self.error is not None:
            raise self.error
        return THREE


def test_a_statement_without_a_readable_table_is_run_again():
    for result in ("[('web', 3)] and more", "3 rows", None, {"status": "ok"}):
        again = Again()
        found = extract(answer(call("SELECT 3 AS n, 4 AS m", result)), expected_columns=["n"], rerun=again)
        assert (found.source, found.query, found.table) == ("re-run", "SELECT 3 AS n, 4 AS m", THREE)
        assert again.ran == ["SELECT 3 AS n, 4 AS m"]


@pytest.mark.parametrize(
    "calls",
    [
        (call("SELECT 1 AS n", [{"n": 1}]),),
        (call("SELECT x", "text"), call("SELECT 1 AS n", [{"n": 1}])),
        (call("SELECT 1 AS n", [{"n": 1}]), call("SELECT x", "text")),
        (call("SELECT x", "text", status="error"), call("SELECT 1 AS m", [{"m": 1}])),
    ],
    ids=["readable", "last readable", "an earlier one covers the names", "failed"],
)
def test_what_can_be_read_is_not_run_again(calls: tuple[ToolCall, ...]):
    again = Again()
    assert extract(answer(*calls), expected_columns=["n"], rerun=again).source in ("matched", "only query")
    assert again.ran == []


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM t",
        "SELECT 1; DROP TABLE t",
        "CREATE TABLE x AS SELECT 1",
        "not sql",
        "PRAGMA x",
        "COPY t TO 'f'",
    ],
)
def test_only_reading_statements_are_run_again(sql: str):
    again = Again()
    assert extract(answer(call(sql, "done")), expected_columns=["n"], rerun=again).table is None
    assert again.ran == []
    # the last that reads is taken, whatever came after it
    extract(answer(call("SELECT 3 AS n", "text"), call(sql, "done")), expected_columns=["n"], rerun=again)
    assert again.ran == ["SELECT 3 AS n"]


def test_a_statement_that_fails_is_the_agent_s_fault_and_a_limit_is_not():
    broken = Again(DatabaseError("database 'd': no such column: x"))
    found = extract(answer(call("SELECT x", "text")), expected_columns=["n"], rerun=broken)
    assert (found.table, found.source) == (None, "none")
    assert found.note == "the agent's statement was run again and failed: database 'd': no such column: x"
    slow = Again(QueryLimitReached("database 'd': ended after 60 s"))
    with pytest.raises(ExtractionFailed) as caught:
        extract(answer(call("SELECT x", "text")), expected_columns=["n"], rerun=slow)
    assert str(caught.value) == "the agent's statement was run again: database 'd': ended after 60 s"


def test_a_text_that_is_a_statement_is_run():
    for text in ("SELECT 3 AS n FROM t", "```sql\nSELECT 3 AS n FROM t\n```"):
        again = Again()
        assert extract(answer(text=text), expected_columns=["n"], rerun=again).source == "re-run"
        assert again.ran == ["SELECT 3 AS n FROM t"]
    for text in ("I would SELECT 3", "There are 3.", "DELETE FROM t WHERE 1 = 1", ""):
        again = Again()
        assert extract(answer(text=text), expected_columns=["n"], rerun=again) == NOTHING
        assert again.ran == []
    # an agent that has tools says what it did in its calls
    again = Again()
    extract(
        answer(call(None, "x", name="think"), text="SELECT 3 AS n FROM t"),
        expected_columns=["n"],
        rerun=again,
    )
    assert again.ran == []


def test_what_gave_nothing_is_nothing_in_every_step():
    failed = answer(call("SELECT 1 AS n", {"isError": True}))
    assert executed_queries(failed) == ()
    assert extract(failed, mode="matched") == NOTHING
    assert result_table([[1]], "SELECT 1 AS n").records() == [{"n": 1}]  # type: ignore[union-attr]
    assert result_table("text") is None


def test_the_mode_rerun():
    again = Again()
    found = extract(answer(call("SELECT 1 AS n", [{"n": 1}]), data=THREE), mode="rerun", rerun=again)
    assert (found.source, again.ran) == ("re-run", ["SELECT 1 AS n"])
    assert extract(answer(), mode="rerun", rerun=again) == NOTHING
    with pytest.raises(ExtractionFailed, match=r"'rerun' needs a database .* set agenteval_databases"):
        extract(answer(call("SELECT 1 AS n")), mode="rerun")


class Model:
    """Writes one query, whatever it is asked."""

    name = "m:x"

    def __init__(self, sql: str | None) -> None:
        self.sql, self.asked = sql, 0

    def complete(self, *args: Any, **options: Any) -> Any:
        raise AssertionError("replaced")


@pytest.fixture
def by_model(monkeypatch: pytest.MonkeyPatch) -> Callable[[Table | None], list[int]]:
    """Step 3 gives this table; returns how often it was asked."""

    def gives(table: Table | None) -> list[int]:
        asked: list[int] = []

        def by_query(queries: Any, *_: Any) -> Any:
            from pytest_agenteval.types import Extraction, Usage

            asked.append(len(queries))
            return Extraction(table, "query" if table is not None else "none", "SELECT", Usage(5, 1), 0.1)

        monkeypatch.setattr("pytest_agenteval.extraction.steps.by_query", by_query)
        return asked

    return gives


RAW = [{"status": "a", "amount": 1}, {"status": "b", "amount": 2}]


def test_an_only_query_that_fails_the_comparison_leaves_the_word_to_step_3(by_model: Any):
    asked = by_model(THREE)
    raw = answer(call("SELECT status, amount FROM orders", RAW))
    found = extract(raw, expected_columns=["n"], model=Model(None), fits=lambda table: False)  # type: ignore[arg-type]
    assert (found.source, found.table, asked) == ("query", THREE, [1])
    # where it fits, or nothing can be asked, it stands
    fitting = extract(raw, expected_columns=["n"], model=Model(None), fits=lambda table: True)  # type: ignore[arg-type]
    assert fitting.source == "only query"
    assert extract(raw, expected_columns=["n"], fits=lambda table: False).source == "only query"
    assert asked == [1]


def test_several_that_cover_the_names_leave_the_word_too(by_model: Any):
    asked = by_model(THREE)
    one, two = call("SELECT 1 AS n", [{"n": 1}]), call("SELECT 2 AS n", [{"n": 2}])
    options: dict[str, Any] = {"expected_columns": ["n"], "model": Model(None), "fits": lambda table: False}
    assert extract(answer(one, two), **options).source == "query"
    assert asked == [2]
    # the only one that covers them is what the agent meant
    assert extract(answer(one), **options).source == "matched"
    assert asked == [2]


def test_where_the_rows_do_not_hold_the_answer_the_agent_s_own_table_is_shown(by_model: Any):
    by_model(None)
    raw = answer(call("SELECT status, amount FROM orders", RAW))
    found = extract(raw, expected_columns=["n"], model=Model(None), fits=lambda table: False)  # type: ignore[arg-type]
    assert (found.source, found.usage.input, found.cost) == ("only query", 5, 0.1)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "tools", "named"),
    [
        ("execute_sql", ("execute_sql",), True),
        ("mcp__warehouse__query", ("mcp__*__query",), True),
        ("mcp__warehouse__search", ("mcp__*__query",), False),
        ("run_sql", ("a", "*_sql"), True),
        ("run[1]", ("run[1]",), True),
    ],
)
def test_tools_are_named_by_pattern(name: str, tools: tuple[str, ...], named: bool):
    assert is_sql_tool(name, tools) is named
    found = (
        extract(answer(ToolCall(name, {"query": "SELECT 3 AS n FROM t"}, [{"n": 3}])), sql_tools=tools)
        if named
        else None
    )
    assert found is None or found.source == "matched"


@pytest.mark.parametrize(
    ("tool", "gave"),
    [
        (ToolCall("run_sql", {"query": "SELECT 3 AS n FROM t"}, [{"n": 3}]), "it seemed to return 1 row"),
        (
            ToolCall("mcp__warehouse__query", {"q": "how many?"}, [{"n": 3}, {"n": 4}]),
            "it seemed to return 2 rows",
        ),
        (ToolCall("ask", {"text": "SELECT 3 AS n FROM t"}, "3"), "its result has no rows to read"),
        (ToolCall("query", {}, "[('a', 1)]"), "it seemed to return 1 row"),
    ],
)
def test_a_tool_that_may_run_queries_is_an_error_that_names_it(tool: ToolCall, gave: str):
    with pytest.raises(ExtractionFailed) as caught:
        extract(answer(tool), expected_columns=["n"])
    assert str(caught.value) == (
        f"no table, but the tool {tool.name!r} may have run a query ({gave}) and is not among those that do "
        f"(execute_sql); set agenteval_sql_tools = {tool.name} (several: one a line, * stands for anything, "
        "as in mcp__*__query)"
    )


@pytest.mark.parametrize(
    "tool",
    [
        ToolCall("search_docs", {"text": "select a topic"}, [{"title": "x"}]),
        ToolCall("query", {}, "nothing"),
        ToolCall("run_sql", {"query": "SELECT 3 AS n FROM t"}, [{"n": 3}], status="error", error="no"),
        ToolCall("run_sql", {"query": "SELECT 3 AS n FROM t"}, {"isError": True}),
        ToolCall("sequel", {}, [{"n": 3}]),
    ],
    ids=["no SQL", "no rows", "failed", "says that it failed", "a word that holds it"],
)
def test_other_tools_are_no_queries(tool: ToolCall):
    assert unnamed_queries(answer(tool), ("execute_sql",)) == ()
    assert extract(answer(tool), expected_columns=["n"]) == NOTHING


PROJECT = """
import pytest
from pytest_agenteval import Answer, ToolCall

class Agent:
    def run(self, task):
        if task.prompt == "text":
            return "There are 6 stores."
        if task.prompt == "statement":
            return "SELECT sum(amount) AS total FROM shop.main.orders"
        if task.prompt == "wrong":
            return "SELECT sum(nothing) AS total FROM orders"
        if task.prompt == "unnamed":
            call = ToolCall("run_sql", {"query": "SELECT 1 FROM orders"}, [{"total": 10.5}])
            return Answer(tool_calls=[call])
        sql = {"poison": "SELECT sum(amount) + 1 AS total FROM orders", "write": "DROP TABLE orders"}
        sql = sql.get(task.prompt, "SELECT sum(amount) AS total FROM orders")
        return Answer(tool_calls=[ToolCall("execute_sql", {"sql": sql}, "[(Decimal('10.50'), 'x')]")])

@pytest.fixture(scope="session")
def agent():
    return Agent()
"""


def test_re_run_in_a_run(pytester: pytest.Pytester):
    with duckdb.connect(str(pytester.path / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE orders AS SELECT 10.5 AS amount")
    pytester.makeconftest(PROJECT)
    pytester.makeini("[pytest]\nagenteval_databases = shop = duckdb:///shop.duckdb\n")
    names = ("repr", "statement", "poison", "wrong", "write", "text", "unnamed")
    cases = "\n".join(
        f"  - {{name: {n}, prompt: {n}, sql: SELECT sum(amount) AS total FROM orders}}" for n in names
    )
    pytester.mkdir("tests")
    (pytester.path / "tests" / "c.yml").write_text(f"cases:\n{cases}\n")
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-v")
    result.assert_outcomes(passed=2, failed=3, errors=2)
    text = " ".join(result.stdout.str().split())
    assert "answer re-run: SELECT sum(amount) + 1 AS total FROM orders" in text
    (file,) = (pytester.path / "tests" / "outputs").glob("results_*.json")
    said = file.read_text(encoding="utf-8")
    assert "the agent's statement was run again and failed: database 'shop'" in said
    assert "no table, but the tool 'run_sql' may have run a query (it seemed to return 1 row)" in said
    off = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-o", "agenteval_rerun=false", "-k", "repr")
    off.assert_outcomes(errors=1)
    only = pytester.runpytest_inprocess("-p", "no:cacheprovider", "--agent-extract", "rerun", "-k", "repr")
    only.assert_outcomes(passed=1)
