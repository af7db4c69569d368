"""What an answer is kept under: a digest of everything that it depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from streampipe.contracts import Model, ModelRequest

__all__ = ["request_key"]

VERSION = 1
"""Goes up when a key or an entry changes its form, so that nothing old is read as something new."""


def request_key(model: Model, request: ModelRequest, scope: str | int | None) -> str:
    """A digest of a request: equal for equal requests, whatever the order of keys in their dicts.

    Files count by their bytes or their URL. A model is told by its class, provider and id.

    Args:
        model: is asked.
        request: all that it is asked.
        scope: who may be given the answer again; None for everybody.

    Returns:
        64 hexadecimal digits.

    Raises:
        TypeError: something in the request is no JSON, so that nobody can say what equals it.
    """
    asked = {
        "version": VERSION,
        "scope": scope,
        "model": (
            type(model).__qualname__,
            getattr(model, "provider", ""),
            getattr(model, "model_id", ""),
        ),
        "prompt": request.prompt,
        "tools": request.tools,
        "tool_choice": request.tool_choice,
        "settings": request.settings,
        "provider_options": request.provider_options,
        "structured_output": request.structured_output,
    }
    options = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
    return hashlib.sha256(orjson.dumps(asked, _plain, options)).hexdigest()


def _plain(value: Any) -> Any:
    """A mapping of another kind as a dict.

    Raises:
        TypeError: it is none.
    """
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError
