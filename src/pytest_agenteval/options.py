"""The option table as pytest options and ini keys, and back into ``Settings``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agenteval.option_table import OPTIONS, Option

if TYPE_CHECKING:
    from pytest_agenteval.settings import Settings

_DEST = "agenteval_"


def add_options(parser: pytest.Parser) -> None:
    """Every row of the table as ``--agent-…`` and ``agenteval_…``."""
    group = parser.getgroup("agenteval", "agenteval: YAML cases that test a data agent")
    for option in OPTIONS:
        if "c" in option.places:
            group.addoption(option.cli, dest=_DEST + option.attribute, help=option.help, **_shape(option))
        if "i" in option.places:
            kind: Any = option.toml
            parser.addini(option.ini, option.help, type=kind, default=None)


def _shape(option: Option) -> dict[str, Any]:
    if option.flag:
        return {"action": "store_true", "default": None}
    shape: dict[str, Any] = {"metavar": option.metavar, "default": None}
    if option.many:
        shape["action"] = "append"
    if option.bare is not None:
        shape |= {"nargs": "?", "const": option.bare}
    return shape


def command_line(config: pytest.Config) -> dict[str, Any]:
    """What the command line gives, by attribute."""
    return {
        option.attribute: config.getoption(_DEST + option.attribute)
        for option in OPTIONS
        if "c" in option.places
    }


def read_settings(config: pytest.Config, project: Mapping[str, Any]) -> Settings:
    """The frozen settings of this process. Raises ``pytest.UsageError`` naming every bad value."""
    from pytest_agenteval.errors import SettingsError
    from pytest_agenteval.settings import resolve

    ini, problems = _ini(config)
    try:
        settings = resolve(command_line(config), os.environ, ini, project)
    except SettingsError as error:
        problems.append(str(error))
    if problems:
        raise pytest.UsageError("\n".join(problems))
    return settings


def _ini(config: pytest.Config) -> tuple[dict[str, Any], list[str]]:
    values: dict[str, Any] = {}
    problems: list[str] = []
    for option in OPTIONS:
        if "i" not in option.places:
            continue
        try:
            value = config.getini(option.ini)
        except (TypeError, ValueError, pytest.UsageError) as error:
            problems.append(f"{option.ini}: {error}; expected {_allowed(option)}")
            continue
        values[option.attribute] = value
    return values, problems


def _allowed(option: Option) -> str:
    """What ``option`` takes, in the words of its own reader."""
    try:
        option.read("\0")
    except ValueError as error:
        return str(error)
    return "a list of texts" if option.many else "text"
