"""Answers that are paid for are kept or the run ends, and says so: full disk, deleted folder, no links."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_agenteval.errors import JournalFailed
from pytest_agenteval.results.journal.file import JournalFile
from pytest_agenteval.results.journal.journal import Journal
from pytest_agenteval.results.journal.records import PlannedItem
from pytest_agenteval.results.journal.run_folder import RunFolder
from pytest_agenteval.support.redaction import Redactor


def kinds(text: str) -> list[str]:
    return [json.loads(line)["kind"] for line in text.splitlines()]


def test_a_folder_deleted_during_the_run_ends_it_and_what_was_answered_is_kept(project, tmp_path):
    shop = project("pass", "shutil.rmtree('tests/outputs')", "pass")
    status, output = shop.run("--tb=short")
    assert status == 1
    assert "takes no more results: the folder was deleted while the run went on" in output
    assert "the run was not ended as it should: the run's folder was deleted while it ran" in output
    assert shop.asked == 2
    (kept,) = (tmp_path / "temp").glob("agenteval-main-*.jsonl")
    assert str(kept) in output
    assert kinds(kept.read_text(encoding="ascii")) == [
        "started", "call", "answer", "attempt", "started", "call", "answer",
    ]  # fmt: skip


def test_a_folder_deleted_by_the_last_case_makes_no_green_run_without_results(project):
    shop = project("import atexit; shutil.rmtree('tests/outputs')")
    status, output = shop.run("-q", "--agent-fail-under", "0")
    assert status == 1
    assert "takes no more results" in output


def test_a_results_file_that_cannot_be_written_is_told_and_the_answers_stay(project):
    shop = project(
        "pass", "[p.with_suffix('.json').mkdir() for p in pathlib.Path('tests/outputs').glob('results_*')]"
    )
    status, output = shop.run()
    assert status == 1
    assert "2 passed" in output
    assert "the run was not ended as it should: [Errno 21] Is a directory" in output
    (folder,) = [path for path in (shop.path / "tests/outputs").glob("results_*") if path.suffix == ""]
    assert f"`agenteval merge tests/outputs/{folder.name}` makes the results file of them" in output
    assert kinds((folder / "main.jsonl").read_text(encoding="ascii")).count("answer") == 2


def test_where_nothing_can_be_kept_nothing_is_asked(project):
    shop = project("pass", "pass")
    (shop.path / "taken").write_text("a file", encoding="utf-8")
    status, output = shop.run("--agent-output=taken")
    assert status == 1
    assert shop.asked == 0
    assert f"no results can be kept in {shop.path / 'taken'}: File exists; nothing is asked." in output
    assert "Choose another folder with --agent-output" in output


FULL = """
import resource, sys
from pathlib import Path
from pytest_agenteval.errors import JournalFailed
from pytest_agenteval.results.journal.file import JournalFile
file = JournalFile(Path(sys.argv[1]), "main")
file.write(b'{"n": 1}\\n')
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    file.write(b'{"big": "' + b"x" * 10_000 + b'"}\\n')
except JournalFailed as error:
    print(error)
file.write(b'{"n": 2}\\n')
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="needs a limit on file sizes")
def test_a_line_that_does_not_fit_leaves_no_half_line_behind(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.startswith(f"{tmp_path} takes no more results: File too large; neither does")
    assert (tmp_path / "main.jsonl").read_text(encoding="ascii") == '{"n": 1}\n{"n": 2}\n'


def test_later_lines_follow_into_the_same_file_for_temporary_files(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "run").mkdir()
    file = JournalFile(tmp_path / "run", "gw1")
    file.write(b"1\n")
    (tmp_path / "run" / "gw1.jsonl").unlink()
    for line in (b"2\n", b"3\n"):
        with pytest.raises(
            JournalFailed, match=r"what it did not take is in .*agenteval-gw1-.*--agent-resume"
        ):
            file.write(line)
    file.close()
    (kept,) = tmp_path.glob("agenteval-gw1-*.jsonl")
    assert kept.read_bytes() == b"1\n2\n3\n"


def test_a_file_system_without_links_holds_the_plan_once(tmp_path, monkeypatch):
    def refuse(self: Path, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    folder = RunFolder.reserve(tmp_path, __import__("datetime").datetime.now())
    item = PlannedItem(nodeid="t.yml::a", path="t.yml", name="a", model="agent")
    assert Journal(folder, "gw0").planned([item]) is True
    assert Journal(folder, "gw1").planned([item]) is False
    assert kinds((folder.path / "planned-0.jsonl").read_text(encoding="ascii")) == ["planned"]


def test_the_working_folder_is_no_secret_but_a_password_is():
    redactor = Redactor()
    redactor.add_environment({"PWD": "/home/me/shop", "OLDPWD": "/home/me/other", "DB_PWD": "hunter2hunter2"})
    assert redactor.text("/home/me/shop/conftest.py: hunter2hunter2") == "/home/me/shop/conftest.py: ***"
