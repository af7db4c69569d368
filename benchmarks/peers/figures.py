"""Measure the peers: all in turn within a round, at two lengths, by medians."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from benchmarks.measure import Timing, compare
from benchmarks.peers.peer import Absent, Candidate, Peer, load
from benchmarks.peers.work import Run, Work, texts
from benchmarks.work import event_stream
from streampipe.testing import ModelServer

__all__ = ["IN_PROCESS", "ON_THE_WIRE", "Figure", "Scale", "figures", "load_all", "measured"]

MICRO = 1e6
IN_PROCESS = "In the process"
ON_THE_WIRE = "On the wire"


@dataclass(slots=True, frozen=True)
class Scale:
    """How much is measured.

    Attributes:
        rounds: rounds of a comparison.
        chunks: pieces of text in a short stream.
        factor: how many times as many a long stream has.
    """

    rounds: int = 15
    chunks: int = 1_000
    factor: int = 4

    @property
    def lengths(self) -> tuple[int, int]:
        """The pieces of a short stream and of a long one."""
        return self.chunks, self.chunks * self.factor


@dataclass(slots=True, frozen=True)
class Figure:
    """A row of a table.

    Attributes:
        group: the table; the first row of a group is what the others are compared with.
        name: the peer, with its version.
        path: what was measured.
        short: microseconds of the processor for a chunk of a short stream.
        long: the same for a long stream.
        ratio: how many times as long as by hand, for a short stream.
    """

    group: str
    name: str
    path: str
    short: float
    long: float
    ratio: float

    @property
    def growth(self) -> float:
        """How many times as much a chunk of the long stream costs; of a linear peer, 1 or less."""
        return self.long / self.short


def figures(
    group: str, titles: Sequence[tuple[str, str]], timings: Sequence[Timing], scale: Scale
) -> list[Figure]:
    """The rows that belong to some timings.

    Args:
        group: the name of their table.
        titles: name and path of each peer.
        timings: two for each peer, of the short stream and the long; the first is by hand.
        scale: what they were measured with.
    """
    short, long = scale.lengths
    return [
        Figure(
            group,
            name,
            path,
            brief.median / short * MICRO,
            lengthy.median / long * MICRO,
            brief.ratio,
        )
        for (name, path), brief, lengthy in zip(titles, timings[::2], timings[1::2], strict=True)
    ]


def load_all(candidates: Sequence[Candidate]) -> tuple[list[tuple[str, Peer]], list[Absent]]:
    """Every way of each peer with the peer's title, and the peers that are not there.

    Raises:
        ImportError: a peer is installed, but broken.
    """
    found: list[tuple[str, Peer]] = []
    absent: list[Absent] = []
    for candidate in candidates:
        loaded = load(candidate)
        if isinstance(loaded, Absent):
            absent.append(loaded)
        else:
            found += [(candidate.title, peer) for peer in loaded]
    return found, absent


async def measured(peers: Sequence[tuple[str, Peer]], scale: Scale) -> list[Figure]:
    """A row for each of some peers, which are given with their titles.

    Raises:
        DifferentWorkError: a peer did other work than it was given.
    """
    rows: list[Figure] = []
    async with AsyncExitStack() as closing:
        urls: list[str] = []
        for length in scale.lengths:
            server = ModelServer([event_stream(length)], repeat=True)
            urls.append((await closing.enter_async_context(server)).base_url)
        for group, wire in ((IN_PROCESS, False), (ON_THE_WIRE, True)):
            sides = [(name, peer) for name, peer in peers if peer.wire is wire]
            runs: list[Run] = []
            for name, peer in sides:
                for length, url in zip(scale.lengths, urls, strict=True):
                    work = Work(texts(length), url, closing)
                    run = peer.prepare(work)
                    await work.check(f"{name}, {peer.path}", run)
                    runs.append(run)
            titles = [(name, peer.path) for name, peer in sides]
            rows += figures(group, titles, await compare(scale.rounds, *runs), scale)
    return rows
