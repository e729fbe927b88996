"""The one reader of message lists, on messages as the APIs and frameworks gave them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_agenteval.adapters.messages import read_messages, says_failed
from pytest_agenteval.adapters.usage import read_usage, spent_since
from pytest_agenteval.types import ToolCall, Usage

SQL = "SELECT count(*) AS n FROM orders"
ROWS = '[{"n": 3}]'
ARGS = {"sql": SQL}
TEXT = "There are three."

OPENAI_CHAT = [
    {"role": "system", "content": "You are an analyst."},
    {"role": "user", "content": "How many orders?"},
    {
        "choices": [
            {
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "c1",
                            "type": "function",
                            "function": {"name": "run_sql", "arguments": json.dumps(ARGS)},
                        }
                    ],
                }
            }
        ],
        "model": "gpt-4.1",
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 40},
            "completion_tokens_details": {"reasoning_tokens": 5},
        },
    },
    {"role": "tool", "tool_call_id": "c1", "content": ROWS},
    {"role": "assistant", "content": TEXT},
]
OPENAI_RESPONSES = [
    {"role": "user", "content": "How many orders?"},
    {
        "output": [
            {"type": "reasoning", "id": "r1", "summary": []},
            {"type": "function_call", "call_id": "c1", "name": "run_sql", "arguments": json.dumps(ARGS)},
        ],
        "model": "gpt-4.1",
        "usage": {
            "input_tokens": 100,
            "output_tokens": 20,
            "total_tokens": 120,
            "input_tokens_details": {"cached_tokens": 40},
            "output_tokens_details": {"reasoning_tokens": 5},
        },
    },
    {"type": "function_call_output", "call_id": "c1", "output": ROWS},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": TEXT}]},
]
ANTHROPIC = [
    {"role": "user", "content": "How many orders?"},
    {
        "role": "assistant",
        "model": "gpt-4.1",
        "content": [
            {"type": "text", "text": "I will look."},
            {"type": "tool_use", "id": "c1", "name": "run_sql", "input": ARGS},
        ],
        "usage": {"input_tokens": 60, "cache_read_input_tokens": 40, "output_tokens": 20},
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": ROWS}]},
    {"role": "assistant", "content": [{"type": "text", "text": TEXT}]},
]
GEMINI = [
    {"role": "user", "parts": [{"text": "How many orders?"}]},
    {
        "candidates": [
            {"content": {"role": "model", "parts": [{"functionCall": {"name": "run_sql", "args": ARGS}}]}}
        ],
        "usageMetadata": {
            "promptTokenCount": 100,
            "candidatesTokenCount": 15,
            "thoughtsTokenCount": 5,
            "cachedContentTokenCount": 40,
            "totalTokenCount": 120,
        },
        "modelVersion": "gpt-4.1",
    },
    {"role": "user", "parts": [{"functionResponse": {"name": "run_sql", "response": {"result": ROWS}}}]},
    {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": TEXT}]},
]
LANGCHAIN = [
    SimpleNamespace(type="human", content="How many orders?"),
    SimpleNamespace(
        type="ai",
        content="",
        tool_calls=[{"name": "run_sql", "args": ARGS, "id": "c1", "type": "tool_call"}],
        usage_metadata={
            "input_tokens": 100,
            "output_tokens": 20,
            "total_tokens": 120,
            "input_token_details": {"cache_read": 40},
            "output_token_details": {"reasoning": 5},
        },
        response_metadata={"model_name": "gpt-4.1", "finish_reason": "tool_calls"},
    ),
    SimpleNamespace(type="tool", content=ROWS, tool_call_id="c1", name="run_sql", status="success"),
    SimpleNamespace(type="ai", content=TEXT, tool_calls=[], response_metadata={"finish_reason": "stop"}),
]
PYDANTIC_AI = [
    {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "How many orders?"}]},
    {
        "kind": "response",
        "parts": [
            {"part_kind": "tool-call", "tool_name": "run_sql", "args": json.dumps(ARGS), "tool_call_id": "c1"}
        ],
        "model_name": "gpt-4.1",
        "usage": {"input_tokens": 100, "cache_read_tokens": 40, "output_tokens": 20},
    },
    {
        "kind": "request",
        "parts": [
            {"part_kind": "tool-return", "tool_name": "run_sql", "content": ROWS, "tool_call_id": "c1"}
        ],
    },
    {"kind": "response", "parts": [{"part_kind": "text", "content": TEXT}]},
]


@dataclass
class AssistantMessage:
    """As in the Claude Agent SDK, whose blocks have no type."""

    content: list[Any] = field(default_factory=list)
    model: str = "gpt-4.1"
    usage: Any = None


@dataclass
class UserMessage:
    """The same."""

    content: Any = None


CLAUDE_AGENT = [
    UserMessage("How many orders?"),
    AssistantMessage(
        [SimpleNamespace(id="c1", name="run_sql", input=ARGS)],
        usage={"input_tokens": 60, "cache_read_input_tokens": 40, "output_tokens": 20},
    ),
    UserMessage([SimpleNamespace(tool_use_id="c1", content=ROWS, is_error=None)]),
    AssistantMessage([SimpleNamespace(text=TEXT)]),
]
LLAMA_INDEX = [
    SimpleNamespace(
        role="user", blocks=[{"block_type": "text", "text": "How many orders?"}], content="How many?"
    ),
    SimpleNamespace(
        role="assistant",
        content="",
        blocks=[],
        additional_kwargs={"tool_calls": OPENAI_CHAT[2]["choices"][0]["message"]["tool_calls"]},
        usage=OPENAI_CHAT[2]["usage"],
        model="gpt-4.1",
    ),
    SimpleNamespace(role="tool", content=ROWS, blocks=[], additional_kwargs={"tool_call_id": "c1"}),
    SimpleNamespace(role="assistant", content=TEXT, blocks=[{"block_type": "text", "text": TEXT}]),
]
FAMILIES = {
    "openai chat": OPENAI_CHAT,
    "openai responses": OPENAI_RESPONSES,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "langchain": LANGCHAIN,
    "pydantic-ai": PYDANTIC_AI,
    "claude agent": CLAUDE_AGENT,
    "llama-index": LLAMA_INDEX,
}


@pytest.mark.parametrize("family", list(FAMILIES))
def test_calls_results_text_and_tokens_of_every_family(family: str) -> None:
    answer = read_messages(FAMILIES[family])
    assert answer.text == TEXT
    (call,) = answer.tool_calls
    assert (call.name, call.args, call.status, call.error) == ("run_sql", ARGS, "ok", None)
    assert call.result == ({"result": ROWS} if family == "gemini" else ROWS)
    assert answer.usage is not None
    used = answer.usage
    assert (used.input, used.output, used.cache_read, used.tokens) == (100, 20, 40, 120)
    assert used.model == "gpt-4.1"


@pytest.mark.parametrize("family", list(FAMILIES))
def test_earlier_turns_are_no_evidence_of_the_last_one(family: str) -> None:
    messages = FAMILIES[family]
    start = 1 if family == "openai chat" else 0
    again = [*messages, *messages[start:]]
    assert len(read_messages(again).tool_calls) == 1
    both = read_messages(again, last_turn=False)
    # ids say that a call is the same one; Gemini's have none
    assert both.usage is not None
    assert both.usage.input == 200
    assert read_messages([*messages, messages[start]]).tool_calls == ()


ERROR = "Error: no such column"
FAILED = {
    "openai chat": [OPENAI_CHAT[2], {"role": "tool", "tool_call_id": "c1", "content": ERROR}],
    "anthropic": [
        ANTHROPIC[1],
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "is_error": True,
             "content": [{"type": "text", "text": "Error: no such column"}]}
        ]},
    ],
    "gemini": [
        GEMINI[1],
        {"role": "user", "parts": [
            {"functionResponse": {"name": "run_sql", "response": {"error": "Error: no such column"}}}
        ]},
    ],
    "langchain": [
        LANGCHAIN[1],
        SimpleNamespace(type="tool", content="Error: no such column", tool_call_id="c1", status="error"),
    ],
    "pydantic-ai": [
        PYDANTIC_AI[1],
        {"kind": "request", "parts": [
            {"part_kind": "retry-prompt", "tool_name": "run_sql", "tool_call_id": "c1",
             "content": "Error: no such column"}
        ]},
    ],
    "openai mcp": [
        {"type": "mcp_call", "id": "c1", "name": "run_sql", "arguments": "{}", "error": ERROR}
    ],
}  # fmt: skip


@pytest.mark.parametrize("family", list(FAILED))
def test_a_failed_tool_is_an_error_whatever_says_so(family: str) -> None:
    (call,) = read_messages(FAILED[family], last_turn=False).tool_calls
    assert (call.status, call.error, call.result) == ("error", "Error: no such column", None)


@pytest.mark.parametrize(
    "said",
    [
        "Error: (sqlite3.OperationalError) no such column: nope",
        "An error occurred while running the tool. Please try again. Error: no such column",
        "Error executing tool run_sql: Binder Error",
        "Error calling tool 'run_sql': no such column",
        "OperationalError: no such table",
        "(sqlite3.OperationalError): no such column",
        "duckdb.BinderException: Binder Error: Referenced column",
        "Traceback (most recent call last):\n  File",
        [{"type": "text", "text": "Error executing tool run_sql: no"}],
    ],
)
def test_text_that_begins_as_an_error_is_one(said: Any) -> None:
    assert says_failed(said)


@pytest.mark.parametrize(
    "said",
    ["error,count\n500,3", "errors\n3", '[{"error": "timeout", "n": 3}]', "There was no error: fine", "",
     None, 3, "Erroneous orders: 3", [("Error", 3), ("Warning", 2)]],
)  # fmt: skip
def test_a_result_that_speaks_of_errors_is_none(said: Any) -> None:
    assert says_failed(said) is None


def test_a_result_without_a_known_call_is_a_call_of_its_own_and_odd_messages_are_passed_over() -> None:
    messages = [
        None, "text", 3, {}, {"role": "assistant"}, {"role": "assistant", "content": [{"type": "image"}]},
        {"role": "tool", "name": "run_sql", "content": ROWS}, {"role": "tool", "content": "lost"},
        {"kind": "request", "parts": [{"part_kind": "retry-prompt", "content": "say it in JSON"}]},
        {"role": "assistant", "tool_calls": [{"id": "x", "function": {}}]},
        {"role": "assistant", "tool_calls": [{"id": "y", "function": {"name": "f", "arguments": "{broken"}}]},
    ]  # fmt: skip
    answer = read_messages(messages)
    assert answer.tool_calls == (ToolCall("run_sql", result=ROWS), ToolCall("f", "{broken", id="y"))
    assert (answer.text, answer.usage) == ("", None)


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ({"input_tokens": 60, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 10,
          "output_tokens": 5},
         Usage(input=100, output=5, cache_read=30, cache_write=10)),
        (SimpleNamespace(prompt_tokens=7, completion_tokens=1, cached_prompt_tokens=2, total_tokens=8),
         Usage(input=7, output=1, cache_read=2, total=8)),
        ({"input_tokens": 4}, Usage(input=4)),
        ({"requests": 1}, None),
        (None, None),
        ({"input_tokens": True, "output_tokens": "5"}, None),
    ],
)  # fmt: skip
def test_token_counts_of_every_provider(counts: Any, usage: Usage | None) -> None:
    assert read_usage(counts) == usage


def test_a_counter_that_is_never_set_back_gives_the_difference() -> None:
    first, second = Usage(input=100, output=20, total=120), Usage(input=300, output=50, total=350, model="m")
    assert spent_since(second, first) == Usage(input=200, output=30, total=230, model="m")
    assert spent_since(first, None) == first
    assert spent_since(None, first) is None
