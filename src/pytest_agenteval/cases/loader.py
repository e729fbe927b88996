"""A YAML file into cases: every fault of the file at once, each with its line and column."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_agenteval.cases.builder import CaseBuilder, CaseSource, CheckParser, SuiteRules
from pytest_agenteval.cases.discovery import FileClaim
from pytest_agenteval.cases.fault_locations import ParseComparison
from pytest_agenteval.cases.field_readers import budget as read_budget
from pytest_agenteval.cases.field_readers import version as read_version
from pytest_agenteval.cases.fields import CANONICAL, FILE_KEYS, NOT_DEFAULTS
from pytest_agenteval.cases.misnamed import meant_by
from pytest_agenteval.cases.model import Budget, Case
from pytest_agenteval.cases.recognition import signs_of
from pytest_agenteval.cases.yaml_reader import MappingEntry, Node, Reader, compose, found, read_text
from pytest_agenteval.errors import Problem
from pytest_agenteval.support.text import closest

PYTEST_MARKS = frozenset(
    ("skip", "skipif", "xfail", "parametrize", "usefixtures", "filterwarnings", "tryfirst", "trylast",
     "agenteval")
)  # fmt: skip
"""Marks that pytest and this plugin always have; no tag may be called like one."""

NAMED = FileClaim("cases", strict=True)
"""The claim of a file that was named: it must hold cases."""


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """The cases of a file, in file order, and everything that is wrong with it.

    ``cases`` holds the good ones even where others have errors; ``ours`` is false for a file that
    was only sniffed and holds no case after all.
    """

    cases: tuple[Case, ...] = ()
    problems: tuple[Problem, ...] = ()
    ours: bool = True

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that make the file a broken case file."""
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """The problems that are only to be reported."""
        return tuple(problem for problem in self.problems if problem.severity != "error")


def load_cases(
    path: Path,
    *,
    checks: CheckParser,
    claim: FileClaim = NAMED,
    strict: bool = False,
    databases: Collection[str] | None = None,
    marks: Collection[str] = PYTEST_MARKS,
    parse_comparison: ParseComparison | None = None,
    root: Path | None = None,
    hint: str = "",
    dialects: Mapping[str, str] | None = None,
) -> LoadedFile:
    """Return the cases of one file.

    ``checks`` parses ``assertions`` and ``expect`` (a ``checks.registry.Registry``). ``claim`` says why
    the file was taken for one of cases: a file that was not named and holds none is not ours, and the
    faults of one that was not named end with the reason. ``strict`` is ``--agent-strict``;
    ``databases`` the configured names, ``None`` where a fixture defines them; ``marks`` the registered
    marks; ``root`` the project's folder, where a dataset's policy lies (default: the folder above
    ``datasets``); ``hint`` what is added where a database is not known; ``dialects`` the SQL that
    databases speak, by name (sqlglot's words). Raises ``OSError`` for an unreadable file.
    """
    rules = SuiteRules(
        checks=checks,
        parse_comparison=parse_comparison,
        databases=databases,
        marks=marks,
        strict=strict,
        speaks=claim.speaks,
        hint=hint,
        dialects=dialects or {},
    )
    loaded = _load(path, rules, claim, root)
    if not claim.why:
        return loaded
    explained = tuple(replace(problem, text=problem.text + claim.why) for problem in loaded.problems)
    return replace(loaded, problems=explained)


def _load(path: Path, rules: SuiteRules, claim: FileClaim, root: Path | None) -> LoadedFile:
    text, problem = read_text(path)
    roots: list[Node] = []
    if problem is None:
        roots, problem = compose(path, text)
    if problem is not None:
        return LoadedFile(problems=(problem,))
    if not claim.strict and claim.kind == "cases" and not signs_of(roots).shown:
        return LoadedFile(ours=False)
    if not roots:
        return LoadedFile(problems=(Problem(path, 1, 1, "no case: the file is empty"),))
    reader = Reader(path, lines=text.splitlines(), root=root)
    if claim.kind == "dataset":
        from pytest_agenteval.cases.dataset_cases import dataset_cases

        cases = [
            case for node in roots for case in dataset_cases(reader, node, rules, root or path.parents[2])
        ]
    else:
        cases = _cases(reader, roots, rules)
    _refuse_twins(reader, cases)
    problems = sorted(reader.problems, key=lambda entry: (entry.line, entry.column))
    return LoadedFile(tuple(cases), tuple(problems))


def _cases(reader: Reader, roots: list[Node], rules: SuiteRules) -> list[Case]:
    several = len(roots) > 1
    sources = [source for node in roots for source in _sources(reader, node, rules, several)]
    return [case for source in sources for case in CaseBuilder(reader, source, rules).build()]


def _sources(reader: Reader, root: Node, rules: SuiteRules, several: bool) -> Iterator[CaseSource]:
    """Yield every mapping of a document that stands for a case."""
    if root.id == "sequence":
        if not root.value:
            reader.error(root, "no case: the list is empty")
        for entry in root.value:
            yield from _source(reader, entry, rules, {}, None, several=True)
    elif root.id == "mapping":
        entries = reader.entries(root)
        if "cases" in entries:
            yield from _listed(reader, entries, rules)
        else:
            yield from _source(reader, root, rules, {}, None, several)
    else:
        yield from _source(reader, root, rules, {}, None, several)


def _listed(reader: Reader, entries: dict[str, MappingEntry], rules: SuiteRules) -> Iterator[CaseSource]:
    """Yield the cases of ``cases:``, with ``defaults`` and the file's ``budget``."""
    for name, entry in entries.items():
        if name in CANONICAL and name not in FILE_KEYS:
            reader.error(entry.key, f"{name!r} beside cases: belongs to each case, or under defaults:")
        elif name not in FILE_KEYS:
            _unknown(reader, entry, rules, of_file=True)
    if "version" in entries:
        read_version(reader, entries["version"].value, "version")
    limit = read_budget(reader, entries["budget"].value, "budget") if "budget" in entries else None
    defaults: dict[str, MappingEntry] = {}
    if "defaults" in entries:
        node = entries["defaults"].value
        if node.id == "mapping":
            defaults = _canonical(reader, node, rules)
            for name in NOT_DEFAULTS:
                if (wrong := defaults.pop(name, None)) is not None:
                    reader.error(wrong.key, f"defaults: {wrong.key.value!r} belongs to each case")
        else:
            reader.error(node, f"defaults: expected a mapping, found {found(node)}")
    listed = entries["cases"].value
    if listed.id != "sequence":
        reader.error(listed, f"cases: expected a list, found {found(listed)}")
    elif not listed.value:
        reader.error(listed, "cases is empty")
    else:
        for entry in listed.value:
            yield from _source(reader, entry, rules, defaults, limit, several=True)


def _source(
    reader: Reader,
    node: Node,
    rules: SuiteRules,
    defaults: dict[str, MappingEntry],
    limit: Budget | None,
    several: bool,
) -> Iterator[CaseSource]:
    if node.id != "mapping":
        reader.error(node, f"a case must be a mapping of keys, found {found(node)}")
        return
    own = _canonical(reader, node, rules)
    if "version" in own:
        read_version(reader, own["version"].value, "version")
    yield CaseSource(node, own, defaults, several, limit)


def _canonical(reader: Reader, node: Node, rules: SuiteRules) -> dict[str, MappingEntry]:
    """Return known keys by their name; others are reported."""
    own: dict[str, MappingEntry] = {}
    for written, entry in reader.entries(node).items():
        name = CANONICAL.get(written)
        if name is None:
            _unknown(reader, entry, rules)
        elif name in own:
            first = own[name].key
            line = first.start_mark.line + 1
            reader.error(entry.key, f"{written!r} is the same key as {first.value!r} on line {line}")
        else:
            own[name] = entry
    return own


def _unknown(reader: Reader, entry: MappingEntry, rules: SuiteRules, of_file: bool = False) -> None:
    """Report an unknown key: an error when it stands for a known one, or under ``--agent-strict``."""
    name = entry.key.value
    if name.startswith("x-"):
        return
    if name == "defaults":
        reader.error(entry.key, "'defaults' needs cases: beside it")
    elif rules.speaks and not of_file and (meant := meant_by(entry)) is not None:
        reader.error(entry.key, f"unknown key {name!r}, did you mean {meant!r}?")
    elif near := closest(name, [*CANONICAL, "cases", "defaults"], cutoff=0.75):
        reader.error(entry.key, f"unknown key {name!r}, did you mean {near!r}?")
    elif entry.value.start_mark.index == entry.value.end_mark.index == entry.key.end_mark.index:
        # no colon behind it: in { } a comma ends a text that is not quoted
        reader.error(entry.key, f"{name!r} has no value: a text with a comma is cut in {{ }}; quote the text")
    else:
        tell = reader.error if rules.strict else reader.warn
        tell(entry.key, f"unknown key {name!r}; a note of your own is written x-{name}")


def _refuse_twins(reader: Reader, cases: list[Case]) -> None:
    """Report a second case of one id as an error at its place."""
    first: dict[str, Case] = {}
    for case in cases:
        twin = first.setdefault(case.id, case)
        if twin is case:
            continue
        text = f"two cases are called {case.name!r}, the first on line {twin.line}"
        if case.name != twin.name:
            names = f"{twin.name!r} on line {twin.line} and {case.name!r}"
            text = f"two cases have the id {case.id!r}: {names}; give one an id of its own"
        elif case.prompt != twin.prompt and " ".join(case.prompt.split()).startswith(case.name):
            text += "; their prompts begin alike: give each a name"
        reader.report(Problem(case.path, case.line, case.column, text))
