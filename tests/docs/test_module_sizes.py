"""A module that grows past what one can keep in mind is two modules; a tiny one says why it is one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest_agenteval

LONGEST = 600
SHORTEST = 40
ROOT = Path(pytest_agenteval.__file__).parent
TEXTS = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}


def test_no_module_is_longer_than_one_can_read() -> None:
    assert len(TEXTS) > 100
    lengths = {name: text.count("\n") for name, text in TEXTS.items()}
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


def test_a_tiny_module_says_why_it_stands_apart() -> None:
    """Splitting is for sense: packages' own files are exempt, all others give the reason."""
    tiny = {
        name: ast.get_docstring(ast.parse(text)) or ""
        for name, text in TEXTS.items()
        if text.count("\n") < SHORTEST and not name.endswith(("__init__.py", "__main__.py"))
    }
    assert tiny
    unexplained = [name for name, docstring in tiny.items() if "Stands apart" not in docstring]
    assert not unexplained, f"under {SHORTEST} lines: merge, or say in the docstring: 'Stands apart: ...'"
