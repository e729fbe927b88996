"""Which checks there are, and how a mapping from YAML becomes one.

A check's module is imported when its type is first used, so a case without assertions loads
none of them (and no pydantic).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, get_args

from pytest_agenteval.checks.expect_shorthand import SHORT, expand
from pytest_agenteval.support.faults import Fault, faults_of
from pytest_agenteval.support.text import did_you_mean

if TYPE_CHECKING:
    from pytest_agenteval.checks.base import Check

BUILTIN: Mapping[str, str] = {
    "tool_call": "checks.tools:ToolCallCheck",
    "no_tool_call": "checks.tools:NoToolCallCheck",
    "tool_order": "checks.tools:ToolOrderCheck",
    "asked": "checks.tools:AskedCheck",
    "text": "checks.text:TextCheck",
    "value": "checks.table:ValueCheck",
    "rows": "checks.table:RowsCheck",
    "sql": "checks.sql.check:SqlCheck",
    "metric": "checks.metric:MetricCheck",
    "governance": "governance.check:GovernanceCheck",
    "chart": "checks.chart:ChartCheck",
    "factuality": "checks.judge.checks:FactualityCheck",
    "judge": "checks.judge.checks:JudgeCheck",
    "budget": "checks.budget:BudgetCheck",
    "python": "checks.python:PythonCheck",
}
"""Type -> ``module:class`` below ``pytest_agenteval``."""


FindMore = Callable[["Registry"], Iterable[str]]
"""Adds checks to a registry and gives the reasons why some could not be added."""


class Registry:
    """The check types of one run: the built-in ones and those added by plugins.

    ``find_more`` is called once, when a type is not known yet: it may import the project's code.
    ``failures`` are the reasons it gave.
    """

    def __init__(self, builtin: Mapping[str, str] = BUILTIN, find_more: FindMore | None = None) -> None:
        self._homes = dict(builtin)
        self._models: dict[str, type[Check]] = {}
        self._find_more = find_more
        self.failures: tuple[str, ...] = ()

    @property
    def types(self) -> tuple[str, ...]:
        """All type words, in the order of the documentation, added ones last."""
        return tuple(dict.fromkeys((*self._homes, *self._models)))

    def add(self, model: type[Check]) -> None:
        """Register a check class: a ``Check`` subclass whose ``type`` is a ``Literal`` of one word.

        Raises ``TypeError`` for another class and ``ValueError`` for a word that is taken.
        """
        from pytest_agenteval.checks.base import Check

        if not (isinstance(model, type) and issubclass(model, Check)):
            raise TypeError(f"a check must be a subclass of pytest_agenteval.Check, found {model!r}")
        words = get_args(model.model_fields["type"].annotation)
        if len(words) != 1 or not isinstance(words[0], str):
            raise TypeError(f"{model.__name__} needs a field `type: Literal['its_word'] = 'its_word'`")
        if self._models.get(words[0]) is model:
            return
        if words[0] in self.types:
            raise ValueError(f"check type {words[0]!r} of {model.__name__} is taken; choose another word")
        self._models[words[0]] = model

    def complete(self) -> None:
        """Find the checks that are not built in, unless that has been done."""
        if self._find_more is not None:
            find_more, self._find_more = self._find_more, None
            self.failures = tuple(find_more(self))

    def model(self, word: str) -> type[Check]:
        """Return the class behind a type word. Raises ``KeyError`` for an unknown one."""
        if word not in self._models:
            module, _, name = self._homes[word].partition(":")
            self._models[word] = getattr(importlib.import_module(f"pytest_agenteval.{module}"), name)
        return self._models[word]

    def parse(self, raw: Any) -> Check | list[Fault]:
        """Return one entry of ``assertions``; all of its faults where it is wrong, paths relative to it."""
        if not isinstance(raw, Mapping):
            return [Fault((), f"a check is a mapping with a 'type', found {raw!r}")]
        if "type" not in raw:
            short = next((key for key in raw if key in self.types), None)
            hint = f"; did you mean {{type: {short}, ...}}" if short else ""
            hint += (
                f", or beside assertions expect: {{{SHORT[short]}: ...}}?"
                if short in SHORT
                else "?" * bool(short)
            )
            return [Fault((), f"missing field 'type'{hint or '; known: ' + ', '.join(self.types)}")]
        word = raw["type"]
        if not isinstance(word, str) or word not in self.types:
            self.complete()
        if not isinstance(word, str) or word not in self.types:
            more = "".join(f"; {reason}" for reason in self.failures)
            hint = did_you_mean(str(word), self.types)
            return [Fault(("type",), f"unknown check type {word!r}{hint}{more}")]
        from pydantic import ValidationError

        model = self.model(word)
        try:
            return model.model_validate(dict(raw))
        except ValidationError as error:
            return faults_of(error, model)

    def parse_all(self, raw: Any) -> tuple[tuple[Check, ...], list[Fault]]:
        """Return a whole ``assertions`` list: the checks that are right, and every fault of the others."""
        if not isinstance(raw, list):
            return (), [Fault((), f"assertions is a list of checks, found {raw!r}")]
        return self._collect(((index,), entry) for index, entry in enumerate(raw))

    def parse_expect(self, raw: Any) -> tuple[tuple[Check, ...], list[Fault]]:
        """Return tent's ``expect``, a map or a list of maps; ``outcome`` in it is left to the caller."""
        entries, faults = expand(raw)
        checks, more = self._collect(entries)
        return checks, faults + more

    def _collect(
        self, entries: Iterable[tuple[tuple[str | int, ...], Any]]
    ) -> tuple[tuple[Check, ...], list[Fault]]:
        checks: list[Check] = []
        faults: list[Fault] = []
        for path, entry in entries:
            parsed = self.parse(entry)
            if isinstance(parsed, list):
                faults += [Fault((*path, *fault.path), fault.text, fault.severity) for fault in parsed]
            else:
                checks.append(parsed)
        return tuple(checks), faults

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of one entry of ``assertions``: one branch per type, chosen by ``type``."""
        self.complete()
        branches = [self._branch(word) for word in self.types]
        return {"type": "object", "required": ["type"], "oneOf": branches}

    def _branch(self, word: str) -> dict[str, Any]:
        schema = self.model(word).model_json_schema(mode="validation")
        schema["required"] = ["type", *(key for key in schema.get("required", []) if key != "type")]
        return schema


def default_registry(find_more: FindMore | None = None) -> Registry:
    """Return a registry of the built-in checks; ``find_more`` adds others when one is asked for."""
    return Registry(find_more=find_more)
