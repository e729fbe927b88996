"""Whether two expressions compute the same: their value for made-up values of what they are made of."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

from sqlglot import exp


def fingerprint(node: Any, outer: set[str], counts_rows: Callable[[Any], bool]) -> str:
    """Return a text that is the same for expressions that differ only in how arithmetic is written.

    ``100.0 * a / b`` and ``a / b * 100`` are one, ``a / b - 1`` and ``(a - b) / b`` too. ``outer`` are the
    tables that may have no row: only without them COUNT(column) is COUNT(*). ``counts_rows`` tells a column
    that no row repeats, so that COUNT(DISTINCT column) is COUNT(*).
    """
    node = node.copy()
    for count in list(node.find_all(exp.Count)):
        distinct = count.this
        if isinstance(distinct, exp.Distinct) and len(distinct.expressions) == 1:
            column = distinct.expressions[0]
            if isinstance(column, exp.Column) and counts_rows(column):
                count.set("this", exp.Star())
    values = [_value(node, outer, round_) for round_ in (1, 2)]
    return ",".join(f"{value:.9g}" if isinstance(value, float) else str(value) for value in values)


def _value(node: Any, outer: set[str], round_: int) -> float:
    if isinstance(node, exp.Paren | exp.Cast | exp.TryCast | exp.Alias):
        return _value(node.this, outer, round_)
    if isinstance(node, exp.Literal) and not node.is_string:
        return float(node.name)
    if isinstance(node, exp.Neg):
        return -_value(node.this, outer, round_)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
        return _binary(node, _value(node.this, outer, round_), _value(node.expression, outer, round_))
    if isinstance(node, exp.Nullif):
        return _value(node.this, outer, round_)
    if isinstance(node, exp.Case) and _guards_zero(node):
        return _value(node.args["default"], outer, round_)
    if isinstance(node, exp.Avg):
        return _hashed(exp.Sum(this=_number_case(node.this)), outer, round_) / _rows(outer, round_)
    if isinstance(node, exp.Count | exp.CountIf | exp.Filter | exp.Sum):
        return _hashed(node, outer, round_)
    return _hash(_text(node), round_)


def _binary(node: Any, one: float, two: float) -> float:
    if isinstance(node, exp.Add):
        return one + two
    if isinstance(node, exp.Sub):
        return one - two
    if isinstance(node, exp.Mul):
        return one * two
    return one / two if two else 0.0


def _guards_zero(case: Any) -> bool:
    """Return whether a CASE only keeps from a division by zero:
    ``CASE WHEN x = 0 THEN NULL ELSE y / x END``.
    """
    ifs = case.args.get("ifs") or []
    return (
        len(ifs) == 1
        and isinstance(ifs[0].args.get("true"), exp.Null)
        and isinstance(ifs[0].this, exp.EQ)
        and case.args.get("default") is not None
    )


def _rows(outer: set[str], round_: int) -> float:
    return _hashed(exp.Count(this=exp.Star()), outer, round_)


def _hashed(node: Any, outer: set[str], round_: int) -> float:
    """Return the made-up value of an aggregate; counts under a condition have one spelling."""
    condition = _counted_condition(node)
    if condition is not None:
        return _hash(f"count where {_text(condition)}", round_)
    if isinstance(node, exp.Count) and not outer and not isinstance(node.this, exp.Distinct):
        return _hash("count(*)", round_)
    if isinstance(node, exp.Sum) and _is_number(node.this, 1):
        return _hash("count(*)", round_)
    if isinstance(node, exp.Sum):
        return _hash(f"sum({_text(_number_case(node.this))})", round_)
    return _hash(_text(node), round_)


def _counted_condition(node: Any) -> Any:
    """Return p of COUNT(CASE WHEN p THEN 1 END), SUM(CASE WHEN p THEN 1 ELSE 0 END), COUNT(*) FILTER p."""
    if isinstance(node, exp.CountIf):
        return node.this
    if isinstance(node, exp.Filter) and isinstance(node.this, exp.Count):
        distinct = isinstance(node.this.this, exp.Distinct)
        return None if distinct else node.expression.this
    inner = node.this if isinstance(node, exp.Count | exp.Sum) else None
    if not isinstance(inner, exp.Case) or inner.this is not None or len(inner.args["ifs"]) != 1:
        return None
    branch, default = inner.args["ifs"][0], inner.args.get("default")
    if isinstance(node, exp.Count) and default is None:
        return branch.this
    ones = _is_number(branch.args.get("true"), 1) and (default is None or _is_number(default, 0))
    return branch.this if isinstance(node, exp.Sum) and ones else None


def _is_number(node: Any, number: int) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and float(node.name) == number


def _number_case(node: Any) -> Any:
    """Return a CASE with 1.0 and 0.0 written as 1 and 0."""
    copy = node.copy()
    for literal in list(copy.find_all(exp.Literal)):
        if not literal.is_string and literal.name.endswith(".0"):
            literal.set("this", literal.name[:-2])
    return copy


def _text(node: Any) -> str:
    copy = node.copy()
    for window in copy.find_all(exp.Ordered):
        window.set("nulls_first", None)
    text = str(copy.sql(dialect="duckdb")).lower()
    text = re.sub(r"extract\((\w+) from ([^()]+)\)", r"\1(\2)", text)
    text = re.sub(r" nulls (first|last)", "", text)
    return re.sub(r"\s+|[()]|\basc\b", "", text)


def _hash(text: str, round_: int) -> float:
    digest = hashlib.sha256(f"{round_} {text}".encode()).digest()
    return 1 + int.from_bytes(digest[:6], "big") / 2**44
