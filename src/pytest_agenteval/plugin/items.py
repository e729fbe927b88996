"""What an item of ours is: its case, its model, its run, and the two ways it can go wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from _pytest.outcomes import Failed

    from pytest_agenteval.cases.model import Case
    from pytest_agenteval.engine.run import Run

    FailedType = Failed
else:
    FailedType = pytest.fail.Exception

RUN: pytest.StashKey[Run] = pytest.StashKey()
SESSION: pytest.StashKey[pytest.Session] = pytest.StashKey()
FOUND: pytest.StashKey[bool] = pytest.StashKey()


class CaseFailed(FailedType):
    """A case's answers are wrong; the text is the report."""

    __module__ = "builtins"


class CaseError(FailedType):
    """The machinery failed: the case is neither right nor wrong; the text says where and why."""

    __module__ = "builtins"


class AgentEvalWarning(pytest.PytestWarning):
    """Something in a case file that deserves a look but is no error."""

    __module__ = "pytest_agenteval"


def case_of(item: Any) -> Case | None:
    """The case behind an item (``None``: not one of ours)."""
    cases = getattr(getattr(item, "parent", None), "cases", None)
    return cases.get(getattr(item, "originalname", item.name)) if isinstance(cases, dict) else None


def model_of(item: pytest.Item) -> str | None:
    """The model an item runs with, as parametrized."""
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("agenteval_model") if callspec is not None else None


def our_items(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Those of ``items`` that are cases."""
    return [item for item in items if case_of(item) is not None]


def rerun_of(item: pytest.Item) -> int:
    """How often the item has been run before in this session (pytest-rerunfailures counts)."""
    return max(int(getattr(item, "execution_count", 1)) - 1, 0)


def has_cases(config: pytest.Config) -> bool:
    """Whether a case file was found by this process."""
    return FOUND in config.stash
