"""Which files are cases, and which are left alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_agenteval.cases.discovery import FileClaim, claim, find, sniff

SNIFFED = FileClaim("cases", strict=False)
STRICT = FileClaim("cases", strict=True)

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
    "promt: x\n",
    "prompts: x\n",
    "prompt:x\n",
    "cases:\n  - name: a\n    nested: {prompt: x}\n",
    "- [prompt: x]\n",
    "- a\n- prompt: x\n",
    "a: 1\n---\n- prompt: x\n",
    "",
]


@pytest.mark.parametrize("text", CASES)
def test_a_case_is_found_by_its_bytes(text: str) -> None:
    assert sniff(text.encode())


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

    assert claim(inside, root=tmp_path) == SNIFFED
    assert claim(outside, root=tmp_path) is None
    assert claim(other, root=tmp_path) is None
    assert claim(write(tmp_path / "tests" / "x.txt"), root=tmp_path) is None


def test_a_root_that_is_itself_called_tests_counts(tmp_path: Path) -> None:
    root = tmp_path / "tests"

    assert claim(write(root / "x.yml"), root=root) == SNIFFED
    assert claim(write(root / "project" / "x.yml"), root=root / "project") is None


def test_a_named_file_must_be_a_case(tmp_path: Path) -> None:
    path = write(tmp_path / "anything.yml", "foo: 1\n")

    assert claim(path, root=tmp_path, named=True) == STRICT
    assert claim(path, root=tmp_path) is None


def test_globs_are_strict_and_alone(tmp_path: Path) -> None:
    deep = write(tmp_path / "evals" / "a" / "x.yml", "promt: x\n")
    sniffable = write(tmp_path / "tests" / "x.yml")

    assert claim(deep, root=tmp_path, globs=["evals/*.yml"]) == STRICT
    assert claim(sniffable, root=tmp_path, globs=["evals/*.yml"]) is None
    assert claim(deep, root=tmp_path, globs=["other/*", "evals/a/x.yml"]) == STRICT


def test_never_below_outputs(tmp_path: Path) -> None:
    path = write(tmp_path / "tests" / "outputs" / "x.yml")

    assert claim(path, root=tmp_path) is None
    assert claim(path, root=tmp_path, named=True) is None
    assert claim(path, root=tmp_path, globs=["*"]) is None
    assert claim(path, root=path.parent, named=True) == STRICT


def test_a_file_outside_of_the_root_is_judged_by_its_whole_path(tmp_path: Path) -> None:
    path = write(tmp_path / "elsewhere" / "tests" / "x.yml")

    assert claim(path, root=tmp_path / "project") == SNIFFED


def test_dataset_files_hold_governance_cases(tmp_path: Path) -> None:
    with_cases = write(tmp_path / "datasets" / "shop" / "dataset.yaml", "eval_test_cases:\n- {id: a}\n")
    without = write(tmp_path / "datasets" / "crm" / "dataset.yaml", "version: 1\n")

    assert claim(with_cases, root=tmp_path) == FileClaim("dataset", strict=False)
    assert claim(with_cases, root=tmp_path, named=True) == FileClaim("dataset", strict=True)
    assert claim(without, root=tmp_path) is None


def test_find_takes_files_as_named_and_folders_as_given(tmp_path: Path) -> None:
    a = write(tmp_path / "tests" / "a.yml")
    b = write(tmp_path / "tests" / "sub" / "b.yaml")
    write(tmp_path / "tests" / "notes.md")
    (tmp_path / "tests" / "folder.yml").mkdir()
    named = write(tmp_path / "tests" / "broken.yml", "foo: 1\n")
    for unseen in (".hidden", "node_modules", "x.egg", "env"):
        write(tmp_path / "tests" / unseen / "case.yml")
    write(tmp_path / "tests" / "env" / "pyvenv.cfg")

    assert find([tmp_path / "tests"], root=tmp_path) == [(a, SNIFFED), (b, SNIFFED)]
    assert find([named, tmp_path / "tests"], root=tmp_path) == [(named, STRICT), (a, SNIFFED), (b, SNIFFED)]


def test_yaml_is_loaded_only_for_a_file_that_may_hold_cases(tmp_path: Path) -> None:
    write(tmp_path / "tests" / "compose.yml", "services: {web: {image: a}}\n")
    write(tmp_path / "tests" / "case.yml")
    program = (
        "import sys; from pathlib import Path; from pytest_agenteval.cases.discovery import find\n"
        f"found = find([Path({str(tmp_path)!r})], root=Path({str(tmp_path)!r}))\n"
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

    assert claim(path, root=tmp_path) == SNIFFED


def test_deep_but_small_files_are_read(tmp_path: Path) -> None:
    assert sniff(("- prompt: x\n  input: " + "[" * 40 + "]" * 40 + " # " + "[{" * 30).encode())
