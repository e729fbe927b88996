"""The chart check: what the agent asked its chart tool to draw."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from pytest_agenteval.checks.base import Check, Text, Texts, require_one
from pytest_agenteval.checks.tool_arguments import arguments
from pytest_agenteval.types import CheckResult, Evidence, ToolCall

_KIND = ("chart_type", "charttype", "type", "kind")
_X = ("x", "x_axis_key", "xaxiskey", "x_axis", "xaxis", "x_key", "x_field", "xfield")
_Y = ("y", "y_axis_key", "yaxiskey", "y_axis", "yaxis", "y_key", "y_field", "yfield", "series")
_COLUMN = ("data_key", "datakey", "field", "key", "column", "name", "y")


class ChartCheck(Check):
    """A chart was drawn, of this type and with these columns."""

    type: Literal["chart"] = "chart"
    chart_type: Text | None = Field(default=None, description="`bar`, `line`, ...: as the tool names it")
    x: Text | None = Field(default=None, description="column along x")
    y: Texts | None = Field(default=None, description="columns drawn along y; others may be there too")
    tool: Text = Field(default="display_chart", description="the chart tool's name")

    @model_validator(mode="after")
    def _asks_something(self) -> Self:
        require_one(self, "chart_type", "x", "y", "tool")
        return self

    def check(self, evidence: Evidence) -> CheckResult:
        """Return one call of the tool that worked must have all of it;
        else the last one's faults are shown.
        """
        calls = [call for call in evidence.tool_calls if call.name == self.tool]
        drawn = [call for call in calls if call.status == "ok"]
        if not drawn:
            failed = f" ({len(calls)} failed)" if calls else ""
            return self.result(False, f"chart: {self.tool} was not called{failed}")
        faults: list[str] = []
        for call in drawn:
            faults = self._faults(call)
            if not faults:
                return self.result(True, f"chart: {self.chart_type or self.tool}")
        return self.result(False, f"chart: {'; '.join(faults)}")

    def _faults(self, call: ToolCall) -> list[str]:
        args = {str(key).lower(): value for key, value in _pairs(arguments(call))}
        faults = []
        kind = next((args[key] for key in _KIND if key in args), None)
        if self.chart_type is not None and not _same(kind, self.chart_type):
            faults.append(f"type {kind}, expected {self.chart_type}")
        x = list(_columns([args[key] for key in _X if key in args]))
        if self.x is not None and not any(_same(entry, self.x) for entry in x):
            faults.append(f"x {', '.join(x) or 'none'}, expected {self.x}")
        y = list(_columns([args[key] for key in _Y if key in args]))
        missing = [name for name in self.y or () if not any(_same(entry, name) for entry in y)]
        if missing:
            faults.append(f"y {', '.join(y) or 'none'}, expected {', '.join(missing)}")
        return faults


def _same(a: Any, b: str) -> bool:
    return isinstance(a, str) and a.casefold() == b.casefold()


def _pairs(args: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the arguments, those of nested maps (``options``, ``config``) too; outer ones win."""
    if not isinstance(args, Mapping):
        return
    for value in args.values():
        if isinstance(value, Mapping):
            yield from _pairs(value)
    yield from args.items()


def _columns(values: Iterable[Any]) -> Iterator[str]:
    """Yield column names in texts, lists, and maps such as ``{data_key: revenue}``."""
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | tuple):
            yield from _columns(value)
        elif isinstance(value, Mapping):
            folded = {str(key).lower(): entry for key, entry in value.items()}
            yield from _columns([next((folded[key] for key in _COLUMN if key in folded), None)])
