"""A script's turn as a server of the Responses protocol tells it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from streampipe.chunks import Usage
from streampipe.testing._script import Call, Delay, Failure, Piece, Reasoning, Turn

CREATED = 1_700_000_000  # a script has no clock
_WHY = {"length": "max_output_tokens", "content-filter": "content_filter"}
_ERRORS = {
    401: "invalid_api_key",
    402: "insufficient_quota",
    429: "rate_limit_exceeded",
    503: "server_is_overloaded",
}


def error(message: str, status: int = 500) -> dict[str, Any]:
    """An error body; its code is the one that belongs to the HTTP status."""
    kind = "invalid_request_error" if status < 500 else "server_error"  # noqa: PLR2004 - where the server's faults begin
    code = _ERRORS.get(status)
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def events(
    turn: Turn,
    number: int,
    model: str,
    *,
    usage: bool,  # noqa: ARG001 - the protocol always tells it
) -> Iterator[bytes | Delay | Failure]:
    """The events of a streamed answer, as bytes; delays and failures where the script has them.

    Pieces of text that follow one another are one message, pieces of reasoning one item.
    """
    answer = _Answer(turn, number, model)
    begun = False
    for place, piece in enumerate(turn.pieces):
        if not begun and not isinstance(piece, Delay):
            begun = True
            yield from answer.begin()
        if isinstance(piece, Delay | Failure):
            yield piece
        else:
            yield from answer.write(piece, place)
    if not begun:
        yield from answer.begin()
    if not turn.incomplete:
        yield from answer.end()


def completion(turn: Turn, number: int, model: str) -> dict[str, Any]:
    """The answer to a request that does not ask for a stream."""
    answer = _Answer(turn, number, model)
    for place, piece in enumerate(turn.pieces):
        list(answer.write(piece, place))
    list(answer.close())
    return answer.response(answer.status)


class _Answer:
    """The items of an answer, one open at a time, and the events that tell them."""

    def __init__(self, turn: Turn, number: int, model: str) -> None:
        self._turn = turn
        self._number = number
        self._model = model
        self._sent = 0  # events
        self._output: list[dict[str, Any]] = []
        self._open: dict[str, Any] | None = None
        self._text: list[str] = []  # of the item that is open
        is_whole = turn.reason in ("stop", "tool-calls")
        self.status = "completed" if is_whole else "incomplete"

    def begin(self) -> Iterator[bytes]:
        yield self._event("response.created", response=self.response("in_progress"))
        yield self._event("response.in_progress", response=self.response("in_progress"))

    def write(self, piece: Piece, place: int) -> Iterator[bytes]:
        match piece:
            case str():
                yield from self._to("message")
                yield self._said("response.output_text.delta", piece)
            case Reasoning():
                yield from self._to("reasoning")
                yield self._said("response.reasoning_summary_text.delta", piece.text)
            case Call():
                yield from self._call(piece, place)
            case _:
                pass  # the server refuses other pieces when it is built

    def close(self) -> Iterator[bytes]:
        """Tell the open item as a whole."""
        item, text = self._open, "".join(self._text)
        if item is None:
            return
        self._open, self._text = None, []
        if item["type"] == "message":
            part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
            yield self._event("response.output_text.done", **self._place(item), text=text)
            yield self._event("response.content_part.done", **self._place(item), part=part)
            item |= {"content": [part], "status": "completed"}
        else:
            part = {"type": "summary_text", "text": text}
            done = "response.reasoning_summary_text.done"
            yield self._event(done, **self._place(item), text=text)
            yield self._event(
                "response.reasoning_summary_part.done", **self._place(item), part=part
            )
            sealed = f"encrypted-{self._number}-{len(self._output)}"
            item |= {"summary": [part], "encrypted_content": sealed}
        yield self._item_event("done", item)
        self._output.append(item)

    def end(self) -> Iterator[bytes]:
        yield from self.close()
        yield self._event(f"response.{self.status}", response=self.response(self.status))

    def response(self, status: str) -> dict[str, Any]:
        why = self._turn.reason
        is_cut = status == "incomplete"
        return {
            "id": f"resp_{self._number}",
            "object": "response",
            "created_at": CREATED,
            "status": status,
            "error": None,
            "incomplete_details": {"reason": _WHY.get(why, why)} if is_cut else None,
            "instructions": None,
            "metadata": {},
            "model": self._model,
            "output": self._output.copy(),
            "parallel_tool_calls": True,
            "store": False,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "usage": None if status == "in_progress" else _usage(self._turn),
        }

    def _to(self, kind: str) -> Iterator[bytes]:
        """Have an item of a kind open."""
        if self._open is not None and self._open["type"] == kind:
            return
        yield from self.close()
        item: dict[str, Any] = {"type": kind}
        if kind == "message":
            item["id"] = self._id("msg")
            item |= {"status": "in_progress", "role": "assistant", "content": []}
            part = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
            added = "response.content_part.added"
        else:
            item |= {"id": self._id("rs"), "summary": [], "encrypted_content": None}
            part = {"type": "summary_text", "text": ""}
            added = "response.reasoning_summary_part.added"
        yield self._item_event("added", item)
        yield self._event(added, **self._place(item), part=part)
        self._open = item

    def _said(self, kind: str, text: str) -> bytes:
        self._text.append(text)
        return self._event(kind, **self._place(self._open or {}), delta=text)

    def _call(self, piece: Call, place: int) -> Iterator[bytes]:
        yield from self.close()
        text = _arguments(piece)
        item = {
            "type": "function_call",
            "id": self._id("fc"),
            "call_id": piece.id or f"call_{self._number}_{place}",
            "name": piece.name,
            "arguments": "",
            "status": "in_progress",
        }
        where = {"item_id": item["id"], "output_index": len(self._output)}
        yield self._item_event("added", item)
        size = max(1, -(-len(text) // max(1, piece.pieces)))
        for start in range(0, len(text), size):
            delta = text[start : start + size]
            yield self._event("response.function_call_arguments.delta", **where, delta=delta)
        done = "response.function_call_arguments.done"
        yield self._event(done, **where, name=piece.name, arguments=text)
        item |= {"arguments": text, "status": "completed"}
        yield self._item_event("done", item)
        self._output.append(item)

    def _id(self, prefix: str) -> str:
        return f"{prefix}_{self._number}_{len(self._output)}"

    def _place(self, item: dict[str, Any]) -> dict[str, Any]:
        inner = "content_index" if item["type"] == "message" else "summary_index"
        logprobs: dict[str, Any] = {"logprobs": []} if item["type"] == "message" else {}
        return {"item_id": item["id"], "output_index": len(self._output), inner: 0, **logprobs}

    def _item_event(self, what: str, item: dict[str, Any]) -> bytes:
        index = len(self._output)
        return self._event(f"response.output_item.{what}", output_index=index, item=item)

    def _event(self, kind: str, **fields: Any) -> bytes:
        data = orjson.dumps({"type": kind, "sequence_number": self._sent, **fields})
        self._sent += 1
        return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"


def _arguments(piece: Call) -> str:
    if isinstance(piece.arguments, str):
        return piece.arguments
    return orjson.dumps(piece.arguments).decode()


def _usage(turn: Turn) -> dict[str, Any]:
    usage = turn.usage or Usage(1, len(turn.pieces))
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_input_tokens,
            "cache_write_tokens": 0,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }
