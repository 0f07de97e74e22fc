"""Keeps tools as they were when they were first seen: one that changes later is held back.

A server can describe a tool kindly until it is trusted, and then as something else; packages that
are fetched at each start change their words with any release. So the digest of each definition is
kept on disk, the first one counts, and a tool with another is not offered until a person accepts
it. What counts is what a model reads: name, description, schema, and the claim to read only.

What a known server adds is noted until a person accepts it, and held back where the owner's setting
says so; whatever that says, while a changed tool of the same server waits (it may be the same words
under another name), and where a name looks like another's. Where the pins of a server are gone or
damaged, every tool of it waits, since nobody can say what was accepted.

There is one file for each server and what starts or reaches it, and a list of those that there ever
were.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import os
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final, cast

from filelock import FileLock

from mcp_bridge.core.files import make_private_folder, no_folder, read_capped, replace_file
from mcp_bridge.core.sanitize import one_line, visible_text
from mcp_bridge.core.server_config import NewTools, ServerConfig
from mcp_bridge.core.tools import ToolDefinition

# What is kept of one server's tools on disk: what was accepted, and what waits for a person.
#
# Nothing on disk is ever lost by what is found there: a file that cannot be read as one of ours is
# set aside under another name, one of a newer version is left alone, and a write is whole or not at
# all.

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


def load_pins(path: Path, server: str) -> PinFile:
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


def store_pins(path: Path, pins: PinFile) -> None:
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


# Which servers' pins were ever written, in a file of its own beside the folder of pins.
#
# It is a second witness: where pins are gone that were there, somebody took them away, and what a
# server says by now must not pass for what it said first.

SEEN_VERSION: Final = 1
MAX_SERVERS: Final = 8_192
"""Configurations that are remembered; the ones seen first are forgotten first."""


def today() -> str:
    return datetime.now(UTC).date().isoformat()


class SeenServers:
    """The file. It uses the disk, so call it in a thread."""

    def __init__(self, path: Path) -> None:
        self._path: Final = path

    def read(self) -> Mapping[str, str]:
        """Gives the day on which each pin file was first written, by its name.

        A file that is damaged is as none: the pins themselves are there, most likely.
        """
        try:
            body = cast("Mapping[str, Any]", json.loads(read_capped(self._path, MAX_FILE_BYTES)))
            if body["version"] != SEEN_VERSION:
                raise ValueError("another version")
            return {str(name): str(day) for name, day in body["servers"].items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            logger.warning("%s is damaged; it is made anew of the pins that there are", self._path)
            return {}

    def add(self, names: Iterable[str]) -> None:
        """Raises: OSError."""
        known = self.read()
        if new := [name for name in names if name not in known]:
            servers = [*known.items(), *((name, today()) for name in new)][-MAX_SERVERS:]
            body = {"version": SEEN_VERSION, "servers": dict(servers)}
            replace_file(self._path, json.dumps(body, separators=(",", ":")).encode())


LOCK_S: Final = 5.0
"""The time to wait for another process, which holds the lock for some milliseconds."""
_NAMED: Final = 10
"""So many tools are named in one line; a person does not read more."""
_SEPARATORS: Final = str.maketrans("", "", "-_./ ")


@dataclass(frozen=True, slots=True)
class VettedTools:
    """The tools of one server after the comparison."""

    offered: tuple[ToolDefinition, ...]
    held: Mapping[str, str]
    """For each tool that is not offered: why, and how to fix it."""
    added: tuple[str, ...] = ()
    """Those of `offered` that the known server added and nobody has accepted yet."""
    notes: tuple[str, ...] = ()
    """What a person should know of the tools that are offered, and of what is kept."""


@dataclass(frozen=True, slots=True)
class AcceptedChange:
    """A change of a tool, or a new one, that a person may accept or has accepted."""

    server: str
    tool: str
    before: str
    after: str
    """Descriptions, cut; where they are the same, the schema is another."""
    new: bool = False
    was: str = ""
    """The name under which a tool said the same, which is gone."""
    digest: str = ""
    """The hash of the definition that is accepted by it."""


class Pins:
    """A folder of pin files. What reads or writes it uses the disk: call it in a thread.

    Args:
        new_tools: What becomes of the tools that a known server adds, where its entry says nothing.
    """

    def __init__(self, folder: str | os.PathLike[str], new_tools: NewTools = "offer") -> None:
        self._folder: Final = Path(folder)
        self._new_tools: Final = new_tools
        self._seen: Final = SeenServers(self._beside("-seen.json"))
        self._known: Final[dict[str, PinFile]] = {}
        self._unwritten = ""
        """Why what was learnt last is not on disk."""

    def read(self, configs: Sequence[ServerConfig]) -> None:
        """Loads what was accepted for these servers, by whichever process."""
        seen = self._seen.read()
        for config in configs:
            name = _file_name(config)
            found = load_pins(self._folder / name, config.name)
            ours = self._known.get(name)
            gone = found.missing or found.lost
            if gone and ours is not None and ours.tools and not ours.lost:
                logger.warning("the pins of %s were gone; they are written again", config.name)
                ours.unsaved = True
                continue
            if found.missing and not found.lost and name in seen:
                found.lost = f"is gone, though it was seen on {one_line(seen[name], 10)}"
                logger.warning("what was accepted of %s %s", config.name, found.lost)
            self._known[name] = _with_new_tools(found, ours)

    def vet(self, config: ServerConfig, definitions: Sequence[ToolDefinition]) -> VettedTools:
        """Trusts what it sees for the first time, and holds back what has changed since."""
        known = self._known.setdefault(_file_name(config), PinFile(config.name))
        if known.fault:
            why = f"what was accepted cannot be told: {known.fault}"
            return VettedTools((), {tool.name: why for tool in definitions})
        first = not known.tools and not known.lost
        gone = _gone(known, definitions)
        for tool in definitions:
            if (pin := known.tools.get(tool.name)) is not None:
                _compare(known, pin, tool)
        rules = _Rules(known, config.new_tools or self._new_tools)
        held: dict[str, str] = {}
        new: list[str] = []
        for tool in definitions:
            pin = known.tools.get(tool.name)
            if pin is None:
                if _size(tool.name) > MAX_NAME_BYTES or len(known.tools) >= MAX_TOOLS:
                    most = f"names of {MAX_NAME_BYTES} bytes and {MAX_TOOLS} tools of a server"
                    held[tool.name] = f"it cannot be kept: {most} are the most"
                    continue
                pin = known.tools[tool.name] = _new_pin(tool, gone, "" if first else today())
                known.unsaved = True
                if not first:
                    new.append(tool.name)
            if why := rules.why_held(tool.name, pin):
                held[tool.name] = why
            elif not pin.accepted:
                pin.accepted, pin.description = pin.waiting, pin.waiting_description
                pin.waiting = pin.waiting_description = ""
                known.unsaved = True
        if new and not known.lost:
            logger.warning("%s: has added %s", config.name, _listed(new, known))
        offered = tuple(tool for tool in definitions if tool.name not in held)
        added = tuple(tool.name for tool in offered if known.tools[tool.name].added)
        return VettedTools(offered, held, added, tuple(self._notes(config, known, added)))

    def write(self) -> bool:
        """Keeps what `vet` has learnt. A disk that fails is logged, and the pins are not kept.

        True: another process has known other tools before, so that `vet` may now say otherwise.
        """
        before = dict(self._known)
        unsaved = [name for name, known in list(self._known.items()) if known.unsaved]
        self._unwritten = ""
        try:
            seen = self._seen.read()
            unseen = [n for n, known in list(self._known.items()) if known.tools and n not in seen]
            if not unsaved and not unseen:
                return False
            with self._lock():
                for name in unsaved:
                    self._write(name, self._known[name])
                self._seen.add(name for name in unseen if not self._known[name].unsaved)
        except OSError as error:
            self._unwritten = error.strerror or type(error).__name__
            logger.warning("the pins in %s cannot be written (%s)", self._folder, self._unwritten)
        return any(self._known.get(name) is not known for name, known in before.items())

    def waiting(self) -> tuple[str, ...]:
        """Gives `server__tool` for everything that could be accepted now."""
        return tuple(
            _full_name(found, tool)
            for _, found in self._files()
            for tool in _waiting_tools(found, found.server)
        )

    def changes(self, wanted: str) -> tuple[AcceptedChange, ...]:
        """Gives what `accept` would accept now of `server` or `server__tool`.

        Raises: ValueError, where `wanted` could be a tool of either of two servers.
        """
        return tuple(
            _change(found.server, tool, found.tools[tool])
            for _, found, tools in self._waiting_files(wanted)
            for tool in tools
        )

    def accept(
        self, wanted: str, shown: Sequence[AcceptedChange] | None = None
    ) -> tuple[AcceptedChange, ...]:
        """Accepts what waits for `server` or `server__tool`: exactly what was seen, nothing newer.

        Args:
            shown: What a person has been shown of it, as `changes` gave it.

        Raises: OSError; ValueError, where `wanted` could be a tool of either of two servers, or
            where something else waits by now than what was shown.
        """
        with self._lock():
            accepted = self.changes(wanted)
            if shown is not None and accepted != tuple(shown):
                raise ValueError(f"what waits of {wanted!r} has changed meanwhile; look again")
            for path, found, tools in self._waiting_files(wanted):
                for tool in tools:
                    _accept(found.tools[tool])
                if not any(pin.waiting for pin in found.tools.values()):
                    found.lost = ""
                store_pins(path, found)
                self._known.pop(path.name, None)
        return accepted

    def _waiting_files(self, wanted: str) -> Sequence[tuple[Path, PinFile, Sequence[str]]]:
        """Raises: ValueError, where `wanted` could be a tool of either of two servers."""
        files = [
            (path, found, tools)
            for path, found in self._files()
            if (tools := _waiting_tools(found, wanted))
        ]
        if len(servers := {found.server for _, found, _ in files}) > 1:
            raise ValueError(
                f"{wanted!r} could be of {' or '.join(sorted(servers))}; accept everything of one "
                "of them by its name"
            )
        return files

    def _notes(self, config: ServerConfig, known: PinFile, added: Sequence[str]) -> Sequence[str]:
        notes: list[str] = []
        if added:
            fix = f"read and accept them: caal-node tools --accept {config.name}"
            notes.append(f"has added {_listed(added, known)}; {fix}")
        if self._unwritten and known.unsaved:
            notes.append(f"what was seen of it is not kept ({self._unwritten})")
        return notes

    def _write(self, name: str, known: PinFile) -> None:
        """Raises: OSError."""
        path = self._folder / name
        known.unsaved = False  # what is learnt meanwhile is for the next time
        try:
            found = load_pins(path, known.server)
            if found.fault:
                return
            if found.missing or (found.lost and not known.lost):
                merged = PinFile(known.server, dict(known.tools), known.lost)
            else:
                merged = _with_waiting(_with_new_tools(found, known), known)
            if found.missing and found.lost:
                set_aside(path)
            store_pins(path, merged)
        except OSError:
            known.unsaved = True
            raise
        if not known.unsaved and merged.tools != known.tools:
            self._known[name] = merged

    def _files(self) -> list[tuple[Path, PinFile]]:
        found = [(path, load_pins(path, "")) for path in sorted(self._folder.glob("*.json"))]
        return [(path, pins) for path, pins in found if not pins.missing and not pins.fault]

    def _lock(self) -> FileLock:
        """Keeps other processes out while a file is read and written. Raises: OSError."""
        make_private_folder(self._folder.parent)
        return FileLock(self._beside(".lock"), timeout=LOCK_S, mode=0o600)

    def _beside(self, ending: str) -> Path:
        return self._folder.with_name(f"{self._folder.name}{ending}")


def _file_name(config: ServerConfig) -> str:
    """Names what starts or reaches the server. Keys may change, and so may the room's path."""
    args = config.args[:-1] if config.given_path else config.args
    what = [config.name, config.transport, config.command, list(args), config.url.partition("?")[0]]
    return f"{hashlib.sha256(json.dumps(what).encode()).hexdigest()}.json"


def _gone(known: PinFile, definitions: Sequence[ToolDefinition]) -> Mapping[str, str]:
    """Gives the names of accepted tools that are not there any more, by their words."""
    here = {tool.name for tool in definitions}
    return {
        pin.words: name
        for name, pin in known.tools.items()
        if pin.words and pin.accepted and name not in here
    }


def _new_pin(tool: ToolDefinition, gone: Mapping[str, str], day: str) -> Pin:
    return Pin(
        waiting=tool.digest,
        waiting_description=tool.description[:DESCRIPTION_CHARS],
        words=tool.words_digest,
        added=day,
        was=gone.get(tool.words_digest, "") if day else "",
    )


def _compare(known: PinFile, pin: Pin, tool: ToolDefinition) -> None:
    """Notes what waits to be accepted now, if anything does."""
    waiting = "" if tool.digest == pin.accepted else tool.digest
    if waiting != pin.waiting:
        pin.waiting = waiting
        pin.waiting_description = tool.description[:DESCRIPTION_CHARS] if waiting else ""
        known.unsaved = True
    if pin.words != tool.words_digest and not (pin.accepted and waiting):
        pin.words = tool.words_digest
        known.unsaved = True


def _change(server: str, tool: str, pin: Pin) -> AcceptedChange:
    after = pin.waiting_description if pin.waiting else pin.description
    return AcceptedChange(
        server,
        shown_name(tool),
        pin.description,
        after,
        new=not pin.accepted or bool(pin.added),
        was=shown_name(pin.was),
        digest=pin.waiting or pin.accepted,
    )


def _accept(pin: Pin) -> None:
    if pin.waiting:
        if pin.accepted:
            pin.words = ""  # of what was accepted before; it is seen anew
        pin.accepted, pin.description = pin.waiting, pin.waiting_description
    pin.waiting = pin.waiting_description = pin.added = pin.was = ""


class _Rules:
    """What decides whether the tools of one server are offered, at one comparison."""

    def __init__(self, known: PinFile, new_tools: NewTools) -> None:
        self._known: Final = known
        self._holds_new: Final = new_tools == "hold"
        self._has_changed: Final = any(p.accepted and p.waiting for p in known.tools.values())

    @cached_property
    def _alike(self) -> Mapping[str, str]:
        """The names of accepted tools, by what is left of them in a hasty eye."""
        return {_folded(name): name for name, pin in self._known.tools.items() if pin.accepted}

    def why_held(self, name: str, pin: Pin) -> str:
        """Says why a tool is not offered, and the fix; nothing for one that is."""
        if pin.accepted and not pin.waiting:
            return ""
        accept = f"read and accept it: caal-node tools --accept {_full_name(self._known, name)}"
        if pin.accepted:
            return f"its definition is not the one that was accepted; {accept}"
        if self._known.lost:
            return f"what was accepted of its server {self._known.lost}; {accept}"
        if not pin.added:
            return ""
        since = f"is new since {one_line(pin.added, 10)}"
        if pin.was:
            since = f"{since} and says what {shown_name(pin.was)} said, which is gone"
        if self._holds_new:
            return f"{since}; {accept}"
        if self._has_changed:
            return f"{since}, while a changed tool of its server waits; {accept}"
        if not name.isascii() or not name.isprintable():
            return f"{since}, and its name is not plain ASCII; {accept}"
        other = self._alike.get(_folded(name), pin.was)
        if other != pin.was:
            return f"{since}, and its name looks like {shown_name(other)}; {accept}"
        return ""


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold().translate(_SEPARATORS)


def shown_name(name: str) -> str:
    """Gives a name as it is, and not as it looks: `re\\u0430d` for one with a Cyrillic letter."""
    return name[:MAX_NAME_BYTES].encode("unicode_escape").decode()


def _size(name: str) -> int:
    return len(json.dumps(name, ensure_ascii=False).encode(errors="surrogatepass")) - len('""')


def _waiting_tools(found: PinFile, wanted: str) -> Sequence[str]:
    """Gives what could be accepted of `wanted`, a server or `server__tool`."""
    return [
        tool
        for tool, pin in found.tools.items()
        if (pin.waiting or pin.added)
        and wanted in (found.server, _full_name(found, tool), f"{found.server}__{tool}")
    ]


def _full_name(known: PinFile, tool: str) -> str:
    return f"{known.server}__{shown_name(tool)}"


def _listed(names: Sequence[str], known: PinFile) -> str:
    shown = [
        f"{shown_name(name)} (which was {shown_name(was)})" if (was := known.tools[name].was) else
        shown_name(name)
        for name in names[:_NAMED]
    ]  # fmt: skip
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _with_new_tools(disk: PinFile, ours: PinFile | None) -> PinFile:
    """Adds our new tools. What is on disk was accepted by somebody, so it stays."""
    if ours is not None and not disk.fault:
        new = {tool: pin for tool, pin in dict(ours.tools).items() if tool not in disk.tools}
        disk.tools |= new
        disk.unsaved = bool(new)
    return disk


def _with_waiting(disk: PinFile, ours: PinFile) -> PinFile:
    """Adds what waits by now, and what our setting lets pass that waited."""
    for tool, pin in dict(ours.tools).items():
        known = disk.tools[tool]
        if not known.accepted and pin.accepted == known.waiting:
            disk.tools[tool] = pin
        elif pin.waiting != known.accepted and (pin.waiting or known.accepted):
            known.waiting, known.waiting_description = pin.waiting, pin.waiting_description
        known.words = known.words or pin.words
    return disk
