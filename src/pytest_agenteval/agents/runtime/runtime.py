"""``AgentRuntime``: calls agents, one attempt at a time or many, within their deadlines."""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agenteval.agents.base import RunnableAgent
from pytest_agenteval.agents.conversation import converse
from pytest_agenteval.agents.normalize import normalize
from pytest_agenteval.agents.runtime.agent_errors import ends_run, failed, overdue
from pytest_agenteval.agents.runtime.deadlines import (
    CANCEL_GRACE,
    ProcessLimit,
    Worker,
    in_a_thread,
    in_main_thread,
)
from pytest_agenteval.agents.runtime.output_capture import OutputRouter
from pytest_agenteval.errors import BudgetSpent
from pytest_agenteval.support import clock
from pytest_agenteval.types import NAO_KINDS, Answer, Task

if TYPE_CHECKING:
    from pytest_agenteval.agents.runtime.event_loop import AgentOwner, EventLoopThread

OWN_GRACE = 0.8
"""Seconds past the deadline for agents that end by themselves: the guard is only their backstop."""

ASYNC_GRACE = CANCEL_GRACE + 0.5
"""The same for async agents: their loop cancels them at the deadline."""


class AgentRuntime:
    """What agent calls of one process share: the event loop, output routing, threads left behind.

    ``thread``: Python agents run in a thread even at concurrency 1, for a hard deadline.
    ``overlapping``: calls overlap, so what they print and log is routed into their answers.
    ``redact`` takes secrets out of the text of errors and of what agents print. ``on_stuck`` ends the
    process, given the key of a call that blocks the main thread for good; ``limit`` ends it where not
    even that is possible.
    """

    def __init__(
        self,
        *,
        thread: bool = False,
        overlapping: bool = False,
        root: Path | None = None,
        redact: Callable[[str], str] = str,
        on_stuck: Callable[[str], None] | None = None,
        limit: ProcessLimit | None = None,
    ) -> None:
        self._thread = thread
        self._root = root
        self._redact = redact
        self._on_stuck = on_stuck
        self._limit = limit
        self._router = OutputRouter() if overlapping else None
        self._lock = threading.Lock()
        self._loop: EventLoopThread | None = None
        self._entered: dict[int, _Entered] = {}
        self._workers: list[tuple[str, Worker]] = []
        self._closers: dict[int, Any] = {}

    def call(
        self,
        agent: RunnableAgent,
        task: Task,
        *,
        timeout: float,
        key: str = "",
        on_overdue: Callable[[], None] | None = None,
        on_answer: Callable[[Answer], None] | None = None,
    ) -> Answer:
        """Ask ``agent`` all turns of ``task`` within ``timeout`` seconds; ``duration_ms`` is set
        (of a replayed answer: as recorded; of nao's server: as it says, without login, queue and retries).

        In pytest's main thread a Python agent runs right there (unless ``thread``); in any other
        thread in one of its own that is left behind when overdue. ``key`` names the call when it is
        left; ``on_overdue`` is called by a watchdog 5 s past the deadline while it still blocks the
        main thread. ``on_answer`` gets the answer before anything else can go wrong: an agent made for
        this attempt is left only then.

        Raises ``AgentFailed`` (``__cause__``: what the agent raised) or ``AgentTimeout``; ``BudgetSpent``,
        KeyboardInterrupt and what pytest-timeout raises pass through; ``pytest.skip()`` and its like are
        errors of the agent.
        """
        started = clock.monotonic()
        deadline = started + timeout
        task = replace(task, limits=replace(task.limits, timeout=timeout, deadline=deadline))
        call = _AgentCall(agent, task, deadline, timeout, key or agent.name)
        if hasattr(agent.agent, "close"):
            with self._lock:
                self._closers[id(agent.agent)] = agent.agent
        try:
            answer = self._answer_of(call, started, on_overdue)
            if on_answer is not None:
                on_answer(answer)
            return answer
        finally:
            if call.made is not None:
                self.release(call.made)

    def _answer_of(self, call: _AgentCall, started: float, on_overdue: Callable[[], None] | None) -> Answer:
        limited = self._limit.around(call.deadline) if self._limit is not None else nullcontext()
        try:
            with limited:
                answer = self._guarded(call, on_overdue)
        except BudgetSpent:
            raise
        except BaseException as error:
            if ends_run(error):
                raise
            made = failed(error, self._root, self._redact("".join(call.logs)))
            made.args = (self._redact(str(made)),)
            made.traceback = self._redact(made.traceback)
            made.duration_ms = round((clock.monotonic() - started) * 1000, 3)
            if made is error:
                raise
            raise made from error
        duration = answer.duration_ms if call.agent.kind in ("replay", *NAO_KINDS) else None
        if duration is None:
            duration = round((clock.monotonic() - started) * 1000, 3)
        logs = self._redact(answer.logs + "".join(call.logs))
        return replace(answer, duration_ms=duration, logs=logs)

    def _guarded(self, call: _AgentCall, on_overdue: Callable[[], None] | None) -> Answer:
        agent = call.agent
        grace = OWN_GRACE if agent.is_builtin else ASYNC_GRACE if agent.is_async else 0.0
        work = functools.partial(self._captured, call)
        if threading.current_thread() is threading.main_thread() and (agent.is_builtin or not self._thread):
            stuck = self._on_stuck
            return in_main_thread(
                work,
                call.deadline,
                call.timeout,
                grace=grace,
                on_overdue=on_overdue,
                on_stuck=functools.partial(stuck, call.key) if stuck is not None else None,
                root=self._root,
            )
        return in_a_thread(
            work,
            call.deadline,
            call.timeout,
            name=f"agenteval-call {call.key}",
            grace=grace,
            started=lambda worker: self._remember(call.key, worker),
            root=self._root,
        )

    def _remember(self, key: str, worker: Worker) -> None:
        with self._lock:
            self._workers = [entry for entry in self._workers if entry[1].is_alive()]
            self._workers.append((key, worker))

    def _captured(self, call: _AgentCall) -> Answer:
        if self._router is None:
            return self._attempt(call)
        with self._router.capture() as output:
            try:
                return self._attempt(call)
            finally:
                call.logs.append(output.text())

    def _attempt(self, call: _AgentCall) -> Answer:
        fresh = call.agent.per_attempt_factory
        if fresh is None:
            self._enter(call.agent, call)
            return self._answers(call.agent, call)
        agent = call.made = replace(self._awaited(fresh(), call), per_attempt_factory=None)
        self._enter(agent, call)
        return self._answers(agent, call)

    def _answers(self, agent: RunnableAgent, call: _AgentCall) -> Answer:
        def ask(turn: Task) -> Answer:
            return normalize(self._awaited(agent.agent.run(turn), call), agent.place)

        return ask(call.task) if agent.takes_all_turns else converse(call.task, ask, self._root)

    def _awaited(self, value: Any, call: _AgentCall) -> Any:
        if not inspect.isawaitable(value):
            return value
        with self._lock:
            loop = self._loop_of()
        return loop.run(value, call.deadline, call.timeout)

    def _loop_of(self) -> EventLoopThread:
        """Return the event loop's thread, made when it is first needed; the lock is held."""
        from pytest_agenteval.agents.runtime.event_loop import EventLoopThread

        if self._loop is None:
            self._loop = EventLoopThread()
        return self._loop

    def _enter(self, agent: RunnableAgent, call: _AgentCall) -> None:
        """Enter an agent on the loop, once per object; it stays so until ``release`` or ``shutdown``."""
        obj = agent.context_manager
        if obj is None:
            return
        from pytest_agenteval.agents.runtime.event_loop import AgentOwner

        with self._lock:
            owner = AgentOwner(self._loop_of(), obj)
            entered = self._entered.setdefault(id(obj), _Entered(obj, owner))
        if not entered.lock.acquire(timeout=max(call.deadline - clock.monotonic(), 0)):
            raise overdue(call.timeout, None)
        try:
            if not entered.owner.entered:
                entered.owner.enter(call.deadline, call.timeout)
        finally:
            entered.lock.release()

    def release(self, agent: RunnableAgent, timeout: float = 5.0) -> None:
        """Leave an agent that was entered: one attempt's, or that of a fixture torn down.

        What goes wrong is a warning: the answer is there, and the verdict does not depend on it.
        """
        with self._lock:
            entered = self._entered.pop(id(agent.context_manager), None)
        if entered is not None:
            self._leave(entered, clock.monotonic() + timeout)

    def watch_output(self, *streams: tuple[Any, str]) -> None:
        """Route output again after ``sys.stdout`` was replaced; ``streams``: what it is replaced with."""
        if self._router is not None:
            self._router.install()
            for holder, name in streams:
                self._router.route(holder, name)

    def shutdown(self, wait: float = 2.0) -> tuple[str, ...]:
        """Leave async agents, end programs, stop the loop, wait for threads.

        All of it takes about ``wait`` seconds at most. Returns the keys of calls that still run: then
        ``concurrency.leave_hard_at_exit`` is needed.
        """
        end = clock.monotonic() + wait
        with self._lock:
            entered, workers = list(self._entered.values()), list(self._workers)
            closers = list(self._closers.values())
            self._entered.clear()
            self._closers.clear()
        for entry in entered:
            self._leave(entry, end)
        for agent in closers:
            self._guard(agent, agent.close)
        stuck = self._loop.close(max(end - clock.monotonic(), 0.1)) if self._loop else []
        for _, worker in workers:
            worker.join(max(end - clock.monotonic(), 0))
        if self._router is not None:
            self._router.remove()
        names = [name for name, worker in workers if worker.is_alive()]
        return (*names, *(f"event loop ({thread.name})" for thread in stuck))

    def _leave(self, entry: _Entered, end: float) -> None:
        left = end - clock.monotonic()
        if left > 0 and (fault := entry.owner.leave(end, left)) is not None:
            self._warn(entry.obj, fault)

    def _guard(self, agent: Any, close: Callable[[], object]) -> None:
        """Call cleanup of an agent: not even SystemExit in it decides the exit status."""
        try:
            close()
        except BaseException as error:
            if ends_run(error):
                raise
            self._warn(agent, error)

    def _warn(self, agent: Any, error: BaseException) -> None:
        """Show a warning; ``-W error`` does not make it an error, which would undo nothing."""
        text = f"leaving the agent {type(agent).__name__} failed: {self._redact(repr(error))}"
        warnings.showwarning(UserWarning(text), UserWarning, __file__, 0)


@dataclass(slots=True)
class _AgentCall:
    """One attempt under way; ``logs`` is what it printed, ``made`` the agent made for it alone."""

    agent: RunnableAgent
    task: Task
    deadline: float
    timeout: float
    key: str
    logs: list[str] = field(default_factory=list)
    made: RunnableAgent | None = None


@dataclass(slots=True)
class _Entered:
    """An object with ``__aenter__``; the first one enters it, the others wait."""

    obj: Any
    owner: AgentOwner
    lock: threading.Lock = field(default_factory=threading.Lock)
