"""The JSON Schema: it accepts what the loader accepts, and refuses what editors should mark."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from pytest_agenteval.cases.fields import FILE_KEYS, KEYS
from pytest_agenteval.cases.json_schema import case_schema
from pytest_agenteval.cases.loader import LoadedFile
from pytest_agenteval.checks.registry import default_registry
from pytest_agenteval.cli import main
from pytest_agenteval.compare import ComparisonOptions

EXAMPLES = Path(__file__).parent.parent / "data" / "cases"
SHOP = Path(__file__).parents[2] / "docs" / "examples" / "jaffle_shop" / "tests"


@pytest.fixture(scope="module")
def schema() -> jsonschema.Draft202012Validator:
    made = case_schema(default_registry().json_schema())
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(json.loads(json.dumps(made)))


def faults(schema: jsonschema.Draft202012Validator, text: str) -> list[str]:
    # editors read YAML 1.2, where dates are text
    data = json.loads(json.dumps(yaml.safe_load(text), default=str))
    return [error.message for error in schema.iter_errors(data)]


@pytest.mark.parametrize(
    "path", sorted([*EXAMPLES.iterdir(), *SHOP.rglob("*.yml")]), ids=lambda path: path.stem
)
def test_real_case_files_satisfy_it(schema: jsonschema.Draft202012Validator, path: Path) -> None:
    assert faults(schema, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "prompt: x\nname: 2024\ntags: [a, 1]\npass: 2/3\nskip: true\nxfail: {models: [a:b], reason: r}\n",
        "- input: {a: 1}\n- {say: x, expect: [{called: a}, {python: a:b}]}\n",
        "version: 1\ndefaults: {k: 2, x-a: 1}\nbudget: {cost: 1}\ncases: [{question: x}]\n",
        "prompt: [a, {say: b, sql: c, assertions: [{type: rows, equals: 1}]}]\nx-note: free\n",
        "prompt: x\nexpected: {file: a.csv, types: {a: DATE}}\napprove: [a]\nas: {b: c}\n",
        "prompt: x\ncomparison: {decimals: null, order_by: a desc, per_column: {a: {rtol: 1}}}\n",
        "prompt: x\ncomparison: {column_aliases: {a: [b]}}\n",
    ],
)
def test_what_loads_satisfies_it(
    schema: jsonschema.Draft202012Validator, load: Callable[..., LoadedFile], text: str, tmp_path: Path
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a.csv").write_text("a\n2024-01-01\n")

    assert load(text).errors == ()
    assert faults(schema, text) == []


@pytest.mark.parametrize(
    "text",
    [
        "name: x\n",
        "prompt: x\nassertion: []\n",
        "prompt: x\nk: 0\n",
        "prompt: ''\n",
        "prompt: x\noutcome: refused\n",
        "prompt: x\nmodels: [gpt]\n",
        "prompt: x\nassertions: [{type: rows, equls: 1}]\n",
        "prompt: x\nassertions: [{type: rowz}]\n",
        "prompt: x\ncomparison: {rtoll: 1}\n",
        "prompt: x\ncomparison: {per_column: {a: {ordered: true}}}\n",
        "prompt: x\nexpect: {txt: a}\n",
        "prompt: x\nbudget: {}\n",
        "prompt: [{say: x, foo: 1}]\n",
        "cases: []\n",
        "cases: [{prompt: x}]\ndefaults: {name: a}\n",
        "prompt: x\npass: 2\n",
    ],
)
def test_it_refuses_what_the_loader_refuses(
    schema: jsonschema.Draft202012Validator, load: Callable[..., LoadedFile], text: str
) -> None:
    assert load(text).errors
    assert faults(schema, text)


def test_every_key_check_and_option_is_in_it() -> None:
    made: Any = case_schema(default_registry().json_schema())
    defs = made["$defs"]

    assert {name for key in KEYS for name in (key.name, *key.aliases)} <= set(defs["case"]["properties"])
    assert set(FILE_KEYS) | {"<<"} == set(defs["file"]["properties"])
    assert {entry.name for entry in fields(ComparisonOptions)} == set(defs["comparison"]["properties"])
    branches = defs["check"]["oneOf"]
    assert [branch["properties"]["type"]["const"] for branch in branches] == list(default_registry().types)


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == case_schema(default_registry().json_schema())


def test_the_command_points_files_at_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    folder = tmp_path / "tests" / "a"
    folder.mkdir(parents=True)
    (folder / "x.yml").write_bytes(b"\xef\xbb\xbf# note\r\nprompt: caf\xc3\xa9\r\n")
    (folder / "y.yml").write_text("# yaml-language-server: $schema=old.json\nprompt: y\n")
    files = ["tests/a/x.yml", "tests/a/y.yml"]

    assert main(["schema", "--write", *files]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "wrote agenteval.schema.json",
        "wrote the schema's line into tests/a/x.yml",
        "wrote the schema's line into tests/a/y.yml",
    ]
    line = "# yaml-language-server: $schema=../../agenteval.schema.json"
    assert (folder / "x.yml").read_bytes() == f"{line}\r\n# note\r\nprompt: café\r\n".encode()
    assert (folder / "y.yml").read_text() == f"{line}\nprompt: y\n"
    assert json.loads((tmp_path / "agenteval.schema.json").read_text())["$defs"]["case"]

    assert main(["schema", "--write", *files]) == 0
    assert capsys.readouterr().out.splitlines() == ["wrote agenteval.schema.json"]


def test_a_file_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    assert main(["schema", "--write", "nowhere.yml"]) == 2
    assert "nowhere.yml" in capsys.readouterr().err
