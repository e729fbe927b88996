"""Imported items as a case file, and a second import into a file that people have edited since.

A file is written once; later imports append new cases and, when asked, replace the prompt and SQL of
cases whose text is still the one that was taken. Every other byte stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_agenteval.authoring.importing.items import ImportedItem, normalised, taken
from pytest_agenteval.authoring.importing.numbers import decimals_of
from pytest_agenteval.authoring.importing.sources import ImportFailed

HEAD = "# made by agenteval import: nobody has approved these cases yet, so they never count as passed\n"


@dataclass(frozen=True, slots=True)
class WrittenCase:
    """A case as it stands in a file: its keys, and where its prompt and SQL stand in the text."""

    keys: Mapping[str, Any]
    prompt: str
    sql: tuple[str, ...]
    source: Mapping[str, Any]
    spans: Mapping[str, tuple[int, int, int]]
    """``prompt`` and ``sql``: first and last character of the value, and the column of its key."""

    @property
    def identity(self) -> str:
        """The id that the source gave it, else its question."""
        return str(self.source.get("id") or "") or normalised(self.source.get("question") or self.prompt)


@dataclass(slots=True)
class UpdatePlan:
    """What a second import finds."""

    new: list[ImportedItem] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    upstream: list[tuple[WrittenCase, ImportedItem]] = field(default_factory=list)
    here: list[str] = field(default_factory=list)
    conflicts: list[tuple[WrittenCase, ImportedItem]] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)


def case_keys(item: ImportedItem, name: str, file: str, form: str) -> dict[str, Any]:
    """Return the case of an item, its keys in the order in which a file holds them."""
    held: dict[str, Any] = {"name": name, "prompt": item.prompt}
    if item.variants:
        held["variants"] = list(item.variants)
    if item.database:
        held["database"] = item.database
    if item.sql:
        held["sql"] = item.sql[0] if len(item.sql) == 1 else list(item.sql)
    if "expected_response" in item.keys:
        held["expected_response"] = item.keys["expected_response"]
    checks = list(item.keys.get("assertions") or [])
    if isinstance(item.answer, int | float):
        checks.insert(0, _value_check(item.answer))
    elif item.answer is not None and "expected_response" not in held:
        held["expected_response"] = item.answer
    if item.refuse:
        held["outcome"] = "refuse"
    if checks:
        held["assertions"] = checks
    if item.owner:
        held["owner"] = item.owner
    if item.tags:
        held["tags"] = [re.sub(r"\W+", "_", tag).strip("_") or "tag" for tag in item.tags]
    held |= {key: value for key, value in item.keys.items() if key not in ("assertions", "expected_response")}
    if item.note:
        held["skip"] = f"import: {item.note}"
    held["metadata"] = _metadata(item, file, form)
    return held


def _value_check(answer: int | float) -> dict[str, Any]:
    """Return a check of a number: whole ones exactly, others to the last digit that was written."""
    if isinstance(answer, int):
        return {"type": "value", "equals": answer}
    half = 0.5 * 10.0 ** -decimals_of(repr(answer))
    return {"type": "value", "approx": answer, "rtol": float(f"{half / abs(answer):.3g}") if answer else 0.0}


def _metadata(item: ImportedItem, file: str, form: str) -> dict[str, Any]:
    source: dict[str, Any] = {"format": form, "file": file, "place": item.place, "taken": item.taken}
    if item.key:
        source["id"] = item.key
    if original := item.metadata.get("source_sql"):
        source["sql"] = original
    held: dict[str, Any] = {
        "reviewed": {**item.reviewed, "sha": item.taken[:12]} if item.reviewed else False,
        "source": source,
    }
    if item.known:
        held["known"] = True
    return held | {
        key: value for key, value in item.metadata.items() if key != "source_sql" and key not in held
    }


def unique_names(items: Sequence[ImportedItem], used: Iterable[str] = ()) -> list[str]:
    """Return a name per item: its own, else the beginning of its question; ``x 2`` where it is taken."""
    seen = {_folded(name) for name in used}
    names = []
    for item in items:
        base = " ".join((item.name or item.prompt).split())[:60].strip() or "case"
        name, number = base, 2
        while _folded(name) in seen:
            name, number = f"{base} {number}", number + 1
        seen.add(_folded(name))
        names.append(name)
    return names


def _folded(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_").casefold()


def file_text(cases: Sequence[Mapping[str, Any]]) -> str:
    """Return a new case file."""
    databases = {case.get("database") for case in cases}
    shared = databases.pop() if len(databases) == 1 else None
    text = HEAD + "version: 1\n"
    if shared:
        text += _dumped({"defaults": {"database": shared}})
        cases = [{key: value for key, value in case.items() if key != "database"} for case in cases]
    return text + "cases:\n" + "".join(entry_text(case, 2) for case in cases)


def entry_text(case: Mapping[str, Any], indent: int) -> str:
    """Return one entry of a list of cases, its dash at ``indent``."""
    lines = _dumped([dict(case)]).splitlines(keepends=True)
    return "".join((" " * indent + line) if line.strip() else line for line in lines)


def _dumped(value: Any) -> str:
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: Any, value: str) -> Any:
        block = "\n" in value and not re.search(r"[ \t]+$|\A[ \n]", value, re.MULTILINE) and _printable(value)
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if block else None)

    Dumper.add_representer(str, text)
    return str(yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100))


def _printable(text: str) -> bool:
    return all(sign.isprintable() or sign == "\n" for sign in text)


def read_cases(path: Path) -> tuple[str, list[WrittenCase]]:
    """Return the text of a case file and the cases in it that were imported.

    Raises ``ImportFailed`` for a file that is not YAML with a list of ``cases``.
    """
    import yaml

    text = path.read_bytes().decode("utf-8")
    try:
        root = yaml.compose(text, Loader=yaml.CSafeLoader)
        document = yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as wrong:
        raise ImportFailed(f"{path}: {' '.join(str(wrong).split())}") from None
    pairs = root.value if isinstance(root, yaml.MappingNode) else []
    listed = next((value for key, value in pairs if key.value == "cases"), None)
    if not isinstance(listed, yaml.SequenceNode):
        raise ImportFailed(f"{path}: is there, and is not a file of cases; name another folder with --into")
    cases = []
    for node, keys in zip(listed.value, document["cases"], strict=True):
        source = ((keys or {}).get("metadata") or {}).get("source") if isinstance(keys, Mapping) else None
        if not isinstance(source, Mapping):
            continue
        held = keys.get("sql")
        sql = (held,) if isinstance(held, str) else tuple(held or ())
        spans = {
            key.value: (value.start_mark.index, value.end_mark.index, key.start_mark.column)
            for key, value in node.value
            if key.value in ("prompt", "sql")
        }
        cases.append(
            WrittenCase(
                keys, str(keys.get("prompt", "")), tuple(_same_text(part) for part in sql), source, spans
            )
        )
    return text, cases


def _same_text(sql: Any) -> str:
    return str(sql).rstrip("\n")


def plan_update(cases: Sequence[WrittenCase], items: Sequence[ImportedItem], file: str) -> UpdatePlan:
    """Compare what a file holds with what the source says now."""
    plan = UpdatePlan()
    mine = [case for case in cases if case.source.get("file") == file]
    held = {case.identity: case for case in mine}
    by_question = {normalised(case.prompt): case for case in mine}
    seen: set[int] = set()
    for item in items:
        case = held.get(item.identity) or by_question.get(normalised(item.prompt))
        if case is None or id(case) in seen:
            plan.new.append(item)
            continue
        seen.add(id(case))
        name = str(case.keys.get("name"))
        upstream = item.taken != case.source.get("taken")
        here = taken(case.prompt, case.sql) != case.source.get("taken")
        if upstream and here and taken(case.prompt, case.sql) != item.taken:
            plan.conflicts.append((case, item))
        elif upstream and not here:
            plan.upstream.append((case, item))
        else:
            (plan.here if here else plan.unchanged).append(name)
    plan.gone = [str(case.keys.get("name")) for case in mine if id(case) not in seen]
    return plan


def appended(text: str, cases: Sequence[Mapping[str, Any]]) -> str:
    """Return the text with cases at the end of its list. Raises ``ImportFailed`` where it is not last."""
    import yaml

    root: Any = yaml.compose(text, Loader=yaml.CSafeLoader)
    key, listed = root.value[-1]
    if key.value != "cases" or listed.flow_style:
        raise ImportFailed("its list of cases is not the last thing in the file, in block style")
    entry = listed.value[-1]
    line_start = text.rfind("\n", 0, entry.start_mark.index) + 1
    indent = len(text[line_start:]) - len(text[line_start:].lstrip(" "))
    newline = "\r\n" if "\r\n" in text else "\n"
    body = "".join(entry_text(case, indent) for case in cases).replace("\n", newline)
    return (text if text.endswith("\n") else text + newline) + body


def replaced(text: str, updates: Sequence[tuple[WrittenCase, ImportedItem]]) -> str:
    """Return the text with prompt, SQL and the hash of cases as the source has them now."""
    edits: list[tuple[int, int, str]] = []
    newline = "\r\n" if "\r\n" in text else "\n"
    for case, item in updates:
        old = str(case.source["taken"])
        place = text.find(old, min(span[0] for span in case.spans.values()))
        edits.append((place, place + len(old), item.taken))
        values: dict[str, Any] = {"prompt": item.prompt}
        if item.sql and "sql" in case.spans:
            values["sql"] = item.sql[0] if len(item.sql) == 1 else list(item.sql)
        for key, value in values.items():
            start, end, column = case.spans[key]
            body = _dumped({key: value}).split(":", 1)[1].lstrip(" ").rstrip("\n")
            lines = body.split("\n")
            shifted = newline.join(
                [lines[0], *((" " * column + line) if line else line for line in lines[1:])]
            )
            tail = text[start:end]
            edits.append((start, end, shifted + (newline if tail.endswith("\n") else "")))
    for start, end, fresh in sorted(edits, reverse=True):
        text = text[:start] + fresh + text[end:]
    return text
