"""Several models as one: the next one answers where one fails."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import cast

from streampipe.chunks import Chunk, ResponseMetadata
from streampipe.contracts import Model, ModelRequest
from streampipe.errors import ConfigurationError, ModelError
from streampipe.models._catalog import resolve_model

__all__ = ["FallbackModel"]


class FallbackModel:
    """Asks one model after another until one begins to answer.

    Each keeps its own retries. Once a chunk of the answer is out (metadata is none) its model has
    the word: what fails later fails the call, since a reader would take two beginnings for one.

    >>> from streampipe.testing import ScriptedModel
    >>> FallbackModel(ScriptedModel([], model_id="large"), ScriptedModel(["hi"], model_id="small"))
    FallbackModel(scripted/large, scripted/small)

    Attributes:
        provider: `"fallback"`.
        model_id: the models' router ids, in the order they are asked.
        models: the models themselves.
        max_retries: how often a whole answer that broke may be asked for again: as the first model.
    """

    provider = "fallback"

    def __init__(
        self,
        *models: Model | str,
        when: Callable[[ModelError], bool] | None = None,
    ) -> None:
        """Say which models, best first.

        Args:
            models: two at least; a string is a router id such as `"openai/gpt-5-mini"`.
            when: looks at a failure, and says whether the next model is asked; by default it is,
                whatever failed. A request that a model cannot be asked goes on to the next anyway.

        Raises:
            ConfigurationError: there are fewer than two, or a router id is wrong.
        """
        if len(models) < 2:  # noqa: PLR2004 - one has nothing to fall back on
            raise ConfigurationError(f"FallbackModel: give two models at least, not {len(models)}")
        self.models = tuple(resolve_model(m) if isinstance(m, str) else m for m in models)
        self.model_id = ", ".join(f"{m.provider}/{m.model_id}" for m in self.models)
        self.max_retries: int = getattr(self.models[0], "max_retries", 0)
        self._when = when

    def __repr__(self) -> str:
        """The models' names."""
        return f"FallbackModel({self.model_id})"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Answer one request; closing the generator closes that of the model which answers.

        Raises:
            ModelError, ConfigurationError: the last failure, with a note for each one before it. A
                request that one model cannot be asked is a failure of that model.
        """
        earlier: list[ModelError | ConfigurationError] = []
        for place, model in enumerate(self.models, 1):
            head: list[Chunk] | None = []
            answer = cast("AsyncGenerator[Chunk, None]", model.stream(request))
            try:
                async with aclosing(answer) as chunks:
                    async for chunk in chunks:
                        if head is not None:
                            head.append(chunk)
                            if isinstance(chunk, ResponseMetadata):
                                continue
                            for first in head:
                                yield first
                            head = None
                        else:
                            yield chunk
                return  # noqa: TRY300 - what follows is for a model that failed
            except (ModelError, ConfigurationError) as error:
                if head is None or place == len(self.models) or not self._goes_on(error):
                    for before in reversed(earlier):
                        error.add_note(f"before that, {type(before).__name__}: {before}")
                        for note in getattr(before, "__notes__", ()):  # of models in a model
                            error.add_note(note)
                    raise
                earlier.append(error)

    def _goes_on(self, error: ModelError | ConfigurationError) -> bool:
        """Whether the next model is asked."""
        return self._when is None or isinstance(error, ConfigurationError) or self._when(error)
