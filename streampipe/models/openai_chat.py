"""OpenAI Chat Completions, and what speaks the same: Ollama, vLLM, llama.cpp, LM Studio, ...

Two pure halves and a thin class: `encode_request` makes the body of a call, `ChatDecoder` makes
chunks of its events, `OpenAIChatModel` joins them by a `ProviderCall`.
"""

from __future__ import annotations

from typing import Any, ClassVar
from urllib.parse import urlsplit

from streampipe.contracts import ModelRequest
from streampipe.models._chat.decoder import ChatDecoder
from streampipe.models._chat.request import COMPATIBLE, DIALECTS, Dialect, encode_request
from streampipe.models._http.endpoint import Home, HttpModel

__all__ = ["ChatDecoder", "OpenAIChatModel", "encode_request"]


class OpenAIChatModel(HttpModel):
    """A model behind the OpenAI Chat Completions protocol.

    >>> OpenAIChatModel("llama3.2", base_url="http://localhost:11434/v1", provider="ollama")
    OpenAIChatModel('llama3.2', provider='ollama')
    """

    home: ClassVar[Home] = Home("openai", "https://api.openai.com/v1", "OPENAI_API_KEY")

    def _path(self) -> str:
        return "/chat/completions"

    def _encode(self, request: ModelRequest, warnings: list[str]) -> dict[str, Any]:
        return encode_request(
            request,
            self.model_id,
            provider=self.provider,
            dialect=_dialect(self.provider, self._base_url),
            warnings=warnings,
        )

    def _decoder(self, warnings: list[str]) -> ChatDecoder:
        return ChatDecoder(self.provider, warnings)


def _dialect(provider: str, base_url: str) -> Dialect:
    """A provider's dialect; another server under OpenAI's name is only compatible with it."""
    if provider == "openai":
        host = urlsplit(base_url).hostname or ""
        if host != "openai.com" and not host.endswith((".openai.com", ".openai.azure.com")):
            return COMPATIBLE
    return DIALECTS.get(provider, COMPATIBLE)
