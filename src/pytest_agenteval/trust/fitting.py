"""Made-up rows into rows that obey the rules: parents are made, keys freshened, the rest is dropped."""

from __future__ import annotations

import datetime
import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from pytest_agenteval.trust.constraints import Constraints, ForeignKey, breaches
from pytest_agenteval.trust.schema import Catalog, Cell, ColumnInfo, Rows
from pytest_agenteval.trust.values import ColumnValues, as_time, kind_of, moment_of, written_like

_PASSES = 4


class Fitter:
    """Brings rows in line with the rules of one database."""

    def __init__(
        self,
        catalog: Catalog,
        rules: Constraints,
        pool: Rows,
        values: Mapping[Cell, ColumnValues],
        used: set[Cell],
    ) -> None:
        self.catalog, self.rules, self.pool, self.values, self.used = catalog, rules, pool, values, used
        self.columns = {key: catalog.tables[key].names for key in pool}
        self.infos = {key: catalog.tables[key].columns for key in pool}
        self.keys = {key: [c for table, c in sorted(rules.keys) if table == key] for key in pool}
        self.single = {(table, columns[0]) for table, columns in rules.keys if len(columns) == 1}
        self.parents: dict[Cell, ForeignKey] = {}
        for rule in sorted(rules.references):
            if len(rule.columns) == 1:
                self.parents.setdefault((rule.child, rule.columns[0]), rule)

    def at(self, table: str, column: str) -> int:
        """Return the position of a column."""
        return self.columns[table].index(column)

    def template(self, table: str, draw: random.Random) -> list[Any]:
        """Return a copy of a row of the data, or a plain row where there are none."""
        found = self.pool.get(table)
        if found:
            return list(draw.choice(found))
        return [self.plain((table, info.name.lower()), info, draw) for info in self.infos[table]]

    def plain(self, cell: Cell, info: ColumnInfo, draw: random.Random) -> Any:
        """Return a value for a column of which no data are known."""
        known = self.values.get(cell)
        if known is not None and known.all and draw.random() < 0.6:
            return draw.choice(known.all)
        kind = kind_of(info)
        if kind == "number":
            return draw.choice((0, 1, 1, 2, 3, 10))
        if kind == "boolean":
            return draw.random() < 0.5
        if kind == "time":
            day = datetime.datetime(2024, 1, 15) + datetime.timedelta(days=draw.choice((0, 0, 1, 31, 366)))
            return as_time(day, info)
        return draw.choice(("a", "a", "b", "c"))

    def fresh(self, rows: Rows, table: str, column: str, like: Any, draw: random.Random) -> Any:
        """Return a value that does not stand in a column yet, close in form to ``like``."""
        at = self.at(table, column)
        taken = {row[at] for row in rows.get(table, ())}
        parent = self.parents.get((table, column))
        if parent is not None:
            offered = [
                row[self.at(parent.parent, parent.parent_columns[0])] for row in rows.get(parent.parent, ())
            ]
            offered += [
                row[self.at(parent.parent, parent.parent_columns[0])] for row in self.pool[parent.parent]
            ]
            free = [value for value in offered if value is not None and value not in taken]
            if free:
                return draw.choice(free)
        if isinstance(like, bool) or like is None or isinstance(like, datetime.date):
            info = self.infos[table][at]
            like = like if isinstance(like, datetime.date) else 1 if kind_of(info) == "number" else "k"
        if isinstance(like, str) and (moment := moment_of(like)) is not None:
            while written_like(moment, like) in taken:
                moment += datetime.timedelta(days=1)
            return written_like(moment, like)
        if isinstance(like, str):
            return self._fresh_text(table, column, like, taken)
        if isinstance(like, datetime.date):
            while like in taken:
                like = like + datetime.timedelta(days=1)
            return like
        number = like
        while number in taken:
            number = number + 1
        return number

    def _fresh_text(self, table: str, column: str, like: str, taken: set[Any]) -> str:
        """Return a new text that the conditions on the column judge as they judge ``like``."""
        known = self.values.get((table, column))
        if like not in taken:
            return like
        if known is not None:
            truth = known.signature.get(like)
            free = [
                v for v, s in known.signature.items() if s == truth and v not in taken and isinstance(v, str)
            ]
            if free:
                return free[0]
        number = 2
        has_tests = known is not None and bool(known.tests)
        while True:
            middle = len(like) // 2
            made = f"{like[:middle]}{number}{like[middle:]}" if has_tests else f"{like}{number}"
            if made not in taken:
                return made
            number += 1

    def freshen(self, rows: Rows, table: str, row: list[Any], draw: random.Random, keep: set[str]) -> None:
        """Give a new row keys of its own, but for the columns in ``keep``."""
        existing = rows.get(table, [])
        for key in self.keys[table]:
            places = [self.at(table, column) for column in key]
            value = tuple(row[at] for at in places)
            if None in value or all(tuple(other[at] for at in places) != value for other in existing):
                continue
            open_columns = [column for column in key if column not in keep]
            if open_columns:
                column = open_columns[0] if len(key) == 1 else draw.choice(open_columns)
                row[self.at(table, column)] = self.fresh(
                    rows, table, column, row[self.at(table, column)], draw
                )

    def fit(self, rows: Rows, draw: random.Random) -> Rows:
        """Return the rows after repair; rows that still break a rule are gone."""
        for _ in range(_PASSES):
            self._fill(rows, draw)
            self._order(rows, draw)
            if not self._add_parents(rows, draw):
                break
        return self.valid(rows)

    def valid(self, rows: Rows) -> Rows:
        """Return the rows without those that break a rule, and without what then hangs in the air."""
        kept = {table: list(found) for table, found in rows.items()}
        while broken := breaches(kept, self.rules, self.columns):
            for table, index in sorted(broken, key=lambda entry: (entry[0], -entry[1])):
                del kept[table][index]
        return kept

    def _fill(self, rows: Rows, draw: random.Random) -> None:
        for table, column in self.rules.not_null:
            if table not in rows:
                continue
            at = self.at(table, column)
            for row in rows[table]:
                if row[at] is None:
                    info = self.infos[table][at]
                    filled = [r[at] for r in self.pool.get(table, ()) if r[at] is not None]
                    row[at] = draw.choice(filled) if filled else self.plain((table, column), info, draw)

    def _order(self, rows: Rows, draw: random.Random) -> None:
        for _ in range(3):
            for table, low, high in sorted(self.rules.orders):
                a, b = self.at(table, low), self.at(table, high)
                for row in rows.get(table, ()):
                    if row[a] is not None and row[b] is not None and str(row[a]) > str(row[b]):
                        self._put_in_order(table, row, (low, high), draw)

    def _put_in_order(self, table: str, row: list[Any], pair: tuple[str, str], draw: random.Random) -> None:
        low, high = pair
        a, b = self.at(table, low), self.at(table, high)
        if isinstance(row[a], int | float | Decimal):
            row[a], row[b] = min(row[a], row[b]), max(row[a], row[b])
            return
        named = [(table, low) in self.used, (table, high) in self.used]
        follow_low = (named[0] and not named[1]) or (named[0] == named[1] and draw.random() < 0.5)
        if follow_low:
            row[b] = _not_before(row[a], self.infos[table][b])
        else:
            row[a] = _not_after(row[b], self.infos[table][a])

    def _add_parents(self, rows: Rows, draw: random.Random) -> bool:
        added = False
        for rule in sorted(self.rules.references):
            if rule.child not in rows:
                continue
            children = [self.at(rule.child, column) for column in rule.columns]
            parents = [self.at(rule.parent, column) for column in rule.parent_columns]
            known = {tuple(row[at] for at in parents) for row in rows.setdefault(rule.parent, [])}
            for row in list(rows[rule.child]):
                value = tuple(row[at] for at in children)
                if None in value or value in known:
                    continue
                parent = self._pool_row(rule, value) or self.template(rule.parent, draw)
                for at, part in zip(parents, value, strict=True):
                    parent[at] = part
                self.freshen(rows, rule.parent, parent, draw, set(rule.parent_columns))
                rows[rule.parent].append(parent)
                known.add(value)
                added = True
        return added

    def _pool_row(self, rule: ForeignKey, value: Sequence[Any]) -> list[Any] | None:
        places = [self.at(rule.parent, column) for column in rule.parent_columns]
        for row in self.pool.get(rule.parent, ()):
            if tuple(row[at] for at in places) == tuple(value):
                return list(row)
        return None


def _not_before(value: Any, info: ColumnInfo) -> Any:
    """Return the first value of a column that is not before ``value``."""
    if isinstance(value, str):
        return value
    moment = as_time(value, info)
    if isinstance(moment, datetime.datetime) and info.type.upper() == "DATE":
        return moment.date() + datetime.timedelta(days=1)
    return moment


def _not_after(value: Any, info: ColumnInfo) -> Any:
    if isinstance(value, str):
        return value
    moment = as_time(value, info)
    if isinstance(moment, datetime.datetime) and info.type.upper() == "DATE":
        return moment.date()
    return moment
