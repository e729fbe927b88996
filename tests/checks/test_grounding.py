"""``grounded``: labelled sentences without a false alarm, and planted numbers that must be found."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal

import pytest
from checks_kit import evidence, judged, table

from pytest_agenteval.checks.grounding import ungrounded

REGIONS = table(
    region=["North", "South", "East", "West", "Centre"],
    revenue=[Decimal("1189.60"), Decimal("985.25"), Decimal("12345.678"), 2_400_000, 1_585],
    orders=[42, 17, 230, 1042, 99],
    share=[0.1234, 0.0312, 0.5, 0.857, 0.02],
    change=[-12.5, 3.75, 0.0, -0.4, 41.0],
    first_order=[dt.date(2024, 1, 15)] * 5,
    plan=["Plan 3", "B2B-77", "free", "pro", "v2.5"],
)
QUESTION = "What were the top 3 regions by revenue since 2023, with at least 25 orders?"

TRUE = [
    "Total order revenue was 1,189.60 for 2024.",
    "North made $1,189.60, South $985.25.",
    "North made about $1,190 and South roughly 990.",
    "North: 1,190",
    "Revenue reached $2.4M in the West.",
    "Revenue reached 2.4 million in the West.",
    "Revenue reached 2.40 mn; that is 2,400k.",
    "West: 2 400 000",
    "West: 2.400.000",
    "West: 2'400'000 francs",
    "West: €2.400.000,00",
    "Nord: 1.189,60 EUR",
    "The East made 12.3k, or 12,346 rounded.",
    "The East made 12,345.68.",
    "North holds 12.3% of it, South 3.1 %.",
    "North holds 12 percent, West 86 percent, Centre 2%.",
    "North fell by 12.5 percent; South rose 3.8 percentage points.",
    "North's change was -12.5, West's \u22120.4.",
    "The change of (12.5) in the North is the largest.",
    "There are 5 regions.",
    "I found 5 rows.",
    "The top 3 regions by revenue are West, East and Centre.",
    "The top 5 customers and the bottom 2 are the same.",
    "In the last 30 days nothing changed.",
    "Over the past 12 months West led.",
    "The 7-day average is unchanged.",
    "1. West: 2.4M\n2. East: 12,345.68\n3. Centre: 1,585",
    "1) West, 2) East, 3) Centre",
    "(1) West leads; (2) East follows.",
    "#1 is West, #2 is East.",
    "West ranks 1st, East 2nd and Centre 3rd.",
    "Between January 1, 2024 and March 31, 2024 West led.",
    "On 15 January 2024 the first order came in.",
    "On Jan 15 the first order came in, on Feb. 3rd the next.",
    "The first order came on 2024-01-15.",
    "The first order came on 2024-01-15T09:30:00Z.",
    "The first order came on 01/15/2024 at 10:30 am.",
    "From 2023 to 2024 West led.",
    "In 2023, West led; 2024 was better.",
    "West led in Q1 2024 and in Q3.",
    "FY2024 was better than FY23.",
    "The fiscal year 2023/24 was better.",
    "In the 2020s West led.",
    "2023\u20132024 was a good season.",
    "By week 14 the West led.",
    "At least 25 orders were needed, as you asked.",
    "Customers on Plan 3 buy most; B2B-77 is second, v2.5 last.",
    "West had 1,042 orders, more than 1,000.",
    "West had over 1,000 orders.",
    "West had nearly 1,050 orders and almost 100 came from the Centre.",
    "Centre: 99 orders (revenue 1,585).",
    "Orders: 42, 17 and 230.",
    "The SKU-4711 and order_88 belong to nobody.",
    "Support is open 24/7.",
    "Here is the query: `SELECT 4711 FROM t` as asked.",
    "```sql\nSELECT * FROM orders LIMIT 777\n```\nNorth made 1,189.60.",
    "See https://example.com/report/98765 for more.",
    "North made 1189.6 and the Centre 1585.",
    "The share of the East is exactly 50%.",
    "The East share is 0.5, the West's 0.857 (85.7%).",
    "| region | revenue |\n|---|---|\n| West | 2,400,000 |\n| East | 12,345.68 |",
    "West \u2013 2.4M; East \u2013 12.3k.",
    "Revenue was up 41% in the Centre (+41.0).",
    "Step 1: I filtered. Step 2: I summed.",
    "West's 1,042 orders are about 1k.",
    "As of the 15th of January, the answer is 42.",
    "North had 42 orders in May 2024, South 17 in June.",
    "No. 1 is the West.",
    "Version 3.11.2 of the model was used.",
    "I can't tell.",
    "None of the regions had zero orders.",
    "The answer covers January\u2013March 2024.",
    "In the year 2024 the West made $2.4 million.",
    "Compared with 2023's figures, West's 1042 orders stand out.",
]

PLANTED = [
    ("Total order revenue was 1,289.60 for 2024.", "1,289.60"),
    ("North made $1,198.60.", "$1,198.60"),
    ("North made about $1,250.", "$1,250"),
    ("Revenue reached $2.6M in the West.", "$2.6M"),
    ("Revenue reached 2.4 billion in the West.", "2.4 billion"),
    ("The East made 13.3k.", "13.3k"),
    ("North holds 14.3% of it.", "14.3%"),
    ("North fell by 13.5 percent.", "13.5 percent"),
    ("There are 7 regions.", "7"),
    ("I found 50 rows.", "50"),
    ("1. West: 2.9M", "2.9M"),
    ("West had 1,402 orders.", "1,402"),
    ("West had over 2,000 orders.", "2,000"),
    ("Orders: 42, 18 and 230.", "18"),
    ("There were 1999 orders.", "1999"),
    ("The total is $2024.", "$2024"),
    ("The share of the East is exactly 60%.", "60%"),
    ("Centre: 98 orders.", "98"),
    ("Centre (97) is last.", "97"),
    ("| West | 2,400,001 |", "2,400,001"),
    ("North: 1.198,60 EUR", "1.198,60"),
    ("The average is 0.875.", "0.875"),
    ("Growth was +43.0.", "43.0"),
    ("The median is 512 per order.", "512"),
    ("On January 15, 2024 we sold 316 units.", "316"),
    ("Q1 2024 closed at 3,333.", "3,333"),
    ("The top 3 regions made 88 orders.", "88"),
    ("West made 2'500'000.", "2'500'000"),
    ("North made 1e6.", "1e6"),
    ("The change was -13.5.", "-13.5"),
]


def seen(text):
    return evidence(text, prompt=QUESTION, table=REGIONS)


def test_there_are_enough_sentences():
    assert len(set(TRUE)) >= 60
    assert len(PLANTED) >= 30


@pytest.mark.parametrize("sentence", TRUE)
def test_no_false_alarm(sentence):
    assert ungrounded(seen(sentence)) == []


def test_nine_of_ten_planted_numbers_are_found():
    missed = [(text, n) for text, n in PLANTED if not any(n in found for found in ungrounded(seen(text)))]
    assert len(missed) <= len(PLANTED) // 10, missed


def test_nothing_but_the_planted_number_is_named():
    for text, number in PLANTED:
        for found in ungrounded(seen(text)):
            assert number in found, (text, found)


def test_nine_of_ten_random_numbers_are_found():
    """Numbers drawn at random, put into true sentences: the chance hits stay below one in ten."""
    draw = random.Random(20240115)
    forms = ("{:,}", "{}", "${:,}", "{:,} orders", "{:.1f}%", "{:,.2f}")
    found = 0
    for number in range(300):
        value = draw.randint(100, 9_999_999) if number % 2 else draw.randint(1_000, 99_999) / 7
        form = forms[number % len(forms)]
        text = f"North made 1,189.60 in 2024, the Isle {form.format(value)} of it."
        found += bool(ungrounded(seen(text)))
    assert found >= 270


def test_numbers_may_come_from_any_rows_the_agent_got_back():
    other = table(customers=[7301])
    text = "There were 7,301 customers."
    assert ungrounded(evidence(text, sql=[("SELECT 1", other)])) == []
    assert ungrounded(evidence(text)) == ["7,301"]


def test_numbers_in_nested_values_and_earlier_turns():
    nested = table(x=[{"a": [1.5, {"b": 640}]}], waited=[dt.timedelta(minutes=2)], none=[None], flag=[True])
    assert ungrounded(evidence("It is 640 or 1.5 after 120 seconds", table=nested)) == []
    assert ungrounded(evidence("It is 1", table=nested, prompt="")) == []


def test_the_check_names_what_is_not_grounded():
    result = judged(seen("West made 71, 72, 73, 74, 75, 76 and 78."), type="text", grounded=True)
    assert result.why == "text: 71, 72, 73, 74, 75 and 2 more are neither in the rows nor in the question"
    result = judged(seen("West made 71."), type="text", grounded=True)
    assert result.why == "text: 71 is neither in the rows nor in the question"
    assert judged(seen("West made 2.4M."), type="text", grounded=True).passed
