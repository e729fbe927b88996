"""What a run says of warnings and of gates, wherever it runs and however quiet."""

from __future__ import annotations

import pytest


@pytest.fixture
def warned(project):
    shop = project("pass")
    place = shop.path / "tests/cases.yml"
    place.write_text(place.read_text(encoding="utf-8") + "  colour: red\n", encoding="utf-8")
    return shop


@pytest.mark.parametrize("workers", [[], ["-n", "1"]])
def test_a_warning_about_a_case_file_stands_at_its_line(warned, workers):
    status, output = warned.run(*workers)
    assert status == 0, output
    assert "1 passed, 1 warning" in output
    assert "tests/cases.yml:4\n" in output
    assert "AgentEvalWarning: tests/cases.yml:4:3: unknown key 'colour'; a note of your own is" in output


def test_the_warning_can_be_filtered_by_its_public_name(warned):
    status, output = warned.run("-W", "ignore::pytest_agenteval.AgentEvalWarning")
    assert status == 0, output
    assert "colour" not in output
    status, output = warned.run("-W", "error::pytest_agenteval.AgentEvalWarning")
    assert status == 2
    assert "unknown key 'colour'" in output


def test_a_quiet_run_still_names_the_gate_that_does_not_hold(project):
    shop = project("pass", "raise ValueError")
    place = shop.path / "tests/cases.yml"
    place.write_text(place.read_text(encoding="utf-8").replace("raise ValueError\"\n  expected: [{a: 1}]",
                                                               "pass\"\n  expected: [{a: 2}]"))  # fmt: skip
    status, output = shop.run("-q", "--agent-fail-under", "51")
    assert status == 1
    assert "gate fails: --agent-fail-under 51: 1 of 2 passed, 50.0 %\ncases: 1 passed, 1 failed" in output
    status, output = shop.run("-q", "--agent-fail-under", "50")
    assert status == 0
    assert "gate" not in output
