"""The results a viewer may show: what lies in one folder, listed by name, read once, kept while unchanged."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_agenteval.errors import ResultsError
from pytest_agenteval.results.document.document import Document
from pytest_agenteval.results.document.load import TOTALS, header_of_file, read_document
from pytest_agenteval.results.document.masked import masked_document
from pytest_agenteval.results.document.overrides import overrides_path, with_overrides
from pytest_agenteval.results.document.totals import totals
from pytest_agenteval.results.journal.run_folder import LIVE, RunFolder

KEPT_ROWS = 200_000
"""Attempts whose scalars are kept in memory, over all runs."""

PATIENCE = 1.5
"""Seconds a page waits for a file that is being read, before it says so."""


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run in the folder: its results file, or the folder of a run that is not finished."""

    id: str
    path: Path
    stamp: tuple[int, ...]
    size: int
    running: bool | None = None

    @property
    def unfinished(self) -> bool:
        """Its journals are read, since there is no document yet."""
        return self.path.is_dir()

    @property
    def idle(self) -> float:
        """Seconds since something was written."""
        return max(0.0, time.time() - self.stamp[0] / 1e9)

    @property
    def live(self) -> bool:
        """Unfinished, and a process of it is alive; of another machine: written to a short while ago."""
        return self.unfinished and (self.idle < LIVE if self.running is None else self.running)


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file that is still being read; ``share`` 0..1 of it is."""

    id: str
    share: float


@dataclass(slots=True)
class _Progress:
    share: float = 0.0

    def tell(self, share: float) -> None:
        self.share = share


@dataclass(slots=True)
class _Task:
    stamp: tuple[int, ...]
    future: Future[Document]
    progress: _Progress = field(default_factory=_Progress)


class Library:
    """The runs of ``folder``. Only what :meth:`listing` names can be opened, whatever is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._tasks: OrderedDict[str, _Task] = OrderedDict()
        self._headers: dict[str, tuple[tuple[int, ...], Mapping[str, Any]]] = {}
        self._pool = ThreadPoolExecutor(max_workers=3, thread_name_prefix="agenteval-read")

    def close(self) -> None:
        """Stop reading."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def listing(self) -> dict[str, ListedRun]:
        """Return runs by id, newest first. Links, hidden files and other names are not there.

        Of a run that has both a document and journals (it was resumed, or did not end well) the one
        written last counts.
        """
        found: dict[str, ListedRun] = {}
        for path in sorted(self.folder.iterdir()) if self.folder.is_dir() else ():
            try:
                listed = _listed(path)
            except OSError:  # gone in between
                continue
            if listed and (listed.id not in found or found[listed.id].stamp[0] < listed.stamp[0]):
                found[listed.id] = listed
        return dict(sorted(found.items(), key=lambda item: _age(item[1]), reverse=True))

    def header(self, listed: ListedRun, wait: float = PATIENCE) -> Mapping[str, Any] | ReadFile:
        """Return the totals of a run, without its attempts where the file says them. Raises
        ``ResultsError``.
        """
        with self._lock:
            known = self._headers.get(listed.id)
        if known is not None and known[0] == listed.stamp:
            return known[1]
        header = None
        if not listed.unfinished and not overrides_path(listed.path).exists():
            header = header_of_file(listed.path)
        if header is None:
            opened = self.open(listed, wait)
            if isinstance(opened, ReadFile):
                return opened
            header = opened.header
        with self._lock:
            self._headers[listed.id] = (listed.stamp, header)
        return header

    def open(self, listed: ListedRun, wait: float = PATIENCE) -> Document | ReadFile:
        """Return the run's document, with a person's verdicts;
        ``ReadFile`` where that takes longer than ``wait`` s.

        Raises ``ResultsError`` for what cannot be read.
        """
        task = self._task(listed)
        try:
            document = task.future.result(timeout=wait)
        except TimeoutError:
            return ReadFile(listed.id, task.progress.share)
        self._forget_oldest()
        return document

    def _task(self, listed: ListedRun) -> _Task:
        with self._lock:
            task = self._tasks.get(listed.id)
            if task is None or task.stamp != listed.stamp:
                progress = _Progress()
                task = _Task(listed.stamp, self._pool.submit(_read, listed.path, progress), progress)
                self._tasks[listed.id] = task
            self._tasks.move_to_end(listed.id)
            return task

    def _forget_oldest(self) -> None:
        with self._lock:
            sizes = {name: _rows(task) for name, task in self._tasks.items()}
            total = sum(sizes.values())
            for name in list(self._tasks)[:-1]:
                if total <= KEPT_ROWS:
                    break
                if sizes[name]:
                    total -= sizes[name]
                    del self._tasks[name]


def _read(path: Path, progress: _Progress) -> Document:
    document = read_document(path, progress=progress.tell)
    if not document.header.keys() >= TOTALS:  # ours, but not as we write them: count again
        header = {"timestamp": "", "started_at": None, **document.header, **totals(document.rows)}
        document = replace(document, header=header)
    return masked_document(with_overrides(document))


def _rows(task: _Task) -> int:
    future = task.future
    return len(future.result().rows) if future.done() and not future.exception() else 0


def _listed(path: Path) -> ListedRun | None:
    if not path.name.startswith("results_") or path.is_symlink():
        return None
    if path.is_dir():
        parts = list(path.iterdir())
        stats = [part.stat() for part in parts if part.suffix == ".jsonl"]
        if not stats or any(part.is_symlink() for part in parts):
            return None
        folder = RunFolder.open(path)
        stamp = (
            max(stat.st_mtime_ns for stat in stats),
            sum(stat.st_size for stat in stats),
            *_overridden(path),
            int(folder.live),  # the same lines say something else once the process is gone
        )
        return ListedRun(path.name, path, stamp, stamp[1], folder.running)
    if path.suffix != ".json" or path.name.endswith(".overrides.json") or not path.is_file():
        return None
    stat = path.stat()
    stamp = (stat.st_mtime_ns, stat.st_size, *_overridden(path), 0)
    return ListedRun(path.name.removesuffix(".json"), path, stamp, stat.st_size)


def _overridden(path: Path) -> tuple[int, int]:
    place = overrides_path(path)
    if not place.exists():
        return 0, 0
    stat = place.stat()
    return stat.st_mtime_ns, stat.st_size


def _age(listed: ListedRun) -> tuple[str, int]:
    """Order runs by the second in their name; other names follow, newest first."""
    name = listed.id.removeprefix("results_")
    return (name if name[:8].isdigit() else "", listed.stamp[0])


def unreadable(error: Exception) -> str:
    """Return why a run cannot be shown."""
    return str(error) if isinstance(error, ResultsError) else f"{type(error).__name__}: {error}"
