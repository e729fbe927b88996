"""``agenteval test`` is ``nao test``: nao's flags, cases alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_agenteval.cli import main

HEAD = "pytest --agent-run=always -m agenteval -o python_files="


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["test", *words]) == 0
    return capsys.readouterr().out.rstrip()


def test_naos_short_flags_become_a_pytest_command(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["-m", "openai:gpt-4.1", "-m", "a:b", "-t", "4", "-k", "3", "-s", "finance,x y", "-u", "me@x"]
    assert printed(capsys, *words, "--dry-run", "--", "-x") == (
        f"AGENTEVAL_USERNAME=me@x {HEAD} --agent-model openai:gpt-4.1 --agent-model a:b "
        "--agent-concurrency 4 --agent-k 3 --agent-select 'finance,x y' -x"
    )
    assert printed(capsys, "--dry-run") == HEAD


def test_the_folder_tests_is_where_cases_lie(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "tests").mkdir()
    (project / "evals").mkdir()
    assert printed(capsys, "--dry-run") == f"{HEAD} tests"
    assert printed(capsys, "--dry-run", "--", "-x") == f"{HEAD} tests -x"
    assert printed(capsys, "--dry-run", "--", "evals", "-x") == f"{HEAD} evals -x"
    for line in ("testpaths = evals", "agenteval_files = evals/*.yml"):
        (project / "pytest.ini").write_text(f"[pytest]\n{line}\n")
        assert printed(capsys, "--dry-run") == HEAD


def test_cases_alone_are_run(project: Path) -> None:
    (project / "tests").mkdir()
    (project / "repos").mkdir()
    (project / "conftest.py").write_text(
        "import os, pytest\n@pytest.fixture\ndef agent():\n"
        "    return lambda prompt: [{'user': os.environ['AGENTEVAL_USERNAME']}]\n"
    )
    (project / "tests" / "who.yml").write_text("prompt: Who?\nexpected: [{user: me}]\n")
    (project / "tests" / "test_unit.py").write_text("import nowhere\n")
    (project / "repos" / "test_synced.py").write_text("import nowhere\n")
    command = [sys.executable, "-m", "pytest_agenteval", "test", "-s", "who", "-u"]
    good, bad = [
        subprocess.run(
            [*command, name], cwd=project, capture_output=True, text=True, timeout=120, check=False
        )
        for name in ("me", "you")
    ]
    assert good.returncode == 0, good.stdout + good.stderr
    assert good.stdout.startswith(f"AGENTEVAL_USERNAME=me {HEAD} --agent-select who tests\n")
    assert "1 passed" in good.stdout
    assert bad.returncode == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["server"], "nao's `test server` is `agenteval view` here"),
        (["run"], "`agenteval test` runs the cases by itself; leave out `run`"),
        (
            ["--password", "x"],
            "no password on the command line, where others can read it: set AGENTEVAL_PASSWORD",
        ),
        (["-u", "me", "--password", ""], "(an empty one: AGENTEVAL_PASSWORD=), and give the user with -u"),
    ],
)
def test_words_of_nao_that_are_something_else_here(
    project: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["test", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_broken_ini_file_is_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pytest.ini").write_text("pytest]\n")
    assert main(["test", "--dry-run"]) == 2
    assert "agenteval: pytest.ini: " in capsys.readouterr().err
