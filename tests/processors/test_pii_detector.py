"""`PIIDetector`: what it finds and what it leaves alone, and how either is shown."""

from __future__ import annotations

import asyncio
import hashlib
import re
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streampipe import Agent, Chunk, Message, TextDelta, tool
from streampipe.contracts import ProcessorViolation
from streampipe.errors import ConfigurationError
from streampipe.messages import TextPart
from streampipe.processors import PIIDetector
from streampipe.processors._crypto_addresses import keccak_256
from streampipe.processors._personal_data import DATA_TYPES, DataType, hashed, replaced_by
from streampipe.testing import ScriptedModel, call, check_processor, chunkings, run_virtual
from streampipe.text import Matcher

EXAMPLES = max(50, settings().max_examples // 2)  # 1,000 in the profile "laws"
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
BECH32 = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"
ETHEREUM = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
MAIL = "zoe@example.com"
SAID = f"Write to {MAIL}, please."


def found(data_type: Any, text: str) -> int:
    """How many values of a type a text holds."""
    matcher = Matcher(DATA_TYPES[data_type])
    return len([p for p in [*matcher.feed(text), *matcher.finish()] if not isinstance(p, str)])


async def shown(text: str, *args: Any, **options: Any) -> str:
    """What a detector leaves of an answer."""
    guard = PIIDetector(*args, **options)
    agent = Agent(model=ScriptedModel([[text]]), output_processors=[guard])
    return (await agent.generate("hi")).text


async def streamed(agent: Agent, prompt: Any = "hi") -> tuple[list[Chunk], Any]:
    """The chunks of a run, and its result."""
    async with agent.stream(prompt) as run:
        chunks = [chunk async for chunk in run]
        return chunks, await run.result()


def disclosed(chunks: list[Chunk], result: Any) -> str:
    """All that a client, a caller or a store can see of a run."""
    text = "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))
    return f"{[chunk.to_wire() for chunk in chunks]!r} {text} {result!r}"


# --- what is found -----------------------------------------------------------------------------

SAMPLES: dict[str, tuple[list[str], list[str]]] = {
    "email": ([MAIL, "o'b.x+y@sub.example.co.uk"], ["zoe@localhost", "git@github.com", "a @ b.c"]),
    "phone": (["+49 30 123456", "(555) 123-4567"], ["2024-01-15", "1234567890"]),
    "card": (
        [
            "4111 1111 1111 1111",
            "378282246310005",
            "676201610331",
            "213174104090168",
            "180084751350006",
            "060412345609",
        ],
        ["4111 1111 1111 1112", "676201610332", "213174104090169", f"{2**63 - 1}"],
    ),
    "iban": (["GB82 WEST 1234 5698 7654 32"], ["GB82 WEST 1234 5698 7654 33"]),
    "ssn": (["219-09-9999"], ["000-12-3456", "219-00-9999", "2190-9-9999"]),
    "nino": (["AB123456C", "QQ 12 34 56 C".replace("QQ", "AB")], ["GB123456C", "AB123456E"]),
    "dni": (["12345678Z", "12.345.678-z", "X1234567L"], ["12345678A", "X1234567M", "112345678Z"]),
    "nir": (
        ["255081416802538", "2 55 08 14 168 025 38", "1 85 07 2A 004 001 16", "185072B00400143"],
        ["255081416802539", "255131416802538"],
    ),
    "codice-fiscale": (
        ["RSSMRA85T10A562S", "RSS MRA 85T10 A562S"],
        ["RSSMRA85T10A562T", "RSSMRA85F10A562R"],
    ),
    "cpf": (["529.982.247-25", "52998224725"], ["529.982.247-26", "111.111.111-11"]),
    "ip": (["192.168.0.1", "2001:db8::1"], ["1.0.0.0", "1.2.3", "12::34"]),
    "date-of-birth": (
        [
            "born 1990-01-31",
            "Born on 31 January 1990",
            "DOB: 31/1/90",
            "d.o.b. 31.01.1990",
            "date of birth is 3rd of May, 1990",
            "birthday: Jan 31st, 1990",
        ],
        ["on 1990-01-31", "born in 1990", "stubborn 1990-01-31", "DOB unknown, 1990-01-31"],
    ),
    "api-key": (["sk-abcdefghijklmnopqrstuvwx", "AKIAIOSFODNN7EXAMPLE"], ["sk-short", "AKIA"]),
    "crypto-address": (
        [
            "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
            BECH32,
            BECH32.upper(),
            "bc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcr",
            ETHEREUM,
            ETHEREUM.lower(),
        ],
        [
            "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb",
            "1" + "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
            "3" + "z" * 34,
            BECH32[:-1] + "p",
            BECH32[:-1] + "Q",
            ETHEREUM[:-1] + "D",
            ETHEREUM + "0",
        ],
    ),
}


@pytest.mark.parametrize("data_type", get_args(DataType))
def test_samples_both_ways(data_type: str) -> None:
    """Each of the ones is found, none of the others, in a sentence."""
    ones, others = SAMPLES[data_type]
    for sample in ones:
        assert found(data_type, f"It is {sample}, I think.") == 1, sample
    for sample in others:
        assert found(data_type, f"It is {sample}, I think.") == 0, sample


LETTERS = st.sampled_from("ABCDEHLMPRST")


def digits(count: int) -> st.SearchStrategy[str]:
    """So many decimal digits."""
    return st.text("0123456789", min_size=count, max_size=count)


CODE = st.builds(
    "{}{}{}{}{}{}".format,
    st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ", min_size=6, max_size=6),
    st.text("0123456789LMNPQRSTUV", min_size=2, max_size=2),
    LETTERS,
    digits(2),
    LETTERS,
    st.text("0123456789LMNPQRSTUV", min_size=3, max_size=3),
)
CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
CHECKED: dict[str, tuple[st.SearchStrategy[str], list[str]]] = {
    # No second number begins within one of these digits.
    "card": (
        st.text("01789", min_size=14, max_size=14).map("4{}".format),
        [f"{{}}{n}" for n in range(10)],
    ),
    "iban": (digits(14), [f"GB{n:02}WEST{{}}" for n in range(2, 99)]),
    "dni": (digits(8), [f"{{}}{letter}" for letter in CAPITALS]),
    "nir": (digits(5).map("1 85 07 2A 0{}".format), [f"{{}}{n:02}" for n in range(1, 98)]),
    "codice-fiscale": (CODE, [f"{{}}{letter}" for letter in CAPITALS]),
    "cpf": (digits(9).filter(lambda d: len(set(d)) > 1), [f"{{}}{n:02}" for n in range(100)]),
}


@pytest.mark.parametrize("data_type", CHECKED)
@given(st.data())
def test_of_all_check_digits_one_is_right(data_type: str, data: st.DataObject) -> None:
    """A number is found with the right ones, and with no others."""
    bodies, forms = CHECKED[data_type]
    body = data.draw(bodies)
    assert [found(data_type, form.format(body)) for form in forms].count(1) == 1


@given(st.sampled_from([b"\x00", b"\x05"]), st.binary(min_size=20, max_size=20), st.data())
def test_addresses_of_bitcoin_have_their_checksum(
    version: bytes, key: bytes, data: st.DataObject
) -> None:
    """One that is made as they are is found, and not with one character changed."""
    payload = version + key
    whole = payload + hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:4]
    number, text = int.from_bytes(whole, "big"), ""
    while number:
        number, rest = divmod(number, 58)
        text = BASE58[rest] + text
    text = "1" * (len(whole) - len(whole.lstrip(b"\0"))) + text
    assert found("crypto-address", text) == 1
    place = data.draw(st.integers(1, len(text) - 1))
    other = data.draw(st.sampled_from(BASE58.replace(text[place], "")))
    assert found("crypto-address", text[:place] + other + text[place + 1 :]) == 0


@given(digits(40), st.integers(0, 2**40))
def test_addresses_of_ethereum_have_the_right_capitals(body: str, capitals: int) -> None:
    """Of all ways to write the letters, mixed, one is found: that of the hash."""
    letters = body.translate(str.maketrans("01234", "abcde"))
    digest = keccak_256(letters.encode()).hex()
    right = "".join(c.upper() if d > "7" else c for c, d in zip(letters, digest, strict=False))
    other = "".join(c.upper() if capitals >> i & 1 else c for i, c in enumerate(letters))
    is_right = other == right or other in {other.lower(), other.upper()}
    assert found("crypto-address", f"0x{right}") == 1
    assert found("crypto-address", f"0x{other}") == is_right


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (b"", "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"),
        (b"abc", "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"),
    ],
)
def test_the_hash_of_ethereum_is_keccak(data: bytes, digest: str) -> None:
    """As it is published."""
    assert keccak_256(data).hex() == digest


# --- what is shown -----------------------------------------------------------------------------

ONE_OF_EACH = f"{MAIL}, 4111 1111 1111 1111, DOB: 1990-01-31, IP:2001:db8::1"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "***@example.com, **** **** **** 1111, DOB: ****-**-**, IP:****:***::*"),
        ({"preserve_format": False}, "********, ********, DOB: ********, IP:********"),
        ({"method": "remove"}, ", , DOB: , IP:"),
        ({"method": "placeholder"}, "[EMAIL], [CARD], DOB: [DATE OF BIRTH], IP:[IP]"),
        ({"strategy": "warn"}, ONE_OF_EACH),
        ({"strategy": "filter"}, ""),
    ],
)
async def test_how_it_is_shown(options: dict[str, Any], text: str) -> None:
    """What says what a value is stays before it."""
    assert await shown(ONE_OF_EACH, **options) == text


async def test_a_short_value_shows_nothing_of_itself() -> None:
    """Four of eight characters would be half of it."""
    assert await shown("12345678Z", ["dni"]) == "*****678Z"
    assert await shown("It is 10.20.30.40.", ["ip"]) == "It is **.**.**.**."
    assert await shown("It is 192.168.100.200.", ["ip"]) == "It is ***.***.***.***."
    assert await shown("born 31 January 1990", ["date-of-birth"]) == "born ** ******* ****"
    assert await shown("+49 12345", ["phone"]) == "+** *****"
    assert await shown("+1 212-555-0123", ["phone"]) == "+* ***-***-0123"


async def test_hashes_tell_whether_two_values_are_one() -> None:
    """However they are written; and with another key nothing can be told."""
    cards = "4111 1111 1111 1111 or 4111111111111111 or 378282246310005"
    said = f"{cards}, Zoe@Example.com ZOE@example.COM"
    text = await shown(said, method="hash", key=b"0123456789abcdef")
    hashes = re.findall(r"\[(?:card|email):[0-9a-f]{16}\]", text)
    assert len(hashes) == 5
    assert hashes[0] == hashes[1] != hashes[2]
    assert hashes[3] == hashes[4]
    assert await shown(said, method="hash", key=b"0123456789abcdef") == text
    assert await shown(said, method="hash", key=b"another key, also long") != text
    assert hashed("card", "1", key=b"k")[-17:] != hashed("iban", "1", key=b"k")[-17:]
    own = [await shown(said, method="hash") for _ in range(2)]
    assert own[0] != own[1], "each object has a key of its own"


@pytest.mark.parametrize("text", ["zoe.longname@x.AB 12 34 56 C", "zoe@x.AB 12 34 56 C"])
async def test_what_overlaps_an_address_is_hidden_with_it(text: str) -> None:
    """A mask shows the domain of an address alone."""
    assert not re.search("zoe|12|34", await shown(text))


async def test_of_two_types_the_one_with_check_digits_is_named() -> None:
    """Much else has the form of a phone number."""
    assert await shown("076.268.029-69", method="placeholder") == "[CPF]"


@pytest.mark.parametrize("data_type", ["phone", "date-of-birth"])
def test_only_known_words_stay(data_type: Any) -> None:
    """Of a match with more than a label before the value, all is given to be hidden."""
    rule = replaced_by(DATA_TYPES[data_type][0], data_type, lambda _, value: f"<{value}>")
    assert callable(rule.replacement)
    for text in ("zoe@x tel 030 123456", "zoe@x born 1990-01-31"):
        assert rule.replacement(text) == f"<{text}>"


async def test_only_what_is_asked_for_is_hidden() -> None:
    """Other types stay."""
    assert await shown(ONE_OF_EACH, ["card"]) == ONE_OF_EACH.replace(
        "4111 1111 1111", "**** **** ****"
    )


@given(st.data(), st.sampled_from(["redact", "block", "filter"]))
def test_nothing_of_a_match_is_disclosed(data: st.DataObject, strategy: Any) -> None:
    """To client, caller or store, however the answer is cut; the rest is as the strategy says."""
    pieces = data.draw(chunkings(SAID))
    guard = PIIDetector(strategy=strategy)
    agent = Agent(model=ScriptedModel([pieces]), output_processors=[guard])
    chunks, result = run_virtual(streamed(agent))
    assert "zoe" not in disclosed(chunks, result)
    left = {"redact": SAID.replace("zoe", "***")}.get(strategy, "")
    assert result.text == left
    assert (result.tripwire is not None) is (strategy == "block")
    if strategy == "block":
        assert result.tripwire.metadata == {"rule": "email", "offset": 9, "length": len(MAIL)}


async def test_a_filtered_part_leaves_the_others() -> None:
    """What stands before a tool call and what follows it are two texts."""

    @tool
    def look() -> str:
        """Look something up."""
        return "found"

    model = ScriptedModel([[SAID, call("look")], ["All ", "fine."]])
    guard = PIIDetector(strategy="filter")
    result = await Agent(model=model, tools=[look], output_processors=[guard]).generate("hi")
    assert result.text == "All fine."
    assert "zoe" not in repr(model.requests[1].prompt)


async def test_filtered_messages_are_not_sent() -> None:
    """A message goes when no part of it is left, and a run without messages is blocked."""
    stored: list[str] = []

    class Last:
        id = "last"

        def process_input(self, args: Any) -> Any:
            """Look at what is left."""
            stored.extend(message.text for message in args.messages)
            return args.messages

    guard = PIIDetector(strategy="filter")
    model = ScriptedModel(["fine"])
    agent = Agent(model=model, input_processors=[guard, Last()])
    both = Message("user", [TextPart("Hello."), TextPart(SAID)])
    await agent.generate([Message.user(SAID), both])
    assert [message.text for message in model.requests[0].prompt] == stored == ["Hello."]
    blocked = await agent.generate(SAID)
    assert blocked.tripwire is not None
    assert "zoe" not in repr(blocked)
    assert len(model.requests) == 1


async def test_what_the_user_says() -> None:
    """As an input processor it hides it from the model."""
    model = ScriptedModel(["fine"])
    await Agent(model=model, input_processors=[PIIDetector()]).generate(SAID)
    assert model.requests[0].prompt[-1].text == SAID.replace("zoe", "***")


@pytest.mark.parametrize("strategy", ["redact", "warn", "filter"])
async def test_violations_are_reported_without_the_text(strategy: Any) -> None:
    """Rule, offset and length of every match."""
    told: list[ProcessorViolation] = []
    await shown(f"{MAIL} {MAIL}", strategy=strategy, on_violation=told.append)
    assert [v.detail for v in told] == [
        {"rule": "email", "offset": at, "length": len(MAIL)} for at in (0, len(MAIL) + 1)
    ]
    assert "zoe" not in repr(told)


@pytest.mark.parametrize("strategy", ["redact", "filter"])
async def test_tool_arguments_and_results(strategy: Any) -> None:
    """The tool gets what is shown, and so does the model of its result."""
    ran: list[Any] = []

    @tool
    def send(to: list[str]) -> dict[str, str]:
        """Send something."""
        ran.append(to)
        return {"sent": MAIL}

    model = ScriptedModel([[call("send", {"to": [MAIL, "x"]}, pieces=4)], ["done"]])
    guard = PIIDetector(strategy=strategy, covers=["tool-arguments", "tool-results"])
    chunks, result = await streamed(Agent(model=model, tools=[send], output_processors=[guard]))
    left = {"redact": "***@example.com", "filter": ""}[strategy]
    assert (ran, result.tool_results[0].result) == ([[left, "x"]], {"sent": left})
    assert "zoe" not in disclosed(chunks, result) + repr(model.requests[1].prompt)


async def test_a_retry_asks_for_another_answer() -> None:
    """What was held of the rejected one is gone."""
    model = ScriptedModel([[SAID], ["Write to us."]])
    guard = PIIDetector(strategy="block", retry=True)
    agent = Agent(model=model, output_processors=[guard], max_processor_retries=1)
    result = await agent.generate("hi")
    assert (result.text, result.retries) == ("Write to us.", 1)
    assert "zoe" not in repr(model.requests[1].prompt)


async def test_runs_at_once_share_nothing() -> None:
    """One detector in two runs, each with half of an address."""
    guard = PIIDetector(strategy="filter")
    agents = [
        Agent(model=ScriptedModel([[half]]), output_processors=[guard])
        for half in ("zoe@exam", "ple.com")
    ]
    results = await asyncio.gather(*(agent.generate("hi") for agent in agents))
    assert [result.text for result in results] == ["zoe@exam", "ple.com"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"types": ["name"]}, "types must be some of email, phone, .*, not 'name'"),
        ({"types": []}, "types must be some of .*, not none"),
        ({"types": b"email"}, "types must be a list of names"),
        ({"strategy": "hide"}, "strategy must be one of redact, block, warn, filter, not 'hide'"),
        ({"method": "hide"}, "method must be one of mask, hash, remove, placeholder, not 'hide'"),
        ({"method": ["mask"]}, "method must be one of mask"),
        ({"strategy": "warn", "method": "mask"}, "method is for strategy='redact'"),
        ({"method": "hash", "preserve_format": False}, "preserve_format=False is for"),
        ({"preserve_format": "no"}, "preserve_format must be True or False, not 'no'"),
        ({"retry": 1, "strategy": "block"}, "retry must be True or False, not 1"),
        ({"retry": True}, "retry is for strategy='block'"),
        ({"key": b"0123456789abcdef"}, "key is for method='hash'"),
        ({"method": "hash", "key": b"short"}, "key must be at least 16 bytes"),
        ({"method": "hash", "key": "0123456789abcdef"}, "key must be at least 16 bytes"),
        ({"covers": ["all"]}, "covers takes text, reasoning"),
    ],
)
def test_wrong_options(options: dict[str, Any], told: str) -> None:
    """Each is refused when the detector is built, by the class's name."""
    with pytest.raises(ConfigurationError, match=f"^PIIDetector: {told}"):
        PIIDetector(**options)


@pytest.mark.parametrize("strategy", ["redact", "filter"])
def test_it_keeps_the_laws(strategy: Any) -> None:
    """Whatever the stream, and wherever its text is cut."""
    check_processor(
        lambda: PIIDetector(strategy=strategy), max_examples=EXAMPLES, fails=BaseException
    )
