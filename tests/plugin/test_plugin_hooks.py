"""The three hooks: checks of one's own, each result, the document."""

from __future__ import annotations

import json

import pytest

CONFTEST = """
import json, pytest
from typing import Literal
from pytest_agenteval import Check

class Politeness(Check):
    type: Literal["polite"] = "polite"
    words: tuple[str, ...] = ("please", "thank")

    def check(self, evidence):
        found = [word for word in self.words if word in evidence.text.lower()]
        return self.result(bool(found), f"polite: {', '.join(found) or 'no polite word'}")

def pytest_agenteval_register(registry):
    registry.add(Politeness)

def pytest_agenteval_result(config, result):
    with open("results.txt", "a") as file:
        file.write(f"{result['name']} {result['verdict']}\\n")

def pytest_agenteval_document(config, document):
    document["run"]["ticket"] = "DATA-42"

@pytest.fixture
def agent():
    return lambda prompt: prompt
"""


@pytest.mark.parametrize("extra", [[], ["-n", "2"]], ids=["plain", "xdist"])
def test_hooks(shop: pytest.Pytester, extra: list[str]) -> None:
    shop.makeconftest(CONFTEST)
    for name, prompt in (("kind", "Thank you"), ("rude", "No.")):
        text = f"prompt: {prompt}\nassertions:\n  - type: polite\n"
        (shop.path / "tests" / f"{name}.yml").write_text(text, "utf-8")
    result = shop.runpytest(*extra)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*polite: no polite word*"])
    told = (shop.path / "results.txt").read_text("utf-8").splitlines()
    assert sorted(told) == ["kind passed", "rude failed"]
    (file,) = (shop.path / "tests" / "outputs").glob("results_*.json")
    assert json.loads(file.read_text("utf-8"))["run"]["ticket"] == "DATA-42"


def test_a_bad_field_of_a_check_of_ones_own_is_a_collection_error(shop: pytest.Pytester) -> None:
    shop.makeconftest(CONFTEST)
    text = "prompt: Hm?\nassertions:\n  - type: polite\n    wrods: [x]\n"
    (shop.path / "tests" / "bad.yml").write_text(text, "utf-8")
    result = shop.runpytest()
    assert result.ret == 2
    result.stdout.fnmatch_lines(
        ["tests/bad.yml:4:5: unknown field 'wrods', did you mean 'words'? (taken for*"]
    )
