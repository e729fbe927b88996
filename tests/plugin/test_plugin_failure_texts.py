"""What a failure says first: the agent's own traceback, the parts that failed, data that did not change."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from pytest_agenteval.cli import main

RAISING = """
import json, pytest

SECRET = "sk-" + "a1B2" * 8

def parse(text):
    return json.loads(text)

class Agent:
    def run(self, task):
        try:
            return parse("{ no json")
        except ValueError as error:
            raise RuntimeError("model said nonsense to " + SECRET) from error

@pytest.fixture(scope="session")
def agent():
    return Agent()
"""


def outputs(project: pytest.Pytester) -> list[Path]:
    return sorted((project.path / "tests" / "outputs").glob("results_*.json"))


def entry_of(project: pytest.Pytester) -> dict[str, Any]:
    (entry,) = json.loads(outputs(project)[-1].read_text("utf-8"))["results"]
    return entry


@pytest.mark.parametrize("concurrency", ["1", "2"])
def test_a_raising_agent_shows_its_own_frames_and_causes(
    shop: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, concurrency: str
) -> None:
    shop.makeconftest(RAISING)
    shop.path.joinpath("tests", "a.yml").write_text("prompt: x\nexpected: [{n: 1}]\n", "utf-8")
    monkeypatch.setenv("SHOP_API_KEY", "sk-" + "a1B2" * 8)
    result = shop.runpytest("--agent-concurrency", concurrency)
    result.assert_outcomes(errors=1)
    shown = "\n".join(result.outlines)
    result.stdout.fnmatch_lines(
        [
            "error in stage agent: RuntimeError: model said nonsense to *(conftest.py:13)",
            "Traceback (most recent call last):",
            '  File "conftest.py", line 11, in run',
            '    return parse("{ no json")',
            '  File "conftest.py", line 6, in parse',
            "    return json.loads(text)",
            "json.decoder.JSONDecodeError: *",
            "The above exception was the direct cause of the following exception:",
            '  File "conftest.py", line 13, in run',
            "RuntimeError: model said nonsense to *",
            "prompt    x",
        ]
    )
    entry = entry_of(shop)
    assert entry["traceback"].startswith("Traceback (most recent call last):")
    assert "JSONDecodeError" in entry["traceback"]
    assert "RuntimeError: model said nonsense" in entry["traceback"]
    for text in (shown, outputs(shop)[-1].read_text("utf-8")):
        assert "a1B2a1B2" not in text
        assert not re.search(r"pytest_agenteval/(agents|engine)/", text)
    assert str(shop.path) not in entry["traceback"]


@pytest.mark.parametrize(
    ("style", "present", "absent"),
    [
        ("short", ["in parse", "RuntimeError: model"], ['return parse("{ no json")', "decoder.py"]),
        ("long", ["in parse", 'return parse("{ no json")'], []),
        ("native", ["in parse", 'return parse("{ no json")'], []),
        ("line", [], ["in parse", "Traceback (most recent"]),
        ("no", [], ["in parse", "Traceback (most recent"]),
    ],
)
def test_tb_says_how_much_of_the_traceback_is_shown(
    shop: pytest.Pytester, style: str, present: list[str], absent: list[str]
) -> None:
    shop.makeconftest(RAISING)
    shop.path.joinpath("tests", "a.yml").write_text("prompt: x\nexpected: [{n: 1}]\n", "utf-8")
    shown = "\n".join(shop.runpytest(f"--tb={style}").outlines)
    assert [text for text in present if text not in shown] == []
    assert [text for text in absent if text in shown] == []


def test_an_agent_that_recurses_or_raises_a_group_keeps_a_short_traceback(shop: pytest.Pytester) -> None:
    shop.makeconftest(
        """
        import pytest

        def deep(n):
            return deep(n + 1)

        @pytest.fixture(scope="session")
        def agent():
            def answer(prompt):
                if prompt == "group":
                    raise ExceptionGroup("several", [ValueError("first"), KeyError("second")])
                if prompt == "long":
                    raise ValueError("x" * 50_000)
                deep(0)
            return answer
        """
    )
    for name in ("group", "long", "recursion"):
        (shop.path / "tests" / f"{name}.yml").write_text(f"prompt: {name}\nexpected: [{{n: 1}}]\n", "utf-8")
    shop.runpytest().assert_outcomes(errors=3)
    document = json.loads(outputs(shop)[-1].read_text("utf-8"))
    found = {entry["name"]: entry["traceback"] for entry in document["results"]}
    assert "ValueError: first" in found["group"]
    assert "KeyError: 'second'" in found["group"]
    assert "Previous line repeated" in found["recursion"]
    assert max(map(len, found.values())) < 20_100
    assert "\n  ...\n" in found["long"]


def test_an_agent_that_does_not_raise_has_no_traceback(shop: pytest.Pytester) -> None:
    shop.path.joinpath("tests", "a.yml").write_text("prompt: x\nexpected: [{n: 1}]\n", "utf-8")
    shop.runpytest("--agent-target", "http:http://127.0.0.1:9/", "--agent-retries", "0")
    assert entry_of(shop)["traceback"] is None


def talks(project: pytest.Pytester) -> None:
    """Let the agent hold a conversation."""
    place = project.path / "conftest.py"
    text = place.read_text("utf-8")
    text = text.replace("def answer(prompt):", "def answer(task):\n    prompt = task.prompt")
    place.write_text(text, "utf-8")


def test_what_failed_leads_and_what_passed_is_left_out(shop: pytest.Pytester) -> None:
    talks(shop)
    shop.path.joinpath("tests", "talk.yml").write_text(
        textwrap.dedent(
            """
            name: talk
            prompt:
              - say: "<<SELECT 1 AS n>>"
                expect: {called: execute_sql}
              - say: "And now? <<SELECT 2 AS n>>"
                sql: SELECT 3 AS n
                expect: {called: execute_sql}
            """
        ),
        "utf-8",
    )
    result = shop.runpytest()
    result.stdout.fnmatch_lines(["talk * FAILED *turn 2 of 2: values differ*"])
    result.stdout.no_fnmatch_line("*FAILED*tool_call*")
    assert entry_of(shop)["message"] == "turn 2 of 2: values differ"


def test_a_failed_check_beside_a_right_table_shows_the_check_alone(shop: pytest.Pytester) -> None:
    text = 'prompt: "<<SELECT 1 AS n>>"\nsql: SELECT 1 AS n\nexpect: {called: charge}\n'
    shop.path.joinpath("tests", "a.yml").write_text(text, "utf-8")
    result = shop.runpytest()
    start = next(n for n, line in enumerate(result.outlines) if line.startswith("failed tool_call"))
    assert result.outlines[start + 1] == ""
    assert "match" not in result.outlines
    assert entry_of(shop)["message"].startswith("missing tool_call: charge")


@pytest.mark.parametrize("kind", ["two references", "conversation"])
def test_data_that_did_not_change_is_not_told_as_changed(
    shop: pytest.Pytester, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if kind == "two references":
        text = 'prompt: "<<SELECT {answer} AS n>>"\nsql: [SELECT 1 AS n, SELECT 2 AS n]\n'
    else:
        text = (
            "prompt:\n  - {{say: '<<SELECT 1 AS n>>', sql: SELECT 1 AS n}}\n"
            "  - {{say: '<<SELECT {answer} AS n>>', sql: SELECT 2 AS n}}\n"
        )
    talks(shop)
    place = shop.path / "tests" / "a.yml"
    place.write_text(text.format(answer=2), "utf-8")
    shop.runpytest().assert_outcomes(passed=1)
    place.write_text(text.format(answer=9), "utf-8")
    shop.runpytest().assert_outcomes(failed=1)
    capsys.readouterr()
    assert main(["diff", *map(str, outputs(shop))]) == 1
    told = capsys.readouterr().out
    assert "a  passed -> failed [case changed]: " in told
    assert "data changed" not in told


FORMS = """
import pytest

@pytest.fixture(scope="session")
def agent():
    def answer(prompt):
        if prompt == "dict":
            return {"text": "six stores", "data": [{"n": 6}]}
        if prompt == "tuples":
            return [(6,)]
        return "There are 6 stores."
    return answer
"""


def shown(project: pytest.Pytester, prompt: str, more: str = "") -> list[str]:
    """What the terminal shows of a case with this prompt, folded lines joined."""
    project.makeconftest(FORMS)
    text = f"prompt: {prompt}\nexpected: [{{n: 6}}]\n{more}"
    project.path.joinpath("tests", "a.yml").write_text(text, "utf-8")
    joined = re.sub(r"\n {2,}", " ", "\n".join(project.runpytest().outlines))
    return joined.splitlines()


def test_an_agent_that_only_talks_is_told_how_to_hand_a_table_over(shop: pytest.Pytester) -> None:
    lines = shown(shop, "text")
    assert [line for line in lines if line.startswith("no data returned: the agent returned no table")]
    (hint,) = [line for line in lines if line.startswith("hint")]
    assert hint.endswith(
        "an agent hands a table over as rows (a list of dicts, a DataFrame), as Answer(text, data=rows), or "
        "with the ToolCall that ran the SQL; --agent-extract json with --agent-extract-model reads one out "
        "of the text"
    )
    assert "said      There are 6 stores." in lines


def test_a_dict_as_a_program_writes_it_is_an_answer(shop: pytest.Pytester) -> None:
    lines = shown(shop, "dict", "assertions: [{type: text, pattern: '\\b7\\b|seven'}]\n")
    assert r"failed text: pattern `\b7\b|seven` is not found" in lines
    assert "answer    handed over by the agent" in lines
    assert "said      six stores" in lines  # although there is a table: a check of the words failed


def test_rows_without_names_say_where_names_come_from(shop: pytest.Pytester) -> None:
    lines = shown(shop, "tuples")
    (error,) = [line for line in lines if line.startswith("error in stage agent")]
    hint = "returned rows without column names; return dicts or a DataFrame (.df() of a DuckDB result)"
    assert hint in error


def test_an_exception_of_the_agent_can_count_as_a_failure(shop: pytest.Pytester) -> None:
    for name, prompt in (("raises", "raise: no idea"), ("right", "<<SELECT 6 AS n>>")):
        text = f'prompt: "{prompt}"\nexpected: [{{n: 6}}]\n'
        (shop.path / "tests" / f"{name}.yml").write_text(text, "utf-8")
    plain = shop.runpytest("--agent-k", "2")
    plain.assert_outcomes(passed=1, errors=1)
    plain.stdout.fnmatch_lines(["agent * 100.0 % * 100.0 % * 1 case *2"])
    counted = shop.runpytest("--agent-k", "2", "--agent-raises-fail")
    counted.assert_outcomes(passed=1, failed=1)
    counted.stdout.fnmatch_lines(
        [
            "RuntimeError: no idea (conftest.py:*)",
            "Traceback (most recent *",
            "RuntimeError: no idea",
        ]
    )
    counted.stdout.fnmatch_lines(["agent * 50.0 % * 50.0 % * 2 cases *0"])
    entries = json.loads(outputs(shop)[-1].read_text("utf-8"))["results"]
    raised = [entry for entry in entries if entry["name"] == "raises"]
    assert {(entry["verdict"], entry["stage"], entry["reason"]) for entry in raised} == {
        ("failed", "agent", "agent_error")
    }
    # what the agent could not help stays an error
    gone = shop.runpytest(
        "--agent-raises-fail", "--agent-target", "http:http://127.0.0.1:9/", "--agent-retries", "0"
    )
    gone.assert_outcomes(errors=2)
