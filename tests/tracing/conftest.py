"""OpenTelemetry logs what it was used wrongly for; here that fails the test."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


class Complaints(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.messages.append(record.getMessage())


@pytest.fixture(autouse=True)
def no_complaints() -> Iterator[None]:
    """Fail if a span was ended twice, a context detached elsewhere, or an attribute refused.

    Yields:
        Nothing; what was logged is looked at afterwards.
    """
    complaints = Complaints()
    logger = logging.getLogger("opentelemetry")
    logger.addHandler(complaints)
    try:
        yield
    finally:
        logger.removeHandler(complaints)
    assert not complaints.messages
