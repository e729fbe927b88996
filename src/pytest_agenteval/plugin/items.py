"""Items: their case and model, what is kept of them and of the session, and how they can fail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agenteval.support.files import shown_path

if TYPE_CHECKING:
    from _pytest.outcomes import Failed

    from pytest_agenteval.agents.runtime.call_pool import CallPool, PoolReport
    from pytest_agenteval.cases.discovery import ClaimRules
    from pytest_agenteval.cases.model import Case
    from pytest_agenteval.config.project_folder import ProjectFolder
    from pytest_agenteval.engine.case_runner import CaseRunner
    from pytest_agenteval.engine.run import Run
    from pytest_agenteval.plugin.signals import EndSignals

    FailedType = Failed
else:
    FailedType = pytest.fail.Exception

REPORT_KEY = "agenteval"
"""The attribute of a report that carries one JSON string to the controller."""
LINE_KEY = "agenteval_line"
"""The attribute of a report that holds its live line."""


@dataclass(slots=True)
class SessionState:
    """What this process keeps for the whole session.

    ``home`` is the folder of the project file; ``claims`` says which files are cases; ``notes`` are the
    lines to say at the end, by kind. ``left_alone`` are YAML files that were not taken for cases.
    ``overlapped``: calls did; ``serial_reason`` is the first reason why some could not. ``has_cases``:
    a case file was found. ``planned`` are the items that are to run. ``pool`` makes overlapping calls;
    ``calls`` says what became of them once it has ended. ``stderr`` is a copy of the descriptor, taken
    before pytest captures it. ``signals`` end the run as Ctrl-C does.
    """

    run: Run | None = None
    session: pytest.Session | None = None
    home: ProjectFolder | None = None
    claims: ClaimRules | None = None
    notes: dict[str, dict[str, None]] = field(default_factory=dict)
    left_alone: list[Path] = field(default_factory=list)
    overlapped: bool = False
    serial_reason: str | None = None
    has_cases: bool = False
    planned: Sequence[pytest.Item] = ()
    pool: CallPool | None = None
    calls: PoolReport | None = None
    stderr: int | None = None
    signals: EndSignals | None = None


@dataclass(slots=True)
class ItemState:
    """What is kept of one item.

    ``scalars`` wait for the item's report. ``unaware`` is the place of an agent that cannot know its
    model. ``gated_text`` is the failure's text where a gate decides. ``isolated`` are the URLs of the
    running attempt's own copies. ``early`` is the case runner whose calls began before the item did;
    ``reason_shown``: why they did not has been printed. ``callspec`` is pytest's own record of its
    parameters while the item does not show it.
    """

    scalars: dict[str, Any] | None = None
    unaware: str | None = None
    gated_text: str | None = None
    isolated: dict[str, str] = field(default_factory=dict)
    early: CaseRunner | None = None
    reason_shown: bool = False
    callspec: Any = None


_SESSION: pytest.StashKey[SessionState] = pytest.StashKey()
_ITEM: pytest.StashKey[ItemState] = pytest.StashKey()


def session_state(config: pytest.Config) -> SessionState:
    """Return the state of this process's session."""
    return config.stash.setdefault(_SESSION, SessionState())


def item_state(item: pytest.Item) -> ItemState:
    """Return the state of an item."""
    return item.stash.setdefault(_ITEM, ItemState())


class CaseFailed(FailedType):
    """A case's answers are wrong; the text is the report."""

    __module__ = "builtins"


class CaseError(FailedType):
    """The machinery failed: the case is neither right nor wrong; the text says where and why."""

    __module__ = "builtins"


class AgentEvalWarning(pytest.PytestWarning):
    """Something in a case file that deserves a look but is not an error."""

    __module__ = "pytest_agenteval"


def case_of(item: Any) -> Case | None:
    """Return the case behind an item (``None`` for an ordinary test)."""
    return _entry(item)[0]


def model_of(item: Any) -> str | None:
    """Return the model an item runs with (``provider:model``; ``None`` without one)."""
    model = _entry(item)[1]
    if model is not None:
        return model
    callspec = getattr(item, "callspec", None) or item_state(item).callspec
    return callspec.params.get("agenteval_model") if callspec is not None else None


def _entry(item: Any) -> tuple[Case | None, str | None]:
    cases = getattr(getattr(item, "parent", None), "cases", None)
    known = cases.get(getattr(item, "originalname", item.name)) if isinstance(cases, dict) else None
    return known if isinstance(known, tuple) else (None, None)


def fixture_definition(item: pytest.Item, name: str) -> tuple[str, str]:
    """Return where a fixture is defined (``conftest.py:12``) and its scope;
    ('', '') where pytest does not say.
    """
    info = getattr(item, "_fixtureinfo", None)
    definitions = getattr(info, "name2fixturedefs", {}).get(name)
    if not definitions:
        return "", ""
    function = getattr(definitions[-1], "func", None)
    code = getattr(function, "__code__", None)
    place = ""
    if code is not None:
        root = item.config.rootpath
        place = f"{shown_path(root / code.co_filename, root)}:{code.co_firstlineno}"
    return place, str(getattr(definitions[-1], "scope", ""))


def our_items(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return those of ``items`` that are cases."""
    return [item for item in items if case_of(item) is not None]


def rerun_of(item: pytest.Item) -> int:
    """Return how often the item has been run before in this session (pytest-rerunfailures counts)."""
    return max(int(getattr(item, "execution_count", 1)) - 1, 0)


def has_cases(config: pytest.Config) -> bool:
    """Return whether this process has found a case file."""
    return session_state(config).has_cases
