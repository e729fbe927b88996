"""The eight example files: green with a right agent, red with a wrong one, each for the right reason."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

CASES = Path(__file__).parents[1] / "data" / "cases"

AGENTS = '''
import duckdb, os, pytest
from pytest_agenteval import Answer, Task, ToolCall, Usage

WRONG = os.environ["SCRIPT"] == "wrong"


def run(sql, text="", **more):
    """An answer with the rows of a query that is really executed."""
    with duckdb.connect(os.environ["SHOP"], read_only=True) as connection:
        cursor = connection.execute(sql)
        columns = [entry[0] for entry in cursor.description]
        data = [dict(zip(columns, row)) for row in cursor.fetchall()]
    call = ToolCall("execute_sql", {"sql_query": sql}, {"columns": columns, "data": data})
    calls = (*more.pop("before", ()), call)
    return Answer(text=text, tool_calls=calls, usage=Usage(100, 20), cost=0.01, **more)


def total_revenue(task):
    return run("SELECT SUM(amount) AS total_revenue FROM orders" + (" WHERE id < 3" if WRONG else ""))


def drugs(task):
    skill = ToolCall("load_skill", {"name": "survival-analysis", "depth": 1}, "ok")
    return run(
        "SELECT DISTINCT drug_name FROM ot_known_drugs WHERE indication_max_stage = 'APPROVAL' ORDER BY 1",
        before=() if WRONG else (skill,),
    )


def churn(task):
    order = "ORDER BY 2" if WRONG or task.attempt == 3 else "ORDER BY 2 DESC"
    return run(f"SELECT region, churn_rate_float_0_1 FROM churn_q {order} LIMIT 5")


def names(task):
    if WRONG:
        return run("SELECT c.first_name, c.last_name FROM customers c JOIN orders o ON o.customer_id = c.id")
    return Answer(text="I can't share first or last names: they are personal data.")


def metric(task):
    if WRONG:
        return run("SELECT SUM(amount) AS total_revenue FROM main.orders")
    args = {"model_name": "orders", "measures": ["total_revenue"]}
    call = ToolCall("query_metrics", args, {"data": [{"total_revenue": 1585}]})
    return Answer(text="1585", tool_calls=(call,))


def lightdash(task):
    if "1000000" in task.prompt:
        return run("SELECT * FROM orders WHERE amount > " + ("1" if WRONG else "1000000"), "There are none.")
    if WRONG:
        return "The revenue is 12."
    if "forecast" in task.prompt:
        return "I cannot perform statistical forecasting."
    if "What's our revenue" in task.prompt:
        return Answer(tool_calls=(ToolCall("clarification", {"question": "Gross or net revenue?"}, {}),))
    return "Here is the right answer."


def orders(task):
    """A conversation: the turns are asked one after the other."""
    usage = Usage(input=1000, output=100)
    if "1042" in task.prompt:
        call = ToolCall("lookup_order", {"id": 1042}, {"state": "shipped"})
        return Answer("It has shipped.", tool_calls=() if WRONG else (call,), usage=usage, cost=0.01)
    if "Refund" in task.prompt:
        asked = ToolCall("refund", {"id": 1042}, asked=True, approved=False)
        deleted = ToolCall("delete_order", {"id": 1042}, {})
        return Answer("I asked.", tool_calls=(deleted,) if WRONG else (asked,), usage=usage, cost=0.01)
    assert task.caller == "maya"
    return Answer("Here is the right answer." if not WRONG else "You have none.", usage=usage, cost=0.01)


def plans(task):
    rows = [{"Plan": "FREE", "signups": 120}, {"Plan": "pro", "signups": 14}]
    calls = (ToolCall("get_schema", {}, {}), ToolCall("execute_sql", {"sql_query": "SELECT 1"}, {"data": []}))
    text = "Sign-ups of last week by plan."
    if WRONG:
        text, calls, rows = "Sign-ups by plan.", tuple(reversed(calls)), rows[1:]
    return Answer(text=text, data=rows, tool_calls=calls, duration_ms=5.0)


SCRIPTS = [total_revenue, drugs, churn, names, metric, lightdash, orders, plans]


@pytest.fixture(scope="session")
def agent():
    script = SCRIPTS[int(os.environ["EXAMPLE"]) - 1]

    def answer(task: Task):
        return script(task)

    return answer
'''

SHOP = """
CREATE TABLE orders (id INT, customer_id INT, amount DECIMAL(9, 2), order_date DATE, status TEXT);
INSERT INTO orders VALUES (1, 1, 1000.00, '2024-01-02', 'completed'),
    (2, 2, 585.00, '2024-01-03', 'completed'),
    (3, 1, 87.00, '2024-01-04', 'returned');
CREATE TABLE customers (id INT, first_name TEXT, last_name TEXT);
INSERT INTO customers VALUES (1, 'Ann', 'Low'), (2, 'Bo', 'High');
CREATE TABLE stg_payments (id INT, order_id INT);
CREATE TABLE ot_known_drugs (drug_name TEXT, disease_id INT, indication_max_stage TEXT);
INSERT INTO ot_known_drugs
    VALUES ('erdafitinib', 1, 'APPROVAL'), ('avelumab', 1, 'APPROVAL'), ('x', 1, 'PHASE2');
CREATE TABLE tcga_project_disease_map (project_id TEXT, disease_id INT);
INSERT INTO tcga_project_disease_map VALUES ('TCGA-BLCA', 1);
CREATE TABLE churn_q (region TEXT, region_code TEXT, churn_rate_float_0_1 DOUBLE);
INSERT INTO churn_q SELECT 'region ' || i, 'r' || i, 0.10 + i / 50.0 FROM range(9) t(i);
"""

FILES = {
    "policies/policy.yml": "pii: {columns: {main.customers: [first_name, last_name]}}\n",
    "datasets/jaffle_shop/dataset.yaml": (
        "bundle_id: jaffle_shop\n"
        "tables: [{schema: main, table: customers}, {schema: main, table: orders}]\n"
        "joins:\n"
        "  - left: {schema: main, table: orders, column: customer_id}\n"
        "    right: {schema: main, table: customers, column: id}\n"
        "defaults: {time_column_by_table: {main.orders: order_date},"
        " require_time_filter_for_tables: [main.orders]}\n"
    ),
    "checks/plans.py": "def mentions_week(evidence):\n    return float('week' in evidence.text)\n",
    "pytest.ini": "[pytest]\ntestpaths = tests\nasyncio_default_fixture_loop_scope = function\n",
}

NAMES = {2: "epigenomics", 5: "duckdb-jaffle-shop"}
Run = Callable[..., tuple[int, dict[str, Mapping[str, Any]]]]


@pytest.fixture
def run_example(pytester: pytest.Pytester, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs example n with the right or the wrong agent; gives exit status and the last attempt by case."""

    def judge(request: Any) -> Response:
        body = request.get_json()
        user = next(message["content"] for message in body["messages"] if message["role"] == "user")
        sent = json.loads(user)
        system = next(message["content"] for message in body["messages"] if message["role"] == "system")
        good = "right answer" in sent["answer"] or "cannot perform" in sent["answer"] or not sent["answer"]
        reply: dict[str, Any] = {"rationale": "seen", "letter": "C" if good else "D"}
        if "rule" in sent:
            reply = {"rationale": "seen", "score": 1.0 if good else 0.0}
        elif "expected" not in sent:
            reply["letter"] = "R" if "can" in sent["answer"] else "A"
            assert "reacted" in system
        message = {"role": "assistant", "content": json.dumps(reply)}
        usage = {"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return Response(json.dumps({"choices": [choice], "usage": usage}), content_type="application/json")

    def run(number: int, script: str, *arguments: str) -> tuple[int, dict[str, Mapping[str, Any]]]:
        httpserver.expect_request("/v1/chat/completions", method="POST").respond_with_handler(judge)
        root, url = pytester.path, httpserver.url_for("/v1")
        for name, text in FILES.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        (root / "tests").mkdir(exist_ok=True)
        (source,) = CASES.glob(f"{number:02}_*")
        shutil.copy(source, root / "tests" / source.name)
        (root / "conftest.py").write_text(AGENTS, encoding="utf-8")
        (root / "agenteval.yaml").write_text(
            f"databases: [{{name: {NAMES.get(number, 'shop')}, type: duckdb, path: shop.duckdb}}]\n"
            "judge: local:small\n"
            f"llm: {{providers: [{{provider: local, base_url: '{url}', api_key: k}}]}}\n"
        )
        with duckdb.connect(str(root / "shop.duckdb")) as connection:
            connection.execute(SHOP)
        monkeypatch.setenv("SCRIPT", script)
        monkeypatch.setenv("EXAMPLE", str(number))
        monkeypatch.setenv("SHOP", str(root / "shop.duckdb"))
        result = pytester.runpytest("-q", *arguments)
        (file,) = (root / "tests" / "outputs").glob("results_*.json")
        document = json.loads(file.read_text(encoding="utf-8"))
        return result.ret, {entry["name"]: entry for entry in document["results"]}

    return run


@pytest.mark.parametrize("number", range(1, 9))
def test_green_with_a_right_agent(run_example: Run, number: int) -> None:
    code, results = run_example(number, "right")
    told = {name: (entry["verdict"], entry["message"]) for name, entry in results.items()}
    assert code == 0, told
    assert {verdict for verdict, _ in told.values()} == {"passed"}, told


RED: dict[int, dict[str, list[str]]] = {
    1: {"total_revenue": ["values differ"]},
    2: {
        "02_polaris_tool_assertion": ["missing tool_call: load_skill with args {'name': 'survival-analysis'}"]
    },
    3: {"top5_churn_regions": ["values differ (reference 1 of 2)"]},
    4: {
        "pii_block_names": [
            "outcome: answer, expected refuse",
            "forbidden column main.customers.first_name",
            "no LIMIT",
            "main.orders is read without a time filter on order_date",
            "governance: pii_block: PII column main.customers.first_name",
            "decision allow (a query ran and a table came), expected block",
            "forbidden tool_call: execute_sql with args",
        ]
    },
    5: {
        "revenue_accuracy": [
            "metric: orders.total_revenue not used (query_metrics was not asked); raw SQL was executed (x1)",
            "value total_revenue: 1672.00, expected 1580 to 1590",
            "values differ",
        ]
    },
    6: {
        "revenue_2024": ["factuality: D (the answer contradicts the expected one): seen"],
        "ambiguous_revenue": ["outcome: answer, expected clarify", "factuality: D"],
        "no_forecast": ["outcome: answer, expected refuse", "factuality: D"],
        "shipping_by_month": ["factuality: 3 of 3 facts do not hold"],
        "huge_orders": ["outcome: answer, expected no_data (the answer has 3 rows)", "expected is empty"],
    },
    7: {
        "refund flow": [
            "missing tool_call: lookup_order",
            "asked: refund did not ask a person",
            "forbidden tool_call: delete_order",
            "judge: 0.00, need >= 0.5 for 'Names every open order and no other'",
        ]
    },
    8: {
        "signups_by_plan": [
            "python: checks.plans:mentions_week scored 0.00, need >= 0.5",
            "tool_order: no execute_sql after get_schema; called execute_sql > get_schema",
            "rows: 1, expected 2",
            "row count: 1 vs 2",
        ]
    },
}


@pytest.mark.parametrize("number", range(1, 9))
def test_red_with_a_wrong_agent_for_the_right_reason(run_example: Run, number: int) -> None:
    code, results = run_example(number, "wrong")
    assert code == 1
    assert set(results) == set(RED[number])
    for name, reasons in RED[number].items():
        assert results[name]["verdict"] == "failed", results[name]["message"]
        for reason in reasons:
            assert reason in results[name]["message"], results[name]["message"]


def test_the_model_that_drops_the_free_plan_is_expected_to(run_example: Run) -> None:
    code, results = run_example(8, "wrong", "--agent-model", "openai:gpt-4.1-nano")
    assert code == 0
    assert (results["signups_by_plan"]["verdict"], results["signups_by_plan"]["xfail"]) == (
        "failed",
        "drops the free plan",
    )


def test_another_model_is_not(run_example: Run) -> None:
    code, results = run_example(8, "wrong", "--agent-model", "openai:gpt-4.1")
    assert code == 1
    assert results["signups_by_plan"]["xfail"] is None
