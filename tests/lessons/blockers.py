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

__all__ = ["BLOCKERS", "CANARY", "CANNOT_BLOCK", "EVERYWHERE", "Blocker", "Tell", "holds"]

CANARY = "ada@swordfish.example"
"""The text that is to be seen nowhere: an address, a word, a run of words, a rule's match."""

EVERYWHERE: Any = ("text", "reasoning", "tool-arguments", "tool-results")

SAID = ("text", "object", "reasoning", "tool-arguments")
SENT = ("message", "old reasoning", "old arguments", "old result")
PLACES = (*SENT, *SAID, "tool-results")

ONCE = ("block",)
AGAIN = ("block", "retry", "exhausted")
ASKS = (*AGAIN, "raise", "unanswered")

Tell = Callable[[ProcessorViolation], object]


@dataclass(frozen=True, slots=True)
class Blocker:
    """A guard, and where and how it blocks the canary.

    Attributes:
        make: a new one; takes what it reports to, and how it is to end the answer.
        places: where it blocks; see `tests.lessons.attempts.ATTEMPTS`.
        endings: how it can; see `tests.lessons.attempts.Case`.
    """

    make: Callable[[Tell, str], Any]
    places: tuple[str, ...] = PLACES
    endings: tuple[str, ...] = ASKS


def holds(text: str) -> bool:
    """Whether the canary stands in a text."""
    return CANARY in text


def judge(ending: str) -> Callable[[str], bool]:
    """What tells whether the canary stands in a text, or fails where it does."""

    def fails(text: str) -> bool:
        if holds(text):
            raise ConnectionError("the service is down")
        return False

    return fails if ending == "unanswered" else holds


def service(ending: str) -> Any:
    """A moderation service: what a text is of, in a category that each of the guards has."""
    found = judge(ending)

    async def scores(text: str) -> dict[str, float]:
        return {"injection": float(found(text))}

    return scores


def finder(ending: str) -> Any:
    """What finds the canary in a text, as an entity."""
    found = judge(ending)

    def find(text: str) -> list[tuple[int, int, str]]:
        at = text.find(CANARY)
        return [(at, at + len(CANARY), "PERSON")] if found(text) else []

    return find


def strategy(ending: str) -> Any:
    """How a guard that asks is told to end an answer so."""
    return {"exhausted": "retry", "unanswered": "block"}.get(ending, ending)


def size(text: str) -> int:
    """A text's tokens: the canary is far too long."""
    return 1_000 if holds(text) else 1


def asking(make: Callable[..., Any], places: tuple[str, ...] = PLACES) -> Blocker:
    """A guard that asks, told to look everywhere; `make` takes the ending and the options."""
    return Blocker(
        lambda tell, ending: make(
            ending, strategy=strategy(ending), covers=EVERYWHERE, on_violation=tell
        ),
        places,
    )


def _discreet(ending: str, **options: Any) -> Guard:
    found = judge(ending)
    options["verdict"] = options.pop("strategy")
    return Guard(lambda text: not found(text), **options)


def _side_by_side(ending: str, **options: Any) -> SideBySide:
    calm = Guard(lambda _: True, id="calm", covers=EVERYWHERE)
    return SideBySide(calm, _discreet(ending, **options))


def _language(ending: str, **options: Any) -> LanguageDetector:
    found = judge(ending)
    return LanguageDetector(
        ["en"], detect=lambda text: ("de" if found(text) else "en", 1.0), min_letters=0, **options
    )


def _scrubber(ending: str, **options: Any) -> SystemPromptScrubber:
    found = judge(ending)

    async def reveals(text: str, _: str) -> bool:
        return found(text)

    told: dict[str, Any] = {**options, "covers": EVERYWHERE[:3], "min_words": 3}
    told |= {"texts": [CANARY]}
    if ending == "unanswered":
        told |= {"texts": ["a secret"], "check": reveals}
    return SystemPromptScrubber(**told)


def _injection(ending: str, **options: Any) -> PromptInjectionDetector:
    places = ("text", "tool-results")
    told: dict[str, Any] = {**options, "covers": places}
    return PromptInjectionDetector(check=service(ending), **told)


BLOCKERS: dict[str, Blocker] = {
    "ClassifierProcessor": asking(
        lambda ending, **options: ClassifierProcessor(
            ["injection"], check=service(ending), **options
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
        ONCE,
    ),
    "EntityDetector": asking(
        lambda ending, **options: EntityDetector(find=finder(ending), **options)
    ),
    "Guard": asking(_discreet),
    "LanguageDetector": asking(_language),
    "ModerationProcessor": asking(
        lambda ending, **options: ModerationProcessor(
            categories={"injection": "orders"}, check=service(ending), **options
        )
    ),
    "PIIDetector": Blocker(
        lambda tell, ending: PIIDetector(
            ["email"],
            strategy="block",
            retry=ending != "block",
            covers=EVERYWHERE,
            on_violation=tell,
        ),
        endings=AGAIN,
    ),
    "PromptInjectionDetector": asking(_injection, ("message", "old result", "tool-results")),
    "RegexFilter": Blocker(
        lambda tell, ending: RegexFilter(
            CANARY, retry=ending != "block", covers=EVERYWHERE, on_violation=tell
        ),
        endings=AGAIN,
    ),
    "SideBySide": asking(_side_by_side),
    "SystemPromptScrubber": asking(_scrubber, SAID),
    "TokenLimiter": Blocker(
        lambda tell, _: TokenLimiter(100, strategy="block", count=size, on_violation=tell),
        ("message", "text", "object"),
        ONCE,
    ),
    "ToolCallGuard": Blocker(
        lambda tell, ending: ToolCallGuard(
            check={"look": lambda args: not holds(str(args))},
            strategy=strategy(ending),
            on_violation=tell,
        ),
        ("call", "provider call"),
        AGAIN,
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
