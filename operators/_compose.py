"""Pipelines as values: named, reused, shown, and put side by side."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Generic, TypeVar, cast, overload

from reactivex import Observable

from streampipe.chunks import Chunk
from streampipe.contracts import HOOKS, OutputProcessor
from streampipe.contracts.processor import STREAM_OPERATOR
from streampipe.errors import ConfigurationError
from streampipe.operators._core import FAULTS, Emit
from streampipe.operators._functions import check_function, is_true
from streampipe.operators._fuse import Fused, FusedRx, Kernel, Opened, Stage, fuse
from streampipe.operators._operator import HOLE, Configured, Op, check_called, operator, shown
from streampipe.operators._process import process_all
from streampipe.operators._record import Recorder, check_recorder, recorded

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
G = TypeVar("G")
H = TypeVar("H")
J = TypeVar("J")


class Pipeline(Generic[A, B]):
    """Operators in a row, as one operator: apply it, put it in another, show it.

    Attributes:
        name: what it is called in a `repr` and in `explain`.
        operators: the operators, in order.
        stages: its synchronous stages, if it consists of nothing else, else None.
        flows: whether all of its operators keep back-pressure and order.
    """

    def __init__(
        self,
        operators: Iterable[Op[Any, Any]],
        name: str | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        """Put operators in a row; with a recorder, each is watched whenever they run.

        Raises:
            ConfigurationError: one is none or is not called, or the recorder is none.
        """
        self.operators = tuple(operators)
        self.name = name
        self.__name__ = name or "pipe"
        for place, element in enumerate(self.operators, 1):
            if not callable(element):
                msg = f"pipe: element {place} is {element!r:.80}, not an operator"
                raise ConfigurationError(msg)
            check_called(element, f"pipe: element {place}")
        self.recorder = recorder
        self.flows = all(getattr(element, "flows", False) for element in self.operators)
        parts = [getattr(element, "stages", None) for element in self.operators]
        self.stages: tuple[Stage, ...] | None = (
            None if None in parts else tuple(stage for part in parts for stage in part or ())
        )
        self._behind: Callable[[Observable[Any]], Observable[Any]] = self._plainly
        if recorder is not None:
            check_recorder(recorder, "pipe")
            self.stages = None
            self._behind = partial(
                recorded,
                operators=[(label(element), element) for element in flat(self.operators)],
                recorder=recorder,
                name=self.__name__,
            )

    def __call__(self, source: Observable[A]) -> Observable[B]:
        """The operators behind `source`, one after the other."""
        return self._behind(source)

    def _plainly(self, source: Observable[Any]) -> Observable[Any]:
        for element in self.operators:
            source = element(source)
        return source

    def __repr__(self) -> str:
        """The stages, as they are written."""
        inside = ", ".join(label(element) for element in self.operators)
        return f"{self.name}: pipe({inside})" if self.name else f"pipe({inside})"


@overload
def pipe(*, name: str | None = None, recorder: Recorder | None = None) -> Pipeline[A, A]: ...
@overload
def pipe(
    a: Op[Chunk, B], /, *, name: str | None = None, recorder: Recorder | None = None
) -> Pipeline[Chunk, B]: ...
@overload
def pipe(
    a: Op[A, B], /, *, name: str | None = None, recorder: Recorder | None = None
) -> Pipeline[A, B]: ...
@overload
def pipe(
    a: Op[A, B], b: Op[B, C], /, *, name: str | None = None, recorder: Recorder | None = None
) -> Pipeline[A, C]: ...
@overload
def pipe(
    a: Op[A, B],
    b: Op[B, C],
    c: Op[C, D],
    /,
    *,
    name: str | None = None,
    recorder: Recorder | None = None,
) -> Pipeline[A, D]: ...
@overload
def pipe(
    a: Op[A, B],
    b: Op[B, C],
    c: Op[C, D],
    d: Op[D, E],
    /,
    *,
    name: str | None = None,
    recorder: Recorder | None = None,
) -> Pipeline[A, E]: ...
@overload
def pipe(
    a: Op[A, B],
    b: Op[B, C],
    c: Op[C, D],
    d: Op[D, E],
    e: Op[E, F],
    /,
    *,
    name: str | None = None,
    recorder: Recorder | None = None,
) -> Pipeline[A, F]: ...
@overload
def pipe(
    a: Op[A, B],
    b: Op[B, C],
    c: Op[C, D],
    d: Op[D, E],
    e: Op[E, F],
    f: Op[F, G],
    /,
    *,
    name: str | None = None,
    recorder: Recorder | None = None,
) -> Pipeline[A, G]: ...
@overload
def pipe(
    a: Op[A, B],
    b: Op[B, C],
    c: Op[C, D],
    d: Op[D, E],
    e: Op[E, F],
    f: Op[F, G],
    g: Op[G, H],
    /,
    *,
    name: str | None = None,
    recorder: Recorder | None = None,
) -> Pipeline[A, H]: ...
@overload
def pipe(
    a: Op[A, B],
    b: Op[B, C],
    c: Op[C, D],
    d: Op[D, E],
    e: Op[E, F],
    f: Op[F, G],
    g: Op[G, H],
    h: Op[H, J],
    /,
    *,
    name: str | None = None,
    recorder: Recorder | None = None,
) -> Pipeline[A, J]: ...
@overload
def pipe(
    *operators: Op[A, A], name: str | None = None, recorder: Recorder | None = None
) -> Pipeline[A, A]: ...
@overload
def pipe(
    a: Op[A, B],
    b: Op[B, C],
    c: Op[C, D],
    d: Op[D, E],
    e: Op[E, F],
    f: Op[F, G],
    g: Op[G, H],
    h: Op[H, J],
    /,
    *more: Op[Any, Any],
    name: str | None = None,
    recorder: Recorder | None = None,
) -> Pipeline[A, Any]: ...
def pipe(
    *operators: Op[Any, Any], name: str | None = None, recorder: Recorder | None = None
) -> Pipeline[Any, Any]:
    """Operators in a row as one value.

    >>> from streampipe import operators as ops
    >>> shout = ops.pipe(ops.map_text(str.upper), ops.text(), name="shout")
    >>> shout
    shout: pipe(map_text(upper), text())

    A type checker follows the elements through eight operators, and through any number of those
    that keep their type. What comes behind others is `Any` to it: put pipes into a pipe. A function
    of any object, such as `print`, is one of chunks to it: behind others give an annotated one.

    Args:
        operators: any operators, ours or of `reactivex`.
        name: what it is called when it is shown.
        recorder: watches each operator, whenever the pipeline runs; see `Recorder`.

    Raises:
        ConfigurationError: an element is no operator, or `recorder` is no recorder.
    """
    return Pipeline(operators, name, recorder)


def explain(
    pipeline: Observable[Any] | Op[Any, Any] | Iterable[Op[Any, Any] | OutputProcessor],
) -> str:
    """How a pipeline runs: its kernels, and the boundaries between them, a line each.

    >>> from streampipe import operators as ops
    >>> print(ops.explain(ops.pipe(ops.tap(print), ops.text(), ops.map_async(print), ops.map(len))))
    kernel    tap > text
    boundary  map_async(print)
    kernel    map

    Args:
        pipeline: an operator, a list of operators and processors as in `output_processors`, or an
            observable that operators were applied to.

    Raises:
        ConfigurationError: it is none of these.
    """
    if isinstance(pipeline, Observable):
        return "\n".join(_lines(pipeline))
    if callable(pipeline):
        return "\n".join(_lines_of([pipeline]))
    if isinstance(pipeline, Iterable):
        elements = [_operator_of(element, "explain") for element in pipeline]
        return "\n".join(_lines_of(elements))
    msg = f"explain: takes an operator, a list of them or an observable, not {pipeline!r:.80}"
    raise ConfigurationError(msg)


def _lines(source: Observable[Any]) -> list[str]:
    """The lines of an observable, read from its end to its beginning."""
    lines: list[str] = []
    while True:
        if isinstance(source, Fused | FusedRx):
            names = [stage.name for stage in source.stages if not stage.goes_on]
            lines.append("kernel    " + " > ".join(names))
            source = source.source
            continue
        upstream = getattr(source, "upstream", None)
        if upstream is None:
            break
        made_by, source = upstream
        lines.append(f"boundary  {made_by!r}")
    if source is not HOLE:
        lines.append("source    " + type(source).__name__)
    return lines[::-1]


def _lines_of(elements: Iterable[Any]) -> list[str]:
    """The lines of operators in a row; one of another library is asked for nothing but its name."""
    lines: list[str] = []
    source: Observable[Any] = HOLE
    for element in flat(elements):
        if isinstance(element, Configured):
            source = element(source)
            continue
        lines += [*_lines(source), f"boundary  {label(element)}"]
        source = HOLE
    return [*lines, *_lines(source)]


def flat(elements: Iterable[Any]) -> Iterable[Any]:
    """Operators in a row, those of pipelines in place of them; what has a recorder stays whole."""
    for element in elements:
        if isinstance(element, Pipeline) and element.recorder is None:
            yield from flat(element.operators)
        else:
            yield element


def label(element: Any) -> str:
    """What an operator is called where pipelines are shown."""
    if isinstance(element, Configured | Pipeline):
        return repr(element)
    name = getattr(element, "__qualname__", "")
    for cell in getattr(element, "__closure__", None) or ():  # reactivex wraps what it curries
        inner = cell.cell_contents
        if name.startswith("curry") and callable(inner):
            name = getattr(inner, "__name__", name)
    return name.split(".<locals>")[0].strip("_") or shown(element)


def _operator_of(element: Any, where: str) -> Op[Chunk, Chunk]:
    """An operator, or a processor as one.

    Raises:
        ConfigurationError: it is neither.
    """
    if any(hasattr(element, hook) for hook in (*HOOKS, STREAM_OPERATOR)):
        return process_all([element])
    check_called(element, where)
    if callable(element):
        return cast("Op[Chunk, Chunk]", element)
    msg = f"{where}: takes operators and processors, not {element!r:.80}"
    raise ConfigurationError(msg)


@operator
def branch(
    source: Observable[Chunk],
    predicate: Callable[[Chunk], object],
    then: Op[Any, Any] | OutputProcessor,
    otherwise: Op[Any, Any] | OutputProcessor | None = None,
) -> Observable[Chunk]:
    """Each chunk through one of two operators.

    Args:
        source: a stream of chunks.
        predicate: which way a chunk goes.
        then: an operator or a processor for those it is true for.
        otherwise: the same for the others; without it they pass as they are.

    Returns:
        What both let through, in the order in which it leaves them. When one of them has seen
        enough, as `take_while` may, the whole completes, and what the two hold is dropped. It fails
        with `OperatorError` when `predicate` raises, and as the two do.

    Raises:
        ConfigurationError: `predicate` is no plain function, or one of the two no operator that
            works element by element: two async ways would each have a pace of their own, and the
            order would be lost.
    """
    check_function("branch", "predicate", predicate, "filter_async")
    ways = (stages_of("branch", then), stages_of("branch", otherwise))
    is_async = any(stage.is_async for way in ways for stage in way)

    def open_(emit: Emit[Chunk], stage: Stage) -> Opened:
        first, second = (Kernel(way, emit, stage) for way in ways)
        yes, no = first.push, second.push

        def push(chunk: Chunk) -> Awaitable[Any] | None:
            try:
                which = is_true(predicate(chunk))
            except FAULTS as error:
                raise stage.fault(error, chunk) from error
            return yes(chunk) if which else no(chunk)

        def flush() -> Awaitable[Any] | None:
            wait = first.flush()
            return second.flush() if wait is None else _then(wait, second)

        return Opened(push, flush)

    return fuse(source, Stage("branch", open_, is_async=is_async))


async def _then(wait: Awaitable[Any], kernel: Kernel) -> None:
    await wait
    following = kernel.flush()
    if following is not None:
        await following


def stages_of(name: str, element: Any) -> tuple[Stage, ...]:
    """The stages of an operator or a processor; of nothing, none.

    Raises:
        ConfigurationError: it is neither, or does not work element by element.
    """
    if element is None:
        return ()
    made = _operator_of(element, name)
    stages: tuple[Stage, ...] | None = getattr(made, "stages", None)
    if stages is None:
        msg = f"{name}: {label(made)} does not work element by element; put it before or behind"
        raise ConfigurationError(msg)
    return stages
