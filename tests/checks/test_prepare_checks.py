"""What checks look for before an agent is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks_kit import parsed

from pytest_agenteval.cases.model import Budget, Case, Turn
from pytest_agenteval.checks.runner import prepare_checks
from pytest_agenteval.errors import CheckFailed, JudgeFailed, SettingsError
from pytest_agenteval.support.importing import load_object


class Project:
    """A project in a folder, as checks see it, without a judge; ``words`` are what it was asked for."""

    judge = None

    def __init__(self, root: Path, error: Exception | None = None) -> None:
        self.root = str(root)
        self.error = error
        self.words: list[str] = []

    def schema(self) -> dict[str, list[str]]:
        self.words.append("schema")
        return {}

    def dialect(self) -> str:
        self.words.append("dialect")
        if self.error is not None:
            raise self.error
        return "duckdb"

    def resolve(self, reference: str) -> Any:
        return load_object(reference, Path(self.root))


def prepare(project: Project, *raw: dict[str, Any], **more: Any) -> None:
    """Prepare a case with these assertions."""
    checks = tuple(parsed(**entry) for entry in raw)
    case = Case(path=Path("a.yml"), line=1, name="a", id="a", turns=(Turn("q"),), assertions=checks, **more)
    prepare_checks(case, project)  # type: ignore[arg-type]


def test_nothing_is_needed(tmp_path: Path) -> None:
    project = Project(tmp_path)
    prepare(project, {"type": "text", "contains": "x"}, {"type": "governance", "decision": "allow"},
            budget=Budget(tokens=1))  # fmt: skip
    prepare(project, {"type": "sql", "read_only": True, "dialect": "duckdb"})
    assert project.words == []


def test_a_dialect_and_files(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (tmp_path / "policy.yml").write_text("version: 1\n")
    prepare(project, {"type": "sql", "read_only": True}, {"type": "governance", "policy": "policy.yml"})
    assert project.words == ["dialect", "dialect"]
    with pytest.raises(CheckFailed, match=r"governance: other\.yml does not exist"):
        prepare(project, {"type": "governance", "policy": "other.yml"})


def test_a_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "prepared_scores.py").write_text("def good(evidence):\n    return True\n\nBAD = 1\n")
    (tmp_path / "prepared_broken.py").write_text("raise ValueError('half written')\n")
    project = Project(tmp_path)
    prepare(project, {"type": "python", "call": "prepared_scores:good"})
    for call, text in (
        ("prepared_scores:other", "prepared_scores:other is not there"),
        ("prepared_scores:BAD", "prepared_scores:BAD is a int, expected a function"),
        ("prepared_broken:good", "prepared_broken:good cannot be imported: ValueError: half written"),
    ):
        with pytest.raises(CheckFailed, match=text):
            prepare(project, {"type": "python", "call": call})


@pytest.mark.parametrize(
    "raw", [{"type": "judge", "rule": "be kind"}, {"type": "factuality", "expected": "x"}]
)
def test_a_judge(tmp_path: Path, raw: dict[str, Any]) -> None:
    with pytest.raises(JudgeFailed, match=f"{raw['type']} needs a judge and none is configured"):
        prepare(Project(tmp_path), raw)
    with pytest.raises(JudgeFailed, match="factuality needs a judge"):
        prepare(Project(tmp_path), expected_response=("x",))


def test_another_error_names_the_check(tmp_path: Path) -> None:
    with pytest.raises(CheckFailed, match="sql check: no such setting"):
        prepare(Project(tmp_path, SettingsError("no such setting")), {"type": "sql", "read_only": True})
