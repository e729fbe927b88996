"""``agenteval validate``: every finding with its place, honest exit codes, the database asked."""

from __future__ import annotations

import textwrap
from pathlib import Path

import duckdb
import pytest

from pytest_agenteval.cli import main
from pytest_agenteval.governance.validate import validate

GOOD = {
    "datasets/shop/dataset.yaml": """\
        version: 1
        bundle_id: shop
        warehouse: {type: duckdb, database_id: shop-db}
        tables: [{schema: main, table: customers}, {schema: main, table: orders}]
        joins:
          - left: {schema: main, table: orders, column: customer_id}
            right: {schema: main, table: customers, column: id}
        defaults:
          time_column_by_table: {main.orders: order_date}
          require_time_filter_for_tables: [main.orders]
        """,
    "policies/policy.yml": "pii: {columns: {main.customers: [first_name]}}\n",
    "semantics/semantic_model.yml": """\
        models:
          orders:
            table: orders
            schema: main
            time_dimension: order_date
            measures:
              total: {type: sum, column: amount, filters: [{column: status, operator: '=', value: x}]}
              n: {type: count}
            dimensions: {status: {column: status}}
            joins: {customer: {to_model: customers, foreign_key: customer_id, related_key: id}}
          customers: {table: customers, schema: main}
        """,
    "agenteval.yaml": "databases: [{name: shop-db, type: duckdb, path: shop.duckdb}]\n",
}


@pytest.fixture
def project(tmp_path):
    def build(**changes):
        for name, text in {**GOOD, **changes}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is not None:
                path.write_text(textwrap.dedent(text))
            elif path.exists():
                path.unlink()
        return tmp_path

    return build


def found(root, *args, **more):
    return [(problem.render(root), problem.severity) for problem in validate(root, *args, **more).problems]


def test_a_consistent_project_has_no_findings(project):
    result = validate(project(), ["shop-db"])
    assert result.problems == ()
    assert result.errors == 0
    assert [path.name for path in result.files] == ["policy.yml", "dataset.yaml", "semantic_model.yml"]


def test_nothing_there(tmp_path):
    assert found(tmp_path) == [
        ("datasets:1:1: no bundle: there is no datasets/*/dataset.yaml", "warning"),
        ("policies/policy.yml:1:1: no policy: dazense's defaults apply", "warning"),
    ]


DATASET, POLICY, MODEL = "datasets/shop/dataset.yaml", "policies/policy.yml", "semantics/semantic_model.yml"
RULES = "semantics/business_rules.yml"


def change(name, old, new):
    text = textwrap.dedent(GOOD[name])
    assert old in text
    return {name: text.replace(old, new)}


def case(expected):
    listed = f"eval_test_cases:\n  - id: a\n    prompt: x\n    expected: {expected}\n"
    return {DATASET: textwrap.dedent(GOOD[DATASET]) + listed}


@pytest.mark.parametrize(
    ("changes", "line", "severity"),
    [
        (
            change(DATASET, "shop-db", "shop_db"),
            f"{DATASET}:3:27: unknown database_id 'shop_db', did you mean 'shop-db'?",
            "error",
        ),
        (
            change(DATASET, "table: customers, column", "table: customer, column"),
            f"{DATASET}:7:5: join side main.customer is not a table of bundle 'shop', did you mean",
            "error",
        ),
        (
            change(DATASET, "    right: {schema: main, table: customers, column: id}\n", ""),
            f"{DATASET}:6:5: a join needs left and right, each with schema, table, column",
            "error",
        ),
        (change(DATASET, "version: 1", "version: [1"), f"{DATASET}:2:10: not YAML", "error"),
        (
            change(DATASET, "{schema: main, table: orders}", "{schema: main}"),
            f"{DATASET}:4:44: a table of a bundle",
            "error",
        ),
        (
            change(DATASET, "tables: [", "tables: 5\nx: ["),
            f"{DATASET}:4:9: tables: should be a list, found 5",
            "error",
        ),
        (
            change(DATASET, "[{schema: main, table: customers}, {schema: main, table: orders}]", "[]"),
            f"{DATASET}:4:1: bundle 'shop' has no tables",
            "warning",
        ),
        (
            change(DATASET, "{main.orders: order_date}", "{}"),
            f"{DATASET}:10:3: main.orders needs a time filter, but time_column_by_table does not name its",
            "error",
        ),
        (
            change(DATASET, "[main.orders]", "[main.orders, main.payments]"),
            f"{DATASET}:9:3: main.payments is not a table of bundle 'shop'",
            "warning",
        ),
        (
            change(DATASET, "[main.orders]", "[[main.orders]]"),
            f"{DATASET}:10:36: require_time_filter_for_tables: should hold texts",
            "error",
        ),
        (
            change(DATASET, "bundle_id: shop", "bundle_id: [shop]"),
            f"{DATASET}:2:12: bundle_id: should be text, found a list",
            "error",
        ),
        (
            change(DATASET, "tables: [{", "tables: [5, {"),
            f"{DATASET}:4:10: tables: should be a mapping",
            "error",
        ),
        ({DATASET: None}, "datasets:1:1: no bundle: there is no datasets/*/dataset.yaml", "warning"),
        ({DATASET: "- 1\n"}, f"{DATASET}:1:1: the file: should be a mapping, found a list", "error"),
        ({DATASET: "bundle_id: shop\n"}, f"{DATASET}:1:1: bundle 'shop' has no tables", "warning"),
        ({POLICY: None}, f"{POLICY}:1:1: no policy: dazense's defaults apply", "warning"),
        (
            change(POLICY, "[first_name]", "[]"),
            f"{POLICY}:1:17: PII entry main.customers names no columns",
            "warning",
        ),
        (
            change(POLICY, "main.customers", "main.people"),
            f"{POLICY}:1:17: PII table main.people is in no bundle",
            "warning",
        ),
        (
            {POLICY: "joins: {allow_cross_bundle: 1}\n"},
            f"{POLICY}:1:29: allow_cross_bundle: should be true or false",
            "error",
        ),
        ({POLICY: "pii: {tags: contact}\n"}, None, None),
        (
            change(MODEL, "type: sum", "type: summ"),
            f"{MODEL}:7:15: measure orders.total has an unknown type 'summ', did you mean 'sum'?",
            "error",
        ),
        (
            change(MODEL, "type: sum, ", ""),
            f"{MODEL}:7:14: measure orders.total has no type; known: count,",
            "error",
        ),
        (
            change(MODEL, "column: amount, ", ""),
            f"{MODEL}:7:14: measure orders.total has type sum and no column",
            "error",
        ),
        (
            change(MODEL, "to_model: customers", "to_model: customer"),
            f"{MODEL}:10:24: join 'customer' leads to an unknown model 'customer', did you mean 'customers'?",
            "error",
        ),
        (
            change(MODEL, "to_model: customers, ", ""),
            f"{MODEL}:10:23: join 'customer' leads to an unknown model ''",
            "error",
        ),
        (
            change(MODEL, "table: orders", "table: sales"),
            f"{MODEL}:3:5: table main.sales of model 'orders' is in no bundle",
            "warning",
        ),
        (
            change(MODEL, "{table: customers, schema: main}", "{}"),
            f"{MODEL}:11:14: model 'customers' has no table",
            "error",
        ),
        (
            change(
                MODEL,
                "customers: {table: customers, schema: main}",
                "customers: {table: customers, schema: main, dimensions: {name: {column: First_Name}}}",
            ),
            f"{MODEL}:11:60: PII column main.customers.First_Name is offered as the dimension 'name'",
            "warning",
        ),
        ({MODEL: "models: {a: {table: orders}}\n"}, f"{MODEL}:1:1: no model has a measure", "warning"),
        ({MODEL: "models: {}\n"}, None, None),
        ({MODEL: "models: {a: 5}\n"}, f"{MODEL}:1:13: a: should be a mapping, found 5", "error"),
        # a misspelt key would switch its rule off
        (change(POLICY, "pii", "pi"), f"{POLICY}:1:1: unknown key 'pi', did you mean 'pii'?", "error"),
        (
            {POLICY: "execution: {sql_validation: {enforce_limits: true}}\n"},
            f"{POLICY}:1:30: unknown key 'enforce_limits', did you mean 'enforce_limit'?",
            "error",
        ),
        (
            {POLICY: "joins: {strict: true}\n"},
            f"{POLICY}:1:9: unknown key 'strict': nothing reads it; known: allow_cross_bundle",
            "warning",
        ),
        ({POLICY: "pii: {mode: blok}\n"}, f"{POLICY}:1:7: pii.mode 'blok', did you mean 'block'?", "error"),
        ({POLICY: "pii: {mode: mask}\nx-why: a\nowner: me\n"}, None, None),
        (
            change(DATASET, "tables: [", "table: ["),
            f"{DATASET}:4:1: unknown key 'table', did you mean 'tables'?",
            "error",
        ),
        (
            change(DATASET, "left: {schema", "left: {shema"),
            f"{DATASET}:6:12: unknown key 'shema', did you mean 'schema'?",
            "error",
        ),
        (
            change(DATASET, "version: 1", "colour: red"),
            f"{DATASET}:1:1: unknown key 'colour': not",
            "warning",
        ),
        (
            change(MODEL, "filters:", "filter:"),
            f"{MODEL}:7:42: unknown key 'filter', did you mean 'filters'?",
            "error",
        ),
        (change(MODEL, "{status: {column: status}}", "{status: {column: status, format: x}}"), None, None),
        (
            {RULES: "classifications: [{name: a, column: [main.customers.id], tags: [PII]}]\n"},
            f"{RULES}:1:29: unknown key 'column', did you mean 'columns'?",
            "error",
        ),
        # the cases of a bundle, as pytest collects them
        (
            case("{outcome: blok}"),
            f"{DATASET}:14:25: expected: outcome: expected one of allow, block, needs_clarification",
            "error",
        ),
        (
            case("{outcome: block, check_faild: pii_block}"),
            f"{DATASET}:14:32: expected: unknown key 'check_faild', did you mean 'check_failed'?",
            "error",
        ),
        (case("{outcome: block, rows: 1}"), f"{DATASET}:14:32: expected: 'rows' is not checked", "warning"),
        (case("{outcome: block}"), None, None),
    ],
)
def test_findings(project, changes, line, severity):
    lines = found(project(**changes), ["shop-db"])
    if line is None:
        assert lines == []
    else:
        assert any(text.startswith(line) and kind == severity for text, kind in lines), lines


EVERY_KEY = """\
version: 1
defaults: {max_rows: 200, max_preview_rows: 20, require_limit_for_raw_rows: true,
           require_time_filter_for_fact_tables: true, time_filter_max_days_default: 90}
pii: {mode: block, tags: [PII], columns: {main.customers: [first_name]}}
certification: {prefer: certified, require_for_execute_sql: false, require_for_query_metrics: false}
joins: {enforce_bundle_allowlist: true, allow_cross_bundle: false}
execution: {allow_execute_sql: true, allow_query_metrics: true, require_contract: false, require_bundle: true,
            sql_validation: {mode: parse, disallow_multi_statement: true, enforce_limit: true}}
"""
EVERY_KEY_OF_A_BUNDLE = """\
version: 1
bundle_id: shop
warehouse: {type: duckdb, database_id: shop-db}
tables: [{schema: main, table: customers}, {schema: main, table: orders}]
joins:
  - left: {schema: main, table: orders, column: customer_id}
    right: {schema: main, table: customers, column: id}
    type: many_to_one
defaults:
  time_column_by_table: {main.orders: order_date}
  require_time_filter_for_tables: [main.orders]
  max_rows: 200
  data_start_date: '2018-01-01'
  demo_current_date: '2018-04-09'
certification: {level: certified}
use_cases: [{id: orders, question_examples: ['How many orders last month?']}]
"""


def test_every_key_that_dazense_has_is_known(project):
    rules = (
        "rules: [{name: a, category: b, severity: c, applies_to: [d], description: e, guidance: f}]\n"
        "classifications: [{name: a, columns: [], tags: [x]}]\n"
    )
    root = project(**{POLICY: EVERY_KEY, DATASET: EVERY_KEY_OF_A_BUNDLE, RULES: rules})
    assert found(root, ["shop-db"]) == []
    assert found(Path(__file__).parents[2] / "docs/examples/styles", ["shop"]) == []


def test_no_database_is_configured(project):
    assert found(project(), [])[0][0].endswith("unknown database_id 'shop-db'; no database is configured")
    assert found(project()) == []


SCHEMA = {
    "main.customers": ("id", "first_name"),
    "main.orders": ("id", "customer_id", "amount", "order_date", "status"),
}


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, None),
        (
            change(DATASET, "table: orders}]", "table: order}]"),
            f"{DATASET}:4:59: table main.order does not exist, did you mean 'main.orders'?",
        ),
        (
            change(DATASET, "{schema: main, table: orders}", "{schema: main}"),
            f"{DATASET}:4:44: a table of a bundle needs `table` (and `schema`)",
        ),
        (
            change(DATASET, "column: id}", "column: idd}"),
            f"{DATASET}:7:5: column main.customers.idd does not exist, did you mean 'id'?",
        ),
        (
            change(DATASET, "{main.orders: order_date}", "{main.orders: order_day}"),
            f"{DATASET}:9:26: column main.orders.order_day does not exist, did you mean 'order_date'?",
        ),
        (
            change(POLICY, "[first_name]", "[firstname]"),
            f"{POLICY}:1:17: column main.customers.firstname does not exist",
        ),
        (
            change(MODEL, "column: amount", "column: amnt"),
            f"{MODEL}:7:26: column main.orders.amnt does not exist",
        ),
        (
            change(MODEL, "{status: {column: status}}", "{s: {column: stat}}"),
            f"{MODEL}:9:18: column main.orders.stat does not",
        ),
        (
            change(MODEL, "time_dimension: order_date", "time_dimension: at"),
            f"{MODEL}:5:5: column main.orders.at does not exist",
        ),
        (change(MODEL, "time_dimension: order_date", "time_dimension: status"), None),
        (
            change(MODEL, "table: orders", "table: oders"),
            f"{MODEL}:3:5: table main.oders does not exist, did you mean 'main.orders'?",
        ),
        (
            change(MODEL, "customers: {table: customers, schema: main}", "customers: {}"),
            f"{MODEL}:11:14: model 'customers' has no table",
        ),
        ({POLICY: None}, f"{POLICY}:1:1: no policy"),
        (change(DATASET, "database_id: shop-db", "x: 1"), None),
    ],
)
def test_findings_with_a_database(project, changes, line):
    lines = [text for text, _ in found(project(**changes), ["shop-db"], {"shop-db": SCHEMA})]
    assert (lines == []) if line is None else any(text.startswith(line) for text in lines), lines


def test_a_bundle_of_a_database_that_was_not_asked(project):
    root = project(**change(DATASET, "database_id: shop-db", "x: 1"))
    assert found(root, ["a", "b"], {"a": SCHEMA, "b": {}}) == []


def test_a_file_that_is_no_text(project):
    root = project()
    (root / POLICY).write_bytes(b"pii: \xff\n")
    assert found(root)[0] == (f"{POLICY}:1:6: not UTF-8 (byte 0xff); save the file as UTF-8", "error")


# --- the command ------------------------------------------------------------------------------------


def shop(root, columns="id INT, first_name TEXT"):
    with duckdb.connect(str(root / "shop.duckdb")) as connection:
        connection.execute(f"CREATE TABLE customers ({columns})")
        connection.execute(
            "CREATE TABLE orders (id INT, customer_id INT, amount DECIMAL(9,2), order_date DATE, status TEXT)"
        )


def test_the_command_on_a_good_project(project, capsys):
    root = project()
    shop(root)
    assert main(["validate", str(root)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "0 errors, 0 warnings in 3 governance files"
    assert "yes  require_bundle: the policy requires a bundle" in lines
    assert "no   data_start_date: 0 of 1 bundles" in lines
    assert len(lines) == 9


def test_the_command_finds_what_the_database_does_not_have(project, capsys):
    root = project(**{"datasets/shop/dataset.yaml": textwrap.dedent(GOOD[DATASET]) + "certification: 5\n"})
    shop(root, "id INT, firstname TEXT")
    assert main(["validate", str(root)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{DATASET}:11:16: certification: should be a mapping, found 5"
    assert lines[1] == (
        f"{POLICY}:1:17: column main.customers.first_name does not exist, did you mean 'firstname'?"
    )
    assert lines[2] == "2 errors, 0 warnings in 3 governance files"


def test_the_command_without_a_database(project, capsys):
    root = project()
    assert main(["validate", str(root), "--no-database"]) == 0
    assert "was not asked" not in capsys.readouterr().out
    assert main(["validate", str(root)]) == 0
    assert "database 'shop-db' was not asked: " in capsys.readouterr().out
    root = project(
        **{"policies/policy.yml": None, "agenteval.yaml": None, "datasets/shop/dataset.yaml": None}
    )
    assert main(["validate", str(root)]) == 0
    out = capsys.readouterr().out
    assert "policies/policy.yml:1:1: warning: no policy" in out
    assert "0 errors, 2 warnings in 1 governance file\n" in out


def test_the_command_refuses_what_it_cannot_read(project, tmp_path, capsys):
    assert main(["validate", str(tmp_path / "nowhere")]) == 2
    assert "nowhere: no such folder" in capsys.readouterr().err
    root = project(**{"agenteval.yaml": "databases: 5\n"})
    assert main(["validate", str(root)]) == 2
    assert "agenteval.yaml:1:" in capsys.readouterr().err


NAMED = """\
    rules: [{name: revenue_rule, severity: high}]
    classifications:
      - {name: contact, columns: [main.customers.email], tags: [PII]}
      - {name: loose, columns: [email], tags: [PII]}
    """
TABLES = {
    "shop-db": {
        "main.customers": ["id", "first_name"],
        "main.orders": ["customer_id", "order_date", "amount"],
    }
}


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        (
            "{outcome: allow, model_name: orderz, measure: total}",
            "unknown model_name 'orderz', did you mean 'orders'?",
        ),
        (
            "{outcome: allow, model_name: orders, measure: totl}",
            "model 'orders' has no measure 'totl', did you mean 'total'?",
        ),
        (
            "{outcome: allow, tool: query_metric}",
            "unknown tool 'query_metric', did you mean 'query_metrics'?",
        ),
        (
            "{outcome: allow, guidance_rules_include: [revenue_rul]}",
            "unknown rule 'revenue_rul', did you mean 'revenue_rule'?",
        ),
        (
            "{outcome: block, check_failed: pii_blok}",
            "unknown policy check 'pii_blok', did you mean 'pii_block'?",
        ),
    ],
)
def test_what_a_case_names_must_exist(project, expected, said):
    root = project(**case(expected), **{RULES: NAMED})
    problems = [text for text, _ in found(root) if said in text]
    assert problems
    assert all(text.startswith(f"{DATASET}:14:") for text in problems)


@pytest.mark.parametrize(
    "expected",
    [
        "{outcome: allow, model_name: orders, measure: total, tool: query_metrics}",
        "{outcome: allow, tool: my_own_tool, guidance_rules_include: [revenue_rule]}",
        "{outcome: allow, model_name: orders}",
    ],
)
def test_names_that_exist_or_are_nobodys_are_no_findings(project, expected):
    assert found(project(**case(expected), **{RULES: NAMED})) == []


def test_without_the_files_names_are_not_judged(project):
    root = project(
        **case("{outcome: allow, model_name: x, measure: y, guidance_rules_include: [z]}"), **{MODEL: None}
    )
    assert found(root) == []


def test_columns_of_rules_filters_and_joins_must_exist(project):
    root = project(**{RULES: NAMED})
    said = [text for text, _ in found(root, None, TABLES)]
    assert f"{RULES}:3:21: column main.customers.email does not exist; known: first_name, id" in said
    assert any(
        "column main.orders.status does not exist" in text and "semantic_model.yml:7:" in text
        for text in said
    )
    changed = change(
        MODEL, "foreign_key: customer_id, related_key: id", "foreign_key: custmer_id, related_key: idd"
    )
    said = [text for text, _ in found(project(**changed), None, TABLES)]
    assert any(
        "column main.orders.custmer_id does not exist, did you mean 'customer_id'?" in text for text in said
    )
    assert any("column main.customers.idd does not exist, did you mean 'id'?" in text for text in said)
    unknown = NAMED.replace("main.customers.email", "main.nobody.email")
    assert any(
        "table main.nobody does not exist" in text
        for text, _ in found(project(**{RULES: unknown}), None, TABLES)
    )


def test_the_business_rules_are_one_of_the_files(project):
    names = [path.name for path in validate(project(**{RULES: NAMED}), ["shop-db"]).files]
    assert names == ["policy.yml", "dataset.yaml", "business_rules.yml", "semantic_model.yml"]
