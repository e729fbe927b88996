"""``http:URL``: any JSON API, by a request template and JSONPaths into its answer; also asynchronous jobs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urljoin, urlsplit

from pytest_agenteval.agents.base import AgentContext, RunnableAgent, unsupported_keys
from pytest_agenteval.agents.kinds.command import task_to_json
from pytest_agenteval.agents.kinds.http_config import HttpConfig, Poll, read_config, word_of
from pytest_agenteval.agents.kinds.http_stream import arrived_ms, events_of, is_stream, piece_of
from pytest_agenteval.agents.kinds.http_template import values_of
from pytest_agenteval.agents.kinds.json_path import find
from pytest_agenteval.agents.normalize import answer_from_mapping, normalize
from pytest_agenteval.errors import AgentFailed, AgentTimeout
from pytest_agenteval.llm.http_client import HttpClient
from pytest_agenteval.llm.http_response import HttpResponse, error_text
from pytest_agenteval.support import clock
from pytest_agenteval.support.json_codec import decode
from pytest_agenteval.support.secret_shapes import SECRET_NAME
from pytest_agenteval.types import Answer, HttpAttempt, Task, ToolCall, Usage

SERVICE = "http agent"
ANSWERED = ("text", "rows", "columns", "value", "sql", "tool_calls")
"""The paths to what checks judge."""
ANSWER_KEYS = {"data", "value", "tool_calls", "usage"}
"""One of these makes the last event of a stream an answer, where no path is given."""
_CALL_KEYS: Mapping[str, tuple[str, ...]] = {
    "name": ("name", "tool", "toolName", "tool_name"),
    "args": ("args", "arguments", "input", "parameters"),
    "result": ("result", "output", "response"),
    "id": ("id", "toolCallId", "tool_call_id", "call_id"),
    "error": ("error",),
    "asked": ("asked",),
    "approved": ("approved",),
}


def build(target: str, context: AgentContext) -> RunnableAgent:
    """Return ``http:http://host/ask`` or ``https://host/ask``;
    the rest stands in the project file under ``http``.

    Raises ``SettingsError`` for a bad block, naming the key.
    """
    url = target if target.startswith(("http://", "https://")) else target.partition(":")[2]
    config = read_config(context.project.http if context.project is not None else {}, url)
    _remember(config, context)
    passed = {"turns": ("turns", "conversation", "messages"), "as": ("caller",), "approve": ("approve",),
              "input": ("input",)}  # fmt: skip
    honoured = [key for key, names in passed.items() if config.names & set(names)]
    shown = context.redactor.text(str(config.url.form).partition("?")[0])
    return RunnableAgent(
        kind="http",
        name=f"http:{shown}",
        agent=HttpAgent(config, _wire(context), _named_tool(context.settings.sql_tools)),
        place=f"{SERVICE} at {shown}",
        is_builtin=True,
        unsupported_keys=unsupported_keys("http", *honoured),
    )


def _wire(context: AgentContext) -> HttpClient:
    """Return the run's HTTP client, shared with its models; a new one for an agent outside a run."""
    if context.models is not None:
        return context.models.wire
    return HttpClient(retries=context.settings.retries, redact=context.redactor)


def _remember(config: HttpConfig, context: AgentContext) -> None:
    """Remember as secrets the URL's password and headers whose names say so."""
    for name, value in (config.headers.form if config.headers else {}).items():
        context.redactor.add_named(name, value)
        context.redactor.add_named(name, value.rpartition(" ")[2])
    context.redactor.add_named("url", config.url.form)


def _named_tool(sql_tools: Sequence[str]) -> str:
    """Return the name of the tool call that ``http.sql`` makes: the first that is a name and no pattern."""
    return next((name for name in sql_tools if "*" not in name), "execute_sql")


@dataclass(frozen=True, slots=True)
class HttpAgent:
    """One request per turn, then polls where the API answers with a job."""

    config: HttpConfig
    wire: HttpClient
    sql_tool: str = "execute_sql"

    def run(self, task: Task) -> Answer:
        """Ask for an answer. Raises ``AgentFailed`` with what the API said,
        ``AgentTimeout`` at the deadline.
        """
        values = values_of(task)
        url = self.config.url.fill(values, url=True)
        sender = _Sender(self, values, task)
        try:
            reply = sender.send(self.config.method, url, self._body(task, values))
            if self.config.poll is not None:
                reply = self._wait(self.config.poll, reply, url, sender)
            return replace(self._read(reply), wire_attempts=tuple(sender.attempts))
        except AgentFailed as error:
            error.answer = replace(error.answer or Answer(), wire_attempts=tuple(sender.attempts))
            raise

    def _body(self, task: Task, values: Mapping[str, Any]) -> Any:
        if self.config.method == "GET":
            return None
        if self.config.body is not None:
            return self.config.body.fill(values)
        return json.loads(json.dumps(task_to_json(task), default=str))

    def _wait(self, poll: Poll, reply: HttpResponse, base: str, sender: _Sender) -> HttpResponse:
        """Poll until the job is over; returns the last reply."""
        began, polls = clock.monotonic(), 0
        address = poll.url.fill(sender.values, reply.json(), url=not _is_whole_path(poll))
        url = urljoin(base, str(address or ""))
        first = reply.json()
        limits = sender.task.limits
        while not self._over(poll, reply):
            left = (limits.deadline or began + limits.timeout) - clock.monotonic()
            stands = (
                f"{SERVICE}: the job is still {self._status(poll, reply)!r} after "
                f"{clock.monotonic() - began:.1f} s and {polls} polls"
            )
            if left <= poll.every:
                raise AgentTimeout(f"{stands}; the next one would come after the deadline")
            time.sleep(poll.every)
            try:
                body = None if poll.body is None else poll.body.fill(sender.values, first)
                reply = sender.send(poll.method, url, body)
            except AgentTimeout as error:
                raise AgentTimeout(f"{stands}; the next one did not end: {error}") from error
            polls += 1
        return reply

    def _status(self, poll: Poll, reply: HttpResponse) -> str:
        if poll.status is None:
            return f"HTTP {reply.status}"
        return word_of(next(iter(find(poll.status, reply.json())), "unknown"))

    def _over(self, poll: Poll, reply: HttpResponse) -> bool:
        status = self._status(poll, reply)
        if poll.status is None:
            return reply.status != 202
        if status in poll.failed:
            said = self._error(reply.json()) or error_text(reply.json())
            raise reply.failed(f"{SERVICE}: the job ended as {status!r}{f': {said}' if said else ''}")
        return status in poll.done

    def _error(self, value: Any) -> str:
        path = self.config.paths.get("error")
        found = next((item for item in find(path, value) if item), None) if path is not None else None
        return "" if found is None else error_text(found) or json.dumps(found)[:400]

    def _read(self, reply: HttpResponse) -> Answer:
        if is_stream(reply):
            return self._streamed(reply)
        value = reply.json()
        said = self._error(value)
        if said:
            raise reply.failed(f"{SERVICE} answered HTTP {reply.status} with an error: {said}")
        if not self.config.paths and not self.config.usage:
            return self._unmapped(reply, value)
        return self._mapped(reply, value)

    def _streamed(self, reply: HttpResponse) -> Answer:
        """Read a stream: paths lead into the list of its events; pieces of text are joined as they are."""
        events = events_of(reply)
        values = [event.value for event in events]
        said = self._error(values) or next(filter(None, map(_stream_error, values)), "")
        if said:
            raise reply.failed(f"{SERVICE}: the stream says: {said}")
        if not values:
            raise reply.failed(f"{SERVICE} sent a stream without an event")
        text = self.config.paths.get("text")
        pieces = [_pieces(text, value) for value in values]
        if self.config.paths or self.config.usage:
            answer = replace(self._mapped(reply, values), text="".join(pieces))
        elif isinstance(values[-1], dict) and ANSWER_KEYS & values[-1].keys() and not piece_of(values[-1]):
            answer = self._unmapped(reply, values[-1])
            answer = replace(answer, text=answer.text or "".join(pieces))
        else:
            answer = Answer(text="".join(pieces))
        first = next((event.end for event, piece in zip(events, pieces, strict=True) if piece), None)
        if first is None:
            return answer
        usage = replace(answer.usage or Usage(), first_token_ms=arrived_ms(reply, first))
        return replace(answer, usage=usage)

    def _unmapped(self, reply: HttpResponse, value: Any) -> Answer:
        """Read a response without any path: text, rows, or an object with the fields of an answer."""
        if isinstance(value, dict) and value.get("error") and "text" not in value and "data" not in value:
            said = error_text(value["error"]) or json.dumps(value["error"])[:400]
            raise reply.failed(f"{SERVICE} answered HTTP {reply.status} with an error: {said}")
        try:
            form = decode(value)
            return answer_from_mapping(form, SERVICE) if isinstance(form, dict) else normalize(form, SERVICE)
        except (AgentFailed, ValueError) as error:
            text = f"{error}; paths into another answer stand in the project file under http"
            raise reply.failed(text) from error

    def _mapped(self, reply: HttpResponse, value: Any) -> Answer:
        found = {key: find(path, value) for key, path in self.config.paths.items() if key != "error"}
        if not any(item is not None for key in found for item in found[key]):
            self._nothing_found(reply, value)
        rows = self._rows(found)
        return normalize(
            Answer(
                text="\n".join(_text(item) for item in found.get("text", ()) if item is not None),
                data=rows,
                value=_first(found.get("value")),
                tool_calls=(*self._calls(found.get("tool_calls", ())), *self._queries(found, rows)),
                usage=self._usage(value),
                cost=_first(found.get("cost")),
                finish_reason=_first(found.get("finish_reason")),
                conversation=_first(found.get("conversation")),
                logs="".join(f"{line}\n" for line in self._misses(found, value)),
            ),
            SERVICE,
        )

    def _misses(self, found: Mapping[str, list[Any]], value: Any) -> Iterator[str]:
        """Yield paths to what is judged that lead nowhere: the answer may lack the part,
        or the path is wrong.
        """
        for key in ANSWERED:
            if key in found and not found[key]:
                yield f"http.{key}: {self.config.written[key]} found nothing; the answer has {_held(value)}"

    def _nothing_found(self, reply: HttpResponse, value: Any) -> None:
        if isinstance(value, dict) and value.get("error"):
            said = error_text(value["error"]) or json.dumps(value["error"])[:400]
            raise reply.failed(f"{SERVICE} answered HTTP {reply.status} with an error: {said}")
        paths = ", ".join(f"{key} {path}" for key, path in self.config.written.items() if key != "error")
        raise reply.failed(
            f"{SERVICE}: none of its paths leads anywhere ({paths}); the answer has {_held(value)}"
        )

    def _rows(self, found: Mapping[str, list[Any]]) -> Any:
        """Return rows as a list of dicts, or as columns and lists; ``None`` when the path leads nowhere."""
        matches = found.get("rows", [])
        if not matches or matches == [None]:
            return None
        rows = matches[0] if len(matches) == 1 and isinstance(matches[0], list) else matches
        names = found.get("columns", [])
        names = names[0] if len(names) == 1 and isinstance(names[0], list) else names
        if not names and all(isinstance(row, dict) for row in rows):
            return rows
        if not names:
            kind = type(rows[0]).__name__
            raise AgentFailed(
                f"{SERVICE}: http.rows leads to a list that holds {kind}, expected objects, or lists and "
                "http.columns with their names"
            )
        columns = [[c.get("name"), c.get("type")] if isinstance(c, dict) else str(c) for c in names]
        return answer_from_mapping({"data": {"columns": columns, "rows": rows}}, SERVICE).data

    def _queries(self, found: Mapping[str, list[Any]], rows: Any) -> tuple[ToolCall, ...]:
        """Return the SQL that the API names as queries that ran; the last one gave the rows."""
        statements = [
            item for match in found.get("sql", ()) for item in _listed(match) if isinstance(item, str)
        ]
        last = len(statements) - 1
        return tuple(
            ToolCall(self.sql_tool, {"sql": sql}, rows if number == last else None)
            for number, sql in enumerate(statements)
        )

    def _calls(self, matches: Any) -> tuple[ToolCall, ...]:
        """Return the calls; what comes later under the same id (a result) belongs to the first."""
        found: list[ToolCall] = []
        for item in (item for match in matches for item in _listed(match) if item is not None):
            call_id = self._part("id", item)
            place = next(
                (n for n, call in enumerate(found) if call_id is not None and call.id == call_id), None
            )
            if place is None:
                found.append(self._call(item))
                continue
            later = {key: self._part(key, item) for key in ("result", "error")}
            known = {key: value for key, value in later.items() if value is not None}
            found[place] = replace(found[place], **known)
        return tuple(found)

    def _call(self, item: Any) -> ToolCall:
        values = {key: self._part(key, item) for key in _CALL_KEYS}
        name = values.pop("name")
        if name is None:
            shown = ", ".join(sorted(item)) if isinstance(item, dict) else repr(item)[:60]
            raise AgentFailed(
                f"{SERVICE}: a tool call has no name (it holds {shown}); set http.tool_call.name"
            )
        asked = bool(values.pop("asked"))
        return ToolCall(str(name), asked=asked, **{**values, "args": _parsed(values["args"])})

    def _part(self, key: str, item: Any) -> Any:
        if key in self.config.call:
            return _first(find(self.config.call[key], item))
        if not isinstance(item, dict):
            return None
        inner = item.get("function") if isinstance(item.get("function"), dict) else {}
        for name in _CALL_KEYS[key]:
            for place in (item, inner or {}):
                if place.get(name) is not None:
                    return place[name]
        return None

    def _usage(self, value: Any) -> Usage | None:
        told = {key: _first(find(path, value)) for key, path in self.config.usage.items()}
        model = told.pop("model", None)
        known: dict[str, Any] = {
            key: int(count) for key, count in told.items() if isinstance(count, int | float)
        }
        return Usage(**known, model=model if isinstance(model, str) else None) if known else None


@dataclass(frozen=True, slots=True)
class _Sender:
    """Sends the requests of one task and remembers every one on the wire."""

    agent: HttpAgent
    values: Mapping[str, Any]
    task: Task
    attempts: list[HttpAttempt] = field(default_factory=list)

    def send(self, method: str, url: str, body: Any) -> HttpResponse:
        """Make one call with its retries. Raises ``AgentFailed`` unless its status is a success."""
        headers = self.agent.config.headers
        filled = headers.fill(self.values) if headers else {}
        texts = {name: "" if value is None else str(value) for name, value in filled.items()}
        if _origin(url) != _origin(self.agent.config.url.fill(self.values, url=True)):
            # an answer named another host: what is meant for the first one is not sent there
            texts = {name: text for name, text in texts.items() if not SECRET_NAME.search(name)}
        if "accept" not in map(str.lower, texts):
            texts["Accept"] = "application/json, text/event-stream, application/x-ndjson"
        for name, text in texts.items():
            if not text.isascii() or any(ord(character) < 32 and character != "\t" for character in text):
                raise AgentFailed(
                    f"{SERVICE}: header {name!r} cannot be sent: its value holds a line break, a control "
                    "character or a letter beyond ASCII; put such text into the body"
                )
        try:
            reply = self.agent.wire.send(
                method,
                url,
                service=SERVICE,
                headers=texts,
                json=body,
                deadline=self.task.limits.deadline,
            )
        except AgentFailed as error:
            self.attempts.extend(error.answer.wire_attempts if error.answer else ())
            raise
        self.attempts.extend(reply.attempts)
        if not 200 <= reply.status < 300:
            raise reply.failure()
        return reply


def _origin(url: str) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port: what credentials are meant for."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _is_whole_path(poll: Poll) -> bool:
    """Return whether the API gives the whole URL: ``url: "{{ $.status_url }}"``;
    then nothing in it is quoted.
    """
    return poll.url.form.strip() in {f"{{{{ {name} }}}}" for name in poll.url.paths}


def _held(value: Any) -> str:
    if isinstance(value, dict):
        return "the keys " + ", ".join(sorted(map(str, value))[:20])
    return f"the form {type(value).__name__}"


def _pieces(text: Any, event: Any) -> str:
    """Return the text of one event: by the path, applied to a list of it alone."""
    if text is None:
        return piece_of(event)
    return "".join(item for item in find(text, [event]) if isinstance(item, str))


def _stream_error(event: Any) -> str:
    if not isinstance(event, dict):
        return ""
    if event.get("error") or event.get("event") == "error" or event.get("type") == "error":
        return error_text(event.get("error") or event) or json.dumps(event)[:400]
    return ""


def _first(matches: list[Any] | None) -> Any:
    return matches[0] if matches else None


def _listed(match: Any) -> list[Any]:
    return match if isinstance(match, list) else [match]


def _text(item: Any) -> str:
    return item if isinstance(item, str) else json.dumps(item)


def _parsed(args: Any) -> Any:
    """Read arguments that are JSON text (as OpenAI writes them); broken ones stay text."""
    if not isinstance(args, str) or not args.lstrip().startswith(("{", "[")):
        return args
    try:
        return json.loads(args)
    except ValueError:
        return args
