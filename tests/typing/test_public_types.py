"""The public names have types, for mypy --strict and for pyright, and nothing more is loaded at run time."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_agenteval
from pytest_agenteval.table import Table

HERE = Path(__file__).parent
FILES = [str(HERE / "api.py"), str(HERE / "mistakes.py")]
CHECKERS = {
    "mypy": ["--strict", "--no-error-summary", "--config-file", "", *FILES],
    "pyright": ["--pythonpath", sys.executable, *FILES],
}


@pytest.mark.parametrize("checker", CHECKERS)
def test_right_code_passes_and_each_mistake_is_found(checker: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed; tox -e lint runs this test with it")
    done = subprocess.run(
        [sys.executable, "-m", checker, *CHECKERS[checker]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    found = re.findall(r"(\w+\.py):(\d+):(?:\d+)?.*error", done.stdout)
    mistakes = (HERE / "mistakes.py").read_text("utf-8").splitlines()
    marked = {("mistakes.py", str(line)) for line, text in enumerate(mistakes, 1) if "# error" in text}
    assert len(marked) == 12
    assert set(found) == marked, done.stdout + done.stderr


def test_what_type_checkers_see_is_what_is_loaded_on_demand() -> None:
    tree = ast.parse(Path(pytest_agenteval.__file__).read_text("utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    named = {
        (alias.name, node.module)
        for node in ast.walk(block)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    homes = {(name, f"pytest_agenteval.{home}") for name, home in pytest_agenteval._HOMES.items()}
    assert named == homes | {("compare", "pytest_agenteval.compare")}
    assert set(pytest_agenteval.__all__) <= set(dir(pytest_agenteval))
    assert {name for name, _ in named} == set(pytest_agenteval.__all__)
    for name in pytest_agenteval.__all__:
        assert getattr(pytest_agenteval, name) is not None
    assert {"Check", "Registry"} <= set(dir(pytest_agenteval.checks))


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(AttributeError, match="'Anser'; public: Agent, AgentEvalWarning, Answer"):
        pytest_agenteval.Anser  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'Chek'"):
        pytest_agenteval.checks.Chek  # noqa: B018


ORDERS = {
    "the root first": "from pytest_agenteval import compare",
    "the module first": "import pytest_agenteval.compare\nfrom pytest_agenteval import compare",
    "a name of the module first": "from pytest_agenteval.compare import render\n"
    "from pytest_agenteval import compare",
    "as an attribute": "import pytest_agenteval\ncompare = pytest_agenteval.compare",
    "from the module": "from pytest_agenteval.compare import compare",
    "from the module, after the root": "from pytest_agenteval import compare as c\n"
    "from pytest_agenteval.compare import compare",
}


@pytest.mark.parametrize("order", ORDERS)
def test_compare_is_the_function_however_it_is_imported(order: str) -> None:
    code = f"""{ORDERS[order]}
from pytest_agenteval.table import Table
one = Table.from_rows(["a"], [[1]], [None])
assert compare(one, one).matched
import pytest_agenteval.compare
assert pytest_agenteval.compare.compare(one, one).matched
assert pytest_agenteval.compare(one, None).matched is False
assert pytest_agenteval.compare.parse_options({{}}).rtol >= 0
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_package_alone_loads_nothing() -> None:
    code = (
        "import sys, pytest_agenteval; print([m for m in sys.modules if m.startswith('pytest_agenteval.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert Table.from_rows(["a"], [[1]], [None]).row_count == 1
