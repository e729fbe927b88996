from __future__ import annotations

import json
import time

import pytest
from rawserver import http

from pytest_agenteval.errors import AgentFailed, BudgetSpent, SettingsError
from pytest_agenteval.llm.budget import Ledger
from pytest_agenteval.llm.client import json_part, make_model
from pytest_agenteval.llm.http_client import HttpClient
from pytest_agenteval.llm.providers import Prices, Provider
from pytest_agenteval.types import ToolCall, Usage

ASK = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
SCHEMA = {
    "type": "object",
    "properties": {"sql": {"type": "string"}},
    "required": ["sql"],
    "additionalProperties": False,
}
TOOLS = [{"name": "execute_sql", "description": "runs", "parameters": {"type": "object", "properties": {}}}]


@pytest.fixture
def wire():
    made = HttpClient(first_pause=0.02)
    yield made
    made.close()


@pytest.fixture
def openai(raw, wire):
    providers = [Provider.fixed("openai", raw.url + "/v1", "sk-1", {"m": Prices(2, 1, 1, 10)})]
    return make_model("openai:m", wire=wire, providers=providers, environ={})


@pytest.fixture
def claude(raw, wire):
    providers = [Provider.fixed("anthropic", raw.url, "sk-2", {"m": Prices(2, 1, 3, 10)})]
    return make_model("anthropic:m", wire=wire, providers=providers, environ={})


def said(text=None, calls=(), finish="stop", **more) -> bytes:
    message = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": args}}
            for n, (name, args) in enumerate(calls)
        ]
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 50,
        "total_tokens": 1050,
        "prompt_tokens_details": {"cached_tokens": 200},
        "completion_tokens_details": {"reasoning_tokens": 10},
    }
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return http(200, {"choices": [choice], "usage": usage, **more})


def test_openai_text_usage_and_cost(raw, openai) -> None:
    raw.says(said("hello"))
    done = openai.complete(ASK, max_tokens=77)
    assert (done.text, done.finish_reason, done.tool_calls) == ("hello", "stop", ())
    assert done.usage == Usage(
        input=1000, output=50, cache_read=200, cache_write=None, reasoning=10, total=1050
    )
    assert done.cost == pytest.approx((800 * 2 + 200 * 1 + 50 * 10) / 1e6)
    assert [attempt.status for attempt in done.wire_attempts] == [200]
    first, headers, _ = raw.requests[0]
    assert first == "POST /v1/chat/completions HTTP/1.1"
    assert headers["authorization"] == "Bearer sk-1"
    assert raw.bodies() == [{"model": "m", "messages": ASK, "max_tokens": 77}]


def test_openai_parallel_and_malformed_tool_calls_and_their_results(raw, openai) -> None:
    calls = [("execute_sql", '{"sql_query": "SELECT 1"}'), ("execute_sql", '{"sql_query": '), ("x", "[1]")]
    raw.says(said(None, [*calls, ("y", "")], "tool_calls"), said("done"))
    done = openai.complete(ASK, tools=TOOLS)
    assert done.finish_reason == "tool-calls"
    good, broken, no_object, empty = done.tool_calls
    assert good == ToolCall("execute_sql", {"sql_query": "SELECT 1"}, id="c0")
    assert (broken.args, broken.status) == ('{"sql_query": ', "error")
    assert broken.error is not None
    assert broken.error.startswith("the arguments are not valid JSON (Expecting value: ")
    assert no_object.error == "the arguments are not a JSON object: [1]"
    assert (empty.args, empty.status) == ({}, "ok")
    openai.complete(
        [
            *ASK,
            {"role": "assistant", "content": "", "tool_calls": done.tool_calls[:2]},
            {"role": "tool", "tool_call_id": "c0", "content": "1 row"},
            {"role": "tool", "tool_call_id": "c1", "content": "bad", "is_error": True},
        ],
        tools=TOOLS,
    )
    body = raw.bodies()[1]
    assert body["tools"] == [{"type": "function", "function": TOOLS[0]}]
    assistant, one, two = body["messages"][2:]
    assert [call["id"] for call in assistant["tool_calls"]] == ["c0", "c1"]
    assert [json.loads(call["function"]["arguments"]) for call in assistant["tool_calls"]] == [
        {"sql_query": "SELECT 1"},
        {"malformed_arguments": '{"sql_query": '},
    ]
    assert one == {"role": "tool", "tool_call_id": "c0", "content": "1 row"}
    assert two == {"role": "tool", "tool_call_id": "c1", "content": "bad"}


def test_openai_schema(raw, openai) -> None:
    raw.says(said('```json\n{"sql": "SELECT 1"}\n```'))
    done = openai.complete(ASK, schema=SCHEMA)
    assert json.loads(done.text) == {"sql": "SELECT 1"}
    form = raw.bodies()[0]["response_format"]
    assert form == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True},
    }
    raw.says(said('{"sql": 1}'))
    openai.complete(ASK, schema={"type": "object", "properties": {"sql": {}}})
    assert raw.bodies()[1]["response_format"]["json_schema"]["strict"] is False


def test_openai_endpoint_without_schema_is_told_in_words_and_remembered(raw, openai) -> None:
    refusal = http(400, {"error": {"message": "response_format is not supported"}})
    raw.says(refusal, said('Sure! Here it is: {"sql": null} Bye.'), said('{"sql": "x"}'))
    done = openai.complete(ASK, schema=SCHEMA)
    assert done.text == '{"sql": null}'
    assert [attempt.status for attempt in done.wire_attempts] == [400, 200]
    assert openai.complete(ASK, schema=SCHEMA).text == '{"sql": "x"}'
    _, second, third = raw.bodies()
    assert "response_format" not in second
    assert second["messages"][-1]["content"].startswith("Answer with one JSON value that follows this JSON")
    assert second == third


def test_openai_model_that_wants_max_completion_tokens(raw, openai) -> None:
    text = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
    raw.says(http(400, {"error": {"message": text}}), said("ok"), said("ok"))
    openai.complete(ASK, max_tokens=5)
    openai.complete(ASK, max_tokens=6)
    shown = [(b.get("max_tokens"), b.get("max_completion_tokens")) for b in raw.bodies()]
    assert shown == [(5, None), (None, 5), (None, 6)]


def test_anthropic_text_usage_and_cost(raw, claude) -> None:
    usage = {
        "input_tokens": 800,
        "cache_read_input_tokens": 200,
        "cache_creation_input_tokens": 100,
        "output_tokens": 50,
    }
    blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hello"}]
    raw.says(http(200, {"content": blocks, "stop_reason": "end_turn", "usage": usage}))
    done = claude.complete(ASK, max_tokens=9)
    assert (done.text, done.finish_reason) == ("hello", "stop")
    assert done.usage == Usage(input=1100, output=50, cache_read=200, cache_write=100, total=1150)
    assert done.cost == pytest.approx((800 * 2 + 200 * 1 + 100 * 3 + 50 * 10) / 1e6)
    first, headers, _ = raw.requests[0]
    assert first == "POST /v1/messages HTTP/1.1"
    assert (headers["x-api-key"], headers["anthropic-version"]) == ("sk-2", "2023-06-01")
    assert raw.bodies()[0] == {
        "model": "m",
        "max_tokens": 9,
        "system": "be brief",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }


def test_anthropic_tool_calls_results_and_the_last_word(raw, claude) -> None:
    blocks = [
        {"type": "text", "text": "look"},
        {"type": "tool_use", "id": "t1", "name": "execute_sql", "input": {"sql_query": "SELECT 1"}},
        {"type": "tool_use", "id": "t2", "name": "execute_sql", "input": '{"sql_query'},
    ]
    raw.says(http(200, {"content": blocks, "stop_reason": "tool_use"}), then=http(200, {"content": []}))
    done = claude.complete(ASK, tools=TOOLS)
    assert done.finish_reason == "tool-calls"
    assert done.usage is None
    assert done.cost is None
    assert [call.status for call in done.tool_calls] == ["ok", "error"]
    talk = [
        *ASK,
        {"role": "assistant", "content": "look", "tool_calls": done.tool_calls},
        {"role": "tool", "tool_call_id": "t1", "content": "1 row"},
        {"role": "tool", "tool_call_id": "t2", "content": "bad", "is_error": True},
        {"role": "user", "content": "now answer"},
    ]
    claude.complete(talk)
    body = raw.bodies()[1]
    assert body["tools"] == [{"name": "execute_sql", "input_schema": {"type": "object"}}]
    assert body["tool_choice"] == {"type": "none"}
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    results = body["messages"][2]["content"]
    assert [part["type"] for part in results] == ["tool_result", "tool_result", "text"]
    assert [part.get("is_error") for part in results] == [False, True, None]
    assert body["messages"][1]["content"][2]["input"] == {"malformed_arguments": '{"sql_query'}


def test_anthropic_schema_is_a_tool_that_must_be_called(raw, claude) -> None:
    block = {"type": "tool_use", "id": "t", "name": "answer", "input": {"sql": "SELECT 'ö'"}}
    raw.says(http(200, {"content": [block], "stop_reason": "tool_use"}))
    done = claude.complete(ASK, schema=SCHEMA)
    assert json.loads(done.text) == {"sql": "SELECT 'ö'"}
    assert (done.tool_calls, done.finish_reason) == ((), "stop")
    body = raw.bodies()[0]
    assert body["tool_choice"] == {"type": "tool", "name": "answer"}
    assert body["tools"][0]["input_schema"] == SCHEMA


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            http(200, {"error": {"message": "no credits", "code": 402}}),
            "model openai:m answered HTTP 200 with an error: no credits",
        ),
        (
            http(200, {"choices": []}),
            'model openai:m answered HTTP 200 with JSON that holds no message: {"choices": []}',
        ),
        (http(200, [1]), "model openai:m answered HTTP 200 with JSON that holds no message: [1]"),
        (http(401, {"error": {"message": "bad key"}}), "model openai:m answered HTTP 401: bad key"),
        (
            http(400, {"error": {"message": "too long", "code": "context_length_exceeded"}}),
            "model openai:m answered HTTP 400: too long",
        ),
        (
            http(400, {"error": {"message": "This model's maximum context length is 8192 tokens."}}),
            "the conversation does not fit the context window of model openai:m: "
            "This model's maximum context length is 8192 tokens.",
        ),
        (
            http(400, {"error": {"message": "request (9 tokens) exceeds the available context size (5)"}}),
            "the conversation does not fit the context window of model openai:m: "
            "request (9 tokens) exceeds the available context size (5)",
        ),
    ],
)
def test_answers_that_are_none(raw, openai, answer: bytes, text: str) -> None:
    raw.says(answer)
    with pytest.raises(AgentFailed) as caught:
        openai.complete(ASK)
    assert str(caught.value) == text
    assert len(caught.value.answer.wire_attempts) == 1


def test_retries_are_the_wires(raw, openai) -> None:
    raw.says(http(429, {}, {"Retry-After": "0.1"}), http(429, {}, {"Retry-After": "0.1"}), said("ok"))
    done = openai.complete(ASK, deadline=time.monotonic() + 5)
    assert [attempt.status for attempt in done.wire_attempts] == [429, 429, 200]


def test_environment_gives_address_and_key(raw, wire) -> None:
    keys: list[str] = []
    environ = {"SOME_LAB_BASE_URL": raw.url + "/v9/", "SOME_LAB_API_KEY": "k9"}
    model = make_model("some-lab:big:free", wire=wire, environ=environ, remember=keys.append)
    raw.says(said("ok"))
    assert model.complete(ASK).cost is None
    assert raw.requests[0][0] == "POST /v9/chat/completions HTTP/1.1"
    assert raw.requests[0][1]["authorization"] == "Bearer k9"
    assert raw.bodies()[0]["model"] == "big:free"
    assert keys == ["k9"]


def test_the_project_files_entry_that_lists_the_model_wins(raw, wire) -> None:
    def missing() -> str:
        raise SettingsError("nao_config.yaml:3: environment variable X is not set")

    providers = [
        Provider("openai", lambda: "http://127.0.0.1:9", missing),
        Provider("OpenAI", lambda: raw.url, missing, {"m": None}),
    ]
    model = make_model("openai:m", wire=wire, providers=providers, environ={})
    with pytest.raises(AgentFailed) as caught:
        model.complete(ASK)
    assert str(caught.value) == "model openai:m: nao_config.yaml:3: environment variable X is not set"
    assert raw.requests == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gpt-4.1", "model 'gpt-4.1': expected provider:model, for example openai:gpt-4.1"),
        ("opnai:m", "no address is known for provider 'opnai'. did you mean 'openai'? Known: anthropic"),
        ("lab:m", "or set LAB_BASE_URL"),
        ("bedrock:m", "bedrock signs its requests, which is not supported here"),
    ],
)
def test_names_that_cannot_be_reached(wire, name: str, text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        make_model(name, wire=wire, environ={})
    assert text in str(caught.value)


def test_a_missing_key_is_named_before_anything_is_sent(wire) -> None:
    with pytest.raises(AgentFailed) as caught:
        make_model("google:gemini-2.5-pro", wire=wire, environ={}).complete(ASK)
    assert str(caught.value) == (
        "no API key for google:gemini-2.5-pro: set GEMINI_API_KEY or GOOGLE_API_KEY, or api_key under "
        "llm.providers in the project file"
    )


def test_the_budget_is_asked_before_every_call(raw, wire) -> None:
    ledger = Ledger(0.005)
    providers = [Provider.fixed("openai", raw.url, models={"m": Prices(2, 1, 1, 10)})]
    model = make_model("openai:m", wire=wire, providers=providers, environ={}, ledger=ledger)
    raw.says(then=said("ok"))
    model.complete(ASK)
    model.complete(ASK)
    with pytest.raises(BudgetSpent):
        model.complete(ASK)
    assert len(raw.requests) == 2
    assert ledger.spent().usd == pytest.approx(2 * 0.0023)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ("Here:\n```\n[1]\n```\nThanks", "[1]"),
        ('<think>{"no": 1}</think>\n{"a": 1}', '{"a": 1}'),
        ('x {not} then {"a": {"b": 1}} y', '{"a": {"b": 1}}'),
        ("cannot", "cannot"),
        ('{"sql": "SELECT 1 -- ```"}', '{"sql": "SELECT 1 -- ```"}'),
    ],
)
def test_json_part(text: str, part: str) -> None:
    assert json_part(text) == part


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, 5]}, "ab"),
        ({"content": None, "refusal": "I will not."}, "I will not."),
        ({"content": None, "tool_calls": "none"}, ""),
        ({"content": 5}, ""),
    ],
)
def test_openai_texts(raw, openai, message, text: str) -> None:
    raw.says(http(200, {"choices": [{"message": message}], "usage": "none"}))
    done = openai.complete(ASK)
    assert (done.text, done.tool_calls, done.usage, done.finish_reason) == (text, (), None, None)


@pytest.mark.parametrize("answer", [{"choices": [{"message": "x"}]}, {"choices": ["x"]}, {"choices": "x"}])
def test_openai_answers_without_a_message(raw, openai, answer) -> None:
    raw.says(http(200, answer))
    with pytest.raises(AgentFailed, match="JSON that holds no message"):
        openai.complete(ASK)


def test_a_schema_beside_tools_is_told_in_words(raw, openai, claude) -> None:
    raw.says(said("{}"), http(200, {"content": [{"type": "text", "text": "{}"}]}))
    for model in (openai, claude):
        assert model.complete(ASK, tools=TOOLS, schema=SCHEMA).text == "{}"
    first, second = raw.bodies()
    assert first["messages"][-1]["content"].startswith("Answer with one JSON value")
    assert second["messages"][-1]["content"][-1]["text"].startswith("Answer with one JSON value")
    assert "tool_choice" not in second
    assert second["tools"][0]["name"] == "execute_sql"


@pytest.mark.parametrize(
    ("provider", "base", "path"),
    [
        ("openai", "/v1/chat/completions", "/v1/chat/completions"),
        ("anthropic", "/v1", "/v1/messages"),
        ("anthropic", "/x/messages", "/x/messages"),
        ("anthropic", "", "/v1/messages"),
    ],
)
def test_base_urls(raw, wire, provider: str, base: str, path: str) -> None:
    environ = {f"{provider.upper()}_BASE_URL": raw.url + base}
    raw.says(then=http(404))
    model = make_model(f"{provider}:m", wire=wire, environ=environ)
    with pytest.raises(AgentFailed, match="HTTP 404"):
        model.complete(ASK)
    assert raw.requests[0][0] == f"POST {path} HTTP/1.1"


def test_a_project_entry_without_an_address(wire) -> None:
    model = make_model("lab:m", wire=wire, providers=[Provider.fixed("lab")], environ={})
    with pytest.raises(AgentFailed, match="no address is known for provider 'lab'"):
        model.complete(ASK)


def test_anthropic_assistant_that_said_nothing(raw, claude) -> None:
    raw.says(http(200, {"content": "x"}))
    with pytest.raises(AgentFailed, match="JSON that holds no message"):
        claude.complete([*ASK, {"role": "assistant", "content": ""}])
    assert raw.bodies()[0]["messages"][1]["content"] == [{"type": "text", "text": "(nothing)"}]
