"""Providers that `streampipe doctor` examines, and how they are examined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from streampipe.cli._doctor import CHECK_NAMES, CheckResult, check_provider
from streampipe.contracts import Model
from streampipe.errors import (
    InvalidRequestError,
)
from streampipe.models import _catalog, register_provider
from streampipe.models._http import clock
from streampipe.testing import (
    ModelServer,
    ScriptedModel,
    call,
    fail,
    faulty,
    reasoning,
    run_virtual,
)
from streampipe.testing._protocols import PROTOCOLS, ProtocolName

KEY = "canary-4f9a77e1b2c3d4"
SHORT = 1.0  # seconds for a check of which one hangs: the others take milliseconds

# What a provider that is well answers, call by call.
TEXT: list[Any] = [reasoning("Let me count."), "one,", " two,", " three"]
CALL: list[Any] = [call("parcel", {"order": 7}, pieces=3)]
TOLD: list[Any] = ["It is in ", "Porto."]
OBJECT: list[Any] = ['{"name": "Porto", "country": ', '"Portugal", "rivers": ["Douro"]}']
NUMBERS = faulty(["one ", "two ", "three"], "stall", at=b"two")
REFUSED = fail(status=404)
UNHEARD_OF = InvalidRequestError("unheard of")
WELL: list[Any] = [TEXT, CALL, TOLD, OBJECT, NUMBERS, REFUSED]
ASKING = ("text", "tool call", "structured output", "cancel", "unknown model")

Results = Mapping[str, CheckResult]
in_each_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)


def forget_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    """No keys of the machine, no pauses; what a test registers is gone afterwards."""
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(clock, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(_catalog, "_PROVIDERS", dict(_catalog._PROVIDERS))


async def results_of(limit: float = 30.0, **options: Any) -> Results:
    """What each check finds of the provider that is registered as `tested`."""
    found = [each async for each in check_provider("tested/model", limit=limit, **options)]
    assert [each.name for each in found] == list(CHECK_NAMES)
    return {each.name: each for each in found}


async def examined(
    server: ModelServer, protocol: ProtocolName = "openai-chat", limit: float = 30.0
) -> Results:
    """What each check finds of a server."""
    register_provider(
        "tested", lambda name: server.model(name, protocol=protocol, api_key=KEY, max_retries=0)
    )
    return await results_of(limit)


def scripted(**turns: Any) -> Results:
    """What each check finds of a scripted model, in no time; the rest of it is well."""
    pieces = {"text": TEXT, "call": CALL, "told": TOLD, "object": OBJECT, "numbers": ["one"]}
    model = ScriptedModel([*{**pieces, **turns}.values()])
    return examined_in_no_time(model)


def examined_in_no_time(model: Model, unknown: Any = fail(UNHEARD_OF)) -> Results:  # noqa: B008 - frozen
    """What each check finds of a model, on a jumping clock; another name is told `unknown`."""
    stranger = ScriptedModel([unknown])
    register_provider("tested", lambda name: model if name == "model" else stranger)
    return run_virtual(results_of())


def statuses(results: Results) -> dict[str, str]:
    """The status of each check by its name."""
    return {name: result.status for name, result in results.items()}


ALL_OK = dict.fromkeys(CHECK_NAMES, "ok")


def refusal(message: str) -> Any:
    """A 400 that says so, in words that every protocol's body has."""
    return fail(status=400, body={"error": {"message": message}})


def quick() -> list[Any]:
    """A script for all checks but that of an unknown model."""
    return [TEXT, CALL, TOLD, OBJECT, ["one"]]
