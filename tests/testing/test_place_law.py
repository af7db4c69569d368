"""The law `place`: text that was moved behind a tool call is told from text that is added later."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streampipe.chunks import TextDelta, TextEnd, TextStart
from streampipe.testing import LawError, check_processor


class Signed:
    """Adds a line at the end of each text part."""

    id = "signed"
    line = "\n-- the bot"

    def process_output_stream(self, args: Any) -> Any:
        """Add it."""
        part = args.part
        if isinstance(part, TextEnd):
            return [TextDelta(part.id, self.line, run_id=part.run_id), part]
        return part


class Counted(Signed):
    """Adds how long the text was: it depends on what came before, and yet came not in before."""

    id = "counted"

    def process_output_stream(self, args: Any) -> Any:
        """Count, and tell."""
        part, counts = args.part, args.state
        if isinstance(part, TextStart):
            counts[part.id] = 0
        if isinstance(part, TextDelta):
            counts[part.id] = counts.get(part.id, 0) + len(part.text)
        if isinstance(part, TextEnd):
            line = f"[{counts.pop(part.id, 0)}]"
            return [TextDelta(part.id, line, run_id=part.run_id), part]
        return part


class Late:
    """Holds a character of each part back, whatever else comes."""

    id = "late"
    line = ""

    def process_output_stream(self, args: Any) -> Any:
        """Keep the last one."""
        part, held = args.part, args.state
        if isinstance(part, TextDelta):
            text = held.pop(part.id, "") + part.text
            held[part.id] = text[-1:]
            return replace(part, text=text[:-1])
        if isinstance(part, TextEnd):
            rest = held.pop(part.id, "") + self.line
            return [TextDelta(part.id, rest, run_id=part.run_id), part]
        return part


class LateSigned(Late):
    """Holds back, and adds a line as well."""

    id = "late-signed"
    line = "!"


@pytest.mark.parametrize("make", [Signed, Counted])
def test_text_that_is_added_at_a_part_s_end_passes(make: Any) -> None:
    """It never came in, so it cannot have been before a tool call."""
    check_processor(make)


@pytest.mark.parametrize("make", [Late, LateSigned])
def test_text_that_a_tool_call_overtakes_is_found(make: Any) -> None:
    """What came in before it comes out behind it."""
    with pytest.raises(LawError, match="comes out behind it") as caught:
        check_processor(make, laws=["place"])
    assert caught.value.law == "place"


class Bare:
    """Makes a new piece of each, and forgets what the old one told."""

    id = "bare"

    def process_output_stream(self, args: Any) -> Any:
        """Say it louder."""
        part = args.part
        return TextDelta(part.id, part.text.upper()) if isinstance(part, TextDelta) else part


def test_who_loses_metadata_is_told_how_to_keep_it() -> None:
    """The advice is to copy the piece; to leave chunks out is only for those who mean to."""
    with pytest.raises(LawError, match=r"is lost: .*replace\(part, text=.*\(or say `drops=True`"):
        check_processor(Bare, laws=["metadata"])
