from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from datetime import datetime
from pathlib import Path

import pytest
from result_runs import item

from pytest_agenteval.results.document.document import from_folder, write_document
from pytest_agenteval.results.document.load import last_run, left_out, past_documents
from pytest_agenteval.results.journal import run_folder as module
from pytest_agenteval.results.journal.run_folder import (
    RunFolder,
    documents,
    ignore_in_git,
    output_folder,
    run_folders,
)
from pytest_agenteval.support.processes import birth_of

NOW = datetime(2026, 3, 1, 12, 0, 0)


def test_results_lie_below_tests_where_there_is_such_a_folder(tmp_path):
    assert output_folder(tmp_path) == tmp_path / "outputs"
    (tmp_path / "tests").mkdir()
    assert output_folder(tmp_path) == tmp_path / "tests" / "outputs"
    assert output_folder(tmp_path, "elsewhere") == tmp_path / "elsewhere"


def test_runs_of_one_second_get_folders_of_their_own(outputs):
    names = [RunFolder.reserve(outputs, NOW).path.name for _ in range(3)]
    assert names == ["results_20260301_120000", "results_20260301_120000_2", "results_20260301_120000_3"]
    assert sorted(p.name for p in outputs.iterdir()) == [".gitignore", *names]


def test_many_processes_of_one_run_share_one_folder(outputs):
    found: list[RunFolder] = []
    gate = threading.Barrier(8)

    def reserve(token: str) -> None:
        gate.wait()
        found.append(RunFolder.reserve(outputs, NOW, token))

    threads = [threading.Thread(target=reserve, args=(f"run-{n % 2}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({f.path for f in found}) == 2
    assert {f.path: f.token for f in found} == {f.path: f.token for f in found if f.path.is_dir()}
    assert len(run_folders(outputs)) == 2


def test_a_run_that_has_its_folder_gets_no_second_one(outputs):
    first = RunFolder.reserve(outputs, NOW, "t")
    assert RunFolder.reserve(outputs, datetime(2027, 1, 1), "t") == first


def test_a_process_that_comes_second_joins_instead_of_replacing(outputs, monkeypatch):
    first = RunFolder.reserve(outputs, NOW, "t")
    monkeypatch.setattr(RunFolder, "find", classmethod(lambda cls, place, token: None))  # it looked too early
    assert RunFolder.reserve(outputs, NOW, "t") == first
    assert [p.name for p in outputs.iterdir() if p.name.startswith(".results")] == []


def test_a_name_whose_document_exists_is_taken(outputs):
    first = RunFolder.reserve(outputs, NOW)
    first.document.write_text("{}")
    first.remove()
    assert RunFolder.reserve(outputs, NOW).path.name == "results_20260301_120000_2"


def test_a_run_that_ends_while_another_reserves_keeps_its_name(outputs, monkeypatch):
    """The document appears between the look and the rename."""
    real = module._document
    looks = iter([False, True])

    class Late(type(Path())):
        def exists(self, **_: object) -> bool:
            return next(looks, False)

    monkeypatch.setattr(module, "_document", lambda place: Late(real(place)))
    assert RunFolder.reserve(outputs, NOW).path.name == "results_20260301_120000_2"


def test_a_worker_finds_the_folder_by_its_token_only(outputs):
    mine = RunFolder.reserve(outputs, NOW, "mine")
    RunFolder.reserve(outputs, NOW, "other")
    assert RunFolder.find(outputs, "mine") == mine
    assert RunFolder.find(outputs, "nobody") is None
    assert RunFolder.find(outputs / "not there", "mine") is None


def test_a_resumed_run_goes_on_in_its_folder_with_later_numbers(outputs):
    first = RunFolder.reserve(outputs, NOW, "a")
    again = RunFolder.resume(first.path, "b")
    assert (again.path, again.generation, again.rerun_base) == (first.path, 1, 1000)
    assert RunFolder.find(outputs, "a") is None
    assert RunFolder.find(outputs, "b") == again
    assert RunFolder.resume(first.path).generation == 2
    assert RunFolder.open(first.path).token != "b"


@pytest.fixture(scope="module")
def dead_pid() -> int:
    done = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    return int(done.stdout)


def with_copies(outputs: Path, session: dict[str, object], pids: tuple[int, ...] = ()) -> Path:
    """A run's folder with a copy of a database, as it is after a kill -9."""
    folder = RunFolder.reserve(outputs, NOW)
    facts = json.loads((folder.path / "session.json").read_text())
    (folder.path / "session.json").write_text(json.dumps({**facts, **session}))
    (folder.private / "databases" / "pids").mkdir(parents=True)
    (folder.private / "databases" / "data.duckdb").touch()
    for pid in pids:
        (folder.private / "databases" / "pids" / str(pid)).touch()
    (folder.path / "main.jsonl").write_text("{}\n")
    return folder.path


def test_a_new_run_removes_the_copies_of_killed_ones_and_of_no_other(outputs, dead_pid):
    gone = with_copies(outputs, {"pid": dead_pid}, (dead_pid,))
    kept = [
        with_copies(outputs, {}),
        with_copies(outputs, {"pid": 1, "birth": birth_of(1)}),  # somebody else's process
        with_copies(outputs, {"pid": dead_pid, "host": "elsewhere"}),
        with_copies(outputs, {"pid": dead_pid}, (dead_pid, os.getpid())),  # the worker died, the run goes on
    ]
    RunFolder.reserve(outputs, NOW)
    assert [path.name for path in RunFolder.open(gone).private.iterdir()] == ["key"]
    kept_there = [RunFolder.open(path).private / "databases" / "data.duckdb" for path in kept]
    assert [path.exists() for path in kept_there] == [True] * 4


def test_a_resumed_run_copies_databases_anew(outputs):
    path = with_copies(outputs, {"host": "elsewhere"})
    resumed = RunFolder.resume(path)
    assert [entry.name for entry in resumed.private.iterdir()] == ["key"]


def test_an_output_folder_that_cannot_be_made_is_an_os_error(tmp_path):
    (tmp_path / "outputs").write_text("a file")
    with pytest.raises(OSError, match="outputs"):
        RunFolder.reserve(tmp_path / "outputs", NOW)


def test_a_rename_that_fails_for_another_reason_is_raised(outputs, monkeypatch):
    def refuse(self: Path, target: Path) -> Path:
        raise PermissionError("read-only")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(PermissionError, match="read-only"):
        RunFolder.reserve(outputs, NOW)


def test_a_folder_whose_results_may_be_in_git_is_left_as_it_is(tmp_path):
    team = tmp_path / "team"
    team.mkdir()
    (team / "results_20260101_000000.json").write_text("{}")
    RunFolder.reserve(team, datetime(2026, 1, 2))
    assert not (team / ".gitignore").exists()


def test_git_ignores_the_outputs_folder_and_an_own_gitignore_stays(tmp_path):
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed")
    subprocess.run([git, "init", "-q", tmp_path], check=True)
    RunFolder.reserve(tmp_path / "tests" / "outputs", NOW)
    done = subprocess.run(
        [git, "-C", tmp_path, "status", "--porcelain"], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    own = tmp_path / "outputs"
    own.mkdir()
    (own / ".gitignore").write_text("!keep\n")
    ignore_in_git(own)
    assert (own / ".gitignore").read_text() == "!keep\n"


def test_what_the_document_says_of_the_run_is_kept(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    assert folder.read_run() == {}
    folder.write_run({"label": "nightly", "command": ["pytest", "ü"]})
    assert folder.read_run() == {"label": "nightly", "command": ["pytest", "ü"]}
    folder.write_run({"label": "b", "started_at": "2026-03-01T12:00:00+00:00"})
    folder.write_run({"label": "c", "started_at": "2026-03-02T12:00:00+00:00"})  # the run was resumed
    assert folder.read_run() == {"label": "c", "started_at": "2026-03-01T12:00:00+00:00"}
    (folder.path / "run.json").write_text("[1]")
    assert folder.read_run() == {}
    assert folder.document.name == "results_20260301_120000.json"


def test_a_run_in_which_nothing_ran_is_no_run_to_go_on_with(outputs, run_folder):
    full = run_folder({item(): ["passed"]})
    write_document(from_folder(full), full.document)
    full.remove()
    empty = RunFolder.reserve(outputs, datetime(2030, 1, 1))
    empty.write_run({"label": None})
    write_document(from_folder(empty), empty.document)
    empty.remove()
    assert list(documents(outputs)) == [empty.document, full.document]
    assert [document.path for document in past_documents(outputs)] == [full.document]
    assert last_run(outputs) == full.document


def test_the_last_run_is_the_newest_that_began(outputs):
    assert last_run(outputs) is None
    old = RunFolder.reserve(outputs, datetime(2026, 1, 1))
    old.document.write_text('{"results": []}')
    old.remove()
    assert last_run(outputs) == old.document
    new = RunFolder.reserve(outputs, NOW)
    assert last_run(outputs) == old.document  # nothing was written into the new one
    (new.path / "main.jsonl").write_text("")
    assert last_run(outputs) == new.path
    new.document.write_text('{"results": []}')
    assert last_run(outputs) == new.path  # still unfinished: its folder is there
    for number in range(2, 12):
        RunFolder.reserve(outputs, NOW).document.write_text(json.dumps(number))
    assert documents(outputs)[0].name == "results_20260301_120000_11.json"
    (outputs / "results_x.json").write_text("{}")
    (outputs / "results_20260301_120000_11.overrides.json").write_text("{}")
    assert documents(outputs)[0].name == "results_20260301_120000_11.json"


def test_a_file_that_cannot_be_read_is_not_the_last_run(outputs, run_folder):
    full = run_folder({item(): ["passed"]})
    write_document(from_folder(full), full.document)
    full.remove()
    assert left_out(outputs) == []
    torn = full.document.read_bytes()[:-30].replace(b"2026-03-01T12:00:00", b"2099-01-04T00:00:00")
    for number, raw in enumerate([b"x", b"", b"[]", torn, b"\xff\xfe"]):
        (outputs / f"results_2099010{number + 1}_000000.json").write_bytes(raw)
    assert last_run(outputs) == full.document
    assert [document.path for document in past_documents(outputs)] == [full.document]
    told = left_out(outputs)
    assert [text.partition(":")[0] for text in told] == [f"results_2099010{n}_000000.json" for n in "54321"]
    assert "the file ends in the middle" in told[1]
    assert "not a results file but no JSON (Expecting value: line 1, column 1)" in told[4]
