"""What the pages for contributors name is there."""

from __future__ import annotations

import configparser
import re
import tomllib
from pathlib import Path

import pytest

import pytest_agenteval

ROOT = Path(__file__).parents[2]
SOURCE = Path(pytest_agenteval.__file__).parent
PAGES = ["CONTRIBUTING.md", "docs/contributing/architecture.md", "docs/contributing/style.md"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_is_named_is_there(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    named = re.findall(r"(?<![\w/<])((?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:md|py|ini|toml|txt))(?![\w<])", text)
    made_up = {"agents/kinds/mytool.py", ".venv/bin/activate", "tests/revenue.yml"}
    missing = []
    for name in dict.fromkeys(named):
        places = [ROOT / name, SOURCE / name, SOURCE / f"{name}.py", (ROOT / page).parent / name]
        if name not in made_up and not any(place.exists() for place in places):
            missing.append(name)
    assert not missing


def test_every_environment_that_is_named_is_there() -> None:
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = {name for found in re.findall(r"tox -e ([\w,]+)", text) for name in found.split(",")}
    named |= set(re.findall(r"`(py3\d\d)`", text))
    assert {"lint", "py311", "py312", "docs", "bench", "lowest"} <= named
    assert not [name for name in sorted(named) if f"testenv:{name}" not in tox]


def test_every_room_is_in_the_table_of_rooms() -> None:
    text = (ROOT / "docs/contributing/architecture.md").read_text("utf-8")
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    listed = set(re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\| \d+ \|([^|]*)\|", text, re.MULTILINE))))
    assert rooms | {"errors", "types"} == listed
    [layers] = [c["layers"] for c in PROJECT["tool"]["importlinter"]["contracts"] if c["type"] == "layers"]
    levels = set(re.findall(r"^\| (\d+) \|", text, re.MULTILINE))
    assert len(layers) == len(levels) == 10


def test_the_functions_of_rules_are_where_the_page_says() -> None:
    from pytest_agenteval.compare.values.numbers import NumberRule
    from pytest_agenteval.support.scalars import is_null

    assert callable(NumberRule.grade)
    assert is_null(None)


def test_the_version_stands_in_two_places_alike() -> None:
    assert pytest_agenteval.__version__ == PROJECT["project"]["version"]


def test_the_style_page_is_short() -> None:
    assert len((ROOT / "docs/contributing/style.md").read_text("utf-8").splitlines()) <= 45
