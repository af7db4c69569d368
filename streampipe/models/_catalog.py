"""Router ids: `"openai/gpt-5-mini"` to a model, by the prefix before the first slash."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from streampipe.contracts import Model
from streampipe.errors import ConfigurationError

__all__ = ["ModelFactory", "register_provider", "resolve_model"]

ModelFactory = Callable[[str], Model]
"""Makes a model of what stands after the first slash of a router id."""


@dataclass(slots=True, frozen=True)
class _Entry:
    """A provider of the table; the class is imported when a model is made."""

    provider: str
    base_url: str
    variable: str | None  # of the API key; None: the server wants none
    api_key: str | None = field(default=None, repr=False)
    home: str = "streampipe.models.openai_chat:OpenAIChatModel"  # where the class is

    def __call__(self, model_id: str) -> Model:
        module, _, name = self.home.partition(":")
        made: Model = getattr(importlib.import_module(module), name)(
            model_id,
            provider=self.provider,
            base_url=self.base_url,
            api_key=self.api_key,
            api_key_env=self.variable,
        )
        return made


@dataclass(slots=True, frozen=True)
class _Elsewhere:
    """A provider whose address is in the environment: whatever server that names."""

    provider: str
    variable: str  # of the address
    key: str
    example: str
    suffix: str = ""  # what follows the address
    needs_key: bool = False

    def __call__(self, model_id: str) -> Model:
        address = os.environ.get(self.variable)
        if not address:
            msg = (
                f"model '{self.provider}/{model_id}': set {self.variable} to the server's address, "
                f"such as {self.example}, or use OpenAIChatModel({model_id!r}, base_url=...)"
            )
            raise ConfigurationError(msg)
        base_url = address.rstrip("/") + self.suffix
        key = os.environ.get(self.key)  # goes with the address, where the server wants one
        return _Entry(self.provider, base_url, self.key if self.needs_key else None, key)(model_id)


_OPENAI = "https://api.openai.com/v1"
_PROVIDERS: dict[str, ModelFactory] = {
    "anthropic": _Entry(
        "anthropic",
        "https://api.anthropic.com/v1",
        "ANTHROPIC_API_KEY",
        home="streampipe.models.anthropic:AnthropicModel",
    ),
    "azure": _Elsewhere(
        "azure",
        "AZURE_OPENAI_ENDPOINT",
        "AZURE_OPENAI_API_KEY",
        "https://NAME.openai.azure.com",
        "/openai/v1",
        needs_key=True,
    ),
    "deepseek": _Entry("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "google": _Entry(
        "google",
        "https://generativelanguage.googleapis.com/v1beta",
        "GEMINI_API_KEY",
        home="streampipe.models.google:GoogleModel",
    ),
    "groq": _Entry("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "mistral": _Entry("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "ollama": _Entry("ollama", "http://localhost:11434/v1", None),
    "openai": _Entry(
        "openai",
        _OPENAI,
        "OPENAI_API_KEY",
        home="streampipe.models.openai_responses:OpenAIResponsesModel",
    ),
    "openai-chat": _Entry("openai", _OPENAI, "OPENAI_API_KEY"),
    "openai-compatible": _Elsewhere(
        "openai-compatible", "OPENAI_BASE_URL", "OPENAI_API_KEY", "http://localhost:8000/v1"
    ),
    "openrouter": _Entry("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "xai": _Entry("xai", "https://api.x.ai/v1", "XAI_API_KEY"),
}


def register_provider(prefix: str, factory: ModelFactory) -> None:
    """Make `"prefix/model"` a model, in place of what the prefix meant before.

    >>> from streampipe.testing import ScriptedModel
    >>> register_provider("echo", lambda model_id: ScriptedModel(["hello"], model_id=model_id))
    >>> resolve_model("echo/small").model_id
    'small'

    Args:
        prefix: without a slash.
        factory: makes a model of what stands after the slash.

    Raises:
        ConfigurationError: the prefix is empty or has a slash, or the factory is no callable.
    """
    if not prefix or "/" in prefix:
        msg = f"a provider's prefix is a non-empty word without '/', not {prefix!r}"
        raise ConfigurationError(msg)
    if not callable(factory):
        msg = f"provider {prefix!r}: the factory must be a function of the model id"
        raise ConfigurationError(msg)
    _PROVIDERS[prefix] = factory


def resolve_model(router_id: str) -> Model:
    """The model of a router id.

    Raises:
        ConfigurationError: there is no slash, the prefix is unknown (the known ones are listed),
            or what the provider needs is not set (the variable is named).
    """
    factory, model_id = provider_of(router_id)
    return factory(model_id)


def provider_of(router_id: str) -> tuple[ModelFactory, str]:
    """What makes the model of a router id, and the model's own id; nothing is made yet.

    Raises:
        ConfigurationError: there is no slash, or the prefix is unknown (the known ones are listed).
    """
    prefix, _, model_id = router_id.partition("/")
    known = ", ".join(sorted(_PROVIDERS))
    if not prefix or not model_id:
        msg = (
            f"model {router_id!r}: write 'provider/model', such as 'openai/gpt-5-mini'; "
            f"providers: {known}"
        )
        raise ConfigurationError(msg)
    factory = _PROVIDERS.get(prefix)
    if factory is None:
        msg = (
            f"model {router_id!r}: unknown provider {prefix!r}; known: {known}. "
            "Others are added by register_provider(prefix, factory)"
        )
        raise ConfigurationError(msg)
    return factory, model_id
