"""The comparison beside polars.testing, and tables that are wide or look alike: CPU seconds in one process.

Goals are ratios to polars (issue "Fast where it is slow"); a machine that has other work to do is given half
as much again. Wide tables have a limit in CPU seconds, and none may take 500 MB.
"""

from __future__ import annotations

import importlib.util
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_agenteval.compare import compare
from pytest_agenteval.table import Table

HERE = Path(__file__).parent
MARGIN = 1.5
SECONDS, MEGABYTES = 5.0, 500


def _peers() -> Any:
    spec = importlib.util.spec_from_file_location("compare_benchmark", HERE / "compare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("rows", "source", "goal"),
    [(1_000_000, "arrow", 0.75), (100_000, "dicts", 1.0)],
)
@pytest.mark.parametrize("case", ["equal", "different"])
def test_beside_polars(rows: int, source: str, goal: float, case: str) -> None:
    pytest.importorskip("polars")
    peers = _peers()
    expected, actual = peers.tables(rows, case)
    if source == "dicts":
        expected, actual = expected.to_pylist(), actual.to_pylist()
    taken: dict[str, list[float]] = {"ours": [], "polars": []}
    for _ in range(5):
        for name in taken:
            begin = time.process_time()
            getattr(peers, name)(expected, actual)
            taken[name].append(time.process_time() - begin)
    ratio = statistics.median(taken["ours"]) / statistics.median(taken["polars"])
    print(f"{rows} rows, {source}, {case}: {ratio:.2f} x polars, goal {goal}")
    assert ratio <= goal * MARGIN


def _table(name: str, columns: list[list[Any]], kind: str | None) -> Table:
    names = [f"{name}{i}" for i in range(len(columns))]
    return Table.from_rows(names, list(zip(*columns, strict=True)), [kind] * len(columns))


def _pair(expected: list[list[Any]], actual: list[list[Any]], kind: str) -> tuple[Table, Table]:
    return _table("e", expected, kind), _table("a", actual, kind)


def _flags(chance: random.Random) -> tuple[Table, Table]:
    sides = [[chance.sample([1] * 25 + [0] * 25, 50) for _ in range(300)] for _ in range(2)]
    return _pair(*sides, "INTEGER")


def _permutation(chance: random.Random) -> tuple[Table, Table]:
    size = 300
    rows, columns = chance.sample(range(size), size), chance.sample(range(size), size)
    one = [[int(i == j) for i in range(size)] for j in range(size)]
    return _pair(one, [[one[column][row] for row in rows] for column in columns], "INTEGER")


def _near(chance: random.Random) -> tuple[Table, Table]:
    columns = [[5 + chance.random() for _ in range(60)] for _ in range(60)]
    other = [[value + chance.random() * 1e-3 for value in column] for column in columns]
    return _pair(columns, chance.sample(other, 60), "DOUBLE")


def _renamed(chance: random.Random) -> tuple[Table, Table]:
    columns = [[chance.randint(0, 10**6) for _ in range(100)] for _ in range(2000)]
    return _pair(columns, chance.sample(columns, 2000), "INTEGER")


def _doubles(chance: random.Random) -> tuple[Table, Table]:
    sides = [[[chance.random() * 100 for _ in range(100)] for _ in range(500)] for _ in range(2)]
    return _pair(*sides, "DOUBLE")


def _wrong(chance: random.Random) -> tuple[Table, Table]:
    columns = [[chance.randint(0, 1000) for _ in range(100)] for _ in range(200)]
    return _pair(columns, [[value + 1 for value in column] for column in columns], "INTEGER")


def _ragged(chance: random.Random) -> tuple[Table, Table]:
    lists = [[chance.random() for _ in range(chance.randint(0, 300))] for _ in range(1000)]
    return _pair([lists], [chance.sample(lists, 1000)], "DOUBLE[]")


def _json(chance: random.Random) -> tuple[Table, Table]:
    value = {"rows": [{"id": i, "x": i * 1.5, "name": f"n{i}"} for i in range(25_000)]}
    return _pair([[json.dumps(value)]], [[value]], "JSON")


WIDE: dict[str, tuple[Callable[[random.Random], tuple[Table, Table]], bool]] = {
    "300 look-alike flags that differ": (_flags, False),
    "a permutation matrix of 300 columns": (_permutation, True),
    "60 near floats under other names": (_near, True),
    "2,000 renamed columns": (_renamed, True),
    "500 DOUBLE columns that all differ": (_doubles, False),
    "200 renamed and wrong": (_wrong, False),
    "ragged lists": (_ragged, True),
    "1 MB of JSON in a cell": (_json, True),
}


@pytest.mark.parametrize("name", WIDE)
def test_a_wide_table_ends_in_a_verdict(name: str) -> None:
    """In a process of its own, so that the peak of memory is its own."""
    done = subprocess.run(
        [sys.executable, __file__, name], capture_output=True, text=True, timeout=120, check=True
    )
    found = json.loads(done.stdout)
    print(f"{name}: {found['seconds']:.2f} s, {found['megabytes']} MB")
    assert found["matched"] is WIDE[name][1]
    assert found["seconds"] <= SECONDS
    assert found["megabytes"] <= MEGABYTES


if __name__ == "__main__":
    expected, actual = WIDE[sys.argv[1]][0](random.Random(1))
    begin = time.process_time()
    verdict = compare(expected, actual)
    seconds = time.process_time() - begin
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    peak = int(status.split("VmHWM:")[1].split()[0]) // 1024
    print(json.dumps({"matched": verdict.matched, "seconds": seconds, "megabytes": peak}))
