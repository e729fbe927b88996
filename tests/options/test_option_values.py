"""Every option reads its text in every place, and refuses with what it takes instead."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_agenteval.config.options import OPTIONS
from pytest_agenteval.config.settings import resolve
from pytest_agenteval.errors import SettingsError
from pytest_agenteval.support.importing import load_object

BY_NAME = {option.name: option for option in OPTIONS}
TARGET_FORMS = (
    "python:pkg.mod:name, command:PROGRAM, http:URL, nao:URL, dazense:URL, pda:URL, llm:, replay:FILE"
)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("k", " 3 ", 3),
        ("retries", "0", 0),
        ("timeout", "0.5", 0.5),
        ("budget", "2", 2.0),
        ("run", "explicit", "explicit"),
        ("target", "nao:http://localhost:5005", "nao:http://localhost:5005"),
        ("target", "https://example.org/ask", "https://example.org/ask"),
        ("model", "openai:gpt-4.1", ("openai:gpt-4.1",)),
        ("strict", "Yes", True),
        ("strict", "off", False),
        ("fail-under", "90", (("", 90.0),)),
        ("fail-under", "tag:critical=100", (("tag:critical", 100.0),)),
        ("output", "out", "out"),
        ("label", "nightly", "nightly"),
    ],
)
def test_a_text_becomes_its_value(name: str, text: str, value: Any) -> None:
    option = BY_NAME[name]
    settings = resolve({}, {option.env: text}, {}, {})
    assert getattr(settings, option.attribute) == value
    assert settings.source(option.attribute) == "environment"


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        ("k", "0", "a whole number, 1 or more"),
        ("k", "2.5", "a whole number, 1 or more"),
        ("timeout", "soon", "a number, 0.001 or more"),
        ("timeout", "nan", "a number, 0.001 or more"),
        ("budget", "-1", "a number, 0 or more"),
        ("fail-under", "tag:x=101", "a number, from 0 to 100"),
        ("run", "never", "one of always, explicit"),
        ("model", "gpt-4.1", "provider:model, for example openai:gpt-4.1"),
        ("strict", "maybe", "true or false"),
        ("target", "localhost", f"a target: {TARGET_FORMS}"),
        ("target", "htp:x", f"a target (did you mean http:?): {TARGET_FORMS}"),
        ("target", "zzzz:x", f"a target: {TARGET_FORMS}"),
    ],
)
def test_a_wrong_one_is_refused_with_what_is_taken(name: str, text: str, allowed: str) -> None:
    option = BY_NAME[name]
    with pytest.raises(SettingsError) as caught:
        resolve({}, {option.env: text}, {}, {})
    assert str(caught.value) == f"{option.env}: {text!r} is not {allowed}"


def test_of_several_values_the_wrong_one_is_named() -> None:
    with pytest.raises(SettingsError) as caught:
        resolve({"model": ["a:b,gpt4"], "fail_under": ["90", "120"]}, {}, {}, {})
    assert str(caught.value).splitlines() == [
        "--agent-model: 'gpt4' is not provider:model, for example openai:gpt-4.1",
        "--agent-fail-under: '120' is not a number, from 0 to 100",
    ]


def test_all_wrong_ones_are_named_at_once_each_with_its_place() -> None:
    with pytest.raises(SettingsError) as caught:
        resolve({"k": "x"}, {"AGENTEVAL_RUN": "x"}, {"databases": ["shop"]}, {"budget": "x"})
    assert str(caught.value).splitlines() == [
        "AGENTEVAL_RUN: 'x' is not one of always, explicit",
        "--agent-k: 'x' is not a whole number, 1 or more",
        "project file, budget: 'x' is not a number, 0 or more",
        "agenteval_databases: 'shop' is not name = url, for example shop = duckdb:///shop.duckdb",
    ]


def test_an_empty_text_is_nothing_given_but_an_empty_path_is_refused() -> None:
    assert resolve({}, {"AGENTEVAL_HTML": ""}, {"label": ""}, {}).html is None
    with pytest.raises(ValueError, match=r"^a path$"):
        BY_NAME["html"].read("")
    assert resolve({}, {}, {"databases": ["a = b", "", "c = d"]}, {}).databases == (("a", "b"), ("c", "d"))


def test_the_command_line_beats_environment_ini_and_project_file() -> None:
    places: list[dict[str, Any]] = [
        {"k": "1"}, {"AGENTEVAL_K": "2"}, {"k": "3"}, {"test.k": 4},
    ]  # fmt: skip
    sources = ["command line", "environment", "ini", "project", "default"]
    for first, source in enumerate(sources):
        given: list[Any] = [place if number >= first else {} for number, place in enumerate(places)]
        settings = resolve(given[0], given[1], given[2], given[3])
        assert (settings.k, settings.source("k")) == (first + 1 if first < 4 else None, source)


def test_lists_may_be_repeated_and_separated_by_commas() -> None:
    settings = resolve({"model": ["a:1, b:2", "a:1"]}, {}, {}, {})
    assert settings.model == ("a:1", "b:2")


INI = """
[pytest]
agenteval_k = none
agenteval_timeout = soon
agenteval_databases = shop
"""


def test_bad_ini_values_end_the_run_before_collection(pytester: pytest.Pytester) -> None:
    pytester.makefile(".ini", pytest=INI)
    pytester.makepyfile("raise SystemError('collected')")
    done = pytester.runpytest_inprocess()
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(
        [
            "*agenteval_k: invalid literal for int() *: 'none'; expected a whole number, 1 or more",
            "agenteval_timeout: could not * to float: 'soon'; expected a number, 0.001 or more",
            "agenteval_databases: *'shop'* is not name = url, for example shop = duckdb:///shop.duckdb",
        ]
    )
    assert "collected" not in done.stdout.str()


TOML = """
[tool.pytest]
agenteval_k = {k}
agenteval_fail_under = {fail_under}
agenteval_label = {label}
"""


@pytest.mark.skipif(
    not hasattr(pytest, "RaisesGroup") or pytest.version_tuple < (9, 0), reason="needs pytest 9"
)
def test_native_toml_takes_values_of_their_own_types(pytester: pytest.Pytester) -> None:
    place = pytester.path / "pyproject.toml"
    pytester.makepyfile("def test_it(): pass")
    place.write_text(TOML.format(k="2", fail_under='["90", "tag:x=100"]', label='"nightly"'))
    assert pytester.runpytest_inprocess().ret == 0
    place.write_text(TOML.format(k='"2"', fail_under="90", label="3"))
    done = pytester.runpytest_inprocess()
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    said = done.stderr.str()
    assert "agenteval_k: " in said
    assert "; expected a whole number, 1 or more" in said
    assert "agenteval_fail_under: " in said
    assert "; expected a number, from 0 to 100" in said
    assert "; expected text" in said


def test_a_project_file_that_is_broken_ends_the_run_before_collection(pytester: pytest.Pytester) -> None:
    (pytester.path / "agenteval.yaml").write_text("target: [\n")
    pytester.makepyfile("raise SystemError('collected')")
    done = pytester.runpytest_inprocess()
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["*agenteval.yaml:*"])


def test_an_object_is_found_by_its_dotted_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "option_values_agent.py").write_text("class Shop:\n    def ask(self):\n        return 3\n")
    assert load_object("option_values_agent:Shop.ask", tmp_path)(None) == 3
    assert sys.path[0] == str(tmp_path)
    assert load_object("option_values_agent:Shop", tmp_path)
    assert sys.path.count(str(tmp_path)) == 1
    with pytest.raises(AttributeError, match="other"):
        load_object("option_values_agent:other", tmp_path)


@pytest.mark.parametrize("text", ["agent", "pkg.mod:", ":name", ""])
def test_another_form_of_a_name_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"^{text!r} is not of the form pkg\.mod:name$"):
        load_object(text, tmp_path)


def test_the_module_is_imported_without_running_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import pytest_agenteval.__main__ as m; print(m.main.__module__)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "pytest_agenteval.cli\n"
