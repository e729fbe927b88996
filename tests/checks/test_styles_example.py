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
    assert out.startswith("0 errors, 0 warnings in 3 governance files\n")
    assert "no database was asked: the fixture agenteval_databases defines them" in out
