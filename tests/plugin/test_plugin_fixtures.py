"""Fixtures of every scope and kind work with cases, as with any test."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import pytest

SUM = "SELECT sum(amount) AS total FROM orders"


def write_ini(project: pytest.Pytester, text: str) -> None:
    (project.path / "pytest.ini").write_text(text, encoding="utf-8")


Write = Callable[..., None]


def test_every_scope_and_autouse(shop: pytest.Pytester, write_case: Write) -> None:
    shop.makeconftest(
        (shop.path / "conftest.py").read_text("utf-8")
        + textwrap.dedent(
            """
            log = []

            @pytest.fixture(scope="session")
            def whole():
                log.append("session"); yield; print("LOG", *log)

            @pytest.fixture(scope="package", autouse=True)
            def package(): log.append("package"); yield

            @pytest.fixture(scope="module", autouse=True)
            def file(): log.append("module+"); yield; log.append("module-")

            @pytest.fixture(scope="class")
            def group(): log.append("class"); yield

            @pytest.fixture(autouse=True)
            def each(whole): log.append("function"); yield
            """
        )
    )
    write_case("one", more="setup: [group]")
    write_case("two")
    result = shop.runpytest("-s", "-p", "no:randomly")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["*LOG session package module+ class function module- module+ function module-*"]
    )


def test_the_agent_can_be_overridden_in_a_subfolder(shop: pytest.Pytester, write_case: Write) -> None:
    write_case("right")
    write_case("other", "SELECT 42 AS n", "SELECT 1 AS n", folder="tests/sub")
    (shop.path / "tests" / "sub" / "conftest.py").write_text(
        "import pytest\n@pytest.fixture\ndef agent():\n    return lambda prompt: [{'n': 42}]\n", "utf-8"
    )
    shop.runpytest().assert_outcomes(passed=2)


def test_a_subfolder_agent_builds_on_the_one_above(shop: pytest.Pytester, write_case: Write) -> None:
    write_case("other", "SELECT 43 AS n", "SELECT 1 AS n", folder="tests/sub")
    (shop.path / "tests" / "sub" / "conftest.py").write_text(
        "import pytest\n@pytest.fixture\ndef agent(agent):\n"
        "    return lambda prompt: [{'n': 43}] if agent(prompt).text == 'done' else []\n",
        "utf-8",
    )
    shop.runpytest().assert_outcomes(passed=1)


def test_a_parametrized_agent_makes_an_item_each(shop: pytest.Pytester) -> None:
    shop.makeconftest(
        "import pytest\n@pytest.fixture(params=['good', 'bad'])\ndef agent(request):\n"
        "    return lambda prompt: [{'n': 1 if request.param == 'good' else 2}]\n"
    )
    (shop.path / "tests" / "one.yml").write_text("prompt: One?\nsql: SELECT 1 AS n\n", encoding="utf-8")
    result = shop.runpytest("-v", "--agent-model", "demo:a,demo:b")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines_random(["*::one[[]good-demo:a[]] PASSED*", "*::one[[]bad-demo:b[]] FAILED*"])


def test_async_agents_and_async_fixtures(shop: pytest.Pytester) -> None:
    write_ini(shop, "[pytest]\nagenteval_databases = shop = duckdb:///shop.duckdb\nasyncio_mode = auto\n"
                 "asyncio_default_fixture_loop_scope = function\n")  # fmt: skip
    shop.makeconftest(
        "import asyncio, pytest, pytest_asyncio\n"
        "@pytest_asyncio.fixture\nasync def ready():\n    await asyncio.sleep(0)\n    return 1\n"
        "@pytest.fixture\ndef agent(ready):\n"
        "    async def answer(prompt):\n        await asyncio.sleep(0)\n        return [{'n': ready}]\n"
        "    return answer\n"
    )
    (shop.path / "tests" / "one.yml").write_text("prompt: One?\nsql: SELECT 1 AS n\n", encoding="utf-8")
    shop.runpytest("-p", "asyncio").assert_outcomes(passed=1)


def test_a_fixture_that_raises_is_an_error_that_the_document_keeps(
    shop: pytest.Pytester, write_case: Write
) -> None:
    shop.makeconftest("import pytest\n@pytest.fixture\ndef agent():\n    raise OSError('no licence')\n")
    write_case("right")
    result = shop.runpytest()
    result.assert_outcomes(errors=1)
    (file,) = (shop.path / "tests" / "outputs").glob("results_*.json")
    assert '"verdict": "error"' in file.read_text("utf-8") or '"verdict":"error"' in file.read_text("utf-8")
    assert "no licence" in file.read_text("utf-8")


def test_a_fixture_of_the_wrong_type_names_its_place(shop: pytest.Pytester, write_case: Write) -> None:
    shop.makeconftest("import pytest\n@pytest.fixture\ndef agent():\n    return 42\n")
    write_case("right")
    result = shop.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*conftest.py:*int*callable*"])


def test_databases_from_a_fixture(shop: pytest.Pytester) -> None:
    write_ini(shop, "[pytest]\n")
    shop.makeconftest(
        "import duckdb, pytest\n"
        "@pytest.fixture(scope='session')\ndef agenteval_databases():\n"
        "    con = duckdb.connect(':memory:')\n    con.execute('CREATE TABLE t AS SELECT 7 AS n')\n"
        "    return {'mem': con}\n"
        "@pytest.fixture\ndef agent():\n    return lambda prompt: [{'n': 7}]\n"
    )
    (shop.path / "tests" / "one.yml").write_text("prompt: Seven?\nsql: SELECT n FROM t\n", encoding="utf-8")
    shop.runpytest().assert_outcomes(passed=1)


def test_a_target_on_the_command_line_leaves_the_fixture_alone(
    shop: pytest.Pytester, write_case: Write
) -> None:
    shop.makeconftest("import pytest\n@pytest.fixture\ndef agent():\n    raise OSError('not wanted')\n")
    (shop.path / "mine.py").write_text("def answer(prompt):\n    return [{'total': 47.0}]\n", "utf-8")
    write_case("right")
    shop.runpytest("--agent-target", "python:mine:answer").assert_outcomes(passed=1)
