"""The python check: a function that the user wrote, given the evidence."""

from __future__ import annotations

import inspect
import math
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from pytest_agenteval.checks.base import Check
from pytest_agenteval.errors import CheckFailed, SettingsError
from pytest_agenteval.types import CheckResult, Evidence, Services


def _reference(value: str) -> str:
    if not re.fullmatch(r"[^\W\d][\w.]*:[^\W\d][\w.]*", value):
        raise ValueError("should be written `pkg.mod:function`")
    return value


Reference = Annotated[str, AfterValidator(_reference)]


class PythonCheck(Check):
    """A function of yours: it gets ``evidence`` and returns a bool, a score or nothing."""

    type: Literal["python"] = "python"
    call: Reference = Field(
        description="`pkg.mod:fn`, rootdir first on sys.path; returns a bool, a score 0..1, "
        "or None (an assertion raised in it fails the check)"
    )
    min_score: Annotated[float, Field(gt=0, le=1)] = Field(default=0.5, description="score that passes")

    def prepare(self, services: Services) -> None:
        """Find the function. Raises ``CheckFailed`` when it is not there."""
        self._resolve(services)

    def check(self, evidence: Evidence) -> CheckResult:
        """Call the function. Raises ``CheckFailed`` when it is not there, crashes or returns nonsense."""
        if evidence.services is None:
            raise CheckFailed(f"python: {self.call} cannot be resolved here")
        function = self._resolve(evidence.services)
        try:
            returned = function(evidence)
        except AssertionError as error:
            said = str(error).split("\n", 1)[0] or "an assertion failed"
            return self.result(False, f"python: {self.call}: {said}")
        except Exception as error:
            raise CheckFailed(f"python: {self.call} raised {type(error).__name__}: {error}") from error
        return self._judge(returned)

    def _resolve(self, services: Services) -> Any:
        try:
            function = services.resolve(self.call)
        except SettingsError as error:
            raise CheckFailed(f"python: {error}") from error
        except (ImportError, AttributeError) as error:
            raise CheckFailed(f"python: {self.call} is not there: {error}") from error
        except Exception as error:
            cause = f"{type(error).__name__}: {error}"
            raise CheckFailed(f"python: {self.call} cannot be imported: {cause}") from error
        if not callable(function):
            raise CheckFailed(f"python: {self.call} is a {type(function).__name__}, expected a function")
        return function

    def _judge(self, returned: Any) -> CheckResult:
        if returned is None or returned is True:
            return self.result(True, f"python: {self.call}")
        if returned is False:
            return self.result(False, f"python: {self.call} returned False")
        if inspect.iscoroutine(returned):
            returned.close()
            raise CheckFailed(f"python: {self.call} is async; give a plain function")
        score = _score(returned)
        if score is None:
            raise CheckFailed(
                f"python: {self.call} returned {returned!r}, expected a bool, a score 0..1, or None"
            )
        passed = score >= self.min_score
        why = f"python: {self.call} scored {score:.2f}"
        return self.result(passed, why if passed else f"{why}, need >= {self.min_score:g}", score=score)


def _score(returned: Any) -> float | None:
    """Return a number from 0 to 1 (NumPy's too); its bool is 0 or 1."""
    try:
        score = float(returned)
    except (TypeError, ValueError):
        return None
    if isinstance(returned, str) or math.isnan(score) or not 0 <= score <= 1:
        return None
    return score
