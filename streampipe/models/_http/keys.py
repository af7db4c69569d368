"""API keys: where they come from, and what keeps them out of messages."""

from __future__ import annotations

import os
from collections.abc import Mapping

from streampipe.errors import ConfigurationError


def key_from(variable: str, provider: str, *others: str) -> str:
    """The API key in an environment variable, or in the first of others that is set.

    Raises:
        ConfigurationError: none is set; the message names the first.
    """
    key = next((key for name in (variable, *others) if (key := os.environ.get(name, ""))), "")
    if not key:
        msg = f"{provider}: no API key: set {variable} in the environment, or pass api_key="
        raise ConfigurationError(msg)
    return key


def bearer(key: str) -> str:
    """The header value that carries a key.

    Raises:
        ConfigurationError: no header can carry it; the key is not shown.
    """
    return f"Bearer {checked_headers({'authorization': key})['authorization']}"


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers that HTTP can carry.

    Checked when a model is built, by us: the HTTP client would find out with the first request,
    and quote the value, which may be the key.

    Raises:
        ConfigurationError: a name or value holds what a header cannot; the value is not shown.
    """
    for name, value in headers.items():
        if not (name.isascii() and name.replace("-", "").replace("_", "").isalnum()):
            msg = f"header name {name!r} may hold letters, digits, '-' and '_' only"
            raise ConfigurationError(msg)
        if not (value.isascii() and value.isprintable() and value == value.strip()):
            msg = (
                f"header {name!r} (or the API key in it) holds white space at an end, a line end "
                "or a character outside ASCII: check for a stray newline"
            )
            raise ConfigurationError(msg)
    return dict(headers)
