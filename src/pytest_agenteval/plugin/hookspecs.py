"""Hooks of this plugin, for conftest.py files and other plugins."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.hookspec
def pytest_agenteval_register(registry: Any) -> None:
    """Add checks of your own: ``registry.add(MyCheck)``.

    Called once per process, before the first case file is read. A check is a frozen model whose
    fields are its YAML keys; see docs/extending.
    """


@pytest.hookspec
def pytest_agenteval_result(config: pytest.Config, result: dict[str, Any]) -> None:
    """A case has ended. ``result`` holds the scalars that reports show; reading only.

    Called on the controller, in the order in which cases end.
    """


@pytest.hookspec
def pytest_agenteval_document(config: pytest.Config, document: dict[str, Any]) -> None:
    """The head of the results document, before it is written; entries may be added to ``run``.

    Called once, on the controller. ``results`` are streamed to disk and are not part of it.
    """
