"""Rules for addresses of the web."""

from __future__ import annotations

import re

from streampipe.text._rule import Rule

__all__ = ["urls"]

_URL = r"""
    (?: (?<![a-z0-9])(?:https?|ftp)://[a-z0-9[]
      | (?<![a-z0-9._/@-])www\.[a-z0-9-]{1,63}\.[a-z] )
    [a-z0-9._~:/?#\[\]@!$&()*+,;=%|-]*
"""
_OPENED_BY = {")": "(", "]": "["}


def _url(text: str) -> int:
    """Less the punctuation of the sentence that it stands in."""
    text = text.partition("](")[0]  # of Markdown: the address is the link's own text
    while text[-1] in ".,:;!?*|)]":
        opening = _OPENED_BY.get(text[-1])
        if opening is not None and text.count(opening) >= text.count(text[-1]):
            break
        text = text[:-1]
    return len(text)


urls = (Rule("url", _URL, "[URL]", _url, re.VERBOSE | re.IGNORECASE | re.ASCII, 16_384),)
"""Addresses that begin with http://, https://, ftp:// or www."""
