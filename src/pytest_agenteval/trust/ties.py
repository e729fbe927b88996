"""Whether a statement says which of equal rows come first: the same statement with every tie broken."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

_BY_POSITION = (
    exp.RowNumber,
    exp.Lag,
    exp.Lead,
    exp.FirstValue,
    exp.LastValue,
    exp.NthValue,
    exp.Ntile,
    exp.First,
    exp.Last,
)


def tie_variants(tree: Any, dialect: str) -> list[str]:
    """Return the statement with its output columns appended to each ORDER BY, ascending and descending.

    Where both give the table of the statement itself, no tie decides what it returns. A LIMIT without an
    ORDER BY gets one. Nothing is returned where no order matters.
    """
    variants = []
    for descending in (False, True):
        copy = tree.copy()
        if not _break_ties(copy, descending):
            return []
        variants.append(copy.sql(dialect=dialect or None))
    return variants


def _break_ties(tree: Any, descending: bool) -> bool:
    changed = False
    for query in list(tree.find_all(exp.Query)):
        if isinstance(query, exp.Subquery):
            continue
        order, limit = query.args.get("order"), query.args.get("limit")
        if (order is not None or limit is not None) and not any(p.is_star for p in query.selects):
            keys = list(order.expressions) if order is not None else []
            for number in range(1, len(query.selects) + 1):
                keys.append(exp.Ordered(this=exp.Literal.number(number), desc=descending))
            query.set("order", exp.Order(expressions=keys))
            changed = True
    for window in list(tree.find_all(exp.Window)):
        changed |= _break_window(window, descending)
    return changed


def _break_window(window: Any, descending: bool) -> bool:
    function = window.this
    while isinstance(function, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        function = function.this
    spec = window.args.get("spec")
    by_rows = spec is not None and str(spec.args.get("kind", "")).upper() == "ROWS"
    if not isinstance(function, _BY_POSITION) and not by_rows:
        return False
    select = window.find_ancestor(exp.Select)
    order = window.args.get("order")
    keys = list(order.expressions) if order is not None else []
    for projection in select.selects if select is not None else ():
        inner = projection.unalias()
        if not projection.is_star and inner.find(exp.Window) is None:
            keys.append(exp.Ordered(this=inner.copy(), desc=descending))
    if function.find(exp.Column) is not None and not function.find(exp.AggFunc):
        keys.append(exp.Ordered(this=function.find(exp.Column).copy(), desc=descending))
    window.set("order", exp.Order(expressions=keys))
    return True
