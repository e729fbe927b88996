"""Hooks of this plugin, for conftest.py files and other plugins.

Stands apart: pytest registers the module, each function in it as a hook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_agenteval.checks import Registry


@pytest.hookspec
def pytest_agenteval_register(registry: Registry) -> None:
    """Add checks: ``registry.add(MyCheck)``.

    Called once per process, before the first case file is read. A check is a frozen model whose
    fields are its YAML keys; see docs/extending.
    """


@pytest.hookspec
def pytest_agenteval_result(config: pytest.Config, result: dict[str, Any]) -> None:
    """Look at a case that has ended; ``result`` holds the scalars that reports show.

    Called on the controller, in the order in which cases end.
    """


@pytest.hookspec
def pytest_agenteval_document(config: pytest.Config, document: dict[str, Any]) -> None:
    """Add entries to ``run`` in the head of the results document, before it is written.

    Called once, on the controller. ``results`` are streamed to disk and are not part of it.
    """
