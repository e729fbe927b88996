"""The text check: what the answer's prose says, and whether its numbers come from somewhere."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from pytest_agenteval.checks.base import Check, Phrases, require_one
from pytest_agenteval.support.patterns import found
from pytest_agenteval.types import CheckResult, Evidence


class TextCheck(Check):
    """What the answer's text says. With several fields all of them must hold."""

    type: Literal["text"] = "text"
    contains: Phrases | None = Field(default=None, description="texts that must all occur")
    contains_any: Phrases | None = Field(default=None, description="texts of which one must occur")
    not_contains: Phrases | None = Field(default=None, description="texts that must not occur")
    pattern: str | None = Field(
        default=None, min_length=1, description="a regular expression to be found (`re.search`)"
    )
    ignore_case: bool = Field(default=True, description="upper and lower case are the same, also in pattern")
    grounded: bool = Field(
        default=False,
        description="every number of the text is in the rows, in the question, or a count of rows",
    )

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from None
        if value and all(found(value, text, 0) for text in ("", "a", "\0\n")):
            raise ValueError(f"{value!r} matches every text: it would check nothing")
        return value

    @field_validator("contains", "contains_any")
    @classmethod
    def _is_no_blank(cls, value: Phrases | None) -> Phrases | None:
        if value is not None and not all(entry.strip() for entry in value):
            raise ValueError("a blank stands in nearly every text: it would check nothing")
        return value

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        require_one(self, "contains", "contains_any", "not_contains", "pattern", "grounded")
        asked = (self.contains, self.contains_any, self.not_contains, self.pattern)
        if not self.grounded and all(value is None for value in asked):
            raise ValueError("text checks nothing: grounded is false and nothing else is given")
        both = set(self.contains or ()) & set(self.not_contains or ())
        if both:
            raise ValueError(f"{sorted(both)[0]!r} stands in both contains and not_contains")
        return self

    def check(self, evidence: Evidence) -> CheckResult:
        """Name every fault; the text itself stands in the result. Raises ``PatternTooSlow``."""
        text = self._fold(evidence.text)
        faults = [f"{entry!r} is missing" for entry in self.contains or () if self._fold(entry) not in text]
        if self.contains_any and not any(self._fold(entry) in text for entry in self.contains_any):
            faults.append(f"none of {', '.join(map(repr, self.contains_any))} occurs")
        faults += [f"{entry!r} occurs" for entry in self.not_contains or () if self._fold(entry) in text]
        if self.pattern is not None:
            flags = re.IGNORECASE if self.ignore_case else 0
            if not found(self.pattern, evidence.text, flags):
                faults.append(f"pattern `{self.pattern}` is not found")
        if self.grounded:
            faults += _ungrounded(evidence)
        return self.result(not faults, f"text: {'; '.join(faults)}" if faults else "text: ok")

    def _fold(self, text: str) -> str:
        text = re.sub(r"\s+", " ", unicodedata.normalize("NFC", text))
        return text.casefold() if self.ignore_case else text


def _ungrounded(evidence: Evidence) -> list[str]:
    from pytest_agenteval.checks.grounding import ungrounded

    found = list(dict.fromkeys(ungrounded(evidence)))
    if not found:
        return []
    more = f" and {len(found) - 5} more" if found[5:] else ""
    be = "are" if found[1:] else "is"
    return [f"{', '.join(found[:5])}{more} {be} neither in the rows nor in the question"]
