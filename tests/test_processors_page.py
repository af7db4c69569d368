"""`docs/processors.md` lists every ready-made processor, by what its own docstring says."""

from __future__ import annotations

import pytest

from scripts import processors_page
from streampipe import processors


def test_the_page_is_as_the_script_writes_it() -> None:
    """Or `python scripts/processors_page.py` was forgotten."""
    page = processors_page.PAGE.read_text(encoding="utf-8")
    assert processors_page.written(page) == page


def test_a_class_that_is_missing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check can fail."""
    page = processors_page.PAGE.read_text(encoding="utf-8")
    left = [name for name in processors.__all__ if name != "RegexFilter"]
    monkeypatch.setattr(processors, "__all__", left)
    assert processors_page.written(page) != page


@pytest.mark.parametrize("name", processors_page.shelf())
def test_every_processor_says_what_it_does_in_a_sentence(name: str) -> None:
    """A row of the table is one line, and a sentence."""
    said = (processors_page.shelf()[name].__doc__ or "").strip().split("\n\n")[0]
    assert said.endswith(".")
    assert len(said) < 160


def test_a_processor_has_an_id_unless_given_one() -> None:
    """Kebab-case of its name, so that tripwires and spans can be told apart."""
    made = [processors.RegexFilter("x"), processors.UnicodeNormalizer(), processors.PIIDetector()]
    assert [each.id for each in made] == ["regex-filter", "unicode-normalizer", "pii-detector"]
