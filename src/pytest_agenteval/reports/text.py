"""Text for people: numbers with units, and text of models made harmless for terminals and markdown."""

from __future__ import annotations

import re
import unicodedata

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_MARKDOWN = re.compile(r"([\\`*\[\]<>|~]|(?<!\w)_|_(?!\w)|&(?=[#\w]+;))")


def safe(text: str) -> str:
    r"""``text`` with control characters, bidi marks and lone surrogates shown as ``\x1b``, ``\u202e``."""
    return _UNSAFE.sub(_shown, text)


def one_line(text: str) -> str:
    """``text`` made safe, on one line, blanks folded."""
    return " ".join(safe(text).split())


def _shown(hit: re.Match[str]) -> str:
    code = ord(hit[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def width_of(text: str) -> int:
    """Terminal columns that ``text`` takes (wide characters two, combining ones none)."""
    if text.isascii():
        return len(text)
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fit(text: str, width: int) -> str:
    """``text`` cut to ``width`` columns, the cut shown as ``…``."""
    if width_of(text) <= width:
        return text
    kept = ""
    room = max(width - 1, 0)
    for character in text:
        room -= _width(character)
        if room < 0:
            break
        kept += character
    return kept + "…"


def pad(text: str, width: int, right: bool = False) -> str:
    """``text`` filled with blanks to ``width`` columns."""
    blanks = " " * max(0, width - width_of(text))
    return blanks + text if right else text + blanks


def markdown(text: str) -> str:
    """``text`` as one line of markdown that means only itself, also inside a table.

    ``@`` before a name is parted from it: a report mentions nobody. Two dollar signs would be a formula.
    """
    shown = _MARKDOWN.sub(r"\\\1", one_line(text))
    shown = re.sub(r"@(?=\w)", "@\u2060", shown)
    return shown.replace("$", "\\$") if shown.count("$") > 1 else shown


def tokens_text(tokens: float | None) -> str:
    """``1,250``; ``-`` where unknown."""
    return "-" if tokens is None else f"{tokens:,.0f}"


def cost_text(cost: float | None) -> str:
    """``$0.0063``, ``$12.34``; ``-`` where unknown."""
    if cost is None:
        return "-"
    return f"${cost:.4f}" if abs(cost) < 1 else f"${cost:,.2f}"


def time_text(ms: float | None) -> str:
    """``0.4s``, ``12.3s``, ``2m05s``, ``1h02m``; ``-`` where unknown."""
    if ms is None:
        return "-"
    seconds = ms / 1000
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def percent_text(share: float | None) -> str:
    """``66.7 %`` of a share 0..1; ``-`` where unknown."""
    return "-" if share is None else f"{100 * share:.1f} %"


def rate_text(rate: float | None) -> str:
    """``66.7 %`` of a rate 0..100; ``-`` where unknown."""
    return "-" if rate is None else f"{rate:.1f} %"


def counted(number: int, word: str, words: str | None = None) -> str:
    """``1 case``, ``2 cases``."""
    return f"{number:,} {word if number == 1 else words or word + 's'}"
