"""Temporary files of ours, named after their process: a later one removes what a killed one left."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path


def scratch_prefix() -> str:
    """The prefix for this process's temporary files; those of processes that were killed are removed first.

    Machine and pid namespace are part of the name: where the folder for temporary files is shared, a pid
    of elsewhere would say nothing.
    """
    space = os.path.basename(os.path.realpath("/proc/self/ns/pid"))
    ours = f"agenteval-{zlib.crc32(f'{platform.node()} {space}'.encode()):08x}-"
    for entry in Path(tempfile.gettempdir()).glob(f"{ours}*"):
        pid = entry.name.removeprefix(ours).partition("-")[0]
        if pid.isdigit() and not alive(int(pid)):
            shutil.rmtree(entry, ignore_errors=True)
            with suppress(OSError):  # a file; or somebody else's
                entry.unlink()
    return f"{ours}{os.getpid()}-"


def alive(pid: int) -> bool:
    """Whether a process ``pid`` runs on this machine, ours or somebody else's."""
    try:
        os.kill(pid, 0)
    except OSError as error:  # any other than this: it lives, and is somebody else's
        return not isinstance(error, ProcessLookupError)
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """Whether it has ended and nobody has asked how, as in containers whose first process never does."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):  # not Linux, or gone by now
        return False
