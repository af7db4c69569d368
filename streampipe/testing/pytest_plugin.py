"""Fixtures for pytest with pytest-asyncio: `pytest_plugins = ["streampipe.testing.pytest_plugin"]`.

A fixture can also be imported where it is used, as in
`from streampipe.testing.pytest_plugin import leakless`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from streampipe.testing._leaks import no_leaks

__all__ = ["leakless"]


@pytest_asyncio.fixture
async def leakless() -> AsyncIterator[None]:
    """Fail the test if it leaves a task, an open source or a complaint behind; see `no_leaks`.

    Yields:
        Nothing.
    """
    async with no_leaks():
        yield
