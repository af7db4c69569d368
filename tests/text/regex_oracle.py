"""What a text's matches are, by `re` alone: the judge of the matching of texts that are cut."""

from __future__ import annotations

import re
from collections.abc import Sequence

from streampipe.text import Rule

__all__ = ["redacted_by_re", "regions_by_re", "spans_by_re"]


def spans_by_re(text: str, rule: Rule) -> list[tuple[int, int]]:
    """Where a rule matches the text: each place is tried in turn."""
    pattern = re.compile(rule.pattern, rule.flags)
    spans: list[tuple[int, int]] = []
    at = 0
    while at < len(text):
        match = pattern.match(text, at)
        length = 0
        if match is not None:
            length = len(match[0]) if rule.check is None else rule.check(match[0])
        if length:
            spans.append((at, at + length))
        at += length or 1
    return spans


def regions_by_re(text: str, rules: Sequence[Rule]) -> list[tuple[str, int, str]]:
    """Name of the rule, beginning and text of each region, overlapping matches merged."""
    owners: list[set[tuple[int, int, int]]] = [set() for _ in text]  # which spans a character is in
    for number, rule in enumerate(rules):
        for start, stop in spans_by_re(text, rule):
            for place in range(start, stop):
                owners[place].add((start - stop, number, start))
    regions: list[tuple[str, int, str]] = []
    at = 0
    while at < len(text):
        start = at
        spans = set(owners[at])
        at += 1
        if not spans:
            continue
        while at < len(text) and owners[at] & owners[at - 1]:
            spans |= owners[at]
            at += 1
        regions.append((rules[min(spans)[1]].name, start, text[start:at]))
    return regions


def redacted_by_re(text: str, rules: Sequence[Rule]) -> str:
    """The text with each region replaced."""
    replacement = {rule.name: rule.replacement for rule in rules}
    out: list[str] = []
    at = 0
    for name, start, region in regions_by_re(text, rules):
        new = replacement[name]
        out += [text[at:start], new if isinstance(new, str) else new(region)]
        at = start + len(region)
    return "".join([*out, text[at:]])
