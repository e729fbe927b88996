"""A small shop, and an agent that answers with the SQL standing in the prompt."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import duckdb
import pytest

AGENT = '''
import re
import duckdb, pytest
from pytest_agenteval import Answer, ToolCall

def answer(prompt):
    """The prompt holds what to do: <<SQL>>, or raise: TEXT."""
    if "raise:" in prompt:
        raise RuntimeError(prompt.split("raise:")[1].strip())
    found = re.search("<<(.*)>>", prompt, re.S)
    if not found:
        return "I have no data."
    con = duckdb.connect("shop.duckdb", read_only=True)
    try:
        cur = con.execute(found.group(1))
        names = [d[0] for d in cur.description]
        rows = [dict(zip(names, row)) for row in cur.fetchall()]
    finally:
        con.close()
    call = ToolCall("execute_sql", {"sql_query": found.group(1)}, {"columns": names, "data": rows})
    return Answer(text="done", tool_calls=(call,))

@pytest.fixture(scope="session")
def agent():
    return answer
'''

INI = """
[pytest]
agenteval_databases = shop = duckdb:///shop.duckdb
asyncio_default_fixture_loop_scope = function
"""


def build_shop(path: object) -> None:
    """orders(id, region, amount): 6 rows, 4 regions."""
    con = duckdb.connect(str(path))
    con.execute("CREATE TABLE orders(id INTEGER, region VARCHAR, amount DECIMAL(10,2))")
    con.execute(
        "INSERT INTO orders VALUES (1,'north',10.50),(2,'south',20.00),(3,'north',5.25),"
        "(4,'east',7.00),(5,'west',1.25),(6,'south',3.00)"
    )
    con.close()


def case(name: str, sql: str, answer: str | None = None, more: str = "") -> str:
    """A case whose agent runs ``answer`` (default: the reference itself)."""
    text = f"name: {name}\nprompt: |\n  {name}? <<{answer or sql}>>\nsql: {sql}\n"
    return text + textwrap.dedent(more)


@pytest.fixture
def shop(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with a database and an agent; write cases below ``tests/``."""
    build_shop(pytester.path / "shop.duckdb")
    pytester.makefile(".ini", pytest=INI)
    pytester.makeconftest(AGENT)
    (pytester.path / "tests").mkdir()
    return pytester


@pytest.fixture
def write_case(shop: pytest.Pytester) -> Callable[..., None]:
    """``write_case("name", sql, answer, more)`` puts one file below ``tests/``."""

    def write(name: str, sql: str = "SELECT sum(amount) AS total FROM orders", answer: str | None = None,
              more: str = "", folder: str = "tests") -> None:  # fmt: skip
        target = shop.path / folder
        target.mkdir(parents=True, exist_ok=True)
        (target / f"{name}.yml").write_text(case(name, sql, answer, more), encoding="utf-8")

    return write
