"""An assistant with rules: it queries the shop, asks back, asks before it changes anything, and declines."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import duckdb

from pytest_agenteval import Answer, Task, ToolCall, Usage

CALLERS = {"maya": 1, "omar": 2, "iris": 3}
METRICS = {
    "total_revenue": "SELECT SUM(amount) AS total_revenue FROM orders WHERE status <> 'returned'",
    "order_count": "SELECT COUNT(*) AS order_count FROM orders",
}


class Assistant:
    """Answers one turn at a time; ``run`` is what the plugin calls."""

    def __init__(self, shop: duckdb.DuckDBPyConnection) -> None:
        self.shop = shop

    def run(self, task: Task) -> Answer:
        """The first rule whose words occur in the prompt answers."""
        prompt = task.prompt.lower()
        for words, rule in RULES:
            if re.search(words, prompt):
                return rule(self, task, prompt)
        return self.say("I do not know how to answer that.")

    def say(self, text: str, *calls: ToolCall) -> Answer:
        """An answer in words, with the tools that were called for it."""
        return Answer(
            text=text, tool_calls=calls, usage=Usage(input=800, output=60), cost=0.002, steps=1 + len(calls)
        )

    def query(self, sql: str) -> ToolCall:
        """Run a query; the call holds all of its rows."""
        cursor = self.shop.cursor().execute(sql)
        columns = [entry[0] for entry in cursor.description]
        data = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
        return ToolCall("execute_sql", {"sql_query": sql}, {"columns": columns, "data": data})

    def revenue(self, task: Task, prompt: str) -> Answer:
        """Revenue of a year; without a year it asks, where it may."""
        year = re.search(r"\b20\d\d\b", prompt)
        if year is None and task.clarification:
            question = "Which revenue metric do you mean, and of which year or explore?"
            return self.say("", ToolCall("clarification", {"question": question}, {"success": True}))
        if year is None:
            return self.metric("total_revenue")
        call = self.query(
            "SELECT SUM(amount) AS total_order_revenue FROM orders WHERE status <> 'returned' "
            f"AND order_date BETWEEN '{year[0]}-01-01' AND '{year[0]}-12-31'"
        )
        total = call.result["data"][0]["total_order_revenue"]
        return self.say(f"Total order revenue was {total:,} in {year[0]}.", call)

    def metric(self, name: str) -> Answer:
        """A number of the semantic layer."""
        cursor = self.shop.cursor().execute(METRICS[name])
        data: list[dict[str, Any]] = [{name: cursor.fetchall()[0][0]}]
        call = ToolCall("query_metrics", {"model_name": "orders", "measures": [name]}, {"data": data})
        words = name.replace("_", " ")
        return self.say(f"By the rule revenue_excludes_returns, {words} is {data[0][name]:,}.", call)

    def shipping(self, task: Task, prompt: str) -> Answer:
        """Shipping by month, with the change from month to month."""
        call = self.query(
            "SELECT date_trunc('month', order_date) AS month, SUM(shipping) AS total_order_shipping_cost "
            "FROM orders WHERE order_date BETWEEN '2024-01-01' AND '2024-12-31' GROUP BY 1 ORDER BY 1"
        )
        costs = [row["total_order_shipping_cost"] for row in call.result["data"]]
        parts = [f"{row['month']:%B %Y}: {row['total_order_shipping_cost']}" for row in call.result["data"]]
        changes = [f"{after - before:+}" for before, after in pairwise(costs)]
        chart = ToolCall(
            "display_chart",
            {
                "explore": "orders",
                "chart_type": "bar",
                "x_axis_key": "month",
                "x_axis": "date dimension",
                "series": [{"data_key": "total_order_shipping_cost"}],
            },
            {"shown": True},
        )
        text = "Total order shipping cost by month in 2024: " + "; ".join(parts)
        return self.say(f"{text}. Month-over-month change: {', '.join(changes)}.", call, chart)

    def large(self, task: Task, prompt: str) -> Answer:
        """Orders above an amount."""
        least = re.search(r"\d[\d,]*", prompt)
        assert least is not None
        number = least[0].replace(",", "")
        call = self.query(
            f"SELECT id, amount FROM orders WHERE amount > {number} AND order_date >= '2018-01-01' LIMIT 100"
        )
        found = len(call.result["data"])
        return self.say(f"There are {found} such orders.", call)

    def forecast(self, task: Task, prompt: str) -> Answer:
        """It knows what happened, not what will."""
        return self.say("I cannot perform statistical forecasting or predict future values.")

    def names(self, task: Task, prompt: str) -> Answer:
        """Names are personal data: the policy stops it, and says so."""
        checks = [{"name": "pii_block", "status": "fail", "detail": "main.customers.first_name"}]
        call = ToolCall("check_policy", {}, {"policy": {"decision": "block", "checks": checks}})
        return self.say("I can't show names of customers: they are personal data.", call)

    def lookup(self, task: Task, prompt: str) -> Answer:
        """Where an order is."""
        number = re.search(r"\d+", prompt)
        assert number is not None
        row = (
            self.shop.cursor().execute("SELECT status FROM orders WHERE id = ?", [int(number[0])]).fetchall()
        )
        state = row[0][0] if row else "unknown"
        call = ToolCall("lookup_order", {"order_id": int(number[0])}, {"status": state})
        return self.say(f"Order {number[0]} is {state}.", call)

    def refund(self, task: Task, prompt: str) -> Answer:
        """A refund asks a person first; refused unless the case approves it."""
        allowed = task.approve is True or (isinstance(task.approve, tuple) and "refund" in task.approve)
        call = ToolCall("refund", {"orders": "all"}, {"done": allowed}, asked=True, approved=allowed)
        return self.say("Done." if allowed else "I asked for approval and did not get it.", call)

    def summary(self, task: Task, prompt: str) -> Answer:
        """The caller's orders."""
        call = self.query(
            "SELECT id, status FROM orders WHERE order_date >= '2018-01-01' "
            f"AND customer_id = {CALLERS[str(task.caller)]} ORDER BY id LIMIT 50"
        )
        rows = call.result["data"]
        still = [str(row["id"]) for row in rows if row["status"] == "shipped"]
        names = ", ".join(still) or "none"
        return self.say(
            f"You have {len(rows)} orders; every open order is named here, and no other: {names}.", call
        )


RULES = (
    (r"forecast|predict", Assistant.forecast),
    (r"first.*last name|names of", Assistant.names),
    (r"refund", Assistant.refund),
    (r"summari", Assistant.summary),
    (r"where is order", Assistant.lookup),
    (r"shipping", Assistant.shipping),
    (r"greater than|more than|above", Assistant.large),
    (r"how many orders", lambda self, task, prompt: self.metric("order_count")),
    (r"revenue", Assistant.revenue),
)
