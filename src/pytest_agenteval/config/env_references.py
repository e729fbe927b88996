"""``{{ env('X') }}`` in project files: found in the raw text, read only when the value is used.

nao replaces the pattern before it parses the file; we put a token of the same length in its place,
so that lines and columns stay right, and look the variable up when someone needs the value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_agenteval.cases.yaml_reader import Node, Reader
from pytest_agenteval.errors import SettingsError, VariableMissing
from pytest_agenteval.support.files import shown_path

_PATTERN = re.compile(r"\$?\{\{\s*(?P<how>env|aws|k8s)\(\s*['\"](?P<what>[^'\"\n]+)['\"]\s*\)\s*\}\}")
_OPEN, _FILL = "\ue000", "\ue001"
_TOKEN = re.compile(f"{_OPEN}([0-9]+){_FILL}+")


@dataclass(slots=True)
class Secrets:
    """Every value read from the environment for a project file; all of them are to be redacted."""

    values: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    _listeners: list[Callable[[str, str], object]] = field(default_factory=list)

    def add(self, value: str, name: str = "") -> None:
        """Remember ``value`` of the variable ``name``, and tell its listeners."""
        if value and value not in self.values:
            self.values.append(value)
            self.names[value] = name
            for listener in self._listeners:
                listener(name, value)

    def listen(self, listener: Callable[[str, str], object]) -> None:
        """Pass ``listener`` name and value of every variable: those known, and each that is read.

        ``Redactor.add_named`` is one: it keeps numbers and short words readable.
        """
        self._listeners.append(listener)
        for value in list(self.values):
            listener(self.names.get(value, ""), value)


@dataclass(frozen=True, slots=True)
class EnvReferences:
    """The references of one file, and how their values are read."""

    path: Path
    root: Path
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    secrets: Secrets = field(default_factory=Secrets)
    found: list[tuple[str, str]] = field(default_factory=list)

    def hide(self, text: str) -> str:
        """Return ``text`` with a token of equal length for each reference."""

        def token(match: re.Match[str]) -> str:
            self.found.append((match["how"], match["what"]))
            start = f"{_OPEN}{len(self.found) - 1}"
            return start + _FILL * (len(match[0]) - len(start))

        return _PATTERN.sub(token, text)

    def place(self, node: Node) -> str:
        """Return ``nao_config.yaml:12``."""
        return f"{shown_path(self.path, self.root)}:{node.start_mark.line + 1}"

    def inside(self, node: Node) -> bool:
        """Return whether a scalar holds a reference."""
        return _TOKEN.search(node.value) is not None

    def text(self, node: Node) -> str:
        """Return the text of a scalar, its references read. Raises ``SettingsError`` for a missing one."""

        def value(match: re.Match[str]) -> str:
            how, what = self.found[int(match[1])]
            if how != "env":
                raise SettingsError(
                    f"{self.place(node)}: {how}('{what}') is not supported here; use env('NAME')"
                )
            if what not in self.environ:
                raise VariableMissing(f"{self.place(node)}: environment variable {what} is not set")
            self.secrets.add(self.environ[what], what)
            return self.environ[what]

        return _TOKEN.sub(value, node.value)

    def value(self, node: Node) -> Any:
        """Return the value of a node, all references in it read.

        A scalar that is only a reference is typed as YAML would type the variable's text.
        """
        if node.id == "mapping":
            return {self.text(key): self.value(value) for key, value in node.value}
        if node.id == "sequence":
            return [self.value(entry) for entry in node.value]
        if not self.inside(node):
            return Reader(self.path).scalar(node)
        text = self.text(node)
        return _typed(text, self.path) if not node.style and _TOKEN.fullmatch(node.value) else text


def _typed(text: str, path: Path) -> Any:
    import yaml

    try:
        node: Any = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError:
        return text
    return text if node is None or node.id != "scalar" else Reader(path).scalar(node)
