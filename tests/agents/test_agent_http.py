"""http: against a real server on loopback."""

import json
import re
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from werkzeug import Request, Response

from pytest_agenteval.agents.base import AgentContext, unsupported
from pytest_agenteval.agents.runtime.runtime import AgentRuntime
from pytest_agenteval.agents.targets import make_agent
from pytest_agenteval.cases.model import Case, Turn
from pytest_agenteval.errors import AgentFailed, AgentTimeout, SettingsError
from pytest_agenteval.llm.http_client import HttpClient
from pytest_agenteval.support.redaction import Redactor
from pytest_agenteval.types import Task, ToolCall, Usage

CALLER = {"region": "EMEA"}


@pytest.fixture
def runtime():
    made = AgentRuntime()
    yield made
    assert made.shutdown() == ()


@pytest.fixture
def ask(httpserver, runtime):
    redactor = Redactor()
    wire = HttpClient(retries=2, redact=redactor, first_pause=0.01)

    def call(block=None, *turns, path="/ask", timeout=10.0, **more):
        given = {"project": SimpleNamespace(http=block or {}), "models": SimpleNamespace(wire=wire)}
        agent = make_agent(f"http:{httpserver.url_for(path)}", AgentContext(redactor=redactor, **given))
        return runtime.call(agent, Task(turns or ("how many?",), **more), timeout=timeout)

    yield call
    wire.close()


def answers(httpserver, value, status=200, path="/ask", **more):
    httpserver.expect_request(path, **more).respond_with_json(value, status=status)


def last_request(httpserver):
    return httpserver.log[-1][0]


def test_without_configuration_the_task_goes_and_an_answer_comes_as_for_a_program(httpserver, ask):
    answers(httpserver, {"text": "3", "data": [{"n": 3}], "usage": {"input": 5}})
    answer = ask(None, model="a:b", caller=CALLER, attempt=2)
    sent = json.loads(last_request(httpserver).data)
    assert (sent["prompt"], sent["model"], sent["caller"], sent["attempt"]) == ("how many?", "a:b", CALLER, 2)
    assert "deadline" not in sent["limits"]
    assert (answer.text, answer.data.records(), answer.usage) == ("3", [{"n": 3}], Usage(input=5))
    assert [wire.status for wire in answer.wire_attempts] == [200]


@pytest.mark.parametrize(("value", "text"), [("plain", "plain"), ([{"n": 1}], ""), (7, "7")])
def test_without_paths_text_rows_and_a_number_are_answers(httpserver, ask, value, text):
    answers(httpserver, value)
    assert ask().text == text


FULL = {
    "reply": {"parts": ["There are ", "3 orders"]},
    "data": {"rows": [[3, "x"]], "fields": [{"name": "n", "type": "BIGINT"}, "s"]},
    "trace": [
        {"function": {"name": "list_tables", "arguments": '{"schema": "main"}'}, "id": "c1"},
        {"tool": "refund", "input": "broken {json", "output": {"ok": True}},
        None,
    ],
    "statement": "select count(*) as n from orders",
    "meta": {"in": 10, "out": 2, "price": 0.25, "why": "stop", "thread": "t-1"},
}
PATHS = {
    "text": "$.reply.parts[*]",
    "rows": "$.data.rows",
    "columns": "$.data.fields",
    "sql": "$.statement",
    "tool_calls": "$.trace",
    "usage": {"input": "$.meta.in", "output": "$.meta.out", "total": "$.meta.nowhere"},
    "cost": "$.meta.price",
    "finish_reason": "$.meta.why",
    "conversation": "$.meta.thread",
    "value": "$.data.rows[0][0]",
}


def test_paths_find_every_part_of_an_answer(httpserver, ask):
    answers(httpserver, FULL)
    answer = ask(PATHS)
    assert answer.text == "There are \n3 orders"
    assert (answer.data.names, answer.data.types, list(answer.data.rows())) == (
        ["n", "s"], ["BIGINT", None], [(3, "x")],
    )  # fmt: skip
    first, second, third = answer.tool_calls
    assert first == ToolCall("list_tables", {"schema": "main"}, id="c1")
    assert second == ToolCall("refund", "broken {json", {"ok": True})
    assert third.name == "execute_sql"
    assert third.args == {"sql": "select count(*) as n from orders"}
    assert third.result == {"columns": ["n", "s"], "data": [{"n": 3, "s": "x"}], "row_count": 1}
    assert answer.usage == Usage(input=10, output=2)
    assert (answer.cost, answer.finish_reason, answer.conversation, answer.value) == (0.25, "stop", "t-1", 3)


def test_rows_may_be_objects_matched_one_by_one(httpserver, ask):
    answers(httpserver, {"hits": [{"row": {"n": 1}}, {"row": {"n": 2}}]})
    assert ask({"rows": "$.hits[*].row"}).data.records() == [{"n": 1}, {"n": 2}]


def test_rows_that_lead_nowhere_are_no_data_and_null_rows_too(httpserver, ask):
    answers(httpserver, {"text": "sorry", "rows": None})
    assert ask({"text": "$.text", "rows": "$.rows"}).data is None
    assert ask({"text": "$.text", "rows": "$.nowhere"}).data is None


def test_a_path_that_finds_nothing_while_others_do_is_told_in_the_logs(httpserver, ask):
    answers(httpserver, {"answer": "3", "rows": [{"n": 3}], "sql": None})
    missed = ask({"text": "$.answer", "rows": "$.rowz", "sql": "$.sql", "cost": "$.cost"})
    assert missed.logs == "http.rows: $.rowz found nothing; the answer has the keys answer, rows, sql\n"
    assert ask({"text": "$.answer", "rows": "$.rows"}).logs == ""
    answers(httpserver, [{"n": 3}], path="/list")
    listed = ask({"text": "$.answer", "rows": "$"}, path="/list")
    assert listed.logs == "http.text: $.answer found nothing; the answer has the form list\n"


def test_an_empty_list_of_rows_is_an_empty_table(httpserver, ask):
    answers(httpserver, {"rows": []})
    assert ask({"rows": "$.rows"}).data.row_count == 0


def test_tool_calls_in_another_shape_are_found_by_paths_of_their_own(httpserver, ask):
    answers(httpserver, {"steps": [{"kind": "sql", "with": {"q": 1}, "gave": [1], "failed": "boom"}]})
    block = {
        "tool_calls": "$.steps[*]",
        "tool_call": {"name": "$.kind", "args": "$.with", "result": "$.gave", "error": "$.failed"},
    }
    assert ask(block).tool_calls == (ToolCall("sql", {"q": 1}, [1], error="boom", status="error"),)


def test_the_request_is_a_template_of_the_task(httpserver, ask, monkeypatch):
    answers(httpserver, {"a": "x"}, path="/v1/EU/x/ask")
    block = {
        "url": "ignored: the target has one",
        "method": "put",
        "headers": {
            "X-Caller": "{{ caller.region }}",
            "X-Attempt": "{{ attempt }}",
            "X-None": "{{ context }}",
        },
        "body": {
            "question": "Please: {{ prompt }}",
            "n": "{{attempt}}",
            "list": ["{{ turns }}", "{{ vars.missing.deep }}"],
            "{{ model_id }}": "{{ provider }}",
            "as text": "caller {{ caller }}",
            "left": "{{ limits.timeout }}",
            "fixed": 3,
        },
        "text": "$.a",
    }
    ask(block, path="/v1/{{ vars.region }}/ask", model="a:b/c:d", caller=CALLER, vars={"region": "EU/x"})
    request = last_request(httpserver)
    sent = json.loads(request.data)
    assert request.method == "PUT"
    assert (request.headers["X-Caller"], request.headers["X-Attempt"], request.headers["X-None"]) == (
        "EMEA",
        "1",
        "",
    )
    assert 5 < sent.pop("left") <= 10
    assert sent == {
        "question": "Please: how many?",
        "n": 1,
        "list": [["how many?"], None],
        "b/c:d": "a",
        "as text": 'caller {"region": "EMEA"}',
        "fixed": 3,
    }


def test_get_sends_no_body_and_quotes_what_stands_in_the_url(httpserver, ask):
    answers(httpserver, {"a": "x"}, method="GET", query_string={"q": "a b&c=d"})
    ask({"method": "GET", "text": "$.a"}, "a b&c=d", path="/ask?q={{ prompt }}")
    assert last_request(httpserver).data == b""


def test_a_conversation_hands_back_the_apis_own_thread_or_the_messages(httpserver, ask):
    seen = []

    def handle(request: Request) -> Response:
        seen.append(json.loads(request.data))
        return Response(
            json.dumps({"a": f"answer {len(seen)}", "thread": "t-7"}), content_type="application/json"
        )

    httpserver.expect_request("/ask").respond_with_handler(handle)
    thread = {
        "body": {"q": "{{ prompt }}", "thread": "{{ conversation }}"},
        "text": "$.a",
        "conversation": "$.thread",
    }
    ask(thread, "one", "two")
    assert seen == [{"q": "one", "thread": None}, {"q": "two", "thread": "t-7"}]
    seen.clear()
    ask({"body": {"messages": "{{ messages }}"}, "text": "$.a"}, "one", "two")
    assert [m["content"] for m in seen[1]["messages"]] == ["one", "answer 1", "two"]


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ("{{ messages }}", "turns"),
        ("{{ caller }}", "as"),
        ("{{ approve }}", "approve"),
        ("{{ input.x }}", "input"),
    ],
)
def test_it_honours_the_keys_that_its_template_passes_on(body, key):
    case = Case(
        path=None, line=1, name="x", id="x", turns=(Turn("a"), Turn("b")), caller="maya", approve=True,
        input={"x": 1}, isolate=True,
    )  # fmt: skip
    used = {
        "turns": {"turns": (Turn("a"),)},
        "as": {"caller": None},
        "approve": {"approve": False},
        "input": {"input": None},
    }
    only = replace(
        case, isolate=False, **{k: v for name, more in used.items() if name != key for k, v in more.items()}
    )
    bare = make_agent("http:http://localhost:1/x", context_with({"body": "{{ prompt }}"}))
    given = make_agent("http:http://localhost:1/x", context_with({"body": body}))
    assert unsupported(bare, only).startswith("http: cannot ")
    assert unsupported(given, only) is None
    assert "(isolate: true)" in unsupported(given, case)
    whole = make_agent("http:http://localhost:1/x", context_with({}))
    assert unsupported(whole, replace(case, isolate=False)) is None


def context_with(block):
    return AgentContext(project=SimpleNamespace(http=block))


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"txt": "$.a"}, "http: unknown key 'txt', did you mean 'text'?"),
        ({"text": "a.b"}, "http.text: expected a JSONPath such as $.answer, found 'a.b'"),
        ({"text": "$.a["}, "http.text: '$.a[' is not a JSONPath: unexpected end of query"),
        ({"method": "DELETE"}, "http.method: 'DELETE' is not one of GET, POST, PUT, PATCH"),
        ({"headers": ["x"]}, "http.headers: expected a mapping of names to text"),
        (
            {"body": {"q": "{{ promt }}"}},
            "http.body: unknown name 'promt' in a template, did you mean 'prompt'?",
        ),
        ({"body": "{{ $.x }}"}, "http.body: unknown name '$.x' in a template; known: approve, attempt"),
        ({"usage": {"inputs": "$.a"}}, "http.usage: unknown key 'inputs', did you mean 'input'?"),
        ({"usage": 3}, "http.usage: expected a mapping, found 3"),
        ({"poll": {}}, "http.poll.url: expected a URL such as /jobs/{{ $.id }}, found None"),
        ({"poll": {"url": "/x", "every": 0}}, "http.poll.every: 0 is not a number of seconds above 0"),
        ({"poll": {"url": "/x", "done": []}}, "http.poll.done: expected a word or a list of words, found []"),
    ],
)
def test_a_bad_block_is_a_usage_error_naming_the_key(block, text):
    with pytest.raises(SettingsError) as caught:
        make_agent("http:http://localhost:1/x", context_with(block))
    assert str(caught.value).startswith(text)


def test_no_url_is_a_usage_error():
    with pytest.raises(
        SettingsError, match=r"http: no URL: expected --agent-target http:URL or http.url, .*found ''"
    ):
        make_agent("http:")
    assert make_agent("http:", context_with({"url": "https://shop.example/ask?key=x"})).name == (
        "http:https://shop.example/ask"
    )
    assert make_agent("https://shop.example/ask").kind == "http"


@pytest.mark.parametrize(
    ("value", "block", "text"),
    [
        ({"error": {"message": "quota"}}, {"text": "$.a"}, "answered HTTP 200 with an error: quota"),
        ({"error": "quota"}, {}, "answered HTTP 200 with an error: quota"),
        ({"a": "x", "fault": ["bad"]}, {"text": "$.a", "error": "$.fault"}, "HTTP 200 with an error: bad"),
        (
            {"b": 1, "c": 2},
            {"text": "$.a", "error": "$.e"},
            "none of its paths leads anywhere (text $.a); the answer has the keys b, c",
        ),
        ([1], {"text": "$.a"}, "none of its paths leads anywhere (text $.a); the answer has the form list"),
        (
            {"rows": [[1]]},
            {"rows": "$.rows"},
            "http.rows leads to a list that holds list, expected objects, or lists and http.columns",
        ),
        (
            {"rows": [[1]], "c": ["a", "b"]},
            {"rows": "$.rows", "columns": "$.c"},
            "row 0 has 1 values, expected 2",
        ),
        (
            {"t": [{"x": 1}]},
            {"tool_calls": "$.t"},
            "a tool call has no name (it holds x); set http.tool_call.name",
        ),
        (
            {"txt": "x"},
            {},
            "unknown key 'txt', did you mean 'text'?; paths into another answer stand in the project file",
        ),
        ({"data": {"$type": "x"}}, {}, "unknown $type 'x'"),
    ],
)
def test_an_answer_that_cannot_be_read_says_why(httpserver, ask, value, block, text):
    answers(httpserver, value)
    with pytest.raises(AgentFailed) as caught:
        ask(block)
    assert text in str(caught.value)
    assert [wire.status for wire in caught.value.answer.wire_attempts] == [200]


def test_an_error_field_that_is_empty_is_none(httpserver, ask):
    answers(httpserver, {"a": "x", "error": None})
    assert ask({"text": "$.a", "error": "$.error"}).text == "x"
    assert ask({"text": "$.a"}).text == "x"


def test_statuses_are_retried_by_the_rules_of_the_wire_and_all_requests_are_kept(httpserver, ask):
    httpserver.expect_ordered_request("/ask").respond_with_json({}, status=503)
    httpserver.expect_ordered_request("/ask").respond_with_json({"text": "x"})
    assert [wire.status for wire in ask().wire_attempts] == [503, 200]
    httpserver.expect_ordered_request("/ask").respond_with_json({"detail": "no such key"}, status=401)
    with pytest.raises(AgentFailed, match=r"http agent answered HTTP 401: no such key") as caught:
        ask()
    assert len(caught.value.answer.wire_attempts) == 1


JOB = {"poll": {"url": "/jobs/{{ $.id }}", "every": 0.02, "status": "$.state"}, "text": "$.result"}


def test_a_job_is_polled_until_it_is_done(httpserver, ask):
    httpserver.expect_ordered_request("/ask").respond_with_json({"id": "a/7", "state": "queued"}, status=202)
    for state in ("queued", "Running"):
        httpserver.expect_ordered_request("/jobs/a/7", method="GET").respond_with_json({"state": state})
    httpserver.expect_ordered_request("/jobs/a/7").respond_with_json({"state": "SUCCEEDED", "result": "done"})
    answer = ask(JOB)
    assert answer.text == "done"
    assert [wire.status for wire in answer.wire_attempts] == [202, 200, 200, 200]
    assert answer.duration_ms > 60


def test_a_job_that_is_done_at_once_is_not_polled(httpserver, ask):
    answers(httpserver, {"id": 1, "state": "done", "result": "now"})
    assert ask(JOB).text == "now"


def test_without_a_status_a_job_is_over_when_it_is_no_longer_202(httpserver, ask):
    httpserver.expect_ordered_request("/ask").respond_with_json(
        {"next": httpserver.url_for("/status/5?x=1")}, status=202
    )
    httpserver.expect_ordered_request("/status/5").respond_with_json({}, status=202)
    httpserver.expect_ordered_request("/status/5", query_string="x=1").respond_with_json({"result": "done"})
    assert ask({"poll": {"url": "{{ $.next }}", "every": 0.01}, "text": "$.result"}).text == "done"


def test_a_failed_job_is_an_error_with_its_own_words(httpserver, ask):
    answers(httpserver, {"id": 1, "state": "Failed", "message": "out of memory"})
    with pytest.raises(AgentFailed, match=r"http agent: the job ended as 'failed': out of memory"):
        ask(JOB)
    answers(httpserver, {"state": "broken"}, path="/other")
    with pytest.raises(AgentFailed, match=r"the job ended as 'broken'$"):
        ask({"poll": {"url": "/x", "status": "$.state", "failed": "broken", "done": ["ok"]}}, path="/other")


def test_a_job_that_does_not_end_is_a_timeout_that_says_where_it_stood(httpserver, ask):
    answers(httpserver, {"id": 1, "state": "queued"})
    answers(httpserver, {"state": "running"}, path="/jobs/1")
    started = time.monotonic()
    with pytest.raises(AgentTimeout) as caught:
        ask({**JOB, "poll": {**JOB["poll"], "every": 0.4}}, timeout=1.5)
    assert time.monotonic() - started < 3
    assert re.search(r"the job is still 'running' after .* polls; the next one", str(caught.value))
    assert len(caught.value.answer.wire_attempts) >= 3


def test_a_poll_that_hangs_is_a_timeout_that_says_where_the_job_stood(httpserver, ask):
    answers(httpserver, {"id": 1, "state": "queued"})
    done = threading.Event()
    httpserver.expect_request("/jobs/1").respond_with_handler(lambda _: done.wait(20) and Response("{}"))
    try:
        with pytest.raises(AgentTimeout) as caught:
            ask({**JOB, "poll": {**JOB["poll"], "every": 0.01}}, timeout=0.5)
    finally:
        done.set()
    said = str(caught.value)
    assert re.search(r"still 'queued' after \d\.\d s and 0 polls; the next one did not end: ", said), said


def test_a_poll_that_fails_keeps_the_requests_before_it(httpserver, ask):
    answers(httpserver, {"id": 1, "state": "queued"})
    httpserver.expect_request("/jobs/1").respond_with_json({"error": "gone"}, status=404)
    with pytest.raises(AgentFailed, match=r"HTTP 404: gone") as caught:
        ask(JOB)
    assert [wire.status for wire in caught.value.answer.wire_attempts] == [200, 404]


def test_no_server_is_an_error_that_asks_whether_it_runs(runtime):
    agent = make_agent("http:http://127.0.0.1:9/ask", AgentContext())
    with pytest.raises(
        AgentFailed, match=r"cannot connect to http agent at http://127.0.0.1:9/ask.*is it running"
    ):
        runtime.call(agent, Task(("x",)), timeout=5)


def test_a_hang_ends_at_the_deadline(httpserver, ask):
    def hang(request: Request) -> Response:
        time.sleep(1.0)
        return Response("{}")

    httpserver.expect_request("/ask").respond_with_handler(hang)
    started = time.monotonic()
    with pytest.raises(AgentTimeout):
        ask(timeout=0.3)
    assert time.monotonic() - started < 0.9


def test_secret_headers_and_url_passwords_are_masked_in_errors(httpserver, runtime):
    def echo(request: Request) -> Response:
        text = f"bad key {request.headers['Authorization']} {request.headers['X-Api-Key']}"
        return Response(json.dumps({"error": text}), status=400, content_type="application/json")

    httpserver.expect_request("/ask").respond_with_handler(echo)
    block = {"headers": {"X-Api-Key": "canary-key-2"}}
    context = AgentContext(project=SimpleNamespace(http=block))
    url = httpserver.url_for("/ask").replace("//", "//maya:canary-pass-3@")
    agent = make_agent(f"http:{url}", context)
    assert "canary" not in agent.name + agent.place
    with pytest.raises(AgentFailed) as caught:
        runtime.call(agent, Task(("x",)), timeout=5)
    assert "HTTP 400: bad key Basic *** ***" in str(caught.value)
    assert "canary" not in repr(caught.value.answer)
