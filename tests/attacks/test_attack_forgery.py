"""A program that is judged cannot judge: journals, documents, snapshots, budgets are out of its reach."""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import datetime
from pathlib import Path

import duckdb
import pytest

from pytest_agenteval.results.document.load import read_document
from pytest_agenteval.results.journal.journal import Journal
from pytest_agenteval.results.journal.run_folder import RunFolder

FORGE = """
import glob, json, os, sys
json.load(sys.stdin)
for folder in glob.glob("tests/outputs/results_*/"):
    with open(folder + "zz.jsonl", "a") as file:
        for name in ("a1", "a2", "a3"):
            base = {"nodeid": f"tests/c.yml::{name}", "rerun": 9, "at": "2026-12-01T10:00:00+00:00"}
            head = {"verdict": "passed", "message": "match", "duration_ms": 1, "tool_call_count": 0}
            for line in (
                {"kind": "started", **base, "process": "main"},
                {"kind": "answer", **base, "attempt": 1, "head": {"duration_ms": 1}, "body": {}},
                {"kind": "attempt", **base, "attempt": 1, "answered": True, "head": head, "body": {}},
            ):
                file.write(json.dumps(line, separators=(",", ":")) + "\\n")
print(json.dumps([{"n": 1}]))
"""

CASES = "cases:\n" + "".join(f"  - {{name: a{n}, prompt: go {n}, expected: [{{n: 2}}]}}\n" for n in (1, 2, 3))


@pytest.fixture
def forged(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini("[pytest]\naddopts = -p no:asyncio\n")
    (pytester.path / "forge.py").write_text(FORGE, encoding="utf-8")
    (pytester.mkdir("tests") / "c.yml").write_text(CASES, encoding="utf-8")
    return pytester


TARGET = ("--agent-target", f"command:{sys.executable} forge.py")


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_forged_lines_of_a_journal_do_not_count(forged: pytest.Pytester, options: tuple[str, ...]) -> None:
    done = forged.runpytest_subprocess(*TARGET, "--agent-fail-under", "90", *options)
    assert done.ret == 1
    done.stdout.fnmatch_lines(
        [
            "lines in zz.jsonl of the run's folder were not written by this run and do not count: *",
            "*cases: 3 failed*0.0 %*",
        ]
    )
    results = next((forged.path / "tests" / "outputs").glob("results_*.json"))
    assert [row.verdict for row in read_document(results).rows] == ["failed"] * 3
    assert read_document(results).run["foreign_lines"] == ["zz.jsonl"]


def test_a_document_that_disagrees_with_the_reports_is_an_error(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\naddopts = -p no:asyncio\n")
    (pytester.mkdir("tests") / "c.yml").write_text(
        "cases:\n"
        "  - {name: a1, prompt: go 1, expected: [{n: 2}]}\n"
        "  - {name: a2, prompt: go 2, expected: [{n: 1}]}\n",
        encoding="utf-8",
    )
    pytester.makeconftest(
        """
        import glob, pytest
        @pytest.fixture
        def agent():
            def ask(prompt):
                if prompt == "go 2":
                    for name in glob.glob("tests/outputs/results_*/main.jsonl"):
                        open(name, "w").close()
                return [{"n": 1}]
            return ask
        """
    )
    done = pytester.runpytest_subprocess("--agent-fail-under", "10")
    assert done.ret == 1
    done.stdout.fnmatch_lines(
        ["the run was not ended as it should: tests/c.yml::a1: the run's folder says *, the process*"]
    )


def test_resume_takes_no_forged_answer(forged: pytest.Pytester) -> None:
    (forged.path / "stop.py").write_text(FORGE.replace("print(json", "os.kill(os.getppid(), 2)\nprint(json"))
    forged.runpytest_subprocess("--agent-target", f"command:{sys.executable} stop.py")
    (forged.path / "ok.py").write_text("print('[{\"n\": 1}]')\n", encoding="utf-8")
    done = forged.runpytest_subprocess("--agent-target", f"command:{sys.executable} ok.py", "--agent-resume")
    done.stdout.fnmatch_lines(["*cases: 3 failed*"])


TAMPER = """
import glob, json, os, sqlite3, sys
json.load(sys.stdin)
tops = ("tests/outputs", os.environ["STATE"])
places = [place for top in tops for place in glob.glob(top + "/**/*.sqlite", recursive=True)]
for place in places:
    try:
        os.chmod(place, 0o600)
        with sqlite3.connect(place) as connection:
            connection.execute("update orders set amount = 0")
    except Exception as error:
        print(error, file=sys.stderr)
print(json.dumps([{"n": 0}]))
"""


def test_a_changed_snapshot_is_an_error_of_the_reference(pytester: pytest.Pytester) -> None:
    import sqlite3

    state = pytester.path / "state"
    with sqlite3.connect(pytester.path / "shop.sqlite") as connection:
        connection.execute("create table orders as select 99 as amount")
    connection.close()
    pytester.makeini(
        "[pytest]\naddopts = -p no:asyncio\nagenteval_databases = shop = sqlite:///shop.sqlite\n"
    )
    (pytester.path / "tamper.py").write_text(TAMPER, encoding="utf-8")
    (pytester.mkdir("tests") / "c.yml").write_text(
        "cases:\n"
        "  - {name: a1, prompt: go, sql: select sum(amount) as n from orders}\n"
        "  - {name: a2, prompt: go, sql: select max(amount) as n from orders}\n",
        encoding="utf-8",
    )
    os.environ["STATE"] = str(state)
    before = os.environ["XDG_STATE_HOME"]
    os.environ["XDG_STATE_HOME"] = str(state)
    try:
        done = pytester.runpytest_subprocess("--agent-target", f"command:{sys.executable} tamper.py")
    finally:
        os.environ["XDG_STATE_HOME"] = before
        del os.environ["STATE"]
    done.stdout.fnmatch_lines(
        ["a2 *ERROR*", "E a2 (reference): database 'shop' (sqlite:///shop.sqlite): the copy of the data*"]
    )
    done.assert_outcomes(failed=1, errors=1)


def test_snapshots_are_private_and_out_of_the_working_folder(tmp_path: Path) -> None:
    from pytest_agenteval.databases import Databases

    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("create table t as select 1 as n")
    os.chmod(tmp_path / "shop.duckdb", 0o600)
    folder = RunFolder.reserve(tmp_path / "outputs", datetime.now())
    assert not folder.private.is_relative_to(tmp_path)
    assert folder.private.stat().st_mode & 0o777 == 0o700
    with Databases(
        {"shop": f"duckdb:///{tmp_path}/shop.duckdb"}, folder=folder.private, root=tmp_path
    ) as databases:
        assert databases.get().query("select n from t").row_count == 1
    (copy,) = (path for path in folder.private.rglob("*.duckdb"))
    assert copy.stat().st_mode & 0o777 == 0o400


def test_signing_costs_little(tmp_path: Path) -> None:
    from pytest_agenteval.support.private import is_signed, signed

    line = (json.dumps({"kind": "attempt", "body": {"text": "x" * 1500}}) + "\n").encode()
    began = time.process_time()
    for _ in range(10_000):
        made = signed(line, b"k" * 32)
    assert time.process_time() - began < 1.0
    assert is_signed(made, b"k" * 32)
    assert not is_signed(made, b"l" * 32)
    assert not is_signed(made.replace(b"x", b"y", 1), b"k" * 32)
    assert not is_signed(line, b"k" * 32)
    assert json.loads(made)["kind"] == "attempt"


def test_lines_of_a_journal_are_signed_with_a_key_that_is_not_in_its_folder(tmp_path: Path) -> None:
    folder = RunFolder.reserve(tmp_path, datetime.now())
    with Journal(folder, "main") as journal:
        journal.started("tests/c.yml::a")
    (line,) = (folder.path / "main.jsonl").read_bytes().splitlines(keepends=True)
    key = folder.key
    assert key is not None
    from pytest_agenteval.support.private import is_signed

    assert is_signed(line, key)
    assert not any(key in path.read_bytes() for path in folder.path.iterdir())
    assert (folder.path / "main.jsonl").stat().st_mode & 0o777 == 0o600
    assert folder.path.stat().st_mode & 0o777 == 0o700


def test_results_and_reports_are_for_this_user_unless_shared(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\naddopts = -p no:asyncio\n")
    (pytester.mkdir("tests") / "c.yml").write_text("prompt: go\nexpected: [{n: 1}]\n", encoding="utf-8")
    pytester.makeconftest("import pytest\n@pytest.fixture\ndef agent():\n    return lambda p: [{'n': 1}]")
    outputs = pytester.path / "tests" / "outputs"
    pytester.runpytest_inprocess("--agent-html", "r.html")
    files = [*outputs.glob("results_*.json"), pytester.path / "r.html"]
    assert [path.stat().st_mode & 0o777 for path in files] == [0o600, 0o600]
    pytester.runpytest_inprocess("--agent-html", "r.html", "--agent-file-mode", "shared")
    assert (pytester.path / "r.html").stat().st_mode & 0o777 == 0o644
