"""Names of every kind become ids that pytest's own selection understands."""

from __future__ import annotations

import json

import pytest

NAMES = {
    "a::b": "a_b",
    "x[1]": "x_1",
    "Größe der Bestellungen": "Größe_der_Bestellungen",
    "売上 合計": "売上_合計",
    "revenue and by": "revenue_and_by",
}


@pytest.fixture
def named(shop: pytest.Pytester) -> pytest.Pytester:
    """One file of cases with names that are hard to select."""
    cases = [{"name": name, "prompt": name, "expected": [{"n": 1}]} for name in NAMES]
    (shop.path / "tests" / "names.yml").write_text(json.dumps({"cases": cases}), "utf-8")
    shop.makeconftest("import pytest\n@pytest.fixture\ndef agent():\n    return lambda prompt: [{'n': 1}]\n")
    return shop


@pytest.mark.parametrize("extra", [[], ["-n", "2"]], ids=["plain", "xdist"])
def test_all_run(named: pytest.Pytester, extra: list[str]) -> None:
    named.runpytest(*extra).assert_outcomes(passed=len(NAMES))


@pytest.mark.parametrize("item", NAMES.values())
def test_by_id(named: pytest.Pytester, item: str) -> None:
    named.runpytest(f"tests/names.yml::{item}").assert_outcomes(passed=1)


@pytest.mark.parametrize("words", ["Größe_der_Bestellungen", "売上_合計", "revenue and by", "a_b"])
def test_by_keyword(named: pytest.Pytester, words: str) -> None:
    named.runpytest("-k", words).assert_outcomes(passed=1, deselected=len(NAMES) - 1)


@pytest.mark.parametrize("name", NAMES)
def test_by_written_name(named: pytest.Pytester, name: str) -> None:
    named.runpytest("--agent-select", name).assert_outcomes(passed=1, deselected=len(NAMES) - 1)


def test_the_record_keeps_the_written_name(named: pytest.Pytester) -> None:
    named.runpytest()
    (file,) = (named.path / "tests" / "outputs").glob("results_*.json")
    entries = json.loads(file.read_text("utf-8"))["results"]
    assert [entry["name"] for entry in entries] == list(NAMES)
    assert [entry["nodeid"] for entry in entries] == [f"tests/names.yml::{item}" for item in NAMES.values()]


def test_last_failed_with_a_model_in_brackets(named: pytest.Pytester) -> None:
    named.makeconftest("import pytest\n@pytest.fixture\ndef agent():\n    return lambda task: [{'n': 2}]\n")
    models = ["--agent-model", "hub:llama-3.1-70b[free]"]
    named.runpytest(*models).assert_outcomes(failed=len(NAMES))
    named.runpytest("--lf", *models).assert_outcomes(failed=len(NAMES))
    chosen = named.runpytest("-k", "llama-3.1-70b[free] and a_b", *models)
    chosen.assert_outcomes(failed=1, deselected=len(NAMES) - 1)
