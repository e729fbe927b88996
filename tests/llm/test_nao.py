from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest
from rawserver import http

from pytest_agenteval.agents.base import AgentContext
from pytest_agenteval.agents.kinds.nao import Login, build, login_for_workers
from pytest_agenteval.agents.targets import make_agent
from pytest_agenteval.errors import AgentFailed, AgentTimeout
from pytest_agenteval.llm.client import Models
from pytest_agenteval.llm.http_client import HttpClient
from pytest_agenteval.llm.providers import Prices, Provider
from pytest_agenteval.support.redaction import Redactor
from pytest_agenteval.types import AttemptLimits, Task, Usage

FIXTURES = Path(__file__).parents[1] / "data" / "nao"
LOGIN = {"NAO_USERNAME": "admin@example.com", "NAO_PASSWORD": "password123"}
TOKEN = http(200, {"redirect": False, "token": "TOKEN", "user": {}}, {"Set-Cookie": "better-auth=COOKIE"})


def recorded(name: str) -> dict:
    return json.loads((FIXTURES / f"{name}.json").read_text())


def replayed(name: str) -> bytes:
    response = recorded(name)["response"]
    return http(response["status"], response["body"])


RUN = replayed("run_ok_bearer_nosql")


@pytest.fixture
def agent(raw):
    made: list[HttpClient] = []

    def make(environ=None, kind="nao", meta=None, providers=(), retries=2, token=None):
        wire = HttpClient(retries=retries, first_pause=0.02)
        made.append(wire)
        environ = LOGIN if environ is None else environ
        models = Models(wire, providers=providers, environ=environ, meta_costs=meta)
        context = AgentContext(environ=environ, redactor=Redactor(), models=models, nao_token=token)
        return build(f"{kind}:{raw.url}", context).agent

    yield make
    for wire in made:
        wire.close()


def task(prompt: str = "Total revenue?", seconds: float = 5.0, **more) -> Task:
    return Task((prompt,), limits=AttemptLimits(deadline=time.monotonic() + seconds), **more)


def fails(agent, **more) -> str:
    with pytest.raises(AgentFailed) as caught:
        agent.run(task(**more))
    return str(caught.value)


def test_login_once_then_one_run_per_attempt(raw, agent) -> None:
    raw.says(TOKEN, then=RUN)
    one = agent()
    answer = one.run(task(model="openai:gpt-4.1"))
    one.run(task())
    login, run, again = raw.requests
    assert login[0] == "POST /api/auth/sign-in/email HTTP/1.1"
    assert json.loads(login[2]) == {"email": "admin@example.com", "password": "password123"}
    for first, headers, _ in (run, again):
        assert first == "POST /api/test/run HTTP/1.1"
        assert headers["authorization"] == "Bearer TOKEN"
        assert not {"origin", "cookie"} & set(headers)
    assert json.loads(run[2]) == recorded("run_ok_bearer_nosql")["request"]["body"] | {
        "prompt": "Total revenue?"
    }
    assert [attempt.status for attempt in answer.wire_attempts] == [200, 200]
    assert answer.finish_reason == "stop"
    assert answer.cost == pytest.approx(0.0063)
    assert answer.usage == Usage(
        input=2000, output=100, cache_read=400, cache_write=0, reasoning=20, total=2100
    )
    (call,) = answer.tool_calls
    assert (call.name, call.status, call.error) == ("execute_sql", "ok", None)
    assert call.args["sql_query"] == "SELECT SUM(amount) AS total_revenue FROM orders"
    assert call.result["data"] == [{"total_revenue": 249595}]


RUNS = sorted(path.stem for path in FIXTURES.glob("run_*.json"))


@pytest.mark.parametrize("name", RUNS)
def test_every_recorded_run_is_an_answer_or_a_clear_error(raw, agent, name: str) -> None:
    response = recorded(name)["response"]
    answer = replayed(name)
    raw.says(TOKEN, *([answer, TOKEN] if response["status"] == 401 else []), then=answer)
    one = agent(retries=1)
    if response["status"] == 200:
        answer = one.run(task())
        body = response["body"]
        assert answer.text == body["text"]
        assert len(answer.tool_calls) == len(body["toolCalls"])
        for call, said in zip(answer.tool_calls, body["toolCalls"], strict=True):
            assert call.args == said["args"]
            assert call.result == said.get("result")
            assert call.status == ("ok" if "result" in said else "error")
        assert answer.usage.tokens == body["usage"]["totalTokens"]
        return
    text = fails(one)
    said = response["body"].get("message") or response["body"]["error"]
    assert " ".join(said.split())[:150] in text
    assert str(response["status"]) in text
    retried = 2 if response["status"] == 500 else 1
    if response["status"] == 401:
        assert text == f"nao server at {raw.url} rejected a fresh login's token too: HTTP 401: Unauthorized"
    else:
        assert sum(request[0].startswith("POST /api/test/run") for request in raw.requests) == retried


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "run_model_unconfigured_provider",
            "nao server answered HTTP 500: The selected model could not be resolved. (tried 2 times) "
            "(model openai:gpt-4.1; the server knows those of its llm.providers)",
        ),
        (
            "run_get",
            "nao server at URL has no /api/test/run (HTTP 404: Not found): is this the address of a nao "
            "server?",
        ),
    ],
)
def test_errors_say_what_to_do(raw, agent, name: str, text: str) -> None:
    raw.says(TOKEN, then=replayed(name))
    assert fails(agent(retries=1)) == text.replace("URL", raw.url)


def test_a_failed_call_has_no_result_and_says_so(raw, agent) -> None:
    raw.says(TOKEN, replayed("run_agent_sql_error"))
    failed, good = agent().run(task()).tool_calls
    assert (failed.status, good.status) == ("error", "ok")
    assert failed.error == "it returned no result: the tool failed (the server does not say why)"


def test_broken_arguments_are_kept_as_text(raw, agent) -> None:
    calls = [
        {"toolName": "execute_sql", "toolCallId": "c", "args": '{"sql_query": "SELECT'},
        {"toolName": "execute_sql", "args": '{"sql_query": "SELECT 1"}', "result": {"data": []}},
        {"args": None, "result": "x"},
        "nonsense",
    ]
    raw.says(TOKEN, http(200, {"text": None, "toolCalls": calls, "new": 1}))
    answer = agent().run(task())
    broken, whole, nameless = answer.tool_calls
    assert broken.args == '{"sql_query": "SELECT'
    assert broken.error is not None
    assert broken.error.startswith("its arguments are not valid JSON (Unterminated string")
    assert (whole.args, whole.status) == ({"sql_query": "SELECT 1"}, "ok")
    assert (nameless.name, nameless.result) == ("", "x")
    assert (answer.text, answer.usage, answer.cost) == ("", None, None)


def test_a_clarification_is_no_failed_call(raw, agent) -> None:
    body = recorded("run_tool_clarification")["response"]["body"]
    raw.says(TOKEN, http(200, body))
    answer = agent().run(task())
    assert (answer.text, answer.finish_reason) == ("", "tool-calls")
    assert answer.tool_calls[-1].args["question"] == "Which one?"
    del body["toolCalls"][0]["result"]
    raw.says(http(200, body))
    assert agent(token="T").run(task()).tool_calls[-1].status == "ok"


def test_one_renewal_for_all_calls_in_flight(raw, agent) -> None:
    arrived: list[str] = []
    logins: list[str] = []

    def answers(first: str, headers: dict[str, str], body: bytes) -> bytes:
        if "sign-in" in first:
            logins.append(first)
            time.sleep(0.1)
            return http(200, {"token": f"TOKEN{len(logins)}"})
        arrived.append(headers["authorization"])
        return RUN if headers["authorization"] == "Bearer TOKEN1" else replayed("run_401_bad_token")

    raw.answers = answers
    one = agent(token="EXPIRED")
    threads = [threading.Thread(target=one.run, args=(task(),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(logins) == 1
    assert arrived.count("Bearer TOKEN1") == 8
    assert one.run(task()).text
    assert len(logins) == 1


def test_a_second_401_is_an_error(raw, agent) -> None:
    raw.says(replayed("run_401_bad_token"), TOKEN, then=replayed("run_401_bad_token"))
    one = agent(token="EXPIRED")
    with pytest.raises(AgentFailed, match="rejected a fresh login's token too: HTTP 401") as caught:
        one.run(task())
    assert [attempt.status for attempt in caught.value.answer.wire_attempts] == [401, 200, 401]
    assert caught.value.stage == "agent"


def test_a_refused_password_is_asked_once(raw, agent) -> None:
    raw.says(then=replayed("auth_signin_wrong_password"))
    one = agent()
    expected = (
        f"nao server at {raw.url} refused the login of admin@example.com: HTTP 401: Invalid email or password"
    )
    assert fails(one) == expected
    assert fails(one) == expected
    assert len(raw.requests) == 1


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (replayed("auth_signin_missing_field"), "nao server answered HTTP 400: [body.password] Invalid"),
        (http(200, {"user": {}}), "answered the login without a token: is it a nao server?"),
        (http(200, "<html><title>Home</title>"), "answered HTTP 200 with an HTML page ('Home')"),
    ],
)
def test_other_logins_that_fail(raw, agent, answer: bytes, text: str) -> None:
    raw.says(then=answer)
    assert text in fails(agent())


@pytest.mark.parametrize("kind", ["nao", "dazense", "pda"])
def test_credentials_come_from_the_environment_alone(raw, agent, kind: str) -> None:
    assert fails(agent(environ={}, kind=kind)) == (
        f"no login for the {kind} server at {raw.url}: set {kind.upper()}_USERNAME and "
        f"{kind.upper()}_PASSWORD in the environment (AGENTEVAL_USERNAME and AGENTEVAL_PASSWORD serve every "
        "server)"
    )
    assert raw.requests == []
    environ = {
        "AGENTEVAL_USERNAME": "all",
        "AGENTEVAL_PASSWORD": "all-pass",
        f"{kind.upper()}_PASSWORD": "own-pass",
    }
    raw.says(TOKEN, RUN)
    agent(environ=environ, kind=kind).run(task())
    assert raw.bodies()[0] == {"email": "all", "password": "own-pass"}


@pytest.mark.parametrize(
    ("target", "environ", "place"),
    [
        ("nao:", {}, "nao server at http://localhost:5005"),
        ("dazense:", {"BACKEND_URL": "http://x:1/"}, "dazense server at http://x:1"),
        ("pda:http://y:2", {"BACKEND_URL": "http://x:1/"}, "pda server at http://y:2"),
    ],
)
def test_the_address(target: str, environ: dict[str, str], place: str) -> None:
    made = make_agent(target, AgentContext(environ=environ))
    assert made.place == place
    assert (made.kind, made.default_model, made.model_name) == (
        target.partition(":")[0],
        "openai:gpt-4.1",
        "openai:gpt-4.1",
    )
    assert made.is_builtin
    assert "turns" in made.unsupported_keys
    assert "clarification" not in made.unsupported_keys


def test_costs_context_and_database_are_sent(raw, agent) -> None:
    raw.says(then=replayed("run_model_unknown_id"))
    one = agent(meta=Prices(100, 10, None, 1000), token="T")
    answer = one.run(
        task(
            "q", model="openai:no-such-model", context="be brief", database="a", databases={"a": "", "b": ""}
        )
    )
    assert raw.bodies()[0] == {
        "prompt": "be brief\n\nq",
        "model": {"provider": "openai", "modelId": "no-such-model"},
        "databaseId": "a",
        "meta": {"costs": {"inputNoCache": 100, "inputCacheRead": 10, "output": 1000}},
    }
    # the server gave no cost: ours, as its own with these prices (run_costs_unknown_model)
    assert answer.cost == pytest.approx(0.264)


def test_a_server_without_a_price_is_priced_by_the_project(raw, agent) -> None:
    raw.says(then=replayed("run_model_unknown_id"))
    providers = [Provider.fixed("openai", models={"x": Prices(1, 1, 1, 1)})]
    assert agent(token="T", providers=providers).run(task(model="openai:x")).cost == pytest.approx(0.0021)
    assert agent(token="T").run(task(model="openai:x")).cost is None


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (http(200, {"error": "boom"}), "nao server answered HTTP 200 with an error: boom"),
        (http(200, {"a": 1}), 'nao server answered HTTP 200 with JSON that is no run: {"a": 1}'),
        (http(200, [1]), "nao server answered HTTP 200 with JSON that is no run: [1]"),
        (http(200, ""), "nao server answered HTTP 200 with an empty body, JSON was expected"),
        (http(200, "<html><title>Nginx</title>"), "answered HTTP 200 with an HTML page ('Nginx'), JSON"),
        (http(502, "<html><title>Bad Gateway</title>"), "answered HTTP 502: an HTML page ('Bad Gateway')"),
        (lambda connection: None, " dropped the connection before it answered; see its log (tried 3 times)"),
        (
            lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{"),
            "nao server dropped the connection in the middle of its answer (after 1 of 90 bytes)",
        ),
    ],
)
def test_faults_have_their_own_words(raw, agent, answer, text: str) -> None:
    raw.says(then=answer)
    assert text in fails(agent(token="T"))


def test_429_twice_then_an_answer(raw, agent) -> None:
    slow = http(429, {"error": "slow down"}, {"Retry-After": "0.2"})
    raw.says(slow, slow, RUN)
    answer = agent(token="T").run(task())
    assert [attempt.status for attempt in answer.wire_attempts] == [429, 429, 200]


def test_the_deadline_covers_login_and_run(raw, agent) -> None:
    began = time.monotonic()
    raw.says(lambda c: (time.sleep(0.5), c.sendall(TOKEN)), then=raw.drip(RUN))
    with pytest.raises(AgentTimeout, match="nao server did not answer in time"):
        agent(retries=5).run(task(seconds=1.5))
    assert time.monotonic() - began < 2


def test_waiting_for_another_calls_login_ends_at_the_deadline(raw, agent) -> None:
    raw.says(then=raw.hang)
    one = agent()
    first = threading.Thread(target=fails, args=(one,), kwargs={"seconds": 2})
    first.start()
    time.sleep(0.2)
    with pytest.raises(AgentTimeout, match=r"the login at nao server .* did not end in time"):
        one.run(task(seconds=0.5))
    first.join()


def test_no_secret_is_in_errors(raw, agent) -> None:
    raw.says(TOKEN, then=http(500, {"error": "who sent TOKEN-123 and password123?"}))
    redactor = Redactor()
    wire = HttpClient(retries=0, redact=redactor)
    models = Models(wire, environ=LOGIN)
    made = build(f"nao:{raw.url}", AgentContext(environ=LOGIN, redactor=redactor, models=models))
    with pytest.raises(AgentFailed) as caught:
        made.agent.run(task())
    assert "password123" not in str(caught.value) + repr(caught.value.answer)
    assert isinstance(made.agent._login, Login)
    wire.close()


def test_a_login_for_workers_is_a_token_or_nothing(raw) -> None:
    target = f"nao:{raw.url}"
    raw.says(TOKEN)
    assert login_for_workers(target, AgentContext(environ=LOGIN)) == "TOKEN"
    raw.says(replayed("auth_signin_wrong_password"))
    assert login_for_workers(target, AgentContext(environ=LOGIN)) is None
    assert login_for_workers(target, AgentContext(environ={})) is None
    assert len(raw.requests) == 2


CASE = "prompt: Total revenue?\nsql: SELECT 249595 AS total_revenue\n"


@pytest.mark.parametrize("workers", ["0", "3"])
def test_a_run_logs_in_once(raw, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers) -> None:
    for name, value in LOGIN.items():
        monkeypatch.setenv(name, value)
    logins: list[str] = []

    def answers(first: str, headers: dict[str, str], body: bytes) -> bytes:
        if "sign-in" in first:
            logins.append(first)
            return http(200, {"token": "canary-token-1"})
        return RUN if headers["authorization"] == "Bearer canary-token-1" else http(401, {"error": "no"})

    raw.answers = answers
    pytester.makeini("[pytest]\nagenteval_databases = shop = duckdb:///:memory:\n")
    folder = pytester.mkdir("tests")
    for number in range(6):
        (folder / f"case_{number}.yml").write_text(CASE)
    result = pytester.runpytest_subprocess(
        "-p", "no:asyncio", "-n", workers, "--agent-target", f"nao:{raw.url}", "-l", "--showlocals"
    )
    result.assert_outcomes(passed=6)
    assert len(logins) == 1
    written = [path.read_text(errors="replace") for path in pytester.path.rglob("*") if path.is_file()]
    assert len(written) >= 8
    for text in [*written, result.stdout.str(), result.stderr.str()]:
        assert "canary-token-1" not in text
        assert LOGIN["NAO_PASSWORD"] not in text
