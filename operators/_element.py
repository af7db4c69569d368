"""Operators on single elements: functions of the user's, each a stage of a fused kernel.

They are typed over `Chunk` where a lambda is given, since the elements of an agent's stream are
chunks and a checker has nothing else to go by; a function with its own annotations keeps them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar, overload

from reactivex import Observable

from streampipe.chunks import Chunk
from streampipe.operators._core import FAULTS, Emit, Enough
from streampipe.operators._functions import check_function, is_true, many
from streampipe.operators._fuse import Opened, Stage, emit_all, fuse
from streampipe.operators._operator import Op, operator

A = TypeVar("A")
B = TypeVar("B")
S = TypeVar("S")

_NONE_YET: object = object()
"""What the first element is not compared with: its `__eq__` may know its own kind only."""


@overload
def map(fn: Callable[[Chunk], B]) -> Op[Chunk, B]: ...
@overload
def map(fn: Callable[[A], B]) -> Op[A, B]: ...
@operator
def map(source: Observable[Any], fn: Callable[[Any], Any]) -> Observable[Any]:
    """Every element through `fn`.

    Args:
        source: any observable.
        fn: a plain function; for an async one there is `map_async`.

    Returns:
        What `fn` gives. It fails with `OperatorError` when `fn` raises.

    Raises:
        ConfigurationError: it is no plain function.
    """
    check_function("map", "fn", fn)

    def open_(emit: Emit[Any], stage: Stage) -> Opened:
        def push(item: Any) -> Awaitable[Any] | None:
            try:
                made = fn(item)
            except FAULTS as error:
                raise stage.fault(error, item) from error
            return emit(made)

        return Opened(push)

    return fuse(source, Stage("map", open_))


@overload
def filter(predicate: Callable[[Chunk], object]) -> Op[Chunk, Chunk]: ...
@overload
def filter(predicate: Callable[[A], object]) -> Op[A, A]: ...
@operator
def filter(source: Observable[Any], predicate: Callable[[Any], object]) -> Observable[Any]:
    """The elements that `predicate` is true for.

    Args:
        source: any observable.
        predicate: a plain function; for an async one there is `filter_async`.

    Returns:
        These elements. It fails with `OperatorError` when `predicate` raises.

    Raises:
        ConfigurationError: it is no plain function.
    """
    check_function("filter", "predicate", predicate, "filter_async")

    def open_(emit: Emit[Any], stage: Stage) -> Opened:
        def push(item: Any) -> Awaitable[Any] | None:
            try:
                passes = is_true(predicate(item))
            except FAULTS as error:
                raise stage.fault(error, item) from error
            return emit(item) if passes else None

        return Opened(push)

    return fuse(source, Stage("filter", open_))


@overload
def flat_map(fn: Callable[[Chunk], Iterable[B]]) -> Op[Chunk, B]: ...
@overload
def flat_map(fn: Callable[[A], Iterable[B]]) -> Op[A, B]: ...
@operator
def flat_map(source: Observable[Any], fn: Callable[[Any], Iterable[Any]]) -> Observable[Any]:
    """Every element replaced by the elements of what `fn` gives: one to many, in order.

    Unlike Rx's it takes an iterable, not an observable, so an element costs no subscription.

    Args:
        source: any observable.
        fn: returns an iterable, such as a list; a generator is read to its end first.

    Returns:
        All of these elements. It fails with `OperatorError` when `fn` raises.

    Raises:
        ConfigurationError: it is no plain function.
    """
    check_function("flat_map", "fn", fn)

    def open_(emit: Emit[Any], stage: Stage) -> Opened:
        def push(item: Any) -> Awaitable[Any] | None:
            try:
                made = fn(item)
                items = made if isinstance(made, list | tuple) else list(many(made, "fn"))
            except FAULTS as error:
                raise stage.fault(error, item) from error
            return emit(items[0]) if len(items) == 1 else emit_all(items, emit)

        return Opened(push)

    return fuse(source, Stage("flat_map", open_))


@overload
def scan(fn: Callable[[S, Chunk], S], seed: S) -> Op[Chunk, S]: ...
@overload
def scan(fn: Callable[[S, A], S], seed: S) -> Op[A, S]: ...
@operator
def scan(source: Observable[Any], fn: Callable[[Any, Any], Any], seed: Any) -> Observable[Any]:
    """The state after every element: `state = fn(state, element)`.

    Args:
        source: any observable.
        fn: gives the next state; it must not change the one it is given, since that was emitted.
        seed: the state before the first element, the same for every subscription.

    Returns:
        A state for every element. It fails with `OperatorError` when `fn` raises.

    Raises:
        ConfigurationError: it is no plain function.
    """
    check_function("scan", "fn", fn)

    def open_(emit: Emit[Any], stage: Stage) -> Opened:
        state = seed

        def push(item: Any) -> Awaitable[Any] | None:
            nonlocal state
            try:
                state = fn(state, item)
            except FAULTS as error:
                raise stage.fault(error, item) from error
            return emit(state)

        return Opened(push)

    return fuse(source, Stage("scan", open_))


@overload
def stateful(
    start: Callable[[], S],
    step: Callable[[S, Chunk], Iterable[B]],
    finish: Callable[[S], Iterable[B]] | None = None,
) -> Op[Chunk, B]: ...
@overload
def stateful(
    start: Callable[[], S],
    step: Callable[[S, A], Iterable[B]],
    finish: Callable[[S], Iterable[B]] | None = None,
) -> Op[A, B]: ...
@operator
def stateful(
    source: Observable[Any],
    start: Callable[[], Any],
    step: Callable[[Any, Any], Iterable[Any]],
    finish: Callable[[Any], Iterable[Any]] | None = None,
) -> Observable[Any]:
    """State in, any number of elements out, and a last word: what most processors are.

    Args:
        source: any observable.
        start: makes the state of a subscription, such as `list` or a class.
        step: gets the state, which it may change, and an element; gives what to emit for it.
        finish: gets the state when the source has completed; gives what is left to emit.

    Returns:
        What `step` and `finish` give. It fails with `OperatorError` when one of the three raises;
        `finish` is not called when the source fails.

    Raises:
        ConfigurationError: one of the three is no plain function.
    """
    check_function("stateful", "start", start)
    check_function("stateful", "step", step)
    if finish is not None:
        check_function("stateful", "finish", finish)

    def open_(emit: Emit[Any], stage: Stage) -> Opened:
        try:
            state = start()
        except FAULTS as error:
            raise stage.fault(error, when="at its start") from error

        def push(item: Any) -> Awaitable[Any] | None:
            try:
                items = list(many(step(state, item), "step"))
            except FAULTS as error:
                raise stage.fault(error, item) from error
            return emit_all(items, emit)

        def flush() -> Awaitable[Any] | None:
            try:
                items = list(many(finish(state), "finish")) if finish is not None else []
            except FAULTS as error:
                raise stage.fault(error, when="at its end") from error
            return emit_all(items, emit)

        return Opened(push, flush)

    return fuse(source, Stage("stateful", open_))


@overload
def tap(fn: Callable[[Chunk], object]) -> Op[Chunk, Chunk]: ...
@overload
def tap(fn: Callable[[A], object]) -> Op[A, A]: ...
@operator
def tap(source: Observable[Any], fn: Callable[[Any], object]) -> Observable[Any]:
    """Call `fn` for every element, and pass the element on as it is.

    Args:
        source: any observable.
        fn: looks; what it returns is not used, and the element is not its to change.

    Returns:
        The same elements. It fails with `OperatorError` when `fn` raises.

    Raises:
        ConfigurationError: it is no plain function.
    """
    check_function("tap", "fn", fn)

    def open_(emit: Emit[Any], stage: Stage) -> Opened:
        def push(item: Any) -> Awaitable[Any] | None:
            try:
                fn(item)
            except FAULTS as error:
                raise stage.fault(error, item) from error
            return emit(item)

        return Opened(push)

    return fuse(source, Stage("tap", open_))


@overload
def take_while(
    predicate: Callable[[Chunk], object], *, inclusive: bool = False
) -> Op[Chunk, Chunk]: ...
@overload
def take_while(predicate: Callable[[A], object], *, inclusive: bool = False) -> Op[A, A]: ...
@operator
def take_while(
    source: Observable[Any], predicate: Callable[[Any], object], *, inclusive: bool = False
) -> Observable[Any]:
    """The elements before the first that `predicate` is false for; then it completes.

    The source is closed at once: a model's connection with it.

    Args:
        source: any observable.
        predicate: a plain function.
        inclusive: emit that first one too.

    Returns:
        These elements. It fails with `OperatorError` when `predicate` raises.

    Raises:
        ConfigurationError: it is no plain function.
    """
    check_function("take_while", "predicate", predicate, "filter_async")

    def open_(emit: Emit[Any], stage: Stage) -> Opened:
        over = False

        async def leave(wait: Awaitable[Any]) -> None:
            await wait
            raise Enough(stage.token)

        def push(item: Any) -> Awaitable[Any] | None:
            nonlocal over
            if over:  # fed again from within, while the last element is being emitted
                return None
            try:
                passes = is_true(predicate(item))
            except FAULTS as error:
                raise stage.fault(error, item) from error
            if passes:
                return emit(item)
            over = True
            wait = emit(item) if inclusive else None
            if wait is not None:
                return leave(wait)
            raise Enough(stage.token)

        return Opened(push)

    return fuse(source, Stage("take_while", open_))


@operator
def distinct_until_changed(
    source: Observable[A], key: Callable[[Any], object] | None = None
) -> Observable[A]:
    """The elements that differ from the one before.

    Args:
        source: any observable.
        key: what is compared; the elements themselves without it. Chunks are equal when all their
            fields are.

    Returns:
        These elements. It fails with `OperatorError` when `key`, or the comparison, raises.

    Raises:
        ConfigurationError: `key` is no plain function.
    """
    if key is not None:
        check_function("distinct_until_changed", "key", key)

    def open_(emit: Emit[Any], stage: Stage) -> Opened:
        last: object = _NONE_YET

        def push(item: Any) -> Awaitable[Any] | None:
            nonlocal last
            try:
                now = item if key is None else key(item)
                same = last is not _NONE_YET and bool(now == last)
            except FAULTS as error:
                raise stage.fault(error, item) from error
            if same:
                return None
            last = now
            return emit(item)

        return Opened(push)

    return fuse(source, Stage("distinct_until_changed", open_))
