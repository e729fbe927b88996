"""The values that flow through the house: plain, frozen, without pytest. Tables live in ``table``.

Money in USD, durations in milliseconds, limits in seconds; turns and rows count from 0, attempts from 1.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args, runtime_checkable

if TYPE_CHECKING:
    from pytest_agenteval.table import Table

Verdict = Literal["passed", "failed", "error", "review", "not_run", "running"]
"""``running`` is shown of a run that goes on; no finished document holds it."""
Stage = Literal["reference", "agent", "extraction", "comparison", "checks", "timeout", "worker"]
Outcome = Literal["answer", "refuse", "clarify", "no_data"]
Severity = Literal["fail", "warn"]
CallStatus = Literal["ok", "error"]

NaoKind = Literal["nao", "dazense", "pda"]
"""nao and the programs made of it: same server, same project file, each under its own name."""
NAO_KINDS: tuple[NaoKind, ...] = get_args(NaoKind)

DEFAULT_TIMEOUT = 300.0
"""Seconds that an attempt may take."""
LONGEST_TIMEOUT = 1_000_000
"""Seconds (more than 11 days) that timers of the system still take, several of them added up."""
MOST_ATTEMPTS = 10_000
"""Attempts that a case may have."""
DEFAULT_SQL_TOOLS = ("execute_sql",)
"""Tools whose calls are queries."""
DEFAULT_SQL_TIMEOUT = 60.0
"""Seconds that a query may take."""
DEFAULT_SQL_MAX_ROWS = 100_000
"""Rows that a query may return."""
DEFAULT_SNAPSHOT_LIMIT = 2 * 1024**3
"""Bytes up to which a database file is copied before it is used."""
DEFAULT_RETRIES = 2
"""How often a request is repeated after 429, 5xx or a lost connection."""

MODEL = re.compile(r"[^\s:,]+:\S+")
"""A model as it is written everywhere: ``provider:model``."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more model calls; ``None`` is unknown, never 0.

    ``input`` includes ``cache_read`` and ``cache_write``, ``output`` includes ``reasoning``. ``model``
    (``provider:model``, or the name alone) is the one that was called, where it may be another than the
    task's: its price counts. ``first_token_ms`` is the time until the first piece of a streamed answer.
    ``parts`` is filled by adding usages of several models; each part has its own price.
    """

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    total: int | None = None
    model: str | None = None
    first_token_ms: float | None = None
    parts: tuple[Usage, ...] = ()

    @property
    def tokens(self) -> int | None:
        """All tokens: ``total`` where given, else input plus output, else unknown."""
        if self.total is not None:
            return self.total
        known = [part for part in (self.input, self.output) if part is not None]
        return sum(known) if known else None

    def __add__(self, other: Usage) -> Usage:
        """Return the sum, part by part; a part unknown on both sides stays unknown.

        The time to the first token is that of the first usage that has one.
        """

        def plus(a: int | None, b: int | None) -> int | None:
            return b if a is None else a if b is None else a + b

        names = ("input", "output", "cache_read", "cache_write", "reasoning")
        counts: dict[str, Any] = {name: plus(getattr(self, name), getattr(other, name)) for name in names}
        first = self.first_token_ms if self.first_token_ms is not None else other.first_token_ms
        total = plus(self.tokens, other.tokens)
        if self.model == other.model and not (self.parts or other.parts):
            return Usage(**counts, total=total, model=self.model, first_token_ms=first)
        parts = (*(self.parts or (self,)), *(other.parts or (other,)))
        return Usage(**counts, total=total, first_token_ms=first, parts=parts)


@dataclass(frozen=True, slots=True)
class HttpAttempt:
    """One request on the wire: what was called, how it ended, how long it took (ms)."""

    url: str
    status: int | None
    error: str | None
    duration_ms: float
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call of an agent.

    ``status`` is ``error`` for a call that failed (no result). ``asked``: the tool asked a person
    first; ``approved``: whether it went ahead. ``turn`` counts from 0.
    """

    name: str
    args: Any = None
    result: Any = None
    id: str | None = None
    error: str | None = None
    status: CallStatus = "ok"
    asked: bool = False
    approved: bool | None = None
    turn: int = 0


@dataclass(frozen=True, slots=True)
class AttemptLimits:
    """What an attempt may use. ``deadline`` is a ``time.monotonic()`` value, ``timeout`` seconds."""

    timeout: float = DEFAULT_TIMEOUT
    deadline: float | None = None
    tokens: int | None = None
    cost: float | None = None
    tool_calls: int | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """What an agent is given. Never the case's name, path, SQL or expected values.

    ``turns`` are the user's messages; the last one is to be answered, the earlier ones have been
    (their answers stand in ``conversation``, a list of ``{"role", "content"}``, or what the
    previous answer returned as ``conversation``). ``databases`` maps names to URLs.
    """

    turns: tuple[str, ...]
    model: str | None = None
    database: str | None = None
    databases: Mapping[str, str] = field(default_factory=dict)
    caller: Any = None
    vars: Mapping[str, Any] = field(default_factory=dict)
    context: str | None = None
    approve: bool | tuple[str, ...] = False
    clarification: bool = False
    limits: AttemptLimits = AttemptLimits()
    input: Any = None
    conversation: Any = None
    attempt: int = 1

    @property
    def prompt(self) -> str:
        """The text to answer: the last turn ('' for a task that has only an ``input``)."""
        return self.turns[-1] if self.turns else ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an agent returned.

    ``data`` is the table it hands over: a list of dicts, a DataFrame, an Arrow table, a
    ``Table``; ``None`` when it hands none over. ``cost`` is USD. ``turns`` holds one answer per
    turn of a conversation and is empty for a single turn.
    """

    text: str = ""
    data: Any = None
    value: Any = None
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    cost: float | None = None
    finish_reason: str | None = None
    conversation: Any = None
    turns: tuple[Answer, ...] = ()
    wire_attempts: tuple[HttpAttempt, ...] = ()
    duration_ms: float | None = None
    steps: int | None = None
    logs: str = ""


@runtime_checkable
class Agent(Protocol):
    """Anything that answers a task, synchronously or not."""

    def run(self, task: Task) -> Answer | Awaitable[Answer]:
        """Answer the last turn of ``task``. What this raises is the attempt's error."""
        ...


@dataclass(frozen=True, slots=True)
class Extraction:
    """The agent's table and where it came from.

    ``table`` is ``None`` when the agent gave no data (``no data returned``: it fails, it is never an
    empty table). ``source`` is one of ``given``, ``matched``, ``only query``, ``query``, ``json``,
    ``re-run``, ``none``; ``query`` is the statement that gave the table, where there was one. ``note``
    says more where there is no table.
    """

    table: Table | None
    source: str
    query: str | None = None
    usage: Usage | None = None
    cost: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check found. ``score`` is 0..1; ``why`` says what was found and what was expected."""

    type: str
    passed: bool
    why: str
    name: str | None = None
    score: float = 0.0
    severity: Severity = "fail"
    turn: int | None = None
    reason: str = "assertion"
    usage: Usage | None = None
    cost: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SavedComparison:
    """What the results hold of a comparison: the message with what it found, and the difference as text."""

    cause: str = ""
    difference: str = ""


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found out about a verdict, as JSON: luck, the cause, what differs in the SQL (trust.md)."""

    luck: Mapping[str, Any] | None = None
    cause: Mapping[str, Any] | None = None
    sql_difference: Sequence[Mapping[str, Any]] = ()

    @property
    def lucky(self) -> bool:
        """Whether the answer was right by luck."""
        return bool(self.luck and self.luck.get("found"))


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at one case with one model: everything a report needs, nothing live.

    ``comparison`` is what was compared just now; ``saved`` what is known of it where the attempt was taken
    over from earlier results. ``findings`` (``Findings``) say whether it is right by luck, or what a wrong
    one did. ``reference`` is the table it was compared with, ``references`` are all that the case and its
    turns have; ``frozen``: they were read from files. ``traceback`` is the agent's own, where it raised.
    """

    number: int
    verdict: Verdict
    message: str
    answer: Answer | None = None
    extraction: Extraction | None = None
    comparison: Any = None
    reference: Table | None = None
    reference_sql: str | None = None
    references: tuple[Table, ...] = ()
    frozen: bool = False
    checks: tuple[CheckResult, ...] = ()
    stage: Stage | None = None
    reason: str | None = None
    error: str | None = None
    observed: Outcome | None = None
    score: float | None = None
    duration_ms: float = 0.0
    leak: str | None = None
    asked: tuple[str, ...] = ()
    traceback: str | None = None
    saved: SavedComparison | None = None
    findings: Findings | None = None

    @property
    def cause(self) -> str:
        """The message with what the comparison found: ``values differ: all 12 values are 100 times ...``."""
        if self.saved is not None:
            return self.saved.cause or self.message
        found = self.comparison
        if self.verdict != "failed" or found is None or found.matched or found.diagnosis is None:
            return self.message
        return self.message.replace(found.message, f"{found.message}: {found.diagnosis.sentence}", 1)


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The verdict on one case and model over its attempts."""

    verdict: Verdict
    message: str
    attempts: Sequence[Attempt] = ()
    stage: Stage | None = None
    reason: str | None = None
    score: float | None = None

    @property
    def cause(self) -> str:
        """The message plus the diagnosis of the deciding attempt."""
        shown = next((attempt for attempt in self.attempts if attempt.verdict == self.verdict), None)
        return self.message if shown is None else self.message.replace(shown.message, shown.cause, 1)


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model returned to one request. ``tool_calls`` are requests to call, without results."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    cost: float | None = None
    finish_reason: str | None = None
    wire_attempts: tuple[HttpAttempt, ...] = ()


class ChatModel(Protocol):
    """A model behind an endpoint; agents, extraction and judges share this border."""

    name: str

    def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int = 4096,
        deadline: float | None = None,
    ) -> Completion:
        """Return one model turn. ``schema``: a JSON Schema the text must follow. Raises ``AgentFailed``."""
        ...


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement an agent executed, with what it got back (``None``: no rows are known)."""

    sql: str
    table: Table | None = None
    turn: int = 0


@dataclass(frozen=True, slots=True)
class UnreadCall:
    """A call of a tool that is not known to run queries, with the SQL in its arguments."""

    tool: str
    sql: str
    turn: int = 0


@dataclass(frozen=True, slots=True)
class Consumption:
    """What an attempt used: tokens, USD, ms, tool calls, statements executed."""

    tokens: int | None = None
    cost: float | None = None
    duration_ms: float | None = None
    tool_calls: int = 0
    sql_queries: int = 0


@dataclass(frozen=True, slots=True)
class Reference:
    """One accepted answer: its table, and the SQL it came from (``None`` for inline rows).

    ``frozen``: the rows are those of a file, not of a database.
    """

    table: Table
    sql: str | None = None
    order_by: tuple[str, ...] = ()
    frozen: bool = False


class Services(Protocol):
    """What checks may ask of the house while they run."""

    @property
    def root(self) -> str:
        """The root folder."""
        ...

    @property
    def judge(self) -> ChatModel | None:
        """The judge, where one is configured."""
        ...

    def schema(self) -> Mapping[str, Sequence[str]]:
        """Return column names by ``schema.table`` of the case's database ({} where none is configured)."""
        ...

    def dialect(self) -> str | None:
        """Return the sqlglot dialect of the case's database."""
        ...

    def resolve(self, reference: str) -> Any:
        """Return the object behind ``pkg.mod:name``, rootdir first on ``sys.path``."""
        ...


@dataclass(frozen=True, slots=True)
class TurnEvidence:
    """What one turn of a conversation gave."""

    prompt: str
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    table: Table | None = None
    references: tuple[Reference, ...] = ()
    extraction: Extraction | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """All a check may look at: the sole input of every check.

    ``value`` is the answer's value, else the first cell of ``table``. ``reference`` is the first
    accepted table. ``statements`` are all statements the agent really executed, in order; ``unread``
    are calls that may have executed more, of tools that are not configured as SQL tools.
    """

    prompt: str
    text: str
    value: Any = None
    table: Table | None = None
    reference: Table | None = None
    references: tuple[Reference, ...] = ()
    called: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    steps: int | None = None
    used: Consumption = Consumption()
    tool_calls: tuple[ToolCall, ...] = ()
    statements: tuple[Statement, ...] = ()
    turns: tuple[TurnEvidence, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    expected_response: tuple[str, ...] = ()
    outcome: Outcome = "answer"
    observed: Outcome = "answer"
    comparison: Mapping[str, Any] = field(default_factory=dict)
    extraction: Extraction | None = None
    answer: Answer | None = None
    services: Services | None = None
    unread: tuple[UnreadCall, ...] = ()
