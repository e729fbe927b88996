"""The ten kinds of failure whose rendered text is kept as a snapshot."""

import datetime as dt

from pytest_agenteval.table import Table

REGIONS = ["North", "South", "East", "West", "Centre", "Islands"]
MONTHS = [dt.date(2024, month, 1) for month in range(1, 7)]


def revenue(factor=1.0, rows=6):
    return [(REGIONS[i], 40 + 7 * i, round((1200.5 + 310.25 * i) * factor, 2)) for i in range(rows)]


def answer(names, rows):
    return Table.from_records([dict(zip(names, row, strict=True)) for row in rows])


SALES = ["region", "orders", "revenue"]
SALES_TYPES = ["VARCHAR", "BIGINT", "DOUBLE"]
EXPECTED = Table.from_rows(SALES, revenue(), SALES_TYPES)
WIDE = [f"metric_{i}" for i in range(12)]
CUSTOMERS = [(f"C{i:04d}", i * 3 % 17, dt.date(2024, 1, 1) + dt.timedelta(i)) for i in range(128)]
LINES = [(1001, 10.0), (1002, 20.5), (1003, 30.0), (1004, 8.25)]


def one_cell():
    rows = [list(row) for row in revenue()]
    rows[3][1] = 16
    return EXPECTED, answer(SALES, rows), {}


def scaled():
    return EXPECTED, answer(SALES, revenue(100)), {}


def limit():
    expected = Table.from_rows(
        ["customer", "visits", "first_visit"], CUSTOMERS, ["VARCHAR", "BIGINT", "DATE"]
    )
    return (
        expected,
        answer(["customer", "visits", "first_visit"], [(c, v, str(d)) for c, v, d in CUSTOMERS[:40]]),
        {},
    )


def fan_out():
    expected = Table.from_rows(["order_id", "amount"], LINES, ["BIGINT", "DOUBLE"])
    return expected, answer(["order_id", "amount"], [row for row in LINES for _ in range(3)]), {}


def order():
    expected = Table.from_rows(
        ["region", "revenue"], [(r, v) for r, _, v in revenue()][::-1], ["VARCHAR", "DOUBLE"]
    )
    rows = [(r, v) for r, _, v in revenue()]
    return expected, answer(["region", "revenue"], rows), {"ordered": True, "order_by": ["revenue desc"]}


def wrong_grain():
    expected = Table.from_rows(["region", "revenue"], [("North", 30), ("South", 12)], ["VARCHAR", "BIGINT"])
    rows = [("North", "2024-01", 10), ("North", "2024-02", 20), ("South", "2024-01", 12)]
    return expected, answer(["region", "month", "revenue"], rows), {}


def scrambled():
    rows = revenue()
    moved = [(rows[i - 1][0], *rows[i][1:]) if i < 3 else rows[i] for i in range(6)]
    moved[0] = (rows[2][0], *rows[0][1:])
    return EXPECTED, answer(SALES, moved), {}


def nulls():
    rows = [(r, o, None if i in (1, 4) else v) for i, (r, o, v) in enumerate(revenue())]
    expected = Table.from_rows(SALES, rows, SALES_TYPES)
    return expected, answer(SALES, [(r, o, 0 if v is None else v) for r, o, v in rows]), {}


def wide():
    names = ["day", *WIDE, "comment"]
    rows = [
        (MONTHS[i], *(i + j / 4 for j in range(12)), f"month {i}: all in order, nothing to report")
        for i in range(6)
    ]
    changed = [[str(row[0]), *row[1:]] for row in rows]
    changed[2][7] = 99.5
    changed[4][1] = -3.0
    types = ["DATE", *["DOUBLE"] * 12, "VARCHAR"]
    return Table.from_rows(names, rows, types), answer(names, changed), {}


def hostile():
    names = ["kunde", "名前", "note"]
    expected = Table.from_rows(
        names, [("Ärzte", "東京タワー", "plain"), ("Zoë", "大阪", "ok")], ["VARCHAR", "VARCHAR", "VARCHAR"]
    )
    rows = [("Ärzte", "東京", "\x1b[31mred\x1b[0m\r\nnew line"), ("Zoë", "大阪", "ok")]
    return expected, answer(names, rows), {}


def missing():
    rows = [(f"row {i:03d}", i) for i in range(70)]
    expected = Table.from_rows(["name", "n"], rows, ["VARCHAR", "INTEGER"])
    return expected, answer(["name", "n"], [*rows[:3], ("somebody else", 5)]), {}


CASES = [one_cell, scaled, limit, fan_out, order, wrong_grain, scrambled, nulls, wide, hostile, missing]
