"""Results of calls in the Responses protocol: each kind of call has an output of its own form."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Mapping
from typing import Any

from streampipe.errors import ConfigurationError
from streampipe.messages import FilePart, ToolResultPart
from streampipe.messages._json import json_text
from streampipe.models._protocol.encoding import address_of, data_url

Item = dict[str, Any]


def file_item(part: FilePart, file_id: str | None = None) -> Item | None:
    """A file as the model is shown it; None for one that the protocol cannot carry.

    Args:
        part: the file.
        file_id: the server's name of it, if it has been uploaded.
    """
    kind = part.mime_type.partition("/")[0]
    address = address_of(part)
    if kind in ("audio", "video") or (address is not None and address.startswith("gs:")):
        return None
    if kind == "image":
        place = {"file_id": file_id} if file_id else {"image_url": data_url(part)}
        return {"type": "input_image", "detail": "auto", **place}
    if file_id:
        return {"type": "input_file", "file_id": file_id}
    if address is not None:
        return {"type": "input_file", "file_url": address}
    # The server tells by the name's ending what it is.
    name = part.filename or f"file{mimetypes.guess_extension(part.mime_type) or ''}"
    return {"type": "input_file", "filename": name, "file_data": data_url(part)}


def output_item(part: ToolResultPart, call: Mapping[str, Any]) -> Item:
    """The item of a result.

    A result that is an item of the right type already, such as one of a call that the provider
    ran, is sent as it is.

    Args:
        part: the result.
        call: the item of the call.

    Raises:
        ConfigurationError: the result has a form that the kind of call does not take.
    """
    kind: str = call["type"]
    result = part.result
    if kind != "function_call" and isinstance(result, Mapping):
        item_type = result.get("type")
        if item_type in (f"{kind}_output", f"{kind.removesuffix('_call')}_output"):
            call_id = {"call_id": part.tool_call_id} if result.get("call_id") else {}
            return {**result, **call_id}
    made = _OUTPUTS.get(kind, _function)(part, call)
    if call.get("caller"):
        made["caller"] = call["caller"]
    return made


def _function(part: ToolResultPart, call: Mapping[str, Any]) -> Item:
    kind = "custom_tool_call" if call["type"] == "custom_tool_call" else "function_call"
    return {
        "type": f"{kind}_output",
        "call_id": part.tool_call_id,
        "output": _content(part) or _text(part),
    }


def _apply_patch(part: ToolResultPart, call: Mapping[str, Any]) -> Item:
    del call
    return {
        "type": "apply_patch_call_output",
        "call_id": part.tool_call_id,
        "status": "failed" if part.is_error else "completed",
        "output": _plain(part.result),
    }


def _computer(part: ToolResultPart, call: Mapping[str, Any]) -> Item:
    """Read a screenshot: an image among the result's parts, or its address.

    Raises:
        ConfigurationError: there is none.
    """
    del call
    content = _content(part) or [{"image_url": part.result}]
    found = (item["image_url"] for item in content if "image_url" in item)
    url = next(found, None)
    if not isinstance(url, str) or not url.startswith(("data:", "http")):
        msg = (
            f"the result of {part.tool_name!r} must be a screenshot: "
            "[{'type': 'image', 'data': ..., 'mime_type': ...}] or its address, "
            f"not {part.result!r:.80}"
        )
        raise ConfigurationError(msg)
    screenshot = {"type": "computer_screenshot", "image_url": url}
    return {
        "type": "computer_call_output",
        "call_id": part.tool_call_id,
        "output": screenshot,
    }


def _local_shell(part: ToolResultPart, call: Mapping[str, Any]) -> Item:
    del call
    return {"type": "local_shell_call_output", "id": part.tool_call_id, "output": _text(part)}


def _shell(part: ToolResultPart, call: Mapping[str, Any]) -> Item:
    """Read what each command printed, or one text that all of them did."""
    output = part.result if isinstance(part.result, list) else [part.result]
    if not all(isinstance(value, Mapping) and "outcome" in value for value in output):
        outcome = {"type": "exit", "exit_code": int(part.is_error)}
        output = [{"stdout": _plain(part.result), "stderr": "", "outcome": outcome}]
    action = call.get("action")
    most = action.get("max_output_length") if isinstance(action, Mapping) else None
    limit = {} if most is None else {"max_output_length": most}
    call_id = part.tool_call_id
    return {"type": "shell_call_output", "call_id": call_id, "output": output, **limit}


def _tool_search(part: ToolResultPart, call: Mapping[str, Any]) -> Item:
    """Read the tools that were found.

    Raises:
        ConfigurationError: they are no list.
    """
    del call
    if not isinstance(part.result, list) and not part.is_error:
        msg = f"the result of {part.tool_name!r} must be a list of tools, not {part.result!r:.80}"
        raise ConfigurationError(msg)
    return {
        "type": "tool_search_output",
        "call_id": part.tool_call_id,
        "execution": "client",
        "status": "completed",
        "tools": part.result if isinstance(part.result, list) else [],
    }


def _approval(part: ToolResultPart, call: Mapping[str, Any]) -> Item:
    """Read a yes or no: True or False, or `{"approve": ..., "reason": ...}`.

    Raises:
        ConfigurationError: it is neither.
    """
    said = part.result if isinstance(part.result, Mapping) else {"approve": part.result}
    approve, reason = said.get("approve"), said.get("reason")
    if part.is_error:
        approve, reason = False, _plain(part.result)
    if not isinstance(approve, bool):
        msg = (
            f"the result of {part.tool_name!r}, which asks for approval, must be True, False or "
            f"{{'approve': True or False, 'reason': text}}, not {part.result!r:.80}"
        )
        raise ConfigurationError(msg)
    return {
        "type": "mcp_approval_response",
        "approval_request_id": call["id"],
        "approve": approve,
        **({"reason": reason} if isinstance(reason, str) else {}),
    }


_OUTPUTS: Mapping[str, Callable[[ToolResultPart, Mapping[str, Any]], Item]] = {
    "apply_patch_call": _apply_patch,
    "computer_call": _computer,
    "local_shell_call": _local_shell,
    "mcp_approval_request": _approval,
    "shell_call": _shell,
    "tool_search_call": _tool_search,
}


def _plain(result: Any) -> str:
    return result if isinstance(result, str) else json_text(result)


def _text(part: ToolResultPart) -> str:
    """A result as text. There is no flag for an error: the model is told in words."""
    text = _plain(part.result)
    return f"Error: {text}" if part.is_error else text


def _content(part: ToolResultPart) -> list[Item] | None:
    """A result that is a list of content parts; None for every other, which goes as text."""
    if not isinstance(part.result, list | tuple) or not part.result:
        return None
    made: list[Item] = [{"type": "input_text", "text": "Error:"}] if part.is_error else []
    for value in part.result:
        item = _content_item(value) if isinstance(value, Mapping) else None
        if item is None:
            return None
        made.append(item)
    return made


def _content_item(value: Mapping[Any, Any]) -> Item | None:
    kind, text = value.get("type"), value.get("text")
    if kind == "text" and isinstance(text, str):
        return {"type": "input_text", "text": text}
    data, mime, name = value.get("data"), value.get("mime_type"), value.get("filename")
    if kind in ("image", "file") and isinstance(data, str) and isinstance(mime, str):
        return file_item(FilePart(data, mime, name if isinstance(name, str) else None))
    return None
