"""``agenteval judge-check``: agreement and Cohen's kappa against human labels, over a real endpoint."""

from __future__ import annotations

import json

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from pytest_agenteval.cli import main
from pytest_agenteval.cli.judge_check import kappa


def test_kappa_of_published_examples():
    """Cohen's kappa worked out by hand in common textbooks."""
    grants = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert kappa(grants) == pytest.approx(0.4)
    first = [("y", "y")] * 45 + [("y", "n")] * 15 + [("n", "y")] * 25 + [("n", "n")] * 15
    second = [("y", "y")] * 25 + [("y", "n")] * 35 + [("n", "y")] * 5 + [("n", "n")] * 35
    assert kappa(first) == pytest.approx(0.1304, abs=1e-4)
    assert kappa(second) == pytest.approx(0.2593, abs=1e-4)
    assert kappa([("y", "y"), ("n", "n")]) == 1.0
    assert kappa([("y", "n"), ("n", "y")]) == -1.0
    assert kappa([("y", "y")] * 3) is None


LABELS = """\
- {question: How much?, answer: It is 5., expected: "5", label: C}
- {question: How much?, answer: It is 6., expected: "5", label: D}
- {question: How much?, answer: About 5., expected: "5", label: pass}
- question: How much?
  answer: Go away.
  rule: is polite
  label: fail
"""


@pytest.fixture
def judge(httpserver: HTTPServer, tmp_path, monkeypatch):
    """A judge that says C to 5 and D to all else, and 0.9 to every rule."""
    bodies = []

    def answer(request):
        body = request.get_json()
        bodies.append(body)
        user = next(m["content"] for m in body["messages"] if m["role"] == "user")
        sent = json.loads(user)
        reply = (
            {"rationale": "r", "score": 0.9}
            if "rule" in sent
            else {"rationale": "r", "letter": "C" if "5" in sent["answer"] else "A"}
        )
        message = {"role": "assistant", "content": json.dumps(reply)}
        completion = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        return Response(json.dumps(completion), content_type="application/json")

    httpserver.expect_request("/v1/chat/completions", method="POST").respond_with_handler(answer)
    url = httpserver.url_for("/v1")
    (tmp_path / "agenteval.yaml").write_text(
        f"judge: local:small\nllm:\n  providers: [{{provider: local, base_url: '{url}', api_key: k}}]\n"
    )
    (tmp_path / "labels.yml").write_text(LABELS)
    return bodies


def test_agreement_and_kappa(judge, tmp_path, capsys):
    assert main(["judge-check", str(tmp_path / "labels.yml")]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "local:small against 4 human labels",
        "pass or fail: agreement 2 of 4 (50.0 %), Cohen's kappa 0.00",
        "letters: agreement 1 of 2 (50.0 %), Cohen's kappa 0.33",
        "line 2: people say D, the judge A (factuality: A (the answer is a subset of the expected one and "
        "agrees with it))",
        "line 4: people say fail, the judge pass (judge: 0.90)",
    ]
    assert len(judge) == 4


def test_samples_and_the_gate(judge, tmp_path, capsys):
    labels = str(tmp_path / "labels.yml")
    assert main(["judge-check", labels, "--samples", "3", "--fail-under", "0.5"]) == 1
    assert len(judge) == 12
    assert main(["judge-check", labels, "--fail-under", "-0.5", "--judge-model", "local:other"]) == 0
    assert judge[-1]["model"] == "other"
    (tmp_path / "labels.yml").write_text("- {question: q, answer: '5', expected: '5', label: C}\n")
    assert main(["judge-check", labels, "--fail-under", "0.5"]) == 0
    assert "kappa not defined: all labels are the same" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "labels.yml: should be a list of labelled answers; an entry holds question, answer, label"),
        ("a: 1\n", "should be a list of labelled answers"),
        ("- [\n", "labels.yml:2:1: not YAML"),
        ("- 5\n", "labels.yml:1: an entry holds question, answer, label, and expected or rule, found 5"),
        (
            "- {question: q, expected: x}\n",
            "and expected or rule; missing answer, label",
        ),
        ("- {question: q, answer: a, label: pass}\n", "give one of the two"),
        ("- {question: q, answer: a, label: pass, rule: r, expected: e}\n", "give one of the two"),
        (
            "- {question: q, answer: a, label: maybe, rule: r}\n",
            "label should be pass or fail, found 'maybe'",
        ),
        (
            "- {question: q, answer: a, label: F, expected: r}\n",
            "pass or fail or a letter A to E, found 'F'",
        ),
        (
            "- {question: q, answer: a, label: pass, rule: r, smaples: 3}\n",
            "unknown field 'smaples', did you mean 'samples'?",
        ),
        ("- {question: q, answer: !x a, label: pass, rule: r}\n", "the tag !x is not allowed"),
    ],
)
def test_labels_that_cannot_be_read(judge, tmp_path, capsys, text, said):
    (tmp_path / "labels.yml").write_text(text)
    assert main(["judge-check", str(tmp_path / "labels.yml")]) == 2
    assert said in capsys.readouterr().err


def test_without_a_judge_or_labels(tmp_path, capsys):
    labels = tmp_path / "labels.yml"
    assert main(["judge-check", str(labels)]) == 2
    assert "labels.yml" in capsys.readouterr().err
    labels.write_text(LABELS)
    assert main(["judge-check", str(labels)]) == 2
    assert (
        "no judge: give --judge-model provider:model, or set agenteval_judge_model" in capsys.readouterr().err
    )


def test_a_judge_that_answers_nonsense(judge, tmp_path, capsys, httpserver: HTTPServer):
    httpserver.clear()
    httpserver.expect_request("/v1/chat/completions").respond_with_json(
        {
            "choices": [
                {"index": 0, "message": {"role": "assistant", "content": "dunno"}, "finish_reason": "stop"}
            ]
        }
    )
    assert main(["judge-check", str(tmp_path / "labels.yml")]) == 2
    assert "judge local:small replied 'dunno': expected exactly one of the letters" in capsys.readouterr().err
