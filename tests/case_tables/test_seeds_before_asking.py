"""What a check lacks is told before the agent is asked: its answer would be paid for and never judged."""

from __future__ import annotations

import pytest
from seed_project import Done, Row, run

JUDGE = "needs a judge and none is configured: name one with --agent-judge-model provider:model"
GOOD = {"text": "never asked"}


def row(name: str, case: str, *says: str) -> Row:
    """A case that is an error, and whose agent is never asked."""
    return Row(
        name=name,
        case=f"prompt: Ask {name}\n{case}\n",
        answers={f"Ask {name}": GOOD},
        received=(),
        verdicts="error",
        says=("stage checks", *says),
    )


LACKING = (
    row("response", "expected_response: something", f"factuality {JUDGE}"),
    row("rule", "expect: {judge: be kind}", f"judge {JUDGE}"),
    row("warning", "assertions: [{type: judge, rule: be kind, severity: warn}]", f"judge {JUDGE}"),
    row("no_module", "expect: {python: 'nowhere:fn'}", "python: nowhere:fn is not there: No module named"),
    row("no_name", "expect: {python: 'scores:about'}", "python: scores:about is not there"),
    row(
        "no_function",
        "expect: {python: 'broken:fn'}",
        "broken:fn cannot be imported: ValueError: half written",
    ),
    row("policy", "assertions: [{type: governance, policy: no.yml}]", "governance: no.yml does not exist"),
    row("bundle", "assertions: [{type: governance, bundle: sales}]", "'sales'"),
    row("dialect", "assertions: [{type: governance, policy: policy.yml}]", "there are several databases"),
)

ASKED = (
    Row(
        name="refusal",
        case="prompt: Names without a judge?\noutcome: refuse\n",
        answers={"Names without a judge?": {"text": "I cannot share personal data."}},
        received=({"attempt": 1},),
    ),
    Row(
        name="a_turn",
        case="prompt: [{say: Facts of a turn, expect: {text: facts}}]\n",
        answers={"Facts of a turn": {"text": "Two facts."}},
        received=({"attempt": 1},),
    ),
)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """A run without a judge."""
    root = tmp_path_factory.mktemp("lacking")
    (root / "policy.yml").write_text("version: 1\n")
    return run(root, (*LACKING, *ASKED), "-v", "-p", "no:cacheprovider", judge=False)


@pytest.mark.parametrize("row", [*LACKING, *ASKED], ids=lambda row: row.name)
def test_only_a_case_that_can_be_judged_is_asked(done: Done, row: Row) -> None:
    assert done.verdicts(row) == row.expected(), done.out
    assert len(done.received(row)) == len(row.received or ())
    for entry in done.results(row):
        told = f"stage {entry['stage']}: {entry['message']}"
        for piece in row.says:
            assert piece in told
