"""Paths that begin with `~`, files that are read with a cap, and files written whole or not at all.

What somebody else may have put where a file of ours should be is never waited for: a FIFO, a socket
or a device is refused before anything is read of it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
import time
from pathlib import Path
from typing import BinaryIO, Final

_KINDS: Final = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}
_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)  # a FIFO would wait for its other end
    | getattr(os, "O_NOCTTY", 0)  # a terminal would become this process's own
    | getattr(os, "O_BINARY", 0)
)
_PRIVATE_FOLDER: Final = 0o700
SCRATCH_S: Final = 60.0
"""Seconds in which another process has surely written its scratch file; it takes milliseconds."""
_SCRATCH: Final = ".caal-node.new-"
"""How scratch files begin. They are hidden, and nobody's but ours."""


def expand_home(path: str) -> str:
    """Puts the home folder in the place of `~` or `~name`; an unknown name leaves `path` as it is.

    `Path.expanduser` would raise there, and whoever looks for the file has the better words.
    """
    try:
        return os.path.expanduser(path)  # noqa: PTH111 - the other one raises
    except ValueError:  # a NUL in the name
        return path


def open_regular(path: Path) -> BinaryIO:
    """Opens a file to be read, at once: what is no regular file is refused.

    Raises: OSError, whose `strerror` says what it is.
    """
    try:
        handle = os.open(path, _FLAGS)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket cannot be opened
            raise OSError(errno.ENXIO, "it is a socket and no file", str(path)) from None
        raise
    kind = stat.S_IFMT(os.fstat(handle).st_mode)
    if kind != stat.S_IFREG:
        os.close(handle)
        what = f"it is {_KINDS.get(kind, 'something else')} and no file"
        raise OSError(errno.EISDIR if kind == stat.S_IFDIR else errno.EINVAL, what, str(path))
    return os.fdopen(handle, "rb")


def read_capped(path: Path, max_bytes: int) -> bytes:
    """Reads a regular file of at most `max_bytes`.

    Raises: OSError, with EINVAL where it is no ordinary file (a pipe would block for ever);
        ValueError, where it is longer.
    """
    with open_regular(path) as file:
        return read_rest(file, max_bytes)


def read_rest(file: BinaryIO, max_bytes: int) -> bytes:
    """Reads what is left of an open file. Raises: OSError; ValueError, where it is longer."""
    data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise ValueError(f"the file has more than {max_bytes} bytes")
    return data


def no_folder(path: Path) -> Path | None:
    """Gives what stands where `path` or a folder above it should be, and is no folder."""
    places = (path, *path.parents)
    return next((each for each in places if os.path.lexists(each) and not each.is_dir()), None)


def make_private_folder(folder: Path) -> None:
    """Makes a folder, and those above it that are missing, for their user alone.

    Raises: OSError.
    """
    if (other := no_folder(folder)) is not None:
        raise NotADirectoryError(errno.ENOTDIR, f"{other} is a file where a folder should be")
    for each in reversed((folder, *folder.parents)):
        if not each.is_dir():
            each.mkdir(mode=_PRIVATE_FOLDER, exist_ok=True)


def replace_file(path: Path, data: bytes) -> None:
    """Writes the whole file or nothing, as another process may read it now. Makes its folder.

    Folder and file are for their user alone. Raises: OSError.
    """
    make_private_folder(path.parent)
    handle, scratch = new_scratch(path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        scratch.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            scratch.unlink()
        raise


def new_scratch(folder: Path, *, left_s: float = SCRATCH_S) -> tuple[int, Path]:
    """Makes an empty file that is to be moved into the place of another one in `folder`.

    It removes those that processes which were killed have left there.

    `left_s`: seconds since the last write after which one was left; 0 where a lock keeps out all
    others who might be writing one. Raises: OSError.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(_SCRATCH) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):  # another process has done it
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime >= left_s:
                        Path(entry.path).unlink()
    handle, name = tempfile.mkstemp(dir=folder, prefix=_SCRATCH)
    return handle, Path(name)


def move_to_nothing(scratch: Path, place: Path) -> bool:
    """Moves a file to where none is, or leaves both as they are. Returns whether it was moved."""
    try:
        place.hardlink_to(scratch)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links
        if os.path.lexists(place):
            return False
        scratch.replace(place)
    return True
