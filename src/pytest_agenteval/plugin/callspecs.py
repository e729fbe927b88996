"""Items of YAML files show no ``callspec`` but to pytest itself.

Editors and reporters take what has one for a parametrized function of a ``.py`` file: VS Code splits its id
there, and loses every test of the workspace. Models are not parameters (``collection``), but a fixture of
the user's may be parametrized, and pytest needs to know the parameter while the item runs.

Stands apart: a plugin object that pytest registers, with one task.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import pytest

from pytest_agenteval.plugin.items import item_state


class CallspecGuard:
    """Shows an item's ``callspec`` while the item runs."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Put it back for pytest's own fixtures."""
        hidden = item_state(item).callspec
        if hidden is None:
            return (yield)
        item.__dict__["callspec"] = hidden
        try:
            return (yield)
        finally:
            item.__dict__.pop("callspec", None)


def hide_callspecs(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Take ``callspec`` off the cases among ``items`` once they are collected, ordered and chosen."""
    hidden = {item: item.__dict__.pop("callspec") for item in items if "callspec" in item.__dict__}
    for item, callspec in hidden.items():
        item_state(item).callspec = callspec
    if not config.pluginmanager.hasplugin("agenteval-callspecs"):
        config.pluginmanager.register(CallspecGuard(), "agenteval-callspecs")
