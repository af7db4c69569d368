"""The Anthropic Messages protocol.

Two pure halves and a thin class: `encode_request` makes the body of a call, `AnthropicDecoder`
makes chunks of its events, `AnthropicModel` joins them by a `ProviderCall`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from streampipe.contracts import ModelRequest
from streampipe.models._anthropic.decoder import AnthropicDecoder
from streampipe.models._anthropic.request import encode_request
from streampipe.models._http.endpoint import Home, HttpModel

__all__ = ["AnthropicDecoder", "AnthropicModel", "encode_request"]

VERSION = "2023-06-01"


class AnthropicModel(HttpModel):
    """A model behind the Anthropic Messages protocol.

    The protocol needs a limit for every answer: `max_output_tokens` in the settings, else one that
    every model of the family takes (see `encode_request`). Features in beta are asked for by a
    header: `headers={"anthropic-beta": "context-management-2025-06-27"}`.

    >>> AnthropicModel("claude-sonnet-4-5", api_key="key")
    AnthropicModel('claude-sonnet-4-5', provider='anthropic')
    """

    home: ClassVar[Home] = Home("anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY")

    def _path(self) -> str:
        return "/messages"

    def _auth(self, key: str) -> Mapping[str, str]:
        version = {"anthropic-version": VERSION}
        return {"x-api-key": key, **version} if key else version

    def _encode(self, request: ModelRequest, warnings: list[str]) -> dict[str, Any]:
        return encode_request(request, self.model_id, provider=self.provider, warnings=warnings)

    def _decoder(self, warnings: list[str]) -> AnthropicDecoder:
        return AnthropicDecoder(self.provider, warnings)
