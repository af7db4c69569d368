"""OpenAI Chat Completions, and what speaks the same: Ollama, vLLM, llama.cpp, LM Studio, ...

Two pure halves and a thin class: `encode_request` makes the body of a call, `ChatDecoder` makes
chunks of its events, `OpenAIChatModel` joins them by a `ProviderCall`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from streampipe.chunks import Chunk
from streampipe.contracts import ModelRequest
from streampipe.errors import ConfigurationError
from streampipe.models._call import Decoder, ProviderCall
from streampipe.models._chat_decoder import ChatDecoder
from streampipe.models._chat_request import COMPATIBLE, DIALECTS, Dialect, encode_request
from streampipe.models._http import HttpClient, HttpxTransport
from streampipe.models._keys import bearer, checked_headers, key_from
from streampipe.models._transport import Timeout, Transport

__all__ = ["ChatDecoder", "OpenAIChatModel", "encode_request"]

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_KEY = "OPENAI_API_KEY"


class OpenAIChatModel:
    """A model behind the OpenAI Chat Completions protocol.

    >>> OpenAIChatModel("llama3.2", base_url="http://localhost:11434/v1", provider="ollama")
    OpenAIChatModel('llama3.2', provider='ollama')

    Attributes:
        provider: named in errors; its `provider_options` are sent.
        model_id: the server's name of the model.
    """

    def __init__(
        self,
        model_id: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        max_retries: int = 2,
        timeout: float | Timeout | None = Timeout(),  # noqa: B008 - frozen
        http_client: HttpClient | None = None,
        transport: Transport | None = None,
        provider: str = "openai",
        api_key_env: str | None = OPENAI_KEY,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Say which model, and where it is served. Nothing is sent before the first call.

        Args:
            model_id: the server's name of the model.
            base_url: what stands before `/chat/completions`; OpenAI's by default.
            api_key: sent as a bearer token; looked up in `api_key_env` when not given.
            max_retries: how often a failure that may pass is tried again before the first chunk.
            timeout: seconds to wait for the next piece of the answer, or a `Timeout`.
            http_client: an httpx client to use as it is; it stays yours to close.
            transport: another way to the network, instead of httpx.
            provider: a name for errors and `provider_options`.
            api_key_env: the environment variable of the key; None: the server wants none. The
                default holds for OpenAI's own address only, so that its key goes nowhere else.
            headers: sent with every request.

        Raises:
            ConfigurationError: an argument is wrong, or the key is missing.
        """
        base_url = (base_url or OPENAI_URL).rstrip("/")
        _check(model_id, base_url, max_retries)
        if http_client is not None and transport is not None:
            msg = "give http_client or transport, not both: a transport makes its own connections"
            raise ConfigurationError(msg)
        if not api_key and api_key_env and (base_url == OPENAI_URL or api_key_env != OPENAI_KEY):
            api_key = key_from(api_key_env, provider)
        sent = dict(headers or {})
        if api_key:
            sent["authorization"] = bearer(api_key)
        self.provider = provider
        self.model_id = model_id
        self._dialect = _dialect(provider, base_url)
        self._call = ProviderCall(
            provider=provider,
            model=model_id,
            url=f"{base_url}/chat/completions",
            headers=checked_headers(sent),
            secret=api_key or "",
            transport=transport or HttpxTransport(http_client),
            max_retries=max_retries,
            timeout=timeout if isinstance(timeout, Timeout) else Timeout.of(timeout),
        )

    def __repr__(self) -> str:
        """The model's name; never the key."""
        return f"OpenAIChatModel({self.model_id!r}, provider={self.provider!r})"

    def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Answer one request; closing the generator closes the connection at once.

        Raises (when it is iterated over):
            ModelError: the call failed, after the retries that could help: see `errors`.
            ConfigurationError: the request cannot be put in terms of the protocol.
        """

        def prepare() -> tuple[dict[str, Any], Callable[[], Decoder]]:
            warnings: list[str] = []
            body = encode_request(
                request,
                self.model_id,
                provider=self.provider,
                dialect=self._dialect,
                warnings=warnings,
            )
            return body, lambda: ChatDecoder(self.provider, warnings)

        return self._call.stream(prepare)


def _check(model_id: str, base_url: str, max_retries: int) -> None:
    if not model_id:
        msg = "model_id is empty: name a model, such as 'gpt-5-mini'"
        raise ConfigurationError(msg)
    try:
        url = urlsplit(base_url)
        is_address = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:  # brackets that do not match, a port that is no number
        is_address = False
    if not is_address:
        msg = "base_url must be an address such as http://localhost:8000/v1"
        raise ConfigurationError(msg)  # not shown: it may hold a password
    if max_retries < 0:
        msg = f"max_retries must be 0 or more, not {max_retries}"
        raise ConfigurationError(msg)


def _dialect(provider: str, base_url: str) -> Dialect:
    """A provider's dialect; another server under OpenAI's name is only compatible with it."""
    if provider == "openai":
        host = urlsplit(base_url).hostname or ""
        if host != "openai.com" and not host.endswith((".openai.com", ".openai.azure.com")):
            return COMPATIBLE
    return DIALECTS.get(provider, COMPATIBLE)
