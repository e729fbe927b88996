"""A project whose agent does what its prompt says, in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from user_run import run_pytest

CONFTEST = """
import asyncio, os, pathlib, shutil, sys
import pytest

class Own(BaseException):
    pass

def ask(prompt):
    with open("asked.txt", "a") as file:
        file.write(prompt + chr(10))
    exec(prompt.removeprefix("do "), globals())
    return [{"a": 1}]

@pytest.fixture
def agent():
    return ask
"""


class Project:
    """A folder with cases; ``run`` is ``pytest`` in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "tests").mkdir(parents=True)
        (path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
        (path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")

    def cases(self, *deeds: str) -> None:
        """One case per deed, ``c0``, ``c1``, ...; each answer would be right."""
        lines = [
            f"- name: c{number}\n  prompt: {json.dumps('do ' + deed)}\n  expected: [{{a: 1}}]\n"
            for number, deed in enumerate(deeds)
        ]
        (self.path / "tests" / "cases.yml").write_text("".join(lines), encoding="utf-8")

    @property
    def asked(self) -> int:
        """How often the agent was called."""
        place = self.path / "asked.txt"
        return len(place.read_text(encoding="utf-8").splitlines()) if place.exists() else 0

    def run(self, *arguments: str) -> tuple[int, str]:
        """Exit code and output."""
        done = run_pytest(self.path, *arguments)
        assert "INTERNALERROR" not in done.stdout + done.stderr
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Project]:
    """``project(*deeds)``; files for temporary files land in ``tmp_path / "temp"``."""
    (tmp_path / "temp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temp"))

    def make(*deeds: str) -> Project:
        made = Project(tmp_path / "project")
        made.cases(*deeds)
        return made

    return make
