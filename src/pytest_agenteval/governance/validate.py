"""Is the governance configuration consistent? What ``agenteval validate`` finds, as problems with places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_agenteval.checks.sql.names import has_column, listed, same_table, split_column
from pytest_agenteval.errors import Problem
from pytest_agenteval.governance.files import (
    BUNDLES,
    MEASURES,
    POLICY,
    Bundle,
    Governance,
    Measure,
    SemanticModel,
    load_governance,
)
from pytest_agenteval.governance.named_things import columns_in, expected_names
from pytest_agenteval.governance.section import FileSection
from pytest_agenteval.support.text import did_you_mean

Schemas = Mapping[str, Mapping[str, Sequence[str]]]
"""Column names by table, by database; only databases that could be asked."""


@dataclass(frozen=True, slots=True)
class Validation:
    """What was found, errors first within a file; the files read are ``files``."""

    problems: tuple[Problem, ...]
    files: tuple[Path, ...]

    @property
    def errors(self) -> int:
        """How many findings are errors."""
        return sum(problem.severity == "error" for problem in self.problems)


def validate(
    root: Path, databases: Iterable[str] | None = None, schemas: Schemas | None = None
) -> Validation:
    """Return all findings about the governance files below ``root``, by file and line.

    ``databases`` are the configured connection names (``None``: not known, ``database_id`` is not
    judged). With ``schemas`` tables and columns are looked up.
    """
    governance = load_governance(root)
    known = None if databases is None else list(databases)
    found = [
        *governance.problems,
        *_cases(governance),
        *_missing_files(governance),
        *_bundles(governance, known),
        *_policy(governance),
        *_models(governance),
        *expected_names(governance),
        *_in_databases(governance, schemas or {}),
    ]
    unique = sorted(set(found), key=lambda p: (p.path, p.line, p.column, p.text))
    sections = [governance.policy.section] if governance.policy is not None else []
    files = [s.reader.path for s in sections if s is not None]
    files += [bundle.section.reader.path for bundle in governance.bundles]
    files += [governance.rules_file.reader.path] if governance.rules_file is not None else []
    files += sorted({model.section.reader.path for model in governance.models.values()})
    return Validation(tuple(unique), tuple(files))


def _at(section: FileSection, key: str | None, text: str) -> Problem:
    """Return a problem at a key of a section (or at the section, or at the top of its file)."""
    return section.problem(key, text)


def _warn(section: FileSection, key: str | None, text: str) -> Problem:
    return section.problem(key, text, "warning")


def _missing_files(governance: Governance) -> Iterator[Problem]:
    root = governance.root
    if not governance.bundles:
        yield Problem(root / "datasets", 1, 1, f"no bundle: there is no {BUNDLES}", "warning")
    if governance.policy is None:
        yield Problem(root / POLICY, 1, 1, "no policy: dazense's defaults apply", "warning")


def _cases(governance: Governance) -> Iterator[Problem]:
    """Yield what is wrong with the cases of the bundles, as pytest says it when it collects them."""
    from pytest_agenteval.cases.discovery import FileClaim
    from pytest_agenteval.cases.loader import load_cases
    from pytest_agenteval.checks.registry import default_registry

    broken = {problem.path for problem in governance.problems}
    for bundle in governance.bundles:
        path = bundle.section.reader.path
        if path not in broken:
            yield from load_cases(path, checks=default_registry(), claim=FileClaim("dataset", True)).problems


def _bundles(governance: Governance, databases: list[str] | None) -> Iterator[Problem]:
    for bundle in governance.bundles:
        section = bundle.section
        if section.node is None:
            continue
        warehouse = section.section("warehouse")
        if bundle.database is not None and databases is not None and bundle.database not in databases:
            hint = did_you_mean(bundle.database, databases) if databases else "; no database is configured"
            yield _at(warehouse, "database_id", f"unknown database_id {bundle.database!r}{hint}")
        if not bundle.tables:
            yield _warn(section, "tables", f"bundle {bundle.id!r} has no tables")
        yield from _joins(bundle)
        defaults = section.section("defaults")
        for table in bundle.time_tables:
            if listed(table, bundle.time_columns) is None:
                text = f"{table} needs a time filter, but time_column_by_table does not name its time column"
                yield _at(defaults, "require_time_filter_for_tables", text)
        for table in (*bundle.time_columns, *bundle.time_tables):
            if bundle.tables and listed(table, bundle.tables) is None:
                text = f"{table} is not a table of bundle {bundle.id!r}{did_you_mean(table, bundle.tables)}"
                yield _warn(defaults, None, text)


def _joins(bundle: Bundle) -> Iterator[Problem]:
    for join in bundle.joins:
        for side, name in (("left", join.left), ("right", join.right)):
            table, _ = split_column(name)
            if listed(table, bundle.tables) is None:
                hint = did_you_mean(table, bundle.tables) if bundle.tables else ""
                yield _at(
                    join.section, side, f"join side {table} is not a table of bundle {bundle.id!r}{hint}"
                )


def _policy(governance: Governance) -> Iterator[Problem]:
    policy = governance.policy
    if policy is None or policy.section is None:
        return
    columns = policy.section.section("pii").section("columns")
    tables = [table for bundle in governance.bundles for table in bundle.tables]
    for table, names in policy.pii_columns.items():
        if not names:
            yield _warn(columns, table, f"PII entry {table} names no columns")
        if _all_read(governance) and listed(table, tables) is None:
            yield _warn(columns, table, f"PII table {table} is in no bundle")


def _models(governance: Governance) -> Iterator[Problem]:
    tables = [table for bundle in governance.bundles for table in bundle.tables]
    measures = 0
    for model in governance.models.values():
        measures += len(model.measures)
        if model.table is None:
            yield _at(model.section, None, f"model {model.name!r} has no table")
        elif _all_read(governance) and listed(model.table, tables) is None:
            yield _warn(
                model.section, "table", f"table {model.table} of model {model.name!r} is in no bundle"
            )
        for measure in model.measures:
            yield from _measure(model, measure)
        for join, target in model.joins.items():
            if target not in governance.models:
                hint = did_you_mean(target, governance.models) if target else ""
                place = model.section.section("joins").section(join)
                yield _at(place, "to_model", f"join {join!r} leads to an unknown model {target!r}{hint}")
        yield from _pii_dimensions(governance, model)
    if governance.models and not measures:
        first = next(iter(governance.models.values()))
        yield replace(_warn(first.section, None, "no model has a measure"), line=1, column=1)


def _all_read(governance: Governance) -> bool:
    """Return whether it is known what is in no bundle: there are bundles, and none is broken."""
    return bool(governance.bundles) and all(b.section.node is not None for b in governance.bundles)


def _measure(model: SemanticModel, measure: Measure) -> Iterator[Problem]:
    label = f"measure {model.name}.{measure.name}"
    if measure.type is None:
        yield _at(measure.section, None, f"{label} has no type; known: {', '.join(MEASURES)}")
    elif measure.type not in MEASURES:
        yield _at(
            measure.section,
            "type",
            f"{label} has an unknown type {measure.type!r}{did_you_mean(measure.type, MEASURES)}",
        )
    elif measure.type != "count" and measure.column is None:
        yield _at(measure.section, None, f"{label} has type {measure.type} and no column")


def _pii_dimensions(governance: Governance, model: SemanticModel) -> Iterator[Problem]:
    if model.table is None:
        return
    pii = [
        name for table, names in governance.pii.items() if same_table(table, model.table) for name in names
    ]
    dimensions = model.section.section("dimensions")
    for name, column in model.dimensions.items():
        if has_column(pii, column):
            text = f"PII column {model.table}.{column} is offered as the dimension {name!r}"
            yield _warn(dimensions, name, text)


def _in_databases(governance: Governance, schemas: Schemas) -> Iterator[Problem]:
    """Yield tables and columns that do not exist, where the database could be asked."""
    for bundle in governance.bundles:
        schema = _schema_of(bundle, schemas)
        if schema is not None:
            yield from _bundle_in(bundle, schema)
    merged = {table: columns for schema in schemas.values() for table, columns in schema.items()}
    if not merged:
        return
    yield from columns_in(governance, merged)
    if governance.policy is not None and governance.policy.section is not None:
        columns = governance.policy.section.section("pii").section("columns")
        for table, names in governance.policy.pii_columns.items():
            yield from _exists(columns, table, table, names, merged)
    for model in governance.models.values():
        if model.table is not None:
            yield from _exists(model.section, "table", model.table, (), merged)
            yield from _model_columns(model, merged)


def _schema_of(bundle: Bundle, schemas: Schemas) -> Mapping[str, Sequence[str]] | None:
    if bundle.database is not None:
        return schemas.get(bundle.database)
    return next(iter(schemas.values())) if len(schemas) == 1 else None


def _bundle_in(bundle: Bundle, schema: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    for entry in bundle.section.listed("tables"):
        name, owner = entry.text("table"), entry.text("schema")
        if name:
            yield from _exists(entry, "table", f"{owner}.{name}" if owner else name, (), schema)
    for join in bundle.joins:
        for side, name in (("left", join.left), ("right", join.right)):
            table, column = split_column(name)
            yield from _exists(join.section, side, table, (column,), schema)
    times = bundle.section.section("defaults").section("time_column_by_table")
    for table, column in bundle.time_columns.items():
        yield from _exists(times, table, table, (column,), schema)


def _model_columns(model: SemanticModel, schema: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    table = model.table or ""
    if listed(table, schema) is None:
        return
    for measure in model.measures:
        if measure.column is not None:
            yield from _exists(measure.section, "column", table, (measure.column,), schema)
    dimensions = model.section.section("dimensions")
    for name, column in model.dimensions.items():
        yield from _exists(dimensions, name, table, (column,), schema)
    if model.time_dimension is not None and model.time_dimension not in model.dimensions:
        yield from _exists(model.section, "time_dimension", table, (model.time_dimension,), schema)


def _exists(
    section: FileSection, key: str, table: str, columns: Sequence[str], schema: Mapping[str, Sequence[str]]
) -> Iterator[Problem]:
    known = listed(table, schema)
    if known is None:
        yield _at(section, key, f"table {table} does not exist{did_you_mean(table, schema)}")
        return
    for column in columns:
        if not has_column(schema[known], column):
            text = f"column {table}.{column} does not exist{did_you_mean(column, schema[known])}"
            yield _at(section, key, text)
