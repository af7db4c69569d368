"""Options of the whole shelf: none of a wrong type is taken, whatever the class."""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

import pytest

from streampipe import Agent, processors
from streampipe.contracts import Processor
from streampipe.errors import ConfigurationError
from streampipe.processors import (
    BatchParts,
    Guard,
    SmoothStream,
)
from streampipe.testing import ScriptedModel, call

SHELF: dict[str, type[Any]] = {
    name: each
    for name, each in ((name, getattr(processors, name)) for name in processors.__all__)
    if inspect.isclass(each)
    and not inspect.isabstract(each)
    and (issubclass(each, Processor | BatchParts | SmoothStream) or name.endswith("Store"))
    and name != "CacheStore"
}
ANYTHING = {"schema", "server", "fallback", "path"}  # their types say nothing


class Nothing:
    """What no option takes."""


def options_of(cls: type[Any]) -> list[str]:
    """The names of a class's options, those of its bases' `TypedDict` left to these."""
    options = inspect.signature(cls).parameters.values()
    named = [
        each.name for each in options if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
    ]
    return [name for name in named if name not in ANYTHING]


PAIRS = [(name, option) for name, cls in sorted(SHELF.items()) for option in options_of(cls)]


def test_the_shelf_is_all_there() -> None:
    """Else what follows asserts little."""
    least = 25
    assert len(SHELF) >= least
    assert {"Guard", "PIIDetector", "ResponseCache", "MemoryStore"} <= SHELF.keys()


@pytest.mark.parametrize(("name", "option"), PAIRS)
def test_a_value_of_another_type_is_refused(name: str, option: str) -> None:
    """By the class's and the option's name, before anything else is looked at."""
    with pytest.raises(ConfigurationError, match=rf"^{name}: {option}\b"):
        SHELF[name](**{option: Nothing()})


@pytest.mark.parametrize("name", sorted(SHELF))
def test_an_option_that_there_is_not_is_refused(name: str) -> None:
    """Also where a class hands options on to what it is built from."""
    with pytest.raises(ConfigurationError, match=rf"^{name}: .*'stratgy'"):
        SHELF[name](stratgy="block")


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("PIIDetector", {"stratgy": "block"}, "did you mean 'strategy'"),
        ("Guard", {"check": print, "windw": "line"}, "'windw'; did you mean 'window'"),
        ("Guard", {}, "missing a required argument: 'check'"),
        ("TokenLimiter", {"limit": True}, "limit must be a whole number of 1 or more, not True"),
        ("RegexFilter", {"rules": "x", "retry": 1}, "retry must be True or False, not 1"),
        ("BatchParts", {"size": 3, "id": ""}, "id must be a name, not ''"),
        ("Guard", {"check": print, "timeout": "30"}, "timeout must be a finite number of seconds"),
        ("Guard", {"check": print, "last_message_only": "no"}, "last_message_only must be True or"),
        ("Guard", {"check": print, "on_violation": "print"}, "on_violation must be a function"),
    ],
)
def test_nothing_is_converted_and_a_slip_is_told(
    name: str, options: dict[str, Any], told: str
) -> None:
    """`"30"` is no number of seconds and `1` is no `True`."""
    with pytest.raises(ConfigurationError, match=f"^{name}: .*{told}"):
        SHELF[name](**options)


def test_the_signature_stays_for_editors_and_for_the_registry() -> None:
    """What checks the options is not seen."""
    assert list(inspect.signature(SmoothStream).parameters) == ["delay", "by", "id"]
    assert "delay" in get_type_hints(SmoothStream.__init__)
    assert "window" not in inspect.signature(Guard).parameters


async def test_one_name_needs_no_list() -> None:
    """As with `covers` and `presets`, everywhere."""
    personal = processors.PIIDetector("email", method="placeholder")
    model = ScriptedModel([["Ask ada@example.com."], [call("pay")]], repeat=True)
    agent = Agent(model=model, output_processors=[personal, processors.ToolCallGuard(deny="pay")])
    assert (await agent.generate("Whom?")).text == "Ask [EMAIL]."
    assert (await agent.generate("Pay.")).tripwire is not None
