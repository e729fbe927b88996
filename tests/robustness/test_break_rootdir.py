"""An option's path outside the project moves pytest's rootdir; that is said, not suffered."""

from __future__ import annotations

import pytest


@pytest.fixture
def outside(project, tmp_path):
    (tmp_path / "results").mkdir()
    return project("pass"), tmp_path / "results"


def test_a_folder_outside_that_pytest_takes_for_its_own_is_a_usage_error(outside):
    shop, folder = outside
    status, output = shop.run("--agent-output", str(folder))
    assert status == 4
    assert (
        f"--agent-output {folder} has made pytest take {folder.parent} for its rootdir, and no ini file; "
        f"write --agent-output={folder} (or give --rootdir)"
    ) in output
    assert shop.asked == 0


@pytest.mark.parametrize("arguments", [["--agent-output={}"], ["--agent-output", "{}", "tests"],
                                       ["--rootdir=.", "--agent-output", "{}"]])  # fmt: skip
def test_every_other_way_to_name_it_works(outside, arguments):
    shop, folder = outside
    status, output = shop.run(*(argument.format(folder) for argument in arguments))
    assert status == 0, output
    assert len(list(folder.glob("results_*.json"))) == 1
