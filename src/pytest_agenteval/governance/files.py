"""The governance files of a project: policy, bundles, semantic model, business rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_agenteval.errors import CheckFailed, Problem
from pytest_agenteval.governance import file_keys as keys
from pytest_agenteval.governance.file_keys import check_keys
from pytest_agenteval.governance.section import FileSection, read_yaml
from pytest_agenteval.support.text import closest, did_you_mean

POLICY = "policies/policy.yml"
BUNDLES = "datasets/*/dataset.yaml"
SEMANTICS = "semantics/semantic_model.yml"
RULES = "semantics/business_rules.yml"
MEASURES = ("count", "count_distinct", "sum", "avg", "min", "max")


@dataclass(frozen=True, slots=True)
class Policy:
    """``policies/policy.yml``; the defaults are dazense's."""

    section: FileSection | None = None
    max_rows: int = 200
    max_preview_rows: int = 20
    require_limit: bool = True
    require_time_filter: bool = True
    pii_mode: str = "block"
    pii_tags: tuple[str, ...] = ("PII",)
    pii_columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    certified_sql: bool = False
    certified_metrics: bool = False
    enforce_joins: bool = True
    allow_cross_bundle: bool = False
    allow_execute_sql: bool = True
    allow_query_metrics: bool = True
    require_contract: bool = False
    require_bundle: bool = True
    disallow_multi_statement: bool = True
    enforce_limit: bool = True


@dataclass(frozen=True, slots=True)
class Join:
    """One allowed join: two columns as ``schema.table.column``, and where it is written."""

    left: str
    right: str
    section: FileSection


@dataclass(frozen=True, slots=True)
class Bundle:
    """``datasets/*/dataset.yaml``: the tables an agent may read, and how."""

    section: FileSection
    id: str
    tables: tuple[str, ...] = ()
    joins: tuple[Join, ...] = ()
    time_columns: Mapping[str, str] = field(default_factory=dict)
    time_tables: tuple[str, ...] = ()
    max_rows: int | None = None
    data_start_date: str | None = None
    demo_current_date: str | None = None
    database: str | None = None
    certified: bool = False
    cases: int = 0


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure of a model."""

    name: str
    type: str | None
    column: str | None
    filters: int
    section: FileSection


@dataclass(frozen=True, slots=True)
class SemanticModel:
    """One model of the semantic model: its table, measures, dimensions and joins."""

    section: FileSection
    name: str
    table: str | None
    time_dimension: str | None
    measures: tuple[Measure, ...]
    dimensions: Mapping[str, str]
    joins: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Governance:
    """All governance files below a folder; ``problems`` are the faults found while reading.

    ``rules_file`` is that of the business rules, ``None`` where there is none.
    """

    root: Path
    policy: Policy | None
    bundles: tuple[Bundle, ...]
    models: Mapping[str, SemanticModel]
    rules: tuple[str, ...]
    classified: Mapping[str, tuple[str, ...]]
    problems: tuple[Problem, ...]
    rules_file: FileSection | None = None

    @property
    def pii(self) -> dict[str, tuple[str, ...]]:
        """PII columns by table: the policy's own, and those classified with one of its tags."""
        found = dict(self.policy.pii_columns) if self.policy is not None else {}
        for table, columns in self.classified.items():
            found[table] = tuple(dict.fromkeys((*found.get(table, ()), *columns)))
        return found


def load_governance(root: Path, policy: str = POLICY) -> Governance:
    """Read every governance file below ``root``; what is missing is left out."""
    sections: list[FileSection] = []

    def read(path: Path) -> FileSection | None:
        if not path.is_file():
            return None
        sections.append(read_yaml(path))
        return sections[-1]

    policy_section = read(root / policy)
    loaded = None if policy_section is None else _policy(policy_section)
    bundles = tuple(
        _bundle(section) for path in sorted(root.glob(BUNDLES)) if (section := read(path)) is not None
    )
    semantics, rules = read(root / SEMANTICS), read(root / RULES)
    for section, known in ((semantics, keys.SEMANTICS), (rules, keys.RULES)):
        if section is not None:
            check_keys(section, known)
    models = {} if semantics is None else {m.name: m for m in _models(semantics)}
    tags = loaded.pii_tags if loaded is not None else Policy().pii_tags
    names = () if rules is None else tuple(n for r in rules.listed("rules") if (n := r.text("name")))
    classified = {} if rules is None else _classified(rules, tags)
    problems = tuple(problem for section in sections for problem in section.reader.problems)
    return Governance(root, loaded, bundles, models, names, classified, problems, rules)


def policy_at(root: str | Path, path: str) -> Policy | None:
    """Return the policy file at ``path`` below ``root``; ``None`` where there is none.

    Raises ``CheckFailed`` naming every fault of a file that cannot be used.
    """
    file = Path(root) / path
    if not file.is_file():
        return None
    section = read_yaml(file)
    policy = _policy(section)
    refuse_faults(section.reader.problems, Path(root))
    return policy


def refuse_faults(problems: list[Problem] | tuple[Problem, ...], root: Path) -> None:
    """Raise ``CheckFailed`` when a governance file is wrong: its rules cannot be applied."""
    wrong = [problem.render(root) for problem in problems if problem.severity == "error"]
    if wrong:
        raise CheckFailed("governance: " + "; ".join(wrong))


def find_bundle(governance: Governance, wanted: str) -> Bundle:
    """Return the bundle with this id, or in this file or folder. Raises ``CheckFailed``."""
    for bundle in governance.bundles:
        path = bundle.section.reader.path.relative_to(governance.root)
        if wanted in (bundle.id, path.as_posix(), path.parent.as_posix()):
            return bundle
    if not governance.bundles:
        raise CheckFailed(f"governance: no bundle {wanted!r}: there is no {BUNDLES} below rootdir")
    known = [bundle.id for bundle in governance.bundles]
    raise CheckFailed(f"governance: no bundle {wanted!r}{did_you_mean(wanted, known)}")


def _policy(section: FileSection) -> Policy:
    usual = Policy()
    check_keys(section, keys.POLICY)
    defaults, pii = section.section("defaults"), section.section("pii")
    certification, joins = section.section("certification"), section.section("joins")
    execution = section.section("execution")
    validation = execution.section("sql_validation")
    columns = pii.section("columns")
    return Policy(
        section=section,
        max_rows=defaults.whole("max_rows", usual.max_rows) or 0,
        max_preview_rows=defaults.whole("max_preview_rows", usual.max_preview_rows) or 0,
        require_limit=defaults.flag("require_limit_for_raw_rows", True),
        require_time_filter=defaults.flag("require_time_filter_for_fact_tables", True),
        pii_mode=_mode(pii) or usual.pii_mode,
        pii_tags=pii.texts("tags") or usual.pii_tags,
        pii_columns={table: columns.texts(table) for table in columns.names()},
        certified_sql=certification.flag("require_for_execute_sql", False),
        certified_metrics=certification.flag("require_for_query_metrics", False),
        enforce_joins=joins.flag("enforce_bundle_allowlist", True),
        allow_cross_bundle=joins.flag("allow_cross_bundle", False),
        allow_execute_sql=execution.flag("allow_execute_sql", True),
        allow_query_metrics=execution.flag("allow_query_metrics", True),
        require_contract=execution.flag("require_contract", False),
        require_bundle=execution.flag("require_bundle", True),
        disallow_multi_statement=validation.flag("disallow_multi_statement", True),
        enforce_limit=validation.flag("enforce_limit", True),
    )


def _mode(pii: FileSection) -> str | None:
    """Return how PII is treated; every mode but `block` switches its checks off, so a slip is an error."""
    mode = pii.text("mode")
    if mode is not None and mode != "block" and closest(mode, ("block",), keys.CLOSE):
        pii.reader.error(pii.at("mode"), f"pii.mode {mode!r}, did you mean 'block'?")
    return mode


def _bundle(section: FileSection) -> Bundle:
    check_keys(section, keys.BUNDLE)
    defaults = section.section("defaults")
    times = defaults.section("time_column_by_table")
    folder = section.reader.path.parent.name
    return Bundle(
        section=section,
        id=section.text("bundle_id") or folder,
        tables=tuple(name for entry in section.listed("tables") if (name := _table(entry))),
        joins=tuple(_joins(section)),
        time_columns={table: column for table in times.names() if (column := times.text(table))},
        time_tables=defaults.texts("require_time_filter_for_tables"),
        max_rows=defaults.whole("max_rows", None),
        data_start_date=defaults.text("data_start_date"),
        demo_current_date=defaults.text("demo_current_date"),
        database=section.section("warehouse").text("database_id"),
        certified=section.section("certification").text("level") == "certified",
        cases=len(section.listed("eval_test_cases")),
    )


def _joins(section: FileSection) -> Iterator[Join]:
    for entry in section.listed("joins"):
        sides = [_column(entry.section(side)) for side in ("left", "right")]
        if sides[0] and sides[1]:
            yield Join(sides[0], sides[1], entry)
        else:
            section.reader.error(entry.node, "a join needs left and right, each with schema, table, column")


def _table(section: FileSection) -> str | None:
    name = section.text("table")
    if name is None:
        if section.node is not None and section.node.id == "mapping":
            section.reader.error(section.node, "a table of a bundle needs `table` (and `schema`)")
        return None
    schema = section.text("schema")
    return f"{schema}.{name}" if schema else name


def _column(section: FileSection) -> str | None:
    table, column = section.text("table"), section.text("column")
    if not table or not column:
        return None
    schema = section.text("schema")
    return ".".join(part for part in (schema, table, column) if part)


def _models(section: FileSection) -> Iterator[SemanticModel]:
    for name, entry in section.section("models").sections():
        table = entry.text("table")
        schema = entry.text("schema")
        dimensions = {
            dim: inner.text("column") or dim for dim, inner in entry.section("dimensions").sections()
        }
        joins = {join: inner.text("to_model") or "" for join, inner in entry.section("joins").sections()}
        yield SemanticModel(
            section=entry,
            name=name,
            table=f"{schema}.{table}" if schema and table else table,
            time_dimension=entry.text("time_dimension"),
            measures=tuple(_measure(m, inner) for m, inner in entry.section("measures").sections()),
            dimensions=dimensions,
            joins=joins,
        )


def _measure(name: str, section: FileSection) -> Measure:
    return Measure(
        name, section.text("type"), section.text("column"), len(section.listed("filters")), section
    )


def _classified(section: FileSection, tags: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return columns of classifications with one of ``tags``: ``schema.table.column`` or ``table.column``."""
    found: dict[str, list[str]] = {}
    wanted = {tag.casefold() for tag in tags}
    for entry in section.listed("classifications"):
        if not wanted & {tag.casefold() for tag in entry.texts("tags")}:
            continue
        for name in entry.texts("columns"):
            table, _, column = name.rpartition(".")
            if table:
                found.setdefault(table, []).append(column)
    return {table: tuple(columns) for table, columns in found.items()}
