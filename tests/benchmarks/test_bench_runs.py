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


SQL_AGENT = """
import duckdb, pytest
from pytest_agenteval import Answer, ToolCall

@pytest.fixture(scope="session")
def agent():
    def answer(prompt):
        number = int(prompt) % 20
        sql = f"SELECT count(x.n) AS n, sum(x.n) AS s FROM t AS x WHERE x.n <= {number + 100} AND NOT x.n < 1"
        with duckdb.connect("shop.duckdb", read_only=True) as connection:
            (row,) = connection.execute(sql).fetchall()
        rows = [{"n": row[0], "s": row[1]}]
        return Answer("", tool_calls=(ToolCall("execute_sql", {"sql": sql}, {"rows": rows}),))
    return answer
"""


def test_luck_costs_half_of_a_run_without_it_at_most(tmp_path: Path) -> None:
    """200 passing cases from DuckDB, 20 pairs of statements, each tried once; everything on by default."""
    build_cases(tmp_path)
    (tmp_path / "conftest.py").write_text(SQL_AGENT, "utf-8")
    for number in range(CASES):
        sql = f"SELECT count(*) AS n, sum(n) AS s FROM t WHERE n BETWEEN 1 AND {number % 20 + 100}"
        (tmp_path / "tests" / f"c{number:03}.yml").write_text(f"prompt: '{number}'\nsql: {sql}\n", "utf-8")
    cpu_of(tmp_path, "--agent-luck=off")
    without = min(cpu_of(tmp_path, "--agent-luck=off") for _ in range(2))
    default = min(cpu_of(tmp_path) for _ in range(2))
    every = cpu_of(tmp_path, "--agent-luck=warn")
    ratio, pair = default / without, (every - without) / 20
    print(f"CPU: off {without:.2f} s, default {default:.2f} s ({ratio:.2f} x), warn {every:.2f} s")
    assert ratio <= 1.5
    assert pair <= 2
