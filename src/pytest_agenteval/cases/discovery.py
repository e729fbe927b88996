"""Which YAML files are case files: by globs, by name, or by a look at the bytes.

Nothing here imports YAML before a line of the file looks like a case's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal

from pytest_agenteval.support.files import below, shown_path

SUFFIXES = (".yml", ".yaml")
_SKIPPED = frozenset(("_darcs", "build", "CVS", "dist", "node_modules", "venv", "{arch}", "__pycache__"))
# document.ASKING, as bytes
_WORDS = rb"[\"']?(?:prompt|question|say|input)[\"']?\s*:(?=\s|$)"
_ANYWHERE = re.compile(rb"(?:^|[\s{,\-\[])" + _WORDS, re.MULTILINE)
_AT_MARGIN = re.compile(rb"^(?:\xef\xbb\xbf)?" + _WORDS, re.MULTILINE)
# a list, flow style (no template's {{ or {%), or cases:, beginning at the margin
_CASES_AT_MARGIN = re.compile(
    rb"^(?:\xef\xbb\xbf)?(?:---[ \t]+)?(?:-(?:\s|$)|\[|\{(?![{%#])|[\"']?cases[\"']?\s*:)", re.MULTILINE
)
# what only a case would have; a file with it and without a prompt is most likely a slip
_ANSWERED = re.compile(
    rb"^(?:\xef\xbb\xbf)?[\"']?(sql|sql_file|assertions|expected_response)[\"']?\s*:(?=\s|$)",
    re.MULTILINE | re.I,
)
_DATASET_CASES = re.compile(rb"^[\"']?eval_test_cases[\"']?\s*:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FileClaim:
    """Why a file is ours. ``strict``: it must hold cases; otherwise it is ours only if it does."""

    kind: Literal["cases", "dataset"]
    strict: bool


def claim(path: Path, *, root: Path, globs: Sequence[str] = (), named: bool = False) -> FileClaim | None:
    """Whether ``path`` is a case file of the project at ``root``; ``None``: leave it alone.

    ``globs`` is ini ``agenteval_files``, relative to ``root`` (``*`` crosses ``/``); ``named`` says
    that the file itself stands on the command line. Raises ``OSError`` for an unreadable file.
    """
    if path.suffix not in SUFFIXES or "outputs" in _folders(path, root):
        return None
    if path.name.startswith("dataset.") and path.parent.parent.name == "datasets":
        return FileClaim("dataset", named) if named or _DATASET_CASES.search(path.read_bytes()) else None
    if named or any(fnmatch(shown_path(path, root), glob) for glob in globs):
        return FileClaim("cases", strict=True)
    if globs or "tests" not in (*_folders(path, root), root.name):
        return None
    return FileClaim("cases", strict=False) if sniff(path.read_bytes()) else None


def sniff(data: bytes) -> bool:
    """Whether the bytes of a YAML file hold a case, or are broken where they would.

    A top-level ``prompt`` (or alias), or one in the first entry of ``cases:``, of a list or of
    several documents.
    """
    if _AT_MARGIN.search(data):
        return True
    if not (_ANYWHERE.search(data) and _CASES_AT_MARGIN.search(data)):
        return False
    from pytest_agenteval.cases.yaml_reader import asks

    return asks(data)


def find(paths: Iterable[Path], *, root: Path, globs: Sequence[str] = ()) -> list[tuple[Path, FileClaim]]:
    """Every case file among ``paths`` (files, taken as named) and below them (folders), sorted."""
    found: dict[Path, FileClaim] = {}
    for path in paths:
        for entry in sorted(visible_files(path)) if path.is_dir() else [path]:
            if entry.suffix in SUFFIXES:
                reason = claim(entry, root=root, globs=globs, named=entry == path)
                if reason is not None:
                    found.setdefault(entry, reason)
    return list(found.items())


def overlooked(
    folders: Iterable[Path], *, root: Path, globs: Sequence[str] = ()
) -> Iterator[tuple[Path, str]]:
    """Files below ``tests`` that look like a case but for the prompt, with the key that looks so."""
    for folder in folders if not globs else ():
        for path in sorted(visible_files(folder)) if folder.is_dir() else ():
            inside = _folders(path, root)
            if path.suffix not in SUFFIXES or "outputs" in inside or "tests" not in (*inside, root.name):
                continue
            hit = _ANSWERED.search(path.read_bytes())
            if hit is not None and claim(path, root=root) is None:
                yield path, hit[1].decode()


def visible_files(folder: Path) -> Iterator[Path]:
    """The files below a folder, without those folders that pytest does not enter either."""
    for place, names, files in os.walk(folder):
        names[:] = [
            name
            for name in names
            if not name.startswith(".")
            and name not in _SKIPPED
            and not name.endswith(".egg")
            and not Path(place, name, "pyvenv.cfg").is_file()
        ]
        yield from (Path(place, name) for name in files)


def _folders(path: Path, root: Path) -> tuple[str, ...]:
    return below(path, root).parts[:-1]
