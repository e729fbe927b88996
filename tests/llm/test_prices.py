from __future__ import annotations

import pytest

from pytest_agenteval.llm.prices import cost
from pytest_agenteval.llm.providers import Prices
from pytest_agenteval.types import Usage

USAGE = Usage(input=2000, output=100, cache_read=400)


@pytest.mark.parametrize(
    ("model", "own", "meta", "usd"),
    [
        # openai's published prices of gpt-4.1: 2 / 0.5 / 8 USD per million
        ("openai:gpt-4.1", None, None, (1600 * 2 + 400 * 0.5 + 100 * 8) / 1e6),
        # the model's own costs come first
        ("openai:gpt-4.1", Prices(2.5, 1, None, 10), None, (1600 * 2.5 + 400 * 1 + 100 * 10) / 1e6),
        # a cached token without a price of its own costs what any input does
        ("openai:x", Prices(input=2.0, output=10.0), None, (2000 * 2 + 100 * 10) / 1e6),
        # a kind the own costs do not name: genai-prices, then meta
        ("openai:gpt-4.1", Prices(input=1.0), Prices(output=99), (2000 * 1 + 100 * 8) / 1e6),
        ("openai:no-such-model", Prices(input=1.0), Prices(output=99), (2000 * 1 + 100 * 99) / 1e6),
        # meta never beats a known price (as the recorded server does)
        ("openai:gpt-4.1", None, Prices(100, 10, 5, 1000), (1600 * 2 + 400 * 0.5 + 100 * 8) / 1e6),
        ("openai:no-such-model", None, Prices(100, 10, 5, 1000), (1600 * 100 + 400 * 10 + 100 * 1000) / 1e6),
        ("openai:no-such-model", None, None, None),
        ("local:qwen", None, None, None),
        ("local:qwen", Prices(input=1.0), None, None),
        ("local:qwen", Prices(0, 0, 0, 0), None, 0.0),
        ("gemini:gemini-2.5-flash", None, Prices(output=5), "known"),
    ],
)
def test_each_kind_of_token_takes_the_first_price(model, own, meta, usd) -> None:
    found = cost(model, USAGE, own, meta)
    if usd == "known":
        assert found is not None
        assert found > 0
    else:
        assert found == pytest.approx(usd) if usd is not None else found is None


@pytest.mark.parametrize("usage", [None, Usage(), Usage(input=5), Usage(total=10), Usage(output=3)])
def test_unknown_tokens_have_no_price(usage) -> None:
    assert cost("openai:gpt-4.1", usage, Prices(1, 1, 1, 1)) is None


def test_cache_writes_are_part_of_the_input() -> None:
    usage = Usage(input=1000, output=10, cache_read=200, cache_write=300)
    # anthropic's published prices of Claude Sonnet 4.5: 3 / 0.3 / 3.75 / 15 USD per million
    expected = (500 * 3 + 200 * 0.3 + 300 * 3.75 + 10 * 15) / 1e6
    assert cost("anthropic:claude-sonnet-4-5", usage) == pytest.approx(expected)
