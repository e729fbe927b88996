"""The commonest slips in YAML get the hint that mends them, behind the parser's own words."""

from __future__ import annotations

from collections.abc import Callable

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
