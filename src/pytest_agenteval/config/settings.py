"""``Settings``: every option's value, frozen, from the four places an option may be given in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_agenteval.config.options import OPTIONS, Option
from pytest_agenteval.errors import SettingsError

_DEFAULT: Mapping[str, Any] = {option.attribute: option.default for option in OPTIONS}


@dataclass(frozen=True, slots=True)
class Settings:
    """Every option's value; without one, the default of the option table.

    A field per option, so that types are checked; a test compares the two. ``sources`` says per option
    where its value came from.
    """

    target: str | None = _DEFAULT["target"]
    model: tuple[str, ...] = _DEFAULT["model"]
    select: tuple[str, ...] = _DEFAULT["select"]
    raises_fail: bool = _DEFAULT["raises_fail"]
    strict: bool = _DEFAULT["strict"]
    run: str = _DEFAULT["run"]
    k: int | None = _DEFAULT["k"]
    timeout: float = _DEFAULT["timeout"]
    concurrency: int = _DEFAULT["concurrency"]
    retries: int = _DEFAULT["retries"]
    budget: float | None = _DEFAULT["budget"]
    extract: str = _DEFAULT["extract"]
    extract_model: str | None = _DEFAULT["extract_model"]
    judge_model: str | None = _DEFAULT["judge_model"]
    record: str | None = _DEFAULT["record"]
    replay_wrap: bool = _DEFAULT["replay_wrap"]
    label: str | None = _DEFAULT["label"]
    output: str | None = _DEFAULT["output"]
    file_mode: str = _DEFAULT["file_mode"]
    resume: bool = _DEFAULT["resume"]
    resume_from: str | None = _DEFAULT["resume_from"]
    dry_run: bool = _DEFAULT["dry_run"]
    changed: bool = _DEFAULT["changed"]
    fail_under: tuple[tuple[str, float], ...] = _DEFAULT["fail_under"]
    baseline: str | None = _DEFAULT["baseline"]
    baseline_test: str = _DEFAULT["baseline_test"]
    references: str = _DEFAULT["references"]
    unreviewed: str | None = _DEFAULT["unreviewed"]
    summary: tuple[str, ...] = _DEFAULT["summary"]
    html: str | None = _DEFAULT["html"]
    validate: bool = _DEFAULT["validate"]
    luck: str = _DEFAULT["luck"]
    cause: bool = _DEFAULT["cause"]
    files: tuple[str, ...] = _DEFAULT["files"]
    lint_ignore: tuple[str, ...] = _DEFAULT["lint_ignore"]
    require: tuple[str, ...] = _DEFAULT["require"]
    fixture: str = _DEFAULT["fixture"]
    databases: tuple[tuple[str, str], ...] = _DEFAULT["databases"]
    sql_tools: tuple[str, ...] = _DEFAULT["sql_tools"]
    trusted_modules: tuple[str, ...] = _DEFAULT["trusted_modules"]
    rerun: bool = _DEFAULT["rerun"]
    sql_timeout: float = _DEFAULT["sql_timeout"]
    sql_max_rows: int = _DEFAULT["sql_max_rows"]
    snapshot_limit: int = _DEFAULT["snapshot_limit"]
    thread: bool = _DEFAULT["thread"]
    constraints: tuple[str, ...] = _DEFAULT["constraints"]
    sources: Mapping[str, str] = field(default_factory=dict)

    def source(self, name: str) -> str:
        """Return where the option came from: command line, environment, ini, project or default."""
        return self.sources.get(name, "default")


def resolve(
    cli: Mapping[str, Any],
    environ: Mapping[str, str],
    ini: Mapping[str, Any],
    project: Mapping[str, Any],
) -> Settings:
    """Return settings from the four places, each keyed by ``Option.attribute`` (environment: by name).

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
    return Settings(**values, sources=sources)


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
