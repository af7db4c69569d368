"""A request in the OpenAI Responses protocol."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from streampipe.contracts import ModelRequest, OutputSchema, ToolSpec
from streampipe.models._protocol.encoding import (
    chosen_tool,
    options_of,
    schema_name,
    unknown_setting,
)
from streampipe.models._responses.items import items_of
from streampipe.models._responses.schema import object_schema, strict_schema

_SETTINGS = frozenset({"max_output_tokens", "parallel_tool_calls", "temperature", "top_p"})
_REASONING = {"reasoning_effort": "effort", "reasoning_summary": "summary"}
_REASONING_MODELS = re.compile(r"(^|[/.])(o\d|codex|computer-use|gpt-(oss|[5-9])(?!.*chat))")
"""Models that reason. Others refuse to be asked for their encrypted reasoning."""
_NESTED = ("reasoning", "text")
_LISTS = ("include", "tools")


def encode_request(
    request: ModelRequest,
    model_id: str,
    *,
    provider: str = "openai",
    warnings: list[str] | None = None,
) -> dict[str, Any]:
    """The body of a streaming call. Pure: the request stays as it is.

    The server is told to keep nothing, so that the whole conversation is in the body, and to give
    the reasoning of a model that reasons in its encrypted form, so that it can be in the next one.

    `provider_options[provider]` is merged last: `reasoning` and `text` key by key; `include` and
    `tools` are added to what is there, a tool in place of one of the same name (or type, where it
    has no name); every other field replaces the whole.

    Args:
        request: what is asked.
        model_id: the server's name of the model.
        provider: whose `provider_options` are merged in, and what it noted on parts sent back.
        warnings: is told what the protocol cannot carry and was left out.

    Raises:
        ConfigurationError: an option, a schema or a result has a form that no server takes.
    """
    told: list[str] = [] if warnings is None else warnings
    body: dict[str, Any] = {
        "model": model_id,
        "input": items_of(request.prompt, provider, told),
        "stream": True,
        "store": False,
    }
    for name, value in request.settings.items():
        if value is None:
            continue
        if name in _SETTINGS:
            body[name] = value
        elif name in _REASONING:
            body.setdefault("reasoning", {})[_REASONING[name]] = value
        else:
            told.append(unknown_setting(name, "responses"))
    if "reasoning" in body or _REASONING_MODELS.search(model_id):
        body["include"] = ["reasoning.encrypted_content"]
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if request.structured_output is not None:
        body["text"] = {"format": _format(request.structured_output)}
    _merge(body, options_of(request, provider))
    if body.get("tools"):
        body.setdefault("tool_choice", _tool_choice(request.tool_choice))
    return body


def _tool(tool: ToolSpec) -> dict[str, Any]:
    schema = object_schema(tool.parameters, f"tool {tool.name!r}")
    strict = strict_schema(schema)
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": schema if strict is None else strict,
        "strict": strict is not None,
    }


def _tool_choice(choice: Any) -> Any:
    name = chosen_tool(choice)
    return choice if name is None else {"type": "function", "name": name}


def _format(output: OutputSchema) -> dict[str, Any]:
    schema = object_schema(output.schema, f"structured_output {output.name!r}")
    strict = strict_schema(schema)
    return {
        "type": "json_schema",
        "name": schema_name(output.name),
        "schema": schema if strict is None else strict,
        "strict": strict is not None,
    }


def _merge(body: dict[str, Any], options: Mapping[str, Any]) -> None:
    """Lay options over a body, as `encode_request` says."""
    for name, value in options.items():
        there = body.get(name)
        if name in _NESTED and isinstance(there, dict) and isinstance(value, Mapping):
            body[name] = {**there, **value}
        elif name in _LISTS and isinstance(there, list) and isinstance(value, list):
            names = [_name(item) for item in value]
            body[name] = [item for item in there if _name(item) not in names] + value
        else:
            body[name] = value


def _name(item: Any) -> Any:
    """What a tool or an included field is called."""
    return item.get("name") or item.get("type") if isinstance(item, Mapping) else item
