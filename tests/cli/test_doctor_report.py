"""`streampipe doctor`: key and address, what is shown, and how the command ends."""

from __future__ import annotations

import asyncio
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from streampipe.cli._checks import WIDEST
from streampipe.cli._doctor import CHECK_NAMES, CheckResult, check_provider, show_results
from streampipe.errors import (
    AuthenticationError,
    ConfigurationError,
    QuotaError,
)
from streampipe.models import register_provider
from streampipe.testing import (
    Answer,
    ModelServer,
    ScriptedModel,
    call,
    fail,
    run_virtual,
)
from streampipe.testing._protocols import ProtocolName
from tests.cli.commands import RunCommand
from tests.cli.providers import (
    CALL,
    KEY,
    NUMBERS,
    OBJECT,
    REFUSED,
    TEXT,
    TOLD,
    UNHEARD_OF,
    WELL,
    forget_providers,
    in_each_protocol,
    quick,
    refusal,
    results_of,
)


@pytest.fixture(autouse=True)
def providers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The providers as they are without a key; what a test registers is gone afterwards."""
    forget_providers(monkeypatch)


# --- key and address ---------------------------------------------------------------------------


async def test_a_missing_key_is_told_before_any_connection() -> None:
    """The variable is named, nothing is asked."""
    async with ModelServer(WELL) as server:
        found = [r async for r in check_provider("openai/gpt-5-mini", base_url=server.base_url)]
        assert not server.connections
    assert found[0].error == "ConfigurationError"
    assert "set OPENAI_API_KEY " in found[0].seen
    assert [each.status for each in found] == ["failed"] + ["skipped"] * (len(CHECK_NAMES) - 1)


@pytest.mark.parametrize("router_id", ["", "gpt-5-mini", "openai/", "nobody/model"])
async def test_a_model_that_nobody_has(router_id: str) -> None:
    """What is wrong with the name is told by the first check."""
    found = [each async for each in check_provider(router_id)]
    assert found[0].status == "failed"
    assert "providers: " in found[0].seen or "known: " in found[0].seen
    assert {each.status for each in found[1:]} == {"skipped"}


async def test_another_address_is_given_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """`base_url` is asked in place of the provider's own address, with the provider's key."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    async with ModelServer([TEXT, fail(status=401)], repeat=True) as server:
        address = server.base_url.replace("//", "//user:password@")
        found = check_provider("openai-chat/gpt", base_url=server.base_url)
        assert [(await anext(found)).status, (await anext(found)).status] == ["ok", "ok"]
        await found.aclose()  # type: ignore[attr-defined]  # a generator has it
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        assert server.requests[0].body["model"] == "gpt"
        found = check_provider("openai-chat/gpt", base_url=address)
        seen = (await anext(found)).seen
        await found.aclose()  # type: ignore[attr-defined]  # as above
    assert seen == f"asking {server_url(server)} with a key"


def server_url(server: ModelServer) -> str:
    """Where a server has listened, as its last request tells."""
    return f"http://{server.requests[0].headers['host']}/v1"


@pytest.mark.parametrize("base_url", ["localhost", "ftp://localhost", "http://user:hidden@"])
async def test_an_address_that_is_none(base_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused without being shown: it may hold a password."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    first = await anext(check_provider("openai-chat/gpt", base_url=base_url))
    assert (first.status, first.error) == ("failed", "ConfigurationError")
    assert "base_url must be an address" in first.seen
    assert "hidden" not in first.seen


async def test_a_model_of_your_own_has_no_address() -> None:
    """Another address for what is not asked over HTTP is refused."""
    register_provider("tested", lambda _: ScriptedModel([]))
    results = await results_of(base_url="http://localhost:1")
    assert results["key and address"].seen == (
        "--base-url: a ScriptedModel has no address to change; leave it out"
    )


@pytest.mark.parametrize("limit", [0.0, -1.0, math.inf, math.nan])
async def test_a_limit_that_is_none(limit: float) -> None:
    """The time of a check is a positive number of seconds."""
    with pytest.raises(ConfigurationError, match="timeout must be a positive number of seconds"):
        await anext(check_provider("openai/gpt", limit=limit))


# --- what is shown -----------------------------------------------------------------------------

ECHOES: Mapping[str, Callable[[], Iterable[Any]]] = {
    "text": lambda: [[f"Your key is {KEY}. " * 9], CALL, [KEY], OBJECT, [KEY], [KEY]],
    "errors": lambda: [refusal(f"bad key {KEY}")] * 5,
    "statuses": lambda: [fail(status=403, body=f"go away, {KEY}")] * 5,
    "pages": lambda: [Answer(KEY.encode() * 50, headers={"content-type": "text/html"})] * 5,
    "arguments": lambda: [TEXT, [call("parcel", {"order": KEY})], [KEY], [f'{{"name":"{KEY}"}}']],
    "names": lambda: [TEXT, [call(KEY, {})], [KEY], OBJECT, NUMBERS, REFUSED],
    "objects": lambda: [TEXT, CALL, TOLD, [f'{{"name":"{KEY}","country":"","rivers":["{KEY}"]}}']],
}


@in_each_protocol
@pytest.mark.parametrize("options", [[], ["--json"]], ids=["table", "json"])
@pytest.mark.parametrize("place", ECHOES)
async def test_the_key_is_never_shown(
    place: str,
    options: list[str],
    command: RunCommand,
    protocol: ProtocolName,
) -> None:
    """Wherever the provider quotes the key, and however much is cut off of what it says."""
    async with ModelServer(ECHOES[place]()) as server:
        register_provider("tested", lambda name: server.model(name, protocol=protocol, api_key=KEY))
        ran = await asyncio.to_thread(command, "doctor", "tested/model", *options)
    assert server.requests
    assert ran.exit_code in (0, 1), ran.output
    assert KEY[:12] not in ran.output + ran.stderr
    assert "text" in ran.stdout


@given(st.builds(str.__mul__, st.text(), st.integers(1, 500)))
def test_what_is_seen_is_fit_for_a_terminal(message: str) -> None:
    """Whatever a provider says is shown short, on one line, and as nothing a terminal obeys."""

    async def first() -> CheckResult:
        model = ScriptedModel([[fail(AuthenticationError(message))]])
        register_provider("said", lambda _: model)
        found = [each async for each in check_provider("said/model")]
        return found[1]

    result = run_virtual(first())
    assert result.seen.isprintable()
    assert len(result.seen) <= WIDEST + 4
    assert json.loads(result.to_json())["seen"] == result.seen


@pytest.fixture
def well(command: RunCommand) -> Callable[..., Any]:
    """Runs the command on a scripted provider, well unless said otherwise."""

    def run(*options: str, text: Any = TEXT) -> Any:
        models = {"model": ScriptedModel([text, *quick()[1:]])}
        stranger = ScriptedModel([fail(UNHEARD_OF)])
        register_provider("tested", lambda name: models.get(name, stranger))
        return command("doctor", "tested/model", *options)

    return run


def test_the_table_has_a_row_for_each_check(well: Callable[..., Any]) -> None:
    """Names, statuses and findings stand in a plain table; all is fine, so the command succeeds."""
    ran = well()
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout.isascii()
    assert "\x1b" not in ran.stdout
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in ran.stdout.splitlines()]
    rows = [row for row in cells if len(row) == 6]
    assert rows[0] == ["check", "status", "first ms", "total ms", "chunks/s", "what was seen"]
    assert [row[:2] for row in rows[1:]] == [[name, "ok"] for name in CHECK_NAMES]
    assert rows[-1][-1] == "InvalidRequestError: refused: unheard of"


@pytest.mark.parametrize(
    ("status", "colour"),
    [("ok", "32"), ("not supported", "33"), ("failed", "1;31"), ("skipped", "2")],
)
def test_a_status_has_a_colour_on_a_terminal(status: Any, colour: str) -> None:
    """What failed is seen before it is read."""
    shown = Console(
        file=io.StringIO(), force_terminal=True, color_system="standard", no_color=False
    )
    with shown.capture() as captured:
        show_results([CheckResult(name="text", status=status, seen="")], shown)
    assert f"\x1b[{colour}m{status}\x1b[0m" in captured.get()


def test_markup_in_what_is_seen_is_no_markup(well: Callable[..., Any]) -> None:
    """Brackets that a provider writes are shown as they are."""
    assert "[/red] [bold]oops" in well(text=[fail(QuotaError("[/red] [bold]oops"))]).stdout


def test_a_failure_ends_with_1_and_says_what_to_do(well: Callable[..., Any]) -> None:
    """The error's class and message stand in the table, advice below them."""
    ran = well(text=[fail(QuotaError("no credit"))])
    assert (ran.exit_code, ran.stderr) == (1, "")
    assert "QuotaError: no credit" in ran.stdout
    assert "> check the account's credit" in ran.stdout


def test_what_is_not_supported_ends_with_0(well: Callable[..., Any]) -> None:
    """A provider is not to blame for what it does not offer."""
    ran = well(text=["one", " two"])
    assert "not supported" in ran.stdout
    assert ran.exit_code == 0


@pytest.mark.parametrize(
    ("status", "is_fine"),
    [("ok", True), ("not supported", True), ("failed", False), ("skipped", False)],
)
def test_what_was_not_looked_at_is_not_known_to_work(status: Any, *, is_fine: bool) -> None:
    """A check that was skipped is as little reason for success as one that failed."""
    assert CheckResult(name="text", status=status, seen="").is_fine is is_fine


def test_json_has_a_line_for_each_check(well: Callable[..., Any]) -> None:
    """Each line is an object with the same keys; what is not known is null."""
    ran = well("--json")
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert [line["check"] for line in lines] == list(CHECK_NAMES)
    assert len({tuple(line) for line in lines}) == 1
    assert lines[0] == {
        "check": "key and address",
        "status": "ok",
        "firstChunkMs": None,
        "totalMs": None,
        "chunksPerSecond": None,
        "seen": "a ScriptedModel of your own",
        "error": None,
        "advice": None,
    }
    assert lines[1]["totalMs"] >= lines[1]["firstChunkMs"] >= 0


def test_json_is_in_milliseconds() -> None:
    """Seconds within, milliseconds outside; a rate in chunks a second."""
    result = CheckResult(
        name="text", status="ok", seen="", first_chunk=0.25, total=1.5, rate=12.345
    )
    told = json.loads(result.to_json())
    assert (told["firstChunkMs"], told["totalMs"], told["chunksPerSecond"]) == (250, 1500, 12.3)


@pytest.mark.parametrize("timeout", ["0", "-1", "inf", "nan"])
def test_a_bad_timeout_ends_with_2(well: Callable[..., Any], timeout: str) -> None:
    """It is misuse, said in a sentence, before anything is asked."""
    ran = well("--timeout", timeout)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("streampipe: timeout must be a positive number of seconds, not ")


@pytest.mark.parametrize("options", [[], ["a/b", "--timeout", "soon"], ["a/b", "c/d"], ["--yaml"]])
def test_wrong_arguments_end_with_2(command: RunCommand, options: list[str]) -> None:
    """A missing model, a word for a number and what is unknown are misuse."""
    assert command("doctor", *options).exit_code == 2


def test_help_tells_what_it_costs(command: RunCommand) -> None:
    """Who runs it pays for it, so how much is said first."""
    assert "six short calls" in command("doctor", "--help").stdout
