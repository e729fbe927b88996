"""Verdicts of people survive two tabs, two processes, and a click at the same moment."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pytest_agenteval.results.document.overrides import (
    Override,
    overrides_path,
    read_overrides,
    write_override,
)
from pytest_agenteval.results.document.rows import Row


def click(place: str, first: int) -> None:
    for number in range(first, first + 20):
        row = Row(name=f"case {number}", model="m", path="tests/c.yml", verdict="failed")
        write_override(Path(place), row, Override("passed", f"note {number} " + "x" * (number * 7 % 50)))


def test_no_click_is_lost_and_the_file_stays_whole(tmp_path: Path) -> None:
    results = tmp_path / "results_20260101_000000.json"
    results.write_text("{}", encoding="utf-8")
    others = [multiprocessing.get_context("spawn").Process(target=click, args=(str(results), 1000))]
    for process in others:
        process.start()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: click(str(results), n * 20), range(8)))
    for process in others:
        process.join(60)
        assert process.exitcode == 0
    kept = read_overrides(results)
    assert len(kept) == 180
    assert overrides_path(results).stat().st_mode & 0o777 == 0o600
