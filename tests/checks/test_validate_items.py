"""``pytest --agent-validate``: every finding about governance files is an item."""

from __future__ import annotations

import textwrap

import duckdb
import pytest

FILES = {
    "datasets/shop/dataset.yaml": """\
        bundle_id: shop
        warehouse: {database_id: shop_db}
        tables: [{schema: main, table: orders}]
        joins:
          - left: {schema: main, table: orders, column: customer_id}
            right: {schema: main, table: customers, column: id}
        """,
    "policies/policy.yml": "pii: {columns: {main.customers: []}}\n",
    "semantics/semantic_model.yml": """\
        models: {orders: {schema: main, table: orders, measures: {n: {type: count}}}}
        """,
    "agenteval.yaml": "databases: [{name: shop, type: duckdb, path: shop.duckdb}]\n",
    "pytest.ini": "[pytest]\nasyncio_default_fixture_loop_scope = function\n",
    "test_plain.py": "def test_plain(): pass\n",
}


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    for name, text in FILES.items():
        path = pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    with duckdb.connect(str(pytester.path / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE orders (id INT, customer_id INT)")
        connection.execute("CREATE TABLE customers (id INT)")
    return pytester


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["plain", "xdist"])
def test_findings_are_items(project: pytest.Pytester, workers: tuple[str, ...]) -> None:
    result = project.runpytest("--agent-validate", "-v", "-rsf", *workers)
    assert result.ret == 1
    result.assert_outcomes(passed=2, failed=2, skipped=2)
    result.stdout.fnmatch_lines_random(
        [
            "*semantics/semantic_model.yml::validate*",
            "datasets/shop/dataset.yaml:2:13: unknown database_id 'shop_db', did you mean 'shop'?",
            "datasets/shop/dataset.yaml:6:5: join side main.customers is not a table of bundle 'shop'*",
            "*policies/policy.yml:1:17: PII entry main.customers names no columns*",
            "*policies/policy.yml:1:17: PII table main.customers is in no bundle*",
        ]
    )


def test_warnings_fail_when_strict(project: pytest.Pytester) -> None:
    result = project.runpytest("--agent-validate", "--agent-strict", "-k", "policy")
    result.assert_outcomes(failed=2, deselected=4)


def test_ids_say_where(project: pytest.Pytester) -> None:
    result = project.runpytest("--agent-validate", "--collect-only", "-q")
    result.stdout.fnmatch_lines_random(
        [
            "policies/policy.yml::validate[[]1:17[]]",
            "policies/policy.yml::validate[[]1:17-2[]]",
            "semantics/semantic_model.yml::validate",
        ]
    )


def test_by_ini_and_with_a_consistent_project(project: pytest.Pytester) -> None:
    (project.path / "pytest.ini").write_text(
        "[pytest]\nagenteval_validate = true\nasyncio_default_fixture_loop_scope = function\n"
    )
    (project.path / "policies/policy.yml").write_text("pii: {mode: block}\n")
    (project.path / "datasets/shop/dataset.yaml").write_text(
        "bundle_id: shop\nwarehouse: {database_id: shop}\ntables: [{schema: main, table: orders}]\n"
    )
    project.runpytest().assert_outcomes(passed=4)
    (project.path / "datasets/shop/dataset.yaml").write_text(
        "bundle_id: shop\nwarehouse: {database_id: shop}\ntables: [{schema: main, table: order}]\n"
    )
    result = project.runpytest()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*3:25: table main.order does not exist, did you mean 'main.orders'?"])


def test_without_the_option_nothing_is_validated(project: pytest.Pytester) -> None:
    project.runpytest().assert_outcomes(passed=1)
