"""The preset rules find what they are for and nothing else, and hold back no more than a word."""

from __future__ import annotations

import base64
import ipaddress
import json
import random
import re
import string
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streampipe.chunks import ReasoningDelta, TextDelta
from streampipe.text import (
    Matcher,
    MatchLimitError,
    Rule,
    Scanner,
    pii,
    presets,
    redacted,
    secrets,
    urls,
)
from tests.models.streams import RECORDED, STREAMS, decoded
from tests.text.cuttings import cut
from tests.text.numbers import cards, ibans, slips, spaced
from tests.text.preset_samples import FOUND, LEFT, PEM, body
from tests.text.regex_oracle import redacted_by_re

EVERY = (*pii, *secrets, *urls)
RULES = {rule.name: rule for rule in EVERY}
PROSE = "The quick brown fox jumps over the lazy dog. Then he asked: how tall is it? Nobody knew!"
EXPECTED = sorted(STREAMS.rglob("*.expected.json"))
SAMPLES = sorted(
    {
        re.sub("[«»]", "", text)
        for table in (FOUND, LEFT)
        for texts in table.values()
        for text in texts
    }
)
# White space may be held behind a digit, behind the word before a token, and in a key block.
CROSSING = re.compile(r"\S*[0-9]|\(0|[Bb]earer|-----BEGIN")
NOISE = random.Random(1).randbytes(4000)  # noqa: S311 - the same in every run
BLOBS = {  # and how many characters of each may be held
    "base64": (base64.b64encode(NOISE).decode(), 64),
    "base64url": (base64.urlsafe_b64encode(NOISE).decode(), 64),
    "hex": (NOISE.hex(), 64),
    "digits": ("".join(str(byte % 10) for byte in NOISE), 64),
    "a digit": ("4" * 5000, 64),
    "a letter": ("a" * 5000, 64),
    "a dash": ("-" * 5000, 64),
    "colons": (":" * 5000, 64),
    "labels": ("a." * 2500, 64),
    "domains": ("a@" * 2500, 66),
    "a long domain": ("a@" + "a." * 2500, 64),
    "decimals": ("1.1 " * 1250, 64),
    "signs": ("+1 " * 1700, 64),
    "openings": ("-----BEGIN " * 500, 64),
    "a long header": ("ey" + "J" + body(5000), 515),
    "a long key": ("sk" + "-" + body(5000), 259),
    "a long project's key": ("sk" + "-proj-" + body(5000), 264),
}
SHORT = [text for text in SAMPLES if len(text) < 200]

with_recordings = pytest.mark.skipif(not EXPECTED, reason=f"no recordings in {STREAMS.name}")


def marked(rules: Sequence[Rule], pieces: Iterable[str]) -> str:
    """A text in pieces, what the rules find in it between guillemets."""
    matcher = Matcher(rules)
    parts = [part for piece in pieces for part in matcher.feed(piece)] + matcher.finish()
    return "".join(part if isinstance(part, str) else f"«{part.text}»" for part in parts)


def found(rules: Sequence[Rule], text: str) -> list[str]:
    """What the rules find in a text."""
    return re.findall("«([^»]*)»", marked(rules, [text]))


def held(rules: Sequence[Rule], pieces: Iterable[str]) -> Iterator[str]:
    """What is held after each piece."""
    scanner, text = Scanner(rules), ""
    for piece in pieces:
        text += piece
        scanner.feed(piece)
        yield text[len(text) - scanner.held :]


def fours(text: str) -> list[str]:
    """A text in pieces of four characters."""
    return [text[at : at + 4] for at in range(0, len(text), 4)]


def percentile(lengths: Sequence[int], share: float) -> int:
    """The length that so large a share of them does not exceed."""
    return sorted(lengths)[int(share * (len(lengths) - 1))]


@pytest.fixture(params=RULES)
def rule(request: pytest.FixtureRequest) -> Rule:
    """Each of the rules."""
    return RULES[request.param]


def test_each_rule_has_samples() -> None:
    """Of every rule there are at least 12 things that it finds, and 12 that it leaves."""
    assert RULES.keys() == FOUND.keys() == LEFT.keys()
    assert min(map(len, [*FOUND.values(), *LEFT.values()])) >= 12


def test_a_rule_finds_what_it_is_for(rule: Rule) -> None:
    """It finds exactly what is marked, in a text that comes whole or character by character."""
    samples = FOUND[rule.name]
    assert [marked([rule], [re.sub("[«»]", "", text)]) for text in samples] == samples
    assert [marked([rule], re.sub("[«»]", "", text)) for text in samples] == samples


def test_a_rule_leaves_what_only_looks_like_it(rule: Rule) -> None:
    """It finds nothing in what is something else."""
    samples = LEFT[rule.name]
    assert [marked([rule], [text]) for text in samples] == samples
    assert [marked([rule], text) for text in samples] == samples


def test_what_is_redacted_stays_as_it_is() -> None:
    """What replaces a match is no match."""
    once = [redacted(text, EVERY) for text in SAMPLES]
    assert [redacted(text, EVERY) for text in once] == once


@given(data=st.data())
def test_a_cut_changes_nothing(data: st.DataObject) -> None:
    """All rules together redact a text in pieces as `re` does the whole."""
    words = st.sampled_from(SHORT) | st.text(max_size=5)
    parts = data.draw(st.lists(words, max_size=5))
    text = data.draw(st.sampled_from([" ", "", "\n", ", "])).join(parts)
    scanner = Scanner(EVERY)
    pieces = [scanner.feed(piece) for piece in data.draw(cut(text))]
    assert "".join(pieces) + scanner.finish() == redacted_by_re(text, EVERY)


@given(data=st.data(), number=cards())
def test_a_card_is_found_in_any_spacing(data: st.DataObject, number: str) -> None:
    """Wherever there are spaces and dashes, the whole number is found."""
    text = data.draw(spaced(number, " -"))
    assert marked([RULES["card"]], [f"card {text}."]) == f"card «{text}»."


@given(data=st.data(), number=cards())
def test_a_card_is_found_among_digits(data: st.DataObject, number: str) -> None:
    """Digits before and behind it do not hide a number of the usual length."""
    assume(len(number) in {15, 16})
    before = data.draw(st.text("1789", max_size=20))  # no number begins with these
    text = before + number + data.draw(st.text(string.digits, max_size=20))
    at = marked([RULES["card"]], [text]).index("«")
    stop = at + len(found([RULES["card"]], text)[0])
    assert at <= len(before)
    assert stop >= len(before) + len(number)


@given(data=st.data(), number=cards())
def test_a_card_with_a_slip_is_left(data: st.DataObject, number: str) -> None:
    """A number with a wrong digit is not found."""
    text = data.draw(spaced(data.draw(slips(number)), " -"))
    assert text not in found([RULES["card"]], text)


@given(data=st.data(), number=ibans())
def test_an_iban_is_found_in_any_spacing(data: st.DataObject, number: str) -> None:
    """Wherever there are spaces behind the country, the whole number is found."""
    text = data.draw(spaced(number, begin=3))
    assert marked([RULES["iban"]], [f"to {text} by"]) == f"to «{text}» by"


@given(data=st.data(), number=ibans())
def test_an_iban_with_a_slip_is_left(data: st.DataObject, number: str) -> None:
    """A number with a wrong digit is not found."""
    text = data.draw(spaced(data.draw(slips(number)), begin=3))
    assert marked([RULES["iban"]], [text]) == text


@given(numbers=st.lists(st.integers(0, 300), min_size=2, max_size=7))
def test_four_octets_are_an_address(numbers: list[int]) -> None:
    """Fewer, more or larger numbers are a version."""
    text = ".".join(map(str, numbers))
    is_address = len(numbers) == 4 and max(numbers) < 256
    assert marked([RULES["ipv4"]], [f"at {text}."]) == (
        f"at «{text}»." if is_address else f"at {text}."
    )


@given(
    groups=st.lists(
        st.sampled_from([0, 1, 0xFE80]) | st.integers(0, 0xFFFF), min_size=8, max_size=8
    ),
    begin=st.integers(0, 8),
    end=st.integers(0, 8),
    form=st.sampled_from(["x", "X", "04x"]),
)
def test_every_form_of_an_ipv6_address_is_found(
    groups: list[int], begin: int, end: int, form: str
) -> None:
    """Any zero groups may be left out, letters may be capitals, groups may begin with zeros."""
    texts = [format(group, form) for group in groups]
    text = ":".join(texts)
    if begin < end and not any(groups[begin:end]):
        text = f"{':'.join(texts[:begin])}::{':'.join(texts[end:])}"
    assume(len(text.replace(":", " ").split()) > 2)
    assert ipaddress.IPv6Address(text)
    assert marked([RULES["ipv6"]], [f"from {text} on"]) == f"from «{text}» on"


@given(
    local=st.text(string.ascii_letters + string.digits + "._%+-", min_size=1, max_size=64),
    labels=st.lists(
        st.from_regex(r"\A[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?\Z"), min_size=1, max_size=8
    ),
    country=st.text(string.ascii_lowercase, min_size=2, max_size=12),
)
def test_an_address_of_mail_is_found(local: str, labels: list[str], country: str) -> None:
    """A local part of up to 64 characters, up to eight labels, and a domain at the top."""
    assume(
        local.lower() != "git"
        and country not in {"gif", "ico", "jpg", "jpeg", "png", "svg", "webp"}
    )
    text = f"{local}@{'.'.join(labels)}.{country}"
    assert marked([RULES["email"]], [f"<{text}>"]) == f"<«{text}»>"


@given(text=st.text())
def test_any_text_can_be_scanned(text: str) -> None:
    """Control characters, half surrogates, all scripts: as by `re`."""
    assert redacted(text + "\ud800\x00", EVERY) == redacted_by_re(text + "\ud800\x00", EVERY)


@given(text=st.text(st.characters(min_codepoint=0x80)))
def test_other_scripts_are_never_held(text: str) -> None:
    """No rule waits in a text that has nothing of ASCII."""
    assert set(held(EVERY, text)) <= {""}


@given(words=st.lists(st.text(string.ascii_letters, min_size=1, max_size=15), max_size=12))
def test_prose_is_one_piece_late_at_most(words: list[str]) -> None:
    """Word by word, with the space before it, at most the newest word is held."""
    assume(not {"bearer", "Bearer"} & set(words))
    pieces = [f" {word}" for word in [*words, *PROSE.split()]]
    assert all(
        len(rest) < len(piece) for rest, piece in zip(held(EVERY, pieces), pieces, strict=True)
    )


@given(data=st.data())
def test_white_space_is_only_crossed_by_what_may_hold_it(data: st.DataObject) -> None:
    """What is held has no white space in it, unless a number, a token or a key block began."""
    text = " ".join(data.draw(st.lists(st.sampled_from(SHORT), max_size=4)))
    for rest in held(EVERY, data.draw(cut(text))):
        assert not re.search(r"\s", rest) or CROSSING.match(rest)


@pytest.mark.parametrize(("blob", "most"), BLOBS.values(), ids=BLOBS)
def test_a_blob_is_not_held(blob: str, most: int) -> None:
    """Of thousands of characters in a row so few are held, and nothing fails."""
    assert max(map(len, held(EVERY, fours(blob)))) <= most


@given(data=st.data(), size=st.integers(0, 200))
def test_a_private_key_that_breaks_off_never_leaves(data: st.DataObject, size: int) -> None:
    """However the text is cut, and wherever it ends within the block, nothing of it comes out."""
    begin = PEM.index("\n") + 1
    text = f"Your key: {PEM[: begin + size]}"
    scanner = Scanner(EVERY)
    out = "".join([scanner.feed(piece) for piece in data.draw(cut(text))]) + scanner.finish()
    assert out == "Your key: [PRIVATE KEY]"


def test_a_private_key_without_an_end_fails_closed() -> None:
    """Past its limit the scan fails; what came before the key has left, nothing of it has."""
    scanner, out = Scanner(EVERY), ""
    with pytest.raises(MatchLimitError, match=r"private-key.*16384"):
        for piece in ["Here: ", PEM[:40], *[f"{body(60)}\n"] * 300]:
            out += scanner.feed(piece)
    assert out == "Here: "
    with pytest.raises(MatchLimitError):
        scanner.finish()


def test_a_whole_key_block_is_within_the_limit() -> None:
    """The largest keys in use are a third of what may be held."""
    block = PEM.replace(body(64), "\n".join([body(64)] * 100))
    assert redacted(f"a\n{block}\nb", EVERY) == "a\n[PRIVATE KEY]\nb"


def test_what_overlaps_is_replaced_as_the_longest() -> None:
    """An address within an URL, a token behind `Bearer`: one replacement for both."""
    token = "ey" + "JhbGciOiJIUzI1NiJ9." + "ey" + f"JzdWIiOiI3In0.{body(43)}"
    assert redacted(f"Bearer {token}", secrets) == "Bearer [TOKEN]"
    assert redacted("http://10.0.0.1/x?m=ann@example.com", EVERY) == "[URL]"
    assert redacted("SSN 123-45-6789", EVERY) == "SSN [SSN]"


def test_presets_have_names() -> None:
    """They are listed by name, with rules named once, and nobody can change them for others."""
    assert dict(presets) == {"pii": pii, "secrets": secrets, "urls": urls}
    assert len(RULES) == len(EVERY)
    with pytest.raises(KeyError):
        presets["PII"]
    with pytest.raises(TypeError, match="item assignment"):
        presets["pii"] = ()  # type: ignore[index]  # what is tested is that it cannot be done


@pytest.fixture(scope="module")
def said() -> list[str]:
    """What models said in recordings of all protocols."""
    answers: list[dict[str, Any]] = [json.loads(path.read_bytes()) for path in EXPECTED]
    texts = [answer.get(kind) for answer in answers for kind in ("text", "reasoning")]
    return [text for text in texts if text]


@with_recordings
def test_recordings_are_left_as_they_are(said: list[str]) -> None:
    """In what models really said is nobody's data, and none is seen; links are what they say."""
    assert sum(map(len, said)) > 30_000
    assert not [text for text in said if found([*pii, *secrets], text)]
    links = {link for text in said for link in found(urls, text)}
    assert len(links) > 5
    assert all(re.fullmatch(r"https://[\w.-]+/[\w./?=&%-]*\w", link) for link in links)


@with_recordings
def test_little_is_held_of_recordings(said: list[str]) -> None:
    """In pieces of four characters, 95 of 100 times no more than 20 characters wait."""
    rests = [rest for text in said for rest in held(EVERY, fours(text))]
    assert percentile([len(rest) for rest in rests], 0.95) <= 20
    assert not [rest for rest in rests if re.search(r"\s", rest) and not CROSSING.match(rest)]


@pytest.mark.parametrize("path", RECORDED)
def test_little_is_held_of_a_recording(path: Path) -> None:
    """Nor do they wait where a provider itself cut its text."""
    pieces = [
        chunk.text
        for chunk in decoded([path.read_bytes()])
        if isinstance(chunk, TextDelta | ReasoningDelta)
    ]
    lengths = [len(rest) for rest in held(EVERY, pieces)]
    assert not lengths or percentile(lengths, 0.95) <= 20
