"""YAML text into nodes that know their place, safely and with every fault named.

Nodes are PyYAML's (``id`` is ``scalar``, ``sequence`` or ``mapping``; marks count from 0). Keys are
taken as they are written, values as YAML 1.1 types them, with three exceptions: ``1e3`` is a
number, merge keys are resolved, and what YAML 1.1 surprises with is reported (``Reader``).
"""

from __future__ import annotations

import errno
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pytest_agenteval.cases.syntax_hints import in_quotes, syntax_hint
from pytest_agenteval.errors import Problem
from pytest_agenteval.support.text import cut

Node = Any
"""A PyYAML node."""

ASKING = ("prompt", "question", "say", "input")
"""The keys that make a mapping a case."""

MAX_BYTES = 2 * 1024 * 1024
MAX_DEPTH = 60
MAX_ALIASES = 1_000
MAX_VALUES = 200_000

_SAFE = "tag:yaml.org,2002:"
_EXPONENT = re.compile(r"[+-]?(\d++(?:\.\d*+)?+|\.\d++)[eE][+-]?\d+")
_DEEP = re.compile(r"^[ \t?-]+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MappingEntry:
    """One key of a mapping: where it is written, and its value."""

    key: Node
    value: Node


class Spot(NamedTuple):
    """A line and a column, from 0, as marks have them."""

    line: int
    column: int


@dataclass(slots=True)
class Reader:
    """Reads the nodes of one file; what is wrong is collected in ``problems``, never raised.

    ``lines`` are those of the file where hints are to show what stands there.
    """

    path: Path
    problems: list[Problem] = field(default_factory=list)
    errors: int = 0
    lines: Sequence[str] = ()
    root: Path | None = None
    _values: int = 0
    _warned: set[tuple[int, int]] = field(default_factory=set)

    def beside(self, node: Node, key: str, name: str) -> Path | None:
        """Return the file that a case names, beside its own; ``None`` after an error: it lies elsewhere."""
        path = self.path.parent / name
        inside = self.root is None or path.resolve().is_relative_to(self.root.resolve())
        if not inside:
            self.error(
                node, f"{key}: {name!r} lies outside of the project ({self.root}); move the file into it"
            )
        return path if inside else None

    def written(self, node: Node) -> str:
        """Return a node as it stands in the file; '' where it takes several lines, or they are not known."""
        start, end = node.start_mark, node.end_mark
        known = start.line == end.line and start.line < len(self.lines)
        return self.lines[start.line][start.column : end.column] if known else ""

    def comment_behind(self, node: Node) -> str:
        """Return the comment that ends a plain text on its line; '' where there is none."""
        if node.id != "scalar" or node.style or node.end_mark.line >= len(self.lines):
            return ""
        behind = self.lines[node.end_mark.line][node.end_mark.column :]
        return behind.strip() if re.match(r"\s+#", behind) else ""

    def place_in(self, node: Node, line: int, column: int) -> Node | Spot:
        """Return where a line and column (from 1) of a text stand in the file; or the text's own place."""
        first = node.start_mark.line + (node.style == "|")
        texts = node.value.splitlines()
        index = first + line - 1
        if node.style not in (None, "", "'", '"', "|") or line > len(texts) or index >= len(self.lines):
            return node
        offset = self.lines[index].find(texts[line - 1])
        return Spot(index, offset + column - 1) if offset >= 0 else node

    def refuse_odd_keys(self, node: Node, key: str) -> None:
        """Report mappings whose key is a list or a mapping: ``{{ prompt }}`` without quotes is one.

        ``key`` is what the message calls the value, until a key inside it is nearer.
        """
        if node.id == "sequence":
            for entry in node.value:
                self.refuse_odd_keys(entry, key)
        elif node.id == "mapping":
            for name, value in node.value:
                if name.id == "scalar":
                    self.refuse_odd_keys(value, name.value)
                    continue
                written = self.written(node)
                self.error(node, f"{key}: {written} needs quotes: {in_quotes(written)}" if written else
                           f"{key}: a key must be text, found a list or a mapping")  # fmt: skip

    def error(self, place: Node, text: str) -> None:
        """Report an error at a node or a mark."""
        self._add(place, text, "error")

    def warn(self, place: Node, text: str) -> None:
        """Report a warning at a node."""
        self._add(place, text, "warning")

    def _add(self, place: Node, text: str, severity: str) -> None:
        mark: Any = getattr(place, "start_mark", place)
        self.report(Problem(self.path, mark.line + 1, mark.column + 1, text, severity))

    def report(self, problem: Problem) -> None:
        """Keep a problem, once: a default is read for every case that takes it."""
        if problem.severity == "error":
            self.errors += 1
        if problem not in self.problems:
            self.problems.append(problem)

    def entries(self, node: Node, depth: int = 0) -> dict[str, MappingEntry]:
        """Return the keys of a mapping node, merged ones (``<<``) included; duplicates are errors."""
        found: dict[str, MappingEntry] = {}
        merged: list[Node] = []
        for key, value in node.value:
            if key.id != "scalar":
                self.error(key, "a key must be text, found a list or a mapping")
            elif key.tag == f"{_SAFE}merge":
                merged += [value] if value.id != "sequence" else value.value
            elif key.value in found:
                first = found[key.value].key.start_mark.line + 1
                self.error(key, f"duplicate key {key.value!r}, first given on line {first}")
            else:
                found[key.value] = MappingEntry(key, value)
        for source in merged:
            if source.id != "mapping":
                self.error(source, "<<: merges a mapping or a list of mappings")
            elif not self._beyond(node, depth):
                for name, entry in self.entries(source, depth + 1).items():
                    found.setdefault(name, entry)
        return found

    def _beyond(self, node: Node, depth: int) -> bool:
        """Return whether reading goes on for too long: aliases can make a short file endless."""
        self._values += 1
        if depth <= MAX_DEPTH and self._values <= MAX_VALUES:
            return False
        self.error(node, f"nested deeper than {MAX_DEPTH} levels, or more than {MAX_VALUES:,} values")
        return True

    def plain(self, node: Node, depth: int = 0) -> Any:
        """Return the Python value of a node: str, int, float, bool, None, date, datetime, list, dict."""
        if self._beyond(node, depth):
            return None
        if node.id == "scalar":
            return self.scalar(node)
        if node.tag not in (f"{_SAFE}seq", f"{_SAFE}map"):
            self._refuse_tag(node)
        if node.id == "sequence":
            return [self.plain(entry, depth + 1) for entry in node.value]
        return {name: self.plain(entry.value, depth + 1) for name, entry in self.entries(node).items()}

    def scalar(self, node: Node) -> Any:
        """Return the Python value of a scalar; surprises of YAML 1.1 are warned of, once per place."""
        kind = node.tag.removeprefix(_SAFE)
        text: str = node.value
        if kind == "str":
            if not node.style and text[-1:].isdigit() and _EXPONENT.fullmatch(text):
                return float(text)
            return text
        if kind in ("null", "value", "merge"):
            return None if kind == "null" else text
        try:
            value = _construct(kind, node)
        except (ValueError, OverflowError, KeyError) as wrong:
            self.error(node, f"{text} cannot be read as a {kind}: {wrong}; quote it if it is text")
            return None
        if value is node:
            self._refuse_tag(node)
            return None
        if surprise(node) and (place := (node.start_mark.line, node.start_mark.column)) not in self._warned:
            self._warned.add(place)
            self.warn(node, f"{text} is {surprise(node)} in YAML; quote it if it is text")
        return value

    def _refuse_tag(self, node: Node) -> None:
        shown = node.tag.replace(_SAFE, "!!")
        self.error(node, f"the tag {shown} is not allowed; only plain YAML values are")


def is_blank(node: Node) -> bool:
    """Return whether nothing stands behind a key; ``''`` is something."""
    return bool(node.id == "scalar" and node.tag == f"{_SAFE}null" and not node.value)


def place_of(node: Node) -> tuple[int, int]:
    """Return line and column (from 1) of where a node begins."""
    return node.start_mark.line + 1, node.start_mark.column + 1


def _construct(kind: str, node: Node) -> Any:
    """Return the value of a typed scalar, or the node itself for a tag that is not a plain YAML type."""
    import yaml

    maker = yaml.constructor.SafeConstructor()
    if kind in ("int", "float", "bool", "timestamp"):
        return getattr(maker, f"construct_yaml_{kind}")(yaml.ScalarNode(node.tag, node.value))
    return node


def surprise(node: Node) -> str | None:
    """Return what YAML 1.1 makes of a plain scalar that people mean otherwise; ``None``: no surprise."""
    kind, text = node.tag.removeprefix(_SAFE), node.value
    if node.style:
        return None
    if kind == "bool" and text.lower() not in ("true", "false"):
        return f"the boolean {str(_construct(kind, node)).lower()}"
    if kind in ("int", "float") and ":" in text:
        return f"the number {_construct(kind, node)}"
    if kind == "int" and re.match(r"[+-]?0[0-7_]", text):
        return f"the octal number {_construct(kind, node)}"
    return None


def typed_as(node: Node) -> str:
    """Return what YAML reads a scalar as that is not text: ``a number``, ``the boolean false``."""
    kind = node.tag.removeprefix(_SAFE)
    words = {"int": "a number", "float": "a number", "bool": "a boolean", "timestamp": "a date"}
    return surprise(node) or words.get(kind, f"tagged {node.tag.replace(_SAFE, '!!')}")


def found(node: Node) -> str:
    """Return a node in words, for messages: ``a list``, ``'five'``, ``NO (the boolean false in YAML)``."""
    if node.id != "scalar":
        return "a list" if node.id == "sequence" else "a mapping"
    kind = node.tag.removeprefix(_SAFE)
    shown = cut(node.value, 60)
    if kind == "null":
        return "nothing"
    if kind == "str":
        return repr(shown)
    odd = surprise(node)
    return f"{shown} ({odd} in YAML)" if odd else shown


def read_text(path: Path) -> tuple[str, Problem | None]:
    """Return the text of a UTF-8 file (a BOM is dropped), or the problem with it."""
    size = path.stat().st_size
    if size > MAX_BYTES:
        return "", Problem(path, 1, 1, f"{size:,} bytes; a case file may have {MAX_BYTES:,}")
    return decode(path, file_bytes(path))


def file_bytes(path: Path) -> bytes:
    """Return what a file holds. Raises ``OSError``, also for what is no file: a pipe would never end."""
    if not stat.S_ISREG(path.stat().st_mode) and path.exists():
        raise OSError(errno.EINVAL, "not a file (a folder, a pipe or a device)", str(path))
    return path.read_bytes()


def decode(path: Path, data: bytes) -> tuple[str, Problem | None]:
    """Return ``data`` as UTF-8 text without its BOM, or the problem with its place."""
    try:
        return data.decode("utf-8-sig"), None
    except UnicodeDecodeError as wrong:
        before = data[: wrong.start]
        line = before.count(b"\n") + 1
        column = len(before.rpartition(b"\n")[2].decode("utf-8", "replace")) + 1
        name = "UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else f"byte 0x{data[wrong.start]:02x}"
        return "", Problem(path, line, column, f"not UTF-8 ({name}); save the file as UTF-8")


def compose(path: Path, text: str) -> tuple[list[Node], Problem | None]:
    """Return the root node of every document that is not empty, or the syntax error with its place."""
    import yaml

    try:
        if (problem := _too_deep(path, text)) is not None:
            return [], problem
        loader = yaml.CSafeLoader(text)
        try:
            nodes = []
            while loader.check_node():
                nodes.append(loader.get_node())
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as wrong:
        return [], _syntax_problem(path, text, wrong)
    except yaml.reader.ReaderError as wrong:
        before = text[: wrong.position]
        column = len(before.rpartition("\n")[2]) + 1
        shown = f"the control character {_code(wrong.character)} is not allowed in YAML"
        return [], Problem(path, before.count("\n") + 1, column, shown)
    return [node for node in nodes if not _is_nothing(node)], None


def _code(character: Any) -> str:
    return f"U+{ord(character) if isinstance(character, str) else int(character):04X}"


def _is_nothing(node: Node) -> bool:
    return bool(node.id == "scalar" and node.tag == f"{_SAFE}null")


def _too_deep(path: Path, text: str) -> Problem | None:
    """Return the place beyond the allowed depth or number of aliases.

    The composer recurses in C, so the depth is counted on the flat stream of events first; but only
    where the text could hold that much.
    """
    import yaml

    indent = max((len(run) for run in _DEEP.findall(text)), default=0)
    if text.count("[") + text.count("{") + 2 * indent < MAX_DEPTH and text.count("*") <= MAX_ALIASES:
        return None
    depth = aliases = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.AliasEvent):
            aliases += 1
        if depth > MAX_DEPTH or aliases > MAX_ALIASES:
            limit = f"{MAX_DEPTH} levels" if depth > MAX_DEPTH else f"{MAX_ALIASES:,} aliases"
            mark: Any = event.start_mark
            return Problem(path, mark.line + 1, mark.column + 1, f"more than {limit}, the most allowed")
    return None


_SEPARATOR = re.compile("[\u2028\u2029\x85]")


def _syntax_problem(path: Path, text: str, wrong: Any) -> Problem:
    mark = wrong.problem_mark or wrong.context_mark
    line, column = (mark.line, mark.column) if mark else (0, 0)
    lines = text.splitlines()
    here = lines[line] if line < len(lines) else ""
    if "\t" in here[: len(here) - len(here.lstrip())] or here[column : column + 1] == "\t":
        return Problem(path, line + 1, column + 1, "a tab; YAML is indented with blanks only")
    if (separator := _SEPARATOR.search(text)) is not None:
        before = text[: separator.start()]
        said = f"U+{ord(separator[0]):04X}, a separator that chats paste, ends the line for YAML"
        place = before.count("\n") + 1, separator.start() - before.rfind("\n")
        return Problem(path, *place, f"{said}: delete it, or put the text in quotes")
    said = " ".join(part for part in (wrong.context, wrong.problem) if part)
    began = wrong.context_mark.line if wrong.context_mark else None
    hint = f" (it began on line {began + 1})" if began not in (None, line) else ""
    hint += syntax_hint(lines, line, column, began, said)
    return Problem(path, line + 1, column + 1, f"not YAML: {said}{hint}")
