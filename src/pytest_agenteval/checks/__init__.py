"""Checks: the registry, and one file per family. Nothing here loads pydantic before a check is parsed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pytest_agenteval.checks.registry import Registry, default_registry
from pytest_agenteval.checks.runner import evidence_of_turn, run_check

if TYPE_CHECKING:
    from pytest_agenteval.checks.base import Check

_LAZY = {"Check": "base"}

__all__ = ["Check", "Registry", "default_registry", "evidence_of_turn", "run_check"]


def __getattr__(name: str) -> Any:
    """Load ``Check`` (and with it pydantic) when it is first asked for."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
