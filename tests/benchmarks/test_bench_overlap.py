"""Agent calls overlap: a suite of slow agents takes about as long as one call, beside its own cost.

Medians of alternating runs; the same suite with agents that answer at once is the yardstick, so a slow
machine is no reason to fail. ``-rA`` shows the figures. ``BENCH_FULL=1`` runs each five times (else three),
runs the large suite with async agents too and shows what ``-n 4`` takes beside them.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

WAIT = 0.5
FULL = os.environ.get("BENCH_FULL") == "1"
RUNS = 5 if FULL else 3
LARGE_ASYNC = pytest.mark.skipif(not FULL, reason="async agents at 200 cases: only with BENCH_FULL=1")
AGENT = """
import asyncio, os, time, pytest

WAIT = float(os.environ["WAIT"])

def answer(prompt):
    time.sleep(WAIT)
    return [{"n": 3}]

async def answer_async(prompt):
    await asyncio.sleep(WAIT)
    return [{"n": 3}]

@pytest.fixture(scope="session")
def agent():
    return answer_async if os.environ["KIND"] == "async" else answer
"""
UNNEEDED = (
    "hypothesispytest",
    "asyncio",
    "random_order",
    "rerunfailures",
    "pytest_httpserver",
    "cacheprovider",
)


def suite(folder: Path, cases: int) -> None:
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(AGENT)
    (folder / "tests").mkdir()
    for number in range(cases):
        text = f"prompt: question {number}\nexpected:\n  - {{n: 3}}\n"
        (folder / "tests" / f"c{number:03}.yml").write_text(text)


def seconds(folder: Path, cases: int, wait: float, kind: str, *words: str) -> float:
    """Wall seconds of one run, in which every case passed."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("AGENTEVAL_", "PYTEST_", "GITHUB_"))}
    environ |= {"WAIT": str(wait), "KIND": kind, "PYTEST_ADDOPTS": " ".join(f"-p no:{p}" for p in UNNEEDED)}
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *words],
        cwd=folder, env=environ, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    took = time.monotonic() - began
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{cases} passed" in done.stdout
    return took


@pytest.mark.parametrize(
    ("cases", "overlap", "ideal", "kind"),
    [
        (40, 40, 0.5, "sync"),
        (40, 40, 0.5, "async"),
        (200, 16, 6.5, "sync"),
        pytest.param(200, 16, 6.5, "async", marks=LARGE_ASYNC),
    ],
)
def test_slow_agents_overlap(tmp_path: Path, cases: int, overlap: int, ideal: float, kind: str) -> None:
    suite(tmp_path, cases)
    at_once: list[float] = []
    slow: list[float] = []
    words = ("--agent-concurrency", str(overlap))
    for _ in range(RUNS):
        at_once.append(seconds(tmp_path, cases, 0, kind, *words))
        slow.append(seconds(tmp_path, cases, WAIT, kind, *words))
    xdist = f"; -n 4: {seconds(tmp_path, cases, WAIT, kind, '-n', '4'):.2f} s (one run)" if FULL else ""
    floor, wall = statistics.median(at_once), statistics.median(slow)
    print(
        f"{cases} {kind} agents of {WAIT} s at K={overlap}: {wall:.2f} s, with 0 s agents {floor:.2f} s, "
        f"limit {ideal + 1.3 * floor:.2f} s{xdist}"
    )
    assert wall <= ideal + 1.3 * floor
