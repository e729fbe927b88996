"""What ends programs whose starter was killed: a shell that waits for the end of our pipe.

A killed process runs no code of its own, and its programs lie in process groups of their own, which
signals to its group do not reach: without anyone to hold their deadline they would go on and cost.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
import weakref
from collections.abc import Iterator

_SCRIPT = """
trap '' HUP INT TERM
live=''
while read -r sign group; do
  case $sign in
    +) live="$live $group" ;;
    -) rest=''; for one in $live; do [ "$one" = "$group" ] || rest="$rest $one"; done; live=$rest ;;
  esac
done
for one in $live; do kill -s KILL -- "-$one" 2>/dev/null; done
"""


class ProgramGuard:
    """Kills the process groups that were begun and not ended when this process is gone. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shell: subprocess.Popen[bytes] | None = None
        self._ends: weakref.finalize[..., ProgramGuard] | None = None

    @contextlib.contextmanager
    def around(self, group: int) -> Iterator[None]:
        """Around a program that runs, given its process group."""
        self._tell(b"+", group)
        try:
            yield
        finally:
            self._tell(b"-", group)

    def close(self) -> None:
        """End the shell, and what is left of the programs."""
        with self._lock:
            ends, self._ends, self._shell = self._ends, None, None
        if ends is not None:
            ends()

    def _tell(self, sign: bytes, group: int) -> None:
        with self._lock, contextlib.suppress(OSError):  # no shell here, or it was killed
            if self._shell is None:
                self._shell = subprocess.Popen(
                    ["/bin/sh", "-c", _SCRIPT],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
                self._ends = weakref.finalize(self, _end_shell, self._shell)
            assert self._shell.stdin is not None
            self._shell.stdin.write(sign + f" {group}\n".encode("ascii"))
            self._shell.stdin.flush()


def _end_shell(shell: subprocess.Popen[bytes]) -> None:
    """Let the shell end what is left, and itself: its input ends."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        shell.communicate(timeout=2)
