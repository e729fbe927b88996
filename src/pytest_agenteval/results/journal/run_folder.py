"""The folder of one run: reserved exclusively, found by its workers, removed after a complete run."""

from __future__ import annotations

import fcntl
import json
import math
import os
import platform
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_agenteval.errors import AgentEvalError
from pytest_agenteval.support import clock
from pytest_agenteval.support.files import write_atomic
from pytest_agenteval.support.private import key_of, make_key, private_folder, remove_old, remove_private
from pytest_agenteval.support.processes import birth_of, is_alive

RUN_NAME = re.compile(r"results_(\d{8}_\d{6})(?:_(\d+))?")
SESSION = "session.json"
COPIES = "databases"
"""Where a run keeps its copies of databases."""
STOP = "stop"
RUN = "run.json"
LIVE = 120
"""Seconds since its last line for which an unfinished run of another machine counts as going on."""
RERUNS = 1000
"""Rerun numbers of one generation; those of a resumed run are the later ones."""


def output_folder(root: Path, setting: str | None = None, home: Path | None = None) -> Path:
    """Return where results go: the setting, else ``tests/outputs``, else ``outputs``.

    The setting is relative to ``root`` (pytest's rootdir), the others lie in ``home``, the folder of the
    project file (default: ``root``).
    """
    if setting:
        return root / setting
    home = root if home is None else home
    return home / "tests" / "outputs" if (home / "tests").is_dir() else home / "outputs"


class RunHeld(AgentEvalError):
    """Another process has the run: whatever both asked would be paid for twice."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """``results_YYYYmmdd_HHMMSS/`` of one run.

    ``token`` tells the run's own processes from others: a worker that cannot find it in the folder
    runs on another machine. ``generation`` is 0 for a new run and one more each time it is resumed.
    """

    path: Path
    token: str
    generation: int = 0
    name: str = ""
    """Of what it keeps out of the outputs folder: the key of its lines, copies of data, budgets."""

    @classmethod
    def reserve(
        cls, output_dir: Path, now: datetime, token: str | None = None, *, goes_on_with: str | None = None
    ) -> RunFolder:
        """Make the run's folder, or find the one already made for ``token``.

        The folder is prepared aside and renamed into place, so that it is never seen without its
        token and two runs of one second get two folders. Raises ``OSError`` where nothing can be
        written, ``RunHeld`` where another run already goes on with the same results.
        """
        token = token or secrets.token_hex(8)
        existing = cls.find(output_dir, token)
        if existing is not None:
            return existing
        output_dir.mkdir(parents=True, exist_ok=True)
        ignore_in_git(output_dir)
        with locked(output_dir) if goes_on_with else nullcontext():
            if goes_on_with:
                check_not_resumed(output_dir, goes_on_with)
            return cls._reserve(output_dir, now, token, goes_on_with)

    @classmethod
    def _reserve(cls, output_dir: Path, now: datetime, token: str, goes_on_with: str | None) -> RunFolder:
        for path in run_folders(output_dir):
            cls.open(path).remove_stale_copies()
        prepared = output_dir / f".results-{os.getpid()}-{secrets.token_hex(4)}"
        prepared.mkdir(mode=0o700)
        name = secrets.token_hex(16)
        make_key(name)
        remove_old()
        source = {"goes_on_with": goes_on_with} if goes_on_with else {}
        _write_json(prepared / SESSION, {**_facts(token, 0, name), **source})
        stamp = f"results_{now:%Y%m%d_%H%M%S}"
        number = 1
        while True:
            place = output_dir / (stamp if number == 1 else f"{stamp}_{number}")
            if not _document(place).exists() and _renamed(prepared, place):
                return cls(place, token, 0, name)
            if (session := _session(place)).get("token") == token:
                shutil.rmtree(prepared)
                remove_private(name)
                return cls(place, token, 0, str(session.get("name", "")))
            number += 1

    @classmethod
    def find(cls, output_dir: Path, token: str) -> RunFolder | None:
        """Return the folder of the run with ``token`` below ``output_dir``, if it can be seen from here."""
        for path in run_folders(output_dir):
            session = _session(path)
            if session.get("token") == token:
                return cls(path, token, int(session.get("generation", 0)), str(session.get("name", "")))
        return None

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Return a folder that exists, to be read."""
        session = _session(path)
        generation = int(session.get("generation", 0))
        return cls(path, str(session.get("token", "")), generation, str(session.get("name", "")))

    @classmethod
    def resume(cls, path: Path, token: str | None = None) -> RunFolder:
        """Go on in the folder of an unfinished run: the next generation, under a new token.

        Databases are copied anew: what is asked from now on sees them as they are now. Raises
        ``RunHeld`` where another process has the run.
        """
        with locked(path.parent):
            last = cls.open(path)
            last.check_free()
            last.remove_copies()
            (last.private / STOP).unlink(missing_ok=True)
            new = replace(last, token=token or secrets.token_hex(8), generation=last.generation + 1)
            facts = _facts(new.token, new.generation, new.name)
            began = _session(path).get("started_at")
            _write_json(path / SESSION, {**facts, "started_at": began} if began else facts)
        return new

    def check_free(self) -> None:
        """Check that no other process has the run. Raises ``RunHeld``."""
        if self.running and _session(self.path).get("pid") != os.getpid():
            raise RunHeld(f"{self.path.name} is still running ({self.holder}); wait for it, or end it first")

    @property
    def holder(self) -> str:
        """Who has the run: ``PID 4711``."""
        return f"PID {_session(self.path).get('pid')}"

    @property
    def goes_on_with(self) -> str | None:
        """The results file that this run takes its answers from (``None``: none)."""
        earlier = _session(self.path).get("goes_on_with")
        return str(earlier) if earlier else None

    @property
    def document(self) -> Path:
        """The results document beside the folder: ``results_X.json``."""
        return _document(self.path)

    @property
    def rerun_base(self) -> int:
        """Added to rerun numbers, so that those of a resumed run are the later ones."""
        return self.generation * RERUNS

    def write_run(self, info: Mapping[str, Any]) -> None:
        """Keep what the document's ``run`` says; later calls replace it, but for the first ``started_at``."""
        first = self.read_run().get("started_at")
        _write_json(self.path / RUN, {**info, "started_at": first} if first else info)

    def read_run(self) -> dict[str, Any]:
        """Return what :meth:`write_run` kept ({} where nothing was)."""
        return _read_json(self.path / RUN)

    @property
    def private(self) -> Path:
        """Where it keeps what no agent should find: out of the working folder, for this user only."""
        return private_folder(self.name or self.token)

    @property
    def key(self) -> bytes | None:
        """What its lines are signed with; ``None`` where that is not known here."""
        return key_of(self.name)

    def journals(self) -> list[Path]:
        """Return the JSONL files of the run, by name."""
        return sorted(self.path.glob("*.jsonl"))

    def remove(self) -> None:
        """Remove the folder: its document is complete."""
        shutil.rmtree(self.path, ignore_errors=True)
        remove_private(self.name or self.token)

    def stop(self, why: str) -> None:
        """Note that no further call may begin, for every process of the run."""
        with suppress(OSError):  # the disk may be why
            (self.private / STOP).write_text(why, encoding="utf-8")

    @property
    def stopped(self) -> str | None:
        """Why no further call may begin (``None``: calls may)."""
        try:
            return (self.private / STOP).read_text(encoding="utf-8")
        except OSError:
            return None

    def end(self) -> None:
        """Note that no process of the run is at work any more; what it left is for a resumed run."""
        _write_json(self.path / SESSION, {**_session(self.path), "pid": None})

    def remove_copies(self) -> None:
        """Remove its copies of databases, which are as large as those are."""
        shutil.rmtree(self.private / COPIES, ignore_errors=True)

    def remove_stale_copies(self) -> None:
        """Remove the copies of a run that was killed."""
        if (self.private / COPIES).is_dir() and self.running is False:
            self.remove_copies()

    @property
    def running(self) -> bool | None:
        """Whether a process of the run is alive; ``None``: it runs on another machine, who knows."""
        session = _session(self.path)
        if session.get("host") != platform.node():
            return None
        pid, birth = session.get("pid"), session.get("birth")
        if isinstance(pid, int) and is_alive(pid) and birth in (None, birth_of(pid)):
            return True
        askers = (int(p.name) for p in _entries(self.private / COPIES / "pids") if p.name.isdigit())
        return any(is_alive(asker) for asker in askers)

    @property
    def live(self) -> bool:
        """Whether the run goes on; of one on another machine: whether it wrote a short while ago."""
        running = self.running
        return _idle(self) < LIVE if running is None else running


def check_not_resumed(output_dir: Path, results: str) -> None:
    """Check that no run below ``output_dir`` goes on with the file ``results``. Raises ``RunHeld``."""
    for folder in map(RunFolder.open, run_folders(output_dir)):
        held = folder.running and _session(folder.path).get("pid") != os.getpid()
        if folder.goes_on_with == results and held:
            name = Path(results).name
            taken = f"{folder.path.name} goes on with {name} already ({folder.holder})"
            raise RunHeld(f"{taken}; wait for it, or end it first")


@contextmanager
def locked(output_dir: Path) -> Iterator[None]:
    """Provide within it, this process alone takes over runs of this folder."""
    with open(output_dir / ".lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _idle(folder: RunFolder) -> float:
    """Return the seconds since a line was written into the folder."""
    written = [path.stat().st_mtime for path in folder.journals()]
    return max(0.0, clock.epoch() - max(written)) if written else math.inf


def run_folders(output_dir: Path) -> list[Path]:
    """Return folders of runs below ``output_dir``, newest first."""
    return newest_first(p for p in _entries(output_dir) if RUN_NAME.fullmatch(p.name) and p.is_dir())


def documents(output_dir: Path) -> list[Path]:
    """Return results documents (``results_*.json``) below ``output_dir``, newest first."""
    return newest_first(
        p for p in _entries(output_dir) if p.suffix == ".json" and RUN_NAME.fullmatch(p.stem) and p.is_file()
    )


def ignore_in_git(output_dir: Path) -> None:
    """Let git ignore the outputs folder, unless it has a ``.gitignore`` or results already.

    A folder with results of another program, or of a team that keeps them in git, is left as it is: new
    ones would vanish from its history without a word.
    """
    if documents(output_dir):
        return
    try:
        with open(output_dir / ".gitignore", "x", encoding="ascii") as file:
            file.write("*\n")
    except FileExistsError:
        pass


def _entries(output_dir: Path) -> Iterator[Path]:
    return iter(output_dir.iterdir()) if output_dir.is_dir() else iter(())


def newest_first(paths: Iterable[Path]) -> list[Path]:
    """Return folders and documents of runs by the time they started, the latest first.

    The time in a name is that of whichever clock and zone the run had: it only decides where the run
    itself does not say.
    """

    def key(path: Path) -> tuple[datetime, int]:
        hit = RUN_NAME.match(path.name)
        return started_at(path), int(hit[2] or 1) if hit else 0

    return sorted(paths, key=key, reverse=True)


def started_at(path: Path) -> datetime:
    """Return when the run of a folder or of a document started, in UTC."""
    said = _session(path).get("started_at") if path.is_dir() else _started_line(path)
    try:
        return datetime.fromisoformat(said or "").astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        hit = RUN_NAME.match(path.name)
        return datetime.strptime(hit[1], "%Y%m%d_%H%M%S").astimezone(UTC) if hit else _NEVER


_NEVER = datetime.min.replace(tzinfo=UTC)


def _started_line(path: Path) -> str | None:
    """Return ``started_at`` of a document of this plugin: one of its first lines,
    each of which is one key.
    """
    with suppress(OSError, ValueError), open(path, "rb") as file:
        for line in islice(file, 5):
            if line.startswith(b'"started_at":'):
                return str(json.loads(line.partition(b":")[2].strip().removesuffix(b",")))
    return None


def _facts(token: str, generation: int, name: str) -> dict[str, Any]:
    # a worker of xdist may end before its run does
    pid = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    return {
        "token": token,
        "generation": generation,
        "pid": pid,
        "birth": birth_of(pid),
        "host": platform.node(),
        "started_at": clock.now().isoformat(),
        "name": name,
    }


def _document(folder: Path) -> Path:
    return folder.with_name(folder.name + ".json")


def _renamed(prepared: Path, place: Path) -> bool:
    """Return whether ``place`` is ours now; a folder that exists holds a session file,
    so it is not replaced.
    """
    try:
        prepared.rename(place)
    except OSError:
        if not place.exists():
            raise
        return False
    if _document(place).exists():  # a run of the same second has ended in between
        place.rename(prepared)
        return False
    return True


def _session(path: Path) -> dict[str, Any]:
    return _read_json(path / SESSION)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    write_atomic(path, json.dumps(value, ensure_ascii=True))
