"""Plugins and fixtures of a user's that break: told, while the run and its results stay whole."""

from __future__ import annotations

import json

import pytest


@pytest.mark.parametrize("workers", [[], ["-n", "1"]])
@pytest.mark.parametrize("hook", ["pytest_agenteval_result", "pytest_agenteval_document"])
def test_a_hook_that_raises_costs_no_results(project, hook, workers):
    shop = project("pass")
    argument = hook.rpartition("_")[2]
    with open(shop.path / "conftest.py", "a", encoding="utf-8") as file:
        file.write(f"\ndef {hook}(config, {argument}):\n    raise ValueError('mine')\n")
    status, output = shop.run(*workers)
    line = len((shop.path / "conftest.py").read_text(encoding="utf-8").splitlines())
    assert f"hook {hook} raised ValueError: mine (conftest.py:{line})" in output
    assert "1 passed" in output
    assert status == 1
    (written,) = (shop.path / "tests/outputs").glob("results_*.json")
    assert json.loads(written.read_text(encoding="ascii"))["cases"]["passed"] == 1


def test_a_databases_fixture_that_gives_nonsense_is_a_reference_error_before_any_call(project):
    shop = project("pass")
    with open(shop.path / "conftest.py", "a", encoding="utf-8") as file:
        file.write("\n@pytest.fixture\ndef agenteval_databases():\n    return 5\n")
    status, output = shop.run()
    assert status == 1
    assert "database 'default': builtins.int is neither a URL nor a connection" in " ".join(output.split())
    assert "internal error" not in output
    assert "Traceback" not in output
    assert shop.asked == 0
