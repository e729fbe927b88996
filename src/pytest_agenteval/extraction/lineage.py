"""Does a query's output come from its tables, or was it typed into the query?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def retyped(tree: Any, tables: Mapping[str, Sequence[str]], columns: Sequence[str] | None = None) -> bool:
    """Return whether a query (or a branch of a UNION) has an output column that ``tables`` do not give.

    ``tree`` is a sqlglot query over ``tables`` (name -> column names) alone. Counting rows of a table
    derives from it; literals, VALUES and what is computed from them alone do not. ``columns``: only these
    count, where the output has any of them (a label beside the values may be typed). Raises
    ``SqlglotError`` for what cannot be resolved.
    """
    from sqlglot import exp
    from sqlglot.optimizer.qualify import qualify
    from sqlglot.optimizer.scope import build_scope

    schema: dict[str, object] = {name: dict.fromkeys(columns, "VARCHAR") for name, columns in tables.items()}
    options: Any = {"validate_qualify_columns": False, "quote_identifiers": False}
    scope = build_scope(qualify(tree.copy(), schema=schema, dialect="duckdb", **options))
    if scope is None:  # a bare PIVOT has no select list: it is made of the rows it reads
        return tree.find(exp.Table) is None
    branches = [_outputs(branch) for branch in _branches(scope)]
    if any(not any(outputs) for outputs in branches):
        return True
    # a label may be typed in one branch of a UNION; numbers are looked at once more when they came out
    derived = [any(column) for column in zip(*branches, strict=False)]
    names = [str(name).lower() for name in getattr(scope.expression, "named_selects", [])]
    wanted = {name.lower() for name in columns or ()} & set(names)
    if not wanted or len(names) != len(derived):
        return not all(derived)
    return not all(is_derived for is_derived, name in zip(derived, names, strict=True) if name in wanted)


def typed_numbers(tree: Any) -> set[float]:
    """Return the numbers that are written where a query makes its values: not in conditions and limits."""
    from sqlglot import exp

    found: set[float] = set()
    conditions = (exp.Where, exp.Having, exp.Limit, exp.Offset, exp.Order, exp.Join, exp.Group)
    for literal in tree.find_all(exp.Literal):
        if not literal.is_string and literal.find_ancestor(*conditions, exp.Select) is not None:
            inside = literal.find_ancestor(*conditions, exp.Select)
            if isinstance(inside, exp.Select):
                sign = -1.0 if isinstance(literal.parent, exp.Neg) else 1.0
                found.add(sign * float(literal.name))
    return found


def _branches(scope: Any) -> Iterator[Any]:
    parts = _parts(scope)
    if not parts:
        yield scope
    for part in parts:
        yield from _branches(part)


def _parts(scope: Any) -> Sequence[Any]:
    """Return the sides of a UNION; sqlglot before 28 calls them ``union_scopes``."""
    old = getattr(scope, "union_scopes", ())
    found: Sequence[Any] = getattr(scope, "set_operation_scopes", old)
    return found


def _outputs(scope: Any) -> list[bool]:
    """Return for each output column whether it derives from a table."""
    from sqlglot import exp

    parts = _parts(scope)
    if parts:
        sides = [_outputs(part) for part in parts]
        return [any(column) for column in zip(*sides, strict=False)]
    if isinstance(scope.expression, exp.Select):
        return [_derived(selected, scope) for selected in scope.expression.selects]
    # VALUES, UNNEST and the like: whether a derived column goes in
    return [any(_column_derived(column, scope) for column in scope.expression.find_all(exp.Column))]


def _derived(node: Any, scope: Any) -> bool:
    from sqlglot import exp

    if isinstance(node, exp.Query):
        inner = next((sub for sub in scope.subquery_scopes if sub.expression is node.unnest()), None)
        return inner is not None and any(_outputs(inner))
    if isinstance(node, exp.Column) and not node.is_star:
        return _column_derived(node, scope)
    if _is_fact_of_rows(node) and any(_source_derived(source) for source in scope.sources.values()):
        return True
    # what a window is ordered or partitioned by is not part of its value
    children = [node.this] if isinstance(node, exp.Window) else node.iter_expressions()
    return any(_derived(child, scope) for child in children)


def _is_fact_of_rows(node: Any) -> bool:
    """Return ``*``, COLUMNS, a count (also as a sum of ones), a rank:
    true of rows, whatever stands inside.
    """
    from sqlglot import exp

    if isinstance(node, exp.Window):
        return isinstance(node.this, exp.Count | exp.Sum) or not list(node.this.iter_expressions())
    return bool(node.is_star) or isinstance(node, exp.Count | exp.Sum | exp.Columns)


def _column_derived(column: Any, scope: Any) -> bool:
    owner = scope
    while owner is not None:
        source = owner.sources.get(column.table) if column.table else None
        if source is not None:
            return _source_derived(source, column.name)
        owner = owner.parent
    return any(_source_derived(source) for source in scope.sources.values())


def _source_derived(source: Any, column: str | None = None) -> bool:
    """Return whether a source (or one column of it) derives from a table; tables do."""
    if not hasattr(source, "expression") or not hasattr(source, "sources"):
        return True
    outputs = _outputs(source)
    names = getattr(source.expression, "named_selects", [])
    if column is not None and column in names and len(names) == len(outputs):
        return outputs[names.index(column)]
    return any(outputs)
