"""What all models behind an HTTP endpoint share: address, key, limits, and the call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

from streampipe.chunks import Chunk
from streampipe.contracts import ModelRequest
from streampipe.errors import ConfigurationError
from streampipe.models._http.call import Decoder, ProviderCall
from streampipe.models._http.keys import bearer, checked_headers, key_from
from streampipe.models._http.over_httpx import HttpClient, HttpxTransport
from streampipe.models._http.transport import Timeout, Transport

SHORTEST_SECRET = 8  # characters; what is shorter is no key, but a word such as "none" or "ollama"
_SECRET = {"authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key"}


@dataclass(slots=True, frozen=True)
class Home:
    """Where a protocol is at home.

    Attributes:
        provider: who speaks it first.
        base_url: that provider's address.
        key: the environment variable of that provider's key.
        other_keys: other names of that variable, for when it is not set.
    """

    provider: str
    base_url: str
    key: str
    other_keys: tuple[str, ...] = ()


class HttpModel(ABC):
    """A model behind an HTTP endpoint; a subclass is a protocol.

    Attributes:
        provider: named in errors; its `provider_options` are sent.
        model_id: the server's name of the model.
        max_retries: how often a failure that may pass is tried again before the first chunk.
    """

    home: ClassVar[Home]

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
        provider: str | None = None,
        api_key_env: str | None = None,
        headers: Mapping[str, str] | None = None,
        http2: bool = False,
    ) -> None:
        """Say which model, and where it is served. Nothing is sent before the first call.

        Args:
            model_id: the server's name of the model.
            base_url: the API's address, such as `http://localhost:8000/v1`; by default that of the
                protocol's own provider.
            api_key: looked up in the environment when not given.
            max_retries: how often a failure that may pass is tried again before the first chunk.
            timeout: seconds to wait for the next piece of the answer, or a `Timeout`.
            http_client: an httpx client to use as it is; it stays yours to close.
            transport: another way to the network, instead of httpx.
            provider: a name for errors and `provider_options`.
            api_key_env: the environment variable of the key. By default that of the protocol's own
                provider, and only for its own address, so that its key goes nowhere else.
            headers: sent with every request.
            http2: whether to offer HTTP/2 (extra `http2`), which lets calls share a connection.

        Raises:
            ConfigurationError: an argument is wrong, or the key is missing.
        """
        base_url = (base_url or self.home.base_url).rstrip("/")
        _check(model_id, base_url, max_retries)
        if sum((http_client is not None, transport is not None, http2)) > 1:
            msg = "give one of http_client, transport, http2: the first two make their connections"
            raise ConfigurationError(msg)
        self.provider = provider or self.home.provider
        self.model_id = model_id
        self.max_retries = max_retries
        self._base_url = base_url
        variable = api_key_env or (self.home.key if base_url == self.home.base_url else None)
        if not api_key and variable:
            others = self.home.other_keys if variable == self.home.key else ()
            api_key = key_from(variable, self.provider, *others)
        self._call = ProviderCall(
            provider=self.provider,
            model=model_id,
            url=base_url + self._path(),
            headers=checked_headers({**(headers or {}), **self._auth(api_key or "")}),
            secret=api_key or "",
            secrets=_secrets(api_key, headers or {}),
            transport=transport or HttpxTransport(http_client, http2=http2),
            max_retries=max_retries,
            timeout=timeout if isinstance(timeout, Timeout) else Timeout.of(timeout),
        )

    def __repr__(self) -> str:
        """The model's name; never the key."""
        return f"{type(self).__name__}({self.model_id!r}, provider={self.provider!r})"

    def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Answer one request; closing the generator closes the connection at once.

        Raises (when it is iterated over):
            ModelError: the call failed, after the retries that could help: see `errors`.
            ConfigurationError: the request cannot be put in terms of the protocol.
        """

        def prepare() -> tuple[Mapping[str, Any], Callable[[], Decoder]]:
            warnings: list[str] = []
            body = self._encode(request, warnings)
            return body, lambda: self._decoder(warnings)

        return self._call.stream(prepare, request.on_retry)

    def check_request(self, request: ModelRequest) -> None:
        """Look whether a request can be put in terms of the protocol; nothing is sent.

        Raises:
            ConfigurationError: a schema or an option of it cannot.
        """
        self._encode(request, [])

    # --- the protocol ----------------------------------------------------------------------

    @abstractmethod
    def _path(self) -> str:
        """What follows the base URL."""

    def _auth(self, key: str) -> Mapping[str, str]:
        """The headers that carry a key, which may be empty, and the protocol's own."""
        return {"authorization": bearer(key)} if key else {}

    @abstractmethod
    def _encode(self, request: ModelRequest, warnings: list[str]) -> Mapping[str, Any]:
        """The body of a streaming call; `warnings` is told what had to be left out."""

    @abstractmethod
    def _decoder(self, warnings: list[str]) -> Decoder:
        """What makes chunks of the answer's events."""


def _secrets(key: str | None, headers: Mapping[str, str]) -> tuple[str, ...]:
    """What must not be told of what is sent: the key, and what stands where keys stand."""
    given = [value.split()[-1:] for name, value in headers.items() if name.lower() in _SECRET]
    found = [key or "", *(word for words in given for word in words)]
    return tuple(secret for secret in found if len(secret) >= SHORTEST_SECRET)


def _check(model_id: str, base_url: str, max_retries: int) -> None:
    if not model_id:
        msg = "model_id is empty: name a model, such as 'gpt-5-mini'"
        raise ConfigurationError(msg)
    try:
        url = urlsplit(base_url)
        is_address = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
        is_address = is_address and not set("?#") & set(base_url)  # a path is put behind it
    except ValueError:  # brackets that do not match, a port that is no number
        is_address = False
    if not is_address:
        msg = "base_url must be an address such as http://localhost:8000/v1, without '?' or '#'"
        raise ConfigurationError(msg)  # not shown: it may hold a password
    if max_retries < 0:
        msg = f"max_retries must be 0 or more, not {max_retries}"
        raise ConfigurationError(msg)
