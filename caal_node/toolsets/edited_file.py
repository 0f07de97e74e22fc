"""Changes a file that a person may be editing at the same time, without losing their work."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias, TypeVar

from filelock import FileLock, Timeout

from mcp_bridge.core.files import open_regular, read_rest

T = TypeVar("T")
Edit: TypeAlias = Callable[[bytes | None], tuple[bytes | None, T]]
"""Given a file's bytes, or None where there is no file, it returns the new bytes, or None where
nothing is to change, and what the caller wants to know. It may be called more than once."""

LOCK_S: Final = 5.0
"""Seconds to wait for another process of this package that changes a file of the same folder."""
QUIET_S: Final = 0.05
"""Seconds since a file was last written after which it is taken for whole. Most editors empty a
file and then write it."""
TRIES: Final = 40
"""How often a change is made anew because somebody else wrote meanwhile: 2 s at QUIET_S each."""
_LOCK_NAME: Final = ".caal-node.lock"
_PLAIN_FILE: Final = 0o666


def change_file(
    path: Path, edit: Edit[T], max_bytes: int, *, pause: Callable[[float], None] = time.sleep
) -> T:
    """Change a file by `edit`, whole or not at all, and return what `edit` has returned with it.

    What another program writes meanwhile stays: the change is then made to that. A link is
    followed, and stays a link; so do the file's rights. The folder is made where it is missing.
    It blocks, so it belongs in a thread.

    Raises:
        OSError: it cannot be read or written, or was written all the time; TimeoutError where
            another process holds the folder's lock for LOCK_S.
        ValueError: the file has more than `max_bytes`.
    """
    place = path.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(place.parent / _LOCK_NAME, timeout=LOCK_S):
            return _change(place, edit, max_bytes, pause)
    except Timeout:
        raise TimeoutError(f"another process has been writing in {place.parent}") from None


def _change(place: Path, edit: Edit[T], max_bytes: int, pause: Callable[[float], None]) -> T:
    written_over: bytes | None = None
    for _ in range(TRIES):
        if _is_fresh(place) and written_over is None:
            pause(QUIET_S)
            continue
        with contextlib.ExitStack() as stack:
            file = _opened(place, stack)
            before = read_rest(file, max_bytes) if file is not None else None
            # An editor may have written into the very file that the last try replaced.
            base, written_over = (before, None) if written_over is None else (written_over, None)
            after, told = edit(base)
            if after is None or after == before:
                return told
            if not _replace(place, before, after, max_bytes):
                continue
            if file is None:
                return told
            file.seek(0)
            late = read_rest(file, max_bytes)
            if late == before:
                return told
            written_over = late
    raise OSError(f"{place.name} is being written all the time")


def _is_fresh(place: Path) -> bool:
    """Say whether somebody may be in the middle of writing the file."""
    try:
        age_s = time.time() - place.stat().st_mtime
    except OSError:
        return False
    return 0 <= age_s < QUIET_S


def _opened(place: Path, stack: contextlib.ExitStack) -> BinaryIO | None:
    try:
        return stack.enter_context(open_regular(place))
    except FileNotFoundError:
        return None


def _replace(place: Path, before: bytes | None, after: bytes, max_bytes: int) -> bool:
    """Put `after` in the file's place; False where it no longer holds `before`."""
    handle, scratch = tempfile.mkstemp(dir=place.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(after)
            file.flush()
            os.fsync(file.fileno())
        if before is not None:
            shutil.copymode(place, scratch)
        else:  # whoever may open the folder is to read the file, and to edit it
            Path(scratch).chmod(place.parent.stat().st_mode & _PLAIN_FILE)
        with contextlib.ExitStack() as stack:
            now = _opened(place, stack)
            if (read_rest(now, max_bytes) if now is not None else None) != before:
                return False
        Path(scratch).replace(place)
        scratch = ""
        return True
    finally:
        if scratch:
            Path(scratch).unlink(missing_ok=True)
