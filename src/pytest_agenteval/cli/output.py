"""What the commands share: coloured lines on a terminal, refusals on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Protocol, TextIO

_CODES = {"red": "31", "green": "32", "yellow": "33", "bold": "1", "title": "1;4"}


class Styled(Protocol):
    """A line of a report."""

    @property
    def text(self) -> str:
        """The text."""
        ...

    @property
    def style(self) -> str:
        """The name of its style."""
        ...


def print_lines(lines: Iterable[Styled], stream: TextIO | None = None) -> None:
    """Print report lines, coloured on a terminal unless NO_COLOR is set."""
    target = sys.stdout if stream is None else stream
    colour = target.isatty() and not os.environ.get("NO_COLOR")
    for line in lines:
        code = _CODES.get(line.style) if colour else None
        text = line.text
        if not colour and line.style == "title":
            text = f"== {text} =="
        try:
            target.write(f"\x1b[{code}m{text}\x1b[0m\n" if code else f"{text}\n")
        except UnicodeEncodeError:  # a terminal that cannot show ✓: an ASCII form is better than none
            target.write(text.encode("ascii", "backslashreplace").decode() + "\n")


def refuse(error: Exception) -> int:
    """Say on stderr why a command cannot do it; the exit code for that, 2."""
    print(f"agenteval: {error}", file=sys.stderr)
    return 2
