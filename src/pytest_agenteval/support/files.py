"""Files: paths as messages show them, and files that are written at once or not at all."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import IO, Any


def below(path: Path, root: Path) -> Path:
    """Return ``path`` relative to ``root`` where it lies below it, else unchanged."""
    return path.relative_to(root) if path.is_relative_to(root) else path


def shown_path(path: Path | str, root: Path) -> str:
    """Return ``path`` as messages show it: relative to ``root`` where it lies below, with slashes."""
    return below(Path(path), root).as_posix()


def private_opener(path: str, flags: int) -> int:
    """Open a file for this user only, for ``open(..., opener=private_opener)``."""
    return os.open(path, flags, 0o600)


def append_whole(file: FileIO, data: bytes) -> None:
    """Append all of ``data`` or nothing: half a line would spoil the next one. Raises ``OSError``."""
    start = file.seek(0, os.SEEK_END)
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError:
        with contextlib.suppress(OSError):
            file.truncate(start)
        raise


def why_not_writable(path: Path) -> str | None:
    """Return why a file cannot be written at ``path`` (``None``: it can); nothing is made."""
    if path.is_dir():
        return "it is a folder"
    if path.exists():
        return None if os.access(path, os.W_OK) else "it cannot be written"
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.is_dir():
        return f"{folder} is a file"
    return None if os.access(folder, os.W_OK | os.X_OK) else f"the folder {folder} cannot be written"


@contextlib.contextmanager
def replacing(path: Path, mode: str = "w", encoding: str | None = "utf-8") -> Iterator[IO[Any]]:
    """Open a file that takes the place of ``path`` when the block ends; where it raises, nothing changes.

    The file is for this user only (0600): it holds what agents said. Lines end in a line feed on every
    system. Raises ``OSError`` where the folder cannot be written.
    """
    # a thread of its own: two threads of one process may keep the same reference
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    binary = "b" in mode
    try:
        with open(
            temporary,
            mode,
            encoding=None if binary else encoding,
            newline=None if binary else "\n",
            opener=private_opener,
        ) as file:
            yield file
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write ``content`` (text as UTF-8) to ``path`` at once or not at all."""
    data = content.encode() if isinstance(content, str) else content
    with replacing(path, "wb") as file:
        file.write(data)
