"""docs/comparing.md names every option and every diagnosis word, with the defaults that hold."""

import re
from dataclasses import fields
from pathlib import Path

from pytest_agenteval.compare import ComparisonOptions

TEXT = (Path(__file__).parents[2] / "docs" / "comparing.md").read_text(encoding="utf-8")
WORD_LIST = (
    "no_answer extra_column wrong_grain pivoted transposed missing_column total_row "
    "truncated_by_limit rows_missing rows_extra fan_out duplicates_missing duplicates_extra "
    "rows_differ order_reversed nulls_order limit_tie order columns_swapped type date_format rounded "
    "truncated precision_lost leading_zeros percent_text case whitespace inverted scaled sign cumulative "
    "column_offset date_shift timezone_shift null_vs_zero null_vs_false null_vs_empty null_vs_text "
    "null_instead_of_value list_order duplicate_counts rows_scrambled ambiguous_columns "
    "too_many_near_ties values_differ"
)
WORDS = WORD_LIST.split()


def table_after(heading):
    part = TEXT.split(f"## {heading}\n")[1].split("\n## ")[0]
    return [line.split("|")[1:-1] for line in part.replace("\\|", "/").splitlines() if line.startswith("|")]


def test_every_option_is_documented_with_its_default():
    rows = {name: row[1].strip() for row in table_after("Options") for name in re.findall(r"`(\w+)`", row[0])}
    assert set(rows) == {field.name for field in fields(ComparisonOptions)}
    defaults = ComparisonOptions()
    for name in (
        "decimals",
        "rounding_guard",
        "duplicates",
        "columns",
        "extra_columns",
        "string_case",
        "percent",
    ):
        assert rows[name] == str(getattr(defaults, name))


def test_every_word_is_documented_in_order():
    words = [word for row in table_after("What the words mean") for word in re.findall(r"`(\w+)`", row[0])]
    assert words == WORDS
    source = "".join(
        path.read_text(encoding="utf-8")
        for path in (Path(__file__).parents[2] / "src/pytest_agenteval/compare").rglob("*.py")
    )
    assert all(f'"{word}"' in source for word in WORDS)


def test_the_python_example_runs(capsys):
    example = re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)[1]
    exec(compile(example, "docs/comparing.md", "exec"), {})
    assert capsys.readouterr().out == "match\n"
