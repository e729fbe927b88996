"""Random pairs of small tables: an expected one, and an answer that a few mistakes have altered."""

import datetime as dt
from decimal import Decimal

from pytest_agenteval.table import Table

KINDS = [
    "VARCHAR",
    "INTEGER",
    "DOUBLE",
    "DECIMAL(18,2)",
    "BOOLEAN",
    "DATE",
    "TIMESTAMP",
    "BIGINT",
    "DOUBLE[]",
]
KINDS += ["JSON", None]
CHOICES = {
    "VARCHAR": ["a", "b", "c", "A", "02134", "x, y", "y, x", "", "None", "x  y"],
    "BIGINT": [1, 2, 3, 2**53 + 1, 2**60 + 7],
    "DOUBLE": [0.0, 1.0, 1.005, 2.675, 0.0312, 100.5, 12.34, 1e-9, 3.14159, -2.5, 1000.123],
    "DECIMAL(18,2)": [Decimal(n) for n in ("1.00", "1.01", "9.10", "12.60", "-3.50", "100.25", "0.03")],
    "BOOLEAN": [True, False],
    "JSON": ['{"a": 1}', '{"a": 1.5}', "[1, 2]", '{"a": 3.0}', '"t"'],
    None: [1, 2.5, "x"],
}


def cell(chance, kind):
    """A value of an SQL type, NULL now and then."""
    if chance.random() < 0.08:
        return None
    if kind == "INTEGER":
        return chance.randint(-3, 3) if chance.random() < 0.7 else chance.randint(0, 100000)
    if kind == "DATE":
        return dt.date(2024, chance.randint(1, 3), chance.randint(1, 5))
    if kind == "TIMESTAMP":
        return dt.datetime(2024, 1, chance.randint(1, 3), chance.choice([0, 10]))
    if kind == "DOUBLE[]":
        return [chance.choice([1.0, 2.5, 1.005]) for _ in range(chance.randint(0, 3))]
    return chance.choice(CHOICES[kind])


def _number(value):
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _each(function, wanted):
    """A mistake in all cells of one column that ``wanted`` holds for."""

    def change(chance, rows, column, kind):
        for row in rows:
            if wanted(row[column]):
                row[column] = function(row[column], chance)

    return change


def _other(chance, rows, column, kind):
    chance.choice(rows)[column] = cell(chance, kind)


def _lose(chance, rows, column, kind):
    if len(rows) > 1:
        rows.pop(chance.randrange(len(rows)))


FRACTION = (float, Decimal)
MISTAKES = [
    _other,
    _lose,
    lambda chance, rows, column, kind: chance.shuffle(rows),
    lambda chance, rows, column, kind: rows.append(list(chance.choice(rows))),
    lambda chance, rows, column, kind: rows.reverse(),
    lambda chance, rows, column, kind: rows.extend([list(row) for row in rows]),
    _each(lambda value, _: value * 100, lambda value: isinstance(value, FRACTION)),
    _each(lambda value, _: round(value, 1), lambda value: isinstance(value, FRACTION)),
    _each(lambda value, _: -value, _number),
    _each(
        lambda value, chance: value + chance.choice([1e-12, 0.001, 0.004]),
        lambda value: isinstance(value, float),
    ),
    _each(lambda value, _: str(value).upper(), lambda value: isinstance(value, (str, dt.date))),
    _each(lambda value, _: value + dt.timedelta(days=1), lambda value: isinstance(value, dt.date)),
]


def pair(chance, most_rows=20):
    """``(expected, answered, options)``."""
    width, size = chance.randint(1, 4), chance.randint(1, most_rows)
    kinds = [chance.choice(KINDS) for _ in range(width)]
    if chance.random() < 0.3:
        kinds = [chance.choice(["DOUBLE", "DECIMAL(18,2)", "INTEGER"])] * width
    rows = [tuple(cell(chance, kind) for kind in kinds) for _ in range(size)]
    if chance.random() < 0.3:
        rows = [chance.choice(rows) for _ in rows]
    names = [f"c{i}" for i in range(width)]
    if chance.random() < 0.1 and width > 1:
        names[1] = names[0]
    answered = [list(row) for row in rows]
    for _ in range(chance.randint(0, 3)):
        column = chance.randrange(width)
        chance.choice(MISTAKES)(chance, answered, column, kinds[column])
    others, answered = _renamed(chance, list(names), answered)
    options = _options(chance, names)
    return Table.from_rows(names, rows, kinds), Table.from_rows(others, answered), options


def _renamed(chance, names, rows):
    """Names of the answer: as expected, some other, exchanged, in another order; a column more."""
    if chance.random() < 0.2:
        names[chance.randrange(len(names))] = f"z{chance.randrange(3)}"
    if chance.random() < 0.2:
        one, two = chance.randrange(len(names)), chance.randrange(len(names))
        names[one], names[two] = names[two], names[one]
    if chance.random() < 0.3:
        names, rows = [*names, "extra"], [[*row, chance.randint(0, 3)] for row in rows]
    if chance.random() < 0.4:
        places = chance.sample(range(len(names)), len(names))
        some = chance.random() < 0.3
        names = [names[i] if some and chance.random() < 0.5 else f"z{chance.randrange(9)}" for i in places]
        rows = [[row[i] for i in places] for row in rows]
    return names, rows


def _options(chance, names):
    ways = [
        (0.25, {"ordered": True}),
        (0.4, {"order_by": [chance.choice(names) + chance.choice([" desc", ""])]}),
        (0.15, {"duplicates": "set"}),
        (0.15, {"columns": chance.choice(["name", "position"])}),
        (0.1, {"extra_columns": "forbid"}),
        (0.1, {"percent": "either"}),
        (0.1, {"significant": 3}),
        (0.1, {"null_as_zero": True}),
    ]
    return {name: value for often, way in ways if chance.random() < often for name, value in way.items()}
