"""Which tables and columns a statement really reads."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from pytest_agenteval.checks.sql.locations import clause_of, path_of
from pytest_agenteval.checks.sql.name_resolution import (
    WRITING,
    Analysis,
    ColumnUse,
    Star,
    TableUse,
    base_tables,
    columns_of_table,
    direct_tables,
    names_a_source,
    stars_in,
    written,
)
from pytest_agenteval.checks.sql.names import Node, Schema, table_name


def analyse(tree: Node, schema: Schema) -> Analysis:
    """Take one statement apart; ``schema`` resolves stars and unqualified columns where it is known."""
    analysis = Analysis(tree, schema)
    try:
        for query in _top_queries(tree):
            analysis.scopes += traverse_scope(query)
        for scope in analysis.scopes:
            _ = scope.selected_sources  # made when asked for, and refused where an alias is used twice
    except (SqlglotError, RecursionError):
        analysis.exact = False
        analysis.scopes = []
    analysis.by_query = {id(scope.expression): scope for scope in analysis.scopes}
    ctes = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if _is_real(analysis, table, ctes):
            analysis.tables.append(TableUse(table_name(table), path_of(table)))
    for name, call in _tables_of_calls(tree):
        analysis.tables.append(TableUse(name, path_of(call)))
    _add_stars(analysis)
    _add_columns(analysis)
    return analysis


def _top_queries(tree: Node) -> Iterator[Node]:
    """Yield the statement's own query; of other statements every outermost query inside."""
    if isinstance(tree, exp.Query):
        yield tree
        for cte in tree.find_all(exp.CTE):
            if not isinstance(cte.this, exp.Query):
                yield from _top_queries(cte.this)
        return
    stack = list(tree.iter_expressions())
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Query) and not isinstance(node, exp.Subquery):
            yield node
        else:
            stack += list(node.iter_expressions())


def _is_real(analysis: Analysis, table: exp.Table, ctes: set[str]) -> bool:
    """Return a table of the database: not a CTE's name, not a table function."""
    if not isinstance(table.this, exp.Identifier):
        return False
    scope = analysis.scope_of(table)
    if scope is None or not analysis.exact or table.name.casefold() in written(analysis.tree):
        return bool(table.db) or table.name.casefold() not in ctes
    for source in scope.sources.values():
        if source is table:
            return True
    known = scope.sources.get(table.alias_or_name)
    return not isinstance(known, Scope) or bool(table.db)


def _tables_of_calls(tree: Node) -> Iterator[tuple[str, Node]]:
    """Yield DuckDB's ``query_table('customers')``: tables named by text."""
    for call in tree.find_all(exp.Anonymous):
        if call.name.lower() == "query_table":
            for literal in call.find_all(exp.Literal):
                if literal.is_string:
                    yield str(literal.this), call


def _add_stars(analysis: Analysis) -> None:
    for scope in analysis.scopes:
        if isinstance(scope.expression, exp.Select):
            for projection in scope.expression.expressions:
                analysis.stars += stars_in(analysis, scope, projection)
    if not analysis.exact:
        _add_every_star(analysis)
    for node in analysis.tree.find_all(exp.Summarize, exp.Pivot):
        tables = [node.parent] if isinstance(node.parent, exp.Table) else list(node.find_all(exp.Table))
        for table in tables:
            _add_star(analysis, type(node).__name__.upper(), table_name(table), node)
    for writing in analysis.tree.find_all(*WRITING):
        returning = writing.args.get("returning")
        table = writing.find(exp.Table)
        if returning is not None and table is not None and returning.find(exp.Star) is not None:
            _add_star(analysis, "RETURNING *", table_name(table), returning)
    for name, call in _tables_of_calls(analysis.tree):
        _add_star(analysis, "query_table", name, call)


def _add_every_star(analysis: Analysis) -> None:
    """Let a ``*`` reach every table of the statement where names could not be resolved."""
    for select in analysis.tree.find_all(exp.Select):
        for projection in select.expressions:
            inner = projection.unalias()
            if isinstance(inner, exp.Star) or (
                isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)
            ):
                for use in analysis.tables:
                    _add_star(analysis, str(inner.sql()), use.name, projection)


def _add_star(analysis: Analysis, text: str, table: str, node: Node) -> None:
    reached = tuple(sorted(columns_of_table(analysis, table)))
    analysis.stars.append(Star(text, reached, reached, path_of(node)))


def _add_columns(analysis: Analysis) -> None:
    for star in analysis.stars:
        for table, column in star.direct:
            analysis.columns.append(ColumnUse((table,), column, star.path, "SELECT", star.text))
    for column in analysis.tree.find_all(exp.Column):
        scope = analysis.scope_of(column)
        if isinstance(column.this, exp.Star) or column.find_ancestor(exp.Star) is not None:
            continue
        if scope is not None and names_a_source(analysis, scope, column):
            continue
        direct = direct_tables(analysis, column)
        if direct:
            use = ColumnUse(tuple(direct), column.name, path_of(column), clause_of(column))
            analysis.columns.append(use)
    for dot in analysis.tree.find_all(exp.Dot):
        _add_field(analysis, dot)
    for join in analysis.tree.find_all(exp.Join):
        for using in join.args.get("using") or ():
            scope = analysis.scope_of(join)
            tables = base_tables(scope) if scope is not None else []
            if tables:
                analysis.columns.append(ColumnUse(tuple(tables), using.name, path_of(join), "JOIN"))


def _add_field(analysis: Analysis, dot: exp.Dot) -> None:
    """Add the field of a whole row: Postgres' ``(c).first_name``."""
    inner = dot.this.unnest() if isinstance(dot.this, exp.Paren) else dot.this
    scope = analysis.scope_of(dot)
    if not isinstance(inner, exp.Column) or inner.table or scope is None:
        return
    source = {k.casefold(): s for k, (_, s) in scope.selected_sources.items()}.get(inner.name.casefold())
    if isinstance(source, exp.Table):
        use = ColumnUse((table_name(source),), dot.expression.name, path_of(dot), clause_of(dot))
        analysis.columns.append(use)
