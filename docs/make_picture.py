"""Draw docs/terminal.svg from a real run of the example: ``python docs/make_picture.py``."""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ARGUMENTS = ["-k", "total_revenue or average_order", "--agent-model", "demo:hasty"]
OPTIONS = "--color=yes --no-header -p no:random_order"
COLUMNS = 80

LINE, CHARACTER, MARGIN = 18, 8.0, 16
COLOURS = {
    "31": "#ff7b72",
    "32": "#7ee787",
    "33": "#e3b341",
    "34": "#79c0ff",
    "35": "#d2a8ff",
    "36": "#76e3ea",
    "90": "#8b949e",
    "91": "#ff7b72",
    "92": "#7ee787",
    "93": "#e3b341",
    "94": "#79c0ff",
}
_STYLE = re.compile(r"\x1b\[([\d;]*)m")


def run() -> str:
    """What pytest prints, with its colours, in a fresh copy of the example; without its header."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "jaffle_shop"
        unwanted = shutil.ignore_patterns("shop.duckdb*", "shop.version", "shop.lock", "outputs", ".*_cache")
        shutil.copytree(HERE / "examples" / "jaffle_shop", project, ignore=unwanted)
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                *ARGUMENTS,
            ],
            cwd=project,
            env=dict(os.environ, COLUMNS=str(COLUMNS), PYTEST_ADDOPTS=OPTIONS),
            capture_output=True,
            text=True,
            check=False,
        )
    return done.stdout.replace(folder, "~")


def spans(line: str, style: set[str]) -> list[tuple[str, set[str]]]:
    """The line cut where its style changes; ``style`` is carried from line to line."""
    found = []
    for number, part in enumerate(_STYLE.split(line)):
        if number % 2 == 0:
            found.append((part, set(style)))
            continue
        for code in part.split(";") or ["0"]:
            if code in ("", "0"):
                style.clear()
            else:
                style -= set(COLOURS) if code in COLOURS else set()
                style.add(code)
    return [(text, styles) for text, styles in found if text]


def clipped(line: str) -> str:
    """The line as a terminal of 80 columns shows it, its styles closed."""
    kept, shown = [], 0
    for number, part in enumerate(re.split(r"(\x1b\[[\d;]*m)", line)):
        kept.append(part if number % 2 else part[: max(COLUMNS - shown, 0)])
        shown += 0 if number % 2 else len(part)
    return "".join(kept)


def picture(text: str) -> str:
    """An SVG of a terminal that shows ``text``."""
    lines = ["\x1b[1m$\x1b[0m pytest " + " ".join(f'"{word}"' if " " in word else word for word in ARGUMENTS)]
    lines += [clipped(line) for line in text.rstrip().splitlines()]
    height = len(lines) * LINE + 2 * MARGIN
    width = int(COLUMNS * CHARACTER + 2 * MARGIN)
    style: set[str] = set()
    rows = []
    for number, line in enumerate(lines):
        column, parts = 0, []
        for part, styles in spans(line, style):
            fill = next((COLOURS[code] for code in styles if code in COLOURS), "#e6edf3")
            weight = ' font-weight="bold"' if "1" in styles else ""
            x = MARGIN + column * CHARACTER
            length = len(part) * CHARACTER
            parts.append(
                f'<tspan x="{x:g}" textLength="{length:g}" fill="{fill}"{weight}>{html.escape(part)}</tspan>'
            )
            column += len(part)
        y = MARGIN + (number + 0.75) * LINE
        rows.append(f'<text y="{y:g}" xml:space="preserve">{"".join(parts)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" '
        'font-size="13.3">\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>\n' + "\n".join(rows) + "\n</svg>\n"
    )


if __name__ == "__main__":
    (HERE / "terminal.svg").write_text(picture(run()), encoding="utf-8")
