"""Opens an SQLite file that is for its user alone, like all that is kept between sessions."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Final

from mcp_bridge.core.files import make_private_folder, move_to_nothing, new_scratch

BUSY_S: Final = 5.0
"""Seconds for which another process's write is waited for; one takes milliseconds."""
_PRIVATE: Final = 0o600
_UNDECODED: Final = "Could not decode"
"""How Python begins what it says of a text that is no UTF-8, which has no code."""
_NO_DAMAGE: Final = frozenset(
    {
        *(sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM),
        *(sqlite3.SQLITE_READONLY, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_IOERR),
        *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL),
        *(sqlite3.SQLITE_AUTH, sqlite3.SQLITE_MISUSE),
    }
)
"""SQLite's errors that come of a lock, the disk or rights, whatever the file holds."""


def open_database(path: Path, *, create: bool = True) -> sqlite3.Connection:
    """Open a file of SQLite; transactions are the caller's to begin. It blocks.

    It is opened to be written also where it is only read, as what a killed process has left
    unfinished is taken back then. SQLite gives its other files the rights of this one.

    Args:
        create: Whether the file and its folder are made where they are missing.

    Raises:
        OSError: it cannot be made, or is no file.
        sqlite3.DatabaseError: it is damaged, as far as that is seen here: it is empty.
        sqlite3.Error: it cannot be opened.
    """
    if create:
        make_private_folder(path.parent)
        if not path.exists():
            _make(path.resolve())
        # SQLite would make it for everybody to read, and so did earlier versions.
        with contextlib.suppress(OSError):  # another user's, who lets us write
            path.chmod(_PRIVATE)
    if not path.is_file():
        raise OSError("it is no file")
    if not path.stat().st_size:
        raise sqlite3.DatabaseError("it is empty")
    return sqlite3.connect(
        f"{path.resolve().as_uri()}?mode=rw",
        uri=True,
        timeout=BUSY_S,
        isolation_level=None,
        check_same_thread=False,
    )


def is_damage(error: Exception) -> bool:
    """Say whether an error comes of what a file of SQLite holds, and so for ever.

    Names and texts that are no UTF-8 are a UnicodeDecodeError, or an error without a code.
    """
    if not isinstance(error, sqlite3.DatabaseError):
        return isinstance(error, UnicodeDecodeError)
    code: int | None = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return type(error) is sqlite3.DatabaseError or str(error).startswith(_UNDECODED)
    return code & 0xFF not in _NO_DAMAGE


def _make(place: Path) -> None:
    """Make a database without tables. It has a first page when others see it, as SQLite would take
    a file that has lost all of its bytes for a new one."""
    handle, scratch = new_scratch(place.parent)
    os.close(handle)
    try:
        with contextlib.closing(sqlite3.connect(scratch)) as connection:
            connection.execute("PRAGMA user_version = 0")  # which writes it
        move_to_nothing(scratch, place)
    finally:
        scratch.unlink(missing_ok=True)
