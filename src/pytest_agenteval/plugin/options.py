"""The option table as pytest options and ini keys, and back into ``Settings``."""

from __future__ import annotations

import functools
import itertools
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agenteval.config.options import OPTIONS, Option
from pytest_agenteval.config.project_folder import ProjectFolder, common_folder, project_folder
from pytest_agenteval.plugin.items import session_state

if TYPE_CHECKING:
    from pytest_agenteval.config.project_file import Project
    from pytest_agenteval.config.settings import Settings
    from pytest_agenteval.engine.process import Process
    from pytest_agenteval.engine.run import Run

_DEST = "agenteval_"


def add_options(parser: pytest.Parser) -> None:
    """Add every row of the table as ``--agent-…`` and ``agenteval_…``."""
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
    """Return what the command line gives, by attribute."""
    return {
        option.attribute: config.getoption(_DEST + option.attribute)
        for option in OPTIONS
        if "c" in option.places
    }


def read_settings(config: pytest.Config, project: Mapping[str, Any]) -> Settings:
    """Return the frozen settings of this process. Raises ``pytest.UsageError`` naming every bad value."""
    from pytest_agenteval.config.settings import resolve
    from pytest_agenteval.errors import SettingsError

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
    """Return what ``option`` takes, in the words of its own reader."""
    try:
        option.read("\0")
    except ValueError as error:
        return str(error)
    return "a list of texts" if option.many else "text"


def given(config: pytest.Config, attribute: str) -> Any:
    """Return what the command line gives for one option (``None``: nothing)."""
    return config.getoption(_DEST + attribute, None)


def check_settings(config: pytest.Config) -> None:
    """Refuse bad values before collection; where nothing of this plugin is set there is nothing to load."""
    if any(name.startswith("AGENTEVAL_") for name in os.environ) or speaks_of_us(config):
        run_of(config)


def speaks_of_us(config: pytest.Config) -> bool:
    """Return whether an option, an ini key or a project file of this plugin is there (spec/cases.md)."""
    return (
        any(value is not None for value in command_line(config).values())
        or any(_is_set(config, option) for option in OPTIONS if "i" in option.places)
        or home_of(config).file is not None
    )


def home_of(config: pytest.Config) -> ProjectFolder:
    """Return the folder of the project file that counts: nearest to what is collected, up to rootdir."""
    state = session_state(config)
    if state.home is None:
        sent = getattr(config, "workerinput", {}).get("agenteval")
        if sent is not None:
            start = config.rootpath / json.loads(sent)["home"]
        else:
            here = config.invocation_params.dir
            named = (os.path.abspath(here / word.partition("::")[0]) for word in config.args)
            start = common_folder(map(Path, named), here)
        state.home = project_folder(start, config.rootpath)
    return state.home


def _is_set(config: pytest.Config, option: Option) -> bool:
    try:
        return config.getini(option.ini) is not None
    except (TypeError, ValueError, pytest.UsageError):
        return True  # a bad value, refused by name when settings are read


def run_of(config: pytest.Config) -> Run:
    """Return this process's run, made when it is first asked for. Raises ``pytest.UsageError``."""
    state = session_state(config)
    if state.run is None:
        state.run = _new_run(config)
    return state.run


def _new_run(config: pytest.Config) -> Run:
    from pytest_agenteval.config.known_secrets import redactor_of
    from pytest_agenteval.config.project_file import find_project
    from pytest_agenteval.engine.context import RunContext
    from pytest_agenteval.engine.run import Run
    from pytest_agenteval.errors import AgentEvalError

    _check_root(config)
    try:
        project = find_project(home_of(config).path, root=config.rootpath)
    except AgentEvalError as error:
        raise pytest.UsageError(str(error)) from None
    settings = read_settings(config, project.settings)
    if settings.source("select") != "default" and not settings.select:
        raise pytest.UsageError("--agent-select names no case: nothing would be left out, and all be asked")
    _check_files(config, settings)
    _check_target(config, settings, project)
    _look_at_earlier_results(config, settings)
    return Run(
        RunContext(
            root=config.rootpath,
            settings=settings,
            project=project,
            process=_process(config, settings),
            redactor=redactor_of(project, settings),
            register=lambda registry: config.hook.pytest_agenteval_register(registry=registry),
            speaks=speaks_of_us(config),
        ),
        on_stuck=functools.partial(leave_stuck, config),
        report=session_state(config).stderr,
    )


def stderr_descriptor(config: pytest.Config) -> int | None:
    """Return a copy of stderr's descriptor; ``None`` where pytest's own ``faulthandler_timeout`` is set.

    ``faulthandler`` has a single timer.
    """
    if float(config.getini("faulthandler_timeout") or 0):
        return None
    try:
        return os.dup(2)
    except OSError:  # a process without stderr
        return None


def leave_stuck(config: pytest.Config, key: str) -> None:
    """End the process: a call blocks its main thread and cannot be interrupted."""
    from pytest_agenteval.plugin.session_end import end_stuck_process

    end_stuck_process(config, key)


def _check_root(config: pytest.Config) -> None:
    """Refuse an option's file that pytest took for one to collect: it looks for its ini file there.

    pytest reads ``--agent-output DIR`` as an option it does not know yet and a path, so that a DIR
    outside the project moves the rootdir, and ini file, databases and results with it.
    """
    start, root, ini = config.invocation_params.dir, config.rootpath, config.inipath
    moved = not start.is_relative_to(ini.parent) if ini is not None else root != start
    if not moved or config.getoption("rootdir", None) or (root / "setup.py").is_file():
        return
    paths = {option.cli for option in OPTIONS if option.metavar in ("FILE", "DIR", "PATH")}
    words = [str(word) for word in config.invocation_params.args]
    for name, value in itertools.pairwise(words):
        place = start / value
        if name in paths and place.exists() and not place.is_relative_to(start):
            raise pytest.UsageError(
                f"{name} {value} has made pytest take {root} for its rootdir, and {ini or 'no ini file'}; "
                f"write {name}={value} (or give --rootdir)"
            )


def _check_files(config: pytest.Config, settings: Settings) -> None:
    """Look for files that are needed at the end before anything is paid for."""
    from pytest_agenteval.errors import AgentEvalError
    from pytest_agenteval.reports.summary_files import check_summary_path
    from pytest_agenteval.results.analysis.gates import find_baseline

    named = {"--agent-record": settings.record, "--agent-html": settings.html}
    outputs = [(option, path) for option, path in named.items() if path is not None]
    outputs += [("--agent-summary", path) for path in settings.summary]
    if not hasattr(config, "workerinput"):
        _check_writable(config.rootpath, outputs)
    if not settings.summary and settings.baseline in (None, "last"):
        return
    try:
        for path in settings.summary:
            check_summary_path(path)
        if settings.baseline not in (None, "last"):
            find_baseline(settings.baseline, config.rootpath, config.rootpath)
    except AgentEvalError as error:
        raise pytest.UsageError(str(error)) from None


def _check_writable(root: Path, outputs: Sequence[tuple[str, str]]) -> None:
    """Refuse files that could not be written: a run would be paid for first."""
    from pytest_agenteval.support.files import why_not_writable

    for option, path in outputs:
        if (why := why_not_writable(root / path)) is not None:
            raise pytest.UsageError(f"{option} {path}: {why}")


def _check_target(config: pytest.Config, settings: Settings, project: Project) -> None:
    """Refuse a target that cannot work before anything is collected; the workers need not look again.

    What only lacks a program or a file here may be meant for another machine, unless it was asked for
    by this very command.
    """
    if settings.target is None or hasattr(config, "workerinput"):
        return
    from pytest_agenteval.agents.target_check import target_fault

    source, home = settings.source("target"), home_of(config).path
    fault = target_fault(settings.target, project, root=home, present=source == "command line")
    if fault is not None:
        key = "http" if fault.startswith("http") else "target"
        written = key in project.places and (key == "http" or source == "project")
        raise pytest.UsageError(project.fault(key, fault).render(config.rootpath) if written else fault)


def _look_at_earlier_results(config: pytest.Config, settings: Settings) -> None:
    """Keep, for the end of the run, which files that look like its last results cannot be read."""
    wanted = settings.resume or settings.changed or settings.dry_run or settings.baseline == "last"
    if wanted and not hasattr(config, "workerinput"):
        from pytest_agenteval.results.document.load import left_out
        from pytest_agenteval.results.journal.run_folder import output_folder

        live = config.pluginmanager.getplugin("agenteval-live")
        live.left_out = left_out(output_folder(config.rootpath, settings.output, home_of(config).path))


def _process(config: pytest.Config, settings: Settings) -> Process:
    """Return which process of which run this is."""
    from pytest_agenteval.engine.process import Process

    sent = getattr(config, "workerinput", {}).get("agenteval")
    if sent is None:
        live = config.pluginmanager.getplugin("agenteval-live")
        return Process("main", live.run_id, live.stamp, earlier=_earlier(config, settings))
    facts = json.loads(sent)
    token = Path(facts["token"])
    local = token.is_file() and token.read_text(encoding="ascii") == facts["run_id"]
    name: str = getattr(config, "workerinput")["workerid"]  # noqa: B009
    return Process(
        name, facts["run_id"], facts["stamp"], local=local, earlier=facts["earlier"], login=facts.get("login")
    )


def _earlier(config: pytest.Config, settings: Settings) -> str | None:
    """Return the run that ``--agent-resume`` or ``--agent-resume-from`` goes on with."""
    from pytest_agenteval.errors import ResultsError
    from pytest_agenteval.results.journal.resume import find_earlier
    from pytest_agenteval.results.journal.run_folder import RunHeld, check_not_resumed, output_folder

    root = config.rootpath
    if not settings.resume and settings.resume_from is None:
        return None
    output = output_folder(root, settings.output, home_of(config).path)
    try:
        # it is read here, before a case is asked; each process reads it once more when it is needed
        earlier = find_earlier(settings.resume_from, output, root)
        place = str(earlier.path.resolve())
        if earlier.folder is not None:
            earlier.folder.check_free()
        else:
            check_not_resumed(output, place)
        return place
    except (ResultsError, RunHeld) as error:
        option = "--agent-resume" if settings.resume_from is None else "--agent-resume-from"
        text = str(error)
        raise pytest.UsageError(text if text.startswith(option) else f"{option}: {text}") from None


def close_run(config: pytest.Config, abandoned: tuple[str, ...] = ()) -> None:
    """End what the run of this process has started; what cannot be ended may not delay its exit."""
    state = session_state(config)
    if state.signals is not None:
        state.signals.restore()
    if state.run is not None:
        abandoned += state.run.close()
        state.run = None
    if state.stderr is not None and not abandoned:
        os.close(state.stderr)
        state.stderr = None
    session = state.session
    if abandoned and session is not None:
        from pytest_agenteval.agents.runtime.call_pool import leave_hard_at_exit

        leave_hard_at_exit(lambda: int(session.exitstatus))
