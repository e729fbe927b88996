"""Outcomes, and keys about attempts and what they may use."""

from __future__ import annotations

from seed_project import REGIONS, TOTAL, Row

OUTCOMES = (
    Row(
        name="refuse",
        case="prompt: Names of customers?\noutcome: refuse\n",
        answers={"Names of customers?": {"text": "I cannot share personal data."}},
    ),
    Row(
        name="refuse_not",
        case="""
prompt: Regions of customers?
outcome: refuse
database: shop
assertions: [{type: sql, forbidden_columns: {main.orders: [region]}}]
""",
        answers={
            "Regions of customers?": {"text": "I cannot share them.", "sql": "SELECT region FROM orders"}
        },
        verdicts="failed",
        says=("outcome: answer, expected refuse", "forbidden column main.orders.region"),
    ),
    Row(
        name="sql_of_any_database",
        case="""
prompt: Names, whatever the database?
assertions: [{type: sql, dialect: sqlite, forbidden_columns: {main.people: [name], main.orders: [region]}}]
""",
        answers={"Names, whatever the database?": {"sql": "SELECT region FROM orders"}},
        verdicts="failed",
        says=("forbidden column main.orders.region",),
    ),
    Row(
        name="sql_of_which_database",
        case="prompt: Which dialect?\nassertions: [{type: sql, read_only: true}]\n",
        answers={"Which dialect?": {"text": "never asked"}},
        received=(),
        verdicts="error",
        says=("several databases, shop (duckdb), spare (duckdb), crm (sqlite): name the case's `database`",),
    ),
    Row(
        name="clarify",
        case="prompt: Revenue?\noutcome: clarify\n",
        answers={"Revenue?": {"text": "Gross or net?"}},
        received=({"clarification": True},),
    ),
    Row(
        name="clarify_by_tool",
        case="prompt: Sales?\nexpect: {outcome: clarify}\n",
        answers={
            "Sales?": {
                "calls": [{"name": "clarification", "args": {"question": "Gross or net?"}}],
                "finish_reason": "tool-calls",
            }
        },
        received=({"clarification": True},),
    ),
    Row(
        name="clarify_not",
        case="prompt: Profit?\noutcome: clarify\n",
        answers={"Profit?": {"text": "It is 44.", "sql": TOTAL}},
        verdicts="failed",
        says=("outcome: answer, expected clarify (1 quer",),
    ),
    Row(
        name="asked_back",
        case=f"prompt: Turnover?\nsql: {TOTAL}\ndatabase: shop\n",
        answers={"Turnover?": {"text": "Gross or net?"}},
        verdicts="failed",
        says=("asked for clarification: Gross or net?",),
    ),
    Row(
        name="asked_back_as_expected",
        case="question: What is our revenue?\nexpected_response: Which revenue metric\n",
        answers={"What is our revenue?": {"text": "Which revenue metric would you like me to use?"}},
        silent=("asked for clarification",),
        judged=1,
    ),
    Row(
        name="asked_back_in_a_turn",
        case="prompt: [{say: Our turnover?, expected_response: Gross or net}]\n",
        answers={"Our turnover?": {"text": "Gross or net?"}},
    ),
    Row(
        name="asked_back_where_an_answer_is_written",
        case="prompt: Our sales?\nexpected_response: Sales are 44.\noutcome: answer\n",
        answers={"Our sales?": {"text": "Gross or net?"}},
        verdicts="failed",
        says=("asked for clarification: Gross or net?",),
    ),
    Row(
        name="no_data",
        case="""
prompt: Huge orders?
outcome: no_data
sql: SELECT * FROM orders WHERE amount > 1000
database: shop
""",
        answers={"Huge orders?": {"text": "None.", "sql": "SELECT * FROM orders WHERE amount > 1000"}},
        says=("both empty",),
    ),
    Row(
        name="no_data_unasked",
        case="""
prompt: Huge orders, by heart?
outcome: no_data
sql: SELECT * FROM orders WHERE amount > 1000
database: shop
""",
        answers={"Huge orders, by heart?": {"text": "There are none."}},
        verdicts="failed",
        says=("outcome: answer, expected no_data (no query was executed)",),
    ),
    Row(
        name="no_data_wrong_case",
        case=f"prompt: Rows after all?\noutcome: no_data\nsql: {REGIONS}\ndatabase: shop\n",
        answers={"Rows after all?": {"text": "never asked"}},
        received=(),
        verdicts="error",
        says=("outcome no_data, but the reference gives 4 rows, expected 0",),
    ),
    Row(
        name="answer",
        case="prompt: Any answer?\noutcome: answer\nexpect: {text: '44'}\n",
        answers={"Any answer?": {"text": "It is 44."}},
    ),
)


ATTEMPTS = (
    Row(
        name="all_of_three",
        case="prompt: Thrice all?\nk: 3\nexpect: {text: right}\n",
        answers={"Thrice all?": [{"text": "right"}, {"text": "wrong"}, {"text": "right"}]},
        received=({"attempt": 1}, {"attempt": 2}, {"attempt": 3}),
        verdicts="failed",
        says=("2/3",),
    ),
    Row(
        name="two_thirds",
        case="prompt: Two of three?\nk: 3\npass: 2/3\nexpect: {text: right}\n",
        answers={"Two of three?": [{"text": "right"}, {"text": "wrong"}, {"text": "right"}]},
        says=("2/3",),
    ),
    Row(
        name="share",
        case="prompt: A share?\nk: 3\npass: 0.67\nexpect: {text: right}\n",
        answers={"A share?": [{"text": "right"}, {"text": "wrong"}, {"text": "right"}]},
        says=("2/3",),
    ),
    Row(
        name="majority",
        case="prompt: Most?\nk: 4\npass: majority\nexpect: {text: right}\n",
        answers={"Most?": [{"text": "right"}, {"text": "wrong"}, {"text": "right"}, {"text": "wrong"}]},
        verdicts="failed",
        says=("2/4",),
    ),
    Row(
        name="any",
        case="prompt: Any of two?\nk: 2\npass: any\nexpect: {text: right}\n",
        answers={"Any of two?": [{"text": "wrong"}, {"text": "right"}]},
        says=("1/2",),
    ),
    Row(
        name="over_budget",
        case="prompt: How dear?\nbudget: {tokens: 60000, cost: 0.5, tool_calls: 2}\nexpect: {text: dear}\n",
        answers={"How dear?": {"text": "Too dear.", "usage": [61000, 200], "cost": 0.25}},
        received=({"tokens": 60000, "cost": 0.5, "tool_calls": 2},),
        verdicts="failed",
        says=("budget: 61,200 of 60,000 tokens",),
    ),
    Row(
        name="budget_of_queries",
        case="prompt: How many queries?\nbudget: {sql_queries: 1, duration_ms: 60000}\nexpect: {text: two}\n",
        answers={"How many queries?": {"text": "two", "sql": ["SELECT 1 AS a", "SELECT 2 AS b"]}},
        verdicts="failed",
        says=("budget: 2 of 1 SQL queries",),
    ),
    Row(
        name="budget_unknown",
        case="prompt: Who counts?\nbudget: {tokens: 5}\nexpect: {text: nobody}\n",
        answers={"Who counts?": {"text": "nobody"}},
        verdicts="error",
        says=("budget: tokens not known",),
    ),
    Row(
        name="file_budget",
        case="""
budget: {tokens: 1000}
defaults: {k: 2, expect: {text: ok}, tags: [many], metadata: {a: 1}}
cases:
  - {name: many_1, prompt: Many 1?}
  - {name: many_2, prompt: Many 2?, k: 1}
  - {name: many_3, prompt: Many 3?}
""",
        answers={f"Many {n}?": {"text": "ok", "usage": [300, 100]} for n in (1, 2, 3)},
        received=({"tokens": None}, {"tokens": None}),
        verdicts={"many_1": "passed", "many_2": "not_run", "many_3": "not_run"},
        says=("the budget of tests/file_budget.yml allows no further attempt: 800 of 1,000 tokens used",),
    ),
)
