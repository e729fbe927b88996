"""What is installed: the wheel's files, its entry points, the pinned oldest releases."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel that ``pip install .`` installs, made by the backend itself."""
    pytest.importorskip("hatchling", reason="needs hatchling")
    target = tmp_path_factory.mktemp("wheel")
    code = f"import hatchling.build as build; print(build.build_wheel({str(target)!r}))"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, timeout=60)
    return zipfile.ZipFile(next(target.glob("*.whl")))


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    source = ROOT / "src"
    wanted = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    }
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert packed == {name for name in wanted if ".egg-info/" not in name}
    assert "pytest_agenteval/py.typed" in packed


def test_entry_points_and_metadata(wheel: zipfile.ZipFile) -> None:
    def read(name: str) -> str:
        return wheel.read(next(entry for entry in wheel.namelist() if entry.endswith(name))).decode()

    points = read("entry_points.txt")
    assert "[pytest11]\nagenteval = pytest_agenteval.plugin" in points
    assert "[console_scripts]\nagenteval = pytest_agenteval.cli:main" in points
    metadata = read("METADATA")
    assert "Requires-Python: >=3.11\n" in metadata
    assert "License-Expression: Apache-2.0\n" in metadata
    assert {"postgres", "viewer", "test"} <= set(re.findall(r"Provides-Extra: (\S+)", metadata))
    assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())


def test_the_oldest_releases_are_the_lower_bounds() -> None:
    """tests/lowest.txt pins what pyproject.toml names: lower a bound here and there, never in one place."""
    lines = (ROOT / "tests" / "lowest.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    extras = [entry for part in PROJECT["optional-dependencies"].values() for entry in part]
    wrong = []
    for text in [*PROJECT["dependencies"], *extras]:
        requirement = Requirement(text)
        if requirement.name == PROJECT["name"]:
            continue
        (bound,) = (spec.version for spec in requirement.specifier if spec.operator == ">=")
        pinned = pins.get(requirement.name.lower().replace("_", "-"))
        if pinned is None or not _same_release(bound, pinned):
            wrong.append(f"{requirement.name}: {bound} in pyproject.toml, {pinned} in tests/lowest.txt")
    assert not wrong


def _same_release(bound: str, pinned: str) -> bool:
    """``1.48`` and ``1.48.0`` are; releases that were never published or withdrawn are not."""
    short = [int(part) for part in bound.split(".")]
    return [int(part) for part in pinned.split(".")][: len(short)] == short


def test_every_dependency_is_used() -> None:
    """A dependency that no module imports costs every user an installation for nothing."""
    modules = {
        "pyyaml": "yaml",
        "pytest-xdist": None,
        "pytest-json-report": None,
        "python-jsonpath": "jsonpath",
        "markdown-it-py": "markdown_it",
    }
    text = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    for entry in PROJECT["dependencies"]:
        name = Requirement(entry).name
        module = modules.get(name, name.replace("-", "_"))
        if module is not None:
            assert re.search(rf"\b(import|from) {module}\b", text), f"nothing imports {name}"


def test_module_and_script_are_the_same_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest_agenteval", "--help"],
        env=dict(os.environ, COLUMNS="80"),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.startswith("usage: agenteval")


def test_readme_tox_and_ci_run_the_same_commands() -> None:
    readme, tox, ci = ((ROOT / name).read_text() for name in ("README.md", "tox.ini", Path(".ci") / "run"))
    assert "\npip install . && pytest docs/examples/jaffle_shop -n 4\npip install tox && tox\n" in readme
    assert "\n    pytest docs/examples/jaffle_shop -n 4\n" in tox
    assert re.search(r"pip install -q tox\n", ci)
    assert re.search(r"/tox run ", ci)
    assert "TEST_REQUIRE=postgres,mariadb,chromium" in ci
    environments = re.search(r"^env_list = (.*)$", tox, flags=re.MULTILINE)
    assert environments is not None
    listed = environments.group(1).split(", ")
    described = re.findall(r"^\[testenv:(\w+)\]", tox, flags=re.MULTILINE)
    assert sorted(listed) == sorted(
        set(described) - {"llm", "nao", "bench", "lowest", "trust", "frameworks", "py312", "py313", "py314"}
    )
    assert listed[-1] == "py311", "the full run comes last, so that its closing line does"
