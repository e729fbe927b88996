"""``{{ name }}`` in the texts of a request: filled from the task, or from an answer by JSONPath."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from pytest_agenteval.agents.kinds.command import task_to_json
from pytest_agenteval.agents.kinds.json_path import Path, find, path
from pytest_agenteval.errors import SettingsError
from pytest_agenteval.support.text import did_you_mean
from pytest_agenteval.types import Task

HOLE = re.compile(r"\{\{\s*(?P<name>[^{}]+?)\s*\}\}")
NAMES = (
    "prompt", "turns", "messages", "model", "provider", "model_id", "database", "databases", "caller", "vars",
    "context", "approve", "clarification", "input", "conversation", "attempt", "limits",
)  # fmt: skip
"""What a template may name; maps go deeper with dots: ``vars.region``, ``limits.timeout``."""


def values_of(task: Task) -> dict[str, Any]:
    """Return the values behind the names: the task as JSON, ``messages`` (role and content),
    the model's parts.
    """
    form = task_to_json(task)
    provider, colon, model_id = (task.model or "").partition(":")
    earlier = form["conversation"] if isinstance(form["conversation"], list) else []
    made = {
        **form,
        "messages": [*earlier, {"role": "user", "content": task.prompt}],
        "provider": provider if colon else None,
        "model_id": model_id or task.model,
    }
    loaded: dict[str, Any] = json.loads(json.dumps(made, default=str))
    return loaded


@dataclass(frozen=True, slots=True)
class Template:
    """A checked template: any JSON value whose texts may hold ``{{ name }}`` or ``{{ $.path }}``."""

    form: Any
    names: frozenset[str]
    paths: Mapping[str, Path]

    def fill(self, values: Mapping[str, Any], answer: Any = None, *, url: bool = False) -> Any:
        """Return the value with its holes filled; a text that is only a hole takes the value with its type.

        Within a text, maps and lists are written as JSON; in a ``url`` everything is quoted.
        """
        return self._filled(self.form, values, answer, url)

    def _filled(self, form: Any, values: Mapping[str, Any], answer: Any, url: bool) -> Any:
        if isinstance(form, Mapping):
            return {
                self._filled(key, values, answer, url): self._filled(item, values, answer, url)
                for key, item in form.items()
            }
        if isinstance(form, list):
            return [self._filled(item, values, answer, url) for item in form]
        if not isinstance(form, str):
            return form
        whole = HOLE.fullmatch(form)
        if whole and not url:
            return self._value(whole["name"], values, answer)
        return HOLE.sub(lambda hole: _shown(self._value(hole["name"], values, answer), url), form)

    def _value(self, name: str, values: Mapping[str, Any], answer: Any) -> Any:
        if name in self.paths:
            return next(iter(find(self.paths[name], answer)), None)
        found: Any = values
        for part in name.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        return found


def _shown(value: Any, url: bool) -> str:
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value)
    return quote(text, safe="") if url else text


def template(form: Any, place: str, *, answers: bool = False) -> Template:
    """Check ``form``. ``answers``: JSONPaths into an earlier answer may be used.

    Raises ``SettingsError`` naming ``place`` and the unknown name.
    """
    names: set[str] = set()
    paths: dict[str, Path] = {}
    for name in _holes(form):
        if name.startswith("$") and answers:
            paths[name] = path(name, place)
            continue
        first = name.partition(".")[0]
        if first not in NAMES:
            raise SettingsError(f"{place}: unknown name {name!r} in a template{did_you_mean(first, NAMES)}")
        names.add(first)
    return Template(form, frozenset(names), paths)


def _holes(form: Any) -> Iterator[str]:
    if isinstance(form, Mapping):
        for key, item in form.items():
            yield from _holes(key)
            yield from _holes(item)
    elif isinstance(form, list):
        for item in form:
            yield from _holes(item)
    elif isinstance(form, str):
        yield from (hole["name"] for hole in HOLE.finditer(form))
