"""`EntityDetector`: names, addresses, and what else only its meaning tells, found by asking."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, Literal, NamedTuple, Protocol, Unpack, runtime_checkable

from pydantic import BaseModel

from streampipe.contracts.processor import HookArgs
from streampipe.errors import ConfigurationError
from streampipe.operators._functions import UnfitError, check_async_function
from streampipe.processors._ask_model import ModelQuestion
from streampipe.processors._asked import Asked
from streampipe.processors._check_guard import ConversationGuard, GuardOptions, Objection
from streampipe.processors._options import (
    AnyModel,
    Name,
    Share,
    checked_names,
    checked_options,
    refuse_if,
)

__all__ = ["Entity", "EntityDetector"]

ENTITIES = ("PERSON", "ADDRESS")
PRESIDIO_ENTITIES = ("PERSON", "LOCATION")
INSTALL = "pip install 'streampipe-rx[presidio]'"
QUESTION = (
    "Find every mention of these kinds in `text`: {kinds}. Quote each one letter by letter as it "
    "stands there, once for each different spelling. An empty list if there is none."
)

Method = Literal["placeholder", "mask", "remove"]


class Entity(NamedTuple):
    """Where something was found in a text.

    Attributes:
        start: index of its first character.
        end: index behind its last one.
        kind: what it is, such as "PERSON".
    """

    start: int
    end: int
    kind: str


Found = Iterable[tuple[int, int, str]]
Find = Callable[[str], Found | Awaitable[Found]]
"""Finds entities in a text; plain or async. Plain tuples will do."""


@runtime_checkable
class Analyzer(Protocol):
    """Presidio's `AnalyzerEngine`, as far as it is used here."""

    def analyze(
        self, *, text: str, language: str, entities: list[str], score_threshold: Share
    ) -> Iterable[Any]:
        """Find entities: objects with `start`, `end` and `entity_type`."""
        ...


class Quote(BaseModel):
    """A mention, as a model quotes it."""

    kind: str
    quote: str


class Quotes(BaseModel):
    """What the model answers."""

    mentions: list[Quote]


class EntityDetector(ConversationGuard):
    """Finds names, addresses and the like by asking, and hides, blocks or reports them.

    `PIIDetector` finds what has a structure, by rules; this finds what only its meaning tells. Who
    is asked is a model, Presidio's analyzer, or a function of yours. A model quotes what it has
    found; a quote that does not stand in the text is no answer, and the text is blocked.

    >>> import asyncio
    >>> from streampipe import Agent
    >>> from streampipe.testing import ScriptedModel
    >>> def find(text):  # or model="openai/gpt-5-mini", or analyzer="presidio"
    ...     at = text.find("Ada Lovelace")
    ...     return [(at, at + 12, "PERSON")] if at >= 0 else []
    >>> guard = EntityDetector(find=find)
    >>> model = ScriptedModel([["Your clerk is Ada Love", "lace. ", "She will call."]])
    >>> agent = Agent(model=model, output_processors=[guard])
    >>> asyncio.run(agent.generate("Who is it?")).text
    'Your clerk is [PERSON]. She will call.'

    Attributes:
        id: names it in tripwires, violations and errors.
        covers: where it looks.
        on_violation: is told of every text that something was found in: of what kinds, how many.
    """

    @checked_options
    def __init__(
        self,
        entities: Collection[str] | None = None,
        *,
        model: AnyModel | None = None,
        analyzer: Analyzer | Literal["presidio"] | None = None,
        find: Find | None = None,
        method: Method = "placeholder",
        threshold: Share = 0.5,
        language: Name = "en",
        model_settings: Mapping[str, Any] | None = None,
        **options: Unpack[GuardOptions],
    ) -> None:
        """Say what to look for, and whom to ask: exactly one of the three.

        Args:
            entities: kinds, as the one that is asked knows them: any words for a model, such as
                "PERSON" and "ADDRESS" (None), or Presidio's names, where None is "PERSON" and
                "LOCATION". Not for `find`.
            model: a model, or a router id such as "openai/gpt-5-mini".
            analyzer: an `AnalyzerEngine` of Presidio's, or "presidio" for one as it comes (the
                extra `presidio`, and a model of spaCy's). It works in a thread.
            find: a function of yours: gets a text, gives what it has found.
            method: of strategy "replace", which is the default here: "placeholder" puts the kind
                there, such as `[PERSON]`, "mask" asterisks, "remove" nothing.
            threshold: how sure Presidio has to be, above 0 to 1.
            language: the language of the texts, for Presidio.
            model_settings: for the model.
            options: see `GuardOptions`.

        Raises:
            ConfigurationError: an option is none of its values, or of another way of asking; not
                exactly one is asked; the extra is missing.
        """
        owner = type(self).__name__
        options.setdefault("id", "entity-detector")
        options.setdefault("strategy", "replace")
        super().__init__(**options)
        asked = [each for each in (model, analyzer, find) if each is not None]
        problems = {
            "give exactly one of model, analyzer and find": len(asked) != 1,
            "entities are for a model or an analyzer": None not in (entities, find),
            "model_settings are for a model": model_settings is not None and model is None,
        }
        self._threshold = threshold
        known = PRESIDIO_ENTITIES if analyzer is not None else ENTITIES
        named = known if entities is None else checked_names(owner, "entities", entities)
        self._kinds = frozenset(named)
        refuse_if(owner, {**problems, "entities: name at least one kind": not self._kinds})
        self._method: Method = method
        self._language = language
        self._analyzer = _engine(owner) if isinstance(analyzer, str) else analyzer
        self._question = None
        if model is not None:
            told = QUESTION.format(kinds=", ".join(named))
            self._question = ModelQuestion(owner, model, told, Quotes, model_settings)
        self._find = find
        if find is not None:
            check_async_function(owner, "find", find)

    async def _look(self, asked: Asked, args: HookArgs) -> Objection | None:
        text = asked.text
        if self._question is not None:
            answer: Quotes = await self._question.ask(asked, args)
            found: Any = _quoted(text, answer.mentions)
        elif self._analyzer is not None:
            found = await asyncio.to_thread(self._analyzed, self._analyzer, text)
        else:
            found = [] if self._find is None else self._find(text)
            if inspect.isawaitable(found):
                found = await found
        regions = _regions(text, found)
        if not regions:
            return None
        kinds = [region.kind for region in regions]
        counted = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
        told = ", ".join(f"{count} {kind}" for kind, count in counted.items())
        detail = {"entities": counted, "place": asked.place}
        return Objection(f"the text holds {told}", detail, replacement=self._hidden(text, regions))

    def _analyzed(self, analyzer: Analyzer, text: str) -> list[Entity]:
        found = analyzer.analyze(
            text=text,
            language=self._language,
            entities=sorted(self._kinds),
            score_threshold=self._threshold,
        )
        return [Entity(each.start, each.end, each.entity_type) for each in found]

    def _hidden(self, text: str, regions: list[Entity]) -> str:
        """The text without what was found."""
        out: list[str] = []
        at = 0
        for start, end, kind in regions:
            out += (text[at:start], _shown(text[start:end], kind, self._method))
            at = end
        return "".join([*out, text[at:]])


def _engine(owner: str) -> Analyzer:
    """Presidio's analyzer as it comes.

    Raises:
        ConfigurationError: it is another name, or Presidio is not installed.
    """
    try:
        from presidio_analyzer import (  # type: ignore[import-not-found]  # an extra  # noqa: PLC0415
            AnalyzerEngine,
        )
    except ImportError as error:
        msg = f"{owner}: analyzer='presidio' needs Presidio: {INSTALL}"
        raise ConfigurationError(msg) from error
    engine: Analyzer = AnalyzerEngine()
    return engine


def _shown(value: str, kind: str, method: Method) -> str:
    """What is put in the place of a value."""
    if method == "mask":
        return re.sub(r"\S", "*", value)
    return f"[{kind.upper().replace('_', ' ')}]" if method == "placeholder" else ""


def _quoted(text: str, mentions: Iterable[Quote]) -> list[Entity]:
    """Where the quotes stand in a text; white space and case may differ.

    Raises:
        UnfitError: one does not stand there: then nobody knows where what was meant is.
    """
    found: list[Entity] = []
    for mention in mentions:
        words = mention.quote.split()
        pattern = re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE)
        places = [(match.start(), match.end()) for match in pattern.finditer(text)] if words else []
        if not places:
            msg = "the model quotes what does not stand in the text"
            raise UnfitError(msg)
        found += [Entity(start, end, mention.kind) for start, end in places]
    return found


def _regions(text: str, found: Iterable[Any]) -> list[Entity]:
    """What was found, in order; what overlaps is one, of the kind of its longest part.

    Raises:
        UnfitError: something is no place in the text.
    """
    entities: list[Entity] = []
    for each in found:
        match each:
            case (int() as start, int() as end, str() as kind) if 0 <= start < end <= len(text):
                entities.append(Entity(start, end, kind))
            case _:
                msg = f"find gave {type(each).__name__}; give (start, end, kind) within the text"
                raise UnfitError(msg)
    merged: list[Entity] = []
    longest = 0
    for entity in sorted(entities):
        size = entity.end - entity.start
        if merged and entity.start < merged[-1].end:
            last = merged.pop()
            kind = entity.kind if size > longest else last.kind
            longest = max(size, longest)
            merged.append(Entity(last.start, max(last.end, entity.end), kind))
        else:
            longest = size
            merged.append(entity)
    return merged
