"""Whose file of servers it is: whoever may write it decides what is started here."""

from __future__ import annotations

import os
import shlex
import stat
import sys
from typing import Final

_ROOT: Final = 0


def fault(status: os.stat_result, file: str, user: int) -> str | None:
    """What is wrong with an open file, and the mend; None where nothing is.

    `status` is of the open file itself, so that no other can be put in its place meanwhile.
    """
    name = shlex.quote(file)
    if status.st_uid not in (user, _ROOT):
        return (
            f"belongs to another user ({status.st_uid}), who could have anything started here; "
            f"run: chown {user} {name}"
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        who = "everybody" if status.st_mode & stat.S_IWOTH else "its group"
        return f"may be written by {who}, who could have anything started; run: chmod go-w {name}"
    return None


def is_checked() -> bool:
    """Windows keeps neither owner nor mode in these terms, so nothing is looked at there."""
    return sys.platform != "win32"
