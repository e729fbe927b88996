"""What a run says once at its end: why calls did not overlap, that nothing changed, where cases may lie."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Write = Callable[..., None]
ASKED = "agenteval: calls did not overlap: "
AGENT = "import pytest\n\n@pytest.fixture{scope}\ndef agent():\n    return lambda prompt: [{{'n': 1}}]\n"


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """Three cases, an agent of each case's own."""
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\nagenteval_k = 1\n")
    pytester.makeconftest(AGENT.format(scope=""))
    tests = pytester.mkdir("tests")
    for name in "abc":
        (tests / f"{name}.yml").write_text("prompt: One?\nexpected: [{n: 1}]\n")
    return pytester


def said(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if line.startswith("agenteval: ")]


def test_concurrency_that_does_nothing_says_why(suite: pytest.Pytester) -> None:
    assert said(suite.runpytest("--agent-concurrency", "3")) == [
        f'{ASKED}fixture agent (conftest.py:3) is made for each case; scope="session" lets them'
    ]
    suite.makeconftest(AGENT.format(scope="(scope='session')"))
    assert said(suite.runpytest("--agent-concurrency", "3")) == []
    assert said(suite.runpytest()) == []


def test_other_reasons_why_calls_do_not_overlap(suite: pytest.Pytester) -> None:
    suite.makeconftest(AGENT.format(scope="(scope='session')"))
    for name in "bc":
        (suite.path / "tests" / f"{name}.yml").write_text("prompt: One?\nexpected: [{n: 1}]\nisolate: true\n")
    assert said(suite.runpytest("--agent-concurrency", "3")) == [f"{ASKED}it has a setup or data of its own"]


def test_attempts_of_one_case_overlap(suite: pytest.Pytester) -> None:
    assert said(suite.runpytest("--agent-concurrency", "3", "--agent-k", "2")) == []


def test_under_xdist_cases_do_not_overlap(suite: pytest.Pytester) -> None:
    suite.makeconftest(AGENT.format(scope="(scope='session')"))
    assert said(suite.runpytest("--agent-concurrency", "3", "-n", "2")) == [
        f"{ASKED}under xdist only the attempts of one case do; leave out -n, or ask more often"
    ]


@pytest.mark.parametrize("more", [(), ("-n", "2")], ids=" ".join)
def test_nothing_changed_is_no_failure(suite: pytest.Pytester, more: tuple[str, ...]) -> None:
    suite.runpytest().assert_outcomes(passed=3)
    result = suite.runpytest("--agent-changed", *more)
    assert result.ret == 0
    assert said(result) == ["agenteval: nothing has changed since the last results: no case is asked"]
    (suite.path / "tests" / "a.yml").write_text("prompt: One?\nexpected: [{n: 2}]\n")
    result = suite.runpytest("--agent-changed", *more)
    assert result.ret == 1
    assert said(result) == []


@pytest.mark.parametrize("folder", ["evals", "test"])
@pytest.mark.parametrize("more", [(), ("-n", "2")], ids=" ".join)
def test_cases_in_another_folder_are_named(
    pytester: pytest.Pytester, folder: str, more: tuple[str, ...]
) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\nagenteval_k = 1\n")
    place = pytester.mkdir(folder)
    (place / "outputs").mkdir()
    for name in ("a.yml", "b.yml", "outputs/c.yml"):
        (place / name).write_text("prompt: One?\nexpected: [{n: 1}]\n")
    (place / "other.yml").write_text("a: 1\n")
    result = pytester.runpytest(*more)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert said(result) == [
        f"agenteval: no case was found, but {folder}/a.yml has 'prompt' and 'expected' (and 1 more like it); "
        "cases lie below a folder named tests, or are named in agenteval_files"
    ]


def test_without_pytests_python_plugin_there_are_no_items(suite: pytest.Pytester) -> None:
    result = suite.runpytest("-p", "no:python", "-p", "no:asyncio")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
