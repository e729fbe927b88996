from __future__ import annotations

import pytest

from pytest_agenteval.agents.normalize import normalize
from pytest_agenteval.llm.client import Models
from pytest_agenteval.llm.http_client import HttpClient
from pytest_agenteval.llm.prices import cost, model_called
from pytest_agenteval.llm.providers import Prices, Provider
from pytest_agenteval.types import Answer, Usage

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


@pytest.mark.parametrize(
    ("reported", "asked", "name"),
    [
        (None, None, None),
        (None, "openai:gpt-4.1", "openai:gpt-4.1"),
        ("gpt-4.1-2025-04-14", "openai:gpt-4.1", "openai:gpt-4.1"),
        ("openai/gpt-4.1", "openai:gpt-4.1", "openai:gpt-4.1"),
        ("gpt-4.1-mini", "openai:gpt-4.1", "gpt-4.1-mini"),
        ("anthropic:claude-x", "openai:gpt-4.1", "anthropic:claude-x"),
        ("anthropic/claude-x", None, "anthropic:claude-x"),
        ("claude-x", None, "claude-x"),
    ],
)
def test_the_reported_model_is_priced_unless_it_is_a_release_of_the_asked_one(reported, asked, name) -> None:
    assert model_called(reported, asked) == name


def test_usages_of_several_models_are_priced_apart() -> None:
    models = Models(HttpClient(), providers=[Provider("openai", models={"big": Prices(input=10, output=10)})])
    big = Usage(input=100, output=0, model="openai:big", first_token_ms=20)
    small = Usage(input=1000, output=0, model="gpt-4.1", first_token_ms=10)
    both = big + small + big
    assert (both.input, both.model, both.first_token_ms) == (1200, None, 20)
    priced = models.priced(normalize(Answer(usage=both)), "openai:other")
    assert priced.cost == pytest.approx((200 * 10 + 1000 * 2) / 1e6)
    assert priced.usage == Usage(input=1200, output=0, total=1200, first_token_ms=20)
    unknown = both + Usage(input=1, output=1, model="nobody-knows-it")
    assert models.priced(Answer(usage=unknown), "openai:other").cost is None
    assert models.priced(Answer(usage=big, cost=0.5), None).cost == 0.5
    assert models.priced(Answer(usage=Usage(input=5, output=1)), None).cost is None
    listed = normalize(Answer(usage=[{"input": 100, "output": 0, "model": "big"}, small]))
    assert models.priced(listed, None).cost == pytest.approx((100 * 10 + 1000 * 2) / 1e6)


def test_a_conversation_costs_what_its_turns_cost() -> None:
    models = Models(HttpClient(), providers=[])
    one = Answer(usage=Usage(input=1000, output=0))
    turns = (one, Answer(cost=0.5))
    assert models.priced(Answer(turns=turns), "openai:gpt-4.1").cost == pytest.approx(0.502)
    assert models.priced(Answer(turns=(*turns, Answer())), "openai:gpt-4.1").cost is None
    told = Answer(usage=Usage(input=1000, output=0), turns=(Answer(), Answer()))
    assert models.priced(told, "openai:gpt-4.1").cost == pytest.approx(0.002)
