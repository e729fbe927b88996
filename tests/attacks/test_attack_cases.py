"""A file of cases alone runs no code, reads nothing outside of the project, and never hangs or crashes."""

from __future__ import annotations

import os
from decimal import Decimal, getcontext, localcontext
from pathlib import Path

import pytest

from pytest_agenteval.cases.discovery import FileClaim
from pytest_agenteval.cases.loader import load_cases
from pytest_agenteval.checks.registry import default_registry
from pytest_agenteval.compare import compare
from pytest_agenteval.table import Table


def errors(folder: Path, text: str) -> str:
    tests = folder / "tests"
    tests.mkdir(exist_ok=True)
    path = tests / "c.yml"
    path.write_text(text, encoding="utf-8")
    loaded = load_cases(path, checks=default_registry(), claim=FileClaim("cases", True), root=folder)
    return "\n".join(problem.render(folder) for problem in loaded.errors)


@pytest.mark.parametrize("mark", ["skipif", "xfail"])
def test_a_condition_that_pytest_would_run_as_code_is_refused(tmp_path: Path, mark: str) -> None:
    for arguments in ("\"__import__('os').system('x')\", reason='x'", "condition='1 == 1', reason='x'"):
        text = f"prompt: go\nexpected: [{{n: 1}}]\nmarks:\n  - |-\n    {mark}({arguments})\n"
        said = errors(tmp_path, text)
        assert f"the condition of {mark} is a text, which pytest would run as code" in said
    assert errors(tmp_path, "prompt: go\nexpected: [{n: 1}]\nmarks: [\"skipif(True, reason='x')\"]\n") == ""


@pytest.mark.parametrize("place", ["/proc/self/environ", "../../secret.sql", "/etc/hostname"])
def test_files_outside_of_the_project_are_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "secret.sql").write_text("SELECT 1", encoding="utf-8")
    home = tmp_path / "project"
    home.mkdir()
    assert f"sql_file: {place!r} lies outside of the project" in errors(
        home, f"prompt: go\nsql_file: {place}\n"
    )
    said = errors(home, f"prompt: go\nexpected: {{file: {place}}}\n")
    assert f"expected.file: {place!r} lies outside of the project" in said


def test_pipes_and_devices_are_errors_with_a_place(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    os.mkfifo(tmp_path / "tests" / "pipe.sql")
    said = errors(tmp_path, "prompt: go\nsql_file: pipe.sql\n")
    assert "tests/c.yml:2:11" in said
    assert "not a file (a folder, a pipe or a device)" in said


@pytest.mark.parametrize("number", ["9" * 5000, "1:1:1:1:1:" + "1:" * 2000 + "1", "-" + "9" * 5000])
def test_numbers_without_end_are_errors_with_a_place(tmp_path: Path, number: str) -> None:
    assert "tests/c.yml:2:" in errors(tmp_path, f"prompt: go\nk: {number}\nexpected: [{{n: 1}}]\n")
    assert "Traceback" not in errors(tmp_path, f"prompt: go\nexpected: [{{n: {number}}}]\n")


def test_the_comparison_has_a_decimal_context_of_its_own() -> None:
    expected = Table.from_rows(["a"], [[Decimal("35887.50")]], ["DECIMAL(18,2)"])
    with localcontext():
        getcontext().prec = 2
        getcontext().Emax = 2
        same = Table.from_rows(["a"], [[Decimal("35887.50")]], ["DECIMAL(18,2)"])
        other = Table.from_rows(["a"], [[Decimal("35900.00")]], ["DECIMAL(18,2)"])
        assert compare(expected, same).matched
        assert not compare(expected, other).matched


def test_hundreds_of_columns_in_one_row_prove_nothing() -> None:
    expected = Table.from_rows(["revenue"], [[Decimal("35887.50")]], ["DECIMAL(18,2)"])
    cents = [Decimal(number) / 4 for number in range(143_000, 144_000)]
    lucky = Table.from_rows([f"c{number}" for number in range(1000)], [cents], [None] * 1000)
    assert not compare(expected, lucky).matched
    few = Table.from_rows(["a", "b"], [[Decimal("35887.50"), 1]], [None, None])
    assert compare(expected, few).matched
