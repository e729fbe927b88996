"""Which folder's project file counts: the nearest one above the cases, up to rootdir.

It is loaded in every pytest run, so it imports next to nothing and reads a file only where its name is
not enough.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_agenteval.support.files import shown_path
from pytest_agenteval.types import NAO_KINDS

if TYPE_CHECKING:
    from pytest_agenteval.cases.discovery import ClaimRules

FOREIGN_FILES = tuple(f"{kind}_config.yaml" for kind in NAO_KINDS)
"""Other programs' project files, in the order they are looked for."""
PROJECT_FILES = ("agenteval.yaml", *FOREIGN_FILES)
_OWN_TABLE = re.compile(r"^\s*\[+\s*tool\s*\.\s*[\"']?agenteval\b", re.MULTILINE)


class ProjectFolder(NamedTuple):
    """The folder of a project file, and the file; ``file`` is ``None`` where there is none."""

    path: Path
    file: Path | None = None


def project_folder(start: Path, root: Path) -> ProjectFolder:
    """Return the nearest project file from ``start`` (a folder) up to ``root``;
    ``root`` where there is none.
    """
    folders = [folder for folder in (start, *start.parents) if folder.is_relative_to(root)]
    for folder in folders or [root]:
        if (file := project_file_in(folder)) is not None:
            return ProjectFolder(folder, file)
    return ProjectFolder(root)


def project_file_in(folder: Path) -> Path | None:
    """Return the project file of a folder: by its name, or a pyproject.toml with a table of this plugin."""
    for name in PROJECT_FILES:
        if (folder / name).is_file():
            return folder / name
    toml = folder / "pyproject.toml"
    try:
        return toml if _OWN_TABLE.search(toml.read_text(encoding="utf-8", errors="replace")) else None
    except OSError:
        return None


def unread_note(path: Path, root: Path, home: Path) -> str:
    """Say which project file lies nearer to ``path`` than the one of ``home`` that counts ('': none does)."""
    nearer = project_folder(path if path.is_dir() else path.parent, root)
    if nearer.file is None or nearer.path == home:
        return ""
    seen, folder = shown_path(nearer.file, root), shown_path(nearer.path, root)
    read = project_file_in(home)
    counts = shown_path(read, root) if read is not None else "none"
    return (
        f"; {seen} was seen but not read: this run's project file is {counts}, its rootdir {root}; "
        f"run pytest in {folder}, or with --rootdir={folder}"
    )


def common_folder(paths: Iterable[Path], default: Path) -> Path:
    """Return the folder that all of ``paths`` lie in; ``default`` where none of them is there."""
    there = [path if path.is_dir() else path.parent for path in paths if path.exists()]
    return Path(os.path.commonpath(there)) if there else default


def claim_rules(root: Path, globs: Sequence[str], speaks: bool, file: Path | None) -> ClaimRules:
    """Return which files are cases, by what the ini (``globs``) and the project ``file`` say."""
    from pytest_agenteval.cases.discovery import ClaimRules

    if file is None or file.name not in FOREIGN_FILES:
        return ClaimRules(root, tuple(globs), speaks)
    return ClaimRules(root, tuple(globs), speaks, file.parent / "tests", file.name.partition("_")[0])
