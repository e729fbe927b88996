"""The journal's file. If a write fails, lines go to a temporary file and the error names it."""

from __future__ import annotations

import os
import tempfile
from io import FileIO
from pathlib import Path

from pytest_agenteval.errors import JournalFailed
from pytest_agenteval.support.files import append_whole, private_opener


class JournalFile:
    """A new file of whole lines below ``folder``, named after ``process``.

    A line that the disk does not take (full, folder deleted while the run goes on) is written to a file
    in the system's folder for temporary files, and ``JournalFailed`` names both. Not thread-safe.
    """

    def __init__(self, folder: Path, process: str) -> None:
        self._folder = folder
        self._process = process
        self._file: FileIO | None = None
        self._rescue: Path | None = None

    def write(self, data: bytes) -> None:
        """Append whole lines. Raises ``JournalFailed``."""
        try:
            if self._file is None:
                self._file = _new_file(self._folder, self._process)
            if os.fstat(self._file.fileno()).st_nlink == 0:
                raise FileNotFoundError("the folder was deleted while the run went on")
            append_whole(self._file, data)
        except OSError as error:
            saved = self._save(data)
            raise JournalFailed(self._message(error, saved)) from error

    def close(self) -> None:
        """Close it; a later line opens another file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _save(self, data: bytes) -> bool:
        """Keep the lines, and those of a deleted file, in a file for temporary files."""
        try:
            if self._rescue is None:
                handle, name = tempfile.mkstemp(prefix=f"agenteval-{self._process}-", suffix=".jsonl")
                os.close(handle)
                self._rescue = Path(name)
                if self._file is not None and os.fstat(self._file.fileno()).st_nlink == 0:
                    self._file.seek(0)
                    data = self._file.readall() + data
            with open(self._rescue, "ab", buffering=0) as file:
                append_whole(file, data)
        except OSError:
            if self._rescue is not None and self._rescue.stat().st_size == 0:
                self._rescue.unlink()
                self._rescue = None
            return False
        return True

    def _message(self, error: OSError, saved: bool) -> str:
        text = f"{self._folder} takes no more results: {error.strerror or error}"
        if not saved:
            return f"{text}; neither does the folder for temporary files: the last answer is lost"
        return (
            f"{text}; what it did not take is in {self._rescue}. Nothing more is asked. Make room, move "
            "that file into the folder, and go on with --agent-resume"
        )


def _new_file(folder: Path, process: str) -> FileIO:
    """Return a new file of this process; an earlier one may end in half a line, so none is appended to."""
    number = 1
    while True:
        name = f"{process}.jsonl" if number == 1 else f"{process}-{number}.jsonl"
        try:
            return open(folder / name, "x+b", buffering=0, opener=private_opener)
        except FileExistsError:
            number += 1
