"""The gates themselves: a branch lost in the core, or a tenth of any other room, is red."""

from __future__ import annotations

from typing import Any

import coverage_gates
import pytest


def entry(lines: int, missing: list[int], branches: list[list[int]]) -> dict[str, Any]:
    return {
        "summary": {
            "covered_lines": lines - len(missing),
            "num_statements": lines,
            "covered_branches": 10 - len(branches),
            "num_branches": 10,
        },
        "missing_lines": missing,
        "missing_branches": branches,
    }


@pytest.mark.parametrize(
    ("path", "room"),
    [
        ("src/pytest_agenteval/cases/loader.py", "cases"),
        ("/venv/lib/site-packages/pytest_agenteval/engine/evaluate.py", "engine/evaluate"),
        ("src/pytest_agenteval/engine/run.py", "engine"),
        ("src/pytest_agenteval/reports/html/pages.py", "reports"),
    ],
)
def test_a_file_belongs_to_a_room(path: str, room: str) -> None:
    assert coverage_gates.room(path) == room


def test_what_is_missing_is_told_in_spans_and_a_branch_of_a_missing_line_is_not_told_twice() -> None:
    report = {"files": {"x/pytest_agenteval/cases/a.py": entry(90, [3, 4, 5, 9], [[9, 10], [20, 22]])}}
    assert coverage_gates.shares(report) == {"cases": (94, 100, ["a.py: 3-5, 9, 20->22"])}


def full_core() -> dict[str, Any]:
    return {
        f"x/pytest_agenteval/{room}{'.py' if '/' in room else '/a.py'}": entry(90, [], [])
        for room in coverage_gates.CORE
    }


@pytest.mark.parametrize(
    ("path", "lost", "code"),
    [
        ("x/pytest_agenteval/cases/b.py", 8, 0),
        ("x/pytest_agenteval/cases/b.py", 12, 1),
        ("x/pytest_agenteval/agents/b.py", 12, 0),
        ("x/pytest_agenteval/agents/b.py", 40, 1),
    ],
)
def test_the_floor_is_higher_in_the_core(path: str, lost: int, code: int) -> None:
    files = full_core() | {path: entry(90, [], [[n, n + 1] for n in range(0, 2 * lost, 2)])}
    assert (1 if coverage_gates.verdicts({"files": files})[1] else 0) == code


def test_a_room_of_the_core_without_data_is_red() -> None:
    files = full_core()
    del files["x/pytest_agenteval/compare/a.py"]
    lines, red = coverage_gates.verdicts({"files": files})
    assert red
    assert lines[-1] == "no coverage data of compare"
