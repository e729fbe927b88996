"""The lints that run references: ties at a LIMIT, questions with contradicting references, unknown tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_agenteval.authoring.lints import reference_rules as rules
from pytest_agenteval.authoring.lints.rules import LintFinding, duplicate_key
from pytest_agenteval.cases.model import Case
from pytest_agenteval.errors import DatabaseError

if TYPE_CHECKING:
    from pytest_agenteval.databases import Database, Databases
    from pytest_agenteval.table import Table


def lint_references(
    cases: Sequence[Case], databases: Databases, suite_comparison: Mapping[str, Any]
) -> Iterator[LintFinding]:
    """Yield findings of references that run; one that fails is reported by who runs it."""
    groups: dict[Any, list[Case]] = defaultdict(list)
    for case in cases:
        groups[duplicate_key(case)].append(case)
        for sql in case.statements:
            if tie := _tie(databases, case, sql):
                yield LintFinding(
                    case, "tie-at-limit", "warning", tie,
                    "order by one more column, so that the last row is decided", at_sql=True,
                )  # fmt: skip
    for same in groups.values():
        yield from _contradictions(same, databases, suite_comparison)


def _tie(databases: Databases, case: Case, sql: str) -> str:
    try:
        return tie_at_limit(databases.get(case.database), sql)
    except DatabaseError:
        return ""  # who runs the reference says so


def tie_at_limit(database: Database, sql: str) -> str:
    """Return how the last row of a cut reference ties with the first that is left out ('': it does not)."""
    tree = rules.parsed(sql, database.dialect)
    size = _limit_of(tree)
    if size is None:
        return ""
    from sqlglot import exp

    keys = [entry.this for entry in tree.args["order"].expressions]
    longer = tree.copy()
    longer.set("limit", exp.Limit(expression=exp.Literal.number(size + 1)))
    names = [entry.alias_or_name.casefold() for entry in tree.expressions]
    positions: list[int] = []
    for key in keys:
        name = key.name.casefold() if isinstance(key, exp.Column) and not key.table else ""
        if isinstance(key, exp.Literal) and key.is_int:
            positions.append(int(key.name) - 1)
        elif name in names:
            positions.append(names.index(name))
        elif tree.args.get("distinct") or rules.selects_star(tree):
            return ""
        else:
            positions.append(len(longer.expressions))
            longer.append("expressions", exp.alias_(key.copy(), f"agenteval_key_{len(positions)}"))
    try:
        table = database.query(longer.sql(dialect=database.dialect or None))
    except DatabaseError:
        return ""
    rows = list(table.rows())
    if len(rows) <= size or max(positions) >= len(table.names):
        return ""
    last, left_out = ([rows[at][position] for position in positions] for at in (size - 1, size))
    if last != left_out:
        return ""
    shown = ", ".join(str(value) for value in last)
    return f"row {size} of the reference and the next, which its LIMIT cuts off, tie in the ORDER BY: {shown}"


def _limit_of(tree: Any) -> int | None:
    """Return the LIMIT of an ordered SELECT, where it is a plain number and nothing is skipped."""
    from sqlglot import exp

    if not isinstance(tree, exp.Select) or not tree.args.get("order") or tree.args.get("offset"):
        return None
    limit = tree.args.get("limit")
    value = limit.expression if isinstance(limit, exp.Limit) else None
    return (
        int(value.name) if isinstance(value, exp.Literal) and value.is_int and int(value.name) > 0 else None
    )


def _contradictions(
    same: Sequence[Case], databases: Databases, suite: Mapping[str, Any]
) -> Iterator[LintFinding]:
    from pytest_agenteval.compare import compare, parse_options

    seen: list[tuple[Case, list[Table]]] = []
    for case in same if len(same) > 1 else ():
        if not case.sql:
            continue
        try:
            tables = [databases.get(case.database).query(sql) for sql in case.sql]
        except DatabaseError:
            continue
        options = parse_options({**case.comparison, "columns": "auto"}, suite)
        for other, others in seen:
            if not any(compare(one, two, options).matched for one in others for two in tables):
                where = f"{other.name!r} ({other.path.name}:{other.line})"
                yield LintFinding(
                    case, "contradiction", "error",
                    f"asks the same as {where} and its reference gives other rows",
                    "one of the two is wrong, or the questions must say what differs", at_sql=True,
                )  # fmt: skip
                break
        seen.append((case, tables))


def unknown_names(schema: Mapping[str, Sequence[str]], sql: str, dialect: str | None) -> str:
    """Return the first table of a reference that the database does not have, with near ones ('': all are)."""
    from sqlglot import exp

    from pytest_agenteval.support.text import did_you_mean

    tree = rules.parsed(sql, dialect)
    if tree is None or not schema:
        return ""
    own = {cte.alias_or_name.casefold() for cte in tree.find_all(exp.CTE)}
    there = {name.rpartition(".")[2].casefold(): name for name in schema}
    for table in tree.find_all(exp.Table):
        name = table.name
        if name and name.casefold() not in own and name.casefold() not in there:
            hint = did_you_mean(name, [known.rpartition(".")[2] for known in schema])
            return f"there is no table {name!r}{hint}"
    return ""
