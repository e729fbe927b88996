"""Token counts of every provider and framework -> ``Usage``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_agenteval.types import Usage

_INPUT = ("input_tokens", "prompt_tokens", "prompt_token_count", "promptTokenCount")
_OUTPUT = ("output_tokens", "completion_tokens", "candidates_token_count", "candidatesTokenCount")
_TOTAL = ("total_tokens", "total_token_count", "totalTokenCount")
_READ = (
    "cache_read_input_tokens", "cache_read_tokens", "cached_content_token_count", "cachedContentTokenCount",
    "cached_prompt_tokens", "input_tokens_details.cached_tokens", "prompt_tokens_details.cached_tokens",
    "input_token_details.cache_read",
)  # fmt: skip
_WRITE = (
    "cache_creation_input_tokens", "cache_write_tokens", "cache_creation_tokens",
    "input_tokens_details.cache_write_tokens", "prompt_tokens_details.cache_write_tokens",
    "input_token_details.cache_creation",
)  # fmt: skip
_REASONING = (
    "reasoning_tokens", "output_reasoning_tokens", "thoughts_token_count", "thoughtsTokenCount",
    "output_tokens_details.reasoning_tokens", "completion_tokens_details.reasoning_tokens",
    "output_token_details.reasoning",
)  # fmt: skip
_BESIDE = ("cache_read_input_tokens", "cache_creation_input_tokens")
"""Anthropic's names: there ``input_tokens`` leaves the cached ones out."""


def part(node: Any, name: str) -> Any:
    """Return ``node.name`` or ``node["name"]``, with dots into parts; ``None`` where there is none."""
    for step in name.split("."):
        node = node.get(step) if isinstance(node, Mapping) else getattr(node, step, None)
    return node


def read_usage(counts: Any, model: str | None = None) -> Usage | None:
    """Return the tokens that ``counts`` (a mapping or an object of any framework) holds; ``None``: none.

    ``input`` of the result includes cached tokens, also where the provider counts them apart (Anthropic);
    ``output`` includes thoughts where the provider counts these apart (Gemini).
    """
    whole, output = _count(counts, _INPUT), _count(counts, _OUTPUT)
    if whole is None and output is None:
        return None
    beside = [_count(counts, (name,)) for name in _BESIDE]
    if whole is not None and any(count is not None for count in beside):
        whole += sum(filter(None, beside))
    thoughts = _count(counts, ("thoughts_token_count", "thoughtsTokenCount"))
    if output is not None and thoughts:
        output += thoughts
    apart = any(beside) or whole is None or output is None
    return Usage(
        input=whole,
        output=output,
        cache_read=_count(counts, _READ),
        cache_write=_count(counts, _WRITE),
        reasoning=_count(counts, _REASONING),
        total=None if apart else _count(counts, _TOTAL),
        model=model,
    )


def spent_since(now: Usage | None, before: Usage | None) -> Usage | None:
    """Return what was used between two readings of a counter that is never set back."""
    if now is None or before is None:
        return now

    def less(name: str) -> int | None:
        later: int | None = getattr(now, name)
        earlier: int | None = getattr(before, name)
        return later if later is None or earlier is None else max(0, later - earlier)

    names = ("input", "output", "cache_read", "cache_write", "reasoning", "total")
    counts: dict[str, Any] = {name: less(name) for name in names}
    return Usage(**counts, model=now.model)


def _count(counts: Any, names: tuple[str, ...]) -> int | None:
    for name in names:
        found = part(counts, name)
        if isinstance(found, int) and not isinstance(found, bool):
            return int(found)
    return None
