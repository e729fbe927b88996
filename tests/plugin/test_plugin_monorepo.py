"""Several projects in one repository: the nearest project file counts, and one that was not read is named."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from pytest_agenteval.cli import main

AGENT = "def ask(prompt):\n    return [{'n': 3}]\n"
PROJECT = "target: python:helper_agent:ask\ndatabases:\n  shop: duckdb:///shop.duckdb\n"


@pytest.fixture
def mono(pytester: pytest.Pytester) -> pytest.Pytester:
    """A repository with a pytest config at its top and a project in ``services/agent``."""
    pytester.makeini("[pytest]\ntestpaths = tests\nasyncio_default_fixture_loop_scope = function\n")
    pytester.mkdir("tests").joinpath("test_top.py").write_text("def test_top(): pass\n")
    home = pytester.path / "services" / "agent"
    (home / "tests").mkdir(parents=True)
    (home / "agenteval.yaml").write_text(PROJECT)
    (home / "helper_agent.py").write_text(AGENT)
    (home / "tests" / "one.yml").write_text("prompt: How many?\nsql: SELECT n FROM t\n")
    with duckdb.connect(str(home / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 3 AS n")
    return pytester


def unbroken(text: str) -> str:
    """A text without blanks and line ends: where it is wrapped depends on the folder's name."""
    return "".join(text.split())


def home_of(mono: pytest.Pytester) -> Path:
    return mono.path / "services" / "agent"


@pytest.mark.parametrize("more", [(), ("-n", "2")], ids=" ".join)
@pytest.mark.parametrize("words", [(), ("tests",), ("tests/one.yml::one",)], ids=" ".join)
def test_in_the_folder_of_a_project_its_file_counts(
    mono: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], more: tuple[str, ...]
) -> None:
    monkeypatch.chdir(home_of(mono))
    result = mono.runpytest(*words, *more)
    assert result.ret == 0, result.stdout.str()
    result.assert_outcomes(passed=1)
    assert len(list((home_of(mono) / "tests" / "outputs").glob("results_*.json"))) == 1
    assert not (mono.path / "tests" / "outputs").exists()


def test_a_path_into_a_project_makes_its_file_count(mono: pytest.Pytester) -> None:
    mono.runpytest("services/agent/tests").assert_outcomes(passed=1)
    assert (home_of(mono) / "tests" / "outputs").is_dir()


def test_the_project_is_the_one_nearest_to_the_cases(mono: pytest.Pytester) -> None:
    mono.path.joinpath("agenteval.yaml").write_text("target: python:nobody:ask\n")
    mono.runpytest("services/agent/tests/one.yml").assert_outcomes(passed=1)


def test_from_the_top_the_file_that_was_not_read_is_named(mono: pytest.Pytester) -> None:
    result = mono.runpytest("services/agent/tests", "tests")
    result.assert_outcomes(passed=1, errors=1)
    assert unbroken(
        "services/agent/agenteval.yaml was seen but not read: this run's project file is none, its rootdir "
        f"{mono.path}; run pytest in services/agent, or with --rootdir=services/agent"
    ) in unbroken(result.stdout.str())
    assert "taken for a case" not in result.stdout.str()


def test_a_database_of_the_file_that_was_not_read(mono: pytest.Pytester) -> None:
    mono.makeconftest("import pytest\n@pytest.fixture\ndef agent():\n    return lambda p: [{'n': 3}]\n")
    mono.path.joinpath("agenteval.yaml").write_text("test: {k: 1}\n")
    said = (
        "services/agent/agenteval.yaml was seen but not read: this run's project file is agenteval.yaml, its "
        f"rootdir {mono.path}; run pytest in services/agent, or with --rootdir=services/agent"
    )
    result = mono.runpytest("services/agent/tests", "tests")
    said_here = f"configured: none; set agenteval_databases (name = url); {said}"
    assert unbroken(said_here) in unbroken(result.stdout.str())
    case = home_of(mono) / "tests" / "one.yml"
    case.write_text("prompt: How many?\nsql: SELECT n FROM t\ndatabase: shop\n")
    result = mono.runpytest("services/agent/tests", "tests")
    assert result.ret == 2
    assert any("unknown database 'shop'" in line and said in line for line in result.outlines)


def test_another_runners_project_below_the_top(
    mono: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_of(mono)
    (home / "agenteval.yaml").unlink()
    (home / "nao_config.yaml").write_text("databases: []\n")
    (home / "tests" / "typo.yml").write_text("name: churn\npromt: x\n")
    monkeypatch.chdir(home)
    result = mono.runpytest("tests")
    assert result.ret == 2
    assert any("services/agent/tests/typo.yml:2:1: unknown key 'promt'" in line for line in result.outlines)


def test_check_and_rescore_read_the_same_file(
    mono: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(home_of(mono))
    assert main(["check", "--references"]) == 0
    assert "1 file, 1 case, 1 reference: 0 errors" in capsys.readouterr().out
    mono.runpytest()
    (results,) = (home_of(mono) / "tests" / "outputs").glob("results_*.json")
    assert main(["rescore", str(results)]) == 0
    assert "not rescorable" not in capsys.readouterr().out


def test_a_table_in_a_pyproject_below_the_top_counts(
    mono: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_of(mono)
    (home / "agenteval.yaml").unlink()
    (home / "pyproject.toml").write_text(
        '[tool.agenteval]\ntarget = "python:helper_agent:ask"\n'
        '[tool.agenteval.databases]\nshop = "duckdb:///shop.duckdb"\n'
    )
    monkeypatch.chdir(home)
    mono.runpytest("tests").assert_outcomes(passed=1)


def test_a_fault_of_the_file_shows_its_path_from_rootdir(
    mono: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home_of(mono) / "agenteval.yaml").write_text("targt: x\n")
    monkeypatch.chdir(home_of(mono))
    result = mono.runpytest("tests")
    assert result.ret == 4
    assert any("services/agent/agenteval.yaml:1:1: unknown key 'targt'" in line for line in result.errlines)
