from __future__ import annotations

import pytest
from result_runs import NOW, Journal, item, judged

from pytest_agenteval.errors import ResultsError
from pytest_agenteval.results.analysis.gates import (
    ExitStatus,
    Gate,
    against_baseline,
    exit_status,
    fail_under,
    find_baseline,
)
from pytest_agenteval.results.document.document import from_folder, write_document
from pytest_agenteval.results.journal.run_folder import RunFolder


def run_of(run_folder, verdicts, **more):
    """A run of cases c0, c1, ... with these verdicts ('' is not there)."""
    names = {f"c{n}": verdict for n, verdict in enumerate(verdicts) if verdict}
    tags = more.get("tags", {})
    return from_folder(run_folder({item(name, tags=tags.get(name, ())): [v] for name, v in names.items()}))


P, F, E, R = "passed", "failed", "error", "review"


def test_a_rate_gate_counts_cases(run_folder):
    cases = run_of(run_folder, [P, P, P, F]).cases
    (holds,) = fail_under(cases, [("", 75.0)])
    assert holds == Gate("--agent-fail-under 75", True, "--agent-fail-under 75: 3 of 4 passed, 75.0 %")
    (fails,) = fail_under(cases, [("", 75.1)])
    assert (fails.holds, fails.text) == (False, "--agent-fail-under 75.1: 3 of 4 passed, 75.0 %")
    assert [key[1] for key in fails.blamed] == ["c3"]
    assert fails.record() == {"gate": fails.gate, "holds": False, "text": fails.text}


def test_an_exact_share_meets_its_rate_and_a_rounded_one_does_not(run_folder):
    cases = run_of(run_folder, [P, P, F]).cases
    assert fail_under(cases, [("", 66.6)])[0].holds
    assert not fail_under(cases, [("", 66.7)])[0].holds


def test_gates_of_a_model_and_of_a_tag(run_folder):
    plan = {
        item("a", "m:1", tags=("critical",)): [P],
        item("b", "m:1"): [F],
        item("a", "m:2", tags=("critical",)): [P],
        item("x", "m:2", xfail="known"): [F],
    }
    cases = from_folder(run_folder(plan)).cases
    gates = fail_under(cases, [("m:1", 95), ("m:2", 95), ("tag:critical", 100), ("m:3", 1), ("tag:none", 0)])
    assert [gate.holds for gate in gates] == [False, True, True, False, False]
    assert gates[0].text == "--agent-fail-under m:1=95: 1 of 2 passed, 50.0 %"
    assert gates[3].text == "--agent-fail-under m:3=1: no case of m:3"


def test_a_rate_of_nothing_does_not_hold(run_folder):
    (gate,) = fail_under(run_of(run_folder, [R]).cases, [("", 0.0)])
    assert (gate.holds, gate.text) == (False, "--agent-fail-under 0: no case was judged")


@pytest.mark.parametrize(
    ("old", "new", "holds", "text"),
    [
        ([P, P], [P, P], True, "no regression"),
        ([P, P], [P, F], False, "1 regressed: c1 [demo:a] (values differ)"),
        ([P, F], [P, F], True, "no regression"),
        ([P, F], [P, P], True, "no regression"),
        ([P, ""], [P, F], False, "1 new and failed: c1 [demo:a] (values differ)"),
        ([P, ""], [P, P], True, "no regression"),
        ([P, E], [P, F], False, "1 new and failed: c1 [demo:a] (values differ)"),
        ([P, P], [P, E], True, "no regression"),  # an error fails the run by itself
        (
            [P] * 7,
            [F] * 7,
            False,
            "7 regressed: c0 [demo:a] (values differ), c1 [demo:a] (values differ), c2 [demo:a] "
            "(values differ), c3 [demo:a] (values differ), c4 [demo:a] (values differ) and 2 more",
        ),
    ],
)
def test_a_baseline_forgives_what_failed_before(run_folder, old, new, holds, text):
    gate = against_baseline(run_of(run_folder, old), run_of(run_folder, new))
    assert (gate.holds, gate.text) == (holds, f"--agent-baseline: {text}")


def test_a_gate_names_a_cause_in_one_short_line(outputs):
    folder = RunFolder.reserve(outputs, NOW)
    journal = Journal(folder, "main")
    journal.planned([item("a")])
    journal.started(item("a").nodeid)
    journal.attempt(item("a").nodeid, 0, judged(1, "failed", message="failed text:\n" + "x " * 200))
    journal.close()
    gate = against_baseline(None, from_folder(folder))
    shown = ("failed text: " + "x " * 200)[:119] + "…"
    assert gate.text == f"--agent-baseline last: no earlier results; 1 fail: a [demo:a] ({shown})"


def test_a_baseline_without_a_common_case_is_said(run_folder):
    gate = against_baseline(run_of(run_folder, [P]), run_of(run_folder, ["", P]))
    assert gate.holds
    shown = "no regression (no case in common with the baseline: nothing was compared)"
    assert gate.text == f"--agent-baseline: {shown}"


def test_an_expected_failure_is_no_regression(run_folder):
    old = from_folder(run_folder({item("a"): [P]}))
    new = from_folder(run_folder({item("a", xfail="known"): [F], item("b", xfail=""): [F]}))
    assert against_baseline(old, new).holds


def test_the_paired_test_forgives_chance_but_no_critical_case(run_folder):
    old = run_of(run_folder, [P] * 10)
    one = run_of(run_folder, [F] + [P] * 9)
    assert not against_baseline(old, one).holds
    gate = against_baseline(old, one, significant=True)
    assert gate.holds
    assert gate.text == (
        "--agent-baseline: 1 regressed: c0 [demo:a] (values differ) "
        "(p = 1.000 over 10 cases, could be chance)"
    )
    assert gate.blamed == ()
    critical = run_of(run_folder, [F] + [P] * 9, tags={"c0": ("critical",)})
    assert [key[1] for key in against_baseline(old, one).blamed] == ["c0"]
    assert not against_baseline(old, critical, significant=True).holds
    many = against_baseline(old, run_of(run_folder, [F] * 8 + [P] * 2), significant=True)
    assert not many.holds
    assert "p = 0.008 over 10 cases, worse" in many.text
    better = run_of(run_folder, [P] * 10)
    assert against_baseline(run_of(run_folder, [F] * 10), better, significant=True).holds


def test_a_new_failure_counts_under_the_paired_test_too(run_folder):
    gate = against_baseline(run_of(run_folder, [P]), run_of(run_folder, [P, F]), significant=True)
    assert not gate.holds
    gate = against_baseline(run_of(run_folder, ["", P]), run_of(run_folder, [F]), significant=True)
    assert gate.text == (
        "--agent-baseline: 1 new and failed: c0 [demo:a] (values differ) "
        "(no case in common with the baseline: nothing was compared)"
    )


def test_without_earlier_results_every_failure_counts(run_folder):
    assert (
        against_baseline(None, run_of(run_folder, [P])).text
        == "--agent-baseline last: no earlier results; none fails"
    )
    gate = against_baseline(None, run_of(run_folder, [P, F]))
    assert (gate.holds, gate.text) == (
        False,
        "--agent-baseline last: no earlier results; 1 fail: c1 [demo:a] (values differ)",
    )


def test_the_baseline_is_a_file_or_the_last_results(run_folder, outputs, tmp_path):
    assert find_baseline("last", outputs, tmp_path) is None
    folder = run_folder({item(): [P]})
    write_document(from_folder(folder), folder.document)
    folder.remove()
    RunFolder.reserve(outputs, NOW)  # the run that asks
    last = find_baseline("last", outputs, tmp_path)
    assert last is not None
    assert last.path == folder.document
    shown = str(folder.document.relative_to(tmp_path))
    assert find_baseline(shown, outputs, tmp_path).rows == last.rows
    worse = run_folder({item(): [F]})
    worse.write_run({**worse.read_run(), "gates": [{"gate": "--agent-baseline", "holds": False, "text": ""}]})
    write_document(from_folder(worse), worse.document)
    worse.remove()
    # a regression is not forgiven by running it again
    assert find_baseline("last", outputs, tmp_path).path == folder.document
    assert find_baseline(worse.document.name, outputs, outputs).path == worse.document
    with pytest.raises(ResultsError, match=r"--agent-baseline nope\.json: no such file"):
        find_baseline("nope.json", outputs, tmp_path)


NONE = {
    "total": 0,
    "passed": 0,
    "failed": 0,
    "errors": 0,
    "review": 0,
    "not_run": 0,
    "skipped": 0,
    "xfailed": 0,
}
HOLDS, BROKEN = Gate("g", True, "g: fine"), Gate("g", False, "g: 1 of 2")


@pytest.mark.parametrize(
    ("counts", "options", "status", "reasons"),
    [
        ({"passed": 3}, {}, 0, ()),
        ({"passed": 3, "failed": 1}, {}, 1, ("1 of 4 cases failed",)),
        ({"passed": 3, "failed": 1}, {"gates": [HOLDS]}, 0, ()),
        ({"passed": 3, "failed": 1}, {"gates": [HOLDS, BROKEN]}, 1, ("g: 1 of 2",)),
        ({"passed": 3, "errors": 1}, {"gates": [HOLDS]}, 1, ("1 of 4 cases ended in an error",)),
        ({"passed": 3, "not_run": 2}, {}, 1, ("2 of 5 cases did not run",)),
        ({"passed": 3, "skipped": 2}, {}, 0, ()),
        ({"skipped": 2}, {}, 0, ()),
        ({}, {"pytest_status": 5}, 5, ()),
        ({"skipped": 2}, {"pytest_status": 5}, 5, ()),
        ({"passed": 3}, {"pytest_status": 1}, 1, ()),  # an ordinary test failed
        ({"passed": 3, "failed": 1}, {"gates": [HOLDS], "pytest_status": 1}, 1, ()),
        ({"failed": 1, "not_run": 1}, {"pytest_status": 2}, 2, ()),
        ({"failed": 1}, {"pytest_status": 4}, 4, ()),
        ({"errors": 1}, {"pytest_status": 3}, 3, ()),
        ({"xfailed": 1}, {}, 0, ()),
        ({"passed": 1, "review": 1}, {}, 0, ()),
        ({"passed": 1, "review": 1}, {"strict": True}, 1, ("1 of 2 cases check nothing (--agent-strict)",)),
        ({"review": 2}, {"strict": True}, 1, ("nothing could be judged",)),
        ({"errors": 1, "review": 1}, {}, 1, ("1 of 2 cases ended in an error", "nothing could be judged")),
        ({"failed": 1}, {"gates": [HOLDS]}, 0, ()),
    ],
)
def test_the_exit_status_and_why(counts, options, status, reasons):
    cases = {**NONE, **counts, "total": sum(counts.values())}
    assert exit_status(cases, **options) == ExitStatus(status, reasons)


def test_only_review_is_a_warning():
    found = exit_status({**NONE, "review": 2, "total": 2})
    assert found == ExitStatus(0, (), "nothing was judged: 2 to review")
