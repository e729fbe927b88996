"""The judged examples of the comparison as answers, in the five forms in which agents hand tables over."""

from __future__ import annotations

import datetime as dt
import importlib.util
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from triples import NotExpressible, Triple

from pytest_agenteval.support.json_codec import decode
from pytest_agenteval.table import Table
from pytest_agenteval.types import Answer, Reference, ToolCall

TESTS = Path(__file__).parent.parent
SAID = "I do not know."


def _reader() -> Any:
    spec = importlib.util.spec_from_file_location("corpus_reader", TESTS / "compare" / "corpus_reader.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def examples(name: str) -> list[dict[str, Any]]:
    lines = (TESTS / "data" / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


CORPUS = "comparison.jsonl"
LARGE, HUGE = 1_000, 20_000
"""Rows above which a table comes in the Arrow form only; rows above which tests/compare alone looks at it."""


def corpus(name: str = CORPUS) -> Iterator[Triple]:
    """Every example in every form; of the large ones among the faults only the Arrow form."""
    reader = _reader()
    for example in examples(name):
        expected, actual, options = reader.tables(example)
        columns = expected["columns"]
        table = Table.from_rows([c["name"] for c in columns], expected["rows"], [c["type"] for c in columns])
        sql = f"SELECT '{example['id']}'"
        case = {"name": example["id"], "prompt": "What is asked?", "sql": sql, "comparison": options}
        right = {"match": "passed", "differ": "failed"}[example["verdict"]]
        rows = max(table.row_count, len(actual["rows"] or ()))
        if rows > HUGE:
            continue
        for form, made in FORMS.items():
            if rows > LARGE and name != CORPUS and form != "Arrow":
                continue
            yield Triple(
                id=f"{example['id']} ({form})",
                group="corpus" if name == CORPUS else "faults of the comparison",
                form=form,
                case=json.dumps(case),
                answer=partial(_answer, made, actual["names"], actual["rows"]),
                right=right,
                references={sql: Reference(table, sql)},
                why=example["why"],
            )


def _answer(made: Callable[..., Any], names: list[str], rows: list[dict[str, Any]] | None) -> Any:
    return SAID if rows is None else made(names, rows)


def _records(names: list[str], rows: list[dict[str, Any]]) -> Any:
    # an empty list has no columns; an agent that has them hands a table over
    return rows or Table.from_rows(names, [], [None] * len(names))


def _frame(names: list[str], rows: list[dict[str, Any]]) -> Any:
    import pandas

    return pandas.DataFrame(rows, columns=names)


def _arrow(names: list[str], rows: list[dict[str, Any]]) -> Any:
    import pyarrow

    try:
        return pyarrow.table({name: [row.get(name) for row in rows] for name in names})
    except (pyarrow.ArrowException, OverflowError) as error:
        raise NotExpressible(f"Arrow: {error}") from error


def _json_text(names: list[str], rows: list[dict[str, Any]]) -> Any:
    """What a program prints, read as the ``command`` agent reads it."""
    text = json.dumps({"text": "done", "columns": names, "rows": _plain_rows(names, rows)}, default=_plain)
    return Answer(text="done", data=_decoded(text))


def _decoded(text: str) -> Any:
    form = decode(json.loads(text))
    return Table.from_rows(form["columns"], form["rows"], [None] * len(form["columns"]))


def _plain_rows(names: list[str], rows: list[dict[str, Any]]) -> list[list[Any]]:
    return [[row.get(name) for name in names] for row in rows]


def _tool_result(names: list[str], rows: list[dict[str, Any]]) -> Any:
    """The rows of a tool that runs SQL, as they come over the wire."""
    data = json.loads(json.dumps(rows, default=_plain))
    result = {"columns": names, "data": data, "row_count": len(rows)}
    call = ToolCall("execute_sql", {"sql_query": "SELECT 1"}, result)
    return Answer(text="done", tool_calls=(call,))


def _plain(value: Any) -> Any:
    """A value as a tool writes it into JSON."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, UUID | dt.timedelta):
        return str(value)
    raise NotExpressible(f"JSON: {type(value).__name__}")


FORMS: dict[str, Callable[[list[str], list[dict[str, Any]]], Any]] = {
    "records": _records,
    "DataFrame": _frame,
    "Arrow": _arrow,
    "JSON text": _json_text,
    "tool result": _tool_result,
}
