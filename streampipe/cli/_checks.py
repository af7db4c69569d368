"""What `streampipe doctor` looks at: each check asks the provider, and says what it saw."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson
from pydantic import BaseModel

from streampipe.agent import Agent
from streampipe.chunks import Chunk, ReasoningDelta, StepStart, TextDelta, ToolCallDelta, Usage
from streampipe.contracts import Model, RunResult
from streampipe.errors import AuthenticationError, InvalidRequestError
from streampipe.models._http.endpoint import SHORTEST_SECRET
from streampipe.tools import tool

BURST = 10_000  # chunks a second that no model writes: something has collected them
CLOSING = 1.0  # seconds that a cancelled call may take to let go of its connection
WIDEST = 300  # characters that a row says of what was seen
EXCERPT = 60  # characters of an answer's text that are quoted

Status = Literal["ok", "failed", "not supported", "skipped"]


@dataclass(slots=True)
class Found:
    """What a check says of itself."""

    status: Status
    seen: str
    error: str | None = None


@dataclass(slots=True)
class Pace:
    """How fast an answer came. Only what the model wrote counts, and no pause between steps."""

    began: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    first: float | None = None
    pieces: int = 0
    texts: int = 0
    _gaps: int = 0
    _spent: float = 0.0
    _last: float | None = None

    def note(self, chunk: Chunk) -> bool:
        """Take the next chunk; returns whether it is a piece of what the model wrote."""
        if isinstance(chunk, StepStart):
            self._last = None
        if not isinstance(chunk, TextDelta | ReasoningDelta | ToolCallDelta):
            return False
        now = asyncio.get_running_loop().time()
        if self.first is None:
            self.first = now - self.began
        if self._last is not None:
            self._gaps += 1
            self._spent += now - self._last
        self._last = now
        self.pieces += 1
        self.texts += isinstance(chunk, TextDelta)
        return True

    @property
    def rate(self) -> float | None:
        """Pieces a second."""
        return self._gaps / self._spent if self._spent else None


@dataclass(slots=True)
class Provider:
    """Who is examined.

    Attributes:
        model: what is asked.
        unknown: the same provider under the name of a model that it does not have.
        about: its address, and whether there is a key.
        secret: its key, to be kept out of all that is shown.
        answer: what the text check got, for the checks that only look at it.
    """

    model: Model
    unknown: Model
    about: str
    secret: str = field(default="", repr=False)
    answer: RunResult | None = None

    def shown(self, text: str, width: int = WIDEST) -> str:
        """What others said, fit to be shown: no key, short, nothing that a terminal would obey."""
        if len(self.secret) >= SHORTEST_SECRET:
            text = text.replace(self.secret, "***")
        plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return plain if len(plain) <= width else f"{plain[:width]} ..."

    def quoted(self, text: str) -> str:
        """The beginning of what the model said."""
        return f'"{self.shown(text, EXCERPT)}"'


@dataclass(slots=True, frozen=True)
class Check:
    """A check.

    Attributes:
        name: what it looks at.
        run: makes it.
        lacks: the words by which a provider says that it knows no such thing.
        asks: whether it calls the provider; else it only looks at an answer.
    """

    name: str
    run: Callable[[Provider, Pace], Awaitable[Found]]
    lacks: re.Pattern[str] | None = None
    asks: bool = True


async def _text(provider: Provider, pace: Pace) -> Found:
    """An answer comes in pieces, with its usage and why it ended."""
    prompt = "Write the numbers from one to thirty in words, separated by commas."
    result = provider.answer = await _asked(Agent(model=provider.model), prompt, pace)
    ended = f"finish reason {result.finish_reason!r}; {_told(result.usage)}"
    if not result.text.strip():
        return Found("failed", f"an answer without text; {ended}")
    if pace.texts == 1:
        came = "does not stream: all came in one piece"
    elif pace.rate is None or pace.rate > BURST:
        came = f"does not stream: {pace.texts} pieces came all at once"
    else:
        came = f"streams: {pace.texts} pieces"
    return Found("ok", f"{came}; {ended}{_warnings(result)}")


async def _reasoning(provider: Provider, _pace: Pace) -> Found:
    """The answer of the text check came with reasoning."""
    result = provider.answer
    if result is None:
        return Found("skipped", "the text check got no answer to look at")
    tokens = result.usage.reasoning_tokens
    if result.reasoning:
        return Found("ok", f"{len(result.reasoning)} characters; {tokens} tokens")
    if tokens:
        return Found("not supported", f"{tokens} tokens of reasoning, of which none is shown")
    return Found("not supported", "none came")


@tool
async def parcel(order: int) -> dict[str, Any]:
    """Find out where the parcel of an order is.

    Args:
        order: the order's number.
    """
    return {"order": order, "place": "Porto"}


async def _tool_call(provider: Provider, pace: Pace) -> Found:
    """A tool is called with arguments that fit, and its result is answered to."""
    agent = Agent(model=provider.model, tools=[parcel], max_steps=3)
    result = await _asked(agent, "Where is the parcel of order 7? Use the tool, then answer.", pace)
    if not result.tool_calls:
        said = f"answered without calling the tool: {provider.quoted(result.text)}"
        return Found("not supported", said + _warnings(result))
    refused = [error.error for step in result.steps for error in step.tool_errors]
    if not result.tool_results:
        return Found("failed", f"no call of the tool is valid: {'; '.join(refused)}")
    call = result.tool_results[-1]
    arguments = orjson.dumps(call.args).decode()
    answer = result.steps[-1].text
    if not answer.strip():
        return Found("failed", f"called {call.tool_name}({arguments}), then gave no answer")
    seen = f"called {call.tool_name}({arguments}), then answered {provider.quoted(answer)}"
    if refused:
        seen += f"; calls before it that were not valid: {len(refused)}"
    return Found("ok", seen + _warnings(result))


class City(BaseModel):
    """What the check of structured output asks for."""

    name: str
    country: str
    rivers: list[str]


async def _structured_output(provider: Provider, pace: Pace) -> Found:
    """An answer comes back as a valid instance of a pydantic model."""
    agent = Agent(model=provider.model, structured_output=City, max_steps=1)
    result = await _asked(agent, "Describe the city of Porto as JSON.", pace)
    if not isinstance(result.object, City):
        return Found("failed", f"no object; finish reason {result.finish_reason!r}")
    return Found("ok", f"valid: {result.object.model_dump_json()}{_warnings(result)}")


async def _cancel(provider: Provider, pace: Pace) -> Found:
    """Leaving a run after the first piece of its answer closes the connection."""
    # Room for one chunk: a short answer would else be whole before there is anything to cancel.
    agent = Agent(model=provider.model, high_water=1)
    loop = asyncio.get_running_loop()
    async with agent.stream("Write the numbers from one to three hundred in words.") as run:
        async for chunk in run:
            if pace.note(chunk):
                break
        else:
            await run.result()  # raises what the run failed with
            return Found("failed", "the answer ended before a piece of it came")
        left = loop.time()
    took = loop.time() - left
    if took > CLOSING:
        return Found("failed", f"the connection was closed only after {took * 1000:.0f} ms")
    return Found("ok", f"closed in {took * 1000:.1f} ms")


async def _unknown_model(provider: Provider, pace: Pace) -> Found:
    """A wrong request is refused with an error of the class that it is."""
    try:
        await _asked(Agent(model=provider.unknown), "hi", pace)
    except (InvalidRequestError, AuthenticationError) as error:  # some say: not yours to use
        return Found("ok", f"refused: {error}", type(error).__name__)
    return Found("not supported", "the server answers under any model's name")


async def _asked(agent: Agent, prompt: str, pace: Pace) -> RunResult:
    """Ask, and keep the pace.

    Raises:
        StreampipeError: what the run failed with.
    """
    async with agent.stream(prompt) as run:
        async for chunk in run:
            pace.note(chunk)
        return await run.result()


def _told(usage: Usage) -> str:
    if not usage.total_tokens:
        return "no usage told"
    return f"{usage.input_tokens} tokens in, {usage.output_tokens} out"


def _warnings(result: RunResult) -> str:
    return "".join(f"; warning: {warning}" for warning in result.warnings)


CHECKS = (
    Check("text", _text),
    Check("reasoning", _reasoning, asks=False),
    Check("tool call", _tool_call, re.compile("tool|function", re.IGNORECASE)),
    Check(
        "structured output",
        _structured_output,
        re.compile("schema|structured|(response|output).?format", re.IGNORECASE),
    ),
    Check("cancel", _cancel),
    Check("unknown model", _unknown_model),
)
