"""The project file: ours, or that of nao, dazense or Polaris; one reader, the same keys."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pytest_agenteval.cases import field_readers as values
from pytest_agenteval.cases.fault_locations import ParseComparison, comparison_faults, locate
from pytest_agenteval.cases.syntax_hints import in_quotes
from pytest_agenteval.cases.yaml_reader import MappingEntry, Node, Reader, compose, found, place_of, read_text
from pytest_agenteval.config.connections import Connection, check_type
from pytest_agenteval.config.env_references import EnvReferences, Secrets
from pytest_agenteval.config.toml_nodes import TomlNode, as_node, toml_nodes
from pytest_agenteval.errors import Problem, SettingsError
from pytest_agenteval.llm.providers import PRICE_KEYS, Prices, Provider
from pytest_agenteval.support.text import closest, did_you_mean
from pytest_agenteval.types import MODEL, NAO_KINDS, NaoKind

Kind = Literal["agenteval"] | NaoKind

FOREIGN: Mapping[str, Kind] = {f"{kind}_config.yaml": kind for kind in NAO_KINDS}
"""Other programs' project files, in the order they are looked for."""

KEYS = ("databases", "llm", "test", "target", "http", "judge", "budget", "context_files", "checks")
TEST_KEYS = ("models", "k", "threads", "comparison")
_SPEAKS_OF_US = re.compile(r"^[^\S\n]*+\[?+\[?+[^\S\n]*+tool\s*(\.\s*[\"']?agenteval|\])", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Project:
    """What a project file says. Values that name environment variables are read when asked for.

    ``settings`` maps ``Option.project_key`` to a value, for ``settings.resolve``. ``secrets``
    grows as variables are read; all of its values are to be redacted. ``places`` maps the file's
    keys to line and column. ``checks`` are classes of checks, ``pkg.mod:Class``, each with its place.
    """

    root: Path
    path: Path | None = None
    kind: Kind | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    databases: Mapping[str, Connection] = field(default_factory=dict)
    providers: tuple[Provider, ...] = ()
    meta_costs: Prices | None = None
    comparison: Mapping[str, Any] = field(default_factory=dict)
    context_files: tuple[str, ...] = ("RULES.md",)
    read_http: Callable[[], Mapping[str, Any]] = field(default=dict, repr=False)
    secrets: Secrets = field(default_factory=Secrets, repr=False)
    places: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    checks: tuple[tuple[str, str], ...] = ()

    @property
    def target(self) -> str | None:
        """The agent's target: as written, else the server of the file's program."""
        return self.settings.get("target")

    @property
    def http(self) -> Mapping[str, Any]:
        """The ``http`` block, references read. Raises ``SettingsError``."""
        return self.read_http()

    def fault(self, key: str, text: str) -> Problem:
        """Return an error at a key of the file, at the top where it does not have the key."""
        return Problem(self.path or self.root, *self.places.get(key, (1, 1)), text)

    def usable_urls(self, given: Mapping[str, str] | None = None) -> tuple[dict[str, str], dict[str, str]]:
        """Return the URLs that can be made, and for the other databases why not (``file:line: ...``).

        A variable is needed only where its database is used, so a missing one is an error there alone.
        ``given``: URLs by name that beat the file's (the ini's).
        """
        urls: dict[str, str] = {}
        reasons: dict[str, str] = {}
        given = given or {}
        for name, connection in self.databases.items():
            if name in given:
                continue
            try:
                urls[name] = connection.url
            except SettingsError as wrong:
                reasons[name] = str(wrong)
        return {**urls, **given}, reasons


def find_project(
    folder: Path,
    *,
    root: Path | None = None,
    environ: Mapping[str, str] | None = None,
    parse_comparison: ParseComparison | None = None,
) -> Project:
    """Return the project of ``folder``: ``[tool.agenteval]`` in pyproject.toml, agenteval.yaml,
    or a foreign file.

    ``root`` is what messages show paths from (default: ``folder``). Raises ``SettingsError`` with every
    fault of the file, one a line: ``nao_config.yaml:12:3: ...``.
    """
    root = folder if root is None else root
    pyproject, own = folder / "pyproject.toml", folder / "agenteval.yaml"
    tokens = EnvReferences(pyproject, root, os.environ if environ is None else environ)
    node = _own_table(pyproject, tokens) if pyproject.is_file() else None
    if node is not None and own.is_file():
        raise SettingsError("both pyproject.toml ([tool.agenteval]) and agenteval.yaml: keep one of them")
    path, kind = next(
        ((folder / name, kind) for name, kind in FOREIGN.items() if (folder / name).is_file()), (None, None)
    )
    if node is not None or own.is_file():
        path, kind = pyproject if node is not None else own, "agenteval"
    if path is None or kind is None:
        return Project(folder)
    if node is None:
        tokens = EnvReferences(path, root, tokens.environ)
        node = _yaml_root(path, tokens)
    lines = path.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    reading = _Reading(Reader(path, lines=lines), tokens, kind, parse_comparison)
    project = reading.project(node) if node is not None else Project(folder, path, kind)
    if errors := [entry for entry in reading.reader.problems if entry.severity == "error"]:
        in_order = sorted(errors, key=lambda entry: (entry.line, entry.column))
        raise SettingsError("\n".join(problem.render(root) for problem in in_order))
    return project


def _own_table(path: Path, tokens: EnvReferences) -> Node | None:
    text = path.read_text(encoding="utf-8", errors="replace")
    # only parse pyproject.toml if it contains [tool.agenteval]
    if not _SPEAKS_OF_US.search(text):
        return None
    try:
        return toml_nodes(tokens.hide(text), ("tool", "agenteval"))
    except ValueError as wrong:
        raise SettingsError(f"pyproject.toml: not TOML: {wrong}") from None


def _yaml_root(path: Path, tokens: EnvReferences) -> Node | None:
    text, problem = read_text(path)
    roots: list[Node] = []
    if problem is None:
        roots, problem = compose(path, tokens.hide(text))
    if problem is None and len(roots) > 1:
        place = roots[1].start_mark
        problem = Problem(path, place.line + 1, place.column + 1, "a second document; a project file is one")
    if problem is None and roots and roots[0].id != "mapping":
        problem = Problem(path, 1, 1, f"a project file must be a mapping, found {found(roots[0])}")
    if problem is not None:
        raise SettingsError(problem.render(tokens.root))
    return roots[0] if roots else None


class _Reading:
    """Reads the nodes of one project file."""

    def __init__(
        self, reader: Reader, tokens: EnvReferences, kind: Kind, parse_comparison: ParseComparison | None
    ) -> None:
        self.reader = reader
        self._tokens = tokens
        self._kind: Kind = kind
        self._parse_comparison = parse_comparison

    def project(self, node: Node) -> Project:
        """Return the whole file."""
        entries = self.reader.entries(node)
        if self._kind == "agenteval":
            for name, entry in entries.items():
                if name not in KEYS and not name.startswith("x-"):
                    self.reader.error(entry.key, f"unknown key {name!r}{did_you_mean(name, KEYS)}")
        settings = self._settings(entries)
        comparison = self._test(entries.get("test"), settings)
        if self._kind == "pda":
            # Polaris compares "the same columns"
            comparison = {"extra_columns": "forbid", **comparison}
        providers, meta = self._llm(entries.get("llm"))
        files = entries.get("context_files")
        http = entries.get("http")
        return Project(
            root=self._tokens.path.parent,
            path=self._tokens.path,
            kind=self._kind,
            settings=settings,
            databases=self._databases(entries.get("databases")),
            providers=providers,
            meta_costs=meta,
            comparison=comparison,
            context_files=self._eager(files.value, values.names, "context_files") if files else ("RULES.md",),
            read_http=self._lazy_map(http.value, "http") if http else dict,
            checks=self._checks(entries.get("checks")),
            secrets=self._tokens.secrets,
            places={name: place_of(entry.key) for name, entry in entries.items()},
        )

    def _checks(self, entry: MappingEntry | None) -> tuple[tuple[str, str], ...]:
        """Read ``checks``: one reference or a list of them; in another program's file the key is not ours."""
        if entry is None or self._kind != "agenteval":
            return ()
        nodes = entry.value.value if entry.value.id == "sequence" else [entry.value]
        read = [(values.reference(self.reader, node, "checks"), self._tokens.place(node)) for node in nodes]
        return tuple((name, place) for name, place in read if name is not None)

    def _is_ours(self, name: str, known: Iterable[str]) -> bool:
        """Return whether an unknown key is a fault: always in our file,
        else when it is close to a known one.
        """
        return self._kind == "agenteval" or closest(name, known, 0.75) is not None

    def _eager(self, node: Node, read: values.Read, key: str) -> Any:
        """Return a value that is needed at once, its references read."""
        before = self.reader.errors
        resolved = self._resolved(node)
        return read(self.reader, resolved, key) if self.reader.errors == before else None

    def _resolved(self, node: Node) -> Node:
        """Return the node with its references read, each node at its place."""
        if node.id == "sequence":
            return TomlNode("sequence", node.tag, [self._resolved(e) for e in node.value], node.start_mark)
        if node.id == "mapping":
            pairs = [(key, self._resolved(value)) for key, value in node.value]
            return TomlNode("mapping", node.tag, pairs, node.start_mark)
        if not self._tokens.inside(node):
            return node
        try:
            return as_node(self._tokens.value(node), node.start_mark)
        except SettingsError as wrong:
            self.reader.error(node, str(wrong).partition(": ")[2])
            return node

    def _lazy_map(self, node: Node, key: str) -> Callable[[], Mapping[str, Any]]:
        if node.id != "mapping":
            self.reader.error(node, f"{key}: expected a mapping, found {found(node)}")
        self.reader.refuse_odd_keys(node, key)
        return lambda: dict(self._tokens.value(node))

    def _lazy_text(self, entry: MappingEntry | None) -> Callable[[], str | None]:
        if entry is None or (entry.value.id == "scalar" and entry.value.tag.endswith(":null")):
            return lambda: None
        node = entry.value
        if node.id != "scalar":
            written = self.reader.written(node)
            hint = f"; quote it: {in_quotes(written)}" if written else ""
            self.reader.error(node, f"{entry.key.value}: expected text, found {found(node)}{hint}")
        return lambda: self._tokens.text(node)

    def _settings(self, entries: Mapping[str, MappingEntry]) -> dict[str, Any]:
        readers: dict[str, values.Read] = {"target": values.name, "judge": _model, "budget": values.amount()}
        settings: dict[str, Any] = {}
        for key, read in readers.items():
            # nao's own `budget` and `target` would be other things: ours only where they fit
            if key in entries and (value := self._eager(entries[key].value, read, key)) is not None:
                settings[key] = value
        if self._kind != "agenteval":
            settings.setdefault("target", f"{self._kind}:")
        return settings

    def _test(self, entry: MappingEntry | None, settings: dict[str, Any]) -> dict[str, Any]:
        """Read ``test``: put options into ``settings``, return the comparison."""
        if entry is None or (entry.value.id == "scalar" and entry.value.tag.endswith(":null")):
            return {}
        if entry.value.id != "mapping":
            self.reader.error(entry.value, f"test: expected a mapping, found {found(entry.value)}")
            return {}
        entries = self.reader.entries(entry.value)
        for name, part in entries.items():
            if name not in TEST_KEYS and self._is_ours(name, TEST_KEYS):
                self.reader.error(part.key, f"test: unknown key {name!r}{did_you_mean(name, TEST_KEYS)}")
        readers: dict[str, values.Read] = {
            "models": values.models,
            "k": values.whole(1),
            "threads": values.whole(1),
        }
        for key, read in readers.items():
            if key in entries:
                value = self._eager(entries[key].value, read, f"test.{key}")
                if value is not None:
                    settings[f"test.{key}"] = value
        return self._comparison(entries["comparison"].value) if "comparison" in entries else {}

    def _comparison(self, node: Node) -> dict[str, Any]:
        options: dict[str, Any] = self._eager(node, values.mapping, "test.comparison") or {}
        for fault in comparison_faults(self._parse_comparison, options):
            self.reader.error(locate(self.reader, node, fault), f"test.comparison: {fault.text}")
        return options

    def _databases(self, entry: MappingEntry | None) -> dict[str, Connection]:
        """Return a list of ``{name, type, ...}`` or ``{name, url}``;
        or a map of names to URLs or such maps.
        """
        if entry is None or (entry.value.id == "scalar" and entry.value.tag.endswith(":null")):
            return {}
        named: list[tuple[str | None, Node, Node]] = []
        if entry.value.id == "mapping":
            named = [(name, e.key, e.value) for name, e in self.reader.entries(entry.value).items()]
        elif entry.value.id == "sequence":
            named = [(None, node, node) for node in entry.value.value]
        else:
            self.reader.error(entry.value, f"databases: expected a list, found {found(entry.value)}")
        connections: dict[str, Connection] = {}
        for name, place, node in named:
            made = self._connection(name, node)
            if made is not None and made.name in connections:
                self.reader.error(
                    place, f"databases: {made.name!r} is given twice ({connections[made.name].place})"
                )
            elif made is not None:
                connections[made.name] = made
        return connections

    def _connection(self, name: str | None, node: Node) -> Connection | None:
        reader, tokens = self.reader, self._tokens
        folder = tokens.path.parent
        if node.id == "scalar" and name is not None:
            return Connection(name, "url", tokens.place(node), lambda: {"url": tokens.text(node)}, folder)
        if node.id != "mapping":
            reader.error(node, f"databases: expected a mapping with name and type, found {found(node)}")
            return None
        entries = reader.entries(node)
        if name is None:
            if "name" not in entries:
                reader.error(node, "databases: missing name")
                return None
            name = self._eager(entries["name"].value, values.name, "databases.name")
        kind = entries["type"].value.value if "type" in entries else "url" if "url" in entries else None
        if kind is None:
            reader.error(node, f"databases: {name!r} needs a type (or a url)")
            return None
        # another program may know more types than we do: its file is wrong only where one is used
        if self._kind == "agenteval" and "url" not in entries and (wrong := check_type(kind)) is not None:
            reader.error(entries["type"].value, f"databases: {wrong}")
        fields = {key: part.value for key, part in entries.items()}
        for key, value in fields.items():
            reader.refuse_odd_keys(value, key)

        def read() -> dict[str, Any]:
            return {key: _field(tokens, value) for key, value in fields.items()}

        return Connection(name, kind, tokens.place(node), read, folder) if name else None

    def _llm(self, entry: MappingEntry | None) -> tuple[tuple[Provider, ...], Prices | None]:
        if entry is None or entry.value.id != "mapping":
            if entry is not None and not entry.value.tag.endswith(":null"):
                self.reader.error(entry.value, f"llm: expected a mapping, found {found(entry.value)}")
            return (), None
        entries = self.reader.entries(entry.value)
        listed = entries.get("providers")
        # the older form has one provider and no list
        nodes = listed.value.value if listed and listed.value.id == "sequence" else []
        if listed is not None and listed.value.id != "sequence":
            self.reader.error(listed.value, f"llm.providers: expected a list, found {found(listed.value)}")
        elif listed is None and "provider" in entries:
            nodes = [entry.value]
        providers = tuple(made for node in nodes if (made := self._provider(node)) is not None)
        meta = entries.get("meta")
        costs = self.reader.entries(meta.value).get("costs") if meta and meta.value.id == "mapping" else None
        return providers, self._prices(costs.value, "llm.meta.costs") if costs else None

    def _provider(self, node: Node) -> Provider | None:
        if node.id != "mapping":
            self.reader.error(node, f"llm.providers: expected a mapping, found {found(node)}")
            return None
        entries = self.reader.entries(node)
        if "provider" not in entries:
            self.reader.error(node, "llm.providers: missing provider")
            return None
        listed = entries.get("models")
        models: dict[str, Prices | None] = {}
        for model in listed.value.value if listed and listed.value.id == "sequence" else ():
            parts = self.reader.entries(model) if model.id == "mapping" else {}
            if model.id == "scalar":
                models[model.value] = None
            elif "id" in parts:
                costs = parts.get("costs")
                models[parts["id"].value.value] = self._prices(costs.value, "costs") if costs else None
            else:
                self.reader.error(model, "llm.providers: a model needs an id")
        return Provider(
            provider=str(self._eager(entries["provider"].value, values.name, "provider")),
            read_base_url=self._lazy_text(entries.get("base_url")),
            read_api_key=self._lazy_text(entries.get("api_key")),
            models=models,
        )

    def _prices(self, node: Node, key: str) -> Prices | None:
        """Return USD per million tokens; ``None`` where none is given."""
        if node.id != "mapping":
            if not node.tag.endswith(":null"):
                self.reader.error(node, f"{key}: expected a mapping, found {found(node)}")
            return None
        known: dict[str, float] = {}
        for name, entry in self.reader.entries(node).items():
            if name not in PRICE_KEYS and self._is_ours(name, PRICE_KEYS):
                self.reader.error(entry.key, f"{key}: unknown price {name!r}{did_you_mean(name, PRICE_KEYS)}")
            elif name in PRICE_KEYS and not entry.value.tag.endswith(":null"):
                value = self._eager(entry.value, values.amount(), f"{key}.{name}")
                if value is not None:
                    known[PRICE_KEYS[name]] = value
        return Prices(**known) if known else None


def _model(reader: Reader, node: Node, key: str) -> str | None:
    word = values.name(reader, node, key)
    if word is not None and not MODEL.fullmatch(word):
        reader.error(node, f"{key}: {word!r} is not provider:model, for example openai:gpt-4.1")
        return None
    return word


def _field(tokens: EnvReferences, node: Node) -> Any:
    """Return a connection's value: a text as written (a password of digits stays text), else its value."""
    if node.id == "scalar" and node.tag.endswith((":str", ":int", ":float", ":timestamp")):
        return tokens.text(node)
    return tokens.value(node)
