"""`ToolResultLimiter`: what a tool returns costs no more than it may."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, repeat
from typing import Any, Literal, TypeVar

from streampipe.contracts import OnViolation, Processor, ProcessorViolation, ProcessToolResultArgs
from streampipe.errors import ConfigurationError
from streampipe.messages._json import shown_text
from streampipe.operators._options import checked_count
from streampipe.operators._scope import report_violation
from streampipe.processors._options import Count, Name, checked_options
from streampipe.processors._tokens import Counter, checked_count_of
from streampipe.text._split import GRAPHEME

__all__ = ["ToolResultLimiter"]

Keep = Literal["head", "tail", "both"]
T = TypeVar("T")

MARKER = "[… {missing} {unit} left out]"
SHORTEST = 80  # characters of a string within a structure; before less, entries are left out
LONGEST_TOKEN = 64  # characters: longer ones are white space
WINDOW = 256  # characters before a cut that are read to tell where graphemes end


class ToolResultLimiter(Processor):
    """Shortens what tools return, for `output_processors`.

    The prompt, the client and the stored message show the shortened result. It stays JSON: a string
    is cut between graphemes; in a structure the long strings are cut, all to one length, and where
    80 characters of each are too much still, lists and objects lose entries; only what does not fit
    even so, such as a single entry with a long key, becomes the beginning of its JSON as a string.
    A marker stands where something is missing, and says how much. Numbers and short strings stay
    whole.

    Results of tools that the provider runs stay as they are, since the provider checks them, and
    so do errors.

    >>> import asyncio
    >>> from streampipe import Agent, tool
    >>> from streampipe.testing import ScriptedModel, call
    >>> @tool
    ... def read(name: str) -> dict:
    ...     return {"name": name, "text": "All work and no play. " * 100}
    >>> model = ScriptedModel([[call("read", {"name": "book"})], ["A long one."]])
    >>> limiter = ToolResultLimiter(max_chars=120)
    >>> agent = Agent(model=model, tools=[read], output_processors=[limiter])
    >>> asyncio.run(agent.generate("What is in it?")).tool_results[0].result["text"][60:]
    'play. A[… 2133 characters left out]'

    Attributes:
        id: names it in violations and spans.
        on_violation: is told of every result that was shortened.
    """

    @checked_options
    def __init__(
        self,
        *,
        max_tokens: Count | None = None,
        max_chars: Count | None = None,
        per_tool: Mapping[str, int | None] | None = None,
        keep: Keep = "head",
        marker: str = MARKER,
        count: Counter | str | None = None,
        id: Name = "tool-result-limiter",  # noqa: A002 - the contract's name
        on_violation: OnViolation | None = None,
    ) -> None:
        """Say how much a result may have.

        Args:
            max_tokens: tokens of a result, as text or as JSON.
            max_chars: characters of it, instead.
            per_tool: another number for tools by name, in the same unit; None for no limit.
            keep: what of a text or a list is kept: its head, its tail, or half of each.
            marker: stands for what is missing. `{missing}` is how much of it, `{unit}` what it
                is: "characters", "items" of a list or "entries" of an object.
            count: how many tokens a text has; see `TokenLimiter`.
            id: names it.
            on_violation: is told of every result that was shortened.

        Raises:
            ConfigurationError: not exactly one of `max_tokens` and `max_chars` is given, or a limit
                is no whole number with room for two markers; another option is not as described; or
                `count` comes with `max_chars`.
        """
        owner = type(self).__name__
        if (max_tokens is None) == (max_chars is None):
            msg = f"{owner}: max_tokens={max_tokens!r}, max_chars={max_chars!r}; give one of them"
            raise ConfigurationError(msg)
        if count is not None and max_tokens is None:
            raise ConfigurationError(f"{owner}: count counts tokens, so give max_tokens")
        self.id = id
        self.on_violation = on_violation
        self._unit = "tokens" if max_chars is None else "characters"
        measure = checked_count_of(owner, count) if max_chars is None else len
        reach = LONGEST_TOKEN if max_chars is None else 1
        self._shortener = _Shortener(measure, reach, keep, _checked_marker(owner, marker))
        option = "max_tokens" if max_chars is None else "max_chars"
        self._limit = self._checked(owner, option, max_tokens if max_chars is None else max_chars)
        self._per_tool = {
            name: None if limit is None else self._checked(owner, f"per_tool[{name!r}]", limit)
            for name, limit in (per_tool or {}).items()
        }

    def _checked(self, owner: str, option: str, value: object) -> int:
        limit = checked_count(owner, option, value)
        least = self._shortener.least
        if limit < least:
            msg = (
                f"{owner}: {option}={limit} leaves no room for the marker: give {least} "
                f"{self._unit} or more, or a shorter marker"
            )
            raise ConfigurationError(msg)
        return limit

    async def process_tool_result(self, args: ProcessToolResultArgs) -> None:
        """Shorten a result that is too long, where it stands."""
        limit = self._per_tool.get(args.tool_name, self._limit)
        if limit is None or args.provider_executed:
            return
        shortener = self._shortener
        size = shortener.size(args.result)
        if size <= limit:
            return
        result = shortener.shortened(args.result, limit)
        args.message_list.update_tool_invocation(args.tool_call_id, result=result)
        told = f"the result of {args.tool_name!r} has {size} {self._unit}; {limit} are let through"
        detail = {"tool_name": args.tool_name, "size": size, "limit": limit}
        await report_violation(self, ProcessorViolation(self.id, told, detail))


def _checked_marker(owner: str, marker: object) -> str:
    """A marker that says how much is missing.

    Raises:
        ConfigurationError: it is no text, has other fields, or does not say it.
    """
    try:
        told = marker.format(missing=1234567, unit="") if isinstance(marker, str) else ""
    except (LookupError, ValueError, AttributeError):
        told = ""
    if not isinstance(marker, str) or "1234567" not in told:
        fields = "{missing} and perhaps {unit}"
        msg = f"{owner}: marker must be a text with {fields}, not {marker!r:.80}"
        raise ConfigurationError(msg)
    return marker


class _Shortener:
    """Makes JSON values fit."""

    def __init__(self, measure: Counter, reach: int, keep: Keep, marker: str) -> None:
        """Say how sizes are measured, in units of at most `reach` characters."""
        self._measure = measure
        self._reach = reach
        self._keep = keep
        self._marker = marker
        longest = self._missing(10**9, "characters")
        self._room = len(longest)
        self.least = 2 * max(1, measure(shown_text([longest])))

    def size(self, value: Any) -> int:
        """What a value costs in a prompt."""
        return self._measure(shown_text(value))

    def shortened(self, value: Any, limit: int) -> Any:
        """As much of a value as fits."""
        reach = limit * self._reach

        def fits(made: Any) -> bool:
            return self.size(made) <= limit

        if not isinstance(value, str):
            shortest = min(SHORTEST, limit // 4)  # or one string would cost others their place
            strings = _largest(lambda n: self._within(value, n, reach), shortest, reach, fits)
            if strings is not None:
                return strings
            entries = _largest(lambda n: self._within(value, shortest, n), 1, reach, fits)
            if entries is not None:
                return entries
        text = shown_text(value)
        cut = _largest(lambda n: self._text(text, n), 0, min(reach, len(text)), fits)
        # A user's count may find more tokens in less text: then the marker has to do.
        return self._missing(len(text), "characters") if cut is None else cut

    def _within(self, value: Any, chars: int, entries: int) -> Any:
        """A value with strings of so many characters, and lists and objects of so many entries."""
        if isinstance(value, str):
            return self._text(value, chars) if len(value) > chars + self._room else value
        if isinstance(value, Mapping):
            kept, missing = self._kept(list(value.items()), entries, "entries")
            made = {key: self._within(item, chars, entries) for key, item in kept}
            if missing:
                made[next(key for key in _gap_keys() if key not in made)] = missing
            return made
        if isinstance(value, list | tuple):
            items, missing = self._kept(value, entries, "items")
            made_items = [self._within(item, chars, entries) for item in items]
            if missing:
                made_items.insert(len(made_items) - self._behind(len(made_items)), missing)
            return made_items
        return value

    def _kept(self, items: Sequence[T], most: int, unit: str) -> tuple[list[T], str]:
        """So many of the items, and what stands for the others."""
        if len(items) <= most:
            return list(items), ""
        behind = self._behind(most)
        kept = [*items[: most - behind], *items[len(items) - behind :]]
        return kept, self._missing(len(items) - most, unit)

    def _behind(self, size: int) -> int:
        """How much of what is kept stands behind the gap."""
        return {"head": 0, "tail": size, "both": size // 2}[self._keep]

    def _text(self, text: str, chars: int) -> str:
        """So many characters of a text, cut between graphemes, and the marker."""
        if chars >= len(text):
            return text
        behind = self._behind(chars)
        start, end = _edge(text, chars - behind), _edge(text, len(text) - behind)
        return text[:start] + self._missing(end - start, "characters") + text[end:]

    def _missing(self, number: int, unit: str) -> str:
        return self._marker.format(missing=number, unit=unit)


def _largest(make: Callable[[int], T], low: int, high: int, fits: Callable[[T], bool]) -> T | None:
    """What is made of the largest number for which it fits; None if that of `low` does not."""
    best = make(low)
    if not fits(best):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        made = make(middle)
        if fits(made):
            best, low = made, middle
        else:
            high = middle - 1
    return best


def _gap_keys() -> Iterator[str]:
    """Keys for what stands for an object's missing entries."""
    return accumulate(repeat("…"))


def _edge(text: str, at: int) -> int:
    """The last place up to `at` where a grapheme begins, or the text ends.

    What stands right before it tells, unless that is nothing but flags, which go in pairs.
    """
    for found in GRAPHEME.finditer(text, max(0, at - WINDOW)):
        if found.end() > at:
            return int(found.start())
    return len(text)
