"""``llm:``: our own SQL analyst, so that one suite can compare bare models.

A model with list_tables, describe_table and execute_sql on the case's database, and the project's
context files. Its whole trace is the answer's: every call, every row, tokens, cost, requests.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_agenteval.agents.base import AgentContext, RunnableAgent, unsupported_keys
from pytest_agenteval.agents.kinds.context_files import read_context
from pytest_agenteval.agents.kinds.nao import models_of
from pytest_agenteval.agents.kinds.sql_analyst_tools import CLARIFICATION, TOOLS, SqlTools, ToolFailed
from pytest_agenteval.databases import Database, Databases
from pytest_agenteval.errors import AgentFailed, DatabaseError, SettingsError
from pytest_agenteval.llm.client import DEFAULT_MODEL, Models
from pytest_agenteval.types import Answer, ChatModel, Completion, HttpAttempt, Task, ToolCall, Usage

TURNS = 12
"""Model turns in which the analyst may call tools; the last word then comes without tools."""

REPEATS = 3
"""Calls the model may make again word for word; then, too, the last word comes."""

MAX_TOKENS = 4096
DEFAULT_CONTEXT = ("RULES.md",)

RULES = """\
You are a data analyst. Answer the user's question from the database (SQL dialect: {dialect}) with the tools.
- Never guess a name: describe_table tells types and values of columns.
- Get every figure by calling execute_sql; SQL that is only written into an answer is not run.
- Let the last query return exactly the rows and columns that answer the question, with clear column names, \
unrounded.
- Then answer in one or two sentences. If the data cannot answer the question, say so plainly."""

# what repeats is possessive: a line of dashes in a fence took longer than any deadline
WRITTEN = re.compile(r"```(?:sql)?+\s*+(?:--[^\n]*+\s*+)*+(?:select|with)\b", re.IGNORECASE)
FENCES = re.compile(r"^```(?:json)?\s*+|(?<!\s)\s*+```$")
NOT_RUN = "That query has not been run. Call execute_sql with it, then answer."
AGAIN = "You have made this very call before, and {outcome}"
AGAIN_FAILED = "it will fail again. Write another query; describe_table tells which columns a table has."
AGAIN_DONE = "the result is the same. Answer the question now."
LAST_WORD = "No more tools can be called. Answer the question now with what you have found."


def build(target: str, context: AgentContext) -> RunnableAgent:
    """Return the agent of ``llm:``. Raises ``SettingsError`` for anything behind the colon."""
    rest = target.partition(":")[2]
    if rest:
        raise SettingsError(f"target {target!r}: llm: takes nothing more; give {rest!r} by --agent-model")
    patterns = context.project.context_files if context.project is not None else DEFAULT_CONTEXT
    analyst = SqlAnalyst(models_of(context), _finder(context), lambda: read_context(context.root, patterns))
    return RunnableAgent(
        kind="llm",
        name="llm",
        agent=analyst,
        place="the llm: analyst",
        default_model=DEFAULT_MODEL,
        is_builtin=True,
        unsupported_keys=unsupported_keys("llm"),
    )


Finder = Callable[[Task], contextlib.AbstractContextManager[Database]]


def _finder(context: AgentContext) -> Finder:
    """Return how a task's database is found: the run's own where it is the same, else by its URL."""
    configured = context.databases

    @contextlib.contextmanager
    def find(task: Task) -> Iterator[Database]:
        if configured is None:
            raise DatabaseError("the llm: analyst needs a database; set agenteval_databases (name = url)")
        if not _differs(task, configured):
            yield configured.get(task.database)
            return
        # a copy of one attempt is ours alone: it is opened as it is, not copied once more
        with Databases(
            task.databases,
            folder=configured.folder / "analyst",
            root=configured.root,
            timeout=configured.timeout,
            max_rows=configured.max_rows,
            snapshot_limit=0,
            cached=False,
        ) as own:
            yield own.get(task.database)

    return find


def _differs(task: Task, configured: Databases) -> bool:
    known = configured.urls
    return any(known.get(name) != url for name, url in task.databases.items())


@dataclass(slots=True)
class Trace:
    """What an attempt has done so far."""

    calls: list[ToolCall] = field(default_factory=list)
    usages: list[Usage | None] = field(default_factory=list)
    costs: list[float | None] = field(default_factory=list)
    wire: list[HttpAttempt] = field(default_factory=list)
    repeats: int = 0

    def made(self, call: ToolCall) -> bool:
        """Return whether the same tool was called with the same arguments before; such calls are counted."""
        again = any((done.name, done.args) == (call.name, call.args) for done in self.calls)
        self.repeats += again
        return again

    def add(self, done: Completion) -> None:
        """Add one model turn."""
        self.usages.append(done.usage)
        self.costs.append(done.cost)
        self.wire += done.wire_attempts

    @property
    def usage(self) -> Usage | None:
        """The turns' tokens together, as far as they are known."""
        known = [usage for usage in self.usages if usage is not None]
        return sum(known[1:], known[0]) if known else None

    @property
    def cost(self) -> float | None:
        """USD, unknown when one turn's is."""
        known = [cost for cost in self.costs if cost is not None]
        return sum(known) if known and len(known) == len(self.costs) else None

    def answer(self, text: str = "", finish: str | None = None, conversation: Any = None) -> Answer:
        """Return all of it as an answer."""
        return Answer(
            text=text,
            tool_calls=tuple(self.calls),
            usage=self.usage,
            cost=self.cost,
            finish_reason=finish,
            conversation=conversation,
            wire_attempts=tuple(self.wire),
            steps=len(self.usages),
        )


class SqlAnalyst:
    """Answers with a model and SQL tools. Thread-safe: an attempt keeps its state to itself."""

    def __init__(self, models: Models, find: Finder, context: Callable[[], str]) -> None:
        self._models = models
        self._find = find
        self._context = context

    def run(self, task: Task) -> Answer:
        """Answer the last turn. Raises ``AgentFailed`` (with the trace so far), ``AgentTimeout``."""
        try:
            model = self._models.get(task.model or DEFAULT_MODEL)
            with self._find(task) as database:
                return self._analyse(task, model, database)
        except (DatabaseError, SettingsError) as error:
            raise AgentFailed(str(error)) from error

    def _analyse(self, task: Task, model: ChatModel, database: Database) -> Answer:
        trace = Trace()
        tools = SqlTools(database, task.limits.deadline)
        offered = [*TOOLS, CLARIFICATION] if task.clarification else list(TOOLS)
        messages = self._opening(task, database, tools)
        reminded = False
        try:
            for _ in range(TURNS):
                if trace.repeats >= REPEATS:
                    break
                done = self._turn(task, model, messages, offered, trace)
                if not done.tool_calls:
                    if not reminded and _only_wrote(done, trace):
                        reminded = True
                        messages.append({"role": "user", "content": NOT_RUN})
                        continue
                    return self._closing(trace, messages, done)
                asks = self._call_tools(done.tool_calls, tools, trace, messages, task.clarification)
                if asks or _over(task, trace):
                    finish = "tool-calls" if asks else "budget"
                    return trace.answer(done.text, finish, _written(messages))
            messages.append({"role": "user", "content": LAST_WORD})
            return self._closing(trace, messages, self._turn(task, model, messages, [], trace))
        except AgentFailed as error:
            if error.answer is not None:
                trace.wire += error.answer.wire_attempts
            error.answer = trace.answer(conversation=_written(messages))
            raise

    def _opening(self, task: Task, database: Database, tools: SqlTools) -> list[dict[str, Any]]:
        if isinstance(task.conversation, list) and task.conversation:
            messages = [_read(message) for message in task.conversation if isinstance(message, Mapping)]
        else:
            tables = tools.overview()
            parts = [
                RULES.format(dialect=database.dialect or "standard"),
                f"Tables:\n{tables}" if tables else "Find the tables with list_tables.",
                self._context(),
                task.context,
            ]
            messages = []
            messages.append({"role": "system", "content": "\n\n".join(part for part in parts if part)})
        return [*messages, {"role": "user", "content": task.prompt}]

    @staticmethod
    def _turn(
        task: Task,
        model: ChatModel,
        messages: list[dict[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        trace: Trace,
    ) -> Completion:
        done = model.complete(messages, tools=tools, max_tokens=MAX_TOKENS, deadline=task.limits.deadline)
        trace.add(done)
        if not done.tool_calls and (call := _spoken(done.text, tools, len(trace.usages))) is not None:
            done = replace(done, text="", tool_calls=(call,))
        said: dict[str, Any] = {"role": "assistant", "content": done.text}
        if done.tool_calls:
            said["tool_calls"] = done.tool_calls
        messages.append(said)
        return done

    @staticmethod
    def _closing(trace: Trace, messages: list[dict[str, Any]], done: Completion) -> Answer:
        return trace.answer(done.text, done.finish_reason or "stop", _written(messages))

    @staticmethod
    def _call_tools(
        asked: Sequence[ToolCall],
        tools: SqlTools,
        trace: Trace,
        messages: list[dict[str, Any]],
        may_ask: bool,
    ) -> bool:
        """Carry out a turn's calls, in order; whether the user was asked something."""
        asks = False
        for call in asked:
            if may_ask and call.name == CLARIFICATION["name"] and call.status == "ok":
                done, reply, asks = replace(call, result={"success": True}), "The user has been asked.", True
            else:
                done, reply = _carried_out(call, tools)
            failed = done.status == "error"
            if trace.made(call):
                reply += "\n" + AGAIN.format(outcome=AGAIN_FAILED if failed else AGAIN_DONE)
            trace.calls.append(done)
            shown = f"Error: {reply}" if failed else reply
            messages.append({"role": "tool", "tool_call_id": call.id, "content": shown, "is_error": failed})
        return asks


def _carried_out(call: ToolCall, tools: SqlTools) -> tuple[ToolCall, str]:
    """Return the call with its result or error, and what the model is shown of it."""
    if call.status == "error":
        return call, f"{call.error}. Call the tool again with a valid JSON object as its arguments."
    try:
        result, reply = tools.run(call.name, call.args)
    except ToolFailed as error:
        return replace(call, status="error", error=str(error)), str(error)
    return replace(call, result=result), reply


def _spoken(text: str, tools: Sequence[Mapping[str, Any]], turn: int) -> ToolCall | None:
    """Return the call in a text that is nothing but a call as JSON:
    small models answer so instead of calling.
    """
    bare = FENCES.sub("", text.strip())
    if not bare.startswith("{"):
        return None
    try:
        form = json.loads(bare)
    except ValueError:
        return None
    arguments = form.get("arguments", form.get("parameters"))
    if form.get("name") not in [tool["name"] for tool in tools] or not isinstance(arguments, dict):
        return None
    return ToolCall(form["name"], arguments, id=f"spoken_{turn}")


def _only_wrote(done: Completion, trace: Trace) -> bool:
    """Return whether the model wrote a query into its answer and never ran one (small models do)."""
    ran = any(call.name == "execute_sql" for call in trace.calls)
    return not ran and WRITTEN.search(done.text) is not None


def _over(task: Task, trace: Trace) -> bool:
    """Return whether the attempt is past its own budget: then nothing more is spent,
    the budget check fails it.
    """
    limits, usage, cost = task.limits, trace.usage, trace.cost
    tokens = usage.tokens if usage else None
    return bool(
        (limits.tokens is not None and tokens is not None and tokens > limits.tokens)
        or (limits.cost is not None and cost is not None and cost > limits.cost)
        or (limits.tool_calls is not None and len(trace.calls) > limits.tool_calls)
    )


def _written(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages as plain values, which a recording or the next turn can take up."""
    return [
        {
            **message,
            **(
                {"tool_calls": [{"id": c.id, "name": c.name, "args": c.args} for c in message["tool_calls"]]}
                if "tool_calls" in message
                else {}
            ),
        }
        for message in messages
    ]


def _read(message: Mapping[str, Any]) -> dict[str, Any]:
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return dict(message)
    return {**message, "tool_calls": tuple(ToolCall(c["name"], c["args"], id=c["id"]) for c in calls)}
