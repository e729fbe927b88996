"""The project's texts that our own analyst may read: ``context_files`` globs, never its tests.

Stands apart: what the analyst may read is a rule of safety, not of asking.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

HIDDEN = ("tests", "outputs")
"""Folders whose files no built-in agent reads: cases and results hold the answers."""


def find_context_files(root: Path, patterns: Sequence[str]) -> tuple[Path, ...]:
    """Return the files below ``root`` that match, in the order of the patterns, each once.

    Whatever lies in a folder named ``tests`` or ``outputs``, or outside of ``root`` (also through a
    link), is left out.
    """
    home = root.resolve()
    found: dict[Path, None] = {}
    for pattern in patterns:
        for path in sorted(root.glob(pattern.removeprefix("./"))):
            real = path.resolve()
            if not real.is_file() or not real.is_relative_to(home):
                continue
            parts = (*path.relative_to(root).parts, *real.relative_to(home).parts)
            if not set(HIDDEN) & set(parts):
                found[path] = None
    return tuple(found)


def read_context(root: Path, patterns: Sequence[str]) -> str:
    """Return their texts, each under its name; '' when there are none."""
    parts = []
    for path in find_context_files(root, patterns):
        text = path.read_text(encoding="utf-8", errors="replace").strip()
        parts.append(f"## {path.relative_to(root).as_posix()}\n{text}")
    return "\n\n".join(parts)
