"""One contract for every kind of agent: asked by the same caller, answered in the same form."""

import json
import sys
import textwrap
import time
from types import SimpleNamespace

import pytest
from werkzeug import Request, Response

from pytest_agenteval.agents.base import AgentContext
from pytest_agenteval.agents.kinds.replay import Recorder
from pytest_agenteval.agents.runtime.runtime import AgentRuntime
from pytest_agenteval.agents.targets import adapt, make_agent
from pytest_agenteval.errors import AgentFailed, AgentTimeout
from pytest_agenteval.table import Table
from pytest_agenteval.types import Answer, AttemptLimits, Task, ToolCall, Usage

MODULE = '''
"""The same agent for every kind: what it is told to do stands in the prompt."""
import time


def reply(task):
    prompt = task["prompt"]
    if prompt == "hang":
        time.sleep(2.5)
    if prompt == "fail":
        raise ValueError("no such table: orders")
    if prompt == "wrong":
        return None
    turns = task["turns"]
    return {
        "text": f"{prompt} ({task['model']}, turn {len(turns)})",
        "data": [{"n": 1, "name": "x"}, {"n": None, "name": "y"}],
        "tool_calls": [{"name": "execute_sql", "args": {"sql": "select 1"}, "result": [{"n": 1}]}],
        "usage": {"input": 10, "output": 2},
        "cost": 0.5,
    }
'''
PROGRAM = """
import json, sys
from contract_agent import reply
print(json.dumps(reply(json.load(sys.stdin))))
"""
CALLABLE = """
from dataclasses import asdict
from contract_agent import reply
from pytest_agenteval import Answer


def form(task):
    answer = reply({"prompt": task.prompt, "turns": task.turns, "model": task.model})
    return answer and Answer(**answer)


def agent(task):
    return form(task)


async def agent_async(task):
    import asyncio

    if task.prompt == "hang":
        await asyncio.sleep(30)
    return form(task)


class Runs:
    def run(self, task):
        return form(task)


class Fresh:
    def new_attempt(self):
        return Runs()


runs, fresh = Runs(), Fresh()
"""
KINDS = ("callable", "async", "object", "new_attempt", "python", "command", "http", "replay")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "contract_agent.py").write_text(MODULE)
    (tmp_path / "contract_callable.py").write_text(textwrap.dedent(CALLABLE))
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in ("contract_agent", "contract_callable"):
        sys.modules.pop(name, None)


@pytest.fixture(params=KINDS)
def agent(request, folder, httpserver):
    context = AgentContext(root=folder)
    kind = request.param
    if kind == "command":
        return make_agent(f"command:{sys.executable} program.py", context)
    import contract_callable

    if kind == "python":
        return make_agent("python:contract_callable:agent", context)
    if kind == "http":
        import contract_agent

        def handle(request: Request) -> Response:
            try:
                return Response(json.dumps(contract_agent.reply(json.loads(request.data))))
            except ValueError as error:
                return Response(json.dumps({"error": str(error)}), status=422)

        httpserver.expect_request("/ask").respond_with_handler(handle)
        context = AgentContext(root=folder, project=SimpleNamespace(http={}))
        return make_agent(f"http:{httpserver.url_for('/ask')}", context)
    if kind == "replay":
        return recorded(folder, context, adapt(contract_callable.agent, "x"))
    objects = {
        "callable": contract_callable.agent,
        "async": contract_callable.agent_async,
        "object": contract_callable.runs,
        "new_attempt": contract_callable.fresh,
    }
    return adapt(objects[kind], f"fixture 'agent' ({kind})", folder)


def recorded(folder, context, source):
    recorder, runtime = Recorder(folder / "answers.jsonl"), AgentRuntime()
    for turns in (("how many?",), ("one", "two", "three")):
        task = Task(turns, model="a:b")
        recorder.record(task, runtime.call(source, task, timeout=5))
    runtime.shutdown()
    return make_agent("replay:answers.jsonl", context)


@pytest.fixture(params=["main thread", "thread", "overlapping"])
def call(request):
    runtime = AgentRuntime(thread=request.param == "thread", overlapping=request.param == "overlapping")
    yield lambda agent, *turns, timeout=10.0: runtime.call(
        agent, Task(turns, model="a:b", limits=AttemptLimits(tokens=100)), timeout=timeout, key="contract"
    )
    runtime.shutdown(0.1)


def test_an_answer_has_one_form(agent, call):
    answer = call(agent, "how many?")
    assert isinstance(answer, Answer)
    assert answer.text == "how many? (a:b, turn 1)"
    assert isinstance(answer.data, Table)
    assert answer.data.records() == [{"n": 1, "name": "x"}, {"n": None, "name": "y"}]
    assert answer.tool_calls == (ToolCall("execute_sql", {"sql": "select 1"}, [{"n": 1}]),)
    assert (answer.usage, answer.cost, answer.turns) == (Usage(input=10, output=2), 0.5, ())
    assert answer.duration_ms > 0


def test_a_conversation_is_merged_with_the_turn_of_every_tool_call(agent, call):
    answer = call(agent, "one", "two", "three")
    assert answer.text == "three (a:b, turn 3)"
    assert [turn.text for turn in answer.turns] == [
        "one (a:b, turn 1)",
        "two (a:b, turn 2)",
        "three (a:b, turn 3)",
    ]
    assert [call.turn for call in answer.tool_calls] == [0, 1, 2]
    assert (answer.usage.tokens, answer.cost) == (36, 1.5)


def test_what_goes_wrong_is_the_attempts_error_in_the_agents_own_words(agent, call):
    said = "no recorded answer" if agent.kind == "replay" else "no such table: orders"
    with pytest.raises(AgentFailed, match=said) as caught:
        call(agent, "fail")
    assert (caught.value.stage, caught.value.reason) == ("agent", "agent_error")


def test_nothing_is_not_an_answer(agent, call):
    said = "no recorded answer" if agent.kind == "replay" else r"returned None \(did it forget"
    with pytest.raises(AgentFailed, match=said):
        call(agent, "wrong")


def test_the_deadline_holds(agent, call):
    if agent.kind == "replay":
        pytest.skip("a recording does not hang")
    started = time.monotonic()
    with pytest.raises(AgentTimeout) as caught:
        call(agent, "hang", timeout=0.3)
    assert time.monotonic() - started < 1.5
    assert (caught.value.stage, caught.value.reason) == ("timeout", "timeout")
