"""A statement into what made-up rows must aim at: tables, joins, conditions on one column, counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

from pytest_agenteval.checks.sql.parsing import part
from pytest_agenteval.databases.select_only import quiet_parser
from pytest_agenteval.trust.errors import NotCheckedError
from pytest_agenteval.trust.schema import Catalog, Cell

Place: TypeAlias = tuple[int, str]
"""One use of a table in a statement: (the scope's number, the alias)."""

Spot: TypeAlias = tuple[Place, str]
"""A column of one use of a table."""

_ATOMS = (
    exp.EQ,
    exp.NEQ,
    exp.GT,
    exp.GTE,
    exp.LT,
    exp.LTE,
    exp.Between,
    exp.In,
    exp.Is,
    exp.Like,
    exp.ILike,
    exp.RegexpLike,
    exp.RegexpILike,
    exp.SimilarTo,
    exp.StartsWith,
    exp.Contains,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
)

_VOLATILE = (
    exp.CurrentDate,
    exp.CurrentTime,
    exp.CurrentTimestamp,
    exp.Rand,
    exp.Uuid,
)

_VOLATILE_NAMES = frozenset(
    [
        "now",
        "random",
        "setseed",
        "uuid",
        "gen_random_uuid",
        "today",
        "current_localtimestamp",
        "nextval",
        "currval",
        "transaction_timestamp",
        "statement_timestamp",
        "clock_timestamp",
        "getdate",
        "sysdate",
    ]
)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one column of one use of a table.

    ``sql``: the condition with the column written ``v``, in the dialect. ``required``: it stands in WHERE
    or ON and must hold; others (CASE WHEN, FILTER) only distinguish rows.
    """

    spot: Spot
    cell: Cell
    sql: str
    required: bool
    constants: tuple[str, ...] = ()
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """Two different columns that are compared: ``left op right``; ``right_sql`` has its column as ``v``."""

    left: Spot
    right: Spot
    operator: str
    right_sql: str


@dataclass(slots=True)
class ReadStatement:
    """One statement, taken apart for making rows.

    Attributes:
        views: the CREATE VIEW of each view that is read, also by another view.
        uses: place -> table key, for every use of a table of the database.
        joins: pairs of spots that are equal.
        tests: conditions on one column.
        links: comparisons of two columns.
        counts: small whole numbers that are compared with an aggregate, or limit the rows.
        limits: the numbers of LIMIT.
        optional: places that an outer join, EXISTS or IN may leave without a row.
        used: every column that is named.
        grouped: columns that are grouped by, partitioned by or made distinct.
    """

    sql: str
    tree: Any
    resolved: Any
    scopes: list[Scope] = field(default_factory=list)
    views: set[str] = field(default_factory=set)
    uses: dict[Place, str] = field(default_factory=dict)
    joins: list[tuple[Spot, Spot]] = field(default_factory=list)
    tests: list[Condition] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    counts: set[int] = field(default_factory=set)
    limits: list[int] = field(default_factory=list)
    optional: set[Place] = field(default_factory=set)
    used: set[Cell] = field(default_factory=set)
    grouped: set[Cell] = field(default_factory=set)

    @property
    def tables(self) -> frozenset[str]:
        """Return the keys of the tables that are read."""
        return frozenset(self.uses.values())

    def equal_cells(self) -> set[tuple[Cell, Cell]]:
        """Return the pairs of different columns that the joins equate."""
        pairs = set()
        for left, right in self.joins:
            a, b = self.cell(left), self.cell(right)
            if a != b:
                pairs.add((a, b))
        return pairs

    def cell(self, spot: Spot) -> Cell:
        """Return the column of the database behind a spot."""
        return self.uses[spot[0]], spot[1]


def parse_statement(sql: str, dialect: str) -> Any:
    """Return the tree of one SELECT. Raises ``NotCheckedError`` saying why it cannot be taken apart."""
    try:
        with quiet_parser():
            trees = [tree for tree in sqlglot.parse(sql, read=dialect or None) if tree is not None]
    except (SqlglotError, RecursionError) as error:
        reason = str(error).split("\n", 1)[0].replace("\x1b[4m", "").replace("\x1b[0m", "")
        raise NotCheckedError(f"the SQL cannot be parsed as {dialect or 'SQL'}: {reason}") from error
    trees = [tree for tree in trees if not isinstance(tree, exp.Semicolon)]
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise NotCheckedError("the SQL is not one SELECT")
    return trees[0]


def read_query(sql: str, catalog: Catalog) -> ReadStatement:
    """Return a statement taken apart. Raises ``NotCheckedError`` where it cannot be, or is not repeatable."""
    tree = parse_statement(sql, catalog.dialect)
    _refuse_unrepeatable(tree)
    views: set[str] = set()
    resolved = _resolved(_without_views(tree, catalog, views), catalog)
    query = ReadStatement(sql, tree, resolved, views=views)
    try:
        query.scopes = list(traverse_scope(resolved))
        StatementReader(query, catalog).read()
    except (SqlglotError, RecursionError) as error:
        raise NotCheckedError(f"the names of the SQL cannot be resolved: {error}") from error
    return query


def _refuse_unrepeatable(tree: Any) -> None:
    for node in tree.walk():
        name = ""
        if isinstance(node, _VOLATILE):
            name = node.sql().rstrip("()").lower()
        elif (isinstance(node, exp.Anonymous) and node.name.lower() in _VOLATILE_NAMES) or (
            isinstance(node, exp.Column) and not node.table and node.name.lower() in ("current_date", "today")
        ):
            name = node.name.lower()
        if name:
            raise NotCheckedError(f"the SQL uses {name}(), which is another value at each run")
        if isinstance(node, exp.TableSample):
            raise NotCheckedError("the SQL samples its rows")
        if isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier):
            this = node.this
            named = isinstance(this, exp.Func) and not isinstance(this, exp.Anonymous)
            call = this.sql_name() if named else this.name
            if call.lower() not in _GENERATORS:
                raise NotCheckedError(f"the SQL reads the table function {call.lower()}()")


_GENERATORS = frozenset(  # table functions that read nothing
    ("generate_series", "range", "unnest", "generateseries", "explode", "json_each")
)


def _without_views(tree: Any, catalog: Catalog, seen: set[str]) -> Any:
    """Return the tree with each view replaced by what it selects, views of views too."""
    result = tree.copy()
    for _ in range(10):
        ctes = {cte.alias.lower() for cte in result.find_all(exp.CTE)}
        found = False
        for table in list(result.find_all(exp.Table)):
            if table.name.lower() in ctes and not table.db:
                continue
            definition = catalog.view(".".join(p for p in (table.db, table.name) if p))
            if definition is None or catalog.find(table.name) is not None:
                continue
            view = parse_view(definition, catalog.dialect)
            seen.add(definition)
            table.replace(
                exp.Subquery(this=view, alias=exp.TableAlias(this=exp.to_identifier(table.alias_or_name)))
            )
            found = True
        if not found:
            return result
    raise NotCheckedError("the SQL reads a view over views that has no end")


def parse_view(sql: str, dialect: str) -> Any:
    """Return the SELECT of a CREATE VIEW. Raises ``NotCheckedError`` where it cannot be parsed."""
    try:
        with quiet_parser():
            tree = sqlglot.parse_one(sql, read=dialect or None)
    except SqlglotError as error:
        raise NotCheckedError("the SQL reads a view that cannot be parsed") from error
    select = tree.expression if isinstance(tree, exp.Create) else tree
    if not isinstance(select, exp.Query):
        raise NotCheckedError("the SQL reads a view that cannot be parsed")
    return select


def _resolved(tree: Any, catalog: Catalog) -> Any:
    """Return the tree with every column under its table's alias, stars and positions written out."""
    schema: dict[str, object] = {}
    renamed = tree.copy()
    ctes = {cte.alias.lower() for cte in renamed.find_all(exp.CTE)}
    for table in list(renamed.find_all(exp.Table)):
        if not isinstance(table.this, exp.Identifier) or (table.name.lower() in ctes and not table.db):
            continue
        info = catalog.find(".".join(p for p in (table.db, table.name) if p))
        if info is None:
            continue
        flat = info.key.replace(".", "__")
        schema[flat] = dict.fromkeys(info.names, "TEXT")
        alias = table.alias or table.name
        table.set("this", exp.to_identifier(flat))
        table.set("db", None)
        table.set("catalog", None)
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
        table.meta["table_key"] = info.key
    try:
        with quiet_parser():
            return qualify(
                renamed,
                schema=schema,
                dialect=catalog.dialect or None,
                quote_identifiers=False,
                identify=False,
                validate_qualify_columns=False,
            )
    except (SqlglotError, RecursionError, ValueError, KeyError, AttributeError):
        return renamed


class StatementReader:
    """Fills a ``ReadStatement`` from its scopes."""

    def __init__(self, query: ReadStatement, catalog: Catalog) -> None:
        self.query, self.catalog = query, catalog
        self.number = {id(scope): i for i, scope in enumerate(query.scopes)}
        self.by_node = {id(scope.expression): scope for scope in query.scopes}
        self.columns = {key: set(table.names) for key, table in catalog.tables.items()}

    def read(self) -> None:
        """Fill the statement."""
        query = self.query
        for scope in query.scopes:
            for alias, (node, source) in scope.selected_sources.items():
                key = self._table(source)
                if key is not None:
                    query.uses[self.number[id(scope)], alias.lower()] = key
                    if _outer(node):
                        query.optional.add((self.number[id(scope)], alias.lower()))
        for scope in query.scopes:
            self._conditions(scope)
            self._counts(scope)
        for column in query.resolved.find_all(exp.Column):
            for spot in self.spots(column):
                query.used.add(query.cell(spot))
        for node in query.resolved.find_all(exp.Group, exp.Window):
            parts = node.args.get("partition_by") or [] if isinstance(node, exp.Window) else [node]
            for column in (column for part_ in parts for column in part_.find_all(exp.Column)):
                query.grouped |= {query.cell(spot) for spot in self.spots(column)}
        for select in query.resolved.find_all(exp.Select):
            if select.args.get("distinct"):
                for projection in select.expressions:
                    for column in projection.find_all(exp.Column):
                        query.grouped |= {query.cell(spot) for spot in self.spots(column)}

    def _table(self, source: Any) -> str | None:
        if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
            return None
        key = source.meta.get("table_key")
        if key is None:
            info = self.catalog.find(source.name.replace("__", ".")) or self.catalog.find(source.name)
            key = info.key if info else None
        if key is None:
            raise NotCheckedError(f"the SQL reads {source.name}, which is no table of the database")
        return str(key)

    def scope_of(self, node: Any) -> Scope | None:
        """Return the scope of the query around a node."""
        above = node
        while above is not None:
            if id(above) in self.by_node:
                return self.by_node[id(above)]
            above = above.parent
        return None

    def spots(self, column: Any, exact: bool = False) -> list[Spot]:
        """Return the columns of the database behind a column, through CTEs and subqueries.

        A MIN or MAX of a column counts as one of its values, but with ``exact``.
        """
        scope = self.scope_of(column)
        name = column.name.lower()
        while scope is not None:
            sources = {key.lower(): source for key, (_, source) in scope.selected_sources.items()}
            if column.table:
                if column.table.lower() in sources:
                    return self._of(scope, column.table.lower(), sources[column.table.lower()], name, exact)
            else:
                for alias, source in sources.items():
                    found = self._of(scope, alias, source, name, exact)
                    if found:
                        return found
            scope = scope.parent
        return []

    def _of(self, scope: Scope, alias: str, source: Any, name: str, exact: bool) -> list[Spot]:
        if isinstance(source, Scope):
            return self._through(source, name, exact)
        place = (self.number[id(scope)], alias)
        key = self.query.uses.get(place)
        return [(place, name)] if key is not None and name in self.columns[key] else []

    def _through(self, scope: Scope, name: str, exact: bool) -> list[Spot]:
        query = scope.expression
        if isinstance(query, exp.SetOperation):
            sides = [self.by_node.get(id(side.unnest())) for side in (query.this, query.expression)]
            position = next((i for i, p in enumerate(query.selects) if p.alias_or_name.lower() == name), None)
            found: list[Spot] = []
            for side in sides:
                selects: list[Any] = getattr(side.expression, "selects", []) if side is not None else []
                if position is not None and position < len(selects):
                    target = selects[position].unalias()
                    found += self.spots(target, exact) if isinstance(target, exp.Column) else []
            return found
        for projection in getattr(query, "selects", []):
            if projection.alias_or_name.lower() == name:
                inner = projection.unalias()
                if not exact and isinstance(inner, exp.Min | exp.Max | exp.AnyValue | exp.First | exp.Last):
                    inner = inner.this  # the value is one of the column's
                return self.spots(inner, exact) if isinstance(inner, exp.Column) else []
        return []

    def _natural(self, scope: Scope) -> None:
        """Add what NATURAL JOIN equates: the columns that both sides have."""
        number = self.number[id(scope)]
        for join in scope.expression.args.get("joins") or ():
            if str(join.args.get("method") or "").upper() != "NATURAL":
                continue
            right = (number, join.this.alias_or_name.lower())
            for left in [place for place in self.query.uses if place[0] == number and place != right]:
                if right in self.query.uses:
                    shared = self.columns[self.query.uses[left]] & self.columns[self.query.uses[right]]
                    self.query.joins += [((left, name), (right, name)) for name in sorted(shared)]

    def _conditions(self, scope: Scope) -> None:
        query = scope.expression
        if not isinstance(query, exp.Select):
            return
        self._natural(scope)
        for atom in query.find_all(*_ATOMS):
            if self.scope_of(atom) is scope:
                self._atom(scope, atom)
        for exists in query.find_all(exp.Exists):
            for inner in exists.find_all(exp.Select):
                self._mark_optional(inner)
        for column in query.find_all(exp.Column):
            # a bare boolean column as a condition
            if (
                isinstance(column.parent, exp.Where | exp.And | exp.Or | exp.Not)
                and self.scope_of(column) is scope
            ):
                self._bare(column)

    def _mark_optional(self, select: Any) -> None:
        inner = self.by_node.get(id(select))
        if inner is not None:
            number = self.number[id(inner)]
            self.query.optional |= {place for place in self.query.uses if place[0] == number}

    def _bare(self, column: Any) -> None:
        for spot in self.spots(column):
            text = "NOT v" if isinstance(column.parent, exp.Not) else "v"
            self.query.tests.append(Condition(spot, self.query.cell(spot), text, True))

    def _atom(self, scope: Scope, atom: Any) -> None:
        if isinstance(atom, exp.In) and part(atom, "query") is not None:
            self._in_query(atom)
            return
        if atom.find(exp.Query) is not None:
            self._numbers(atom)
            return
        if atom.find(exp.AggFunc, exp.Window) is not None:
            self._numbers(atom)
            return
        columns = list(atom.find_all(exp.Column))
        if isinstance(atom, exp.Column):
            columns = [atom]
        resolved = [(column, spots[0]) for column in columns if (spots := self.spots(column))]
        if len(resolved) < len(columns):
            self._numbers(atom)
        distinct = {spot for _, spot in resolved}
        if len(distinct) == 1 and len(resolved) == len(columns):
            self._test(atom, resolved)
        elif len(distinct) == 2 and len(resolved) == len(columns):
            self._pair(atom, resolved)

    def _in_query(self, atom: Any) -> None:
        inner = part(atom, "query").find(exp.Select)
        self._mark_optional(inner)
        target = inner.selects[0].unalias() if inner is not None and inner.selects else None
        if isinstance(target, exp.Column) and isinstance(atom.this, exp.Column):
            for left in self.spots(atom.this)[:1]:
                for right in self.spots(target)[:1]:
                    self.query.joins.append((left, right))

    def _numbers(self, atom: Any) -> None:
        for literal in atom.find_all(exp.Literal):
            if not literal.is_string and literal.name.isdigit() and 0 < int(literal.name) <= 20:
                self.query.counts.add(int(literal.name))

    def _test(self, atom: Any, resolved: list[tuple[Any, Spot]]) -> None:
        spot = resolved[0][1]
        required, outermost = _stands(atom)
        shown = _with_placeholder(outermost, resolved)
        dialect = self.catalog.dialect or None
        constants = tuple(dict.fromkeys(node.sql(dialect=dialect) for node in _constants(atom)))
        pattern = None
        if isinstance(
            atom, exp.Like | exp.ILike | exp.RegexpLike | exp.RegexpILike | exp.StartsWith | exp.Contains
        ):
            literal = atom.expression.find(exp.Literal) if atom.expression is not None else None
            pattern = literal.name if literal is not None and literal.is_string else None
        text = shown.sql(dialect=dialect)
        self.query.tests.append(Condition(spot, self.query.cell(spot), text, required, constants, pattern))

    def _pair(self, atom: Any, resolved: list[tuple[Any, Spot]]) -> None:
        spots = list(dict.fromkeys(spot for _, spot in resolved))
        plain = isinstance(atom, exp.EQ) and isinstance(atom.this, exp.Column)
        if plain and isinstance(atom.expression, exp.Column):
            self.query.joins.append((spots[0], spots[1]))
            return
        if isinstance(atom, exp.Between):
            sides = [("GTE", atom.this, atom.args["low"]), ("LTE", atom.this, atom.args["high"])]
        else:
            sides = [(type(atom).__name__, atom.this, atom.expression)]
        for operator, left, right in sides:
            if left is None or right is None:
                continue
            one = [s for c, s in resolved if _inside(c, left)]
            two = [(c, s) for c, s in resolved if _inside(c, right)]
            if len(set(one)) == 1 and len({s for _, s in two}) == 1:
                text = _with_placeholder(right, two).sql(dialect=self.catalog.dialect or None)
                self.query.links.append(Link(one[0], two[0][1], operator, text))

    def _counts(self, scope: Scope) -> None:
        limit = scope.expression.args.get("limit") if isinstance(scope.expression, exp.Query) else None
        number = limit.find(exp.Literal) if limit is not None else None
        if number is not None and number.name.isdigit():
            self.query.limits.append(int(number.name))
        having = scope.expression.args.get("having") if isinstance(scope.expression, exp.Select) else None
        if having is not None:
            self._numbers(having)


def _outer(node: Any) -> bool:
    """Return whether a source is joined so that it may have no row."""
    join = node.parent if node is not None else None
    return isinstance(join, exp.Join) and (
        join.side in ("LEFT", "RIGHT", "FULL") or join.kind in ("SEMI", "ANTI")
    )


def _stands(atom: Any) -> tuple[bool, Any]:
    """Return whether an atom must hold (WHERE, ON), and the atom with the NOT before it."""
    node = atom
    while isinstance(node.parent, exp.Not | exp.Paren) and not isinstance(node.parent, exp.Subquery):
        node = node.parent
    above = node.parent
    while above is not None:
        if isinstance(above, exp.Where):
            return True, node
        if isinstance(above, exp.Join):
            return True, node
        if isinstance(above, exp.Case | exp.If | exp.Filter | exp.Having | exp.Select):
            return isinstance(above, exp.Having), node
        above = above.parent
    return False, node


def _constants(atom: Any) -> Iterator[Any]:
    """Yield the largest parts of a condition without a column."""
    stack = list(atom.iter_expressions())
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Column | exp.Identifier | exp.DataType | exp.Var | exp.Interval):
            continue
        if node.find(exp.Column) is None:
            if isinstance(
                node, exp.Literal | exp.Cast | exp.Add | exp.Sub | exp.Neg | exp.Func | exp.Paren | exp.Mul
            ):
                yield node
            elif isinstance(node, exp.Tuple):
                stack += list(node.iter_expressions())
            continue
        stack += list(node.iter_expressions())


def _with_placeholder(node: Any, resolved: Sequence[tuple[Any, Spot]]) -> Any:
    """Return a copy of a condition with its columns written ``v``."""
    wanted = {id(column) for column, _ in resolved}
    marks = [i for i, inner in enumerate(node.walk()) if id(inner) in wanted]
    copy = node.copy()
    nodes = list(copy.walk())
    for at in marks:
        inner = nodes[at]
        replacement = exp.column("v")
        if inner is copy:
            copy = replacement
        else:
            inner.replace(replacement)
    return copy


def _inside(node: Any, top: Any) -> bool:
    while node is not None:
        if node is top:
            return True
        node = node.parent
    return False
