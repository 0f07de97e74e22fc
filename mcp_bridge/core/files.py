"""Paths that begin with `~`, files read with a cap, and files written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from pathlib import Path


def expand_home(path: str) -> str:
    """Puts the home folder in the place of `~` or `~name`; an unknown name leaves `path` as it is.

    `Path.expanduser` would raise there, and whoever looks for the file has the better words.
    """
    try:
        return os.path.expanduser(path)  # noqa: PTH111 - the other one raises
    except ValueError:  # a NUL in the name
        return path


def read_capped(path: Path, max_bytes: int) -> bytes:
    """Reads a file of at most `max_bytes`.

    Raises: OSError, with EINVAL where it is no ordinary file (a pipe would block for ever);
        ValueError, where it is longer.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no ordinary file")
    with os.fdopen(handle, "rb") as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise ValueError(f"the file has more than {max_bytes} bytes")
    return data


def replace_file(path: Path, data: bytes) -> None:
    """Writes the whole file or nothing, as another process may read it now. Makes its folder.

    Raises: OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(scratch).replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            Path(scratch).unlink()
        raise
