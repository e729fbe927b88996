"""Keeping secrets out of everything that is written: results, journals, recordings, errors, logs."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urlsplit

MASK = "***"

SECRET_NAME = re.compile(
    r"pass(word|wd|phrase)?$|pwd|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|(^|[-_])key$|credential"
    r"|^(proxy-)?authorization$|^(set-)?cookie$|dsn$|connection[-_]?string",
    re.IGNORECASE,
)
"""Names (of variables, headers, keys) whose values are secret whatever they look like."""

MASKED_KEYS = re.compile(
    r"(proxy-)?authorization|(set-)?cookie|password|passwd|passphrase|api[-_]?key|x-api-key|secret"
    r"|client[-_]secret|private[-_]key|(access|auth|refresh|bearer|session)[-_]?token",
    re.IGNORECASE,
)
"""Keys of structures whose text is masked whole; plain ``key`` and ``token`` are names of columns too."""

_SHAPES = (
    # Authorization: Bearer xyz, "authorization": "Basic xyz"
    (
        re.compile(r"(?i)(\bauthorization[\"']?\s*[:=]\s*[\"']?(?:[a-z]+\s+)?+)(?!\*\*\*)[^\s\"',}\]]{4,}"),
        r"\1" + MASK,
    ),
    (
        re.compile(r"\b([Bb]earer|BEARER|[Bb]asic|BASIC)(\s+)(?=\S*\d)(?=\S*[A-Za-z])[\w.~+/-]{12,}=*"),
        r"\1\2" + MASK,
    ),
    # scheme://user:password@host
    (re.compile(r"(?i)(\b[a-z][a-z0-9+.-]*://[^\s:/@?#\"']*:)[^\s/@\"']+(?=@)"), r"\1" + MASK),
    # password=xyz, "api_key": "xyz"; a token only when it is long
    (
        re.compile(
            r"(?i)\b((?:[a-z0-9]+[-_])*(?:password|passwd|pwd|secret|api[-_]?key)[\"']?\s*[=:]\s*[\"']?)"
            r"(?!\*\*\*)[^\s\"'&,;)}\]]{4,}"
        ),
        r"\1" + MASK,
    ),
    (
        re.compile(r"(?i)\b((?:[a-z0-9]+[-_])*token[\"']?\s*[=:]\s*[\"']?)(?=\S*\d)[\w.~+/-]{16,}=*"),
        r"\1" + MASK,
    ),
    # keys known by their first letters
    (
        re.compile(r"\b(sk-|ghp_|gho_|github_pat_|xox[abps]-|AKIA|AIza|glpat-|dapi)(?=[\w-]*\d)[\w-]{14,}"),
        r"\1" + MASK,
    ),
)
_FOLDERS = ("PWD", "OLDPWD")
"""The shell's working folders: masked, they would take the place out of every path in a report."""

_HINTS = ("uthorization", "AUTHORIZATION", "earer", "asic", "EARER", "ASIC", "://", "passw", "PASSW", "Passw",
          "pwd", "PWD", "ecret", "ECRET", "key", "KEY", "Key", "oken", "OKEN", "sk-", "gh", "xox", "AKIA",
          "AIza", "glpat-", "dapi")  # fmt: skip


class Redactor:
    """Knows the secrets of a run and takes them out of texts and JSON structures.

    Thread-safe; secrets may be added while it is in use (a token comes with the login). Beside
    those it knows, it masks what has the shape of one: Authorization headers, passwords in URLs,
    ``password=...``, keys with a known beginning.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._state: tuple[frozenset[str], re.Pattern[str] | None] = (frozenset(), None)
        self.add(*secrets)

    def add(self, *secrets: str | None) -> None:
        """Secrets, each masked from now on wherever it stands (from 4 characters on)."""
        self._extend(form for secret in secrets if secret for form in _forms(secret))

    def add_named(self, name: str, value: Any) -> None:
        """A value read from the environment, under the name of its variable: secret, with few exceptions.

        Those are numbers, words of less than 8 letters, files, models (a name with ``MODEL``), and what
        of a URL is not its password: masking ``shop`` would spoil every answer that says it. A secret
        name (``X_API_KEY``) makes any value of 4 characters a secret.
        """
        text = "" if value is None else str(value)
        if SECRET_NAME.search(name):
            self.add(text)
        if "://" in text:
            self._extend(form for part in _url_secrets(text) for form in _forms(part))
        elif _looks_secret(name, text.strip()):
            self.add(text)

    def add_environment(self, environ: Mapping[str, str]) -> None:
        """Values of 8 characters and more whose variables have secret names, whoever uses them."""
        for name, value in environ.items():
            if name not in _FOLDERS and len(value) >= 8 and SECRET_NAME.search(name):
                self.add_named(name, value)

    def _extend(self, forms: Iterable[str]) -> None:
        with self._lock:
            before = self._state[0]
            known = before | frozenset(forms)
            if known != before:
                longest_first = sorted(known, key=len, reverse=True)
                self._state = (known, re.compile("|".join(map(_whole, longest_first))))

    def text(self, text: str) -> str:
        """``text`` with every secret as ``***``."""
        known, pattern = self._state
        if pattern is not None and any(secret in text for secret in known):
            text = pattern.sub(MASK, text)
        if any(hint in text for hint in _HINTS):
            for shape, replacement in _SHAPES:
                text = shape.sub(replacement, text)
        return text

    __call__ = text

    def data(self, value: Any, depth: int = 0) -> Any:
        """A structure of dicts, lists and scalars with secrets masked in its texts.

        The text under a key such as ``authorization``, ``password``, ``api_key`` is masked whole. Other
        objects are passed through.
        """
        if isinstance(value, str):
            return self.text(value)
        if depth > 60:
            return value
        if isinstance(value, Mapping):
            return {
                (self.text(key) if isinstance(key, str) else key): (
                    MASK if _secret_entry(key, item) else self.data(item, depth + 1)
                )
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self.data(item, depth + 1) for item in value]
        if isinstance(value, tuple) and type(value) is tuple:
            return tuple(self.data(item, depth + 1) for item in value)
        return value

    def __repr__(self) -> str:
        return f"Redactor({len(self._state[0])} forms)"


def _secret_entry(key: Any, item: Any) -> bool:
    return isinstance(key, str) and isinstance(item, str) and bool(item) and bool(MASKED_KEYS.fullmatch(key))


def _forms(secret: str) -> Iterable[str]:
    """The secret as it may be written: as is, in JSON, in a URL, in repr."""
    if len(secret.strip()) < 4:
        return
    escaped = (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    yield from {secret, secret.strip(), *escaped, repr(secret)[1:-1]}
    yield from {quote(secret, safe="", errors="replace"), quote_plus(secret, errors="replace")}


def _whole(secret: str) -> str:
    """Short secrets and plain words count only as whole words: 'shop' is not masked inside 'workshop'."""
    body = re.escape(secret)
    return rf"(?<!\w){body}(?!\w)" if len(secret) < 8 or secret.isalpha() else body


def _looks_secret(name: str, text: str) -> bool:
    if "model" in name.lower() or re.fullmatch(r"[\d.,+-]{0,12}|true|false|null", text, re.IGNORECASE):
        return False
    if _FILE.search(text) or (text.startswith(("/", "./", "../", "~")) and os.path.exists(text)):
        return False
    return len(text) >= 8 or not text.isalpha()


_FILE = re.compile(r"\.(duckdb|db|sqlite3?|csv|parquet|json|jsonl|ya?ml|toml|sql|txt|md|py)$")


def _url_secrets(url: str) -> Iterable[str]:
    try:
        parts = urlsplit(url)
        password = parts.password
    except ValueError:
        return
    if password:
        yield password
        yield unquote(password)
    for entry in parts.query.split("&"):
        name, _, value = entry.partition("=")
        if value and SECRET_NAME.search(name):
            yield value
            yield unquote(value)


_URL = re.compile(r"(?P<scheme>[A-Za-z][\w.+-]*)://(?P<rest>.*)", re.DOTALL)
_LOGIN = re.compile(r"(?P<login>[^:/@?#]*(?::(?!\d+[/?#]).*)?)@", re.DOTALL)
_SECRET_KEY = re.compile(r"([?&;][^=&;]*(?:pass|pwd|secret|token|key)[^=&;]*=)[^&;]*", re.IGNORECASE)


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
