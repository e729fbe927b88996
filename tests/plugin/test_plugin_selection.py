"""pytest's own ways to choose tests work on cases, and so do nao's."""

from __future__ import annotations

from collections.abc import Callable

import pytest


def write_ini(project: pytest.Pytester, text: str) -> None:
    (project.path / "pytest.ini").write_text(text, encoding="utf-8")


INI = "[pytest]\nagenteval_databases = shop = duckdb:///shop.duckdb\n"
Write = Callable[..., None]
SUM = "SELECT sum(amount) AS total FROM orders"
WRONG = "SELECT 1 AS total"


@pytest.fixture
def three(shop: pytest.Pytester, write_case: Write) -> pytest.Pytester:
    """Cases right, wrong (fails), by_region; tag slow on the last."""
    write_case("right", SUM)
    write_case("wrong", SUM, WRONG)
    write_case("by_region", "SELECT region, count(*) AS n FROM orders GROUP BY region", more="tags: [slow]")
    return shop


@pytest.mark.parametrize(
    ("options", "outcomes"),
    [
        (["-k", "right"], {"passed": 1, "deselected": 2}),
        (["-k", "not wrong"], {"passed": 2, "deselected": 1}),
        (["-m", "slow"], {"passed": 1, "deselected": 2}),
        (["-m", "agenteval and not slow", "--strict-markers"], {"passed": 1, "failed": 1, "deselected": 1}),
        (["--deselect", "tests/wrong.yml::wrong"], {"passed": 2, "deselected": 1}),
        (["tests/right.yml::right"], {"passed": 1}),
        (["tests/right.yml", "tests/wrong.yml"], {"passed": 1, "failed": 1}),
        (["-x", "-p", "no:randomly", "tests/wrong.yml", "tests/right.yml"], {"failed": 1}),
        (["--maxfail=1", "-p", "no:randomly", "tests/wrong.yml", "tests/right.yml"], {"failed": 1}),
        (["--agent-select", "right,by_"], {"passed": 2, "deselected": 1}),
        (["-p", "random_order", "--random-order"], {"passed": 2, "failed": 1}),
        (["--strict-markers", "--timeout", "60"], {"passed": 2, "failed": 1}),
    ],
)
def test_ways_to_choose(three: pytest.Pytester, options: list[str], outcomes: dict[str, int]) -> None:
    three.runpytest(*options).assert_outcomes(**outcomes)


def test_last_failed(three: pytest.Pytester) -> None:
    three.runpytest().assert_outcomes(passed=2, failed=1)
    three.runpytest("--lf").assert_outcomes(failed=1)


def test_collect_only_asks_nobody_and_writes_nothing(three: pytest.Pytester) -> None:
    result = three.runpytest("--co", "-q")
    result.stdout.fnmatch_lines_random(["tests/right.yml::right", "tests/wrong.yml::wrong"])
    assert not (three.path / "tests" / "outputs").exists()


def test_reruns_repeat_only_what_failed(three: pytest.Pytester) -> None:
    three.makeconftest(
        "import pytest\nseen = []\n@pytest.fixture(scope='session')\ndef agent():\n"
        "    def answer(prompt):\n        seen.append(prompt)\n"
        "        return [{'total': 47 if len(seen) > 1 else 1}]\n    return answer\n"
    )
    result = three.runpytest("--reruns", "1", "tests/right.yml")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*1 rerun*"])


def test_unknown_selection_is_a_usage_error(three: pytest.Pytester) -> None:
    result = three.runpytest("--agent-select", "rihgt")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*rihgt*right*"])


def test_explicit_mode_spends_nothing_unless_asked(three: pytest.Pytester) -> None:
    write_ini(
        three, "[pytest]\nagenteval_databases = shop = duckdb:///shop.duckdb\nagenteval_run = explicit\n"
    )
    result = three.runpytest("-rs")
    result.assert_outcomes(skipped=3)
    result.stdout.fnmatch_lines(["*--agent-run*"])
    three.runpytest("--agent-run").assert_outcomes(passed=2, failed=1)
    three.runpytest("-m", "agenteval").assert_outcomes(passed=2, failed=1)
    three.runpytest("tests/right.yml").assert_outcomes(passed=1)
    three.runpytest("tests/right.yml::right").assert_outcomes(passed=1)


def test_an_item_that_two_rules_drop_is_counted_once(three: pytest.Pytester, write_case: Write) -> None:
    write_case("only_b", SUM, more="models: [demo:b]")
    result = three.runpytest_subprocess("--agent-model", "demo:a", "--agent-select", "right")
    result.stdout.fnmatch_lines(["collected 4 items / 3 deselected / 1 selected"])


def test_models_make_items_and_limits_deselect(three: pytest.Pytester, write_case: Write) -> None:
    write_case("only_b", SUM, more="models: [demo:b]")
    result = three.runpytest("-v", "--agent-model", "demo:a", "--agent-select", "right,only_b")
    result.assert_outcomes(passed=1, deselected=3)
    result.stdout.fnmatch_lines(["*right.yml::right[[]demo:a[]] PASSED*"])


def test_skip_xfail_and_marks_of_a_case(shop: pytest.Pytester, write_case: Write) -> None:
    write_case("left_out", SUM, more="skip: the warehouse moves")
    write_case("known", SUM, WRONG, more="xfail: known to be wrong")
    write_case("fixed", SUM, more="xfail: {reason: known, models: [demo:other]}")
    (shop.path / "tests" / "broken.yml").write_text(
        f"prompt: 'raise: down'\nsql: {SUM}\nxfail: an error is no expected failure\n", "utf-8"
    )
    result = shop.runpytest("-rsx")
    result.assert_outcomes(skipped=1, xfailed=1, passed=1, errors=1)
    result.stdout.fnmatch_lines(["*the warehouse moves*"])


@pytest.mark.parametrize("words", [",", " , ", ",,"])
def test_an_empty_selection_asks_nobody(shop: pytest.Pytester, write_case: Write, words: str) -> None:
    write_case("right")
    result = shop.runpytest("--agent-select", words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*--agent-select names no case: nothing would be left out, and all be asked*"]
    )
