"""The folder of one run: reserved exclusively, found by its workers, removed after a complete run."""

from __future__ import annotations

import json
import math
import os
import platform
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from pytest_agenteval.support.files import write_atomic
from pytest_agenteval.support.private import key_of, make_key, private_folder, remove_old, remove_private
from pytest_agenteval.support.processes import is_alive

RUN_NAME = re.compile(r"results_(\d{8}_\d{6})(?:_(\d+))?")
SESSION = "session.json"
COPIES = "databases"
"""Where a run keeps its copies of databases."""
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
    def reserve(cls, output_dir: Path, now: datetime, token: str | None = None) -> RunFolder:
        """Make the run's folder, or find the one already made for ``token``.

        The folder is prepared aside and renamed into place, so that it is never seen without its
        token and two runs of one second get two folders. Raises ``OSError`` where nothing can be
        written.
        """
        token = token or secrets.token_hex(8)
        found = cls.find(output_dir, token)
        if found is not None:
            return found
        output_dir.mkdir(parents=True, exist_ok=True)
        ignore_in_git(output_dir)
        for path in run_folders(output_dir):
            cls.open(path).remove_stale_copies()
        prepared = output_dir / f".results-{os.getpid()}-{secrets.token_hex(4)}"
        prepared.mkdir(mode=0o700)
        name = secrets.token_hex(16)
        make_key(name)
        remove_old()
        _write_json(prepared / SESSION, _facts(token, 0, name))
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

        Databases are copied anew: what is asked from now on sees them as they are now.
        """
        last = cls.open(path)
        last.remove_copies()
        new = replace(last, token=token or secrets.token_hex(8), generation=last.generation + 1)
        _write_json(path / SESSION, _facts(new.token, new.generation, new.name))
        return new

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
        askers = (int(p.name) for p in _entries(self.private / COPIES / "pids") if p.name.isdigit())
        return any(is_alive(pid) for pid in (session.get("pid"), *askers) if isinstance(pid, int))

    @property
    def live(self) -> bool:
        """Whether the run goes on; of one on another machine: whether it wrote a short while ago."""
        running = self.running
        return _idle(self) < LIVE if running is None else running


def _idle(folder: RunFolder) -> float:
    """Return the seconds since a line was written into the folder."""
    written = [path.stat().st_mtime for path in folder.journals()]
    return max(0.0, time.time() - max(written)) if written else math.inf


def run_folders(output_dir: Path) -> list[Path]:
    """Return folders of runs below ``output_dir``, newest first."""
    return newest_first(p for p in _entries(output_dir) if RUN_NAME.fullmatch(p.name) and p.is_dir())


def documents(output_dir: Path) -> list[Path]:
    """Return results documents (``results_*.json``) below ``output_dir``, newest first."""
    return newest_first(
        p for p in _entries(output_dir) if p.suffix == ".json" and RUN_NAME.fullmatch(p.stem) and p.is_file()
    )


def ignore_in_git(output_dir: Path) -> None:
    """Let git ignore the outputs folder, unless it has a ``.gitignore`` already."""
    try:
        with open(output_dir / ".gitignore", "x", encoding="ascii") as file:
            file.write("*\n")
    except FileExistsError:
        pass


def _entries(output_dir: Path) -> Iterator[Path]:
    return iter(output_dir.iterdir()) if output_dir.is_dir() else iter(())


def newest_first(paths: Any) -> list[Path]:
    """Return folders and documents of runs by the time in their names, the latest first."""

    def key(path: Path) -> tuple[str, int]:
        hit = RUN_NAME.match(path.name)
        return (hit[1], int(hit[2] or 1)) if hit else ("", 0)

    return sorted(paths, key=key, reverse=True)


def _facts(token: str, generation: int, name: str) -> dict[str, Any]:
    # a worker of xdist may end before its run does
    pid = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    return {"token": token, "generation": generation, "pid": pid, "host": platform.node(), "name": name}


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
