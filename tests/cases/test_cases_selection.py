# ruff: noqa: E501
"""--agent-select: folder, exact name or stem, glob, prefix; order kept; helpful errors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_agenteval.cases.selection import select
from pytest_agenteval.errors import SettingsError

ROOT = Path("/project")


@dataclass(frozen=True)
class Entry:
    path: Path
    name: str
    id: str


def entry(path: str, name: str | None = None) -> Entry:
    written = name or Path(path).stem
    return Entry(ROOT / path, written, written.replace(" ", "_"))


CASES = [
    entry("tests/total_revenue.yml"),
    entry("tests/finance/churn.yml"),
    entry("tests/finance/emea/churn_emea.yml"),
    entry("tests/flows.yml", "refund flow"),
    entry("tests/flows.yml", "cancel flow"),
    entry("tests/sales/finance.yml"),
    entry("tests/sales/margin.yml"),
    entry("tests/hr/margin.yml"),
    entry("tests/tcga_1.yml"),
    entry("tests/tcga_2.yml"),
]


def names(*words: str) -> list[str]:
    return [case.name for case in select(CASES, words, root=ROOT)]


@pytest.mark.parametrize(
    ("word", "chosen"),
    [
        ("total_revenue", ["total_revenue"]),
        ("finance", ["churn", "churn_emea"]),
        ("finance/", ["churn", "churn_emea"]),
        ("finance/emea", ["churn_emea"]),
        ("./tests/sales", ["finance", "margin"]),
        ("churn", ["churn"]),
        ("flows", ["refund flow", "cancel flow"]),
        ("refund flow", ["refund flow"]),
        ("refund_flow", ["refund flow"]),
        ("tests/flows.yml", ["refund flow", "cancel flow"]),
        ("flows.yml::cancel_flow", ["cancel flow"]),
        ("hr/margin", ["margin"]),
        ("tests/hr/margin.yml", ["margin"]),
        ("churn*", ["churn", "churn_emea"]),
        ("*flow", ["refund flow", "cancel flow"]),
        ("tests/*/margin.yml", ["margin", "margin"]),
        ("tcga_[12]", ["tcga_1", "tcga_2"]),
        ("tcga_", ["tcga_1", "tcga_2"]),
        ("refund", ["refund flow"]),
    ],
)
def test_a_word_means_folder_then_name_then_glob_then_prefix(word: str, chosen: list[str]) -> None:
    assert names(word) == chosen


def test_the_order_of_the_words_is_kept_and_each_case_comes_once() -> None:
    assert names("tcga_2", " churn ", "", "tcga_", "churn") == ["tcga_2", "churn", "tcga_1"]
    assert names() == []


def test_a_bare_name_in_two_files_is_an_error() -> None:
    with pytest.raises(SettingsError) as caught:
        names("margin")

    assert str(caught.value) == (
        "--agent-select: 'margin' is in 2 files: tests/sales/margin.yml, tests/hr/margin.yml; give the path of one"
    )


def test_unknown_words_name_what_is_close_and_what_there_is() -> None:
    with pytest.raises(SettingsError) as caught:
        names("total_revenu_", "zzz")

    first, second = str(caught.value).splitlines()
    assert first == (
        "--agent-select: no case, file or folder is called 'total_revenu_', did you mean 'total_revenue'? "
        "Available: total_revenue, churn, churn_emea, refund flow, cancel flow, finance, margin, tcga_1, tcga_2"
    )
    assert second.startswith(
        "--agent-select: no case, file or folder is called 'zzz'. Available: total_revenue, "
    )


def test_at_most_twenty_names_are_listed() -> None:
    many = [entry(f"tests/case_{number:02}.yml") for number in range(27)]

    with pytest.raises(SettingsError) as caught:
        select(many, ["zzz*"], root=ROOT)
    assert str(caught.value).endswith("case_18, case_19 and 7 more")


def test_without_cases_there_is_nothing_to_list() -> None:
    with pytest.raises(SettingsError, match="no case is called 'a': there are no cases"):
        select([], ["a"], root=ROOT)


def test_the_root_itself_is_no_folder_of_a_case() -> None:
    with pytest.raises(SettingsError, match=r"no case, file or folder is called '/'"):
        names("/")


def test_a_file_outside_of_the_root_is_found_by_its_path() -> None:
    outside = [Entry(Path("/elsewhere/x.yml"), "x", "x")]

    assert select(outside, ["elsewhere"], root=ROOT) == outside
