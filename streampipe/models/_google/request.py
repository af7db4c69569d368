"""A request in Google's `generateContent` protocol, for the Gemini API or for Vertex.

What stands on a part under the provider's name in `provider_metadata` goes into its part here: the
decoder notes there what has to go back (`thoughtSignature`), a caller may add what only this
protocol has (`mediaResolution`, `videoMetadata`, `partMetadata`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from streampipe.contracts import ModelRequest, ToolChoice, ToolSpec
from streampipe.errors import ConfigurationError
from streampipe.messages import (
    FilePart,
    Part,
    PromptMessage,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from streampipe.messages._json import json_text, jsonable
from streampipe.models._google.schema import answer_schema, tool_schema
from streampipe.models._protocol.encoding import (
    address_of,
    base64_of,
    chosen_tool,
    is_as_signed,
    left_out,
    merged,
    options_of,
    own_metadata,
    sendable,
    unknown_setting,
)

_CALL_ID = r"[\s\S]*"  # any
_SETTINGS: Mapping[str, str] = {
    "frequency_penalty": "frequencyPenalty",
    "max_output_tokens": "maxOutputTokens",
    "presence_penalty": "presencePenalty",
    "seed": "seed",
    "temperature": "temperature",
    "top_k": "topK",
    "top_p": "topP",
}
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
_BUDGETS = (0, 1_024, 1_024, 8_192, 24_576, 24_576)
"""Tokens to think for, an effort each: what Gemini 2.5 takes in place of a level."""
_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_FIELDS = frozenset({"mediaResolution", "partMetadata", "thoughtSignature", "videoMetadata"})
"""What metadata may add to a part."""
_RESULTS = {"executableCode": "codeExecutionResult", "toolCall": "toolResponse"}
_WIDEST = 64  # bits of a whole number that JSON libraries agree on
_UNSIGNED = "skip_thought_signature_validator"
"""Stands for the signature of a call that Gemini did not make. It is Google's own word for that."""

Fields = dict[str, Any]


def encode_request(
    request: ModelRequest,
    model_id: str,
    *,
    provider: str = "google",
    warnings: list[str] | None = None,
) -> dict[str, Any]:
    """The body of a call; the model stands in its address. Pure: the request stays as it is.

    System messages become the one system instruction, wherever in the prompt they stand. Messages
    of one role that follow one another become one. `provider_options[provider]` are merged in last:
    an object such as `generationConfig` is merged key by key with what is there, `tools` are added
    to the request's own, everything else takes the place of what is there.

    Args:
        request: what is asked.
        model_id: the provider's name of the model; it decides how `reasoning_effort` is written.
        provider: whose options and metadata are meant.
        warnings: is told what the protocol cannot carry and was left out.

    Raises:
        ConfigurationError: an option, or a schema, has a form that the protocol cannot take.
    """
    told: list[str] = [] if warnings is None else warnings
    prompt = sendable(request.prompt, _CALL_ID)
    contents = _Conversation(prompt, provider, told).contents
    if re.search(r"gemini-(?![12])", model_id):
        _sign_calls(contents)
    body: dict[str, Any] = {"contents": contents}
    system = _system(prompt, provider, told)
    if system:
        body["systemInstruction"] = {"parts": system}
    if request.tools:
        body["tools"] = [{"functionDeclarations": [_declaration(tool) for tool in request.tools]}]
        body["toolConfig"] = {"functionCallingConfig": _tool_choice(request.tool_choice)}
    config = _config(request.settings, model_id, told)
    if request.structured_output is not None:
        config["responseMimeType"] = "application/json"
        config["responseJsonSchema"] = answer_schema(request.structured_output.schema)
    if config:
        body["generationConfig"] = config
    return merged(body, options_of(request, provider))


def _declaration(tool: ToolSpec) -> Fields:
    made: Fields = {"name": tool.name, "description": tool.description}
    schema = tool_schema(tool)
    return made if schema is None else {**made, "parametersJsonSchema": schema}


def _tool_choice(choice: ToolChoice) -> Fields:
    name = chosen_tool(choice)
    if name is None:
        return {"mode": _MODES[str(choice)]}
    return {"mode": "ANY", "allowedFunctionNames": [name]}


def _config(settings: Mapping[str, Any], model_id: str, told: list[str]) -> Fields:
    """The settings.

    Raises:
        ConfigurationError: `reasoning_effort` is none that the protocol knows.
    """
    config: Fields = {}
    for name, value in settings.items():
        if value is None:
            continue
        if name in _SETTINGS:
            config[_SETTINGS[name]] = value
        elif name == "stop":
            config["stopSequences"] = [value] if isinstance(value, str) else list(value)
        elif name == "reasoning_effort":
            config["thinkingConfig"] = _thinking(value, model_id)
        else:
            told.append(unknown_setting(name, "generateContent"))
    return config


def _thinking(effort: Any, model_id: str) -> Fields:
    """How much the model thinks: a level since Gemini 3, which always thinks, before it a budget.

    Raises:
        ConfigurationError: it is no such effort.
    """
    if effort not in _EFFORTS:
        msg = f"reasoning_effort must be one of {', '.join(_EFFORTS)}, not {effort!r:.80}"
        raise ConfigurationError(msg)
    shown = {"includeThoughts": effort != "none"}  # thoughts come only when they are asked for
    if "gemini-2" in model_id:
        return {"thinkingBudget": _BUDGETS[_EFFORTS.index(effort)], **shown}
    return {"thinkingLevel": "MINIMAL" if effort == "none" else effort.upper(), **shown}


def _sign_calls(contents: list[dict[str, Any]]) -> None:
    """Mark calls that another model made: since Gemini 3 the first of a step has to be signed."""
    for content in contents:
        calls = [part for part in content["parts"] if "functionCall" in part]
        if calls and content["role"] == "model":
            calls[0].setdefault("thoughtSignature", _UNSIGNED)


# --- the conversation ----------------------------------------------------------------------


def _system(prompt: list[PromptMessage], provider: str, told: list[str]) -> list[Fields]:
    parts: list[Fields] = []
    for message in prompt:
        for part in message.content if message.role == "system" else ():
            if not isinstance(part, TextPart):
                told.append(left_out(part, message.role))
            elif part.text:
                parts.append({"text": part.text, **_added(part, provider)})
    return parts


def _added(part: Part, provider: str) -> Fields:
    """The fields that metadata adds to a part."""
    return {k: v for k, v in own_metadata(part, provider).items() if k in _FIELDS}


class _Conversation:
    """The messages of a prompt in the protocol's form: user and model in turns.

    Results of the caller's functions belong to the user; those of tools that ran at the provider
    stand within the model's content, right behind their calls.
    """

    def __init__(self, prompt: list[PromptMessage], provider: str, told: list[str]) -> None:
        self.contents: list[dict[str, Any]] = []
        self._provider = provider
        self._told = told
        parts = [part for message in prompt for part in message.content]
        self._executed = {
            p.tool_call_id for p in parts if isinstance(p, ToolCallPart) and p.provider_executed
        }
        self._results = {p.tool_call_id: p for p in parts if isinstance(p, ToolResultPart)}
        for message in prompt:
            if message.role == "assistant":
                self._add("model", [made for p in message.content for made in self._said(p)])
            elif message.role != "system":
                role = message.role
                self._add("user", [made for p in message.content for made in self._given(p, role)])

    def _add(self, role: str, parts: list[Fields]) -> None:
        if parts and self.contents and self.contents[-1]["role"] == role:
            self.contents[-1]["parts"] += parts
        elif parts:
            self.contents.append({"role": role, "parts": parts})

    # --- the model's -----------------------------------------------------------------------

    def _said(self, part: Part) -> list[Fields]:
        if isinstance(part, ReasoningPart):
            return self._reasoning(part)
        if isinstance(part, ToolCallPart):
            return self._run(part) if part.provider_executed else [self._call(part)]
        return self._shown(part, "assistant")

    def _shown(self, part: Part, role: str) -> list[Fields]:
        """Text and files, whoever gave them."""
        if isinstance(part, TextPart):
            return [{"text": part.text, **_added(part, self._provider)}] if part.text else []
        if isinstance(part, FilePart):
            return [{**_file(part), **_added(part, self._provider)}]
        self._told.append(left_out(part, role))
        return []

    def _reasoning(self, part: ReasoningPart) -> list[Fields]:
        """Reasoning of this provider's own making, signed; it has no use for anybody else's."""
        own = own_metadata(part, self._provider)
        if not own.get("thoughtSignature") or not is_as_signed(part, own, self._told):
            return []
        thought = {} if own.get("thought") is False else {"thought": True}
        return [{"text": part.text, **thought, **_added(part, self._provider)}]

    def _call(self, part: ToolCallPart) -> Fields:
        args = _plain(part.args)
        if args is not None and not isinstance(args, dict):
            self._told.append(
                f"the arguments of a call of {part.tool_name!r} were left out: they must be an "
                f"object, not {args!r:.80}",
            )
        call = {
            "id": part.tool_call_id,
            "name": part.tool_name,
            "args": args if isinstance(args, dict) else {},
        }
        return {"functionCall": call, **_added(part, self._provider)}

    def _run(self, part: ToolCallPart) -> list[Fields]:
        """A call that ran at the provider, as it came, with its result."""
        own = own_metadata(part, self._provider)
        kind = next((name for name in _RESULTS if isinstance(own.get(name), dict)), None)
        if kind is None:
            self._told.append(
                f"the call of {part.tool_name!r}, which another provider ran, was left out, "
                "and so was its result",
            )
            return []
        call: Fields = {kind: own[kind], **_added(part, self._provider)}
        result = self._results.get(part.tool_call_id)
        return [call] if result is None else [call, _executed(kind, own[kind], result)]

    # --- the user's ------------------------------------------------------------------------

    def _given(self, part: Part, role: str) -> list[Fields]:
        if isinstance(part, ToolResultPart):
            # One of a tool that ran at the provider stands behind its call.
            return [] if part.tool_call_id in self._executed else [_result(part)]
        if role == "user":
            return self._shown(part, role)
        self._told.append(left_out(part, role))
        return []


def _file(part: FilePart) -> Fields:
    address = address_of(part)
    if address is not None:
        return {"fileData": {"fileUri": address, "mimeType": part.mime_type}}
    return {"inlineData": {"mimeType": part.mime_type, "data": base64_of(part)}}


def _result(part: ToolResultPart) -> Fields:
    """A result: what it says under `output` or `error`, files beside it."""
    texts, files = _contents(part.result)
    said = _plain(part.result) if texts is None else "\n".join(texts)
    made: Fields = {
        "id": part.tool_call_id,
        "name": part.tool_name,
        "response": {"error" if part.is_error else "output": said},
    }
    return {"functionResponse": {**made, "parts": files} if files else made}


def _contents(result: Any) -> tuple[list[str] | None, list[Fields]]:
    """Texts and files of a result that is a list of content parts; None if it is any other."""
    texts: list[str] = []
    files: list[Fields] = []
    for item in result if isinstance(result, list | tuple) else ():
        kind = item.get("type") if isinstance(item, Mapping) else None
        if kind == "text" and isinstance(item.get("text"), str):
            texts.append(item["text"])
            continue
        data, mime = (item.get("data"), item.get("mime_type")) if kind else (None, None)
        if kind not in ("image", "file") or not (isinstance(data, str) and isinstance(mime, str)):
            return None, []
        files.append(_file(FilePart(data, mime)))
    return (texts if texts or files else None), files


def _executed(kind: str, call: Fields, part: ToolResultPart) -> Fields:
    """The result of a tool that ran at the provider; a hook may have put another in its place."""
    name = _RESULTS[kind]
    result = dict(part.result) if isinstance(part.result, Mapping) else None
    signature = result.pop("thoughtSignature", None) if result else None
    if result is None or not result.keys() & {"outcome", "output", "response"}:
        text = part.result if isinstance(part.result, str) else json_text(part.result)
        outcome = "OUTCOME_FAILED" if part.is_error else "OUTCOME_OK"
        result = {"outcome": outcome, "output": text}
        if kind == "toolCall":
            result = {"toolType": call.get("toolType"), "response": {"output": text}}
        result |= {"id": call["id"]} if call.get("id") else {}
    return {name: result, "thoughtSignature": signature} if signature else {name: result}


def _plain(value: Any) -> Any:
    """A value of any kind as JSON has it; whole numbers that are too wide for it are told as text.

    Unlike other protocols, which carry arguments and results as text, this one has them as values.
    """
    return _narrow(jsonable(value))


def _narrow(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _narrow(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_narrow(inner) for inner in value]
    is_wide = isinstance(value, int) and value.bit_length() >= _WIDEST
    return str(value) if is_wide else value
