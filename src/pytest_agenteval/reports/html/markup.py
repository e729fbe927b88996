"""Text of models as markup that does only what it shows: markdown without HTML, SQL with its words marked."""

from __future__ import annotations

import json
import re
from difflib import SequenceMatcher
from typing import Any

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from pytest_agenteval.support.text import escape_text

LONGEST_SQL = 20_000
"""Characters of a statement that is formatted; a longer one is shown as it is."""

LONGEST_MARKDOWN = 200_000

_TICKED = re.compile("`([^`]+)`")
_SQL_PARTS = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?\*/)"
    r"|(?P<text>'(?:[^']|'')*')"
    r'|(?P<name>"(?:[^"]|"")*"|`[^`]*`)'
    r"|(?P<number>\b\d+(?:\.\d+)?\b)"
    r"|(?P<word>\b[A-Za-z_][A-Za-z_0-9]*\b)",
    re.DOTALL,
)
_KEYWORDS = """
    all and anti any as asc between by case cast cross current date desc distinct else end except
    exists extract false fetch filter first following from full group having in inner intersect
    interval is join lateral left like ilike limit natural not null nulls offset on or order outer
    over partition preceding qualify range recursive right row rows select semi similar then true
    unbounded union unnest using values when where window with within last
"""


def markdown_markup(text: str) -> Markup:
    """Return Markdown of a model as HTML: no HTML of its own, no images, links to http(s) only."""
    shown = escape_text(text[:LONGEST_MARKDOWN])
    return Markup(_markdown().render(shown))


def _markdown() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False})
    parser.enable(["table", "strikethrough"]).disable(["image", "html_inline", "html_block"])
    parser.validateLink = _is_web_link  # type: ignore[method-assign]
    parser.add_render_rule("link_open", _link_open)
    return parser


def _is_web_link(url: str) -> bool:
    return url.lower().startswith(("http://", "https://"))


def _link_open(renderer: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    token.attrSet("rel", "noopener noreferrer nofollow")
    token.attrSet("target", "_blank")
    return str(renderer.renderToken(tokens, index, options, env))


def formatted_sql(sql: str) -> str:
    """Return a statement laid out by sqlglot; as it was written where it is long, or no SQL sqlglot reads."""
    text = sql.strip()
    if not text or len(text) > LONGEST_SQL:
        return text
    import sqlglot
    from sqlglot.errors import SqlglotError

    from pytest_agenteval.databases.select_only import quiet_parser

    try:
        with quiet_parser():
            found = sqlglot.transpile(
                text, read="duckdb", write="duckdb", pretty=True, normalize_functions=False
            )
    except (SqlglotError, RecursionError, ValueError):
        return text
    return ";\n\n".join(part for part in found if part) or text


def sql_markup(sql: str) -> Markup:
    """Return a statement formatted, its keywords, texts, numbers and comments marked."""
    return _highlighted(escape_text(formatted_sql(sql)))


def _highlighted(text: str) -> Markup:
    keywords = frozenset(_KEYWORDS.split())
    parts: list[Markup] = []
    at = 0
    for hit in _SQL_PARTS.finditer(text):
        parts.append(escape(text[at : hit.start()]))
        parts.append(_marked(str(hit.lastgroup), hit[0], keywords))
        at = hit.end()
    parts.append(escape(text[at:]))
    return Markup("").join(parts)


def sql_difference(reference: str, agent: str) -> list[tuple[str, Markup]]:
    """Return the formatted lines of two statements as ``(state, line)``: ``same``, ``gone``, ``new``.

    ``gone`` are lines of the reference alone, ``new`` those of the agent alone; [] where none differs.
    """
    sides = [formatted_sql(sql).splitlines() for sql in (reference, agent)]
    if sides[0] == sides[1]:
        return []
    found: list[tuple[str, Markup]] = []
    matcher = SequenceMatcher(None, sides[0], sides[1], autojunk=False)
    for tag, first, last, start, end in matcher.get_opcodes():
        if tag == "equal":
            found += [("same", _line(line)) for line in sides[0][first:last]]
            continue
        found += [("gone", _line(line)) for line in sides[0][first:last]]
        found += [("new", _line(line)) for line in sides[1][start:end]]
    return found


def _line(line: str) -> Markup:
    return _highlighted(escape_text(line))


def _marked(kind: str, text: str, keywords: frozenset[str]) -> Markup:
    if kind == "word":
        if text.lower() not in keywords:
            return escape(text)
        kind = "keyword"
    if kind == "name":
        return escape(text)
    return Markup('<span class="sql-{}">{}</span>').format(kind, text)


def ticks_markup(text: str) -> Markup:
    """Return a sentence with what stands between backticks as code."""
    return Markup(_TICKED.sub(r"<code>\1</code>", str(escape(escape_text(str(text))))))


def json_text(value: Any, limit: int = 200_000) -> str:
    """Return a value as indented JSON, at most ``limit`` characters."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    return text if len(text) <= limit else f"{text[:limit]}\n… {len(text) - limit:,} more characters"
