"""Branch coverage, room by room: the core is held higher than other rooms. Exit code 1 below that.

Reads the data that ``coverage combine`` left (COVERAGE_FILE).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

CORE = {
    "cases": 95.0,
    "extraction": 95.0,
    "checks": 95.0,
    "engine/evaluate": 95.0,
    "engine/evidence": 95.0,
    "governance": 95.0,
    "config": 95.0,
    "results": 92.0,
    "compare": 95.0,
}
FLOOR = 80.0


def room(path: str) -> str:
    """``src/pytest_agenteval/cases/loader.py`` lies in ``cases``; a module of ``CORE`` stands for itself."""
    parts = Path(path).parts
    inside = Path(*parts[len(parts) - parts[::-1].index("pytest_agenteval") :]).with_suffix("")
    return inside.as_posix() if inside.as_posix() in CORE else inside.parts[0]


def shares(report: dict) -> dict[str, tuple[int, int, list[str]]]:
    """Room -> statements and branches run, statements and branches, what is missing (file: lines)."""
    rooms: dict[str, tuple[int, int, list[str]]] = defaultdict(lambda: (0, 0, []))
    for path, entry in report["files"].items():
        counts = entry["summary"]
        done, total, missing = rooms[room(path)]
        done += counts["covered_lines"] + counts["covered_branches"]
        total += counts["num_statements"] + counts["num_branches"]
        lines = set(entry["missing_lines"])
        lost = spans(sorted(lines))
        lost += [f"{start}->{end}" for start, end in entry["missing_branches"] if start not in lines]
        if lost:
            missing.append(f"{Path(path).name}: {', '.join(lost)}")
        rooms[room(path)] = (done, total, missing)
    return dict(rooms)


def spans(lines: list[int]) -> list[str]:
    """``[3, 4, 5, 9]`` -> ``3-5``, ``9``."""
    found: list[list[int]] = []
    for line in lines:
        if found and line == found[-1][1] + 1:
            found[-1][1] = line
        else:
            found.append([line, line])
    return [f"{first}-{last}" if last > first else str(first) for first, last in found]


def verdicts(report: dict) -> tuple[list[str], bool]:
    """The table, line by line, and whether a room is below its floor."""
    rooms = shares(report)
    lines, red = [], False
    for name, (done, total, missing) in sorted(rooms.items()):
        share, floor = 100 * done / max(total, 1), CORE.get(name, FLOOR)
        low = share < floor
        red |= low
        lines.append(f"{name:<14} {share:6.2f} %  of {floor:.0f} %{'  TOO LOW' if low else ''}")
        lines += [f"    {line}" for line in missing] if low else []
    absent = sorted(set(CORE) - set(rooms))
    if absent:
        lines.append(f"no coverage data of {', '.join(absent)}")
    return lines, red or bool(absent)


def main() -> int:
    """Print the table and say whether every room holds."""
    with tempfile.TemporaryDirectory() as folder:
        target = str(Path(folder) / "coverage.json")
        subprocess.run(
            [sys.executable, "-m", "coverage", "json", "--quiet", "--fail-under=0", "-o", target], check=True
        )
        lines, red = verdicts(json.loads(Path(target).read_text()))
    print("\n".join(lines))
    return int(red)


if __name__ == "__main__":
    sys.exit(main())
