"""Mutated streams: every decoder ends in chunks or in a `ModelError`, and nothing else.

`STREAMPIPE_FUZZ` is how many mutated events each decoder gets, `STREAMPIPE_SEED` where to begin;
`make fuzz` asks for 200,000.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from streampipe.chunks import Chunk, FinishChunk
from streampipe.errors import ModelError, ProviderStreamError
from streampipe.models._anthropic.decoder import AnthropicDecoder
from streampipe.models._chat.decoder import ChatDecoder
from streampipe.models._google.decoder import GoogleDecoder
from streampipe.models._http.call import Decoder
from streampipe.models._http.sse import EventStream
from streampipe.models._responses.decoder import ResponsesDecoder
from streampipe.testing import call, reasoning, turn
from streampipe.testing._protocols import PROTOCOLS, ProtocolName
from tests.models.streams import STREAMS

EVENTS = int(os.environ.get("STREAMPIPE_FUZZ", "5000"))
SEED = int(os.environ.get("STREAMPIPE_SEED", "20261203"))
LONGEST = 80  # events of a stream; a longer one is a window of it
STRANGE: tuple[Any, ...] = (
    None,
    True,
    -1,
    1.5e300,
    "",
    "x",
    [],
    {},
    [{}],
    {"type": "text"},
    "\ud7ff",
    1 << 70,
)

Make = Callable[[], Decoder]
Event = bytes
DECODERS: dict[ProtocolName, tuple[str, Make]] = {
    "openai-chat": ("openai-chat", ChatDecoder),
    "openai-responses": ("openai-responses", ResponsesDecoder),
    "anthropic": ("anthropic-messages", AnthropicDecoder),
    "google": ("google-generate-content", GoogleDecoder),
}


@dataclass
class Mutant:
    """A stream that went wrong.

    Attributes:
        data: its bytes.
        mutated: how many of its events were changed, dropped, doubled or moved.
    """

    data: bytes
    mutated: int


def streams(protocol: ProtocolName) -> list[list[Event]]:
    """The events of whole streams: a scripted one, and the recordings where they are at hand."""
    said = turn(reasoning("hm"), "Hel", "lo", call("f", {"a": [1, {"b": "c"}]}, pieces=3))
    scripted = b"".join(
        event
        for event in PROTOCOLS[protocol].wire.events(said, 0, "m", usage=True)
        if isinstance(event, bytes)
    )
    recorded = [path.read_bytes() for path in (STREAMS / DECODERS[protocol][0]).glob("*.sse")]
    return [
        [event for event in data.replace(b"\r\n", b"\n").split(b"\n\n") if event]
        for data in (scripted, *sorted(recorded))
    ]


def flipped(event: Event, chance: random.Random) -> Event:
    """The event with a byte of it changed."""
    place = chance.randrange(len(event))
    return event[:place] + bytes([chance.randrange(256)]) + event[place + 1 :]


def estranged(event: Event, chance: random.Random) -> Event:
    """The event with one value of its JSON replaced by a strange one, or gone."""
    head, _, text = event.partition(b"data: ")
    try:
        root = orjson.loads(text)
    except orjson.JSONDecodeError:
        return flipped(event, chance)
    places = list(containers(root))
    if not places:
        return event
    container, key = chance.choice(places)
    if chance.random() < 0.2:
        del container[key]
    else:
        container[key] = chance.choice(STRANGE)
    try:
        return head + b"data: " + orjson.dumps(root)
    except orjson.JSONEncodeError:  # a number that JSON as orjson writes it has no room for
        return flipped(event, chance)


def containers(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every object and list within a value, with every key of it."""
    if isinstance(value, dict):
        keys: list[Any] = list(value)
    elif isinstance(value, list):
        keys = list(range(len(value)))
    else:
        return
    for key in keys:
        yield value, key
        yield from containers(value[key])


def mutant(events: list[Event], chance: random.Random) -> Mutant:
    """A stream with one to four mutations."""
    start = chance.randrange(max(1, len(events) - LONGEST + 1))
    made = events[start : start + LONGEST]
    count = chance.randint(1, 4)
    for _ in range(count):
        if not made:
            break
        place = chance.randrange(len(made))
        match chance.randrange(6):
            case 0:
                made[place] = flipped(made[place], chance)
            case 1:
                del made[place]
            case 2:
                made.insert(place, made[place])
            case 3:
                other = chance.randrange(len(made))
                made[place], made[other] = made[other], made[place]
            case _:
                made[place] = estranged(made[place], chance)
    return Mutant(b"".join(event + b"\n\n" for event in made), count)


def read(data: bytes, decoder: Decoder) -> list[Chunk]:
    """The chunks of a stream, as a call reads it."""
    events = EventStream()
    chunks = [chunk for event in events.feed(data) for chunk in decoder.feed(event)]
    return chunks if decoder.done else chunks + decoder.end()


@pytest.mark.timeout(0 if EVENTS > 5000 else 60)
@pytest.mark.parametrize("protocol", DECODERS)
def test_a_mutated_stream_is_decoded_or_refused(protocol: ProtocolName) -> None:
    """Chunks that end with one `finish`, or a `ModelError`; never another exception."""
    chance = random.Random(f"{SEED} {protocol}")  # noqa: S311 - no secret
    corpus, make = streams(protocol), DECODERS[protocol][1]
    mutated = decoded = refused = 0
    while mutated < EVENTS:
        made = mutant(chance.choice(corpus), chance)
        mutated += made.mutated
        try:
            chunks = read(made.data, make())
        except ModelError:
            refused += 1
            continue
        except Exception as error:
            error.add_note(f"STREAMPIPE_SEED={SEED} {protocol}: {made.data!r:.4000}")
            raise
        decoded += 1
        assert [type(chunk) for chunk in chunks].count(FinishChunk) == 1, made.data
        assert isinstance(chunks[-1], FinishChunk), made.data
    assert decoded > 20, "mutations that all are refused look at the first check only"
    assert refused > 20, "mutations that all pass change nothing"


@pytest.mark.parametrize("protocol", DECODERS)
@pytest.mark.parametrize("text", ["", "{", "null", "7", '"x"', "[]", "[" * 5000, "\ufeff{}", "NaN"])
def test_an_event_that_is_no_object(protocol: ProtocolName, text: str) -> None:
    """It is refused by name, in whatever way it is none."""
    with pytest.raises(ProviderStreamError):
        DECODERS[protocol][1]().feed(text or " ")


@pytest.mark.parametrize("protocol", DECODERS)
@pytest.mark.parametrize("field", ["error", "choices", "delta", "type", "candidates", "message"])
def test_an_event_nested_very_deep(protocol: ProtocolName, field: str) -> None:
    """As deep as JSON is read at all: refused or passed over, without running out of stack."""
    deep = "[" * 1000 + "]" * 1000
    decoder = DECODERS[protocol][1]()
    try:
        decoder.feed(f'{{"{field}": {deep}}}')
        decoder.feed(f'{{"type": "error", "error": {{"{field}": {deep}}}}}')
    except ModelError as error:
        assert len(str(error)) < 2000  # noqa: PT017 - either end is right
