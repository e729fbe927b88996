"""``make_model``: a model behind an OpenAI-style or Anthropic endpoint, for agents, extraction, judges."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from pytest_agenteval.errors import AgentFailed, SettingsError
from pytest_agenteval.llm.api_formats import CODECS, ApiFormat, Request
from pytest_agenteval.llm.budget import Ledger
from pytest_agenteval.llm.endpoints import Endpoint, find_endpoint, own_prices
from pytest_agenteval.llm.http_client import HttpClient
from pytest_agenteval.llm.http_response import HttpResponse, error_text
from pytest_agenteval.llm.prices import cost, model_called, total_cost
from pytest_agenteval.llm.providers import Prices, Provider
from pytest_agenteval.types import Answer, Completion, Usage

OVERFLOW = re.compile(
    r"context[_ ](length|window|size)|maximum context|prompt is too long|too many tokens"
    r"|exceeds? the available context",
    re.IGNORECASE,
)
DEFAULT_MODEL = "openai:gpt-4.1"


def make_model(
    name: str,
    *,
    wire: HttpClient,
    providers: Sequence[Provider] = (),
    environ: Mapping[str, str] | None = None,
    meta_costs: Prices | None = None,
    ledger: Ledger | None = None,
    remember: Callable[[str], object] | None = None,
) -> ModelClient:
    """Return the model ``provider:model``.

    Address and key come from ``providers`` (the project file's ``llm.providers``), else from
    ``PROVIDER_BASE_URL`` and ``PROVIDER_API_KEY``; they are read with the first call. ``remember``
    gets the key, so that it can be redacted. Raises ``SettingsError`` for a bad name or an
    unknown provider.
    """
    endpoint = find_endpoint(name, providers, os.environ if environ is None else environ)
    return ModelClient(endpoint, wire, meta_costs, ledger or Ledger(None), remember)


class Models:
    """The models of one run and process: one wire, one ledger, one place that knows their prices.

    ``get`` gives the ``ChatModel`` that agents, extraction and judges share. ``remember`` gets
    every key that is read.
    """

    def __init__(
        self,
        wire: HttpClient,
        *,
        providers: Sequence[Provider] = (),
        environ: Mapping[str, str] | None = None,
        meta_costs: Prices | None = None,
        ledger: Ledger | None = None,
        remember: Callable[[str], object] | None = None,
    ) -> None:
        self.wire = wire
        self.providers = tuple(providers)
        self.environ = os.environ if environ is None else environ
        self.meta_costs = meta_costs
        self.ledger = ledger or Ledger(None)
        self._remember = remember
        self._lock = threading.Lock()
        self._made: dict[str, ModelClient] = {}

    def get(self, name: str) -> ModelClient:
        """Return the model ``provider:model``. Raises ``SettingsError`` as ``make_model`` does."""
        with self._lock:
            if name not in self._made:
                self._made[name] = make_model(
                    name,
                    wire=self.wire,
                    providers=self.providers,
                    environ=self.environ,
                    meta_costs=self.meta_costs,
                    ledger=self.ledger,
                    remember=self._remember,
                )
            return self._made[name]

    def price(self, name: str, usage: Usage | None) -> float | None:
        """Return USD for what a model was used, also one that someone else called; ``None``: not known."""
        return cost(name, usage, own_prices(name, self.providers), self.meta_costs)

    def priced(self, answer: Answer, model: str | None) -> Answer:
        """Return ``answer`` with what its tokens cost (USD), where it does not say so itself.

        The price is that of ``usage.model``, else of ``model`` (the task's). Where one turn of several, or
        one model's part of the usage, has no known price, the whole has none: it is never taken for 0.
        """
        turns = tuple(self.priced(turn, model) for turn in answer.turns)
        usage = answer.usage
        price = answer.cost
        if price is None and any(turn.usage is not None or turn.cost is not None for turn in turns):
            price = total_cost(turn.cost for turn in turns)
        elif price is None and usage is not None:
            parts = usage.parts or (usage,)
            price = total_cost(self._part_price(part, model) for part in parts)
        kept = replace(usage, parts=()) if usage is not None and usage.parts else usage
        return replace(answer, turns=turns, usage=kept, cost=price)

    def _part_price(self, usage: Usage, model: str | None) -> float | None:
        name = model_called(usage.model, model)
        return None if name is None else self.price(name, usage)


class ModelClient:
    """A ``ChatModel``: one model at one endpoint. Thread-safe.

    What an endpoint turns out not to take (JSON Schema, ``max_tokens``) is asked for in another way
    and remembered.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        wire: HttpClient,
        meta_costs: Prices | None,
        ledger: Ledger,
        remember: Callable[[str], object] | None,
    ) -> None:
        self.name = endpoint.name
        self._endpoint = endpoint
        self._codec: ApiFormat = CODECS[endpoint.style]()
        self._wire = wire
        self._meta_costs = meta_costs
        self._ledger = ledger
        self._remember = remember
        self._native_schema = True
        self._limit_key = "max_tokens"

    def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int = 4096,
        deadline: float | None = None,
    ) -> Completion:
        """Return one model turn (see ``codecs`` for the form of messages and tools).

        With ``schema`` the text is the JSON value alone, fences stripped; whether it follows the
        schema is the caller's to check. Tool arguments that are not a JSON object come back as a call
        with ``status`` ``error``. Raises ``AgentFailed``, ``AgentTimeout``, ``BudgetSpent``.
        """
        request = Request(self._endpoint.model, messages, tools, schema, max_tokens)
        with self._ledger.call() as bill:
            done = self._ask(request, deadline)
            bill.cost = done.cost
        return replace(done, text=json_part(done.text)) if schema is not None else done

    def _ask(self, request: Request, deadline: float | None) -> Completion:
        attempts: tuple[Any, ...] = ()
        while True:
            asked = replace(request, native_schema=self._native_schema, limit_key=self._limit_key)
            reply = self._send(asked, deadline)
            reply = reply.having(attempts + reply.attempts)
            if reply.status != 400 or not self._learn(asked, reply):
                return self._read(reply)
            attempts = reply.attempts

    def _send(self, request: Request, deadline: float | None) -> HttpResponse:
        try:
            key, base = self._endpoint.key(), self._endpoint.address()
        except SettingsError as error:
            raise AgentFailed(f"model {self.name}: {error}") from error
        if key and self._remember is not None:
            self._remember(key)
        return self._wire.send(
            "POST",
            self._codec.url(base),
            service=f"model {self.name}",
            headers=self._codec.headers(key),
            json=self._codec.body(request),
            deadline=deadline,
        )

    def _learn(self, asked: Request, reply: HttpResponse) -> bool:
        """Return whether the endpoint refused a way of asking that there is another way for."""
        said = reply.text
        if asked.limit_key == "max_tokens" and "max_completion_tokens" in said:
            self._limit_key = "max_completion_tokens"
            return True
        refused = re.search(r"response_format|json_schema|structured output|tool_choice|grammar", said)
        if asked.schema is not None and asked.native_schema and refused:
            self._native_schema = False
            return True
        return False

    def _read(self, reply: HttpResponse) -> Completion:
        if reply.status >= 300:
            if OVERFLOW.search(reply.said()):
                raise reply.failed(
                    f"the conversation does not fit the context window of model {self.name}: {reply.said()}"
                )
            raise reply.failure()
        answer = reply.json()
        done = self._codec.completion(answer) if isinstance(answer, Mapping) else None
        if done is None:
            said = error_text(answer) if isinstance(answer, Mapping) else ""
            if said:
                raise reply.failed(f"model {self.name} answered HTTP {reply.status} with an error: {said}")
            raise reply.failed(
                f"model {self.name} answered HTTP {reply.status} with JSON that holds no message: "
                f"{reply.said()}"
            )
        price = cost(self.name, done.usage, self._endpoint.prices, self._meta_costs)
        return replace(done, cost=price, wire_attempts=reply.attempts)


def json_part(text: str) -> str:
    """Return the JSON in a model's text: thinking, code fences and words around it are taken off."""
    bare = re.sub(r"(?s)^\s*<think>.*?</think>", "", text).strip()
    if _is_json(bare):
        return bare
    fenced = re.search(r"(?s)```(?:json|JSON)?\s*\n?(.*?)```", bare)
    if fenced:
        bare = fenced.group(1).strip()
    if _is_json(bare):
        return bare
    for start in islice(re.finditer(r"[{\[]", bare), 50):
        try:
            _, end = json.JSONDecoder().raw_decode(bare, start.start())
        except (ValueError, RecursionError):
            continue
        return bare[start.start() : end]
    return bare


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
