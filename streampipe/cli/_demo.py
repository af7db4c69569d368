"""`streampipe demo`: three runs over real HTTP, and what each processor did in them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from streampipe.agent import Agent
from streampipe.chunks import Chunk, TextDelta
from streampipe.cli._lines import line
from streampipe.contracts import (
    ProcessAPIErrorArgs,
    ProcessInputArgs,
    Processor,
    ProcessOutputStepArgs,
    ProcessOutputStreamArgs,
    ProcessToolResultArgs,
    RunResult,
    ToolContext,
)
from streampipe.errors import ProviderError
from streampipe.messages import Message, MessageList
from streampipe.testing import ModelServer, Turn, call, delay, fail, turn
from streampipe.tools import tool

PAUSE = 0.015  # seconds between the pieces of an answer, so that it can be watched


class Shown(Processor):
    """A processor that keeps count of what it did."""

    def __init__(self) -> None:
        """Start with nothing done."""
        self.did: Counter[str] = Counter()


class RedactEmails(Shown):
    """Takes e-mail addresses out of tool results, before the model or the client sees them."""

    id = "redact-emails"

    def process_tool_result(self, args: ProcessToolResultArgs) -> MessageList | None:
        """Replace the address of a customer."""
        if not isinstance(args.result, dict) or "email" not in args.result:
            return None
        safe = {**args.result, "email": "[redacted]"}
        args.message_list.update_tool_invocation(args.tool_call_id, result=safe)
        self.did["tool results redacted"] += 1
        return args.message_list


class CountWords(Shown):
    """Sends the running count of words beside the text."""

    id = "count-words"
    stream_window = 0

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        """Count, and tell the client at every tenth word."""
        if isinstance(args.part, TextDelta):
            before = args.state.get("words", 0)
            after = args.state["words"] = before + args.part.text.count(" ")
            if after // 10 > before // 10:
                args.writer.custom(
                    {"type": "data-words", "data": {"words": after}, "transient": True}
                )
                self.did["data chunks sent"] += 1
        self.did["chunks seen"] += 1
        return args.part


class AskForAnswers(Shown):
    """Rejects an answer that is none, and has the model try again."""

    id = "ask-for-answers"

    def process_output_step(self, args: ProcessOutputStepArgs) -> None:
        """Look at the step's whole text."""
        if "not sure" in args.text:
            self.did["steps rejected"] += 1
            args.abort("the answer does not use what the tools found", retry=True)
        self.did["steps accepted"] += 1


class DropPrefill(Shown):
    """Cures what some providers answer 400 to: a conversation that ends with the assistant."""

    id = "drop-prefill"

    def process_api_error(self, args: ProcessAPIErrorArgs) -> dict[str, bool] | None:
        """Remove the assistant's words at the end, and ask again."""
        last = args.messages[-1]
        if not isinstance(args.error, ProviderError) or last.role != "assistant":
            return None
        args.message_list.remove_by_ids([last.id])
        self.did["API errors cured"] += 1
        return {"retry": True}


class BlockSecrets(Shown):
    """Ends the run before a password leaves."""

    id = "block-secrets"

    def process_input(self, args: ProcessInputArgs) -> list[Message]:
        """Let the question pass; the answer is what is watched."""
        self.did["prompts seen"] += 1
        return args.messages

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        """Look at all the text so far: the word may come in pieces."""
        if isinstance(args.part, TextDelta):
            text = "".join(p.text for p in args.stream_parts if isinstance(p, TextDelta))
            if "password" in text:
                self.did["runs blocked"] += 1
                args.abort("the answer gives a password away", metadata={"rule": "password"})
        return args.part


@tool
async def customer(order: int) -> dict[str, Any]:
    """Find out who placed an order."""
    await asyncio.sleep(0.1)
    return {"order": order, "name": "Ada", "email": "ada@example.com"}


@tool
async def parcel(order: int, context: ToolContext) -> dict[str, Any]:
    """Find out where the parcel of an order is."""
    await context.writer.custom({"type": "data-carrier", "data": {"asking": "carrier"}})
    await asyncio.sleep(0.1)
    return {"order": order, "place": "Porto", "arrives": "tomorrow"}


def _said(text: str) -> list[Any]:
    """A text as a model streams it: a word at a time."""
    words = text.split(" ")
    return [piece for word in words for piece in (f"{word} ", delay(PAUSE))]


SCRIPT: list[Turn] = [
    turn(
        *_said("Let me look that up."),
        call("customer", {"order": 7}, pieces=3),
        call("parcel", {"order": 7}, pieces=3),
    ),
    turn(*_said("I am not sure where it is.")),
    turn(
        *_said(
            "Hello Ada, your parcel is in Porto and arrives tomorrow, before noon if all goes well."
        )
    ),
    turn(fail(status=400, body={"error": {"message": "the last message must be the user's"}})),
    turn(*_said("Once upon a time there was a stream.")),
    turn(
        *_said("Of course: the password is"), *_said("swordfish, and here is the rest of it") * 20
    ),
]


async def play(console: Console) -> None:
    """Run the demo on `console`."""
    words, emails, answers = CountWords(), RedactEmails(), AskForAnswers()
    prefill, secrets = DropPrefill(), BlockSecrets()
    began = time.perf_counter()
    async with ModelServer(SCRIPT) as server:
        model = server.model()
        console.print(
            f"A model server listens on {server.base_url}; all runs go there over HTTP.\n",
            soft_wrap=True,
        )
        support = Agent(
            id="support",
            model=model,
            tools=[customer, parcel],
            output_processors=[words, emails, answers],
            max_processor_retries=1,
        )
        await _show(
            console,
            support,
            "Where is my order 7?",
            "1. Two tools side by side; a result redacted; an answer rejected, and tried again",
        )
        teller = Agent(id="teller", model=model, error_processors=[prefill])
        await _show(
            console,
            teller,
            [Message.user("Tell me a story."), Message.assistant("Once upon")],
            "2. The provider answers 400; an error processor cures it",
        )
        clerk = Agent(
            id="clerk",
            model=model,
            input_processors=[secrets],
            output_processors=[secrets],
        )
        await _show(console, clerk, "What is the password?", "3. A run is blocked")
        last = server.requests[-1]
        await last.wait()
        whole = (
            "was sent whole" if last.completed else "was cut off: the server saw the client leave"
        )
        console.print(f"  the blocked answer {whole}\n")
        server.assert_complete()
    _table(console, [words, emails, answers, prefill, secrets])
    console.print(f"{len(SCRIPT)} model calls in {time.perf_counter() - began:.1f} s")


async def _show(console: Console, agent: Agent, prompt: Any, title: str) -> RunResult:
    console.print(f"[bold]{escape(title)}[/]", soft_wrap=True)
    async with agent.stream(prompt) as run:
        async for chunk in run:
            console.print(line(chunk), soft_wrap=True)
        result = await run.result()
    told = f"text={result.text!r} finish_reason={result.finish_reason!r} retries={result.retries}"
    console.print(f"  [bold]result[/] {escape(told)}\n", soft_wrap=True)
    return result


def _table(console: Console, processors: list[Shown]) -> None:
    frame = box.HEAVY_HEAD if console.is_terminal else box.ASCII
    table = Table("processor", "what it did", title="What each processor did", box=frame)
    for processor in processors:
        did = ", ".join(f"{what}: {count}" for what, count in processor.did.items())
        table.add_row(processor.id, did or "nothing")
    console.print(table)
