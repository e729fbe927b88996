from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from result_runs import NOW, Journal, item, judged

from pytest_agenteval.compare import compare
from pytest_agenteval.errors import SettingsError
from pytest_agenteval.reports.junit import junit_xml, xml_text
from pytest_agenteval.reports.markdown import markdown_comment, markdown_summary
from pytest_agenteval.reports.summary_files import check_summary_path, summary_text, write_summaries
from pytest_agenteval.reports.terminal_diff import diff_lines, diff_record
from pytest_agenteval.results.analysis.diff import diff_documents
from pytest_agenteval.results.document.document import from_folder
from pytest_agenteval.results.document.load import read_document
from pytest_agenteval.results.journal.run_folder import RunFolder
from pytest_agenteval.table import Table

NAO = Path(__file__).parent.parent / "data" / "nao"
P, F, E = ["passed"], ["failed"], ["error"]


def test_markdown_holds_the_tables(run_folder):
    document = read_document(NAO / "results_3cases_2models_k2.json")
    text = markdown_summary(document, "Nightly | run")
    assert text.startswith("## Nightly \\| run\n\ncases: 4 passed, 2 failed")
    assert "| openai:fake-1 | 66.7 % | 2/3 | 12,600 | $0.0324 | 0.3s | 1.0 |" in text
    assert "| order_count | ✗ 0/2 | ✗ 0/2 |" in text
    assert "### Attempts (k = 2)" in text
    single = markdown_summary(from_folder(run_folder({item("a"): P})))
    assert "Performance by Model" not in single
    assert "Attempts" not in single
    flaky = markdown_summary(from_folder(run_folder({item("a", k=2): ["passed", "failed"]})))
    assert "- flaky: a ✓ ✗" in flaky


def test_markdown_of_a_large_run_and_of_gates(run_folder):
    plan = {item(f"c{n}", m): P for n in range(60) for m in ("m:1", "m:2")} | {item("bad", "m:1"): F}
    gates = [{"gate": "g", "holds": False, "text": "g: <b>"}, {"gate": "h", "holds": True, "text": "h"}, {}]
    text = markdown_summary(from_folder(run_folder(plan, {"gates": gates})))
    assert "| bad |" in text
    assert "| c7 |" not in text
    assert "120 more cases not listed." in text
    assert "- **does not hold**: g: \\<b\\>" in text
    assert "- holds: h" in text


@pytest.fixture
def two_runs(run_folder):
    old = from_folder(
        run_folder(
            {
                item("worse"): P,
                item("better"): F,
                item("still"): F,
                item("gone"): P,
                item("lost"): P,
                item("ok"): P,
            },
            {"context_hash": "x"},
        )
    )
    new = from_folder(
        run_folder(
            {
                item("worse"): F,
                item("better"): P,
                item("still", case_hash="new"): F,
                item("fresh"): F,
                item("lost"): E,
                item("ok"): P,
            },
            {"context_hash": "y"},
        )
    )
    return old, new, diff_documents(old, new)


def test_a_comment_on_a_pull_request_puts_regressions_first(two_runs):
    _, new, diff = two_runs
    text = markdown_comment(new, diff)
    order = [
        "**Regressions (1)**",
        "- worse: values differ",
        "**New and failing (1)**",
        "**No verdict any more, or failing after none (1)**",
        "**Fixed (1)**",
        "- better\n",
        "**Still failing (1)**",
        "- still: values differ (case changed)",
        "**Removed (1)**",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "Against the baseline: 1 regression, 1 fix, 1 added, 1 removed, 2 unchanged, 1 with" in text
    assert "paired test over 4 cases: p = 1.000, could be chance." in text
    assert "The agent's context files changed between the runs." in text


def test_a_comment_stays_short_and_says_how_many_more_would_settle_it(run_folder):
    names = [f"c{n:02}" for n in range(50)]
    old = from_folder(run_folder({item(n): F if i < 4 else P for i, n in enumerate(names)}))
    some = from_folder(run_folder({item(n): F if 4 <= i < 10 else P for i, n in enumerate(names)}))
    more = diff_documents(old, some)
    assert f"could be chance; about {more.more_cases} more cases would settle it" in markdown_comment(
        some, more
    )
    new = from_folder(run_folder(dict.fromkeys(map(item, names), F)))
    diff = diff_documents(old, new)
    text = markdown_comment(new, diff)
    assert "- and 26 more" in text
    assert len(text.splitlines()) < 45
    assert "p \\< 0.001, worse beyond chance" in text
    assert "better beyond chance" in markdown_comment(old, diff_documents(new, old))
    apart = diff_documents(from_folder(run_folder({item("x"): P})), from_folder(run_folder({item("y"): P})))
    assert "paired test" not in markdown_comment(new, apart)


def test_a_diff_in_the_terminal(two_runs):
    old, new, diff = two_runs
    lines = diff_lines(old, new, diff)
    text = [line.text for line in lines]
    assert text[0] == "old: this run (nightly), 6 cases, 66.7 %"
    assert lines[text.index("  worse  passed -> failed: values differ")].style == "red"
    assert "  fresh  new -> failed: values differ" in text
    assert "  lost  passed -> error: error" in text
    assert lines[text.index("  better  failed -> passed")].style == "green"
    assert "  still  failed -> failed [case changed]: values differ" in text
    assert "  gone  passed -> removed" in text
    assert "case changed: 1 case (its verdicts speak of two different questions)" in text
    assert "context changed: the agent's context files differ between the runs" in text
    assert lines[-1].style == "red"
    calm = diff_lines(old, old, diff_documents(old, old))
    assert calm[-1].style == "green"
    assert "context changed" not in " ".join(line.text for line in calm)


def test_a_long_diff_is_counted_and_models_are_named(run_folder):
    old = from_folder(run_folder({item(f"c{n}", "m:1"): P for n in range(60)}))
    new = from_folder(run_folder({item(f"c{n}", "m:2"): F for n in range(60)}))
    diff = diff_documents(old, new, across_models=True)
    text = [line.text for line in diff_lines(old, new, diff)]
    assert "paired across models: m:1 -> m:2" in text
    assert "  and 10 more" in text
    record = diff_record(old, new, diff)
    assert (record["regressions"], record["across_models"], len(record["changes"])) == (
        60,
        ["m:1", "m:2"],
        60,
    )


def test_a_diff_as_json(two_runs):
    old, new, diff = two_runs
    record = json.loads(json.dumps(diff_record(old, new, diff)))
    assert {
        k: record[k] for k in ("regressions", "fixes", "added", "removed", "unchanged", "other", "paired")
    } == {
        "regressions": 1,
        "fixes": 1,
        "added": 1,
        "removed": 1,
        "unchanged": 2,
        "other": 1,
        "paired": 4,
    }
    assert record["context_changed"] is True
    assert record["changes"][0] == {
        "path": "tests/a.yml",
        "name": "worse",
        "model": "demo:a",
        "change": "regression",
        "old": "passed",
        "new": "failed",
        "message": "values differ",
        "cause": "values differ",
        "notes": [],
    }
    assert record["changes"][-1]["new"] is None


def test_junit_counts_agree_with_cases(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    plan = {
        item("good"): "passed",
        item("bad"): "failed",
        item("broken"): "error",
        item("open"): "review",
        item("late"): None,
        item("known", xfail="upstream"): "failed",
    }
    journal = Journal(folder, "main")
    skip = item("skipped")
    journal.planned([*plan, skip])
    journal.skipped(skip.nodeid, 'not "today" <')
    for planned, verdict in plan.items():
        if verdict:
            journal.started(planned.nodeid)
            journal.attempt(planned.nodeid, 0, judged(1, verdict, message="<&\x1b[31m\ud800"))
    document = from_folder(folder)
    suite = ElementTree.fromstring(junit_xml(document)).find("testsuite")
    assert suite is not None
    counts = {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": 7, "failures": 1, "errors": 1, "skipped": 4}
    assert len(suite.findall("testcase/failure")) == 1
    assert len(suite.findall("testcase/error")) == 1
    assert len(suite.findall("testcase/skipped")) == 4
    cases = {case.attrib["name"]: case for case in suite.findall("testcase")}
    bad = cases["bad[demo:a]"]
    assert bad.attrib["classname"] == "tests.a.yml"
    assert bad.find("failure").attrib["message"] == "<&\\x1b[31m\\ud800"
    properties = {p.attrib["name"]: p.attrib["value"] for p in bad.findall("properties/property")}
    assert properties["agenteval_verdict"] == "failed"
    assert properties["agenteval_tokens"] == "30"
    assert cases["known[demo:a]"].find("skipped").attrib["message"] == "upstream"
    assert cases["skipped[demo:a]"].find("skipped").attrib["message"] == 'not "today" <'


def test_junit_under_a_gate_agrees_with_the_run(run_folder):
    gates = [{"gate": "g", "holds": True, "text": "g"}]
    document = from_folder(run_folder({item("a"): F, item("b"): P, item("c"): E}, {"gates": gates}))
    suite = ElementTree.fromstring(junit_xml(document)).find("testsuite")
    assert (suite.attrib["failures"], suite.attrib["errors"], suite.attrib["skipped"]) == ("0", "1", "1")
    assert suite.find("testcase/skipped").attrib["message"] == "counted by the gate: values differ"


def test_junit_of_nao_has_names_without_ids():
    suite = ElementTree.fromstring(junit_xml(read_document(NAO / "results_3cases_2models.json"))).find(
        "testsuite"
    )
    assert suite.find("testcase").attrib["name"] == "total_revenue[openai:gpt-4.1]"
    assert xml_text("a\x00b\ufffe") == "a#x00b#xFFFE"


def test_summaries_are_written_by_suffix_and_to_github(run_folder, tmp_path):
    document = from_folder(run_folder({item("a"): P}))
    step = tmp_path / "step.md"
    step.write_text("before\n")
    environ = {"GITHUB_STEP_SUMMARY": str(step)}
    write_summaries(document, ("reports/s.md", "s.json"), environ, tmp_path)
    assert (tmp_path / "reports" / "s.md").read_text() == markdown_summary(document)
    assert json.loads((tmp_path / "s.json").read_text()) == document.header
    assert step.read_text() == "before\n" + markdown_summary(document)
    write_summaries(document, (), {}, tmp_path)
    assert step.read_text() == "before\n" + markdown_summary(document)


def test_a_summary_of_another_suffix_is_a_settings_error(run_folder):
    document = from_folder(run_folder({item("a"): P}))
    with pytest.raises(SettingsError, match=r"--agent-summary s\.txt: the name must end in \.md or \.json"):
        summary_text(document, "s.txt")
    check_summary_path("s.md")


def test_markdown_shows_what_differs_whatever_the_text_is(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    journal = Journal(folder, "main")
    expected, actual = Table.from_rows(["x"], [["a"]]), Table.from_rows(["x"], [["```</details>\x1b[31m"]])
    nasty = item("</summary><img src=x>")
    long = item("long")
    journal.planned([nasty, long])
    for planned in (nasty, long):
        journal.started(planned.nodeid)
    journal.attempt(nasty.nodeid, 0, judged(1, "failed", comparison=compare(expected, actual)))
    journal.attempt(long.nodeid, 0, judged(1, "error", message="y" * 5000))
    text = markdown_summary(from_folder(folder))
    assert "<details><summary>&lt;/summary&gt;&lt;img src=x&gt;</summary>\n\n````text\n" in text
    assert "\n````\n\n</details>" in text
    assert "\x1b" not in text
    assert "y" * 4000 + "\n...\n```" in text
    assert "y" * 4001 not in text


def test_nothing_changed_needs_no_test(run_folder):
    same = from_folder(run_folder({item("a"): P, item("b"): F}))
    diff = diff_documents(same, same)
    assert (diff.p_value, diff.differing) == (1.0, 0)
    assert "paired test" not in markdown_comment(same, diff)
