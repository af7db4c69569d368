"""Messages, their parts and forms, and the live `MessageList` of a run."""

from streampipe.messages._list import MessageList, MessageView, Source
from streampipe.messages._parts import (
    DataPart,
    FilePart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    Role,
    SourcePart,
    StepStartPart,
    TextPart,
    ToolInvocationPart,
    ToolState,
    new_id,
)
from streampipe.messages._prompt import (
    PromptMessage,
    ToolCallPart,
    ToolResultPart,
    prompt_message_from,
)
from streampipe.messages._stored import message_from, message_to_stored

__all__ = [
    "DataPart",
    "FilePart",
    "Message",
    "MessageList",
    "MessageView",
    "OtherPart",
    "Part",
    "PromptMessage",
    "ReasoningPart",
    "Role",
    "Source",
    "SourcePart",
    "StepStartPart",
    "TextPart",
    "ToolCallPart",
    "ToolInvocationPart",
    "ToolResultPart",
    "ToolState",
    "message_from",
    "message_to_stored",
    "new_id",
    "prompt_message_from",
]
