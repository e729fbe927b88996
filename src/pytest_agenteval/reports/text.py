"""Figures with their units, and text made harmless for markdown."""

from __future__ import annotations

import re

from pytest_agenteval.support.text import one_line

_MARKDOWN = re.compile(r"([\\`*\[\]<>|~]|(?<!\w)_|_(?!\w)|&(?=[#\w]+;))")


def unmentioned(text: str) -> str:
    """Return ``text`` with every ``@`` before a name parted from it: a report mentions nobody."""
    return re.sub(r"@(?=\w)", "@\u2060", text)


def markdown(text: str) -> str:
    """Return ``text`` escaped for one line of markdown, also inside a table.

    ``@`` before a name is parted from it: a report notifies no one. Two dollar signs would be a formula.
    """
    shown = _MARKDOWN.sub(r"\\\1", one_line(text))
    shown = unmentioned(shown)
    return shown.replace("$", "\\$") if shown.count("$") > 1 else shown


def tokens_text(tokens: float | None) -> str:
    """Return ``1,250``; ``-`` where unknown."""
    return "-" if tokens is None else f"{tokens:,.0f}"


def cost_text(cost: float | None) -> str:
    """Return ``$0.0063``, ``$12.34``; ``-`` where unknown."""
    if cost is None:
        return "-"
    return f"${cost:.4f}" if abs(cost) < 1 else f"${cost:,.2f}"


def time_text(ms: float | None) -> str:
    """Return ``0.4s``, ``12.3s``, ``2m05s``, ``1h02m``; ``-`` where unknown."""
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
    """Return ``66.7 %`` of a share 0..1; ``-`` where unknown."""
    return "-" if share is None else f"{100 * share:.1f} %"


def rate_text(rate: float | None) -> str:
    """Return ``66.7 %`` of a rate 0..100; ``-`` where unknown."""
    return "-" if rate is None else f"{rate:.1f} %"
