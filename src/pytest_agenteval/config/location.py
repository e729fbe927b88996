"""Where a command runs: rootdir, pytest's ini values, the project file, the settings of both."""

from __future__ import annotations

import configparser
import glob
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agenteval.config.options import OPTIONS
from pytest_agenteval.config.project_folder import PROJECT_FILES, claim_rules, common_folder, project_folder
from pytest_agenteval.errors import SettingsError

if TYPE_CHECKING:
    from pytest_agenteval.cases.discovery import ClaimRules
    from pytest_agenteval.checks.registry import Registry
    from pytest_agenteval.config.project_file import Project
    from pytest_agenteval.config.settings import Settings
    from pytest_agenteval.databases import Databases

_INI_FILES = (
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
)
"""In pytest's order; the first that speaks to pytest counts."""


@dataclass(frozen=True, slots=True)
class ProjectLocation:
    """A project as the commands see it.

    ``root`` is pytest's rootdir; ``home`` the folder of the project file that counts, below or at it.
    ``testpaths`` are folders that exist. ``speaks``: something in the project is ours. ``plugins`` are
    the modules that the ini file has pytest load, ``python_path`` the folders where it looks for them.
    """

    root: Path
    testpaths: tuple[Path, ...]
    settings: Settings
    project: Project
    home: Path
    speaks: bool
    plugins: tuple[str, ...] = ()
    python_path: tuple[str, ...] = ()

    @property
    def claims(self) -> ClaimRules:
        """Which files are cases."""
        return claim_rules(self.root, self.settings.files, self.speaks, self.project.path)

    def find_checks(self, registry: Registry) -> Iterator[str]:
        """Register the checks that pytest would know here; yields why some could not be."""
        from pytest_agenteval.checks.registered import add_hooked, add_named

        sys.path[:0] = [path for path in self.python_path if path not in sys.path]
        yield from add_named(registry, self.project.checks, self.home)
        yield from add_hooked(registry, self.root, self.plugins)

    def registry(self) -> Registry:
        """Return the checks that pytest would know here."""
        from pytest_agenteval.checks.registry import default_registry

        return default_registry(self.find_checks)


def find_place(
    paths: Sequence[Path], strict: bool = False, given: Mapping[str, Any] | None = None
) -> ProjectLocation:
    """Return the project that ``paths`` (or the working folder) lie in.

    ``given`` are values of options, by attribute, as from the command line. Raises ``SettingsError``.
    """
    from pytest_agenteval.config.project_file import find_project
    from pytest_agenteval.config.settings import resolve

    root, ini = find_root(paths)
    home = project_folder(common_folder([path.resolve() for path in paths], Path.cwd()), root)
    project = find_project(home.path, root=root)
    wanted = {
        option.attribute: ini[option.ini] for option in OPTIONS if "i" in option.places and option.ini in ini
    }
    options = {**(given or {}), **({"strict": True} if strict else {})}
    settings = resolve(options, os.environ, wanted, project.settings)
    words = _words(ini.get("testpaths", ""))
    # as pytest: a path, or a glob, relative to rootdir
    found = tuple(
        Path(path) for word in words for path in sorted(glob.glob(str(root / word), recursive=True))
    )
    speaks = project.kind is not None or any(key.startswith("agenteval_") for key in ini)
    where = found or (root,)
    return ProjectLocation(
        root,
        where if home.path == root else (home.path,),
        settings,
        project,
        home.path,
        speaks,
        plugins=_plugins(ini),
        python_path=tuple(str(root / word) for word in _words(ini.get("pythonpath", ""))),
    )


def _words(value: Any) -> list[str]:
    """Return the words of an ini value: a text, or a list in TOML."""
    return shlex.split(value) if isinstance(value, str) else [str(word) for word in value]


def _plugins(ini: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the modules of ``addopts = -p name``."""
    words = _words(ini.get("addopts", ""))
    pairs = zip(words, [*words, ""][1:], strict=True)
    named = [word[2:] or following for word, following in pairs if word.startswith("-p")]
    return tuple(name for name in named if name and not name.startswith("no:"))


def find_root(paths: Sequence[Path]) -> tuple[Path, Mapping[str, Any]]:
    """Return Pytest's rootdir for ``paths`` and its ini values: the nearest file that speaks to pytest.

    Without one: the folder of the nearest project file, else of ``pyproject.toml`` or ``setup.py``,
    else the working folder.
    """
    here = [path.resolve() for path in paths] or [Path.cwd()]
    start = Path(os.path.commonpath([path if path.is_dir() else path.parent for path in here]))
    above = [start, *start.parents]
    for folder in above:
        for name in _INI_FILES:
            values = _ini_values(folder / name)
            if values is not None:
                return folder, values
    for names in (PROJECT_FILES, ("pyproject.toml", "setup.py")):
        for folder in above:
            if any((folder / name).is_file() for name in names):
                return folder, {}
    cwd = Path.cwd()
    return (cwd if cwd in above else start), {}


def _ini_values(path: Path) -> Mapping[str, Any] | None:
    """Return Pytest's section of a file; ``None``: the file does not speak to pytest."""
    if not path.is_file():
        return None
    if path.suffix == ".toml":
        return _toml_values(path)
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(path, encoding="utf-8-sig")
    except (configparser.Error, UnicodeDecodeError) as wrong:
        raise SettingsError(f"{path.name}: {wrong}") from None
    section = "tool:pytest" if path.name == "setup.cfg" else "pytest"
    if parser.has_section(section):
        return dict(parser.items(section))
    # an empty pytest.ini marks the rootdir too
    return {} if path.name in ("pytest.ini", ".pytest.ini") else None


def _toml_values(path: Path) -> Mapping[str, Any] | None:
    import tomllib

    try:
        tables: Any = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as wrong:
        raise SettingsError(f"{path.name}: not TOML: {wrong}") from None
    if path.name != "pyproject.toml":
        own: Mapping[str, Any] = tables.get("pytest", {})
        return own
    spoken = tables.get("tool", {}).get("pytest")
    if not isinstance(spoken, Mapping):
        return None
    values: Mapping[str, Any] = spoken.get("ini_options", spoken)
    return values


def conftest_speaks(root: Path, pattern: str) -> bool:
    """Return whether a conftest.py of the project matches ``pattern``: what only pytest can ask it."""
    from pytest_agenteval.cases.discovery import visible_files

    texts = (
        path.read_text(encoding="utf-8", errors="replace")
        for path in visible_files(root)
        if path.name == "conftest.py"
    )
    return any(re.search(pattern, text, re.MULTILINE) for text in texts)


@contextmanager
def open_databases(place: ProjectLocation) -> Iterator[Databases]:
    """Give a project's databases, as a command opens them: read-only, with the limits of references."""
    from pytest_agenteval.databases import Databases
    from pytest_agenteval.support.processes import temp_prefix

    sources, unusable = place.project.usable_urls(dict(place.settings.databases))
    with tempfile.TemporaryDirectory(prefix=temp_prefix()) as folder:
        databases = Databases(
            sources,
            unusable=unusable,
            folder=Path(folder),
            root=place.root,
            timeout=place.settings.sql_timeout,
            max_rows=place.settings.sql_max_rows,
            snapshot_limit=place.settings.snapshot_limit,
        )
        with databases:
            yield databases
