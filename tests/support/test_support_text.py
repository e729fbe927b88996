"""One rule for text: every room measures, cuts, counts and escapes alike."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agenteval.compare import Comparison, parse_options, render
from pytest_agenteval.compare import compare as compare_tables
from pytest_agenteval.reports.tables import ReportTable, TableColumn
from pytest_agenteval.reports.terminal import layout
from pytest_agenteval.support.text import (
    clip,
    close_ones,
    closest,
    counted,
    cut,
    cut_line,
    did_you_mean,
    escape_line,
    escape_text,
    fit,
    fit_name,
    one_line,
    pad,
    text_width,
)
from pytest_agenteval.table import Table


def compare(expected: Any, actual: Any, **options: Any) -> Comparison:
    sides = [x if isinstance(x, Table) else Table.from_records(x) for x in (expected, actual)]
    return compare_tables(*sides, parse_options(options))


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("abc", 3),
        ("売上", 4),
        ("e\u0301", 1),
        ("❤️ x", 4),
        ("नमस्ते", 4),
        ("🇩🇪", 2),
        ("a\x1bb", 2),
    ],
)
def test_width_is_that_of_a_terminal(text: str, columns: int) -> None:
    assert text_width(text) == columns
    assert text_width(pad(text, 10)) == text_width(pad(text, 10, right=True)) == 10


@pytest.mark.parametrize(
    ("text", "columns", "kept"),
    [
        ("abcdef", 4, "abcd"),
        ("売上合計", 5, "売上"),
        ("❤️❤️", 3, "❤️"),
        ("🇩🇪🇫🇷", 3, "🇩🇪"),
        ("abc", -1, ""),
        ("売", 0, ""),
    ],
)
def test_a_clipped_text_never_splits_what_is_drawn_as_one(text: str, columns: int, kept: str) -> None:
    assert clip(text, columns) == kept


def test_a_fitted_text_ends_in_the_mark() -> None:
    assert (fit("abcdef", 4), fit("abcd", 4), fit("売上合計", 6, "...")) == ("abc…", "abcd", "売...")


def test_a_long_name_loses_its_middle() -> None:
    assert fit_name("revenue_by_month_and_channel", 16) == "revenue_…channel"
    assert fit_name("revenue", 16) == "revenue"
    assert fit_name("売上合計_by_channel_and_月", 14) == "売上合…and_月"
    assert text_width(fit_name("売上合計_by_channel_and_売上合計", 14)) <= 14
    assert fit_name("products", 6) == "produ…"


@pytest.mark.parametrize("cell", ["❤️ love", "नमस्ते", "売上合計", "plain"])
def test_a_comparison_and_a_report_align_the_same_texts(cell: str) -> None:
    lines = render(compare([{"a": cell, "b": 1}], [{"a": cell, "b": 2}]))
    [expected] = [line for line in lines if line.startswith("expected") and cell in line]
    [answered] = [line for line in lines if line.startswith("answered")]
    assert text_width(expected[: expected.rindex("1")]) == text_width(answered[: answered.index("2")])


def test_a_cut_text_is_never_longer_than_its_limit() -> None:
    assert (cut("abcdefgh", 6), cut("abcdef", 6), cut("abcdefgh", 6, "…")) == ("abc...", "abcdef", "abcde…")
    assert cut_line(" a\n b\t c ", 5) == "a b c"
    assert cut_line("a\nbcdefgh", 6) == "a b..."


def test_counts_have_their_noun() -> None:
    assert [counted(n, "row") for n in (0, 1, 2, 1234)] == ["0 rows", "1 row", "2 rows", "1,234 rows"]
    assert counted(2, "query", "queries") == "2 queries"


@pytest.mark.parametrize(
    ("text", "line", "block"),
    [
        ("plain ü 売上 😀", "plain ü 売上 😀", "plain ü 売上 😀"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd", "a\nb\tc\\rd"),
        ("\x1b[31m", "\\x1b[31m", "\\x1b[31m"),
        ("\u202e\u2066\u061c\u00ad", "\\u202e\\u2066\\u061c\\xad", "\\u202e\\u2066\\u061c\\xad"),
        ("\U000e0041", "\\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800", "\\ud800"),
        ("a\u00a0b", "a b", "a\u00a0b"),
    ],
)
def test_one_set_of_characters_is_escaped(text: str, line: str, block: str) -> None:
    assert (escape_line(text), escape_text(text)) == (line, block)
    assert one_line(text) == " ".join(block.split())


def test_a_near_word_is_suggested_else_what_there_is() -> None:
    known = ["revenue", "region"]
    assert did_you_mean("revenu", known) == ", did you mean 'revenue'?"
    assert did_you_mean("zzz", known) == "; known: region, revenue"
    assert did_you_mean("zzz", known, otherwise="") == ""
    assert closest("qsl", ["sql"]) == "sql"  # the same letters, however short
    assert closest("zzz", known) is None
    assert close_ones("re", ["re", "rex", "rey", "zzz"], 2) == ["re", "rey"]


def test_a_report_pads_by_terminal_columns() -> None:
    columns = [TableColumn("Case", flexible=True), TableColumn("n", right=True)]
    cells = ["plain", "❤️ love", "नमस्ते", "売上合計 " * 30]
    lines = layout(ReportTable("t", columns, [[cell, "1"] for cell in cells], [""] * 4), 60)
    assert {text_width(line.text) for line in lines if line.text.endswith("1")} == {60}
