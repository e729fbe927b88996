"""``AgentRuntime``: calls agents, one attempt at a time or many, within their deadlines."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_agenteval.agents.base import RunnableAgent
from pytest_agenteval.agents.capture import OutputRouter
from pytest_agenteval.agents.conversation import converse
from pytest_agenteval.agents.faults import failed
from pytest_agenteval.agents.guards import Worker, in_a_thread, in_main_thread
from pytest_agenteval.agents.loop import CANCEL_GRACE, LoopThread, closed
from pytest_agenteval.agents.normalize import normalize
from pytest_agenteval.errors import AgentFailed, AgentTimeout, BudgetSpent
from pytest_agenteval.types import Answer, Task

OWN_GRACE = 0.8
"""Seconds past the deadline for agents that end by themselves: the guard is only their backstop."""

ASYNC_GRACE = CANCEL_GRACE + 0.5
"""The same for async agents: their loop cancels them at the deadline."""


class AgentRuntime:
    """What agent calls of one process share: the event loop, output routing, threads left behind.

    ``thread``: Python agents run in a thread even at concurrency 1, for a hard deadline.
    ``overlapping``: calls overlap, so what they print and log is routed into their answers.
    """

    def __init__(self, *, thread: bool = False, overlapping: bool = False, root: Path | None = None) -> None:
        self._thread = thread
        self._root = root
        self._loop = LoopThread()
        self._router = OutputRouter() if overlapping else None
        self._lock = threading.Lock()
        self._entered: dict[int, Any] = {}
        self._left: list[tuple[str, Worker]] = []

    def call(
        self,
        agent: RunnableAgent,
        task: Task,
        *,
        timeout: float,
        key: str = "",
        on_overdue: Callable[[], None] | None = None,
    ) -> Answer:
        """Ask ``agent`` all turns of ``task`` within ``timeout`` seconds; ``duration_ms`` is set
        (of a replayed answer: as recorded).

        In pytest's main thread a Python agent runs right there (unless ``thread``); in any other
        thread in one of its own that is left behind when overdue. ``key`` names the call when it is
        left; ``on_overdue`` is called by a watchdog 5 s past the deadline while it still blocks the
        main thread. Raises ``AgentFailed`` (``__cause__``: what the agent raised) or ``AgentTimeout``;
        ``BudgetSpent``, KeyboardInterrupt and
        pytest's outcomes pass through.
        """
        started = time.monotonic()
        deadline = started + timeout
        task = replace(task, limits=replace(task.limits, timeout=timeout, deadline=deadline))
        logs: list[str] = []

        def work() -> Answer:
            if self._router is None:
                return self._attempt(agent, task, deadline, timeout)
            with self._router.capture() as output:
                try:
                    return self._attempt(agent, task, deadline, timeout)
                finally:
                    logs.append(output.text())

        try:
            answer = self._guarded(work, agent, deadline, timeout, key, on_overdue)
        except AgentFailed as error:
            error.logs = error.logs or "".join(logs)
            raise
        except BudgetSpent:
            raise
        except (Exception, SystemExit, GeneratorExit) as error:
            raise failed(error, self._root, "".join(logs)) from error
        duration = answer.duration_ms if agent.kind == "replay" else None
        if duration is None:
            duration = round((time.monotonic() - started) * 1000, 3)
        return replace(answer, duration_ms=duration, logs=answer.logs + "".join(logs))

    def _guarded(
        self,
        work: Callable[[], Answer],
        agent: RunnableAgent,
        deadline: float,
        timeout: float,
        key: str,
        on_overdue: Callable[[], None] | None,
    ) -> Answer:
        grace = OWN_GRACE if agent.own else ASYNC_GRACE if agent.is_async else 0.0
        if threading.current_thread() is threading.main_thread() and (agent.own or not self._thread):
            return in_main_thread(
                work, deadline, timeout, grace=grace, on_overdue=on_overdue, root=self._root
            )
        name = key or agent.name
        return in_a_thread(
            work,
            deadline,
            timeout,
            name=f"agenteval-call {name}",
            grace=grace,
            abandon=lambda worker: self._abandon(name, worker),
            root=self._root,
        )

    def _abandon(self, name: str, worker: Worker) -> None:
        with self._lock:
            self._left.append((name, worker))

    def _attempt(self, agent: RunnableAgent, task: Task, deadline: float, timeout: float) -> Answer:
        fresh = agent.fresh is not None
        if agent.fresh is not None:
            made = self._awaited(agent.fresh(), deadline, timeout)
            agent = replace(made, fresh=None)
        self._enter(agent, deadline, timeout)
        try:
            return self._answers(agent, task, deadline, timeout)
        finally:
            if fresh:
                self.release(agent)

    def _answers(self, agent: RunnableAgent, task: Task, deadline: float, timeout: float) -> Answer:
        def ask(turn: Task) -> Answer:
            raw = self._awaited(agent.agent.run(turn), deadline, timeout)
            return normalize(raw, agent.place)

        return ask(task) if agent.whole else converse(task, ask, self._root)

    def _awaited(self, value: Any, deadline: float, timeout: float) -> Any:
        return self._loop.run(value, deadline, timeout) if inspect.isawaitable(value) else value

    def _enter(self, agent: RunnableAgent, deadline: float, timeout: float) -> None:
        """``__aenter__`` on the loop, once per object; kept until ``release`` or ``shutdown``."""
        obj = agent.entered
        if obj is None:
            return
        with self._lock:
            if id(obj) in self._entered:
                return
            self._entered[id(obj)] = obj
        try:
            self._loop.run(type(obj).__aenter__(obj), deadline, timeout)
        except BaseException:
            with self._lock:
                self._entered.pop(id(obj), None)
            raise

    def release(self, agent: RunnableAgent, timeout: float = 5.0) -> None:
        """``__aexit__`` for an agent that was entered: one attempt's, or that of a fixture torn down."""
        with self._lock:
            obj = self._entered.pop(id(agent.entered), None)
        if obj is not None:
            self._loop.run(type(obj).__aexit__(obj, None, None, None), time.monotonic() + timeout, timeout)

    def watch_output(self) -> None:
        """Route output again after pytest replaced ``sys.stdout`` (at the start of a phase)."""
        if self._router is not None:
            self._router.install()

    def shutdown(self, wait: float = 2.0) -> tuple[str, ...]:
        """Leave async agents, stop the loop, wait for threads; names of calls that are still running.

        All of it takes about ``wait`` seconds at most.
        """
        end = time.monotonic() + wait
        with self._lock:
            entered, left = list(self._entered.values()), list(self._left)
            self._entered.clear()
        for obj in entered:
            self._leave(obj, end)
        for _, worker in left:
            worker.join(max(end - time.monotonic(), 0))
        stuck = self._loop.close(max(end - time.monotonic(), 0.1))
        if self._router is not None:
            self._router.remove()
        names = [name for name, worker in left if worker.is_alive()]
        return (*names, *(f"event loop ({thread.name})" for thread in stuck))

    def _leave(self, obj: Any, end: float) -> None:
        exit_ = type(obj).__aexit__(obj, None, None, None)
        left = max(end - time.monotonic(), 0)
        if not left:
            closed(exit_)
            return
        try:
            self._loop.run(exit_, time.monotonic() + left, left)
        except (Exception, AgentTimeout) as error:
            import warnings

            warnings.warn(f"leaving the agent {type(obj).__name__} failed: {error!r}", stacklevel=2)
