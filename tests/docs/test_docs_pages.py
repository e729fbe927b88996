"""Every command, file and piece of configuration in the documentation does what its page says."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from docs_blocks import PAGES, ROOT, Block, blocks
from user_run import copy_of_the_example, environment

from pytest_agenteval.cli import COMMANDS
from pytest_agenteval.config.options import OPTIONS

NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
# Words that look like options and are none: variables of ours that are secrets, and the names of things.
NOT_OPTIONS = {
    "agenteval_importers",
    "AGENTEVAL_USERNAME",
    "AGENTEVAL_PASSWORD",
    "agenteval_isolated_databases",
}


class Story:
    """One page, told in a folder of its own."""

    def __init__(self, page: str, folder: Path) -> None:
        self.page = page
        self.folder = folder / "project"
        self.folder.mkdir()
        self.example = folder / "jaffle_shop"
        self.printed = ""
        self.last = self.folder

    def tell(self, block: Block) -> None:
        """Do what the block says; an AssertionError names page and line."""
        if "not run" in block.notes:
            return
        handler = getattr(self, "_" + re.sub(r"\W", "_", block.language), None)
        if block.title is not None:
            self._file(block)
        elif handler is not None:
            handler(block)

    def fail(self, block: Block, why: str) -> None:
        pytest.fail(f"{self.page}:{block.line}: {why}", pytrace=False)

    def _place(self, block: Block) -> Path:
        if block.notes.get("in") == "a clone":  # as a reader stands in one, with the example below docs
            if not (example := self.folder / "docs" / "examples" / "jaffle_shop").exists():
                example.parent.mkdir(parents=True)
                copy_of_the_example(example)
            return self.folder
        if block.notes.get("in") != "jaffle_shop":
            return self.folder
        if not self.example.exists():
            copy_of_the_example(self.example)
        return self.example

    def _file(self, block: Block) -> None:
        assert block.title is not None
        if block.title.startswith(".git"):
            self._pipeline(block)
            return
        path = self._place(block) / block.title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")

    def _pipeline(self, block: Block) -> None:
        """The commands of a CI file, in a copy of the example, with half the workers to spare the machine.

        What installs is left out.
        """
        place = self._place(Block("bash", "", block.line, notes={"in": "jaffle_shop"}))
        ours = [
            line for line in _scripts(yaml.safe_load(block.text)) if line.startswith(("pytest", "agenteval"))
        ]
        assert ours, f"{self.page}:{block.line}: no command of ours in this pipeline"
        for command in ours:
            self._run(block, command.replace("-n 4", "-n 2"), place, 0)

    def _bash(self, block: Block) -> None:
        commands, place = block.commands, self._place(block)
        self.printed = ""
        self.last = place
        for number, command in enumerate(commands, 1):
            wanted = int(block.notes.get("exit", 0)) if number == len(commands) else 0
            self._run(block, command, place, wanted)

    _sh = _shell = _console = _bash

    def _run(self, block: Block, command: str, place: Path, wanted: int) -> None:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=place,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        self.printed += done.stdout + done.stderr
        if done.returncode != wanted:
            self.fail(
                block,
                f"`{command}` ended with {done.returncode}, not {wanted}:\n{done.stdout}\n{done.stderr}",
            )

    def _text(self, block: Block) -> None:
        """What the command before it printed: these lines, in this order, ``...`` for anything.

        Where lines are wrapped does not count.
        """
        if not self.printed:
            return
        printed, place = " ".join(self.printed.split()), 0
        for wanted in filter(str.strip, block.text.splitlines()):
            parts = (re.escape(" ".join(part.split())) for part in wanted.split("..."))
            found = re.compile(".*?".join(parts)).search(printed, place)
            if found is None:
                self.fail(block, f"not printed (in this order): {wanted!r}\n{self.printed}")
            else:
                place = found.end()

    def _yaml(self, block: Block) -> None:
        loaded = list(yaml.safe_load_all(block.text))
        assert loaded, f"{self.page}:{block.line}: an empty block"
        for problem in _yaml_problems(block, loaded, self.folder):
            self.fail(block, problem)

    _yml = _yaml

    def _json(self, block: Block) -> None:
        json.loads(block.text)

    def _python(self, block: Block) -> None:
        """Run as a script, in the folder of the command before it."""
        (self.last / "block_of_the_page.py").write_text(block.text, encoding="utf-8")
        self._run(block, "python block_of_the_page.py", self.last, 0)

    def _ini(self, block: Block) -> None:
        parser = configparser.ConfigParser(interpolation=None)
        parser.read_string(block.text)
        assert parser.sections(), f"{self.page}:{block.line}: no section"

    def _toml(self, block: Block) -> None:
        tomllib.loads(block.text)


def _scripts(node: Any) -> list[str]:
    """Every command of a pipeline, wherever it stands."""
    if isinstance(node, dict):
        found = [
            part
            for key, value in node.items()
            for part in (_lines(value) if key in ("run", "script") else _scripts(value))
        ]
        return [line.strip() for line in found]
    return [line for entry in node for line in _scripts(entry)] if isinstance(node, list) else []


def _lines(value: Any) -> list[str]:
    return [
        line for entry in (value if isinstance(value, list) else [value]) for line in str(entry).splitlines()
    ]


def _yaml_problems(block: Block, loaded: list[Any], folder: Path) -> list[str]:
    """What is wrong with a case, a piece of a case or of a project file."""
    from docs_yaml import case_problems, project_problems

    first = loaded[0]
    if isinstance(first, dict) and not PROJECT_KEYS.isdisjoint(first):
        return project_problems(block.text, folder)
    return case_problems(block.text, first, block.notes.get("error"), folder)


PROJECT_KEYS = {"databases", "llm", "test", "target", "http", "judge", "context_files", "project_name"}


@pytest.mark.parametrize("page", NAMES)
def test_the_page_does_what_it_says(page: str, tmp_path: Path) -> None:
    story = Story(page, tmp_path)
    for block in blocks((ROOT / page).read_text(encoding="utf-8")):
        story.tell(block)


@pytest.mark.parametrize("page", NAMES)
def test_every_option_and_command_named_exists(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    known = {name for option in OPTIONS for name in (option.cli, option.ini, option.env)} | NOT_OPTIONS
    prefixes = ("--agent-", "agenteval_", "AGENTEVAL_")
    named = set(
        re.findall(
            r"(?<![\w-])(?:--agent-|agenteval_|AGENTEVAL_)\w[\w-]*", text.replace("pytest_agenteval", "")
        )
    )
    assert not sorted(name for name in named if name not in known and name not in prefixes)
    spoken = set(re.findall(r"(?:`|^|\$ )agenteval ([a-z][a-z-]*)", text, flags=re.MULTILINE))
    assert not sorted(spoken - set(COMMANDS))


def test_every_page_is_in_the_navigation() -> None:
    class Loader(yaml.SafeLoader):
        pass

    Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)
    nav = yaml.load((ROOT / "mkdocs.yml").read_text(), Loader)["nav"]
    listed = re.findall(r"[\w/-]+\.md", json.dumps(nav))
    assert sorted(listed) == sorted(
        page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page.is_relative_to(ROOT / "docs")
    )


def test_the_options_page_is_current() -> None:
    made = subprocess.run(
        [sys.executable, "-c", "import generate_options; print(generate_options.page(), end='')"],
        cwd=ROOT / "docs",
        capture_output=True,
        text=True,
        check=True,
    )
    assert made.stdout == (ROOT / "docs" / "options.md").read_text(), "run: python docs/generate_options.py"


def test_commands_are_found_in_shell_blocks() -> None:
    page = "<!-- exit: 1 -->\n```bash\n$ pytest \\\n  -q\n# a remark\nagenteval view\n```\n"
    (block,) = blocks(page)
    assert [shlex.split(command) for command in block.commands] == [["pytest", "-q"], ["agenteval", "view"]]
    assert block.notes == {"exit": "1"}


def test_a_note_holds_for_the_next_block_alone() -> None:
    first, second = blocks("<!-- not run: no -->\n```bash\na\n```\n\ntext\n\n```bash\nb\n```\n")
    assert (first.notes, second.notes) == ({"not run": "no"}, {})
