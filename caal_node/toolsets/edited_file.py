"""Reads and changes text files that a person may be editing at the same time.

Every toolset that writes into a file of a person's does it here. The calls block, so they belong in
a thread.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias, TypeVar

from filelock import FileLock, Timeout

from mcp_bridge.core.files import (
    make_private_folder,
    move_to_nothing,
    new_scratch,
    open_regular,
    read_rest,
)

T = TypeVar("T")
Edit: TypeAlias = Callable[[str | None], tuple[str | None, T]]
"""Given a file's text, or None where there is no file, it returns the new text, or None where
nothing is to change, and what the caller wants to know. It may be called more than once."""
Pause: TypeAlias = Callable[[float], None]

LOCK_S: Final = 5.0
"""Seconds to wait for another process of this package that changes a file of the same folder."""
QUIET_S: Final = 0.05
"""Seconds since a file was last written after which it is taken for whole."""
EMPTY_S: Final = 1.0
"""The same for an empty file. Most editors empty a file and then write it, and slow ones, or those
on a network, pause in between."""
TRIES: Final = 60
"""How often a change is made anew because somebody else wrote meanwhile: 3 s at QUIET_S each."""
_LOCK_NAME: Final = ".caal-node.lock"
_PLAIN_FILE: Final = 0o666
_PRIVATE_FILE: Final = 0o600
_MARK: Final = b"\xef\xbb\xbf"
"""The byte order mark with which some programs begin a file. Text has none."""


def read_text(path: Path, max_bytes: int, *, pause: Pause = time.sleep) -> str | None:
    """Return a file's text, line ends as they are; None where there is no file.

    A file that was emptied this moment is being written, and waited for.

    Raises:
        OSError: it cannot be read.
        ValueError: it has more than `max_bytes`, or is not UTF-8.
    """
    for _ in range(TRIES):
        try:
            with open_regular(path) as file:
                data = read_rest(file, max_bytes)
                if data or not _is_fresh(file):
                    return _decoded(data, path)
        except FileNotFoundError:
            return None
        pause(QUIET_S)
    return ""


def change_text(
    path: Path,
    edit: Edit[T],
    max_bytes: int,
    *,
    private: bool = False,
    pause: Pause = time.sleep,
) -> T:
    """Change a file by `edit`, whole or not at all, and return what `edit` has returned with it.

    What another program writes meanwhile stays: the change is then made to that. A link is
    followed, and stays a link; so do the file's rights and its byte order mark. The folder is made
    where it is missing.

    Args:
        private: Whether a new file, and a new folder, are for their user alone. Else whoever may
            open the folder may read a new file.

    Raises:
        OSError: it cannot be read or written, or was written all the time; TimeoutError where
            another process holds the folder's lock for LOCK_S.
        ValueError: the file has more than `max_bytes`, or would have, or is not UTF-8.
    """
    place = path.resolve()

    def edit_bytes(before: bytes | None) -> tuple[bytes | None, T]:
        text, told = edit(None if before is None else _decoded(before, place))
        if text is None:
            return None, told
        mark = _MARK if before is not None and before.startswith(_MARK) else b""
        # What was in the file is UTF-8, so only new text can hold what UTF-8 has no bytes for.
        after = mark + text.encode(errors="replace")
        if len(after) > max_bytes:
            raise ValueError(f"the file would have more than {max_bytes} bytes")
        return after, told

    with _locked(place.parent, private):
        return _change(place, edit_bytes, max_bytes, private, pause)


def new_text(path: Path, text: str, *, private: bool = False) -> None:
    """Write a new file, whole or not at all, and never over another one. Makes its folder.

    Raises:
        FileExistsError: there is something of this name, if only a link that leads nowhere.
        OSError: it cannot be written.
    """
    with _locked(path.parent, private):
        if os.path.lexists(path) or not _replace(
            path, None, text.encode(errors="replace"), 0, private
        ):
            raise FileExistsError(f"there is a file {path.name} already")


@contextlib.contextmanager
def _locked(folder: Path, private: bool) -> Generator[None]:
    if private:
        make_private_folder(folder)
    else:
        folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(
            folder / _LOCK_NAME, timeout=LOCK_S, mode=_PRIVATE_FILE if private else 0o644
        ):
            yield
    except Timeout:
        raise TimeoutError(f"another process has been writing in {folder}") from None


def _change(
    place: Path,
    edit: Callable[[bytes | None], tuple[bytes | None, T]],
    max_bytes: int,
    private: bool,
    pause: Pause,
) -> T:
    old: BinaryIO | None = None
    """The file that the last try replaced, where an editor has written into that very one since."""
    was_missing = False
    with contextlib.ExitStack() as stack:
        for _ in range(TRIES):
            file = old or _opened(place, stack)
            # An editor may have moved it away, to put a new one in its place.
            gone, was_missing = file is None and not was_missing, file is None
            if gone or (file is not None and _is_fresh(file)):
                pause(QUIET_S)
                continue
            base = _content(file, max_bytes)
            after, told = edit(base)
            if after is None or after == base:
                if old is None or base is None:
                    return told
                after = base
            if old is not None:
                file = _opened(place, stack)
            before = _content(file, max_bytes) if old is not None else base
            if not _replace(place, before, after, max_bytes, private):
                continue
            if _content(file, max_bytes) == before:
                return told
            old = file
    raise OSError(f"{place.name} is being written all the time")


def _is_fresh(file: BinaryIO) -> bool:
    """Say whether somebody may be in the middle of writing the file."""
    stat = os.fstat(file.fileno())
    return 0 <= time.time() - stat.st_mtime < (QUIET_S if stat.st_size else EMPTY_S)


def _opened(place: Path, stack: contextlib.ExitStack) -> BinaryIO | None:
    try:
        return stack.enter_context(open_regular(place))
    except FileNotFoundError:
        return None


def _content(file: BinaryIO | None, max_bytes: int) -> bytes | None:
    if file is None:
        return None
    file.seek(0)
    return read_rest(file, max_bytes)


def _decoded(data: bytes, path: Path) -> str:
    try:
        return data.removeprefix(_MARK).decode()
    except UnicodeDecodeError:
        raise ValueError(f"{path.name} is not UTF-8; save it as UTF-8") from None


def _replace(
    place: Path, before: bytes | None, after: bytes, max_bytes: int, private: bool
) -> bool:
    """Put `after` in the file's place; False where it no longer holds `before`."""
    handle, scratch = new_scratch(place.parent, left_s=0.0)  # the folder is locked
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(after)
            file.flush()
            os.fsync(file.fileno())
        if before is None:
            if not private:  # whoever may open the folder is to read the file, and to edit it
                scratch.chmod(place.parent.stat().st_mode & _PLAIN_FILE)
            return move_to_nothing(scratch, place)
        with contextlib.ExitStack() as stack:
            if _content(_opened(place, stack), max_bytes) != before:
                return False
        shutil.copymode(place, scratch)
        scratch.replace(place)
        return True
    finally:
        scratch.unlink(missing_ok=True)
