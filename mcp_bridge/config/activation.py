"""Whether a configured server is used now: always, never, with a path, or where something matches.

    "auto_enable": "always"       (when nothing is said)
    "auto_enable": "never"
    "auto_enable": "with_path"    a path is given for the room
    "auto_enable": "if_match", "enable_if": {"file_exists": [".git", "*.csv"], "env_set": "DSN"}

Of several files one must be there, of several variables all must be set and not empty, and of the
two kinds both must hold. A relative file is looked for in the room's path, or else in the working
folder. `requires_path` keeps a server off without a path, and gives it the path as its last
argument.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from mcp_bridge.config.file_value import FileValue
from mcp_bridge.core.files import expand_home

When: TypeAlias = Literal["always", "never", "with_path", "if_match"]
WHENS: Final[tuple[When, ...]] = get_args(When)
_WHENS: Final[Mapping[str, When]] = {when: when for when in WHENS}
CONDITIONS: Final = ("file_exists", "env_set")


@dataclass(frozen=True, slots=True)
class ActivationContext:
    """What enabling looks at, besides the file of servers."""

    environ: Mapping[str, str]
    path: str | None = None
    """The room's: a folder that its servers work in."""


def off_because(place: FileValue, entry: Mapping[str, Any], context: ActivationContext) -> str:
    """Why the server of this entry is off, in a few words; empty where it is on.

    Reads the disk.

    Raises: ConfigError.
    """
    when = _when(place, entry)
    condition = _condition(place, entry, when, context)
    if "enabled" in entry and not (place / "enabled").flag():
        return "switched off in the file"
    if "disabled" in entry and (place / "disabled").flag():
        return "switched off in the file"
    if when == "never":
        return "auto_enable is never"
    needs_path = "requires_path" in entry and (place / "requires_path").flag()
    if (needs_path or when == "with_path") and not context.path:
        return "no path is given for the room"
    return condition


def _when(place: FileValue, entry: Mapping[str, Any]) -> When:
    if "auto_enable" not in entry:
        return "always"
    written = (place / "auto_enable").text()
    if (when := _WHENS.get(written)) is None:
        (place / "auto_enable").refuse(f"{written[:40]!r} is not known; use {', '.join(WHENS)}")
    return when


def _condition(
    place: FileValue, entry: Mapping[str, Any], when: When, context: ActivationContext
) -> str:
    """Why an `if_match` does not match. What is wrong in it is told though it counts for nothing.

    Raises: ConfigError.
    """
    if "enable_if" not in entry:
        if when == "if_match":
            place.refuse('lacks "enable_if"; add {"file_exists": ...} or {"env_set": ...}')
        return ""
    if when != "if_match":
        (place / "enable_if").refuse('goes with "auto_enable": "if_match"; add that')
    at = place / "enable_if"
    for key in at.members():
        if key not in CONDITIONS:
            (at / key).refuse(f"unknown key; use {' or '.join(CONDITIONS)}")
    if not at.members():
        at.refuse("is empty; add file_exists or env_set")
    reason = ""
    if "env_set" in at.members():
        missing = [name for name in _texts(at / "env_set") if not context.environ.get(name)]
        reason = f"{missing[0]} is not set" if missing else reason
    if "file_exists" in at.members():
        files = _texts(at / "file_exists")
        for file in files:
            if "**" in file:
                (at / "file_exists").refuse(
                    '"**" walks through whole folders; name the levels with "*"'
                )
        if not any(_is_there(file, context.path) for file in files):
            reason = reason or f"there is no {files[0]}"
    return reason


def _texts(place: FileValue) -> tuple[str, ...]:
    """One text, or a list of at least one."""
    if isinstance(place.value, str):
        return (place.filled(),)
    if not (items := place.items()):
        place.refuse("is empty; write one, or remove the entry")
    return tuple(item.filled() for item in items)


def _is_there(file: str, folder: str | None) -> bool:
    pattern = expand_home(file)
    base = expand_home(folder) if folder else os.curdir
    if not os.path.isabs(pattern):  # noqa: PTH117 - a pattern, not yet a path
        pattern = os.path.join(glob.escape(base), pattern)  # noqa: PTH118 - as above
    # `lexists`: a link that leads nowhere is there, too, for a pattern as for a name.
    return next(glob.iglob(pattern, include_hidden=True), None) is not None  # noqa: PTH207 - as above
