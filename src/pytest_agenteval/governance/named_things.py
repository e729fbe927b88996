"""Do the names that governance files use exist: measures and rules of cases, columns of rules and joins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_agenteval.checks.sql.names import has_column, listed
from pytest_agenteval.errors import Problem
from pytest_agenteval.governance.files import Governance, SemanticModel
from pytest_agenteval.governance.section import FileSection
from pytest_agenteval.support.text import closest, did_you_mean

TOOLS = ("query_metrics", "execute_sql", "build_contract")
"""dazense's own tools; a name that is nearly one of them is a slip."""
Schema = Mapping[str, Sequence[str]]


def expected_names(governance: Governance) -> Iterator[Problem]:
    """Yield names in the expectations of cases that no other file knows."""
    for bundle in governance.bundles:
        for entry in bundle.section.listed("eval_test_cases"):
            expected = entry.section("expected")
            yield from _metric(governance, expected)
            tool = expected.text("tool")
            if tool is not None and tool not in TOOLS and (near := closest(tool, TOOLS, 0.8)):
                yield expected.problem("tool", f"unknown tool {tool!r}, did you mean {near!r}?")
            for rule in expected.texts("guidance_rules_include"):
                if governance.rules_file is not None and rule not in governance.rules:
                    text = f"unknown rule {rule!r}{did_you_mean(rule, governance.rules)}"
                    yield expected.problem("guidance_rules_include", text)


def _metric(governance: Governance, expected: FileSection) -> Iterator[Problem]:
    name, measure = expected.text("model_name"), expected.text("measure")
    if name is None or not governance.models:
        return
    model = governance.models.get(name)
    if model is None:
        text = f"unknown model_name {name!r}{did_you_mean(name, governance.models)}"
        yield expected.problem("model_name", text)
    elif measure is not None and measure not in (known := [entry.name for entry in model.measures]):
        text = f"model {name!r} has no measure {measure!r}{did_you_mean(measure, known)}"
        yield expected.problem("measure", text)


def columns_in(governance: Governance, schema: Schema) -> Iterator[Problem]:
    """Yield columns of classifications, filters and joins that no table of the databases has."""
    if governance.rules_file is not None:
        for entry in governance.rules_file.listed("classifications"):
            for name in entry.texts("columns"):
                table, _, column = name.rpartition(".")
                if table:
                    yield from _exists(entry, "columns", table, [column], schema)
    for model in governance.models.values():
        if model.table is not None:
            yield from _of_model(governance, model, model.table, schema)


def _of_model(governance: Governance, model: SemanticModel, table: str, schema: Schema) -> Iterator[Problem]:
    for measure in model.measures:
        for entry in measure.section.listed("filters"):
            yield from _exists(entry, "column", table, _given(entry, "column"), schema)
    for name, target in model.joins.items():
        join = model.section.section("joins").section(name)
        yield from _exists(join, "foreign_key", table, _given(join, "foreign_key"), schema)
        other = governance.models[target].table if target in governance.models else None
        if other is not None:
            yield from _exists(join, "related_key", other, _given(join, "related_key"), schema)


def _given(section: FileSection, key: str) -> list[str]:
    value = section.text(key)
    return [] if value is None else [value]


def _exists(
    section: FileSection, key: str, table: str, columns: Iterable[str], schema: Schema
) -> Iterator[Problem]:
    known = listed(table, schema)
    for column in columns:
        if known is None:
            yield section.problem(key, f"table {table} does not exist{did_you_mean(table, schema)}")
        elif not has_column(schema[known], column):
            hint = did_you_mean(column, schema[known])
            yield section.problem(key, f"column {table}.{column} does not exist{hint}")
