"""What a run costs: nothing where there are no cases, little for each case.

Speed is held as figures of one machine in one run, compared with each other; ``-rA`` prints them.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from pathlib import Path

PAIRS = 20
CASES = 200


def cpu_of(path: Path, *args: str) -> float:
    """CPU seconds of one pytest run in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *args]
    done = subprocess.run(command, cwd=path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_one_plain_test_costs_at_most_10_ms_more(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text("def test_plain():\n    pass\n", encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    cpu_of(tmp_path)
    pairs = [cpu_of(tmp_path) - cpu_of(tmp_path, "-p", "no:agenteval") for _ in range(PAIRS)]
    median = statistics.median(pairs) * 1000
    print(f"CPU above no:agenteval: median of {PAIRS} pairs {median:.1f} ms")
    assert median <= 10


def build_cases(path: Path, nap: float = 0.0, count: int = CASES) -> None:
    """``count`` cases with as many references over one DuckDB file; the agent waits ``nap`` seconds."""
    import duckdb

    (path / "tests").mkdir(parents=True)
    con = duckdb.connect(str(path / "shop.duckdb"))
    con.execute("CREATE TABLE t AS SELECT range AS n FROM range(1000)")
    con.close()
    (path / "pytest.ini").write_text(
        "[pytest]\nagenteval_databases = shop = duckdb:///shop.duckdb\n", "utf-8"
    )
    (path / "conftest.py").write_text(
        "import time, pytest\n@pytest.fixture(scope='session')\ndef agent():\n"
        f"    def answer(prompt):\n        time.sleep({nap})\n        return [{{'n': int(prompt)}}]\n"
        "    return answer\n",
        "utf-8",
    )
    for number in range(count):
        text = f"prompt: '{number}'\nsql: SELECT n FROM t WHERE n = {number}\n"
        (path / "tests" / f"c{number:03}.yml").write_text(text, "utf-8")


def build_plain(path: Path) -> None:
    """As many plain test files."""
    path.mkdir()
    (path / "pytest.ini").write_text("[pytest]\n", "utf-8")
    for number in range(CASES):
        (path / f"test_c{number:03}.py").write_text("def test_plain():\n    pass\n", "utf-8")


def test_200_cases_cost_at_most_a_second_more_than_200_test_files(tmp_path: Path) -> None:
    build_cases(tmp_path / "cases")
    build_plain(tmp_path / "plain")
    extra = []
    for _ in range(5):
        extra.append(cpu_of(tmp_path / "cases") - cpu_of(tmp_path / "plain"))
    print(f"CPU of {CASES} cases above {CASES} plain files: median {statistics.median(extra):.2f} s")
    assert statistics.median(extra) <= 1.0
