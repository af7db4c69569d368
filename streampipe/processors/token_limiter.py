"""`TokenLimiter`: a prompt that fits, and an answer that ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Literal

from streampipe.chunks import (
    Chunk,
    DataChunk,
    FinishChunk,
    ObjectResult,
    ResponseMetadata,
    StepFinish,
    ToolErrorChunk,
    ToolResult,
    Usage,
)
from streampipe.contracts import (
    Model,
    ModelRequest,
    OnViolation,
    ProcessInputStepArgs,
    ProcessInputStepResult,
    ProcessLLMRequestArgs,
    ProcessLLMRequestResult,
    Processor,
    ProcessorViolation,
    ProcessOutputStepArgs,
    ProcessOutputStreamArgs,
)
from streampipe.errors import ConfigurationError
from streampipe.messages import PromptMessage, ToolCallPart, ToolResultPart
from streampipe.operators._core import Enough, Escape
from streampipe.operators._fuse import Kernel, Stage
from streampipe.operators._kinds import is_void
from streampipe.operators._scope import report_violation
from streampipe.operators._text import APART, text_stage
from streampipe.processors._options import Count, Name, checked_options
from streampipe.processors._tokens import Counter, checked_count_of, message_tokens
from streampipe.processors._turns import turn_starts
from streampipe.text import Splitter

__all__ = ["TokenLimiter"]

Strategy = Literal["truncate", "block"]
Mode = Literal["best-fit", "contiguous", "memory-only"]
LENGTH = "length"
# What still has a meaning behind the end of an answer: the course of the run, and what was begun.
_GOES_ON = (
    StepFinish,
    FinishChunk,
    ResponseMetadata,
    DataChunk,
    ToolErrorChunk,
    ObjectResult,
)


class TokenLimiter(Processor):
    """Limits what the model is sent, what it answers, or both.

    In `input_processors` it trims the prompt of every model call. The conversation itself stays
    whole. System messages and the current turn, which is the newest user message and what follows
    it, are always sent; where these alone are too long the run is blocked. A tool's call and its
    result stay together, and answers whose question is left out at the beginning go with it, since
    providers want a user's message first.

    In `output_processors` it ends an answer that grows too long, as a model does at its own limit:
    the text stops at the last word that fits, the finish reason is "length", and what the model
    would have said behind that is left out, tool calls too. Tokens are those of the text, each
    word counted by itself; reasoning is not counted. Each model call has the whole limit.

    One object may stand in both lists, and then the model's stream is closed as soon as no more of
    it can be shown. In `output_processors` alone it does not see the model, which then speaks to
    its end. The usage of a closed stream is never told, so that of a call which was cut short is an
    estimate.

    >>> import asyncio
    >>> from streampipe import Agent
    >>> from streampipe.testing import ScriptedModel
    >>> model = ScriptedModel([["One two ", "three four ", "five"]])
    >>> limiter = TokenLimiter(1_000, output=3)
    >>> agent = Agent(model=model, input_processors=[limiter], output_processors=[limiter])
    >>> result = asyncio.run(agent.generate("Count."))
    >>> result.text, result.finish_reason
    ('One two three ', 'length')

    Attributes:
        id: names it in tripwires, violations and spans.
        on_violation: is told of every answer that was cut, and of every block.
    """

    process_data_parts = True  # else data would overtake the text that is held
    stream_window = 0

    @checked_options
    def __init__(
        self,
        limit: Count | None = None,
        *,
        output: Count | None = None,
        strategy: Strategy = "truncate",
        mode: Mode = "best-fit",
        count: Counter | str | None = None,
        id: Name = "token-limiter",  # noqa: A002 - the contract's name
        on_violation: OnViolation | None = None,
    ) -> None:
        """Say how much is allowed.

        Args:
            limit: tokens of a prompt in `input_processors`, of an answer in `output_processors`.
                None, with `output`, leaves prompts as they are.
            output: tokens of an answer, where that is not `limit`.
            strategy: what happens to an answer that is too long: it is cut, or the run is blocked.
            mode: which messages before the current turn are left out. "best-fit": the newest that
                fit are kept, older ones too where a longer one between them did not fit;
                "contiguous": nothing older than the first that does not fit is kept;
                "memory-only": as "best-fit", but only remembered messages are left out at all, and
                the run is blocked where that is not enough.
            count: how many tokens a text has: a plain function; or the name of an encoding or of a
                model of OpenAI's, such as "o200k_base" or "gpt-4o", which needs the extra `tokens`;
                or None for an estimate that was 10 % off in the middle case when measured.
            id: names it.
            on_violation: is told of every answer that was cut, and of every block.

        Raises:
            ConfigurationError: neither `limit` nor `output` is given; an option is none of its
                values; the extra is not installed.
        """
        owner = type(self).__name__
        if limit is None and output is None:
            raise ConfigurationError(f"{owner}: give limit, output or both: how many tokens")
        self.id = id
        self.on_violation = on_violation
        self._prompt_limit = limit
        self._limit: int = output or limit or 0
        self._blocks = strategy == "block"
        self._mode = mode
        self._count = checked_count_of(owner, count)

    # --- the prompt ------------------------------------------------------------------------

    def process_input_step(self, args: ProcessInputStepArgs) -> ProcessInputStepResult | None:
        """Have the model's stream closed when its answer is full, if answers are limited too."""
        if "answer" not in args.state:
            return None
        model = _Closing(args.model, args.state, self._count)
        return ProcessInputStepResult(model=model)

    def process_llm_request(self, args: ProcessLLMRequestArgs) -> ProcessLLMRequestResult | None:
        """Leave out of this call's prompt what does not fit."""
        limit = self._prompt_limit
        if limit is None:
            return None
        prompt = args.prompt
        sizes = [message_tokens(message, self._count) for message in prompt]
        if sum(sizes) <= limit:
            return None
        groups = self._optional(args)
        needed = sum(sizes) - sum(sizes[index] for group in groups for index in group)
        if needed > limit:
            args.abort(
                f"the prompt is too long: what has to be sent has {needed} tokens, {limit} are "
                "allowed; shorten the message or the instructions, or raise the limit",
                metadata={"tokens": needed, "limit": limit},
            )
        gone = self._left_out(groups, sizes, limit - needed)
        gone |= _before_a_user(prompt, groups, gone)
        return ProcessLLMRequestResult(
            prompt=[message for index, message in enumerate(prompt) if index not in gone]
        )

    def _optional(self, args: ProcessLLMRequestArgs) -> list[list[int]]:
        """The messages that may be left out, oldest first: those that stay together, by index."""
        prompt = args.prompt
        turns = turn_starts(prompt)
        groups = _groups(prompt, turns[-1] if turns else 0)
        if self._mode != "memory-only":
            return groups
        remembered = {repr(message) for message in args.message_list.remembered.to_prompt()}
        return [group for group in groups if all(repr(prompt[i]) in remembered for i in group)]

    def _left_out(self, groups: list[list[int]], sizes: list[int], room: int) -> set[int]:
        """The indexes of what does not fit, the newest looked at first."""
        gone: set[int] = set()
        for group in reversed(groups):
            size = sum(sizes[index] for index in group)
            if size <= room:
                room -= size
            else:
                gone.update(group)
                if self._mode == "contiguous":
                    room = -1
        return gone

    # --- the answer ------------------------------------------------------------------------

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk | list[Chunk] | None:
        """Let through what fits."""
        part, state = args.part, args.state
        answer: _Answer | None = state.get("answer")
        if answer is None:
            answer = state["answer"] = _Answer(self._limit, self._count, closes=not self._blocks)
        made = answer.take(part)
        if self._blocks and answer.is_over:
            args.abort(
                f"the answer is longer than {self._limit} tokens",
                metadata={"limit": self._limit},
            )
        if isinstance(part, StepFinish):
            state["cut"] = answer.is_full
            state.pop("answer")  # the next attempt, or step, has the whole limit again
        elif isinstance(part, FinishChunk) and state.get("cut"):
            return replace(part, reason=LENGTH)
        return made[0] if len(made) == 1 else made

    async def process_output_step(self, args: ProcessOutputStepArgs) -> None:
        """Tell of an answer that was cut."""
        answer: _Answer | None = args.state.get("answer")
        if answer is not None and answer.is_full:
            args.steps[-1].finish_reason = LENGTH
            told = f"the answer was cut at {self._limit} tokens"
            violation = ProcessorViolation(self.id, told, {"limit": self._limit})
            await report_violation(self, violation)


def _groups(prompt: Sequence[PromptMessage], end: int) -> list[list[int]]:
    """The messages before `end` but the system's; results stay with what called for them."""
    groups: list[list[int]] = []
    owner: dict[str, list[int]] = {}
    for index, message in enumerate(prompt):
        results = [p.tool_call_id for p in message.content if isinstance(p, ToolResultPart)]
        callers = [owner[call] for call in results if call in owner]
        if index >= end:  # it is sent, and so is what it answers
            groups = [group for group in groups if group not in callers]
            continue
        if message.role == "system":
            continue
        group = callers[0] if callers else []
        if not callers:
            groups.append(group)
        group.append(index)
        for part in message.content:
            if isinstance(part, ToolCallPart):
                owner[part.tool_call_id] = group
    return groups


def _before_a_user(
    prompt: Sequence[PromptMessage], groups: list[list[int]], gone: set[int]
) -> set[int]:
    """What has lost its question: providers want a conversation to begin with a user's message."""
    talk = [index for index, message in enumerate(prompt) if message.role != "system"]
    if prompt[talk[0]].role != "user":  # it never did
        return set()
    group_of = {index: group for group in groups for index in group}
    lost: set[int] = set()
    for index in talk:
        if prompt[index].role == "user" or index not in group_of:
            if index not in gone:
                break
        else:
            lost.update(group_of[index])
    return lost


class _Answer:
    """What one model call may still say; one budget for all its text parts.

    Attributes:
        left: tokens.
        is_over: whether a word came that does not fit.
        is_full: whether nothing more can leave.
    """

    def __init__(self, limit: int, count: Counter, *, closes: bool) -> None:
        self.left = limit
        self.is_over = False
        self.is_full = False
        self._count = count
        self._out: list[Chunk] = []
        ending = self._ending if closes else None
        stage = text_stage("count", lambda _: _Words(self), ending=ending)
        self._kernel = Kernel((stage,), self._out.append)

    def _ending(self, _words: object, stage: Stage) -> Enough | None:
        return Enough(stage.token) if self.is_over or not self.left else None

    def fitting(self, words: Iterable[str]) -> str:
        """As many of these words as fit; nothing behind the first that does not."""
        out: list[str] = []
        for word in words:
            # A tokenizer counts the space between two words with the second one.
            cost = 0 if self.is_over else self._count(word.removesuffix(" "))
            self.is_over = self.is_over or cost > self.left
            if self.is_over:
                break
            self.left -= cost
            out.append(word)
        return "".join(out)

    def take(self, chunk: Chunk) -> list[Chunk]:
        """Take a chunk; give what leaves."""
        out = self._out
        if self.is_full:
            return [_told(chunk)] if _goes_on(chunk) else []
        try:
            self._kernel.push(chunk)
        except Enough:
            self.is_full = True
            if chunk.__class__ in APART and _goes_on(chunk):  # it has parted the text, and is lost
                out.append(_told(chunk))
        except Escape as escape:
            raise escape.error from escape.error.__cause__
        made = out.copy()
        out.clear()
        return made


def _goes_on(chunk: Chunk) -> bool:
    """Whether a chunk has a meaning behind the end of an answer."""
    return isinstance(chunk, _GOES_ON) or (
        isinstance(chunk, ToolResult) and not chunk.provider_executed
    )


def _told(chunk: Chunk) -> Chunk:
    """A chunk as it is behind an answer that was cut."""
    if isinstance(chunk, StepFinish) and not is_void(chunk):
        return replace(chunk, reason=LENGTH)
    return chunk


class _Words:
    """The machine of a text part: its words, as long as they fit."""

    __slots__ = ("_answer", "_words")

    def __init__(self, answer: _Answer) -> None:
        self._answer = answer
        self._words = Splitter("word")

    @property
    def held(self) -> int:
        return self._words.held

    def feed(self, piece: str) -> str:
        return self._answer.fitting(self._words.feed(piece))

    def finish(self) -> str:
        return self._answer.fitting(self._words.finish())


class _Closing:
    """A model whose stream is closed, and ends as at its own limit, once its answer is full."""

    def __init__(self, model: Model, state: dict[str, Any], count: Counter) -> None:
        self.provider = model.provider
        self.model_id = model.model_id
        self._model = model
        self._state = state
        self._count = count

    def __getattr__(self, name: str) -> Any:
        """Whatever else somebody asks a model."""
        return getattr(self._model, name)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        answer: _Answer = self._state["answer"]
        limit = answer.left
        async with aclosing(self._model.stream(request)) as chunks:  # type: ignore[type-var]  # generators have it
            async for chunk in chunks:
                yield chunk
                if answer.is_full and not isinstance(chunk, FinishChunk):
                    break
            else:
                return
        read = sum(message_tokens(message, self._count) for message in request.prompt)
        yield FinishChunk(LENGTH, Usage(read, limit - answer.left), raw_reason="token-limiter")
