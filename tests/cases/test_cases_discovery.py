"""Which files are cases, and which are left alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_agenteval.cases.discovery import ClaimRules, FileClaim, claim, find, near_miss, overlooked, sniff

STRICT = FileClaim("cases", strict=True)


def sniffed(signs: str = "'prompt'", speaks: bool = True) -> FileClaim:
    why = f" (taken for a case because it has {signs}; if it is not one, set agenteval_files)"
    return FileClaim("cases", False, why, speaks)


def whole(program: str = "nao") -> FileClaim:
    reason = f"in a {program} project every YAML file below tests is"
    return FileClaim(
        "cases", True, f" (taken for a case because {reason}; if it is not one, set agenteval_files)"
    )


CASES = [
    "prompt: x\n",
    "name: a\nquestion: x\n",
    "say: x\n",
    "input: 5\n",
    '"prompt": x\n',
    "'prompt' : x\n",
    "\ufeffprompt: x\n",
    "prompt:\n- a\n",
    "{name: a, prompt: x}\n",
    '{"prompt": "x"}\n',
    "--- {prompt: x}\n",
    "- prompt: x\n",
    "-\n  name: a\n  prompt: x\n",
    "- name: a\n  question: x\n- foo: 1\n",
    "[{say: x}]\n",
    "version: 1\ncases:\n  - name: a\n    prompt: x\n",
    "cases:\n- {prompt: x}\n",
    "prompt: x\n---\nprompt: y\n",
    "prompt: x\n\tbroken: y\n",
    "- name: a\n\tprompt: x\n",
    "cases:\n  - prompt: [\n",
    "prompt: x\r\nsql: y\r\n",
    # what checks and does not ask is a slip
    "name: churn\npromt: x\nsql: SELECT 1\n",
    "cases:\n- {name: a, promt: x, assertions: []}\n",
    "- {promt: x, expected: [{n: 1}]}\n",
    "promt: x\nexpected: {file: x.csv}\n",
    "promt: x\noutcome: refuse\n",
    " name: a\n prompt: x\n",
    "name: a\n prompt: x\n",
    "name: a\n prompt: x\nsql: SELECT 1\n",
    "defaults: {sql: SELECT 1}\ncases: [{promt: x}]\n",
    "<<: {prompt: x}\n",
]

FOREIGN = [
    "services:\n  web:\n    image: a\n    prompt: x\n",
    "version: 2\nmodels:\n  - name: a\n    description: 'prompt: x'\n",
    'interactions:\n- request:\n    body: \'{"prompt": "hi"}\'\n    uri: a\n',
    "- question_id: 1\n  text: x\n",
    "template: |\n  prompt: {{ x }}\n",
    "{% if x %}\n  prompt: {{ y\n{% endif %}\n",
    "{{ toYaml }}\n  input: {{ y\n",
    "defaults:\n  prompt: x\n  other: [\n",
    "faq:\n  - question: x\n    answer: y\n",
    "prompts: x\n",
    "prompt:x\n",
    "cases:\n  - name: a\n    nested: {prompt: x}\n",
    "- [prompt: x]\n",
    "- a\n- prompt: x\n",
    "a: 1\n---\n- prompt: x\n",
    "",
    "promt: x\nexpected: 2\n",
    "promt: x\nexpected: [1, 2]\n",
    "expected: {columns: [a]}\n",
    "cases: {sql: x}\n",
    "[]\nsql: x\n",
    "2\n# sql: x\n",
]

# in a project that does not speak of us: what asks and checks is a case, in the forms of a case only
OURS = {
    "prompt: x\nsql: SELECT 1\n": "'prompt' and 'sql'",
    "question: x\nsql_file: [a.sql, b.sql]\n": "'question' and 'sql_file'",
    "- say: x\n  expected: [{n: 1}]\n- foo: 1\n": "'say' and 'expected'",
    "input: 5\nexpected: []\n": "'input' and 'expected'",
    "prompt: x\nexpected: {columns: [n], rows: [[1]]}\n": "'prompt' and 'expected'",
    "prompt: x\nassertions: [{type: text, contains: a}]\n": "'prompt' and 'assertions'",
    "prompt: x\nexpect: {called: a}\n": "'prompt' and 'expect'",
    "prompt: x\nexpect: [{text: a}]\n": "'prompt' and 'expect'",
    "prompt: x\nexpected_response: [a, b]\n": "'prompt' and 'expected_response'",
    "prompt: x\noutcome: refuse\n": "'prompt' and 'outcome'",
    "prompt: [a, {say: b, sql: SELECT 1}]\n": "'prompt' and 'sql'",
    "defaults: {sql: SELECT 1}\ncases: [{prompt: x}]\n": "'prompt' and 'sql'",
    "prompt: x\nsql: SELECT 1\n---\nfoo: 1\n": "'prompt' and 'sql'",
}
OTHERS = [
    *FOREIGN,
    "- input: Hello World\n  output: hello-world\n",
    "- input: What is your return policy?\n  expected_output: Thirty days.\n",
    "- input: a\n  actual_output: b\n  retrieval_context: [c]\n",
    "- name: a\n  period: 2016-01\n  input: {salary: 2000}\n  output: {income_tax: 300}\n",
    "- question: How?\n  answer: So.\n",
    '- input: "1+1"\n  expected: 2\n',
    "- input: a b\n  expected: [a, b]\n",
    "- input: a\n  expected: {status: 200}\n",
    "- input: a\n  expect: 3\n",
    "- input: a\n  expect: {status: 200}\n",
    "- input: a\n  outcome: success\n",
    "- input: a\n  assertions: [is_ok]\n",
    "- question: a\n  sql: {dialect: mysql}\n",
    "prompt: You are helpful.\nmodel: gpt-4\ntemperature: 0.2\n",
    "prompt: x\n",
    "prompt: x\n\tsql: y\n",
    "prompts: [a]\ntests: [{vars: {question: x}, assert: [{type: equals}]}]\n",
]


@pytest.mark.parametrize("text", CASES)
def test_a_case_is_found_by_its_bytes(text: str) -> None:
    assert sniff(text.encode())


@pytest.mark.parametrize("text", OURS)
def test_where_nobody_speaks_of_us_a_case_asks_and_checks(text: str) -> None:
    assert sniff(text.encode(), speaks=False) == OURS[text]


@pytest.mark.parametrize("text", OTHERS)
def test_where_nobody_speaks_of_us_all_else_is_left_alone(text: str) -> None:
    assert sniff(text.encode(), speaks=False) == ""


def test_a_huge_file_of_somebody_else_is_not_read() -> None:
    data = b"prompt: x\nsql: y\nnote: " + b"x" * 2_100_000

    assert sniff(data, speaks=False) == ""
    assert sniff(data)


@pytest.mark.parametrize("text", FOREIGN)
def test_other_yaml_is_left_alone(text: str) -> None:
    assert not sniff(text.encode())


def write(path: Path, text: str = "prompt: x\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_without_globs_only_tests_folders_are_sniffed(tmp_path: Path) -> None:
    inside = write(tmp_path / "a" / "tests" / "deep" / "x.yml")
    outside = write(tmp_path / "a" / "x.yaml")
    other = write(tmp_path / "tests" / "dbt.yml", "version: 2\nmodels: []\n")
    rules = ClaimRules(tmp_path)

    assert claim(inside, rules) == sniffed()
    assert claim(outside, rules) is None
    assert claim(other, rules) is None
    assert claim(write(tmp_path / "tests" / "x.txt"), rules) is None


def test_a_file_claimed_by_itself_knows_why(tmp_path: Path) -> None:
    both = write(tmp_path / "tests" / "x.yml", "prompt: x\nsql: SELECT 1\n")
    broken = write(tmp_path / "tests" / "y.yml", "- name: [\n  prompt: x\n")

    assert claim(both, ClaimRules(tmp_path)) == sniffed()
    assert claim(both, ClaimRules(tmp_path, speaks=False)) == sniffed("'prompt' and 'sql'", speaks=False)
    assert claim(broken, ClaimRules(tmp_path)) == sniffed("the line 'prompt:'")
    assert claim(broken, ClaimRules(tmp_path, speaks=False)) is None


def test_a_root_that_is_itself_called_tests_counts(tmp_path: Path) -> None:
    root = tmp_path / "tests"

    assert claim(write(root / "x.yml"), ClaimRules(root)) == sniffed()
    assert claim(write(root / "project" / "x.yml"), ClaimRules(root / "project")) is None


def test_a_named_file_must_be_a_case(tmp_path: Path) -> None:
    path = write(tmp_path / "anything.yml", "foo: 1\n")

    assert claim(path, ClaimRules(tmp_path), named=True) == STRICT
    assert claim(path, ClaimRules(tmp_path)) is None


def test_globs_are_strict_and_alone(tmp_path: Path) -> None:
    deep = write(tmp_path / "evals" / "a" / "x.yml", "promt: x\n")
    sniffable = write(tmp_path / "tests" / "x.yml")
    rules = ClaimRules(tmp_path, ["evals/*.yml"])

    assert claim(deep, rules) == STRICT
    assert claim(sniffable, rules) is None
    assert claim(sniffable, ClaimRules(tmp_path, ["evals/*.yml"], whole=tmp_path / "tests")) is None
    assert claim(deep, ClaimRules(tmp_path, ["other/*", "evals/a/x.yml"])) == STRICT


def test_in_the_project_of_another_runner_every_file_below_its_tests_is_a_case(tmp_path: Path) -> None:
    rules = ClaimRules(tmp_path, whole=tmp_path / "tests", program="nao")
    for number, text in enumerate(("foo: 1\n", "", "tests: [{prompt: x}]\n", "a: [\n", "- 1\n")):
        assert claim(write(tmp_path / "tests" / f"{number}.yml", text), rules) == whole()
    assert claim(write(tmp_path / "repos" / "tests" / "x.yml", "foo: 1\n"), rules) is None
    assert claim(write(tmp_path / "tests" / "outputs" / "x.yml"), rules) is None


@pytest.mark.parametrize(
    "text",
    [
        "services:\n  web:\n    image: a\n",
        "version: 2\nmodels: [{name: a}]\n",
        "interactions:\n- request: {body: x}\n",
    ],
)
def test_compose_files_dbt_schemas_and_cassettes_are_left_alone_there_too(tmp_path: Path, text: str) -> None:
    rules = ClaimRules(tmp_path, whole=tmp_path / "tests", program="nao")

    assert claim(write(tmp_path / "tests" / "x.yml", text), rules) is None


def test_never_below_outputs(tmp_path: Path) -> None:
    path = write(tmp_path / "tests" / "outputs" / "x.yml")

    assert claim(path, ClaimRules(tmp_path)) is None
    assert claim(path, ClaimRules(tmp_path), named=True) is None
    assert claim(path, ClaimRules(tmp_path, ["*"])) is None
    assert claim(path, ClaimRules(path.parent), named=True) == STRICT


def test_a_file_outside_of_the_root_is_judged_by_its_whole_path(tmp_path: Path) -> None:
    path = write(tmp_path / "elsewhere" / "tests" / "x.yml")

    assert claim(path, ClaimRules(tmp_path / "project")) == sniffed()


def test_dataset_files_hold_governance_cases(tmp_path: Path) -> None:
    with_cases = write(tmp_path / "datasets" / "shop" / "dataset.yaml", "eval_test_cases:\n- {id: a}\n")
    without = write(tmp_path / "datasets" / "crm" / "dataset.yaml", "version: 1\n")
    rules = ClaimRules(tmp_path)

    assert claim(with_cases, rules) == FileClaim("dataset", strict=False)
    assert claim(with_cases, rules, named=True) == FileClaim("dataset", strict=True)
    assert claim(without, rules) is None


def test_find_takes_files_as_named_and_folders_as_given(tmp_path: Path) -> None:
    a = write(tmp_path / "tests" / "a.yml")
    b = write(tmp_path / "tests" / "sub" / "b.yaml")
    write(tmp_path / "tests" / "notes.md")
    (tmp_path / "tests" / "folder.yml").mkdir()
    named = write(tmp_path / "tests" / "broken.yml", "foo: 1\n")
    for unseen in (".hidden", "node_modules", "x.egg", "env"):
        write(tmp_path / "tests" / unseen / "case.yml")
    write(tmp_path / "tests" / "env" / "pyvenv.cfg")
    rules = ClaimRules(tmp_path)

    assert find([tmp_path / "tests"], rules) == [(a, sniffed()), (b, sniffed())]
    assert find([named, tmp_path / "tests"], rules) == [(named, STRICT), (a, sniffed()), (b, sniffed())]


def test_a_near_miss_checks_and_does_not_ask(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    path = write(tests / "a.yml", "name: a\npromt: x\nsql: SELECT 1\n")
    rules = ClaimRules(tmp_path, speaks=False)
    for text in ("prompt: x\n", "prompt: x\nsql: y\n", "outcome: passed\n", "sql: [\n", "a: 1\n"):
        assert near_miss(write(tests / "b.yml", text), rules) is None
    (tests / "c.yml").write_bytes(b"sql: caf\xe9\n")
    assert near_miss(tests / "c.yml", rules) is None
    assert near_miss(write(tests / "d.yml", "sql: " + "x" * 2_100_000), rules) is None
    assert near_miss(write(tests / "outputs" / "a.yml", path.read_text()), rules) is None
    assert near_miss(write(tmp_path / "a.yml", path.read_text()), rules) is None
    assert near_miss(write(tests / "a.txt", path.read_text()), rules) is None

    assert near_miss(path, rules) == "sql"
    assert near_miss(path, ClaimRules(tmp_path)) is None  # there it is a case with a fault
    assert near_miss(path, ClaimRules(tmp_path, ["*"], speaks=False)) is None
    assert list(overlooked([tests, path], rules)) == [(path, "sql")]


def test_yaml_is_loaded_only_for_a_file_that_may_hold_cases(tmp_path: Path) -> None:
    write(tmp_path / "tests" / "compose.yml", "services: {web: {image: a}}\n")
    write(tmp_path / "tests" / "case.yml")
    program = (
        "import sys; from pathlib import Path\n"
        "from pytest_agenteval.cases.discovery import ClaimRules, find\n"
        f"found = find([Path({str(tmp_path)!r})], ClaimRules(Path({str(tmp_path)!r})))\n"
        "print(len(found), 'yaml' in sys.modules, 'pydantic' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    assert ran.stdout.split() == ["1", "False", "False"]


def test_a_file_that_is_not_utf8_is_claimed_and_then_refused(tmp_path: Path) -> None:
    path = tmp_path / "tests" / "x.yml"
    path.parent.mkdir()
    path.write_bytes(b"- prompt: caf\xe9\n")

    assert claim(path, ClaimRules(tmp_path)) == sniffed("the line 'prompt:'")


def test_deep_but_small_files_are_read(tmp_path: Path) -> None:
    assert sniff(("- prompt: x\n  input: " + "[" * 40 + "]" * 40 + " # " + "[{" * 30).encode())
