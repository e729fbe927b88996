"""Where in a statement something stands: through which CTE, subquery, branch and clause."""

from __future__ import annotations

from sqlglot import exp

from pytest_agenteval.checks.sql.names import Node

_CLAUSES = {
    "where": "WHERE",
    "having": "HAVING",
    "qualify": "QUALIFY",
    "joins": "JOIN",
    "group": "GROUP BY",
    "order": "ORDER BY",
    "expressions": "SELECT",
    "distinct": "DISTINCT",
    "windows": "WINDOW",
}


def clause_of(node: Node) -> str:
    """Return the clause of the nearest query around ``node``: ``WHERE``, ``SELECT``, ..."""
    child = node
    while child.parent is not None and not isinstance(child.parent, exp.Query):
        child = child.parent
    return _CLAUSES.get(str(child.arg_key), "FROM")


def path_of(node: Node) -> tuple[str, ...]:
    """Return the ways from the statement's top to ``node``, outermost first."""
    steps: list[str] = []
    child, above = node, node.parent
    while above is not None:
        if isinstance(above, exp.CTE):
            steps.append(f"CTE {above.alias}")
        elif isinstance(above, exp.SetOperation) and child.arg_key == "expression":
            word = type(above).__name__.upper()
            steps.append(f"{word} branch {_leaves(above.this) + 1}")
        elif isinstance(above, exp.Query) and not isinstance(above, exp.Subquery):
            step = _nested(above)
            if step is not None:
                steps.append(step)
        child, above = above, above.parent
    return tuple(reversed(steps))


def _nested(query: exp.Query) -> str | None:
    """Return what kind of subquery ``query`` is; ``None`` for the top, a CTE's body, a branch."""
    outer: Node = query
    alias = ""
    while isinstance(outer.parent, exp.Subquery | exp.Paren):
        outer = outer.parent
        alias = outer.alias or alias
    if outer.parent is None or isinstance(outer.parent, exp.CTE | exp.SetOperation):
        return None
    if outer.find_ancestor(exp.Query) is None:
        return None
    if isinstance(outer.parent, exp.From | exp.Join | exp.Lateral):
        return f"subquery {alias}".rstrip()
    return f"subquery in {clause_of(outer)}"


def _leaves(node: Node) -> int:
    while isinstance(node, exp.Subquery | exp.Paren):
        node = node.this
    if isinstance(node, exp.SetOperation):
        return _leaves(node.this) + _leaves(node.expression)
    return 1
