"""`MessageList`: the live conversation of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, overload

from streampipe.errors import MessageListError
from streampipe.messages._parts import Message, ToolInvocationPart, ToolState
from streampipe.messages._prompt import PromptMessage, prompt_message_from, to_prompt
from streampipe.messages._stored import message_from, message_to_stored
from streampipe.messages._ui import to_ui

Source = Literal["memory", "input", "response"]
_UNSET: Any = object()


class MessageView(Sequence[Message]):
    """Some of the list's messages, in order: a sequence that can be written in three forms."""

    __slots__ = ("_messages",)

    def __init__(self, messages: Iterable[Message]) -> None:
        """Hold the messages as they stand now; the messages themselves are the live ones."""
        self._messages = list(messages)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        """The live message at `index`."""
        return self._messages[index]

    def __len__(self) -> int:
        """How many messages the view has."""
        return len(self._messages)

    def __repr__(self) -> str:
        """The messages."""
        return f"MessageView({self._messages!r})"

    def to_stored(self) -> list[dict[str, Any]]:
        """In the stored JSON form."""
        return [message_to_stored(message) for message in self._messages]

    def to_ui(self) -> list[dict[str, Any]]:
        """As UI messages."""
        return [to_ui(message) for message in self._messages]

    def to_prompt(self) -> list[PromptMessage]:
        """As a provider-neutral prompt, without system messages."""
        return to_prompt(self._messages)


class MessageList:
    """The messages of a conversation: remembered, given as input, and made in this run.

    Processors get the run's own list; changing it is how messages are added, removed and replaced.

    >>> chat = MessageList(["hello"])
    >>> chat.add({"role": "assistant", "content": "hi"}, source="response")
    >>> [m.text for m in chat.all], chat.response[0].text
    (['hello', 'hi'], 'hi')
    """

    __slots__ = ("_lent", "_messages", "_prompt", "_prompted", "_sources", "_system")

    def __init__(self, messages: Iterable[Any] = (), *, system: Iterable[Any] = ()) -> None:
        """Start with input messages and system messages, in any form that `add` takes.

        Raises:
            WireError: a message is none.
        """
        self._messages: list[Message] = []
        self._sources: dict[str, Source] = {}
        self._system = [prompt_message_from(m) for m in system]
        # The prompt of the first `_prompted` messages, good for as long as nobody outside was lent
        # a message: it keeps a run of n tool steps linear in n.
        self._prompt: list[PromptMessage] = []
        self._prompted = 0
        self._lent = False
        for message in messages:
            self.add(message)

    # --- views -----------------------------------------------------------------------------

    @property
    def all(self) -> MessageView:
        """Every message but the system's."""
        return self._view(None)

    @property
    def input(self) -> MessageView:
        """What this run was given."""
        return self._view("input")

    @property
    def response(self) -> MessageView:
        """What this run made: one assistant message a step."""
        return self._view("response")

    @property
    def remembered(self) -> MessageView:
        """What came from memory."""
        return self._view("memory")

    def _view(self, source: Source | None) -> MessageView:
        self._lend()
        if source is None:
            return MessageView(self._messages)
        return MessageView(m for m in self._messages if self._sources[m.id] == source)

    def _lend(self) -> None:
        self._lent = True
        self._prompt = []
        self._prompted = 0

    def __len__(self) -> int:
        """How many messages, system messages not counted."""
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        """Every message but the system's."""
        return iter(self.all)

    @property
    def system_messages(self) -> list[PromptMessage]:
        """The system messages of the current step; assign a list to replace them."""
        return self._system

    @system_messages.setter
    def system_messages(self, messages: Iterable[Any]) -> None:
        self._system = [prompt_message_from(m) for m in messages]

    def add_system(self, message: Any) -> None:
        """Add a system message: a string, a `PromptMessage` or a dict."""
        self._system.append(prompt_message_from(message))

    # --- changes ---------------------------------------------------------------------------

    def add(self, message: Any, *, source: Source = "input") -> None:
        """Add a message, or each of a list, at the end.

        Args:
            message: a `Message`, a string (a user's text), a dict in the stored, the chat or our
                own form, or a list of these. A system message joins the system messages.
            source: which view it belongs to.

        Raises:
            WireError: it is no message.
            MessageListError: a message with its id is there already.
        """
        if isinstance(message, list | tuple | MessageView):
            for one in message:
                self.add(one, source=source)
            return
        made = message_from(message)
        if made.role == "system":
            self._system.append(PromptMessage("system", list(made.parts)))
            return
        self._insert(len(self._messages), made, source)

    def _insert(self, index: int, message: Message, source: Source) -> None:
        if message.id in self._sources:
            msg = f"a message with id {message.id!r} is already in the list; use replace()"
            raise MessageListError(msg)
        self._messages.insert(index, message)
        self._sources[message.id] = source
        if index < self._prompted:
            self._lend()

    def remove_by_ids(self, ids: Iterable[str]) -> list[Message]:
        """Remove the messages with these ids; returns those that were there."""
        gone = set(ids)
        removed = [m for m in self._messages if m.id in gone]
        if removed:
            self._messages = [m for m in self._messages if m.id not in gone]
            for message in removed:
                del self._sources[message.id]
            self._prompt = []
            self._prompted = 0
        return removed

    def replace(self, message_id: str, *messages: Any) -> None:
        """Put other messages in the place of one; they join its view.

        Raises:
            MessageListError: there is no message with that id.
            WireError: a replacement is no message.
        """
        index = next((i for i, m in enumerate(self._messages) if m.id == message_id), None)
        if index is None:
            msg = f"no message with id {message_id!r} in the list"
            raise MessageListError(msg)
        made = [message_from(m) for m in messages]
        ids = [m.id for m in made if m.role != "system"]
        taken = next((i for i in ids if i in self._sources and i != message_id), None)
        if taken is not None or len(set(ids)) != len(ids):
            msg = f"a message with id {taken or ids[0]!r} is already in the list"
            raise MessageListError(msg)
        source = self._sources.pop(message_id)
        del self._messages[index]
        self._lend()
        self._system.extend(
            PromptMessage("system", list(m.parts)) for m in made if m.role == "system"
        )
        for offset, message in enumerate(m for m in made if m.role != "system"):
            self._insert(index + offset, message, source)

    def update_tool_invocation(
        self,
        tool_call_id: str,
        *,
        result: Any = _UNSET,
        args: Any = _UNSET,
        state: ToolState = "result",
    ) -> bool:
        """Change a tool call's result or arguments where they stand.

        Called in `process_tool_result`, the new result is what the `tool-result` chunk, the
        prompt and memory show.

        Returns:
            Whether the call was found.
        """
        part = self.tool_invocation(tool_call_id)
        if part is None:
            return False
        if result is not _UNSET:
            part.result = result
        if args is not _UNSET:
            part.args = args
        part.state = state
        return True

    def tool_invocation(self, tool_call_id: str) -> ToolInvocationPart | None:
        """The newest part with that tool call id, live."""
        for index in range(len(self._messages) - 1, -1, -1):
            for part in reversed(self._messages[index].parts):
                if isinstance(part, ToolInvocationPart) and part.tool_call_id == tool_call_id:
                    if index < self._prompted:  # it may be changed, and the prompt with it
                        self._lend()
                    return part
        return None

    # --- for the run -----------------------------------------------------------------------

    def reconcile(self, phase: Iterable[Message], wanted: Iterable[Any], source: Source) -> None:
        """Make the messages of a phase be `wanted`: others of the phase go, new ones join.

        The order of `wanted` is kept; messages outside the phase stay where they are.

        Args:
            phase: the messages that the hook was given.
            wanted: the messages that it returned.
            source: the view that new messages belong to.

        Raises:
            WireError: an element is no message, or has an unknown key.
        """
        made = [message_from(m, strict=True) for m in wanted]
        ours = {m.id for m in phase}
        system = [m for m in made if m.role == "system"]
        self._system.extend(PromptMessage("system", list(m.parts)) for m in system)
        made = [m for m in made if m.role != "system"]
        if len({m.id for m in made}) != len(made):
            msg = "the returned messages hold one id twice"
            raise MessageListError(msg)
        at = next((i for i, m in enumerate(self._messages) if m.id in ours), len(self._messages))
        new_ids = {m.id for m in made}
        head = [m for m in self._messages[:at] if m.id not in new_ids]
        tail = [m for m in self._messages[at:] if m.id not in ours and m.id not in new_ids]
        sources: dict[str, Source] = {m.id: self._sources.get(m.id, source) for m in made}
        self._messages = [*head, *made, *tail]
        self._sources = {m.id: sources.get(m.id) or self._sources[m.id] for m in self._messages}
        self._lend()

    def prompt(self, *extra_system: PromptMessage, private: bool = True) -> list[PromptMessage]:
        """The prompt of the next model call: system messages, then the conversation.

        Args:
            extra_system: system messages of this one call.
            private: nobody but the model gets to see the prompt, so finished parts may be shared
                between calls.
        """
        if self._lent or not private:
            return [*self._system, *extra_system, *to_prompt(self._messages)]
        self._prompt += to_prompt(self._messages[self._prompted :])
        self._prompted = len(self._messages)
        return [*self._system, *extra_system, *self._prompt]

    def last_response(self) -> Message | None:
        """The newest message, when this run made it."""
        if self._messages and self._sources[self._messages[-1].id] == "response":
            return self._messages[-1]
        return None
