"""The command `streampipe`; needs the extra `cli`."""

from streampipe.cli._app import main

__all__ = ["main"]
