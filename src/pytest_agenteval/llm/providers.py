"""Where models are reached and what they cost, as a project file says it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Prices:
    """USD per million tokens, per kind of token; ``None`` falls back to the ``input`` price."""

    input: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    output: float | None = None


PRICE_KEYS: Mapping[str, str] = {
    "input_no_cache": "input",
    "input_cache_read": "cache_read",
    "input_cache_write": "cache_write",
    "output": "output",
    "inputNoCache": "input",
    "inputCacheRead": "cache_read",
    "inputCacheWrite": "cache_write",
    "input": "input",
    "cache_read": "cache_read",
    "cache_write": "cache_write",
}
"""What project files call the prices -> fields of ``Prices``."""


def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Provider:
    """One entry of ``llm.providers`` in a project file: where a provider is reached, what its models cost.

    ``base_url`` and ``api_key`` are read when asked for, since they may name environment variables;
    a missing one raises ``SettingsError`` with the file and line. ``models`` maps ids to their own
    prices (``None``: not given there).
    """

    provider: str
    read_base_url: Callable[[], str | None] = field(default=_nothing, repr=False)
    read_api_key: Callable[[], str | None] = field(default=_nothing, repr=False)
    models: Mapping[str, Prices | None] = field(default_factory=dict)

    @classmethod
    def fixed(
        cls,
        provider: str,
        base_url: str | None = None,
        api_key: str | None = None,
        models: Mapping[str, Prices | None] | None = None,
    ) -> Provider:
        """Return a provider whose address and key are known."""
        return cls(provider, lambda: base_url, lambda: api_key, models or {})

    @property
    def base_url(self) -> str | None:
        """The endpoint's base URL; ``None``: the provider's usual one. Raises ``SettingsError``."""
        return self.read_base_url()

    @property
    def api_key(self) -> str | None:
        """The key; ``None``: the provider's usual variable. Raises ``SettingsError``."""
        return self.read_api_key()
