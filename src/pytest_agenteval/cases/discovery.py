"""Which YAML files are case files: by globs, by name, or by what they hold (spec/cases.md).

Nothing here imports YAML before the bytes of a file look like a case's.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pytest_agenteval.support.files import below, shown_path

if TYPE_CHECKING:
    from pytest_agenteval.cases.yaml_reader import Node

SUFFIXES = (".yml", ".yaml")
_SKIPPED = frozenset(("_darcs", "build", "CVS", "dist", "node_modules", "venv", "{arch}", "__pycache__"))
# ASKING, as bytes
_ASKS = rb"[\"']?(?:prompt|question|say|input)[\"']?\s*:(?=\s|$)"
# CHECKING and expected, as bytes
_CHECKS = rb"[\"']?(?:sql|sql_file|assertions|expect|expected|expected_response|outcome)[\"']?\s*:(?=\s|$)"
_OTHERS = rb"(?:name|id|description|database|comparison|models|tags|owner|metadata|vars|context)\s*:(?=\s|$)"
_MARGIN = rb"^(?:\xef\xbb\xbf)?"
_INSIDE = rb"(?:^|[\s{,\-\[])"
_ASKS_ANYWHERE = re.compile(_INSIDE + _ASKS, re.MULTILINE)
_CHECKS_ANYWHERE = re.compile(_INSIDE + _CHECKS, re.MULTILINE)
_ASKS_AT_MARGIN = re.compile(_MARGIN + _ASKS, re.MULTILINE)
_KEY_AT_MARGIN = re.compile(_MARGIN + rb"(?:" + _CHECKS + rb"|" + _OTHERS + rb")", re.MULTILINE)
# a list, flow style (no template's {{ or {%), or cases:, beginning at the margin
_CASES_AT_MARGIN = re.compile(
    _MARGIN + rb"(?:---[ \t]+)?(?:-(?:\s|$)|\[|\{(?![{%#])|[\"']?cases[\"']?\s*:)", re.MULTILINE
)
_DATASET_CASES = re.compile(rb"^[\"']?eval_test_cases[\"']?\s*:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """What a project says about which of its files are cases.

    ``globs`` is ini ``agenteval_files``, relative to ``root`` (``*`` crosses ``/``). ``speaks``: the
    project mentions this plugin (a project file, an ini key or an option of it). ``whole`` is the folder
    in which the program of the project file, ``program``, takes every YAML file for a case.
    """

    root: Path
    globs: Sequence[str] = ()
    speaks: bool = True
    whole: Path | None = None
    program: str | None = None


@dataclass(frozen=True, slots=True)
class FileClaim:
    """Why a file is ours. ``strict``: it must hold cases; otherwise it is ours only if it does.

    ``why`` is what the faults of a file end with that the user did not name (``''``: it was named);
    ``speaks`` as in ``ClaimRules``.
    """

    kind: Literal["cases", "dataset"]
    strict: bool
    why: str = ""
    speaks: bool = True


def claim(path: Path, rules: ClaimRules, *, named: bool = False) -> FileClaim | None:
    """Return whether ``path`` is a case file of the project; ``None``: leave it alone.

    ``named`` says that the file itself stands on the command line. Raises ``OSError`` for an
    unreadable file.
    """
    root = rules.root
    if path.suffix.lower() not in SUFFIXES or "outputs" in _folders(path, root):
        return None
    if path.name.startswith("dataset.") and path.parent.parent.name == "datasets":
        return FileClaim("dataset", named) if named or _DATASET_CASES.search(path.read_bytes()) else None
    if named or any(fnmatch(shown_path(path, root), glob) for glob in rules.globs):
        return FileClaim("cases", strict=True)
    if rules.globs or "tests" not in (*_folders(path, root), root.name):
        return None
    return _claim_by_content(path, rules)


def _claim_by_content(path: Path, rules: ClaimRules) -> FileClaim | None:
    data = _as_utf8(path.read_bytes())
    if rules.whole is not None and path.is_relative_to(rules.whole):
        if _is_another_programs(data):
            return None
        return FileClaim("cases", True, _why(f"in a {rules.program} project every YAML file below tests is"))
    signs = sniff(data, speaks=rules.speaks)
    return FileClaim("cases", False, _why(f"it has {signs}"), rules.speaks) if signs else None


def _as_utf8(data: bytes) -> bytes:
    """Return the bytes of a UTF-16 file as UTF-8: what it holds decides, its encoding is an error later."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace").encode()
    return data


def _why(reason: str) -> str:
    return f" (taken for a case because {reason}; if it is not one, set agenteval_files)"


def sniff(data: bytes, *, speaks: bool = True) -> str:
    """Return what in the bytes of a YAML file makes it a case file (``'prompt'``); ``''``: it is none.

    Where the project ``speaks`` of us a file is one that asks or checks in its first entry, and one
    that is broken where it would; elsewhere one that asks and checks.
    """
    asks, checks = _ASKS_ANYWHERE.search(data), _CHECKS_ANYWHERE.search(data)
    if not speaks:
        return _signs(data, form=True) if asks and checks else ""
    if hit := _ASKS_AT_MARGIN.search(data):
        return repr(re.sub(r"[\W]", "", hit[0].decode("utf-8-sig")))
    return _signs(data) if asks or checks else ""


def _signs(data: bytes, *, form: bool = False) -> str:
    from pytest_agenteval.cases.recognition import signs_of
    from pytest_agenteval.cases.yaml_reader import MAX_BYTES, compose, decode

    if form and len(data) > MAX_BYTES:
        return ""
    text, problem = decode(Path(), data)
    roots: list[Node] = []
    if problem is None:
        roots, problem = compose(Path(), text)
    if problem is not None:
        return "" if form else _broken_sign(data)
    found = signs_of(roots, form=form)
    return "" if form and (found.asks is None or found.checks is None) else found.shown


def _broken_sign(data: bytes) -> str:
    """Return why a file that cannot be read is taken for a case: a line that asks, where a case has it."""
    if (hit := _ASKS_ANYWHERE.search(data)) is None:
        return ""
    if _CASES_AT_MARGIN.search(data) or _KEY_AT_MARGIN.search(data):
        return f"the line {hit[0].strip(b' {,-[').decode('utf-8-sig', 'replace').strip()!r}"
    return ""


def _is_another_programs(data: bytes) -> bool:
    from pytest_agenteval.cases.recognition import is_foreign
    from pytest_agenteval.cases.yaml_reader import compose, decode

    text, problem = decode(Path(), data)
    return problem is None and is_foreign(compose(Path(), text)[0])


def find(paths: Iterable[Path], rules: ClaimRules) -> list[tuple[Path, FileClaim]]:
    """Return every case file among ``paths`` (files, taken as named) and below them (folders), sorted."""
    found: dict[Path, FileClaim] = {}
    for path in paths:
        for entry in sorted(visible_files(path)) if path.is_dir() else [path]:
            # neither a dangling link, as editors make to lock a file, nor a pipe
            if entry.suffix.lower() in SUFFIXES and (entry == path or entry.is_file()):
                reason = claim(entry, rules, named=entry == path)
                if reason is not None:
                    found.setdefault(entry, reason)
    return list(found.items())


def near_miss(path: Path, rules: ClaimRules) -> str | None:
    """Return the key by which a file looks like a case that asks nothing;
    only in a project that does not mention this plugin.
    """
    if rules.globs or rules.speaks or path.suffix.lower() not in SUFFIXES or not path.is_file():
        return None
    inside = _folders(path, rules.root)
    if "outputs" in inside or "tests" not in (*inside, rules.root.name):
        return None
    data = path.read_bytes()
    if not _CHECKS_ANYWHERE.search(data):
        return None
    from pytest_agenteval.cases.recognition import signs_of
    from pytest_agenteval.cases.yaml_reader import MAX_BYTES, compose, decode

    text, problem = decode(path, data) if len(data) <= MAX_BYTES else ("", None)
    found = signs_of(compose(path, text)[0], form=True) if problem is None else None
    return found.checks if found is not None and found.asks is None else None


def overlooked(folders: Iterable[Path], rules: ClaimRules) -> Iterator[tuple[Path, str]]:
    """Yield every ``near_miss`` below ``folders``, with its key."""
    for folder in folders:
        for path in sorted(visible_files(folder)) if folder.is_dir() else ():
            if (key := near_miss(path, rules)) is not None:
                yield path, key


def visible_files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, without those folders that pytest does not enter either."""
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
