"""``pkg.mod:name`` into the object it names.

Stands apart: agents, checks and options name objects, and share the one rule for it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Collection
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

INSTALLED = frozenset({"site-packages", "dist-packages"})


def outsider(reference: str, root: Path, folder: Path, trusted: Collection[str]) -> str | None:
    """Return why a case file may not name ``pkg.mod:name``, or ``None`` where it may.

    A case file may name what lies below ``root``, in no installation, and modules that ``trusted``
    lists with what they hold. What is outside is never imported for it; ``folder`` is first on
    ``sys.path``, as when the object is loaded.
    """
    module_name = reference.partition(":")[0]
    if any(module_name == name or module_name.startswith(f"{name}.") for name in trusted):
        return None
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        spec = _spec(module_name)
    except (ImportError, ValueError):
        return None  # loading says what is wrong with it
    if spec is None:
        return None
    top = spec.name
    held = [spec.origin] if spec.has_location and spec.origin else list(spec.submodule_search_locations or ())
    if held and all(_is_below(Path(place), root) for place in held):
        return _borrowed(reference)
    return (
        f"{reference} is not of this project: {top} lies outside of the rootdir, and a case file is held to "
        f"the project's own modules. Import it in one of them, or set agenteval_trusted_modules = {top}"
    )


def _spec(module_name: str) -> ModuleSpec | None:
    """Return the first part of a dotted name that holds code: folders without any may lie in many places."""
    parts = module_name.split(".")
    spec = None
    for end in range(1, len(parts) + 1):
        spec = importlib.util.find_spec(".".join(parts[:end]))
        if spec is None or spec.origin is not None:
            break
    return spec


def _is_below(place: Path, root: Path) -> bool:
    path = place.resolve()
    home = root.resolve()
    return path.is_relative_to(home) and not INSTALLED & set(path.relative_to(home).parts)


def _borrowed(reference: str) -> str | None:
    """Return why ``agents:os.system`` is refused: it goes through a module that ``agents`` imported."""
    module_name, _, path = reference.partition(":")
    if "." not in path:
        return None
    try:
        found: Any = importlib.import_module(module_name)
        for part in path.split(".")[:-1]:
            found = getattr(found, part)
            if isinstance(found, ModuleType):
                return f"{reference} goes through the module {found.__name__}; name that module itself"
    except Exception:
        return None  # loading says what is wrong with it
    return None


def load_object(reference: str, root: Path) -> Any:
    """Return the object behind ``pkg.mod:name`` (``name`` may be dotted), ``root`` first on ``sys.path``.

    Raises ``ValueError`` for another form, ``ImportError`` or what the module raises while it is
    imported, ``AttributeError`` for a name it does not have.
    """
    module_name, colon, path = reference.partition(":")
    if not (module_name and colon and path):
        raise ValueError(f"{reference!r} is not of the form pkg.mod:name")
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    found: Any = importlib.import_module(module_name)
    for part in path.split("."):
        found = getattr(found, part)
    return found
