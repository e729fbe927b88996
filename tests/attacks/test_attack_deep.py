"""Deeply nested JSON and names that mention people, in what is read and what is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_agenteval.cli import main
from pytest_agenteval.errors import AgentFailed, ResultsError
from pytest_agenteval.llm.http_response import HttpResponse
from pytest_agenteval.reports.text import markdown, unmentioned
from pytest_agenteval.results.document.load import read_document

DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("text", [DEEP, '{"results": ' + DEEP + "}", '{"results": [{"name": ' + DEEP + "}]}"])
def test_results_nested_without_end_are_refused(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "results_20260101_000000.json"
    place.write_text(text, encoding="utf-8")
    with pytest.raises(ResultsError, match="not a results file"):
        list(read_document(place).entries())
    assert main(["report", str(place)]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_an_answer_nested_without_end_is_an_error_of_the_agent() -> None:
    reply = HttpResponse("http agent", "http://x", 200, {"content-type": "application/json"}, DEEP.encode())
    with pytest.raises(AgentFailed, match="JSON"):
        reply.json()


def test_nobody_is_mentioned() -> None:
    assert "@\u2060team" in unmentioned("asks @team")
    assert "@\u2060team" in markdown("asks @team")
    assert unmentioned("a @ b") == "a @ b"
