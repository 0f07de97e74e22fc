"""`~` and `~name` at a path's beginning."""

from __future__ import annotations

import os


def from_home(path: str) -> str:
    """`path` with the home folder in place of `~`; as it is where nobody has that name.

    `Path.expanduser` raises there, and whoever looks for the file has the better words.
    """
    try:
        return os.path.expanduser(path)  # noqa: PTH111 - the other one raises
    except ValueError:  # a NUL in the name
        return path
