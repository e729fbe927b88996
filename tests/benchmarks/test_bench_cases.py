"""Reading cases costs little: 200 files beside what PyYAML alone needs for them, in a fresh process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MARGIN = 1.5

PROGRAM = """
import json, sys, time
from pathlib import Path

files = sorted(Path(sys.argv[1]).iterdir())
begin = time.process_time()
from pytest_agenteval.cases.discovery import ClaimRules, claim
from pytest_agenteval.cases.loader import load_cases
from pytest_agenteval.checks.registry import default_registry

registry, cases = default_registry(), 0
for path in files:
    found = claim(path, ClaimRules(path.parents[1]))
    cases += len(load_cases(path, checks=registry, claim=found, databases=["shop"]).cases)
ours = time.process_time() - begin
watched = ("pydantic", "numpy", "pandas", "duckdb", "sqlalchemy", "sqlglot")
heavy = [name for name in watched if name in sys.modules]

import yaml

begin = time.process_time()
for path in files:
    yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)
plain = time.process_time() - begin
print(json.dumps({"cases": cases, "ours": ours, "plain": plain, "heavy": heavy}))
"""


def measure(folder: Path, text: str) -> dict[str, float]:
    tests = folder / "tests"
    tests.mkdir()
    for number in range(200):
        (tests / f"case_{number}.yml").write_text(text.replace("NUMBER", str(number)))
    runs = []
    for _ in range(5):
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tests)],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        runs.append(json.loads(ran.stdout))
    best = min(runs, key=lambda run: run["ours"])
    print(f"200 files: {best['ours']:.3f} s CPU with imports, PyYAML alone {best['plain']:.3f} s")
    assert best["cases"] == 200
    return best


def test_200_plain_cases(tmp_path: Path) -> None:
    best = measure(
        tmp_path,
        "name: case_NUMBER\nprompt: How many on day NUMBER?\nsql: |\n  SELECT count(*) AS n\n  FROM orders\n",
    )

    assert best["heavy"] == []
    assert best["ours"] < 0.3 * MARGIN


def test_200_cases_with_checks(tmp_path: Path) -> None:
    best = measure(
        tmp_path,
        "name: case_NUMBER\nprompt: How many?\nsql: SELECT NUMBER AS n\n"
        "assertions:\n  - {type: tool_call, tool: execute_sql}\n  - {type: value, min: 1}\n",
    )

    assert best["heavy"] == ["pydantic"]
    assert best["ours"] < 0.5 * MARGIN
