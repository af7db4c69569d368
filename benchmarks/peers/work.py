"""The work of every peer: a text in pieces through four small steps, to the end.

Each peer has its own way to make a stream and to put a step into it; the steps themselves are the
same bound methods everywhere. What came out, and what the steps had seen by then, is compared with
what it should be before anything is timed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from benchmarks.work import WORDS

__all__ = ["DifferentWorkError", "Run", "Step", "Steps", "TooLongError", "Work", "spoken", "texts"]

LONGEST = 1 << 40

Step = Callable[[str], str]
"""A step: a piece of text in, a piece of text out."""

Run = Callable[[], Awaitable[list[str]]]
"""One whole stream, read to its end: the pieces of text that its reader got."""


class TooLongError(Exception):
    """The text is longer than allowed."""


class DifferentWorkError(Exception):
    """A peer did other work than it was given, so that its time would say nothing."""


@dataclass(slots=True)
class Steps:
    """The four steps, and what they keep.

    Attributes:
        words: spaces so far.
        length: characters so far.
        last: the newest piece, as it came.
        tabs: pieces that had a tab.
    """

    words: int = 0
    length: int = 0
    last: str = ""
    tabs: int = 0

    @property
    def chain(self) -> tuple[Step, Step, Step, Step]:
        """The steps in their order."""
        return (self.count_words, self.limit_length, self.keep_last, self.replace_tabs)

    def count_words(self, text: str) -> str:
        """Count the spaces."""
        self.words += text.count(" ")
        return text

    def limit_length(self, text: str) -> str:
        """Add up the characters.

        Raises:
            TooLongError: there are too many.
        """
        self.length += len(text)
        if self.length > LONGEST:
            raise TooLongError(f"the text has more than {LONGEST} characters")
        return text

    def keep_last(self, text: str) -> str:
        """Remember the piece."""
        self.last = text
        return text

    def replace_tabs(self, text: str) -> str:
        """Put a space for a tab, and count the pieces that had some."""
        if "\t" in text:
            self.tabs += 1
            return text.replace("\t", " ")
        return text


def texts(chunks: int) -> list[str]:
    """So many pieces of text, the same ones as in the project's own benchmarks."""
    return [WORDS[number % len(WORDS)] for number in range(chunks)]


async def spoken(pieces: Sequence[str]) -> AsyncIterator[str]:
    """The plainest source there is: what a library without a notion of a model is given."""
    for piece in pieces:
        yield piece


@dataclass(slots=True)
class Work:
    """What a peer is given.

    Attributes:
        texts: what its model says.
        base_url: a loopback server that says it in the chat-completions protocol.
        closing: closes what the peer opened, when it was measured.
        steps: what it sends the text through.
    """

    texts: Sequence[str]
    base_url: str
    closing: AsyncExitStack
    steps: Steps = field(default_factory=Steps)

    async def check(self, name: str, run: Run) -> None:
        """Let a peer run for the first time, and look at all that it did.

        Raises:
            DifferentWorkError: text is missing, not as the last step left it, or some step has not
                seen each piece once.
        """
        got = "".join(await run())
        due = Steps()
        wanted = ""
        for text in self.texts:
            piece = text
            for step in due.chain:
                piece = step(piece)
            wanted += piece
        if got != wanted:
            raise DifferentWorkError(f"{name}: its reader got {got[:80]!r}, not {wanted[:80]!r}")
        if self.steps != due:
            raise DifferentWorkError(f"{name}: its steps came to {self.steps}, not to {due}")
