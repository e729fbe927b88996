"""An own agent and an own database: copy this file to your project as conftest.py and make it yours.

With this file and the case below (``tests/open_tickets.yml``), ``pytest`` asks the agent, runs the
reference SQL and says what differs::

    prompt: How many open tickets does each team have?
    sql: SELECT team, count(*) AS tickets FROM tickets WHERE closed_on IS NULL GROUP BY team

Nothing needs to be imported for the plugin to work: it finds the fixtures by their names.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from pytest_agenteval import Answer, Task, ToolCall, Usage

# 1. The database that the reference SQL runs on -----------------------------------------------------
#
# Where a database stands already, no fixture is needed. Write its URL into pytest.ini instead:
#
#     [pytest]
#     agenteval_databases =
#         helpdesk = postgresql+psycopg://reader@db.example.org/helpdesk
#
# (or into [tool.pytest.ini_options] of pyproject.toml). The fixture is for data that tests make. It
# returns names and URLs, or names and open connections.


@pytest.fixture(scope="session")
def agenteval_databases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A small help desk, made once per process."""
    path = tmp_path_factory.mktemp("data") / "helpdesk.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE tickets (id INTEGER, team TEXT, opened_on DATE, closed_on DATE)")
        connection.executemany(
            "INSERT INTO tickets VALUES (?, ?, ?, ?)",
            [
                (1, "billing", "2025-03-01", "2025-03-02"),
                (2, "billing", "2025-03-04", None),
                (3, "delivery", "2025-03-04", None),
                (4, "delivery", "2025-03-07", None),
            ],
        )
    connection.close()
    return {"helpdesk": f"sqlite:///{path}"}


# 2. The agent ---------------------------------------------------------------------------------------
#
# A fixture named `agent` returns anything that answers: a function, an async function, or an object
# with `run`. The plainest one takes the prompt and returns the rows it found:
#
#     @pytest.fixture(scope="session")
#     def agent():
#         return lambda prompt: my_agent.ask(prompt).rows      # list of dicts, DataFrame, Arrow table
#
# Return an Answer instead, and text, tool calls, tokens and cost can be checked and are reported too.


class HelpDeskAgent:
    """Stands for your agent: replace the body of ``run`` by a call of yours."""

    def __init__(self, database: Path) -> None:
        self.database = database

    def run(self, task: Task) -> Answer:
        """Answer ``task.prompt``; ``task.model`` is what ``--agent-model`` named, if anything.

        A task also has the earlier turns of a conversation, the caller, limits and more, and never the
        case's name, SQL or expected rows. What this raises becomes the error of the case.
        """
        sql = self._write_sql(task.prompt, task.model)
        connection = sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)
        cursor = connection.execute(sql)
        columns = [entry[0] for entry in cursor.description]
        rows = [dict(zip(columns, row, strict=True)) for row in cursor]
        connection.close()
        # The name and these keys are what makes a tool call a query whose rows can be compared; other
        # names are listed in the ini option agenteval_sql_tools.
        call = ToolCall("execute_sql", {"sql_query": sql}, {"columns": columns, "data": rows})
        return Answer(
            text=f"{len(rows)} teams have open tickets.",
            tool_calls=(call,),
            usage=Usage(input=len(task.prompt) // 4, output=len(sql) // 4),
            cost=0.0,
        )

    def _write_sql(self, prompt: str, model: str | None) -> str:
        """Where yours asks a language model, this one knows a single question."""
        if "open tickets" not in prompt:
            raise ValueError(f"{model or 'this agent'} cannot answer: {prompt}")
        return "SELECT team, count(id) AS open_tickets FROM tickets WHERE closed_on IS NULL GROUP BY team"


@pytest.fixture(scope="session")
def agent(agenteval_databases: dict[str, str]) -> HelpDeskAgent:
    """Scope ``session`` makes the agent once per process; any other scope works as well."""
    return HelpDeskAgent(Path(agenteval_databases["helpdesk"].removeprefix("sqlite:///")))


# 3. Things to know ----------------------------------------------------------------------------------
#
# * An agent that keeps state between questions gets a method `new_attempt(self)` that returns a fresh
#   one; it is called before every attempt.
# * A folder of tests may override `agent` or `agenteval_databases` in a conftest.py of its own, as
#   with every fixture.
# * `pytest --agent-model openai:gpt-4.1,anthropic:claude-sonnet-4-5` makes an item per case and model.
# * `pytest --agent-target http:http://localhost:8000/ask` (or nao:, command:, python:, llm:, replay:)
#   asks another agent, and leaves the fixture aside.
