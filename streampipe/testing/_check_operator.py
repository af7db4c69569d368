"""`check_operator`: hold an operator to the laws of operators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from streampipe.errors import ConfigurationError
from streampipe.testing._bench import AnyOperator, Broken
from streampipe.testing._clock import VirtualLoop
from streampipe.testing._examine import chosen_laws, examine
from streampipe.testing._hypothesis import st
from streampipe.testing._laws import CHUNK_LAWS, LAWS
from streampipe.testing._strategies import short_streams
from streampipe.testing._trial import Case, Traits, Trial, shown_all

__all__ = ["OPERATOR_LAWS", "check_operator"]

OPERATOR_LAWS: tuple[str, ...] = (*LAWS, *CHUNK_LAWS)
"""The names of the laws that `check_operator` knows."""

_KINDS: Mapping[str, Mapping[str, Any]] = {"any": LAWS, "chunks": LAWS | CHUNK_LAWS}
_BITS = st.integers(0, 2**48 - 1)
_PLACES = st.integers(0, 2**12 - 1)


def check_operator(
    make: Callable[[], AnyOperator],
    *,
    kind: str = "chunks",
    elements: st.SearchStrategy[Any] | None = None,
    texts: st.SearchStrategy[str] | None = None,
    streams: st.SearchStrategy[list[Any]] | None = None,
    laws: Collection[str] | None = None,
    text_of_whole: Callable[[str], str] | None = None,
    chunking: bool = True,
    preserves_order: bool = True,
    timed: bool = False,
    ends_early: bool = False,
    drops: bool = False,
    passes_errors: bool = True,
    fails: type[BaseException] | tuple[type[BaseException], ...] = (),
    faulty: Callable[[Callable[..., Any]], AnyOperator] | None = None,
    allowance: int = 2,
    key: Callable[[Any], object] | None = None,
    max_examples: int | None = None,
) -> None:
    """Hold an operator to the laws, on generated streams, on a jumping clock.

    `one end`, `order`, `failure`, `cancel`, `isolation`, `bound`, `sources` and `fusion` are about
    any stream; `chunking`, `parts`, `ids`, `metadata` and `place` about streams of chunks. The
    options say what the operator does not promise; without any, everything is looked at.

    >>> from streampipe import operators as ops
    >>> check_operator(lambda: ops.map_text(str.upper), text_of_whole=str.upper, max_examples=10)

    Args:
        make: makes the operator anew, such as `lambda: ops.map_async(work, concurrency=3)`. Give
            functions in it different times to take, else nothing can be overtaken.
        kind: `chunks`, or `any` for streams of other elements.
        elements: for `any`: what the elements are; small numbers when None.
        texts: for `chunks`: what the streams say. Give what the operator looks for, whole, in
            parts and next to each other.
        streams: whole streams, instead of `elements` and `texts`.
        laws: the names of the laws to look at; all that apply when None.
        text_of_whole: what becomes of a text that comes in one piece.
        chunking: whether the text that comes out is independent of how it was cut.
        preserves_order: whether elements come out in the order of those they are made of.
        timed: whether what comes out depends on when elements come in.
        ends_early: whether it may complete before its source does.
        drops: whether it may leave elements out.
        passes_errors: whether a failure of its source is passed on.
        fails: what it may fail with of its own accord, such as `TripWire`.
        faulty: makes the operator with a function that raises; gets this function.
        allowance: how many elements it may hold beside what it has made of those before.
        key: what of an element is compared, where two runs cannot give equal ones.
        max_examples: how many streams; None for what the active Hypothesis profile says.

    Raises:
        LawError: a law does not hold; the message has the smallest stream that shows it.
        ConfigurationError: an option is wrong.
        RuntimeError: it is called from within a running event loop.
        BaseException: what `make` raises.
    """
    if kind not in _KINDS:
        raise ConfigurationError(f"check_operator: kind is 'chunks' or 'any', not {kind!r}")
    known = _KINDS[kind]
    asked = chosen_laws("check_operator", laws, known)
    traits = Traits(
        name=_name(make),
        make=make,
        laws=asked if chunking else asked - {"chunking"},
        is_chunks=kind == "chunks",
        faulty=faulty,
        whole=text_of_whole,
        key=key,
        fails=fails if isinstance(fails, tuple) else (fails,),
        preserves_order=preserves_order,
        timed=timed,
        ends_early=ends_early,
        drops=drops,
        passes_errors=passes_errors,
        allowance=allowance,
    )
    if streams is None:
        streams = (
            short_streams(texts)
            if kind == "chunks"
            else st.lists(st.integers(0, 9) if elements is None else elements, max_size=8)
        )
    check_traits(traits, streams, known, max_examples)


def check_traits(
    traits: Traits,
    streams: st.SearchStrategy[list[Any]],
    known: Mapping[str, Any],
    max_examples: int | None,
) -> None:
    """Look at the laws of `known` that the traits name.

    Raises:
        LawError: one does not hold.
        RuntimeError: it is called from within a running event loop.
    """

    async def verdict(case: Case, loop: VirtualLoop, only: str) -> None:
        trial = Trial(traits, case, loop)
        for name, law in known.items():
            if name not in traits.laws or only not in ("", name):
                continue
            try:
                await law(trial)
            except Broken:
                raise
            except Exception as error:
                what = f"using it raises {type(error).__name__}: {error}"
                raise Broken(name, what) from error

    cases = st.builds(Case, streams, _BITS, _PLACES)
    examine(
        f"check_operator({traits.name})",
        cases,
        verdict,
        lambda case: {"stream": shown_all(case.stream)},
        max_examples,
    )


def _name(make: Callable[[], AnyOperator]) -> str:
    made = make()
    if not callable(made):
        raise ConfigurationError(
            f"check_operator: make has to return an operator, a function from an observable to an "
            f"observable, not {made!r:.80}"
        )
    name = getattr(made, "name", None)
    return repr(made) if isinstance(name, str) else getattr(made, "__qualname__", repr(made))
