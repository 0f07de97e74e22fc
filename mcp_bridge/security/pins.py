"""Keeps tools as they were when they were first seen: one that changes later is held back.

A server can describe a tool kindly until it is trusted, and then as something else; packages that
are fetched at each start change their words with any release. So the digest of each definition is
kept on disk, the first one counts, and a tool with another is not offered until a person accepts
it. What counts is what a model reads: name, description, schema, and the claim to read only.

There is one file for each server and what starts or reaches it. A file that is damaged holds every
tool of its server back, since nobody can say what was accepted.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from mcp_bridge.core.files import no_folder, read_capped, replace_file
from mcp_bridge.core.sanitize import one_line
from mcp_bridge.core.server_config import ServerConfig
from mcp_bridge.core.tools import ToolDefinition, definitions_digest

logger = logging.getLogger(__name__)

VERSION: Final = 1
MAX_FILE_BYTES: Final = 8 * 1024 * 1024
_KEPT_DESCRIPTION_CHARS: Final = 2_000
"""So much of a description is kept, so that a person can compare."""


@dataclass(slots=True)
class _Pin:
    accepted: str
    """The digest that was accepted."""
    description: str
    """The description that was accepted, cut."""
    waiting: str = ""
    """The digest that waits to be accepted; empty where none does."""
    waiting_description: str = ""


@dataclass(slots=True)
class _PinFile:
    """What is kept of one server."""

    server: str
    tools: dict[str, _Pin] = field(default_factory=dict[str, _Pin])
    damaged: bool = False
    unsaved: bool = False
    """Whether it is not on disk as it is here."""


@dataclass(frozen=True, slots=True)
class VettedTools:
    """The tools of one server after the comparison."""

    offered: tuple[ToolDefinition, ...]
    held: Mapping[str, str]
    """For each tool that is not offered: why, and how to mend it."""


@dataclass(frozen=True, slots=True)
class AcceptedChange:
    """A change of a tool that a person has accepted."""

    server: str
    tool: str
    before: str
    after: str
    """Descriptions, cut; where they are the same, the schema is another."""


class Pins:
    """A folder of pin files. `read`, `write` and `accept` use the disk: call them in a thread."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder: Final = Path(folder)
        self._known: Final[dict[str, _PinFile]] = {}

    def read(self, configs: Sequence[ServerConfig]) -> None:
        """Loads what was accepted for these servers, by whichever process."""
        for config in configs:
            name = _file_name(config)
            found = _load(self._folder / name, config.name)
            self._known[name] = _with_new_tools(found, self._known.get(name))

    def vet(self, config: ServerConfig, definitions: Sequence[ToolDefinition]) -> VettedTools:
        """Trusts what it sees for the first time, and holds back what has changed since."""
        known = self._known.setdefault(_file_name(config), _PinFile(config.name))
        if known.damaged:
            other = no_folder(self._folder)
            mend = f"move {other} away: it is no folder" if other else ""
            mend = mend or f"remove {self._folder / _file_name(config)}"
            why = f"what was accepted cannot be read; {mend}"
            return VettedTools((), {tool.name: why for tool in definitions})
        held: dict[str, str] = {}
        for tool in definitions:
            digest = definitions_digest([tool])
            description = tool.description[:_KEPT_DESCRIPTION_CHARS]
            pin = known.tools.get(tool.name)
            if pin is None:
                known.tools[tool.name] = _Pin(digest, description)
                known.unsaved = True
                continue
            waiting = "" if digest == pin.accepted else digest
            if waiting != pin.waiting:
                pin.waiting, pin.waiting_description = waiting, description if waiting else ""
                known.unsaved = True
            if waiting:
                held[tool.name] = (
                    "its definition is not the one that was accepted; read it, then accept it "
                    f"(tools --accept {config.name}__{one_line(tool.name)})"
                )
        return VettedTools(tuple(tool for tool in definitions if tool.name not in held), held)

    def write(self) -> None:
        """Keeps what `vet` has learnt. A disk that fails is logged, and the pins are not kept."""
        for name, known in list(self._known.items()):
            if known.unsaved and not known.damaged:
                path = self._folder / name
                try:
                    found = _load(path, known.server)
                    if found.damaged:
                        continue
                    _store(path, _with_waiting(_with_new_tools(found, known), known))
                    known.unsaved = False
                except OSError as error:
                    logger.warning("the pins %s cannot be written (%s)", path, error.strerror)

    def waiting(self) -> tuple[str, ...]:
        """Gives `server__tool` for everything that could be accepted now."""
        return tuple(
            f"{found.server}__{tool}"
            for _, found in self._files()
            for tool, pin in found.tools.items()
            if pin.waiting
        )

    def accept(self, wanted: str) -> tuple[AcceptedChange, ...]:
        """Accepts what waits for `server` or `server__tool`: exactly what was seen, nothing newer.

        Raises: OSError.
        """
        accepted: list[AcceptedChange] = []
        for path, found in self._files():
            before = len(accepted)
            for tool, pin in found.tools.items():
                if pin.waiting and wanted in (found.server, f"{found.server}__{tool}"):
                    accepted.append(
                        AcceptedChange(found.server, tool, pin.description, pin.waiting_description)
                    )
                    found.tools[tool] = _Pin(pin.waiting, pin.waiting_description)
            if len(accepted) > before:
                _store(path, found)
                self._known.pop(path.name, None)
        return tuple(accepted)

    def _files(self) -> list[tuple[Path, _PinFile]]:
        found = [(path, _load(path, "")) for path in sorted(self._folder.glob("*.json"))]
        return [(path, pins) for path, pins in found if not pins.damaged]


def _file_name(config: ServerConfig) -> str:
    """Names what starts or reaches the server. Keys may change, and so may the room's path."""
    args = config.args[:-1] if config.given_path else config.args
    what = [config.name, config.transport, config.command, list(args), config.url.partition("?")[0]]
    return f"{hashlib.sha256(json.dumps(what).encode()).hexdigest()}.json"


def _with_new_tools(disk: _PinFile, ours: _PinFile | None) -> _PinFile:
    """Adds our new tools. What is on disk was accepted by somebody, so it stays."""
    if ours is not None and not disk.damaged:
        new = {tool: pin for tool, pin in dict(ours.tools).items() if tool not in disk.tools}
        disk.tools |= new
        disk.unsaved = bool(new)
    return disk


def _with_waiting(disk: _PinFile, ours: _PinFile) -> _PinFile:
    for tool, pin in dict(ours.tools).items():
        known = disk.tools[tool]
        if pin.waiting != known.accepted:
            known.waiting, known.waiting_description = pin.waiting, pin.waiting_description
    return disk


def _load(path: Path, server: str) -> _PinFile:
    try:
        body = cast("Mapping[str, Any]", json.loads(read_capped(path, MAX_FILE_BYTES)))
        if body["version"] != VERSION:
            raise ValueError("another version")
        tools = {str(tool): _Pin(*map(str, row)) for tool, row in body["tools"].items()}
        return _PinFile(str(body["server"]), tools)
    except FileNotFoundError:
        return _PinFile(server)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        logger.warning("the pins %s are damaged; their server's tools are held", path)
        return _PinFile(server, damaged=True)


def _store(path: Path, pins: _PinFile) -> None:
    """Raises: OSError."""
    rows = {
        tool: [pin.accepted, pin.description, pin.waiting, pin.waiting_description]
        for tool, pin in pins.tools.items()
    }
    body = {"version": VERSION, "server": pins.server, "tools": rows}
    replace_file(path, json.dumps(body, separators=(",", ":")).encode())
