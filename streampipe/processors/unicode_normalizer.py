"""`UnicodeNormalizer`: one spelling for what looks alike, and nothing that cannot be seen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reactivex import Observable

from streampipe.chunks import Chunk
from streampipe.errors import ConfigurationError
from streampipe.operators._fuse import fuse
from streampipe.operators._operator import operator
from streampipe.operators._options import Part
from streampipe.operators._text import text_stage
from streampipe.processors._normal_text import Form, NormalText, TextForm
from streampipe.processors._options import Name, checked_options
from streampipe.processors._text_guard import Note, Place, TextGuard

__all__ = ["UnicodeNormalizer"]


@operator
def normalize_text(
    source: Observable[Chunk], wanted: TextForm, parts: Iterable[Part]
) -> Observable[Chunk]:
    """The stream with every text of these parts in the form that is wanted."""
    return fuse(source, text_stage("normalize_text", lambda _: NormalText(wanted), parts))


class UnicodeNormalizer(TextGuard):
    r"""Brings texts into a normal form of Unicode and takes out what cannot be seen.

    Put before guards that look for words, it leaves no second spelling to get past them: letters
    made of two characters, those of full width or in a circle, words with invisible characters in
    them. In `input_processors` it works on the messages that the run begins with, in
    `output_processors` on what the model and its tools give; one object may stand in both lists.

    However a stream is cut, its text is the normal form of the whole. Held back is only what may
    still change: the last letter with its marks, and the joiner of an emoji. More than 32 marks in
    a row, which no language has, are composed 32 at a time, so that not even they are held for
    long; Unicode's stream-safe format is made for the same purpose.

    Letters that only look alike in two alphabets stay what they are. The joiners that are taken out
    are also part of the spelling of Persian and of languages of India: set `strip_zero_width=False`
    for these. White space is closed up in code too.

    >>> import asyncio
    >>> from streampipe import Agent
    >>> from streampipe.testing import ScriptedModel
    >>> model = ScriptedModel([["The \ufb01", "le is of\u200b", "fi", "ce\u202e.doc"]])
    >>> agent = Agent(model=model, output_processors=[UnicodeNormalizer()])
    >>> asyncio.run(agent.generate("Which file?")).text
    'The file is office.doc'

    Attributes:
        id: names it in errors and spans.
        covers: where it looks.
    """

    @checked_options
    def __init__(
        self,
        form: Form | None = "NFKC",
        *,
        strip_control: bool = True,
        strip_zero_width: bool = True,
        strip_bidi: bool = True,
        collapse_whitespace: bool = False,
        keep_emoji: bool = True,
        covers: Iterable[Place] = ("text", "reasoning"),
        id: Name = "unicode-normalizer",  # noqa: A002 - the contract's name
    ) -> None:
        r"""Say what is to be done.

        Args:
            form: "NFC" composes letters and their marks; "NFKC" also replaces what is a mere
                variant of other characters, such as ligatures and letters of full width; None
                leaves them.
            strip_control: take out control characters, but for tabs and line breaks.
            strip_zero_width: take out what has no width: joiners, soft hyphens, fillers, tags,
                variation selectors.
            strip_bidi: take out what sets the direction of writing.
            collapse_whitespace: a run of white space becomes one space; or one line break, or a
                blank line, if it has so many.
            keep_emoji: leave what joins emoji, chooses their look or makes flags of them.
            covers: where to look: "text", "reasoning", "tool-arguments", "tool-results".
            id: names it.

        Raises:
            ConfigurationError: an option is none of its values, or nothing is to be done.
        """
        super().__init__(id=id, covers=covers, on_violation=None)
        owner = type(self).__name__
        flags = {
            "strip_control": strip_control,
            "strip_zero_width": strip_zero_width,
            "strip_bidi": strip_bidi,
            "collapse_whitespace": collapse_whitespace,
            "keep_emoji": keep_emoji,
        }
        self._wanted = TextForm(form, **flags)
        if form is None and not (
            strip_control or strip_zero_width or strip_bidi or collapse_whitespace
        ):
            msg = f"{owner}: nothing is to be done: give a form, or something to strip or collapse"
            raise ConfigurationError(msg)

    def _operator(self, parts: tuple[str, ...], note: Note) -> Any:  # noqa: ARG002 - nothing is found
        where: Any = parts
        return normalize_text(self._wanted, where)
