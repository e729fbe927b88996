"""pytest-agenteval: test data agents with YAML cases."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Agent": "types",
    "AgentEvalWarning": "plugin.items",
    "Answer": "types",
    "Check": "checks",
    "CheckResult": "types",
    "Comparison": "compare",
    "Evidence": "types",
    "Table": "table",
    "Task": "types",
    "ToolCall": "types",
    "Usage": "types",
    "read_results": "results",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Load a public name from its home when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
