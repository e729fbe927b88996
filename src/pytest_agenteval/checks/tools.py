"""Checks of tool calls: made, not made, in which order, and which asked a person."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from pytest_agenteval.checks.base import Check, Text, Texts, ordered_bounds
from pytest_agenteval.checks.tool_arguments import ArgsMode, args_match, arguments, bad_patterns
from pytest_agenteval.support.text import cut_line
from pytest_agenteval.types import CheckResult, Evidence, ToolCall

Args = dict[str, Any]
_ARGS_HELP = "arguments the call must have; omit it to match any call"
_MODE_HELP = (
    "`subset`: these and perhaps others, recursively, lists equal; `exact`: these and no others; "
    "`regex`: like subset, texts are patterns searched in the argument"
)


class _ArgsCheck(Check):
    tool: Text = Field(description="the tool's name, exact")
    args: Args | None = Field(default=None, description=_ARGS_HELP)
    args_mode: ArgsMode = Field(default="subset", description=_MODE_HELP)

    @model_validator(mode="after")
    def _args_say_something(self) -> Self:
        if self.args == {}:
            raise ValueError("'args' must not be empty; omit 'args' to match any call to the tool")
        if self.args is None and "args_mode" in self.model_fields_set:
            raise ValueError("'args_mode' without 'args' means nothing: give args, or leave it out")
        broken = bad_patterns(self.args) if self.args_mode == "regex" else []
        if broken:
            raise ValueError(f"args: {broken[0]}")
        return self

    def _named(self, evidence: Evidence) -> list[ToolCall]:
        return [call for call in evidence.tool_calls if call.name == self.tool]

    def _matching(self, evidence: Evidence) -> list[ToolCall]:
        named = self._named(evidence)
        if self.args is None:
            return named
        return [call for call in named if args_match(self.args, call, self.args_mode)]


class ToolCallCheck(_ArgsCheck):
    """The tool was called, often enough and not too often, with these arguments."""

    type: Literal["tool_call"] = "tool_call"
    min_count: Annotated[int, Field(ge=0)] = Field(default=1, description="at least so many matching calls")
    max_count: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="at most so many matching calls"
    )
    status: Literal["ok", "error", "any"] = Field(
        default="any", description="count only calls that worked (`ok`) or failed (`error`)"
    )

    @model_validator(mode="after")
    def _counts_agree(self) -> Self:
        if self.min_count == 0 and self.max_count is None:
            raise ValueError("min_count 0 without max_count checks nothing")
        ordered_bounds(self.min_count, self.max_count, ("min_count", "max_count"))
        return self

    def check(self, evidence: Evidence) -> CheckResult:
        """Count the matching calls; the words are nao's."""
        found = [
            call for call in self._matching(evidence) if self.status == "any" or call.status == self.status
        ]
        if len(found) < self.min_count:
            return self.result(False, self._missing(len(found), len(self._named(evidence))))
        if self.max_count is not None and len(found) > self.max_count:
            why = (
                f"tool_call: {self.tool}{self._with_args()} (found {len(found)}, allowed <= {self.max_count})"
            )
            return self.result(False, why)
        return self.result(True, self._present(len(found)))

    def _with_args(self) -> str:
        shown = f" with args {self.args}" if self.args is not None else ""
        return shown if self.status == "any" else f"{shown} with status {self.status}"

    def _missing(self, found: int, total: int) -> str:
        text = f"missing tool_call: {self.tool}{self._with_args()}"
        if self.args is not None or self.status != "any":
            if total:
                text += f" (found {found} matching, need >= {self.min_count}; {total} total)"
        elif self.min_count > 1:
            text += f" (found {found}, need >= {self.min_count})"
        return text

    def _present(self, found: int) -> str:
        parts = [f"x{found}"]
        if self.min_count > 1:
            parts.append(f"min {self.min_count}")
        if self.max_count is not None:
            parts.append(f"max {self.max_count}")
        if self.args is not None:
            parts.append("args matched")
        if self.status != "any":
            parts.append(f"status {self.status}")
        return f"tool_call: {self.tool}" + (f" ({', '.join(parts)})" if parts[1:] else "")


class NoToolCallCheck(_ArgsCheck):
    """The tool was not called (with these arguments), whether or not the call worked."""

    type: Literal["no_tool_call"] = "no_tool_call"

    def check(self, evidence: Evidence) -> CheckResult:
        """Fail on the first matching call and show it."""
        found = self._matching(evidence)
        if not found:
            return self.result(True, f"no tool_call: {self.tool}")
        times = f" (x{len(found)})" if found[1:] else ""
        shown = cut_line(str(arguments(found[0])), 200)
        return self.result(False, f"forbidden tool_call: {self.tool}{times} with args {shown}")


class ToolOrderCheck(Check):
    """The tools were called in this order."""

    type: Literal["tool_order"] = "tool_order"
    tools: Texts = Field(description="tool names, in order")
    mode: Literal["subsequence", "exact"] = Field(
        default="subsequence",
        description="`subsequence`: others may be called between; `exact`: these calls and no others",
    )

    def check(self, evidence: Evidence) -> CheckResult:
        """Compare with the calls in the order they were made."""
        made, wanted = list(evidence.called), " > ".join(self.tools)
        if self.mode == "exact":
            if tuple(made) == self.tools:
                return self.result(True, f"tool_order: {wanted}")
            return self.result(False, f"tool_order: called {_path(made)}, expected exactly {wanted}")
        missing = _first_missing(self.tools, made)
        if missing is None:
            return self.result(True, f"tool_order: {wanted}")
        before = f" after {self.tools[missing - 1]}" if missing else ""
        why = f"tool_order: no {self.tools[missing]}{before}; called {_path(made)}, expected {wanted}"
        return self.result(False, why)


class AskedCheck(Check):
    """These tools asked a person before they went ahead (they are refused unless approved)."""

    type: Literal["asked"] = "asked"
    tools: Texts = Field(description="names of tools that must have asked")

    def check(self, evidence: Evidence) -> CheckResult:
        """Return every named tool asked; what came of it is said."""
        missing = [tool for tool in self.tools if tool not in evidence.asked]
        if missing:
            asked = ", ".join(dict.fromkeys(evidence.asked)) or "no tool"
            return self.result(False, f"asked: {', '.join(missing)} did not ask a person ({asked} asked)")
        return self.result(True, f"asked: {', '.join(self.tools)}{_approval(self.tools, evidence)}")


def _approval(tools: tuple[str, ...], evidence: Evidence) -> str:
    words = {True: "approved", False: "refused", None: "unanswered"}
    calls = [call for call in evidence.tool_calls if call.asked and call.name in tools]
    said = list(dict.fromkeys(words[call.approved] for call in calls))
    return f" ({', '.join(said)})" if said else ""


def _first_missing(wanted: tuple[str, ...], made: list[str]) -> int | None:
    """Return the first wanted tool that does not follow those before it; ``None``: all do."""
    at = 0
    for name in made:
        if at < len(wanted) and name == wanted[at]:
            at += 1
    return None if at == len(wanted) else at


def _path(made: list[str]) -> str:
    return cut_line(" > ".join(made), 200) or "nothing"
