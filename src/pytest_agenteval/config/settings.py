"""``Settings``: every option's value, frozen, from the four places an option may be given in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from pytest_agenteval.config.options import OPTIONS, Option
from pytest_agenteval.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Settings:
    """Every option's value. ``sources`` says per option where it came from."""

    target: str | None = None
    model: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    strict: bool = False
    run: str = "always"
    k: int | None = None
    timeout: float = 300.0
    concurrency: int = 1
    retries: int = 2
    budget: float | None = None
    extract: str = "auto"
    extract_model: str | None = None
    judge_model: str | None = None
    record: str | None = None
    replay_wrap: bool = False
    label: str | None = None
    output: str | None = None
    resume: bool = False
    resume_from: str | None = None
    dry_run: bool = False
    changed: bool = False
    fail_under: tuple[tuple[str, float], ...] = ()
    baseline: str | None = None
    baseline_test: str = "any"
    summary: tuple[str, ...] = ()
    html: str | None = None
    validate: bool = False
    files: tuple[str, ...] = ()
    fixture: str = "agent"
    databases: tuple[tuple[str, str], ...] = ()
    sql_tools: tuple[str, ...] = ("execute_sql",)
    sql_timeout: float = 60.0
    sql_max_rows: int = 100_000
    snapshot_limit: int = 2 * 1024**3
    thread: bool = False
    sources: Mapping[str, str] = field(default_factory=dict)

    def source(self, name: str) -> str:
        """Where the option came from: command line, environment, ini, project or default."""
        return self.sources.get(name, "default")


def resolve(
    cli: Mapping[str, Any],
    environ: Mapping[str, str],
    ini: Mapping[str, Any],
    project: Mapping[str, Any],
) -> Settings:
    """Settings from the four places, each keyed by ``Option.attribute`` (environment: by name).

    ``project`` maps ``Option.project_key`` to a value. Raises ``SettingsError`` naming every bad
    value, its place and what is allowed.
    """
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    problems: list[str] = []
    for option in OPTIONS:
        given, where, shown = _first_given(option, cli, environ, ini, project)
        if where == "default":
            continue
        try:
            values[option.attribute] = _read(option, given)
            sources[option.attribute] = where
        except ValueError as error:
            allowed, *wrong = error.args
            problems.append(f"{shown}: {wrong[0] if wrong else given!r} is not {allowed}")
    if problems:
        raise SettingsError("\n".join(problems))
    known = {entry.name for entry in fields(Settings)}
    return Settings(**{k: v for k, v in values.items() if k in known}, sources=sources)


def _first_given(
    option: Option,
    cli: Mapping[str, Any],
    environ: Mapping[str, str],
    ini: Mapping[str, Any],
    project: Mapping[str, Any],
) -> tuple[Any, str, str]:
    places = (
        ("c", cli.get(option.attribute), "command line", option.cli),
        ("e", environ.get(option.env) or None, "environment", option.env),
        ("i", ini.get(option.attribute), "ini", option.ini),
    )
    for letter, value, where, shown in places:
        if letter in option.places and value is not None and value != [] and value != "":
            return value, where, shown
    if option.project_key is not None and project.get(option.project_key) is not None:
        return project[option.project_key], "project", f"project file, {option.project_key}"
    return None, "default", ""


def _read(option: Option, given: Any) -> Any:
    if not option.many:
        return given if option.flag and isinstance(given, bool) else option.read(str(given))
    entries = list(given) if isinstance(given, list | tuple) else str(given).splitlines()
    texts = [str(entry) for entry in entries]
    if option.commas:
        texts = [part for text in texts for part in text.split(",")]
    stripped = [text.strip() for text in texts]
    return tuple(dict.fromkeys(_read_one(option, text) for text in stripped if text))


def _read_one(option: Option, text: str) -> Any:
    try:
        return option.read(text)
    except ValueError as error:
        raise ValueError(str(error), text) from None  # which of them it was
