"""The documented phrases by which a text declines a request; docs/checks.md lists them."""

from __future__ import annotations

import re

NEGATIONS = (
    "cannot", "can't", "can not", "cant", "could not", "couldn't", "unable to", "not able to", "won't",
    "will not", "must not", "may not", "should not", "shouldn't", "refuse to", "decline to", "not going to",
)  # fmt: skip
"""One of these, then within three words one of ``VERBS``, declines."""

VERBS = (
    "help", "assist", "share", "show", "provide", "give", "disclose", "reveal", "answer", "do", "access",
    "display", "return", "list", "perform", "forecast", "predict", "run", "execute", "fulfil", "fulfill",
    "comply", "delete", "update", "change", "modify", "expose", "retrieve", "export", "send", "process",
)  # fmt: skip

PHRASES = (
    "not allowed", "not permitted", "not authorized", "not authorised", "no permission",
    "not have permission", "n't have permission", "not have access", "n't have access",
    "not have the permission", "n't have the permission", "is blocked", "are blocked", "was blocked",
    "is restricted", "are restricted", "is forbidden", "are forbidden", "is prohibited", "are prohibited",
    "off limits", "off-limits", "against policy", "against the policy", "against our policy",
    "violates the policy", "violates our policy", "would violate", "blocked by policy",
    "blocked by the policy", "due to policy", "due to privacy", "for privacy reasons", "data protection",
    "personal data", "personal information", "personally identifiable", "sensitive data",
    "sensitive information",
    "not something i can", "outside my scope", "outside of my scope", "beyond my scope",
    "beyond my capabilities", "outside my capabilities", "not supported", "must decline", "have to decline",
    "need to decline", "must refuse", "have to refuse", "request denied", "access denied", "request refused",
)  # fmt: skip
"""Any of these declines."""

_NEGATED = re.compile(
    rf"(?:{'|'.join(map(re.escape, NEGATIONS))})\s+(?:[\w'-]+\s+){{0,3}}?(?:{'|'.join(VERBS)})\b",
    re.IGNORECASE,
)


_OPTION = re.compile(r"\s*+(?:[-*]|\d++[.)])")


def declines(text: str) -> str | None:
    """Return the words in ``text`` that decline, case and typographic apostrophes aside;
    ``None``: none do.
    """
    plain = re.sub(r"\s+", " ", text.replace("\u2019", "'"))
    found = _NEGATED.search(plain)
    if found is not None:
        return found.group()
    folded = plain.casefold()
    return next((phrase for phrase in PHRASES if phrase in folded), None)


def asks(text: str) -> bool:
    """Return whether the text ends in a question, apart from a list of options after it."""
    lines = text.strip().split("\n")
    while len(lines) > 1 and (not lines[-1].strip() or _OPTION.match(lines[-1])):
        lines.pop()
    stripped = "\n".join(lines)
    return stripped.rstrip(" \t\n*_)\"'").endswith("?")
