"""From a target to an agent: the one table of schemes."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from pytest_agenteval.agents.base import AgentContext, RunnableAgent, RunsTask, unsupported
from pytest_agenteval.agents.kinds.python import adapt
from pytest_agenteval.config.options import TARGETS
from pytest_agenteval.errors import SettingsError
from pytest_agenteval.support.text import did_you_mean
from pytest_agenteval.types import NAO_KINDS

__all__ = ["SCHEMES", "AgentContext", "RunnableAgent", "RunsTask", "adapt", "make_agent",
           "unsupported"]  # fmt: skip

SCHEMES: Mapping[str, str] = {
    "python": "python",
    "command": "command",
    "http": "http",
    "https": "http",
    "replay": "replay",
    **dict.fromkeys(NAO_KINDS, "nao"),
    "llm": "sql_analyst",
}
"""Scheme -> its module in ``agents.kinds``, which has ``build(target, context) -> RunnableAgent``."""


def make_agent(target: str, context: AgentContext | None = None) -> RunnableAgent:
    """Return the agent behind ``target``.

    Raises ``SettingsError`` for an unknown scheme or bad configuration, ``AgentFailed`` when what it
    names cannot be loaded.
    """
    scheme, colon, _ = target.partition(":")
    if not colon or scheme not in SCHEMES:
        forms = ", ".join(filter(None, TARGETS.values()))
        hint = did_you_mean(scheme, SCHEMES) if colon else ""
        near = hint if hint.startswith(", did") else ";"
        raise SettingsError(f"unknown target {target!r}{near} known: {forms}")
    module = importlib.import_module(f"pytest_agenteval.agents.kinds.{SCHEMES[scheme]}")
    agent: RunnableAgent = module.build(target, context or AgentContext())
    return agent
