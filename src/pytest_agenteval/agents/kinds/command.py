"""``command:PROGRAM``: the task as JSON on stdin, the answer as JSON on stdout, one call per turn."""

from __future__ import annotations

import contextlib
import json
import os
import queue
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
MOST = 64 * 1024**2
"""Bytes that a program may print on stdout; of stderr the last ``MOST_LOGGED`` are kept."""
MOST_LOGGED = 1024**2
KILL_GRACE = 3.0
"""Seconds that a killed program has to be gone."""
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
                pipes = _Pipes(process, data)
                ended = pipes.wait(left)
        except BaseException:
            _end(process)
            _close(process)
            raise
        finally:
            with self._lock:
                self._running.discard(process)
        _end(process)  # what it has left in the background, too
        stdout, stderr = pipes.read(READ_GRACE)
        if pipes.overflowed:
            raise AgentFailed(
                f"{self._shown} printed more than {MOST // 1024**2} MB on stdout; expected one JSON value "
                f"there and everything else on stderr{self._tail(_text(stderr))}"
            )
        if not ended:
            raise AgentTimeout(
                f"no answer within {timeout:g} s from {self._shown}{self._tail(_text(stderr))}"
            )
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


class _Pipes:
    """What a program reads and prints, by threads: stdout up to ``MOST``, the end of stderr."""

    def __init__(self, process: subprocess.Popen[bytes], data: bytes) -> None:
        self._process = process
        self._chunks: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
        self._news: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.overflowed = False
        self._threads = [
            threading.Thread(target=self._read, args=("stdout",), daemon=True),
            threading.Thread(target=self._read, args=("stderr",), daemon=True),
        ]
        for thread in (*self._threads, threading.Thread(target=self._write, args=(data,), daemon=True)):
            thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait until the program has ended; whether it did, and printed no more than it may."""
        deadline = clock.monotonic() + seconds
        for _ in self._threads:
            try:
                self._news.get(timeout=max(0.0, deadline - clock.monotonic()))
            except queue.Empty:
                return False
            if self.overflowed:
                return False
        try:
            self._process.wait(max(0.001, deadline - clock.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True

    def read(self, grace: float) -> tuple[bytes, bytes]:
        """Return what was read; a grandchild that left the group may still hold the pipes."""
        for thread in self._threads:
            thread.join(grace)
            if thread.is_alive():
                break
        else:
            _close(self._process)
        return b"".join(self._chunks["stdout"]), b"".join(self._chunks["stderr"])

    def _read(self, name: str) -> None:
        pipe = getattr(self._process, name)
        chunks, size = self._chunks[name], 0
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(pipe.fileno(), 1 << 16):
                chunks.append(chunk)
                size += len(chunk)
                if name == "stdout" and size > MOST:
                    self.overflowed = True
                    break
                while name == "stderr" and size > MOST_LOGGED:
                    size -= len(chunks.pop(0))
        with contextlib.suppress(OSError):  # closed here, by whoever reads last: it may be held open for long
            pipe.close()
        self._news.put(name)

    def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # it need not read what it is told
            self._process.stdin.write(data)
            self._process.stdin.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the program and everything it started."""
    if process.poll() is None:
        _signal(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(TERM_GRACE)
    _signal(process, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(KILL_GRACE)


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
