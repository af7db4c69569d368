"""`PIIDetector`: personal data with a structure, found and hidden without asking a model."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field
from reactivex import Observable

from streampipe import operators as ops
from streampipe.chunks import Chunk
from streampipe.contracts import OnViolation, ProcessInputArgs
from streampipe.errors import ConfigurationError
from streampipe.messages import Message, ReasoningPart, TextPart
from streampipe.operators import Match
from streampipe.operators._fuse import fuse
from streampipe.operators._operator import operator
from streampipe.operators._options import Part
from streampipe.operators._text import text_stage
from streampipe.processors._options import Name, checked_names, checked_options, refuse_if
from streampipe.processors._personal_data import DATA_TYPES, DataType, hashed, masked, replaced_by
from streampipe.processors._phone_numbers import phone_rules
from streampipe.processors._text_guard import Finding, Note, Place, TextGuard
from streampipe.text import Matcher, Region, Rule

__all__ = ["PIIDetector"]

Strategy = Literal["redact", "block", "warn", "filter"]
Key = Annotated[bytes, Field(description="at least 16 bytes", min_length=16)]
Method = Literal["mask", "hash", "remove", "placeholder"]


class _Withholding:
    """Lets a text go when it has ended, if nothing was found in it."""

    def __init__(self, rules: tuple[Rule, ...], report: Callable[[Region], object]) -> None:
        self._matcher = Matcher(rules)
        self._report = report
        self._text: list[str] = []
        self._found = False
        self.held = 0

    def feed(self, piece: str) -> str:
        self.held = 0 if self._found else self.held + len(piece)
        self._take(self._matcher.feed(piece))
        return ""

    def finish(self) -> str:
        self._take(self._matcher.finish())
        self.held = 0
        return "".join(self._text)

    def _take(self, parts: list[str | Region]) -> None:
        for part in parts:
            if isinstance(part, Region):
                self._report(part)
                self._found = True
                self._text.clear()
                self.held = 0
            elif not self._found:
                self._text.append(part)


@operator
def withhold(
    source: Observable[Chunk],
    rules: tuple[Rule, ...],
    report: Callable[[Region], object],
    parts: Iterable[Part],
) -> Observable[Chunk]:
    """The stream without the texts in which a rule matches."""
    return fuse(source, text_stage("withhold", lambda _: _Withholding(rules, report), parts))


class PIIDetector(TextGuard):
    """Finds personal data by its structure, and hides, blocks, reports or filters it.

    Numbers of cards, IBANs and national ids count only with right check digits, where there are
    some: a British NINO and a US social security number have none, and of an address of Ethereum
    only one that mixes capitals and small letters has. A date counts as one of birth only beside a
    word that says so, in one of nine languages, such as "born", "DOB" or "né le". Phone numbers are
    told by their separators or a plus sign; with the extra `phone` also by the numbering plans of
    countries, so that one without separators is found too, if it begins with a zero, is an Italian
    mobile number, or stands behind a word such as "call".

    Names, postal addresses and what else only its meaning tells are not found: that is work for a
    model. Data spelled in words or with spaces between all its characters is not found either.

    Held back is only what may still become a match; with "filter", a text is held to its end.

    >>> import asyncio
    >>> from streampipe import Agent
    >>> from streampipe.testing import ScriptedModel
    >>> model = ScriptedModel([["Card 4111 11", "11 1111 1111, mail ada@exa", "mple.com."]])
    >>> agent = Agent(model=model, output_processors=[PIIDetector(["card", "email"])])
    >>> asyncio.run(agent.generate("What do you have of me?")).text
    'Card **** **** **** 1111, mail ***@example.com.'
    """

    @checked_options
    def __init__(
        self,
        types: DataType | Collection[DataType] | None = None,
        *,
        strategy: Strategy = "redact",
        method: Method | None = None,
        preserve_format: bool = True,
        key: Key | None = None,
        phone_regions: Collection[str] | None = None,
        retry: bool = False,
        covers: Iterable[Place] = ("text", "reasoning"),
        id: Name = "pii-detector",  # noqa: A002 - the contract's name
        on_violation: OnViolation | None = None,
    ) -> None:
        """Say what to look for, and what to do about it.

        Args:
            types: "email", "phone", "card", "iban", "ip", "date-of-birth", "api-key",
                "crypto-address", and national ids: "ssn" (United States), "nino" (United Kingdom),
                "dni" (Spain, with the NIE), "nir" (France), "codice-fiscale" (Italy), "cpf"
                (Brazil); all of them if None.
            strategy: "redact" puts something else in the place of a match; "block" ends the run
                before any of it has left; "warn" lets it go and only reports it; "filter" drops the
                whole text that it is in: a text part of an answer, a part of a message, and the
                message if no part of it is left. If no message is left, the run is blocked.
            method: of "redact": "mask", the default, puts asterisks; "hash" a keyed hash, the same
                for the same value; "remove" nothing; "placeholder" the type, such as `[EMAIL]`.
            preserve_format: of "mask": separators stay, and the domain of an address of e-mail or
                the last four characters of a longer number; without it all are the same asterisks.
            key: of "hash": at least 16 bytes; whoever has them can tell which value it was by
                trying. Without it the object makes one, and its hashes are good for its own runs.
            phone_regions: of "phone": whose national numbers are looked up, as codes of two letters
                such as "US"; it needs the extra `phone`. If None, those of ten countries, if the
                extra is there; of `[]`, international numbers only.
            retry: of "block": reject the step and ask for another answer.
            covers: where to look: "text", "reasoning", "tool-arguments", "tool-results".
            id: names it.
            on_violation: is told of every match: its rule, offset and length, never the text.

        Raises:
            ConfigurationError: an option is none of its values, or contradicts another.
        """
        super().__init__(id=id, covers=covers, on_violation=on_violation)
        self._owner = type(self).__name__
        self._types = self._checked_types(types)
        self._strategy = strategy
        self._method = method
        self._keep_format = preserve_format
        self._key = key
        self._phone_regions = phone_regions
        self._retry = retry
        self._check()
        self._rules = self._made_rules()

    def _checked_types(self, types: object) -> list[DataType]:
        """The types in the order in which they are known.

        Raises:
            ConfigurationError: there is none, or one that is not known.
        """
        if types is None:
            return list(DATA_TYPES)
        names = frozenset(checked_names(self._owner, "types", types))
        if not names or names - DATA_TYPES.keys():
            wrong = ", ".join(sorted(map(repr, names - DATA_TYPES.keys()))) or "none"
            msg = f"{self._owner}: types must be some of {', '.join(DATA_TYPES)}, not {wrong:.80}"
            raise ConfigurationError(msg)
        return [data_type for data_type in DATA_TYPES if data_type in names]

    def _check(self) -> None:
        method, key = self._method, self._key
        wrong = {
            "method is for strategy='redact'": method is not None and self._strategy != "redact",
            "preserve_format=False is for method='mask'": (
                not self._keep_format
                and (self._strategy != "redact" or method not in (None, "mask"))
            ),
            "key is for method='hash'": key is not None and method != "hash",
            "phone_regions is for types with 'phone'": (
                self._phone_regions is not None and "phone" not in self._types
            ),
            "retry is for strategy='block'": self._retry and self._strategy != "block",
        }
        refuse_if(self._owner, wrong)

    def _made_rules(self) -> tuple[Rule, ...]:
        """The rules of the types, with what they put in the place of a match."""
        pairs = [(data_type, rule) for data_type in self._types for rule in DATA_TYPES[data_type]]
        if "phone" in self._types:
            known = phone_rules(self._owner, self._phone_regions)
            pairs += [("phone", rule) for rule in known]
        # Of matches as long, those with check digits are right: much may be a phone number.
        pairs.sort(key=lambda pair: pair[0] == "phone")
        match self._method:
            case "remove":
                shows: Callable[[str, str], str] = _nothing
            case "hash":
                shows = partial(hashed, key=self._key or secrets.token_bytes(32))
            case "placeholder":
                shows = _placeholder
            case _:
                shows = partial(masked, keep_format=self._keep_format)
        return tuple(replaced_by(rule, data_type, shows) for data_type, rule in pairs)

    # --- the guard -------------------------------------------------------------------------

    async def process_input(self, args: ProcessInputArgs) -> list[Message]:
        """Look at the messages that the run begins with; without those that are filtered out."""
        messages = await super().process_input(args)
        if self._strategy != "filter":
            return messages
        for message in messages:
            message.parts[:] = [
                part
                for part in message.parts
                if not isinstance(part, TextPart | ReasoningPart) or part.text
            ]
        left = [message for message in messages if message.parts]
        if messages and not left:
            args.abort("every message holds personal data; nothing is left to answer")
        return left

    def _operator(self, parts: tuple[str, ...], note: Note) -> Any:
        where: Any = parts
        if self._strategy == "block":
            return ops.block(self._rules, retry=self._retry, parts=where)

        def tell(rule: str, offset: int, length: int) -> None:
            detail = {"rule": rule, "offset": offset, "length": length}
            note(Finding(f"the text holds personal data: {rule}", detail))

        def on_match(match: Match) -> None:
            tell(match.rule, match.offset, match.length)

        def on_region(region: Region) -> None:
            tell(region.rule.name, region.start, len(region.text))

        if self._strategy == "filter":
            return withhold(self._rules, on_region, where)
        telling = ops.detect(self._rules, on_match, parts=where)
        if self._strategy == "warn":
            return telling
        redacting = ops.redact(self._rules, parts=where)
        return redacting if self.on_violation is None else ops.pipe(telling, redacting)


def _nothing(_data_type: str, _value: str) -> str:
    return ""


def _placeholder(data_type: str, _value: str) -> str:
    return f"[{data_type.upper().replace('-', ' ')}]"
