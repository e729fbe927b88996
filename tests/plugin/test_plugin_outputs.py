"""JUnit, json-report and the step summary say the same as the terminal."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable

import pytest

SUM = "SELECT sum(amount) AS total FROM orders"
WRONG = "SELECT sum(amount) AS total FROM orders WHERE region = 'north'"
Write = Callable[..., None]


@pytest.fixture
def four(shop: pytest.Pytester, write_case: Write) -> pytest.Pytester:
    """One case of each verdict."""
    write_case("right", SUM)
    write_case("wrong", SUM, WRONG)
    (shop.path / "tests" / "broken.yml").write_text(f"prompt: 'raise: down'\nsql: {SUM}\n", "utf-8")
    (shop.path / "tests" / "look.yml").write_text("prompt: How are you?\n", "utf-8")
    return shop


@pytest.mark.parametrize("extra", [[], ["-n", "2"]])
def test_junit(four: pytest.Pytester, extra: list[str]) -> None:
    four.runpytest("--junitxml=out.xml", *extra)
    suite = ET.parse(four.path / "out.xml").getroot()[0]
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4", "failures": "1", "errors": "1", "skipped": "1"}  # fmt: skip
    wrong = next(node for node in suite if node.get("name") == "wrong")
    properties = {p.get("name"): p.get("value") for p in wrong.iter("property")}
    assert properties["agenteval_verdict"] == "failed"
    assert properties["agenteval_message"] == "values differ"
    assert "agenteval_reason" in properties
    broken = next(node for node in suite if node.get("name") == "broken")
    assert broken.find("error") is not None
    assert broken.find("failure") is None


@pytest.mark.parametrize("extra", [[], ["-n", "2"]])
def test_json_report(four: pytest.Pytester, extra: list[str]) -> None:
    four.runpytest("--json-report", "--json-report-file=out.json", *extra)
    report = json.loads((four.path / "out.json").read_text("utf-8"))
    assert report["summary"]["passed"] == 1
    assert report["summary"]["failed"] == 1
    assert report["summary"]["error"] == 1
    tests = {test["nodeid"]: test for test in report["tests"]}
    scalars = {}
    for entry in tests["tests/wrong.yml::wrong"]["user_properties"]:
        scalars.update(entry)
    assert scalars["agenteval_verdict"] == "failed"
    assert scalars["agenteval_message"] == "values differ"


def test_step_summary_at_every_verbosity(four: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    target = four.path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(target))
    four.runpytest("-q")
    assert "values differ" in target.read_text("utf-8")


def test_quiet_is_one_line(four: pytest.Pytester) -> None:
    result = four.runpytest("-q", "--tb=no", "-rN")
    (ours,) = [line for line in result.outlines if line.startswith("cases: ")]
    assert "1 passed, 1 failed, 1 error, 1 to review" in ours
    assert "Results" not in result.stdout.str()


def test_values_are_replaced_on_reruns(four: pytest.Pytester) -> None:
    four.runpytest("--reruns", "2", "--junitxml=out.xml", "tests/wrong.yml")
    suite = ET.parse(four.path / "out.xml").getroot()[0]
    counts = [[p.get("name") for p in case.iter("property")].count("agenteval_verdict") for case in suite]
    assert set(counts) == {1}


def test_a_match_that_is_to_be_looked_at_says_what_it_needed(shop: pytest.Pytester) -> None:
    shop.makeconftest(
        "import pytest\n@pytest.fixture\ndef agent():\n"
        "    return lambda prompt: [{'r': 0.01}] if prompt == 'rate' else [{'rank': 1, 'name': 'Bob'}]\n"
    )
    (shop.path / "tests" / "rate.yml").write_text("prompt: rate\nsql: SELECT 0.0051 AS r\n", "utf-8")
    (shop.path / "tests" / "who.yml").write_text("prompt: who\nsql: SELECT 1 AS customers\n", "utf-8")
    result = shop.runpytest_subprocess("-v", "-rP")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "*::rate PASSED match (rounded) * 1 warning (-rP)*",
            "*::who PASSED match (extra columns ignored: name) * customers <- rank (by value) (-rP)*",
            "*- what the match needed -*",
            "allowed: `r`: rounded to 2 decimals (1 cell)",
            "warning: `r`: 1 value below 1 matched only after rounding; set `decimals` or",
            "*- what the match needed -*",
            "allowed: `customers` <- `rank` by value",
        ]
    )
