"""Agents, processors and ways to run them, for the tests of blocks, retries and failures."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from streampipe import Agent, Chunk, RunResult, TextDelta
from streampipe.contracts import ERROR_HOOKS, HOOKS, INPUT_HOOKS, ModelRequest
from streampipe.errors import StreampipeError
from streampipe.testing import ScriptedModel, call, fail, reasoning

Act = Callable[[Any], Any]

STEP_HOOKS = tuple(hook for hook in HOOKS if hook != "process_input")
"""The hooks that run within a step, and `process_output_result`: those that can ask for a retry."""
ENDED = ("tripwire", "error", "abort", "finish")


@dataclass
class Seen:
    """What came of a run: its result, what it failed with, and its chunks where it was streamed."""

    result: RunResult
    error: StreampipeError | None = None
    chunks: list[Chunk] | None = None


@dataclass
class Runner:
    """Runs an agent in one of the two ways."""

    way: str

    async def __call__(self, agent: Agent, prompt: Any = "hi", **options: Any) -> Seen:
        """Run it to its end; how it ends in a failure is checked here."""
        if self.way == "generate":
            try:
                return Seen(await agent.generate(prompt, **options))
            except StreampipeError as error:
                if error.result is None:  # there was no run
                    raise
                return Seen(error.result, error)
        async with agent.stream(prompt, **options) as run:
            chunks = [chunk async for chunk in run]  # a failure of the run does not raise here
            try:
                return Seen(await run.result(), None, chunks)
            except StreampipeError as error:
                return Seen(error.result, error, chunks)


WAYS = ("stream", "generate")


def list_of(hook: str) -> str:
    """The option that takes processors with this hook."""
    if hook in ERROR_HOOKS:
        return "error_processors"
    return "input_processors" if hook in INPUT_HOOKS else "output_processors"


def unchanged(hook: str, args: Any) -> Any:
    """What a hook returns that changes nothing."""
    if hook == "process_input":
        return args.message_list
    return args.part if hook == "process_output_stream" else None


def processor(name: str = "guard", /, **hooks: Any) -> Any:
    """A processor of these hooks."""
    return SimpleNamespace(id=name, **hooks)


ALL_HOOKS: list[Any] = [["a", fail()], ["b", call("lookup", {"word": "x"})], ["c"]]
"""A failing call, a tool call and an answer: a script that comes to every hook."""


def is_text(args: Any) -> bool:
    """Whether a stream hook was given a piece of text."""
    return bool(args.part.type == "text-delta")


def guard(hook: str, act: Act, *, when: Act | None = None, asynchronous: bool = False) -> Any:
    """A processor whose one hook acts, in `process_output_stream` on text only, else passes."""
    when = when or (is_text if hook == "process_output_stream" else lambda _: True)

    def sync_hook(args: Any) -> Any:
        return act(args) if when(args) else unchanged(hook, args)

    async def async_hook(args: Any) -> Any:
        return sync_hook(args)

    return processor(**{hook: async_hook if asynchronous else sync_hook})


def recorder(log: list[str]) -> Any:
    """A processor that notes each call of any of its hooks, and changes nothing."""

    def noting(hook: str) -> Act:
        def note(args: Any) -> Any:
            log.append(hook)
            return unchanged(hook, args)

        return note

    return processor("recorder", **{hook: noting(hook) for hook in HOOKS})


class LoggedModel(ScriptedModel):
    """A scripted model that notes its calls, how many chunks were pulled, and when it is closed."""

    def __init__(self, script: Any, log: list[str] | None = None) -> None:
        """Play `script`; note in `log`."""
        super().__init__(script)
        self.log = [] if log is None else log
        self.pulled = 0
        self.open = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Play the next turn."""
        self.log.append("model")
        self.open += 1
        try:
            async with aclosing(super().stream(request)) as chunks:  # type: ignore[type-var]  # has it
                async for chunk in chunks:
                    self.pulled += 1
                    yield chunk
        finally:
            self.open -= 1

    def prompts(self) -> list[str]:
        """Everything that was in the prompt of each call, as text."""
        return [repr(request.prompt) for request in self.requests]


def script_to(hook: str, first: str = "one", second: str = "two") -> list[list[Any]]:
    """A script of two calls, the first of which comes to `hook`."""
    if hook == "process_api_error":
        return [[reasoning(first), first, fail(status=503)], [second]]
    return [[reasoning(first), first, call("lookup", {"word": first})], [second]]


def lookup_into(log: list[str]) -> Callable[[str], str]:
    """A tool that notes its calls."""

    def lookup(word: str) -> str:
        log.append("tool")
        return f"meaning of {word}"

    return lookup


def guarded(
    hook: str,
    act: Act,
    *,
    script: Sequence[Any] | None = None,
    log: list[str] | None = None,
    **options: Any,
) -> Agent:
    """An agent with a tool and a guard at `hook`; with a `log`, a recorder behind it.

    The model is `agent.options["model"]`, a `LoggedModel`.
    """
    log = [] if log is None else log
    own = {key: options.pop(key) for key in ("when", "asynchronous") if key in options}
    lists: dict[str, Any] = {list_of(hook): [guard(hook, act, **own)]}
    last = recorder(log)
    for name in ("input_processors", "output_processors", "error_processors"):
        lists[name] = [*lists.get(name, []), *options.pop(name, [])]
        if name != "error_processors" or lists[name]:  # they bring a budget of their own
            lists[name].append(last)
    model = LoggedModel(script_to(hook) if script is None else script, log)
    return Agent(id="a", model=model, tools=[lookup_into(log)], **lists, **options)


def model_of(agent: Agent) -> LoggedModel:
    """The model of a guarded agent."""
    model = agent.options.get("model")
    assert isinstance(model, LoggedModel)
    return model


def balanced(chunks: Sequence[Chunk]) -> bool:
    """Whether every text and reasoning part that was opened is closed, once and in order."""
    open_parts: list[tuple[str, str]] = []
    for chunk in chunks:
        kind, _, edge = chunk.type.partition("-")
        if kind not in ("text", "reasoning") or edge not in ("start", "end"):
            continue
        part = (kind, getattr(chunk, "id", ""))
        if edge == "start":
            open_parts.append(part)
        elif part in open_parts:
            open_parts.remove(part)
        else:
            return False
    return not open_parts


def types(chunks: Sequence[Chunk]) -> list[str]:
    """The types of chunks."""
    return [chunk.type for chunk in chunks]


def texts(chunks: Sequence[Chunk]) -> list[str]:
    """The pieces of text among chunks."""
    return [chunk.text for chunk in chunks if isinstance(chunk, TextDelta)]


def contents(result: RunResult) -> list[Any]:
    """What the accessors of a result hold of its steps; empty if there is no accepted step."""
    held = (
        result.text,
        result.reasoning,
        result.steps,
        result.messages,
        result.tool_calls,
        result.tool_results,
        result.object,
        result.response,
    )
    return [value for value in held if value]
