"""A check that somebody brings is known alike to pytest and to check, rescore and schema."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_agenteval.cli import main

CHECK = '''
from typing import Literal
from pytest_agenteval import Check

class MaxWords(Check):
    """The text of the answer has at most ``words`` words."""

    type: Literal["max_words"] = "max_words"
    words: int

    def check(self, evidence):
        found = len(evidence.text.split())
        return self.result(found <= self.words, f"{found} words, at most {self.words} allowed")
'''
HOOK = "\ndef pytest_agenteval_register(registry):\n    registry.add(MaxWords)\n"
AGENT = "\nimport pytest\n\n@pytest.fixture\ndef agent():\n    return lambda prompt: 'It rains in April.'\n"
ENTRY = "[{group}]\nbrought = brought{name}\n"


class Suite:
    """A project whose only case names a check that is not built in."""

    def __init__(self, pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]) -> None:
        self.pytester = pytester
        self.path = pytester.path
        self._capsys = capsys
        self.ini()
        self.write("conftest.py", AGENT)
        self.write("tests/short.yml", "prompt: Rain?\nassertions:\n- {type: max_words, words: 10}\n")

    def ini(self, *lines: str) -> None:
        more = "".join(f"{line}\n" for line in lines)
        self.write("pytest.ini", f"[pytest]\nasyncio_default_fixture_loop_scope = function\n{more}")

    def write(self, name: str, text: str) -> None:
        place = self.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def installed(self, group: str, name: str) -> None:
        """An installed distribution with one entry point."""
        self.write("site/brought-1.0.dist-info/METADATA", "Name: brought\nVersion: 1.0\n")
        self.write("site/brought-1.0.dist-info/entry_points.txt", ENTRY.format(group=group, name=name))

    def command(self, *words: str) -> tuple[int, str]:
        self._capsys.readouterr()
        code = main(list(words))
        done = self._capsys.readouterr()
        return code, done.out + done.err

    @property
    def results(self) -> Path:
        return max((self.path / "tests" / "outputs").glob("results_*.json"))


@pytest.fixture
def suite(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Suite]:
    monkeypatch.syspath_prepend(str(pytester.path / "site"))
    before, path = set(sys.modules), list(sys.path)
    yield Suite(pytester, capsys)
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if name.startswith(("_agenteval_conftest", "brought", "local", "tests", "pkg")):
            del sys.modules[name]


def of_conftest(suite: Suite) -> None:
    suite.write("conftest.py", CHECK + HOOK + AGENT)


def of_conftest_in_a_package(suite: Suite) -> None:
    suite.write("pkg/__init__.py", "")
    suite.write("pkg/helper.py", CHECK)
    suite.write("pkg/conftest.py", "from .helper import MaxWords\n" + HOOK)
    suite.write("pkg/test_ok.py", "def test_ok(): pass\n")
    suite.write("tests/__init__.py", "")


def of_plugins_of_conftest(suite: Suite) -> None:
    suite.write("local_checks.py", CHECK + HOOK)
    suite.write("conftest.py", "pytest_plugins = 'local_checks'\n" + AGENT)


def of_an_option(suite: Suite) -> None:
    suite.ini("addopts = -p local_checks -p no:cacheprovider", "pythonpath = lib")
    suite.write("lib/local_checks.py", CHECK + HOOK)


def of_an_installed_plugin(suite: Suite) -> None:
    suite.write("site/brought/__init__.py", "")
    suite.write("site/brought/plugin.py", CHECK + HOOK)
    suite.installed("pytest11", ".plugin")


def of_the_entry_point_group(suite: Suite) -> None:
    suite.write("site/brought.py", CHECK)
    suite.installed("pytest_agenteval.checks", ":MaxWords")


def of_the_project_file(suite: Suite) -> None:
    suite.write("local_checks.py", CHECK)
    suite.write("agenteval.yaml", "checks: [local_checks:MaxWords]\n")


def of_pyproject(suite: Suite) -> None:
    suite.write("local_checks.py", CHECK)
    suite.write("pyproject.toml", '[tool.agenteval]\nchecks = "local_checks:MaxWords"\n')


WAYS = [
    of_conftest, of_conftest_in_a_package, of_plugins_of_conftest, of_an_option, of_an_installed_plugin,
    of_the_entry_point_group, of_the_project_file, of_pyproject,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_everyone_knows_a_check_that_is_registered(
    suite: Suite, way, monkeypatch: pytest.MonkeyPatch
) -> None:
    way(suite)
    monkeypatch.setenv("PYTHONPATH", f"{suite.path / 'site'}", prepend=":")
    done = suite.pytester.runpytest_subprocess(".")
    assert done.ret == 0, done.stdout.str() + done.stderr.str()
    assert suite.command("check", "--strict") == (0, "1 file, 1 case: 0 errors, 0 warnings\n")
    code, text = suite.command("rescore", str(suite.results))
    assert (code, "not rescorable" in text) == (0, False), text
    code, text = suite.command("schema")
    assert code == 0
    words = [branch["properties"]["type"]["const"] for branch in json.loads(text)["$defs"]["check"]["oneOf"]]
    assert words[-1] == "max_words"


def test_rescoring_judges_with_the_check_of_today(suite: Suite) -> None:
    of_conftest(suite)
    suite.pytester.runpytest_subprocess().assert_outcomes(passed=1)
    suite.write("tests/short.yml", "prompt: Rain?\nassertions:\n- {type: max_words, words: 2}\n")
    code, text = suite.command("rescore", str(suite.results), "-o", str(suite.path / "new.json"))
    assert code == 0
    assert "4 words, at most 2 allowed" in (suite.path / "new.json").read_text()
    assert "not rescorable" not in text


def test_a_wrong_field_of_such_a_check_is_found(suite: Suite) -> None:
    of_the_project_file(suite)
    suite.write("tests/short.yml", "prompt: Rain?\nassertions:\n- {type: max_words, wrods: 10}\n")
    code, text = suite.command("check")
    assert code == 1
    assert "tests/short.yml:3:21: unknown field 'wrods', did you mean 'words'?" in text


def test_a_conftest_that_cannot_be_loaded_here_leaves_a_doubt(suite: Suite) -> None:
    suite.write("conftest.py", CHECK + HOOK + "raise RuntimeError('only in CI')\n")
    code, text = suite.command("check")
    assert code == 0
    assert "warning: unknown check type 'max_words'" in text
    assert "; conftest.py: RuntimeError: only in CI (taken for a case" in text
    assert "checks nothing" not in text
    code, text = suite.command("schema")
    assert code == 0
    assert "agenteval: warning: checks left out: conftest.py: RuntimeError: only in CI" in text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[local_checks:Nope]", "; agenteval.yaml:1: AttributeError: module 'local_checks' has no attribute"),
        (
            "local_checks:Wrong",
            "; agenteval.yaml:1: TypeError: a check must be a subclass of pytest_agenteval",
        ),
        ("[nowhere:MaxWords]", "; agenteval.yaml:1: ModuleNotFoundError: No module named 'nowhere'"),
    ],
)
def test_a_check_of_the_project_file_that_is_not_there(suite: Suite, line: str, said: str) -> None:
    suite.write("local_checks.py", "Wrong = 5\n")
    suite.write("agenteval.yaml", f"checks: {line}\n")
    done = suite.pytester.runpytest()
    assert done.ret == 2
    assert any("unknown check type 'max_words'" in text and said in text for text in done.outlines)


def test_a_reference_in_another_form_is_refused(suite: Suite) -> None:
    suite.write("agenteval.yaml", "checks: [MaxWords]\n")
    assert suite.command("check") == (
        2,
        "agenteval: agenteval.yaml:1:10: checks: 'MaxWords' is not pkg.mod:name\n",
    )


def test_one_broken_case_file_does_not_stop_the_rescoring_of_others(suite: Suite) -> None:
    suite.write("tests/short.yml", "prompt: Rain?\nassertions:\n- {type: text, contains: April}\n")
    suite.write("tests/other.yml", "prompt: Rain?\nassertions:\n- {type: text, contains: April}\n")
    suite.pytester.runpytest_subprocess().assert_outcomes(passed=2)
    suite.write("tests/other.yml", "prompt: Rain?\nassertions:\n- {type: txt, contains: April}\n")
    code, text = suite.command("rescore", str(suite.results))
    assert code == 0
    assert "tests/other.yml:3:10: unknown check type 'txt', did you mean 'text'?, 1 of 2" in " ".join(
        text.split()
    )


def test_a_plugin_that_is_listed_but_gone_is_left_out(suite: Suite) -> None:
    suite.installed("pytest11", "_gone.plugin")
    assert "unknown check type 'max_words'" in suite.command("check")[1]


def test_nothing_of_the_project_is_imported_for_built_in_checks(suite: Suite) -> None:
    suite.write("conftest.py", HOOK + "raise RuntimeError('not for this')\n")
    suite.write("tests/short.yml", "prompt: Rain?\nassertions:\n- {type: text, contains: April}\n")
    assert suite.command("check", "--strict") == (0, "1 file, 1 case: 0 errors, 0 warnings\n")
