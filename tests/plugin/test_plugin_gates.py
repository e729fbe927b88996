"""Gates decide instead of single failures; terminal, JUnit and exit code agree."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

SUM = "SELECT sum(amount) AS total FROM orders"
Write = Callable[..., None]


@pytest.fixture
def ten(shop: pytest.Pytester, write_case: Write) -> pytest.Pytester:
    """Nine right cases and one wrong one, tagged critical."""
    for number in range(9):
        write_case(f"right{number}", SUM)
    write_case("wrong", SUM, "SELECT 1 AS total", more="tags: [critical]")
    return shop


def results(path: Path) -> Path:
    return max((path / "tests" / "outputs").glob("results_*.json"))


@pytest.mark.parametrize(
    ("gate", "code", "text"),
    [
        (["--agent-fail-under", "90"], 0, ""),
        (["--agent-fail-under", "91"], 1, "--agent-fail-under 91: * 90.0 %*"),
        (["--agent-fail-under", "80", "--agent-fail-under", "tag:critical=100"], 1, "*tag:critical=100: *"),
    ],
)
def test_fail_under(ten: pytest.Pytester, gate: list[str], code: int, text: str) -> None:
    result = ten.runpytest(*gate, "--junitxml=out.xml", "-rx")
    assert result.ret == code
    result.assert_outcomes(passed=9, xfailed=1)
    result.stdout.fnmatch_lines(["XFAIL tests/wrong.yml::wrong - counted by the gate: values differ: *47*1*"])
    if text:
        result.stdout.fnmatch_lines([f"gate fails: {text}"])
    suite = ET.parse(ten.path / "out.xml").getroot()[0]
    skipped = suite.find("testcase/skipped")
    assert skipped is not None
    assert skipped.attrib["message"].startswith("counted by the gate: values differ: ")
    shown = "FAILURES that the gate counts" in result.stdout.str()
    assert shown is (code == 1)
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "1")
    document = json.loads(results(ten.path).read_text("utf-8"))
    assert document["cases"]["failed"] == 1
    assert [entry["holds"] for entry in document["run"]["gates"]][-1] is (code == 0)


@pytest.mark.parametrize("processes", [[], ["-n1"]])
def test_what_breaks_a_gate_shows_its_difference_and_a_tolerated_case_does_not(
    shop: pytest.Pytester, write_case: Write, processes: list[str]
) -> None:
    write_case("first", SUM)
    write_case("second", SUM, "SELECT 1 AS total")
    assert shop.runpytest().ret == 1
    write_case("first", SUM, "SELECT 4700 AS total")
    write_case("known", SUM, "SELECT 4 AS total", more="xfail: the source lacks May")
    result = shop.runpytest("--agent-baseline", "last", "-rx", "--junitxml=out.xml", *processes)
    assert result.ret == 1
    result.assert_outcomes(xfailed=3)
    result.stdout.fnmatch_lines(
        [
            "*= FAILURES that the gate counts =*",
            "*_ first _*",
            "values differ: *100 times*",
            "*expected *47*",
            "answered *4700*",
            "prompt *first? *",
            "gate fails: --agent-baseline: 1 regressed: first [[]agent] (values differ: *100 times*)",
            "XFAIL tests/known.yml::known - the source lacks May",
        ]
    )
    assert "_ second _" not in result.stdout.str()
    skips = {case.get("name"): case.find("skipped") for case in ET.parse("out.xml").getroot()[0]}
    messages = {name: skip.attrib["message"] for name, skip in skips.items() if skip is not None}
    assert messages["known"] == "the source lacks May"
    assert messages["first"].startswith("counted by the gate: values differ: ")
    quiet = shop.runpytest("--agent-baseline", "last", "--tb=no")
    assert "FAILURES that the gate counts" not in quiet.stdout.str()
    run = shop.runpytest("--agent-baseline", "last", "--runxfail", *processes)
    run.assert_outcomes(failed=3)
    run.stdout.fnmatch_lines(["FAILED tests/first.yml::first - values differ: *"])


def test_one_line_of_a_failure_says_what_differs(shop: pytest.Pytester, write_case: Write) -> None:
    write_case("cost", "SELECT 1090.75 AS cost", "SELECT 1090.8 AS cost")
    result = shop.runpytest("--junitxml=out.xml", "--agent-summary=out.md")
    words = "values differ: `cost` differs in 1 of 1 row: expected 1090.75, got 1090.8"
    assert f"FAILED tests/cost.yml::cost - {words[:20]}" in result.stdout.str()
    suite = ET.parse(shop.path / "out.xml").getroot()[0]
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.attrib["message"].startswith(words)
    properties = {p.attrib["name"]: p.attrib["value"] for p in suite.iter("property")}
    assert properties["agenteval_message"] == "values differ"  # nao's word
    row = "| cost | agent | FAILED | values differ: \\`cost\\` differs in 1 of 1 row: "
    assert row in (shop.path / "out.md").read_text("utf-8")
    entry = json.loads(results(shop.path).read_text("utf-8"))["results"][0]
    assert entry["message"] == "values differ"
    assert entry["why"].startswith(words)


def test_a_budget_without_prices_is_said_not_to_be_enforced(shop: pytest.Pytester, write_case: Write) -> None:
    write_case("one")
    write_case("two")
    result = shop.runpytest("--agent-budget", "0.001")
    result.stdout.fnmatch_lines(
        ["budget: not enforced: 2 answers have no known cost (*or tokens and a model)"]
    )
    assert "budget:" not in shop.runpytest().stdout.str()
    shop.makeconftest(
        "import pytest\nfrom pytest_agenteval import Answer\n@pytest.fixture\ndef agent():\n"
        "    return lambda task: Answer(data=[{'total': 47}], cost=0.1 if 'one?' in task.prompt else None)\n"
    )
    some = shop.runpytest("--agent-budget", "1")
    some.stdout.fnmatch_lines(["budget: 1 of 2 answers has no known cost and did not count"])


def test_what_is_unknown_is_no_property(shop: pytest.Pytester, write_case: Write) -> None:
    write_case("right")
    assert shop.runpytest("--junitxml=out.xml").ret == 0
    properties = {p.attrib["name"]: p.attrib["value"] for p in ET.parse("out.xml").getroot().iter("property")}
    assert properties == {
        "agenteval_model": "agent",
        "agenteval_message": "match",
        "agenteval_verdict": "passed",
    }


def test_an_error_is_never_tolerated(ten: pytest.Pytester) -> None:
    (ten.path / "tests" / "broken.yml").write_text(f"prompt: 'raise: down'\nsql: {SUM}\n", "utf-8")
    result = ten.runpytest("--agent-fail-under", "10")
    result.assert_outcomes(passed=9, xfailed=1, errors=1)
    result.stdout.fnmatch_lines(["not tolerated by a gate: 1 of 11 cases ended in an error"])
    assert result.ret == 1


def test_a_failing_ordinary_test_is_never_tolerated(ten: pytest.Pytester) -> None:
    (ten.path / "tests" / "test_plain.py").write_text("def test_plain():\n    assert 0\n", "utf-8")
    result = ten.runpytest("--agent-fail-under", "10")
    result.assert_outcomes(passed=9, xfailed=1, failed=1)
    assert result.ret == 1


def test_only_regressions_count_against_a_baseline(ten: pytest.Pytester, write_case: Write) -> None:
    assert ten.runpytest().ret == 1
    assert ten.runpytest("--agent-baseline", "last").ret == 0
    baseline = str(results(ten.path).relative_to(ten.path))
    write_case("right3", SUM, "SELECT 2 AS total")
    result = ten.runpytest("--agent-baseline", baseline)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["gate fails: *regressed: right3*"])
    write_case("right3", SUM)
    write_case("fresh", SUM, "SELECT 3 AS total")
    new = ten.runpytest("--agent-baseline", baseline)
    assert new.ret == 1
    new.stdout.fnmatch_lines(["gate fails: *fresh*"])


def test_what_is_needed_at_the_end_is_looked_for_at_the_beginning(ten: pytest.Pytester) -> None:
    missing = ten.runpytest("--agent-baseline", "gone.json")
    assert missing.ret == pytest.ExitCode.USAGE_ERROR
    missing.stderr.fnmatch_lines(["*gone.json*"])
    suffix = ten.runpytest("--agent-summary", "out.txt")
    assert suffix.ret == pytest.ExitCode.USAGE_ERROR
    suffix.stderr.fnmatch_lines(["*--agent-summary out.txt: the name must end in .md or .json*"])


def test_a_share_of_passes_is_green_everywhere(shop: pytest.Pytester) -> None:
    shop.makeconftest(
        "import pytest\n@pytest.fixture\ndef agent():\n"
        "    return lambda task: [{'n': 1 if task.attempt <= 3 else 2}]\n"
    )
    text = "prompt: One?\nexpected: [{n: 1}]\nk: 5\npass: 0.6\n"
    (shop.path / "tests" / "one.yml").write_text(text, "utf-8")
    result = shop.runpytest("--junitxml=out.xml", "-v")
    assert result.ret == 0
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*one PASSED 3/5*", "*flaky*"])
    assert ET.parse(shop.path / "out.xml").getroot()[0].get("failures") == "0"
    assert json.loads(results(shop.path).read_text("utf-8"))["cases"]["passed"] == 1
