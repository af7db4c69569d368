"""Router ids: `"openai/gpt-5-mini"` to a model, by the prefix before the first slash."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass

from streampipe.contracts import Model
from streampipe.errors import ConfigurationError

__all__ = ["register_provider", "resolve_model"]

ModelFactory = Callable[[str], Model]


@dataclass(slots=True, frozen=True)
class _Entry:
    """A provider of the table; its class is imported when a model is made."""

    provider: str
    base_url: str | None
    key: str | None
    home: str = "streampipe.models.openai_chat:OpenAIChatModel"

    def __call__(self, model_id: str) -> Model:
        module, name = self.home.split(":")
        cls = getattr(importlib.import_module(module), name)
        base_url = self.base_url or os.environ.get("OPENAI_BASE_URL")
        if base_url is None:
            msg = (
                f"model {self.provider}/{model_id}: set OPENAI_BASE_URL to the server's address, "
                "or build OpenAIChatModel(..., base_url=...)"
            )
            raise ConfigurationError(msg)
        model: Model = cls(model_id, base_url=base_url, provider=self.provider, api_key_env=self.key)
        return model


_OPENAI = _Entry("openai", "https://api.openai.com/v1", "OPENAI_API_KEY")
_PROVIDERS: dict[str, ModelFactory] = {
    "deepseek": _Entry("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "groq": _Entry("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "mistral": _Entry("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "ollama": _Entry("ollama", "http://localhost:11434/v1", None),
    "openai": _OPENAI,
    "openai-chat": _OPENAI,
    "openai-compatible": _Entry("openai-compatible", None, None),
    "openrouter": _Entry("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "xai": _Entry("xai", "https://api.x.ai/v1", "XAI_API_KEY"),
}


def register_provider(prefix: str, factory: ModelFactory) -> None:
    """Make `"prefix/model"` a model, in place of what the prefix meant before.

    Args:
        prefix: without a slash.
        factory: makes a model of what stands after the slash.

    Raises:
        ConfigurationError: the prefix is empty or has a slash.
    """
    if not prefix or "/" in prefix:
        msg = f"a provider's prefix is a non-empty word without '/', not {prefix!r}"
        raise ConfigurationError(msg)
    _PROVIDERS[prefix] = factory


def resolve_model(router_id: str) -> Model:
    """The model of a router id.

    Raises:
        ConfigurationError: there is no slash, the prefix is unknown (known ones are listed), or
            the provider's API key is not set (the variable is named).
    """
    prefix, slash, model_id = router_id.partition("/")
    known = ", ".join(sorted(_PROVIDERS))
    if not slash or not model_id:
        msg = f"model {router_id!r}: write 'provider/model', such as 'openai/gpt-5-mini' (providers: {known})"
        raise ConfigurationError(msg)
    factory = _PROVIDERS.get(prefix)
    if factory is None:
        msg = (
            f"model {router_id!r}: unknown provider {prefix!r}; known: {known}. "
            "Add one with register_provider()"
        )
        raise ConfigurationError(msg)
    return factory(model_id)
