"""Checks whose file of servers it is: whoever may write it decides what is started here."""

from __future__ import annotations

import os
import shlex
import stat
import sys
from typing import Final

_ROOT: Final = 0


def fault(status: os.stat_result, file: str, user: int) -> str | None:
    """Says what is wrong with an open file, and how to mend it; None where nothing is.

    `status` is of the open file itself, so that no other can be put in its place meanwhile.
    """
    name = shlex.quote(file)
    if status.st_uid not in (user, _ROOT):
        return (
            f"belongs to another user ({status.st_uid}), who could have anything started here; "
            f"run: chown {user} {name}"
        )
    for_all = bool(status.st_mode & stat.S_IWOTH)
    if for_all or (status.st_mode & stat.S_IWGRP and not is_own_group(status.st_gid, user)):
        who = "everybody" if for_all else "its group"
        return f"may be written by {who}, who could have anything started; run: chmod go-w {name}"
    return None


def is_own_group(group: int, user: int) -> bool:
    """Tells whether a group is the one made for this user, and nobody else is in it.

    Debian, Ubuntu and Fedora make one for each user, and a umask of 002 with it: every new file may
    be written by its group there, which is its owner alone.
    """
    try:
        import grp
        import pwd

        owner, members = pwd.getpwuid(user), grp.getgrgid(group)
        others = {entry.pw_name for entry in pwd.getpwall() if entry.pw_gid == group}
    except (ImportError, KeyError):
        return False
    own = members.gr_name == owner.pw_name and owner.pw_gid == group
    return own and {*members.gr_mem, *others} <= {owner.pw_name}


def is_checked() -> bool:
    """Tells whether owners are checked: Windows keeps neither owner nor mode in these terms."""
    return sys.platform != "win32"
