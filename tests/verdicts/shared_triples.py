"""Triples of ``../shared``: labelled pairs of SQL, and what a real model answered to real questions."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import duckdb
import yaml
from triples import Triple, reference_of

from pytest_agenteval.types import Answer, Reference, ToolCall

SHARED = Path(__file__).resolve().parents[3] / "shared"
PAIRS = SHARED / "corpus" / "sql_pairs.jsonl"
DEFOG = SHARED / "data" / "defog"
NEWEST = (2, 0)
"""DuckDB that wrote the database files."""


def missing() -> str | None:
    """Why these triples cannot be made here (``None``: they can)."""
    if not PAIRS.is_file() or not DEFOG.is_dir():
        return "needs ../shared/data/defog and ../shared/corpus/sql_pairs.jsonl"
    if tuple(map(int, duckdb.__version__.split(".")[:2])) < NEWEST:
        return "needs DuckDB 2, which wrote the defog files"
    return None


@cache
def _connection(name: str) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(str(DEFOG / "db" / f"{name}.duckdb"), read_only=True)


@cache
def _reference(name: str, sql: str) -> Reference:
    return reference_of(_connection(name).cursor(), sql)


def _ran(name: str, sql: str) -> Answer:
    """The answer of an agent that ran ``sql``: its rows as a tool returns them, or the database's error."""
    args = {"sql_query": sql}
    try:
        cursor = _connection(name).cursor().execute(sql)
        names = [d[0] for d in cursor.description or []]
        rows = json.loads(json.dumps([list(row) for row in cursor.fetchall()], default=str))
        call = ToolCall("execute_sql", args, {"columns": names, "rows": rows})
    except duckdb.Error as error:
        call = ToolCall("execute_sql", args, error=str(error), status="error")
    return Answer(text="done", tool_calls=(call,))


def _held(pair: dict[str, Any]) -> bool:
    """Whether there is data to run the pair on."""
    return "db" in pair and (DEFOG / "db" / f"{pair['db']}.duckdb").is_file()


def pairs() -> Iterator[Triple]:
    """Each pair as an agent that ran the other statement, where there is data to run it on.

    Equivalent statements pass, others fail, unless the data give both the same rows: those pass by
    luck, which no comparison of rows can tell (their group says so).
    """
    for number, line in enumerate(PAIRS.read_text("utf-8").splitlines()):
        pair = json.loads(line)
        if not _held(pair) or (not pair["equivalent"] and pair.get("same_on_real_data") is None):
            continue
        luck = not pair["equivalent"] and pair["same_on_real_data"]
        sql = pair["reference"].strip()
        yield Triple(
            id=f"pair {number} {pair['case']}",
            group="pairs that the data cannot tell apart" if luck else "pairs of statements",
            form="tool result",
            case=json.dumps({"name": pair["case"], "prompt": "What is asked?", "sql": sql}),
            answer=partial(_ran, pair["db"], pair["other"]),
            right="passed" if pair["equivalent"] or luck else "failed",
            references={sql: _reference(pair["db"], sql)},
            why=str(pair.get("mistake") or pair["kind"]),
        )


def _module(place: Path) -> Any:
    spec = importlib.util.spec_from_file_location(place.stem, place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def model_answers() -> Iterator[Triple]:
    """The forty answers; which are right was decided by a person beside each reference."""
    here = Path(__file__).parent.parent / "defog"
    convert, labels = _module(here / "convert_answers.py"), _module(here / "right_answers.py")
    for line in (DEFOG / "model_answers.jsonl").read_text("utf-8").splitlines():
        record = json.loads(line)
        text = (DEFOG / "tests" / record["db"] / f"{record['name']}.yml").read_text("utf-8")
        held = yaml.safe_load(text)["sql"]
        statements = held if isinstance(held, list) else [held]
        yield Triple(
            id=record["name"],
            group="answers of a real model",
            form="tool result",
            case=text,
            answer=partial(convert.answer_of, record),
            right="passed" if record["name"] in labels.RIGHT else "failed",
            references={sql.strip(): _reference(record["db"], sql.strip()) for sql in statements},
            why=record.get("error") or "laid beside its reference by a person",
        )
