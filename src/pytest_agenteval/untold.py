"""Agents that never learn which model a case is for: then the rows of several models are one agent's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_agenteval.agents.base import RunnableAgent

MODEL_FIXTURE = "agenteval_model"


class Untold:
    """Keeps who was not told which models; ``lines`` warn of those with more than one."""

    def __init__(self) -> None:
        self._models: dict[str, set[str]] = defaultdict(set)

    def add(self, place: str | None, model: str | None) -> None:
        """A case of ``model`` was answered by the agent at ``place`` (``None``: one that is told)."""
        if place is not None and model is not None:
            self._models[place].add(model)

    def lines(self) -> Iterator[str]:
        """One warning for each agent that was to be several models."""
        for place, models in sorted(self._models.items()):
            if len(models) > 1:
                yield (
                    f"{place} takes (prompt) and is not told the model: the rows of {len(models)} models are "
                    "one agent's; take (task) and read task.model"
                )


def untold_agent(item: pytest.Item, agent: RunnableAgent | None, fixture: str, root: Path) -> str | None:
    """The place of an agent that cannot know its model; ``None``: it can, or nobody knows.

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
    from pytest_agenteval.agents.function import described

    return described(getattr(agent.agent, "call", None), fixture, root)


def _asks_request(defined: Mapping[str, Sequence[Any]], name: str, seen: set[str]) -> bool:
    """Whether a fixture, or one that it uses, takes ``request``, those of pytest itself aside."""
    seen.add(name)
    for each in defined.get(name, ()):
        if str(getattr(each.func, "__module__", "")).startswith("_pytest"):
            continue
        if "request" in each.argnames:
            return True
        if any(_asks_request(defined, other, seen) for other in each.argnames if other not in seen):
            return True
    return False
