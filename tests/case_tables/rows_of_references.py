"""Keys that say what the answer must be: references and checks."""

from __future__ import annotations

from seed_project import REGIONS, TOTAL, Row

REFERENCES = (
    Row(
        name="several_sql",
        case=f"prompt: By region?\nsql:\n  - {TOTAL}\n  - {REGIONS}\n  - SELECT 1 AS x\ndatabase: shop\n",
        answers={"By region?": {"sql": REGIONS}},
        says=("match (reference 2 of 3)",),
    ),
    Row(
        name="several_sql_none",
        case=f"prompt: By region, please?\nsql: [{TOTAL}, SELECT 1 AS x]\ndatabase: shop\n",
        answers={"By region, please?": {"sql": REGIONS}},
        verdicts="failed",
        says=("(reference 1 of 2)",),
    ),
    Row(
        name="sql_file",
        case="prompt: From a file?\nsql_file: total.sql\ndatabase: shop\n",
        files={"total.sql": f"-- kept apart\n{TOTAL};\n"},
        answers={"From a file?": {"sql": TOTAL}},
        says=("match",),
    ),
    Row(
        name="inline_maps",
        case="prompt: Plans?\nexpected: [{plan: free, n: 120}, {plan: pro, n: 14}]\n",
        answers={"Plans?": {"data": [{"plan": "pro", "n": 14}, {"plan": "free", "n": 120}]}},
        says=("match",),
    ),
    Row(
        name="inline_columns",
        case="""
prompt: Zip codes?
expected: {columns: [zip, n], rows: [[1067, 3], [20095, 4]], types: {zip: VARCHAR}}
""",
        answers={"Zip codes?": {"data": [{"zip": "1067", "n": 3}, {"zip": "20095", "n": 5}]}},
        verdicts="failed",
        says=("values differ",),
    ),
    Row(
        name="inline_file",
        case="prompt: From a CSV?\nexpected: {file: plans.csv}\n",
        files={"plans.csv": "zip,n,day\n01067,3,2024-01-02\n20095,4,2024-01-03\n"},
        answers={
            "From a CSV?": {
                "data": [
                    {"zip": "01067", "n": 3, "day": "2024-01-02"},
                    {"zip": "20095", "n": 4, "day": "2024-01-03"},
                ]
            }
        },
        says=("match",),
    ),
    Row(
        name="comparison",
        case=f"""
prompt: Ordered?
sql: {REGIONS} ORDER BY total DESC
database: shop
comparison: {{ordered: true}}
""",
        answers={"Ordered?": {"sql": f"{REGIONS} ORDER BY total"}},
        verdicts="failed",
        says=("values differ", "order_reversed"),
    ),
    Row(
        name="no_rows_no_pass",
        case=f"prompt: Without data?\nsql: {TOTAL}\ndatabase: shop\nexpect: {{text: '42'}}\n",
        answers={"Without data?": {"text": "It is 42."}},
        verdicts="failed",
        says=("no data returned",),
    ),
    Row(
        name="facts",
        case="prompt: Which facts?\nexpected_response: [five orders, four regions]\n",
        answers={"Which facts?": {"text": "There are five orders in some regions."}},
        verdicts="failed",
        says=("1 of 2 facts do not hold, first 'four regions'",),
        judged=2,
    ),
    Row(
        name="judge_spared",
        case=f"""
prompt: Judged though wrong?
sql: {TOTAL}
database: shop
expected_response: forty-four
assertions: [{{type: judge, rule: polite}}]
""",
        answers={"Judged though wrong?": {"sql": "SELECT 1 AS total", "text": "forty-four, politely polite"}},
        verdicts="failed",
        says=("values differ", "judge not asked: the data comparison already decided"),
        judged=0,
    ),
    Row(
        name="judge_asked",
        case=f"prompt: Judged and right?\nsql: {TOTAL}\ndatabase: shop\nexpect: {{judge: polite}}\n",
        answers={"Judged and right?": {"sql": TOTAL, "text": "44, said rudely"}},
        verdicts="failed",
        says=("judge: 0.00, need >= 0.5 for 'polite'", "match"),
        judged=1,
    ),
)


CHECKS = (
    Row(
        name="expect",
        case="""
prompt: Everything in short?
expect:
  text: orders
  pattern: 'o\\w+s'
  value: 5
  called: [lookup, {tool: execute_sql, min_count: 1}]
  notCalled: drop
  not_called: [truncate, {tool: execute_sql, args: {sql_query: "DELETE"}, args_mode: regex}]
  judge: orders
  python: scores:about_finance
  outcome: answer
metadata: {team: finance}
""",
        answers={
            "Everything in short?": {
                "text": "Five orders.",
                "calls": [{"name": "lookup", "args": {"id": 1}}],
                "sql": "SELECT count(*) AS n FROM orders",
            }
        },
        judged=1,
    ),
    Row(
        name="expect_wrong",
        case="""
prompt: Nothing in short?
expect:
  - {text: orders}
  - {pattern: '^x'}
  - {value: 6}
  - {called: lookup}
  - {notCalled: execute_sql}
  - {asked: refund}
  - {judge: orders}
  - {python: "scores:about_finance"}
""",
        answers={"Nothing in short?": {"text": "Five in all.", "sql": "SELECT count(*) AS n FROM orders"}},
        verdicts="failed",
        says=(
            "text: ",
            "'orders'",
            "`^x`",
            "expected 6",
            "missing tool_call: lookup",
            "forbidden tool_call: execute_sql",
            "asked: refund did not ask a person",
            "judge: 0.00, need >= 0.5 for 'orders'",
            "python: scores:about_finance",
        ),
    ),
    Row(
        name="warn",
        case="""
prompt: Warned?
assertions:
  - {type: text, contains: orders}
  - {type: text, contains: greetings, severity: warn, name: manners}
""",
        answers={"Warned?": {"text": "Five orders."}},
    ),
    Row(
        name="warn_only",
        case="prompt: Only warned?\nassertions: [{type: text, contains: greetings, severity: warn}]\n",
        answers={"Only warned?": {"text": "Five orders."}},
        verdicts="review",
    ),
    Row(
        name="no_checks",
        case="prompt: Nothing to check?\n",
        answers={"Nothing to check?": {"text": "Anything."}},
        verdicts="review",
        says=("nothing was checked",),
    ),
    Row(
        name="turn_of_a_check",
        case="""
prompt: ["Which turn?", "This turn?"]
assertions:
  - {type: text, contains: first, turn: 0}
  - {type: text, contains: second, turn: 1}
  - {type: tool_call, tool: lookup, turn: 1}
""",
        answers={
            "Which turn?": {"text": "first", "calls": [{"name": "lookup"}]},
            "This turn?": {"text": "second"},
        },
        verdicts="failed",
        says=("missing tool_call: lookup",),
        silent=("is missing",),
    ),
)
