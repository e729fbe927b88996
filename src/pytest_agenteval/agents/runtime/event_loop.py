"""The one event loop of a process on which async agents run, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import sys
import threading
from collections.abc import Awaitable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as WaitTimeout
from typing import Any, TypeAlias

from pytest_agenteval.agents.runtime.agent_errors import overdue, where, where_now
from pytest_agenteval.agents.runtime.deadlines import CANCEL_GRACE
from pytest_agenteval.errors import AgentFailed
from pytest_agenteval.support import clock

Outcome: TypeAlias = tuple[Any, BaseException | None]
"""What an awaitable gave: its result, or what it raised."""


class EventLoopThread:
    """Starts its loop when it is first needed; a loop that an agent blocks is left and replaced."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stuck: list[threading.Thread] = []

    def run(self, awaitable: Awaitable[Any], deadline: float, timeout: float) -> Any:
        """Wait for ``awaitable`` on the loop; it is cancelled at ``deadline`` (``time.monotonic()``).

        Raises ``AgentTimeout`` then, else what it raised.
        """
        loop = self._started()
        future: Future[Outcome] = Future()
        context = contextvars.copy_context()
        task: list[asyncio.Task[Outcome]] = []

        def begin() -> None:
            made = loop.create_task(_outcome(awaitable, deadline, timeout), context=context)
            task.append(made)
            made.add_done_callback(lambda done: _hand_over(done, future))

        try:  # from here on: the agent may run, and Ctrl-C come, before call_soon_threadsafe has returned
            loop.call_soon_threadsafe(begin)
            result, error = future.result(max(deadline - clock.monotonic(), 0) + CANCEL_GRACE)
        except WaitTimeout:
            if not future.done():
                raise overdue(timeout, self._leave(loop)) from None
            result, error = future.result()
        except BaseException:
            loop.call_soon_threadsafe(lambda: [made.cancel() for made in task])
            raise
        if error is not None:
            raise error
        return result

    def is_current(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Return whether calls go to this loop: it was not left because an agent blocks it."""
        with self._lock:
            return self._loop is loop

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                self._loop = loop
                self._thread = threading.Thread(
                    target=_serve, args=(loop,), name="agenteval-loop", daemon=True
                )
                self._thread.start()
            return self._loop

    def _leave(self, loop: asyncio.AbstractEventLoop) -> str | None:
        """Return the loop did not even cancel in time: an agent blocks it. Later agents get a new one.

        Returns the place where it is blocked.
        """
        with self._lock:
            if self._loop is not loop or self._thread is None:
                return None
            frame = sys._current_frames().get(self._thread.ident or 0)
            self._stuck.append(self._thread)
            self._loop = self._thread = None
        return where_now(frame)

    def close(self, wait: float = 2.0) -> list[threading.Thread]:
        """Cancel what runs, stop the loop; returns the threads that did not end within ``wait`` s."""
        with self._lock:
            loop, thread, stuck = self._loop, self._thread, list(self._stuck)
            self._loop = self._thread = None
            self._stuck.clear()
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(wait)
            stuck.append(thread)
        return [entry for entry in stuck if entry.is_alive()]


class AgentOwner:
    """Enters an agent (``__aenter__``) and leaves it (``__aexit__``) in one and the same task.

    Clients built on anyio, those of MCP among them, cannot be left by another task than they were
    entered in. Calls of the agent run in tasks of their own in between.
    """

    def __init__(self, loops: EventLoopThread, agent: Any) -> None:
        self._loops = loops
        self._agent = agent
        self._fault: BaseException | None = None
        self._task: asyncio.Task[None] | None = None
        self._leaving = asyncio.Event()

    @property
    def entered(self) -> bool:
        """Whether the agent is entered, on the loop that calls go to."""
        task = self._task
        return task is not None and not task.done() and self._loops.is_current(task.get_loop())

    def enter(self, deadline: float, timeout: float) -> None:
        """Enter the agent. Raises ``AgentTimeout``, else what its ``__aenter__`` raised."""
        self._leaving = asyncio.Event()
        self._loops.run(self._enter(), deadline, timeout)

    def leave(self, deadline: float, timeout: float) -> BaseException | None:
        """Leave the agent; returns what went wrong (``None``: nothing)."""
        if not self.entered:
            return None
        try:
            self._loops.run(self._leave(), deadline, timeout)
        except Exception as error:
            return error
        return self._fault

    async def _enter(self) -> None:
        entered = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._own(entered))
        try:
            await entered
        except BaseException:
            self._task.cancel()
            raise

    async def _own(self, entered: asyncio.Future[None]) -> None:
        try:
            await type(self._agent).__aenter__(self._agent)
        except BaseException as error:  # raised where the agent is called
            if not entered.done():
                entered.set_exception(error)
            return
        if not entered.done():
            entered.set_result(None)
        with contextlib.suppress(asyncio.CancelledError):  # the loop is about to end: leave all the same
            await self._leaving.wait()
        try:
            await type(self._agent).__aexit__(self._agent, None, None, None)
        except BaseException as error:
            # SystemExit in a task would end the loop for all
            self._fault = error

    async def _leave(self) -> None:
        assert self._task is not None
        self._leaving.set()
        try:
            await asyncio.wait([self._task])
        except asyncio.CancelledError:
            self._task.cancel()
            raise


async def _outcome(awaitable: Awaitable[Any], deadline: float, timeout: float) -> Outcome:
    """Return the result or the error. Nothing is raised: SystemExit in a task would end the loop for all."""
    limit = asyncio.timeout(max(deadline - clock.monotonic(), 0))
    try:
        async with limit:
            result = await awaitable
        return (None, overdue(timeout, None)) if limit.expired() else (result, None)
    except TimeoutError as error:
        if not limit.expired():
            return None, error
        cancelled = error.__cause__ or error.__context__
        place = where(cancelled.__traceback__) if cancelled is not None else None
        return None, overdue(timeout, place)
    except asyncio.CancelledError as error:
        made = AgentFailed("CancelledError: the agent was cancelled")
        made.__cause__ = error
        return None, made
    except BaseException as error:  # raised in the thread that waits
        return None, error


def _hand_over(done: asyncio.Task[Outcome], future: Future[Outcome]) -> None:
    if done.cancelled():
        future.set_result((None, AgentFailed("CancelledError: the agent was cancelled")))
    else:
        future.set_result(done.result())


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        pending = asyncio.all_tasks(loop)
        for task in pending:
            task.cancel()
        if pending:
            loop.run_until_complete(asyncio.wait(pending, timeout=CANCEL_GRACE))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
