"""A case file names no code but the project's own, unless the ini file says so."""

from __future__ import annotations

import os

import pytest

OURS = """
import os
import textwrap

def ask(prompt):
    return [{"n": 1}]

def right(evidence):
    return True

class Agents:
    @staticmethod
    def ask(prompt):
        return [{"n": 1}]
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    pytester.makeini("[pytest]\nagenteval_databases = d = duckdb:///d.duckdb\n")
    pytester.makepyfile(ours=OURS)
    installed = pytester.mkdir(".venv") / "lib" / "site-packages"
    installed.mkdir(parents=True)
    (installed / "bought.py").write_text(OURS)
    monkeypatch.setenv("PYTHONPATH", str(installed), prepend=os.pathsep)
    (pytester.mkdir("tests") / "conftest.py").write_text("")
    return pytester


def outcome(project: pytest.Pytester, agent: str, *more: str, check: str = "ours:right") -> pytest.RunResult:
    (project.path / "tests" / "c.yml").write_text(
        f"prompt: touch pwned\nagent: {agent}\nexpected: [{{n: 1}}]\nexpect: [{{python: '{check}'}}]\n"
    )
    return project.runpytest_subprocess("-p", "no:cacheprovider", *more)


@pytest.mark.parametrize(
    ("agent", "module"), [("os:system", "os"), ("builtins:exec", "builtins"), ("bought:ask", "bought")]
)
def test_an_agent_outside_of_the_project_is_an_error(
    project: pytest.Pytester, agent: str, module: str
) -> None:
    result = outcome(project, agent)
    result.assert_outcomes(errors=1)
    assert (
        f"{agent} is not of this project: {module} lies outside of the rootdir, and a case file is held to "
        "the project's own modules. Import it in one of them, or set "
        f"agenteval_trusted_modules = {module}" in " ".join(result.stdout.str().split())
    )
    assert not (project.path / "pwned").exists()


def test_a_module_that_ours_imported_is_not_gone_through(project: pytest.Pytester) -> None:
    result = outcome(project, "ours:os.system")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*ours:os.system goes through the module os; name that module itself*"])
    assert not (project.path / "pwned").exists()


@pytest.mark.parametrize("agent", ["ours:ask", "ours:Agents.ask"])
def test_the_projects_own_are_taken(project: pytest.Pytester, agent: str) -> None:
    outcome(project, agent).assert_outcomes(passed=1)


def test_the_ini_file_lists_installed_ones(project: pytest.Pytester) -> None:
    trusted = ("-o", "agenteval_trusted_modules=bought")
    outcome(project, "bought:ask", *trusted, check="bought:right").assert_outcomes(passed=1)
    outcome(project, "os:system", *trusted).assert_outcomes(errors=1)


def test_a_check_outside_of_the_project_is_an_error(project: pytest.Pytester) -> None:
    result = outcome(project, "ours:ask", check="os:getcwd")
    result.assert_outcomes(errors=1)
    assert "python: os:getcwd is not of this project: os lies outside" in " ".join(
        result.stdout.str().split()
    )


def test_the_command_line_names_what_it_likes(project: pytest.Pytester) -> None:
    outcome(project, "os:system", "--agent-target", "python:bought:ask").assert_outcomes(passed=1)
