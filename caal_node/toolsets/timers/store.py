"""Keeps what is set in an SQLite file, which the processes of a home's rooms may share.

A damaged file is kept under another name, and one begun anew; the household is told once.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import astuple, fields, replace
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeVar, cast, get_args

from caal_node.core.errors import ToolBroke
from caal_node.core.private_database import BUSY_S, is_damage, open_database
from caal_node.toolsets.timers.entry import NAME_CHARS, Entry, Kind, State

T = TypeVar("T")

FILE_NAME: Final = "timers.sqlite3"
ENTRIES_MAX: Final = 200
"""More than a household sets, and what is listed, judged and read out stays small."""
_COLUMNS: Final = tuple(each.name for each in fields(Entry) if each.name != "number")
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS entries (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL, name TEXT NOT NULL, due REAL NOT NULL, length_s REAL NOT NULL,
    wall TEXT NOT NULL, weekdays TEXT NOT NULL, zone TEXT NOT NULL, place TEXT NOT NULL,
    state TEXT NOT NULL, lease REAL NOT NULL
)"""
_READ: Final = f"SELECT {', '.join(_COLUMNS)}, number FROM entries"
_WRITTEN: Final = ", ".join(f"{name} = ?" for name in _COLUMNS)
_FAILED: Final = "I can't get at my timers right now."
_LOST: Final = 1
"""The file's `user_version` while nobody was told that an earlier file was lost."""
_LATEST: Final = 2.0**36
"""In Unix time. It is far off, and what lies behind it is no date that Python has."""

_log = logging.getLogger(__name__)


class TimerStore:
    """The entries, in the order in which they are due. Every method runs in a thread of its own.

    Raises:
        ToolBroke: the file cannot be read or written.
    """

    def __init__(self, folder: Path) -> None:
        self.path: Final = folder / FILE_NAME
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        """Which file the connection is to: its device and number; None for none of its own."""
        self._lock = asyncio.Lock()

    async def all(self) -> list[Entry]:
        """Return every entry, the next first."""
        return await self._run(lambda db: _read(db, "ORDER BY due, number"))

    async def add(self, entry: Entry) -> Entry:
        """Keep a new entry, and return it with its number.

        Raises:
            ToolBroke: there are ENTRIES_MAX already, too.
        """
        return await self._run(lambda db: _insert(db, entry))

    async def swap(self, old: Sequence[Entry], new: Sequence[Entry]) -> bool:
        """Put entries, with their numbers, in the place of others, all or none.

        Returns:
            False where one of the `old` is not as it is given; nothing has changed then.

        Raises:
            ToolBroke: there would be more than ENTRIES_MAX, too.
        """

        def write(db: sqlite3.Connection) -> bool:
            where = "WHERE number = ?"
            if any(_read(db, where, (each.number,)) != [each] for each in old):
                return False
            for each in old:
                db.execute(f"DELETE FROM entries {where}", (each.number,))
            for each in new:
                _insert(db, each)
            return True

        return await self._run(write)

    async def update(self, entry: Entry) -> bool:
        """Write an entry as it is now; return False where it is not there any more."""

        def write(db: sqlite3.Connection) -> bool:
            query = f"UPDATE entries SET {_WRITTEN} WHERE number = ?"
            return db.execute(query, (*_values(entry), entry.number)).rowcount > 0

        return await self._run(write)

    async def remove(self, entry: Entry) -> bool:
        """Forget an entry; return False where it is not there any more."""
        query = "DELETE FROM entries WHERE number = ?"
        return await self._run(lambda db: db.execute(query, (entry.number,)).rowcount > 0)

    async def claim_due(
        self, now: float, place: str, grace_s: float, lease_s: float
    ) -> list[Entry]:
        """Take what is due to be rung here; nobody else gets it until its lease has run out.

        Args:
            now: Unix time.
            place: This room, whose entries come first; those of others are taken where nobody has
                rung them in `grace_s` seconds.
            lease_s: Seconds until another process may take them, as this one must have died.
        """
        query = (
            "WHERE (state = 'waiting' AND due <= ? AND (place = ? OR due <= ?))"
            " OR (state = 'ringing' AND lease <= ?) ORDER BY due, number"
        )
        return await self._run(
            lambda db: _claim(db, query, (now, place, now - grace_s, now), now + lease_s)
        )

    async def claim_missed(self, now: float, lease_s: float) -> list[Entry]:
        """Take what nobody has heard, in order to tell it."""
        query = "WHERE state = 'missed' AND lease <= ? ORDER BY due, number"
        return await self._run(lambda db: _claim(db, query, (now,), now + lease_s, state="missed"))

    async def renew(self, entry: Entry, until: float) -> bool:
        """Go on ringing an entry; return False where it was stopped or changed."""
        query = "UPDATE entries SET lease = ? WHERE number = ? AND state = 'ringing' AND due = ?"
        values = (until, entry.number, entry.due)
        return await self._run(lambda db: db.execute(query, values).rowcount > 0)

    async def take_lost(self) -> bool:
        """Say whether somebody is still to be told that an earlier file was lost; the caller is to
        tell it."""

        def take(db: sqlite3.Connection) -> bool:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            db.execute("PRAGMA user_version = 0")
            return version == _LOST

        return await self._run(take)

    async def keep_lost(self) -> None:
        """Note that nobody has heard it yet."""
        await self._run(lambda db: db.execute(f"PRAGMA user_version = {_LOST}"))

    async def aclose(self) -> None:
        """Close the file. The next call opens it again."""
        async with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                await asyncio.to_thread(connection.close)

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        async with self._lock:
            # A cancelled call would leave its thread at work on the connection.
            task = asyncio.ensure_future(asyncio.to_thread(self._transaction, work))
            try:
                return await asyncio.shield(task)
            except asyncio.CancelledError:
                await asyncio.wait((task,), timeout=2 * BUSY_S)
                raise
            except (sqlite3.Error, OSError) as error:
                broke = ToolBroke(f"The timers' file cannot be used: {type(error).__name__}.")
                broke.words = _FAILED
                raise broke from error

    def _transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return self._tried(work)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not is_damage(error):
                raise
            self._set_aside(error)
        return self._tried(work)

    def _tried(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._connection is None:
            self._file = _number(self.path)
            self._connection = _opened(self.path)
            self._file = _number(self.path)
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            return work(self._connection)

    def _set_aside(self, error: Exception) -> None:
        """Give a damaged file another name, and begin one anew."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        if self._file != _number(self.path):
            return  # another process has done so already
        names = (f"{self.path}.damaged{number or ''}" for number in count())
        kept = next(name for name in names if not os.path.lexists(name))
        self.path.rename(kept)
        for ending in ("-journal", "-wal", "-shm"):  # SQLite would apply them to the new file
            beside = Path(f"{self.path}{ending}")
            if beside.exists():
                beside.rename(f"{kept}{ending}")
        _log.warning("%s is damaged (%s): it is kept as %s and begun anew", self.path, error, kept)
        self._tried(lambda db: db.execute(f"PRAGMA user_version = {_LOST}"))


def _number(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def _opened(path: Path) -> sqlite3.Connection:
    connection = open_database(path)
    try:
        connection.execute(_TABLE)
        columns = {row[1] for row in connection.execute("PRAGMA table_info(entries)")}
        if columns != {"number", *_COLUMNS}:
            raise sqlite3.DatabaseError("its table has other columns")
    except (sqlite3.Error, UnicodeDecodeError):
        connection.close()
        raise
    return connection


def _entry(row: tuple[Any, ...]) -> Entry:
    """Return a row as an entry.

    Raises:
        sqlite3.DatabaseError: it holds what was never written.
    """
    entry = Entry(*row)
    # SQLite keeps what it is given, whatever the column's type.
    given = (entry.name, entry.wall, entry.weekdays, entry.zone, entry.place)
    words = cast("tuple[object, ...]", given)
    numbers = (entry.due, entry.length_s, entry.lease)
    try:
        if (
            entry.kind not in get_args(Kind)
            or entry.state not in get_args(State)
            or not all(isinstance(each, str) for each in words)
            or not all(math.isfinite(each) for each in numbers)
            or not 0 <= entry.due < _LATEST
            or not set(entry.weekdays) <= set("0123456")
            or (entry.weekdays and not entry.wall)
        ):
            raise ValueError
        if entry.wall:
            datetime.fromisoformat(entry.wall)
    except (TypeError, ValueError):
        raise sqlite3.DatabaseError(f"entry {entry.number} is none") from None
    return replace(entry, name=entry.name[:NAME_CHARS])


def _values(entry: Entry) -> tuple[Any, ...]:
    return astuple(entry)[: len(_COLUMNS)]


def _read(db: sqlite3.Connection, where: str, values: tuple[Any, ...] = ()) -> list[Entry]:
    return [_entry(row) for row in db.execute(f"{_READ} {where}", values)]


def _insert(db: sqlite3.Connection, entry: Entry) -> Entry:
    (count,) = db.execute("SELECT count(*) FROM entries").fetchone()
    if count >= ENTRIES_MAX:
        full = ToolBroke(f"There are {count} timers, alarms and reminders already.")
        full.words = f"There are {count} timers, alarms and reminders already."
        raise full
    marks = ", ".join("?" for _ in _COLUMNS)
    query = f"INSERT INTO entries ({', '.join(_COLUMNS)}, number) VALUES ({marks}, ?)"
    cursor = db.execute(query, (*_values(entry), entry.number or None))
    return replace(entry, number=cast("int", cursor.lastrowid))


def _claim(
    db: sqlite3.Connection,
    where: str,
    values: tuple[Any, ...],
    lease: float,
    state: str = "ringing",
) -> list[Entry]:
    found = _read(db, where, values)
    for entry in found:
        query = "UPDATE entries SET state = ?, lease = ? WHERE number = ?"
        db.execute(query, (state, lease, entry.number))
    return [replace(entry, state=cast("Any", state), lease=lease) for entry in found]
