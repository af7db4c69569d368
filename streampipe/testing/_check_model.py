"""`check_model`: hold a model to its contract."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from copy import deepcopy
from typing import Any, cast

from streampipe.chunks import (
    Chunk,
    FinishChunk,
    ToolCall,
    ToolCallDelta,
    ToolCallInputEnd,
    ToolCallInputStart,
    Usage,
)
from streampipe.contracts import Model, ModelRequest
from streampipe.errors import ConfigurationError, ModelError
from streampipe.messages import PromptMessage, TextPart
from streampipe.testing._bench import Broken
from streampipe.testing._chunk_laws import unclosed
from streampipe.testing._examine import chosen_laws, report
from streampipe.testing._leaks import no_leaks
from streampipe.testing._trial import shown_all

__all__ = ["MODEL_LAWS", "check_model"]

MODEL_LAWS: tuple[str, ...] = ("protocol", "parts", "finish", "request", "cancel", "errors")
"""The names of the laws that `check_model` knows."""


async def check_model(
    make: Callable[[], Model],
    *,
    request: ModelRequest | None = None,
    failing: Callable[[], Model] | None = None,
    laws: Sequence[str] | None = None,
    places: int = 6,
) -> None:
    """Hold a model to its contract, against an endpoint that answers.

    `protocol`: it has a provider and an id, and streams chunks. `parts`: what opens closes; a tool
    call's pieces stand between its start and end, and the call follows. `finish`: one `finish`
    chunk, at the end, with a reason and usage. `request`: the request is left as it is. `cancel`:
    closed after any chunk, it leaves no task and no open stream, and can be asked again. `errors`:
    what it fails with is a `ModelError`.

    Args:
        make: makes the model anew; it is asked once for the whole answer, and once for each place.
        request: what it is asked; a short message when None.
        failing: makes a model whose endpoint refuses, breaks or cannot be reached.
        laws: the names of the laws to look at; all when None, `errors` only with `failing`.
        places: after how many different numbers of chunks it is closed, at most.

    Raises:
        LawError: a law does not hold; the message has the answer that shows it.
        ConfigurationError: an option is wrong.
        BaseException: what `make` and `failing` raise.
    """
    if places < 1:
        raise ConfigurationError(f"check_model: places must be at least 1, not {places}")
    asked = chosen_laws("check_model", laws, MODEL_LAWS)
    question = request or ModelRequest([PromptMessage("user", [TextPart("Say something.")])])
    model = make()
    subject = f"check_model({getattr(model, 'provider', '?')}/{getattr(model, 'model_id', '?')})"
    try:
        answer = await _whole(model, question, asked)
        if "cancel" in asked:
            for count in sorted({len(answer) * n // places for n in range(1, places)} - {0}):
                await _closed(make(), question, count)
        if failing is not None and "errors" in asked:
            await _failed(failing(), question)
    except Broken as broken:
        raise report(subject, broken, {}, unsure=False) from broken.__cause__


async def _whole(model: Model, request: ModelRequest, asked: frozenset[str]) -> list[Chunk]:
    """Read an answer to its end, and look at it.

    Raises:
        Broken: it is not as it has to be.
    """
    if not isinstance(model, Model) or not (model.provider and model.model_id):
        raise Broken("protocol", "a model has a provider, a model_id and stream(request)")
    before = deepcopy(request)
    chunks = await _read(model, request, None)
    got = shown_all(chunks)
    wrong = [chunk for chunk in chunks if not isinstance(chunk, Chunk)]
    problems = {
        "protocol": f"it gave {wrong[0]!r:.80}, which is no chunk" if wrong else "",
        "finish": _unfinished(chunks),
        "parts": unclosed(chunks) or _uncalled(chunks),
        "request": "" if request == before else "it changed the request",
    }
    for law, problem in problems.items():
        if problem and law in asked:
            raise Broken(law, problem, got=got)
    return chunks


async def _read(model: Model, request: ModelRequest, count: int | None) -> list[Chunk]:
    """Read so many chunks of an answer, then close it.

    Raises:
        Broken: it fails, or what it gives cannot be closed.
    """
    stream = model.stream(request)
    if not hasattr(stream, "aclose"):
        raise Broken("protocol", f"stream() has to give an async generator, not {stream!r:.80}")
    chunks: list[Chunk] = []
    try:
        async with aclosing(cast("AsyncGenerator[Chunk, None]", stream)) as answer:
            async for chunk in answer:
                chunks.append(chunk)
                if len(chunks) == count:
                    break
    except Exception as error:
        what = f"it fails with {type(error).__name__}: {error}"
        raise Broken("protocol", what, got=shown_all(chunks)) from error
    return chunks


def _unfinished(chunks: Sequence[Any]) -> str:
    ends = [chunk for chunk in chunks if isinstance(chunk, FinishChunk)]
    if len(ends) != 1 or ends[0] is not chunks[-1]:
        return f"it gives {len(ends)} finish chunks; one has to come, last of all"
    usage = ends[0].usage
    if not ends[0].reason or not isinstance(usage, Usage):
        return "its finish chunk needs a reason and usage"
    counts = (usage.input_tokens, usage.output_tokens, usage.total_tokens)
    return f"its usage is negative: {usage}" if min(counts) < 0 else ""


def _uncalled(chunks: Sequence[Any]) -> str:
    """What is wrong with the tool calls of an answer; "" if nothing is."""
    state: dict[str, str] = {}
    follows = {"delta": {"open"}, "end": {"open"}, "call": {"", "written"}, "start": {""}}
    becomes = {"delta": "open", "end": "written", "call": "called", "start": "open"}
    kinds = {
        ToolCallInputStart: "start",
        ToolCallDelta: "delta",
        ToolCallInputEnd: "end",
        ToolCall: "call",
    }
    for chunk in chunks:
        kind = kinds.get(type(chunk))
        if kind is None:
            continue
        name = chunk.tool_call_id
        if state.get(name, "") not in follows[kind]:
            return f"{chunk.type} of {name!r} is out of place"
        state[name] = becomes[kind]
    left = [name for name, now in state.items() if now != "called"]
    return f"the call {left[0]!r} is begun and never made" if left else ""


async def _closed(model: Model, request: ModelRequest, count: int) -> None:
    try:
        async with no_leaks():
            await _read(model, request, count)
    except AssertionError as error:
        what = f"closed after {count} chunks, it leaves something behind"
        raise Broken("cancel", what, left=str(error)) from error
    await _read(model, request, 1)


async def _failed(model: Model, request: ModelRequest) -> None:
    chunks: list[Chunk] = []
    try:
        async for chunk in model.stream(request):
            chunks.append(chunk)  # noqa: PERF401 - a failure shows what came before it
    except ModelError:
        return
    except Exception as error:
        what = f"it fails with {type(error).__name__}, which is no ModelError: {error}"
        raise Broken("errors", what, got=shown_all(chunks)) from error
    raise Broken("errors", "its endpoint fails, but it ends well", got=shown_all(chunks))
