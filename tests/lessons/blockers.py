"""Every guard of the shelf that can block, each made to block one and the same text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streampipe.contracts import ProcessorViolation
from streampipe.processors import (
    ClassifierProcessor,
    CostGuard,
    EntityDetector,
    Guard,
    LanguageDetector,
    ModerationProcessor,
    PIIDetector,
    PromptInjectionDetector,
    RegexFilter,
    SideBySide,
    SystemPromptScrubber,
    TokenLimiter,
    ToolCallGuard,
)

__all__ = ["BLOCKERS", "CANARY", "CANNOT_BLOCK", "Blocker", "Tell"]

CANARY = "ada@swordfish.org"
"""The text that is to be seen nowhere: an address, a word, a run of words, a rule's match."""

Tell = Callable[[ProcessorViolation], object]

TEXTS = ("text", "object", "reasoning")
STREAMED = (*TEXTS, "tool-arguments")
PLACES = ("message", *STREAMED, "tool-results")
COVERED: Any = ("text", "reasoning", "tool-arguments", "tool-results")


@dataclass(frozen=True, slots=True)
class Blocker:
    """A guard, and where it finds the canary.

    Attributes:
        make: a new one; takes what it reports to, and whether it asks for another answer.
        places: where it blocks; see `tests.lessons.attempts.Attempt`.
        retries: whether it can ask for another answer.
    """

    make: Callable[[Tell, bool], Any]
    places: tuple[str, ...] = PLACES
    retries: bool = True


def holds(text: str) -> bool:
    """Whether the canary stands in a text."""
    return CANARY in text


async def scores(text: str) -> dict[str, float]:
    """What a moderation service says of a text, in a category that each of the guards has."""
    return {"injection": float(holds(text))}


def size(text: str) -> int:
    """A text's tokens: the canary is far too long."""
    return 1_000 if holds(text) else 1


def detect(text: str) -> tuple[str, float]:
    """The language of a text: the canary's is not allowed."""
    return ("de", 0.99) if holds(text) else ("en", 0.99)


def find(text: str) -> list[tuple[int, int, str]]:
    """The canary as an entity."""
    at = text.find(CANARY)
    return [(at, at + len(CANARY), "PERSON")] if at >= 0 else []


def strategy(retry: bool) -> Any:  # noqa: FBT001 - a case
    """How guards that ask, and the one of tool calls, are told to block."""
    return "retry" if retry else "block"


def _allowed(text: str) -> bool:
    return not holds(text)


def _side_by_side(tell: Tell, retry: bool) -> SideBySide:  # noqa: FBT001 - a case
    guards = [
        Guard(check, strategy(retry), id=name, covers=COVERED, on_violation=tell)
        for name, check in (("calm", lambda _: True), ("discreet", _allowed))
    ]
    return SideBySide(*guards)


BLOCKERS: dict[str, Blocker] = {
    "ClassifierProcessor": Blocker(
        lambda tell, retry: ClassifierProcessor(
            ["injection"],
            check=scores,
            strategy=strategy(retry),
            covers=COVERED,
            on_violation=tell,
        )
    ),
    "CostGuard": Blocker(
        lambda tell, _: CostGuard(
            1,
            prices={"script": {"input": 2_000_000, "output": 0}},
            warn_at=None,
            on_violation=tell,
        ),
        ("request",),
        retries=False,
    ),
    "EntityDetector": Blocker(
        lambda tell, retry: EntityDetector(
            find=find, strategy=strategy(retry), covers=COVERED, on_violation=tell
        )
    ),
    "Guard": Blocker(
        lambda tell, retry: Guard(_allowed, strategy(retry), covers=COVERED, on_violation=tell)
    ),
    "LanguageDetector": Blocker(
        lambda tell, retry: LanguageDetector(
            ["en"],
            detect=detect,
            min_letters=0,
            strategy=strategy(retry),
            covers=COVERED,
            on_violation=tell,
        )
    ),
    "ModerationProcessor": Blocker(
        lambda tell, retry: ModerationProcessor(
            categories=["injection"],
            check=scores,
            strategy=strategy(retry),
            covers=COVERED,
            on_violation=tell,
        )
    ),
    "PIIDetector": Blocker(
        lambda tell, retry: PIIDetector(
            ["email"], strategy="block", retry=retry, covers=COVERED, on_violation=tell
        )
    ),
    "PromptInjectionDetector": Blocker(
        lambda tell, retry: PromptInjectionDetector(
            check=scores, strategy=strategy(retry), on_violation=tell
        ),
        ("message", "tool-results"),
    ),
    "RegexFilter": Blocker(
        lambda tell, retry: RegexFilter(CANARY, retry=retry, covers=COVERED, on_violation=tell)
    ),
    "SideBySide": Blocker(_side_by_side),
    "SystemPromptScrubber": Blocker(
        lambda tell, retry: SystemPromptScrubber(
            min_words=3, texts=[CANARY], strategy=strategy(retry), on_violation=tell
        ),
        STREAMED,
    ),
    "TokenLimiter": Blocker(
        lambda tell, _: TokenLimiter(100, strategy="block", count=size, on_violation=tell),
        ("message", "text", "object"),
        retries=False,
    ),
    "ToolCallGuard": Blocker(
        lambda tell, retry: ToolCallGuard(
            check={"look": lambda args: not holds(str(args))},
            strategy=strategy(retry),
            on_violation=tell,
        ),
        ("call", "provider-call"),
    ),
}
"""By the name of the class."""

CANNOT_BLOCK: dict[str, str] = {
    "BatchParts": "joins pieces of text",
    "ContextLengthRecovery": "asks again with a shorter prompt",
    "ModelRouter": "chooses a model",
    "PrefillErrorHandler": "asks again with another prompt",
    "PrepareStep": "calls a function of the user's, who may block in it as in a hook of his own",
    "ProviderHistoryCompat": "rewrites the prompt",
    "ResponseCache": "replays what other processors then look at",
    "SmoothStream": "cuts text into words",
    "StreamErrorRetry": "asks again",
    "StructuredOutput": "fails, or goes on without an object",
    "ToolCallFilter": "hides calls from the prompt",
    "ToolResultLimiter": "shortens results",
    "ToolSearch": "shows the model other tools",
    "UnicodeNormalizer": "rewrites text",
}
"""The others, and what they do instead."""
