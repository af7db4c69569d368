"""`UnicodeNormalizer`: the whole text's normal form however it is cut, and nothing invisible."""

from __future__ import annotations

import asyncio
import sys
import unicodedata
from dataclasses import replace
from typing import Any

import pytest
import regex  # type: ignore[import-untyped]  # it ships no types
from hypothesis import given, settings
from hypothesis import strategies as st

from streampipe import Agent, TextDelta, tool
from streampipe.errors import ConfigurationError
from streampipe.processors import UnicodeNormalizer
from streampipe.processors._normal_text import MOST_MARKS, NormalText, TextForm
from streampipe.testing import ScriptedModel, call, check_processor, chunkings, run_virtual

EXAMPLES = max(50, settings().max_examples // 2)  # 1,000 in the profile "laws"

FAMILY = "\U0001f469\u200d\U0001f467"  # a woman, a joiner, a girl
SCOTLAND = "\U0001f3f4" + "".join(chr(0xE0000 + ord(c)) for c in "gbsct") + "\U000e007f"
LETTERS = (
    "ae1< \u0301\u0308\u0316\u0338\u0344"  # marks that are put in order and composed
    "\u09c7\u09be\u0b47\u0b57"  # vowels that are composed with vowels
    "\u1100\u1161\u11a8\uac00\u3131\u314f\u3133\uffa1\uffc2"  # Hangul, in its forms
    "\uff76\uff9e\u30ab\u3099\ufb01\u2160\u2122\u212b\ufdfa漢"  # what NFKC takes apart
)
INVISIBLE = "\x00\x9f\u00ad\u200b\u200d\ufe0f\ufe00\u202e\u200f\u3164\U000e0067\U000e007f\ufff9"
PICTURES = "\U0001f469\U0001f3fb\U0001f3f4\u20e3\u2764"
SPACES = " \t\r\n\u2028\xa0"
TEXTS = st.text(st.sampled_from(LETTERS + INVISIBLE + PICTURES + SPACES), max_size=14)
MARKED = st.builds("{}{}{}".format, TEXTS, st.text("\u0301\u0316\u09be", max_size=80), TEXTS)
WANTED = st.builds(
    TextForm,
    st.sampled_from(["NFKC", "NFC", None]),
    *[st.booleans()] * 5,
)


def normal(wanted: TextForm, *pieces: str) -> str:
    """What a machine makes of a text in pieces."""
    machine = NormalText(wanted)
    return "".join([machine.feed(piece) for piece in pieces]) + machine.finish()


@given(st.data(), WANTED, TEXTS | MARKED)
def test_the_cuts_change_nothing(data: st.DataObject, wanted: TextForm, text: str) -> None:
    """The joined output is what the whole text gives."""
    pieces = data.draw(chunkings(text)) if text else []
    assert normal(wanted, *pieces) == normal(wanted, *text) == normal(wanted, text)


@given(st.sampled_from(["NFKC", "NFC"]), st.text(max_size=20) | TEXTS)
def test_it_is_the_form_that_unicode_defines(form: Any, text: str) -> None:
    """Character by character it gives what Python gives for the whole."""
    wanted = TextForm(form, *[False] * 5)
    assert normal(wanted, *text) == unicodedata.normalize(form, text)


@given(st.sampled_from(["NFKC", "NFC", None]), TEXTS)
def test_what_is_normal_stays(form: Any, text: str) -> None:
    """Done twice it is done once."""
    wanted = TextForm(form, strip_control=True, strip_zero_width=True, strip_bidi=True,
                      collapse_whitespace=True, keep_emoji=True)  # fmt: skip
    once = normal(wanted, text)
    assert normal(wanted, once) == once


@given(WANTED, st.lists(TEXTS | MARKED, max_size=4))
def test_what_is_held_is_bounded_and_adds_up(wanted: TextForm, pieces: list[str]) -> None:
    """A letter with its marks, what may become a flag, and the white space before them."""
    machine = NormalText(wanted)
    for char in (*"".join(pieces), *FAMILY[:2]):
        before = machine.held
        machine.feed(char)
        assert 0 <= machine.held <= min(before + 1, 1 + MOST_MARKS + 6 + 5)
    machine.finish()
    assert machine.held == 0


def test_many_marks_are_not_held() -> None:
    """They are composed 32 at a time, so what is held is as bounded as it is said to be."""
    wanted = TextForm("NFC", *[False] * 5)
    text = "e" + "\u0316" * 40 + "\u0301" * 40
    machine = NormalText(wanted)
    out = ""
    for char in text:
        out += machine.feed(char)
        assert machine.held <= 1 + MOST_MARKS
    assert out + machine.finish() == normal(wanted, text) == text


@pytest.mark.parametrize("text", ["a1", "end.", "漢", "1)", "\U0001f469 ", "é\n"])
def test_what_nothing_can_change_leaves_at_once(text: str) -> None:
    """Digits, punctuation, spaces and Chinese characters."""
    machine = NormalText(replace(TextForm("NFKC", *[True] * 5), collapse_whitespace=False))
    assert (machine.feed(text), machine.held) == (text, 0)


def test_every_character_that_joins_another_waits_for_it() -> None:
    """For each pair that Unicode composes, and what NFKC makes of either: all of this Python's."""
    chars = [chr(c) for c in range(sys.maxunicode) if not 0xD800 <= c < 0xE000]
    parts = [unicodedata.decomposition(char).split() for char in chars]
    pairs = [
        [chr(int(code, 16)) for code in pair]
        for pair in parts
        if len(pair) == 2 and "<" not in pair[0]
    ]
    wanted = TextForm("NFKC", *[False] * 5)
    seconds = {pair[1] for pair in pairs} | set(map(chr, range(0x1161, 0x1176)))
    for first, second in pairs:
        assert normal(wanted, first, second) == unicodedata.normalize("NFKC", first + second)
    machine = NormalText(wanted)
    for char in chars:
        begun = unicodedata.normalize("NFKD", char)[0]
        if begun in seconds or unicodedata.combining(begun):
            machine.feed("a")
            machine.feed(char)
            assert machine.held > 1, f"U+{ord(char):04X} left what it may be composed with"
            machine.finish()


SHOWN = [
    ("\uff21\u24d1\ufb01", "Abfi"),
    ("cafe\u0301", "caf\xe9"),
    ("of\u200bfi\u00adce", "office"),
    ("a\x00b\x1bc\td\n", "abc\td\n"),
    ("user\u202egpj.exe", "usergpj.exe"),
    ("a" + "".join(chr(0xE0000 + ord(c)) for c in "hidden"), "a"),
    (FAMILY, FAMILY),
    ("\U0001f469\U0001f3fb\u200d\u2764\ufe0f", "\U0001f469\U0001f3fb\u200d\u2764\ufe0f"),
    (SCOTLAND, SCOTLAND),
    ("\u2764\ufe0f 1\ufe0f\u20e3", "\u2764\ufe0f 1\ufe0f\u20e3"),
    ("\U0001f469\u200d a\u200db\ufe0f \u2122\ufe0f", "\U0001f469 ab TM"),
    ("\U0001f469\u200b\u200d\U0001f467", "\U0001f469\U0001f467"),
    (SCOTLAND[:-1], "\U0001f3f4"),
    ("Hi \U0001f469\u200d", "Hi \U0001f469"),
]


@pytest.mark.parametrize(("said", "shown"), SHOWN)
async def test_what_is_said_and_what_is_shown(said: str, shown: str) -> None:
    """Stream, result, message and the model's prompt agree, character by character."""
    guard = UnicodeNormalizer()
    model = ScriptedModel([list(said)])
    agent = Agent(model=model, input_processors=[guard], output_processors=[guard])
    async with agent.stream(said) as run:
        streamed = "".join([c.text async for c in run if isinstance(c, TextDelta)])
        result = await run.result()
    assert streamed == result.text == result.messages[-1].text == shown
    assert model.requests[0].prompt[-1].text == shown


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"form": "NFC"}, "\ufb01\x07\u200b\u202e \u2122\ufe0f"),
        ({"form": None, "strip_control": True}, "\ufb01\u200b\u202e \u2122\ufe0f"),
        ({"form": None, "strip_bidi": True}, "\ufb01\x07\u200b \u2122\ufe0f"),
        ({"form": None, "strip_zero_width": True}, "\ufb01\x07\u202e \u2122\ufe0f"),
        ({"form": None, "strip_zero_width": True, "keep_emoji": False}, "\ufb01\x07\u202e \u2122"),
    ],
)
async def test_each_option_by_itself(options: dict[str, Any], shown: str) -> None:
    """What is not asked for stays."""
    off = dict.fromkeys(("strip_control", "strip_zero_width", "strip_bidi"), False)
    guard = UnicodeNormalizer(**{**off, **options})
    said = "\ufb01\x07\u200b\u202e \u2122\ufe0f"
    agent = Agent(model=ScriptedModel([[said]]), output_processors=[guard])
    assert (await agent.generate("hi")).text == shown


@given(st.text(" \t\r\n\u2028\xa0ab", max_size=20))
def test_white_space_is_closed_up(text: str) -> None:
    """The words stay, and between two there is a space, a line break or a blank line."""
    guard = UnicodeNormalizer(None, collapse_whitespace=True)
    agent = Agent(model=ScriptedModel([[*text, "."]]), output_processors=[guard])
    got = run_virtual(agent.generate("hi")).text
    assert got.split() == f"{text}.".split()
    assert not regex.search(r"[^\S \n]|  | \n|\n |\n\n\n", got)
    breaks = [gap for gap in regex.findall(r"\s+", text) if len(gap.splitlines()) > 1]
    assert got.count("\n\n") <= len(breaks)


async def test_tool_arguments_and_results_are_covered_if_asked_for() -> None:
    """The tool gets the normal form, and so does the model of its result."""
    ran: list[str] = []

    @tool
    def look(word: str) -> list[str]:
        """Look something up."""
        ran.append(word)
        return ["\uff22\u200b"]

    model = ScriptedModel([[call("look", {"word": "\uff21\u200b"}, pieces=3)], ["done"]])
    guard = UnicodeNormalizer(covers=["tool-arguments", "tool-results"])
    agent = Agent(model=model, tools=[look], output_processors=[guard])
    result = await agent.generate("hi")
    assert (ran, result.tool_results[0].result) == (["A"], ["B"])
    assert "\u200b" not in repr(model.requests[1].prompt)


async def test_what_a_rejected_answer_left_is_gone() -> None:
    """A mark does not go over to the next attempt."""

    class Once:
        id = "once"

        def process_output_stream(self, args: Any) -> Any:
            """Reject the first answer, in the middle of a letter."""
            if args.retry_count == 0 and getattr(args.part, "text", "") == "e":
                args.abort("again", retry=True)
            return args.part

    agent = Agent(
        model=ScriptedModel([["cafe", "e", "!"], ["\u0301x"]]),
        output_processors=[UnicodeNormalizer(), Once()],
        max_processor_retries=1,
    )
    assert (await agent.generate("hi")).text == "\u0301x"


async def test_runs_at_once_share_nothing() -> None:
    """One guard in two runs, each with half of a letter."""
    guard = UnicodeNormalizer()
    agents = [
        Agent(model=ScriptedModel([[half, "."]]), output_processors=[guard])
        for half in ("e", "\u0301")
    ]
    results = await asyncio.gather(*(agent.generate("hi") for agent in agents))
    assert [result.text for result in results] == ["e.", "\u0301."]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"form": "NFD"}, "form must be one of NFKC, NFC, not 'NFD'"),
        ({"form": 7}, "form must be one of NFKC, NFC, not 7"),
        ({"strip_bidi": "no"}, "strip_bidi must be True or False, not 'no'"),
        ({"covers": ["all"]}, "covers takes text, reasoning"),
        (
            {"form": None, "strip_control": False, "strip_zero_width": False, "strip_bidi": False},
            "nothing is to be done",
        ),
    ],
)
def test_wrong_options(options: dict[str, Any], told: str) -> None:
    """Each is refused when it is built, by the class's name."""
    with pytest.raises(ConfigurationError, match=f"^UnicodeNormalizer: {told}"):
        UnicodeNormalizer(**options)


def test_it_keeps_the_laws() -> None:
    """Whatever the stream, and wherever its text is cut."""
    check_processor(lambda: UnicodeNormalizer(collapse_whitespace=True), max_examples=EXAMPLES)
