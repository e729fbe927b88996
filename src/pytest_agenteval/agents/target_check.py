"""What is wrong with a target before any case runs: nothing is imported, opened or asked for that."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agenteval.errors import SettingsError, VariableMissing

if TYPE_CHECKING:
    from pytest_agenteval.config.project_file import Project

ANY_URL = "http://localhost"
"""Stands for the URL where only the rest of an http block is looked at."""


def http_fault(project: Project, url: str) -> str | None:
    """Return what is wrong with the ``http`` block of a project file, secrets masked; ``None``: nothing.

    Where a variable that it needs is not set here, only a run can say. ``url`` beats the block's.
    """
    from pytest_agenteval.agents.kinds.http_config import read_config

    return _said(project, lambda: read_config(project.http, url))


def target_fault(target: str, project: Project, *, root: Path, present: bool) -> str | None:
    """Return what is wrong with a target; ``None``: nothing that can be known before a case runs.

    ``present``: also whether its program or file is there. What ``python:`` names is not looked for:
    importing it would run the user's code.
    """
    scheme, _, rest = target.partition(":")
    if scheme in ("http", "https"):
        return http_fault(project, target if target.startswith(("http://", "https://")) else rest)
    if scheme == "python":
        from pytest_agenteval.agents.kinds.python import parts_of

        return _said(project, lambda: parts_of(target))
    if scheme == "command":
        from pytest_agenteval.agents.kinds.command import words_of

        fault = _said(project, lambda: words_of(target))
        return fault or (_missing_program(words_of(target)[0]) if present else None)
    if scheme == "replay" and present:
        from pytest_agenteval.agents.kinds.replay import recording

        return _said(project, lambda: recording(target, root))
    return None


def _missing_program(word: str) -> str | None:
    """Return why a program cannot be found on PATH; a path may lead to what a fixture builds."""
    if os.sep in word or shutil.which(word) is not None:
        return None
    return f"target command: there is no program {word!r} on PATH"


def missing_variable(target: str | None, project: Project) -> str | None:
    """Return which environment variable a target needs that is not set here (``file:line: ...``)."""
    if target is None or target.partition(":")[0] not in ("http", "https"):
        return None
    try:
        _ = project.http
    except VariableMissing as wrong:
        return str(wrong)
    except SettingsError:
        return None
    return None


def _said(project: Project, read: Callable[[], Any]) -> str | None:
    from pytest_agenteval.config.known_secrets import redactor_of
    from pytest_agenteval.config.settings import Settings

    redactor = redactor_of(project, Settings())
    try:
        read()
    except VariableMissing:
        return None
    except SettingsError as wrong:
        return redactor.text(str(wrong))
    return None
