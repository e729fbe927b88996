"""Processes of this machine: whether one runs, and temporary files named after the one that made them."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path


def is_alive(pid: int) -> bool:
    """Return whether a process ``pid`` runs on this machine, under any user.

    One that has ended and was not waited for (a zombie) does not run: pytest-xdist leaves a killed
    worker so, and so do containers whose first process reaps nothing.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it runs under another user
        return True
    return not _is_zombie(pid)


def birth_of(pid: int) -> str | None:
    """Return what tells a process from a later one with the same pid: its start, in ticks since boot.

    ``None`` where the system does not say.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):  # not Linux, or gone by now
        return None


def pid_of(key: str) -> int:
    """Return the process of a ``process:number`` key, as shared files name who holds an entry."""
    return int(key.partition(":")[0])


def _is_zombie(pid: int) -> bool:
    """Return whether the process has exited and its parent has not collected its status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):  # not Linux, or gone by now
        return False


def temp_prefix() -> str:
    """Return the prefix for temporary files of this process; leftovers of killed processes are removed.

    Machine and pid namespace are part of the name: where the folder for temporary files is shared, the
    pid of a process elsewhere would say nothing.
    """
    namespace = os.path.basename(os.path.realpath("/proc/self/ns/pid"))
    prefix = f"agenteval-{zlib.crc32(f'{platform.node()} {namespace}'.encode()):08x}-"
    _remove_leftovers(prefix)
    return f"{prefix}{os.getpid()}-"


def _remove_leftovers(prefix: str) -> None:
    """Remove the temporary files of processes of this machine that no longer run."""
    for entry in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        pid = entry.name.removeprefix(prefix).partition("-")[0]
        if pid.isdigit() and not is_alive(int(pid)):
            shutil.rmtree(entry, ignore_errors=True)
            with suppress(OSError):  # a file; or one of another user
                entry.unlink()
