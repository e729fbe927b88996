from __future__ import annotations

from pathlib import Path

import pytest
from result_runs import NOW, Journal, answered, item, judged

from pytest_agenteval.reports.terminal import (
    StyledLine,
    last_line,
    percentile,
    suggested_steps,
    terminal_lines,
)
from pytest_agenteval.results.document.document import from_folder
from pytest_agenteval.results.document.load import read_document
from pytest_agenteval.results.document.overrides import Override, with_overrides, write_override
from pytest_agenteval.results.journal.run_folder import RunFolder
from pytest_agenteval.support.text import text_width

NAO = Path(__file__).parent.parent / "data" / "nao"


def text_of(document, **options):
    return "\n".join(line.text for line in terminal_lines(document, **options))


def test_the_report_of_two_models_and_two_attempts():
    document = read_document(NAO / "results_3cases_2models_k2.json")
    assert text_of(document, results="tests/outputs/results_X.json") == (
        """\
Results
Test           Status  Message             Tokens     Cost  Time  Tools
Model openai:gpt-4.1
total_revenue  passed  2/2                  4,200  $0.0126  0.8s      2
order_count    FAILED  0/2: values differ   4,200  $0.0126  0.8s      2
by_status      passed  2/2                  4,200  $0.0126  0.7s      2
Model openai:fake-1
total_revenue  passed  2/2                  4,200  $0.0108  0.6s      2
order_count    FAILED  0/2: values differ   4,200  $0.0108  0.6s      2
by_status      passed  2/2                  4,200  $0.0108  0.6s      2
Total                  4 of 6 passed       25,200  $0.0702  4.2s     12
Performance by Model
Model           Pass Rate  Passed  Tokens     Cost  Avg Time  Avg Tools
openai:fake-1      66.7 %     2/3  12,600  $0.0324      0.3s        1.0
openai:gpt-4.1     66.7 %     2/3  12,600  $0.0378      0.4s        1.0
Pass / Fail by Test and Model
Test           openai:gpt-4.1  openai:fake-1
total_revenue  ✓ 2/2           ✓ 2/2
order_count    ✗ 0/2           ✗ 0/2
by_status      ✓ 2/2           ✓ 2/2
Attempts (k = 2)
Model           Success %      95 %  pass@2  pass^2       of  Errors
openai:fake-1      66.7 %  21 to 94  66.7 %  66.7 %  3 cases       0
openai:gpt-4.1     66.7 %  21 to 94  66.7 %  66.7 %  3 cases       0
duration: p50 0.3s, p95 0.5s
results: tests/outputs/results_X.json
next: pytest --lf (asks the failed cases again)
next: agenteval view (what differs, cell by cell)
cases: 4 passed, 2 failed · 66.7 % · 25,200 tokens · $0.0702 · 4.2s"""
    )


def test_a_wide_terminal_has_a_column_for_the_model():
    lines = terminal_lines(read_document(NAO / "results_3cases_2models.json"), width=120)
    assert lines[1].text.split() == ["Test", "Model", "Status", "Message", "Tokens", "Cost", "Time", "Tools"]
    assert not any(line.text.startswith("Model openai") for line in lines)


def test_quiet_is_one_line():
    lines = terminal_lines(read_document(NAO / "results_3cases_k3.json"), verbosity=-1)
    assert lines == [StyledLine("cases: 2 passed, 1 failed · 66.7 % · 18,900 tokens · $0.0567 · 2.3s", "red")]


def test_every_verdict_is_named_with_its_reason(run_folder):
    plan = {
        item("good"): ["passed"],
        item("bad"): ["failed"],
        item("broken"): ["error"],
        item("open"): ["review"],
        item("late"): None,
        item("known", xfail="upstream"): ["failed"],
    }
    document = from_folder(run_folder(plan))
    lines = {line.text: line.style for line in terminal_lines(document)}
    rows = {text.split()[0]: (text, style) for text, style in lines.items() if text}
    assert rows["good"][1] == "green"
    assert (rows["bad"][0].split()[1], rows["bad"][1]) == ("FAILED", "red")
    assert (rows["broken"][0].split()[1], rows["broken"][1]) == ("ERROR", "red")
    assert (rows["open"][0].split()[1], rows["open"][1]) == ("review", "yellow")
    assert (rows["late"][0].split()[1:3], rows["late"][1]) == (["not", "run"], "yellow")
    assert (rows["known"][0].split()[1], rows["known"][1]) == ("xfail", "yellow")
    assert lines["E broken (agent): error"] == "red"
    assert lines["- not run late: the run ended before it"] == "yellow"
    last = "cases: 1 passed, 1 failed, 1 error, 1 to review, 1 not run, 1 xfailed · 33.3 % · 120 tokens"
    assert last_line(document).text.startswith(last)
    assert suggested_steps(document) == [
        "pytest --agent-resume (asks again only what has no answer)",
        "pytest --lf (asks the failed cases again)",
        "agenteval view (what differs, cell by cell)",
    ]


def test_flaky_cases_show_their_attempts(run_folder):
    plan = {
        item("total_revenue", k=3): ["passed", "failed", "passed"],
        item("b", k=3): ["passed", "error", "failed"],
    }
    shown = text_of(from_folder(run_folder(plan)))
    assert "! flaky total_revenue  ✓ ✗ ✓" in shown
    assert "! flaky b  ✓ E ✗" in shown
    two = text_of(from_folder(run_folder({item("a", m, k=2): ["passed", "failed"] for m in ("m:1", "m:2")})))
    assert "! flaky a [m:1]  ✓ ✗" in two


def test_a_large_run_lists_what_did_not_pass(run_folder):
    plan = {item(f"case{n}", m): ["passed"] for n in range(40) for m in ("m:1", "m:2")}
    plan |= {item(f"bad{n}", "m:1", k=2): ["failed", "passed"] for n in range(12)}
    plan |= {item(f"late{n}", "m:1"): None for n in range(12)}
    document = from_folder(run_folder(plan))
    shown = text_of(document)
    assert "case7" not in shown
    assert "80 more passed (all with -v)" in shown
    assert "  and 2 more flaky" in shown
    assert "  and 2 more not run" in shown
    assert "case7" in text_of(document, verbosity=1)


@pytest.mark.parametrize("width", [40, 80, 100, 140])
def test_no_table_line_is_wider_than_the_terminal(run_folder, width):
    plan = {
        item("a_very_long_case_name_that_goes_on_and_on_" * 3, "provider:a-model-with-a-long-name"): [
            "failed"
        ],
        item("売上合計" * 20, "provider:another-model-with-a-long-name"): ["passed"],
    }
    lines = terminal_lines(from_folder(run_folder(plan)), width=width, next_steps=())
    longest = max(text_width(line.text) for line in lines[:-2])
    assert longest <= max(width, 68)  # 68: what the fixed columns need


def test_hostile_names_and_messages_cannot_steer_the_terminal(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    journal = Journal(folder, "main")
    nasty = "\x1b[2J\x1b]0;owned\x07\r\n\u202e"
    planned = item(f"n{nasty}", f"m:{nasty}")
    other = item("b", "m:2")
    journal.planned([planned, other])
    for entry, verdict in ((planned, "error"), (other, "failed")):
        journal.started(entry.nodeid)
        journal.attempt(entry.nodeid, 0, judged(1, verdict, message=nasty * 3))
    for width in (80, 140):
        lines = terminal_lines(from_folder(folder), width=width, results=f"x{nasty}", next_steps=[nasty])
        text = "".join(line.text for line in lines)
        assert not [character for character in text if ord(character) < 32 or character == "\u202e"]
        assert "\\x1b[2J" in text


def test_unpriced_models_gates_overrides_and_torn_lines_are_told(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    gates = [
        {"gate": "g", "holds": False, "text": "g: 1 of 2"},
        {"gate": "h", "holds": True, "text": "h: ok"},
        {},
    ]
    folder.write_run({"gates": gates})
    journal = Journal(folder, "main")
    items = [item("a", "m:1"), item("b", "m:1"), item("a", "m:2")]
    journal.planned(items)
    for planned, cost in zip(items, (None, 0.5, 0.5), strict=True):
        journal.started(planned.nodeid)
        journal.attempt(planned.nodeid, 0, judged(answer=answered(cost=cost)))
    journal.write_lines(["torn"])
    document = from_folder(folder)
    lines = {line.text: line.style for line in terminal_lines(document)}
    assert lines["unpriced: m:1 (1 attempt without a price)"] == "yellow"
    assert lines["gate fails: g: 1 of 2"] == "red"
    assert lines["gate holds: h: ok"] == "green"
    assert lines["1 journal line cut off where a process was killed"] == "yellow"
    assert "$0.5000+" in "".join(lines)
    stored = type(document)(document.header, document.rows, document.entries, folder.document)
    write_override(folder.document, document.rows[0], Override("failed"))
    assert "1 verdict overridden by a person" in text_of(with_overrides(stored))


def test_nothing_judged_is_yellow_and_an_empty_run_says_none(run_folder):
    assert last_line(from_folder(run_folder({item(): ["review"]}))).style == "yellow"
    assert last_line(from_folder(run_folder({item(): ["passed"]}))).style == "green"
    assert last_line(from_folder(run_folder({}))) == StyledLine("cases: none · 0.0s", "yellow")


def test_percentiles_are_by_nearest_rank():
    values = [float(n) for n in range(1, 21)]
    assert (percentile(values, 50), percentile(values, 95), percentile(values, 0)) == (10.0, 19.0, 1.0)
    assert percentile([7.0], 95) == 7.0


def test_many_models_are_shown_in_groups_that_fit(run_folder):
    models = [f"provider:model-number-{n}" for n in range(7)]
    lines = terminal_lines(from_folder(run_folder({item("a", model): ["passed"] for model in models})))
    text = [line.text for line in lines]
    start = text.index("Pass / Fail by Test and Model")
    heads = [line for line in text[start:] if line.startswith("Test")]
    assert [line.split()[1:] for line in heads] == [models[:2], models[2:4], models[4:6], models[6:]]
    assert max(map(len, text[start:])) <= 80
