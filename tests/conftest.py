"""For all tests of this repository."""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import pkgutil
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterable
from typing import Any

# Loaded before the first in-process pytester run: that one would throw the modules out of sys.modules
# again, and a second import of their C parts aborts the process.
import duckdb  # noqa: F401
import httpx  # noqa: F401
import hypothesis
import numpy as np  # noqa: F401
import pandas as pd  # noqa: F401
import pyarrow as pa  # noqa: F401
import pydantic  # noqa: F401
import pytest
import scipy.optimize
import scipy.sparse.csgraph
import scipy.stats  # noqa: F401
import sqlalchemy  # noqa: F401
import sqlglot  # noqa: F401
import yaml  # noqa: F401
from services import mariadb, postgres  # noqa: F401

import pytest_agenteval

# An in-process pytester run forgets what it imported, and pytest collects garbage five times at its end: with
# our modules loaded before it, and what is loaded by then out of the collector's sight, it takes a third.
for _module in pkgutil.walk_packages(pytest_agenteval.__path__, "pytest_agenteval."):
    if not _module.name.endswith("__main__"):
        importlib.import_module(_module.name)
gc.collect()
gc.freeze()

# runs in processes of their own would compile the whole plugin again and again
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# what runs keep out of their folders lies below one of these tests, not in the user's home
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="agenteval-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)
# what was started in the background is deaf to Ctrl-C, and so would be what it starts
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# nor are runs in processes of their own workers of the run that tests them
for _name in [name for name in os.environ if name.startswith("PYTEST_XDIST_")]:
    del os.environ[_name]

# examples of hypothesis take as long as the machine makes them
hypothesis.settings.register_profile("any machine", hypothesis.settings.default, deadline=None)
hypothesis.settings.load_profile("any machine")


def _required() -> list[str]:
    """What may not be missing here: ``TEST_REQUIRE=postgres,mariadb,chromium``."""
    return [word.strip().lower() for word in os.environ.get("TEST_REQUIRE", "").split(",") if word.strip()]


def _refuse_skip(report: Any, marks: Iterable[str] = ()) -> None:
    """Make a skip for want of something required a failure that names it."""
    reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    for word in _required():
        if word in reason.lower() or (
            word in marks and "../shared" not in reason and "AGENTEVAL_TEST_" not in reason
        ):
            report.outcome = "failed"
            report.longrepr = f"TEST_REQUIRE={word}, yet this was skipped: {reason}"
            return


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where something is required, its absence is no reason to skip a test."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        _refuse_skip(report, [mark.name for mark in item.iter_markers()])
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Nor to skip a module."""
    report = yield
    if report.skipped:
        _refuse_skip(report)
    return report
