"""What is kept of one server's tools on disk: what was accepted, and what waits for a person.

Nothing on disk is ever lost by what is found there: a file that cannot be read as one of ours is
set aside under another name, one of a newer version is left alone, and a write is whole or not at
all.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, cast

from mcp_bridge.core.files import no_folder, read_capped, replace_file
from mcp_bridge.core.sanitize import one_line, visible_text

logger = logging.getLogger(__name__)

_NO_FILE: Final = (errno.EINVAL, errno.EISDIR, errno.ENXIO)
"""What `read_capped` says of a pipe, a device, a folder and a socket."""
VERSION: Final = 2
_READABLE: Final = (1, VERSION)
"""Rows of version 1 have the first four fields."""
MAX_READ_BYTES: Final = 2 * 1024 * 1024
MAX_FILE_BYTES: Final = 1024 * 1024
"""More is not written; this much is read within an audio frame."""
MAX_TOOLS: Final = 2_000
"""Of one server, those that are gone included: as many as a server may list."""
MAX_NAME_BYTES: Final = 128
"""The length that the protocol proposes for a tool's name. With both, a file always fits."""
DESCRIPTION_CHARS: Final = 2_000
"""So much of a description is kept, so that a person can compare; less of many tools."""
_ROW_BYTES: Final = 512
"""The most that a row has beside the two descriptions: three digests, two names and a day."""
_CHAR_BYTES: Final = 4
"""The most that a character of a description has in UTF-8."""


@dataclass(slots=True)
class Pin:
    accepted: str = ""
    """The digest that was accepted; empty where none was."""
    description: str = ""
    """The description that was accepted, cut."""
    waiting: str = ""
    """The digest that waits to be accepted; empty where none does."""
    waiting_description: str = ""
    words: str = ""
    """The digest of what it says, whatever its name; that of what waits, where nothing is accepted
    yet."""
    added: str = ""
    """The day on which a known server added it, until a person has accepted it."""
    was: str = ""
    """The name under which a tool said the same, which is gone."""


@dataclass(slots=True)
class PinFile:
    """The pins of one server."""

    server: str
    tools: dict[str, Pin] = field(default_factory=dict[str, Pin])
    lost: str = ""
    """Why nobody can say what was accepted; every tool waits then. Empty where it is known."""
    fault: str = ""
    """Why the file can neither be read nor written, and the fix."""
    missing: bool = False
    unsaved: bool = False
    """Whether it is not on disk as it is here."""


def load(path: Path, server: str) -> PinFile:
    """Reads a file. What is wrong with it is in `lost` or `fault`."""
    try:
        body = cast("Mapping[str, Any]", json.loads(read_capped(path, MAX_READ_BYTES)))
        if isinstance(body["version"], int) and body["version"] > VERSION:
            fault = f"{path} was written by a newer version; update this one, or move that away"
            return PinFile(server, fault=fault)
        if body["version"] not in _READABLE:
            raise ValueError("another version")
        tools = {
            str(tool): Pin(*(visible_text(str(value)) for value in row))
            for tool, row in body["tools"].items()
        }
        return PinFile(one_line(str(body["server"])), tools, one_line(str(body.get("lost", ""))))
    except FileNotFoundError:
        return PinFile(server, missing=True)
    except OSError as error:
        if error.errno not in _NO_FILE:
            return PinFile(server, fault=_fault(path, error))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    logger.warning("the pins %s are damaged; their server's tools are held", path)
    lost = f"cannot be read: {path} is damaged, and kept as {_damaged(path)}"
    return PinFile(server, lost=lost, missing=True)


def store(path: Path, pins: PinFile) -> None:
    """Raises: OSError."""
    room = MAX_FILE_BYTES // max(len(pins.tools), 1) - _ROW_BYTES
    chars = max(0, min(DESCRIPTION_CHARS, room // (2 * _CHAR_BYTES)))
    rows = {tool: _row(pin, chars) for tool, pin in pins.tools.items()}
    body = {"version": VERSION, "server": pins.server, "lost": pins.lost, "tools": rows}
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    data = text.encode(errors="surrogatepass")
    if len(data) > MAX_FILE_BYTES:
        raise OSError(errno.EFBIG, f"it would be over {MAX_FILE_BYTES} bytes")
    replace_file(path, data)


def _row(pin: Pin, chars: int) -> tuple[str, ...]:
    said, says = pin.description[:chars], pin.waiting_description[:chars]
    return astuple(replace(pin, description=said, waiting_description=says))


def set_aside(path: Path) -> None:
    """Moves what is damaged to a name of its own, for a person to look at. Raises: OSError."""
    with contextlib.suppress(FileNotFoundError):
        path.replace(_damaged(path))


def _damaged(path: Path) -> Path:
    return path.with_suffix(".damaged")


def _fault(path: Path, error: OSError) -> str:
    if (other := no_folder(path.parent)) is not None:
        return f"{other} is a file where a folder should be; move it away"
    return f"{path} cannot be read ({error.strerror}); fix its mode"
