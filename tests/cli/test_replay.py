"""`streampipe replay`: a recording through an agent's output processors, both ends side by side."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from streampipe.testing import turn
from streampipe.testing._protocols import PROTOCOLS, ProtocolName
from tests.cli.commands import RunCommand

PROTOCOL = ["--protocol", "openai-chat"]


def recording(*deltas: dict[str, Any], reason: str = "stop", done: bool = True) -> bytes:
    """A stream of the chat-completions protocol, as a server would have sent it."""
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta} for delta in deltas]
    if done:
        choices.append({"index": 0, "delta": {}, "finish_reason": reason})
    events = [json.dumps({"id": "chat-1", "model": "m", "choices": [c]}) for c in choices]
    return b"".join(f"data: {e}\n\n".encode() for e in [*events, *(["[DONE]"] if done else [])])


SECRET = recording({"role": "assistant", "content": "It is "}, {"content": "swordfish"})
CALLS = recording(
    {
        "tool_calls": [
            {"index": 0, "id": "c1", "function": {"name": "ring", "arguments": '{"times": 2}'}},
            {"index": 1, "id": "c2", "function": {"name": "unheard_of", "arguments": "{}"}},
        ]
    },
    reason="tool_calls",
)


@pytest.fixture
def recorded(tmp_path: Path) -> Any:
    """Writes a recording and gives its path."""

    def write(data: bytes) -> str:
        file = tmp_path / "recorded.sse"
        file.write_bytes(data)
        return str(file)

    return write


def lanes(output: str) -> tuple[str, str]:
    """The two columns of a printed table."""
    rows = [line.split("|")[1:3] for line in output.splitlines() if line.count("|") == 3]
    return tuple("\n".join(cell.strip() for cell in column) for column in zip(*rows, strict=True))  # type: ignore[return-value]  # two columns


@pytest.mark.parametrize("agent", ["redacting", "in_place"])
def test_left_is_the_original_and_right_what_a_client_gets(
    command: RunCommand, module: str, recorded: Any, agent: str
) -> None:
    """The lanes differ where a processor changed a chunk, even if it did so in place."""
    ran = command("replay", recorded(SECRET), *PROTOCOL, "--agent", f"{module}:{agent}")
    assert (ran.exit_code, ran.stderr) == (0, "")
    left, right = lanes(ran.stdout)
    assert left.startswith("from the model")
    assert right.startswith("to the client")
    assert "text-delta 'swordfish'" in left
    assert "text-delta '[secret]'" in right
    assert "swordfish" not in right
    assert "secret" not in left


def test_a_chunk_stands_beside_what_became_of_it(
    command: RunCommand, module: str, recorded: Any
) -> None:
    """What the client got on account of a chunk is in the chunk's row."""
    ran = command("replay", recorded(SECRET), *PROTOCOL, "--agent", f"{module}:redacting")
    row = next(line for line in ran.stdout.splitlines() if "'swordfish'" in line)
    assert "'[secret]'" in row


def test_without_an_agent_both_lanes_are_alike(command: RunCommand, recorded: Any) -> None:
    """A recording can be looked at by itself: all that the model sent, the client gets."""
    ran = command("replay", recorded(SECRET), *PROTOCOL)
    left, right = lanes(ran.stdout)
    assert ran.exit_code == 0
    model = [line for line in left.splitlines()[1:] if line]
    assert "text-delta 'It is '" in model
    own = ("start", "step-start", "step-finish", "to the client")
    sent = [line for line in right.splitlines() if line and not line.startswith(own)]
    assert sent == model


def test_tools_of_a_recording_are_not_run(command: RunCommand, module: str, recorded: Any) -> None:
    """A replay has no effects: tools that the agent has, and tools that it lacks, only seem to."""
    ran = command("replay", recorded(CALLS), *PROTOCOL, "--agent", f"{module}:redacting")
    _, right = lanes(ran.stdout)
    assert ran.exit_code == 0
    assert right.count("tool-result") == right.count("[not run: this is a replay]") == 2
    assert sys.modules[module].ran == []


def test_only_output_processors_take_part(command: RunCommand, module: str, recorded: Any) -> None:
    """A recording was asked for already, and says the same again: nothing before it is run."""
    options = [*PROTOCOL, "--agent", f"{module}:strict"]
    assert command("replay", recorded(SECRET), *options).exit_code == 0
    cut = command("replay", recorded(recording({"content": "It is "}, done=False)), *options)
    assert (cut.exit_code, cut.stdout.count("step-start")) == (1, 1)


def test_a_guard_that_would_have_blocked_ends_it_with_3(
    command: RunCommand, module: str, recorded: Any
) -> None:
    """The lanes are shown up to the block; who blocked it is told as `run` tells it."""
    ran = command("replay", recorded(SECRET), *PROTOCOL, "--agent", f"{module}:guarded")
    left, right = lanes(ran.stdout)
    assert (ran.exit_code, ran.stderr) == (3, "streampipe: blocked by 'guard': a password\n")
    assert "tripwire" in right
    assert "tripwire" not in left
    assert "swordfish" not in right


def test_a_broken_processor_ends_it_with_1(command: RunCommand, module: str, recorded: Any) -> None:
    """It is named on standard error, whole, however narrow the table is."""
    ran = command("replay", recorded(SECRET), *PROTOCOL, "--agent", f"{module}:broken")
    assert ran.exit_code == 1
    assert "processor 'broken', process_output_stream: " in ran.stderr


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "the stream stopped without"),
        (b"no stream at all\n", "the stream stopped without"),
        (b"data: {\n\n", "an event is no JSON"),
        (b"data: \xff\n\n", "the stream is not UTF-8"),
        (recording({"content": "It is "}, done=False), "the stream stopped without"),
        (recording({"content": "It is "}, done=False) + b"data: [1]\n\n", "an event"),
    ],
    ids=["empty", "other", "no-json", "no-utf8", "cut", "no-object"],
)
def test_a_malformed_recording_ends_with_1(
    command: RunCommand, recorded: Any, data: bytes, told: str
) -> None:
    """What could be read is shown, what is wrong is said; there is no traceback."""
    ran = command("replay", recorded(data), *PROTOCOL)
    assert ran.exit_code == 1
    assert told in ran.stderr
    assert "Traceback" not in ran.output
    left, right = lanes(ran.stdout)
    assert ("'It is '" in left) == (b"It is " in data) == ("'It is '" in right)


def test_an_unknown_protocol_ends_with_2(command: RunCommand, recorded: Any) -> None:
    """The protocols that are known are listed."""
    ran = command("replay", recorded(SECRET), "--protocol", "morse")
    assert (ran.exit_code, ran.stdout) == (2, "")
    known = "anthropic, google, openai-chat, openai-responses"
    assert ran.stderr == f"streampipe: unknown protocol 'morse'; known: {known}\n"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("other", PROTOCOLS)
def test_a_recording_of_another_protocol_ends_with_2(
    command: RunCommand, recorded: Any, protocol: ProtocolName, other: ProtocolName
) -> None:
    """It is not read as an empty answer; the message says which protocol it is of."""
    events = PROTOCOLS[protocol].wire.events(turn("Hello"), 0, "m", usage=True)
    file = recorded(b"".join(event for event in events if isinstance(event, bytes)))
    ran = command("replay", file, "--protocol", other)
    assert ran.exit_code == (0 if other == protocol else 2)
    if other != protocol:
        told = f"there is no event of {other} in it; it reads as {protocol}\n"
        assert ran.stderr == f"streampipe: {file}: {told}"


def test_a_bad_agent_ends_with_2(command: RunCommand, module: str, recorded: Any) -> None:
    """As for `run`."""
    ran = command("replay", recorded(SECRET), *PROTOCOL, "--agent", f"{module}:number")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert "'number' is a int, not an Agent" in ran.stderr


@pytest.mark.parametrize("name", ["missing.sse", "."])
def test_a_file_that_is_none_ends_with_2(command: RunCommand, name: str) -> None:
    """A missing file and a folder are misuse, said by name."""
    ran = command("replay", name, *PROTOCOL)
    assert ran.exit_code == 2
    assert f"'{name}'" in ran.stderr


def test_the_protocol_has_to_be_said(command: RunCommand, recorded: Any) -> None:
    """It is not guessed."""
    ran = command("replay", recorded(SECRET))
    assert ran.exit_code == 2
    assert "--protocol" in ran.stderr


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_recording_of_every_protocol(
    command: RunCommand, module: str, recorded: Any, protocol: ProtocolName
) -> None:
    """What a server of the protocol sends is read, and goes through the agent's processors."""
    events = PROTOCOLS[protocol].wire.events(turn("It is ", "swordfish"), 0, "m", usage=True)
    file = recorded(b"".join(event for event in events if isinstance(event, bytes)))
    ran = command("replay", file, "--protocol", protocol, "--agent", f"{module}:redacting")
    assert ran.exit_code == 0
    left, right = lanes(ran.stdout)
    assert "swordfish" in left
    assert "swordfish" not in right
