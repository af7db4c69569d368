"""Work on one text that arrives in pieces cut anywhere, with results that do not show the cuts.

Pure functions and state machines over `str`: nothing here knows of chunks, operators or asyncio.
"""

from __future__ import annotations

from streampipe.text._json import JsonLines, PartialJson
from streampipe.text._limit import Limit
from streampipe.text._matcher import Matcher, Region
from streampipe.text._pii import pii
from streampipe.text._presets import presets
from streampipe.text._rule import MatchLimitError, Rule, RuleError
from streampipe.text._scanner import Scanner, redacted
from streampipe.text._secrets import secrets
from streampipe.text._split import Splitter
from streampipe.text._stop import StopAt
from streampipe.text._tags import TagSplitter
from streampipe.text._urls import urls

__all__ = [
    "JsonLines",
    "Limit",
    "MatchLimitError",
    "Matcher",
    "PartialJson",
    "Region",
    "Rule",
    "RuleError",
    "Scanner",
    "Splitter",
    "StopAt",
    "TagSplitter",
    "pii",
    "presets",
    "redacted",
    "secrets",
    "urls",
]
