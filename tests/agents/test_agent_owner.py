"""An async agent is entered and left by one task, and nothing that its cleanup does costs an answer."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from pytest_agenteval.agents.kinds.python import adapt
from pytest_agenteval.agents.runtime.runtime import AgentRuntime
from pytest_agenteval.errors import AgentFailed, AgentTimeout
from pytest_agenteval.types import Task


class Client:
    """As MCP clients do: a task group that only the task which entered it may leave."""

    def __init__(self, leave: Any = None) -> None:
        self.leave = leave
        self.left = False

    async def __aenter__(self) -> Client:
        self.group = anyio.create_task_group()
        await self.group.__aenter__()
        self.group.start_soon(anyio.sleep_forever)
        return self

    async def __aexit__(self, *error: object) -> None:
        self.group.cancel_scope.cancel()
        await self.group.__aexit__(*error)
        self.left = True
        if self.leave is not None:
            await self.leave()

    async def run(self, task: Task) -> str:
        await anyio.sleep(0.01)
        return f"{task.prompt}!"


class PerAttempt:
    def __init__(self, leave: Any = None) -> None:
        self.leave = leave
        self.made: list[Client] = []

    def new_attempt(self) -> Client:
        self.made.append(Client(self.leave))
        return self.made[-1]


async def breaks() -> None:
    raise RuntimeError("cannot leave")


async def exits() -> None:
    raise SystemExit(0)


async def hangs() -> None:
    await asyncio.sleep(60)


def ask(runtime: AgentRuntime, agent: Any, **more: Any) -> str:
    return runtime.call(adapt(agent, "fixture agent"), Task(("hi",)), timeout=2, **more).text


def test_a_client_that_only_its_own_task_may_leave() -> None:
    runtime, client, each = AgentRuntime(), Client(), PerAttempt()
    assert [ask(runtime, client), ask(runtime, client)] == ["hi!", "hi!"]
    assert not client.left
    assert [ask(runtime, each), ask(runtime, each)] == ["hi!", "hi!"]
    assert [made.left for made in each.made] == [True, True]
    assert runtime.shutdown() == ()
    assert client.left


@pytest.mark.parametrize(("leave", "said"), [(breaks, "cannot leave"), (exits, "SystemExit")])
def test_a_fault_while_leaving_is_a_warning_behind_the_answer(leave: Any, said: str) -> None:
    runtime, each, client, order = AgentRuntime(), PerAttempt(leave), Client(leave), []
    with pytest.warns(UserWarning, match=f"leaving the agent Client failed: .*{said}"):
        text = ask(runtime, each, on_answer=lambda answer: order.append(each.made[-1].left))
    assert (text, order) == ("hi!", [False])
    ask(runtime, client)
    with pytest.warns(UserWarning, match=said):
        runtime.release(adapt(client, "x"))
    ask(runtime, client)
    with pytest.warns(UserWarning, match=said):
        assert runtime.shutdown() == ()


def test_an_agent_that_does_not_leave_has_answered_all_the_same() -> None:
    runtime, client = AgentRuntime(), Client(hangs)
    assert ask(runtime, client) == "hi!"
    began = time.monotonic()
    with pytest.warns(UserWarning, match=r"leaving the agent Client failed: .*within 0\.(3|29\d*) s"):
        runtime.release(adapt(client, "x"), timeout=0.3)
    assert time.monotonic() - began < 2
    assert runtime.shutdown() == ()


def test_what_goes_wrong_while_entering_is_an_error_of_the_agent() -> None:
    class Refused(Client):
        async def __aenter__(self) -> Client:
            raise ConnectionError("no server")

    class Slow(Client):
        async def __aenter__(self) -> Client:
            await asyncio.sleep(60)
            return self

    runtime = AgentRuntime()
    with pytest.raises(AgentFailed, match="ConnectionError: no server"):
        ask(runtime, Refused())
    with pytest.raises(AgentTimeout, match=r"no answer within 0\.2 s"):
        runtime.call(adapt(Slow(), "x"), Task(("hi",)), timeout=0.2)
    assert runtime.shutdown() == ()


AGENT = """
import pytest
from pytest_agenteval import Answer

class Agent:
    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        raise LEAVE

    async def run(self, task):
        return Answer("one", data=[{"n": 1}], cost=0.5)

class Each:
    def new_attempt(self):
        return Agent()

@pytest.fixture(scope="SCOPE")
def agent():
    return MADE()
"""


@pytest.mark.parametrize(
    ("scope", "made", "leave"),
    [
        ("session", "Agent", "SystemExit(3)"),
        ("function", "Agent", "RuntimeError('cannot leave')"),
        ("session", "Each", "RuntimeError('cannot leave')"),
    ],
)
def test_results_and_pytest_say_the_same(
    pytester: pytest.Pytester, scope: str, made: str, leave: str
) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makeconftest(AGENT.replace("SCOPE", scope).replace("MADE", made).replace("LEAVE", leave))
    for name, expected in (("right", 1), ("wrong", 2)):
        pytester.path.joinpath(f"{name}.yml").write_text(f"prompt: how many\nexpected: [{{n: {expected}}}]\n")
    result = pytester.runpytest_subprocess("-W", "error", "--agent-output", "out", "right.yml", "wrong.yml")
    assert result.ret == 1
    result.assert_outcomes(passed=1, failed=1)
    (file,) = Path(pytester.path, "out").glob("results_*.json")
    document = json.loads(file.read_text("utf-8"))
    assert [entry["verdict"] for entry in document["results"]] == ["passed", "failed"]
    assert document["summary"]["total_cost"] == 1.0
    alone = pytester.runpytest_subprocess("-W", "error", "--agent-output", "out", "right.yml")
    assert alone.ret == 0
