"""Our client, analyst and extraction with a real model. It is weak: what counts is that every verdict has
its reason, nothing crashes and nothing hangs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_agenteval.llm.client import Models
from pytest_agenteval.llm.http_client import HttpClient

pytestmark = [pytest.mark.llm, pytest.mark.timeout(7200)]

NAME = "qwen2.5-coder-1.5b"
STYLES = ("openai", "anthropic")
LIMIT = int(os.environ.get("AGENTEVAL_TEST_LLM_CASES", "1000"))
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "country": {"type": "string"}},
    "required": ["city", "country"],
    "additionalProperties": False,
}


def environ(url: str) -> dict[str, str]:
    return {**os.environ, "OPENAI_BASE_URL": f"{url}/v1", "ANTHROPIC_BASE_URL": url}


@pytest.mark.parametrize("style", STYLES)
def test_text_schema_and_tools(model_url: str, style: str) -> None:
    wire = HttpClient()
    model = Models(wire, environ=environ(model_url)).get(f"{style}:{NAME}")
    done = model.complete([{"role": "user", "content": "Say hello."}], max_tokens=20)
    assert done.text
    assert done.usage is not None
    assert done.usage.input
    assert done.usage.output
    assert done.usage.output <= 21
    assert done.cost is None
    ask = [{"role": "user", "content": "The capital of France and its country, as JSON."}]
    said = json.loads(model.complete(ask, schema=SCHEMA, max_tokens=100).text)
    assert said["city"] == "Paris"
    tool = {
        "name": "execute_sql",
        "description": "Run one SELECT statement.",
        "parameters": {
            "type": "object",
            "properties": {"sql_query": {"type": "string"}},
            "required": ["sql_query"],
        },
    }
    talk: list[dict[str, Any]] = [
        {"role": "system", "content": "Use the tool execute_sql on the table orders(amount)."},
        {"role": "user", "content": "How many orders are there?"},
    ]
    asked = model.complete(talk, tools=[tool], max_tokens=200)
    assert asked.tool_calls, asked.text
    call = asked.tool_calls[0]
    talk.append({"role": "assistant", "content": asked.text, "tool_calls": asked.tool_calls})
    talk += [
        {"role": "tool", "tool_call_id": c.id, "content": '1 rows:\n["n"]\n[17]'} for c in asked.tool_calls
    ]
    talk.append({"role": "user", "content": "Answer now, in one sentence."})
    last = model.complete(talk, max_tokens=100)
    wire.close()
    assert call.name == "execute_sql"
    assert "17" in last.text


def run(folder: Path, url: str, *options: str) -> list[dict[str, Any]]:
    """A run over at most LIMIT cases; its results."""
    files = [str(path.relative_to(folder)) for path in sorted(folder.rglob("tests/**/*.yml"))][:LIMIT]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:asyncio", *options, *files]
    done = subprocess.run(command, cwd=folder, env=environ(url), capture_output=True, text=True, timeout=7000)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    newest = max((folder / "tests" / "outputs").glob("results_*.json"), key=lambda path: path.stat().st_mtime)
    results: list[dict[str, Any]] = json.loads(newest.read_text())["results"]
    explained(results)
    return results


def explained(results: list[dict[str, Any]]) -> None:
    """Every verdict has its reason, and none is a defect of ours. Prints the table."""
    for result in results:
        print(
            f"{result['name'][:40]:40} {result['verdict']:8} {result['tokens'] or 0:7,} tokens "
            f"{result['duration_ms'] / 1000:6.1f} s  {result['message'].splitlines()[0][:90]}"
        )
        assert result["verdict"] in ("passed", "failed", "error", "review")
        assert result["message"]
        assert "internal error" not in result["message"]
        if result["verdict"] == "error":
            assert result["stage"] in ("agent", "timeout", "extraction", "checks")
    right = sum(result["verdict"] == "passed" for result in results)
    print(f"{right} of {len(results)} passed")


@pytest.mark.parametrize("style", STYLES)
def test_the_analyst_over_the_example(model_url: str, jaffle: Path, style: str) -> None:
    results = run(jaffle, model_url, "--agent-target", "llm:", "--agent-model", f"{style}:{NAME}")
    assert any(result["tool_call_count"] for result in results)


@pytest.mark.parametrize("style", STYLES)
def test_the_analyst_over_defog(model_url: str, defog: Path, style: str) -> None:
    options = ("--agent-target", "llm:", "--agent-model", f"{style}:{NAME}")
    asked = run(defog, model_url, *options, "--agent-record", f"{style}.jsonl")
    assert any(result["verdict"] == "passed" for result in asked)
    assert any(result["tool_call_count"] for result in asked)


@pytest.mark.parametrize("how", ["query", "json"])
def test_extraction_from_what_it_said(model_url: str, defog: Path, how: str) -> None:
    """In OpenAI style, whose grammar holds this model to the schema: else it writes until its deadline."""
    recorded = defog / "openai.jsonl"
    assert recorded.exists(), "the test of the analyst records what this one replays: run both"
    options = ("--agent-target", f"replay:{recorded.name}", "--agent-extract", how)
    again = run(defog, model_url, *options, "--agent-extract-model", f"openai:{NAME}")
    assert len(again) == min(20, LIMIT)
