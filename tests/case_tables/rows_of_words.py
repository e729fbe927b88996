"""Names, notes, marks and models."""

from __future__ import annotations

from seed_project import Row

WORDS = (
    Row(
        name="named",
        case="""
version: 1
id: by_id
name: "A name: with ü & more"
description: of no matter
prompt: Named?
owner: growth
tags: [churn, quick]
metadata: {ticket: 7}
expect: {text: 'yes'}
x-note: free
""",
        answers={"Named?": {"text": "yes"}},
        verdicts={"by_id": "passed"},
    ),
    Row(
        name="skipped",
        case="prompt: Skipped?\nskip: the table is gone\nexpect: {text: 'yes'}\n",
        answers={"Skipped?": {"text": "yes"}},
        received=(),
        verdicts="skipped",
    ),
    Row(
        name="marked",
        case="""
prompt: Marked?
marks: [nightly, 'skipif(True, reason="not today")']
expect: {text: 'yes'}
""",
        answers={"Marked?": {"text": "yes"}},
        received=(),
        verdicts="skipped",
    ),
    Row(
        name="xfailed",
        case="prompt: Expected to fail?\nxfail: drops the free plan\nexpect: {text: 'yes'}\n",
        answers={"Expected to fail?": {"text": "no"}},
        verdicts="xfailed",
    ),
    Row(
        name="xfailed_by_error",
        case="prompt: Broken?\nxfail: true\nsql: SELECT nope FROM orders\ndatabase: shop\n",
        answers={"Broken?": {"text": "no"}},
        received=(),
        verdicts="error",
        says=("nope",),
    ),
)


MODELS = (
    Row(
        name="every_model",
        case="prompt: Each model?\nexpect: {text: 'yes'}\n",
        answers={"Each model?": {"text": "yes"}},
        received=({"model": "openai:large"}, {"model": "openai:small"}),
        verdicts={"every_model[openai:large]": "passed", "every_model[openai:small]": "passed"},
    ),
    Row(
        name="one_model",
        case="prompt: One model?\nmodels: ['openai:small', 'openai:other']\nexpect: {text: 'yes'}\n",
        answers={"One model?": {"text": "yes"}},
        received=({"model": "openai:small"},),
        verdicts={"one_model[openai:small]": "passed"},
    ),
    Row(
        name="no_model",
        case="prompt: No model?\nmodels: ['openai:other']\nexpect: {text: 'yes'}\n",
        answers={"No model?": {"text": "yes"}},
        received=(),
        verdicts={},
    ),
    Row(
        name="xfail_of_a_model",
        case="""
prompt: Weak model?
xfail: {models: ['openai:small'], reason: too small}
expect: {text: 'yes'}
""",
        answers={"Weak model?": {"text": "no"}},
        verdicts={"xfail_of_a_model[openai:large]": "failed", "xfail_of_a_model[openai:small]": "xfailed"},
    ),
)
"""Run with --agent-model openai:large --agent-model openai:small."""
