"""Streams: server-sent events, NDJSON, polls with a body, generator agents."""

import json
import time
from types import SimpleNamespace

import pytest

from pytest_agenteval.agents.base import AgentContext
from pytest_agenteval.agents.kinds.python import adapt
from pytest_agenteval.agents.runtime.runtime import AgentRuntime
from pytest_agenteval.agents.targets import make_agent
from pytest_agenteval.errors import AgentFailed
from pytest_agenteval.llm.http_client import HttpClient
from pytest_agenteval.types import Answer, Task, ToolCall, Usage

EVENTS = [
    {"type": "start"},
    {"type": "text", "delta": "There are "},
    {"type": "tool", "call": {"id": "c", "name": "run_sql", "args": {"sql": "SELECT 1"}}},
    {"type": "tool", "call": {"id": "c", "name": "run_sql", "result": [{"n": 3}]}},
    {"type": "text", "delta": "three."},
    {"type": "end", "usage": {"in": 10, "out": 2}},
]
PATHS = {
    "text": "$[*].delta",
    "tool_calls": "$[?@.type == 'tool'].call",
    "usage": {"input": "$[*].usage.in", "output": "$[*].usage.out"},
}


@pytest.fixture
def runtime():
    made = AgentRuntime()
    yield made
    assert made.shutdown() == ()


@pytest.fixture
def ask(httpserver, runtime):
    wire = HttpClient(retries=0)

    def call(block, body, kind):
        httpserver.expect_request("/ask").respond_with_data(body, content_type=kind)
        given = {"project": SimpleNamespace(http=block), "models": SimpleNamespace(wire=wire)}
        agent = make_agent(f"http:{httpserver.url_for('/ask')}", AgentContext(**given))
        return runtime.call(agent, Task(("how many?",)), timeout=10)

    yield call
    wire.close()


def sse(events):
    return ": hello\n\n" + "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


def ndjson(events):
    return "\n".join(map(json.dumps, events)) + "\n\n"


@pytest.mark.parametrize(
    ("kind", "written"), [("text/event-stream; charset=utf-8", sse), ("application/x-ndjson", ndjson)]
)
def test_paths_lead_into_the_events_of_a_stream(ask, kind, written):
    answer = ask(PATHS, written(EVENTS), kind)
    assert answer.text == "There are three."
    assert answer.tool_calls == (ToolCall("run_sql", {"sql": "SELECT 1"}, [{"n": 3}], id="c"),)
    assert (answer.usage.input, answer.usage.output) == (10, 2)
    assert 0 < answer.usage.first_token_ms < answer.duration_ms


def test_pieces_are_found_without_paths_and_a_last_event_is_the_answer(ask):
    chunks = [{"choices": [{"delta": {"content": "Thr"}}]}, {"choices": [{"delta": {"content": "ee."}}]}]
    last = {"data": [{"n": 3}], "usage": {"input": 5}}
    answer = ask({}, sse([*chunks, last]), "text/event-stream")
    assert (answer.text, answer.data.records(), answer.usage.input) == ("Three.", [{"n": 3}], 5)


def test_plain_text_events_are_pieces(ask):
    answer = ask({}, "event: token\ndata: Three\n\nevent: token\ndata:  orders\n", "text/event-stream")
    assert answer.text == "Three orders"


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ('event: error\ndata: {"message": "asleep"}\n\n', "text/event-stream", "the stream says: asleep"),
        ('{"delta": "x"}\n{"error": "asleep"}\n', "application/x-ndjson", "the stream says: asleep"),
        ('{"delta": "x"}\nnot json\n', "application/x-ndjson", "sent a line that is not JSON: 'not json'"),
        (": nothing\n\n", "text/event-stream", "sent a stream without an event"),
    ],
)
def test_a_stream_that_says_an_error_is_one(ask, body, kind, said):
    with pytest.raises(AgentFailed, match=said):
        ask({}, body, kind)


def test_a_poll_may_have_a_body(ask, httpserver):
    httpserver.expect_request("/status", method="POST", json={"query": "job 7"}).respond_with_json(
        {"state": "done", "text": "Three."}
    )
    poll = {"url": "/status", "body": {"query": "job {{ $.id }}"}, "every": 0.01, "status": "$.state"}
    answer = ask({"poll": poll, "text": "$.text"}, '{"id": 7, "state": "running"}', "application/json")
    assert answer.text == "Three."


def test_generators_give_pieces_calls_usage_and_rows(runtime):
    def agent(prompt):
        time.sleep(0.01)
        yield "Thr"
        yield ToolCall("run_sql", {"sql": "SELECT 1"}, "3")
        yield "ee."
        yield Usage(input=3, output=1)
        yield {"n": 3}

    async def later(prompt):
        for item in agent(prompt):
            yield item

    for one in (agent, later):
        answer = runtime.call(adapt(one, "fixture agent"), Task(("?",)), timeout=10)
        assert (answer.text, answer.data.records(), len(answer.tool_calls)) == ("Three.", [{"n": 3}], 1)
        assert answer.usage.input == 3
        assert answer.usage.first_token_ms >= 10


def test_a_generator_of_rows_is_a_table_and_a_last_answer_counts(runtime):
    def rows(prompt):
        yield {"n": 1}
        yield {"n": 2}

    def last(prompt):
        yield "Thr"
        yield Answer(text="Three.", value=3)

    asked = Task(("?",))
    assert len(runtime.call(adapt(rows, "fixture agent"), asked, timeout=10).data.records()) == 2
    answer = runtime.call(adapt(last, "fixture agent"), asked, timeout=10)
    assert (answer.text, answer.value) == ("Three.", 3)
