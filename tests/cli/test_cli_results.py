"""``agenteval diff``, ``merge``, ``report`` and ``rescore``, called as a user calls them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import pytest
from result_runs import NOW, Journal, answered, item, judged

from pytest_agenteval import __version__
from pytest_agenteval.cli import main
from pytest_agenteval.compare import compare
from pytest_agenteval.results.document.document import from_folder, write_document
from pytest_agenteval.results.document.load import read_document
from pytest_agenteval.results.document.overrides import Override, write_override
from pytest_agenteval.results.document.verdicts import VERDICT_CONTRACT
from pytest_agenteval.results.journal.run_folder import RunFolder
from pytest_agenteval.table import Table
from pytest_agenteval.types import CheckResult, Extraction, ToolCall

NAO = Path(__file__).parent.parent / "data" / "nao"
P, F = ["passed"], ["failed"]


@pytest.fixture
def two(stored):
    return stored({item("a"): P, item("b"): F}).path, stored({item("a"): F, item("b"): P}).path


def test_diff_exits_1_on_a_regression_and_0_without(two, capsys):
    old, new = two
    assert main(["diff", str(old), str(new)]) == 1
    out = capsys.readouterr().out
    assert "== Regressions (1) ==\n  a  passed -> failed: values differ\n" in out
    assert out.endswith("1 regression, 1 fix, 0 added, 0 removed, 0 unchanged\n")
    assert main(["diff", str(old), str(old)]) == 0


def test_diff_as_json_and_across_models(two, capsys, stored):
    old, _ = two
    other = stored({item("a", "demo:b"): F, item("b", "demo:b"): F}).path
    for words in (["diff", "--json"], ["diff", "--json", "--across-models"]):
        assert main([*words, str(old), str(other)]) == 1
        assert json.loads(capsys.readouterr().out)["across_models"] == ["demo:a", "demo:b"]


def test_diff_of_runs_without_a_common_case_is_not_green(stored, capsys):
    old = stored({item("a", "demo:a"): P, item("a", "demo:b"): P}).path
    new = stored({item("a", "demo:c"): P}).path
    assert main(["diff", str(old), str(new)]) == 1
    assert capsys.readouterr().out.endswith("no case in common, nothing was compared: 1 added, 2 removed\n")
    assert main(["diff", "--json", str(old), str(new)]) == 1
    assert json.loads(capsys.readouterr().out)["common"] is False


def test_expected_failures_are_neither_regressions_nor_failures(stored, capsys):
    known = item("a", xfail="upstream"), item("c", xfail="upstream")
    old = stored({item("a"): P, item("b"): F, known[1]: F}).path
    new = stored({known[0]: F, item("b"): F, known[1]: F}).path
    assert main(["diff", str(old), str(new)]) == 0
    out = capsys.readouterr().out
    assert "== Still failing (1) ==\n  b  failed -> failed: values differ\n" in out
    assert "== Expected failures (2) ==\n  a  passed -> xfailed" in out
    assert out.endswith("0 regressions, 0 fixes, 0 added, 0 removed, 1 unchanged, 2 expected failures\n")
    assert main(["report", str(new), "--against", str(old), "--format", "markdown"]) == 0
    assert "**Still failing (1)**" in (text := capsys.readouterr().out)
    assert "**Expected failures (2)**" in text


def test_a_summary_is_no_baseline_and_says_what_is(two, tmp_path, capsys):
    old, new = two
    summary = tmp_path / "baseline.json"
    assert main(["report", str(old), "-o", str(summary)]) == 0
    words = "not a results file but a summary (--agent-summary); needed is the results file of a run"
    for command in (["report", str(summary)], ["diff", str(summary), str(new)]):
        assert main(command) == 2
        assert f"agenteval: {summary}: {words}" in capsys.readouterr().err


def test_a_report_of_an_unknown_form_is_refused(two, tmp_path, capsys):
    place = tmp_path / "x.foo"
    assert main(["report", str(two[0]), "-o", str(place)]) == 2
    words = f"-o {place}: the name must end in .md, .xml, .json, .txt, .html, or give --format"
    assert words in capsys.readouterr().err
    assert not place.exists()
    assert main(["report", str(two[0]), "-o", str(place), "--format", "markdown"]) == 0
    assert place.read_text().startswith("## Agent evaluation")
    assert main(["report", str(two[0]), "-o", str(tmp_path / "x.txt")]) == 0
    assert (tmp_path / "x.txt").read_text().startswith("Results\n")


def test_a_command_that_is_not_there_and_the_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["chek"])
    assert ended.value.code == 2
    assert "there is no command 'chek', did you mean 'check'?" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["zzzzzz"])
    assert "there is no command 'zzzzzz'; known: add, check, coverage, diff," in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"pytest-agenteval {__version__}\n")


def test_files_that_are_not_there_are_named_and_nothing_is_written(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["schema", "--write", "nosuch.yml"]) == 2
    assert main(["judge-check", "nosuch"]) == 2
    assert capsys.readouterr().err == (
        "agenteval: no such file: nosuch.yml\nagenteval: no such file: nosuch\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_diff_takes_a_persons_verdict_and_says_so(two, capsys):
    old, new = two
    write_override(new, read_document(new).rows[0], Override("passed", "fine"))
    assert main(["diff", str(old), str(new)]) == 0
    assert "1 verdict overridden by a person" in capsys.readouterr().out


def test_commands_name_a_file_that_cannot_be_read(tmp_path, two, capsys):
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    for words in (
        ["diff", str(two[0]), str(broken)],
        ["merge", str(broken), "-o", str(tmp_path / "m.json")],
        ["report", str(broken)],
        ["rescore", str(broken)],
    ):
        assert main(words) == 2
        assert capsys.readouterr().err.startswith(f"agenteval: {broken}: not a results file")
    assert not (tmp_path / "m.json").exists()


def test_merge_writes_a_new_file_beside_the_first(two, capsys, outputs):
    before = {path.name for path in outputs.iterdir()}
    assert main(["merge", *map(str, two)]) == 0
    (new,) = {path.name for path in outputs.iterdir()} - before
    assert new.startswith("results_")
    assert capsys.readouterr().out.endswith(f"results: {outputs / new}\n")
    assert read_document(outputs / new).run["merged"] == 2
    assert main(["merge", *map(str, two)]) == 0
    assert len(set(outputs.iterdir())) == len(before) + 2


def test_merge_never_overwrites_what_it_reads(two, capsys):
    assert main(["merge", *map(str, two), "-o", str(two[1])]) == 2
    assert "is one of the files to merge; name another with -o" in capsys.readouterr().err


def test_report_in_every_form(capsys, tmp_path):
    path = str(NAO / "results_3cases_2models_k2.json")
    assert main(["report", path]) == 0
    assert "== Performance by Model ==" in capsys.readouterr().out
    assert main(["report", path, "--format", "markdown"]) == 0
    assert capsys.readouterr().out.startswith("## Agent evaluation")
    assert main(["report", path, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["cases"]["total"] == 6
    for name, start in (("x.md", "## Agent"), ("x.xml", "<?xml"), ("x.json", "{"), ("x.txt", "Results")):
        assert main(["report", path, "-o", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_text().startswith(start)
    assert ElementTree.parse(tmp_path / "x.xml").getroot().find("testsuite").attrib["tests"] == "6"
    assert main(["report", path, "-o", str(tmp_path / "no" / "x.md")]) == 2
    assert "No such file or directory" in capsys.readouterr().err


def test_report_against_a_baseline_is_a_comment(two, capsys):
    old, new = map(str, two)
    assert main(["report", new, "--against", old]) == 0
    out = capsys.readouterr().out
    assert out.startswith("### Agent evaluation")
    assert out.index("**Regressions (1)**") < out.index("**Fixed (1)**")
    assert main(["report", new, "--against", old, "--format", "terminal"]) == 0
    out = capsys.readouterr().out
    assert "== Results ==" in out
    assert "== Regressions (1) ==" in out


def test_report_of_a_run_that_is_not_finished(run_folder, capsys):
    folder = run_folder({item("a"): P, item("b"): None})
    folder.end()
    assert main(["report", str(folder.path)]) == 0
    out = capsys.readouterr().out
    assert "1 passed, 1 not run" in out
    assert "--agent-resume (asks again only what has no answer)" in " ".join(out.split())


def test_a_terminal_without_unicode_gets_ascii(two):
    command = [sys.executable, "-m", "pytest_agenteval", "report", str(NAO / "results_3cases_k3.json")]
    done = subprocess.run(
        command, capture_output=True, env={"PYTHONIOENCODING": "ascii", **_path()}, check=True
    )
    assert done.stdout.isascii()
    assert b"\\xb7" in done.stdout


def _path():
    return {"PYTHONPATH": ":".join(filter(None, sys.path)), "NO_COLOR": "1"}


def test_colours_on_a_terminal_only(two, monkeypatch, capsys):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["diff", *map(str, two)]) == 1
    assert "\x1b[31m  a  passed -> failed: values differ\x1b[0m" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["diff", *map(str, two)]) == 1
    assert "\x1b" not in capsys.readouterr().out


# --- rescore

CASE = """\
name: revenue
prompt: What is the revenue?
database: shop
sql: {sql}
{more}
"""
SQL = "SELECT region, revenue FROM sales"
EXPECTED = Table.from_rows(["region", "revenue"], [["north", 10], ["south", 20]], ["VARCHAR", "INTEGER"])


@pytest.fixture
def project(tmp_path, outputs):
    """A project with one case, and how to store a run of it and to change the case."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nagenteval_databases = shop = duckdb:///shop.duckdb\n")
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE sales AS SELECT 'north' AS region, 10 AS revenue")
        connection.execute("INSERT INTO sales VALUES ('south', 20)")
    place = tmp_path / "tests" / "a.yml"

    def write(sql: str = SQL, more: str = "") -> None:
        place.parent.mkdir(exist_ok=True)
        place.write_text(CASE.format(sql=sql, more=more))

    def run(actual: Table, *checks: CheckResult, expected: Table = EXPECTED, **more) -> Path:
        folder = RunFolder.reserve(outputs, NOW)
        planned = replace(item(), case_hash="old")
        found = compare(expected, actual)
        calls = (
            ToolCall("execute_sql", {"sql_query": SQL}, {"data": actual.records(), "columns": actual.names}),
        )
        extraction = more.pop("extraction", Extraction(actual, "matched", SQL))
        journal = Journal(folder, "main")
        journal.planned([planned, item("skipped")])
        journal.skipped(item("skipped").nodeid, "later")
        journal.started(planned.nodeid)
        attempt = judged(
            1,
            more.pop("verdict", "passed" if found.matched else "failed"),
            found.message,
            answer=more.pop("answer", None) or answered(tool_calls=calls),
            extraction=extraction,
            comparison=found,
            reference=expected,
            reference_sql=SQL,
            checks=(CheckResult("data", found.matched, found.message), *checks),
            **more,
        )
        journal.attempt(planned.nodeid, 0, attempt)
        path = write_document(from_folder(folder), folder.document)
        folder.remove()
        return path

    write()
    return write, run


def rescored(path: Path, capsys) -> tuple[dict, str]:
    output = path.parent / "new.json"
    assert main(["rescore", str(path), "-o", str(output)]) == 0
    return json.loads(output.read_text()), capsys.readouterr().out


def test_a_stricter_comparison_changes_the_verdict_without_a_call(project, capsys):
    write, run = project
    near = Table.from_rows(["region", "revenue"], [["south", 20], ["north", 10]], ["VARCHAR", "INTEGER"])
    path = run(near)
    document, _ = rescored(path, capsys)
    assert document["results"][0]["verdict"] == "passed"
    write(more="comparison: {ordered: true, order_by: [region]}")
    document, out = rescored(path, capsys)
    (entry,) = document["results"]
    assert (entry["verdict"], entry["reason"]) == ("failed", "order_reversed")
    assert (entry["tokens"], entry["duration_ms"], document["run"]["rescored"]) == (30, 1000, 1)
    assert entry["case_hash"] not in ("old", "")
    assert (
        entry["details"]["tool_calls"] == json.loads(path.read_text())["results"][0]["details"]["tool_calls"]
    )
    assert "== Regressions (1) ==" in out
    assert "revenue  passed -> failed [case changed]" in out
    assert document["cases"]["skipped"] == 1


def test_a_new_name_beside_the_old_one_is_the_default(project, capsys):
    _, run = project
    path = run(EXPECTED)
    assert main(["rescore", str(path)]) == 0
    out = capsys.readouterr().out
    new = Path(out.rsplit("results: ", 1)[1].strip())
    assert new.parent == path.parent
    assert read_document(new).rows[0].verdict == "passed"


def test_a_new_check_looks_at_the_saved_answer(project, capsys):
    write, run = project
    write(more="assertions: [{type: no_tool_call, tool: execute_sql}]")
    document, _ = rescored(run(EXPECTED), capsys)
    assert document["results"][0]["verdict"] == "failed"
    assert "execute_sql" in document["results"][0]["message"]


def test_changed_reference_sql_is_run(project, capsys):
    write, run = project
    write(sql="SELECT region, revenue + 1 AS revenue FROM sales")
    document, _ = rescored(run(EXPECTED), capsys)
    assert document["results"][0]["verdict"] == "failed"
    write(sql="SELECT   region, revenue FROM sales;")  # the same but for blanks: the saved table is taken
    document, _ = rescored(run(EXPECTED), capsys)
    assert document["results"][0]["verdict"] == "passed"


def test_a_table_that_a_model_extracted_is_taken_as_it_was(project, capsys):
    _, run = project
    path = run(
        EXPECTED, extraction=Extraction(EXPECTED, "query", "SELECT * FROM q"), answer=answered("only text")
    )
    document, _ = rescored(path, capsys)
    assert document["results"][0]["verdict"] == "passed"
    assert document["results"][0]["extraction"] == {"source": "query", "query": "SELECT * FROM q"}


def test_what_was_cut_keeps_its_verdict_and_is_told(project, capsys):
    write, run = project
    many = Table.from_rows(["region", "revenue"], [["x", n] for n in range(5000)], ["VARCHAR", "INTEGER"])
    write(more="comparison: {ordered: true, order_by: [region]}")
    path = run(many, expected=many, answer=answered("only text"))
    document, out = rescored(path, capsys)
    assert document["results"][0]["verdict"] == "passed"
    assert "not rescorable: 5,000 rows were cut to 1,000, 1 of 1\n" in out
    assert document["run"]["rescored"] == 0
    _, out = rescored(run(many, expected=many), capsys)  # its tool result was cut as well
    assert "not rescorable: 5,000 rows were cut to 1,000, 1 of 1\n" in out


def test_what_has_no_answer_or_no_case_keeps_its_verdict(project, capsys, tmp_path, outputs):
    _, run = project
    path = run(EXPECTED)
    (tmp_path / "tests" / "a.yml").write_text("name: other\nprompt: x?\nsql: SELECT 1\n")
    _, out = rescored(path, capsys)
    assert "not rescorable: no case 'revenue' in tests/a.yml, 1 of 1" in out
    (tmp_path / "tests" / "a.yml").unlink()
    document, out = rescored(path, capsys)
    assert "not rescorable: tests/a.yml is gone, 1 of 1" in out
    assert document["results"][0]["case_hash"] == "old"
    (tmp_path / "tests" / "outputs" / "b.yml").write_text("prompt: x?\n")
    folder = RunFolder.reserve(outputs, NOW)
    elsewhere = item(path="tests/outputs/b.yml")
    Journal(folder, "main").attempt(elsewhere.nodeid, 0, judged())
    _, out = rescored(write_document(from_folder(folder), folder.document), capsys)
    assert "not rescorable: tests/outputs/b.yml is no case file, 1 of 1" in out
    folder = RunFolder.reserve(outputs, NOW)
    journal = Journal(folder, "main")
    journal.planned([item(k=3)])
    journal.started(item().nodeid)
    journal.attempt(item().nodeid, 0, judged(1, "error", answer=answered("half")))
    journal.attempt(item().nodeid, 0, judged(2, "error"))
    document, out = rescored(write_document(from_folder(folder), folder.document), capsys)
    assert "not rescorable: no finished answer, 3 of 3" in out
    assert [entry["stage"] for entry in document["results"]] == ["agent", "agent", "worker"]


def test_a_verdict_whose_case_file_is_broken_is_kept_and_named(project, capsys, tmp_path):
    _, run = project
    path = run(EXPECTED)
    (tmp_path / "tests" / "a.yml").write_text("name: revenue\nprompt: x?\nsqll: SELECT 1\n")
    _, out = rescored(path, capsys)
    assert "not rescorable: tests/a.yml:3:1: unknown key 'sqll', did you mean 'sql'?, 1 of 1" in out


def test_every_verdict_that_flips_is_listed_with_the_rule_that_flipped_it(project, capsys):
    write, run = project
    path = run(EXPECTED, CheckResult("data", False, "values differ"), verdict="failed")
    held = json.loads(path.read_text())
    assert "verdict_contract" not in held["run"]
    document, out = rescored(path, capsys)
    assert document["run"]["verdict_contract"] == VERDICT_CONTRACT == "2"
    assert "rules 1 -> 2: 1 verdict changed" in out
    # its case was written by another version: that is looked at first
    flip = "failed -> passed by the rule case (the case is another one now): match"
    assert f"  revenue [demo:a] attempt 1: {flip}" in out
    again, out = rescored(path.parent / "new.json", capsys)
    assert "rules 2: 0 verdicts changed" in out
    assert again["cases"]["passed"] == 1
    write(more="assertions: [{type: text, contains: EUR}]")
    _, out = rescored(path.parent / "new.json", capsys)
    assert "passed -> failed by the rule case (the case is another one now): text: 'EUR' is missing" in out


def test_what_a_judge_said_is_taken_while_no_judge_is_configured(project, capsys):
    write, run = project
    write(more="expected_response: North and south.\nassertions: [{type: judge, rule: be kind, name: kind}]")
    said = (
        CheckResult("judge", True, "it is kind", "kind", 0.9),
        CheckResult("factuality", False, "D: contradicts", None, 0.0, reason="judge"),
    )
    document, _ = rescored(run(EXPECTED, *said), capsys)
    (entry,) = document["results"]
    assert entry["verdict"] == "failed"
    judged_again = {check["type"]: check for check in entry["checks"]}
    assert judged_again["judge"]["score"] == 0.9
    assert judged_again["factuality"]["why"] == "D: contradicts"
    not_asked = CheckResult("judge", False, "not asked", "kind", severity="warn", details={"not_asked": True})
    document, _ = rescored(run(EXPECTED, not_asked), capsys)
    assert document["results"][0]["verdict"] == "error"
    assert "judge" in document["results"][0]["message"]
    document, _ = rescored(run(EXPECTED, said[0]), capsys)
    assert document["results"][0]["stage"] == "checks"  # the factuality check was never judged


def test_results_of_nao_are_rescored_by_our_rules(tmp_path, capsys):
    source = NAO / "results_3cases_k3.json"
    project = tmp_path / "project"
    (project / "tests" / "outputs").mkdir(parents=True)
    (project / "pytest.ini").write_text("[pytest]\n")
    cases = {"total_revenue": "SUM(amount) AS total_revenue", "order_count": "COUNT(*) AS n"}
    for name, select in cases.items():
        text = f"name: {name}\nprompt: x?\nsql: SELECT {select} FROM orders\n"
        (project / "tests" / f"{name}.yml").write_text(text)
    for name in ("twin1", "twin2"):
        (project / "tests" / f"{name}.yml").write_text("name: by_status\nprompt: x?\nsql: SELECT 1\n")
    path = project / "tests" / "outputs" / "results_20260101_000000.json"
    path.write_bytes(source.read_bytes())
    document, out = rescored(path, capsys)
    by_name = {(entry["name"], entry["attempt"]): entry["verdict"] for entry in document["results"]}
    assert by_name["total_revenue", 1] == "passed"
    assert by_name["order_count", 1] == "failed"
    assert "not rescorable: no case 'by_status' in the project, 3 of 9" in out
    theirs = json.loads(source.read_text())
    assert {key: document["summary"][key] for key in ("total_tokens", "total_cost", "total_tool_calls")} == {
        "total_tokens": theirs["summary"]["total_tokens"],
        "total_cost": pytest.approx(theirs["summary"]["total_cost"]),
        "total_tool_calls": theirs["summary"]["total_tool_calls"],
    }
    before = {(entry["name"], entry["attempt"]): entry for entry in theirs["results"]}
    for entry in document["results"]:
        old = before[entry["name"], entry["attempt"]]
        numbers = ("tokens", "cost", "duration_ms", "tool_call_count")
        assert {key: entry[key] for key in numbers} == {key: old[key] for key in numbers}
        assert entry["details"]["response_text"] == old["details"]["response_text"]
        assert entry["details"]["tool_calls"][0]["args"] == old["details"]["tool_calls"][0]["args"]
        assert entry["usage"]["agent"] == {"total": old["tokens"], "cost": old["cost"]}
        assert entry["answered_at"].startswith(theirs["timestamp"])
        if entry["name"] == "by_status":  # kept: verdict, tables and all
            assert (entry["passed"], entry["message"]) == (old["passed"], old["message"])
            assert entry["details"]["expected_data"] == old["details"]["expected_data"]


def test_results_of_another_program_without_a_time_or_a_price_are_rescored(tmp_path, capsys):
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "tests" / "a.yml").write_text("name: a\nprompt: x?\nsql: SELECT 1 AS n\n")
    details = {"response_text": "x", "actual_data": [{"n": 1}], "expected_data": [{"n": 1}]}
    details |= {"reference_sql": "SELECT 1 AS n", "tool_calls": None}
    entry = {"name": "a", "model": "m:1", "passed": False, "message": "?", "details": details}
    silent = {**entry, "name": "b", "details": {}, "error": "HTTP 500"}
    path = tmp_path / "results_x.json"
    path.write_text(json.dumps({"timestamp": "yesterday", "results": [entry, silent]}))
    document, out = rescored(path, capsys)
    first, second = document["results"]
    assert (first["verdict"], first["tokens"], first["cost"]) == ("passed", None, None)
    assert (second["verdict"], second["error"], second["answered_at"]) == ("error", "HTTP 500", None)
    assert "not rescorable: no finished answer, 1 of 2" in out


def test_a_full_hundred_rows_of_nao_may_have_been_cut(tmp_path, capsys):
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "tests" / "a.yml").write_text("name: a\nprompt: x?\nsql: SELECT 1\n")
    details = {"response_text": "x", "actual_data": [{"n": 1}] * 100, "expected_data": [{"n": 1}]}
    path = tmp_path / "results_x.json"
    path.write_text(
        json.dumps({"results": [{"name": "a", "model": "m:1", "passed": True, "details": details}]})
    )
    _, out = rescored(path, capsys)
    assert "not rescorable: 100 rows, where other programs cut without saying so, 1 of 1" in out
