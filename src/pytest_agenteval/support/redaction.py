"""Keeping secrets out of everything that is written: results, journals, recordings, errors, logs."""

from __future__ import annotations

import base64
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from pytest_agenteval.support.secret_shapes import (
    HINTS,
    MASK,
    SECRET_NAME,
    SHAPES,
    SHORT_SECRET_NAME,
    database_passwords,
    masked_key,
)

_FOLDERS = ("PWD", "OLDPWD")
"""The shell's working folders: masked, they would take the place out of every path in a report."""

_TRIVIAL = re.compile(
    r"[\d.,+-]{0,3}|true|false|null|none|yes|no|on|off|auto|default|basic|public|disabled|enabled", re.I
)
"""Values that say how something is done, whatever their name."""

_DEEP = 60
_DATA = ("data", "value")
_TABLES = ("rows", "data", "result")
_UNJUDGED = ("logs", "conversation", "wire_attempts", "metadata", "usage")

Masker = Callable[[str], str]


class Redactor:
    """Knows the secrets of a run and takes them out of texts and JSON structures.

    Thread-safe; secrets may be added while it is in use (a token comes with the login). Three ways:
    ``text`` masks known secrets and what has the shape of one; ``data`` does so for every text of a
    structure, and masks whole what stands under a key such as ``password``; ``cells`` masks known secrets
    only: data is compared, and a masked value is another one.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._state: tuple[frozenset[str], re.Pattern[str] | None] = (frozenset(), None)
        self.add(*secrets)

    def add(self, *secrets: str | None) -> None:
        """Add secrets, each masked from now on wherever it stands (from 4 characters on)."""
        self._extend(form for secret in secrets if secret for form in _forms(secret))

    def add_named(self, name: str, value: Any) -> None:
        """Add a value read from the environment under its variable's name: secret, with few exceptions.

        Those are numbers, words of less than 8 letters, files, models (a name with ``MODEL``), and what
        of a URL is not its password: masking ``shop`` would spoil every answer that says it. A secret
        name (``X_API_KEY``) makes any value of 4 characters a secret.
        """
        text = "" if value is None else str(value)
        if SECRET_NAME.search(name) and not _TRIVIAL.fullmatch(text):
            self.add(text)
        if "://" in text or name == "url":
            self._extend(form for part in _url_secrets(text) for form in _forms(part))
        elif _looks_secret(name, text.strip()):
            self.add(text)

    def add_environment(self, environ: Mapping[str, str]) -> None:
        """Add values whose variables have secret names; passwords in URLs of any variable."""
        for name, value in environ.items():
            if name in _FOLDERS or "\0" in value:
                continue
            if SHORT_SECRET_NAME.search(name) or (len(value) >= 8 and SECRET_NAME.search(name)):
                self.add_named(name, value)
            elif "://" in value and "@" in value:
                self._extend(form for part in database_passwords(value) for form in _forms(part))

    def add_command(self, words: Iterable[str]) -> None:
        """Add the secrets on a command line: ``--api-key X``, ``--token=X``, passwords in URLs."""
        name = ""
        for word in words:
            option, mark, value = word.partition("=")
            if name and not word.startswith("-"):
                self.add_named(name, word)
            elif mark and option.startswith("-"):
                self.add_named(option, value)
            elif "://" in word:
                self.add_named("url", word)
            name = word if word.startswith("-") and not mark and SECRET_NAME.search(word) else ""

    def _extend(self, forms: Iterable[str]) -> None:
        with self._lock:
            before = self._state[0]
            known = before | frozenset(forms)
            if known != before:
                longest_first = sorted(known, key=len, reverse=True)
                self._state = (known, re.compile("|".join(map(_whole, longest_first))))

    def known(self, text: str) -> str:
        """Return ``text`` with the secrets that are known as ``***``."""
        known, pattern = self._state
        if pattern is not None and any(secret in text for secret in known):
            return pattern.sub(MASK, text)
        return text

    def text(self, text: str) -> str:
        """Return ``text`` with every secret as ``***``, known or of a known shape."""
        text = self.known(text)
        if any(hint in text for hint in HINTS):
            for shape, replacement in SHAPES:
                text = shape.sub(replacement, text)
        return text

    __call__ = text

    def data(self, value: Any) -> Any:
        """Return a structure of dicts, lists and scalars with the secrets in it masked,
        in the light of their keys.

        Rows of tables (``{columns, rows}``, lists of dicts) are data: known secrets only. Other objects
        than JSON has are passed through.
        """
        return self.masked(value)[0]

    def cells(self, value: Any) -> tuple[Any, int]:
        """Return the same for data: nothing but known secrets is masked; and how many values were."""
        count: list[str] = []
        return _walk(value, self.known, None, count), len(count)

    def masked(self, value: Any) -> tuple[Any, int]:
        """Return what :meth:`data` gives, and how many values were masked in it."""
        if self._clean(value):
            return value, 0
        count: list[str] = []
        return _walk(value, self.text, self.known, count), len(count)

    def answer(self, form: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
        """Return an answer as JSON, masked, and how many values that a verdict hangs on are others now.

        Its data and value are data, what it logged and sent over the wire is not judged.
        """
        made: dict[str, Any] = {}
        total = 0
        for key, entry in form.items():
            if key == "answer" and isinstance(entry, Mapping):
                made[key], count = self.answer(entry)
            elif key == "turns" and isinstance(entry, list) and all(isinstance(e, Mapping) for e in entry):
                turns = [self.answer(turn) for turn in entry]
                made[key], count = [turn for turn, _ in turns], sum(number for _, number in turns)
            else:
                made[key], count = (self.cells if key in _DATA else self.masked)(entry)
            total += 0 if key in _UNJUDGED else count
        return made, total

    def _clean(self, value: Any) -> bool:
        """Return whether there is nothing to mask; one look at all texts together,
        which is most often enough.
        """
        texts: list[str] = []
        if not _collect(value, texts, 0):
            return False
        joined = "\0".join(texts)
        return self.text(joined) == joined

    def __repr__(self) -> str:
        return f"Redactor({len(self._state[0])} forms)"


def _collect(value: Any, texts: list[str], depth: int) -> bool:
    """Return gather every text; false where a key says that what stands under it is secret."""
    if isinstance(value, str):
        texts.append(value)
    elif depth > _DEEP:
        return False
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            if isinstance(key, str):
                if _secret_key(key) and _maskable(entry):
                    return False
                texts.append(key)
            if not _collect(entry, texts, depth + 1):
                return False
        return not _named_pair(value)
    elif isinstance(value, list | tuple):
        return all(_collect(entry, texts, depth + 1) for entry in value) and not _listed_pair(value)
    return True


_secret_key = lru_cache(maxsize=4096)(masked_key)


def _walk(value: Any, mask: Masker, cells: Masker | None, count: list[str], depth: int = 0) -> Any:
    """Return ``value`` masked; ``cells`` masks rows of tables (``None``:
    it is one). ``count`` grows by each.
    """
    if isinstance(value, str):
        made = mask(value)
        if made != value:
            count.append(made)
        return made
    if depth > _DEEP:
        return value
    if isinstance(value, Mapping):
        return _walk_mapping(value, mask, cells, count, depth)
    if isinstance(value, list) or type(value) is tuple:
        if cells is not None and _listed_pair(value):
            count.append(MASK)
            return type(value)([value[0], MASK])
        return type(value)([_walk(entry, mask, cells, count, depth + 1) for entry in value])
    return value


def _walk_mapping(
    value: Mapping[Any, Any], mask: Masker, cells: Masker | None, count: list[str], depth: int
) -> dict[Any, Any]:
    table = cells is not None and isinstance(value.get("columns"), list | tuple)
    pair = cells is not None and _named_pair(value)
    made = {}
    for key, entry in value.items():
        name = mask(key) if isinstance(key, str) else key
        secret = cells is not None and isinstance(key, str) and _secret_key(key) and _maskable(entry)
        if secret or (pair and key in ("value", "Value")):
            count.append(MASK)
            made[name] = MASK
        elif (table and key == "rows") or (key in _TABLES and _is_rows(entry)):
            made[name] = _walk(entry, cells or mask, None, count, depth + 1)
        else:
            made[name] = _walk(entry, mask, cells, count, depth + 1)
    return made


def _is_rows(entries: Any) -> bool:
    """Return whether dicts are the rows of a table: all have the same keys, and their values are scalars."""
    if not isinstance(entries, list) or not entries:
        return False
    if all(isinstance(entry, list) for entry in entries):
        return True
    if not all(isinstance(entry, Mapping) for entry in entries):
        return False
    first = list(entries[0])
    if {"type", "text"} <= set(first):  # blocks of text of MCP, not rows
        return False
    return (
        all(list(entry) == first for entry in entries)
        and not any(isinstance(cell, Mapping | list | tuple) for cell in entries[0].values())
        and not any(_named_pair(entry) for entry in entries)
    )


def _named_pair(value: Mapping[Any, Any]) -> bool:
    """Return ``{"name": "Authorization", "value": "Bearer x"}``, as logs of requests have it."""
    name = value.get("name", value.get("key", value.get("Name")))
    return ("value" in value or "Value" in value) and isinstance(name, str) and _secret_key(name)


def _listed_pair(value: Any) -> bool:
    """Return ``["Authorization", "Bearer x"]``."""
    return (
        len(value) == 2
        and isinstance(value[0], str)
        and isinstance(value[1], str)
        and bool(value[1])
        and _secret_key(value[0])
        and not _secret_key(value[1])
    )


def _maskable(entry: Any) -> bool:
    """Return what stands under a secret key and may be one: not a switch, not a null, not a mask,
    not a count.
    """
    if isinstance(entry, str):
        return bool(entry) and entry != MASK
    if isinstance(entry, bool) or entry is None:
        return False
    return bool(entry) if isinstance(entry, Mapping | list | tuple) else len(str(entry)) >= 4


def _forms(secret: str) -> Iterator[str]:
    """Yield the secret as it may be written: as is, in JSON (also inside JSON), in a URL, in repr,
    encoded.
    """
    if len(secret.strip()) < 4:
        return
    yield from _escaped(secret)
    for safe in ("", "/", "/@:", "/:"):
        yield quote(secret, safe=safe, errors="replace")
    yield quote_plus(secret, errors="replace")
    data = secret.encode("utf-8", "replace")
    if len(data) >= 6:
        yield from {data.hex(), data.hex().upper(), *_in_base64(data)}


def _escaped(secret: str) -> set[str]:
    forms = {secret, secret.strip(), repr(secret)[1:-1]}
    for ascii_only in (True, False):
        once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        twice = json.dumps(once, ensure_ascii=ascii_only)[1:-1]
        forms |= {once, twice, once.replace("/", "\\/")}
    return forms


def _in_base64(data: bytes) -> Iterator[str]:
    """Yield what base64 shows of ``data`` for sure, wherever it begins in what was encoded
    (``user:password``).
    """
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode(data).decode()
        yield whole
        yield whole.rstrip("=")
        for lead in range(3):
            text = encode(b"\0" * lead + data).decode().rstrip("=")
            sure = text[(0, 2, 3)[lead] : (lead + len(data)) * 8 // 6]
            if len(sure) >= 8:
                yield sure


def _whole(secret: str) -> str:
    """Return short secrets and plain words count only as whole words:
    'shop' is not masked inside 'workshop'.
    """
    body = re.escape(secret)
    return rf"(?<!\w){body}(?!\w)" if len(secret) < 8 or secret.isalpha() else body


def _looks_secret(name: str, text: str) -> bool:
    if "model" in name.lower() or re.fullmatch(r"[\d.,+-]{0,12}|true|false|null", text, re.IGNORECASE):
        return False
    if _FILE.search(text) or (text.startswith(("/", "./", "../", "~")) and os.path.exists(text)):
        return False
    return len(text) >= 8 or not text.isalpha()


_FILE = re.compile(r"\.(duckdb|db|sqlite3?|csv|parquet|json|jsonl|ya?ml|toml|sql|txt|md|py)$")


def _url_secrets(url: str) -> Iterator[str]:
    for password in database_passwords(url):
        yield password
        yield unquote(password)
    for entry in re.split(r"[&;]", url.partition("?")[2] or url.partition(";")[2]):
        name, _, value = entry.partition("=")
        if value and SECRET_NAME.search(name):
            yield value
            yield unquote(value)


_URL = re.compile(r"(?P<scheme>[A-Za-z][\w.+-]*)://(?P<rest>.*)", re.DOTALL)
_LOGIN = re.compile(r"(?P<login>[^:/@?#]*(?::(?!\d++[/?#]).*)?)@", re.DOTALL)
_SECRET_KEY = re.compile(
    r"([?&;][^=&;?]{0,80}(?:pass|pwd|secret|token|key|cred)[^=&;?]{0,80}=)[^&;]*", re.IGNORECASE
)


def url_without_secrets(url: str) -> str:
    """Return ``url`` for a message: its password and secret parameters as ``***``; no URL: as it is.

    A password may hold any character, also ``@``, ``/`` and ``?``.
    """
    match = _URL.fullmatch(url)
    if match is None:
        return url
    login, place = _login(match["rest"])
    user, colon, _ = login.partition(":")
    shown = f"{user}:{MASK}@" if colon else f"{login}@" if login else ""
    return f"{match['scheme']}://{shown}" + _SECRET_KEY.sub(r"\1" + MASK, place)


def bare_url(url: str) -> str:
    """Return ``url`` without login, parameters and fragment, as messages and records show a service."""
    match = _URL.fullmatch(url)
    rest = url if match is None else f"{match['scheme']}://{_login(match['rest'])[1]}"
    return re.split(r"[?#]", rest, maxsplit=1)[0]


def _login(rest: str) -> tuple[str, str]:
    """Split what follows ``scheme://`` into (login, the rest); the login is "" where there is none."""
    place = rest.partition("?")[0]
    found = _LOGIN.match(place if "@" in place else rest)
    return (found["login"], rest[found.end() :]) if found else ("", rest)
