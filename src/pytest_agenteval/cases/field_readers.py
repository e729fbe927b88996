"""Reading one key's value: each reader takes a node, reports what is wrong, returns a value or ``None``.

Two kinds of text: a name is taken as it is written (``name: 2024``, ``tags: [on]``); a sentence
that YAML types as something else (``prompt: NO``) is an error that asks for quotes.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from typing import Any

from pytest_agenteval.cases.model import Budget, Mark, PassRule, Xfail
from pytest_agenteval.cases.syntax_hints import in_quotes
from pytest_agenteval.cases.yaml_reader import Node, Reader, found, surprise, typed_as
from pytest_agenteval.support.text import did_you_mean
from pytest_agenteval.types import MODEL

Read = Callable[[Reader, Node, str], Any]

_STR = "tag:yaml.org,2002:str"
_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_TAG = re.compile(r"[^\W_][\w.:+/-]*")


def text(reader: Reader, node: Node, key: str) -> str | None:
    """Return a sentence: not empty, not something YAML types otherwise."""
    if node.id != "scalar":
        reader.error(node, f"{key}: expected text, found {found(node)}{_quoting(reader, node)}")
    elif not node.value.strip() or node.tag.endswith(":null"):
        reader.error(node, f"{key} is empty{_emptied(reader, node)}")
    elif node.tag != _STR:
        reader.error(node, f'{key}: {node.value} is {typed_as(node)} in YAML; quote it: "{node.value}"')
    else:
        if key in _SENTENCES and (comment := reader.comment_behind(node)):
            reader.warn(
                node, f"{key} ends where the comment {comment!r} begins; quote the text if it goes on"
            )
        return str(node.value)
    return None


_SENTENCES = ("prompt", "question", "say", "sql", "context", "expected_response", "variants")


def _quoting(reader: Reader, node: Node) -> str:
    """Return how a text is written that begins like a list or a map."""
    written = reader.written(node)
    return f"; quote it: {in_quotes(written)}" if written else ""


def _emptied(reader: Reader, node: Node) -> str:
    """Return why a text that was written is empty."""
    if node.style in ("|", ">"):
        return f": the text below {node.style} must be indented further than the key"
    comment = reader.comment_behind(node)
    return f": a comment begins at {comment!r}; quote the text" if comment else ""


def name(reader: Reader, node: Node, key: str) -> str | None:
    """Return a name, as written."""
    if node.id != "scalar":
        reader.error(node, f"{key}: expected text, found {found(node)}")
    elif not node.value.strip() or node.tag.endswith(":null"):
        reader.error(node, f"{key} is empty")
    else:
        return str(node.value).strip()
    return None


def _several(reader: Reader, node: Node, key: str, read: Read) -> tuple[Any, ...]:
    """Return one value or a list of them, in order, each once."""
    if node.id == "sequence":
        if not node.value:
            reader.error(node, f"{key} is empty")
        values = [read(reader, entry, key) for entry in node.value]
    else:
        values = [read(reader, node, key)]
    return tuple(value for value in values if value is not None)


def texts(reader: Reader, node: Node, key: str) -> tuple[str, ...]:
    """Return a text or a list of texts."""
    return _several(reader, node, key, text)


def names(reader: Reader, node: Node, key: str, read: Read = name) -> tuple[str, ...]:
    """Return a name or a list of names, repeated ones once; the list may be empty."""
    if node.id == "sequence" and not node.value:
        return ()
    return tuple(dict.fromkeys(_several(reader, node, key, read)))


def text_list(reader: Reader, node: Node, key: str) -> tuple[str, ...]:
    """Return a list of texts; it may be empty."""
    if node.id != "sequence":
        reader.error(node, f"{key}: expected a list, found {found(node)}")
        return ()
    return tuple(value for entry in node.value if (value := text(reader, entry, key)) is not None)


def tags(reader: Reader, node: Node, key: str) -> tuple[str, ...]:
    """Return tags: names that ``-m`` can select."""
    return names(reader, node, key, tag)


def tag(reader: Reader, node: Node, key: str) -> str | None:
    """Return one tag."""
    word = name(reader, node, key)
    if word is not None and not _TAG.fullmatch(word):
        reader.error(node, f"{key}: {word!r} cannot be selected with -m; use letters, digits, _ . : + / -")
        return None
    return word


def models(reader: Reader, node: Node, key: str) -> tuple[str, ...] | None:
    """Read a list of ``provider:model``, or one of them."""
    if node.id == "mapping":
        reader.error(node, f"{key}: expected a list, found {found(node)}")
        return None
    words = []
    for entry in node.value if node.id == "sequence" else [node]:
        word = name(reader, entry, key)
        if word is not None and not MODEL.fullmatch(word):
            reader.error(entry, f"{key}: {word!r} is not provider:model, for example openai:gpt-4.1")
        elif word is not None:
            words.append(word)
    return tuple(dict.fromkeys(words))


def boolean(reader: Reader, node: Node, key: str) -> bool | None:
    """Return ``true`` or ``false`` (``yes`` and ``no``, ``on`` and ``off`` as YAML reads them)."""
    if node.id == "scalar" and node.tag.endswith(":bool"):
        return str(node.value).lower() in ("true", "yes", "on")
    reader.error(node, f"{key}: expected true or false, found {found(node)}")
    return None


def whole(low: int, high: int | None = None) -> Read:
    """Return a reader of whole numbers from ``low`` on, up to ``high``."""

    def read(reader: Reader, node: Node, key: str) -> int | None:
        if node.id == "scalar" and node.tag.endswith(":int") and not surprise(node):
            value = reader.scalar(node)
            if value is None:  # more digits than Python reads; said already
                return None
            if high is not None and value > high:
                reader.error(node, f"{key}: expected at most {high:,}, found {found(node)}")
                return None
            if value >= low:
                return int(value)
        reader.error(node, f"{key}: expected a whole number, {low} or more, found {found(node)}")
        return None

    return read


def amount(above: bool = False, high: float = math.inf) -> Read:
    """Return a reader of numbers from 0 on (``above``: greater than 0), up to ``high``."""

    def read(reader: Reader, node: Node, key: str) -> float | None:
        value = reader.scalar(node) if node.id == "scalar" and not surprise(node) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = float(value)
            if high < number < math.inf:
                reader.error(node, f"{key}: expected at most {high:,} seconds, found {found(node)}")
                return None
            if math.isfinite(number) and (number > 0 or (number == 0 and not above)):
                return number
        allowed = "a number above 0" if above else "a number, 0 or more"
        reader.error(node, f"{key}: expected {allowed}, found {found(node)}")
        return None

    return read


def one_of(*words: str) -> Read:
    """Return a reader of one of ``words``."""

    def read(reader: Reader, node: Node, key: str) -> str | None:
        if node.id == "scalar" and node.value in words:
            return str(node.value)
        close = did_you_mean(node.value, words) if node.id == "scalar" else ""
        hint = close if close.startswith(",") else ""
        reader.error(node, f"{key}: expected one of {', '.join(words)}, found {found(node)}{hint}")
        return None

    return read


def pass_rule(reader: Reader, node: Node, key: str) -> PassRule | None:
    """Return ``all``, ``any``, ``majority``, a share above 0 and up to 1 (0 would pass anything),
    or ``2/3``.
    """
    if node.id == "scalar":
        written = node.value.strip()
        if written in ("all", "any", "majority"):
            return PassRule(written, 1.0)
        fraction = re.fullmatch(r"(\d+)\s*/\s*(\d+)", written)
        if fraction and 0 < int(fraction[1]) <= int(fraction[2]):
            return PassRule(written, int(fraction[1]) / int(fraction[2]))
        if re.fullmatch(r"\d*\.?\d+|\d+\.", written) and 0 < float(written) <= 1:
            return PassRule(written, float(written))
    allowed = "all, any, majority, a share above 0 and up to 1, or a fraction such as 2/3"
    reader.error(node, f"{key}: expected {allowed}, found {found(node)}")
    return None


_BUDGET: dict[str, Read] = {
    "tokens": whole(0),
    "cost": amount(),
    "duration_ms": amount(),
    "tool_calls": whole(0),
    "sql_queries": whole(0),
}


def budget(reader: Reader, node: Node, key: str) -> Budget | None:
    """Return limits: tokens, cost, duration_ms, tool_calls, sql_queries."""
    if node.id != "mapping" or not node.value:
        example = "{tokens: 60000, cost: 0.50}"
        reader.error(node, f"{key}: expected limits such as {example}, found {found(node)}")
        return None
    limits: dict[str, Any] = {}
    for word, entry in reader.entries(node).items():
        if word in _BUDGET:
            limits[word] = _BUDGET[word](reader, entry.value, f"{key}.{word}")
        else:
            reader.error(entry.key, f"{key}: unknown limit {word!r}{did_you_mean(word, _BUDGET)}")
    return Budget(**limits)


def caller(reader: Reader, node: Node, key: str) -> Any:
    """Return who asks: a name or a mapping."""
    if node.id == "mapping":
        return reader.plain(node)
    if node.id == "scalar":
        return name(reader, node, key)
    reader.error(node, f"{key}: expected text or a mapping, found {found(node)}")
    return None


def mapping(reader: Reader, node: Node, key: str) -> dict[str, Any]:
    """Return any mapping."""
    if node.id == "mapping":
        value = reader.plain(node)
        return value if isinstance(value, dict) else {}
    if not (node.id == "scalar" and node.tag.endswith(":null")):
        reader.error(node, f"{key}: expected a mapping, found {found(node)}")
    return {}


def anything(reader: Reader, node: Node, key: str) -> Any:
    """Return any value."""
    return reader.plain(node)


def approve(reader: Reader, node: Node, key: str) -> bool | tuple[str, ...]:
    """Return whether tools that ask go ahead: true, false, or the names of those that do."""
    if node.id == "scalar" and node.tag.endswith(":bool"):
        return bool(boolean(reader, node, key))
    if node.id == "sequence" or (node.id == "scalar" and node.tag == _STR):
        return names(reader, node, key)
    reader.error(node, f"{key}: expected true, false or names of tools, found {found(node)}")
    return False


def skip(reader: Reader, node: Node, key: str) -> str | None:
    """Return ``true`` or a reason; ``None``: not skipped."""
    if node.id == "scalar" and node.tag.endswith(":bool"):
        return "skip: true in the case" if boolean(reader, node, key) else None
    if node.id == "scalar":
        return text(reader, node, key)
    reader.error(node, f"{key}: expected true, false or a reason, found {found(node)}")
    return None


def xfail(reader: Reader, node: Node, key: str) -> Xfail | None:
    """Return ``true``, a reason, or ``{models, reason}``."""
    if node.id == "scalar" and node.tag.endswith(":bool"):
        return Xfail() if boolean(reader, node, key) else None
    if node.id == "scalar":
        return Xfail(text(reader, node, key) or "")
    if node.id != "mapping":
        reader.error(
            node, f"{key}: expected true, false, a reason or {{models, reason}}, found {found(node)}"
        )
        return None
    entries = reader.entries(node)
    for word, entry in entries.items():
        if word not in ("models", "reason"):
            reader.error(entry.key, f"{key}: unknown key {word!r}{did_you_mean(word, ('models', 'reason'))}")
    reason = text(reader, entries["reason"].value, f"{key}.reason") if "reason" in entries else ""
    only = models(reader, entries["models"].value, f"{key}.models") if "models" in entries else None
    return Xfail(reason or "", only)


def marks(reader: Reader, node: Node, key: str) -> tuple[Mark, ...]:
    """Return Pytest marks: names, or ``name(arguments)`` with literal arguments."""
    entries = node.value if node.id == "sequence" else [node]
    return tuple(mark for entry in entries if (mark := _mark(reader, entry, key)) is not None)


def _mark(reader: Reader, node: Node, key: str) -> Mark | None:
    written = name(reader, node, key)
    if written is None:
        return None
    try:
        tree = ast.parse(written, mode="eval").body
        if isinstance(tree, ast.Name):
            return Mark(tree.id)
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
            args = tuple(ast.literal_eval(argument) for argument in tree.args)
            kwargs = {k.arg: ast.literal_eval(k.value) for k in tree.keywords if k.arg is not None}
            condition = kwargs.get("condition", args[0] if args else None)
            if tree.func.id in ("skipif", "xfail") and isinstance(condition, str):
                reader.error(
                    node,
                    f"{key}: the condition of {tree.func.id} is a text, which pytest would run as code; "
                    "write True or False, or use skip: and xfail: of the case",
                )
                return None
            if len(kwargs) == len(tree.keywords):
                return Mark(tree.func.id, args, kwargs)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        pass
    reader.error(node, f"{key}: {written!r} is not a name or name(arguments) with literal arguments")
    return None


def reference(reader: Reader, node: Node, key: str) -> str | None:
    """Return ``pkg.mod:name``; it is imported when the case runs."""
    word = name(reader, node, key)
    if word is not None and not _REFERENCE.fullmatch(word):
        reader.error(node, f"{key}: {word!r} is not pkg.mod:name")
        return None
    return word


def version(reader: Reader, node: Node, key: str) -> int | None:
    """Return 1, the only version there is."""
    if node.id == "scalar" and node.value in ("1", "1.0"):
        return 1
    reader.error(node, f"{key}: this version reads 1, found {found(node)}")
    return None
