"""Run commands as a user does: in a process and a folder of their own, without settings of ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "docs" / "examples" / "jaffle_shop"

# Plugins that these tests need and a user need not have; two of them double the time to start.
OURS_ALONE = ("hypothesispytest", "asyncio", "random_order", "randomly", "rerunfailures", "pytest_httpserver")


def environment() -> dict[str, str]:
    """This process's environment, its Python's scripts first, 80 columns, no settings from outside."""
    ours = ("AGENTEVAL_", "GITHUB_", "PYTEST_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    kept["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
    kept["PYTEST_ADDOPTS"] = " ".join(f"-p no:{name}" for name in OURS_ALONE)
    kept["COLUMNS"] = "80"
    return kept


def run_pytest(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``pytest ARGUMENTS`` in ``project``."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=project,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def copy_of_the_example(target: Path) -> Path:
    """The example as a fresh clone has it: without its database and outputs."""
    unwanted = shutil.ignore_patterns(
        "shop.duckdb*", "shop.version", "shop.lock", "outputs", "__pycache__", ".*_cache"
    )
    shutil.copytree(EXAMPLE, target, ignore=unwanted)
    return target
