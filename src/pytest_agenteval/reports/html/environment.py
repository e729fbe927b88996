"""The jinja2 environment of all pages: everything is escaped, control characters are written out."""

from __future__ import annotations

import shlex
from functools import lru_cache
from importlib.resources import files
from typing import Any

from jinja2 import ChainableUndefined, Environment, PackageLoader
from markupsafe import Markup

from pytest_agenteval.reports.html import charts, markup
from pytest_agenteval.reports.html.run_view import short_time
from pytest_agenteval.reports.text import cost_text, percent_text, rate_text, tokens_text
from pytest_agenteval.results.document.totals import known_cost
from pytest_agenteval.support.text import counted, escape_text


def make_environment() -> Environment:
    """Return an environment over ``templates/``; what a file of another program lacks is nothing."""
    environment = Environment(
        loader=PackageLoader("pytest_agenteval.reports.html"),
        autoescape=True,
        undefined=ChainableUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters.update(
        cost=cost_text,
        known_cost=known_cost,
        tokens=tokens_text,
        time=short_time,
        rate=rate_text,
        percent=percent_text,
        sql=lru_cache(maxsize=5000)(markup.sql_markup),  # attempts repeat statements
        sql_difference=lru_cache(maxsize=500)(markup.sql_difference),
        markdown=markup.markdown_markup,
        json=markup.json_text,
        ticks=markup.ticks_markup,
        shell=shlex.quote,
        counted=counted,
        moment=moment_text,
        bar=charts.bar,
    )
    return environment


def _finalize(value: Any) -> Any:
    """Show None as nothing and text without its control characters."""
    if value is None:
        return ""
    return value if isinstance(value, Markup) else escape_text(str(value))


def moment_text(stamp: str | None) -> str:
    """Return ``2026-11-30 13:52`` of an ISO moment ('-' where there is none)."""
    return stamp[:16].replace("T", " ") if stamp else "-"


def static_text(name: str) -> str:
    """Return a file of ``static/``: ``style.css`` or ``app.js``."""
    return files("pytest_agenteval.reports.html").joinpath("static", name).read_text(encoding="utf-8")
