"""conftest_example.py works as it stands: copied as conftest.py, with the case of its docstring."""

from __future__ import annotations

import ast
import json
import textwrap
from pathlib import Path

import pytest
from user_run import run_pytest

SOURCE = Path(__file__).parents[2] / "conftest_example.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    docstring = ast.get_docstring(ast.parse(SOURCE.read_text()))
    assert docstring is not None
    lines = docstring.partition("::\n\n")[2].partition("\n\n")[0]
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "open_tickets.yml").write_text(textwrap.dedent(lines) + "\n")
    (tmp_path / "conftest.py").write_text(SOURCE.read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def test_it_answers_its_case(project: Path) -> None:
    done = run_pytest(project, "--agent-model", "openai:gpt-4.1")
    assert done.returncode == 0, done.stdout
    (path,) = (project / "tests" / "outputs").glob("results_*.json")
    (result,) = json.loads(path.read_text())["results"]
    assert result["model"] == "openai:gpt-4.1"
    assert result["details"]["response_text"] == "2 teams have open tickets."
    assert result["tokens"] > 0
    assert result["mapping"], "open_tickets is matched with tickets by its values"


def test_what_it_cannot_answer_is_an_error_with_its_words(project: Path) -> None:
    (project / "tests" / "weather.yml").write_text(
        "prompt: Will it rain?\nsql: SELECT 1 AS rain FROM tickets LIMIT 1\n"
    )
    done = run_pytest(project)
    assert done.returncode == 1
    assert "this agent cannot answer: Will it rain?" in done.stdout
    assert "1 passed, 1 error" in done.stdout
