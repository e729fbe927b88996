"""Agents in Python: callables and objects, from a fixture or from ``python:pkg.mod:name``."""

from __future__ import annotations

import functools
import importlib
import inspect
import operator
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pytest_agenteval.agents.base import AgentContext, RunnableAgent, unsupported_keys
from pytest_agenteval.errors import AgentFailed, SettingsError
from pytest_agenteval.support import clock
from pytest_agenteval.support.files import shown_path
from pytest_agenteval.support.text import did_you_mean
from pytest_agenteval.types import Answer, Task, ToolCall, Usage

Takes = Literal["task", "prompt"]

FRAMEWORKS = (
    ("agents.agent", "Agent", "openai_agents"),
    ("langchain_core.runnables", "Runnable", "langchain"),
    ("pydantic_ai.agent", "AbstractAgent", "pydantic_ai"),
    ("claude_agent_sdk", "ClaudeAgentOptions", "claude_agent"),
    ("llama_index.core", "BaseQueryEngine", "llama_index"),
    ("llama_index.core", "BaseWorkflowAgent", "llama_index"),
    ("llama_index.core", "AgentWorkflow", "llama_index"),
    ("smolagents", "MultiStepAgent", "smolagents"),
    ("vanna.core.agent", "Agent", "vanna"),
    ("google.adk", "BaseAgent", "google_adk"),
    ("crewai", "Crew", "crewai"),
    ("crewai", "Agent", "crewai"),
)
"""Module (its beginning), class, and the module of ``adapters`` that asks its objects."""


@dataclass(frozen=True, slots=True)
class PythonAgent:
    """A callable with what it takes; a prompt callable gets the input of a case without prompt."""

    call: Any
    takes: Takes

    def run(self, task: Task) -> Any:
        """Call it; returns what it returns, an awaitable too."""
        asked = task if self.takes == "task" else task.prompt if task.turns else task.input
        began = clock.monotonic()
        given = self.call(asked)
        if inspect.isasyncgen(given):
            return _from_async(given, began)
        if inspect.isgenerator(given):
            return _combined([(item, clock.monotonic() - began) for item in given])
        return given


async def _from_async(given: AsyncGenerator[Any, Any], began: float) -> Any:
    return _combined([(item, clock.monotonic() - began) async for item in given])


def _combined(items: list[tuple[Any, float]]) -> Any:
    """Return what a generator gave as one answer: pieces of text, tool calls, a usage, an answer, rows.

    Each item comes with the seconds after which it came; those of the first piece of text are the time to
    the first token. A generator of rows alone is a table.
    """
    text = [(item, after) for item, after in items if isinstance(item, str)]
    calls = tuple(item for item, _ in items if isinstance(item, ToolCall))
    usages = [item for item, _ in items if isinstance(item, Usage)]
    answers = [item for item, _ in items if isinstance(item, Answer)]
    rows = [item for item, _ in items if not isinstance(item, str | ToolCall | Usage | Answer)]
    if len(rows) == len(items):
        return (row for row in rows)
    answer = answers[-1] if answers else Answer()
    usage = functools.reduce(operator.add, usages) if usages else answer.usage
    if text:
        usage = replace(usage or Usage(), first_token_ms=round(text[0][1] * 1000, 3))
    return replace(
        answer,
        text=answer.text or "".join(piece for piece, _ in text),
        data=rows if rows else answer.data,
        tool_calls=(*calls, *answer.tool_calls),
        usage=usage,
    )


def adapt(obj: Any, place: str, root: Path | None = None) -> RunnableAgent:
    """Return the agent that a fixture (or ``python:``) gave: a callable or an object with ``run(task)``.

    ``place`` names where it comes from, for messages. Raises ``AgentFailed`` for anything else.
    """
    if isinstance(obj, RunnableAgent):
        return obj
    framework = framework_of(obj)
    if framework is not None:
        adapter = importlib.import_module(f"pytest_agenteval.adapters.{framework}")
        return replace(adapt(adapter.agent(obj), place, root), name=type(obj).__name__)
    fresh = getattr(obj, "new_attempt", None)
    run = getattr(obj, "run", None)
    if isinstance(obj, type) or not (callable(run) or callable(obj) or callable(fresh)):
        raise AgentFailed(
            f"{place} gave {_kind_of(obj)}; expected a callable that takes (prompt) or (task), "
            f"or an object with run(task){_advice(obj)}"
        )
    takes: Takes = "task"
    call = run if callable(run) else obj if callable(obj) else None
    if call is not None:
        takes = _takes(call, "task" if call is run else "prompt", place)
    honoured = ("turns",) if callable(fresh) else ()
    return RunnableAgent(
        kind=takes,
        name=_name_of(obj),
        agent=PythonAgent(call, takes),
        place=described(obj, place, root),
        is_async=inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call),
        unsupported_keys=unsupported_keys(takes, *honoured),
        per_attempt_factory=(lambda: adapt_fresh(fresh(), place, root)) if callable(fresh) else None,
        context_manager=obj if hasattr(type(obj), "__aenter__") else None,
    )


def framework_of(obj: Any) -> str | None:
    """Return the adapter for an object of an agent framework, by its classes' names alone; ``None``: none.

    An object whose ``run`` takes a ``task`` is an agent as it is.
    """
    for cls in type(obj).__mro__:
        for module, name, adapter in FRAMEWORKS:
            if cls.__name__ == name and f"{cls.__module__}.".startswith(f"{module}."):
                return None if _runs_tasks(type(obj)) else adapter
    return None


def _runs_tasks(cls: type) -> bool:
    run = getattr(cls, "run", None)
    code = getattr(run, "__code__", None)
    own = str(getattr(run, "__module__", "")).partition(".")[0] not in {
        m.partition(".")[0] for m, *_ in FRAMEWORKS
    }
    return own and code is not None and code.co_varnames[1:2] == ("task",)


def adapt_fresh(obj: Any, place: str, root: Path | None = None) -> Any:
    """Return what ``new_attempt()`` returned as an agent (an awaitable: one that gives it)."""
    if inspect.isawaitable(obj):

        async def later() -> RunnableAgent:
            return adapt(await obj, f"new_attempt() of {place}", root)

        return later()
    return adapt(obj, f"new_attempt() of {place}", root)


def build(target: str, context: AgentContext) -> RunnableAgent:
    """Return ``python:pkg.mod:name``, resolved with the root folder first on ``sys.path``."""
    module_name, attribute = parts_of(target)
    obj = _resolve(target, module_name, attribute, context.root)
    agent = adapt(obj, f"target {target}", context.root)
    return _renamed(agent, target)


def parts_of(target: str) -> tuple[str, str]:
    """Return (module, name) of ``python:pkg.mod:name``. Raises ``SettingsError`` for another form."""
    module_name, _, attribute = target.partition(":")[2].partition(":")
    if not (module_name and attribute):
        raise SettingsError(f"target {target}: expected python:pkg.mod:name")
    return module_name, attribute


def _renamed(agent: RunnableAgent, target: str) -> RunnableAgent:
    return replace(agent, name=target)


def _resolve(target: str, module_name: str, attribute: str, root: Path) -> Any:
    folder = str(root)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:
        raise AgentFailed(
            f"target {target}: importing {module_name} failed: {type(error).__name__}: {error}"
        ) from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            names = (
                [name for name in vars(found) if not name.startswith("_")]
                if hasattr(found, "__dict__")
                else []
            )
            raise AgentFailed(
                f"target {target}: {module_name} has no {attribute!r}{did_you_mean(part, names)}"
            )
        found = getattr(found, part)
    return found


def _takes(call: Any, default: Takes, place: str) -> Takes:
    """Decide by the first parameter's name or annotation. Raises ``AgentFailed`` if it cannot take one
    argument.
    """
    try:
        parameters = list(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):
        return default
    positional = [
        p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)
    ]
    needed = [
        p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if not positional or len(needed) > 1 or any(p.kind is p.KEYWORD_ONLY for p in needed):
        raise AgentFailed(
            f"{described(call, place)} takes {inspect.signature(call)}; "
            "expected one argument: (prompt) or (task)"
        )
    first = positional[0]
    annotated = first.annotation if isinstance(first.annotation, str) else _type_name(first.annotation)
    if first.name == "task" or annotated.rpartition(".")[2] == "Task":
        return "task"
    if first.name.endswith(("prompt", "question", "query", "message", "text")) or annotated == "str":
        return "prompt"
    return default


def _type_name(annotation: Any) -> str:
    return getattr(annotation, "__name__", "")


def _unwrapped(obj: Any) -> Any:
    while isinstance(obj, functools.partial):
        obj = obj.func
    return inspect.unwrap(obj) if callable(obj) else obj


def described(obj: Any, place: str, root: Path | None = None) -> str:
    """Return ``place``, with the line where the callable or the class is written when that is known."""
    target = _unwrapped(obj)
    code = getattr(getattr(target, "__func__", target), "__code__", None)
    if code is None:
        methods = vars(type(target)) if not isinstance(target, type) else {}
        run = methods.get("run") or methods.get("__call__") or methods.get("new_attempt")
        code = getattr(run, "__code__", None)
    if code is None:
        return place
    return f"{place} ({shown_path(code.co_filename, root or Path.cwd())}:{code.co_firstlineno})"


def _name_of(obj: Any) -> str:
    target = _unwrapped(obj)
    return str(getattr(target, "__name__", None) or type(target).__name__)


def _kind_of(obj: Any) -> str:
    if obj is None:
        return "None"
    if isinstance(obj, type):
        return f"the class {obj.__name__}"
    name = type(obj).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _advice(obj: Any) -> str:
    if isinstance(obj, type):
        return f"; return an instance: {obj.__name__}()"
    if inspect.iscoroutine(obj) or inspect.isasyncgen(obj):
        return "; an async fixture needs a plugin such as pytest-asyncio"
    return ""
