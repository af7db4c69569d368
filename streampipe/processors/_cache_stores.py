"""Where `ResponseCache` keeps answers: in memory, in a file, in a Redis server, or elsewhere."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from streampipe.errors import ConfigurationError
from streampipe.operators._functions import check_function
from streampipe.processors._options import Count, Name, checked_options

__all__ = ["CacheStore", "MemoryStore", "RedisStore", "SQLiteStore"]

T = TypeVar("T")
Clock = Callable[[], float]
"""The time in seconds."""

INSTALL = "pip install 'streampipe-rx[redis]'"
BATCH = 1_000  # keys that a Redis server is told to delete at once
LOCKED = 1.0  # seconds to wait for another process that writes

SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS answers (
    number INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    entry BLOB NOT NULL,
    expires REAL
);
CREATE INDEX IF NOT EXISTS expiry ON answers (expires) WHERE expires IS NOT NULL;
"""

TRIM = "DELETE FROM answers WHERE number <= (SELECT max(number) FROM answers) - ?"


@runtime_checkable
class CacheStore(Protocol):
    """Keeps bytes by key. Whatever a method raises, `ResponseCache` takes for a broken store."""

    async def get(self, key: str) -> bytes | None:
        """What is kept under a key; None if nothing is, or its time is over."""
        ...

    async def set(self, key: str, entry: bytes, ttl: float | None) -> None:
        """Keep bytes under a key, for so many seconds; None for as long as there is room."""
        ...

    async def delete(self, key: str) -> None:
        """Forget a key, known or not."""
        ...

    async def clear(self) -> None:
        """Forget all keys."""
        ...

    async def close(self) -> None:
        """Let go of files and connections; may be called twice."""
        ...


class MemoryStore:
    """Keeps answers as long as this object lives, the least recently used forgotten first.

    >>> import asyncio
    >>> store = MemoryStore(max_entries=1)
    >>> async def use() -> bytes | None:
    ...     await store.set("a", b"1", None)
    ...     await store.set("b", b"2", None)
    ...     return await store.get("a")
    >>> print(asyncio.run(use()), len(store))
    None 1
    """

    @checked_options
    def __init__(self, max_entries: Count = 1_000, *, clock: Clock = time.monotonic) -> None:
        """Start empty.

        Args:
            max_entries: how many are kept.
            clock: tells the time in seconds, by which entries grow old.

        Raises:
            ConfigurationError: an option is not as described.
        """
        owner = type(self).__name__
        self._most = max_entries
        check_function(owner, "clock", clock)
        self._clock = clock
        self._entries: OrderedDict[str, tuple[bytes, float | None]] = OrderedDict()

    def __len__(self) -> int:
        """How many entries there are, those included that nobody has asked for since they ended."""
        return len(self._entries)

    async def get(self, key: str) -> bytes | None:
        """See `CacheStore.get`."""
        kept = self._entries.get(key)
        if kept is None:
            return None
        entry, expires = kept
        if expires is not None and self._clock() >= expires:
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return entry

    async def set(self, key: str, entry: bytes, ttl: float | None) -> None:
        """See `CacheStore.set`."""
        self._entries[key] = entry, None if ttl is None else self._clock() + ttl
        self._entries.move_to_end(key)
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)

    async def delete(self, key: str) -> None:
        """See `CacheStore.delete`."""
        self._entries.pop(key, None)

    async def clear(self) -> None:
        """See `CacheStore.clear`."""
        self._entries.clear()

    async def close(self) -> None:
        """Nothing is held but memory."""


class SQLiteStore:
    """Keeps answers in a file, which survives the process; several processes may share it.

    All work is done in threads, off the event loop. One object serves any number of loops.
    """

    @checked_options
    def __init__(
        self, path: str | Path, *, max_entries: Count = 100_000, clock: Clock = time.time
    ) -> None:
        """Say where; the file is opened, and made, at the first use.

        Args:
            path: the file. Beside it SQLite keeps two more, `-wal` and `-shm`.
            max_entries: the newest so many that were written are kept.
            clock: tells the time in seconds, by which entries grow old: one that all processes
                share.

        Raises:
            ConfigurationError: the file's folder does not exist, or an option is not as described.
        """
        owner = type(self).__name__
        if not isinstance(path, str | Path) or str(path) in ("", ":memory:"):
            msg = f"{owner}: path must be that of a file, not {path!r:.80}; else use MemoryStore()"
            raise ConfigurationError(msg)
        if not Path(path).parent.is_dir():
            raise ConfigurationError(f"{owner}: path={str(path)!r}: its folder does not exist")
        self._path = Path(path)
        self._most = max_entries
        check_function(owner, "clock", clock)
        self._clock = clock
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    async def get(self, key: str) -> bytes | None:
        """See `CacheStore.get`.

        Raises:
            sqlite3.Error: the file cannot be read.
        """
        query = "SELECT entry FROM answers WHERE key = ? AND (expires IS NULL OR expires > ?)"

        def read(db: sqlite3.Connection) -> bytes | None:
            with closing(db.execute(query, (key, self._clock()))) as cursor:
                row = cursor.fetchone()
            return None if row is None else row[0]

        return await self._do(read)

    async def set(self, key: str, entry: bytes, ttl: float | None) -> None:
        """See `CacheStore.set`; entries whose time is over go as well.

        Raises:
            sqlite3.Error: the file cannot be written, or another process has held it for a second.
        """

        def write(db: sqlite3.Connection) -> None:
            now = self._clock()
            expires = None if ttl is None else now + ttl
            db.execute("DELETE FROM answers WHERE expires <= ?", (now,))
            db.execute(
                "INSERT OR REPLACE INTO answers (key, entry, expires) VALUES (?, ?, ?)",
                (key, entry, expires),
            )
            db.execute(TRIM, (self._most,))

        await self._do(write)

    async def delete(self, key: str) -> None:
        """See `CacheStore.delete`.

        Raises:
            sqlite3.Error: the file cannot be written.
        """
        await self._do(lambda db: db.execute("DELETE FROM answers WHERE key = ?", (key,)))

    async def clear(self) -> None:
        """See `CacheStore.clear`.

        Raises:
            sqlite3.Error: the file cannot be written.
        """
        await self._do(lambda db: db.execute("DELETE FROM answers"))

    async def close(self) -> None:
        """Close the file; a later use opens it again."""

        def close() -> None:
            with self._lock:
                if self._connection is not None:
                    self._connection.close()
                self._connection = None

        await asyncio.to_thread(close)

    async def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Have a transaction done in a thread."""

        def transaction() -> T:
            with self._lock, self._opened() as connection:  # commits, or rolls back
                return work(connection)

        return await asyncio.to_thread(transaction)

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            connection = sqlite3.connect(self._path, timeout=LOCKED, check_same_thread=False)
            try:
                connection.executescript(SCHEMA)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection


class RedisStore:
    """Keeps answers in a Redis server, or one that speaks its protocol; needs the extra `redis`.

    How many it keeps is the server's affair (`maxmemory`). As the client does, a store serves one
    event loop.
    """

    @checked_options
    def __init__(self, server: Any, *, prefix: Name = "streampipe:answer:") -> None:
        """Say where; nothing is sent before the first use.

        Args:
            server: a URL such as `redis://localhost:6379/0`, or a `redis.asyncio.Redis`, which
                stays yours to close.
            prefix: what the keys on the server begin with: two prefixes are two stores.

        Raises:
            ConfigurationError: the extra is missing, or an option is not as described.
        """
        owner = type(self).__name__
        try:
            from redis import asyncio as redis  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise ConfigurationError(f"{owner}: needs a client: {INSTALL}") from error
        self._prefix = prefix
        self._is_ours = isinstance(server, str)
        if isinstance(server, str):
            try:
                server = redis.Redis.from_url(server)
            except ValueError as error:  # the URL may hold a password: it is not told
                raise ConfigurationError(f"{owner}: server is no URL of Redis: {error}") from None
        elif not isinstance(server, redis.Redis):
            kind = type(server).__name__
            msg = f"{owner}: server must be a URL or a redis.asyncio.Redis, not {kind}"
            raise ConfigurationError(msg)
        self._client: Any = server

    async def get(self, key: str) -> bytes | None:
        """See `CacheStore.get`.

        Raises:
            redis.RedisError: the server cannot be reached, or refuses.
        """
        entry: bytes | str | None = await self._client.get(self._prefix + key)
        return entry.encode() if isinstance(entry, str) else entry  # a client that decodes

    async def set(self, key: str, entry: bytes, ttl: float | None) -> None:
        """See `CacheStore.set`.

        Raises:
            redis.RedisError: the server cannot be reached, or refuses.
        """
        milliseconds = None if ttl is None else max(1, round(ttl * 1_000))
        await self._client.set(self._prefix + key, entry, px=milliseconds)

    async def delete(self, key: str) -> None:
        """See `CacheStore.delete`.

        Raises:
            redis.RedisError: the server cannot be reached, or refuses.
        """
        await self._client.delete(self._prefix + key)

    async def clear(self) -> None:
        """See `CacheStore.clear`: all keys with the prefix.

        Raises:
            redis.RedisError: the server cannot be reached, or refuses.
        """
        found: list[Any] = []
        async for key in self._client.scan_iter(match=_literal(self._prefix) + "*", count=BATCH):
            found.append(key)
            if len(found) == BATCH:
                await self._client.delete(*found)
                found.clear()
        if found:
            await self._client.delete(*found)

    async def close(self) -> None:
        """Close the connections of a client that was made from a URL."""
        close: Callable[[], Awaitable[None]] = self._client.aclose
        if self._is_ours:
            await close()


def _literal(text: str) -> str:
    """A text as a pattern of Redis that matches nothing else."""
    return "".join(f"\\{char}" if char in "*?[]\\" else char for char in text)
