"""`filter_async` and `check_async`: nothing leaves before an async function has allowed it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe import operators as ops
from streampipe.abort import TripWire
from streampipe.agent import Agent
from streampipe.chunks import Chunk, ReasoningDelta, TextDelta, TextEnd, ToolCall
from streampipe.errors import ConfigurationError, ModelConnectionError, OperatorError
from streampipe.operators._check_async import Check, Verdict, check_async, filter_async
from streampipe.operators._core import Emit
from streampipe.testing import ScriptedModel, run_virtual
from tests.operators.sources import Counting, elements, push, reading, watched
from tests.operators.timed import Script, play

CALL = ToolCall("1", "look_up")
TEXT = st.lists(st.text("ab .!\n", max_size=8), max_size=12)


class Moderator:
    """A check that takes its time, and judges a text by what it holds.

    Attributes:
        asked: the texts, in the order in which their checks began.
        at_once: how many checks ran at the same time, at most.
    """

    def __init__(self, seconds: float = 1.0, **answers: Any) -> None:
        """Answer what is given for a word of the text, else allow it; exceptions are raised."""
        self.asked: list[str] = []
        self.at_once = 0
        self._running = 0
        self._seconds = seconds
        self._answers = answers

    async def __call__(self, text: str) -> Any:
        """Judge a text."""
        self.asked.append(text)
        self._running += 1
        self.at_once = max(self.at_once, self._running)
        try:
            await asyncio.sleep(self._seconds * (1 + len(text) % 3))
        finally:
            self._running -= 1
        answer = next((a for word, a in self._answers.items() if word in text), True)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def piece(text: str, **options: Any) -> TextDelta:
    """A piece of text "a"."""
    return TextDelta("a", text, **options)


async def passed(chunks: Sequence[Chunk], *operators: Any) -> tuple[list[Any], Any]:
    """What passes of these chunks, and what it fails with."""
    witness, _ = watched(ops.of(*chunks).pipe(*operators))
    await witness.ended.wait()
    return witness.items, witness.ends[0]


def text_of(chunks: list[Any]) -> str:
    """All text that passed."""
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))


@given(items=st.lists(st.integers(0, 9), max_size=12), concurrency=st.integers(1, 4))
def test_filter_async_is_filter(items: list[int], concurrency: int) -> None:
    """The elements that an ordinary filter lets through, in their order, however long it takes."""

    async def is_even(item: int) -> bool:
        await asyncio.sleep(10 - item)
        return item % 2 == 0

    stream = ops.of(*items).pipe(filter_async(is_even, concurrency=concurrency))
    assert run_virtual(elements(stream)) == [item for item in items if item % 2 == 0]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_filter_async_fails_with_what_its_predicate_raised(concurrency: int) -> None:
    """The elements before it leave; the failure names the operator and hides the element."""

    async def picky(item: int) -> bool:
        if item == 2:
            raise KeyError("secret")
        return True

    async def main() -> None:
        source = Counting(stop=5)
        stream = ops.from_aiter(source).pipe(filter_async(picky, concurrency=concurrency))
        witness, _ = watched(stream)
        await witness.ended.wait()
        assert witness.items == [0, 1]
        error = witness.ends[0]
        assert isinstance(error, OperatorError)
        assert (error.operator, source.closed) == ("filter_async", 1)
        assert "secret" not in str(error)
        assert isinstance(error.__cause__, KeyError)

    run_virtual(main())


@pytest.mark.parametrize("concurrency", [1, 4])
def test_allowed_text_leaves_whole_and_in_order(concurrency: int) -> None:
    """Sentences are checked whole, wherever the text was cut, and stay in order."""
    check = Moderator()
    chunks = [piece("One. Tw"), piece("o. Three"), piece(". Four."), TextEnd("a")]
    items, end = run_virtual(passed(chunks, check_async(check, concurrency=concurrency)))
    assert check.asked == ["One. ", "Two. ", "Three. ", "Four."]
    assert items == [*(piece(text) for text in check.asked), TextEnd("a")]
    assert end == "completed"
    assert check.at_once <= concurrency


def test_checks_run_side_by_side() -> None:
    """Four checks of a second take a second."""
    script = Script((0, piece("Aa. Bb. Cc. Dd.")), (0, TextEnd("a")))
    items, _ = play(script.pipe(check_async(Moderator(1.0), concurrency=4)))
    assert items[-1] == (2.0, TextEnd("a"))  # "Aa. " has 4 characters: two seconds
    items, _ = play(script.pipe(check_async(Moderator(1.0), concurrency=1)))
    assert items[-1] == (7.0, TextEnd("a"))


@pytest.mark.parametrize("answer", [False, Verdict.block("no swords")])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_blocked_window_does_not_leave(answer: Any, concurrency: int) -> None:
    """What stood before it does; then the wire is pulled, and no later check is waited for."""
    check = Moderator(sword=answer)
    chunks = [piece("All is well. A swo"), piece("rd! More. "), CALL]
    items, end = run_virtual(passed(chunks, check_async(check, concurrency=concurrency)))
    assert items == [piece("All is well. ")]
    assert isinstance(end, TripWire)
    assert (end.retry, end.processor_id) == (False, "check_async")
    assert end.reason == ("no swords" if isinstance(answer, Verdict) else end.reason)


def test_a_retry_pulls_the_wire_with_a_second_chance() -> None:
    """The model is told the reason and may try again."""
    check = Moderator(sword=Verdict.retry("no swords"))
    _, end = run_virtual(passed([piece("A sword.")], check_async(check)))
    assert isinstance(end, TripWire)
    assert (end.reason, end.retry) == ("no swords", True)


def test_a_replaced_window_leaves_in_its_place() -> None:
    """Another text takes the window's place; the empty one drops it."""
    check = Moderator(sword=Verdict.replace("A flower. "), axe=Verdict.replace(""))
    chunks = [piece("Hi. A sword. An axe. Bye."), TextEnd("a")]
    items, _ = run_virtual(passed(chunks, check_async(check)))
    assert items == [piece("Hi. "), piece("A flower. "), piece("Bye."), TextEnd("a")]


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (KeyError("secret"), "KeyError on text-delta"),
        (ModelConnectionError("no route"), "ModelConnectionError on text-delta"),
        (asyncio.CancelledError(), "that it waited for was cancelled"),
        ("yes", "check gave str; give a Verdict, True or False"),
        (None, "check gave NoneType; give a Verdict, True or False"),
        (1, "check gave int"),
    ],
)
def test_a_check_that_does_not_decide_fails_closed(
    answer: Any, says: str, concurrency: int
) -> None:
    """Without a verdict the window does not leave, and the failure names the operator."""
    check = Moderator(sword=answer)
    chunks = [piece("Fine. A sword. More.")]
    items, end = run_virtual(passed(chunks, check_async(check, concurrency=concurrency)))
    assert text_of(items) == "Fine. "
    assert isinstance(end, OperatorError)
    assert end.operator == "check_async"
    assert says in str(end)
    assert "secret" not in str(end)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_wire_that_the_check_pulls_is_obeyed(concurrency: int) -> None:
    """A check may abort by itself; no stage before it takes the wire for one of its own."""
    wire = TripWire("enough", metadata={"score": 1})
    taken: list[TripWire] = []

    async def stage_before(emit: Emit[Any]) -> None:
        try:
            await push(emit, piece("Fine. A sword."), TextEnd("a"))
        except TripWire as caught:
            taken.append(caught)
            raise

    async def main() -> None:
        stage = check_async(Moderator(sword=wire), concurrency=concurrency)
        witness, _ = watched(ops.Flowable(stage_before).pipe(stage))
        await witness.ended.wait()
        assert (text_of(witness.items), witness.ends, taken) == ("Fine. ", [wire], [])

    run_virtual(main())


def test_over_budget_fails_closed() -> None:
    """After `max_checks` windows nothing more leaves."""
    check = Moderator()
    chunks = [piece("One. Two. Three. Four.")]
    items, end = run_virtual(passed(chunks, check_async(check, max_checks=2)))
    assert text_of(items) == "One. Two. "
    assert isinstance(end, OperatorError)
    assert "budget of 2 checks" in str(end)
    assert check.asked == ["One. ", "Two. "]


def test_over_budget_may_be_allowed() -> None:
    """When told so the rest leaves unchecked; each subscription has a budget of its own."""
    check = Moderator()
    stream = ops.of(piece("One. Two. Three. "), TextEnd("a")).pipe(
        check_async(check, max_checks=1, over_budget="allow")
    )

    async def main() -> None:
        for _ in range(2):
            assert text_of(await elements(stream)) == "One. Two. Three. "

    run_virtual(main())
    assert check.asked == ["One. ", "One. "]


def test_reasoning_is_checked_unless_told_otherwise() -> None:
    """What must not be said must not be thought aloud."""
    check = Moderator()
    chunks = [ReasoningDelta("r", "Hm. "), piece("Hello."), TextEnd("a")]
    run_virtual(passed(chunks, check_async(check)))
    assert sorted(check.asked) == ["Hello.", "Hm. "]


def test_reasoning_alone_is_checked_when_told_so() -> None:
    """`parts` says what is checked; the rest passes."""
    check = Moderator()
    chunks = [ReasoningDelta("r", "H"), ReasoningDelta("r", "m. "), piece("Hello."), TextEnd("a")]
    run_virtual(passed(chunks, check_async(check, parts=("reasoning",))))
    assert check.asked == ["Hm. "]


def test_other_chunks_keep_their_place_behind_text_in_doubt() -> None:
    """A tool call does not pass while the text before it is not allowed yet."""
    script = Script((0, piece("Wait. ")), (0, CALL), until=9)
    items, _ = play(script.pipe(check_async(Moderator(1.0), window=6)))
    assert items == [(1.0, piece("Wait. ")), (1.0, CALL)]
    script = Script((0, piece("Wait. ")), (0, CALL), (0, piece("B")), until=9)
    items, _ = play(script.pipe(check_async(Moderator(1.0))))
    assert items[:2] == [(1.0, piece("Wait. ")), (1.0, CALL)]


def test_metadata_of_held_text_is_not_lost() -> None:
    """Provider metadata leaves once, with its window."""
    said = {"p": {"item": 1}}
    chunks = [piece("On", provider_metadata=said), piece("e. Two."), TextEnd("a")]
    items, _ = run_virtual(passed(chunks, check_async(Moderator())))
    assert [chunk.provider_metadata for chunk in items].count(said) == 1


@given(
    pieces=TEXT,
    window=st.sampled_from(["sentence", "line", 1, 5, 50]),
    concurrency=st.integers(1, 4),
)
def test_what_is_checked_is_what_leaves(pieces: list[str], window: Any, concurrency: int) -> None:
    """All text is checked once, in order, in windows that do not depend on how it was cut."""
    text = "".join(pieces)
    asked: list[list[str]] = []
    for chunks in ([piece(part) for part in pieces], [piece(text)]):
        check = Moderator()
        stage = check_async(check, window=window, concurrency=concurrency)
        items, end = run_virtual(passed([*chunks, TextEnd("a")], stage))
        assert end == "completed"
        assert text_of(items) == "".join(check.asked) == text
        asked.append(check.asked)
    assert asked[0] == asked[1]
    assert isinstance(window, str) or all(len(part) <= window for part in asked[0])


@given(pieces=TEXT, concurrency=st.integers(1, 4))
def test_nothing_of_a_blocked_text_leaves(pieces: list[str], concurrency: int) -> None:
    """What leaves before the wire is exactly the windows before the first one that is blocked."""
    check = Moderator(b=False)
    items, end = run_virtual(
        passed(
            [*(piece(part) for part in pieces), TextEnd("a")],
            check_async(check, concurrency=concurrency),
        )
    )
    assert "b" not in text_of(items)
    assert isinstance(end, TripWire) == ("b" in "".join(pieces))
    assert "".join(pieces).startswith(text_of(items))


def test_windows_of_characters_are_cut_behind_white_space() -> None:
    """A word is cut only when it does not fit a window by itself."""
    check = Moderator()
    run_virtual(
        passed([piece("one two incomprehensible x"), TextEnd("a")], check_async(check, window=9))
    )
    assert check.asked == ["one two ", "incompreh", "ensible x"]


def test_a_failed_source_drops_text_without_a_verdict() -> None:
    """Its failure comes behind what was allowed; the held text is of a void step."""
    failure = ValueError("broken")
    script = Script((0, piece("One. Tw")), until=5, error=failure)
    assert play(script.pipe(check_async(Moderator(1.0)))) == ([(3.0, piece("One. "))], failure)


def test_leaving_early_cancels_checks_and_closes_the_source() -> None:
    """No check goes on for a reader that is gone."""
    script = Script(*((n * 1.0, piece("Aha. ")) for n in range(50)))

    async def main() -> None:
        check = Moderator(100.0)
        async with reading(script.pipe(check_async(check, concurrency=2))) as items:
            waiting = asyncio.ensure_future(anext(items))
            await asyncio.sleep(10)
            waiting.cancel()
            await asyncio.wait([waiting])
        assert (len(check.asked), script.closed) == (2, 1)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtual(main())


def test_a_run_is_blocked_and_tried_again() -> None:
    """In an agent a retry voids the attempt, and the next one is checked anew."""
    check = Moderator(sword=Verdict.retry("no swords"))
    model = ScriptedModel([["A sword."], ["A flower."]])
    agent = Agent(model=model, output_processors=[check_async(check)], max_processor_retries=1)
    result = run_virtual(agent.generate("hi"))
    assert (result.text, result.retries) == ("A flower.", 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": "chapter"}, "window must be 'sentence', 'line' or 1 character or more"),
        ({"window": 0}, "window must be .*, not 0"),
        ({"window": True}, "window must be .*, not True"),
        ({"window": None}, "window must be .*, not None"),
        ({"concurrency": 0}, "concurrency must be a whole number of 1 or more, not 0"),
        ({"concurrency": 1.5}, "concurrency must be a whole number"),
        ({"max_checks": -1}, "max_checks must be a whole number of 0 or more, not -1"),
        ({"over_budget": "pray"}, "over_budget must be 'fail' or 'allow', not 'pray'"),
        ({"parts": ("tools",)}, "parts must be some of text, reasoning"),
        ({"parts": ()}, "parts must be some of text, reasoning"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    """Each is refused when the operator is configured, by name, with what is allowed."""
    check: Check = Moderator()
    with pytest.raises(ConfigurationError, match=f"^check_async: {message}"):
        check_async(check, **options)


@pytest.mark.parametrize("bad", [0, -3, "2", True, None])
def test_filter_async_refuses_a_bad_concurrency(bad: Any) -> None:
    """It is a number of calls."""
    with pytest.raises(ConfigurationError, match=r"^filter_async: concurrency must be a whole"):
        filter_async(Moderator(), concurrency=bad)


def test_metadata_of_a_window_that_is_emptied_is_not_lost() -> None:
    """An empty piece carries it; without any, an emptied window is nothing."""
    said = {"p": {"item": 1}}
    check = Moderator(bad=Verdict.replace(""))
    chunks = [piece("A bad one. ", provider_metadata=said), piece("Fine. "), piece("A bad.")]
    items, _ = run_virtual(passed(chunks, check_async(check)))
    assert items == [piece("", provider_metadata=said), piece("Fine. ")]
