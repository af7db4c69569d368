"""The benchmarks of peers: what can be said without the peers, and without figures."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from datetime import date
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.measure import Timing
from benchmarks.peers import __main__ as command
from benchmarks.peers import with_mastra
from benchmarks.peers.figures import Figure, Scale, figures, load_all, measured
from benchmarks.peers.offline import OutsideError, loopback_only
from benchmarks.peers.peer import CANDIDATES, Absent, Candidate, Peer, load
from benchmarks.peers.report import Report, page, table
from benchmarks.peers.with_mastra import Node
from benchmarks.peers.work import (
    LONGEST,
    DifferentWorkError,
    Run,
    Steps,
    TooLongError,
    Work,
    texts,
)

PEERS = Path(command.__file__).parent
TINY = Scale(rounds=1, chunks=8, factor=2)
FLAT = Figure("Group", "flat 1.0", "a way", 2.0, 2.0, 4.0)
STEEP = Figure("Group", "steep 1.0", "another way", 2.0, 8.0, 4.0)
OUTSIDE = ("192.0.2.1", 443)  # an address for documentation: nobody has it
DAY = date(2026, 1, 2)

seconds = st.floats(1e-6, 10)


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """What the command sets for its peers, such as their telemetry off, is for them only.

    Yields:
        Nothing.
    """
    with mock.patch.dict(os.environ):
        yield


def report(*rows: Figure, absent: tuple[Absent, ...] = (), outside: tuple[str, ...] = ()) -> Report:
    """A report of some rows."""
    return Report(rows, absent, outside, Scale(), DAY)


def program(folder: Path, name: str, *lines: str) -> str:
    """An executable that does what the lines of a shell say."""
    file = folder / name
    file.write_text("\n".join(("#!/bin/sh", *lines, "")), encoding="utf-8")
    file.chmod(0o755)
    return str(file)


class Missing:
    """Makes a package one that is not installed, or one that lacks a part."""

    def __init__(self, package: str, part: str = "") -> None:
        """Take its name, and that of the part."""
        self.package = package
        self.missing = package + part

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        """Refuse it as Python does when nobody finds it."""
        if name == self.package:
            raise ModuleNotFoundError(f"No module named {self.missing!r}", name=self.missing)


def lines_of(text: str) -> list[str]:
    """The lines of a Markdown table, without its head."""
    return [line for line in text.splitlines() if line.startswith("|")][2:]


# --- the work ------------------------------------------------------------------------------


@given(st.lists(st.text(" \tab")))
def test_what_the_steps_count_is_in_the_text(pieces: list[str]) -> None:
    """Words, length and tabs add up over the pieces, and no tab is left."""
    steps = Steps()
    got: list[str] = []
    for piece in pieces:
        text = piece
        for step in steps.chain:
            text = step(text)
        got.append(text)
    whole = "".join(pieces)
    assert "".join(got) == whole.replace("\t", " ")
    assert (steps.words, steps.length) == (whole.count(" "), len(whole))
    assert steps.tabs == sum("\t" in piece for piece in pieces)
    assert steps.last == (pieces[-1] if pieces else "")


def test_a_text_without_end_is_stopped() -> None:
    """The step that limits the length can really stop a stream."""
    steps = Steps(length=LONGEST)
    with pytest.raises(TooLongError, match=str(LONGEST)):
        steps.limit_length("x")


def honest(work: Work) -> Run:
    """Does what it should."""

    async def run() -> list[str]:
        count, limit, keep, replace = work.steps.chain
        return [replace(keep(limit(count(text)))) for text in work.texts]

    return run


def forgetful(work: Work) -> Run:
    """Loses the last piece."""

    async def run() -> list[str]:
        return (await honest(work)())[:-1]

    return run


def lazy(work: Work) -> Run:
    """Rewrites the text without a step having seen it."""

    async def run() -> list[str]:
        return [text.replace("\t", " ") for text in work.texts]

    return run


def eager(work: Work) -> Run:
    """Calls a step twice."""

    async def run() -> list[str]:
        for text in work.texts:
            work.steps.count_words(text)
        return await honest(work)()

    return run


def disordered(work: Work) -> Run:
    """Counts the words when the tabs are gone."""

    async def run() -> list[str]:
        count, limit, keep, replace = work.steps.chain
        return [count(replace(keep(limit(text)))) for text in work.texts]

    return run


@pytest.mark.parametrize(
    ("prepare", "fault"),
    [
        (forgetful, "some peer: its reader got"),
        (lazy, "some peer: its steps came to"),
        (eager, "some peer: its steps came to"),
        (disordered, "some peer: its steps came to"),
    ],
)
async def test_other_work_is_not_timed(prepare: Callable[[Work], Run], fault: str) -> None:
    """A peer that loses text, or does not send each piece through each step once, is refused."""
    work = Work(texts(6), "", AsyncExitStack())
    with pytest.raises(DifferentWorkError, match=fault):
        await work.check("some peer", prepare(work))


async def test_a_peer_that_cheats_stops_the_measuring() -> None:
    """The work is checked before the first round, with the peer's name and way in the message."""
    with pytest.raises(DifferentWorkError, match="cheat 1, some way: its steps"):
        await measured(
            [("by hand", Peer("loop", honest)), ("cheat 1", Peer("some way", lazy))], TINY
        )


# --- who is there --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "package"), [("with_langchain", "langchain_core"), ("with_aiostream", "aiostream")]
)
def test_a_peer_that_is_not_installed_is_a_row_with_the_reason(
    module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No peer is needed to measure the others, and the page says who is missing and why."""
    for name in (package, f"benchmarks.peers.{module}"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Missing(package), *sys.meta_path])
    found, absent = load_all([Candidate("by hand", "by_hand"), Candidate("Some", module, package)])
    assert {name for name, _ in found} == {"by hand"}
    assert absent == [Absent("Some", f"`{package}` is not installed")]
    assert f"Not measured: Some (`{package}` is not installed)." in page(
        report(FLAT, absent=tuple(absent))
    )


def test_a_module_of_ours_that_is_missing_is_a_fault() -> None:
    """A mistyped module does not pass as a peer that is not installed."""
    with pytest.raises(ModuleNotFoundError, match="with_nothing"):
        load(Candidate("nothing", "with_nothing"))


def test_a_peer_of_another_version_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """That a part of a package is missing does not pass as a package that is not installed."""
    for name in ("aiostream", "benchmarks.peers.with_aiostream"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Missing("aiostream", ".stream"), *sys.meta_path])
    with pytest.raises(ModuleNotFoundError, match=r"aiostream\.stream"):
        load(Candidate("aiostream", "with_aiostream", "aiostream"))


def test_what_is_compared_can_be_installed() -> None:
    """Each peer's package is in the requirements, in one exact version."""
    text = (PEERS / "requirements.txt").read_text(encoding="utf-8")
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    pinned = {line.partition("==")[0] for line in lines if line}
    assert all(re.fullmatch(r"[a-z-]+==[0-9.]+", line) for line in lines if line)
    wanted = {one.distribution for one in CANDIDATES} - {"", "streampipe-rx"}
    assert wanted <= pinned
    package = json.loads((PEERS / "mastra" / "package.json").read_text(encoding="utf-8"))
    assert re.fullmatch(r"[0-9.]+", package["dependencies"]["@mastra/core"])


# --- the figures ---------------------------------------------------------------------------


@given(st.lists(seconds, min_size=1), st.randoms(), st.integers(1, 50))
def test_a_figure_is_a_median(rounds: list[float], random: Random, factor: int) -> None:
    """The order of the rounds is nothing to it, and it is per chunk, in microseconds."""
    scale = Scale(chunks=10, factor=factor)
    mixed = list(rounds)
    random.shuffle(mixed)
    titles = [("some peer", "some way")]
    one, other = (
        figures("Group", titles, [Timing(times, [1.0]), Timing(times, [1.0])], scale)[0]
        for times in (rounds, mixed)
    )
    assert one == other
    below = sum(time / 10 * 1e6 <= one.short * (1 + 1e-9) for time in rounds)
    above = sum(time / 10 * 1e6 >= one.short * (1 - 1e-9) for time in rounds)
    assert min(below, above) >= len(rounds) / 2
    assert one.growth == pytest.approx(1 / factor)  # the same time for so many more chunks


@given(seconds, st.floats(0.001, 1000))
def test_one_slow_round_moves_nothing(time: float, slower: float) -> None:
    """A busy moment of the machine is in no figure."""
    scale = Scale(rounds=3)
    timing = Timing([time, time, time * slower], [2.0, 2.0, 2.0 * slower])
    figure = figures("Group", [("some peer", "some way")], [timing, timing], scale)[0]
    assert figure.short == pytest.approx(time / scale.chunks * 1e6)
    assert figure.ratio == 2


@given(st.lists(st.tuples(seconds, seconds, seconds), max_size=5))
def test_a_table_has_a_line_for_each_row(values: list[tuple[float, float, float]]) -> None:
    """Each line has all cells, whatever the figures."""
    rows = [Figure("Group", f"peer {n}", "way", *three) for n, three in enumerate(values)]
    lines = lines_of(table(rows, Scale()))
    assert [line.split(" | ")[0] for line in lines] == [f"| {row.name}" for row in rows]
    assert all(line.count("|") == 7 for line in lines)


def test_the_page_names_who_gets_slower() -> None:
    """A peer whose chunks cost more in a longer stream is named below the tables."""
    text = page(report(FLAT, STEEP))
    assert "in: steep 1.0 (another way)." in text
    assert "in: none of them." in page(report(FLAT))
    assert "| steep 1.0 | another way | 2.00 | 8.00 | 4.0x | 4.00x |" in text


def test_the_page_says_when_and_who_asked_outside() -> None:
    """Day, command and what the peers asked for are on it."""
    text = page(report(FLAT, outside=("telemetry.example", "telemetry.example")))
    assert "on 2026-01-02" in text
    assert "`make bench-peers`" in text
    assert "asked for while measuring: telemetry.example." in text
    assert "asked for while measuring: nothing." in page(report(FLAT))


# --- the network ---------------------------------------------------------------------------


def test_nothing_leaves_the_machine() -> None:
    """Connections and look-ups elsewhere are refused and told of; loopback works."""
    with loopback_only() as asked, socket.socket() as outside, socket.socket() as server:
        with pytest.raises(OutsideError, match=r"192\.0\.2\.1"):
            outside.connect(OUTSIDE)
        with pytest.raises(OutsideError, match=r"telemetry\.example"):
            socket.getaddrinfo("telemetry.example", 443)
        server.bind(("127.0.0.1", 0))
        server.listen()
        with socket.create_connection(server.getsockname()):
            pass
        assert asked == ["192.0.2.1", "telemetry.example"]


def test_the_network_is_given_back() -> None:
    """After the measuring, and after a failure in it, sockets are as they were."""
    before = (socket.socket.connect, socket.getaddrinfo)
    with pytest.raises(LookupError), loopback_only():
        assert socket.socket.connect is not before[0]
        raise LookupError
    assert (socket.socket.connect, socket.getaddrinfo) == before


# --- Node.js -------------------------------------------------------------------------------


def test_an_old_node_is_told_from_a_new_one(tmp_path: Path) -> None:
    """Mastra runs in what is new enough; otherwise its row says what was found."""
    old = Node(program(tmp_path, "old", "echo v20.20.2"), ())
    new = Node(program(tmp_path, "new", "echo v22.13.0"), ())
    assert with_mastra.find_node([old, new]) is new
    assert with_mastra.find_node([old]) == Absent(
        "Mastra", "needs Node.js 22 or newer, found 20.20.2"
    )
    assert with_mastra.find_node([]) == Absent("Mastra", "needs Node.js 22 or newer, found none")


def test_an_installation_that_fails_is_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What npm said is in the row; where nothing is installed, nothing is measured."""
    npm = program(tmp_path, "npm", "echo 'npm error: no such version' >&2", "exit 1")
    node = Node(program(tmp_path, "node", "echo v24.0.0"), (npm,))
    monkeypatch.setattr(with_mastra, "places", lambda: [node])
    monkeypatch.setattr(with_mastra, "FOLDER", tmp_path / "mastra")
    assert with_mastra.install() == Absent(
        "Mastra", "`npm install` failed: npm error: no such version"
    )
    assert with_mastra.measured(TINY) == Absent("Mastra", "`@mastra/core` is not installed")


def test_what_the_script_prints_becomes_rows() -> None:
    """Mastra is compared with the loop in the same engine, round by round."""
    hand, mastra = [[1e-4, 2e-4, 1e-4], [8e-4] * 3], [[1e-2, 4e-2, 1e-2], [4e-2] * 3]
    said = {"node": "24.0.0", "mastra": "1.0.0", "byHand": hand, "withMastra": mastra}
    first, second = with_mastra.rows(said, Scale(chunks=100, factor=4))
    assert (first.name, first.ratio, first.growth) == ("by hand, Node.js 24.0.0", 1, 2)
    assert (second.name, second.ratio, second.growth) == ("Mastra 1.0.0", 100, 1)
    assert second.short == pytest.approx(100)
    assert second.group == first.group


def test_the_script_is_run_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told the sizes, its telemetry is off, and it says whom it asked for outside."""
    said: dict[str, Any] = {"node": "24.0.0", "mastra": "1.0.0", "outside": ["telemetry.example"]}
    said |= {side: [[1e-4], [2e-4]] for side in ("byHand", "withMastra")}
    (tmp_path / "said.json").write_text(json.dumps(said), encoding="utf-8")
    node = program(
        tmp_path,
        "node",
        'if [ "$1" = --version ]; then echo v24.0.0; exit; fi',
        'echo "$@, off: $MASTRA_TELEMETRY_DISABLED" > asked',
        "cat said.json",
    )
    (tmp_path / "node_modules" / "@mastra" / "core").mkdir(parents=True)
    monkeypatch.setattr(with_mastra, "places", lambda: [Node(node, ())])
    monkeypatch.setattr(with_mastra, "FOLDER", tmp_path)
    found = with_mastra.measured(TINY)
    assert not isinstance(found, Absent)
    assert [row.name for row in found[0]] == ["by hand, Node.js 24.0.0", "Mastra 1.0.0"]
    assert found[1] == ["telemetry.example"]
    asked = (tmp_path / "asked").read_text(encoding="utf-8")
    assert '"rounds": 1, "lengths": [8, 16]' in asked
    assert asked.endswith("off: 1\n")


# --- the command ---------------------------------------------------------------------------


def test_the_peers_that_are_here_can_be_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A quick run measures for real, prints the page, and leaves the written one as it was."""
    here = [one for one in CANDIDATES if one.module in {"by_hand", "with_streampipe"}]
    monkeypatch.setattr(command, "CANDIDATES", here)
    monkeypatch.setattr(command, "QUICK", TINY)
    monkeypatch.setattr(command, "RESULTS", tmp_path / "RESULTS.md")
    monkeypatch.setattr(with_mastra, "measured", lambda _scale: Absent("Mastra", "not today"))
    assert command.main(["--quick"]) == 0
    text = capsys.readouterr().out
    assert [line.split(" ")[1] for line in lines_of(text)[:4]] == ["by", *["streampipe"] * 3]
    assert "## On the wire" in text
    assert "Mastra (not today)" in text
    assert "while measuring: nothing." in text
    assert not (tmp_path / "RESULTS.md").exists()


def test_the_page_is_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without an option, what is printed is also kept."""
    monkeypatch.setattr(command, "RESULTS", tmp_path / "RESULTS.md")
    monkeypatch.setattr(command, "report", lambda _scale: report(FLAT))
    assert command.main([]) == 0
    assert (tmp_path / "RESULTS.md").read_text(encoding="utf-8") == page(report(FLAT))


def test_an_unknown_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A mistyped option measures nothing."""
    with pytest.raises(SystemExit, match="2"):
        command.main(["--quik"])
    assert "--quik" in capsys.readouterr().err
