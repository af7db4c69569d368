"""Every processor that the examples show, held to the laws of processors by the kit users have."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from streampipe import TripWire
from streampipe.contracts import HOOKS
from streampipe.testing import LawError, ScriptedModel, check_processor

FOLDER = Path(__file__).resolve().parent.parent.parent / "examples"
# Ten times the profile, which is made for whole runs, as for operators; a quarter of it are runs.
EXAMPLES = max(1_000, 10 * settings().max_examples)


def model() -> ScriptedModel:
    """A model that says the same again and again."""
    return ScriptedModel([["other words"]], repeat=True)


MADE: dict[str, Callable[[type[Any]], Any]] = {
    "BlockWords": lambda kind: kind(["a"]),
    "ContentFilter": lambda kind: kind(["a"]),
    "DynamicModel": lambda kind: kind(model(), model()),
    "SmallModel": lambda kind: kind(model()),
}
"""How to make what does not make itself."""

PROMISES: dict[str, dict[str, Any]] = {
    "StreamFilter": {"drops": True},
}
"""What an example says of itself."""

ASKS_AGAIN = {"QualityGuardrail"}
"""Rejects an answer and asks for another, which a generated script does not have."""


def _made(kind: type[Any]) -> Any:
    return kind()


def processors() -> dict[str, type[Any]]:
    """Every class of the examples that defines a hook."""
    found: dict[str, type[Any]] = {}
    for file in sorted(FOLDER.glob("*.py")):
        module = importlib.import_module(f"examples.{file.stem}")
        for name, kind in vars(module).items():
            ours = inspect.isclass(kind) and kind.__module__ == module.__name__
            if ours and any(hasattr(kind, hook) for hook in HOOKS):
                assert name not in found, f"two examples have a {name}: give each its own name"
                found[name] = kind
    return found


SHOWN = processors()


@pytest.mark.parametrize("name", sorted(SHOWN.keys() - ASKS_AGAIN))
def test_a_processor_of_the_examples_keeps_the_laws(name: str) -> None:
    """Whatever the stream, and wherever its text is cut; and in whole runs, whatever the model."""
    kind = SHOWN[name]
    make: Callable[[type[Any]], Any] = MADE.get(name, _made)
    check_processor(
        lambda: make(kind), max_examples=EXAMPLES, fails=TripWire, **PROMISES.get(name, {})
    )


def test_every_entry_is_of_an_example() -> None:
    """An example that is renamed takes its entry with it."""
    assert {*MADE, *PROMISES, *ASKS_AGAIN} <= SHOWN.keys()


class Forgetful:
    """An example gone wrong: what it does depends on where the text was cut."""

    id = "forgetful"

    def process_output_stream(self, args: Any) -> Any:
        """Capitalise the first letter of every piece."""
        if args.part.type == "text-delta":
            args.part.text = args.part.text.capitalize()
        return args.part


def test_a_processor_that_sees_the_cuts_is_found() -> None:
    """Or the tests above show nothing."""
    with pytest.raises(LawError, match="chunking"):
        check_processor(Forgetful, max_examples=EXAMPLES)
