"""What a suite asks about: tables, columns, joins and constructs of its references, and what is missing.

The measure is the references, parsed: what a question says is not looked at.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_agenteval.authoring.importing.items import LoggedQuery
from pytest_agenteval.cases.model import Case
from pytest_agenteval.cases.review import review_state

Schema = Mapping[str, Sequence[str]]

CONSTRUCTS = (
    "filter", "group", "having", "join", "date range", "window", "distinct", "set operation", "subquery",
    "ratio", "order", "limit",
)  # fmt: skip
SHAPES = ("scalar", "row", "breakdown", "ranking", "series", "list")
DIFFICULTIES = ("simple", "moderate", "challenging")
MISSING = 10
"""How many missing cases are named."""


@dataclass(slots=True)
class SuiteCoverage:
    """What the references of a suite touch. Tables and columns are named as the database names them."""

    tables: dict[str, list[str]] = field(default_factory=dict)
    """Table -> names of the cases that read it; every table of the database is in it."""
    columns: dict[str, int] = field(default_factory=dict)
    """``table.column`` -> number of cases; every column of the database is in it."""
    joins: Counter[str] = field(default_factory=Counter)
    constructs: Counter[str] = field(default_factory=Counter)
    shapes: Counter[str] = field(default_factory=Counter)
    difficulty: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    owners: Counter[str] = field(default_factory=Counter)
    metrics: Counter[str] = field(default_factory=Counter)
    cases: int = 0
    with_reference: int = 0
    conversations: int = 0
    variants: int = 0
    known: int = 0
    reviewed: int = 0
    unparsable: list[str] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    """Table -> runs x users in a query log."""

    @property
    def rates(self) -> dict[str, float | None]:
        """Share of tables and columns touched, of cases reviewed and not known, in percent."""
        return {
            "tables": _percent(sum(map(bool, self.tables.values())), len(self.tables)),
            "columns": _percent(sum(map(bool, self.columns.values())), len(self.columns)),
            "reviewed": _percent(self.reviewed, self.cases),
            "unseen": _percent(self.cases - self.known, self.cases),
        }

    @property
    def missing(self) -> list[str]:
        """Return the most valuable missing cases: tables that people ask most, other tables, then kinds."""
        untouched = [table for table, names in self.tables.items() if not names]
        untouched.sort(key=lambda table: (-self.asked[table], -len(self._columns_of(table)), table))
        out = [
            f"no case reads {table}" + (f" (asked {self.asked[table]} times)" if self.asked[table] else "")
            for table in untouched
        ]
        out += [
            f"no case has the outcome {kind}" for kind in ("refuse", "no_data") if not self.outcomes[kind]
        ]
        out += [
            f"no reference has a {kind}"
            for kind in ("date range", "join", "ratio")
            if not self.constructs[kind]
        ]
        if not self.conversations:
            out.append("no case is a conversation of several turns")
        return out[:MISSING]

    def _columns_of(self, table: str) -> list[str]:
        return [name for name in self.columns if name.startswith(f"{table}.")]


def _percent(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 1) if whole else None


def measure(
    cases: Sequence[Case],
    schema_of: Callable[[Case], Schema],
    dialect_of: Callable[[Case], str | None],
    views: Mapping[str, Sequence[str]] = {},
    log: Sequence[LoggedQuery] = (),
) -> SuiteCoverage:
    """Measure the references of cases. ``views`` maps a view to the tables that it reads."""
    found = SuiteCoverage()
    for case in cases:
        for table, columns in schema_of(case).items():
            name = _short(table)
            if name not in views:
                found.tables.setdefault(name, [])
                for column in columns:
                    found.columns.setdefault(f"{name}.{column}".lower(), 0)
    for case in cases:
        _count_case(found, case)
        touched: set[str] = set()
        read: set[str] = set()
        for sql in case.statements:
            analysis = _analysed(sql, schema_of(case), dialect_of(case))
            if analysis is None:
                found.unparsable.append(case.name)
                continue
            tables = {_short(use.name) for use in analysis.tables}
            read |= {real for table in tables for real in views.get(table, (table,))}
            touched |= {
                f"{_short(t)}.{use.column}".lower() for use in analysis.columns for t in use.tables[:1]
            }
            _count_tree(found, analysis.tree)
        for table in read & found.tables.keys():
            found.tables[table].append(case.name)
        for column in touched & found.columns.keys():
            found.columns[column] += 1
    for query in log:
        analysis = _analysed(query.sql, {}, None)
        for table in {_short(use.name) for use in analysis.tables} if analysis is not None else ():
            found.asked[table] += query.runs * query.users
    return found


def _short(table: str) -> str:
    return table.rpartition(".")[2].lower()


def _analysed(sql: str, schema: Schema, dialect: str | None) -> Any:
    from pytest_agenteval.checks.sql.rules import examine
    from pytest_agenteval.types import Statement

    (call,) = examine([Statement(sql=sql)], schema, dialect)
    return call.statements[0].analysis if len(call.statements) == 1 and not call.error else None


def _count_case(found: SuiteCoverage, case: Case) -> None:
    found.cases += 1
    found.with_reference += bool(case.statements) or case.expected is not None
    found.conversations += len(case.turns) > 1
    found.variants += case.variant_of is not None
    found.known += case.metadata.get("known") is True
    found.reviewed += review_state(case) == "approved"
    found.outcomes[case.outcome] += 1
    found.owners[case.owner or "(nobody)"] += 1
    for check in case.assertions:
        for metric in getattr(check, "metrics", None) or ():
            found.metrics[str(metric)] += 1


def _count_tree(found: SuiteCoverage, tree: Any) -> None:
    kinds = set(_constructs(tree))
    found.constructs.update(kinds)
    found.shapes[_shape(tree)] += 1
    found.difficulty[difficulty(tree)] += 1
    found.joins.update(_join_pairs(tree))


def _constructs(tree: Any) -> Iterator[str]:
    from sqlglot import exp

    if tree.find(exp.Where):
        yield "filter"
    if tree.find(exp.Group):
        yield "group"
    if tree.find(exp.Having) or tree.find(exp.Qualify):
        yield "having"
    if tree.find(exp.Join):
        yield "join"
    if any(_is_date_range(node) for node in tree.find_all(exp.Predicate)):
        yield "date range"
    if tree.find(exp.Window):
        yield "window"
    if tree.find(exp.Distinct):
        yield "distinct"
    if tree.find(exp.SetOperation):
        yield "set operation"
    if tree.find(exp.Subquery) or tree.find(exp.CTE):
        yield "subquery"
    if tree.find(exp.Div):
        yield "ratio"
    if tree.args.get("order"):
        yield "order"
    if tree.args.get("limit"):
        yield "limit"


def _is_date_range(node: Any) -> bool:
    """Return whether a comparison has a date in it: a literal, a part of one, or the current day."""
    import re

    from sqlglot import exp

    dated = (exp.CurrentDate, exp.CurrentTimestamp, exp.Extract, exp.Year, exp.TimestampTrunc, exp.DateTrunc)
    if any(isinstance(part, dated) for part in node.walk()):
        return True
    return any(
        literal.is_string and re.match(r"\d{4}-\d\d", literal.name) for literal in node.find_all(exp.Literal)
    )


def _shape(tree: Any) -> str:
    """Return the shape of a result: by its outermost query, as it is written."""
    from sqlglot import exp

    if not isinstance(tree, exp.Select):
        return "list"
    aggregates = [
        entry for entry in tree.expressions if entry.find(exp.AggFunc) and not entry.find(exp.Window)
    ]
    if not tree.args.get("group"):
        whole = bool(aggregates) and len(aggregates) == len(tree.expressions)
        return ("scalar" if len(aggregates) == 1 else "row") if whole else "list"
    if tree.args.get("limit"):
        return "ranking"
    keys = [entry for entry in tree.expressions if not entry.find(exp.AggFunc)]
    return "series" if any(_is_date(entry.unalias()) for entry in keys) else "breakdown"


def _is_date(node: Any) -> bool:
    from sqlglot import exp

    if isinstance(node, exp.TimestampTrunc | exp.DateTrunc | exp.Extract | exp.Year | exp.Month | exp.Date):
        return True
    words = ("date", "day", "month", "year", "week", "quarter")
    return isinstance(node, exp.Column) and any(word in node.name.lower() for word in words)


def difficulty(tree: Any) -> str:
    """Return how hard a reference is.

    Simple: at most one join and no subquery. Challenging: three joins or more, a window, or an
    aggregate of a subquery that aggregates. Moderate: all others.
    """
    from sqlglot import exp

    joins = len(list(tree.find_all(exp.Join)))
    inner = [node for node in tree.find_all(exp.Select) if node is not tree]
    nested = bool(inner) and any(node.find(exp.AggFunc) for node in inner) and _aggregates(tree)
    if joins >= 3 or tree.find(exp.Window) or nested:
        return "challenging"
    return "simple" if joins <= 1 and not inner else "moderate"


def _aggregates(tree: Any) -> bool:
    from sqlglot import exp

    return isinstance(tree, exp.Select) and any(entry.find(exp.AggFunc) for entry in tree.expressions)


def _join_pairs(tree: Any) -> set[str]:
    from sqlglot import exp

    pairs = set()
    for select in tree.find_all(exp.Select):
        source = select.args.get("from_") or select.args.get("from")
        left = source.this.name.lower() if source is not None and isinstance(source.this, exp.Table) else ""
        for join in select.args.get("joins") or ():
            right = join.this.name.lower() if isinstance(join.this, exp.Table) else ""
            if left and right:
                pairs.add(" - ".join(sorted((left, right))))
    return pairs


def below(found: SuiteCoverage, wanted: Mapping[str, float]) -> list[str]:
    """Return the rates that are lower than wanted, in words."""
    rates = found.rates
    return [
        f"{name}: {rates[name] if rates[name] is not None else 'none'} %, wanted {least:g} %"
        for name, least in wanted.items()
        if (rates[name] or 0.0) < least
    ]


def grouped(names: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return how many cases each name has, most first."""
    counts: dict[str, int] = defaultdict(int)
    for name, cases in names.items():
        counts[name] = len(set(cases))
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
