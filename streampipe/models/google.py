"""Google's `generateContent` protocol: the Gemini API, and Vertex AI under another address.

Two pure halves and a thin class: `encode_request` makes the body of a call, `GoogleDecoder` makes
chunks of its events, `GoogleModel` joins them by a `ProviderCall`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import quote

from streampipe.contracts import ModelRequest
from streampipe.models._google.decoder import GoogleDecoder
from streampipe.models._google.request import encode_request
from streampipe.models._http.endpoint import Home, HttpModel

__all__ = ["GoogleDecoder", "GoogleModel", "encode_request"]

_COLLECTIONS = ("models/", "tunedModels/")


class GoogleModel(HttpModel):
    """A model behind Google's `generateContent` protocol.

    The model's name may stand with or without `models/` in front. Vertex AI is another address,
    and its token a header:
    `base_url="https://aiplatform.googleapis.com/v1/projects/P/locations/L/publishers/google"`,
    `headers={"authorization": "Bearer ..."}`. The tools that run at Google are asked for by
    `provider_options={"google": {"tools": [{"googleSearch": {}}]}}`.

    >>> GoogleModel("gemini-2.5-flash", api_key="key")
    GoogleModel('gemini-2.5-flash', provider='google')
    """

    home: ClassVar[Home] = Home(
        "google",
        "https://generativelanguage.googleapis.com/v1beta",
        "GEMINI_API_KEY",
        ("GOOGLE_API_KEY",),
    )

    def _path(self) -> str:
        is_full = self.model_id.startswith(_COLLECTIONS)
        collection, name = self.model_id.split("/", 1) if is_full else ("models", self.model_id)
        return f"/{collection}/{quote(name, safe='')}:streamGenerateContent?alt=sse"

    def _auth(self, key: str) -> Mapping[str, str]:
        return {"x-goog-api-key": key} if key else {}

    def _encode(self, request: ModelRequest, warnings: list[str]) -> dict[str, Any]:
        return encode_request(request, self.model_id, provider=self.provider, warnings=warnings)

    def _decoder(self, warnings: list[str]) -> GoogleDecoder:
        return GoogleDecoder(self.provider, warnings)
