"""OpenAI Responses, and what speaks the same: Azure, xAI, LM Studio, vLLM, ...

Two pure halves and a thin class: `encode_request` makes the body of a call, `ResponsesDecoder`
makes chunks of its events, `OpenAIResponsesModel` joins them by a `ProviderCall`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from streampipe.contracts import ModelRequest
from streampipe.models._http.endpoint import Home, HttpModel
from streampipe.models._responses.decoder import ResponsesDecoder
from streampipe.models._responses.request import encode_request

__all__ = ["OpenAIResponsesModel", "ResponsesDecoder", "encode_request"]


class OpenAIResponsesModel(HttpModel):
    """A model behind the OpenAI Responses protocol.

    Nothing is kept by the server (`store: false`): every call tells the whole conversation, with
    the reasoning as the server encrypted it.

    >>> OpenAIResponsesModel("gpt-oss", base_url="http://localhost:1234/v1", provider="lmstudio")
    OpenAIResponsesModel('gpt-oss', provider='lmstudio')
    """

    home: ClassVar[Home] = Home("openai", "https://api.openai.com/v1", "OPENAI_API_KEY")

    def _path(self) -> str:
        return "/responses"

    def _encode(self, request: ModelRequest, warnings: list[str]) -> dict[str, Any]:
        return encode_request(request, self.model_id, provider=self.provider, warnings=warnings)

    def _decoder(self, warnings: list[str]) -> ResponsesDecoder:
        return ResponsesDecoder(self.provider, warnings)
