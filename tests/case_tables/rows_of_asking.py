"""Keys that decide what the agent receives."""

from __future__ import annotations

from seed_project import TOTAL, Row

ALONE = {"turns": [], "caller": None, "vars": {}, "context": None, "approve": False, "clarification": False}

ASKING = (
    Row(
        name="plain",
        case=f"prompt: What is the total?\nsql: {TOTAL}\ndatabase: shop\n",
        answers={"What is the total?": {"sql": TOTAL}},
        received=(
            {
                **ALONE,
                "turns": ["What is the total?"],
                "input": None,
                "model": None,
                "database": "shop",
                "conversation": None,
                "attempt": 1,
                "timeout": 300,
                "tokens": None,
                "cost": None,
                "tool_calls": None,
                "who": "fixture",
                "today": None,
                "copies": None,
            },
        ),
        says=("match",),
    ),
    Row(
        name="aliases",
        case="""
cases:
  - {question: "What is it called?", expect: {text: shop}}
  - {say: "And again?", expect: {text: shop}}
""",
        answers={"What is it called?": {"text": "The shop."}, "And again?": {"text": "The shop."}},
        received=({"turns": ["What is it called?"]}, {"turns": ["And again?"]}),
        verdicts={"What_is_it_called": "passed", "And_again": "passed"},
    ),
    Row(
        name="turns",
        case=f"""
database: shop
prompt:
  - say: How many orders?
    sql: SELECT count(*) AS n FROM orders
    expect: {{not_called: drop_table}}
  - And what is a region?
  - say: Sum them up
    sql: {TOTAL}
    assertions: [{{type: tool_call, tool: execute_sql, max_count: 1}}]
    expected_response: sum of five
""",
        answers={
            "How many orders?": {"sql": "SELECT count(*) AS n FROM orders", "text": "Five."},
            "And what is a region?": {"text": "A part of the country."},
            "Sum them up": {"sql": TOTAL, "text": "The sum of five orders."},
        },
        received=(
            {"turns": ["How many orders?"], "conversation": None},
            {
                "turns": ["How many orders?", "And what is a region?"],
                "conversation": [
                    {"role": "user", "content": "How many orders?"},
                    {"role": "assistant", "content": "Five."},
                ],
            },
            {
                "turns": ["How many orders?", "And what is a region?", "Sum them up"],
                "conversation": [
                    {"role": "user", "content": "How many orders?"},
                    {"role": "assistant", "content": "Five."},
                    {"role": "user", "content": "And what is a region?"},
                    {"role": "assistant", "content": "A part of the country."},
                ],
            },
        ),
        says=("match",),
        judged=1,
    ),
    Row(
        name="turns_wrong",
        case=f"""
database: shop
prompt:
  - {{say: "First, how many?", sql: SELECT count(*) AS n FROM orders}}
  - {{say: "Second, how much?", sql: {TOTAL}, expect: {{called: nothing}}}}
  - {{say: "Third, by plan?", expected: [{{plan: free, n: 120}}], expect: {{text: plan}}}}
""",
        answers={
            "First, how many?": {"sql": "SELECT count(*) AS n FROM orders"},
            "Second, how much?": {"sql": "SELECT sum(amount) AS total FROM orders WHERE id < 3"},
            "Third, by plan?": {"data": [{"plan": "free", "n": 120}], "text": "By region."},
        },
        verdicts="failed",
        says=("missing tool_call: nothing", "values differ", "'plan'"),
    ),
    Row(
        name="function",
        case="input: {customer: 7, lines: [1, 2]}\nagent: flows:refund\nexpect: {value: 12.5}\n",
        answers={'{"customer": 7, "lines": [1, 2]}': {"value": 12.5}},
        received=({**ALONE, "input": {"customer": 7, "lines": [1, 2]}, "who": "refund"},),
    ),
    Row(
        name="function_by_name",
        case="cases:\n  - input: [1, two]\n    agent: flows:refund\n    expect: {value: {min: 20}}\n",
        answers={'[1, "two"]': {"value": 12.5}},
        verdicts={"1_two": "failed"},
        says=("value", "12.5", "20"),
    ),
    Row(
        name="input_and_prompt",
        case="prompt: Refund this\ninput: {id: 1042}\nexpect: {text: done}\n",
        answers={"Refund this": {"text": "Done."}},
        received=({"turns": ["Refund this"], "input": {"id": 1042}, "who": "fixture"},),
    ),
    Row(
        name="caller",
        case="prompt: Whose orders?\nas: maya\nexpect: {text: maya}\n",
        answers={"Whose orders?": {"text": "Those of maya."}},
        received=({"caller": "maya"},),
    ),
    Row(
        name="caller_map",
        case="prompt: Who am I?\nas: {user: maya, roles: [finance]}\nexpect: {text: maya}\n",
        answers={"Who am I?": {"text": "maya"}},
        received=({"caller": {"user": "maya", "roles": ["finance"]}},),
    ),
    Row(
        name="vars",
        case="""
prompt:
  - "Orders of ${ region } in ${year}, and $${literally}?"
  - say: "In ${year} again"
    sql: SELECT ${year} AS y
database: shop
vars: {region: north, year: 2024}
context: Today is in ${year}.
expected_response: Says ${year}
""",
        answers={
            "Orders of north in 2024, and ${literally}?": {"text": "Two."},
            "In 2024 again": {"text": "Says 2024", "sql": "SELECT 2024 AS y"},
        },
        received=(
            {
                "turns": ["Orders of north in 2024, and ${literally}?"],
                "vars": {"region": "north", "year": 2024},
                "context": "Today is in 2024.",
            },
            {"vars": {"region": "north", "year": 2024}, "context": "Today is in 2024."},
        ),
        judged=1,
    ),
    Row(
        name="setup",
        case="prompt: What day is it?\nsetup: [april]\nexpect: {text: April}\n",
        answers={"What day is it?": {"text": "In April."}},
        received=({"today": "2024-04-09"},),
    ),
    Row(
        name="approve_all",
        case="prompt: Refund all\napprove: true\nexpect: {asked: refund, called: refund}\n",
        answers={"Refund all": {"calls": [{"name": "refund", "args": {}, "asked": True, "approved": True}]}},
        received=({"approve": True},),
    ),
    Row(
        name="approve_some",
        case="prompt: Refund some\napprove: [refund, mail]\nexpect: {asked: [refund]}\n",
        answers={
            "Refund some": {"calls": [{"name": "delete", "args": {}, "asked": True, "approved": False}]}
        },
        received=({"approve": ["refund", "mail"]},),
        verdicts="failed",
        says=("asked: refund did not ask a person",),
    ),
    Row(
        name="clarification",
        case="prompt: May it ask?\nclarification: true\nexpect: {text: 'yes'}\n",
        answers={"May it ask?": {"text": "yes"}},
        received=({"clarification": True},),
    ),
    Row(
        name="timeout",
        case="prompt: How long?\ntimeout: 12.5\nexpect: {text: short}\n",
        answers={"How long?": {"text": "short"}},
        received=({"timeout": 12.5},),
    ),
    Row(
        name="variants",
        case=f"""
prompt: How much in all?
sql: {TOTAL}
database: shop
variants: ['Sum of amounts?', Total please]
""",
        answers={
            "How much in all?": {"sql": TOTAL},
            "Sum of amounts?": {"sql": TOTAL},
            "Total please": {"sql": "SELECT 1 AS total"},
        },
        received=(
            {"turns": ["How much in all?"]},
            {"turns": ["Sum of amounts?"]},
            {"turns": ["Total please"]},
        ),
        verdicts={"variants": "passed", "variants-v1": "passed", "variants-v2": "failed"},
    ),
    Row(
        name="isolate",
        case="""
prompt: Delete the small ones
sql: SELECT count(*) AS n FROM orders
database: shop
isolate: true
setup: copies
k: 2
""",
        answers={
            "Delete the small ones": {
                "write": "INSERT INTO orders VALUES (6, 'west', 1)",
                "sql": "SELECT count(*) - 1 AS n FROM orders",
            }
        },
        says=("2/2: match",),
    ),
    Row(
        name="isolate_sqlite",
        case="""
prompt: Forget Ann
sql: SELECT 1 AS n
database: crm
isolate: true
k: 2
""",
        answers={
            "Forget Ann": {
                "write": "DELETE FROM people WHERE name = 'Ann'",
                "sql": "SELECT count(*) AS n FROM people",
            }
        },
        says=("2/2: match",),
    ),
    Row(
        name="isolate_cheating",
        case="prompt: Delete all\nsql: SELECT 1 AS n\ndatabase: spare\nisolate: true\n",
        answers={
            "Delete all": {
                "write": "CREATE TABLE left_behind(i INTEGER)",
                "original": True,
                "sql": "SELECT 1 AS n",
            }
        },
        verdicts="error",
        says=("the agent wrote to the original of spare, not to its copy",),
    ),
    Row(
        name="databases",
        case="prompt: How many people?\nsql: SELECT count(*) AS n FROM people\ndatabase: crm\n",
        answers={"How many people?": {"sql": "SELECT count(id) AS n FROM people"}},
        received=({"database": "crm"},),
        says=("match",),
    ),
)
