"""Rules for what opens doors: keys of services, tokens, private keys.

A key is told by how its service begins it. So one without such a beginning, like a password, is
not found.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from streampipe.text._rule import Rule

__all__ = ["secrets"]

_PEM_LABEL = r"(?:[A-Z0-9]{1,16}[ ]){0,3}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----"


def _with_digits(text: str) -> int:
    """Tokens have digits; what else looks so is words."""
    return len(text) if re.search("[0-9]", text) else 0


def _key(service: str, pattern: str, check: Callable[[str], int] | None = None) -> Rule:
    """A rule for keys: they do not begin inside a word, but for one of several joined by `_`."""
    return Rule(f"{service}-key", rf"(?<![A-Za-z0-9-])(?:{pattern})", "[KEY]", check)


secrets = (
    _key("openai", r"sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,256}|[A-Za-z0-9]{20,256})"),
    _key("anthropic", r"sk-ant-[A-Za-z0-9_-]{20,256}"),
    _key("openrouter", r"sk-or-(?:v[0-9]-)?[A-Za-z0-9]{20,256}"),
    _key("groq", r"gsk_[A-Za-z0-9]{20,256}"),
    _key("aws", r"A(?:KIA|SIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _key("github", r"gh[oprsu]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255}"),
    _key("gitlab", r"glpat-[A-Za-z0-9_-]{20,256}(?:\.[a-z0-9]{2,10}){0,2}"),
    _key("slack", r"xox[a-z]-[A-Za-z0-9-]{10,256}|xapp-[0-9]-[A-Za-z0-9-]{10,256}", _with_digits),
    _key("stripe", r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,256}|whsec_[A-Za-z0-9]{24,256}"),
    _key("google", r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _key("huggingface", r"hf_[A-Za-z0-9]{30,64}"),
    _key("sendgrid", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}"),
    _key("npm", r"npm_[A-Za-z0-9]{36,64}"),
    Rule(
        "bearer",
        r"(?<![A-Za-z0-9_-])[Bb][Ee][Aa][Rr][Ee][Rr][ \t]{1,4}[A-Za-z0-9._~+/-]{12,}={0,2}",
        "Bearer [TOKEN]",
        _with_digits,
        max_match=16_384,
    ),
    Rule(
        "jwt",
        # A part that is JSON begins so: it is {" in base64. The header is bounded, for other
        # things begin so too; what comes behind its point is a token, as long as it may be.
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,512}\.[A-Za-z0-9_-]{2,}(?:\.[A-Za-z0-9_-]*){1,3}",
        "[JWT]",
        max_match=16_384,
    ),
    Rule(
        "private-key",
        # One that breaks off ends with the text. Not one in quotes: there it is only spoken of. A
        # backslash begins the line break of a JSON string. Without any break a key is told by how
        # its encoding begins.
        rf"-----BEGIN[ ]{_PEM_LABEL}(?:[\s\\]|M[A-P]|b3B)[\s\S]*?(?:-----END[ ]{_PEM_LABEL}|\Z)",
        "[PRIVATE KEY]",
        max_match=16_384,
    ),
)
"""Keys of thirteen services, bearer tokens, JSON web tokens, and private keys in PEM.

A private key, once it has begun, does not leave: its end may lie 16,384 characters behind its
beginning at most, and beyond that the scan fails.
"""
