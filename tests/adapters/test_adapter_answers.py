"""Each adapter's answer, from results as the frameworks made them; none of these is imported here."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_agenteval.adapters import (
    anthropic,
    claude_agent,
    crewai,
    google_adk,
    langchain,
    llama_index,
    mcp,
    openai_agents,
    smolagents,
    vanna,
)
from pytest_agenteval.adapters.base import stopped, with_output
from pytest_agenteval.agents.kinds.python import FRAMEWORKS, adapt, framework_of
from pytest_agenteval.agents.normalize import normalize
from pytest_agenteval.types import Answer, ToolCall, Usage

SQL = "SELECT count(*) AS n FROM orders"
ARGS = {"sql": SQL}
ROWS = [{"n": 3}]
of = SimpleNamespace


def test_openai_agents_keep_a_tools_own_output_and_the_evidence_of_a_run_that_raised() -> None:
    usage = of(input_tokens=100, output_tokens=20, total_tokens=120)
    items = [
        of(type="tool_call_item", raw_item=of(type="function_call", call_id="c", name="run_sql",
                                              arguments='{"sql": "SELECT 1"}')),
        of(type="tool_call_output_item", raw_item={"call_id": "c", "output": "[{'n': 3}]"}, output=ROWS),
    ]  # fmt: skip
    result = of(
        new_items=items, raw_responses=[of(usage=usage), of(usage=usage)], final_output="Three.",
        last_agent=of(model="gpt-4.1"), to_input_list=lambda: [{"role": "user", "content": "?"}],
    )  # fmt: skip
    answer = normalize(openai_agents.answer(result))
    assert answer.tool_calls == (ToolCall("run_sql", {"sql": "SELECT 1"}, ROWS, id="c"),)
    assert answer.usage == Usage(input=200, output=40, total=240, model="gpt-4.1")
    assert (answer.text, answer.steps, len(answer.conversation)) == ("Three.", 2, 1)


def test_langchain_executors_texts_and_states() -> None:
    step = (of(tool="sql_db_query", tool_input={"query": SQL}), "[(3,)]")
    bad = (
        of(tool="sql_db_query", tool_input="SELECT nope"),
        "Error: (sqlite3.OperationalError) no such column",
    )
    answer = langchain.answer({"input": "?", "output": "Three.", "intermediate_steps": [step, bad]})
    assert answer.tool_calls[0] == ToolCall("sql_db_query", {"query": SQL}, "[(3,)]")
    assert answer.tool_calls[1].status == "error"
    assert answer.tool_calls[1].args == {"input": "SELECT nope"}
    assert langchain.answer("Three.").text == answer.text == "Three."
    assert langchain.answer(of(type="ai", content="Three.")).text == "Three."
    state = {"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "Three."}]}
    assert langchain.answer(state).text == "Three."


def test_a_final_output_is_text_rows_or_a_value() -> None:
    assert with_output(Answer(), ROWS).data == ROWS
    assert with_output(Answer(), 3) == Answer(text="3", value=3)
    assert with_output(Answer(text="said"), None).text == with_output(Answer(text="said"), "").text == "said"
    assert with_output(Answer(), {"explanation": "..."}).data is None
    assert with_output(Answer(), []).data is None


def test_the_call_that_raised_holds_the_error() -> None:
    done = (ToolCall("f", result=1), ToolCall("g"))
    error = stopped(ValueError("asleep"), Answer(tool_calls=done, usage=Usage(input=1)))
    assert str(error) == "ValueError: asleep"
    assert error.answer is not None
    assert error.answer.tool_calls == (done[0], ToolCall("g", error="ValueError: asleep", status="error"))


def test_anthropic_messages_go_into_the_next_turn_as_the_api_takes_them() -> None:
    block = of(type="tool_use", id="c", name="run_sql", input=ARGS, caller="direct")
    other = of(type="thinking", thinking="hm", model_dump=lambda exclude_none: {"type": "thinking"})
    reply = of(role="assistant", content=[other, block], usage=of(input_tokens=60, cache_read_input_tokens=40,
               cache_creation_input_tokens=0, output_tokens=20), model="m", model_dump=None)  # fmt: skip
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "[]"}]}
    answer = anthropic.answer([{"role": "user", "content": "?"}, reply, result])
    assert answer.conversation[1]["content"] == [
        {"type": "thinking"}, {"type": "tool_use", "id": "c", "name": "run_sql", "input": ARGS}
    ]  # fmt: skip
    assert answer.usage is not None
    assert answer.usage.input == 100
    assert answer.tool_calls[0].result == "[]"


def test_anthropics_runner_is_asked_with_the_tasks_model() -> None:
    from pytest_agenteval.errors import AgentFailed
    from pytest_agenteval.types import Task

    asked: dict[str, Any] = {}

    class Runner:
        def __iter__(self) -> Any:
            yield {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}],
            }
            raise ConnectionError("gone")

        def generate_tool_call_response(self) -> Any:
            return None

    def tool_runner(**options: Any) -> Runner:
        asked.update(options)
        return Runner()

    agent = anthropic.agent(of(beta=of(messages=of(tool_runner=tool_runner))), tools=[])
    with pytest.raises(AgentFailed, match="ConnectionError: gone") as caught:
        agent.run(Task(("how many?",), model="anthropic:claude-x"))
    assert asked["model"] == "claude-x"
    assert asked["messages"] == [{"role": "user", "content": "how many?"}]
    assert caught.value.answer is not None
    assert caught.value.answer.tool_calls[0].error == "ConnectionError: gone"


def test_a_resumed_claude_session_costs_the_difference() -> None:
    def done(cost: float | None) -> Any:
        usage = {"input_tokens": 60, "cache_read_input_tokens": 40, "output_tokens": 20}
        return of(subtype="success", total_cost_usd=cost, usage=usage, result="Three.", num_turns=2,
                  session_id="s", is_error=False)  # fmt: skip

    first = claude_agent.answer([done(0.02)])
    assert (first.cost, first.conversation) == (0.02, {"session": "s", "cost": 0.02})
    assert first.usage == Usage(input=100, output=20, cache_read=40)
    again = claude_agent.answer([done(0.05)], first.conversation)
    assert again.cost == pytest.approx(0.03)
    assert claude_agent.answer([done(0.01)], first.conversation).cost == 0.01  # a session of its own
    assert claude_agent.answer([done(None)]).cost is None
    assert claude_agent.answer([]).text == ""


def test_mcp_results_blocks_and_errors() -> None:
    text = of(type="text", text='[{"n": 3}]')
    assert mcp.tool_call("q", ARGS, of(content=[text], structuredContent={"result": ROWS})).result == {
        "result": ROWS
    }
    assert mcp.tool_call("q", ARGS, of(content=[text], isError=False)).result == '[{"n": 3}]'
    failed = mcp.tool_call("q", ARGS, of(content=[of(text="no such column")], isError=True))
    assert (failed.status, failed.error, failed.result) == ("error", "no such column", None)
    assert mcp.tool_call("q", ARGS, of(content=[], is_error=True)).error == "the tool failed"
    assert mcp.tool_call("q", ARGS, of(content=[of(text="Error executing tool q: no")])).status == "error"


def test_an_mcp_session_keeps_its_calls() -> None:
    class Session:
        name = "shop"

        async def call_tool(self, name: str, arguments: Any) -> Any:
            if name == "broken":
                raise RuntimeError("gone")
            return of(content=[of(text="3")])

    session = mcp.recorded(Session())
    asyncio.run(session.call_tool("count", {}))
    with pytest.raises(RuntimeError):
        asyncio.run(session.call_tool("broken", {}))
    assert [(call.name, call.result, call.error) for call in session.calls] == [
        ("count", "3", None), ("broken", None, "gone")
    ]  # fmt: skip
    assert session.name == "shop"


class Response(SimpleNamespace):
    def __str__(self) -> str:
        return "Three."


def test_llama_index_engines_and_workflows() -> None:
    table = {"columns": ["n"], "rows": [[3]]}
    metadata = {"sql_query": SQL, "result": [(3,)], "col_keys": ["n"]}
    assert llama_index.answer(Response(metadata=metadata)).tool_calls == (
        ToolCall("execute_sql", ARGS, table),
    )
    broken = Response(metadata={"sql_query": SQL}, source_nodes=[of(text="Error: no such column")])
    assert llama_index.answer(broken).tool_calls[0].error == "Error: no such column"
    assert llama_index.answer(Response(metadata=None)).tool_calls == ()

    class AgentOutput(SimpleNamespace):
        pass

    output = AgentOutput(
        response=of(role="assistant", content="Three.", blocks=[]), current_agent_name="a",
        raw=of(usage=of(prompt_tokens=100, completion_tokens=20, total_tokens=120), model="gpt-4.1"),
    )  # fmt: skip
    piece = of(response="Thr", current_agent_name="a", raw=output.raw)
    ran = of(tool_name="q", tool_kwargs=ARGS, tool_id="c", tool_output=of(raw_output=ROWS, is_error=False))
    bad = of(tool_name="q", tool_kwargs=ARGS, tool_id="d", tool_output=of(content="no", is_error=True))
    answer = llama_index.from_events([piece, ran, bad, output])
    assert (answer.text, answer.steps) == ("Three.", 1)
    assert answer.usage == Usage(input=100, output=20, total=120, model="gpt-4.1")
    assert [(call.result, call.error) for call in answer.tool_calls] == [(ROWS, None), (None, "no")]


def test_smolagents_steps_failed_steps_and_code() -> None:
    tokens = of(input_tokens=100, output_tokens=20, total_tokens=120)
    ran = of(tool_calls=[of(name="q", arguments=ARGS, id="c")], observations="[{'n': 3}]", token_usage=tokens)
    call = of(id="d", function=of(name="q", arguments='{"sql": "SELECT nope"}'))
    bad = of(tool_calls=None, model_output_message=of(tool_calls=[call]), error=of(message="no such column"),
             token_usage=tokens)  # fmt: skip
    code = "rows = q(sql='SELECT 1')\nprint(len(rows))\nq('SELECT 2')\nq(rows)\nfinal_answer('x')"
    wrote = of(tool_calls=[of(name="python_interpreter", arguments=code, id="e")], observations="...")
    last = of(tool_calls=[of(name="final_answer", arguments={"answer": "x"}, id="f")], observations="x")
    unread = of(tool_calls=[of(name="python_interpreter", arguments="not code(", id="g")])
    answer = smolagents.answer("Three.", [ran, bad, wrote, last, unread], "gpt-4.1")
    assert [(c.args, c.result, c.error) for c in answer.tool_calls] == [
        (ARGS, "[{'n': 3}]", None), ({"sql": "SELECT nope"}, None, "no such column"),
        ({"sql": "SELECT 1"}, None, None), ({"sql": "SELECT 2"}, None, None),
    ]  # fmt: skip
    assert answer.usage == Usage(input=200, output=40, total=240, model="gpt-4.1")


def test_vannas_calls_get_the_tables_that_it_shows_and_the_state_of_their_cards() -> None:
    def card(id: str, status: str) -> Any:
        return of(rich_component=of(id=id, title="Executing run_sql", status=status))

    wrong = of(id="a", name="run_sql", arguments={"sql": "SELECT nope"})
    right = of(id="b", name="run_sql", arguments=ARGS)
    shown = of(rich_component=of(rows=[{"n": 3}], columns=["n"]))
    messages = [
        of(role="user", content="?", tool_calls=None, tool_call_id=None),
        of(role="assistant", content="", tool_calls=[wrong], tool_call_id=None),
        of(role="tool", content="no such column: nope", tool_calls=None, tool_call_id="a"),
        of(role="assistant", content="", tool_calls=[right], tool_call_id=None),
        of(role="tool", content="Results truncated", tool_calls=None, tool_call_id="b"),
        of(role="assistant", content="Three.", tool_calls=None, tool_call_id=None),
    ]  # fmt: skip
    components = [card("1", "running"), card("1", "error"), card("2", "running"), shown, card("2", "success")]
    answer = vanna.answer(messages, components)
    assert answer.text == "Three."
    assert [(c.result, c.error) for c in answer.tool_calls] == [
        (None, "no such column: nope"), ({"columns": ["n"], "rows": [[3]]}, None)
    ]  # fmt: skip


def test_google_adk_leaves_the_pieces_of_a_stream_out() -> None:
    usage = of(prompt_token_count=100, candidates_token_count=20, total_token_count=120)
    asked = of(function_call=of(name="q", args=ARGS, id="c"))
    call = of(content=of(role="model", parts=[asked]), partial=None,
              usage_metadata=usage, model_version="gemini-2.5-flash")  # fmt: skip
    response = of(function_response=of(name="q", id="c", response={"rows": ROWS}))
    result = of(content=of(role="user", parts=[response]), partial=None)
    piece = of(content=of(role="model", parts=[of(text="Thr")]), partial=True)
    said = of(content=of(role="model", parts=[of(text="Three.")]), partial=False)
    answer = google_adk.answer([call, result, piece, said])
    assert answer.text == "Three."
    assert answer.tool_calls == (ToolCall("q", ARGS, {"rows": ROWS}, id="c"),)
    assert answer.usage == Usage(input=100, output=20, total=120, model="gemini-2.5-flash")


def test_a_crew_counts_all_its_runs_and_this_one_is_the_difference() -> None:
    ran = of(tool_name="q", tool_args=ARGS, output="[{'n': 3}]", started_at=1)
    bad = of(tool_name="q", tool_args=ARGS, error=ValueError("no such column"), started_at=2)
    told = of(tool_name="q", tool_args=ARGS, output="", failure="refused", started_at=3)
    counted = of(prompt_tokens=300, completion_tokens=60, total_tokens=360)
    answer = crewai.answer(
        of(raw="Three.", token_usage=counted), [told, bad, ran], Usage(input=100, output=20, total=120)
    )
    assert answer.usage == Usage(input=200, output=40, total=240)
    assert [(c.result, c.error) for c in answer.tool_calls] == [
        ("[{'n': 3}]", None), (None, "no such column"), (None, "refused")
    ]  # fmt: skip


@pytest.mark.parametrize(("module", "name", "adapter"), FRAMEWORKS)
def test_an_object_of_a_framework_is_known_by_its_classes_names(module: str, name: str, adapter: str) -> None:
    theirs = type(name, (), {"__module__": f"{module}.core" if module != "agents.agent" else module})
    users = type("Mine", (theirs,), {"__module__": "tests.agents"})
    assert framework_of(theirs()) == framework_of(users()) == adapter
    agent = adapt(users(), "fixture agent")
    assert agent.name == "Mine"
    assert type(agent.agent.call.__self__).__module__ == f"pytest_agenteval.adapters.{adapter}"


def test_a_users_own_class_is_no_frameworks() -> None:
    class Agent:
        def run(self, task: Any) -> str:
            return "3"

    Agent.__module__ = "agents"
    assert framework_of(Agent()) is None
    base = type("Agent", (), {"__module__": "agents.agent"})
    assert framework_of(type("Own", (base,), {"run": Agent.run})()) is None


def test_adapters_import_no_framework() -> None:
    code = (
        "import sys, pkgutil, importlib, pytest_agenteval.adapters as a\n"
        "before = set(sys.modules)\n"
        "for m in pkgutil.iter_modules(a.__path__): importlib.import_module(f'{a.__name__}.{m.name}')\n"
        "new = {n.partition('.')[0] for n in set(sys.modules) - before}\n"
        "print(sorted(new - set(sys.stdlib_module_names)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in ("['pytest_agenteval']", "[]")
