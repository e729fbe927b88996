"""What a run's folder does not take is kept elsewhere, whole line by whole line."""

from __future__ import annotations

import re
import resource
import shutil
import tempfile
from pathlib import Path

import pytest

from pytest_agenteval.errors import JournalFailed
from pytest_agenteval.results.journal import file as line_file
from pytest_agenteval.results.journal.file import JournalFile


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "run"
    made.mkdir()
    return made


def test_lines_of_a_deleted_folder_are_all_in_the_file_that_is_named(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    lines = JournalFile(folder, "gw0")
    lines.write(b"1\n")
    shutil.rmtree(folder)
    with pytest.raises(JournalFailed, match="the folder was deleted while the run went on") as caught:
        lines.write(b"2\n")
    found = re.search(r"what it did not take is in (\S+\.jsonl)\.", str(caught.value))
    assert found is not None
    assert Path(found[1]).read_bytes() == b"1\n2\n"
    with pytest.raises(JournalFailed):
        lines.write(b"3\n")
    assert Path(found[1]).read_bytes() == b"1\n2\n3\n"
    lines.close()
    lines.close()


def test_a_folder_that_never_was_is_told_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(JournalFailed, match="No such file or directory; what it did not take is in "):
        JournalFile(tmp_path / "gone", "gw0").write(b"1\n")


def test_where_nothing_takes_a_line_it_is_said_to_be_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone too"))
    with pytest.raises(JournalFailed, match="neither does the folder for temporary files: the last answer"):
        JournalFile(tmp_path / "gone", "gw0").write(b"1\n")


@pytest.mark.parametrize("kept", [b"", b"1\n"])
def test_a_full_folder_for_temporary_files_keeps_no_empty_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bytes
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    lines = JournalFile(tmp_path / "gone", "gw0")
    if kept:
        with pytest.raises(JournalFailed):
            lines.write(kept)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(JournalFailed, match="the last answer is lost"):
            lines.write(b"2" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.read_bytes() for path in tmp_path.glob("agenteval-*")] == ([kept] if kept else [])
    with pytest.raises(JournalFailed):
        lines.write(b"3\n")
    assert [path.read_bytes() for path in tmp_path.glob("agenteval-*")] == [kept + b"3\n"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_a_full_disk_is_told() -> None:
    with open("/dev/full", "r+b", buffering=0) as full, pytest.raises(OSError, match="No space left"):
        line_file.append_whole(full, b"1\n")


def test_a_second_process_of_a_name_has_a_file_of_its_own(folder: Path) -> None:
    for text in (b"1\n", b"2\n"):
        lines = JournalFile(folder, "gw0")
        lines.write(text)
        lines.close()
    assert (folder / "gw0.jsonl").read_bytes() == b"1\n"
    assert (folder / "gw0-2.jsonl").read_bytes() == b"2\n"
