"""A prompt as the items of the Responses protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from streampipe.messages import (
    FilePart,
    Part,
    PromptMessage,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from streampipe.messages._json import json_text
from streampipe.models._protocol.encoding import (
    file_as_text,
    is_as_signed,
    left_out,
    own_metadata,
    sendable,
)
from streampipe.models._responses.calls import CALLS
from streampipe.models._responses.outputs import Item, file_item, output_item

_OPTIONS = ("detail", "prompt_cache_breakpoint")
"""What a part's provider metadata may say of how it is to be taken."""
_CALL_ID = ".{1,64}"
_KEPT = ("caller", "namespace")
"""What it says of who made a function call, and whose function it is."""


def items_of(prompt: Iterable[PromptMessage], provider: str, told: list[str]) -> list[Item]:
    """The items of a prompt.

    Args:
        prompt: the messages.
        provider: what it noted on parts is sent back to it, and to nobody else.
        told: is told what was left out.

    Raises:
        ConfigurationError: a result has a form that its kind of call does not take.
    """
    items = _Items(provider, told)
    for message in sendable(prompt, _CALL_ID):
        items.add(message)
    return items.made


class _Items:
    """Items in the making.

    A call or a piece of reasoning that this provider made goes back as the item that it was: its
    id is told, but never referred to.
    """

    def __init__(self, provider: str, told: list[str]) -> None:
        self.made: list[Item] = []
        self._provider = provider
        self._told = told
        self._calls: dict[str, Item] = {}  # by the id of the call; an empty one was left out
        self._thought: Item | None = None  # reasoning that is not yet whole
        self._changed = ""  # the id of reasoning that is no longer what was sealed
        self._first = 0  # item of the message at hand

    def add(self, message: PromptMessage) -> None:
        self._first = len(self.made)
        if message.role in ("system", "user"):
            self._given(message)
        elif message.role == "assistant":
            for part in message.content:
                self._assistant(part)
            self._thought = None  # nothing came of it, and by itself it is refused
        else:
            for part in message.content:
                if isinstance(part, ToolResultPart):
                    self._result(part)
                else:
                    self._told.append(left_out(part, message.role))

    def _given(self, message: PromptMessage) -> None:
        content: list[Item] = []
        for part in message.content:
            shown = self._shown(part)
            if shown is None:
                self._told.append(left_out(part, message.role))
            elif shown.get("text") != "":
                content.append(shown)
        if len(content) == 1 and content[0].keys() == {"type", "text"}:
            self.made.append({"role": message.role, "content": content[0]["text"]})
        elif content:
            self.made.append({"role": message.role, "content": content})

    def _shown(self, part: Part) -> Item | None:
        """A part that the model is shown; None if the protocol has no place for it."""
        if isinstance(part, TextPart):
            shown: Item | None = {"type": "input_text", "text": part.text}
        elif isinstance(part, FilePart):
            file_id = own_metadata(part, self._provider).get("file_id")
            shown = file_item(part, file_id if isinstance(file_id, str) else None)
        else:
            shown = None
        if shown is not None:
            own = own_metadata(part, self._provider)
            shown |= {name: own[name] for name in _OPTIONS if name in own}
        return shown

    # --- what the model said -----------------------------------------------------------------

    def _assistant(self, part: Part) -> None:
        if isinstance(part, ReasoningPart):
            self._reasoning(part)
        elif isinstance(part, ToolCallPart):
            self._call(part)
        elif isinstance(part, TextPart):
            if part.text:
                self._text(part)
        elif isinstance(part, FilePart) and "item" in own_metadata(part, self._provider):
            self._put({**own_metadata(part, self._provider)["item"], "result": part.data})
        else:
            self._told.append(left_out(part, "assistant"))

    def _put(self, item: Item) -> None:
        """Add an item, behind the reasoning that led to it."""
        if self._thought is not None and "encrypted_content" in self._thought:
            self.made.append(self._thought)
        self._thought = None
        self.made.append(item)

    def _text(self, part: TextPart) -> None:
        phase = own_metadata(part, self._provider).get("phase")
        last = self.made[-1] if len(self.made) > self._first else {}
        is_same = last.get("role") == "assistant" and last.get("phase") == phase
        if is_same and self._thought is None:
            last["content"] += part.text
        else:
            phased = {"phase": phase} if phase else {}
            self._put({"role": "assistant", "content": part.text, **phased})

    def _reasoning(self, part: ReasoningPart) -> None:
        """Collect reasoning that this provider made; others' is left out: a model makes its own."""
        own = own_metadata(part, self._provider)
        item_id = own.get("item_id")
        if not item_id or item_id == self._changed:
            return
        thought = self._thought
        if not is_as_signed(part, own, self._told):
            self._changed = item_id
            if thought is not None and thought["id"] == item_id:
                self._thought = None
            return
        if thought is None or thought["id"] != item_id:
            if thought is not None and "encrypted_content" in thought:
                self.made.append(thought)
            thought = self._thought = {"type": "reasoning", "id": item_id, "summary": []}
        if part.text and own.get("form") == "reasoning_text":
            thought.setdefault("content", []).append({"type": "reasoning_text", "text": part.text})
        elif part.text:
            thought["summary"].append({"type": "summary_text", "text": part.text})
        sealed = part.signature or part.redacted
        if sealed:
            thought["encrypted_content"] = sealed

    def _call(self, part: ToolCallPart) -> None:
        own = own_metadata(part, self._provider)
        item = own.get("item")
        if isinstance(item, Mapping) and item.get("type") in CALLS:
            self._put(_retold(item, part))
        elif own.get("type") == "image_generation_call":
            self._calls[part.tool_call_id] = {}  # its file is the item
            return
        elif part.provider_executed:
            self._calls[part.tool_call_id] = {}
            self._told.append(
                f"a call of {part.tool_name!r}, which another provider ran, was left out"
            )
            return
        else:
            call = {
                "type": "function_call",
                "call_id": part.tool_call_id,
                "name": part.tool_name,
                "arguments": json_text({} if part.args is None else part.args),
            }
            self._put(call | {name: own[name] for name in _KEPT if name in own})
        self._calls[part.tool_call_id] = self.made[-1]

    # --- what came of its calls --------------------------------------------------------------

    def _result(self, part: ToolResultPart) -> None:
        call = self._calls.get(part.tool_call_id, {"type": "function_call"})
        if call and not CALLS[call["type"]].has_result:  # else left out or told with the call
            made = output_item(part, call)
            if isinstance(made.get("output"), str):
                self._told += file_as_text(part)
            self.made.append(made)


def _retold(item: Mapping[str, Any], part: ToolCallPart) -> Item:
    """A call's item, with the arguments that the part has now."""
    made = dict(item)
    made.pop("created_by", None)  # what answers have and requests must not
    if made["type"] == "custom_tool_call":
        made.pop("status", None)
    if "call_id" in made:
        made["call_id"] = part.tool_call_id
    if isinstance(part.args, Mapping):
        if isinstance(made.get("arguments"), str):
            made["arguments"] = json_text(part.args)
        elif "arguments" in made:
            made["arguments"] = part.args
        else:
            inputs = CALLS[made["type"]].inputs
            made |= {name: part.args[name] for name in inputs if name in part.args}
    return made
