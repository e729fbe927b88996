"""action.yml, its shell steps run as a runner runs them; `gh` is a program that answers from a folder."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from user_run import ROOT, copy_of_the_example, environment

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))

GH = """#!/usr/bin/env python3
import json, pathlib, shutil, sys
state = pathlib.Path(__file__).parent
with open(state / "calls.jsonl", "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
words = sys.argv[1:]
if words[0] == "run":
    shutil.copy(state / "baseline.json", words[words.index("--dir") + 1])
elif "artifacts" in words[1]:
    print("77" if (state / "baseline.json").exists() else "")
elif "--method" in words:
    body = next(word for word in words if word.startswith("body=@"))
    shutil.copy(body.removeprefix("body=@"), state / "comment.md")
elif (state / "comment.md").exists():
    print("4711")
"""


@dataclass
class Runner:
    """What a runner knows: the project, the event, and what the steps have said."""

    project: Path
    state: Path
    event: str
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    printed: str = ""

    def value(self, name: str) -> str:
        """The value of ``inputs.x``, ``steps.id.outputs.x`` or ``github.x``."""
        kind, _, rest = name.partition(".")
        if kind == "inputs":
            given = {key: str(entry.get("default", "")) for key, entry in ACTION["inputs"].items()}
            return (given | self.inputs)[rest]
        if kind == "steps":
            step, _, output = rest.partition(".outputs.")
            return self.outputs.get(step, {}).get(output, "")
        known = {
            "event_name": self.event,
            "base_ref": "main",
            "repository": "team/shop",
            "event.number": "12",
        }
        return {**known, "token": "secret"}[rest]

    def holds(self, condition: str) -> bool:
        """Whether the condition of a step holds (`&&`, `==`, `!=` of texts)."""
        for part in condition.split("&&"):
            name, operator, wanted = re.fullmatch(r"\s*(\S+) (==|!=) '([^']*)'\s*", part).groups()
            if (self.value(name) == wanted) is (operator == "!="):
                return False
        return True

    def run(self) -> int:
        """Run the shell steps in order, as far as one does not fail; the code of the last one."""
        code = 0
        for number, step in enumerate(ACTION["runs"]["steps"]):
            if "run" not in step or not self.holds(step.get("if", "github.event_name != ''")):
                continue
            said = self.state / f"output_{number}"
            env = environment() | {"GITHUB_OUTPUT": str(said)}
            env["PATH"] = f"{self.state}:{env['PATH']}"
            for name, text in step.get("env", {}).items():
                env[name] = re.sub(r"\$\{\{ (.+?) \}\}", lambda hit: self.value(hit[1]), text)
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=self.project, env=env, capture_output=True, text=True, timeout=300, check=False,
            )  # fmt: skip
            self.printed += done.stdout + done.stderr
            lines = said.read_text().splitlines() if said.exists() else []
            self.outputs[step.get("id", str(number))] = dict(line.split("=", 1) for line in lines)
            code = done.returncode
            if code:
                break
        return code

    @property
    def calls(self) -> list[list[str]]:
        """What `gh` was asked, in order."""
        path = self.state / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_the_example(tmp_path_factory.mktemp("action") / "jaffle_shop")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    program = tmp_path / "gh"
    program.write_text(GH)
    program.chmod(0o755)
    return tmp_path


def runner(project: Path, state: Path, event: str, **inputs: Any) -> Runner:
    arguments = "tests/revenue -q -p no:cacheprovider --agent-model demo:hasty"
    given = {"args": arguments, "results": str(state / "results")} | inputs
    return Runner(project, state, event, given)


def test_a_pull_request_is_compared_commented_and_annotated(example: Path, state: Path) -> None:
    push = runner(
        example, state, "push", args="tests/revenue -q -p no:cacheprovider --agent-model demo:careful"
    )
    assert push.run() == 0, push.printed
    assert push.calls == []
    baseline = (state / "results" / "baseline.json").read_text()
    # the model was better on the base branch
    (state / "baseline.json").write_text(baseline.replace("demo:careful", "demo:hasty"))

    request = runner(example, state, "pull_request", results=str(state / "again"))
    assert request.run() == 1
    comment = (state / "comment.md").read_text()
    assert comment.startswith("<!-- agenteval -->\n")
    assert "4 regressions" in comment
    assert "::error file=tests/revenue/revenue_by_month.yml,line=1,title=revenue_by_month" in request.printed
    assert request.calls[-1][:3] == ["api", "--method", "POST"]
    assert request.outputs["run"]["exit-code"] == "1"

    again = runner(example, state, "pull_request", results=str(state / "third"))
    assert again.run() == 1
    assert again.calls[-1][:4] == ["api", "--method", "PATCH", "repos/team/shop/issues/comments/4711"]


def test_without_a_baseline_the_report_stands_alone(example: Path, state: Path) -> None:
    request = runner(example, state, "pull_request", comment="false", annotations="false")
    assert request.run() == 1
    assert "no artefact agenteval-baseline of main yet: the report stands alone" in request.printed
    assert "::error" not in request.printed
    assert not (state / "comment.md").exists()
    assert "## Agent evaluation" in Path(request.outputs["report"]["report"]).read_text()


def test_a_run_that_does_not_start_fails_as_pytest_does(example: Path, state: Path) -> None:
    push = runner(example, state, "push", args="--no-such-option")
    assert push.run() == 4
    assert push.outputs["run"] == {"exit-code": "4", "results-file": ""}


def test_the_hook_for_pre_commit_names_a_command_there_is() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    words = hook["entry"].split()
    done = subprocess.run([*words, "--help"], env=environment(), capture_output=True, text=True, check=False)
    assert (words, done.returncode) == (["agenteval", "check"], 0)
    assert hook["pass_filenames"] is False
