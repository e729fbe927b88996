"""The agent under test: an analyst that answers from a playbook, without a network.

A real agent has a language model where this one has the playbook; all else is as in a real one: it
gets a task, looks at the database, runs SQL through tools, and returns text and the calls it made.

It comes as three models. ``demo:careful`` is right everywhere. ``demo:hasty`` makes six mistakes that
language models make every day, each in one question (``HASTY`` below), and is right elsewhere.
``demo:freehand`` makes the same six and calls every column by a name of its own (``FREEHAND``), as real
models do: what is right passes all the same, and each mistake is named as before.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from pytest_agenteval import Answer, Task, ToolCall, Usage


@dataclass(frozen=True)
class Play:
    """What to do about a question: the statements to run (the last gives the table), and what to say.

    ``{value}`` in ``say`` is the first cell of the table, ``{rows}`` its number of rows.
    """

    sql: tuple[str, ...] = ()
    say: str = "Here are the {rows} rows."


PLAYBOOK = {
    "How much revenue have we made in total?": Play(
        ("SELECT sum(amount) AS revenue FROM orders WHERE status = 'completed' AND channel <> 'staff'",),
        "In total we made {value:,} of revenue.",
    ),
    "What was the revenue in each month of 2025?": Play(
        (
            """SELECT date_trunc('month', ordered_at)::DATE AS month, sum(amount) AS revenue
            FROM orders WHERE year(ordered_at) = 2025 AND status = 'completed' AND channel <> 'staff'
            GROUP BY 1 ORDER BY 1""",
        )
    ),
    "How much did customers spend in each sales channel in 2025, without our own staff's orders?": Play(
        (
            """SELECT channel, sum(amount) AS spent FROM orders
            WHERE status = 'completed' AND ordered_at >= '2025-01-01' AND ordered_at < '2026-01-01'
              AND channel <> 'staff'
            GROUP BY channel""",
        )
    ),
    "What is the average order value in each product category, to the cent?": Play(
        (
            """SELECT category, round(avg(amount), 2) AS average_order_value
            FROM orders JOIN products USING (sku) GROUP BY category""",
        )
    ),
    "Rank all product categories by revenue, best first.": Play(
        (
            """SELECT category, sum(amount) AS revenue FROM orders JOIN products USING (sku)
            WHERE status = 'completed' AND channel <> 'staff'
            GROUP BY category ORDER BY revenue DESC""",
        )
    ),
    "What share of all orders was returned?": Play(
        ("SELECT count(*) FILTER (status = 'returned') / count(*) AS share FROM orders",),
        "{value:.2%} of all orders were returned.",
    ),
    "Who are our five best customers by revenue?": Play(
        (
            """SELECT first_name || ' ' || last_name AS customer, total AS revenue
            FROM customers JOIN (SELECT customer_id, sum(amount) AS total FROM orders
                                 WHERE status = 'completed' AND channel <> 'staff' GROUP BY customer_id)
            USING (customer_id) ORDER BY total DESC LIMIT 5""",
        )
    ),
    "Which customers have never ordered anything? Give me all of their numbers and e-mail domains.": Play(
        (
            """SELECT customer_id, split_part(email, '@', 2) AS domain FROM customers
            ANTI JOIN orders USING (customer_id)""",
        )
    ),
    "How did our customers hear of us? Count them by source, unknown ones too.": Play(
        ("SELECT referred_by, count(*) AS customers FROM customers GROUP BY ALL",)
    ),
    "When did the first and the last customer of each country sign up?": Play(
        (
            """SELECT country, min(signed_up_on) AS first, max(signed_up_on) AS last
            FROM customers GROUP BY country""",
        )
    ),
    "Where do customers 7, 8 and 9 live? Country and zip code, please.": Play(
        ("SELECT customer_id, country, zip FROM customers WHERE customer_id BETWEEN 7 AND 9",)
    ),
    "Send me the e-mail addresses of our French customers.": Play(
        (), "I cannot share e-mail addresses: they are personal data. I can count these customers for you."
    ),
    "List the orders of May 2025 that were paid in instalments: number, day and amount.": Play(
        (
            """SELECT order_id, ordered_at::DATE AS ordered_on, amount FROM orders
            WHERE strftime(ordered_at, '%Y-%m') = '2025-05'
              AND order_id IN (SELECT order_id FROM payments WHERE method = 'instalment')""",
        )
    ),
    "Which orders were worth more than 1,000?": Play(
        ("SELECT * FROM orders WHERE amount > 1000",), "No order was worth more than 1,000."
    ),
    "How many orders came in during December 2025?": Play(
        ("SELECT count(*) AS orders FROM orders WHERE ordered_at >= '2025-12-01'",), "{value} orders came in."
    ),
    "And how many of those were returned?": Play(
        ("SELECT count(*) AS returned FROM orders WHERE ordered_at >= '2025-12-01' AND status = 'returned'",),
        "{value} of them were returned.",
    ),
    "How are we doing?": Play((), "Do you mean revenue, number of orders, or returns, and since when?"),
    "When was the most recent order placed?": Play(
        ("SELECT ordered_at FROM orders ORDER BY ordered_at DESC LIMIT 1",), "The last order is of {value}."
    ),
    "How were the payments of 2024 made? Sum and number by method.": Play(
        (
            "SELECT DISTINCT method FROM payments",
            """SELECT method, sum(amount) AS total, count(*) AS payments FROM payments
            WHERE paid_on BETWEEN '2024-01-01' AND '2024-12-31' GROUP BY method""",
        )
    ),
    "What are the codes and prices of our cakes?": Play(
        ("SELECT sku, price FROM products WHERE category = 'cakes' ORDER BY price",)
    ),
    "Which product has the code 00375?": Play(
        ("SELECT name FROM products WHERE sku = '00375'",), "00375 is the {value}."
    ),
    "Which products have been discontinued, and when?": Play(
        ("SELECT name, discontinued_on FROM products WHERE discontinued_on IS NOT NULL",)
    ),
    "How many products are there in each category?": Play(
        ("SELECT category, count(*) AS number_of_products FROM products GROUP BY category",)
    ),
}

HASTY = {
    # Nobody asked for channels: one row per month and channel instead of one per month.
    "What was the revenue in each month of 2025?": """
        SELECT date_trunc('month', ordered_at)::DATE AS month, channel, sum(amount) AS revenue
        FROM orders WHERE year(ordered_at) = 2025 AND status = 'completed' AND channel <> 'staff'
        GROUP BY ALL ORDER BY ALL""",
    # The filter on staff orders is missing.
    "How much did customers spend in each sales channel in 2025, without our own staff's orders?": """
        SELECT channel, sum(amount) AS spent FROM orders
        WHERE status = 'completed' AND ordered_at >= '2025-01-01' AND ordered_at < '2026-01-01'
        GROUP BY channel""",
    # Rounded to whole numbers.
    "What is the average order value in each product category, to the cent?": """
        SELECT category, round(avg(amount)) AS average_order_value
        FROM orders JOIN products USING (sku) GROUP BY category""",
    # All numbers are right, but the list goes by name.
    "Rank all product categories by revenue, best first.": """
        SELECT category, sum(amount) AS revenue FROM orders JOIN products USING (sku)
        WHERE status = 'completed' AND channel <> 'staff'
        GROUP BY category ORDER BY category""",
    # A LIMIT that nobody asked for.
    "Which customers have never ordered anything? Give me all of their numbers and e-mail domains.": """
        SELECT customer_id, split_part(email, '@', 2) AS domain FROM customers
        ANTI JOIN orders USING (customer_id) ORDER BY customer_id LIMIT 100""",
    # The join gives one row per payment, and an instalment order has two of them.
    "List the orders of May 2025 that were paid in instalments: number, day and amount.": """
        SELECT order_id, ordered_at::DATE AS ordered_on, orders.amount FROM orders
        JOIN payments USING (order_id)
        WHERE strftime(ordered_at, '%Y-%m') = '2025-05' AND method = 'instalment'""",
}


# Names that a case asks for in a check stay; so do those of the one question that takes two queries.
FREEHAND = {
    "revenue": "net_sales",
    "month": "period",
    "channel": "sold_through",
    "spent": "customer_spend",
    "category": "product_group",
    "average_order_value": "aov",
    "share": "fraction_returned",
    "customer": "full_name",
    "customer_id": "buyer_no",
    "domain": "mail_host",
    "customers": "how_many",
    "country": "home",
    "first": "earliest",
    "last": "latest",
    "zip": "postcode",
    "order_id": "no",
    "ordered_on": "day",
    "amount": "value",
    "orders": "n",
    "returned": "sent_back",
    "ordered_at": "placed",
    "sku": "code",
    "price": "costs",
    "name": "product",
    "discontinued_on": "gone_since",
}


class Analyst:
    """Answers questions about the database file at ``database``."""

    def __init__(self, database: Path) -> None:
        self.database = database

    def run(self, task: Task) -> Answer:
        """Look up the question, run its SQL, say what came of it."""
        started = time.perf_counter()
        play = PLAYBOOK.get(task.prompt)
        if play is None:
            return Answer(text="I do not know this question. Which table should I look at?")
        statements = play.sql
        if task.model in ("demo:hasty", "demo:freehand") and task.prompt in HASTY:
            statements = (*statements[:-1], HASTY[task.prompt])
        calls = self._work(statements, FREEHAND if task.model == "demo:freehand" else {})
        rows = calls[-1].result["data"] if calls else []
        value = next(iter(rows[0].values())) if rows else None
        text = play.say.format(value=value, rows=len(rows))
        return Answer(
            text=text,
            tool_calls=calls,
            usage=_usage(task, calls, text),
            cost=_cost(_usage(task, calls, text)),
            duration_ms=(time.perf_counter() - started) * 1000,
        )

    def _work(self, statements: tuple[str, ...], names: dict[str, str]) -> tuple[ToolCall, ...]:
        """The tool calls: a look at the tables, then each statement, its columns called by ``names``."""
        if not statements:
            return ()
        with duckdb.connect(str(self.database), read_only=True) as connection:
            tables = [name for (name,) in connection.execute("SHOW TABLES").fetchall()]
            calls = [ToolCall("list_tables", {}, {"tables": tables}, id="call_0")]
            for number, sql in enumerate(statements, 1):
                result = _execute(connection, sql, f"query_{number}", names)
                calls.append(ToolCall("execute_sql", {"sql_query": sql}, result, id=f"call_{number}"))
        return tuple(calls)


def _execute(
    connection: duckdb.DuckDBPyConnection, sql: str, query_id: str, names: dict[str, str]
) -> dict[str, Any]:
    cursor = connection.execute(sql)
    columns = [names.get(entry[0], entry[0]) for entry in cursor.description]
    data = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
    return {"id": query_id, "columns": columns, "data": data, "row_count": len(data)}


def _usage(task: Task, calls: tuple[ToolCall, ...], text: str) -> Usage:
    """Tokens as a model would roughly count them: one for four characters."""
    asked = sum(len(turn) for turn in task.turns) + sum(len(str(call.result)) for call in calls)
    said = len(text) + sum(len(str(call.args)) for call in calls)
    return Usage(input=asked // 4, output=said // 4)


def _cost(usage: Usage) -> float:
    """What this would cost at 2 and 8 dollars per million tokens (the demo is free, of course)."""
    return ((usage.input or 0) * 2 + (usage.output or 0) * 8) / 1_000_000
