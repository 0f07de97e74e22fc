"""`~` and `~name` at a path's beginning."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def expand_home(path: str) -> str:
    """`path` with the home folder in place of `~`; as it is where nobody has that name.

    `Path.expanduser` raises there, and whoever looks for the file has the better words.
    """
    try:
        return os.path.expanduser(path)  # noqa: PTH111 - the other one raises
    except ValueError:  # a NUL in the name
        return path


def replace_file(path: Path, data: bytes) -> None:
    """The whole file or none: another process may read it now."""
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(scratch).replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            Path(scratch).unlink()
        raise
