"""Router ids: which model a name means, and what is told when it means none."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe import models
from streampipe.errors import ConfigurationError
from streampipe.models import (
    AnthropicModel,
    GoogleModel,
    OpenAIChatModel,
    OpenAIResponsesModel,
    _catalog,
    register_provider,
    resolve_model,
)
from streampipe.models._http.endpoint import HttpModel
from streampipe.testing import ModelServer, ScriptedModel
from tests.models.test_call import collected

KEYS: dict[str, tuple[str, type[HttpModel], str]] = {
    "anthropic": ("ANTHROPIC_API_KEY", AnthropicModel, "x-api-key"),
    "deepseek": ("DEEPSEEK_API_KEY", OpenAIChatModel, "authorization"),
    "google": ("GEMINI_API_KEY", GoogleModel, "x-goog-api-key"),
    "groq": ("GROQ_API_KEY", OpenAIChatModel, "authorization"),
    "mistral": ("MISTRAL_API_KEY", OpenAIChatModel, "authorization"),
    "openai": ("OPENAI_API_KEY", OpenAIResponsesModel, "authorization"),
    "openai-chat": ("OPENAI_API_KEY", OpenAIChatModel, "authorization"),
    "openrouter": ("OPENROUTER_API_KEY", OpenAIChatModel, "authorization"),
    "xai": ("XAI_API_KEY", OpenAIChatModel, "authorization"),
}
ADDRESSES = ("OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "GOOGLE_API_KEY")


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """No keys of the machine; what a test registers is gone afterwards."""
    for variable in {*ADDRESSES, *(key for key, _, _ in KEYS.values())}:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(_catalog, "_PROVIDERS", dict(_catalog._PROVIDERS))


@pytest.mark.parametrize("prefix", KEYS)
def test_a_provider_with_a_key(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its variable the message names it; with it there is a model of its protocol."""
    variable, kind, header = KEYS[prefix]
    with pytest.raises(ConfigurationError, match=f"set {variable} "):
        resolve_model(f"{prefix}/some-model")
    monkeypatch.setenv(variable, "k")
    model = resolve_model(f"{prefix}/some-model")
    assert isinstance(model, kind)
    assert model.model_id == "some-model"
    assert model.provider == prefix.removesuffix("-chat")
    assert model._call.url.startswith("https://")
    assert model._call.headers[header].removeprefix("Bearer ") == "k"


def test_azure_is_asked_at_the_address_of_its_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    """Address and key are both needed; a slash at its end is none too many."""
    with pytest.raises(ConfigurationError, match="set AZURE_OPENAI_ENDPOINT"):
        resolve_model("azure/my-deployment")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://acme.openai.azure.com/")
    with pytest.raises(ConfigurationError, match="set AZURE_OPENAI_API_KEY"):
        resolve_model("azure/my-deployment")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "k")
    model = resolve_model("azure/my-deployment")
    assert isinstance(model, OpenAIChatModel)
    assert model._call.url == "https://acme.openai.azure.com/openai/v1/chat/completions"
    assert model.provider == "azure"


def test_ollama_needs_no_key() -> None:
    """A local server at its usual address."""
    model = resolve_model("ollama/llama3.2")
    assert isinstance(model, OpenAIChatModel)
    assert model._call.url == "http://localhost:11434/v1/chat/completions"
    assert model._call.headers == {}


async def test_any_compatible_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its address comes from the environment, and the key with it; without one it is asked for."""
    with pytest.raises(ConfigurationError, match="OPENAI_BASE_URL"):
        resolve_model("openai-compatible/m")
    async with ModelServer([["hi"]], repeat=True) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        await collected(resolve_model("openai-compatible/m"))
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        await collected(resolve_model("openai-compatible/m"))
        sent = [request.headers.get("authorization") for request in server.requests]
    assert sent == [None, "Bearer k"]


def test_a_model_id_may_have_slashes() -> None:
    """Only the first slash counts: routers and local servers name models so."""
    assert resolve_model("ollama/hf.co/acme/small").model_id == "hf.co/acme/small"


@pytest.mark.parametrize("router_id", ["gpt-5-mini", "openai/", "/m", "", "/"])
def test_half_a_router_id_is_refused(router_id: str) -> None:
    """The message shows how one looks."""
    with pytest.raises(ConfigurationError, match="such as 'openai/gpt-5-mini'"):
        resolve_model(router_id)


def test_an_unknown_provider_is_refused() -> None:
    """The message lists the known ones, registered ones included, and says how to add one."""
    register_provider("acme", lambda name: ScriptedModel([], model_id=name))
    with pytest.raises(ConfigurationError, match=r"'opnai'.*acme.*openai.*register_provider"):
        resolve_model("opnai/gpt-5-mini")


def test_a_registered_provider() -> None:
    """A factory makes the models of its prefix, also of one that was there before."""
    for prefix in ("acme", "openai"):
        register_provider(prefix, lambda name: ScriptedModel([], model_id=name))
        model = resolve_model(f"{prefix}/a/b")
        assert isinstance(model, ScriptedModel)
        assert model.model_id == "a/b"


@pytest.mark.parametrize("prefix", ["", "a/b", "/"])
def test_a_prefix_that_could_not_be_asked_for_is_refused(prefix: str) -> None:
    """It would never be found."""
    with pytest.raises(ConfigurationError, match="prefix"):
        register_provider(prefix, lambda name: ScriptedModel([], model_id=name))


def test_a_factory_that_is_none_is_refused() -> None:
    """It is told when it is registered, not when the model is needed."""
    with pytest.raises(ConfigurationError, match=r"acme.*factory"):
        register_provider("acme", "a model")  # type: ignore[arg-type]  # that is the mistake


@given(st.text())
def test_no_router_id_breaks_it(router_id: str) -> None:
    """Any text is a model or a configuration error."""
    try:
        model = resolve_model(router_id)
    except ConfigurationError:
        return
    assert router_id.endswith(model.model_id)


# --- what an import costs ------------------------------------------------------------------


def run(code: str) -> str:
    """What a fresh interpreter prints."""
    command = [sys.executable, "-c", code]
    made = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    return made.stdout.strip()


@pytest.mark.parametrize("module", ["streampipe", "streampipe.models", "streampipe.testing"])
def test_importing_does_not_import_an_http_client(module: str) -> None:
    """It would take longer than all the rest; who makes a model gets it."""
    assert run(f"import sys, {module}; print('httpx' in sys.modules)") == "False"


def test_a_model_is_imported_when_asked_for() -> None:
    """The lazy name is the class."""
    code = "import sys, streampipe.models as m; print(m.OpenAIChatModel, 'httpx' in sys.modules)"
    assert run(code) == "<class 'streampipe.models.openai_chat.OpenAIChatModel'> True"


def test_a_name_that_is_not_exported_is_an_attribute_error() -> None:
    """As with any module."""
    with pytest.raises(AttributeError, match=r"'streampipe\.models' has no attribute 'Nothing'"):
        _ = models.Nothing  # type: ignore[attr-defined]  # that is the mistake
