"""``agenteval review``: approvals are written into the case files, and no other byte changes."""

from __future__ import annotations

import csv
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_agenteval.authoring.case_edit import NotEditable, with_key, with_metadata
from pytest_agenteval.cli import main

VALUE = {"by": "ana@x.org", "at": date(2026, 12, 1), "sha": "abc123"}
TEXTS = {
    "plain": "prompt: q\nsql: SELECT 1\n",
    "no end of line": "prompt: q\nsql: SELECT 1",
    "comment on the line": "prompt: q\nsql: SELECT 1  # why\n",
    "block": "prompt: q\nsql: |\n  SELECT 1\n  FROM t\n\n# end\n",
    "metadata": "prompt: q\nmetadata:\n  # why\n  source: {a: 1}\n  x: 1\nsql: SELECT 1\n",
    "reviewed": "prompt: q\nmetadata:\n  reviewed: false # not yet\n  x: 1\nsql: SELECT 1\n",
    "a block": "prompt: q\nmetadata:\n  reviewed:\n    by: bob\n    at: 2020-01-01\n  # note\n  x: 1\n",
    "flow": "prompt: q\nmetadata: {a: 1}\nsql: SELECT 1\n",
    "comma at the end": "prompt: q\nmetadata: {a: 1,}\nsql: SELECT 1\n",
    "empty": "prompt: q\nmetadata: {}\nsql: SELECT 1\n",
    "null": "prompt: q\nmetadata:\nsql: SELECT 1\n",
    "all on one line": "{prompt: q, sql: SELECT 1}\n",
    "a list": "prompt: q\nsql:\n- SELECT 1\n- SELECT 2\n",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_one_key_changes_and_nothing_else(name: str, newline: str) -> None:
    text = TEXTS[name].replace("\n", newline)
    edited = with_metadata(text, 1, "reviewed", VALUE)
    before, after = yaml.safe_load(text), yaml.safe_load(edited)
    before["metadata"] = {**(before.get("metadata") or {}), "reviewed": VALUE}
    assert after == before
    kept = [
        line
        for line in text.splitlines()
        if "reviewed" not in line and "by:" not in line and "at:" not in line
    ]
    inside = {line.strip() for line in edited.splitlines()}
    changed = [line for line in kept if line.strip() not in inside]
    assert all("metadata" in line or line.startswith("{") for line in changed)
    assert edited.count("\r\n") == (edited.count("\n") if newline == "\r\n" else 0)


LIST = """version: 1
cases:
  - name: a
    prompt: q # keep
    sql: >
      SELECT 1

  # about b
  - {name: b, prompt: q2, sql: SELECT 2}
  - name: c
    prompt: q3
    metadata: {reviewed: false}

  - name: d
    prompt: q
    metadata: &shared
      team: x
  - name: e
    prompt: q
    metadata: *shared
"""


def test_each_case_of_a_list_is_found_by_its_line() -> None:
    for line, name in {3: "a", 9: "b", 10: "c", 14: "d"}.items():
        edited = with_metadata(LIST, line, "reviewed", VALUE)
        hit = [case["name"] for case in yaml.safe_load(edited)["cases"] if _approved(case)]
        assert hit == ([name, "e"] if name == "d" else [name])
        assert "# keep" in edited
        assert "\n\n  # about b\n" in edited
    with pytest.raises(NotEditable, match="line 15: no case begins here any more"):
        with_metadata(LIST, 15, "reviewed", VALUE)


def _approved(case: dict[str, Any]) -> bool:
    return (case.get("metadata") or {}).get("reviewed") == VALUE


def test_other_keys_and_texts_of_several_lines() -> None:
    assert with_key(TEXTS["block"], 1, "skip", "no: never").endswith("FROM t\nskip: 'no: never'\n\n# end\n")
    edited = with_key(TEXTS["block"], 1, "sql", "SELECT 2\nFROM u\n")
    assert yaml.safe_load(edited) == {"prompt": "q", "sql": "SELECT 2\nFROM u"}
    assert edited == "prompt: q\nsql: |-\n  SELECT 2\n  FROM u\n\n# end\n"
    assert (
        yaml.safe_load(with_key(TEXTS["all on one line"], 1, "sql", "SELECT 2\nFROM u"))["sql"]
        == "SELECT 2\nFROM u"
    )


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import duckdb

    duckdb.connect(str(tmp_path / "shop.duckdb")).close()
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nagenteval_databases =\n    shop = duckdb:///shop.duckdb\n"
    )
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a.yml").write_text(
        "cases:\n"
        "  - {name: one, prompt: One?, sql: SELECT 1 AS n, owner: ana, metadata: {source: {file: x.csv}}}\n"
        "  - name: two\n    prompt: Two?\n    sql: SELECT 2 AS n\n    metadata:\n"
        "      reviewed: false  # look\n"
        "  - name: broken\n    prompt: Three?\n    sql: SELECT nope\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def held(suite: Path) -> dict[str, Any]:
    cases = yaml.load((suite / "tests" / "a.yml").read_text(), yaml.CSafeLoader)["cases"]
    return {case["name"]: case for case in cases}


def test_the_list_says_what_waits(suite: Path, capsys) -> None:
    assert main(["review"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "tests/a.yml:2: one  not approved  ana  from x.csv",
        "tests/a.yml:3: two  not approved",
        "tests/a.yml:8: broken  says nothing",
        "3 cases, 2 to look at",
    ]
    assert main(["review", "--owner", "ana"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 case, 1 to look at"


def test_an_approval_holds_until_the_reference_changes(suite: Path, capsys) -> None:
    assert main(["review", "--approve", "one", "tests/a.yml::two", "broken", "--by", "ana"]) == 1
    out = capsys.readouterr().out
    assert "approved by ana: tests/a.yml::one\n" in out
    assert "not approved: tests/a.yml::broken: its reference does not run: database 'shop'" in out
    assert held(suite)["two"]["metadata"]["reviewed"]["by"] == "ana"
    assert "# look" in (suite / "tests" / "a.yml").read_text()
    assert main(["review", "--unreviewed"]) == 0
    assert "broken" in capsys.readouterr().out
    text = (suite / "tests" / "a.yml").read_text()
    (suite / "tests" / "a.yml").write_text(text.replace("SELECT 2 AS n", "SELECT 22 AS n"))
    assert main(["review", "--stale"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "tests/a.yml:3: two  approval no longer holds"
    assert main(["check", "--select", "stale-review"]) == 0
    assert "[stale-review] two: its prompt or reference is not what was approved" in capsys.readouterr().out
    assert main(["review", "--approve", "all", "--by", "ana", "--no-verify", "--expires", "2020-01-01"]) == 0
    assert main(["review", "--stale"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "3 cases, 3 to look at"


def test_a_rejected_case_is_skipped_with_the_reason(suite: Path, capsys) -> None:
    assert main(["review", "--reject", "one", "--by", "ana"]) == 2
    assert "--reject needs --why TEXT" in capsys.readouterr().err
    assert main(["review", "--reject", "one", "--by", "ana", "--why", "not our question"]) == 0
    assert held(suite)["one"]["skip"] == "rejected by ana: not our question"
    assert main(["review", "--approve", "on", "--by", "ana"]) == 2
    assert "there is no case 'on', did you mean 'one'?" in capsys.readouterr().err


def test_a_spreadsheet_goes_out_and_comes_back(suite: Path, capsys) -> None:
    assert main(["review", "--export", "r.csv"]) == 0
    with open("r.csv", encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["first rows"] == "n\n1"
    assert rows[2]["first rows"].startswith("fails: database 'shop'")
    rows[0] |= {"approve": "yes"}
    rows[1] |= {"approve": "x", "new question": "Two, then?", "new sql": "SELECT 2 AS n\nFROM range(1)"}
    rows[2] |= {"approve": "no", "comment": "no such column"}
    with open("r.csv", "w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    assert main(["review", "--apply", "r.csv", "--by", "bob"]) == 0, capsys.readouterr()
    cases = held(suite)
    assert cases["one"]["metadata"]["reviewed"]["by"] == "bob"
    assert (cases["two"]["prompt"], cases["two"]["sql"]) == ("Two, then?", "SELECT 2 AS n\nFROM range(1)")
    assert cases["broken"]["skip"] == "rejected by bob: no such column"
    assert main(["review", "--stale"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "0 cases, 0 to look at"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("case,approve\ntests/a.yml::none,yes\n", "row 2: there is no case 'tests/a.yml::none'"),
        ("case,approve\ntests/a.yml::one,perhaps\n", "row 2: approve is yes or no, found 'perhaps'"),
        ("name,ok\none,yes\n", "is not a spreadsheet of agenteval review --export"),
    ],
)
def test_a_spreadsheet_that_does_not_fit_changes_nothing(suite: Path, text: str, said: str, capsys) -> None:
    before = (suite / "tests" / "a.yml").read_bytes()
    Path("r.csv").write_text(text)
    assert main(["review", "--apply", "r.csv", "--by", "bob"]) == 2
    assert said in capsys.readouterr().err
    assert (suite / "tests" / "a.yml").read_bytes() == before


def test_two_people_at_once_lose_nothing(suite: Path) -> None:
    lines = ["cases:"] + [f"  - name: c{n}\n    prompt: q{n}\n    sql: SELECT {n} AS n" for n in range(6)]
    (suite / "tests" / "a.yml").write_text("\n".join(lines) + "\n")
    code = (
        "import sys; from pathlib import Path\n"
        "from pytest_agenteval.authoring.case_edit import edited, with_metadata\n"
        "for n in map(int, sys.argv[1:]):\n"
        "    with edited(Path('tests/a.yml')) as held:\n"
        "        line = next(i for i, l in enumerate(held[0].splitlines(), 1) if f'name: c{n}' in l)\n"
        "        held[0] = with_metadata(held[0], line, 'reviewed', {'by': 'x'})\n"
    )
    parts = [["0", "2", "4"], ["1", "3", "5"]]
    running = [subprocess.Popen([sys.executable, "-c", code, *part], cwd=suite) for part in parts]
    assert [process.wait(60) for process in running] == [0, 0]
    assert all(case["metadata"]["reviewed"] == {"by": "x"} for case in held(suite).values())


def test_who_it_is_comes_from_git(suite: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    assert main(["review", "--approve", "one"]) == 2
    assert "who? give --by NAME" in capsys.readouterr().err
    subprocess.run(["git", "init", "-q"], cwd=suite, check=True)
    subprocess.run(["git", "config", "user.email", "ana@x.org"], cwd=suite, check=True)
    assert main(["review", "--approve", "one"]) == 0
    assert held(suite)["one"]["metadata"]["reviewed"]["by"] == "ana@x.org"
