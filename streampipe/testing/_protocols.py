"""The protocols that a `ModelServer` speaks, told apart by the path of a request."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol
from urllib.parse import unquote

from streampipe.testing import _anthropic_wire, _chat_wire, _google_wire, _responses_wire
from streampipe.testing._script import Delay, Failure, Turn

ProtocolName = Literal["openai-chat", "openai-responses", "anthropic", "google"]


class Wire(Protocol):
    """How a protocol tells a turn of a script."""

    def error(self, message: str, status: int = 500) -> dict[str, Any]:
        """An error body."""
        ...

    def events(
        self, turn: Turn, number: int, model: str, *, usage: bool
    ) -> Iterator[bytes | Delay | Failure]:
        """The events of a streamed answer; delays and failures where the script has them."""
        ...

    def completion(self, turn: Turn, number: int, model: str) -> dict[str, Any]:
        """The answer to a request that does not ask for a stream."""
        ...


@dataclass(slots=True, frozen=True)
class Asked:
    """What a request asks for."""

    model: str
    stream: bool
    usage: bool


@dataclass(slots=True, frozen=True)
class Spoken:
    """A protocol.

    Attributes:
        path: matches the paths of its requests.
        prefix: what stands before the rest of a path, as a client is given it.
        messages: the field of a request's body that may not be empty.
        wire: how it tells a turn.
        home: where the model class is that speaks it.
        usage_asked: whether usage comes only when it is asked for.
        needed: further fields that a request's body must have.
    """

    path: re.Pattern[str]
    prefix: str
    messages: str
    wire: Wire
    home: str
    usage_asked: bool = False
    needed: tuple[str, ...] = ()

    def asked(self, path: str, body: Mapping[str, Any]) -> Asked:
        """What a request asks for.

        Raises:
            KeyError, TypeError: it is no request of the protocol.
            ValueError: it has no messages, or lacks a field.
        """
        found = self.path.fullmatch(path)
        assert found is not None, "the path was what chose the protocol"  # noqa: S101
        named = found.groupdict()
        messages = body[self.messages]
        if not isinstance(messages, list | str) or not messages:
            raise ValueError(f"{self.messages!r} must be a list with at least one message")
        missing = [name for name in self.needed if body.get(name) is None]
        if missing:
            raise ValueError(f"{', '.join(missing)}: field required")
        options = body.get("stream_options") or {}
        return Asked(
            unquote(named.get("model") or str(body["model"])),
            named["way"] == "streamGenerateContent" if "way" in named else bool(body.get("stream")),
            bool(options.get("include_usage")) or not self.usage_asked,
        )

    def model(self) -> Any:
        """The class of the model that speaks it, imported when asked for."""
        module, _, name = self.home.partition(":")
        return getattr(importlib.import_module(module), name)


PROTOCOLS: Mapping[ProtocolName, Spoken] = {
    "openai-chat": Spoken(
        re.compile("/v1/chat/completions"),
        "/v1",
        "messages",
        _chat_wire,
        "streampipe.models.openai_chat:OpenAIChatModel",
        usage_asked=True,
    ),
    "openai-responses": Spoken(
        re.compile("/v1/responses"),
        "/v1",
        "input",
        _responses_wire,
        "streampipe.models.openai_responses:OpenAIResponsesModel",
    ),
    "anthropic": Spoken(
        re.compile("/v1/messages"),
        "/v1",
        "messages",
        _anthropic_wire,
        "streampipe.models.anthropic:AnthropicModel",
        needed=("max_tokens",),
    ),
    "google": Spoken(
        re.compile(
            "/v1(beta)?/models/(?P<model>[^/:]+):(?P<way>(streamG|g)enerateContent)(\\?.*)?"
        ),
        "/v1beta",
        "contents",
        _google_wire,
        "streampipe.models.google:GoogleModel",
    ),
}


def spoken_at(path: str) -> Spoken | None:
    """The protocol of a path; None if there is none."""
    return next((spoken for spoken in PROTOCOLS.values() if spoken.path.fullmatch(path)), None)
