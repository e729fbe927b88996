"""``mutants``: the statements that typical mistakes make of a reference, each with its name."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlglot import exp

from pytest_agenteval.trust.mining import is_number, is_text, is_time
from pytest_agenteval.trust.reading import parse_statement
from pytest_agenteval.trust.schema import Catalog, ColumnInfo, TableInfo

MOST_MUTANTS = 60

Edit: TypeAlias = Callable[[Any], Any]
"""Changes a node of a copied tree; returns what to put in its place, or None where it changed it itself."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake made in a reference.

    ``kind``, ``table`` and ``column`` group mistakes of one sort; ``text`` follows "the reference gives"
    (``without the filter orders.status = 'completed'``); ``sql`` is the statement with the mistake.
    """

    kind: str
    table: str
    column: str
    text: str
    sql: str


def mutants(sql: str, catalog: Catalog) -> tuple[Mutant, ...]:
    """Return the mutants of a reference, the likeliest mistakes first. Raises ``NotCheckedError``."""
    tree = parse_statement(sql, catalog.dialect)
    maker = _Maker(tree, catalog)
    own = tree.sql(dialect=catalog.dialect or None)
    found: dict[str, Mutant] = {}
    for mutant in maker.all():
        if mutant.sql != own:
            found.setdefault(mutant.sql, mutant)
    return tuple(found.values())


class _Maker:
    def __init__(self, tree: Any, catalog: Catalog) -> None:
        self.tree, self.catalog = tree, catalog
        self.nodes = list(tree.walk())
        ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
        self.tables: dict[str, TableInfo] = {}
        for table in tree.find_all(exp.Table):
            info = catalog.find(".".join(part for part in (table.db, table.name) if part))
            if info is not None and (table.db or table.name.lower() not in ctes):
                self.tables[table.alias_or_name.lower()] = info

    def all(self) -> Iterator[Mutant]:
        """Yield every mutant; the order is that of how often agents make the mistake."""
        for make in (
            self._without_filters,
            self._distinct,
            self._aggregates,
            self._join_types,
            self._limits,
            self._dates,
            self._grain,
            self._counts,
            self._literals,
            self._units,
            self._ratios,
            self._columns,
            self._bounds,
            self._connectives,
            self._patterns,
            self._windows,
            self._having,
            self._outputs,
        ):
            yield from make()

    def _made(self, kind: str, node: Any, text: str, edit: Edit) -> Mutant:
        """Return the tree with one node changed."""
        copy = self.tree.copy()
        twin = list(copy.walk())[next(i for i, n in enumerate(self.nodes) if n is node)]
        replacement = edit(twin)
        if replacement is not None:
            if twin is copy:
                copy = replacement
            else:
                twin.replace(replacement)
        table, column = self._cell(node)
        return Mutant(kind, table, column, text, copy.sql(dialect=self.catalog.dialect or None))

    def _cell(self, node: Any) -> tuple[str, str]:
        """Return the table and column a node is about, in lower case."""
        for column in node.find_all(exp.Column):
            info, _ = self._column(column)
            return (info.name.lower() if info else "", column.name.lower())
        if isinstance(node, exp.Join):
            return self._shown_table(node), ""
        return "", ""

    def _shown_table(self, join: Any) -> str:
        info = self.tables.get(join.this.alias_or_name.lower())
        return info.name.lower() if info is not None else join.this.alias_or_name.lower()

    def _column(self, column: Any) -> tuple[TableInfo | None, ColumnInfo | None]:
        """Return the table and column behind a name, where it is a column of a table."""
        name = column.name.lower()
        offered = [self.tables.get(column.table.lower())] if column.table else list(self.tables.values())
        for info in offered:
            if info is not None and name in info.names:
                return info, info.columns[info.index(name)]
        return None, None

    def _text(self, node: Any) -> str:
        """Return a node with its columns under their tables' names."""
        copy = node.copy()
        for original, mirror in zip(node.find_all(exp.Column), list(copy.find_all(exp.Column)), strict=True):
            info, _ = self._column(original)
            if info is not None:
                mirror.replace(exp.column(original.name.lower(), table=info.name.lower()))
        bare = copy if not isinstance(node, exp.Column) else exp.column(*reversed(self._cell(node)))
        return str(bare.sql(dialect=self.catalog.dialect or None))

    # --- filters -------------------------------------------------------------------------------------

    def _conjuncts(self) -> Iterator[tuple[Any, str]]:
        for holder, word in ((exp.Where, "filter"), (exp.Join, "join condition")):
            for node in self.tree.find_all(holder):
                condition = node.this if holder is exp.Where else node.args.get("on")
                parts = _parts(condition)
                for part in parts:
                    if holder is exp.Where or (len(parts) > 1 and not _equates_columns(part)):
                        yield part, word

    def _without_filters(self) -> Iterator[Mutant]:
        conjuncts = list(self._conjuncts())
        for part, word in conjuncts:
            yield self._made("no filter", part, f"without the {word} {self._text(part)}", _always)
        by_cell: dict[tuple[str, str], list[Any]] = {}
        for part, _ in conjuncts:
            by_cell.setdefault(self._cell(part), []).append(part)
        for (table, column), parts in by_cell.items():
            if column and len(parts) > 1:
                copy = self.tree.copy()
                twins = list(copy.walk())
                for part in parts:
                    twin = twins[next(i for i, n in enumerate(self.nodes) if n is part)]
                    twin.replace(exp.true())
                shown = " and ".join(self._text(part) for part in parts)
                sql = copy.sql(dialect=self.catalog.dialect or None)
                yield Mutant("no filter", table, column, f"without the filters {shown}", sql)

    def _bounds(self) -> Iterator[Mutant]:
        swaps = {exp.GT: exp.GTE, exp.GTE: exp.GT, exp.LT: exp.LTE, exp.LTE: exp.LT}
        for node in self.tree.find_all(*swaps):
            new = swaps[type(node)]
            sign, other = (_SIGN[type(node)], _SIGN[new])
            text = f"with {other} for {sign} in {self._text(node)}"
            yield self._made("boundary", node, text, _as(new))
        for node in self.tree.find_all(exp.Between):
            for end, word in (("low", "lower"), ("high", "upper")):
                text = f"without the {word} bound itself in {self._text(node)}"
                yield self._made("boundary", node, text, _open_end(end))

    def _having(self) -> Iterator[Mutant]:
        for node in self.tree.find_all(exp.Having):
            text = f"without the HAVING {self._text(node.this)}"
            yield self._made("no having", node.this, text, _always)

    def _connectives(self) -> Iterator[Mutant]:
        for node in self.tree.find_all(exp.Or):
            text = f"with AND for OR in {self._text(node)}"
            yield self._made("and/or", node, text, _as(exp.And))

    def _patterns(self) -> Iterator[Mutant]:
        for node in self.tree.find_all(exp.ILike, exp.Like):
            pattern = node.expression
            if not isinstance(pattern, exp.Literal):
                continue
            bare = pattern.name.strip("%")
            if pattern.name.startswith("%") and "%" not in bare:
                text = f"only at the start in {self._text(node)}"
                yield self._made("pattern", node, text, _with_pattern(f"{bare}%"))
            if "%" not in bare and "_" not in bare:
                text = f"with '{bare}' as a whole for the pattern in {self._text(node)}"
                yield self._made("pattern", node, text, _equals(bare))

    # --- values --------------------------------------------------------------------------------------

    def _dates(self) -> Iterator[Mutant]:
        for node in self.tree.find_all(exp.Literal):
            if node.is_string and (moment := _moment(node.name)) is not None:
                for days, word in ((1, "later"), (-1, "earlier")):
                    shifted = _written(moment + datetime.timedelta(days=days), node.name)
                    owner = node.find_ancestor(*_SIGN, exp.Between, exp.EQ) or node
                    mutant = self._made("date", node, f"with '{node.name}' one day {word}", _literal(shifted))
                    table, column = self._cell(owner)
                    yield Mutant("date", table, column, mutant.text, mutant.sql)
                if len(node.name) > 10:
                    text = f"with '{node.name[:10]}' for '{node.name}'"
                    yield self._made("date", node, text, _literal(node.name[:10]))
        for node in self.tree.find_all(exp.Interval):
            number = re.match(r"\s*(\d+)", node.this.name) if node.this is not None else None
            if number:
                more = str(int(number[1]) + 1)
                text = f"with INTERVAL {more} for INTERVAL {number[1]}"
                yield self._made("date", node, text, _interval(number[1], more))

    def _literals(self) -> Iterator[Mutant]:
        for node in self.tree.find_all(exp.Literal):
            if (
                not node.is_string
                or _moment(node.name)
                or not isinstance(node.parent, exp.EQ | exp.In | exp.NEQ)
            ):
                continue
            owner = self._cell(node.parent)
            spelt = node.name.upper() if node.name.upper() != node.name else node.name.lower()
            if spelt != node.name:
                text = f"with '{node.name}' in another case ({spelt})"
                mutant = self._made("literal", node, text, _literal(spelt))
                yield Mutant("literal", *owner, mutant.text, mutant.sql)

    def _units(self) -> Iterator[Mutant]:
        units = [u for u in _UNITS if any(u in n.sql().upper() for n in self.tree.find_all(*_TRUNCS))]
        for unit in units:
            for other in _UNITS:
                if other == unit:
                    continue
                copy = self.tree.copy()
                for node in copy.find_all(*_TRUNCS):
                    if str(node.args["unit"].name).upper() == unit:
                        node.set("unit", exp.Var(this=other))
                table, column = self._cell(next(iter(self.tree.find_all(*_TRUNCS))))
                sql = copy.sql(dialect=self.catalog.dialect or None)
                yield Mutant("date unit", table, column, f"with {other} for {unit}", sql)

    def _ratios(self) -> Iterator[Mutant]:
        for node in self.tree.find_all(exp.Div):
            if node.find(exp.AggFunc) is None:
                continue
            text = f"with {self._text(node)} upside down"
            yield self._made("ratio", node, text, _upside_down)

    # --- outputs, groups, joins ----------------------------------------------------------------------

    def _distinct(self) -> Iterator[Mutant]:
        for node in self.tree.find_all(exp.Select):
            distinct = bool(node.args.get("distinct"))
            if distinct or node is self._top():
                text = "without DISTINCT" if distinct else "with DISTINCT"
                yield Mutant("DISTINCT", "", "", text, self._made("", node, text, _toggle_distinct).sql)
        counts = [n for n in self.tree.find_all(exp.Count) if isinstance(n.this, exp.Distinct)]
        for node in counts:
            text = f"without DISTINCT in {self._text(node)}"
            yield self._made("DISTINCT", node, text, _without_distinct)
        if len(counts) > 1:
            copy = self.tree.copy()
            for node in list(copy.find_all(exp.Count)):
                if isinstance(node.this, exp.Distinct):
                    _without_distinct(node)
            sql = copy.sql(dialect=self.catalog.dialect or None)
            yield Mutant("DISTINCT", *self._cell(counts[0]), "without DISTINCT in every COUNT", sql)
        for node in self.tree.find_all(exp.Count, exp.Sum):
            if not isinstance(node.this, exp.Distinct | exp.Star) and isinstance(node.this, exp.Column):
                text = f"with DISTINCT in {self._text(node)}"
                yield self._made("DISTINCT", node, text, _with_distinct)

    def _top(self) -> Any:
        node = self.tree
        while not isinstance(node, exp.Select) and node.this is not None:
            node = node.this
        return node

    def _aggregates(self) -> Iterator[Mutant]:
        swaps = {exp.Sum: (exp.Avg,), exp.Avg: (exp.Sum,), exp.Min: (exp.Max,), exp.Max: (exp.Min,)}
        for node in self.tree.find_all(*swaps):
            for new in swaps[type(node)]:
                word = f"{new.__name__.upper()} for {self._text(node)}"
                yield self._made("aggregate", node, f"with {word}", _as_function(new))

    def _join_types(self) -> Iterator[Mutant]:
        for node in self.tree.find_all(exp.Join):
            side, kind = str(node.side or "").upper(), str(node.kind or "").upper()
            shown = self._shown_table(node)
            if side == "LEFT":
                text = f"with INNER JOIN for LEFT JOIN {shown}"
                yield self._made("join type", node, text, _joined(None))
            elif not side and kind in ("", "INNER") and (node.args.get("on") or node.args.get("using")):
                text = f"with LEFT JOIN for INNER JOIN {shown}"
                yield self._made("join type", node, text, _joined("LEFT"))

    def _limits(self) -> Iterator[Mutant]:
        for node in self.tree.find_all(exp.Limit):
            number = node.expression
            if isinstance(number, exp.Literal) and number.name.isdigit():
                owner = node.parent
                yield self._made("LIMIT", owner, f"without LIMIT {number.name}", _without_limit)
                more = str(int(number.name) + 1)
                text = f"with LIMIT {more} for LIMIT {number.name}"
                yield self._made("LIMIT", number, text, _number(more))
                for key in (owner.args["order"].expressions if owner.args.get("order") else ())[:1]:
                    yield self._made("order", key, f"with {self._text(key)} the other way", _reversed)

    def _grain(self) -> Iterator[Mutant]:
        for node in self.tree.find_all(exp.Group):
            if len(node.expressions) > 1:
                for key in node.expressions:
                    if isinstance(key, exp.Column) and not self._selected(node.parent, key):
                        text = f"without grouping by {self._text(key)}"
                        yield self._made("grain", key, text, _dropped)
            for info in dict.fromkeys(self.tables.values()):
                first = info.columns[0].name
                alias = next(a for a, t in self.tables.items() if t is info)
                if alias in _own_aliases(node.parent):
                    text = f"with GROUP BY {info.name.lower()}.{first.lower()} too"
                    made = self._made("grain", node, text, _grouped_by(first, alias))
                    yield Mutant("grain", info.name.lower(), first.lower(), made.text, made.sql)

    def _selected(self, select: Any, key: Any) -> bool:
        return any(key.sql() == column.sql() for p in select.selects for column in p.find_all(exp.Column))

    def _counts(self) -> Iterator[Mutant]:
        for node in self.tree.find_all(exp.Count):
            if isinstance(node.this, exp.Column):
                yield self._made("count", node, f"with COUNT(*) for {self._text(node)}", _counting_rows)
            elif isinstance(node.this, exp.Star):
                for alias in sorted(_own_aliases(node.find_ancestor(exp.Select))):
                    info = self.tables.get(alias)
                    for column in [c for c in info.columns if not c.not_null][:2] if info else ():
                        shown = f"{info.name}.{column.name}".lower() if info else ""
                        text = f"with COUNT({shown}) for COUNT(*)"
                        yield self._made("count", node, text, _counting(column.name, alias))

    def _columns(self) -> Iterator[Mutant]:
        """Replace a column by another of its table: in one place, and where it is grouped everywhere."""
        for column in self.tree.find_all(exp.Column):
            info, found = self._column(column)
            if info is None or found is None or not _replaceable(column):
                continue
            twins = [c for c in info.columns if c is not found and _same_kind(c.type, found.type)]
            for twin in twins[:3] if not is_text(found.type) else twins[:8]:
                text = f"with {info.name}.{twin.name} for {info.name}.{found.name}".lower()
                if _grouping(column):
                    yield self._everywhere(column, twin, info, text)
                elif not is_text(found.type):
                    yield self._made("column", column, text, _renamed(twin.name))
        yield from self._swapped_terms()

    def _swapped_terms(self) -> Iterator[Mutant]:
        """Divide by another sum of the same expression: the wrong base of a ratio."""
        for node in self.tree.find_all(exp.Div):
            bottom = node.expression
            if not isinstance(bottom, exp.AggFunc):
                continue
            for other in {n.sql(): n for n in node.this.find_all(exp.AggFunc)}.values():
                if other.sql() != bottom.sql():
                    text = f"with {self._text(other)} for {self._text(bottom)} below /"
                    yield self._made("ratio", bottom, text, _replaced(other))

    def _everywhere(self, column: Any, twin: ColumnInfo, info: TableInfo, text: str) -> Mutant:
        copy = self.tree.copy()
        for node in list(copy.find_all(exp.Column)):
            if node.name.lower() == column.name.lower() and node.table.lower() == column.table.lower():
                node.set("this", exp.to_identifier(twin.name))
        sql = copy.sql(dialect=self.catalog.dialect or None)
        return Mutant("grain", info.name.lower(), column.name.lower(), text, sql)

    def _windows(self) -> Iterator[Mutant]:
        swaps = {exp.RowNumber: exp.Rank, exp.Rank: exp.DenseRank, exp.DenseRank: exp.Rank}
        for node in self.tree.find_all(*swaps):
            new = swaps[type(node)]
            text = f"with {new.sql_name()} for {node.sql_name()}"
            yield self._made("window", node, text, _as_window(new))

    def _outputs(self) -> Iterator[Mutant]:
        for node in self.tree.find_all(exp.Coalesce):
            yield self._made("NULL", node, f"without {self._text(node)}", _first_argument)
        top = self._top()
        if len(getattr(top, "selects", [])) > 1:
            named = {column.name.lower() for column in self.tree.find_all(exp.Column) if not column.table}
            for projection in top.selects:
                inner = projection.unalias()
                if projection.alias.lower() in named:
                    continue  # ORDER BY or HAVING needs it
                if not isinstance(inner, exp.Column | exp.Star):
                    text = f"without the column {self._text(inner)}"
                    yield self._made("output", projection, text, _dropped)


_SIGN = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}
_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY")
_TRUNCS = (exp.DateTrunc, exp.TimestampTrunc)


def _parts(node: Any) -> list[Any]:
    if node is None:
        return []
    if isinstance(node, exp.And):
        return [*_parts(node.this), *_parts(node.expression)]
    return [node]


def _equates_columns(node: Any) -> bool:
    return isinstance(node, exp.EQ) and all(isinstance(s, exp.Column) for s in (node.this, node.expression))


def _own_aliases(select: Any) -> set[str]:
    source = select.args.get("from") or select.args.get("from_") if select is not None else None
    joins = select.args.get("joins") or () if select is not None else ()
    nodes = [*([source.this] if source is not None else []), *(join.this for join in joins)]
    return {node.alias_or_name.lower() for node in nodes if isinstance(node, exp.Table)}


def _replaceable(column: Any) -> bool:
    """Return whether a mistake in a column is a likely one: in a condition with a value, an aggregate,
    a group.
    """
    above = column.parent
    while above is not None and not isinstance(above, exp.Select | exp.Join):
        if isinstance(above, exp.AggFunc | exp.Group | exp.Where):
            return not _equates_columns(column.parent)
        above = above.parent
    return False


def _grouping(column: Any) -> bool:
    return isinstance(column.parent, exp.Group)


def _same_kind(one: str, two: str) -> bool:
    return any(test(one) and test(two) for test in (is_number, is_text, is_time))


def _moment(text: str) -> datetime.datetime | None:
    if not re.match(r"\d{4}-\d\d-\d\d", text):
        return None
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return None


def _written(moment: datetime.datetime, like: str) -> str:
    return moment.date().isoformat() if len(like) <= 10 else moment.isoformat(sep=" ")


def _always(_: Any) -> Any:
    return exp.true()


def _as(new: Any) -> Edit:
    return lambda node: new(this=node.this.copy(), expression=node.expression.copy())


def _as_function(new: Any) -> Edit:
    return lambda node: new(this=node.this.copy())


def _as_window(new: Any) -> Edit:
    return lambda node: new()


def _open_end(end: str) -> Edit:
    def edit(node: Any) -> Any:
        low = (exp.GT if end == "low" else exp.GTE)(this=node.this.copy(), expression=node.args["low"].copy())
        high = (exp.LT if end == "high" else exp.LTE)(
            this=node.this.copy(), expression=node.args["high"].copy()
        )
        return exp.Paren(this=exp.And(this=low, expression=high))

    return edit


def _with_pattern(pattern: str) -> Edit:
    return lambda node: node.set("expression", exp.Literal.string(pattern))


def _equals(text: str) -> Edit:
    return lambda node: exp.EQ(this=node.this.copy(), expression=exp.Literal.string(text))


def _literal(text: str) -> Edit:
    return lambda node: exp.Literal.string(text)


def _number(text: str) -> Edit:
    return lambda node: exp.Literal.number(text)


def _interval(old: str, new: str) -> Edit:
    def edit(node: Any) -> None:
        node.this.set("this", node.this.name.replace(old, new, 1))

    return edit


def _upside_down(node: Any) -> Any:
    return exp.Div(
        this=exp.Paren(this=node.expression.copy()),
        expression=exp.Paren(this=node.this.copy()),
        typed=node.args.get("typed"),
        safe=node.args.get("safe"),
    )


def _toggle_distinct(node: Any) -> None:
    node.set("distinct", None if node.args.get("distinct") else exp.Distinct())


def _without_distinct(node: Any) -> None:
    node.set("this", node.this.expressions[0].copy())


def _with_distinct(node: Any) -> None:
    node.set("this", exp.Distinct(expressions=[node.this.copy()]))


def _joined(side: str | None) -> Edit:
    def edit(node: Any) -> None:
        node.set("side", side)
        node.set("kind", None)

    return edit


def _without_limit(node: Any) -> None:
    node.set("limit", None)


def _reversed(node: Any) -> None:
    node.set("desc", not node.args.get("desc"))


def _dropped(node: Any) -> None:
    node.pop()


def _grouped_by(column: str, alias: str) -> Edit:
    return lambda node: node.append("expressions", exp.column(column, table=alias))


def _counting_rows(node: Any) -> None:
    node.set("this", exp.Star())


def _counting(column: str, alias: str) -> Edit:
    return lambda node: node.set("this", exp.column(column, table=alias))


def _renamed(name: str) -> Edit:
    return lambda node: node.set("this", exp.to_identifier(name))


def _replaced(other: Any) -> Edit:
    return lambda node: other.copy()


def _first_argument(node: Any) -> Any:
    return node.this.copy()
