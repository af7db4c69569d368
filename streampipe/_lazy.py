"""Names that are imported when they are first asked for.

A package whose parts need heavy libraries exports them so:
`__getattr__ = exported(__name__, {...})`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def exported(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's `__getattr__` that imports a name from its home at first use.

    Args:
        package: the package that exports the names.
        homes: full module name by exported name.
    """

    def __getattr__(name: str) -> Any:  # noqa: N807 - it becomes the module's own
        home = homes.get(name)
        if home is None:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        return getattr(importlib.import_module(home), name)

    return __getattr__
