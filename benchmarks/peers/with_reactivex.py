"""ReactiveX for Python: a subject that is pushed to, and a map for each step."""

from __future__ import annotations

from reactivex import Subject
from reactivex import operators as rx

from benchmarks.peers.peer import Peer
from benchmarks.peers.work import Run, Work, spoken

__all__ = ["PEERS"]


def maps(work: Work) -> Run:
    """Push what an async generator yields."""

    async def run() -> list[str]:
        subject = Subject[str]()
        one, two, three, four = work.steps.chain
        got: list[str] = []
        piped = subject.pipe(rx.map(one), rx.map(two), rx.map(three), rx.map(four))
        with piped.subscribe(got.append):
            async for text in spoken(work.texts):
                subject.on_next(text)
            subject.on_completed()
        return got

    return run


PEERS = (Peer("`Subject`, 4 `map`; pushed, no back-pressure", maps),)
