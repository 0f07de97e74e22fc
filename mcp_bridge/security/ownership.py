"""Checks whose file it is that decides what is started here, and who else may write it.

Besides the file's owner and mode these are its access-control list, where Linux keeps one, and the
folders that it and a link to it lie in: whoever may write those puts another file in its place.
"""

from __future__ import annotations

import os
import shlex
import stat
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_ROOT: Final = 0
_ACL: Final = "system.posix_acl_access"
_ACL_VERSION: Final = struct.Struct("<I")
_ACL_ENTRY: Final = struct.Struct("<HHI")
"""Each entry: whom it is for, what they may, and the number of that user or group."""
_USER, _GROUP_OBJ, _GROUP, _MASK = 0x02, 0x04, 0x08, 0x10
_WRITE: Final = 2


def fault(handle: int, path: Path) -> str | None:
    """Says what is wrong with an open file, and how to fix it; None where nothing is.

    Owner and mode are the open file's own, so that no other can be put in its place meanwhile.
    """
    if not is_checked():
        return None
    user, name = os.geteuid(), shlex.quote(str(path))
    status = os.fstat(handle)
    if (owner := _stranger(status, user)) is not None:
        return f"belongs to {owner}, who could have anything started here; run: chown {user} {name}"
    if (who := next(writers(status, _acl_of(handle), user), None)) is not None:
        return f"may be written by {who}, who could have anything started; run: chmod go-w {name}"
    for folder in dict.fromkeys((path.absolute().parent, path.resolve().parent)):
        if (said := folder_fault(folder, user)) is not None:
            return f"lies in a folder that {said}"
    return None


def folder_fault(folder: Path, user: int) -> str | None:
    """Says who else may put another file in the place of one in this folder, and how to fix it.

    In a folder as /tmp is (sticky) each user may replace their own files alone.
    """
    status, name = folder.stat(), shlex.quote(str(folder))
    if (owner := _stranger(status, user)) is not None:
        return f"belongs to {owner}, who could replace it; run: chown {user} {name}"
    if status.st_mode & stat.S_ISVTX:
        return None
    if (who := next(writers(status, _acl_of(folder), user), None)) is not None:
        return f"may be written by {who}, who could replace it; run: chmod go-w {name}"
    return None


def writers(status: os.stat_result, acl: bytes, user: int) -> Iterator[str]:
    """Yields who besides `user` and root may write. Without a list `acl` is empty.

    With one, the mode's bits of the group are the mask: the most that any named user or group may.
    """
    if status.st_mode & stat.S_IWOTH:
        yield "everybody"
    if not status.st_mode & stat.S_IWGRP:
        return
    try:
        entries = list(_ACL_ENTRY.iter_unpack(acl[_ACL_VERSION.size :]))
    except struct.error:
        yield "users whom its access-control list names"
        return
    if not entries and not is_own_group(status.st_gid, user):
        yield "its group"
    for tag, permissions, number in entries:
        if not permissions & _WRITE:
            continue
        if tag == _USER and number not in (user, _ROOT):
            yield f"the user {number} (by its access-control list)"
        elif tag == _GROUP and not is_own_group(number, user):
            yield f"the group {number} (by its access-control list)"
        elif tag == _GROUP_OBJ and not is_own_group(status.st_gid, user):
            yield "its group"


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


def _stranger(status: os.stat_result, user: int) -> str | None:
    return None if status.st_uid in (user, _ROOT) else f"another user ({status.st_uid})"


def _acl_of(file: int | Path) -> bytes:
    if sys.platform != "linux":
        return b""
    try:
        return os.getxattr(file, _ACL)
    except OSError:  # there is none, or this disk keeps none
        return b""
