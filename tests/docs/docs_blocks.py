"""The fenced blocks of a documentation page, and what each of them means.

A page is a story told in one project folder. Its blocks are done in order:

* a block with ``title="path"`` is a file of that project;
* a ``bash`` block is run there, line by line (a line that ends in ``\\`` goes on), and must exit 0;
* a ``text`` block straight after it is what that command printed: each of its lines must occur, in order,
  ``...`` standing for anything;
* a ``python`` block without a title is a script, run where the command before it ran;
* a ``yaml`` block without a title is a case, a piece of one, or of a project file, and is loaded as such;
* an HTML comment before a block says otherwise: ``<!-- exit: 1 -->``, ``<!-- not run: why -->``,
  ``<!-- in: jaffle_shop -->`` (run in a copy of the example), ``<!-- error: text -->`` (a faulty case).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs").glob("agents/*.md")),
    *sorted((ROOT / "docs").glob("contributing/*.md")),
]

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<info>[^`\n]*)$")
_TITLE = re.compile(r'title="([^"]+)"')
_NOTE = re.compile(r"<!--\s*(exit|not run|in|error):\s*(.*?)\s*-->")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its language, text, file name, the line it starts in, and the notes before it."""

    language: str
    text: str
    line: int
    title: str | None = None
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def commands(self) -> list[str]:
        """The commands of a shell block, continued lines joined, comments and a leading ``$`` dropped."""
        joined = self.text.replace("\\\n", " ")
        lines = (line.strip().removeprefix("$ ").strip() for line in joined.splitlines())
        return [line for line in lines if line and not line.startswith("#")]


def blocks(text: str) -> list[Block]:
    """Every fenced block of a Markdown page, in order."""
    found: list[Block] = []
    notes: dict[str, str] = {}
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        fence = _FENCE.match(line)
        if fence is None:
            note = _NOTE.search(line)
            if note:
                notes[note.group(1)] = note.group(2)
            elif line.strip():
                notes = {}
            continue
        indent, info = len(fence["indent"]), fence["info"].strip()
        inside: list[str] = []
        for _, inner in lines:
            if inner.strip() == fence["fence"]:
                break
            inside.append(inner[indent:] if not inner[:indent].strip() else inner)
        title = _TITLE.search(info)
        language = info.split()[0].lower() if info else ""
        found.append(
            Block(language, "\n".join(inside) + "\n", number, title.group(1) if title else None, notes)
        )
        notes = {}
    return found
