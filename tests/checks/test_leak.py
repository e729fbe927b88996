"""The answer key: a case file named, or forty characters of a reference in a tool's result."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from checks_kit import call

from pytest_agenteval.checks.leak import AnswerKey, key_listed, key_read, leaked
from pytest_agenteval.types import Answer, ToolCall

FILES = ["tests/total_revenue.yml", "tests/sub/other.yaml", "datasets/shop/dataset.yaml"]
SQL = "SELECT SUM(amount) AS total_revenue\nFROM orders\nWHERE status <> 'returned'\n"
FOLDED = "SELECT SUM(amount) AS total_revenue FROM orders WHERE status <> 'returned'"


def found(*calls: ToolCall) -> str | None:
    return leaked(Answer(tool_calls=calls), FILES, [SQL])


@pytest.mark.parametrize(
    "one",
    [
        call("read_file", {"path": "tests/total_revenue.yml"}),
        call("read_file", {"path": "/home/ann/shop/tests/total_revenue.yml"}),
        call("read_file", {"path": "tests\\total_revenue.yml"}),
        call("read_file", '{"path": "./tests/total_revenue.yml"}'),
        call("read_file", {"path": "tests/total_revenue.yml"}, "name: total\nprompt: How much?"),
        call("read_file", {"pattern": "revenue"}, "tests/total_revenue.yml:3:  sql: SELECT 1"),
        call("read_file", {"p": "x"}, {"hits": [{"f": "tests/total_revenue.yml", "t": "sql: SELECT 1"}]}),
    ],
)
def test_a_case_file_that_is_named(one):
    assert found(one) == "answer key read: read_file tests/total_revenue.yml"


@pytest.mark.parametrize(
    "one",
    [
        call("list", {"path": "x"}, {"entries": [{"path": "/tests/total_revenue.yml"}]}),
        call("list", {"path": "x"}, None, error="no such file: tests/total_revenue.yml", status="error"),
        call("list", {"folder": "tests"}, {"entries": [{"name": "total_revenue.yml"}]}),
        call("list", {"folder": "/srv/tests/"}, "a.txt\ntotal_revenue.yml\n"),
        call("list", {"cmd": "find . -name '*.yml'"}, "./tests/total_revenue.yml\n./tests/sub/other.yaml\n"),
        call("list", {"cmd": "ls tests/total_revenue.yml"}, "tests/total_revenue.yml"),
        call("list", {"cmd": "ls -l tests"}, "-rw-r--r-- 1 ann ann 20 Jan  1 10:00 tests/total_revenue.yml"),
        call("list", {"cmd": "tree"}, ".\n\u251c\u2500\u2500 tests/total_revenue.yml"),
        call("list", {"cmd": "git ls-files"}, "README.md\ntests/total_revenue.yml"),
        call("list", {"path": "b"}, b"tests/total_revenue.yml"),
        call("list", {"path": "b"}, [{"tests/total_revenue.yml": 1}]),
    ],
)
def test_a_list_of_names_is_told_and_no_leak(one):
    assert found(one) is None
    assert key_listed(Answer(tool_calls=(one,)), KEY) == "answer key listed: list tests/total_revenue.yml"


EXPECTED = (("revenue", "35887.5"), ("orders", "99"))
KEY = AnswerKey((*FILES, "tests/exp.csv", "tests/r.sql"), (SQL,), EXPECTED)


@pytest.mark.parametrize(
    ("one", "message"),
    [
        (
            call("read_file", {"path": "tests/exp.csv"}, "revenue,orders\n35887.5,99"),
            "read_file tests/exp.csv",
        ),
        (call("read_file", {"path": "tests/r.sql"}, "SELECT 1 AS revenue"), "read_file tests/r.sql"),
        (
            call("bash", {"cmd": "grep -r rev"}, "  - {revenue: 35887.5, orders: 99}"),
            "bash grep -r rev",
        ),
        (
            call("read_file", {"path": "tests/outputs/results_20261201_101010.json"}, '{"x": [1, 2 ]}'),
            "read_file tests/outputs/results_20261201_101010.json",
        ),
        (call("bash", {"cmd": "cat out/*"}, '{"expected_data": [{"n": 1}]}'), "bash cat out/*"),
        (call("bash", {"cmd": "cat x"}, base64.b64encode(SQL.encode()).decode()), "bash cat x"),
        (call("bash", {"cmd": "cat x"}, SQL.upper()), "bash cat x"),
        (call("bash", {"cmd": "cat x"}, "\n".join(SQL.split())), "bash cat x"),
    ],
)
def test_other_forms_of_the_key(one, message):
    assert key_read(Answer(tool_calls=(one,)), KEY) == f"answer key read: {message}"


def test_a_query_that_gives_the_expected_values_is_no_leak():
    one = call("bash", {"cmd": "duckdb -c 'select ...'"}, '[{"revenue": 35887.5, "orders": 99}]')
    assert key_read(Answer(tool_calls=(one,)), KEY) is None


@pytest.mark.parametrize(
    "one",
    [
        call("read_file", {"path": "contests/total_revenue.yml"}, "nothing"),
        call("read_file", {"path": "tests/total_revenue.yml.bak"}, "nothing"),
        call("read_file", {"path": "models/total_revenue.yml"}, "nothing"),
        call("list", {"path": "models"}, "total_revenue.yml"),
        call("list", {"path": "tests"}, "my_total_revenue.yml total_revenue.yml2"),
        call("list", {"path": "/"}, {"entries": [{"path": "/tests", "name": "tests"}]}),
        call("read_file", {"path": "datasets/shop/dataset.yaml"}, "bundle_id: shop"),
        call("read_file", 5, 7),
        call("read_file"),
    ],
)
def test_a_name_that_is_no_case_file(one):
    assert found(one) is None


@pytest.mark.parametrize(
    "result",
    [
        {"content": f"name: x\nsql: |\n  {SQL}"},
        FOLDED,
        f"... {FOLDED[5:45]}",
        f"... {FOLDED[20:60]} ...",
        {"rows": [["a", json.dumps({"reference_sql": SQL})]]},
        "  SELECT   SUM(amount)\tAS total_revenue\r\n FROM orders ",
        [FOLDED[:30], "x" * 100_000 + FOLDED + "y" * 100_000],
    ],
)
def test_forty_characters_of_the_reference_in_a_result(result):
    assert found(call("grep", {"pattern": "SUM"}, result)) == "answer key read: grep SUM"


@pytest.mark.parametrize(
    "result",
    [
        f"... {FOLDED[5:44]}",
        f"{FOLDED[:20]}X{FOLDED[21:40]}",
        "SELECT SUM(amount) AS total",
        {"data": [{"total_revenue": 1585}]},
    ],
)
def test_less_than_forty_characters_is_no_leak(result):
    assert found(call("grep", {"pattern": "SUM"}, result)) is None


def test_the_agents_own_sql_is_no_leak():
    own = call("execute_sql", {"sql_query": SQL}, {"data": [], "sql": FOLDED})
    assert found(own) is None
    assert found(own, call("history", {}, {"last_query": FOLDED})) is None
    assert found(call("history", {}, {"last_query": FOLDED}), own) == "answer key read: history"


def test_a_short_reference_never_leaks():
    assert (
        leaked(
            Answer(tool_calls=(call("x", {}, "SELECT COUNT(*) FROM orders"),)),
            [],
            ["SELECT COUNT(*) FROM orders"],
        )
        is None
    )


def test_the_message_is_short():
    message = found(call("grep", {"n": 5, "pattern": "x " * 100}, FOLDED))
    assert message.endswith("...")
    assert len(message) < 120
    assert found(call("grep", "raw text", FOLDED)) == "answer key read: grep raw text"
    assert found(call("grep", None, FOLDED)) == "answer key read: grep"


NAO = Path(__file__).parents[1] / "data" / "nao"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("run_tool_read_tests_total_revenue.yml", "answer key read: read tests/total_revenue.yml"),
        ("run_tool_read__tests_total_revenue.yml", "answer key read: read tests/total_revenue.yml"),
        ("run_tool_grep", "answer key read: grep tests/total_revenue.yml"),
        ("run_tool_list", None),
        ("run_tool_read_RULES.md", None),
        ("run_ok_cookie_sql", None),
    ],
)
def test_what_a_real_nao_server_answered(name, message):
    body = json.loads((NAO / f"{name}.json").read_text())["response"]["body"]
    calls = [ToolCall(c["toolName"], c.get("args"), c.get("result")) for c in body["toolCalls"]]
    assert leaked(Answer(tool_calls=tuple(calls)), FILES, [SQL]) == message
