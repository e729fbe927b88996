from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from result_runs import NOW, Journal, item, judged

from pytest_agenteval.results.analysis.diff import diff_documents
from pytest_agenteval.results.document.document import from_folder
from pytest_agenteval.results.document.load import read_document
from pytest_agenteval.results.journal.run_folder import RunFolder
from pytest_agenteval.table import Table

NAO = Path(__file__).parent.parent / "data" / "nao"
P, F, E = ["passed"], ["failed"], ["error"]


def kinds(diff):
    return {entry.case.key[1]: entry.change for entry in diff.changes}


def test_every_kind_of_change_is_told_apart(run_folder):
    old = from_folder(run_folder({item("a"): P, item("b"): F, item("c"): P, item("gone"): P, item("e"): P}))
    new = from_folder(run_folder({item("a"): F, item("b"): P, item("c"): P, item("new"): F, item("e"): E}))
    diff = diff_documents(old, new)
    assert kinds(diff) == {
        "a": "regression",
        "b": "fix",
        "c": "unchanged",
        "new": "added",
        "e": "other",
        "gone": "removed",
    }
    assert (diff.paired, diff.p_value, diff.more_cases, diff.worse) == (3, 1.0, None, False)
    assert [entry.case.key[1] for entry in diff.of("regression")] == ["a"]


def test_the_paired_test_and_how_many_more_cases(run_folder):
    names = [f"c{n}" for n in range(50)]
    old = from_folder(run_folder({item(n): F if i < 4 else P for i, n in enumerate(names)}))
    new = from_folder(run_folder({item(n): F if 4 <= i < 20 else P for i, n in enumerate(names)}))
    diff = diff_documents(old, new)
    assert diff.p_value == pytest.approx(0.0118, abs=1e-4)
    assert (diff.worse, diff.more_cases, diff.paired) == (True, 8, 50)
    back = diff_documents(new, old)
    assert (back.worse, back.p_value) == (False, diff.p_value)


def run_with_references(run_folder, tables: list[Table], used: int, verdict: str):
    """A run of one case with these references, compared with the one at ``used``."""
    folder = run_folder({item("a"): None})
    journal = Journal(folder, "main")
    journal.started(item("a").nodeid)
    attempt = judged(1, verdict, reference=tables[used], references=tuple(tables))
    journal.attempt(item("a").nodeid, 0, attempt)
    return from_folder(folder)


def table(value: object) -> Table:
    return Table.from_rows(["n"], [[value]], ["INTEGER"])


def test_data_changed_looks_at_every_reference_not_at_the_one_that_was_used(run_folder):
    old = run_with_references(run_folder, [table(1), table(2)], 1, "passed")
    same = run_with_references(run_folder, [table(1), table(2)], 0, "failed")
    (change,) = diff_documents(old, same).changes
    assert (change.change, change.notes) == ("regression", ())
    other = run_with_references(run_folder, [table(1), table(3)], 0, "failed")
    (change,) = diff_documents(old, other).changes
    assert (change.change, change.notes) == ("regression", ("data changed",))
    # a file from before all of them were kept is compared by the one it knows
    rows = [replace(row, reference_hashes=()) for row in old.rows]
    (change,) = diff_documents(replace(old, rows=rows), same).changes
    assert change.notes == ("data changed",)
    silent = [replace(row, reference_hash=None) for row in rows]
    (change,) = diff_documents(replace(old, rows=silent), same).changes
    assert change.notes == ()


def test_several_attempts_are_compared_by_their_rates(run_folder):
    old = from_folder(run_folder({item(f"c{n}", k=3, rule="any"): ["passed"] * 3 for n in range(6)}))
    new = from_folder(
        run_folder({item(f"c{n}", k=3, rule="any"): ["passed", "failed", "failed"] for n in range(6)})
    )
    diff = diff_documents(old, new)
    assert set(kinds(diff).values()) == {"unchanged"}
    assert (diff.p_value, diff.worse) == (2 / 64, True)


def test_nothing_in_common_is_no_test(run_folder):
    old, new = from_folder(run_folder({item("a"): P})), from_folder(run_folder({item("b"): P}))
    diff = diff_documents(old, new)
    assert (diff.p_value, diff.more_cases, diff.paired) == (None, None, 0)


def test_changed_cases_data_and_context_are_noted(outputs, run_folder):
    def with_reference(value: int, case_hash: str, context: str):
        folder = RunFolder.reserve(outputs, NOW)
        folder.write_run({"context_hash": context})
        planned = item("a", case_hash=case_hash)
        journal = Journal(folder, "main")
        journal.planned([planned])
        journal.started(planned.nodeid)
        journal.attempt(planned.nodeid, 0, judged(reference=Table.from_rows(["x"], [[value]])))
        return from_folder(folder)

    base = with_reference(1, "h1", "c1")
    same = diff_documents(base, with_reference(1, "h1", "c1"))
    assert (same.changes[0].notes, same.context_changed) == ((), False)
    other = diff_documents(base, with_reference(2, "h2", "c2"))
    assert (other.changes[0].notes, other.context_changed) == (("case changed", "data changed"), True)
    unknown = from_folder(run_folder({item("a"): P}))
    assert not diff_documents(base, unknown).context_changed


def test_files_without_paths_are_matched_by_name_and_model(run_folder):
    nao = read_document(NAO / "results_3cases_2models.json")
    again = read_document(NAO / "results_3cases_2models_k2.json")
    assert set(kinds(diff_documents(nao, again)).values()) == {"unchanged"}
    ours = from_folder(
        run_folder({item("total_revenue", "openai:gpt-4.1"): P, item("order_count", "openai:gpt-4.1"): P})
    )
    diff = diff_documents(nao, ours)
    assert [entry.change for entry in diff.changes] == ["unchanged", "fix", *["removed"] * 4]
    back = diff_documents(ours, nao)
    assert len(back.of("regression")) == 1
    two = from_folder(
        run_folder({item("by_status", "openai:gpt-4.1", path=p): P for p in ("a.yml", "b.yml")})
    )
    assert len(diff_documents(two, nao).of("removed")) == 2  # ambiguous: not guessed


def test_two_models_are_paired_only_when_asked(run_folder):
    old = from_folder(run_folder({item("a", "m:1"): P, item("b", "m:1"): P}))
    new = from_folder(run_folder({item("a", "m:2"): F, item("b", "m:2"): P}))
    assert {e.change for e in diff_documents(old, new).changes} == {"added", "removed"}
    diff = diff_documents(old, new, across_models=True)
    assert (kinds(diff), diff.across) == ({"a": "regression", "b": "unchanged"}, ("m:1", "m:2"))
    assert diff_documents(old, old, across_models=True).across is None
