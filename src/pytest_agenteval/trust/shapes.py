"""The shape of a statement: what it reads, joins, keeps, groups and gives, in one form for all spellings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from pytest_agenteval.checks.sql.parsing import part
from pytest_agenteval.trust.arithmetic import fingerprint
from pytest_agenteval.trust.bounds import Bound, filters_of
from pytest_agenteval.trust.reading import ReadStatement, StatementReader, parse_statement, read_query
from pytest_agenteval.trust.schema import Catalog, ColumnInfo, TableInfo

_INNER = frozenset(("", "INNER", "CROSS"))


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition that rows must meet: its text, and the column it is about ('' where several)."""

    text: str
    table: str
    column: str


@dataclass(slots=True)
class Shape:
    """What a statement does, whatever way it is written.

    Attributes:
        tables: how often each table is read, those that only hand a key through left out.
        outer: tables that an outer join may find no row of.
        absent: tables of which no row may match (NOT EXISTS, NOT IN, EXCEPT, LEFT JOIN ... IS NULL).
        joins: pairs of columns that are equal.
        filters: the conditions on rows, by text.
        having: the conditions on groups.
        grain: what rows are grouped by, with the plain columns that are given.
        outputs: (fingerprint, text) of each output.
        distinct: whether repeated rows are dropped.
        limit: the number of rows kept (``None``: all).
        unions: UNION, UNION ALL, EXCEPT and others, in order.
        order: (fingerprint, text) of each outermost sort key.
    """

    tables: Counter[str] = field(default_factory=Counter)
    outer: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    joins: set[frozenset[str]] = field(default_factory=set)
    filters: dict[str, Filter] = field(default_factory=dict)
    having: dict[str, Filter] = field(default_factory=dict)
    grain: set[str] = field(default_factory=set)
    outputs: list[tuple[str, str]] = field(default_factory=list)
    distinct: bool = False
    limit: int | None = None
    unions: list[str] = field(default_factory=list)
    order: list[tuple[str, str]] = field(default_factory=list)


def inferred_catalog(trees: Iterable[Any], dialect: str) -> Catalog:
    """Return a catalog of the tables and columns that statements name, types unknown."""
    columns: dict[tuple[str, str], dict[str, None]] = {}
    loose: list[tuple[list[tuple[str, str]], str]] = []
    for tree in trees:
        ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
        for select in tree.find_all(exp.Select):
            named = {}
            for table in _own_tables(select):
                if table.name.lower() not in ctes or table.db:
                    key = (table.db.lower(), table.name.lower())
                    columns.setdefault(key, {})
                    named[table.alias_or_name.lower()] = key
            for column in select.find_all(exp.Column):
                if column.table.lower() in named:
                    columns[named[column.table.lower()]][column.name.lower()] = None
                elif not column.table and named and column.find_ancestor(exp.Select) is select:
                    if column.name.lower() in {p.alias.lower() for p in select.selects if p.alias}:
                        continue
                    loose.append((list(named.values()), column.name.lower()))
    for keys, name in loose:
        if not any(name in columns[key] for key in keys):
            columns[keys[0]][name] = None
    infos = {}
    for (schema, name), found in columns.items():
        info = TableInfo(schema, name, tuple(ColumnInfo(column, "") for column in found))
        infos[info.key] = info
    return Catalog(dialect, infos)


def _own_tables(select: Any) -> list[Any]:
    source = part(select, "from")
    joins = select.args.get("joins") or ()
    found = [source.this] if source is not None else []
    return [node for node in [*found, *(join.this for join in joins)] if isinstance(node, exp.Table)]


def read_shapes(one: str, two: str, catalog: Catalog) -> tuple[Shape, Shape]:
    """Return the shapes of two statements. Raises ``NotCheckedError`` where one cannot be taken apart."""
    readers = [_ShapeReader(read_query(sql, catalog), catalog) for sql in (one, two)]
    pairs = [reader.pairs() for reader in readers]
    both = _alike([*pairs[0], *pairs[1]])
    if both is None:  # one joins what the other joins otherwise: each has its own
        own = [_alike(found) or {} for found in pairs]
        return readers[0].read(own[0]), readers[1].read(own[1])
    return readers[0].read(both), readers[1].read(both)


def shapes_without_schema(one: str, two: str, dialect: str) -> tuple[Shape, Shape]:
    """Return the shapes of two statements of which only the SQL is known. Raises ``NotCheckedError``."""
    trees = [parse_statement(sql, dialect) for sql in (one, two)]
    return read_shapes(one, two, inferred_catalog(trees, dialect))


def _alike(pairs: Iterable[tuple[str, ...]]) -> dict[str, str] | None:
    """Return the name that joined columns share, by column; ``None`` where two of one table would."""
    groups: list[set[str]] = []
    for pair in pairs:
        touching = [group for group in groups if group & set(pair)]
        groups = [group for group in groups if group not in touching] + [set(pair).union(*touching)]
    for group in groups:
        tables = [name.partition(".")[0] for name in group]
        if len(set(tables)) < len(tables):
            return None
    return {name: min(group) for group in groups for name in group}


class _ShapeReader:
    """Walks the scopes of one statement."""

    def __init__(self, query: ReadStatement, catalog: Catalog) -> None:
        self.query, self.catalog, self.shape = query, catalog, Shape()
        self.reader = StatementReader(query, catalog)
        self.same: dict[str, str] = {}

    def pairs(self) -> list[tuple[str, ...]]:
        """Return the pairs of columns that are joined, by name."""
        return [tuple(sorted((self._name(a), self._name(b)))) for a, b in self.query.joins]

    def read(self, same: dict[str, str]) -> Shape:
        """Return the shape; ``same`` is the name that joined columns share."""
        query, shape, self.same = self.query, self.shape, same
        for key in query.uses.values():
            shape.tables[key] += 1
        shape.joins = {frozenset(pair) for pair in self.pairs() if pair[0] != pair[1]}
        for scope in query.scopes:
            self._sources(scope)
        for scope in query.scopes:
            self._select(scope)
        top = query.resolved
        self._outermost(top)
        for key in shape.absent:
            shape.tables.pop(key, None)  # told of as absent
        self._drop_key_tables()
        return shape

    def _name(self, spot: Any) -> str:
        table, column = self.query.cell(spot)
        return f"{self._short(table)}.{column}"

    def _short(self, key: str) -> str:
        return key.rpartition(".")[2]

    def _sources(self, scope: Scope) -> None:
        select = scope.expression
        if not isinstance(select, exp.Select):
            return
        for join in select.args.get("joins") or ():
            side, kind = str(join.side or "").upper(), str(join.kind or "").upper()
            keys = self._tables_of(scope, join.this.alias_or_name)
            if side in ("LEFT", "FULL"):
                (self.shape.absent if self._must_be_null(scope, join) else self.shape.outer).update(keys)
            if side in ("RIGHT", "FULL"):
                source = part(select, "from")
                self.shape.outer.update(self._tables_of(scope, source.this.alias_or_name) if source else ())
            if kind == "ANTI":
                found = self.catalog.find(join.this.name.replace("__", "."))
                self.shape.absent.update(keys or ({found.key} if found else ()))
        for negated in select.find_all(exp.Not):
            inner = negated.this.unnest() if isinstance(negated.this, exp.Paren) else negated.this
            if isinstance(inner, exp.Exists) or (
                isinstance(inner, exp.In) and part(inner, "query") is not None
            ):
                for table in inner.find_all(exp.Table):
                    found = self.catalog.find(table.name.replace("__", "."))
                    self.shape.absent.update({found.key} if found else ())

    def _tables_of(self, scope: Scope, alias: str) -> set[str]:
        source = {k.lower(): s for k, (_, s) in scope.selected_sources.items()}.get(alias.lower())
        if isinstance(source, Scope):
            numbers = {self.reader.number[id(source)]}
            return {key for place, key in self.query.uses.items() if place[0] in numbers}
        key = self.query.uses.get((self.reader.number[id(scope)], alias.lower()))
        return {key} if key else set()

    def _must_be_null(self, scope: Scope, join: Any) -> bool:
        """Return whether WHERE asks that a column of a left-joined table IS NULL."""
        where = scope.expression.args.get("where")
        alias = join.this.alias_or_name.lower()
        for test in where.find_all(exp.Is) if where is not None else ():
            column = test.this
            if isinstance(column, exp.Column) and column.table.lower() == alias:
                return isinstance(test.expression, exp.Null) and not isinstance(test.parent, exp.Not)
        return False

    def _select(self, scope: Scope) -> None:
        select = scope.expression
        if isinstance(select, exp.SetOperation):
            if not isinstance(select, exp.Except):  # told of as absent rows
                word = type(select).__name__.upper()
                self.shape.unions.append(word if select.args.get("distinct") else f"{word} ALL")
            if isinstance(select, exp.Except):
                right = self.reader.by_node.get(id(select.expression.unnest()))
                base = {
                    k for p, k in self.query.uses.items() if right and p[0] == self.reader.number[id(right)]
                }
                left = {k for p, k in self.query.uses.items()} - base
                shared = [key for key in base if self.shape.tables[key] > 1]
                for key in shared:
                    self.shape.tables[key] -= 1
                self.shape.absent.update(base - left - set(shared))
            return
        if not isinstance(select, exp.Select):
            return
        conditions = [select.args[name].this for name in ("where",) if select.args.get(name)]
        conditions += [
            join.args["on"]
            for join in select.args.get("joins") or ()
            if join.args.get("on") and not (join.kind == "ANTI" and isinstance(join.args["on"], exp.EQ))
        ]
        for condition in conditions:
            self._filters(condition, self.shape.filters)
        having = select.args.get("having")
        if having is not None:
            self._filters(having.this, self.shape.having)
        group = select.args.get("group")
        for key in group.expressions if group is not None else ():
            self.shape.grain.add(self.text(key))
        if group is not None and group.args.get("all"):
            plain = [p.unalias() for p in select.selects if p.find(exp.AggFunc) is None]
            self.shape.grain |= {self.text(node) for node in plain}
        if select.args.get("distinct"):
            self.shape.grain |= {self.text(p.unalias()) for p in select.selects}

    def _filters(self, condition: Any, into: dict[str, Filter]) -> None:
        parts = [node for node in _conjuncts(condition) if not self._is_join(node)]
        inlined = [self.inlined(node) for node in parts]
        for wanted in (False, True):
            chosen = [node for node in inlined if (node.find(exp.AggFunc) is not None) == wanted]
            target = self.shape.having if wanted and not _of_rows(chosen) else into
            for bound in filters_of(chosen, self._is_day):
                target[bound.text] = Filter(bound.text, *_owner(bound))

    def _is_join(self, node: Any) -> bool:
        """Return whether a conjunct is reported elsewhere: a join, an EXISTS or IN,
        the IS NULL of an anti-join.
        """
        bare = node
        while isinstance(bare, exp.Not | exp.Paren):
            bare = bare.this
        if isinstance(bare, exp.Exists) or (isinstance(bare, exp.In) and part(bare, "query") is not None):
            return True
        if isinstance(bare, exp.Is) and isinstance(bare.this, exp.Column):
            spots = self.reader.spots(bare.this)
            if any(self.query.uses[spot[0]] in self.shape.absent for spot in spots):
                return True
        sides = (bare.this, bare.expression) if isinstance(bare, exp.EQ) else ()
        return len(sides) == 2 and all(
            isinstance(s, exp.Column) and self.reader.spots(s, exact=True) for s in sides
        )

    def _is_day(self, column: str) -> bool:
        """Return whether a column holds days: by its type, or where that is not known by its name."""
        table, _, name = column.rpartition(".")
        info = self.catalog.find(table)
        kind = next((c.type for c in info.columns if c.name.lower() == name), "") if info else ""
        return (
            kind.upper() == "DATE"
            if kind
            else re.search("date|day", name) is not None and not re.search("time|ts$|_at$", name)
        )

    def inlined(self, node: Any) -> Any:
        """Return a copy of an expression over columns of the database, named ``table.column``."""
        copy = node.copy()
        pairs = list(zip(node.find_all(exp.Column), copy.find_all(exp.Column), strict=True))
        for original, mirror in pairs:
            replacement = self._behind(original)
            if mirror is copy:
                copy = replacement
            else:
                mirror.replace(replacement)
        return copy

    def _behind(self, column: Any) -> Any:
        spots = self.reader.spots(column, exact=True)
        if spots:
            name = self._name(spots[0])
            table, _, own = self.same.get(name, name).rpartition(".")
            return exp.column(own, table=table)
        source = self._projection(column)
        return exp.Paren(this=self.inlined(source)) if source is not None else exp.column(column.name.lower())

    def _projection(self, column: Any) -> Any:
        """Return the expression of a CTE or subquery that a column stands for."""
        scope = self.reader.scope_of(column)
        if scope is None:
            return None
        for alias, (_, source) in scope.selected_sources.items():
            if not isinstance(source, Scope) or (column.table and alias.lower() != column.table.lower()):
                continue
            for projection in getattr(source.expression, "selects", []):
                if projection.alias_or_name.lower() == column.name.lower():
                    inner = projection.unalias()
                    return None if inner is column else inner
        return None

    def text(self, node: Any) -> str:
        """Return an expression in one spelling."""
        return plain_text(self.inlined(node))

    def _outermost(self, top: Any) -> None:
        shape = self.shape
        limit = top.args.get("limit")
        number = limit.find(exp.Literal) if limit is not None else None
        shape.limit = int(number.name) if number is not None and number.name.isdigit() else None
        order = top.args.get("order")
        for key in order.expressions if order is not None else ():
            inner = self._aliased(top, key.this)
            way = "DESC" if key.args.get("desc") else "ASC"
            mark = fingerprint(self.inlined(inner), shape.outer, self._counts_rows)
            shape.order.append((f"{mark} {way}", f"{self.text(inner)} {way}"))
        select = top
        while isinstance(select, exp.SetOperation | exp.Subquery):
            select = select.this
        shape.distinct = bool(select.args.get("distinct")) or self._keeps_distinct(select)
        for projection in getattr(select, "selects", []):
            inner = self.inlined(projection.unalias())
            inner = self._counted(select, inner)
            shape.outputs.append((fingerprint(inner, shape.outer, self._counts_rows), plain_text(inner)))
            if isinstance(inner, exp.Column) and shape.grain:
                shape.grain.add(plain_text(inner))
        self._count_of_condition(select)

    def _aliased(self, top: Any, key: Any) -> Any:
        for projection in getattr(top, "selects", []):
            if isinstance(key, exp.Column) and not key.table and projection.alias_or_name == key.name:
                return projection.unalias()
        return key

    def _keeps_distinct(self, select: Any) -> bool:
        """Return whether a GROUP BY of all that is given, without an aggregate, does what DISTINCT does."""
        group = select.args.get("group")
        return group is not None and select.find(exp.AggFunc) is None

    def _counted(self, select: Any, output: Any) -> Any:
        """Return COUNT(DISTINCT x) for a COUNT(*) over a SELECT DISTINCT x."""
        source = part(select, "from")
        inner = source.this if source is not None else None
        if not (isinstance(output, exp.Count) and isinstance(inner, exp.Subquery)) or select.args.get(
            "joins"
        ):
            return output
        nested = inner.this
        if isinstance(nested, exp.Select) and nested.args.get("distinct") and len(nested.selects) == 1:
            column = self.inlined(nested.selects[0].unalias())
            self.shape.grain.discard(plain_text(column))
            return exp.Count(this=exp.Distinct(expressions=[column]))
        return output

    def _count_of_condition(self, select: Any) -> None:
        """Read a lone COUNT(CASE WHEN p THEN 1 END) as COUNT(*) with the filter p."""
        shape = self.shape
        if len(shape.outputs) != 1 or shape.grain or shape.filters:
            return
        inner = self.inlined(select.selects[0].unalias())
        case = inner.this if isinstance(inner, exp.Count) else None
        if isinstance(case, exp.Case) and len(case.args["ifs"]) == 1 and case.args.get("default") is None:
            for bound in filters_of(_conjuncts(case.args["ifs"][0].this), self._is_day):
                shape.filters[bound.text] = Filter(bound.text, *_owner(bound))
            count = exp.Count(this=exp.Star())
            shape.outputs = [(fingerprint(count, shape.outer, self._counts_rows), "COUNT(*)")]

    def _drop_key_tables(self) -> None:
        """Leave out a table of which only a joined column is used: it hands the key through."""
        shape = self.shape
        used = " ".join(
            [
                *shape.filters,
                *shape.having,
                *shape.grain,
                *(t for _, t in shape.order),
                *(t for _, t in shape.outputs),
            ]
        )
        for key in list(shape.tables):
            short = self._short(key)
            joined = {name for pair in shape.joins for name in pair if name.startswith(f"{short}.")}
            others = set(re.findall(rf"(?<![\w.]){re.escape(short)}\.\w+", used))
            others = {name for name in others if name not in joined}
            if not joined or others or key in shape.outer or key in shape.absent or len(joined) > 1:
                continue
            if shape.tables[key] == 1 and sum(shape.tables.values()) > 1 and self._is_key(key, joined):
                del shape.tables[key]
                shape.joins = {pair for pair in shape.joins if not pair & joined}

    def _is_key(self, key: str, joined: set[str]) -> bool:
        """Return whether a table is joined by its key, as far as its name or the declared keys say."""
        return self._keyed(key, next(iter(joined)).rpartition(".")[2])

    def _keyed(self, key: str, name: str) -> bool:
        declared = {columns for table, columns in self.catalog.declared.keys if table == key}
        if declared:
            return (name,) in declared
        bare = name.removesuffix("id").strip("_")
        return name.endswith("id") and self._short(key).startswith(bare)

    def _counts_rows(self, column: Any) -> bool:
        """Return whether no row repeats a column: the key of a table that all others only add parents to."""
        name = f"{column.table}.{column.name}"
        keys = {key for key in self.query.uses.values() if self._short(key) == column.table}
        if len(keys) != 1 or self.shape.outer or not self._keyed(next(iter(keys)), column.name):
            return False
        for key in set(self.query.uses.values()) - keys:
            own = {n for pair in self.shape.joins for n in pair if n.startswith(f"{self._short(key)}.")}
            if not any(self._keyed(key, entry.rpartition(".")[2]) for entry in own - {name}):
                return False
        return True


def _of_rows(conditions: list[Any]) -> bool:
    """Return whether a condition compares a row with an aggregate of a subquery: it is one on rows."""
    return any(
        column.find_ancestor(exp.AggFunc) is None
        for node in conditions
        for column in node.find_all(exp.Column)
    )


def _owner(bound: Bound) -> tuple[str, str]:
    table, _, column = bound.column.rpartition(".")
    return table, column


def _conjuncts(node: Any) -> list[Any]:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.And):
        return [*_conjuncts(node.this), *_conjuncts(node.expression)]
    return [node]


def plain_text(node: Any) -> str:
    """Return an expression as text, without needless brackets and casts of texts to dates."""
    copy = node.copy()
    for cast in list(copy.find_all(exp.Cast)):
        if isinstance(cast.this, exp.DateTrunc | exp.TimestampTrunc) and cast is not copy:
            cast.replace(cast.this)
    if isinstance(copy, exp.Cast) and isinstance(copy.this, exp.DateTrunc | exp.TimestampTrunc):
        copy = copy.this  # the first moment of a period is its day
    text = str(copy.sql(dialect="duckdb"))
    return re.sub(r"\bCOUNT_IF\b", "COUNTIF", text)
