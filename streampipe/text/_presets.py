"""The rules that come with the library, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from streampipe.text._pii import pii
from streampipe.text._rule import Rule
from streampipe.text._secrets import secrets
from streampipe.text._urls import urls

__all__ = ["presets"]

presets: Mapping[str, tuple[Rule, ...]] = MappingProxyType(
    {"pii": pii, "secrets": secrets, "urls": urls}
)
"""The preset rules by their names: "pii", "secrets", "urls"."""
