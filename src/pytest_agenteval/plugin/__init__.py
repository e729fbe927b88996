"""pytest hooks, a line or two each; the logic lives in the modules they call.

Loaded in every pytest run of an environment that has this package installed: it imports nothing
heavy, and everything about cases is imported when the first case file turns up.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from pytest_agenteval.plugin.controller import ControllerPlugin
from pytest_agenteval.plugin.items import case_of, has_cases, model_of, session_state
from pytest_agenteval.plugin.notes import send_notes
from pytest_agenteval.plugin.options import add_options, check_settings, close_run, given, stderr_descriptor
from pytest_agenteval.plugin.warning_masks import WarningMasks


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--agent-…`` and ``agenteval_…``."""
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add our hooks."""
    from pytest_agenteval.plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Refuse bad values before anything is collected."""
    config.addinivalue_line("markers", "agenteval: a YAML case that tests a data agent")
    session_state(config).stderr = stderr_descriptor(config)
    if given(config, "dry_run"):
        config.option.collectonly = True
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(ControllerPlugin(config), "agenteval-live")
    config.pluginmanager.register(WarningMasks(config), "agenteval-warnings")
    check_settings(config)


@pytest.fixture
def agenteval_model(request: pytest.FixtureRequest) -> str | None:
    """Give the model this case runs with (``provider:model``)."""
    return model_of(request.node)


@pytest.fixture
def agenteval_isolated_databases(request: pytest.FixtureRequest) -> Any:
    """Return URLs of this attempt's own copies of the data, by database name (cases with ``isolate``)."""
    from pytest_agenteval.plugin.runtest import isolated_databases

    return isolated_databases(request.node)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Claim files of cases."""
    if file_path.suffix.lower() not in (".yml", ".yaml"):
        return None
    from pytest_agenteval.plugin.collection import collect_file

    return collect_file(file_path, parent)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one item per model where a fixture of the case is parametrized, too."""
    if "agenteval_model" in metafunc.fixturenames:
        from pytest_agenteval.plugin.collection import parametrize_models

        parametrize_models(metafunc)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Select cases, skip those not asked for, hold all back after a broken case file."""
    run = session_state(config).run
    if run is not None and run.context.settings.validate:
        from pytest_agenteval.plugin.governance_items import add_findings

        add_findings(session, items)
    if has_cases(config) or given(config, "select"):
        from pytest_agenteval.plugin.selection import choose_items

        choose_items(session, config, items)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Remember what is to run, after every other plugin has chosen."""
    if has_cases(session.config):
        from pytest_agenteval.plugin.planning import plan

        plan(session)
    elif session_state(session.config).left_alone:
        from pytest_agenteval.plugin.collection import note_elsewhere

        note_elsewhere(session.config)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give the reports of cases their outcome and their scalars."""
    report = yield
    if case_of(item) is not None:
        from pytest_agenteval.plugin.runtest import finish_report

        finish_report(item, call, report)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the controller what a worker has noticed."""
    if has_cases(session.config):
        from pytest_agenteval.plugin.prefetch import note_serial

        note_serial(session.config)
    send_notes(session.config)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """End what the run has started."""
    abandoned: tuple[str, ...] = ()
    if has_cases(config):
        from pytest_agenteval.plugin.prefetch import end_calls

        report = end_calls(config)
        abandoned = report.abandoned if report is not None else ()
    close_run(config, abandoned)
