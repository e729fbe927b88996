"""The plugin against a real nao server, beside ``nao test`` on the same cases in the same hour."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest

from pytest_agenteval.agents.base import AgentContext
from pytest_agenteval.agents.targets import make_agent
from pytest_agenteval.errors import AgentFailed
from pytest_agenteval.types import AttemptLimits, Task

pytestmark = [pytest.mark.nao, pytest.mark.timeout(900)]

REVENUE = "SELECT SUM(amount) AS total_revenue FROM orders"
ORDERS = "SELECT order_id, amount FROM orders"


def case(name: str, script: dict[str, Any], sql: str = REVENUE, more: str = "") -> str:
    return f"name: {name}\nprompt: |\n  {name}? <<{json.dumps(script)}>>\nsql: |\n  {sql}\n{more}"


CASES = {
    "right": case("right", {"sql": REVENUE}),
    "nearly_right": case("nearly_right", {"sql": "SELECT SUM(amount) + 1 AS total_revenue FROM orders"}),
    "far_off": case("far_off", {"sql": "SELECT SUM(amount) * 2 AS total_revenue FROM orders"}),
    "no_query": case("no_query", {"sql": None, "text": "I do not know"}),
    "repaired": case("repaired", {"sql": ["SELECT bad FROM orders", REVENUE]}),
    "model_down": case("model_down", {"http_error": 500}),
    "model_refuses_key": case("model_refuses_key", {"http_error": 401}),
    "broken_reference": case("broken_reference", {"sql": REVENUE}, "SELECT nope FROM orders"),
    "asks_back": case(
        "asks_back", {"tools": [{"name": "clarification", "args": {"question": "Which?"}}], "sql": None}
    ),
    "many_rows": case("many_rows", {"sql": ORDERS}, ORDERS),
    "a_row_short": case("a_row_short", {"sql": f"{ORDERS} LIMIT 999"}, ORDERS),
    "null_and_text": case(
        "null_and_text", {"sql": "SELECT 'A' AS a, NULL AS b"}, "SELECT 'A' AS a, NULL AS b"
    ),
    "tool_called": case(
        "tool_called", {"sql": REVENUE}, more="assertions:\n  - {type: tool_call, tool: execute_sql}\n"
    ),
    "tool_missing": case(
        "tool_missing", {"sql": REVENUE}, more="assertions:\n  - {type: tool_call, tool: grep}\n"
    ),
}
ERRORS = {"model_down": "agent", "model_refuses_key": "agent", "broken_reference": "reference"}


def test_its_project_runs_unchanged_with_the_verdicts_of_nao_test(nao) -> None:
    nao.write(CASES)
    theirs = nao.nao_test()
    ours = nao.pytest()
    assert set(ours) == set(theirs) == set(CASES)
    assert {n: r["passed"] for n, r in ours.items()} == {n: r["passed"] for n, r in theirs.items()}
    assert {n: r["stage"] for n, r in ours.items() if r["verdict"] == "error"} == ERRORS
    assert ours["asks_back"]["message"].startswith("asked for clarification: Which?")
    for name, their in theirs.items():
        if name not in ERRORS:
            assert ours[name]["tokens"] == their["tokens"]
            assert ours[name]["cost"] == pytest.approx(their["cost"])
            assert ours[name]["tool_call_count"] == their["tool_call_count"]
    for same in ("right", "nearly_right", "a_row_short"):
        assert ours[same]["message"] == theirs[same]["message"]


def test_a_hundred_cases_at_once_and_three_times_faster(nao) -> None:
    query = "SELECT SUM(amount) AS total FROM orders WHERE order_id <= {}"
    nao.write(
        {
            f"case_{n:03}": case(f"case_{n:03}", {"sql": query.format(n)}, query.format(n))
            for n in range(1, 101)
        }
    )
    nao.latency(500)
    measured = []
    try:
        for _ in range(3):  # the best of three: other load on the machine must not decide
            began = time.monotonic()
            ours = nao.pytest("--agent-concurrency", "16")
            between = time.monotonic()
            theirs = nao.nao_test("-t", "4")
            measured.append((between - began, time.monotonic() - between))
            assert {result["verdict"] for result in ours.values()} == {"passed"}
            assert len(ours) == len(theirs) == 100
            if measured[-1][1] >= 3 * measured[-1][0]:
                break
    finally:
        nao.latency(0)
    for our_seconds, their_seconds in measured:
        print(f"100 cases: ours {our_seconds:.1f} s, nao test -t 4 {their_seconds:.1f} s")
    assert measured[-1][1] >= 3 * measured[-1][0]


def test_workers_share_the_server(nao) -> None:
    nao.write({f"case_{n}": case(f"case_{n}", {"sql": REVENUE}) for n in range(6)})
    assert {result["verdict"] for result in nao.pytest("-n", "3").values()} == {"passed"}


def test_a_session_that_ended_is_renewed_and_a_wrong_password_is_not(nao) -> None:
    def ask(token: str | None, environ: dict[str, str]) -> Any:
        agent = make_agent(f"nao:{nao.url}", AgentContext(environ=environ, nao_token=token)).agent
        limits = AttemptLimits(deadline=time.monotonic() + 60)
        return agent.run(Task((f"x <<{json.dumps({'sql': REVENUE})}>>",), limits=limits))

    answer = ask("long-gone", nao.environ)
    assert [attempt.status for attempt in answer.wire_attempts] == [401, 200, 200]
    with pytest.raises(
        AgentFailed, match=r"refused the login of admin@example.com: HTTP 401: Invalid email or"
    ):
        ask(None, {**nao.environ, "NAO_PASSWORD": "wrong"})


def test_sixteen_calls_in_flight_share_one_login(nao) -> None:
    agent = make_agent(f"nao:{nao.url}", AgentContext(environ=nao.environ)).agent
    statuses: list[list[int | None]] = []

    def ask() -> None:
        limits = AttemptLimits(deadline=time.monotonic() + 60)
        answer = agent.run(Task((f"x <<{json.dumps({'sql': REVENUE})}>>",), limits=limits))
        statuses.append([attempt.status for attempt in answer.wire_attempts])

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [[200]] * 15 + [[200, 200]]
