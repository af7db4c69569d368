"""The stores of `ResponseCache`: what all keep, and what each does where it ends or breaks."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import fakeredis
import pytest
import redis.asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.exceptions import RedisError

from streampipe.errors import ConfigurationError
from streampipe.processors import CacheStore, MemoryStore, RedisStore, SQLiteStore
from streampipe.processors import _cache_stores as stores

KINDS = ("memory", "sqlite", "redis")


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        """Start at some time."""
        self.now = 1_000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def made(kind: str, folder: Path) -> Any:
    """A new store."""
    match kind:
        case "memory":
            return MemoryStore()
        case "sqlite":
            return SQLiteStore(folder / "answers.db")
        case _:
            return RedisStore(fakeredis.FakeAsyncRedis())


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[CacheStore]:
    """Each of our stores, empty.

    Yields:
        The store; it is closed afterwards.
    """
    one = made(request.param, tmp_path)
    yield one
    await one.close()
    if isinstance(one, RedisStore):
        await one._client.aclose()


# --- what all keep -------------------------------------------------------------------------


async def test_what_is_set_is_got(store: CacheStore) -> None:
    """Byte by byte; what was set later takes the place of what was there."""
    assert isinstance(store, CacheStore)
    assert await store.get("a") is None
    await store.set("a", b"1\n\x00\xff", None)
    await store.set("b", b"2", 60)
    assert [await store.get(key) for key in "abc"] == [b"1\n\x00\xff", b"2", None]
    await store.set("a", b"3", None)
    assert await store.get("a") == b"3"


async def test_what_is_deleted_is_gone(store: CacheStore) -> None:
    """Alone; and a key that is not known is no error."""
    for key in "ab":
        await store.set(key, b"1", None)
    await store.delete("a")
    await store.delete("a")
    assert [await store.get(key) for key in "ab"] == [None, b"1"]


async def test_clear_leaves_nothing(store: CacheStore) -> None:
    """However much there was."""
    for key in range(5):
        await store.set(str(key), b"1", None)
    await store.clear()
    assert [await store.get(str(key)) for key in range(5)] == [None] * 5
    await store.clear()


@pytest.mark.parametrize("used", [True, False])
async def test_a_store_may_be_closed_twice_and_keeps_what_it_has(
    store: CacheStore, *, used: bool
) -> None:
    """Used or not."""
    if used:
        await store.set("a", b"1", None)
    await store.close()
    await store.close()
    assert await store.get("a") == (b"1" if used else None)
    await store.close()


OPERATIONS = st.one_of(
    st.tuples(st.just("set"), st.sampled_from("abc"), st.binary(max_size=4)),
    st.tuples(st.sampled_from(["get", "delete"]), st.sampled_from("abc"), st.none()),
    st.tuples(st.just("clear"), st.none(), st.none()),
)


@pytest.mark.parametrize("kind", KINDS)
@given(operations=st.lists(OPERATIONS, max_size=12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_store_is_a_dict(
    kind: str, tmp_path: Path, operations: list[tuple[str, str, bytes]]
) -> None:
    """Whatever is done to it, in whatever order."""

    async def compare() -> None:
        store, known = made(kind, tmp_path), dict[str, bytes]()
        await store.clear()
        for name, key, entry in operations:
            match name:
                case "set":
                    await store.set(key, entry, None)
                    known[key] = entry
                case "get":
                    assert await store.get(key) == known.get(key)
                case "delete":
                    await store.delete(key)
                    known.pop(key, None)
                case _:
                    await store.clear()
                    known.clear()
        assert {key: await store.get(key) for key in known} == known
        await store.close()

    asyncio.run(compare())


# --- when they let go ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_an_entry_is_good_for_its_time(kind: str, tmp_path: Path) -> None:
    """To the second, by the clock that was given; without a time for ever."""
    clock = Clock()
    path = tmp_path / "answers.db"
    store = MemoryStore(clock=clock) if kind == "memory" else SQLiteStore(path, clock=clock)
    await store.set("short", b"1", 5)
    await store.set("for ever", b"2", None)
    clock.now += 4.9
    assert await store.get("short") == b"1"
    clock.now += 0.1
    assert [await store.get(key) for key in ("short", "for ever")] == [None, b"2"]
    await store.set("short", b"3", 5)
    assert await store.get("short") == b"3"
    await store.close()


async def test_a_server_is_told_the_time() -> None:
    """In milliseconds, one at least; and none where there is none."""
    client = fakeredis.FakeAsyncRedis()
    store = RedisStore(client, prefix="p:")
    for key, ttl in (("a", 1.5), ("b", None), ("c", 0.000_1)):
        await store.set(key, b"1", ttl)
    assert 1_000 < await client.pttl("p:a") <= 1_500
    assert await client.pttl("p:b") == -1
    assert await client.pttl("p:c") <= 1
    await client.aclose()


async def test_memory_keeps_what_was_used_last() -> None:
    """Reading is use, and so is writing again."""
    store = MemoryStore(max_entries=2)
    for key in ("a", "b"):
        await store.set(key, b"1", None)
    await store.get("a")
    await store.set("c", b"1", None)
    assert [await store.get(key) for key in "abc"] == [b"1", None, b"1"]
    await store.set("a", b"2", None)
    await store.set("d", b"1", None)
    assert [await store.get(key) for key in "acd"] == [b"2", None, b"1"]
    assert len(store) == 2


async def test_a_file_keeps_what_was_written_last(tmp_path: Path) -> None:
    """And lets go of what has had its time, whoever asks for what."""
    clock, path = Clock(), tmp_path / "answers.db"
    store = SQLiteStore(path, max_entries=2, clock=clock)
    for key in "abc":
        await store.set(key, b"1", 5)
    assert [await store.get(key) for key in "abc"] == [None, b"1", b"1"]
    clock.now += 5
    await store.set("d", b"1", None)
    await store.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT key FROM answers").fetchall() == [("d",)]


# --- files ---------------------------------------------------------------------------------


async def test_a_file_survives(tmp_path: Path) -> None:
    """The object, and its own `close`: a later use opens it again."""
    path = tmp_path / "answers.db"
    first = SQLiteStore(path)
    await first.set("a", b"1", None)
    await first.close()
    assert await first.get("a") == b"1"
    second = SQLiteStore(str(path))
    assert await second.get("a") == b"1"
    await asyncio.gather(first.close(), second.close())


def test_a_store_serves_several_loops(tmp_path: Path) -> None:
    """One after the other."""
    store = SQLiteStore(tmp_path / "answers.db")
    asyncio.run(store.set("a", b"1", None))
    assert asyncio.run(store.get("a")) == b"1"
    asyncio.run(store.close())


async def test_several_write_at_once(tmp_path: Path) -> None:
    """A file that is new to all of them; nothing is lost."""
    several = [SQLiteStore(tmp_path / "answers.db") for _ in range(6)]
    await asyncio.gather(
        *(one.set(f"{n}", b"1", None) for n, one in enumerate(several)),
    )
    assert [await several[0].get(f"{n}") for n in range(6)] == [b"1"] * 6
    await asyncio.gather(*(one.close() for one in several))


async def test_another_process_sees_it(tmp_path: Path) -> None:
    """While the file is open here; and what it writes is seen here."""
    path = tmp_path / "answers.db"
    store = SQLiteStore(path)
    await store.set("ours", b"1", None)
    program = (
        "import asyncio, sys\n"
        "from streampipe.processors._cache_stores import SQLiteStore\n"
        "async def main():\n"
        "    store = SQLiteStore(sys.argv[1])\n"
        "    await store.set('theirs', (await store.get('ours')) + b'2', None)\n"
        "    await store.close()\n"
        "asyncio.run(main())\n"
    )
    await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", program, str(path)],
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert await store.get("theirs") == b"12"
    await store.close()


async def test_a_locked_file_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of writing only, after a while; when the lock is gone all is well."""
    monkeypatch.setattr(stores, "LOCKED", 0.01)
    path = tmp_path / "answers.db"
    store = SQLiteStore(path)
    await store.set("a", b"1", None)
    opened = store._connection
    assert opened is not None
    assert opened.execute("PRAGMA busy_timeout").fetchone() == (10,)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            await store.set("b", b"2", None)
        assert await store.get("a") == b"1"
        other.execute("ROLLBACK")
    await store.set("b", b"2", None)
    assert await store.get("b") == b"2"
    assert store._connection is opened
    await store.close()


async def test_a_file_of_something_else_is_an_error(tmp_path: Path) -> None:
    """It is left as it is."""
    path = tmp_path / "letter.txt"
    path.write_text("Dear Ada, " * 200)
    store = SQLiteStore(path)
    for _ in range(2):
        with pytest.raises(sqlite3.DatabaseError):
            await store.get("a")
    await store.close()
    assert path.read_text() == "Dear Ada, " * 200


# --- servers -------------------------------------------------------------------------------


async def test_keys_of_others_stay() -> None:
    """Those with another prefix, even where one looks like a pattern; and in any number."""
    client = fakeredis.FakeAsyncRedis()
    ours, theirs = RedisStore(client, prefix="a[b]*:"), RedisStore(client, prefix="ab:")
    for one in (ours, theirs):
        await one.set("k", b"1", None)
    await client.set("a[b]x:k", b"1")
    await ours.clear()
    assert [await one.get("k") for one in (ours, theirs)] == [None, b"1"]
    assert await client.get("a[b]x:k") == b"1"
    await client.aclose()


async def test_more_keys_than_go_in_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """All go."""
    monkeypatch.setattr(stores, "BATCH", 2)
    client = fakeredis.FakeAsyncRedis()
    store = RedisStore(client)
    for key in range(5):
        await store.set(str(key), b"1", None)
    await store.clear()
    assert await client.dbsize() == 0
    await client.aclose()


async def test_a_client_that_decodes_will_do() -> None:
    """An entry of ours is UTF-8."""
    client = fakeredis.FakeAsyncRedis(decode_responses=True)
    store = RedisStore(client)
    await store.set("a", "é".encode(), None)
    assert await store.get("a") == "é".encode()
    await client.aclose()


async def test_a_client_of_yours_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was made from a URL is closed."""
    closed: list[Any] = []

    async def aclose(client: Any) -> None:
        closed.append(client)

    monkeypatch.setattr(redis.asyncio.Redis, "aclose", aclose)
    yours = redis.asyncio.Redis()
    await RedisStore(yours).close()
    assert not closed
    await RedisStore("redis://localhost:1").close()
    assert len(closed) == 1


async def test_a_server_that_is_not_there_is_an_error(unused_tcp_port: int) -> None:
    """Of every method that asks it."""
    store = RedisStore(f"redis://127.0.0.1:{unused_tcp_port}")
    for work in (
        store.get("a"),
        store.set("a", b"1", None),
        store.delete("a"),
        store.clear(),
    ):
        with pytest.raises(RedisError):
            await work
    await store.close()


def test_a_missing_client_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the store is made."""
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(ConfigurationError, match=r"^RedisStore: .*pip install 'streampipe-rx\["):
        RedisStore("redis://localhost")


# --- bad options ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _: MemoryStore(0), "MemoryStore: max_entries must be a whole number"),
        (lambda _: MemoryStore(clock=1.0), "MemoryStore: clock must be a function"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda _: SQLiteStore(""), "SQLiteStore: path must be that of a file"),
        (lambda _: SQLiteStore(":memory:"), r"SQLiteStore: path must .*MemoryStore\(\)"),
        (lambda _: SQLiteStore(7), "SQLiteStore: path must"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda at: SQLiteStore(at / "no" / "a.db"), "SQLiteStore: path=.*folder does not exist"),
        (lambda at: SQLiteStore(at / "a.db", max_entries=-1), "SQLiteStore: max_entries must"),
        (lambda at: SQLiteStore(at / "a.db", clock="now"), "SQLiteStore: clock must"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda _: RedisStore(7), "RedisStore: server must be a URL .*not int"),
        (lambda _: RedisStore("redis://h", prefix=""), "RedisStore: prefix must"),
    ],
)
def test_a_bad_option_is_refused(make: Callable[[Path], Any], message: str, tmp_path: Path) -> None:
    """When the store is made; the message names it and the option."""
    with pytest.raises(ConfigurationError, match=message):
        make(tmp_path)


def test_a_password_is_not_told() -> None:
    """By the error of a URL that is none."""
    with pytest.raises(ConfigurationError, match="RedisStore: server is no URL") as caught:
        RedisStore("https://:hunter2@localhost")
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
