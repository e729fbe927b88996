"""One case out of the entries of one mapping (and those of ``defaults``)."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pytest_agenteval.cases import field_readers as values
from pytest_agenteval.cases.expected_tables import expected_table
from pytest_agenteval.cases.fault_locations import ParseComparison, comparison_faults, find_key, locate
from pytest_agenteval.cases.fields import ADDED, KEYS, MERGED, OUTCOMES, TURN_KEYS
from pytest_agenteval.cases.hashing import ask_hash, case_hash
from pytest_agenteval.cases.misnamed import missing_prompt
from pytest_agenteval.cases.model import Budget, Case, ParsedCheck, Turn
from pytest_agenteval.cases.yaml_reader import (
    MappingEntry,
    Node,
    Reader,
    found,
    is_blank,
    place_of,
    read_text,
)
from pytest_agenteval.databases.sql_syntax import SqlFault, sql_fault
from pytest_agenteval.support.faults import Fault
from pytest_agenteval.support.text import counted, did_you_mean

_VARIABLE = re.compile(r"(\$?)\$\{\s*([^\s{}]+)\s*\}")
_NOT_IN_IDS = re.compile(r"[^\w.+/-]+")


class CheckParser(Protocol):
    """What turns data into checks (``checks.registry.Registry``)."""

    def parse(self, raw: Any) -> ParsedCheck | list[Fault]:
        """Return one entry of ``assertions``, or all of its faults."""
        ...

    def parse_expect(self, raw: Any) -> tuple[tuple[ParsedCheck, ...], list[Fault]]:
        """Return the checks of Tent's ``expect``, and its faults."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRules:
    """What the rest of the project says about its cases.

    ``databases`` are the configured names (``None``: a fixture defines them, not known yet);
    ``marks`` the registered marks, which no tag may be called. ``speaks``: the project mentions this plugin
    (``discovery.ClaimRules``), so that a key of other programs' data is a slip.
    ``hint`` is what is added where a database is not known; ``dialects`` the SQL that databases speak.
    """

    checks: CheckParser
    parse_comparison: ParseComparison | None = None
    databases: Collection[str] | None = None
    marks: Collection[str] = ()
    strict: bool = False
    speaks: bool = True
    hint: str = ""
    dialects: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CaseSource:
    """A mapping that stands for a case. ``several``: the file may hold more of them."""

    node: Node
    own: Mapping[str, MappingEntry]
    defaults: Mapping[str, MappingEntry]
    several: bool = False
    file_budget: Budget | None = None


def case_id(name: str) -> str:
    """Return the pytest id of a name: NFC, runs of other characters than letters, digits, _.+/- as ``_``."""
    normal = unicodedata.normalize("NFC", name)
    return _NOT_IN_IDS.sub("_", normal).strip("_") or "case"


class CaseBuilder:
    """Builds the cases of one source: the base case, then its variants."""

    def __init__(self, reader: Reader, source: CaseSource, rules: SuiteRules) -> None:
        self._reader = reader
        self._source = source
        self._rules = rules
        self._raw_checks: list[Any] = []
        self._variables: dict[str, str] | None = None
        self._judged_turn = False

    def build(self) -> list[Case]:
        """Return the case and its variants; nothing after an error was reported."""
        before = self._reader.errors
        simple = self._simple()
        self._variables = self._texts_of_vars()
        fields = {**simple, **self._texts(), **self._checked()}
        self._check_database(fields)
        self._check_tags()
        if self._reader.errors > before:
            return []
        return list(self._finished(fields))

    def _entry(self, key: str) -> MappingEntry | None:
        return self._source.own.get(key) or self._source.defaults.get(key)

    def _each(self, key: str) -> list[MappingEntry]:
        """Return the defaults' entry of a key and the case's own, in this order."""
        places = (self._source.defaults.get(key), self._source.own.get(key))
        return [entry for entry in places if entry is not None]

    def _simple(self) -> dict[str, Any]:
        """Return the keys that one reader reads, by field of ``Case``."""
        fields: dict[str, Any] = {}
        for key in KEYS:
            if key.read is None or (entry := self._entry(key.name)) is None or key.name == "version":
                continue
            read = [key.read(self._reader, part.value, key.name) for part in self._each(key.name)]
            if key.name in ADDED:
                value: Any = _union(read)
            elif key.name in MERGED:
                value = {name: entry for part in read for name, entry in part.items()}
            else:
                value = key.read(self._reader, entry.value, key.name) if len(read) > 1 else read[0]
            if value is not None:
                fields[key.field or key.name] = value
        return fields

    def _texts(self) -> dict[str, Any]:
        """Return prompt, context, reference SQL, expected rows and facts."""
        reader, fields = self._reader, dict[str, Any]()
        fields["turns"] = self._turns()
        if (entry := self._entry("context")) is not None:
            fields["context"] = self._filled(entry.value, values.text(reader, entry.value, "context"))
        fields["sql"] = self._sql()
        if (entry := self._entry("sql") or self._entry("sql_file")) is not None:
            fields["sql_place"] = place_of(entry.key)
        if (entry := self._entry("expected")) is not None:
            if other := self._entry("sql") or self._entry("sql_file"):
                line = other.key.start_mark.line + 1
                reader.error(entry.key, f"expected and {other.key.value} (line {line}): keep one of them")
            fields["expected"] = expected_table(reader, entry.value)
        # Lightdash says to leave it blank where a person is to look at the answer
        if (entry := self._entry("expected_response")) is not None and not is_blank(entry.value):
            fields["expected_response"] = self._facts(entry.value)
        return fields

    def _facts(self, node: Node) -> tuple[str, ...]:
        return self._filled_all(node, values.texts(self._reader, node, "expected_response"))

    def _turns(self) -> tuple[Turn, ...]:
        reader, entry = self._reader, self._entry("prompt")
        if entry is None:
            if self._entry("input") is None:
                reader.error(*missing_prompt(self._source.node, reader.entries(self._source.node)))
            return ()
        if entry.value.id != "sequence":
            said = values.text(reader, entry.value, entry.key.value)
            return (Turn(self._filled(entry.value, said) or ""),)
        if not entry.value.value:
            reader.error(entry.value, f"{entry.key.value} is empty")
        return tuple(self._turn(node, number) for number, node in enumerate(entry.value.value))

    def _turn(self, node: Node, number: int) -> Turn:
        reader = self._reader
        if node.id != "mapping":
            return Turn(self._filled(node, values.text(reader, node, "prompt")) or "")
        entries = reader.entries(node)
        for name, entry in entries.items():
            if name not in TURN_KEYS:
                reader.error(entry.key, f"unknown key {name!r} of a turn{did_you_mean(name, TURN_KEYS)}")
        if "say" not in entries:
            reader.error(node, "a turn needs say, the text of the user")
            return Turn("")
        sql = entries.get("sql")
        expected = entries.get("expected")
        response = entries.get("expected_response")
        say = entries["say"].value
        self._raw_checks.append(number)
        checks = self._checks(entries.get("assertions"), entries.get("expect"), of_turn=True)
        stated = response is not None and not is_blank(response.value)
        self._judged_turn |= stated or any(map(_judges_words, checks))
        return Turn(
            say=self._filled(say, values.text(reader, say, "say")) or "",
            sql=self._statements(sql.value) if sql else (),
            expected=expected_table(reader, expected.value) if expected else None,
            expected_response=self._facts(response.value)
            if response and not is_blank(response.value)
            else (),
            assertions=checks,
        )

    def _sql(self) -> tuple[str, ...]:
        reader, entry, file = self._reader, self._entry("sql"), self._entry("sql_file")
        if entry is not None and file is not None:
            line = entry.key.start_mark.line + 1
            reader.error(file.key, f"sql_file and sql (line {line}): keep one of them")
        if entry is not None:
            return self._statements(entry.value)
        if file is None:
            return ()
        written = values.names(reader, file.value, "sql_file")
        read = [self._sql_of(file.value, name) for name in written]
        return self._filled_all(file.value, tuple(sql for sql in read if sql))

    def _statements(self, node: Node) -> tuple[str, ...]:
        """Return the statements of an ``sql`` key, each looked at by a parser where one knows its SQL."""
        if node.id == "sequence" and not node.value:
            self._reader.error(node, "sql is empty")
        parts = node.value if node.id == "sequence" else [node]
        read = [(part, values.text(self._reader, part, "sql")) for part in parts]
        filled = [(part, self._filled(part, text) or "") for part, text in read if text is not None]
        for part, sql in filled:
            if sql and (fault := sql_fault(sql, self._dialect())) is not None:
                self._reader.error(
                    self._reader.place_in(part, fault.line, fault.column), f"sql {_said(fault)}"
                )
        return tuple(sql for _, sql in filled)

    def _dialect(self) -> str | None:
        """Return the SQL of the case's database, where it is known."""
        known, entry = self._rules.dialects, self._entry("database")
        if entry is None:
            return next(iter(known.values())) if len(self._rules.databases or ()) == 1 and known else None
        return known.get(entry.value.value) if entry.value.id == "scalar" else None

    def _sql_of(self, node: Node, name: str) -> str | None:
        path = self._reader.beside(node, "sql_file", name)
        if path is None:
            return None
        try:
            text, problem = read_text(path)
        except OSError as wrong:
            self._reader.error(node, f"sql_file: cannot read {name!r} beside the case file: {wrong.strerror}")
            return None
        if problem is not None:
            self._reader.error(node, f"sql_file: {name}:{problem.line}:{problem.column}: {problem.text}")
        elif not text.strip():
            self._reader.error(node, f"sql_file: {name} is empty")
        elif "${" not in text and (fault := sql_fault(text, self._dialect())) is not None:
            self._reader.error(node, f"sql_file: {name}:{fault.line}:{fault.column}: sql {_said(fault)}")
        return text

    def _texts_of_vars(self) -> dict[str, str] | None:
        """Return each variable as the text that replaces it; ``None`` where the case has no ``vars``."""
        entries = [entry for entry in self._each("vars") if entry.value.id == "mapping"]
        if not entries:
            return None
        nodes = [pair for entry in entries for pair in self._reader.entries(entry.value).items()]
        return {name: pair.value.value for name, pair in nodes if pair.value.id == "scalar"}

    def _filled_all(self, node: Node, texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(self._filled(node, text) or "" for text in texts)

    def _filled(self, node: Node, text: str | None) -> str | None:
        """Return ``text`` with ``${name}`` replaced; ``$${name}`` stays as ``${name}``."""
        if text is None or "${" not in text:
            return text
        if self._variables is None:
            if (used := _VARIABLE.search(text)) and not used[1]:
                self._reader.warn(
                    node,
                    f"{used[0]} stays as it is: the case has no vars; "
                    f"where it is meant, write $${{{used[2]}}} and vars: {{}}",
                )
            return text
        known = self._variables

        def value(match: re.Match[str]) -> str:
            if match[1]:
                return match[0][1:]
            if match[2] not in known:
                self._reader.error(node, f"unknown variable ${{{match[2]}}}{did_you_mean(match[2], known)}")
            return known.get(match[2], "")

        return _VARIABLE.sub(value, text)

    def _checked(self) -> dict[str, Any]:
        """Return checks, comparison and outcome."""
        expect = self._entry("expect")
        fields: dict[str, Any] = {"assertions": self._checks(self._entry("assertions"), expect)}
        if (outcome := self._outcome_of(expect)) is not None:
            fields["outcome"] = outcome
        if (
            outcome is None
            and self._entry("outcome") is None
            and self._says_what_is_said(fields["assertions"])
        ):
            fields["outcome_judged"] = False
        if merged := self._each("comparison"):
            fields["comparison"] = self._comparison(merged)
        return fields

    def _says_what_is_said(self, checks: Iterable[ParsedCheck]) -> bool:
        """Return whether something judges the answer's words; the turns have been read."""
        response = self._entry("expected_response")
        stated = response is not None and not is_blank(response.value)
        return stated or self._judged_turn or any(_judges_words(check) for check in checks)

    def _checks(
        self, assertions: MappingEntry | None, expect: MappingEntry | None, of_turn: bool = False
    ) -> tuple[ParsedCheck, ...]:
        checks: list[ParsedCheck] = []
        if assertions is not None:
            checks += self._assertions(assertions.value)
        if expect is not None:
            raw = self._reader.plain(expect.value)
            self._raw_checks.append(raw)
            made, faults = self._rules.checks.parse_expect(raw)
            self._report(faults, expect.value)
            checks += made
            if of_turn and (outcome := find_key(self._reader, expect.value, "outcome")):
                self._reader.error(outcome.key, "outcome belongs to the case: a turn's own is not observed")
        return tuple(checks)

    def _assertions(self, node: Node) -> Iterator[ParsedCheck]:
        reader = self._reader
        if node.id != "sequence":
            if not node.tag.endswith(":null"):
                reader.error(node, f"assertions: expected a list of checks, found {found(node)}")
            return
        for entry in node.value:
            raw = reader.plain(entry)
            self._raw_checks.append(raw)
            check = self._rules.checks.parse(raw)
            if isinstance(check, list):
                self._report(check, entry)
            else:
                self._check_turn(check, entry)
                yield check

    def _check_turn(self, check: ParsedCheck, node: Node) -> None:
        prompt = self._entry("prompt")
        turns = len(prompt.value.value) if prompt is not None and prompt.value.id == "sequence" else 1
        if check.turn is not None and check.turn >= turns:
            count = f"the prompt has {counted(turns, 'turn')}"
            place = find_key(self._reader, node, "turn")
            self._reader.error(place.value if place else node, f"turn {check.turn}: {count}, counted from 0")

    def _outcome_of(self, expect: MappingEntry | None) -> str | None:
        entry = find_key(self._reader, expect.value, "outcome") if expect else None
        if entry is None:
            return None
        if (own := self._entry("outcome")) is not None:
            line = own.key.start_mark.line + 1
            self._reader.error(entry.key, f"outcome is given twice, here and on line {line}")
        value = values.one_of(*OUTCOMES)(self._reader, entry.value, "outcome")
        return None if value is None else str(value)

    def _comparison(self, entries: Sequence[MappingEntry]) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for entry in entries:
            merged |= values.mapping(self._reader, entry.value, "comparison")
        for fault in comparison_faults(self._rules.parse_comparison, merged):
            # the entry that names the option last is the one that counts
            home = next(
                (
                    e
                    for e in reversed(entries)
                    if fault.path and find_key(self._reader, e.value, fault.path[0])
                ),
                entries[-1],
            )
            self._report([fault], home.value, "comparison: ")
        return merged

    def _report(self, faults: Sequence[Fault], node: Node, prefix: str = "") -> None:
        for fault in faults:
            place = locate(self._reader, node, fault)
            say = self._reader.warn if fault.severity == "warning" else self._reader.error
            say(place, prefix + fault.text)

    def _check_database(self, fields: Mapping[str, Any]) -> None:
        known, name, entry = self._rules.databases, fields.get("database"), self._entry("database")
        if known is None:
            return
        if name is not None and entry is not None and name not in known:
            hint = did_you_mean(name, known) if known else (
                "; none is configured: name it in the project file, in ini agenteval_databases, or define "
                "a fixture agenteval_databases"
            )  # fmt: skip
            self._reader.error(entry.value, f"unknown database {name!r}{hint}{self._rules.hint}")
        has_sql = fields["sql"] or any(turn.sql for turn in fields["turns"])
        if name is None and entry is None and has_sql and len(known) > 1:
            place = self._entry("sql") or self._entry("sql_file")
            names = ", ".join(sorted(known))
            self._reader.error(
                place.key if place else self._source.node,
                f"missing database: the case has sql, and there are several databases: {names}",
            )

    def _check_tags(self) -> None:
        lists = [entry.value for entry in self._each("tags")]
        leaves = [leaf for entry in lists for leaf in (entry.value if entry.id == "sequence" else [entry])]
        for node in leaves:
            if node.id == "scalar" and node.value in self._rules.marks:
                self._reader.error(node, f"tag {node.value!r} is a pytest mark; write it under marks:")

    def _finished(self, fields: dict[str, Any]) -> Iterator[Case]:
        fields["clarification"] = fields.get("clarification", False) or fields.get("outcome") == "clarify"
        fields["name"] = fields.get("name") or fields.get("id") or self._default_name(fields)
        given = fields.pop("id", None) or fields["name"]
        base = Case(
            path=self._reader.path,
            line=self._source.node.start_mark.line + 1,
            column=self._source.node.start_mark.column + 1,
            id=case_id(given),
            file_budget=self._source.file_budget,
            **{name: value for name, value in fields.items() if name != "variants"},
        )
        yield self._hashed(base)
        entry = self._entry("variants")
        if entry is None or not fields.get("variants"):
            return
        if len(base.turns) != 1:
            self._reader.error(entry.key, "variants: need a prompt that is one text")
            return
        for number, text in enumerate(fields["variants"], start=1):
            turn = replace(base.turns[0], say=self._filled(entry.value, text) or "")
            yield self._hashed(
                replace(
                    base,
                    name=f"{base.name}-v{number}",
                    id=f"{base.id}-v{number}",
                    turns=(turn,),
                    variant_of=base.name,
                )
            )

    def _default_name(self, fields: Mapping[str, Any]) -> str:
        if not self._source.several:
            return self._reader.path.stem
        if fields["turns"]:
            return " ".join(fields["turns"][0].say.split())[:60].rstrip()
        return json.dumps(fields.get("input"), ensure_ascii=False, default=str)[:60]

    def _hashed(self, case: Case) -> Case:
        return replace(case, case_hash=case_hash(case, self._raw_checks), ask_hash=ask_hash(case))


def _judges_words(check: ParsedCheck) -> bool:
    """Return whether a check that decides says what the answer's words should be, or that it asks."""
    return check.type in ("factuality", "judge", "asked") and check.severity == "fail"


def _said(fault: SqlFault) -> str:
    """Return ``holds no statement``, or ``cannot be read: syntax error at or near "x"``."""
    return fault.text if fault.text.startswith("holds") else f"cannot be read: {fault.text}"


def _union(parts: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    kept: list[Any] = []
    for entry in (entry for part in parts for entry in part or ()):
        if entry not in kept:
            kept.append(entry)
    return tuple(kept)
