"""A repository that is not ours never turns red, whatever YAML lies below its tests."""

from __future__ import annotations

from pathlib import Path

import pytest

WHY = "(taken for a case because it has {}; if it is not one, set agenteval_files)"
FILES = {
    "slugify.yml": "- input: Hello World\n  output: hello-world\n",
    "goldens.yaml": "- input: What is your return policy?\n  expected_output: Thirty days.\n",
    "faq.yml": "- question: How?\n  answer: So.\n",
    "parser.yml": '- input: "1+1"\n  expected: 2\n- input: "2"\n  expected: 2\n',
    "tax.yaml": "- name: A\n  period: 2016-01\n  input: {salary: 2000}\n  output: {income_tax: 300}\n",
    "deepeval.yml": "- input: a\n  actual_output: b\n",
    "template.yml": "prompt: You are helpful.\nmodel: gpt-4\n",
    "api.yml": "- input: /a\n  expect: {status: 200}\n  outcome: success\n",
    "chart.yaml": "prompt: {{ .Values.prompt }}\n",
    "rasa.yml": "version: 3\nsay: hello\nintent: greet\n",
    "compose.yml": "services:\n  web: {image: a}\n",
    "cassette.yaml": "interactions:\n- request: {body: '{\"prompt\": 1}'}\n",
}


@pytest.fixture
def foreign(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with a test of its own and nothing of ours."""
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    tests = pytester.path / "tests"
    (tests / "data").mkdir(parents=True)
    (tests / "test_ok.py").write_text("def test_ok(): pass\n")
    return pytester


def write(project: pytest.Pytester, name: str, text: str) -> Path:
    path = project.path / "tests" / "data" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("more", [(), ("-W", "error"), ("-n", "2")], ids=" ".join)
def test_files_of_others_are_left_alone_without_a_word(
    foreign: pytest.Pytester, more: tuple[str, ...]
) -> None:
    for name, text in FILES.items():
        write(foreign, name, text)
    result = foreign.runpytest("-q", *more)
    assert result.ret == 0
    result.assert_outcomes(passed=1)
    assert "agenteval" not in result.stdout.str()


@pytest.mark.parametrize("more", [(), ("-W", "error"), ("-n", "2")], ids=" ".join)
def test_near_misses_are_one_line(foreign: pytest.Pytester, more: tuple[str, ...]) -> None:
    write(foreign, "a.yml", "name: a\nsql: SELECT 1\n")
    write(foreign, "b.yml", "- name: b\n  expected: [{n: 1}]\n")
    write(foreign, "c.yml", "promt: c\nassertions: []\n")
    result = foreign.runpytest(*more)
    assert result.ret == 0
    result.assert_outcomes(passed=1)
    assert [line for line in result.outlines if "agenteval:" in line or "data/" in line] == [
        "agenteval: tests/data/a.yml has 'sql' but asks nothing (prompt, question, say, input): not taken "
        "for a case (and 2 more like it); name files of cases in agenteval_files"
    ]


def test_one_near_miss_counts_no_others(foreign: pytest.Pytester) -> None:
    write(foreign, "a.yml", "name: a\nsql: SELECT 1\n")
    assert foreign.runpytest().outlines[-2] == (
        "agenteval: tests/data/a.yml has 'sql' but asks nothing (prompt, question, say, input): not taken "
        "for a case; name files of cases in agenteval_files"
    )


@pytest.mark.parametrize("more", [(), ("-n", "2")], ids=" ".join)
def test_what_asks_and_checks_is_a_case_and_says_why(foreign: pytest.Pytester, more: tuple[str, ...]) -> None:
    write(foreign, "q.yml", "- question: How many?\n  sql: SELECT 1\n  db_id: x\n  difficulty: 3\n")
    result = foreign.runpytest("-W", "error", *more)
    assert result.ret == 1
    result.assert_outcomes(passed=1, errors=1)
    why = WHY.format("'question' and 'sql'")
    assert (
        f"http:URL, nao:URL, llm:, replay:FILE), or agenteval_target in the ini file, or a project file {why}"
        in (" ".join(result.stdout.str().split()))
    )
    assert result.stdout.str().count("agenteval: tests/data/q.yml:3:3: unknown key 'db_id'") == 1
    result.stdout.fnmatch_lines([f"agenteval: *x-db_id {why} (and 1 more)".replace("[", "[[]")])


def test_every_fault_of_a_file_claimed_by_itself_says_why(foreign: pytest.Pytester) -> None:
    write(foreign, "p.yml", "prompt: x\nsql: SELECT 1\nmodel: gpt-4\ntag: a\n")
    result = foreign.runpytest()
    assert result.ret == 2
    why = WHY.format("'prompt' and 'sql'")
    assert f"tests/data/p.yml:3:1: unknown key 'model', did you mean 'models'? {why}" in result.outlines
    assert f"tests/data/p.yml:4:1: unknown key 'tag', did you mean 'tags'? {why}" in result.outlines


def test_globs_leave_the_rest_alone(foreign: pytest.Pytester) -> None:
    foreign.makeini("[pytest]\nagenteval_files = evals/*.yml\n")
    write(foreign, "p.yml", "prompt: x\nsql: SELECT 1\n")
    write(foreign, "q.yml", "sql: SELECT 1\n")
    result = foreign.runpytest()
    assert result.ret == 0
    assert "agenteval:" not in result.stdout.str()


SLIPS = {
    "misspelt": (
        "name: churn\npromt: x\nsql: SELECT 1\n",
        "2:1: unknown key 'promt', did you mean 'prompt'?",
    ),
    "indented": (
        "name: churn\n prompt: x\nsql: SELECT 1\n",
        "2:8: not YAML",
    ),
    "below": (
        "description:\n  prompt: x\nsql: SELECT 1\n",
        "1:1: missing prompt (or question, say, input): 'prompt' on line 2 is indented below 'description'",
    ),
}


@pytest.mark.parametrize("speaks", ["ini", "option", "agenteval.yaml", "nao_config.yaml", "pyproject.toml"])
@pytest.mark.parametrize("slip", SLIPS)
def test_where_the_project_speaks_of_us_a_slip_is_an_error(
    foreign: pytest.Pytester, speaks: str, slip: str
) -> None:
    options = []
    if speaks == "ini":
        foreign.makeini("[pytest]\nagenteval_k = 1\n")
    elif speaks == "option":
        options = ["--agent-strict"]
    elif speaks == "pyproject.toml":
        foreign.path.joinpath(speaks).write_text("[tool.agenteval]\ntest = {k = 1}\n")
    else:
        foreign.path.joinpath(speaks).write_text("test: {k: 1}\n")
    text, said = SLIPS[slip]
    write(foreign, "churn.yml", text)
    result = foreign.runpytest(*options)
    assert result.ret == 2
    result.stdout.fnmatch_lines(
        [f"*tests/data/churn.yml:{said}*(taken for a case because *agenteval_files)*"]
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1:1: no case: the file is empty"),
        (
            "tests:\n- prompt: x\n  sql: SELECT 1\n",
            "1:1: missing prompt (or question, say, input): 'tests' holds a list that asks; a list of cases "
            "stands under 'cases'",
        ),
        ("note: 1\n", "1:1: missing prompt (or question, say, input)"),
    ],
)
@pytest.mark.parametrize("program", ["nao", "dazense", "pda"])
def test_in_a_project_of_another_runner_every_yaml_file_is_a_case(
    foreign: pytest.Pytester, program: str, text: str, said: str
) -> None:
    foreign.path.joinpath(f"{program}_config.yaml").write_text("databases: []\n")
    foreign.path.joinpath("tests", "typo.yml").write_text(text)
    result = foreign.runpytest()
    assert result.ret == 2
    why = f"(taken for a case because in a {program} project every YAML file below tests is"
    assert any(f"tests/typo.yml:{said} {why}" in line for line in result.outlines)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("query: SELECT 1", "sql"),
        ("reference_sql: SELECT 1", "sql"),
        ("gold_sql: SELECT 1", "sql"),
        ("expected_sql: SELECT 1", "sql"),
        ("reference: SELECT 1", "sql"),
        ("reference: There are six.", "expected_response"),
        ("answer: six", "expected_response"),
        ("answer: [{n: 6}]", "expected"),
        ("expected_output: six", "expected_response"),
        ("expected_output: {rows: [[1]], columns: [n]}", "expected"),
        ("runs: 3", "k"),
        ("attempts: 3", "k"),
    ],
)
def test_a_reference_under_another_name_is_an_error(foreign: pytest.Pytester, line: str, meant: str) -> None:
    foreign.makeini("[pytest]\nagenteval_k = 1\n")
    write(foreign, "a.yml", f"question: How many?\n{line}\n")
    result = foreign.runpytest()
    assert result.ret == 2
    key = line.partition(":")[0]
    result.stdout.fnmatch_lines([f"*a.yml:2:1: unknown key '{key}', did you mean '{meant}'? (taken for*"])


def test_warning_filters_make_errors_of_a_project_that_speaks_of_us(foreign: pytest.Pytester) -> None:
    foreign.makeini("[pytest]\nagenteval_k = 1\nasyncio_default_fixture_loop_scope = function\n")
    write(foreign, "a.yml", "question: How many?\nexpected: [{n: 1}]\ncolour: red\n")
    result = foreign.runpytest("-W", "error")
    assert result.ret == 2
    assert any(
        line.startswith("tests/data/a.yml:3:1: unknown key 'colour'; a note of your own is written x-colour")
        for line in result.outlines
    )
    assert "pytest_agenteval/" not in result.stdout.str()
