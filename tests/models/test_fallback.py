"""Several models as one: who is asked, who answers, what is said when nobody does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe import Agent
from streampipe.chunks import Chunk, TextDelta
from streampipe.contracts import ModelRequest
from streampipe.errors import (
    AuthenticationError,
    ConfigurationError,
    ModelError,
    OverloadedError,
)
from streampipe.models import FallbackModel
from streampipe.testing import ScriptedModel, check_model, fail, no_leaks, turn
from tests.models.test_call import REQUEST, collected


def down() -> OverloadedError:
    """A failure that may pass."""
    return OverloadedError("no capacity", is_retryable=True)


def said(chunks: list[object]) -> str:
    """The text of chunks."""
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))


@given(st.lists(st.booleans(), min_size=2, max_size=5))
def test_the_first_that_answers(works: list[bool]) -> None:
    """The ones before it were asked once each, in order, and nobody after it."""
    models = [
        ScriptedModel([f"from {n}"] if good else [fail(down())]) for n, good in enumerate(works)
    ]

    async def ask() -> str:
        return said(list(await collected(FallbackModel(*models))))

    if not any(works):
        with pytest.raises(OverloadedError):
            asyncio.run(ask())
        return
    first = works.index(True)
    assert asyncio.run(ask()) == f"from {first}"
    assert [len(model.requests) for model in models] == [int(n <= first) for n in range(len(works))]


async def test_once_begun_there_is_no_way_back() -> None:
    """A reader would take two beginnings for one answer."""
    second = ScriptedModel(["other"])
    model = FallbackModel(ScriptedModel([turn("be", "gun", fail(down()))]), second)
    text = ""
    with pytest.raises(OverloadedError):
        async for chunk in model.stream(REQUEST):
            text += said([chunk])
    assert text == "begun"
    assert second.requests == []


async def test_nobody_answers() -> None:
    """The last failure is raised, and notes tell those before it."""
    wrong = AuthenticationError("no such key", provider="a", model="x", status=401)
    model = FallbackModel(ScriptedModel([fail(wrong)]), ScriptedModel([fail(down())]))
    with pytest.raises(OverloadedError, match="no capacity") as caught:
        await collected(model)
    assert caught.value.__notes__ == [
        "before that, AuthenticationError: a/x: HTTP 401: no such key"
    ]


class Refusing(ScriptedModel):
    """A model that no request can be put in terms of."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Refuse at the first step, as models behind HTTP do."""
        del request

        async def refused() -> AsyncGenerator[Chunk, None]:
            raise ConfigurationError("no such effort")
            yield

        return refused()


async def test_a_request_that_a_model_cannot_be_asked() -> None:
    """It goes to the next model, whatever `when` says of failures."""
    model = FallbackModel(Refusing([]), ScriptedModel(["hi"]), when=lambda _: False)
    assert said(list(await collected(model))) == "hi"


async def test_a_refusal_of_the_last_model_hides_nothing() -> None:
    """What failed before it is told in its notes."""
    with pytest.raises(ConfigurationError, match="no such effort") as caught:
        await collected(FallbackModel(ScriptedModel([fail(down())]), Refusing([])))
    assert caught.value.__notes__ == ["before that, OverloadedError: no capacity"]


async def test_models_within_models_tell_all_failures() -> None:
    """The newest first, each once."""

    def failing(name: str) -> ScriptedModel:
        return ScriptedModel([fail(OverloadedError(name))])

    model = FallbackModel(
        FallbackModel(failing("a"), failing("b")), FallbackModel(failing("c"), failing("d"))
    )
    with pytest.raises(OverloadedError, match="d") as caught:
        await collected(model)
    assert caught.value.__notes__ == [f"before that, OverloadedError: {name}" for name in "cba"]


async def test_which_failures_are_worth_another_model() -> None:
    """`when` decides; what it declines is raised at once."""
    second = ScriptedModel(["other"])
    model = FallbackModel(
        ScriptedModel([fail(AuthenticationError("no such key"))]),
        second,
        when=lambda error: error.is_retryable,
    )
    with pytest.raises(AuthenticationError):
        await collected(model)
    assert second.requests == []


async def test_it_is_a_model() -> None:
    """An agent takes it, its contract holds, and leaving early leaves nothing behind."""

    def make() -> FallbackModel:
        return FallbackModel(ScriptedModel([fail(down())] * 2), ScriptedModel(["hel", "lo"] * 2))

    await check_model(
        make, failing=lambda: FallbackModel(*[ScriptedModel([fail(down())]) for _ in range(2)])
    )
    async with no_leaks():
        answer = make().stream(REQUEST)
        await anext(answer)
        await answer.aclose()
    assert (await Agent(model=make()).generate("hi")).text == "hel"


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_models(count: int) -> None:
    """One model has nothing to fall back on."""
    with pytest.raises(ConfigurationError, match=f"two models at least, not {count}"):
        FallbackModel(*[ScriptedModel(["x"])] * count)


def test_a_router_id_is_a_model_too() -> None:
    """And a wrong one is refused when the fallback is built."""
    with pytest.raises(ConfigurationError, match="nowhere/x"):
        FallbackModel(ScriptedModel(["x"]), "nowhere/x")
    assert issubclass(OverloadedError, ModelError)
