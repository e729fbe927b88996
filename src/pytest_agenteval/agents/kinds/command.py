"""``command:PROGRAM``: the task as JSON on stdin, the answer as JSON on stdout, one call per turn."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pytest_agenteval.agents.base import AgentContext, RunnableAgent, unsupported_keys
from pytest_agenteval.agents.normalize import answer_from_mapping, normalize
from pytest_agenteval.agents.runtime.program_guard import ProgramGuard
from pytest_agenteval.errors import AgentFailed, AgentTimeout, SettingsError
from pytest_agenteval.support import clock
from pytest_agenteval.support.json_codec import decode, loads_exact
from pytest_agenteval.support.redaction import Redactor
from pytest_agenteval.support.scalars import plain_tree
from pytest_agenteval.types import Answer, Task

TAIL = 2000
"""Characters of stderr (and of bad stdout) that an error shows."""
TERM_GRACE = 0.2
"""Seconds between SIGTERM and SIGKILL for a program past its deadline."""
READ_GRACE = 0.3
"""Seconds to read what a killed program had written to stderr."""


def build(target: str, context: AgentContext) -> RunnableAgent:
    """Return ``command:python agent.py --fast``: words as in a shell, no shell;
    started in the root folder.
    """
    words, line = words_of(target), target.partition(":")[2].strip()
    return RunnableAgent(
        kind="command",
        name=target,
        agent=CommandAgent(words, context.root, context.environ, context.redactor),
        place=f"command: {line}",
        is_builtin=True,
        unsupported_keys=unsupported_keys("command"),
    )


def words_of(target: str) -> tuple[str, ...]:
    """Return the program of ``command:...`` and its arguments. Raises ``SettingsError`` where there is
    none.
    """
    try:
        words = tuple(shlex.split(target.partition(":")[2].strip()))
    except ValueError as error:
        raise SettingsError(f"target {target}: {error}") from error
    if not words:
        raise SettingsError("target command: names no program; for example command:python agent.py")
    return words


def task_to_json(task: Task) -> dict[str, Any]:
    """Return the task as a program gets it; ``limits.timeout`` is what is left, in seconds."""
    limits = asdict(task.limits)
    deadline = limits.pop("deadline")
    if deadline is not None:
        limits["timeout"] = round(max(deadline - clock.monotonic(), 0), 3)
    form = {name: getattr(task, name) for name in _FIELDS}
    made = plain_tree({"prompt": task.prompt, **form, "limits": limits})
    assert isinstance(made, dict)
    return made


_FIELDS = (
    "turns", "model", "database", "databases", "caller", "vars", "context", "approve", "clarification",
    "input", "conversation", "attempt",
)  # fmt: skip


class CommandAgent:
    """Starts the program once per turn, in a process group of its own.

    The program does not learn the name of the test that runs.
    """

    def __init__(
        self, words: tuple[str, ...], folder: Path, environ: Mapping[str, str], redactor: Redactor
    ) -> None:
        self.words = words
        self.folder = folder
        self.environ = environ
        self.redactor = redactor
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._guard = ProgramGuard()

    def close(self) -> None:
        """End every program that still runs, and what they started."""
        with self._lock:
            running = list(self._running)
        for process in running:
            _signal(process, signal.SIGTERM)
        for process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(TERM_GRACE)
            _signal(process, signal.SIGKILL)
        self._guard.close()

    def run(self, task: Task) -> Answer:
        """Ask for an answer. Raises ``AgentFailed``: not to be started, exit code, no JSON;
        ``AgentTimeout`` at the deadline.
        """
        deadline = task.limits.deadline
        left = task.limits.timeout if deadline is None else max(deadline - clock.monotonic(), 0.001)
        text = json.dumps(task_to_json(task), default=str)
        stdout, stderr, code = self._talk(text.encode(), left, task.limits.timeout)
        if code != 0:
            raise AgentFailed(f"{self._shown} {_ending(code)}{self._tail(stderr)}")
        return replace(self._answer(stdout, stderr), logs=self.redactor.text(stderr))

    @property
    def _shown(self) -> str:
        return self.redactor.text(f"command {shlex.join(self.words)}")

    def _talk(self, data: bytes, left: float, timeout: float) -> tuple[str, str, int]:
        process = self._start()
        with self._lock:
            self._running.add(process)
        try:
            with self._guard.around(process.pid):
                stdout, stderr = process.communicate(data, timeout=left)
        except subprocess.TimeoutExpired:
            stderr = _end(process)
            raise AgentTimeout(
                f"no answer within {timeout:g} s from {self._shown}{self._tail(_text(stderr))}"
            ) from None
        except BaseException:
            _end(process)
            raise
        finally:
            with self._lock:
                self._running.discard(process)
        return _text(stdout), _text(stderr), process.returncode

    def _start(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                self.words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.folder,
                env={name: value for name, value in self.environ.items() if name != "PYTEST_CURRENT_TEST"},
                start_new_session=True,
            )
        except OSError as error:
            raise AgentFailed(
                f"cannot start {self._shown} in {self.folder}: {error.strerror or error}"
            ) from error

    def _answer(self, stdout: str, stderr: str) -> Answer:
        if not stdout.strip():
            raise AgentFailed(
                f"{self._shown} printed nothing; expected one JSON value on stdout{self._tail(stderr)}"
            )
        try:
            form = decode(loads_exact(stdout))
        except (ValueError, RecursionError) as error:
            shown = self.redactor.text(stdout.strip()[:200])
            raise AgentFailed(
                f"{self._shown} printed no JSON ({error}): {shown!r}; expected one JSON value on stdout "
                f"and everything else on stderr{self._tail(stderr)}"
            ) from error
        return (
            answer_from_mapping(form, self._shown) if isinstance(form, dict) else normalize(form, self._shown)
        )

    def _tail(self, stderr: str) -> str:
        text = self.redactor.text(stderr.strip())
        if not text:
            return ""
        return f"; its stderr ends:\n{text[-TAIL:]}"


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace")


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"


def _end(process: subprocess.Popen[bytes]) -> bytes:
    """End the program and everything it started; returns what it had written to stderr."""
    try:
        _signal(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(TERM_GRACE)
        _signal(process, signal.SIGKILL)
        return process.communicate(timeout=READ_GRACE)[1] or b""
    except (subprocess.TimeoutExpired, ValueError) as error:
        return getattr(error, "stderr", None) or b""  # a grandchild that left the group holds the pipe
    finally:
        _signal(process, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(TERM_GRACE)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
