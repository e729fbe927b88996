"""Several models and an agent that never learns which one it is: said once, at the end of the run."""

from __future__ import annotations

import textwrap

import pytest

WARNING = (
    "warning: agent (conftest.py:{line}) takes (prompt) and is not told the model: the rows of 2 models are "
    "one agent's; take (task) and read task.model"
)
PLAIN = """
    import pytest

    def ask(prompt):
        return [{"n": 3}]

    @pytest.fixture
    def agent(tmp_path):
        return ask
"""
TASK = PLAIN.replace("ask(prompt)", "ask(task)")
MODEL = PLAIN.replace("agent(tmp_path)", "agent(agenteval_model)")
REQUEST = PLAIN.replace("agent(tmp_path)", "agent(client)") + (
    "\n    @pytest.fixture\n    def client(request, tmp_path): return request.node\n"
)
AUTOUSE = PLAIN + "\n    @pytest.fixture(autouse=True)\n    def told(agenteval_model): yield\n"


@pytest.fixture
def run(pytester: pytest.Pytester):
    pytester.makefile(".ini", pytest="[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    tests = pytester.mkdir("tests")
    for name in ("a", "b"):
        (tests / f"{name}.yml").write_text(f"prompt: {name}\nexpected: [{{n: 3}}]\n")

    def call(conftest: str, *words: str) -> list[str]:
        pytester.makeconftest(textwrap.dedent(conftest))
        start = pytester.runpytest_subprocess if "-n" in words else pytester.runpytest
        done = start("-p", "no:randomly", *words)
        assert done.ret == 0
        return [line for line in done.outlines if line.startswith("warning: ")]

    return call


@pytest.mark.parametrize("more", [(), ("-n", "2"), ("--agent-concurrency", "4")], ids=" ".join)
def test_an_agent_that_is_not_told_the_model_is_warned_of_once(run, more):
    assert run(PLAIN, "--agent-model", "a:one,a:two", *more) == [WARNING.format(line=3)]


def test_one_model_or_none_needs_no_warning(run):
    assert run(PLAIN) == []
    assert run(PLAIN, "--agent-model", "a:one") == []


@pytest.mark.parametrize(
    "conftest", [TASK, MODEL, REQUEST, AUTOUSE], ids=["task", "model", "request", "auto"]
)
def test_an_agent_that_can_know_its_model_is_not_warned_of(run, conftest):
    assert run(conftest, "--agent-model", "a:one,a:two") == []


def test_a_target_that_takes_the_prompt_is_warned_of_too(run, pytester):
    pytester.makepyfile(assistant="def ask(prompt):\n    return [{'n': 3}]\n")
    (warning,) = run("", "--agent-target", "python:assistant:ask", "--agent-model", "a:one,a:two")
    assert warning == WARNING.format(line=1).replace("conftest.py", "assistant.py")
