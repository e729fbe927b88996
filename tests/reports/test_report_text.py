from __future__ import annotations

import pytest

from pytest_agenteval.reports.text import cost_text, markdown, percent_text, rate_text, time_text, tokens_text
from pytest_agenteval.support.text import counted, escape_text, fit, one_line, pad, text_width


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü 売上 😀", "plain ü 売上 😀"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]8;;http://evil\x07link\x1b]8;;\x07", "\\x1b]8;;http://evil\\x07link\\x1b]8;;\\x07"),
        ("a\rb\bc\x00", "a\\rb\\x08c\\x00"),
        ("\x9b31m\x7f", "\\x9b31m\\x7f"),
        ("abc\u202etxt.exe\u2066", "abc\\u202etxt.exe\\u2066"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("lone \ud800 one", "lone \\ud800 one"),
        ("line\nand\ttab", "line\nand\ttab"),
    ],
)
def test_terminal_escapes_and_hidden_marks_become_visible(text, shown):
    assert escape_text(text) == shown


def test_one_line_folds_blanks():
    assert one_line(" a\n\n b\t\tc ") == "a b c"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("total_revenue", "total_revenue"),
        ("_hidden_ *bold* `code`", "\\_hidden\\_ \\*bold\\* \\`code\\`"),
        ("![x](http://evil/?q)", "!\\[x\\](http://evil/?q)"),
        ("<img src=x onerror=alert(1)> | a\nb", "\\<img src=x onerror=alert(1)\\> \\| a b"),
        ("@team look", "@\u2060team look"),
        ("&lt;b&gt; & c", "\\&lt;b\\&gt; & c"),
        ("$1 and $2", "\\$1 and \\$2"),
        ("$1", "$1"),
        ("a\\b ~~c~~", "a\\\\b \\~\\~c\\~\\~"),
    ],
)
def test_markdown_means_only_itself(text, shown):
    assert markdown(text) == shown


def test_width_counts_terminal_columns():
    assert (text_width("abc"), text_width("売上"), text_width("e\u0301")) == (3, 4, 1)
    assert (fit("abcdef", 4), fit("売上合計", 5), fit("abc", 3), fit("abc", 0)) == (
        "abc…",
        "売上…",
        "abc",
        "…",
    )
    assert (pad("売", 4), pad("7", 3, right=True), pad("long", 2)) == ("売  ", "  7", "long")


def test_numbers_have_units_and_the_unknown_is_no_zero():
    assert (tokens_text(1250), tokens_text(0), tokens_text(None)) == ("1,250", "0", "-")
    assert [cost_text(c) for c in (0, 0.0063, 1.5, 1234.5, None)] == [
        "$0.0000",
        "$0.0063",
        "$1.50",
        "$1,234.50",
        "-",
    ]
    shown = [time_text(ms) for ms in (0, 449, 59_949, 59_950, 125_000, 3_720_000, None)]
    assert shown == ["0.0s", "0.4s", "59.9s", "1m00s", "2m05s", "1h02m", "-"]
    assert (percent_text(2 / 3), percent_text(None)) == ("66.7 %", "-")
    assert (rate_text(66.7), rate_text(None)) == ("66.7 %", "-")
    assert (counted(1, "fix", "fixes"), counted(2, "fix", "fixes"), counted(1200, "case")) == (
        "1 fix",
        "2 fixes",
        "1,200 cases",
    )
