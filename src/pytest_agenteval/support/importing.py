"""``pkg.mod:name`` into the object it names.

Stands apart: agents, checks and options name objects, and share the one rule for it.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any


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
