"""Which language a text is in, told by a library that carries its own data."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from streampipe.errors import ConfigurationError

__all__ = ["Detect", "local_detector"]

Detect = Callable[[str], tuple[str, float]]
"""Gives the ISO 639-1 code of a text's language, and how sure that is, from 0 to 1."""

INSTALL = "pip install 'streampipe-rx[language]'"


def local_detector(owner: str) -> tuple[Detect, frozenset[str]]:
    """What tells languages, and the codes it knows.

    Raises:
        ConfigurationError: the library is not installed.
    """
    try:
        return _loaded()
    except ImportError as error:
        msg = f"{owner}: to tell languages needs a library: {INSTALL}; or give detect"
        raise ConfigurationError(msg) from error


@cache
def _loaded() -> tuple[Detect, frozenset[str]]:
    from py3langid.langid import (  # type: ignore[import-untyped]  # no types  # noqa: PLC0415 - an extra
        MODEL_FILE,
        LanguageIdentifier,
    )

    known = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

    def detect(text: str) -> tuple[str, float]:
        language, confidence = known.classify(text)
        return str(language), float(confidence)

    return detect, frozenset(map(str, known.labels))
