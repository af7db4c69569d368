"""Work on one text that arrives in pieces cut anywhere, with results that do not show the cuts.

Pure functions and state machines over `str`: nothing here knows of chunks, operators or asyncio.
"""

from __future__ import annotations

from streampipe.text._matcher import Matcher, Region
from streampipe.text._rule import MatchLimitError, Rule, RuleError
from streampipe.text._scanner import Scanner, redacted

__all__ = [
    "MatchLimitError",
    "Matcher",
    "Region",
    "Rule",
    "RuleError",
    "Scanner",
    "redacted",
]
