"""Databases in whole runs: an agent that holds the file, writes to it, or gets a copy of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

BUILD = "CREATE TABLE orders AS SELECT range AS id, range * 1.5 AS amount FROM range(10)"

HOLDING = """
import duckdb, pytest

@pytest.fixture(scope="session")
def own():
    connection = duckdb.connect("shop.duckdb")
    connection.execute("SET threads = 1")
    yield connection
    assert connection.execute("SELECT current_setting('threads')").fetchall() == [(1,)]
    connection.execute("COPY (SELECT 1) TO 'own.csv'")  # our settings are not in force here
    connection.close()

@pytest.fixture
def agent(own):
    def answer(prompt):
        found = own.execute("SELECT count(*) AS n FROM orders").fetchall()
        own.execute("INSERT INTO orders VALUES (99, 1.5)")
        return [{"n": found[0][0]}]
    return answer
"""

CASE = "prompt: How many orders?\nsql: SELECT count(*) AS n FROM orders\n"


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    with duckdb.connect(str(pytester.path / "shop.duckdb")) as connection:
        connection.execute(BUILD)
    pytester.makeini(
        "[pytest]\nagenteval_databases = shop = duckdb:///shop.duckdb\n"
        "asyncio_default_fixture_loop_scope = function\n"
    )
    (pytester.path / "tests").mkdir()
    return pytester


def write(project: pytest.Pytester, conftest: str, **cases: str) -> None:
    project.makeconftest(conftest)
    for name, text in cases.items():
        (project.path / "tests" / f"{name}.yml").write_text(text)


def document(project: pytest.Pytester) -> dict[str, Any]:
    (path,) = (project.path / "tests" / "outputs").glob("results_*.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_an_agent_that_holds_the_file_keeps_it_and_references_see_the_data_of_before(
    project: pytest.Pytester,
):
    write(project, HOLDING, a=CASE, b=CASE.replace("How", "Again, how"))
    done = project.runpytest_subprocess("-v", "-p", "no:randomly", "-p", "no:random_order")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*a.yml::a PASSED match*", "*b.yml::b FAILED*"])
    with duckdb.connect(str(project.path / "shop.duckdb")) as connection:
        assert connection.execute("SELECT count(*) FROM orders").fetchall() == [(12,)]
    assert (project.path / "own.csv").exists()


WRITING = """
import duckdb, pytest

@pytest.fixture
def agent(agenteval_isolated_databases):
    def answer(task):
        assert task.databases == agenteval_isolated_databases
        path = task.databases["shop"].removeprefix("duckdb:///")
        with duckdb.connect({path}) as connection:
            connection.execute("DELETE FROM orders WHERE id > 2")
            return connection.sql("SELECT count(*) AS n FROM orders").df()
    return answer
"""


def test_an_isolated_attempt_writes_to_its_own_copy(project: pytest.Pytester):
    case = "prompt: How many are left?\nsql: SELECT 3 AS n\n" + "isolate: true\nk: 2\n"
    write(project, WRITING.replace("{path}", "path"), a=case)
    done = project.runpytest_subprocess("-v")
    done.assert_outcomes(passed=1)
    with duckdb.connect(str(project.path / "shop.duckdb")) as connection:
        assert connection.execute("SELECT count(*) FROM orders").fetchall() == [(10,)]
    assert not list(Path(project.path).rglob("isolated/*"))


def test_an_isolated_attempt_that_writes_to_the_original_is_an_error(project: pytest.Pytester):
    write(project, WRITING.replace("{path}", '"shop.duckdb"'), a=CASE + "isolate: true\n")
    done = project.runpytest_subprocess("-v")
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*the agent wrote to the original of shop*"])


def test_a_broken_reference_costs_no_agent_call(project: pytest.Pytester):
    agent = (
        "import pathlib, pytest\n@pytest.fixture\ndef agent():\n"
        "    return lambda prompt: pathlib.Path('asked').write_text(prompt)\n"
    )
    typo, drop = "SELECT nope FROM orders", "DROP TABLE orders"
    write(project, agent, a=f"prompt: How many?\nsql: {typo}\n", b=f"prompt: And then?\nsql: {drop}\n")
    done = project.runpytest_subprocess("-v", "-n", "2")
    done.assert_outcomes(errors=2)
    done.stdout.fnmatch_lines_random(
        ['*Referenced column "nope" not found*', "*refused, the statement is DROP; only one SELECT*"]
    )
    assert not (project.path / "asked").exists()


def test_fixtures_give_databases(project: pytest.Pytester):
    conftest = """
    import duckdb, pytest, sqlite3

    @pytest.fixture
    def agenteval_databases(tmp_path):
        memory = duckdb.connect()
        memory.execute("CREATE TABLE orders AS SELECT range AS id FROM range(4)")
        with sqlite3.connect(tmp_path / "x.db") as connection:
            connection.execute("CREATE TABLE orders (id INTEGER)")
        connection.close()
        return {"memory": memory, "file": f"sqlite:///{tmp_path}/x.db"}

    @pytest.fixture
    def agent():
        return lambda prompt: [{"n": 4 if "memory" in prompt else 0}]
    """
    cases = {name: CASE.replace("orders?", f"orders in {name}?") for name in ("memory", "file")}
    cases = {name: f"{text}database: {name}\n" for name, text in cases.items()}
    write(project, conftest, **cases)
    done = project.runpytest_subprocess("-v")
    done.assert_outcomes(passed=2)


def test_a_database_in_use_elsewhere_is_named(project: pytest.Pytester):
    write(project, "import pytest\n@pytest.fixture\ndef agent():\n    return lambda prompt: []\n", a=CASE)
    holder = duckdb.connect(str(project.path / "shop.duckdb"))
    done = project.runpytest_subprocess("-v")
    holder.close()
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*shop.duckdb is held for writing by *(PID *); stop it or let it close*"])
    assert document(project)["results"][0]["passed"] is False


@pytest.mark.parametrize("more", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_a_database_that_cannot_be_used_is_the_error_of_the_cases_that_need_it(
    project: pytest.Pytester, more: tuple[str, ...]
):
    project.makefile(".yaml", nao_config=UNUSABLE)
    project.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    crm = "prompt: Who?\ndatabase: crm\nsql: SELECT 1 AS n\n"
    old = "prompt: When?\ndatabase: old\nsql: SELECT 1 AS n\n"
    write(project, TEN, a=CASE + "database: shop\n", b=crm, c=crm.replace("Who", "Whom"), d=old)
    done = project.runpytest_subprocess("--junitxml=j.xml", *more)

    done.assert_outcomes(passed=1, errors=3)
    done.stdout.no_fnmatch_line("*Traceback*")
    done.stdout.fnmatch_lines(["cases: 1 passed, 3 errors*"])
    reasons = {row["name"]: row["message"] for row in document(project)["results"]}
    assert reasons["b"] == "nao_config.yaml:5: environment variable NOBODY_SETS_THIS is not set"
    assert reasons["c"] == reasons["b"]
    assert reasons["d"].startswith("nao_config.yaml:6: database 'old': unknown database type 'sqlit', did")
    junit = (project.path / "j.xml").read_text()
    assert 'errors="3" failures="0"' in junit


UNUSABLE = """databases:
- {name: shop, type: duckdb, path: shop.duckdb}
- name: crm
  type: postgres
  host: "{{ env('NOBODY_SETS_THIS') }}"
- {name: old, type: sqlit, path: x.db}
"""

TEN = """
import pytest

@pytest.fixture
def agent():
    return lambda prompt: [{"n": 10}]
"""


UNNAMED = """
import pytest
from pytest_agenteval import Answer, ToolCall

@pytest.fixture
def agent():
    def answer(prompt):
        call = ToolCall("run_query", {"query": "DELETE FROM orders"}, result="ok")
        return Answer(text="done", tool_calls=[call])
    return answer
"""


@pytest.mark.parametrize("more", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_sql_of_a_tool_that_nobody_named_is_an_error_until_the_tools_are_named(
    project: pytest.Pytester, more: tuple[str, ...]
):
    write(project, UNNAMED, a="prompt: Tidy up\nassertions: [{type: sql, read_only: true}]\n")
    project.runpytest_subprocess(*more).assert_outcomes(errors=1)
    (row,) = document(project)["results"]
    assert (row["stage"], row["message"]) == (
        "checks",
        "sql: nothing was checked: run_query was called with SQL (DELETE FROM orders), and nothing says "
        "whether that ran; name the tools that run SQL in agenteval_sql_tools",
    )
    named = project.runpytest_subprocess("-o", "agenteval_sql_tools=run_query", *more)
    named.assert_outcomes(failed=1)
    named.stdout.fnmatch_lines(["*sql: not read-only: DELETE*"])
    others = project.runpytest_subprocess("-o", "agenteval_sql_tools=execute_sql", *more)
    others.assert_outcomes(passed=1)
