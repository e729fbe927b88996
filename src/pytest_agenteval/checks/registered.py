"""Checks that other code brings: an entry-point group, the project file, and the hooks of pytest's plugins.

One place for pytest and the commands, so that a check that one of them knows is known to all. Nothing is
imported before a case names a check that is not built in: importing runs the project's code.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pytest_agenteval.cases.discovery import visible_files
from pytest_agenteval.support.files import shown_path
from pytest_agenteval.support.importing import load_object

if TYPE_CHECKING:
    from pytest_agenteval.checks.registry import Registry

GROUP = "pytest_agenteval.checks"
"""Entry points that name check classes."""
HOOK = "pytest_agenteval_register"
_MENTIONS_HOOK = re.compile(rf"\b{HOOK}\b")


def add_named(registry: Registry, references: Sequence[tuple[str, str]], root: Path) -> Iterator[str]:
    """Register the checks of the entry-point group and of the project file; yields why one could not be.

    ``references`` are ``(pkg.mod:Class, place)`` of the project file, resolved with ``root`` first on
    ``sys.path``.
    """
    for point in entry_points(group=GROUP):
        yield from _tried(f"entry point {point.name}", point.load, registry.add)
    for reference, place in references:
        yield from _tried(place, partial(load_object, reference, root), registry.add)


def add_hooked(registry: Registry, root: Path, plugins: Sequence[str] = ()) -> Iterator[str]:
    """Call the hook of ``plugins``, of each conftest.py below ``root`` and of installed ones, as pytest does.

    Yields why one could not be called.
    """
    call = partial(_call_hook, registry)
    for name in plugins:
        yield from _tried(f"-p {name}", partial(_plugin, name, root), call)
    for path in sorted(path for path in visible_files(root) if path.name == "conftest.py"):
        if _mentions_hook(path):
            yield from _tried(shown_path(path, root), partial(_conftest, path), call)
    for point in entry_points(group="pytest11"):
        place = _source(point) if not point.module.startswith("pytest_agenteval") else None
        if place is not None and _mentions_hook(place):
            yield from _tried(f"plugin {point.name}", point.load, call)


def _tried(place: str, load: Callable[[], Any], use: Callable[[Any], object]) -> Iterator[str]:
    """Load and use something; yields what it raised, whatever that is: it is other people's code."""
    try:
        use(load())
    except Exception as error:
        yield f"{place}: {type(error).__name__}: {error}"


def _call_hook(registry: Registry, module: Any) -> None:
    """Call a module's hook, and those of the plugins that it names."""
    named = getattr(module, "pytest_plugins", ())
    for name in [named] if isinstance(named, str) else named:
        _call_hook(registry, importlib.import_module(name))
    if (hook := getattr(module, HOOK, None)) is not None:
        hook(registry=registry)


def _plugin(name: str, root: Path) -> ModuleType | None:
    """Import a plugin by its module's name; ``None`` for a name that only pytest knows."""
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return importlib.import_module(name) if importlib.util.find_spec(name.partition(".")[0]) else None


def _mentions_hook(path: Path) -> bool:
    """Return whether a module may register checks: it names the hook, or plugins that might."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return bool(_MENTIONS_HOOK.search(text)) or "pytest_plugins" in text


def _conftest(path: Path) -> ModuleType:
    """Import a conftest.py under the name pytest gives it in a package, else under one of its own."""
    top = path.parent
    while (top / "__init__.py").is_file():
        top = top.parent
    if str(top) not in sys.path:
        sys.path.insert(0, str(top))
    if top != path.parent:
        return importlib.import_module(".".join(path.with_suffix("").relative_to(top).parts))
    name = f"_agenteval_conftest_{abs(hash(str(path))):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _source(point: EntryPoint) -> Path | None:
    """Return the file of an entry point's module, without importing anything."""
    top, *rest = point.module.split(".")
    spec = importlib.util.find_spec(top)
    if spec is None:
        return None
    folders: Iterable[str] = spec.submodule_search_locations or ()
    places = [Path(spec.origin)] if spec.origin and not rest else []
    for folder in folders if rest else ():
        place = Path(folder, *rest)
        places += [place.with_suffix(".py"), place / "__init__.py"]
    return next((place for place in places if place.suffix == ".py" and place.is_file()), None)
