"""A nao, dazense or pda chat server: log in once, then one request per attempt (recorded from 0.3.29).

The reference SQL is never sent: the server would run it after the paid call, judge with the model
under test, and turn dates and big integers into text and JSON numbers.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pytest_agenteval.agents.base import AgentContext, RunnableAgent, unsupported_keys
from pytest_agenteval.errors import AgentFailed, AgentTimeout
from pytest_agenteval.llm.client import DEFAULT_MODEL, Models
from pytest_agenteval.llm.http_client import HttpClient
from pytest_agenteval.llm.http_response import HttpResponse, error_text
from pytest_agenteval.llm.providers import Prices
from pytest_agenteval.support import clock
from pytest_agenteval.types import Answer, HttpAttempt, Task, ToolCall, Usage

DEFAULT_URL = "http://localhost:5005"
LOGIN_SECONDS = 15.0  # for the login before the workers start
CLARIFYING = "clarification"  # the server's tool that asks the user; a run that calls it ends there


def build(target: str, context: AgentContext) -> RunnableAgent:
    """Return the agent of ``nao:URL``, ``dazense:URL`` or ``pda:URL``;
    the URL defaults to ``BACKEND_URL``.
    """
    kind, address = _server(target, context)
    models = models_of(context)
    login = Login(kind, address, models.wire, context)
    return RunnableAgent(
        kind=kind,
        name=kind,
        agent=NaoAgent(kind, address, login, models),
        place=f"{kind} server at {address}",
        default_model=DEFAULT_MODEL,
        is_builtin=True,
        unsupported_keys=unsupported_keys("nao"),
    )


def login_for_workers(target: str, context: AgentContext) -> str | None:
    """Return a token that the workers of a run share (``context.nao_token``), so that they log in once.

    ``None`` when the login fails: then each case says why by itself.
    """
    kind, address = _server(target, context)
    wire = HttpClient(retries=0, redact=context.redactor)
    try:
        return Login(kind, address, wire, context).session(clock.monotonic() + LOGIN_SECONDS).token
    except AgentFailed:
        return None
    finally:
        wire.close()


def _server(target: str, context: AgentContext) -> tuple[str, str]:
    kind, _, url = target.partition(":")
    return kind, (url or context.environ.get("BACKEND_URL") or DEFAULT_URL).rstrip("/")


def models_of(context: AgentContext) -> Models:
    """Return the run's models, or some of its own for an agent outside a run.

    Those take their providers and prices from the project, where there is one.
    """
    if context.models is not None:
        return context.models
    project = context.project
    return Models(
        HttpClient(retries=context.settings.retries, redact=context.redactor),
        providers=project.providers if project is not None else (),
        environ=context.environ,
        meta_costs=project.meta_costs if project is not None else None,
        remember=context.redactor.add,
    )


@dataclass(frozen=True, slots=True)
class ServerSession:
    """A token, and the requests that were made for it (none where another call made them)."""

    token: str
    attempts: tuple[HttpAttempt, ...] = ()


class Login:
    """The session with one server, shared by all calls of a process.

    ``session`` logs in at the first call; ``renew`` replaces a rejected token once, however many calls
    it was rejected for. Credentials come from the environment only. A refused password is asked once:
    later calls get the same error without another try.
    """

    def __init__(self, kind: str, address: str, wire: HttpClient, context: AgentContext) -> None:
        self._kind = kind
        self._address = address
        self._wire = wire
        self._environ = context.environ
        self._redactor = context.redactor
        self._lock = threading.Lock()
        self._token = context.nao_token
        self._refused: AgentFailed | None = None

    def session(self, deadline: float | None) -> ServerSession:
        """Return the session; the first call logs in. Raises ``AgentFailed``."""
        return ServerSession(self._token) if self._token else self.renew(None, deadline)

    def renew(self, rejected: str | None, deadline: float | None) -> ServerSession:
        """Return a token other than ``rejected``; calls that come together share one login."""
        left = -1.0 if deadline is None else max(0.0, deadline - clock.monotonic())
        if not self._lock.acquire(timeout=left):
            raise AgentTimeout(f"the login at {self._kind} server {self._address} did not end in time")
        try:
            if self._refused is not None:
                raise AgentFailed(*self._refused.args)
            if self._token is not None and self._token != rejected:
                return ServerSession(self._token)
            made = self._log_in(deadline)
            self._token = made.token
            return made
        finally:
            self._lock.release()

    def _log_in(self, deadline: float | None) -> ServerSession:
        user, password = self._credentials()
        self._redactor.add(password)
        reply = self._wire.send(
            "POST",
            f"{self._address}/api/auth/sign-in/email",
            service=f"{self._kind} server",
            json={"email": user, "password": password},
            deadline=deadline,
        )
        if reply.status in (401, 403):
            self._refused = reply.failed(
                f"{self._kind} server at {self._address} refused the login of {user}: {reply.problem()}"
            )
            raise self._refused
        if reply.status >= 300:
            raise reply.failure()
        answer = reply.json()
        token = answer.get("token") if isinstance(answer, Mapping) else None
        if not isinstance(token, str) or not token:
            raise reply.failed(
                f"{self._kind} server at {self._address} answered the login without a token: is it a "
                f"{self._kind} server?"
            )
        self._redactor.add(token)
        return ServerSession(token, reply.attempts)

    def _credentials(self) -> tuple[str, str]:
        """Return user and password from ``NAO_*`` (``DAZENSE_*``, ``PDA_*``), else ``AGENTEVAL_*``."""
        own = self._kind.upper()
        found = {
            part: self._environ.get(f"{own}_{part}") or self._environ.get(f"AGENTEVAL_{part}")
            for part in ("USERNAME", "PASSWORD")
        }
        missing = [f"{own}_{part}" for part, value in found.items() if not value]
        if missing:
            raise AgentFailed(
                f"no login for the {self._kind} server at {self._address}: set {' and '.join(missing)} in "
                "the environment (AGENTEVAL_USERNAME and AGENTEVAL_PASSWORD serve every server)"
            )
        return str(found["USERNAME"]), str(found["PASSWORD"])


class NaoAgent:
    """Asks the server's test endpoint."""

    def __init__(self, kind: str, address: str, login: Login, models: Models) -> None:
        self._kind = kind
        self._address = address
        self._login = login
        self._models = models

    def run(self, task: Task) -> Answer:
        """Run the server's agent once. Raises ``AgentFailed``, ``AgentTimeout``."""
        model = task.model or DEFAULT_MODEL
        reply = self._ask(request_body(task, model, self._models.meta_costs), task.limits.deadline)
        answer = read_run(self._checked(reply, model), reply)
        if answer.cost is None:
            answer = replace(answer, cost=self._models.price(model, answer.usage))
        return answer

    def _ask(self, body: Mapping[str, Any], deadline: float | None) -> HttpResponse:
        session = self._login.session(deadline)
        reply = self._post(body, session.token, deadline, session.attempts)
        if reply.status != 401:
            return reply
        fresh = self._login.renew(session.token, deadline)
        reply = self._post(body, fresh.token, deadline, reply.attempts + fresh.attempts)
        if reply.status == 401:
            raise reply.failed(
                f"{self._kind} server at {self._address} rejected a fresh login's token too: "
                f"{reply.problem()}"
            )
        return reply

    def _post(
        self, body: Mapping[str, Any], token: str, deadline: float | None, earlier: tuple[HttpAttempt, ...]
    ) -> HttpResponse:
        reply = self._wire.send(
            "POST",
            f"{self._address}/api/test/run",
            service=f"{self._kind} server",
            headers={"Authorization": f"Bearer {token}"},
            json=body,
            deadline=deadline,
        )
        return reply.having(earlier + reply.attempts)

    @property
    def _wire(self) -> HttpClient:
        return self._models.wire

    def _checked(self, reply: HttpResponse, model: str) -> Mapping[str, Any]:
        """Return the JSON of a run, or the error that says why there is none."""
        if reply.status == 404:
            raise reply.failed(
                f"{self._kind} server at {self._address} has no /api/test/run ({reply.problem()}): is this "
                f"the address of a {self._kind} server?"
            )
        if reply.status >= 300:
            failure = reply.failure()
            if "model could not be resolved" in reply.said() or "Unknown LLM provider" in reply.said():
                failure.args = (f"{failure} (model {model}; the server knows those of its llm.providers)",)
            raise failure
        run = reply.json()
        if not isinstance(run, Mapping) or not ("text" in run or "toolCalls" in run):
            said = error_text(run) if isinstance(run, Mapping) else ""
            what = f"an error: {said}" if said else f"JSON that is no run: {reply.said()}"
            raise reply.failed(f"{self._kind} server answered HTTP {reply.status} with {what}")
        return run


def request_body(task: Task, model: str, meta_costs: Prices | None) -> dict[str, Any]:
    """Return what ``/api/test/run`` is sent; a context for the agent stands before the prompt."""
    provider, _, model_id = model.partition(":")
    prompt = f"{task.context}\n\n{task.prompt}" if task.context else task.prompt
    body: dict[str, Any] = {"prompt": prompt, "model": {"provider": provider, "modelId": model_id}}
    if task.database and len(task.databases) > 1:
        body["databaseId"] = task.database
    costs = {
        "inputNoCache": meta_costs and meta_costs.input,
        "inputCacheRead": meta_costs and meta_costs.cache_read,
        "inputCacheWrite": meta_costs and meta_costs.cache_write,
        "output": meta_costs and meta_costs.output,
    }
    known = {name: price for name, price in costs.items() if price is not None}
    if known:
        body["meta"] = {"costs": known}
    return body


def read_run(run: Mapping[str, Any], reply: HttpResponse) -> Answer:
    """Return a run's JSON as an ``Answer``: keys may be missing, others may come along."""
    text = run.get("text")
    finish = run.get("finishReason")
    calls = run.get("toolCalls")
    costs = run.get("cost")
    total = costs.get("totalCost") if isinstance(costs, Mapping) else None
    return Answer(
        text=text if isinstance(text, str) else "",
        tool_calls=tuple(
            _tool_call(call, finish)
            for call in (calls if isinstance(calls, list) else [])
            if isinstance(call, Mapping)
        ),
        usage=_usage(run.get("usage")),
        cost=_number(total),
        finish_reason=finish if isinstance(finish, str) else None,
        wire_attempts=reply.attempts,
        duration_ms=_number(run.get("durationMs")),
    )


def _tool_call(call: Mapping[str, Any], finish: Any) -> ToolCall:
    """Return one call; without a result it failed (the server keeps no reason), broken arguments are why."""
    name, args = str(call.get("toolName") or ""), call.get("args")
    error = None
    if isinstance(args, str):
        try:
            args = json.loads(args)
        except ValueError as broken:
            error = f"its arguments are not valid JSON ({broken})"
    result = call.get("result")
    asks = name == CLARIFYING and finish == "tool-calls"
    if error is None and result is None and not asks:
        error = "it returned no result: the tool failed (the server does not say why)"
    known = call.get("toolCallId")
    return ToolCall(
        name=name,
        args=args,
        result=result,
        id=None if known is None else str(known),
        error=error,
        status="ok" if error is None else "error",
    )


def _usage(usage: Any) -> Usage | None:
    if not isinstance(usage, Mapping):
        return None

    def count(key: str) -> int | None:
        value = _number(usage.get(key))
        return None if value is None else int(value)

    return Usage(
        input=count("inputTotalTokens"),
        output=count("outputTotalTokens"),
        cache_read=count("inputCacheReadTokens"),
        cache_write=count("inputCacheWriteTokens"),
        reasoning=count("outputReasoningTokens"),
        total=count("totalTokens"),
    )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
