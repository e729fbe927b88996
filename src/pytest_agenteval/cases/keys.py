"""The table of keys a case may have: the loader, the JSON Schema and the tests of the docs come from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_agenteval.cases import values
from pytest_agenteval.cases.values import Read

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
NAME: Schema = {"type": ["string", "number", "boolean"]}
BOOLEAN: Schema = {"type": "boolean"}
TEXTS: Schema = {"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}]}
NAMES: Schema = {"anyOf": [NAME, {"type": "array", "items": NAME}]}
MODEL: Schema = {"type": "string", "pattern": r"^[^\s:,]+:\S+$"}
MODELS: Schema = {"type": "array", "items": MODEL}
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
class Key:
    """One key: how it is read (``None``: by the loader itself), where it lands in ``Case``."""

    name: str
    help: str
    schema: Schema
    read: Read | None = None
    field: str | None = None
    aliases: tuple[str, ...] = ()


KEYS: tuple[Key, ...] = (
    Key("name", "what the case is called", NAME, values.name),
    Key("id", "its pytest id, where the name will not do", NAME, values.name),
    Key("description", "a note for people", NAME, values.name),
    Key(
        "prompt",
        "what the user says: a text, or a list of turns",
        {"anyOf": [TEXT, {"type": "array", "items": TURN, "minItems": 1}]},
        aliases=("question", "say"),
    ),
    Key("input", "any value for an agent that is a function", {}, values.anything),
    Key("agent", "pkg.mod:name, the agent of this case", TEXT, values.reference),
    Key("sql", "reference SQL, or a list of accepted ones", TEXTS),
    Key("sql_file", "file with the reference SQL, beside the case", TEXTS),
    Key("expected", "the expected rows, written here or in a CSV file", EXPECTED),
    Key("expected_response", "what the answer says: a text or a list of facts", TEXTS),
    Key("database", "the connection the reference runs on", NAME, values.name),
    Key("assertions", "further checks", ASSERTIONS),
    Key("expect", "checks in short", EXPECT),
    Key("comparison", "options of the comparison", {"$ref": "#/$defs/comparison"}),
    Key("outcome", "what should happen", {"enum": list(OUTCOMES)}, values.one_of(*OUTCOMES)),
    Key("models", "run only with these models", MODELS, values.models),
    Key("k", "attempts", {"type": "integer", "minimum": 1}, values.whole(1)),
    Key("pass", "how many of the attempts must pass", PASS, values.pass_rule, "pass_rule"),
    Key(
        "timeout",
        "seconds an attempt may take",
        {"type": "number", "exclusiveMinimum": 0},
        values.amount(above=True),
    ),
    Key("budget", "what one attempt may use", BUDGET, values.budget),
    Key("as", "who asks", {"anyOf": [NAME, {"type": "object"}]}, values.caller, "caller"),
    Key("vars", "values for ${name} in the texts", {"type": "object"}, values.mapping),
    Key("context", "text for the agent beside the prompt", TEXT),
    Key("setup", "fixtures to request", NAMES, values.names),
    Key("isolate", "a fresh copy of the data for each attempt", BOOLEAN, values.boolean),
    Key("approve", "tools that ask a person go ahead", {"anyOf": [BOOLEAN, NAMES]}, values.approve),
    Key("clarification", "the clarifying tool is available", BOOLEAN, values.boolean),
    Key("variants", "paraphrases of the prompt", {"type": "array", "items": TEXT}, values.text_list),
    Key("tags", "words to select by, with -m", NAMES, values.tags),
    Key("owner", "who looks after the case", NAME, values.name),
    Key("metadata", "any map, kept in no report", {"type": "object"}, values.mapping),
    Key("skip", "do not run: true or the reason", {"type": ["boolean", "string"]}, values.skip),
    Key("xfail", "expected to fail: true, the reason, or {models, reason}", XFAIL, values.xfail),
    Key("marks", "pytest marks: name or name(arguments)", TEXTS, values.marks),
    Key("version", "1", {"const": 1}, values.version),
)
"""Every key of a case, in the order of the documentation."""

BY_NAME: Mapping[str, Key] = {key.name: key for key in KEYS}
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
