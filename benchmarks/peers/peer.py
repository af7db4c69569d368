"""What a peer is, and which there are.

A peer whose package is not installed is no error: its row says so.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata

from benchmarks.peers.work import Run, Work

__all__ = ["CANDIDATES", "Absent", "Candidate", "Peer", "load"]


@dataclass(slots=True, frozen=True)
class Candidate:
    """A peer that may be installed.

    Attributes:
        name: what people call it.
        module: the module of this package that runs it, which has `PEERS`.
        distribution: the package whose version is printed; empty if it needs none.
    """

    name: str
    module: str
    distribution: str = ""

    @property
    def title(self) -> str:
        """Its name and, where it has one, its version.

        Raises:
            importlib.metadata.PackageNotFoundError: it is not installed.
        """
        if not self.distribution:
            return self.name
        return f"{self.name} {metadata.version(self.distribution)}"


@dataclass(slots=True, frozen=True)
class Peer:
    """A way of doing the work.

    Attributes:
        path: what is measured, in a few words: how it streams, and what a step is.
        prepare: makes all that a run does not have to make for itself.
        wire: whether it reads from the loopback server, and so is compared with who does too.
    """

    path: str
    prepare: Callable[[Work], Run]
    wire: bool = False


@dataclass(slots=True, frozen=True)
class Absent:
    """A peer that is not measured.

    Attributes:
        name: what people call it.
        reason: why not.
    """

    name: str
    reason: str


CANDIDATES = (
    # The first is what the others are compared with: by hand, in the process and on the wire.
    Candidate("by hand", "by_hand"),
    Candidate("streampipe", "with_streampipe", "streampipe-rx"),
    Candidate("reactivex", "with_reactivex", "reactivex"),
    Candidate("aiostream", "with_aiostream", "aiostream"),
    Candidate("pydantic-ai", "with_pydantic_ai", "pydantic-ai-slim"),
    Candidate("LangChain", "with_langchain", "langchain-core"),
    Candidate("OpenAI Agents SDK", "with_openai_agents", "openai-agents"),
    Candidate("openai", "with_openai", "openai"),
)


def load(candidate: Candidate) -> Sequence[Peer] | Absent:
    """The ways in which a candidate does the work.

    Raises:
        ImportError: its module, or what is installed, is broken; this is not what a row may hide.
    """
    try:
        module = importlib.import_module(f"benchmarks.peers.{candidate.module}")
    except ModuleNotFoundError as error:
        if error.name is None or "." in error.name:
            raise  # a part is missing of what is there: of this package, or of another version
        return Absent(candidate.name, f"`{error.name}` is not installed")
    peers: Sequence[Peer] = module.PEERS
    return peers
