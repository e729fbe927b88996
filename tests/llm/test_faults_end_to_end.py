"""Whole runs against servers on loopback that misbehave: verdict, stage, time, requests in the document."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from rawserver import RawServer, http

RIGHT = {"sql_query": "SELECT 42 AS total"}


def run_body(**more: Any) -> dict[str, Any]:
    """A nao server's answer that is right."""
    call = {
        "toolName": "execute_sql",
        "args": RIGHT,
        "result": {"data": [{"total": 42}], "columns": ["total"]},
    }
    usage = {"inputTotalTokens": 10, "outputTotalTokens": 5, "totalTokens": 15}
    return {"text": "42", "toolCalls": [call], "usage": usage, "cost": {}, "finishReason": "stop", **more}


GOOD = http(200, run_body())
BROKEN_ARGS = {"toolName": "execute_sql", "args": '{"sql_query": "SELECT', "toolCallId": "1"}


class Faults:
    """Answers by what the prompt asks for, and counts."""

    def __init__(self, raw: RawServer) -> None:
        self.raw = raw
        self.seen: Counter[str] = Counter()

    def __call__(self, first: str, headers: dict[str, str], body: bytes) -> Any:
        if "sign-in" in first:
            return http(200, {"token": "T"})
        fault = json.loads(body)["prompt"]
        self.seen[fault] += 1
        answers = {
            "fine": GOOD,
            "429 twice": GOOD if self.seen[fault] > 2 else http(429, {}, {"Retry-After": "0.2"}),
            "always 500": http(500, {"error": "boom"}),
            "always 401": http(401, {"error": "Unauthorized"}),
            "400": http(400, {"error": "Bad Request", "message": "body/prompt too long"}),
            "hang": self.raw.hang,
            "one byte per second": self.raw.drip(GOOD),
            "truncated": lambda connection: connection.sendall(GOOD[:-9]),
            "dropped": lambda connection: None,
            "error object": http(200, {"error": {"message": "no credits left"}}),
            "html": http(200, "<html><title>Sign in</title></html>", {"Content-Type": "text/html"}),
            "broken arguments": http(200, run_body(toolCalls=[BROKEN_ARGS])),
            "missing result": http(200, run_body(toolCalls=[{"toolName": "execute_sql", "args": RIGHT}])),
        }
        return answers[fault]


EXPECTED: dict[str, tuple[str, str | None, str]] = {
    "fine": ("passed", None, "match"),
    "429 twice": ("passed", None, "match"),
    "always 500": ("error", "agent", "nao server answered HTTP 500: boom (tried 6 times)"),
    "always 401": ("error", "agent", "rejected a fresh login's token too: HTTP 401: Unauthorized"),
    "400": ("error", "agent", "nao server answered HTTP 400: body/prompt too long"),
    "hang": ("error", "timeout", "nao server did not answer in time: nothing of its answer had come"),
    "one byte per second": ("error", "timeout", "nao server did not answer in time: "),
    "truncated": ("error", "agent", "nao server dropped the connection in the middle of its answer"),
    "dropped": ("error", "agent", " dropped the connection before it answered; see its log"),
    "error object": ("error", "agent", "answered HTTP 200 with an error: no credits left"),
    "html": ("error", "agent", "answered HTTP 200 with an HTML page ('Sign in'), JSON was expected"),
    "broken arguments": ("failed", None, "no data returned"),
    "missing result": ("failed", None, "no data returned"),
}
LONG = ("always 500", "truncated", "dropped")  # five pauses that double: only where they end early


def write_cases(pytester: pytest.Pytester, faults: list[str]) -> None:
    pytester.makeini("[pytest]\nagenteval_databases = shop = duckdb:///:memory:\n")
    folder = pytester.mkdir("tests")
    for fault in faults:
        name = fault.replace(" ", "_")
        (folder / f"{name}.yml").write_text(f'name: {name}\nprompt: "{fault}"\nsql: SELECT 42 AS total\n')


def run(pytester: pytest.Pytester, *options: str) -> tuple[pytest.RunResult, dict[str, Any]]:
    result = pytester.runpytest_subprocess("-p", "no:asyncio", *options)
    (document,) = (pytester.path / "tests" / "outputs").glob("results_*.json")
    return result, {entry["name"]: entry for entry in json.loads(document.read_text())["results"]}


@pytest.mark.parametrize("workers", ["0", "2"])
def test_every_fault_has_its_verdict(
    raw: RawServer, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    monkeypatch.setenv("NAO_USERNAME", "me")
    monkeypatch.setenv("NAO_PASSWORD", "pass-word")
    faults = Faults(raw)
    raw.answers = faults
    chosen = [
        fault for fault in EXPECTED if workers == "0" or fault in ("fine", "hang", "one byte per second")
    ]
    chosen = [fault for fault in chosen if fault not in LONG]
    write_cases(pytester, chosen)
    options = ("--agent-target", f"nao:{raw.url}", "--agent-timeout", "3", "--agent-retries", "5")
    # overlapping, or it would take as long as all deadlines together
    speed = ("--agent-concurrency", "12") if workers == "0" else ()
    result, entries = run(pytester, *options, "-n", workers, *speed)
    assert result.ret == 1
    assert set(entries) == {fault.replace(" ", "_") for fault in chosen}
    for fault in chosen:
        entry = entries[fault.replace(" ", "_")]
        verdict, stage, message = EXPECTED[fault]
        assert (entry["verdict"], entry["stage"]) == (verdict, stage), entry["message"]
        assert message in entry["message"]
        assert entry["duration_ms"] <= 4000
    assert faults.seen["hang"] == 1
    if workers == "0":
        statuses = [attempt["status"] for attempt in entries["429_twice"]["wire_attempts"]]
        assert [status for status in statuses if status != 401][-3:] == [429, 429, 200]
        assert faults.seen["400"] == 1
        assert faults.seen["always 401"] == 2


def test_what_stays_broken_is_an_error_after_the_retries(
    raw: RawServer, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAO_USERNAME", "me")
    monkeypatch.setenv("NAO_PASSWORD", "pass-word")
    faults = Faults(raw)
    raw.answers = faults
    write_cases(pytester, list(LONG))
    options = ("--agent-target", f"nao:{raw.url}", "--agent-retries", "1", "--agent-concurrency", "3")
    result, entries = run(pytester, *options)
    assert result.ret == 1
    for fault in LONG:
        entry = entries[fault.replace(" ", "_")]
        verdict, stage, message = EXPECTED[fault]
        assert (entry["verdict"], entry["stage"]) == (verdict, stage)
        assert message.replace("6 times", "2 times") in entry["message"]
        assert faults.seen[fault] == 2
        assert [attempt["error"] is None for attempt in entry["wire_attempts"]][-2:] == [False, False]
        assert entry["duration_ms"] >= 200  # the pause between the tries, though the calls overlapped


def said(text: str | None, *calls: tuple[str, str]) -> bytes:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": f"c{n}", "function": {"name": name, "arguments": arguments}}
            for n, (name, arguments) in enumerate(calls)
        ]
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    return http(200, {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})


def test_a_bare_model_that_misbehaves(
    raw: RawServer, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", raw.url)
    query = json.dumps(RIGHT)

    def answers(first: str, headers: dict[str, str], body: bytes) -> bytes:
        messages = json.loads(body)["messages"]
        fault = messages[1]["content"]
        told = [message for message in messages if message["role"] == "tool"]
        if fault == "malformed arguments":
            if not told:
                return said(None, ("execute_sql", '{"sql_query": "SELECT'))
            return said("42") if len(told) > 1 else said(None, ("execute_sql", query))
        if fault == "parallel calls":
            other = json.dumps({"sql_query": "SELECT 1 AS other"})
            return said("42") if told else said(None, ("execute_sql", other), ("execute_sql", query))
        if told:
            return http(400, {"error": {"message": "maximum context length is 8192 tokens"}})
        return said(None, ("execute_sql", query))

    raw.answers = answers
    faults = ["malformed arguments", "parallel calls", "context overflow"]
    write_cases(pytester, faults)
    result, entries = run(pytester, "--agent-target", "llm:")
    assert result.ret == 1
    shown = {name: (entry["verdict"], entry["tool_call_count"]) for name, entry in entries.items()}
    assert shown == {
        "malformed_arguments": ("passed", 2),
        "parallel_calls": ("passed", 2),
        "context_overflow": ("error", 1),
    }
    assert entries["context_overflow"]["stage"] == "agent"
    assert entries["context_overflow"]["message"].startswith(
        "the conversation does not fit the context window of model openai:gpt-4.1: maximum context length"
    )
    assert entries["parallel_calls"]["tokens"] == 220
    # what was done and spent before the error is kept
    assert entries["context_overflow"]["tokens"] == 110
    assert [wire["status"] for wire in entries["context_overflow"]["wire_attempts"]] == [200, 400]


def test_what_the_budget_stops_is_not_run(
    raw: RawServer, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAO_USERNAME", "me")
    monkeypatch.setenv("NAO_PASSWORD", "pass-word")
    raw.answers = lambda first, headers, body: (
        http(200, {"token": "T"}) if "sign-in" in first else http(200, run_body(cost={"totalCost": 0.4}))
    )
    write_cases(pytester, ["one", "two", "three", "four"])
    result, entries = run(pytester, "--agent-target", f"nao:{raw.url}", "--agent-budget", "1")
    assert result.ret == 1
    assert Counter(entry["verdict"] for entry in entries.values()) == {"passed": 2, "not_run": 2}
    stopped = next(entry for entry in entries.values() if entry["verdict"] == "not_run")
    assert "the run's budget of $1.00 allows no further call: $0.8000 spent" in stopped["message"]


def test_what_a_files_budget_stops_is_not_run(
    raw: RawServer, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAO_USERNAME", "me")
    monkeypatch.setenv("NAO_PASSWORD", "pass-word")
    raw.answers = lambda first, headers, body: http(200, {"token": "T"} if "sign-in" in first else run_body())
    pytester.makeini("[pytest]\nagenteval_databases = shop = duckdb:///:memory:\n")
    cases = "".join(f"  - {{name: c{n}, prompt: n{n}, sql: SELECT 42 AS total}}\n" for n in range(4))
    pytester.mkdir("tests").joinpath("many.yml").write_text(f"budget: {{tokens: 35}}\ncases:\n{cases}")
    pytester.path.joinpath("tests", "other.yml").write_text("prompt: n\nsql: SELECT 42 AS total\n")
    result, entries = run(pytester, "--agent-target", f"nao:{raw.url}")
    assert result.ret == 1
    verdicts = {name: entry["verdict"] for name, entry in entries.items()}
    assert verdicts == {"c0": "passed", "c1": "passed", "c2": "not_run", "c3": "not_run", "other": "passed"}
    assert entries["c2"]["message"] == (
        "the budget of tests/many.yml allows no further attempt: 30 of 35 tokens used, the largest attempt "
        "took 15"
    )
