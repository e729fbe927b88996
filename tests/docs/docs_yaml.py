"""Loads the YAML blocks of the documentation as what they are: cases, pieces of one, project files."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def case_problems(text: str, first: Any, error: str | None, folder: Path) -> list[str]:
    raise NotImplementedError


def project_problems(text: str, folder: Path) -> list[str]:
    raise NotImplementedError
