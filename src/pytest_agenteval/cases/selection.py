"""``--agent-select``: folder, then exact name or stem, then glob, then prefix (nao's and Polaris' rules)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol, TypeVar

from pytest_agenteval.errors import SettingsError
from pytest_agenteval.support.files import shown_path
from pytest_agenteval.support.text import close_ones

SHOWN = 20
"""Available names that an error lists; the rest is counted."""


class Selectable(Protocol):
    """A case, as far as a selection looks at it."""

    @property
    def path(self) -> Path:
        """The case's file."""
        ...

    @property
    def name(self) -> str:
        """Its name, as written."""
        ...

    @property
    def id(self) -> str:
        """Its pytest id."""
        ...


C = TypeVar("C", bound=Selectable)


def select(cases: Sequence[C], words: Iterable[str], *, root: Path) -> list[C]:
    """Return the cases that ``words`` name, in the order of the words, each once.

    Blanks, empty and repeated words are tolerated. Raises ``SettingsError`` for a word that names
    nothing (with close and available names) and for a bare name that two files have.
    """
    chosen: dict[tuple[Path, str], C] = {}
    problems: list[str] = []
    for word in dict.fromkeys(word.strip() for word in words):
        if not word:
            continue
        try:
            for case in _matching(cases, word, root):
                chosen.setdefault((case.path, case.id), case)
        except SettingsError as wrong:
            problems.append(str(wrong))
    if problems:
        raise SettingsError("\n".join(problems))
    return list(chosen.values())


def _matching(cases: Sequence[C], word: str, root: Path) -> list[C]:
    if inside := [case for case in cases if _in_folder(case, word, root)]:
        return inside
    if exact := [case for case in cases if word in _names(case, root)]:
        files = list(dict.fromkeys(shown_path(case.path, root) for case in exact))
        if len(files) > 1:
            raise SettingsError(
                f"--agent-select: {word!r} is in {len(files)} files: {', '.join(files)}; give the path of one"
            )
        return exact
    if any(sign in word for sign in "*?["):
        found = [case for case in cases if any(fnmatchcase(name, word) for name in _names(case, root))]
    else:
        found = [case for case in cases if any(name.startswith(word) for name in _words(case))]
    if not found:
        raise SettingsError(_unknown(cases, word, root))
    return found


def _in_folder(case: Selectable, word: str, root: Path) -> bool:
    """Return whether ``word`` is a folder (or a path of folders) that the case's file lies in."""
    wanted = tuple(part for part in word.split("/") if part not in ("", "."))
    if not wanted:
        return False
    parts = Path(shown_path(case.path, root)).parts[:-1]
    return any(parts[i : i + len(wanted)] == wanted for i in range(len(parts) - len(wanted) + 1))


def _words(case: Selectable) -> tuple[str, ...]:
    return (case.name, case.id, case.path.stem)


def _names(case: Selectable, root: Path) -> tuple[str, ...]:
    """Return everything that names the case exactly: its names, and its file's path in part or whole."""
    path = Path(shown_path(case.path, root))
    tails = ["/".join(path.parts[i:]) for i in range(len(path.parts))]
    paths = [*tails, *(tail.removesuffix(path.suffix) for tail in tails)]
    return (*_words(case), *paths, *(f"{tail}::{case.id}" for tail in tails))


def _unknown(cases: Sequence[Selectable], word: str, root: Path) -> str:
    names = list(dict.fromkeys(case.name for case in cases))
    if not names:
        return f"--agent-select: no case is called {word!r}: there are no cases"
    folders = {part for case in cases for part in Path(shown_path(case.path, root)).parts[:-1]}
    near = close_ones(word, [*names, *(case.path.stem for case in cases), *folders])
    hint = f", did you mean {' or '.join(repr(name) for name in near)}?" if near else "."
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return (
        f"--agent-select: no case, file or folder is called {word!r}{hint} "
        f"Available: {', '.join(names[:SHOWN])}{more}"
    )
