"""docs/examples/styles: the Lightdash, Tent and dazense suites, as a user runs them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pytest_agenteval.cli import main

SOURCE = Path(__file__).parents[2] / "docs" / "examples" / "styles"


@pytest.fixture
def styles(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A copy of the example, its modules forgotten afterwards."""
    skipped = shutil.ignore_patterns("outputs", "__pycache__")
    shutil.copytree(SOURCE, pytester.path, dirs_exist_ok=True, ignore=skipped)
    monkeypatch.setenv("STYLES_JUDGE_URL", "")
    return pytester


OPTIONS = ("-q", "-o", "asyncio_default_fixture_loop_scope=function")


def verdicts(root: Path) -> dict[str, tuple[str, str]]:
    (file,) = (root / "tests" / "outputs").glob("results_*.json")
    results = json.loads(file.read_text(encoding="utf-8"))["results"]
    return {entry["name"]: (entry["verdict"], entry["message"]) for entry in results}


def test_all_three_suites_pass(styles: pytest.Pytester) -> None:
    result = styles.runpytest(*OPTIONS)
    assert result.ret == 0
    result.assert_outcomes(passed=10)


def test_the_report_has_the_scorecard(styles: pytest.Pytester, capsys: pytest.CaptureFixture[str]) -> None:
    result = styles.runpytest("-o", "asyncio_default_fixture_loop_scope=function", "datasets")
    result.stdout.fnmatch_lines(["governance: 7 of 8 (no: require_contract)"])
    (file,) = (styles.path / "tests" / "outputs").glob("results_*.json")
    assert json.loads(file.read_text(encoding="utf-8"))["run"]["scorecard"][6] == {
        "name": "cases present",
        "yes": True,
        "detail": "3 cases",
    }
    capsys.readouterr()
    assert main(["report", str(file), "--format", "markdown"]) == 0
    assert (
        "| require_contract | **no** | the policy requires a contract |"
        in capsys.readouterr().out.replace("\\", "")
    )


def broken(styles: pytest.Pytester, *changes: tuple[str, str]) -> None:
    """Change the assistant: each piece of its text occurs once."""
    file = styles.path / "assistant.py"
    text = file.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


def test_an_assistant_that_guesses_fails_the_lightdash_suite(styles: pytest.Pytester) -> None:
    broken(
        styles,
        ("if year is None and task.clarification:", "if False:"),
        ("I cannot perform statistical forecasting or predict future values.", "It will be 1,400.00."),
        ("Total order revenue was {total:,} in", "Total order revenue was {total + 10:,} in"),
        ('"chart_type": "bar"', '"chart_type": "pie"'),
        ("WHERE amount > {number} AND", "WHERE amount < {number} AND"),
    )
    result = styles.runpytest(*OPTIONS, "tests/lightdash")
    result.assert_outcomes(failed=5)
    told = {name: message for name, (_, message) in verdicts(styles.path).items()}
    assert told["revenue_2024"] == "text: 1,199.60 is neither in the rows nor in the question"
    assert "outcome: answer, expected clarify" in told["ambiguous_revenue"]
    assert "outcome: answer, expected refuse" in told["no_forecast"]
    assert told["shipping_by_month"] == "chart: type pie, expected bar"
    assert "outcome: answer, expected no_data (the answer has" in told["huge_orders"]


def test_an_assistant_that_acts_without_asking_fails_the_tent_suite(styles: pytest.Pytester) -> None:
    broken(
        styles,
        ('ToolCall("lookup_order", ', 'ToolCall("find_order", '),
        ("asked=True, approved=allowed)", "asked=False)"),
        ("every open order is named here, and no other: {names}.", "have a nice day."),
    )
    result = styles.runpytest(*OPTIONS, "tests/tent")
    result.assert_outcomes(failed=2)
    told = {name: message for name, (_, message) in verdicts(styles.path).items()}
    assert "missing tool_call: lookup_order" in told["refund flow"]
    assert "asked: refund did not ask a person" in told["refund flow"]
    assert "judge: 0.00, need >= 0.5 for 'Names every open order and no other'" in told["refund flow"]
    assert "asked: refund did not ask a person" in told["approved refund"]


def test_an_assistant_that_forgets_the_policy_fails(styles: pytest.Pytester) -> None:
    assistant = styles.path / "assistant.py"
    text = assistant.read_text(encoding="utf-8")
    wrong = 'return self.say("Here they are.", self.query("SELECT * FROM customers"))\n        checks = []'
    assistant.write_text(
        text.replace('checks = [{"name": "pii_block"', f'{wrong}\n        checks = [{{"name": "x"', 1)
    )
    result = styles.runpytest(*OPTIONS, "datasets")
    assert result.ret == 1
    result.assert_outcomes(passed=2, failed=1)
    verdict, message = verdicts(styles.path)["pii_names"]
    assert verdict == "failed"
    assert "governance: pii_block: PII column main.customers.first_name came back in the rows" in message
    assert "pii_block_star: select star * reaches main.customers.first_name" in message
    assert "decision allow (a query ran and a table came), expected block" in message
    assert "check pii_block should have failed, decision allow" in message


def test_its_governance_is_consistent(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(SOURCE)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("0 errors, 0 warnings in 4 governance files\n")
    assert "no database was asked: the fixture agenteval_databases defines them" in out
