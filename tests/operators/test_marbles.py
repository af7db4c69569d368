"""Marbles of a recorded run, as text and as a picture."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from streampipe import Agent, Recorder
from streampipe import operators as ops
from streampipe.testing import ScriptedModel
from streampipe.text import pii
from tests.operators.sources import deltas, recorded


async def test_marbles_show_who_did_what() -> None:
    """A lane a stage, a column an element of the source; signs for what did not leave."""
    _, recorder = await recorded(
        ops.filter(lambda c: getattr(c, "text", "") != "zz"),
        ops.redact(pii),
        chunks=deltas("Mail ", "zz", "someone@", "example.com", " now"),
    )
    assert recorder.marbles() == (
        "source                        Mail␣  ‹2›  ‹8›  ‹11›  ‹4›\n"
        "filter(<lambda>)              Mail␣  ×    ‹8›  ‹11›  ‹4›\n"
        "redact((email, ssn, phone, …  Mail␣       …    …     ~[EMAIL]␣ ~now\n"
        "client                        Mail␣                  [EMAIL]␣ now\n"
        "\n"
        "~ rewritten   … held   × dropped   ‹n› n characters, not recorded"
    )


@given(width=st.integers(20, 120), pieces=st.lists(st.text(min_size=1), max_size=30))
def test_marbles_of_any_width_are_whole(width: int, pieces: list[str]) -> None:
    """Lines are wrapped, a column never is; every lane stands in every system."""
    _, recorder = asyncio.run(
        recorded(ops.map_text(str.upper), chunks=deltas(*pieces), content=True)
    )
    drawn = recorder.runs[-1].marbles(width=width)
    assert len(re.findall(r"^source", drawn, re.MULTILINE)) == len(
        re.findall(r"^client", drawn, re.MULTILINE)
    )
    assert all(ord(char) >= 32 or char == "\n" for char in drawn)


@given(pieces=st.lists(st.text(min_size=1), max_size=10))
def test_the_picture_is_well_formed_whatever_the_text(pieces: list[str]) -> None:
    """Text and names are escaped: the picture is XML, with a mark for every chunk."""
    _, recorder = asyncio.run(
        recorded(ops.tap(repr), ops.map_text(str.upper), chunks=deltas(*pieces), content=True)
    )
    html = recorder._repr_html_()
    root = ET.fromstring(html)  # noqa: S314 - our own picture
    groups = root.findall(".//{http://www.w3.org/2000/svg}g")
    assert len(groups) == 4 * len(pieces)


async def test_the_notes_of_a_picture_stand_apart() -> None:
    """Below a picture the signs are explained as below a text; their distance is kept."""
    _, recorder = await recorded(
        ops.filter(lambda c: getattr(c, "text", "") != "zz"),
        ops.map_text(str.upper),
        chunks=deltas("a", "zz"),
        content=True,
    )
    svg = "{http://www.w3.org/2000/svg}text"
    root = ET.fromstring(recorder._repr_html_())  # noqa: S314 - our own picture
    notes = [text for text in root.iter(svg) if text.get("class") == "note"]
    assert [note.text for note in notes] == ["~ rewritten   × dropped"]
    assert notes[0].get("{http://www.w3.org/XML/1998/namespace}space") == "preserve"


async def test_two_runs_that_do_the_same_are_drawn_alike() -> None:
    """Nothing of a picture but its times is of the one run: no id, no address."""
    agent = Agent(model=ScriptedModel([["one ", "two"]], repeat=True))
    recorder = Recorder(clock=lambda: 0.0)
    for _ in range(2):
        await agent.generate("count", recorder=recorder)
    first, second = (run._repr_html_() for run in recorder.runs)
    assert first == second


async def test_a_long_run_is_drawn_from_its_beginning_and_says_what_is_left_off() -> None:
    """No picture grows without bound."""
    _, recorder = await recorded(ops.tap(repr), chunks=deltas(*"x" * 1000))
    assert "800 more columns" in recorder.marbles()
    assert "800 more columns" in recorder._repr_html_()


async def test_columns_stand_under_each_other_on_a_terminal() -> None:
    """A wide character takes two cells, a mark on another none."""
    _, recorder = await recorded(
        ops.filter(lambda c: getattr(c, "text", "") != "日本"),
        chunks=deltas("日本", "e\u0301a", "👍", "x"),
        content=True,
    )
    assert recorder.marbles() == (
        "source            日本  e\u0301a  👍  x\n"
        "filter(<lambda>)  ×     e\u0301a  👍  x\n"
        "client                  e\u0301a  👍  x\n"
        "\n"
        "× dropped"
    )


async def test_what_was_dropped_shows_beside_what_passed() -> None:
    """A column in which something left and something did not has a sign of both."""
    _, recorder = await recorded(
        ops.flat_map(lambda c: [c, replace(c)]), ops.distinct_until_changed(), chunks=deltas("a")
    )
    lanes = [line.split()[1:] for line in recorder.marbles().splitlines()]
    assert lanes[2:4] == [["a", "×"], ["a"]]
