"""The table of keys a case may have: the loader, the JSON Schema and the tests of the docs come from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_agenteval.cases import field_readers as values
from pytest_agenteval.cases.field_readers import Read
from pytest_agenteval.types import LONGEST_TIMEOUT, MOST_ATTEMPTS

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
NAME: Schema = {"type": ["string", "number", "boolean"]}
BOOLEAN: Schema = {"type": "boolean"}
TEXTS: Schema = {"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}]}
NAMES: Schema = {"anyOf": [NAME, {"type": "array", "items": NAME}]}
MODEL: Schema = {"type": "string", "pattern": r"^[^\s:,]+:\S+$"}
MODELS: Schema = {"anyOf": [MODEL, {"type": "array", "items": MODEL}]}
COUNT: Schema = {"type": "integer", "minimum": 0}
AMOUNT: Schema = {"type": "number", "minimum": 0}
BUDGET: Schema = {
    "type": "object",
    "properties": {
        "tokens": COUNT,
        "cost": AMOUNT,
        "duration_ms": AMOUNT,
        "tool_calls": COUNT,
        "sql_queries": COUNT,
    },
    "additionalProperties": False,
    "minProperties": 1,
}
PASS: Schema = {
    "anyOf": [
        {"enum": ["all", "any", "majority"]},
        {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        {"type": "string", "pattern": r"^\s*0*[1-9]\d*\s*/\s*\d+\s*$"},
    ]
}
XFAIL: Schema = {
    "anyOf": [
        BOOLEAN,
        TEXT,
        {
            "type": "object",
            "properties": {"models": MODELS, "reason": TEXT},
            "additionalProperties": False,
        },
    ]
}
CELLS: Schema = {"type": "array", "items": {"type": ["array", "object"]}}
EXPECTED: Schema = {
    "anyOf": [
        {"type": "array", "items": {"type": "object"}},
        {
            "type": "object",
            "properties": {
                "columns": {"type": "array", "items": NAME},
                "rows": CELLS,
                "types": {"type": "object", "additionalProperties": {"type": "string"}},
                "file": TEXT,
            },
            "additionalProperties": False,
            "anyOf": [{"required": ["rows"]}, {"required": ["file"]}],
        },
    ]
}
OUTCOMES = ("answer", "refuse", "clarify", "no_data")
EXPECT_PART: Schema = {
    "type": "object",
    "properties": {
        "text": {},
        "pattern": TEXT,
        "value": {},
        "called": {},
        "not_called": {},
        "notCalled": {},
        "asked": {},
        "judge": {},
        "python": {},
        "outcome": {"enum": list(OUTCOMES)},
    },
    "additionalProperties": False,
}
EXPECT: Schema = {"anyOf": [EXPECT_PART, {"type": "array", "items": EXPECT_PART}]}
ASSERTIONS: Schema = {"type": "array", "items": {"$ref": "#/$defs/check"}}
TURN: Schema = {
    "anyOf": [
        TEXT,
        {
            "type": "object",
            "properties": {
                "say": TEXT,
                "sql": TEXTS,
                "expected": EXPECTED,
                "expected_response": TEXTS,
                "assertions": ASSERTIONS,
                "expect": EXPECT,
            },
            "required": ["say"],
            "additionalProperties": False,
        },
    ]
}


@dataclass(frozen=True, slots=True)
class CaseKey:
    """One key: how it is read (``None``: by the loader itself), where it lands in ``Case``."""

    name: str
    help: str
    schema: Schema
    read: Read | None = None
    field: str | None = None
    aliases: tuple[str, ...] = ()


KEYS: tuple[CaseKey, ...] = (
    CaseKey("name", "what the case is called", NAME, values.name),
    CaseKey("id", "its pytest id, where the name will not do", NAME, values.name),
    CaseKey("description", "a note for people", NAME, values.name),
    CaseKey(
        "prompt",
        "what the user says: a text, or a list of turns",
        {"anyOf": [TEXT, {"type": "array", "items": TURN, "minItems": 1}]},
        aliases=("question", "say"),
    ),
    CaseKey("input", "any value for an agent that is a function", {}, values.anything),
    CaseKey("agent", "pkg.mod:name, the agent of this case", TEXT, values.reference),
    CaseKey("sql", "reference SQL, or a list of accepted ones", TEXTS),
    CaseKey("sql_file", "file with the reference SQL, beside the case", TEXTS),
    CaseKey("expected", "the expected rows, written here or in a CSV file", EXPECTED),
    CaseKey("expected_response", "what the answer says: a text or a list of facts", TEXTS),
    CaseKey("database", "the connection the reference runs on", NAME, values.name),
    CaseKey("assertions", "further checks", ASSERTIONS),
    CaseKey("expect", "checks in short", EXPECT),
    CaseKey("comparison", "options of the comparison", {"$ref": "#/$defs/comparison"}),
    CaseKey("outcome", "what should happen", {"enum": list(OUTCOMES)}, values.one_of(*OUTCOMES)),
    CaseKey("models", "run only with these models", MODELS, values.models),
    CaseKey("k", "attempts", {"type": "integer", "minimum": 1}, values.whole(1, MOST_ATTEMPTS)),
    CaseKey("pass", "how many of the attempts must pass", PASS, values.pass_rule, "pass_rule"),
    CaseKey(
        "timeout",
        "seconds an attempt may take",
        {"type": "number", "exclusiveMinimum": 0},
        values.amount(above=True, high=LONGEST_TIMEOUT),
    ),
    CaseKey("budget", "what one attempt may use", BUDGET, values.budget),
    CaseKey("as", "who asks", {"anyOf": [NAME, {"type": "object"}]}, values.caller, "caller"),
    CaseKey("vars", "values for ${name} in the texts", {"type": "object"}, values.mapping),
    CaseKey("context", "text for the agent beside the prompt", TEXT),
    CaseKey("setup", "fixtures to request", NAMES, values.names),
    CaseKey("isolate", "a fresh copy of the data for each attempt", BOOLEAN, values.boolean),
    CaseKey("approve", "tools that ask a person go ahead", {"anyOf": [BOOLEAN, NAMES]}, values.approve),
    CaseKey("clarification", "the clarifying tool is available", BOOLEAN, values.boolean),
    CaseKey("variants", "paraphrases of the prompt", {"type": "array", "items": TEXT}, values.text_list),
    CaseKey("tags", "words to select by, with -m", NAMES, values.tags),
    CaseKey("owner", "who looks after the case", NAME, values.name),
    CaseKey("metadata", "any map, kept in no report", {"type": "object"}, values.mapping),
    CaseKey("skip", "do not run: true or the reason", {"type": ["boolean", "string"]}, values.skip),
    CaseKey("xfail", "expected to fail: true, the reason, or {models, reason}", XFAIL, values.xfail),
    CaseKey("marks", "pytest marks: name or name(arguments)", TEXTS, values.marks),
    CaseKey("version", "1", {"const": 1}, values.version),
)
"""Every key of a case, in the order of the documentation."""

CANONICAL: Mapping[str, str] = {alias: key.name for key in KEYS for alias in (key.name, *key.aliases)}
"""Each accepted spelling of a key -> its name."""

FILE_KEYS = ("version", "defaults", "cases", "budget")
"""What may stand beside ``cases:``."""

TURN_KEYS = ("say", "sql", "expected", "expected_response", "assertions", "expect")
NOT_DEFAULTS = ("name", "id", "prompt", "input", "variants", "version")
"""Keys that say which case it is, so that ``defaults`` cannot hold them."""
ADDED = ("tags", "marks", "setup")
"""Lists to which a case adds its own to the defaults'."""
MERGED = ("vars", "metadata", "comparison")
"""Maps that are merged with the defaults' key by key."""
