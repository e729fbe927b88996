"""Reads examples of the corpus (its format stands at the end of the contract)."""

import datetime as dt
import uuid
from decimal import Decimal

READERS = {
    "DATE": dt.date.fromisoformat,
    "TIMESTAMP": dt.datetime.fromisoformat,
    "TIME": dt.time.fromisoformat,
    "UUID": uuid.UUID,
    "BLOB": bytes.fromhex,
    "DOUBLE": float,
    "FLOAT": float,
    "TIMESTAMPTZ": lambda text: dt.datetime.fromisoformat(text + ":00" if text[-3] in "+-" else text),
}
WHOLE = ("INTEGER", "BIGINT", "HUGEINT", "UBIGINT", "SMALLINT", "TINYINT")


def native(value, kind):
    """A JSON value as a DB driver would return it."""
    if value is None or kind.endswith("[]") or kind.startswith(("STRUCT", "MAP")):
        return value
    if kind.startswith("DECIMAL"):
        return Decimal(str(value))
    if kind in WHOLE:
        return int(value)
    return READERS.get(kind, lambda same: same)(value)


def run(sql):
    """Columns and rows of a DuckDB query."""
    import duckdb

    cursor = duckdb.connect().execute(sql)
    return [{"name": d[0], "type": str(d[1])} for d in cursor.description], cursor.fetchall()


def tables(case):
    """``(expected, actual, options)`` in the harness's form."""
    expected = case["expected"]
    if "sql" in expected:
        columns, rows = run(expected["sql"])
    else:
        columns = expected["columns"]
        rows = [typed(row, columns) for row in expected["rows"]]
    return {"columns": columns, "rows": rows}, answer(case["actual"]), case["options"]


def typed(row, columns):
    return tuple(native(value, column["type"]) for value, column in zip(row, columns, strict=True))


def answer(actual):
    if "sql" in actual or "columns" in actual:
        if "sql" in actual:
            columns, rows = run(actual["sql"])
        else:
            columns = actual["columns"]
            rows = [typed(row, columns) for row in actual["rows"]]
        names = [column["name"] for column in columns]
        records = [dict(zip(names, row, strict=True)) for row in rows]
        return {
            "names": names,
            "rows": records,
            "types": {column["name"]: column["type"] for column in columns},
        }
    if actual["rows"] is None:
        return {"names": [], "rows": None, "types": None}
    names = list(dict.fromkeys(name for row in actual["rows"] for name in row))
    return {"names": names, "rows": actual["rows"], "types": None}
