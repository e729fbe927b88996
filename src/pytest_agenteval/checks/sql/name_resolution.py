"""What a name in a statement stands for: scopes, CTEs, subqueries, aliases and ``*`` resolved."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from pytest_agenteval.checks.sql.locations import clause_of, path_of
from pytest_agenteval.checks.sql.names import Node, Schema, columns_of, has_column, table_name
from pytest_agenteval.support.patterns import PatternTooSlow, found

ANY = "*"
"""Stands for the columns of a table whose columns are not known."""


WRITING = (exp.Insert, exp.Update, exp.Delete, exp.Merge)


@dataclass(frozen=True, slots=True)
class TableUse:
    """A table read, and where."""

    name: str
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """A column read. ``tables``: the tables it may belong to (several only where columns are not known).

    ``via`` is the star or whole row that reaches it, '' for a column that is written out.
    """

    tables: tuple[str, ...]
    column: str
    path: tuple[str, ...]
    clause: str
    via: str = ""


@dataclass(frozen=True, slots=True)
class Star:
    """A ``*`` (or whole row) in a select list, with the columns of tables it reaches.

    ``direct`` are those it reads itself, not through a CTE or subquery.
    """

    text: str
    reached: tuple[tuple[str, str], ...]
    direct: tuple[tuple[str, str], ...]
    path: tuple[str, ...]


@dataclass(slots=True)
class Analysis:
    """One statement, taken apart. ``exact`` is false where names could only be listed, not resolved."""

    tree: Node
    schema: Schema
    scopes: list[Scope] = field(default_factory=list)
    exact: bool = True
    tables: list[TableUse] = field(default_factory=list)
    columns: list[ColumnUse] = field(default_factory=list)
    stars: list[Star] = field(default_factory=list)
    by_query: dict[int, Scope] = field(default_factory=dict)
    made: dict[int, dict[str, set[tuple[str, str]]]] = field(default_factory=dict)

    def scope_of(self, node: Node) -> Scope | None:
        """Return the scope of the query around ``node``."""
        above: Node | None = node
        while above is not None:
            if id(above) in self.by_query:
                return self.by_query[id(above)]
            if isinstance(above, WRITING):
                return None
            above = above.parent
        return None


def written(tree: Node) -> set[str]:
    """Return CTEs that write (``WITH d AS (DELETE ...)``): sqlglot gives them no scope."""
    return {cte.alias.casefold() for cte in tree.find_all(exp.CTE) if not isinstance(cte.this, exp.Query)}


def stars_in(analysis: Analysis, scope: Scope, projection: Node) -> Iterator[Star]:
    """Yield the stars a projection holds: ``*``, ``t.*``, ``COLUMNS(...)``, whole rows."""
    path = path_of(projection)
    if isinstance(scope.expression.parent, exp.Exists):
        return
    for text, names, keep in _star_parts(analysis, scope, projection):
        reached = {pair for pair in _reach(analysis, scope, names) if keep(pair[1])}
        direct = {pair for pair in _reach(analysis, scope, names, direct=True) if keep(pair[1])}
        if isinstance(projection, exp.Star | exp.Column):
            reached, direct = _without(projection, reached), _without(projection, direct)
        yield Star(text, tuple(sorted(reached)), tuple(sorted(direct)), path)


def _star_parts(
    analysis: Analysis, scope: Scope, projection: Node
) -> Iterator[tuple[str, list[str], Callable[[str], bool]]]:
    """Yield (how it is written, names of the sources it covers, which columns of them)."""
    inner = projection.unalias()
    everything = list(scope.selected_sources)
    if isinstance(inner, exp.Star):
        yield "*", everything, _any_column
    elif isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star):
        yield f"{inner.table}.*", [inner.table], _any_column
    for columns in inner.find_all(exp.Columns):
        pattern = columns.this.name if isinstance(columns.this, exp.Literal) else ""
        yield columns.sql(dialect="duckdb"), everything, _matching(pattern)
    for column in inner.find_all(exp.Column):
        if analysis.scope_of(column) is scope and _is_whole_row(analysis, scope, column):
            yield f"whole row {column.name}", [column.name], _any_column


def _any_column(name: str) -> bool:
    return True


def _matching(pattern: str) -> Callable[[str], bool]:
    """Return DuckDB's COLUMNS('pattern'); unknown columns and broken patterns match."""
    try:
        compiled = re.compile(pattern)
    except re.error:
        return _any_column

    def matches(name: str) -> bool:
        try:
            return name.startswith(ANY) or found(compiled.pattern, name)
        except PatternTooSlow:
            return True

    return matches


def _is_whole_row(analysis: Analysis, scope: Scope, column: exp.Column) -> bool:
    """Return ``SELECT c FROM customers c``: a source's name where a column is meant to stand."""
    return names_a_source(analysis, scope, column) and not isinstance(column.parent, exp.Dot | exp.Paren)


def names_a_source(analysis: Analysis, scope: Scope, column: exp.Column) -> bool:
    """Return whether the name is that of a table or subquery of its query instead of a column."""
    if column.table:
        return False
    sources = {name.casefold(): source for name, (_, source) in scope.selected_sources.items()}
    if column.name.casefold() not in sources:
        return False
    known = [_known_columns(analysis, source) for source in sources.values()]
    return not any(names is not None and has_column(names, column.name) for names in known)


def _without(star: Node, reached: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return what is left of a star after EXCLUDE / EXCEPT; unknown columns keep the list: ``*-a,b``."""
    inner = star.this if isinstance(star, exp.Column) else star
    words = inner.args.get("except") or inner.args.get("except_") or ()
    dropped = {entry.name.casefold() for entry in words}
    if not dropped:
        return reached
    rest = f"{ANY}-{','.join(sorted(dropped))}"
    kept = {(table, rest if column == ANY else column) for table, column in reached}
    return {(table, column) for table, column in kept if column.casefold() not in dropped}


def _reach(
    analysis: Analysis, scope: Scope, names: Iterable[str], *, direct: bool = False
) -> set[tuple[str, str]]:
    """Return (table, column) pairs of the database that a star over these sources gives."""
    reached: set[tuple[str, str]] = set()
    sources = {name.casefold(): source for name, (_, source) in scope.selected_sources.items()}
    for name in names:
        source = sources.get(name.casefold())
        if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
            if source.name.casefold() not in written(analysis.tree) or source.db:
                reached |= columns_of_table(analysis, table_name(source))
        elif isinstance(source, Scope) and not direct:
            for pairs in outputs(analysis, source).values():
                reached |= pairs
    return reached


def columns_of_table(analysis: Analysis, table: str) -> set[tuple[str, str]]:
    """Return (table, column) pairs of a whole table; (table, ``*``) where its columns are not known."""
    known = columns_of(analysis.schema, table)
    return {(table, ANY)} if known is None else {(table, column) for column in known}


def outputs(analysis: Analysis, scope: Scope) -> dict[str, set[tuple[str, str]]]:
    """Return per output column of a query (lower case) the database columns it is made of.

    A column passed on unchanged is its own only entry; ``*`` stands for unknown columns. Inside
    itself a recursive CTE has none yet.
    """
    if id(scope) not in analysis.made:
        analysis.made[id(scope)] = {}
        analysis.made[id(scope)] = _outputs(analysis, scope)
    return analysis.made[id(scope)]


def _outputs(analysis: Analysis, scope: Scope) -> dict[str, set[tuple[str, str]]]:
    query = scope.expression
    if isinstance(query, exp.SetOperation):
        sides = [analysis.by_query.get(id(side.unnest())) for side in (query.this, query.expression)]
        branches = [outputs(analysis, side) for side in sides if side is not None]
        made = {name: set(pairs) for name, pairs in branches[0].items()} if branches else {}
        for branch in branches[1:]:
            for name, pairs in zip(made, branch.values(), strict=False):
                made[name] |= pairs
        return made
    result: dict[str, set[tuple[str, str]]] = {}
    for projection in getattr(query, "selects", []):
        stars = list(stars_in(analysis, scope, projection))
        for star in stars:
            for table, column in star.reached:
                result.setdefault(column.casefold(), set()).add((table, column))
        if not stars:
            pairs = {pair for column in projection.find_all(exp.Column) for pair in resolve(analysis, column)}
            result.setdefault(projection.alias_or_name.casefold(), set()).update(pairs)
    return result


def resolve(analysis: Analysis, column: exp.Column) -> list[tuple[str, str]]:
    """Return the database columns behind a column of a query; several where its table is not certain."""
    scope = analysis.scope_of(column)
    name = column.name
    while scope is not None:
        sources = {key.casefold(): source for key, (_, source) in scope.selected_sources.items()}
        if column.table:
            if column.table.casefold() in sources:
                return _of_source(analysis, sources[column.table.casefold()], name)
        else:
            found = _unqualified(analysis, scope, sources.values(), column)
            if found is not None:
                return found
        scope = scope.parent
    return []


def _unqualified(
    analysis: Analysis, scope: Scope, sources: Iterable[Any], column: exp.Column
) -> list[tuple[str, str]] | None:
    """Return a column without a table belongs to the source that has it; ``None``: look further out."""
    open_sources = []
    for source in sources:
        known = _known_columns(analysis, source)
        if known is None:
            open_sources.append(source)
        elif has_column(known, column.name):
            return _of_source(analysis, source, column.name)
    if _is_alias(scope, column):
        return []
    found = [pair for source in open_sources for pair in _of_source(analysis, source, column.name)]
    return found or None


def _is_alias(scope: Scope, column: exp.Column) -> bool:
    """Return the name of an expression in the same select list, used in ORDER BY, GROUP BY, HAVING..."""
    if clause_of(column) in ("SELECT", "JOIN"):
        return False
    for projection in getattr(scope.expression, "selects", []):
        if isinstance(projection, exp.Alias) and projection.alias.casefold() == column.name.casefold():
            inner = projection.this
            return not (isinstance(inner, exp.Column) and inner.name.casefold() == column.name.casefold())
    return False


def _known_columns(analysis: Analysis, source: Any) -> list[str] | None:
    if isinstance(source, Scope):
        names = list(outputs(analysis, source))
        return None if any(name.startswith(ANY) for name in names) else names
    if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
        return columns_of(analysis.schema, table_name(source))
    return None


def _of_source(analysis: Analysis, source: Any, name: str) -> list[tuple[str, str]]:
    if isinstance(source, Scope):
        made = outputs(analysis, source)
        if name.casefold() in made:
            return sorted(made[name.casefold()])
        return [
            (table, name) for key, pairs in made.items() if key.startswith(ANY) for table, _ in sorted(pairs)
        ]
    if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
        return [(table_name(source), name)]
    return []


def _guess(analysis: Analysis, column: exp.Column) -> list[tuple[str, str]]:
    """Return, without scopes, every table of the statement, or the one whose name or alias is written."""
    tables = [table for table in analysis.tree.find_all(exp.Table) if isinstance(table.this, exp.Identifier)]
    if column.table:
        wanted = column.table.casefold()
        tables = [table for table in tables if wanted in (table.alias.casefold(), table.name.casefold())]
    return [(table_name(table), column.name) for table in tables]


def direct_tables(analysis: Analysis, column: exp.Column) -> list[str]:
    """Return the database tables a written column belongs to itself (not through a CTE or subquery).

    What comes through those has been counted where it was written.
    """
    scope = analysis.scope_of(column)
    if scope is None or not analysis.exact:
        return [table for table, _ in _guess(analysis, column)]
    while scope is not None:
        sources = {key.casefold(): source for key, (_, source) in scope.selected_sources.items()}
        if column.table:
            if column.table.casefold() in sources:
                source = sources[column.table.casefold()]
                return [] if isinstance(source, Scope) else [t for t, _ in _of_source(analysis, source, "")]
        else:
            found = _unqualified(analysis, scope, sources.values(), column)
            if found is not None:
                bases = {table.casefold() for table in base_tables(scope)}
                return [table for table, _ in found if table.casefold() in bases]
        scope = scope.parent
    return []


def base_tables(scope: Scope) -> list[str]:
    """Return the database tables a query reads itself."""
    return [
        table_name(source)
        for _, source in scope.selected_sources.values()
        if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier)
    ]
