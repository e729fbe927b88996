"""Loads the YAML blocks of the documentation as what they are: cases, pieces of one, project files."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from pytest_agenteval.cases.loader import load_cases
from pytest_agenteval.checks.registry import default_registry
from pytest_agenteval.config.project_file import find_project
from pytest_agenteval.errors import SettingsError


def case_problems(text: str, first: Any, error: str | None, folder: Path) -> list[str]:
    """Why this is not a case, or not the error that the page says it is."""
    path = folder / "loaded" / "tests" / "block.yml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_completed(text, first), encoding="utf-8")
    loaded = load_cases(path, checks=default_registry(), strict=True)
    found = [problem.text for problem in loaded.problems]
    if error is not None:
        return [] if any(error in text for text in found) else [f"{error!r} is not among the errors: {found}"]
    return found if found or loaded.cases else ["no case in this block"]


def _completed(text: str, first: Any) -> str:
    """A piece of a case becomes a case: its list of checks, or its keys, get a prompt."""
    if isinstance(first, list) and first and isinstance(first[0], dict) and "type" in first[0]:
        return "prompt: asked\nassertions:\n" + textwrap.indent(text, "  ")
    if isinstance(first, dict) and not {"prompt", "question", "say", "input", "cases"} & set(first):
        return "prompt: asked\n" + text
    return text


def project_problems(text: str, folder: Path) -> list[str]:
    """Why this is not (a piece of) a project file."""
    root = folder / "loaded"
    root.mkdir(exist_ok=True)
    (root / "agenteval.yaml").write_text(text, encoding="utf-8")
    try:
        find_project(root, environ={})
    except SettingsError as error:
        return [str(error)]
    return []
