"""A default stands once: what the option table says is what runs, and what the docs say."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from pytest_agenteval.config.options import OPTIONS
from pytest_agenteval.config.settings import Settings, resolve

ROOT = Path(__file__).parents[2]


def test_settings_have_a_field_per_option_with_its_default() -> None:
    names = [field.name for field in fields(Settings)]
    assert names == [*(option.attribute for option in OPTIONS), "sources"]
    for option in OPTIONS:
        assert getattr(Settings(), option.attribute) == option.default, option.name
    assert resolve({}, {}, {}, {}) == Settings()


CHANGED = """
import inspect, sys
from pytest_agenteval import types
types.DEFAULT_TIMEOUT, types.DEFAULT_SQL_TIMEOUT, types.DEFAULT_SQL_MAX_ROWS = 7.5, 8.5, 4321
types.DEFAULT_SNAPSHOT_LIMIT, types.DEFAULT_SQL_TOOLS, types.DEFAULT_RETRIES = 99, ("ask",), 6
from pytest_agenteval.config import options
table = [o._replace(default="last") if o.name == "baseline" else o for o in options.OPTIONS]
options.OPTIONS = tuple(table)
sys.path.insert(0, "docs")
from generate_options import page
from pytest_agenteval.agents.kinds.sql_analyst_tools import SqlTools
from pytest_agenteval.config.settings import Settings, resolve
from pytest_agenteval.databases import Databases
from pytest_agenteval.extraction.executed_queries import executed_queries
from pytest_agenteval.extraction.model_extraction import ExtractionLimits
from pytest_agenteval.extraction.steps import extract
from pytest_agenteval.llm.http_client import HttpClient
from pytest_agenteval.results.document.document import Document

def default(function, name):
    return inspect.signature(function).parameters[name].default

run = resolve({}, {}, {}, {})
assert (run.timeout, run.sql_timeout, run.sql_max_rows, run.snapshot_limit) == (7.5, 8.5, 4321, 99)
assert (run.sql_tools, run.retries, run.baseline) == (("ask",), 6, "last")
for text in ("`7.5`", "`8.5`", "`4,321`", "`99`", "`ask`", "`6`", "`last`"):
    assert f"Default: {text}." in page(), text
assert (ExtractionLimits().timeout, ExtractionLimits().max_rows) == (8.5, 4321)
assert (default(Databases, "timeout"), default(Databases, "max_rows")) == (8.5, 4321)
assert (default(Databases, "snapshot_limit"), default(SqlTools, "limit")) == (99, 8.5)
assert default(HttpClient, "retries") == 6
assert default(executed_queries, "sql_tools") == default(extract, "sql_tools") == ("ask",)
assert Document({}, [], list).sql_tools == ("ask",)
"""


def test_changing_one_place_changes_all() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHANGED], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("default", ['= ("execute_sql",)', "= 2 * 1024**3"])
def test_no_default_is_written_twice(default: str) -> None:
    source = ROOT / "src" / "pytest_agenteval"
    assert [path.name for path in source.rglob("*.py") if default in path.read_text("utf-8")] == ["types.py"]
