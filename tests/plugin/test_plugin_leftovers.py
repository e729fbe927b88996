"""What a run leaves behind, however it ends: journals to go on with, and nothing that fills a disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import pytest

from pytest_agenteval.support.processes import _is_zombie, is_alive, temp_prefix

CONFTEST = """
import os, time, pytest
from pathlib import Path
@pytest.fixture(scope="session")
def agent():
    def answer(prompt):
        if prompt == "die":
            os._exit(3)
        if prompt == "stall":
            Path("stalling").touch()
            time.sleep(60)
        return [{"n": 2}]
    return answer
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Cases whose references need a copy of a database; the temporary files have a folder of their own."""
    for name in ("tests", "temporary"):
        (tmp_path / "project" / name).mkdir(parents=True)
    home = tmp_path / "project"
    with duckdb.connect(str(home / "shop.duckdb")) as con:
        con.execute("CREATE TABLE t AS SELECT i AS n FROM range(3) r(i)")
    (home / "pytest.ini").write_text("[pytest]\nagenteval_databases = main=duckdb:///shop.duckdb\n", "utf-8")
    (home / "conftest.py").write_text(CONFTEST, "utf-8")
    for name in ("first", "last"):
        (home / "tests" / f"{name}.yml").write_text("prompt: go\nsql: SELECT max(n) AS n FROM t\n", "utf-8")
    return home


def start(home: Path, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    env = {**os.environ, "TMPDIR": str(home / "temporary"), "XDG_STATE_HOME": str(home / "state")}
    with open(home / "log.txt", "ab") as log:
        return subprocess.Popen(command, cwd=home, env=env, stdout=log, stderr=log, start_new_session=True)


def wait_for(found: Path, process: subprocess.Popen[bytes]) -> None:
    give_up = time.monotonic() + 60
    while not found.exists() and process.poll() is None and time.monotonic() < give_up:
        time.sleep(0.02)
    assert found.exists(), (found.parent / "log.txt").read_text()


def copies(home: Path) -> list[str]:
    """Which runs have copies of databases, out of the working folder."""
    return [path.parent.name for path in (home / "state" / "agenteval").glob("*/databases")]


def left(home: Path) -> tuple[set[str], set[str]]:
    """Names of our temporary files, and of what is in the folders of runs."""
    temporary = {path.name for path in (home / "temporary").glob("agenteval-*")}
    runs = (home / "tests" / "outputs").glob("results_*/*")
    return temporary, {path.name for path in runs if path.suffix != ".jsonl"}


def prompt(home: Path, name: str, text: str) -> None:
    case = home / "tests" / f"{name}.yml"
    case.write_text(case.read_text("utf-8").replace("prompt: go", f"prompt: {text}"), "utf-8")


@pytest.mark.parametrize(("options", "text"), [(["-x"], "go"), ([], "die")], ids=["x", "crash"])
def test_an_unfinished_run_keeps_its_journals_and_no_copies(
    project: Path, options: list[str], text: str
) -> None:
    first = project / "tests" / "first.yml"
    first.write_text(first.read_text("utf-8").replace("max(n)", "max(n) + 1"), "utf-8")
    prompt(project, "last", text)
    for number in range(3):
        (project / "tests" / f"more{number}.yml").write_text("prompt: go\nsql: SELECT 2 AS n\n", "utf-8")
    assert start(project, "-n", "2", *options).wait(60) in (1, 2), (project / "log.txt").read_text()
    assert left(project) == (set(), {"session.json", "run.json"})


def test_what_a_killed_run_leaves_is_removed_by_the_next_one(project: Path) -> None:
    prompt(project, "last", "stall")
    killed = start(project, "-n", "2")
    wait_for(project / "stalling", killed)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait(20)
    temporary, run = left(project)
    assert len(temporary) == 1
    assert run == {"session.json", "run.json"}
    assert len(copies(project)) == 1
    (project / "stalling").unlink()
    stalled = start(project)
    wait_for(project / "stalling", stalled)  # a run that goes on keeps what it has
    running = copies(project)
    assert len(running) == 1
    (project / "tests" / "last.yml").unlink()
    assert start(project, "-n", "2").wait(60) == 0, (project / "log.txt").read_text()
    assert left(project) == (set(), {"session.json", "run.json"})
    assert copies(project) == running
    stalled.send_signal(signal.SIGINT)
    stalled.wait(60)
    assert copies(project) == []


def test_a_resumed_run_sees_the_databases_as_they_are_now(project: Path) -> None:
    prompt(project, "last", "stall")
    killed = start(project)
    wait_for(project / "stalling", killed)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait(20)
    with duckdb.connect(str(project / "shop.duckdb")) as con:
        con.execute("UPDATE t SET n = 7 WHERE n = 2")
    conftest = project / "conftest.py"
    conftest.write_text(CONFTEST.replace("time.sleep(60)", "return [{'n': 7}]"), "utf-8")
    assert start(project, "--agent-resume").wait(60) == 0, (project / "log.txt").read_text()
    assert left(project) == (set(), set())


def test_a_process_that_nobody_has_waited_for_is_not_alive() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    assert os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT) is not None
    assert is_alive(process.pid) is not sys.platform.startswith("linux")
    process.wait()
    assert not is_alive(process.pid)
    assert is_alive(os.getpid())


def test_temporary_files_of_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own = temp_prefix()
    machine = own.removesuffix(f"{os.getpid()}-")
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True)
    pid = int(dead.stdout)
    stay = [
        f"{own}a",
        f"{machine}1-a",
        f"agenteval-00000000-{pid}-a",
        "agenteval-gw1-abc.jsonl",
        f"{machine}a",
    ]
    for name in [*stay, f"{machine}{pid}-a"]:
        (tmp_path / name).touch()
    (tmp_path / f"{machine}{pid}-b").mkdir()
    (tmp_path / f"{machine}{pid}-b" / "copy.duckdb").touch()
    assert temp_prefix() == own
    assert {path.name for path in tmp_path.iterdir()} == set(stay)


def test_a_process_that_is_gone_is_no_zombie() -> None:
    assert not _is_zombie(10**9)
    assert not is_alive(10**9)
