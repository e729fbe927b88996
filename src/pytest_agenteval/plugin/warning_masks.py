"""Warnings without secrets: masked before any reporter has them, under xdist in the worker already.

Stands apart: a plugin object that pytest registers, with one task.
"""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agenteval.plugin.items import session_state


class WarningMasks:
    """Masks the warnings of a run that has cases; other runs' stay as they are."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: Any) -> None:
        """Put a warning of the same kind in place of one that holds a secret."""
        run = session_state(self.config).run
        if run is None:
            return
        shown = str(warning_message.message)
        masked = run.context.redactor.text(shown)
        if masked != shown:
            try:
                warning_message.message = warning_message.category(masked)
            except TypeError:  # a warning that takes other arguments
                warning_message.message = UserWarning(masked)
