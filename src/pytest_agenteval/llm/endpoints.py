"""Where a model is reached: its provider's address, key and style of API."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pytest_agenteval.errors import AgentFailed, SettingsError
from pytest_agenteval.llm.providers import Prices, Provider
from pytest_agenteval.support.text import closest


@dataclass(frozen=True, slots=True)
class KnownProvider:
    """A provider's usual address and the variables that hold its key."""

    url: str
    keys: tuple[str, ...] = ()
    style: str = "openai"


PROVIDERS: Mapping[str, KnownProvider] = {
    "anthropic": KnownProvider("https://api.anthropic.com/v1", ("ANTHROPIC_API_KEY",), "anthropic"),
    "cerebras": KnownProvider("https://api.cerebras.ai/v1", ("CEREBRAS_API_KEY",)),
    "deepseek": KnownProvider("https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",)),
    "fireworks": KnownProvider("https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",)),
    "google": KnownProvider(
        "https://generativelanguage.googleapis.com/v1beta/openai", ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    ),
    "groq": KnownProvider("https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    "mistral": KnownProvider("https://api.mistral.ai/v1", ("MISTRAL_API_KEY",)),
    "moonshot": KnownProvider("https://api.moonshot.ai/v1", ("MOONSHOT_API_KEY",)),
    "ollama": KnownProvider("http://localhost:11434/v1"),
    "openai": KnownProvider("https://api.openai.com/v1", ("OPENAI_API_KEY",)),
    "openrouter": KnownProvider("https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
    "together": KnownProvider("https://api.together.xyz/v1", ("TOGETHER_API_KEY",)),
    "xai": KnownProvider("https://api.x.ai/v1", ("XAI_API_KEY",)),
}
ALIASES: Mapping[str, str] = {"gemini": "google", "x-ai": "xai", "claude": "anthropic"}
SIGNED = frozenset({"bedrock", "vertex"})  # their requests are signed, not authorised by a key


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One model at one address. ``address`` and ``key`` are read at the first call, not before."""

    name: str
    provider: str
    model: str
    style: str
    address: Callable[[], str]
    key: Callable[[], str | None]
    prices: Prices | None = None


def find_endpoint(name: str, providers: Sequence[Provider], environ: Mapping[str, str]) -> Endpoint:
    """Return the endpoint of ``provider:model``.

    Raises ``SettingsError`` for a name of another form, and for a provider without a known
    address.
    """
    provider, colon, model = name.partition(":")
    if not (provider and colon and model):
        raise SettingsError(f"model {name!r}: expected provider:model, for example openai:gpt-4.1")
    word = ALIASES.get(provider.lower(), provider.lower())
    entry = _entry(word, model, providers)
    known = PROVIDERS.get(word)
    variable = re.sub(r"\W", "_", word).upper()
    if known is None and entry is None and not environ.get(f"{variable}_BASE_URL"):
        raise SettingsError(_no_address(name, word, variable, providers))

    def address() -> str:
        given = (entry and entry.base_url) or environ.get(f"{variable}_BASE_URL") or (known and known.url)
        if not given:
            raise AgentFailed(_no_address(name, word, variable, providers))
        return given.rstrip("/")

    def key() -> str | None:
        variables = known.keys if known else (f"{variable}_API_KEY",)
        given = (entry and entry.api_key) or next((environ[v] for v in variables if environ.get(v)), None)
        if given is None and known is not None and known.keys and address() == known.url:
            raise AgentFailed(
                f"no API key for {name}: set {' or '.join(known.keys)}, or api_key under llm.providers "
                "in the project file"
            )
        return given

    style = known.style if known else "openai"
    return Endpoint(name, word, model, style, address, key, entry.models.get(model) if entry else None)


def own_prices(name: str, providers: Sequence[Provider]) -> Prices | None:
    """Return the ``costs`` that the project file gives ``provider:model``, ``None`` where it gives none.

    A name without a provider is the model of the provider that lists it.
    """
    provider, colon, model = name.partition(":")
    if not colon:
        return next((p.models[name] for p in providers if name in p.models), None)
    entry = _entry(ALIASES.get(provider.lower(), provider.lower()), model, providers)
    return entry.models.get(model) if entry else None


def _entry(word: str, model: str, providers: Sequence[Provider]) -> Provider | None:
    """Return the project file's entry: the one that lists the model, else the provider's first."""
    fitting = [p for p in providers if ALIASES.get(p.provider.lower(), p.provider.lower()) == word]
    return next((p for p in fitting if model in p.models), fitting[0] if fitting else None)


def _no_address(name: str, word: str, variable: str, providers: Sequence[Provider]) -> str:
    if word in SIGNED:
        return (
            f"model {name!r}: {word} signs its requests, which is not supported here; use a gateway with "
            f"an OpenAI-style API and set {variable}_BASE_URL"
        )
    names = sorted({*PROVIDERS, *ALIASES, *(p.provider for p in providers)})
    near = closest(word, names)
    hint = f"did you mean {near!r}? " if near else ""
    return (
        f"model {name!r}: no address is known for provider {word!r}. {hint}Known: {', '.join(names)}; for "
        f"another one give base_url under llm.providers in the project file, or set {variable}_BASE_URL"
    )
