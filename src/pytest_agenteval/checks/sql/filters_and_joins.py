"""What a statement filters and joins on: conditions that restrict a table, and pairs of columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope

from pytest_agenteval.checks.sql.locations import path_of
from pytest_agenteval.checks.sql.name_resolution import Analysis, outputs, resolve
from pytest_agenteval.checks.sql.names import Node, same_table, table_name
from pytest_agenteval.checks.sql.parsing import part

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.NullSafeEQ)
_BOUNDING = (exp.EQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.NullSafeEQ)
_PREDICATES = (*_COMPARISONS, exp.Is, exp.Like, exp.ILike, exp.RegexpLike, exp.StartsWith)


@dataclass(frozen=True, slots=True)
class WantedFilter:
    """A filter that is asked for: on a column of a table, or one predicate, word for word.

    ``bounding``: only a comparison with values counts (a time filter), not IS NOT NULL or ``<>``.
    """

    table: str
    column: str
    predicate: str | None = None
    bounding: bool = False


def wanted_filter(
    table: str, text: str, dialect: str | None, *, bounding: bool = False
) -> list[WantedFilter]:
    """Return ``status`` or ``status <> 'returned'`` as what has to be found. Raises ``ValueError``."""
    try:
        tree = sqlglot.parse_one(text, dialect=dialect)
    except SqlglotError as error:
        raise ValueError(f"{text!r} is neither a column nor a predicate") from error
    if isinstance(tree, exp.Column):
        return [WantedFilter(table, tree.name, None, bounding)]
    columns = list(tree.find_all(exp.Column))
    if not columns:
        raise ValueError(f"{text!r} is neither a column nor a predicate")
    return [WantedFilter(table, columns[0].name, _shape(tree), bounding)]


def unfiltered(analysis: Analysis, wanted: WantedFilter) -> list[tuple[str, ...]]:
    """Return the paths to the uses of the table that are not filtered as asked (``()``: the top)."""
    missing = []
    for scope in analysis.scopes:
        for alias, (node, source) in scope.selected_sources.items():
            if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
                continue
            if same_table(table_name(source), wanted.table) and not _restricted(
                analysis, scope, alias, wanted, wanted.column
            ):
                missing.append(path_of(node))
    return missing


def _restricted(
    analysis: Analysis, scope: Scope, alias: str, wanted: WantedFilter, column: str, depth: int = 0
) -> bool:
    """Return whether the source ``alias`` is filtered here, or everywhere its column is passed on to."""
    if any(_restricts(analysis, entry, scope, alias, wanted, column) for entry in conditions(scope, alias)):
        return True
    names = _passed_on(analysis, scope, alias, column)
    users = [
        (outer, outer_alias)
        for outer in analysis.scopes
        for outer_alias, (_, source) in outer.selected_sources.items()
        if source is scope
    ]
    if not names or not users or depth > 20:
        return False
    return all(
        any(_restricted(analysis, outer, name_of, wanted, name, depth + 1) for name in names)
        for outer, name_of in users
    )


def _passed_on(analysis: Analysis, scope: Scope, alias: str, column: str) -> list[str]:
    """Return the output names under which a query hands on a source's column unchanged."""
    names = []
    for projection in getattr(scope.expression, "selects", []):
        inner = projection.unalias()
        if isinstance(inner, exp.Star) or (
            isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)
        ):
            if not isinstance(inner, exp.Column) or inner.table.casefold() == alias.casefold():
                names.append(column)
        elif isinstance(inner, exp.Column) and inner.name.casefold() == column.casefold():
            mine = not inner.table or inner.table.casefold() == alias.casefold()
            names += [projection.alias_or_name] if mine else []
    return names


def conditions(scope: Scope, alias: str | None = None) -> Iterator[Node]:
    """Yield what must hold in a query: its WHERE, and the ON of joins.

    With ``alias``: only what restricts that source; the ON of an outer join restricts the side
    that may be missing, never the other.
    """
    query = scope.expression
    where = query.args.get("where")
    if where is not None:
        yield from _conjuncts(where.this)
    for join in joins_of(query):
        on = join.args.get("on")
        if on is None or not _applies(join, alias):
            continue
        yield from _conjuncts(on)


def _applies(join: exp.Join, alias: str | None) -> bool:
    if alias is None or not join.side:
        return True
    joined = join.alias_or_name.casefold() == alias.casefold()
    return {"LEFT": joined, "RIGHT": not joined}.get(join.side.upper(), False)


def _conjuncts(node: Node) -> Iterator[Node]:
    node = node.unnest()
    if isinstance(node, exp.And):
        yield from _conjuncts(node.this)
        yield from _conjuncts(node.expression)
    else:
        yield node


def _restricts(
    analysis: Analysis, node: Node, scope: Scope, alias: str, wanted: WantedFilter, column: str
) -> bool:
    """Return whether a condition restricts the column: of an OR, every branch must."""
    node = node.unnest()
    if isinstance(node, exp.Or):
        return all(
            _restricts(analysis, side, scope, alias, wanted, column) for side in (node.this, node.expression)
        )
    if isinstance(node, exp.And):
        return any(
            _restricts(analysis, side, scope, alias, wanted, column) for side in (node.this, node.expression)
        )
    if wanted.predicate is not None:
        return _shape(node, {column: wanted.column}) == wanted.predicate and _is_on(
            node, scope, alias, column
        )
    if isinstance(node, exp.Not) and not wanted.bounding:
        return _restricts(analysis, node.this, scope, alias, wanted, column)
    if not isinstance(node, _BOUNDING if wanted.bounding else _PREDICATES):
        return False
    return _is_on(node, scope, alias, column) and not _says_nothing(node)


def _is_on(node: Node, scope: Scope, alias: str, column: str) -> bool:
    """Return whether the column of this source stands in the condition (not inside a subquery of it).

    One without a table is taken for it: the database would have refused an ambiguous one.
    """
    return any(
        found.name.casefold() == column.casefold()
        and found.table.casefold() in ("", alias.casefold())
        and found.find_ancestor(exp.Query) is scope.expression
        for found in node.find_all(exp.Column)
    )


def _says_nothing(node: Node) -> bool:
    """Return ``x = x``, ``o.id = c.order_id``: a join or a tautology, no filter."""
    left, right = node.args.get("this"), node.args.get("expression")
    return isinstance(left, exp.Column) and isinstance(right, exp.Column)


def _shape(tree: Node, rename: dict[str, str] | None = None) -> str:
    """Return a predicate's text for comparison: no qualifiers, lower case names, sides in one order."""
    names = {old.casefold(): new.casefold() for old, new in (rename or {}).items()}

    def plain(node: Node) -> Node:
        if isinstance(node, exp.Column):
            name = node.name.casefold()
            return exp.column(names.get(name, name))
        return node

    copy = tree.copy().unnest().transform(plain)
    if isinstance(copy, exp.GT | exp.GTE):
        flipped = exp.LT if isinstance(copy, exp.GT) else exp.LTE
        copy = flipped(this=copy.expression, expression=copy.this)
    if isinstance(copy, exp.EQ | exp.NEQ) and not isinstance(copy.this, exp.Column):
        copy = type(copy)(this=copy.expression, expression=copy.this)
    return str(copy.sql(dialect="duckdb", normalize=True))


@dataclass(frozen=True, slots=True)
class JoinPair:
    """Two columns that a statement joins on: ``(table, column)`` each; ``text`` as written."""

    left: tuple[str, str]
    right: tuple[str, str]
    text: str
    path: tuple[str, ...]

    @property
    def of_itself(self) -> bool:
        """A table joined with itself on one column: no way to another table."""
        (one, a), (two, b) = self.left, self.right
        return same_table(one, two) and a.casefold() == b.casefold()


def join_pairs(analysis: Analysis) -> tuple[list[JoinPair], list[tuple[str, tuple[str, ...]]]]:
    """Return the pairs of columns joined on; and the joins (text, path) that join on no pair of columns."""
    pairs: list[JoinPair] = []
    loose: list[tuple[str, tuple[str, ...]]] = []
    for scope in analysis.scopes:
        if not isinstance(scope.expression, exp.Select):
            continue
        found = [*_equalities(analysis, scope), *_memberships(analysis, scope)]
        pairs += found
        joins = joins_of(scope.expression)
        joined = [name for join in joins for name in _joined_sources(scope, join)]
        before = [name for name in scope.selected_sources if name not in joined]
        for join in joins:
            using = _using(analysis, scope, join, before)
            before += _joined_sources(scope, join)
            pairs += using
            if not using and not _joined(analysis, scope, join, found):
                loose.append((_join_text(join), path_of(join)))
    return list(dict.fromkeys(pairs)), loose


def _equalities(analysis: Analysis, scope: Scope) -> Iterator[JoinPair]:
    for node in conditions(scope):
        if not isinstance(node, exp.EQ | exp.NullSafeEQ):
            continue
        left, right = node.this.unnest(), node.expression.unnest()
        if isinstance(left, exp.Column) and isinstance(right, exp.Column):
            yield from _pairs(analysis, left, right, str(node.sql()), path_of(node))


def _memberships(analysis: Analysis, scope: Scope) -> Iterator[JoinPair]:
    """Yield ``x IN (SELECT y FROM ...)`` joins as well."""
    for node in conditions(scope):
        inner = node.this if isinstance(node, exp.Not) else node
        query = inner.args.get("query") if isinstance(inner, exp.In) else None
        if query is None or not isinstance(inner.this, exp.Column):
            continue
        selects = getattr(query.unnest(), "selects", [])
        column = selects[0].unalias() if selects else None
        if isinstance(column, exp.Column):
            yield from _pairs(analysis, inner.this, column, f"{inner.this.sql()} IN", path_of(node))


def _pairs(
    analysis: Analysis, left: exp.Column, right: exp.Column, text: str, path: tuple[str, ...]
) -> Iterator[JoinPair]:
    for one in resolve(analysis, left):
        for two in resolve(analysis, right):
            yield JoinPair(one, two, text, path)


def _using(analysis: Analysis, scope: Scope, join: exp.Join, before: list[str]) -> list[JoinPair]:
    """Return each column of USING, between the joined sources and those ``before`` them."""
    return [
        JoinPair(one, two, f"USING ({name.name})", path_of(join))
        for name in join.args.get("using") or ()
        for left in before
        for right in _joined_sources(scope, join)
        for one in _column_of(analysis, scope, left, name.name)
        for two in _column_of(analysis, scope, right, name.name)
    ]


def _joined_sources(scope: Scope, join: exp.Join) -> list[str]:
    """Return the sources a join adds: one, or those of a join in parentheses."""
    if join.alias_or_name in scope.selected_sources:
        return [join.alias_or_name]
    names = [table.alias_or_name for table in join.this.find_all(exp.Table)]
    return [name for name in names if name in scope.selected_sources]


def _column_of(analysis: Analysis, scope: Scope, source: str, name: str) -> list[tuple[str, str]]:
    _, found = scope.selected_sources[source]
    if isinstance(found, Scope):
        return sorted(outputs(analysis, found).get(name.casefold(), set()))
    return [(table_name(found), name)]


def _joined(analysis: Analysis, scope: Scope, join: exp.Join, found: list[JoinPair]) -> bool:
    """Return whether one of the equalities of the query is about the joined source (or it reads no table)."""
    tables: set[str] = set()
    for name in _joined_sources(scope, join):
        _, source = scope.selected_sources[name]
        if isinstance(source, Scope):
            tables |= {table for pairs in outputs(analysis, source).values() for table, _ in pairs}
        else:
            tables.add(table_name(source))
    sides = [side for pair in found for side in (pair.left, pair.right)]
    return not tables or any(same_table(side[0], table) for side in sides for table in tables)


def joins_of(query: Node) -> list[exp.Join]:
    """Return the joins of one query, those in parentheses too."""
    return [join for join in query.find_all(exp.Join) if join.find_ancestor(exp.Select) is query]


def _join_text(join: exp.Join) -> str:
    method = f"{join.args.get('method') or ''} ".lstrip()
    return f"{method}JOIN {join.alias_or_name}"


@dataclass(frozen=True, slots=True)
class LimitUse:
    """The LIMIT that bounds a statement's rows: its number, ``None`` for one that is not a number."""

    rows: int | None


def limit_of(tree: Node) -> LimitUse | None:
    """Return the LIMIT / FETCH / TOP of a statement, or of the only subquery its rows come from."""
    limit = tree.args.get("limit")
    if limit is not None:
        count = limit.args.get("count") if isinstance(limit, exp.Fetch) else limit.args.get("expression")
        options = limit.args.get("limit_options")
        percent = options is not None and options.args.get("percent")
        if isinstance(count, exp.Literal) and not count.is_string and not percent:
            return LimitUse(int(float(count.name)))
        if isinstance(count, exp.Var | exp.Column) and count.name.upper() == "ALL":
            return None
        return LimitUse(None)
    source = part(tree, "from")
    inner = source.this if source is not None and not tree.args.get("joins") else None
    if isinstance(tree, exp.Subquery):
        inner = tree
    if isinstance(inner, exp.Subquery):
        return limit_of(inner.this)
    return None


def single_row(tree: Node) -> bool:
    """Return whether the statement gives one row by itself: aggregates without GROUP BY,
    or no table at all.
    """
    tree = tree.unnest() if isinstance(tree, exp.Subquery) else tree
    if not isinstance(tree, exp.Select) or tree.args.get("group") is not None:
        return False
    if part(tree, "from") is None:
        return True
    return bool(tree.selects) and all(_aggregates(projection) for projection in tree.selects)


def grouped(tree: Node) -> bool:
    """Return whether the rows are groups (GROUP BY, DISTINCT), not raw rows."""
    tree = tree.unnest() if isinstance(tree, exp.Subquery) else tree
    if isinstance(tree, exp.SetOperation):
        return all(single_row(side) or grouped(side) for side in (tree.this, tree.expression))
    return isinstance(tree, exp.Select) and (
        tree.args.get("group") is not None or tree.args.get("distinct") is not None
    )


def _aggregates(projection: Node) -> bool:
    """Return an aggregate (not a window) stands in it, and no column outside of one."""
    inner = projection.unalias()
    found = [agg for agg in inner.find_all(exp.AggFunc) if agg.find_ancestor(exp.Window) is None]
    if not found:
        return isinstance(inner, exp.Literal)
    return all(
        column.find_ancestor(exp.AggFunc) is not None
        or column.find_ancestor(exp.Query) is not inner.parent_select
        for column in inner.find_all(exp.Column)
    )
