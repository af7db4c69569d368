"""`docs/models.md` names what there is: every provider and every error, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streampipe import errors
from streampipe.errors import ConfigurationError, ModelError, ScriptError
from streampipe.models import _catalog, resolve_model

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "models.md").read_text(encoding="utf-8")
CLASSES = {
    "Responses": "OpenAIResponsesModel",
    "Chat Completions": "OpenAIChatModel",
    "Messages": "AnthropicModel",
    "generateContent": "GoogleModel",
}


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table behind a heading, without its head."""
    table = PAGE.split(f"## {heading}\n", 1)[1].split("| --- |", 1)[1]
    lines = table.splitlines()[1:]
    end = next(number for number, line in enumerate(lines) if not line.startswith("|"))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[:end]]


def test_every_prefix_has_its_row() -> None:
    """The table is the catalog's, sorted."""
    named = [row[0].strip("`") for row in rows("Router ids")]
    built_in = [name for name, made in _catalog._PROVIDERS.items() if not _registered(made)]
    assert named == sorted(built_in)


def _registered(factory: object) -> bool:
    return type(factory).__module__ != _catalog.__name__


@pytest.mark.parametrize("row", rows("Router ids"), ids=lambda row: str(row[0]))
def test_a_row_says_what_is_so(row: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the variables it names there is no model, with them one of the protocol it names."""
    prefix, protocol, environment = row
    variables = re.findall(r"`([A-Z_]+)`", environment)
    for variable in variables:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    router_id = f"{prefix.strip('`')}/some-model"
    if variables:
        with pytest.raises(ConfigurationError, match=variables[0]):
            resolve_model(router_id)
    for variable in variables:
        monkeypatch.setenv(
            variable, "https://127.0.0.1" if variable.endswith(("URL", "ENDPOINT")) else "k"
        )
    assert type(resolve_model(router_id)).__name__ == CLASSES[protocol]


def test_every_error_of_a_model_has_its_row() -> None:
    """All that a caller can catch, by name; what only tests meet, and the roots, are elsewhere."""

    def below(cls: type[ModelError]) -> set[str]:
        return {cls.__name__}.union(*map(below, cls.__subclasses__()))

    named = {name for row in rows("Failures") for name in re.findall(r"`(\w+)`", row[0])}
    roots = {"ModelError", "ProviderError", "ModelTimeoutError", ScriptError.__name__}
    ours = {name for name in below(ModelError) if name in errors.__all__}
    assert named == ours - roots
