"""Speed and memory of the comparison against its peers, in one run.

    python tests/benchmarks/compare.py [--rows 1000,100000,1000000] [--json FILE] [--check]

Tables of 10 columns (2 text, 2 int, 3 double, date, bool, decimal): shuffled equal, and with one cell in
1 % of the rows changed; from Arrow and from lists of dicts. Peers that are not installed are left out
(polars, datacompy, nao-core). Each measurement has a process of its own: CPU seconds of the call and
the peak memory above what the process held before. ``--check`` fails when a goal is missed by half.
"""

from __future__ import annotations

import argparse
import datetime as dt
import gc
import json
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

PEERS = ("ours", "pandas", "polars", "datacompy", "nao")
CASES = ("equal", "different")
SOURCES = ("arrow", "dicts")


def tables(rows: int, case: str) -> tuple[Any, Any]:
    """The expected table and a shuffled (and changed) copy, as Arrow."""
    import numpy as np
    import pyarrow as pa

    random = np.random.default_rng(7)
    ids = random.permutation(rows)
    columns = {
        "customer": pa.array([f"customer {i}" for i in ids]),
        "region": pa.array(
            np.array(["north", "south", "east", "west", "centre"])[random.integers(0, 5, rows)]
        ),
        "orders": pa.array(random.integers(0, 500, rows)),
        "items": pa.array(random.integers(0, 5000, rows)),
        "revenue": pa.array(random.normal(1000, 300, rows)),
        "cost": pa.array(random.normal(600, 200, rows)),
        "share": pa.array(random.random(rows)),
        "first_order": pa.array(
            (np.datetime64("2020-01-01") + random.integers(0, 1500, rows)).astype("datetime64[D]")
        ),
        "active": pa.array(random.random(rows) < 0.5),
        "balance": pa.array(
            [Decimal(int(v)).scaleb(-2) for v in random.integers(-(10**7), 10**7, rows)], pa.decimal128(18, 2)
        ),
    }
    expected = pa.table(columns)
    if case == "different":
        hit = random.choice(rows, max(1, rows // 100), replace=False)
        kind = random.integers(0, 3, len(hit))
        for number, name in enumerate(("orders", "revenue", "share")):
            values = columns[name].to_numpy().copy()
            values[hit[kind == number]] += 7
            columns[name] = pa.array(values)
    actual = pa.table(columns).take(pa.array(random.permutation(rows)))
    return expected, actual


def ours(expected: Any, actual: Any) -> bool:
    """This package."""
    from pytest_agenteval.compare import compare
    from pytest_agenteval.table import Table

    if isinstance(expected, list):
        types = {"balance": "DECIMAL(18,2)"}
        return compare(Table.from_records(expected, types), Table.from_records(actual)).matched
    return compare(Table.from_arrow(expected), Table.from_arrow(actual)).matched


def frames(expected: Any, actual: Any) -> list[Any]:
    """Both tables as pandas frames."""
    import pandas as pd

    return [pd.DataFrame(t) if isinstance(t, list) else t.to_pandas() for t in (expected, actual)]


def pandas(expected: Any, actual: Any) -> bool:
    """pandas.testing after sorting by all columns (it compares lists)."""
    from pandas.testing import assert_frame_equal

    left, right = (
        frame.sort_values(list(frame.columns)).reset_index(drop=True) for frame in frames(expected, actual)
    )
    try:
        assert_frame_equal(left, right, check_dtype=False, rtol=1e-5, atol=1e-8)
    except AssertionError:
        return False
    return True


def polars(expected: Any, actual: Any) -> bool:
    """polars.testing, ignoring row order."""
    import polars as pl
    from polars.testing import assert_frame_equal

    left, right = (pl.DataFrame(t) if isinstance(t, list) else pl.from_arrow(t) for t in (expected, actual))
    try:
        assert_frame_equal(left, right, check_row_order=False, rel_tol=1e-5, abs_tol=1e-8)
    except AssertionError:
        return False
    return True


def datacompy(expected: Any, actual: Any) -> bool:
    """datacompy, joined on the key that it has to be told."""
    import datacompy as package

    left, right = frames(expected, actual)
    compare = getattr(package, "PandasCompare", None) or package.Compare
    return bool(compare(left, right, join_columns=["customer"], abs_tol=1e-8, rel_tol=1e-5).matches())


def nao(expected: Any, actual: Any) -> bool:
    """nao's published algorithm, from its own package."""
    from nao_core.commands.test.runner import check_dataframe

    left, right = (t if isinstance(t, list) else t.to_pylist() for t in (expected, actual))
    columns = list(left[0])
    given = SimpleNamespace(data=right, expectedData=left, expectedColumns=columns, error=None)
    return bool(check_dataframe(given)[0])


def measure(peer: str, rows: int, case: str, source: str) -> dict[str, Any]:
    """One call in this process: CPU seconds (all threads) and peak memory above the start, in MB."""
    expected, actual = tables(rows, case)
    if source == "dicts":
        expected, actual = expected.to_pylist(), actual.to_pylist()
    call = globals()[peer]
    warm = tables(1000, case)
    call(*warm)
    gc.collect()
    before = memory(reset=True)
    wall, cpu = time.perf_counter(), time.process_time()
    matched = call(expected, actual)
    return {
        "peer": peer,
        "rows": rows,
        "case": case,
        "source": source,
        "matched": matched,
        "cpu": time.process_time() - cpu,
        "wall": time.perf_counter() - wall,
        "mb": memory() - before,
    }


def memory(reset: bool = False) -> float:
    """The highest resident memory so far in MB; ``reset`` starts counting anew (Linux)."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def in_process(peer: str, rows: int, case: str, source: str, timeout: int) -> dict[str, Any] | None:
    """``measure`` in a process of its own; ``None`` where the peer is missing or too slow."""
    command = [sys.executable, __file__, "--one", peer, str(rows), case, source]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return None
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    found: dict[str, Any] | None = json.loads(lines[-1]) if lines else None
    return found


def special() -> dict[str, float]:
    """The goals that are no race: one cell, look-alike columns, near ties. Seconds."""
    import numpy as np
    import pyarrow as pa

    from pytest_agenteval.compare import compare, parse_options
    from pytest_agenteval.table import Table

    out: dict[str, float] = {}
    one = Table.from_rows(["n"], [(1,)], ["BIGINT"])
    other = Table.from_records([{"n": 1}])
    compare(one, other)
    start = time.perf_counter()
    for _ in range(200):
        compare(one, other)
    out["one_cell"] = (time.perf_counter() - start) / 200
    random = np.random.default_rng(3)
    flags = random.integers(0, 2, (60, 2000))
    order, rows = random.permutation(60), random.permutation(2000)
    left = pa.table({f"c{i}": flags[i] for i in range(60)})
    right = pa.table({f"h{i}": flags[j][rows] for i, j in enumerate(order)})
    start = time.perf_counter()
    assert compare(Table.from_arrow(left), Table.from_arrow(right)).matched
    out["look_alike_60"] = time.perf_counter() - start
    spots = random.random((100_000, 2)) * 100
    moved = (spots + random.uniform(-0.09, 0.09, spots.shape))[random.permutation(100_000)]
    near = [Table.from_arrow(pa.table({"x": s[:, 0], "y": s[:, 1]})) for s in (spots, moved)]
    start = time.perf_counter()
    assert compare(*near, parse_options({"atol": 0.1, "decimals": None})).matched
    out["near_ties_1e5"] = time.perf_counter() - start
    return out


def report(rows: list[int], timeout: int) -> list[dict[str, Any]]:
    """Measure everything, print a table as it comes."""
    found = []
    print(f"{'rows':>9} {'source':6} {'case':9} {'peer':10} {'CPU s':>8} {'wall s':>8} {'MB':>7}  verdict")
    for size in rows:
        for source in SOURCES:
            for case in CASES:
                for peer in PEERS:
                    one = in_process(peer, size, case, source, timeout)
                    if one is None:
                        continue
                    found.append(one)
                    verdict = "match" if one["matched"] else "differ"
                    wrong = "" if one["matched"] == (case == "equal") else "  (wrong)"
                    print(
                        f"{size:>9} {source:6} {case:9} {peer:10} {one['cpu']:8.3f} {one['wall']:8.3f} "
                        f"{one['mb']:7.0f}  {verdict}{wrong}",
                        flush=True,
                    )
    return found


def missed(found: list[dict[str, Any]], extra: dict[str, float]) -> list[str]:
    """Goals that are missed by more than half (slow machines get that margin)."""
    cpu = {(f["peer"], f["rows"], f["case"], f["source"]): f["cpu"] for f in found}
    out = []
    for (peer, rows, case, source), mine in cpu.items():
        if peer != "ours" or source != "arrow" or rows < 100_000:
            continue
        for other, share in (("nao", 0.08), ("polars", 1.0)):
            theirs = cpu.get((other, rows, case, source))
            if theirs is not None and mine > 1.5 * share * theirs:
                out.append(f"{rows} rows, {case}: {mine:.2f} s CPU, {other} takes {theirs:.2f} s")
    out += [f"{f['rows']} rows: {f['mb']:.0f} MB" for f in found if f["peer"] == "ours" and f["mb"] > 1024]
    goals = {"one_cell": 0.0005, "look_alike_60": 1.0, "near_ties_1e5": 2.0}
    return out + [f"{name}: {extra[name]:.4f} s" for name, goal in goals.items() if extra[name] > 1.5 * goal]


def main() -> int:
    """Command line."""
    if sys.argv[1:2] == ["--one"]:
        peer, rows, case, source = sys.argv[2:6]
        try:
            print(json.dumps(measure(peer, int(rows), case, source)))
        except ImportError:
            return 3
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", default="1000,100000,1000000")
    parser.add_argument("--json")
    parser.add_argument("--timeout", type=int, default=600)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    extra = special()
    for name, seconds in extra.items():
        print(f"{name}: {seconds * 1000:.2f} ms")
    found = report([int(n) for n in options.rows.split(",")], options.timeout)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"date": dt.date.today().isoformat(), "runs": found, "special": extra}, file, indent=1)
    problems = missed(found, extra) if options.check else []
    for problem in problems:
        print("missed:", problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
