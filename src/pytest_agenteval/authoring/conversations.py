"""Conversations that people had with an agent, one JSON object a line, as drafts of cases.

A line is ``{question, sql, rating}`` (several spellings of each), or ``{messages: [...], feedback}`` as
chat programs export them. What people did not like comes first: there the agent fails, and a test pays.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pytest_agenteval.authoring.save_case import Draft
from pytest_agenteval.errors import ResultsError

Rating = Literal["down", "none", "up"]
ORDER: tuple[Rating, ...] = ("down", "none", "up")

QUESTIONS = ("question", "prompt", "input", "user_message", "user_query")
SQLS = ("sql", "sql_query", "last_sql", "generated_sql", "query", "statement")
RATINGS = ("rating", "feedback", "vote", "thumbs", "reaction", "score", "value")
COMMENTS = ("comment", "note", "reason", "explanation", "text")
MESSAGES = ("messages", "conversation", "turns", "history")
DOWN = frozenset(
    ("down", "thumbs_down", "thumbsdown", "negative", "bad", "dislike", "wrong", "no", "👎", "-1")
)
UP = frozenset(("up", "thumbs_up", "thumbsup", "positive", "good", "like", "right", "yes", "👍", "+1"))


@dataclass(frozen=True, slots=True)
class ReadConversation:
    """One conversation: its draft, what was thought of it, the line it stands on."""

    draft: Draft
    rating: Rating
    line: int


def read_conversations(path: Path, database: str | None = None) -> tuple[list[ReadConversation], list[str]]:
    """Return the conversations of a JSONL file, those that people disliked first; and what could not be used.

    The same question twice counts once, the worst rated. Raises ``ResultsError`` for a file in which
    no line is a conversation, ``OSError``.
    """
    found: list[ReadConversation] = []
    problems: list[str] = []
    lines = list(_lines(path, problems))
    stars = any(_is_number(value) and value > 1 for _, raw in lines for value in [_rating_value(raw)])
    for number, raw in lines:
        turns = _turns(raw)
        if not turns:
            problems.append(f"{path.name}:{number}: no question in it ({', '.join(QUESTIONS)} or messages)")
            continue
        rating = rating_of(_rating_value(raw), stars)
        found.append(ReadConversation(_draft(path, number, raw, turns, rating, database), rating, number))
    if not found:
        more = f": {problems[0]}" if problems else ""
        raise ResultsError(f"{path}: no conversation in it{more}")
    found.sort(key=lambda conversation: ORDER.index(conversation.rating))
    once: dict[tuple[str, ...], ReadConversation] = {}
    for conversation in found:
        once.setdefault(
            tuple(" ".join(turn.split()).casefold() for turn in conversation.draft.turns), conversation
        )
    return list(once.values()), problems


def _lines(path: Path, problems: list[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with open(path, encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                raw = json.loads(line)
            except ValueError as error:
                problems.append(f"{path.name}:{number}: not JSON: {error}")
                continue
            if isinstance(raw, Mapping):
                yield number, raw
            else:
                problems.append(f"{path.name}:{number}: not a JSON object")


def _draft(
    path: Path, number: int, raw: Mapping[str, Any], turns: list[str], rating: Rating, database: str | None
) -> Draft:
    origin = {"file": path.name, "line": number, "id": raw.get("id") or raw.get("conversation_id")}
    source: dict[str, Any] = {"source": {key: value for key, value in origin.items() if value is not None}}
    if rating != "none":
        source["rating"] = rating
    comment = _comment(raw)
    if comment:
        source["comment"] = comment
    name = raw.get("name")
    own = raw.get("database")
    return Draft(
        name=name if isinstance(name, str) and name else " ".join(turns[0].split())[:60],
        turns=turns,
        sql=_sql(raw),
        database=own if isinstance(own, str) and own else database,
        source=source,
    )


def rating_of(value: Any, stars: bool = False) -> Rating:
    """Return what a rating says: words, thumbs, booleans, -1 / 0 / 1; with ``stars`` numbers from 1 to 5."""
    if isinstance(value, str):
        word = value.strip().lower()
        if word.lstrip("+-").isdigit():
            return rating_of(int(word), stars)
        word = word.replace(" ", "_").replace("-", "_")[: 1 if word[:1] in "👎👍" else None]
        return "down" if word in DOWN else "up" if word in UP else "none"
    if isinstance(value, bool):
        return "up" if value else "down"
    if not _is_number(value):
        return "none"
    if stars:
        return "down" if value <= 2 else "up" if value >= 4 else "none"
    return "down" if value <= 0 else "up"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _first(raw: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((raw[name] for name in names if raw.get(name) is not None), None)


def _rating_value(raw: Mapping[str, Any]) -> Any:
    found = _first(raw, RATINGS)
    if isinstance(found, Mapping):
        return _rating_value(found)
    if found is None:  # a feedback on a message of it
        parts = (_rating_value(part) for part in _messages(raw) if part is not raw)
        found = next((part for part in reversed(list(parts)) if part is not None), None)
    return found


def _comment(raw: Mapping[str, Any]) -> str:
    feedback = _first(raw, RATINGS)
    found = _first(feedback, COMMENTS) if isinstance(feedback, Mapping) else _first(raw, COMMENTS[:1])
    return found.strip()[:1000] if isinstance(found, str) else ""


def _messages(raw: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    held = _first(raw, MESSAGES)
    return [part for part in held if isinstance(part, Mapping)] if isinstance(held, list) else []


def _turns(raw: Mapping[str, Any]) -> list[str]:
    said = _first(raw, QUESTIONS)
    if isinstance(said, str) and said.strip():
        return [said.strip()]
    asked = [_text(part) for part in _messages(raw) if part.get("role") in ("user", "human")]
    return [text for text in asked if text]


def _text(message: Mapping[str, Any]) -> str:
    """Return the text of a message; of parts the texts among them."""
    content = message.get("content", message.get("parts"))
    if isinstance(content, str):
        return content.strip()
    parts = (
        [part.get("text") for part in content if isinstance(part, Mapping)]
        if isinstance(content, list)
        else []
    )
    return "\n".join(part.strip() for part in parts if isinstance(part, str) and part.strip())


def _sql(raw: Mapping[str, Any]) -> str | None:
    own = _first(raw, SQLS)
    if isinstance(own, str) and own.strip():
        return own
    ran = [sql for message in _messages(raw) for sql in _statements(message)]
    return ran[-1] if ran else None


def _statements(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the SQL in the tool calls of a message: OpenAI's ``tool_calls``, ``toolCalls``, or tool parts."""
    calls = message.get("tool_calls") or message.get("toolCalls") or []
    parts = message.get("parts") or message.get("content")
    for call in [*calls, *(parts if isinstance(parts, list) else [])]:
        if not isinstance(call, Mapping):
            continue
        function = call.get("function")
        holder = function if isinstance(function, Mapping) else call
        args = _first(holder, ("arguments", "args", "input"))
        if isinstance(args, str):
            try:
                args = json.loads(args)
            except ValueError:
                continue
        if isinstance(args, Mapping):
            sql = _first(args, SQLS)
            if isinstance(sql, str) and sql.strip():
                yield sql
