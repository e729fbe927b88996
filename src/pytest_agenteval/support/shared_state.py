"""A few numbers that all processes of a run share: a small JSON file under a lock, or memory.

Stands apart: the ledger, file budgets and rate limits of all processes rest on its lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_agenteval.support.files import write_atomic


class SharedState:
    """``path`` is a file in the run's folder; ``None`` keeps the state in this process. Thread-safe."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._memory: dict[str, Any] = {}

    @contextlib.contextmanager
    def open(self) -> Iterator[dict[str, Any]]:
        """Provide the state for this caller alone; what is changed in it is kept,
        also when the block raises.
        """
        if self._path is None:
            with self._lock:
                yield self._memory
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.with_suffix(".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = json.loads(self._path.read_text()) if self._path.exists() else {}
            try:
                yield state
            finally:
                # rename: a worker that is killed while writing must not leave half a file
                write_atomic(self._path, json.dumps(state))
