"""`check_operator`: hold an operator to the laws of operators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, Unpack

from streampipe.errors import ConfigurationError
from streampipe.testing._bench import AnyOperator, Broken
from streampipe.testing._chunk_laws import CHUNK_LAWS
from streampipe.testing._clock import VirtualLoop
from streampipe.testing._examine import chosen_laws, examine
from streampipe.testing._hypothesis import st
from streampipe.testing._keeping_laws import KEEPING_LAWS
from streampipe.testing._laws import LAWS, Law
from streampipe.testing._strategies import short_streams
from streampipe.testing._trial import Case, Promises, Traits, Trial, shown_all

__all__ = ["OPERATOR_LAWS", "check_operator"]

OPERATOR_LAWS: tuple[str, ...] = (*LAWS, *CHUNK_LAWS, *KEEPING_LAWS)
"""The names of the laws that `check_operator` knows."""

_KINDS: Mapping[str, Mapping[str, Law]] = {
    "any": LAWS,
    "chunks": LAWS | CHUNK_LAWS | KEEPING_LAWS,
}
MANY = 400  # examples, of which each law that takes its turn still gets a hundred
_BITS = st.integers(0, 2**48 - 1)
_PLACES = st.integers(0, 2**12 - 1)


def check_operator(
    make: Callable[[], AnyOperator],
    *,
    kind: Literal["chunks", "any"] = "chunks",
    laws: Collection[str] | None = None,
    max_examples: int | None = None,
    **promises: Unpack[Promises],
) -> None:
    """Hold an operator to the laws, on generated streams, on a jumping clock.

    `one end`, `order`, `failure`, `cancel`, `isolation`, `bound`, `sources` and `fusion` are about
    any stream; `chunking`, `parts`, `ids`, `metadata`, `place`, `others`, `void`, `stretches` and
    `long` about streams of chunks.

    >>> from streampipe import operators as ops
    >>> check_operator(lambda: ops.map_text(str.upper), text_of_whole=str.upper, max_examples=10)

    Args:
        make: makes the operator anew, such as `lambda: ops.map_async(work, concurrency=3)`. Give
            functions in it different times to take, else nothing can be overtaken.
        kind: `chunks`, or `any` for streams of other elements.
        laws: the names of the laws to look at; all that apply when None.
        max_examples: how many streams; None for what the active Hypothesis profile says.
        promises: what the operator does, and what it does not promise; see `Promises`.

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
    traits = promised(
        f"check_operator({name_of(make)})", make, promises, is_chunks=kind == "chunks"
    )
    wanted = {name: law for name, law in known.items() if name in asked}
    if not traits.chunking:
        wanted.pop("chunking", None)
    check_laws(traits, wanted, max_examples)


def promised(
    subject: str, make: Callable[[], AnyOperator], promises: Promises, *, is_chunks: bool = True
) -> Traits:
    """What is checked, with what is promised of it.

    Raises:
        ConfigurationError: a promise is unknown.
    """
    unknown = sorted(set(promises) - set(Promises.__annotations__))
    if unknown:
        allowed = ", ".join(sorted(Promises.__annotations__))
        raise ConfigurationError(f"{subject}: no option {unknown[0]!r}; there are {allowed}")
    return Traits(subject, make, is_chunks, **promises)


def check_laws(traits: Traits, laws: Mapping[str, Law], max_examples: int | None) -> None:
    """Hold an operator to some laws.

    Those that need a run of their own take turns where there are many examples.

    Raises:
        LawError: one does not hold.
        RuntimeError: it is called from within a running event loop.
    """
    turns = [name for name in laws if name in KEEPING_LAWS]
    if (max_examples or 0) < MANY or len(turns) < 2:  # noqa: PLR2004 - one has nobody to wait for
        turns = []

    async def verdict(case: Case, loop: VirtualLoop, only: str) -> None:
        trial = Trial(traits, case, loop)
        waiting = {*turns} - {turns[case.place(len(turns))]} if turns else set[str]()
        for name in [only] if only in laws else [name for name in laws if name not in waiting]:
            try:
                await laws[name](trial)
            except Broken:
                raise
            except Exception as error:
                what = f"using it raises {type(error).__name__}: {error}"
                raise Broken(name, what) from error

    cases = st.builds(Case, _streams(traits), _BITS, _PLACES)
    examine(traits.name, cases, verdict, _described, max_examples)


def _described(case: Case) -> Mapping[str, object]:
    return {"stream": shown_all(case.stream)}


def _streams(traits: Traits) -> st.SearchStrategy[list[Any]]:
    if traits.streams is not None:
        return traits.streams
    if traits.is_chunks:
        return short_streams(traits.texts)
    return st.lists(st.integers(0, 9) if traits.elements is None else traits.elements, max_size=8)


def name_of(make: Callable[[], AnyOperator]) -> str:
    """What to call an operator in a report.

    Raises:
        ConfigurationError: `make` makes none.
    """
    made = make()
    if not callable(made):
        raise ConfigurationError(
            f"check_operator: make has to return an operator, a function from an observable to an "
            f"observable, not {made!r:.80}"
        )
    name = getattr(made, "name", None)
    return repr(made) if isinstance(name, str) else getattr(made, "__qualname__", repr(made))
