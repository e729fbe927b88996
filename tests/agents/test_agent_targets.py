"""From targets and fixtures to agents; which kind honours which case key."""

import functools
import importlib
import itertools
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_agenteval.agents.base import (
    CASE_FEATURES,
    UNSUPPORTED_KEYS,
    AgentContext,
    RunnableAgent,
    unsupported_keys,
)
from pytest_agenteval.agents.target_check import http_fault, target_fault
from pytest_agenteval.agents.targets import SCHEMES, adapt, make_agent, unsupported
from pytest_agenteval.cases.model import Case, Turn
from pytest_agenteval.config.options import TARGETS
from pytest_agenteval.config.project_file import Project, find_project
from pytest_agenteval.config.settings import resolve
from pytest_agenteval.errors import AgentFailed, SettingsError
from pytest_agenteval.types import Answer, Task

PLACE = "fixture 'agent' (conftest.py:4)"
DOCS = Path(__file__).parents[2] / "docs"


def case(**more):
    given = {"turns": (Turn("how many?"),), **more}
    return Case(path=Path("x.yml"), line=1, name="x", id="x", **given)


def takes_prompt(prompt):
    return prompt


def takes_task(task):
    return task.prompt


class Runs:
    def run(self, task: Task) -> Answer:
        return Answer(task.prompt)


class RunsPrompt:
    async def run(self, prompt: str) -> str:
        return prompt


class RunsUserPrompt:
    async def run(self, user_prompt=None, *, deps=None):
        return user_prompt


class Called:
    def __call__(self, question, *, verbose=False):
        return question


@pytest.mark.parametrize(
    ("obj", "kind"),
    [
        (takes_prompt, "prompt"),
        (takes_task, "task"),
        (lambda q: q, "prompt"),
        (lambda t, extra=1: t, "prompt"),
        (lambda *args: args[0], "prompt"),
        (functools.partial(lambda tenant, task: task.prompt, "acme"), "task"),
        (Runs(), "task"),
        (RunsPrompt(), "prompt"),
        (RunsUserPrompt(), "prompt"),
        (Called(), "prompt"),
        (print, "prompt"),
        (str.upper, "prompt"),
    ],
)
def test_callables_and_objects_are_agents(obj, kind):
    assert adapt(obj, PLACE).kind == kind


def test_an_annotation_says_what_is_taken():
    def one(t: Task):
        return ""

    def two(t: "pytest_agenteval.Task"):  # noqa: F821
        return ""

    assert adapt(one, PLACE).kind == adapt(two, PLACE).kind == "task"


def test_an_agent_that_is_one_already_is_passed_on():
    agent = adapt(takes_prompt, PLACE)
    assert adapt(agent, "elsewhere") is agent


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        (None, "gave None; expected a callable that takes (prompt) or (task), or an object with run(task)"),
        ("http://x", "gave a str; expected a callable"),
        (3, "gave an int; expected a callable"),
        (Runs, "gave the class Runs; expected a callable that takes (prompt) or (task), or an object with "
               "run(task); return an instance: Runs()"),
        (lambda: 1, "takes (); expected one argument: (prompt) or (task)"),
        (lambda a, b: 1, "takes (a, b); expected one argument: (prompt) or (task)"),
        (lambda prompt, *, key: 1, "takes (prompt, *, key); expected one argument"),
    ],
)  # fmt: skip
def test_another_type_is_an_error_that_names_the_fixture_and_the_type(obj, text):
    with pytest.raises(AgentFailed) as caught:
        adapt(obj, PLACE)
    assert str(caught.value).startswith(PLACE)
    assert text in str(caught.value)


def test_a_coroutine_says_that_async_fixtures_need_a_plugin():
    async def agent():
        return takes_prompt

    made = agent()
    with pytest.raises(AgentFailed, match=r"gave a coroutine; .*; an async fixture needs a plugin"):
        adapt(made, PLACE)
    made.close()


def test_the_place_of_an_agent_is_where_it_is_written():
    line = takes_prompt.__code__.co_firstlineno
    assert adapt(takes_prompt, "fixture 'agent'", Path(__file__).parent).place == (
        f"fixture 'agent' (test_agent_targets.py:{line})"
    )
    assert "test_agent_targets.py:" in adapt(Runs(), "x").place
    assert adapt(print, "x").place == "x"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "shop_agents.py").write_text(
        "def ask(prompt):\n    return prompt.upper()\n\n\n"
        "class Team:\n    def run(self, task):\n        return 'team'\n\n\nteam = Team()\nnumber = 3\n"
    )
    (tmp_path / "shop_broken.py").write_text("import nowhere_at_all\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield AgentContext(root=tmp_path)
    for name in ("shop_agents", "shop_broken"):
        sys.modules.pop(name, None)


def test_python_targets_are_found_with_the_root_folder_on_the_path(folder):
    agent = make_agent("python:shop_agents:ask", folder)
    assert (agent.kind, agent.name, agent.model_name) == (
        "prompt",
        "python:shop_agents:ask",
        "python:shop_agents:ask",
    )
    assert agent.place == "target python:shop_agents:ask (shop_agents.py:1)"
    assert agent.agent.run(Task(("x",))) == "X"
    assert make_agent("python:shop_agents:team.run", folder).kind == "task"


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("python:shop_agents:aks", "shop_agents has no 'aks', did you mean 'ask'?"),
        ("python:shop_agents:team.x.y", "shop_agents has no 'team.x.y'"),
        (
            "python:shop_agents:number",
            "target python:shop_agents:number gave an int; expected a callable",
        ),
        ("python:shop_agents:Team", "gave the class Team; "),
        (
            "python:shop_broken:x",
            "importing shop_broken failed: ModuleNotFoundError: No module named 'nowhere_at_all'",
        ),
    ],
)
def test_a_bad_python_target_says_what_is_wrong(folder, target, text):
    with pytest.raises(AgentFailed) as caught:
        make_agent(target, folder)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (
            "pyhton:x:y",
            "unknown target 'pyhton:x:y', did you mean 'python'? known: python:pkg.mod:name",
        ),
        ("zzzzz:x", "unknown target 'zzzzz:x'; known: python:pkg.mod:name, command:PROGRAM"),
        ("agent.py", "unknown target 'agent.py'; known:"),
    ],
)
def test_an_unknown_scheme_is_a_usage_error_with_what_is_known(target, text):
    with pytest.raises(SettingsError) as caught:
        make_agent(target)
    assert str(caught.value).startswith(text)


def test_every_scheme_has_its_module_and_its_form_in_the_options():
    assert set(TARGETS) == set(SCHEMES)
    for module in SCHEMES.values():
        assert callable(importlib.import_module(f"pytest_agenteval.agents.kinds.{module}").build)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            "pyhton:a:b",
            "--agent-target: 'pyhton:a:b' is not a target (did you mean python:?): python:pkg.mod:name",
        ),
        ("agent.py", "--agent-target: 'agent.py' is not a target: python:pkg.mod:name, command:PROGRAM"),
    ],
)
def test_an_unknown_scheme_is_refused_before_collection(given, text):
    with pytest.raises(SettingsError) as caught:
        resolve({"target": given}, {}, {}, {})
    assert str(caught.value).startswith(text)
    assert resolve({"target": "https://x/ask"}, {}, {}, {}).target == "https://x/ask"


FEATURE = {
    "turns": ({"turns": (Turn("a"), Turn("b"), Turn("c"))}, "(prompt has 3 turns)"),
    "as": ({"caller": "maya"}, "(as: maya)"),
    "approve": ({"approve": ("refund",)}, "(approve: refund)"),
    "clarification": ({"clarification": True}, "(clarification: true)"),
    "isolate": ({"isolate": True}, "(isolate: true)"),
    "input": (
        {"input": {"order": 1042, "why": "because it is a long story"}},
        "(input: {'order': 1042, 'why': 'because it is...)",
    ),
}


def stub(kind):
    return RunnableAgent(kind, kind, None, kind, unsupported_keys=unsupported_keys(kind))


@pytest.mark.parametrize(("kind", "key"), list(itertools.product(UNSUPPORTED_KEYS, CASE_FEATURES)))
def test_each_kind_honours_a_case_key_or_says_why_not(kind, key):
    given, shown = FEATURE[key]
    found = unsupported(stub(kind), case(**given))
    if key in UNSUPPORTED_KEYS[kind]:
        assert f"{UNSUPPORTED_KEYS[kind][key]} {shown}" in found
    else:
        assert found is None


def test_the_reasons_read_as_one_line():
    turns = (Turn("a"), Turn("b"), Turn("c"))
    assert (
        unsupported(stub("nao"), case(turns=turns)) == "nao: cannot hold a conversation (prompt has 3 turns)"
    )
    assert unsupported(stub("http"), case(isolate=True, approve=True)) == (
        "http: cannot be told which tools go ahead (approve: true); "
        "cannot be given a copy of the data (isolate: true)"
    )
    assert unsupported(adapt(takes_prompt, "fixture 'agent'"), case(turns=turns)).startswith(
        "the agent takes only a prompt: cannot hold a conversation (prompt has 3 turns); "
        "let fixture 'agent' ("
    )
    assert unsupported(stub("nao"), case()) is None
    assert unsupported(replace(stub("nao"), unsupported_keys={}), case(turns=turns)) is None


def test_a_prompt_callable_takes_the_input_of_a_case_without_prompt():
    agent = adapt(lambda q: q, PLACE)
    assert unsupported(agent, case(turns=(), input={"order": 1})) is None
    assert agent.agent.run(Task((), input={"order": 1})) == {"order": 1}


def test_a_prompt_callable_with_new_attempt_can_hold_a_conversation():
    class Chat(Called):
        def new_attempt(self):
            return Chat()

    assert unsupported(adapt(Chat(), PLACE), case(turns=(Turn("a"), Turn("b")))) is None


def test_the_table_in_the_docs_is_the_table_in_the_code():
    text = (DOCS / "agents.md").read_text(encoding="utf-8")
    names = {"task": "Python, `(task)`", "prompt": "Python, `(prompt)`", "nao": "`nao:` `dazense:` `pda:`"}
    for kind in UNSUPPORTED_KEYS:
        shown = names.get(kind, f"`{kind}:`")
        row = next(
            line for line in text.splitlines() if line.startswith(f"| {shown} |") and line.count("|") == 8
        )
        cells = [cell.strip() for cell in row.strip("|").split("|")][1:]
        assert [cell.startswith("no") for cell in cells] == [
            key in UNSUPPORTED_KEYS[kind] for key in CASE_FEATURES
        ], kind


# --- what is known before any case runs -------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "block", "fault"),
    [
        ("python:shop_agents", {}, "target python:shop_agents: expected python:pkg.mod:name"),
        # importing it would run the user's code
        ("python:nope:fn", {}, None),
        ("command:'x", {}, "target command:'x: No closing quotation"),
        ("command:", {}, "target command: names no program; for example command:python agent.py"),
        ("command:no-such-program-x", {}, "target command: there is no program 'no-such-program-x' on PATH"),
        ("command:target/built-by-a-fixture", {}, None),
        ("command:python agent.py", {}, None),
        ("replay:nosuch.jsonl", {}, "target replay:nosuch.jsonl: no file 'nosuch.jsonl' in {root}; record"),
        ("replay:there.jsonl", {}, None),
        ("http:http://localhost:1/x", {"sqll": "$.a"}, "http: unknown key 'sqll', did you mean 'sql'?"),
        ("https://localhost:1/x", {"rows": "$.a["}, "http.rows: '$.a[' is not a JSONPath: "),
        ("http:", {"url": "x"}, "http: no URL: expected --agent-target http:URL or http.url, "),
        ("http:", {"url": "http://localhost:1"}, None),
        ("nao:", {}, None),
        ("llm:", {}, None),
    ],
)
def test_what_is_wrong_with_a_target_is_known_before_a_case_runs(tmp_path, target, block, fault):
    (tmp_path / "there.jsonl").touch()
    project = Project(tmp_path, read_http=lambda: block)
    found = target_fault(target, project, root=tmp_path, present=True)
    assert (found or "").startswith((fault or "").replace("{root}", str(tmp_path)))
    assert (found is None) == (fault is None)
    if fault is not None and not fault.startswith("http"):
        lacking = target_fault(target, project, root=tmp_path, present=False)
        assert (lacking is None) == target.startswith(("replay:", "command:no-such"))


def test_a_fault_of_the_http_block_tells_no_secret_and_needs_no_variable(tmp_path):
    (tmp_path / "agenteval.yaml").write_text(
        "http:\n  url: \"{{ env('SHOP_URL') }}\"\n  text: \"{{ env('SHOP_PATH') }}\"\n"
    )
    assert http_fault(find_project(tmp_path, environ={}), "") is None
    found = http_fault(
        find_project(tmp_path, environ={"SHOP_URL": "h", "SHOP_PATH": "s3cret-path-x"}), "http://h"
    )
    assert found == "http.text: expected a JSONPath such as $.answer, found '***'"


HTTP = 'target: "http:http://127.0.0.1:9/ask"\nhttp:\n  body: {q: "{{ promt }}"}\n'
FAULT = "agenteval.yaml:2:1: http.body: unknown name 'promt' in a template, did you mean 'prompt'?"


@pytest.mark.parametrize("more", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_a_target_that_cannot_work_is_refused_before_collection(pytester, more):
    pytester.makefile(".yaml", agenteval=HTTP)
    (pytester.mkdir("tests") / "a.yml").write_text("prompt: x\nexpect: {text: x}\n")
    done = pytester.runpytest_subprocess(*more)
    assert done.ret == 4
    done.stderr.fnmatch_lines([f"ERROR: {FAULT.replace('?', '[?]')}"])
    asked = pytester.runpytest_subprocess("--agent-target", "command:no-such-program-x", *more)
    assert asked.ret == 4
    asked.stderr.fnmatch_lines(["ERROR: target command: there is no program 'no-such-program-x' on PATH"])
    # one that only lacks its program here may be meant for another machine: then its cases say so
    pytester.makefile(".yaml", agenteval="target: command:no-such-program-x\n")
    lacking = pytester.runpytest_subprocess(*more)
    lacking.assert_outcomes(errors=1)
    lacking.stdout.fnmatch_lines(["*error in stage agent: cannot start command no-such-program-x in *"])
    pytester.makefile(".yaml", agenteval="databases: {}\ntarget: python:nothing\n")
    formless = pytester.runpytest_subprocess(*more)
    assert formless.ret == 4
    formless.stderr.fnmatch_lines(
        ["ERROR: agenteval.yaml:2:1: target python:nothing: expected python:pkg.mod:name"]
    )
