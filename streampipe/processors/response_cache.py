"""`ResponseCache`: what was asked before is answered without asking the model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Literal, ParamSpec, TypeVar

from pydantic import Field

from streampipe.agent._output import output_of
from streampipe.chunks import Chunk, FinishChunk, StepStart
from streampipe.contracts import (
    HookArgs,
    ModelRequest,
    OnViolation,
    ProcessInputStepArgs,
    ProcessLLMRequestArgs,
    ProcessLLMRequestResult,
    ProcessLLMResponseArgs,
    Processor,
    ProcessorViolation,
    ProcessOutputStreamArgs,
    RequestContext,
    ToolSpec,
)
from streampipe.errors import ConfigurationError, WireError
from streampipe.operators._functions import check_function
from streampipe.operators._scope import report_violation
from streampipe.processors._cache_entry import answer_of, entry_of, is_whole
from streampipe.processors._cache_key import request_key
from streampipe.processors._cache_stores import CacheStore, MemoryStore
from streampipe.processors._options import Count, Name, Seconds, checked_options

__all__ = ["ResponseCache"]

P = ParamSpec("P")
T = TypeVar("T")
Scope = Annotated[
    str | Callable[[RequestContext], str | int],
    Field(description="a key of request_context or a function of it"),
]
Problem = Literal["store", "entry", "request", "answer"]
log = logging.getLogger("streampipe")


@dataclass(slots=True)
class _Noted:
    """What is kept of a run.

    Attributes:
        asked: what the step under way asks, without its prompt.
        scope: who may be given the answer again.
        key: of the request under way; None if its answer is not to be kept.
        is_replay: the answer under way is one of ours.
        replayed: step and key of the answer that was replayed last.
        answers: key and entry by step: they are stored when the run has ended well.
        sees_the_end: the cache stands in the output list, where it is told of that.
        is_off: the store has failed; it is left alone for the rest of the run.
        told: which problems were told.
    """

    asked: ModelRequest | None = None
    scope: str | int | None = None
    key: str | None = None
    is_replay: bool = False
    replayed: tuple[int, str] | None = None
    answers: dict[int, tuple[str, bytes]] = field(default_factory=dict[int, tuple[str, bytes]])
    sees_the_end: bool = False
    is_off: bool = False
    told: set[Problem] = field(default_factory=set[Problem])


class ResponseCache(Processor):
    """Replays the answer to an equal request; stands last in both input and output processors.

    Requests are equal when prompt, model (its class, provider and id), settings, provider options,
    tools, tool choice, schema and scope are. Without `scope`, answers are given to everybody.

    Kept is what the model said, with what the output processors take out of it for the client. A
    replay passes them again, as the model's chunks with their pauses left out, and counts no tokens
    of its own; whoever these ask is asked again. It is the answer of one step: calls of your tools
    are run again, since their results belong to the conversation, while results of the provider's
    tools are part of the answer. `step.provider_metadata[id]["key"]` tells that a step was
    replayed, and what `forget` takes.

    Answers are stored when their run has ended well, by the `finish` chunk: none of a run that was
    blocked, failed or cancelled, no rejected attempt, none that is cut or filtered (those with
    another finish reason than "stop" and "tool-calls"). So that the cache is told of all that, let
    what blocks stand before it. What changes a request behind it (a processor, an error processor,
    `prepare_step=`, for which there is the processor `PrepareStep`) keeps the answer from being
    stored; where such a request finds an answer to what it was before the change, the run fails.

    Equal requests at the same time each ask the model.

    >>> import asyncio
    >>> from streampipe import Agent
    >>> from streampipe.testing import ScriptedModel
    >>> cache = ResponseCache(ttl=3600, scope="user")
    >>> model = ScriptedModel([["In Porto."], ["In Lisbon."]])
    >>> agent = Agent(model=model, input_processors=[cache], output_processors=[cache])
    >>> def ask(**context):
    ...     return asyncio.run(agent.generate("Where?", request_context=context)).text
    >>> ask(user="ada"), ask(user="ada"), ask(user="bob")
    ('In Porto.', 'In Porto.', 'In Lisbon.')

    Attributes:
        BYPASS: as `request_context[id]`: this call neither reads nor stores.
        REFRESH: as `request_context[id]`: this call asks the model, and stores what it says.
        id: names it in violations, spans and the request context.
        on_violation: is told, once a run and kind, of a store that fails, an entry that cannot be
            read, and a request or an answer that cannot be stored. So is the log.
    """

    BYPASS: ClassVar = "bypass"
    REFRESH: ClassVar = "refresh"
    stream_window = 0

    @checked_options
    def __init__(
        self,
        store: CacheStore | None = None,
        *,
        ttl: Seconds | None = None,
        scope: Scope | None = None,
        max_entries: Count | None = None,
        timeout: Seconds = 2.0,
        strict: bool = False,
        id: Name = "response-cache",  # noqa: A002 - the contract's name
        on_violation: OnViolation | None = None,
    ) -> None:
        """Say where answers are kept, for how long and for whom.

        Args:
            store: a `MemoryStore`, `SQLiteStore`, `RedisStore` or your own; it stays yours to
                close. A `MemoryStore` when None.
            ttl: seconds for which an answer is good; None for as long as the store keeps it.
            scope: a key of `request_context`, or a function of it: an answer is given again only
                where the value is the same. None: to everybody.
            max_entries: of the `MemoryStore`, when no store is given.
            timeout: seconds that the store may take each time; longer is a failure.
            strict: let a problem fail the run. Otherwise it is told, and the model is asked.
            id: names it.
            on_violation: see the class.

        Raises:
            ConfigurationError: an option is not as described, or `max_entries` comes with a store.
        """
        owner = type(self).__name__
        if store is None:
            store = MemoryStore() if max_entries is None else MemoryStore(max_entries)
        elif max_entries is not None:
            raise ConfigurationError(f"{owner}: give max_entries to the store, or leave one out")
        elif isinstance(store, type) or not isinstance(store, CacheStore):
            msg = f"{owner}: store must have the methods of a CacheStore; {store!r:.80} has not"
            raise ConfigurationError(msg)
        if callable(scope):
            check_function(owner, "scope", scope)
        elif scope is not None and (not isinstance(scope, str) or not scope):
            msg = f"{owner}: scope must be a key of request_context or a function of it, "
            raise ConfigurationError(msg + f"not {scope!r:.80}")
        self.id = id
        self.on_violation = on_violation
        self._store = store
        self._ttl = ttl
        self._scope = scope
        self._timeout = timeout
        self._strict = strict

    async def forget(self, key: str) -> None:
        """Forget an answer; whatever the store raises comes through."""
        await self._store.delete(key)

    async def clear(self) -> None:
        """Forget all answers, of all who share the store; whatever it raises comes through."""
        await self._store.clear()

    # --- the hooks -------------------------------------------------------------------------

    def process_input_step(self, args: ProcessInputStepArgs) -> None:
        """Note what is asked besides the prompt."""
        noted = _noted(args)
        tools = (args.tools[name] for name in args.active_tools if name in args.tools)
        output = output_of(args.structured_output)
        noted.asked = ModelRequest(
            [],
            [ToolSpec(tool.name, tool.description, tool.parameters) for tool in tools],
            args.tool_choice,
            args.model_settings,
            args.provider_options,
            None if output is None else output.schema,
        )
        noted.key, noted.is_replay = None, False
        noted.answers.pop(args.step_number, None)  # of an attempt that was rejected

    async def process_llm_request(
        self, args: ProcessLLMRequestArgs
    ) -> ProcessLLMRequestResult | None:
        """Answer what is known."""
        noted = _noted(args)
        if not noted.sees_the_end:
            raise ConfigurationError(
                "put this object into output_processors too, last, behind nothing that drops "
                "step-start: only there it is told which answers were accepted"
            )
        mode = self._mode(args)
        if mode == self.BYPASS or noted.is_off or noted.asked is None:
            return None
        request = replace(noted.asked, prompt=args.prompt)
        noted.scope = self._scope_of(args.request_context)
        try:
            noted.key = key = request_key(args.model, request, noted.scope)
        except TypeError as error:
            await self._told(noted, "request", error)
            return None
        # An answer that was replayed and rejected is not given again to the same question.
        if mode == self.REFRESH or noted.replayed == (args.step_number, key):
            return None
        chunks = await self._known(noted, key)
        if chunks is None:
            return None
        noted.replayed, noted.is_replay = (args.step_number, key), True
        return ProcessLLMRequestResult(response=chunks)

    async def process_llm_response(self, args: ProcessLLMResponseArgs) -> None:
        """Keep a whole answer, until it is accepted."""
        noted = _noted(args)
        if noted.key is None or args.request is None or args.from_cache != noted.is_replay:
            return  # not ours to keep, or of another cache
        try:
            if request_key(args.model, args.request, noted.scope) != noted.key:
                raise TypeError(_CHANGED)
            if not noted.is_replay and is_whole(args.chunks):
                noted.answers[args.step_number] = noted.key, entry_of(args.chunks)
        except TypeError as error:
            if noted.is_replay:
                raise  # what was replayed answers another question
            await self._told(noted, "request", error)
        except WireError as error:
            await self._told(noted, "answer", error)

    async def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        """Store what the run has accepted, at its end; all chunks pass."""
        part = args.part
        if isinstance(part, StepStart):
            _noted(args).sees_the_end = True
        elif isinstance(part, FinishChunk):
            noted = _noted(args)
            if noted.sees_the_end and noted.asked is None:
                alone = "put this object into input_processors too, last"
                await self._told(noted, "request", ConfigurationError(alone))
            for key, entry in noted.answers.values():
                if not noted.is_off:
                    await self._reach(noted, self._store.set, key, entry, self._ttl)
        return part

    # --- what is asked of whom -------------------------------------------------------------

    def _mode(self, args: HookArgs) -> str | None:
        """What this call wants of the cache.

        Raises:
            ConfigurationError: it is neither of the two.
        """
        mode: str | None = args.request_context.get(self.id)
        if mode not in (None, self.BYPASS, self.REFRESH):
            allowed = f"{self.BYPASS!r} or {self.REFRESH!r}"
            msg = f"request_context[{self.id!r}] must be {allowed}, not {mode!r:.80}"
            raise ConfigurationError(msg)
        return mode

    def _scope_of(self, context: RequestContext) -> str | int | None:
        """Who may be given the answer again.

        Raises:
            ConfigurationError: nobody can tell.
        """
        if self._scope is None:
            return None
        by_key = isinstance(self._scope, str)
        value = context.get(self._scope) if isinstance(self._scope, str) else self._scope(context)
        if not isinstance(value, str | int) or isinstance(value, bool) or value == "":
            where = f"request_context[{self._scope!r}]" if by_key else "what scope returned"
            msg = f"{where} must be a text or a whole number, to tell whose answer it is, "
            raise ConfigurationError(msg + f"not {value!r:.80}")
        return value

    async def _known(self, noted: _Noted, key: str) -> list[Chunk] | None:
        """The answer that is stored under a key, marked as such."""
        entry = await self._reach(noted, self._store.get, key)
        if entry is None:
            return None
        try:
            chunks = answer_of(entry)
        except WireError as error:
            await self._told(noted, "entry", error)
            return None
        finish = chunks[-1]
        if isinstance(finish, FinishChunk):
            finish.provider_metadata = {**(finish.provider_metadata or {}), self.id: {"key": key}}
        return chunks

    # --- what goes wrong -------------------------------------------------------------------

    async def _reach(
        self, noted: _Noted, method: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T | None:
        """Have the store do something; None, and no more of it in this run, if it fails."""
        try:
            async with asyncio.timeout(self._timeout):
                return await method(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - a store is not ours; what it raises is told
            noted.is_off = True
            await self._told(noted, "store", error)
            return None

    async def _told(self, noted: _Noted, problem: Problem, error: Exception) -> None:
        """Tell of a problem, once a run and kind; or raise it, with `strict`."""
        if self._strict:
            raise error
        if problem in noted.told:
            return
        noted.told.add(problem)
        what = str(error) or f"no answer within {self._timeout:g} s"
        told = f"{_WHAT[problem]}: {type(error).__name__}: {what}"
        log.warning("processor %r: %s", self.id, told)
        await report_violation(self, ProcessorViolation(self.id, told, {"problem": problem}))


_CHANGED = (
    "what stands behind the cache has changed the request: let it stand before the cache; "
    "in place of prepare_step= there is the processor PrepareStep"
)
_WHAT: dict[Problem, str] = {
    "store": "the store failed, and is left alone for the rest of the run",
    "entry": "an entry of the store cannot be read, so that the model is asked",
    "request": "the answers to such requests are not stored",
    "answer": "an answer cannot be stored",
}


def _noted(args: HookArgs) -> _Noted:
    noted: _Noted = args.state.setdefault("noted", _Noted())
    return noted
