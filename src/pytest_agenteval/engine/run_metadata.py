"""What the results document says of a run: how it was started, on what, with which settings."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agenteval.config.settings import Settings
from pytest_agenteval.results.document.verdicts import VERDICT_CONTRACT

if TYPE_CHECKING:
    from pytest_agenteval.engine.context import RunContext


def run_info(context: RunContext, command: Sequence[str]) -> dict[str, Any]:
    """Return what the document says of the run."""
    from pytest_agenteval import __version__

    settings = context.settings
    card = _scorecard(context.root)
    return {
        "label": settings.label,
        "plugin_version": __version__,
        "verdict_contract": VERDICT_CONTRACT,
        "git_sha": git_sha(context.root),
        "command": [context.redactor.text(str(word)) for word in command],
        "target": context.redactor.text(settings.target or f"fixture {settings.fixture}"),
        "selection": list(settings.select),
        "config": shown_settings(settings, context.redactor.text),
        "context_hash": context_hash(context.root, context.project.context_files),
        **({"scorecard": card} if card is not None else {}),
    }


def _scorecard(root: Path) -> list[dict[str, Any]] | None:
    """Return the eight lines about the project's governance files, where there are any."""
    if not ((root / "datasets").is_dir() or (root / "policies").is_dir()):
        return None
    from pytest_agenteval.governance.scorecard import project_scorecard

    return project_scorecard(root)


def shown_settings(settings: Settings, redact: Callable[[str], str]) -> dict[str, Any]:
    """Return the settings that differ from their defaults, as text where JSON has no such value."""
    default = Settings()
    values = ((field.name, getattr(settings, field.name)) for field in fields(Settings))
    chosen = {name: value for name, value in values if name != "sources" and value != getattr(default, name)}
    return {name: _plain(value, redact) for name, value in chosen.items()}


def _plain(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, tuple):
        return [_plain(entry, redact) for entry in value]
    return redact(value) if isinstance(value, str) else value


def context_hash(root: Path, globs: Sequence[str]) -> str | None:
    """Return the sha256 of the context files' names and bytes (``None``: there are none)."""
    found = sorted({path for glob in globs for path in root.glob(glob) if path.is_file()})
    if not found:
        return None
    digest = hashlib.sha256()
    for path in found:
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def git_sha(root: Path) -> str | None:
    """Return the commit that ``root`` is at (``None``: not a git checkout)."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # without a commit git repeats the word it was asked for
    return found.stdout.strip() or None if found.returncode == 0 else None
