"""Results of tools that the provider ran: a change by a hook is not lost, whatever holds chunks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from streampipe import Agent, ToolCall, ToolResult
from streampipe import operators as ops
from streampipe.chunks import Chunk
from streampipe.testing import ScriptedModel


class Redact:
    """Replaces every result."""

    id = "redact"

    def process_tool_result(self, args: Any) -> None:
        """Fails the test if the call cannot be found."""
        assert args.message_list.update_tool_invocation(args.tool_call_id, result="[gone]")


class DropCalls:
    """Lets no call through."""

    id = "drop-calls"

    def process_output_stream(self, args: Any) -> Chunk | None:
        """Drop calls, pass the rest."""
        return None if isinstance(args.part, ToolCall) else args.part


async def later(chunk: Chunk) -> Chunk:
    """Hold a chunk for some turns of the loop."""
    for _ in range(5):
        await asyncio.sleep(0)
    return chunk


@pytest.mark.parametrize(
    "before",
    [[], [ops.map_async(later)], [ops.map_async(later, concurrency=4)], [DropCalls()]],
    ids=["nothing", "one by one", "windowed", "a processor that drops the call"],
)
async def test_a_replaced_result_is_shown_and_stored_whatever_stands_before(before: Any) -> None:
    """The original is in no chunk, no accessor and no message; parts keep the chunks' order."""
    script: list[Any] = [
        "before",
        ToolCall("c1", "search", {}, provider_executed=True),
        ToolResult("c1", "search", "SECRET", provider_executed=True),
        "after",
    ]
    agent = Agent(model=ScriptedModel([script]), output_processors=[*before, Redact()])
    async with agent.stream("hi") as run:
        chunks = [chunk async for chunk in run]
        result = await run.result()
    assert "SECRET" not in repr(chunks) + repr(result)
    assert [r.result for r in result.tool_results] == ["[gone]"]
    kinds = [part.type for part in result.messages[0].parts]
    dropped = any(isinstance(element, DropCalls) for element in before)
    assert kinds == (["text", "text"] if dropped else ["text", "tool-invocation", "text"])
