"""``replay:FILE`` and the recorder behind ``--agent-record FILE``.

A recording is a text file of JSON lines, one per attempt: ``{"key", "turns", "model", "attempt",
"answer"}`` (and database, context, caller, input, vars, approve, clarification where the task had them),
and in ``types`` the kinds of the values
that JSON cannot hold. A line written by hand needs no key and no types.
"""

from __future__ import annotations

import contextlib
import copy
import fcntl
import hashlib
import json
import os
import stat
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from io import FileIO
from pathlib import Path
from typing import Any

from pytest_agenteval.agents.base import AgentContext, RunnableAgent, unsupported_keys
from pytest_agenteval.agents.normalize import normalize
from pytest_agenteval.errors import AgentFailed, JournalFailed, SettingsError
from pytest_agenteval.support.files import append_whole, private_opener
from pytest_agenteval.support.json_codec import NotExact, decode, dumps, pack, table_of, unpack
from pytest_agenteval.support.redaction import Redactor
from pytest_agenteval.support.scalars import plain_tree
from pytest_agenteval.support.text import cut
from pytest_agenteval.table import Table
from pytest_agenteval.types import Answer, HttpAttempt, Task, ToolCall, Usage

PARTS = ("database", "context", "caller", "input", "vars", "approve", "clarification")
"""What distinguishes tasks of the same turns; a line holds those that are set."""


def recording_key(task: Task, model: str | None = None, attempt: int | None = None) -> str:
    """Return sha256 over the whole task: turns, model, attempt and :data:`PARTS`.

    ``model`` and ``attempt`` stand in place of the task's own.
    """
    chosen = task.model if model is None else model
    number = task.attempt if attempt is None else attempt
    plain, kinds = _packed(_apart(task))
    form = dumps([list(task.turns), chosen, number, _sorted(plain), _sorted(kinds)])
    return hashlib.sha256(form.encode("ascii")).hexdigest()


def _sorted(value: Any) -> Any:
    """Return maps in the order of their keys, at every depth."""
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _old_key(turns: Sequence[str], model: str | None, attempt: int) -> str:
    """Return the key of version 0.1, which knew turns, model and attempt alone."""
    form = json.dumps([list(turns), model, attempt], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(form.encode("ascii")).hexdigest()


def recording_line(task: Task, answer: Answer) -> dict[str, Any]:
    """Return one line of a recording; ``answer`` is a normalised one."""
    line: dict[str, Any] = {
        "key": recording_key(task),
        "turns": list(task.turns),
        "model": task.model,
        "attempt": task.attempt,
    }
    plain, kinds = _packed({**_apart(task), "answer": answer_fields(answer)})
    return {**line, **plain, **({"types": kinds} if kinds else {})}


def _packed(typed: dict[str, Any]) -> tuple[Any, dict[str, str]]:
    try:
        return pack(typed, exact=True)
    except NotExact:  # a class derived from one of Python's own: kept as that
        return pack(typed)


def _apart(task: Task) -> dict[str, Any]:
    """Return what distinguishes tasks of the same turns, without what has its default."""
    unset = Task(())
    values = {name: getattr(task, name) for name in PARTS}
    return {name: plain_tree(value) for name, value in values.items() if value != getattr(unset, name)}


_DEFAULTS: Mapping[str, Any] = {field.name: field.default for field in fields(Answer)}
_PARTS: Mapping[str, type] = {"tool_calls": ToolCall, "wire_attempts": HttpAttempt}


def answer_fields(answer: Answer) -> dict[str, Any]:
    """Return the fields of a normalised answer that do not have their default, as maps and lists."""
    found = _set_fields(answer)
    for name in (*_PARTS, "usage", "turns"):
        if name == "turns" and name in found:
            found[name] = [answer_fields(turn) for turn in found[name]]
        elif name in found:
            held = found[name]
            found[name] = [_set_fields(part) for part in held] if name in _PARTS else _set_fields(held)
    return {name: value if name == "data" else plain_tree(value) for name, value in found.items()}


def _set_fields(entry: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that do not have their default, in their order."""
    pairs = {field.name: (getattr(entry, field.name), field.default) for field in fields(entry)}
    return {
        name: value
        for name, (value, default) in pairs.items()
        if value is not default and (isinstance(value, Table) or value != default)
    }


def answer_from_fields(form: Mapping[str, Any]) -> Answer:
    """Return the answer of :func:`answer_fields`; unknown keys (of a later version) are left out.

    ``data`` written by hand may be a list of objects, which stays one.
    """
    values = {name: form[name] for name in _DEFAULTS if name in form}
    if isinstance(values.get("data"), Mapping):
        values["data"] = table_of(values["data"])
    for name, kind in _PARTS.items():
        if name in values:
            values[name] = tuple(_made(kind, part) for part in values[name])
    if values.get("usage") is not None:
        values["usage"] = _made(Usage, values["usage"])
    if "turns" in values:
        values["turns"] = tuple(answer_from_fields(turn) for turn in values["turns"])
    return Answer(**values)


def _made(kind: type, form: Mapping[str, Any]) -> Any:
    names = {field.name for field in fields(kind)}
    return kind(**{name: value for name, value in form.items() if name in names})


class Recorder:
    """Appends answers to a file: whole lines or none, under a lock, from any thread and process."""

    def __init__(self, path: Path, redactor: Redactor | None = None) -> None:
        self.path = path
        self._redactor = redactor or Redactor()
        self._lock = threading.Lock()

    def record(self, task: Task, answer: Answer) -> None:
        """Write one line, secrets masked.

        Raises ``JournalFailed`` when the file cannot be written: the answer is in the run's journal, and
        the next one would be paid for and not recorded.
        """
        made = recording_line(task, answer)
        said, masked = self._redactor.answer(made.pop("answer"))
        made = {**self._redactor.data(made), "answer": said, **({"masked": masked} if masked else {})}
        line = dumps(made) + "\n"
        try:
            with self._lock:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._append(line.encode("ascii"))
        except OSError as error:
            raise JournalFailed(
                f"--agent-record {self.path}: {error.strerror or error}; nothing more is asked. "
                "The answers so far are in the results: go on with --agent-resume"
            ) from error

    def _append(self, data: bytes) -> None:
        with open(self.path, "a+b", buffering=0, opener=private_opener) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                _mend_last_line(file)
                append_whole(file, data)
            else:  # a pipe, a device
                while data:
                    data = data[file.write(data) :]


def _mend_last_line(file: FileIO) -> None:
    """Mend the last line, which a killed process may have left in the middle.

    A line by hand without its newline gets it, half a line is taken away.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - LONGEST_LINE, 0))
    tail = file.read(LONGEST_LINE)
    last = tail[tail.rfind(b"\n") + 1 :]
    if not last:
        return
    try:
        json.loads(last)
    except ValueError:
        file.truncate(size - len(last))
    else:
        append_whole(file, b"\n")


LONGEST_LINE = 64 * 1024**2
"""Bytes in which the last line of a recording is looked for."""


def build(target: str, context: AgentContext) -> RunnableAgent:
    """Return ``replay:FILE``, relative to the root folder. Raises ``SettingsError`` when there is no such
    file.
    """
    name, path = target.partition(":")[2], recording(target, context.root)
    return RunnableAgent(
        kind="replay",
        name=target,
        agent=ReplayAgent(path, name, wrap=context.settings.replay_wrap),
        place=target,
        takes_all_turns=True,
        is_builtin=True,
        unsupported_keys=unsupported_keys("replay"),
    )


def recording(target: str, root: Path) -> Path:
    """Return the file of ``replay:FILE``. Raises ``SettingsError`` when there is none."""
    name = target.partition(":")[2]
    path = root / name
    if not name or not path.is_file():
        raise SettingsError(
            f"target {target}: no file {name!r} in {root}; record one with --agent-record FILE"
        )
    return path


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    turns: tuple[str, ...]
    model: str | None
    attempt: int
    form: Mapping[str, Any]

    def values(self, *names: str) -> dict[str, Any]:
        """Return the parts ``names`` of the line (all: the answer and :data:`PARTS`) with their types.

        Raises ``ValueError`` and others for a value that does not fit its type.
        """
        parts = {name: self.form[name] for name in names or _TYPED if self.form.get(name) is not None}
        kinds = self.form.get("types")
        if kinds is None:  # by hand, or by version 0.1
            return dict(decode(parts))
        return dict(unpack(copy.deepcopy(parts), kinds))

    @property
    def whole(self) -> bool:
        """Whether the line tells its whole task: it was recorded, and after version 0.1."""
        key = self.form.get("key")
        return isinstance(key, str) and key != _old_key(self.turns, self.model, self.attempt)

    def apart(self) -> dict[str, Any]:
        """Return what tells its task from others of the same turns."""
        return self.values(*PARTS)

    def answers(self, apart: Mapping[str, Any]) -> bool:
        """Return whether its task is that of ``apart``, the database left open where either has none.

        A line by hand or of version 0.1 that does not name a part is of any, but for caller and input.
        """
        own = self.apart()
        always = PARTS if self.whole else ("caller", "input", *own)
        compared = [name for name in always if name != "database" or (name in own and name in apart)]
        return all(own.get(name) == apart.get(name) for name in compared)


_TYPED = ("answer", *PARTS)


class ReplayAgent:
    """Answers from a recording. The file is read with the first task; of equal keys the last line counts."""

    def __init__(self, path: Path, name: str, *, wrap: bool = False) -> None:
        self._path = path
        self._name = name
        self._wrap = wrap
        self._lock = threading.Lock()
        self._lines: list[_Line] | None = None
        self._by_turns: dict[tuple[tuple[str, ...], str | None], list[_Line]] = {}

    def recorded_model(self) -> str | None:
        """Return the file's only model; ``None`` when it holds none or several."""
        models = self._models()
        return models[0] if len(models) == 1 else None

    def run(self, task: Task) -> Answer:
        """Return the recorded answer. Raises ``AgentFailed`` when there is none."""
        self._read()
        model = task.model if task.model is not None else self._only_model()
        attempts = self._attempts(task, model)
        number = task.attempt
        if self._wrap and attempts and number not in attempts:
            number = sorted(attempts)[(task.attempt - 1) % len(attempts)]
        found = attempts.get(number)
        if found is None:
            raise AgentFailed(self._missing(task, model, sorted(attempts)))
        if masked := found.form.get("masked"):
            values = "1 value was" if masked == 1 else f"{masked} values were"
            raise AgentFailed(
                f"{self._name}:{found.number}: not replayable: {values} masked as secrets when it was "
                "recorded, so what would be judged is not what the agent said"
            )
        try:
            return normalize(answer_from_fields(found.values()["answer"]), f"{self._name}:{found.number}")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise AgentFailed(f"{self._name}:{found.number}: not a recorded answer: {error!r}") from error

    def _attempts(self, task: Task, model: str | None) -> dict[int, _Line]:
        """Return attempt number -> its last line, for this task and model;
        its own key decides before its parts.
        """
        lines = self._by_turns.get((task.turns, model), [])
        apart = _apart(task)
        keyed = {line.attempt: line for line in lines
                 if line.form.get("key") == recording_key(task, model, line.attempt)}  # fmt: skip
        alike = {line.attempt: line for line in lines if line.attempt not in keyed and line.answers(apart)}
        return {**alike, **keyed}

    def _only_model(self) -> str | None:
        models = self._models()
        if len(models) > 1:
            raise AgentFailed(
                f"{self._name} holds answers of {len(models)} models ({', '.join(map(str, models))}); "
                "choose with --agent-model"
            )
        return models[0] if models else None

    def _models(self) -> list[str | None]:
        return list(dict.fromkeys(line.model for line in self._read()))

    def _missing(self, task: Task, model: str | None, attempts: list[int]) -> str:
        shown = task.prompt if task.turns else f"input {task.input!r}"
        what = f"no recorded answer in {self._name} for {cut(shown, 60)!r}"
        if attempts:
            known = ", ".join(map(str, attempts))
            return f"{what}, attempt {task.attempt} (recorded: {known}); --agent-replay-wrap repeats those"
        others = self._by_turns.get((task.turns, model), [])
        if others:
            apart, own = _apart(task), others[-1].apart()
            differing = [name for name in PARTS if apart.get(name) != own.get(name)]
            return f"{what}: it was recorded with another {', '.join(differing)}"
        models = self._models()
        if model is not None and model not in models:
            return f"{what}, model {model}; recorded models: {', '.join(map(str, models)) or 'none'}"
        return what + (f", model {model}" if model else "")

    def _read(self) -> list[_Line]:
        with self._lock:
            if self._lines is None:
                lines = self._parsed()
                for line in lines:
                    self._by_turns.setdefault((line.turns, line.model), []).append(line)
                self._lines = lines
            return self._lines

    def _parsed(self) -> list[_Line]:
        try:
            texts = self._path.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise AgentFailed(f"{self._name}: {error}") from error
        lines = [self._line(text, number) for number, text in enumerate(texts[:-1], 1) if text.strip()]
        if texts[-1].strip():
            # no newline: written by hand, or the process that wrote it was killed in the middle
            with contextlib.suppress(AgentFailed):
                lines.append(self._line(texts[-1], len(texts)))
        return lines

    def _line(self, text: str, number: int) -> _Line:
        try:
            form = json.loads(text)
            turns = tuple(str(turn) for turn in form["turns"])
            dict(form["answer"])
            return _Line(number, turns, form.get("model"), int(form.get("attempt", 1)), form)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            why = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise AgentFailed(
                f"{self._name}:{number}: not a recording ({why}); each line is an object with turns, model, "
                "attempt, answer"
            ) from error
