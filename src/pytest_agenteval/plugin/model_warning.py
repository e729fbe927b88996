"""Warn if a multi-model run uses an agent that cannot see the model: all rows are then one agent's."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_agenteval.agents.base import RunnableAgent

MODEL_FIXTURE = "agenteval_model"


def unaware_lines(models: Mapping[str, Collection[str]]) -> list[str]:
    """Return a warning for each agent that was to be several models; ``models`` by the agent's place."""
    return [
        f"{place} takes (prompt) and is not told the model: the rows of {len(names)} models are one agent's; "
        "take (task) and read task.model"
        for place, names in sorted(models.items())
        if len(names) > 1
    ]


def agent_unaware_of_model(
    item: pytest.Item, agent: RunnableAgent | None, fixture: str, root: Path
) -> str | None:
    """Return the place of an agent that cannot know its model; ``None`` if it can or might.

    It takes the prompt alone, no fixture of the case asks for ``agenteval_model``, and none behind the
    agent's (named ``fixture``) for ``request``, which knows it too.
    """
    if agent is None or agent.kind != "prompt":
        return None
    info = getattr(item, "_fixtureinfo", None)
    defined: Mapping[str, Sequence[Any]] = getattr(info, "name2fixturedefs", {})
    if any(MODEL_FIXTURE in each.argnames for found in defined.values() for each in found):
        return None
    if _asks_request(defined, fixture, set()):
        return None
    from pytest_agenteval.agents.kinds.python import described

    return described(getattr(agent.agent, "call", None), fixture, root)


def _asks_request(defined: Mapping[str, Sequence[Any]], name: str, seen: set[str]) -> bool:
    """Return whether a fixture, or one that it uses, takes ``request``, those of pytest itself aside."""
    seen.add(name)
    for each in defined.get(name, ()):
        if str(getattr(each.func, "__module__", "")).startswith("_pytest"):
            continue
        if "request" in each.argnames:
            return True
        if any(_asks_request(defined, other, seen) for other in each.argnames if other not in seen):
            return True
    return False
