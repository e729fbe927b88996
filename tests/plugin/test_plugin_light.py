"""A repository without cases does not feel the plugin; one with cases loads only what it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HEAVY = {
    "pandas",
    "numpy",
    "duckdb",
    "sqlalchemy",
    "httpx",
    "scipy",
    "sqlglot",
    "pydantic",
    "yaml",
    "pyarrow",
}
Write = Callable[..., None]

PROBE = """
import json, sys, pytest
class Probe:
    def pytest_unconfigure(self):
        with open("modules.json", "w") as file:
            json.dump(sorted(sys.modules), file)
raise SystemExit(pytest.main([*sys.argv[1:], "-p", "no:cacheprovider"], plugins=[Probe()]))
"""


def modules_after(path: Path, *args: str) -> set[str]:
    """The names of all modules that a pytest run in a process of its own has loaded."""
    script = path / "probe.py"
    script.write_text(PROBE, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script), *args], cwd=path, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return set(json.loads((path / "modules.json").read_text("utf-8")))


def loaded_by(path: Path, *args: str) -> set[str]:
    """The heavy modules that come in with the plugin, beside those that other plugins load."""
    without = modules_after(path, "-p", "no:agenteval", *args)
    return (modules_after(path, *args) - without) & HEAVY


def test_a_repository_without_cases(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text("def test_plain():\n    pass\n", encoding="utf-8")
    (tmp_path / "docker-compose.yml").write_text("services: {}\n", encoding="utf-8")
    assert loaded_by(tmp_path) == set()
    ours = {name for name in modules_after(tmp_path) if name.startswith("pytest_agenteval.")}
    assert ours <= {
        f"pytest_agenteval.{name}"
        for name in (
            "plugin", "plugin.options", "plugin.items", "plugin.controller", "plugin.planning",
            "plugin.hookspecs", "plugin.warning_masks", "plugin.notes", "config.project_folder",
            "plugin.collection", "config", "config.options", "types", "cases", "cases.discovery", "support",
            "support.files", "support.clock",
        )
    }  # fmt: skip


def test_cases_on_duckdb_load_no_more_than_they_need(shop: pytest.Pytester, write_case: Write) -> None:
    write_case("right")
    found = modules_after(shop.path) & HEAVY
    assert found <= {"duckdb", "yaml", "numpy"}
    assert "duckdb" in found
    # what a wrong statement does differently takes a parser to say
    write_case("wrong", answer="SELECT 1 AS total")
    assert modules_after(shop.path) & HEAVY <= {"duckdb", "yaml", "numpy", "sqlglot"}
    assert (
        modules_after(shop.path, "--agent-luck=off") & {"scipy", "pandas", "pyarrow", "sqlalchemy"} == set()
    )


def test_inline_cases_load_no_database(shop: pytest.Pytester) -> None:
    shop.makeconftest("import pytest\n@pytest.fixture\ndef agent():\n    return lambda prompt: [{'n': 1}]\n")
    (shop.path / "tests" / "one.yml").write_text("prompt: One?\nexpected: [{n: 1}]\n", "utf-8")
    assert modules_after(shop.path) & (HEAVY - {"yaml"}) == set()
