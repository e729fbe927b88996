"""One rule for paths in messages, and for files that are written at once or not at all."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from pytest_agenteval.support.files import below, replacing, shown_path, write_atomic


def test_a_path_is_shown_relative_to_the_root_it_lies_below(tmp_path: Path) -> None:
    inside, outside = tmp_path / "tests" / "a.yml", tmp_path.parent / "b.yml"
    assert shown_path(inside, tmp_path) == shown_path(str(inside), tmp_path) == "tests/a.yml"
    assert shown_path(outside, tmp_path) == outside.as_posix()
    assert shown_path("tests/a.yml", tmp_path) == "tests/a.yml"
    assert below(tmp_path, tmp_path) == Path()
    # a folder whose name only begins alike is another one
    assert (
        shown_path(tmp_path / "tests2" / "a.yml", tmp_path / "tests")
        == (tmp_path / "tests2/a.yml").as_posix()
    )


def test_a_file_is_replaced_only_by_a_whole_one(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    write_atomic(path, "old ü\n")

    def lines():
        yield "new, but "
        raise ValueError("half")

    with pytest.raises(ValueError, match="half"), replacing(path) as file:
        file.writelines(lines())
    assert path.read_bytes() == "old ü\n".encode()
    write_atomic(path, b"\x00new")
    assert path.read_bytes() == b"\x00new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.json"]


def test_threads_that_write_the_same_file_do_not_mix(tmp_path: Path) -> None:
    path, texts = tmp_path / "out", [str(number) * 100_000 for number in range(4)]
    threads = [threading.Thread(target=write_atomic, args=(path, text)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() in texts


def test_where_the_folder_is_missing_the_error_is_the_systems(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomic(tmp_path / "none" / "out", "")
