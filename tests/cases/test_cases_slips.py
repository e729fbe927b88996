"""The commonest slips in YAML get the hint that mends them, behind the parser's own words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Told = Callable[..., list[str]]

INDENTED = "begin each of its lines with two blanks more than the key"
SYNTAX = {
    "name: a\nprompt: x\n  sql: SELECT 1\n": (
        "3:6: ", "'sql' is indented by 2 and 'prompt' on line 2 by 0: write both in one column",
    ),
    "name: a\n prompt: x\n": (
        "2:8: ", "'prompt' is indented by 1 and 'name' on line 1 by 0: write both in one column",
    ),
    "prompt: x\n  y: z\n    sql: w\n": (
        "2:4: ", "'y' is indented by 2 and 'prompt' on line 1 by 0: write both in one column",
    ),
    "prompt: x\n   y z\n  sql: w\n": (
        "3:6: ", "'sql' is indented by 2 and 'prompt' on line 1 by 0: write both in one column",
    ),
    "cases:\n  - prompt: x\n   sql: y\n": (
        "3:4: ", "'sql' is indented by 3 and 'prompt' on line 2 by 4: write both in one column",
    ),
    "prompt: x\nsql: |\nSELECT 1\nFROM t\n": (
        "4:1: ", f"the text of 'sql: |' on line 2 is not indented: {INDENTED}",
    ),
    "- prompt: x\n  sql: >-  # folded\n  SELECT 1\n  FROM t\n": (
        "4:3: ", f"the text of 'sql: >' on line 2 is not indented: {INDENTED}",
    ),
    "prompt: @here, who?\n": ("1:9: ", '; quote a text that begins with @: "@here, who?"'),
    "prompt: `orders` of May\n": ("1:9: ", '; quote a text that begins with `: "`orders` of May"'),
    "prompt: *all orders\n": ("1:9: ", '; quote a text that begins with *: "*all orders"'),
    "prompt: %a of b\n": ("1:9: ", '; quote a text that begins with %: "%a of b"'),
    "prompt: [EU] revenue?\n": ("1:14: ", '; quote a text that begins with [: "[EU] revenue?"'),
    "prompt: [EU revenue\nsql: x\n": ("2:4: ", '; quote a text that begins with [: "[EU revenue"'),
    "prompt: {shop} revenue?\n": ("1:16: ", '; quote a text that begins with {: "{shop} revenue?"'),
    "prompt: > 5 orders?\n": ("1:11: ", '; quote a text that begins with >: "> 5 orders?"'),
    "prompt: - a\n": ("1:9: ", '; quote a text that begins with -: "- a"'),
    'prompt: "Revenue" of "May"\n': (
        "1:19: ", "a text that begins with a quoted word is quoted as a whole: '\"Revenue\" of \"May\"'",
    ),
    "prompt: 'Revenue' of May\n": (
        "1:19: ", "a text that begins with a quoted word is quoted as a whole: \"'Revenue' of May\"",
    ),
    "prompt: 'what's it?'\n": ("1:15: ", "inside '...' an apostrophe is written twice, or use \"...\""),
    "prompt: total: May\n": ("1:14: ", "not allowed in this context; quote a text that contains ': '"),
    "sql: SELECT a, # the first\n  b\n": (
        "2:3: ", "the comment on line 1 ends the text of 'sql': write it as 'sql: |', or quote it",
    ),
    "a: [\n": ("2:1: ", "not YAML: while parsing a flow node did not find expected node content"),
    "prompt: x\n\nfoo\nsql: y\n": ("4:1: ", "could not find expected ':' (it began on line 3)"),
    "- foo\nbar\nqux: x\n": ("3:1: ", "could not find expected ':' (it began on line 2)"),
    "foo\nbar: [\n": ("2:4: ", ""),
    "b: &\n": ("1:5: ", ""),
}  # fmt: skip


@pytest.mark.parametrize("text", SYNTAX)
def test_a_syntax_error_names_what_was_meant(told: Told, text: str) -> None:
    (said,) = told(text)
    place, hint = SYNTAX[text]
    assert said.startswith(f"tests/x.yml:{place}not YAML: ")
    assert said.endswith(hint)


def near(told: Told, text: str, **options: object) -> list[str]:
    return [line.replace("tests/x.yml:", "") for line in told(text, **options)]


COMMENTS = [
    (
        "prompt: What is the # of customers in May?\nsql: SELECT 1\n",
        "1:9",
        "prompt",
        "# of customers in May?",
    ),
    ("prompt: How many?\nsql: SELECT 1 AS n # where id = 7\n", "2:6", "sql", "# where id = 7"),
    ("question: a #1 store?\nsql: SELECT 1\n", "1:11", "question", "#1 store?"),
    ("prompt: [{say: a b # c\n}]\nsql: SELECT 1\n", "1:16", "say", "# c"),
    ("prompt: x\nexpected_response: [a,\n b # c\n ]\n", "3:2", "expected_response", "# c"),
    ("prompt: x\nsql: SELECT 1\nvariants:\n- who is # 1?\n", "4:3", "variants", "# 1?"),
]


@pytest.mark.parametrize(("text", "place", "key", "comment"), COMMENTS)
def test_a_text_that_a_comment_cuts_is_warned_of(
    told: Told, text: str, place: str, key: str, comment: str
) -> None:
    said = f"{key} ends where the comment {comment!r} begins; quote the text if it goes on"
    assert near(told, text) == [f"warning: {place}: {said}"]


@pytest.mark.parametrize(
    "text",
    [
        "prompt: 'What is the # of customers?' # a note\nsql: SELECT 1\n",
        "prompt: |\n  What is the # of customers?\nsql: SELECT 1\n",
        "prompt: What is C#?\nsql: SELECT 1\n",
        "# a note\nprompt: How many?\n# another\nsql: SELECT 1\n",
        "prompt: How many?\nsql: SELECT 1\ntags: [a] # a note\nname: b # a note\n",
    ],
)
def test_a_comment_that_cuts_nothing_is_a_comment(told: Told, text: str) -> None:
    assert near(told, text) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prompt: {{ x }}\n", '1:9: prompt: expected text, found a mapping; quote it: "{{ x }}"'),
        ("prompt: {a: b}\n", '1:9: prompt: expected text, found a mapping; quote it: "{a: b}"'),
        ("prompt: a\nsql: [[b]]\n", '2:7: sql: expected text, found a list; quote it: "[b]"'),
        ("prompt: a\ncontext:\n  b: c\n", "3:3: context: expected text, found a mapping"),
        (
            "prompt: |\nsql: SELECT 1\n",
            "1:9: prompt is empty: the text below | must be indented further than the key",
        ),
        (
            "prompt: #1 store?\nsql: SELECT 1\n",
            "1:8: prompt is empty: a comment begins at '#1 store?'; quote the text",
        ),
        ("prompt: ''\n", "1:9: prompt is empty"),
    ],
)
def test_a_text_that_is_none_says_how_it_is_written(told: Told, text: str, said: str) -> None:
    assert near(told, text)[0] == said


SQL = {
    "sql: SELECT a FORM t x y\n": '2:20: sql cannot be read: syntax error at or near "t"',
    "sql: |\n  SELECT sum(x\n    FROM t\n": '4:5: sql cannot be read: syntax error at or near "FROM"',
    "sql: 'SELEC 1'\n": '2:7: sql cannot be read: syntax error at or near "SELEC"',
    "sql: >\n  SELECT 1\n  FORM t x y\n": '2:6: sql cannot be read: syntax error at or near "t"',
    "sql: [SELECT 1, SELEC 1]\n": '2:17: sql cannot be read: syntax error at or near "SELEC"',
    "sql: -- nothing\n": "2:6: sql holds no statement",
    "sql: ' ; '\n": "2:7: sql holds no statement",
    'sql: "SELECT \'a"\n': "2:14: sql cannot be read: unterminated string literal",
}


@pytest.mark.parametrize("text", SQL)
def test_sql_that_cannot_be_read_is_found_before_anybody_is_asked(told: Told, text: str) -> None:
    assert near(told, f"prompt: x\n{text}", dialects={"shop": "duckdb"}) == [SQL[text]]


def test_the_sql_of_a_turn_and_of_a_file(told: Told, tmp_path: Path) -> None:
    turn = "prompt:\n- say: x\n  sql: SELEC 1\n"
    assert near(told, turn, dialects={"shop": "duckdb"}) == [
        '3:8: sql cannot be read: syntax error at or near "SELEC"'
    ]
    (tmp_path / "tests" / "a.sql").write_text("SELECT 1,\n  sum(\n")
    assert near(told, "prompt: x\nsql_file: a.sql\n", dialects={"shop": "duckdb"}) == [
        '2:11: sql_file: a.sql:2:6: sql cannot be read: syntax error at or near "("'
    ]
    (tmp_path / "tests" / "a.sql").write_text("SELECT ${x}\n")
    assert near(told, "prompt: x\nsql_file: a.sql\nvars: {x: 1}\n", dialects={"shop": "duckdb"}) == []


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ("", {"dialects": {"shop": "postgres"}}),
        ("", {"databases": None}),
        ("", {}),
        ("database: crm\n", {"databases": ["shop", "crm"], "dialects": {"shop": "duckdb"}}),
    ],
)
def test_sql_of_servers_and_of_databases_that_nobody_knows_is_not_judged(
    told: Told, more: str, options: dict[str, object]
) -> None:
    assert near(told, f"prompt: x\nsql: SELEC 1\n{more}", **options) == []


def test_what_only_duckdb_can_tell_when_it_runs_is_left_to_it(told: Told) -> None:
    text = "prompt: x\nsql: SELECT nope FROM nowhere\n---\nname: b\nprompt: x\nsql: DROP TABLE t\n"
    assert near(told, text, dialects={"shop": "duckdb"}) == []


def test_variables_without_values_are_warned_of(told: Told) -> None:
    said = "${month} stays as it is: the case has no vars; where it is meant, write $${month} and vars: {}"
    assert near(told, "prompt: orders in ${month}?\nsql: SELECT 1\n") == [f"warning: 1:9: {said}"]
    assert near(told, "prompt: a\nsql: SELECT '${month}'\n") == [f"warning: 2:6: {said}"]
    assert near(told, "prompt: orders in ${month}?\nvars: {month: May}\nsql: SELECT 1\n") == []


@pytest.mark.parametrize(
    ("expected", "place"),
    [
        ("[{}]", "2:12"),
        ("[{a: 1}, {}]", "2:20"),
        ("{columns: [], rows: [[]]}", "2:32"),
        ("{rows: [{}]}", "2:19"),
    ],
)
def test_a_row_without_columns_would_fit_any_answer(told: Told, expected: str, place: str) -> None:
    said = "expected: a row without columns fits any answer; no rows at all are written []"
    assert near(told, f"prompt: x\nexpected: {expected}\n") == [f"{place}: {said}"]


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ("{type: text, pattern: '.*'}", "pattern: '.*' matches every text: it would check nothing"),
        ("{type: text, pattern: 'a?'}", "pattern: 'a?' matches every text: it would check nothing"),
        ("{type: text, contains: ' '}", "contains: a blank stands in nearly every text"),
        ("{type: value, min: -.inf}", "min: -inf is no bound: it would check nothing"),
        ("{type: value, approx: 1, rtol: .inf}", "rtol: should be a finite number, found inf"),
        ("{type: sql, forbidden_columns: {}}", "forbidden_columns: should not be empty"),
        ("{type: judge, rule: x, min_score: 0}", "min_score: should be above 0"),
        ("{type: python, call: a:b, min_score: 0}", "min_score: should be above 0"),
        ("{type: factuality, pass: [A, B, C, D, E]}", "pass: every letter passes: it would check nothing"),
        ("{type: budget, cost: .inf}", "cost: should be a finite number, found inf"),
    ],
)  # fmt: skip
def test_a_check_that_accepts_everything_is_refused(told: Told, check: str, said: str) -> None:
    (line,) = near(told, f"prompt: x\nassertions:\n- {check}\n")
    assert said in line


def test_declared_types_are_read_from_what_is_written(told: Told) -> None:
    table = (
        "columns: [zip, ok, at]\n  rows: [[02134, NO, 12:30]]\n  types: {zip: VARCHAR, ok: VARCHAR, at: TIME}"
    )
    assert near(told, f"prompt: x\nexpected:\n  {table}\n") == []
    maps = "rows: [{zip: 02134, ok: ~}]\n  types: {zip: VARCHAR, ok: VARCHAR}"
    assert near(told, f"prompt: x\nexpected:\n  {maps}\n") == []


def test_words_of_tent_and_lightdash(told: Told) -> None:
    assert near(told, "prompt: x\nexpected_response:\n") == []
    assert near(told, "prompt: [{say: x, expected_response: }]\nsql: SELECT 1\n") == []
    assert near(told, "prompt: x\nexpected_response: []\n") == ["2:20: expected_response is empty"]
    assert near(told, "prompt: x\nexpected_response: ''\n") == ["2:20: expected_response is empty"]
    assert near(told, "say: x\nexpect: {text: /shipped/i}\n") == [
        "warning: 2:16: text '/shipped/i' is looked for as it is; a pattern is written pattern: shipped"
    ]
    assert near(told, "say: x\nsql: SELECT 1\nruns: 3\n") == ["3:1: unknown key 'runs', did you mean 'k'?"]
    assert near(told, "say: x\nsql: SELECT 1\nmodels: openai:gpt-4.1\n") == []


def test_two_prompts_that_begin_alike_ask_for_names(told: Told) -> None:
    begin = "What was the revenue of the northern region in the first quarter of "
    text = f"- question: {begin} 2023?\n  sql: SELECT 1\n- question: {begin} 2024?\n  sql: SELECT 2\n"
    (said,) = near(told, text)
    assert said.endswith(", the first on line 1; their prompts begin alike: give each a name")


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ("tool_call: f", "did you mean {type: tool_call, ...}, or beside assertions expect: {called: ...}?"),
        ("rows: 1", "did you mean {type: rows, ...}?"),
        ("foo: 1", "; known: tool_call, no_tool_call, "),
    ],
)
def test_a_check_in_short_is_shown_its_long_form(told: Told, check: str, said: str) -> None:
    (line,) = near(told, f"prompt: x\nassertions:\n- {check}\n")
    assert line.startswith("3:3: missing field 'type'")
    assert said in line
