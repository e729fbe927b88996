"""``sql_difference``: what a statement does that its reference does not, line by line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_agenteval.compare import ComparisonOptions, compare
from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.trust.cause import explaining_mutants
from pytest_agenteval.trust.errors import NotCheckedError
from pytest_agenteval.trust.known import KnownData
from pytest_agenteval.trust.mutants import Mutant
from pytest_agenteval.trust.schema import Catalog
from pytest_agenteval.trust.search import Limits, Luck, PairSearch
from pytest_agenteval.trust.shapes import Filter, Shape, read_shapes, shapes_without_schema

MOST_LINES = 3
"""Lines that a reader is shown."""


@dataclass(frozen=True, slots=True)
class SqlDifference:
    """One thing that two statements do differently.

    Attributes:
        kind: ``no filter``, ``filter``, ``other filter``, ``table``, ``join type``, ``join``, ``grain``,
            ``DISTINCT``, ``output``, ``aggregate``, ``having``, ``LIMIT``, ``order``.
        table, column: what it is about, in lower case ('' where it is about several).
        text: one line for a reader.
        verified: whether it is proved that this changes the result; else it need not matter.
    """

    kind: str
    table: str
    column: str
    text: str
    verified: bool = False


def sql_difference(
    reference: str,
    other: str,
    dialect: str,
    *,
    catalog: Catalog | None = None,
    database: KnownData | None = None,
    options: ComparisonOptions | None = None,
) -> tuple[SqlDifference, ...]:
    """Return what ``other`` does differently from ``reference``, the most telling line first.

    Spellings that do the same give no line: date ranges, IN and OR, case, aliases, EXISTS, IN and joins,
    CTEs and subqueries, ``COUNT(*)`` of rows that a key counts.

    Args:
        reference: the SELECT that is right.
        other: the SELECT that is asked about.
        dialect: sqlglot's name of the SQL both are written in.
        catalog: tables, types and keys, which make the lines more exact.
        database: what is known of the data. Lines that are proved there, or on a counterexample, are
            ``verified`` and come first; two statements that no rows tell apart have no lines.
        options: how the case compares tables.

    Returns an empty tuple also where a statement cannot be taken apart.
    """
    if database is not None:
        return _verified(reference, other, database, options)
    try:
        if catalog is None:
            one, two = shapes_without_schema(reference, other, dialect)
        else:
            one, two = read_shapes(reference, other, catalog)
    except NotCheckedError:
        return ()
    return tuple(_lines(one, two, ordered=options is not None and options.ordered))


def _verified(
    reference: str, other: str, known: KnownData, options: ComparisonOptions | None
) -> tuple[SqlDifference, ...]:
    lines = sql_difference(reference, other, known.dialect, catalog=known.catalog, options=options)
    if not lines:
        return ()
    try:
        wanted, answer = known.run(reference), known.run(other)
    except DatabaseError:
        return lines
    if not compare(wanted, answer, options).matched:
        return proved_lines(
            lines, explaining_mutants(reference, answer, known.catalog, known.run_briefly, options)
        )
    try:
        search = PairSearch(reference, other, known, options)
    except NotCheckedError:
        return lines
    try:
        luck = search.find(Limits())
        return luck_lines(lines, luck, search, reference) if luck else ()
    except NotCheckedError:
        return lines
    finally:
        search.close()


def luck_lines(
    lines: Sequence[SqlDifference], luck: Luck, search: PairSearch, reference: str
) -> tuple[SqlDifference, ...]:
    """Return the lines, those first that explain the answer on the rows of a counterexample."""
    if luck.answer is None:
        return tuple(lines)
    search.load(luck)
    run = search.engine.run
    return proved_lines(
        lines, explaining_mutants(reference, luck.answer, search.catalog, run, search.options)
    )


def proved_lines(lines: Sequence[SqlDifference], explaining: Sequence[Mutant]) -> tuple[SqlDifference, ...]:
    """Return the lines with what mistakes that give the answer prove of them, the proved first."""
    if len({(mutant.kind, mutant.table, mutant.column) for mutant in explaining}) > 1:
        return tuple(lines)
    marked = [replace(line, verified=any(_about(line, mutant) for mutant in explaining)) for line in lines]
    return tuple(sorted(marked, key=lambda line: not line.verified))


_SAME_KINDS = {
    "no filter": {"no filter"},
    "other filter": {"date", "boundary", "literal", "pattern", "and/or", "column", "no filter"},
    "no having": {"no having"},
    "DISTINCT": {"DISTINCT"},
    "aggregate": {
        "aggregate",
        "count",
        "ratio",
        "column",
        "window",
        "NULL",
        "literal",
        "DISTINCT",
        "date unit",
    },
    "join type": {"join type"},
    "grain": {"grain", "date unit"},
    "LIMIT": {"LIMIT"},
    "order": {"order"},
    "output": {"output"},
    "table": {"no filter"},
}


def _about(line: SqlDifference, mutant: Mutant) -> bool:
    if mutant.kind not in _SAME_KINDS.get(line.kind, ()):
        return False
    if line.kind in ("LIMIT", "order") or (line.kind == "DISTINCT" and not line.column):
        return True
    return line.table == mutant.table and (
        not line.column or not mutant.column or line.column == mutant.column
    )


def _lines(one: Shape, two: Shape, *, ordered: bool) -> list[SqlDifference]:
    lines = _distinct(one, two) if one.distinct and not two.distinct and _tables_alike(one, two) else []
    lines += _filters(one, two)
    reported = {line.table for line in lines if line.kind == "no filter"}
    lines = _tables(one, two, reported) + lines
    lines = _join_types(one, two) + lines
    lines += _joins(one, two)
    lines += _grain(one, two)
    lines += _outputs(one, two)
    if sorted(one.unions) != sorted(two.unions):
        text = f"{', '.join(two.unions) or 'no UNION'}, not {', '.join(one.unions) or 'alone'}"
        lines.append(
            SqlDifference("DISTINCT" if len(one.unions) == len(two.unions) else "table", "", "", text)
        )
    lines += _conditions(one.having, two.having, "having", "HAVING ")
    if not any(line.kind == "DISTINCT" for line in lines):
        lines += _distinct(one, two)
    limits = _limit(one, two, ordered)
    added = two.limit is not None and one.limit is None
    lines = limits + lines if added else lines + limits
    return list(dict.fromkeys(lines))


def _tables_alike(one: Shape, two: Shape) -> bool:
    return set(one.tables) == set(two.tables)


def _short(key: str) -> str:
    return key.rpartition(".")[2]


def _tables(one: Shape, two: Shape, reported: set[str]) -> list[SqlDifference]:
    missing = sorted(set(one.tables) - set(two.tables))
    extra = sorted(set(two.tables) - set(one.tables))
    lines = []
    for left, right in zip(missing, extra, strict=False):
        text = f"reads {_short(right)}, not {_short(left)}"
        lines.append(SqlDifference("table", _short(right), "", text))
    for key in missing[len(extra) :]:
        if _short(key) not in reported:
            lines.append(SqlDifference("table", _short(key), "", f"does not read {_short(key)}"))
    for key in extra[len(missing) :]:
        lines.append(SqlDifference("table", _short(key), "", f"reads {_short(key)} too"))
    return lines


def _join_types(one: Shape, two: Shape) -> list[SqlDifference]:
    lines = []
    for key in sorted((one.outer & set(two.tables)) - two.outer - two.absent):
        text = f"INNER JOIN {_short(key)} where the reference has LEFT JOIN"
        lines.append(SqlDifference("join type", _short(key), "", text))
    for key in sorted(one.outer - set(two.tables) - two.absent):
        text = f"no LEFT JOIN of {_short(key)}"
        lines.append(SqlDifference("join type", _short(key), "", text))
    for key in sorted((two.outer & set(one.tables)) - one.outer - one.absent):
        text = f"LEFT JOIN {_short(key)} where the reference has INNER JOIN"
        lines.append(SqlDifference("join type", _short(key), "", text))
    for key in sorted(one.absent ^ two.absent):
        words = "keeps rows that" if key in one.absent else "drops rows that"
        lines.append(SqlDifference("join type", _short(key), "", f"{words} have a row in {_short(key)}"))
    return lines


def _filters(one: Shape, two: Shape) -> list[SqlDifference]:
    return _conditions(one.filters, two.filters, "filter", "")


def _conditions(one: dict[str, Filter], two: dict[str, Filter], kind: str, word: str) -> list[SqlDifference]:
    missing = [one[text] for text in one if text not in two]
    extra = [two[text] for text in two if text not in one]
    lines = []
    for left in list(missing):
        partner = _partner(left, extra)
        if partner is not None:
            missing.remove(left)
            extra.remove(partner)
            text = f"{kind} {word}{partner.text}, not {left.text}"
            lines.append(SqlDifference(f"other {kind}", left.table, left.column, text))
    gone = [
        SqlDifference(f"no {kind}", left.table, left.column, f"no {kind} {word}{left.text}")
        for left in missing
    ]
    more = [
        SqlDifference(
            kind, right.table, right.column, f"{kind} {word}{right.text}, which the reference has not"
        )
        for right in extra
    ]
    return gone + lines + more


def _partner(left: Filter, offered: Sequence[Filter]) -> Filter | None:
    """Return the condition on the same column that stands in the place of ``left``."""
    sign = _sign(left.text)
    same = [f for f in offered if (f.table, f.column) == (left.table, left.column)]
    alike = [f for f in same if _sign(f.text) == sign]
    return next(iter(alike or same), None)


def _sign(text: str) -> str:
    match = re.search(r" (<|>)", text)
    return match[1] if match else ""


def _joins(one: Shape, two: Shape) -> list[SqlDifference]:
    lines = []
    missing = sorted(one.joins - two.joins, key=sorted)
    extra = sorted(two.joins - one.joins, key=sorted)
    for left, right in zip(missing, extra, strict=False):
        if {name.partition(".")[0] for name in left} != {name.partition(".")[0] for name in right}:
            continue
        text = f"joined on {_pair(right)}, not {_pair(left)}"
        table, _, column = min(right - left or right).partition(".")
        lines.append(SqlDifference("join", table, column, text))
    return lines


def _pair(names: frozenset[str]) -> str:
    return " = ".join(sorted(names))


def _grain(one: Shape, two: Shape) -> list[SqlDifference]:
    missing, extra = sorted(one.grain - two.grain), sorted(two.grain - one.grain)
    if not (missing or extra) or not (one.grain and two.grain):
        if one.grain and not two.grain and not one.distinct:
            return [SqlDifference("grain", *_cell(missing[0]), f"no GROUP BY {', '.join(missing)}")]
        if two.grain and not one.grain and not two.distinct:
            return [SqlDifference("grain", *_cell(extra[0]), f"GROUP BY {', '.join(extra)}")]
        return []
    if missing and extra:
        text = f"grouped by {', '.join(extra)}, not {', '.join(missing)}"
    elif extra:
        text = f"grouped by {', '.join(extra)} too"
    else:
        text = f"not grouped by {', '.join(missing)}"
    return [SqlDifference("grain", *_cell((missing or extra)[0]), text)]


def _cell(text: str) -> tuple[str, str]:
    match = re.search(r"\b(\w++)\.(\w++)", text)
    return (match[1], match[2]) if match else ("", "")


def _outputs(one: Shape, two: Shape) -> list[SqlDifference]:
    """Return outputs that no output of the other statement computes, paired by place."""
    left = [entry for entry in one.outputs if entry[0] not in {f for f, _ in two.outputs}]
    right = [entry for entry in two.outputs if entry[0] not in {f for f, _ in one.outputs}]
    grain = one.grain | two.grain
    left = [entry for entry in left if entry[1] not in grain]
    right = [entry for entry in right if entry[1] not in grain]
    lines = []
    missing = [text for _, text in left[len(right) :]]
    lines += [SqlDifference("output", *_cell(text), f"no output {text}") for text in reversed(missing)]
    for (_, wanted), (_, found) in zip(left, right, strict=False):
        lines.append(_output(wanted, found))
    return lines


def _output(wanted: str, found: str) -> SqlDifference:
    distinct = "DISTINCT" in wanted and "DISTINCT" not in found
    kind = "DISTINCT" if distinct else "aggregate"
    return SqlDifference(kind, *_cell(wanted), f"{found}, not {wanted}")


def _distinct(one: Shape, two: Shape) -> list[SqlDifference]:
    if one.distinct == two.distinct:
        return []
    text = "no DISTINCT" if one.distinct else "DISTINCT, which the reference has not"
    return [SqlDifference("DISTINCT", "", "", text)]


def _limit(one: Shape, two: Shape, ordered: bool) -> list[SqlDifference]:
    if one.limit != two.limit:
        if two.limit is None:
            text = f"no LIMIT {one.limit}"
        elif one.limit is None:
            text = f"LIMIT {two.limit}, which the reference has not"
        else:
            text = f"LIMIT {two.limit}, not {one.limit}"
        return [SqlDifference("LIMIT", "", "", text)]
    matters = ordered or one.limit is not None
    if matters and one.order and [mark for mark, _ in one.order] != [mark for mark, _ in two.order]:
        wanted, found = (", ".join(text for _, text in shape.order) for shape in (one, two))
        text = f"ORDER BY {found or 'nothing'}, not {wanted}"
        return [SqlDifference("order", "", "", text)]
    return []
