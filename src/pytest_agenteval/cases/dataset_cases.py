"""dazense's ``datasets/*/dataset.yaml``: ``eval_test_cases`` as cases, their expectation as checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_agenteval.cases import field_readers as values
from pytest_agenteval.cases.builder import SuiteRules, case_id
from pytest_agenteval.cases.fault_locations import locate
from pytest_agenteval.cases.hashing import ask_hash, case_hash
from pytest_agenteval.cases.model import Case, ParsedCheck, Turn
from pytest_agenteval.cases.yaml_reader import MappingEntry, Node, Reader, found
from pytest_agenteval.support.text import closest

DECISIONS = ("allow", "block", "needs_clarification")
EXPECTED = (
    "outcome", "tool", "model_name", "measure", "result_range", "check_failed", "guidance_rules_include",
)  # fmt: skip
_WORDS = {"decision": "outcome", "rules": "guidance_rules_include", "metrics": "measure"}
POLICY = "policies/policy.yml"
"""Where dazense keeps the policy, relative to the project."""


def dataset_cases(reader: Reader, root: Node, rules: SuiteRules, project: Path) -> list[Case]:
    """Return the governance cases of a dataset file; what is wrong goes to ``reader``."""
    if root.id != "mapping":
        reader.error(root, f"a dataset must be a mapping of keys, found {found(root)}")
        return []
    entries = reader.entries(root)
    listed = entries.get("eval_test_cases")
    if listed is None or listed.value.tag.endswith(":null"):
        return []
    if listed.value.id != "sequence":
        reader.error(listed.value, f"eval_test_cases: expected a list, found {found(listed.value)}")
        return []
    bundle = values.name(reader, entries["bundle_id"].value, "bundle_id") if "bundle_id" in entries else None
    base: dict[str, Any] = {"bundle": bundle} if bundle else {}
    if (project / POLICY).is_file():
        base["policy"] = POLICY
    database = _database(reader, entries.get("warehouse"), rules)
    made = (_case(reader, node, rules, base, database) for node in listed.value.value)
    return [case for case in made if case is not None]


def _database(reader: Reader, entry: MappingEntry | None, rules: SuiteRules) -> str | None:
    """Return the warehouse's database where it is configured here; ``agenteval validate`` judges it."""
    if entry is None or entry.value.id != "mapping":
        return None
    pair = reader.entries(entry.value).get("database_id")
    name = pair.value.value if pair is not None and pair.value.id == "scalar" else None
    return name if rules.databases is not None and name in rules.databases else None


def _case(
    reader: Reader, node: Node, rules: SuiteRules, base: Mapping[str, Any], database: str | None
) -> Case | None:
    if node.id != "mapping":
        reader.error(node, f"a case of eval_test_cases must be a mapping, found {found(node)}")
        return None
    before = reader.errors
    entries = reader.entries(node)
    for key in ("id", "prompt", "expected"):
        if key not in entries:
            reader.error(node, f"eval_test_cases: missing {key}")
    if reader.errors > before:
        return None
    name = values.name(reader, entries["id"].value, "id") or ""
    prompt = values.text(reader, entries["prompt"].value, "prompt") or ""
    category = values.name(reader, entries["category"].value, "category") if "category" in entries else None
    expected = _expected(reader, entries["expected"].value)
    if reader.errors > before:
        return None
    raw = _raw_checks(expected, base)
    checks = _checks(reader, raw, entries["expected"].value, rules)
    if reader.errors > before:
        return None
    case = Case(
        path=reader.path,
        line=node.start_mark.line + 1,
        column=node.start_mark.column + 1,
        name=name,
        id=case_id(name),
        turns=(Turn(prompt),),
        database=database,
        assertions=tuple(checks),
        outcome_judged=False,
        clarification=expected.get("outcome") == "needs_clarification",
        tags=(category,) if category else (),
        metadata={"bundle": base["bundle"]} if "bundle" in base else {},
    )
    return replace(case, case_hash=case_hash(case, raw), ask_hash=ask_hash(case))


def _expected(reader: Reader, node: Node) -> dict[str, Any]:
    """Return what the case expects, by the words of dazense."""
    if node.id != "mapping":
        reader.error(node, f"expected: a mapping with outcome is needed, found {found(node)}")
        return {}
    entries = reader.entries(node)
    for name, entry in entries.items():
        if near := None if name in EXPECTED else closest(name, EXPECTED, 0.75):
            reader.error(entry.key, f"expected: unknown key {name!r}, did you mean {near!r}?")
        elif name not in EXPECTED:
            reader.warn(entry.key, f"expected: {name!r} is not checked; known: {', '.join(EXPECTED)}")
    given = {name: reader.plain(entries[name].value) for name in EXPECTED if name in entries}
    if "outcome" in entries:
        values.one_of(*DECISIONS)(reader, entries["outcome"].value, "expected: outcome")
    if "result_range" in given and not _is_range(given["result_range"]):
        place = entries["result_range"].value
        reader.error(place, f"expected: result_range must be [low, high], found {found(place)}")
    if "measure" in given and "model_name" not in given:
        reader.error(entries["measure"].key, "expected: measure needs model_name beside it")
    if not given:
        reader.error(node, "expected: nothing in it is checked; give an outcome")
    return given


def _is_range(value: Any) -> bool:
    numbers = isinstance(value, list) and all(
        isinstance(entry, int | float) and not isinstance(entry, bool) for entry in value
    )
    return numbers and len(value) == 2 and value[0] <= value[1]


def _raw_checks(expected: Mapping[str, Any], base: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the expectation as entries of ``assertions``."""
    decided: dict[str, Any] = {"type": "governance", **base}
    names = {"outcome": "decision", "check_failed": "check_failed", "guidance_rules_include": "rules"}
    decided |= {field: expected[word] for word, field in names.items() if word in expected}
    raw = [decided] if len(decided) > 1 else []
    tool, model, measure = expected.get("tool"), expected.get("model_name"), expected.get("measure")
    if model is not None and measure is not None:
        metric: dict[str, Any] = {"type": "metric", "metrics": [f"{model}.{measure}"]}
        raw.append(metric | ({"tool": tool} if tool is not None else {}))
    elif tool is not None:
        raw.append({"type": "tool_call", "tool": tool})
    if "result_range" in expected:
        low, high = expected["result_range"]
        raw.append({"type": "value", "min": low, "max": high})
    return raw


def _checks(
    reader: Reader, raw: Sequence[Mapping[str, Any]], node: Node, rules: SuiteRules
) -> list[ParsedCheck]:
    checks: list[ParsedCheck] = []
    for entry in raw:
        check = rules.checks.parse(entry)
        if isinstance(check, list):
            for fault in check:
                # the fault speaks of the check's field, the place is that of dazense's word
                words = [_WORDS.get(str(step), step) for step in fault.path]
                place = locate(reader, node, replace(fault, path=tuple(words)))
                reader.error(place, f"expected: {fault.text}")
        else:
            checks.append(check)
    return checks
