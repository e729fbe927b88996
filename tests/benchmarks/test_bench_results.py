"""A 200 MB result set of 10,000 attempts: written, read, diffed and merged in at most 400 MB of memory.

Needs Linux's ``/proc`` for the peak. About a minute of CPU.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

LIMIT_MB = 400
ATTEMPTS = 10_000
START = """
    import json, re, sys, time
    from datetime import datetime
    from pathlib import Path
    begin = time.process_time()
"""
END = """
    status = Path("/proc/self/status").read_text()  # ru_maxrss would hold the parent's peak too
    peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) / 1024
    print(json.dumps({"mb": peak, "cpu": time.process_time() - begin, **facts}))
"""


def measured(body: str, *arguments: object) -> dict[str, float]:
    """Run a script in a process of its own; its peak memory (MB), CPU seconds and what it found."""
    script = "".join(map(textwrap.dedent, (START, body, END)))
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, float] = json.loads(done.stdout)
    return found


WRITE = """
    from pytest_agenteval.results.document.document import from_folder, write_document
    from pytest_agenteval.results.journal.run_folder import RunFolder
    from pytest_agenteval.results.journal.journal import Journal
    from pytest_agenteval.results.journal.records import PlannedItem
    from pytest_agenteval.table import Table
    from pytest_agenteval.types import Answer, Attempt, Extraction, ToolCall, Usage
    output, salt, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    folder = RunFolder.reserve(output, datetime(2026, 1, 1 + salt))
    rows = [{"id": n, "region": f"region {n}", "revenue": n * 1.5, "note": "x" * 20} for n in range(60)]
    table = Table.from_records(rows)
    call = ToolCall("execute_sql", {"sql_query": "SELECT 1"}, {"data": rows, "columns": table.names})
    items = [PlannedItem(nodeid=f"tests/a.yml::case{n}", path="tests/a.yml", name=f"case{n}", model="demo:a",
                         k=10, case_hash="h", ask_hash="h") for n in range(count // 10)]
    with Journal(folder, "main") as journal:
        journal.planned(items)
        for number, item in enumerate(items):
            journal.started(item.nodeid)
            for attempt in range(1, 11):
                right = (number * 7 + attempt + salt) % 10 > 1
                answer = Answer("The answer.", tool_calls=(call,), usage=Usage(100, 20), cost=0.01)
                journal.attempt(item.nodeid, 0, Attempt(
                    attempt, "passed" if right else "failed", "match" if right else "values differ",
                    answer=answer, extraction=Extraction(table, "matched", "SELECT 1"), reference=table,
                    reference_sql="SELECT 1", duration_ms=10.0))
    journal_cpu = time.process_time() - begin
    path = write_document(from_folder(folder), folder.document)
    folder.remove()
    facts = {"bytes": path.stat().st_size, "journal_cpu": journal_cpu}
"""
READ = """
    from pytest_agenteval.results.document.load import read_document
    from pytest_agenteval.reports.terminal import terminal_lines
    document = read_document(sys.argv[1])
    facts = {"rows": len(document.rows), "lines": len(terminal_lines(document))}
"""
DIFF = """
    from pytest_agenteval.results.analysis.diff import diff_documents
    from pytest_agenteval.results.document.load import read_document
    diff = diff_documents(read_document(sys.argv[1]), read_document(sys.argv[2]))
    facts = {"paired": diff.paired}
"""
MERGE = """
    from pytest_agenteval.results.document.document import write_document
    from pytest_agenteval.results.document.load import read_document
    from pytest_agenteval.results.document.merge import merge_documents
    merged = merge_documents([read_document(sys.argv[1]), read_document(sys.argv[2])])
    path = write_document(merged, Path(sys.argv[3]))
    facts = {"rows": len(merged.rows), "bytes": path.stat().st_size}
"""
FOREIGN = """
    from pytest_agenteval.results.document.load import read_document
    document = read_document(sys.argv[1])
    facts = {"rows": len(document.rows)}
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[str, float]]:
    """Two stored runs of 200 MB together, and what writing the first took."""
    output = tmp_path_factory.mktemp("outputs")
    figures = [measured(WRITE, output, salt, ATTEMPTS) for salt in (0, 1)]
    return output / "results_20260101_000000.json", output / "results_20260102_000000.json", figures[0]


def test_a_large_run_is_written_within_the_limit(runs):
    *_, written = runs
    print(written)
    assert written["bytes"] > 190e6
    assert written["mb"] < LIMIT_MB


def test_it_is_read_and_shown_within_the_limit(runs):
    found = measured(READ, runs[0])
    print(found)
    assert found["rows"] == ATTEMPTS
    assert found["mb"] < LIMIT_MB


def test_two_are_compared_within_the_limit(runs):
    found = measured(DIFF, runs[0], runs[1])
    print(found)
    assert found["paired"] == ATTEMPTS / 10
    assert found["mb"] < LIMIT_MB


def test_two_are_merged_within_the_limit(runs, tmp_path):
    found = measured(MERGE, runs[0], runs[1], tmp_path / "merged.json")
    print(found)
    assert found["rows"] == 2 * ATTEMPTS
    assert found["mb"] < LIMIT_MB


def test_a_large_foreign_file_is_streamed_within_the_limit(runs, tmp_path):
    """The same file in nao's shape: pretty-printed, so that nothing of our layout helps."""
    place = tmp_path / "results_foreign.json"
    with open(runs[0]) as source, open(place, "w") as target:
        target.write('{"timestamp": "2026-01-01T00:00:00", "results": [')
        first = True
        for line in source:
            if line.startswith('{"name"'):
                entry = json.loads(line.rstrip().rstrip(","))
                kept = {
                    key: entry[key] for key in ("name", "model", "passed", "message", "attempt", "details")
                }
                target.write(("" if first else ",\n") + json.dumps(kept, indent=1))
                first = False
        target.write("]}")
    found = measured(FOREIGN, place)
    print(found)
    assert found["rows"] == ATTEMPTS
    assert found["mb"] < LIMIT_MB
