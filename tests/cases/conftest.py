from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_agenteval.cases.loader import LoadedFile, load_cases
from pytest_agenteval.checks.registry import default_registry


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., LoadedFile]:
    """Loads a text as ``tests/x.yml`` of a project whose only database is ``shop``."""

    def load(text: str | bytes, name: str = "x.yml", **options: Any) -> LoadedFile:
        path = tmp_path / "tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        options.setdefault("databases", ["shop"])
        return load_cases(path, checks=default_registry(), **options)

    return load


@pytest.fixture
def told(load: Callable[..., LoadedFile], tmp_path: Path) -> Callable[..., list[str]]:
    """The problems of a text, as they are printed; warnings begin with ``warning: ``."""

    def told(text: str | bytes, **options: Any) -> list[str]:
        problems = load(text, **options).problems
        return ["warning: " * (p.severity == "warning") + p.render(tmp_path) for p in problems]

    return told
