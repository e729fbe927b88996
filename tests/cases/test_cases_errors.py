# ruff: noqa: E501
"""Every fault of a case file: its text with file:line:column, all faults of a file at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_agenteval.cases.fault_locations import locate
from pytest_agenteval.cases.yaml_reader import Reader, compose
from pytest_agenteval.support.faults import Fault

ReadConversation = Callable[..., list[str]]

ERRORS = [
    ("prompt: x\nassertion: []\n", ["2:1: unknown key 'assertion', did you mean 'assertions'?"]),
    (
        "prompt: x\nfoo: 1\nx-foo: 2\n",
        ["warning: 2:1: unknown key 'foo'; a note of your own is written x-foo"],
    ),
    # the letters of a known key in another order, however short it is
    ("prompt: x\nslq: SELECT 1\n", ["2:1: unknown key 'slq', did you mean 'sql'?"]),
    (
        "cases:\n- {prompt: x, sql: SELECT 1 AS b, 2 AS a}\n",
        ["2:35: '2 AS a' has no value: a text with a comma is cut in { }; quote the text"],
    ),
    (
        "name: a\nprompt: 'x\n",
        ["3:1: not YAML: while scanning a quoted scalar found unexpected end of stream (it began on line 2)"],
    ),
    ("prompt: x\n\tsql: y\n", ["2:1: a tab; YAML is indented with blanks only"]),
    ("prompt:\n\t- x", ["2:1: a tab; YAML is indented with blanks only"]),
    (b"prompt: caf\xe9\n", ["1:12: not UTF-8 (byte 0xe9); save the file as UTF-8"]),
    (b"\xff\xfep\x00r\x00", ["1:1: not UTF-8 (UTF-16); save the file as UTF-8"]),
    ("prompt: a\nname: b\nprompt: c\n", ["3:1: duplicate key 'prompt', first given on line 1"]),
    ("- 1\n- prompt: x\n", ["1:3: a case must be a mapping of keys, found 1"]),
    ("just text", ["1:1: a case must be a mapping of keys, found 'just text'"]),
    ("", ["1:1: no case: the file is empty"]),
    ("# c\n", ["1:1: no case: the file is empty"]),
    ("42", ["1:1: a case must be a mapping of keys, found 42"]),
    ("name: x\n", ["1:1: missing prompt (or question, say, input)"]),
    ("prompt:\n", ["1:8: prompt is empty"]),
    ("prompt: ''\n", ["1:9: prompt is empty"]),
    ("prompt: '  '\n", ["1:9: prompt is empty"]),
    ("prompt: NO\n", ['1:9: prompt: NO is the boolean false in YAML; quote it: "NO"']),
    ("prompt: 12:30\n", ['1:9: prompt: 12:30 is the number 750 in YAML; quote it: "12:30"']),
    ("prompt: 2024-01-01\n", ['1:9: prompt: 2024-01-01 is a date in YAML; quote it: "2024-01-01"']),
    ("prompt: 7\n", ['1:9: prompt: 7 is a number in YAML; quote it: "7"']),
    ("prompt: 1.5\n", ['1:9: prompt: 1.5 is a number in YAML; quote it: "1.5"']),
    ("prompt: true\n", ['1:9: prompt: true is a boolean in YAML; quote it: "true"']),
    ("prompt: {a: b}\n", ['1:9: prompt: expected text, found a mapping; quote it: "{a: b}"']),
    ("prompt: []\n", ["1:9: prompt is empty"]),
    ("name: [a]\nprompt: x\n", ["1:7: name: expected text, found a list"]),
    ("prompt: x\nsql: ''\n", ["2:6: sql is empty"]),
    ("prompt: x\nsql:\n", ["2:5: sql is empty"]),
    ("prompt: x\nsql: []\n", ["2:6: sql is empty"]),
    ("prompt: x\nsql: [SELECT 1, '']\n", ["2:17: sql is empty"]),
    ("prompt: x\nsql: 5\n", ['2:6: sql: 5 is a number in YAML; quote it: "5"']),
    ("prompt: x\ndatabase: shopp\n", ["2:11: unknown database 'shopp', did you mean 'shop'?"]),
    ("prompt: x\ndatabase: zzz\n", ["2:11: unknown database 'zzz'; known: shop"]),
    (
        "prompt: x\nmodels: [gpt-4]\n",
        ["2:10: models: 'gpt-4' is not provider:model, for example openai:gpt-4.1"],
    ),
    ("prompt: x\nmodels: {a: b}\n", ["2:9: models: expected a list, found a mapping"]),
    (
        "prompt: x\nassertions:\n  - type: tool_cal\n    tool: x\n",
        ["3:11: unknown check type 'tool_cal', did you mean 'tool_call'?"],
    ),
    (
        "prompt: x\nassertions:\n  - type: tool_call\n    toool: x\n",
        ["3:5: missing field 'tool'", "4:5: unknown field 'toool', did you mean 'tool'?"],
    ),
    (
        "prompt: x\nassertions:\n  - type: tool_call\n    tool: x\n    min_count: two\n",
        ["5:16: min_count: should be a whole number, found 'two'"],
    ),
    (
        "prompt: x\nassertions: {type: rows}\n",
        ["2:13: assertions: expected a list of checks, found a mapping"],
    ),
    ("prompt: x\nassertions: [rows]\n", ["2:14: a check is a mapping with a 'type', found 'rows'"]),
    (
        "prompt: x\nassertions: [{equals: 2}]\n",
        [
            "2:14: missing field 'type'; known: tool_call, no_tool_call, tool_order, asked, text, value, rows, sql, metric, governance, chart, factuality, judge, budget, python"
        ],
    ),
    (
        "cases:\n  - {name: a, prompt: x}\n  - {name: a, prompt: y}\n",
        ["3:5: two cases are called 'a', the first on line 2"],
    ),
    (
        "cases:\n  - {name: a b, prompt: x}\n  - {name: a_b, prompt: y}\n",
        ["3:5: two cases have the id 'a_b': 'a b' on line 2 and 'a_b'; give one an id of its own"],
    ),
    ("cases: []\n", ["1:8: cases is empty"]),
    ("cases: x\n", ["1:8: cases: expected a list, found 'x'"]),
    (
        "cases:\n  - prompt: x\ntags: [a]\n",
        ["3:1: 'tags' beside cases: belongs to each case, or under defaults:"],
    ),
    (
        "cases:\n  - prompt: x\ndefaults: {name: a, tagz: [b]}\n",
        ["3:12: defaults: 'name' belongs to each case", "3:21: unknown key 'tagz', did you mean 'tags'?"],
    ),
    ("prompt: x\ndefaults: {k: 2}\n", ["2:1: 'defaults' needs cases: beside it"]),
    ("version: 2\nprompt: x\n", ["1:10: version: this version reads 1, found 2"]),
    ("prompt: x\nquestion: y\n", ["2:1: 'question' is the same key as 'prompt' on line 1"]),
    ("prompt: x\nk: 0\n", ["2:4: k: expected a whole number, 1 or more, found 0"]),
    ("prompt: x\nk: two\n", ["2:4: k: expected a whole number, 1 or more, found 'two'"]),
    (
        "prompt: x\nk: 010\n",
        ["2:4: k: expected a whole number, 1 or more, found 010 (the octal number 8 in YAML)"],
    ),
    (
        "prompt: x\npass: 1.5\n",
        [
            "2:7: pass: expected all, any, majority, a share above 0 and up to 1, or a fraction such as 2/3, found 1.5"
        ],
    ),
    (
        "prompt: x\npass: 0\n",
        [
            "2:7: pass: expected all, any, majority, a share above 0 and up to 1, or a fraction such as 2/3, found 0"
        ],
    ),
    (
        "prompt: x\npass: 0.0\n",
        [
            "2:7: pass: expected all, any, majority, a share above 0 and up to 1, or a fraction such as 2/3, found 0.0"
        ],
    ),
    (
        "prompt: x\npass: 0/3\n",
        [
            "2:7: pass: expected all, any, majority, a share above 0 and up to 1, or a fraction such as 2/3, found '0/3'"
        ],
    ),
    (
        "prompt: x\npass: most\n",
        [
            "2:7: pass: expected all, any, majority, a share above 0 and up to 1, or a fraction such as 2/3, found 'most'"
        ],
    ),
    (
        "prompt: x\npass: 3/2\n",
        [
            "2:7: pass: expected all, any, majority, a share above 0 and up to 1, or a fraction such as 2/3, found '3/2'"
        ],
    ),
    ("prompt: x\ntimeout: 0\n", ["2:10: timeout: expected a number above 0, found 0"]),
    (
        "prompt: x\ntimeout: 1:30\n",
        ["2:10: timeout: expected a number above 0, found 1:30 (the number 90 in YAML)"],
    ),
    (
        "prompt: x\noutcome: refused\n",
        [
            "2:10: outcome: expected one of answer, refuse, clarify, no_data, found 'refused', did you mean 'refuse'?"
        ],
    ),
    ("prompt: x\nbudget: {token: 3}\n", ["2:10: budget: unknown limit 'token', did you mean 'tokens'?"]),
    ("prompt: x\nbudget: 3\n", ["2:9: budget: expected limits such as {tokens: 60000, cost: 0.50}, found 3"]),
    (
        "prompt: x\nbudget: {tokens: -1, cost: free}\n",
        [
            "2:18: budget.tokens: expected a whole number, 0 or more, found -1",
            "2:28: budget.cost: expected a number, 0 or more, found 'free'",
        ],
    ),
    ("prompt: x\ntags: [skip]\n", ["2:8: tag 'skip' is a pytest mark; write it under marks:"]),
    (
        "prompt: x\ntags: [a b]\n",
        ["2:8: tags: 'a b' cannot be selected with -m; use letters, digits, _ . : + / -"],
    ),
    (
        "prompt: x\nmarks: ['timeout(', 'x(y)']\n",
        [
            "2:9: marks: 'timeout(' is not a name or name(arguments) with literal arguments",
            "2:21: marks: 'x(y)' is not a name or name(arguments) with literal arguments",
        ],
    ),
    ("prompt: x\nxfail: {model: [a]}\n", ["2:9: xfail: unknown key 'model', did you mean 'models'?"]),
    ("prompt: x\nskip: []\n", ["2:7: skip: expected true, false or a reason, found a list"]),
    (
        "prompt: x\nxfail: []\n",
        ["2:8: xfail: expected true, false, a reason or {models, reason}, found a list"],
    ),
    ("prompt: x\nexpect: {txt: a}\n", ["2:10: unknown key 'txt' in expect, did you mean 'text'?"]),
    (
        "prompt: x\nexpect: {outcome: refused}\n",
        [
            "2:19: outcome: expected one of answer, refuse, clarify, no_data, found 'refused', did you mean 'refuse'?"
        ],
    ),
    (
        "prompt: x\noutcome: refuse\nexpect: {outcome: refuse}\n",
        ["3:10: outcome is given twice, here and on line 2"],
    ),
    ("prompt: x\nexpect: 5\n", ["2:9: expect is a map or a list of maps, found 5"]),
    (
        "prompt:\n- say: a\n  expect: {outcome: refuse}\n- {sql: x}\n- {say: b, foo: 1}\n",
        [
            "3:12: outcome belongs to the case: a turn's own is not observed",
            "4:3: a turn needs say, the text of the user",
            "5:12: unknown key 'foo' of a turn; known: assertions, expect, expected, expected_response, say, sql",
        ],
    ),
    (
        "prompt: x\nassertions: [{type: rows, equals: 1, turn: 1}]\n",
        ["2:44: turn 1: the prompt has 1 turn, counted from 0"],
    ),
    ("prompt: x ${a}\nvars: {b: 1}\n", ["1:9: unknown variable ${a}; known: b"]),
    ("prompt: x\nvars: 3\n", ["2:7: vars: expected a mapping, found 3"]),
    (
        "prompt: x\nsql_file: q.sql\n",
        ["2:11: sql_file: cannot read 'q.sql' beside the case file: No such file or directory"],
    ),
    ("prompt: x\nsql: a\nsql_file: q.sql\n", ["3:1: sql_file and sql (line 2): keep one of them"]),
    ("prompt: x\nsql: a\nexpected: []\n", ["3:1: expected and sql (line 2): keep one of them"]),
    ("prompt: x\nexpected: 5\n", ["2:11: expected: rows, {columns, rows, types} or {file: x.csv}, found 5"]),
    (
        "prompt: x\nexpected: {column: [a], rows: []}\n",
        ["2:12: expected: unknown key 'column', did you mean 'columns'?"],
    ),
    ("prompt: x\nexpected: {columns: [a]}\n", ["2:11: expected: missing rows (or file)"]),
    (
        "prompt: x\nexpected: {columns: [a], rows: [[1,2], 3, {b: 1}]}\n",
        [
            "2:33: expected: a row of 2 values for 1 columns",
            "2:40: expected: a row must be a list of values, found 3",
            "2:44: expected: unknown column 'b'; known: a",
        ],
    ),
    (
        "prompt: x\nexpected: [{a: 1}, 2]\n",
        ["2:20: expected: a row must be a mapping of columns to values (or give columns and rows), found 2"],
    ),
    (
        "prompt: x\nexpected: {file: y.csv}\n",
        ["2:18: expected: cannot read 'y.csv' beside the case file: No such file or directory"],
    ),
    (
        "prompt: x\nexpected: {rows: [{a: 1}], types: {b: DATE, a: VARCAHR}}\n",
        [
            "2:36: expected: types names a column that is not there: 'b'; known: a",
            "2:48: expected: unknown type 'VARCAHR' of column 'a', did you mean 'VARCHAR'?",
        ],
    ),
    (
        "prompt: x\nexpected: {rows: [{a: 1}], types: {a: DATE}}\n",
        ["2:23: expected: '1' in column 'a' is not a DATE"],
    ),
    (
        "prompt: x\nexpected: {rows: [{a: NO, b: 12:30, c: 0123}]}\n",
        [
            "warning: 2:23: NO is the boolean false in YAML; quote it if it is text",
            "warning: 2:30: 12:30 is the number 750 in YAML; quote it if it is text",
            "warning: 2:40: 0123 is the octal number 83 in YAML; quote it if it is text",
        ],
    ),
    ("prompt: x\nagent: foo\n", ["2:8: agent: 'foo' is not pkg.mod:name"]),
    ("prompt: x\nas: [a]\n", ["2:5: as: expected text or a mapping, found a list"]),
    ("prompt: x\napprove: 3\n", ["2:10: approve: expected true, false or names of tools, found 3"]),
    ("prompt: x\nisolate: 3\n", ["2:10: isolate: expected true or false, found 3"]),
    ("prompt: x\nvariants: a\n", ["2:11: variants: expected a list, found 'a'"]),
    ("prompt: [a, b]\nvariants: [c]\n", ["2:1: variants: need a prompt that is one text"]),
    ("prompt: x\nmetadata: [a]\n", ["2:11: metadata: expected a mapping, found a list"]),
    ("prompt: !foo x\n", ['1:9: prompt: x is tagged !foo in YAML; quote it: "x"']),
    (
        "prompt: x\ninput: !!python/object:os.system {}\n",
        ["2:8: the tag !!python/object:os.system is not allowed; only plain YAML values are"],
    ),
    (
        "prompt: x\nmetadata: {a: !!binary aGk=}\n",
        ["2:15: the tag !!binary is not allowed; only plain YAML values are"],
    ),
    (
        "prompt: x\nmetadata: {a: 2024-13-45}\n",
        ["2:15: 2024-13-45 cannot be read as a timestamp: month must be in 1..12; quote it if it is text"],
    ),
    ("prompt: x\nmetadata: &a [*a]\n", ["2:11: metadata: expected a mapping, found a list"]),
    (
        "prompt: a: b\n",
        ["1:10: not YAML: mapping values are not allowed in this context; quote a text that contains ': '"],
    ),
    ("prompt: x\nname: 'a\x00b'\n", ["2:9: the control character U+0000 is not allowed in YAML"]),
    ('prompt: x\nname: "a\x01b"\n', ["2:9: the control character U+0001 is not allowed in YAML"]),
    ("prompt: x\n? [a]\n: b\n", ["2:3: a key must be text, found a list or a mapping"]),
    (
        "a: &a {name: q}\nprompt: x\n<<: *a\n",
        ["warning: 1:1: unknown key 'a'; a note of your own is written x-a"],
    ),
    ("prompt: x\n<<: 3\n", ["2:5: <<: merges a mapping or a list of mappings"]),
    ("prompt: x\ncomparison: 3\n", ["2:13: comparison: expected a mapping, found 3"]),
    ("prompt: x\nTags: [a]\n", ["2:1: unknown key 'Tags', did you mean 'tags'?"]),
    (
        "prompt: x\nsource: a\n",
        ["warning: 2:1: unknown key 'source'; a note of your own is written x-source"],
    ),
    ("prompt: x\nsql: |\n  SELECT 1\ncontext: 5\n", ['4:10: context: 5 is a number in YAML; quote it: "5"']),
    ("prompt: x\nexpected_response: [a, '']\n", ["2:24: expected_response is empty"]),
    ("prompt: x\nowner: {a: b}\n", ["2:8: owner: expected text, found a mapping"]),
    (
        "prompt: x\n\n  foo: bar\n",
        [
            "3:6: not YAML: mapping values are not allowed in this context; "
            "'foo' is indented by 2 and 'prompt' on line 1 by 0: write both in one column"
        ],
    ),
    (
        "prompt: [unclosed\nname: x\n",
        [
            "2:5: not YAML: while parsing a flow sequence did not find expected ',' or ']' (it began on line 1)"
            '; quote a text that begins with [: "[unclosed"'
        ],
    ),
    ("prompt: *nope\n", ['1:9: not YAML: found undefined alias; quote a text that begins with *: "*nope"']),
]


@pytest.mark.parametrize(("text", "problems"), ERRORS, ids=[str(n) for n in range(len(ERRORS))])
def test_each_fault_names_its_place_and_what_to_do(
    told: ReadConversation, text: str | bytes, problems: list[str]
) -> None:
    said = told(text)

    assert [line.replace("tests/x.yml:", "") for line in said] == problems
    assert all("tests/x.yml:" in line for line in said)


def test_all_faults_of_a_file_come_at_once_in_file_order(told: ReadConversation) -> None:
    text = "k: 0\nprompt: NO\nassertions:\n  - {type: rows, equls: 1}\nassertion: []\nmodels: [x]\n"

    assert told(text) == [
        "tests/x.yml:1:4: k: expected a whole number, 1 or more, found 0",
        'tests/x.yml:2:9: prompt: NO is the boolean false in YAML; quote it: "NO"',
        "tests/x.yml:4:18: unknown field 'equls', did you mean 'equals'?",
        "tests/x.yml:5:1: unknown key 'assertion', did you mean 'assertions'?",
        "tests/x.yml:6:10: models: 'x' is not provider:model, for example openai:gpt-4.1",
    ]


def test_an_unknown_key_is_an_error_under_strict(told: ReadConversation) -> None:
    text = "prompt: x\nseverity: high\nx-note: free\n"

    said = "tests/x.yml:2:1: unknown key 'severity'; a note of your own is written x-severity"
    assert told(text) == [f"warning: {said}"]
    assert told(text, strict=True) == [said]


def test_several_databases_ask_for_one(told: ReadConversation) -> None:
    text = "prompt: x\nsql: SELECT 1\n"
    said = "missing database: the case has sql, and there are several databases: crm, shop"

    assert told(text, databases=["shop", "crm"]) == [f"tests/x.yml:2:1: {said}"]
    assert told("prompt: x\nexpected: []\n", databases=["shop", "crm"]) == []
    assert told("prompt: [{say: x, sql: SELECT 1}]\n", databases=["shop", "crm"]) == [
        f"tests/x.yml:1:1: {said}"
    ]


def test_a_database_that_only_a_fixture_can_know_is_taken(told: ReadConversation) -> None:
    text = "prompt: x\ndatabase: later\n"

    assert told(text, databases=None) == []
    assert told(text, databases=[]) == [
        "tests/x.yml:2:11: unknown database 'later'; none is configured: name it in the project file, in "
        "ini agenteval_databases, or define a fixture agenteval_databases"
    ]


def test_a_fault_in_defaults_is_told_once(told: ReadConversation) -> None:
    text = "defaults: {k: none}\ncases:\n  - {name: a, prompt: x}\n  - {name: b, prompt: y}\n"

    assert told(text) == ["tests/x.yml:1:15: k: expected a whole number, 1 or more, found 'none'"]


def test_defaults_must_be_a_mapping(told: ReadConversation) -> None:
    assert told("defaults: [a]\ncases: [{prompt: x}]\n") == [
        "tests/x.yml:1:11: defaults: expected a mapping, found a list"
    ]


def test_a_foreign_key_beside_cases_is_told(told: ReadConversation) -> None:
    text = "cases: [{prompt: x}]\nseverity: high\nx-note: 1\nbudget: {cost: 1}\nversion: 1\n"

    assert told(text) == [
        "warning: tests/x.yml:2:1: unknown key 'severity'; a note of your own is written x-severity"
    ]


def test_the_marks_of_the_project_are_no_tags(told: ReadConversation) -> None:
    assert told("prompt: x\ntags: slow\n", marks={"slow"}) == [
        "tests/x.yml:2:7: tag 'slow' is a pytest mark; write it under marks:"
    ]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("prompt: x\nmetadata: " + "[" * 70 + "]" * 70, "2:70"),
        ("- " * 70 + "x\n", "1:121"),
        ("prompt: x\nmetadata: &a [*a]\ninput: *a\n", "2:11"),
    ],
)
def test_depth_is_limited(told: ReadConversation, text: str, where: str) -> None:
    assert told(text)[0].startswith(f"tests/x.yml:{where}: ")


def test_the_C_parser_is_not_fed_an_abyss(told: ReadConversation) -> None:
    said = told("prompt: x\nmetadata: " + "[" * 100_000)

    # older libyaml has no limit of its own: then ours speaks
    assert said in (
        ["tests/x.yml:2:1010: not YAML: while increasing flow level exceeded maximum nesting depth"],
        ["tests/x.yml:2:70: more than 60 levels, the most allowed"],
    )


def test_many_aliases_are_refused(told: ReadConversation) -> None:
    text = "prompt: x\nmetadata:\n  a: &a 1\n  b: [" + "*a, " * 1001 + "]\n"

    assert told(text) == ["tests/x.yml:4:4007: more than 1,000 aliases, the most allowed"]


def test_few_aliases_that_multiply_are_refused(told: ReadConversation) -> None:
    lines = ["prompt: x", "input:", "  l0: &l0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"  l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 9)]

    said = told("\n".join(lines))
    assert "nested deeper than 60 levels, or more than 200,000 values" in said[0]


def test_merges_that_multiply_or_loop_are_refused(told: ReadConversation) -> None:
    lines = ["m0: &m0 {a: 1}"]
    lines += [f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 10)}]}}" for n in range(1, 9)]
    lines += ["prompt: x", "<<: *m8"]

    assert "more than 200,000 values" in told("\n".join(lines))[0]
    assert "nested deeper than 60 levels" in told("&a\nprompt: x\n<<: *a\n")[0]


def test_a_large_file_is_refused(told: ReadConversation) -> None:
    said = told("prompt: x\n# " + "x" * (2 * 1024 * 1024))

    assert said == ["tests/x.yml:1:1: 2,097,164 bytes; a case file may have 2,097,152"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prompt: x\nmodels: ['']\n", "2:10: models is empty"),
        ("[]\n", "1:1: no case: the list is empty"),
        ("prompt: x\npass: [1]\n", "2:7: pass: expected all, any, majority, a share above 0 and up to 1, or a fraction such as 2/3, found a list"),
        ("prompt: x\noutcome: []\n", "2:10: outcome: expected one of answer, refuse, clarify, no_data, found a list"),
        ("prompt: x\nbudget: {cost: '1'}\n", "2:16: budget.cost: expected a number, 0 or more, found '1'"),
        ("prompt: x\nk:\n", "2:3: k: expected a whole number, 1 or more, found nothing"),
        ("prompt: x\ntimeout: .inf\n", "2:10: timeout: expected a number above 0, found .inf"),
        ("prompt: x\nk: " + "9" * 70 + "x\n", "2:4: k: expected a whole number, 1 or more, found '" + "9" * 57 + "...'"),
        ("prompt: x\nmetadata: {a: !foo b}\n", "2:15: the tag !foo is not allowed; only plain YAML values are"),
        ("prompt: x\nmetadata: {a: !!set {b}}\n", "2:15: the tag !!set is not allowed; only plain YAML values are"),
        ("prompt: !!int '5'\n", '1:9: prompt: 5 is a number in YAML; quote it: "5"'),
        ("prompt: x\nassertions: [{type: rows, unique: [a, 5]}]\n", "2:39: unique: should be text (quote it), found 5"),
        ("prompt: x\nassertions: [{type: value, column: [a]}]\n", "2:36: column: should be text, found ['a']"),
    ],
)  # fmt: skip
def test_more_faults(told: ReadConversation, text: str, said: str) -> None:
    assert told(text) == [f"tests/x.yml:{said}"]


def test_a_fault_of_something_the_file_does_not_say_is_shown_at_the_whole(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "x.yml")
    (root,), _ = compose(reader.path, "a: {b: [1]}\n")

    assert locate(reader, root, Fault(("a", "c", "d"), "wrong")).start_mark.column == 3
    assert locate(reader, root, Fault(("a", "b", 5), "wrong")).start_mark.column == 7
    assert locate(reader, root, Fault(("a", "b", 0), "wrong")).start_mark.column == 8
    assert locate(reader, root, Fault(("a", "b"), "unknown field")).start_mark.column == 4
