"""An agent that is not there stops being asked; the cases left are not run, and one line says so."""

from __future__ import annotations

import json

import pytest

HTTP = """
target: http:http://127.0.0.1:{port}/ask
http:
  body: {{question: "{{{{ prompt }}}}"}}
  headers: {{Authorization: "{{{{ env('SHOP_TOKEN') }}}}"}}
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\nagenteval_retries = 0\n")
    tests = pytester.mkdir("tests")
    for number in range(6):
        (tests / f"c{number}.yml").write_text("prompt: One?\nexpected: [{n: 1}]\n")
    (tests / "test_other.py").write_text("def test_other(): pass\n")
    return pytester


def note_of(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if line.startswith("agenteval: agent unreachable")]


def verdicts(suite: pytest.Pytester) -> list[str]:
    (file,) = (suite.path / "tests" / "outputs").glob("results_*.json")
    return [entry["verdict"] for entry in json.loads(file.read_text())["results"]]


@pytest.mark.parametrize("token", ["x", None])
def test_a_server_that_is_down_or_a_missing_key_is_asked_three_times(
    suite: pytest.Pytester, token: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if token is not None:
        monkeypatch.setenv("SHOP_TOKEN", token)
    suite.path.joinpath("agenteval.yaml").write_text(HTTP.format(port=9))
    result = suite.runpytest("-rs")
    result.assert_outcomes(errors=3, skipped=3, passed=1)
    assert result.ret == 1
    assert note_of(result) == ["agenteval: agent unreachable, 3 not run (first tests/c3.yml::c3)"]
    assert verdicts(suite) == ["error"] * 3 + ["not_run"] * 3
    result.stdout.fnmatch_lines(["*not asked: the agent could not be reached 3 times in a row (*"])


def test_an_agent_that_raises_something_else_is_asked_for_every_case(suite: pytest.Pytester) -> None:
    suite.makeconftest(
        "import pytest\n@pytest.fixture\ndef agent():\n    def ask(prompt):\n"
        "        raise ValueError('no such table')\n    return ask\n"
    )
    result = suite.runpytest()
    result.assert_outcomes(errors=6, passed=1)
    assert note_of(result) == []


def test_errors_that_do_not_follow_each_other_stop_nothing(suite: pytest.Pytester) -> None:
    suite.makeconftest(
        "import itertools, pytest\ncount = itertools.count(1)\n"
        "@pytest.fixture(scope='session')\ndef agent():\n    def ask(prompt):\n"
        "        if next(count) % 3:\n            raise ConnectionRefusedError('nobody there')\n"
        "        return [{'n': 1}]\n    return ask\n"
    )
    result = suite.runpytest()
    result.assert_outcomes(errors=4, passed=3)
    assert note_of(result) == []


def test_a_python_agent_whose_server_is_gone_is_given_up(suite: pytest.Pytester) -> None:
    suite.makeconftest(
        "import pytest\nclass APIConnectionError(Exception): pass\n"
        "@pytest.fixture\ndef agent():\n    def ask(prompt):\n"
        "        raise RuntimeError('model') from APIConnectionError('Connection error.')\n    return ask\n"
    )
    result = suite.runpytest()
    result.assert_outcomes(errors=3, skipped=3, passed=1)


def test_each_model_is_given_up_for_itself(suite: pytest.Pytester) -> None:
    suite.makeconftest(
        "import pytest\n@pytest.fixture\ndef agent():\n    def ask(task):\n"
        "        if task.model == 'a:gone':\n            raise ConnectionError('gone')\n"
        "        return [{'n': 1}]\n    return ask\n"
    )
    result = suite.runpytest("--agent-model", "a:gone,a:there")
    result.assert_outcomes(errors=3, skipped=3, passed=7)
    assert note_of(result) == ["agenteval: agent unreachable, 3 not run (first tests/c3.yml::c3[a:gone])"]
