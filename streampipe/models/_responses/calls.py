"""The calls of the Responses protocol: what kinds there are, who runs them, what they are given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from streampipe.chunks import (
    Chunk,
    FileChunk,
    ToolCall,
    ToolCallDelta,
    ToolCallInputEnd,
    ToolCallInputStart,
    ToolResult,
)
from streampipe.errors import ProviderStreamError
from streampipe.models._protocol.decoding import EXCERPT, CallIds, tool_call, typed


class CallKind(NamedTuple):
    """What a kind of call is made of.

    Attributes:
        name: of the tool; empty where each call names its own.
        inputs: the item's fields that hold the arguments. `arguments` are an object as JSON text
            by themselves, other fields become keys of one.
        is_ours: whether the caller runs it.
        has_result: whether the item holds what came of it, too.
    """

    name: str
    inputs: tuple[str, ...]
    is_ours: bool = False
    has_result: bool = False


CALLS: Mapping[str, CallKind] = {
    "apply_patch_call": CallKind("apply_patch", ("operation",), is_ours=True),
    "code_interpreter_call": CallKind("code_interpreter", ("code",), has_result=True),
    "computer_call": CallKind("computer", ("action", "actions"), is_ours=True),
    "custom_tool_call": CallKind("", ("input",), is_ours=True),
    "file_search_call": CallKind("file_search", ("queries",), has_result=True),
    "function_call": CallKind("", ("arguments",), is_ours=True),
    "image_generation_call": CallKind("image_generation", (), has_result=True),
    "local_shell_call": CallKind("local_shell", ("action",), is_ours=True),
    "mcp_approval_request": CallKind("", ("arguments",)),
    "mcp_call": CallKind("", ("arguments",), has_result=True),
    "program": CallKind("program", ("code",)),
    "shell_call": CallKind("shell", ("action",), is_ours=True),
    "tool_search_call": CallKind("tool_search", ("arguments",)),
    "web_search_call": CallKind("web_search", ("action",), has_result=True),
}
_CUT = ("cancelled", "in_progress", "incomplete")  # what an item's status is that has no end
_TEXTS = (("code",), ("input",))  # come in pieces of bare text


class Call:
    """A call in the making.

    Attributes:
        id: the call's own.
        told: the provider's id of the call, else of its item; another call may have it too.
        name: of the tool; empty until it is known and the call announced.
        is_ours: whether the caller runs it.
    """

    __slots__ = (
        "_kind",
        "_pieces",
        "_prefix",
        "_provider",
        "_type",
        "id",
        "is_ours",
        "name",
        "told",
    )

    def __init__(
        self, item_type: str, item: Mapping[str, Any], provider: str, call_ids: CallIds
    ) -> None:
        """Begin with what the item says at first."""
        kind = self._kind = CALLS[item_type]
        self._type = item_type
        self._provider = provider
        ids = (typed(item.get(name), str, f"item.{name}") for name in ("call_id", "id"))
        self.told = next(filter(None, ids), "")
        self.id = call_ids.of(self.told)
        self.name = ""
        self.is_ours = kind.is_ours
        if kind.name == "shell":  # in a container of the provider, or on the caller's machine
            environment = item.get("environment")
            place = environment.get("type") if isinstance(environment, dict) else None
            self.is_ours = place != "container_reference"
        elif kind.name == "tool_search":
            self.is_ours = item.get("execution") == "client"
        self._pieces: list[str] = []  # of the arguments, as JSON
        # Of arguments whose one field comes in pieces of bare text: what stands before that text.
        self._prefix = f'{{"{kind.inputs[0]}":"' if kind.inputs in _TEXTS else ""

    def announce(self, item: Mapping[str, Any], out: list[Chunk]) -> None:
        """Say that the call is being written, once its name is known."""
        if self.name:
            return
        self.name = self._kind.name or typed(item.get("name"), str, "item.name")
        if self.name:
            out.append(ToolCallInputStart(self.id, self.name, self._executed))
            out.extend(ToolCallDelta(self.id, piece) for piece in self._pieces)

    def add(self, text: str, out: list[Chunk]) -> None:
        """Take a piece of the input, and pass it on as a piece of the arguments."""
        if self._prefix:
            text = _escaped(text)
            text = text if self._pieces else self._prefix + text
        self._piece(text, out)

    def finish(self, item: dict[str, Any], out: list[Chunk]) -> None:
        """Tell the whole call, and what came of it where the item has that.

        One of the caller's that was cut off must not run: its arguments are told as text.

        Args:
            item: as it is at its end; empty if that never came.
            out: is given the chunks.

        Raises:
            ProviderStreamError: it has no name.
        """
        is_cut = self.is_ours and item.get("status", "" if item else "incomplete") in _CUT
        self.announce(item, out)
        if not self.name:
            msg = f"a {self._type} has no name: {''.join(self._pieces)[:EXCERPT]!r}"
            raise ProviderStreamError(msg)
        if self._prefix and self._pieces and not is_cut:
            self._piece('"}', out)
        elif not self._pieces and isinstance(text := item.get("arguments"), str) and text:
            self._piece(text, out)
        data = item.get("result") if self._kind.name == "image_generation" else None
        if data is not None:  # an image goes as a file, once
            item = {name: value for name, value in item.items() if name != "result"}
        out += (ToolCallInputEnd(self.id), self._whole(item, is_cut=is_cut))
        if self._kind.has_result and item:
            out.append(self.result(item))
        if isinstance(data, str) and data:
            mime_type = f"image/{item.get('output_format') or 'png'}"
            out.append(FileChunk(data, mime_type, None, {self._provider: {"item": item}}))

    def result(self, item: Mapping[str, Any]) -> ToolResult:
        """What came of a call that the provider ran: the item as it gave it."""
        is_failed = item.get("status") == "failed" or bool(item.get("error"))
        return ToolResult(
            self.id, self.name, item, is_error=is_failed or None, provider_executed=True
        )

    @property
    def has_input(self) -> bool:
        """Whether a piece of its input has come."""
        return bool(self._pieces)

    @property
    def _executed(self) -> bool | None:
        return None if self.is_ours else True

    def _piece(self, text: str, out: list[Chunk]) -> None:
        self._pieces.append(text)
        if self.name:
            out.append(ToolCallDelta(self.id, text))

    def _whole(self, item: Mapping[str, Any], *, is_cut: bool) -> ToolCall:
        """The call as its item tells it, else as its pieces do."""
        inputs = self._kind.inputs
        fields = {name: item[name] for name in inputs if item.get(name) is not None}
        args = fields.get("arguments") if inputs == ("arguments",) else fields
        noted = self._noted(item)
        more: dict[str, Any] = {
            "provider_executed": self._executed,
            "provider_metadata": {self._provider: noted} if noted else None,
        }
        if isinstance(args, dict) and (args or not self._pieces) and not is_cut:
            return ToolCall(self.id, self.name, args, **more)
        text = args if isinstance(args, str) and args else "".join(self._pieces)
        return tool_call(self.id, self.name, text, is_cut=is_cut, **more)

    def _noted(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """What has to be known to tell the call again: of most kinds, the whole item."""
        if self._type == "function_call":
            return {name: item[name] for name in ("caller", "namespace") if item.get(name)}
        if self._type == "image_generation_call":
            return {"type": self._type}  # the file has the item
        return {"item": item} if item else {}


def _escaped(text: str) -> str:
    """A text as it stands between the quotes of JSON, also with half a character at its edge."""
    try:
        return orjson.dumps(text).decode()[1:-1]
    except TypeError:
        return json.dumps(text)[1:-1]
