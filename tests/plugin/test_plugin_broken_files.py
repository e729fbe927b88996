"""A broken case file ends the run before any agent is called, with and without xdist."""

from __future__ import annotations

from collections.abc import Callable

import pytest

SUM = "SELECT sum(amount) AS total FROM orders"
Write = Callable[..., None]

LOUD_AGENT = (
    "import pathlib, pytest\n"
    "@pytest.fixture\ndef agent():\n"
    "    def answer(prompt):\n"
    "        with open(pathlib.Path(__file__).with_name('asked.txt'), 'a') as file:\n"
    "            file.write(prompt)\n"
    "        return [{'total': 47}]\n"
    "    return answer\n"
)


@pytest.fixture
def broken(shop: pytest.Pytester, write_case: Write) -> pytest.Pytester:
    """One good case, one file with two faults, one ordinary test."""
    shop.makeconftest(LOUD_AGENT)
    write_case("good", SUM)
    (shop.path / "tests" / "bad.yml").write_text("prompt: Hm?\nassertion: []\npromts: x\n", "utf-8")
    (shop.path / "tests" / "test_plain.py").write_text("def test_plain():\n    pass\n", "utf-8")
    return shop


@pytest.mark.parametrize("extra", [[], ["-n", "2"]], ids=["plain", "xdist"])
def test_no_agent_is_called_and_the_run_ends_with_2(broken: pytest.Pytester, extra: list[str]) -> None:
    result = broken.runpytest(*extra)
    assert result.ret == 2
    result.stdout.fnmatch_lines(
        [
            "*tests/bad.yml:2:1: unknown key 'assertion', did you mean 'assertions'?*",
            "*tests/bad.yml:3:1: unknown key 'promts', did you mean 'prompt'?*",
        ]
    )
    assert not (broken.path / "asked.txt").exists()


@pytest.mark.parametrize("extra", [[], ["-n", "2"]], ids=["plain", "xdist"])
def test_the_good_ones_run_when_asked_to(broken: pytest.Pytester, extra: list[str]) -> None:
    result = broken.runpytest("--continue-on-collection-errors", *extra)
    assert result.ret == 1
    assert (broken.path / "asked.txt").exists()
    result.assert_outcomes(passed=2, errors=1 if not extra else result.parseoutcomes().get("errors", 1))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("docker-compose.yml", "services:\n  web:\n    image: x\n    command: prompt\n"),
        ("models/schema.yml", "version: 2\nmodels:\n  - name: a\n    columns:\n      - name: prompt\n"),
        ("cassettes/a.yaml", "interactions:\n- request:\n    body: 'prompt: hello'\n"),
        ("prompts/greet.yml", "prompt: You are helpful.\n"),
        ("faq.yml", "- question: How?\n  answer: So.\n"),
        ("tests/cassettes/b.yaml", "interactions:\n- request: {body: '{\"prompt\": 1}'}\nversion: 1\n"),
        ("tests/chart/values.yaml", "image: {{ .Values.prompt }}\n"),
        ("tests/outputs/x.yml", "prompt: Hm?\n"),
        ("tests/compose.yml", "services:\n  web: {environment: {prompt: x}}\n"),
    ],
)
def test_files_that_are_not_ours(pytester: pytest.Pytester, name: str, text: str) -> None:
    target = pytester.path / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.assert_outcomes()
    assert "error" not in result.stdout.str().lower()
