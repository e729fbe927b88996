"""pytest-agenteval: test data agents with YAML cases.

Public are the names of this module and those that ``pytest_agenteval.compare``, ``.errors`` and
``.checks`` list in ``__all__``. All else is private and may move between releases.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what __getattr__ loads on demand, for type checkers and editors
    from pytest_agenteval.checks import Check as Check
    from pytest_agenteval.compare import Comparison as Comparison
    from pytest_agenteval.compare import compare as compare
    from pytest_agenteval.engine.notebook import evaluate_cases as evaluate_cases
    from pytest_agenteval.plugin.items import AgentEvalWarning as AgentEvalWarning
    from pytest_agenteval.results import read_results as read_results
    from pytest_agenteval.table import Table as Table
    from pytest_agenteval.types import Agent as Agent
    from pytest_agenteval.types import Answer as Answer
    from pytest_agenteval.types import CheckResult as CheckResult
    from pytest_agenteval.types import Evidence as Evidence
    from pytest_agenteval.types import Task as Task
    from pytest_agenteval.types import ToolCall as ToolCall
    from pytest_agenteval.types import Usage as Usage

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
    "evaluate_cases": "engine.notebook",
    "read_results": "results",
}
"""Public name -> the module that defines it, loaded when the name is first asked for."""

__all__ = sorted([*_HOMES, "compare"])


def __getattr__(name: str) -> Any:
    """Load a public name from its home when it is first asked for."""
    if name == "compare":  # a module that can be called, see there
        return importlib.import_module(f"{__name__}.compare")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; public: {', '.join(__all__)}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
