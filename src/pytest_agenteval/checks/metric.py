"""The metric check: the number came from the governed metric of a semantic layer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from pytest_agenteval.checks.base import Check, Text, _as_list
from pytest_agenteval.checks.tool_arguments import arguments
from pytest_agenteval.support.text import cut_line
from pytest_agenteval.types import CheckResult, Evidence, ToolCall


def _metric(value: str) -> str:
    if not re.fullmatch(r"[^\s.]+(\.[^\s.]+)+", value):
        raise ValueError("should be written `model.measure`")
    return value


Metric = Annotated[str, AfterValidator(_metric)]
Metrics = Annotated[
    tuple[Metric, ...], BeforeValidator(_as_list, json_schema_input_type=str | list[str]), Field(min_length=1)
]
_MODEL = ("model_name", "modelname", "model", "explore")
_MEASURES = ("measures", "measure", "metrics", "metric")


class MetricCheck(Check):
    """These metrics were asked of the semantic layer, and the calls worked."""

    type: Literal["metric"] = "metric"
    metrics: Metrics = Field(description="`model.measure`, one or a list: all must have been asked for")
    tool: Text = Field(default="query_metrics", description="the tool that asks the semantic layer")
    forbid_raw_sql: bool = Field(default=False, description="no SQL statement may have been executed")

    def check(self, evidence: Evidence) -> CheckResult:
        """Look at the calls that worked; statements are those really executed."""
        calls = [call for call in evidence.tool_calls if call.name == self.tool and call.status == "ok"]
        asked = list(dict.fromkeys(metric for call in calls for metric in asked_metrics(call)))
        faults = []
        missing = [name for name in self.metrics if not _in(name, asked)]
        if missing:
            shown = f"{self.tool} was asked for {', '.join(asked)}" if asked else f"{self.tool} was not asked"
            faults.append(f"{', '.join(missing)} not used ({shown})")
        if self.forbid_raw_sql and evidence.statements:
            count = len(evidence.statements)
            faults.append(f"raw SQL was executed (x{count}): {cut_line(evidence.statements[0].sql, 80)}")
        why = "; ".join(faults) or ", ".join(self.metrics)
        return self.result(not faults, f"metric: {why}")


def _in(name: str, asked: list[str]) -> bool:
    """Return ``model.measure``, also where the layer says ``db.model.measure``; case does not matter."""
    wanted = name.casefold()
    return any(entry.casefold() == wanted or entry.casefold().endswith("." + wanted) for entry in asked)


def asked_metrics(call: ToolCall) -> Iterator[str]:
    """Yield the ``model.measure`` names a semantic-layer call asks for."""
    args = arguments(call)
    if not isinstance(args, Mapping):
        return
    folded = {str(key).lower(): value for key, value in args.items()}
    model = next((str(folded[key]) for key in _MODEL if folded.get(key)), None)
    for key in _MEASURES:
        for name in _names(folded.get(key)):
            yield name if model is None or "." in name else f"{model}.{name}"


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _names(value.get("name") or value.get("measure") or value.get("metric"))
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from _names(entry)
