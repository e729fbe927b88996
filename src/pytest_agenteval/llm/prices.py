"""What tokens cost: the project's own prices, then genai-prices, then the deprecated ``llm.meta.costs``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pytest_agenteval.llm.providers import Prices
from pytest_agenteval.types import Usage

MILLION = 1_000_000

# our names of providers -> those of genai-prices, where they differ
GENAI_PROVIDERS: Mapping[str, str] = {
    "gemini": "google",
    "vertex": "google",
    "bedrock": "aws",
    "xai": "x-ai",
    "moonshot": "moonshotai",
}


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Tokens by the kind that is priced: ``input`` here leaves the cached ones out."""

    input: int
    cache_read: int
    cache_write: int
    output: int

    @classmethod
    def of(cls, usage: Usage | None) -> TokenCounts | None:
        """Return the kinds of ``usage``; ``None`` when input or output is unknown."""
        if usage is None or usage.input is None or usage.output is None:
            return None
        read, write = usage.cache_read or 0, usage.cache_write or 0
        return cls(max(0, usage.input - read - write), read, write, usage.output)


def cost(
    model: str, usage: Usage | None, own: Prices | None = None, meta: Prices | None = None
) -> float | None:
    """Return USD for ``usage`` of ``provider:model``; ``None`` where a token that was used has no known
    price.

    Each kind of token takes the first price found: ``own`` (the model's ``costs`` in the project
    file), genai-prices, ``meta`` (``llm.meta.costs``).
    """
    tokens = TokenCounts.of(usage)
    if tokens is None:
        return None
    if own is None:
        known = _genai(model, tokens)
        if known is not None:
            return known
    parts = [
        _part(model, kind, tokens, own, meta) for kind in ("input", "cache_read", "cache_write", "output")
    ]
    return total_cost(parts)


def model_called(reported: str | None, asked: str | None) -> str | None:
    """Return the name to price: what the agent reports, else what the task asked for.

    The release of the task's own model (``gpt-4.1-2025-04-14`` for ``openai:gpt-4.1``) is the task's model:
    its ``costs`` stand in the project file under that name. ``openai/gpt-4.1`` is read as
    ``openai:gpt-4.1``.
    """
    if reported is None or asked is None:
        name = reported or asked
    else:
        asked_name, told = asked.partition(":")[2] or asked, re.split(r"[:/]", reported)[-1]
        name = asked if re.fullmatch(rf"{re.escape(asked_name)}(-\d[\d-]*)?", told) else reported
    if name is None or ":" in name or "/" not in name:
        return name
    return ":".join(name.split("/", 1))


def total_cost(costs: Iterable[float | None]) -> float | None:
    """Return the sum; ``None`` where one is not known."""
    known = list(costs)
    return None if None in known else float(sum(one for one in known if one is not None))


def _part(
    model: str, kind: str, tokens: TokenCounts, own: Prices | None, meta: Prices | None
) -> float | None:
    count: int = getattr(tokens, kind)
    if count == 0:
        return 0.0
    price = _price(own, kind)
    if price is None and own is not None:
        known = _genai(model, TokenCounts(**{k: count if k == kind else 0 for k in TokenCounts.__slots__}))
        if known is not None:
            return known
    if price is None:
        price = _price(meta, kind)
    return None if price is None else count * price / MILLION


def _price(prices: Prices | None, kind: str) -> float | None:
    """Return the price of one kind; a cached input token without one of its own costs what any input does."""
    if prices is None:
        return None
    given: float | None = getattr(prices, kind)
    return prices.input if given is None and kind != "output" else given


def _genai(model: str, tokens: TokenCounts) -> float | None:
    """Return what genai-prices says, ``None`` for a provider or model it does not know."""
    from genai_prices import Usage as GenaiUsage
    from genai_prices import calc_price

    provider, colon, name = model.partition(":")
    usage = GenaiUsage(
        input_tokens=tokens.input + tokens.cache_read + tokens.cache_write,
        cache_read_tokens=tokens.cache_read,
        cache_write_tokens=tokens.cache_write,
        output_tokens=tokens.output,
    )
    known = provider.lower()
    try:
        if colon:
            price = calc_price(usage, name, provider_id=GENAI_PROVIDERS.get(known, known))
        else:  # a name alone, as most frameworks report it
            price = calc_price(usage, model)
    except LookupError:
        return None
    return float(price.total_price)
