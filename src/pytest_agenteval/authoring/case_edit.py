"""Change one key of a case in its file, and no other byte: comments, anchors, quoting and line ends stay."""

from __future__ import annotations

import fcntl
import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pytest_agenteval.errors import AgentEvalError


class NotEditable(AgentEvalError):
    """A case is written in a way that only a person can change."""


@contextmanager
def edited(path: Path) -> Iterator[list[str]]:
    """Give the text of a file in a list of one; what stands there at the end is written, atomically.

    Editors of one file wait for each other, so that none writes what another has not seen.
    """
    from pytest_agenteval.support.files import write_atomic

    key = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
    with open(Path(tempfile.gettempdir()) / f"agenteval-edit-{key}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = path.read_bytes().decode("utf-8")
        held = [before]
        yield held
        if held[0] != before:
            write_atomic(path, held[0].encode("utf-8"))


def flow_text(value: Any) -> str:
    """Return a value as YAML on one line."""
    import yaml

    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10**6, sort_keys=False)
    return text.strip().removesuffix("...").strip()


def with_metadata(text: str, line: int, key: str, value: Any) -> str:
    """Return the text with ``metadata.key`` of the case that begins in ``line`` (from 1) set.

    Raises ``NotEditable`` where the case or its metadata is an alias.
    """
    node = _case_at(text, line)
    return _with_pair(text, node, ("metadata", key), flow_text(value))


def with_key(text: str, line: int, key: str, value: Any) -> str:
    """Return the text with a key of the case itself set; a text of several lines stands as a block."""
    node = _case_at(text, line)
    if isinstance(value, str) and "\n" in value.strip("\n") and not node.flow_style:
        indent = " " * (node.value[0][0].start_mark.column + 2)
        newline = "\r\n" if "\r\n" in text else "\n"
        lines = [f"{indent}{part}".rstrip() for part in value.strip("\n").splitlines()]
        return _with_pair(text, node, (key,), newline.join(["|-", *lines]))
    return _with_pair(text, node, (key,), flow_text(value))


def _case_at(text: str, line: int) -> Any:
    """Return the mapping of the case that begins in this line. Raises ``NotEditable``."""
    import yaml

    try:
        documents = list(yaml.compose_all(text, Loader=yaml.CSafeLoader))
    except yaml.YAMLError as wrong:
        raise NotEditable(" ".join(str(wrong).split())) from None
    for root in documents:
        for node in _mappings(root):
            if node.start_mark.line == line - 1:
                return node
    raise NotEditable(f"line {line}: no case begins here any more; read the file again")


def _mappings(root: Any) -> Iterator[Any]:
    """Yield the mappings that may be cases: the entries of lists, of ``cases``, and the whole."""
    if root.id == "sequence":
        yield from (node for node in root.value if node.id == "mapping")
    elif root.id == "mapping":
        for name, value in root.value:
            if name.value in ("cases", "eval_test_cases") and value.id == "sequence":
                yield from (node for node in value.value if node.id == "mapping")
        yield root


def _with_pair(text: str, node: Any, path: tuple[str, ...], fresh: str) -> str:
    key, *rest = path
    found = next(((name, value) for name, value in node.value if name.value == key), None)
    if found is None:
        body = fresh if not rest else flow_text({rest[0]: "\0"}).replace('"\\0"', fresh)
        return _insert(text, node, key, body, nested=tuple(rest), fresh=fresh)
    name, value = found
    if text[name.end_mark.index : value.start_mark.index].lstrip(": \t").startswith("*"):
        raise NotEditable(f"line {name.start_mark.line + 1}: {key} is an alias; change it by hand")
    if rest:
        if value.id != "mapping":
            return _replace(text, name, value, flow_text({rest[0]: "\0"}).replace('"\\0"', fresh))
        return _with_pair(text, value, tuple(rest), fresh)
    return _replace(text, name, value, fresh)


def _replace(text: str, name: Any, value: Any, fresh: str) -> str:
    """Put a value on one line in the place of another, which may be a block of several."""
    start, end = value.start_mark.index, value.end_mark.index
    if (value.id != "scalar" and not value.flow_style) or text[start : start + 1] in ("|", ">"):
        # a block ends where the next key begins: blank lines and comments before that one stay
        body = text[start:end]
        kept = len(body.rstrip())
        for part in reversed(body.splitlines(keepends=True)):
            if part.strip() and not part.lstrip().startswith("#"):
                break
            kept = min(kept, len(body) - len(part)) if part.strip() else kept
        end = start + len(body[:kept].rstrip())
        start = name.end_mark.index + text[name.end_mark.index :].index(":") + 1
        return f"{text[:start]} {fresh}{text[end:]}"
    gap = "" if text[start - 1 : start] in (" ", "\t", "\n") else " "
    return f"{text[:start]}{gap}{fresh}{text[end:]}"


def _insert(text: str, node: Any, key: str, body: str, *, nested: tuple[str, ...], fresh: str) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    if node.flow_style:
        end = node.end_mark.index - 1
        comma = ", " if node.value else ""
        head = text[:end].rstrip()
        comma = " " if head.endswith(",") else comma
        return f"{head}{comma}{key}: {body}{text[len(head) :]}"
    indent = " " * node.value[0][0].start_mark.column
    lines = (
        f"{indent}{key}: {body}" if not nested else f"{indent}{key}:{newline}{indent}  {nested[0]}: {fresh}"
    )
    if not nested and key != "skip":  # a key of metadata: first in it, where it is seen
        start = node.value[0][0].start_mark.index
        return f"{text[:start]}{key}: {body}{newline}{indent}{text[start:]}"
    last = node.value[-1][1]
    end = _end_of(text, last)
    return f"{text[:end]}{newline}{lines}{text[end:]}"


def _end_of(text: str, node: Any) -> int:
    """Return where the last line of a value ends, without the comments and blank lines after a block."""
    end = node.end_mark.index
    if node.id == "scalar" and text[node.start_mark.index : node.start_mark.index + 1] not in ("|", ">"):
        rest = text.find("\n", end)
        line = len(text) if rest < 0 else rest
        return line - 1 if text[line - 1 : line] == "\r" else line
    if node.id == "scalar":
        return len(text[:end].rstrip())
    if node.flow_style:
        rest = text.find("\n", end)
        line = len(text) if rest < 0 else rest
        return line - 1 if text[line - 1 : line] == "\r" else line
    children = node.value[-1]
    return _end_of(text, children[1] if node.id == "mapping" else children)


def read_keys(text: str, line: int) -> Mapping[str, Any]:
    """Return what the case that begins in this line holds now."""
    import yaml

    node = _case_at(text, line)
    loader = yaml.CSafeLoader("")
    try:
        return dict(loader.construct_document(node))
    finally:
        loader.dispose()
