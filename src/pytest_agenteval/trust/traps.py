"""Trap data: a handful of rows that two statements are likely to read differently."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_agenteval.trust.engines import TrialEngine, TrialError, literal
from pytest_agenteval.trust.fitting import Fitter
from pytest_agenteval.trust.reading import Condition, Link, Place, ReadStatement, Spot
from pytest_agenteval.trust.schema import Catalog, Cell, Rows
from pytest_agenteval.trust.values import ColumnValues, as_time, kind_of, nearby

MOST_LADDER = 12
"""The largest LIMIT for which groups of growing size are made."""


class TrapMaker:
    """Makes one small set of rows after the other; the same seed makes the same sets."""

    def __init__(
        self,
        catalog: Catalog,
        queries: tuple[ReadStatement, ReadStatement],
        fitter: Fitter,
        values: Mapping[Cell, ColumnValues],
        engine: TrialEngine,
        seed: int,
    ) -> None:
        self.catalog, self.queries, self.fitter, self.values, self.engine = (
            catalog,
            queries,
            fitter,
            values,
            engine,
        )
        self.draw = random.Random(seed)
        self.tables = sorted(fitter.pool)
        self.used = sorted(queries[0].used | queries[1].used)
        self.telling = self._telling()
        self.counts = sorted({n for query in queries for n in query.counts if n <= MOST_LADDER})
        self.limits = sorted({n for query in queries for n in query.limits if n <= MOST_LADDER})
        self.grouped = queries[0].grouped | queries[1].grouped
        self.parents_of = {(rule.parent, rule.child) for rule in fitter.rules.references}
        self.joined = {cell for query in queries for pair in query.equal_cells() for cell in pair}
        self.joined |= {query.cell(s) for query in queries for pair in query.joins for s in pair}

    def make(self, number: int) -> Rows:
        """Return the rows of trial ``number`` (0, 1, 2 ...)."""
        rows: Rows = {table: [] for table in self.tables}
        plan = self._plan(number)
        if plan == "real":
            self._real_rows(rows)
        elif plan == "ladder":
            self._ladder(rows)
        elif plan == "burst":
            self._burst(rows)
        elif plan == "series":
            self._series(rows)
        elif plan == "ties":
            self._ties(rows)
        else:
            for _ in range(1 if plan == "one" else self.draw.choice((1, 2, 2, 3, 4))):
                self._tuple(rows, self.draw.choice(self.queries), exact=plan == "one")
        if plan == "copies" or self.draw.random() < 0.25:
            self._copies(rows, keep_children=self.draw.random() < 0.5)
        if plan == "changed" or self.draw.random() < 0.3:
            self._changes(rows, self.draw.choice((1, 1, 2, 3)))
        return self.fitter.fit(rows, self.draw)

    def _plan(self, number: int) -> str:
        if number < 4:
            return "one"
        plans = ["one", "some", "some", "copies", "copies", "changed", "changed", "real", "series", "ties"]
        plans += ["ladder"] * (4 if self.limits else 0) + ["burst"] * (3 if self.counts else 0)
        return self.draw.choice(plans)

    def _telling(self) -> dict[Cell, list[Any]]:
        """Return, by column, the values on which the conditions of the two statements disagree."""
        found: dict[Cell, list[Any]] = {}
        for cell, values in self.values.items():
            for required in (True, False):
                one, other = (
                    [t.sql for t in query.tests if t.cell == cell and (t.required or not required)]
                    for query in self.queries
                )
                if set(one) != set(other):
                    found[cell] = values.telling(one, other) or found.get(cell, [])
                if found.get(cell):
                    break
        return {cell: listed for cell, listed in found.items() if listed}

    def _tuple(
        self,
        rows: Rows,
        query: ReadStatement,
        *,
        exact: bool = False,
        shared: Mapping[Place, list[Any]] | None = None,
    ) -> dict[Place, list[Any]]:
        """Add one row for each use of a table, so that they join and meet the conditions, or nearly."""
        draw, made = self.draw, dict(shared or {})
        fixed = set(made)
        for place, table in query.uses.items():
            if place not in made:
                if rows[table] and draw.random() < (0.1 if exact else 0.3):
                    made[place] = draw.choice(rows[table])
                    fixed.add(place)
                else:
                    made[place] = self.fitter.template(table, draw)
        chosen = self._choose(query, made, fixed, exact)
        kept: dict[Place, set[str]] = {place: set() for place in made}
        self._join(rows, query, made, fixed, chosen, kept)
        for link in query.links:
            self._link(query, link, made, fixed)
        absent = self._absent(query, exact)
        for place, row in made.items():
            table = query.uses[place]
            if place in fixed or place in absent:
                continue
            if not exact:
                self._vary(table, row, kept[place])
            self._add(rows, table, row, kept[place])
        return made

    def _choose(
        self, query: ReadStatement, made: Mapping[Place, list[Any]], fixed: set[Place], exact: bool
    ) -> dict[Spot, Any]:
        """Return a value for every column with conditions, and write it into the rows."""
        by_spot: dict[Spot, list[Condition]] = {}
        for test in query.tests:
            by_spot.setdefault(test.spot, []).append(test)
        missing = (
            self.draw.choice(list(by_spot)) if by_spot and not exact and self.draw.random() < 0.35 else None
        )
        chosen: dict[Spot, Any] = {}
        for spot, tests in by_spot.items():
            place, column = spot
            values = self.values.get(query.cell(spot))
            if place in fixed or values is None or not values.signature:
                continue
            value = self._value(values, query.cell(spot), tests, missing == spot)
            if value is not None:
                made[place][self.fitter.at(query.uses[place], column)] = value
                chosen[spot] = value
        for cell, listed in self.telling.items():
            # the other statement has conditions here that this one has not
            for place, table in query.uses.items():
                if table == cell[0] and (place, cell[1]) not in by_spot and place not in fixed:
                    values = self.values[cell]
                    value = self.draw.choice(listed if self.draw.random() < 0.6 else list(values.signature))
                    made[place][self.fitter.at(table, cell[1])] = value
                    chosen[place, cell[1]] = value
        return chosen

    def _value(self, values: ColumnValues, cell: Cell, tests: Sequence[Condition], miss: bool) -> Any:
        required = [test.sql for test in tests if test.required]
        if cell in self.telling and self.draw.random() < 0.6:
            return self.draw.choice(self.telling[cell])
        if required and (miss or self.draw.random() < 0.8):
            fitting = values.holding(required, wanted=not miss)
            if fitting:
                groups = [group for group in values.classes() if set(group) & set(fitting)]
                group = self.draw.choice(groups)
                return self.draw.choice([value for value in group if value in fitting])
        return self.draw.choice(self.draw.choice(values.classes()))

    def _join(
        self,
        rows: Rows,
        query: ReadStatement,
        made: Mapping[Place, list[Any]],
        fixed: set[Place],
        chosen: Mapping[Spot, Any],
        kept: dict[Place, set[str]],
    ) -> None:
        """Give the columns that are joined one value; a key gets a new one or that of a row there is."""
        for group in _groups(query.joins):
            spots = [spot for spot in group if spot[0] in made]
            value = next((self._at(query, made, s) for s in spots if s[0] in fixed), None)
            if value is None:
                value = next((chosen[s] for s in spots if s in chosen), None)
            if value is None:
                key = next((s for s in spots if query.cell(s) in self.fitter.single), spots[0])
                table, column = query.cell(key)
                value = self._at(query, made, key)
                if query.cell(key) in self.fitter.single or value is None:
                    value = self.fitter.fresh(rows, table, column, value, self.draw)
            for place, column in spots:
                if place not in fixed:
                    made[place][self.fitter.at(query.uses[place], column)] = value
                    kept[place].add(column)

    def _at(self, query: ReadStatement, made: Mapping[Place, list[Any]], spot: Spot) -> Any:
        return made[spot[0]][self.fitter.at(query.uses[spot[0]], spot[1])]

    def _link(
        self,
        query: ReadStatement,
        link: Link,
        made: Mapping[Place, list[Any]],
        fixed: set[Place],
    ) -> None:
        """Put one side of a comparison of two columns on the other's edge, or next to it."""
        if self.draw.random() < 0.15:
            return
        (place, _), other = link.left, link.right
        if place in fixed:
            return
        base = self._at(query, made, other)
        info = self.catalog.column(query.cell(link.left))
        value = self._computed(link.right_sql, base, self.catalog.column(query.cell(other)).type)
        if kind_of(info) == "time" and value is not None:
            value = as_time(value, info)
        if value is None:
            return
        if self.draw.random() < 0.45:
            value = nearby(value, info, self.draw)
        group = next((g for g in _groups(query.joins) if link.left in g), [link.left])
        for spot in group:
            if spot[0] in made and spot[0] not in fixed:
                made[spot[0]][self.fitter.at(query.uses[spot[0]], spot[1])] = value

    def _computed(self, sql: str, base: Any, kind: str) -> Any:
        if base is None:
            return None
        if sql == "v":
            return base
        try:
            shown = f"CAST({literal(base)} AS {kind})" if kind else literal(base)
            return next(iter(self.engine.run(f"SELECT {sql} FROM (SELECT {shown} AS v) AS x").rows()))[0]
        except (TrialError, StopIteration):
            return None

    def _absent(self, query: ReadStatement, exact: bool) -> set[Place]:
        """Return the places that get no row this time: what an outer join or EXISTS may not find."""
        if exact and self.draw.random() < 0.7:
            return set()
        offered = sorted(query.optional) or (sorted(query.uses) if len(query.uses) > 1 else [])
        chance = 0.5 if query.optional else 0.25
        return {self.draw.choice(offered)} if offered and self.draw.random() < chance else set()

    def _vary(self, table: str, row: list[Any], keep: set[str]) -> None:
        """Change columns that the statements name and no condition binds."""
        for owner, column in self.used:
            if owner != table or column in keep or self.draw.random() > 0.25:
                continue
            cell = (owner, column)
            if cell in self.joined or self.values[cell].tests:
                continue
            row[self.fitter.at(table, column)] = self._other(cell, row)

    def _other(self, cell: Cell, row: Sequence[Any]) -> Any:
        values = self.values[cell]
        if cell not in self.fitter.rules.not_null and self.draw.random() < 0.3:
            return None
        if values.all and self.draw.random() < 0.6:
            return self.draw.choice(values.all)
        return nearby(row[self.fitter.at(*cell)], values.column, self.draw)

    def _add(self, rows: Rows, table: str, row: list[Any], keep: set[str]) -> None:
        self.fitter.freshen(rows, table, row, self.draw, keep)
        rows[table].append(row)

    def _real_rows(self, rows: Rows) -> None:
        for table in self.tables:
            found = self.fitter.pool[table]
            count = min(len(found), self.draw.choice((1, 2, 4, 8, 12)))
            rows[table] = [list(row) for row in self.draw.sample(found, count)]

    def _ladder(self, rows: Rows) -> None:
        """Make one or two groups more than LIMIT lets through: all of one row, or all but the last of two."""
        limit = self.draw.choice(self.limits)
        query = self.draw.choice(self.queries)
        pairs = self.draw.random() < 0.5
        moved = self._moved(query)
        first = self._tuple(rows, query, exact=True)
        groups = limit + self.draw.choice((1, 1, 1, 2))
        for group in range(groups):
            made = first
            if group:
                made = self._tuple(
                    rows, query, exact=True, shared={p: row for p, row in first.items() if p not in moved}
                )
            self._apart(rows, query, {p: made[p] for p in moved}, group)
            if pairs and group < groups - 1:
                self._again(rows, query, made, vary=self.draw.random() < 0.5)

    def _moved(self, query: ReadStatement) -> set[Place]:
        """Return the places with a row of their own in each group: what is grouped, and its children."""
        grouped = {c for c in query.grouped if c not in self.joined}
        moved = {place for place, table in query.uses.items() if any(cell[0] == table for cell in grouped)}
        while moved:
            tables = {query.uses[place] for place in moved}
            children = {
                place
                for place, table in query.uses.items()
                for other in tables
                if (other, table) in self.parents_of and place not in moved
            }
            if not children:
                return moved
            moved |= children
        return set(query.uses)

    def _apart(self, rows: Rows, query: ReadStatement, made: Mapping[Place, list[Any]], group: int) -> None:
        """Give the rows of one group values of their own in what is grouped, sorted and added up."""
        for place, row in made.items():
            table = query.uses[place]
            for owner, column in self.used:
                cell = (owner, column)
                if owner != table or cell in self.joined or cell in self.fitter.single:
                    continue
                values, at = self.values[cell], self.fitter.at(table, column)
                if values.tests and values.kind != "time":
                    continue
                if values.kind == "number" and row[at] is not None:
                    row[at] = type(row[at])(int(row[at]) + 10 * (group + 1))
                elif values.kind == "text" and cell not in self.fitter.rules.domains:
                    row[at] = f"{row[at]} {group}"

    def _again(
        self, rows: Rows, query: ReadStatement, made: Mapping[Place, list[Any]], *, vary: bool = False
    ) -> None:
        """Add rows to the group of ``made``: the rows that others refer to are shared."""
        tables = {query.uses[place] for place in made}
        shared = {p for p in made if any((query.uses[p], child) in self.parents_of for child in tables)}
        if shared and len(shared) == len(made):
            shared.discard(self.draw.choice(sorted(shared)))
        new = {p: list(row) for p, row in made.items() if p not in shared}
        if vary:
            for place, row in new.items():
                self._step(query.uses[place], row)
        for place, row in new.items():
            self._add(rows, query.uses[place], row, self._bound(query, place))

    def _bound(self, query: ReadStatement, place: Place) -> set[str]:
        """Return the columns of a place that join it to other places."""
        return {s[1] for pair in query.joins for s in pair if s[0] == place} - {
            column for table, column in self.fitter.single if table == query.uses[place]
        }

    def _burst(self, rows: Rows) -> None:
        """Make groups of k - 1, k and k + 1 rows around a number that a count is compared with."""
        count, query = self.draw.choice(self.counts), self.draw.choice(self.queries)
        for size in self.draw.sample((count - 1, count, count + 1), self.draw.choice((1, 1, 2))):
            if size < 1:
                continue
            first, vary = self._tuple(rows, query, exact=True), self.draw.random() < 0.5
            for _ in range(size - 1):
                self._again(rows, query, first, vary=vary)

    def _series(self, rows: Rows) -> None:
        """Make two or three rows of one group that lie apart in time and in amount."""
        query = self.draw.choice(self.queries)
        first = self._tuple(rows, query, exact=True)
        for _ in range(self.draw.choice((1, 1, 2))):
            self._again(rows, query, first, vary=True)

    def _ties(self, rows: Rows) -> None:
        """Make two families alike and one that comes after or before them."""
        query = self.draw.choice(self.queries)
        first = self._tuple(rows, query, exact=True)
        before = self.draw.random() < 0.5
        if before:
            self._apart(rows, query, first, 5)
        self._copies(rows, keep_children=True, count=1)
        last = self._tuple(rows, query, exact=True)
        if not before:
            self._apart(rows, query, last, 5)

    def _step(self, table: str, row: list[Any]) -> None:
        """Move a row's dates and numbers that are used a step on, within their conditions."""
        for cell in self.used:
            values, at = self.values[cell], self.fitter.at(*cell) if cell[0] == table else 0
            if cell[0] != table or row[at] is None or cell in self.joined or cell in self.fitter.single:
                continue
            if values.kind == "text" and not values.tests and cell not in self.grouped:
                row[at] = f"{row[at]} {self.draw.choice('abcde')}"
            if values.kind not in ("time", "dated text", "number") or self.draw.random() < 0.25:
                continue
            alike = [
                v for v, s in values.signature.items() if s == values.signature.get(row[at]) and v != row[at]
            ]
            if values.tests and alike:
                row[at] = self.draw.choice(alike)
            elif not values.tests:
                row[at] = nearby(row[at], values.column, self.draw)

    def _copies(self, rows: Rows, *, keep_children: bool, count: int = 0) -> None:
        """Copy rows under new keys, with the rows that refer to them or without."""
        parents = {parent for parent, _ in self.parents_of}
        tables = (
            [t for t in self.tables if t in parents] if keep_children and self.draw.random() < 0.7 else []
        )
        offered = [(table, row) for table in tables or self.tables for row in rows[table]]
        count = count or self.draw.choice((1, 1, 2, 3))
        for table, row in self.draw.sample(offered, min(len(offered), count)):
            copy = list(row)
            self._add(rows, table, copy, set())
            if keep_children:
                self._copy_children(rows, table, row, copy)

    def _copy_children(self, rows: Rows, table: str, row: list[Any], copy: list[Any]) -> None:
        for rule in sorted(self.fitter.rules.references):
            if rule.parent != table or len(rule.columns) != 1 or rule.child == table:
                continue
            at, own = (
                self.fitter.at(rule.child, rule.columns[0]),
                self.fitter.at(table, rule.parent_columns[0]),
            )
            for child in [c for c in rows[rule.child] if c[at] == row[own]][:3]:
                new = list(child)
                new[at] = copy[own]
                self._add(rows, rule.child, new, {rule.columns[0]})

    def _changes(self, rows: Rows, count: int) -> None:
        """Change single values: NULL, a step aside, another row's value, another column's value."""
        for _ in range(count):
            offered = [cell for cell in self.used if rows.get(cell[0])]
            if not offered:
                return
            cell = self.draw.choice(offered)
            row = self.draw.choice(rows[cell[0]])
            at = self.fitter.at(*cell)
            way = self.draw.random()
            if way < 0.3:
                row[at] = self.draw.choice(rows[cell[0]])[at]
            elif way < 0.5:
                row[at] = self._same_row(cell, row)
            elif cell in self.joined and way < 0.8:
                row[at] = self._elsewhere(cell, rows, row[at])
            else:
                row[at] = self._other(cell, row)

    def _same_row(self, cell: Cell, row: Sequence[Any]) -> Any:
        """Return the value of another column of the row, of the same type, where there is one."""
        own = self.catalog.column(cell).type
        twins = [
            c
            for t, c in self.used
            if t == cell[0] and c != cell[1] and self.catalog.column((t, c)).type == own
        ]
        return row[self.fitter.at(cell[0], self.draw.choice(twins))] if twins else row[self.fitter.at(*cell)]

    def _elsewhere(self, cell: Cell, rows: Rows, value: Any) -> Any:
        """Return what a joined column of another row or table holds."""
        found = [
            row[self.fitter.at(*other)] for other in sorted(self.joined) for row in rows.get(other[0], ())
        ]
        fit = [entry for entry in found if isinstance(entry, type(value))]
        return self.draw.choice(fit) if fit else value


def _groups(joins: Sequence[tuple[Spot, Spot]]) -> list[list[Spot]]:
    """Return the spots that the joins make equal, group by group."""
    groups: list[list[Spot]] = []
    for left, right in joins:
        touching = [group for group in groups if left in group or right in group]
        merged = list(dict.fromkeys([spot for group in touching for spot in group] + [left, right]))
        groups = [group for group in groups if group not in touching] + [merged]
    return groups
