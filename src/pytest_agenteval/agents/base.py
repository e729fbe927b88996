"""What the kinds of agents share: ``RunnableAgent``, what a kind is given, what it can honour."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pytest_agenteval.config.settings import Settings
from pytest_agenteval.errors import AgentFailed
from pytest_agenteval.support.redaction import Redactor
from pytest_agenteval.support.text import cut
from pytest_agenteval.types import Task

if TYPE_CHECKING:
    from pytest_agenteval.cases.model import Case
    from pytest_agenteval.config.project_file import Project
    from pytest_agenteval.databases import Databases
    from pytest_agenteval.llm.client import Models

CASE_FEATURES = ("turns", "as", "approve", "clarification", "isolate", "input")
"""The case keys that not every kind of agent can honour."""

UNSUPPORTED_KEYS: Mapping[str, Mapping[str, str]] = {
    "task": {},
    "prompt": {
        "turns": "cannot hold a conversation",
        "as": "cannot act as a caller",
        "approve": "cannot be told which tools go ahead",
        "isolate": "cannot be given a copy of the data",
        "input": "cannot take an input beside a prompt",
    },
    "command": {},
    "replay": {},
    "http": {
        "turns": "cannot hold a conversation",
        "as": "cannot act as a caller",
        "approve": "cannot be told which tools go ahead",
        "isolate": "cannot be given a copy of the data",
        "input": "cannot take an input",
    },
    "nao": {
        "turns": "cannot hold a conversation",
        "as": "cannot act as another caller than the login",
        "approve": "cannot be told which tools go ahead",
        "isolate": "cannot be given a copy of the data",
        "input": "cannot take an input",
    },
    "llm": {
        "as": "cannot act as a caller",
        "approve": "has no tools that ask a person",
        "input": "cannot take an input",
    },
}
"""Kind -> case key -> why not; a key that is absent is honoured.

``task`` and ``prompt`` are Python callables by what they take (an object with ``run`` takes a task).
An ``http`` agent honours those keys (but isolate) that its request template passes on; a ``prompt``
callable with ``new_attempt()`` can hold a conversation. ``dazense`` and ``pda`` are ``nao``.
"""


class RunsTask(Protocol):
    """The inside of a ``RunnableAgent``: ``run`` returns whatever the agent does, or an awaitable."""

    def run(self, task: Task) -> Any:
        """Answer the last turn of ``task`` (all turns at once where ``whole`` is set)."""
        ...


@dataclass(frozen=True, slots=True)
class AgentContext:
    """What a kind may need to build its agent; nothing in it knows a case.

    ``models`` are the run's, whose HTTP client all requests share; ``nao_token`` is a session with a nao
    server that the workers of a run share. ``None``: the agent is built outside a run.
    """

    root: Path = field(default_factory=Path.cwd)
    settings: Settings = field(default_factory=Settings)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    redactor: Redactor = field(default_factory=Redactor)
    project: Project | None = None
    models: Models | None = None
    databases: Databases | None = None
    nao_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class RunnableAgent:
    """An agent ready to be called.

    ``kind`` is a row of ``UNSUPPORTED_KEYS`` (or ``dazense`` / ``pda``); ``name`` is shown where an
    agent has no model; ``place`` says where it comes from. ``default_model`` is used, and named in ids and
    results, when none is given. ``takes_all_turns``: it is called once with all turns. ``is_builtin``:
    it ends by itself at ``task.limits.deadline``. ``is_async``: it is known to be.
    ``per_attempt_factory`` makes the agent of one attempt; ``context_manager`` is an object with
    ``__aenter__``.
    """

    kind: str
    name: str
    agent: RunsTask
    place: str
    default_model: str | None = None
    takes_all_turns: bool = False
    is_builtin: bool = False
    is_async: bool = False
    unsupported_keys: Mapping[str, str] = field(default_factory=dict)
    per_attempt_factory: Callable[[], Any] | None = None
    context_manager: Any = None

    @property
    def model_name(self) -> str:
        """What results call the model when no ``--agent-model`` was given (never empty)."""
        recorded = getattr(self.agent, "recorded_model", None)
        try:
            only = recorded() if callable(recorded) else None
        except AgentFailed:  # an unreadable recording: said when it is asked
            only = None
        return self.default_model or only or self.name


def unsupported_keys(kind: str, *honoured: str) -> dict[str, str]:
    """Return the row of ``kind`` without the keys ``honoured``."""
    return {key: why for key, why in UNSUPPORTED_KEYS[kind].items() if key not in honoured}


def unsupported(agent: RunnableAgent, case: Case) -> str | None:
    """Return why ``agent`` cannot run ``case``: ``nao: cannot hold a conversation (prompt has 3 turns)``.

    ``None`` when it honours every key the case uses; several reasons are joined by ``; ``.
    """
    used = {
        "turns": f"prompt has {len(case.turns)} turns" if len(case.turns) > 1 else "",
        "as": f"as: {_short(case.caller)}" if case.caller is not None else "",
        "approve": f"approve: {_shown(case.approve)}" if case.approve else "",
        "clarification": "clarification: true" if case.clarification else "",
        "isolate": "isolate: true" if case.isolate else "",
        "input": f"input: {_short(case.input)}" if case.input is not None else "",
    }
    if agent.kind == "prompt" and not case.turns:
        used["input"] = ""
    found = [
        f"{agent.unsupported_keys[key]} ({text})"
        for key, text in used.items()
        if text and key in agent.unsupported_keys
    ]
    if not found:
        return None
    shown = "the agent takes only a prompt" if agent.kind == "prompt" else agent.kind
    advice = f"; let {agent.place} take (task)" if agent.kind == "prompt" else ""
    return f"{shown}: {'; '.join(found)}{advice}"


def _shown(approve: bool | tuple[str, ...]) -> str:
    return ", ".join(approve) if isinstance(approve, tuple) else str(approve).lower()


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return cut(text, 40)
