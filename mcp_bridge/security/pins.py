"""Tools as they were when they were first seen: one that changes later is held back.

A server can describe a tool kindly until it is trusted, and then as something else; packages that
are fetched at each start change their words with any release. So the digest of each definition is
kept on disk, the first one counts, and a tool with another is not offered until a person accepts
it. What counts is what a model reads: name, description, schema, and the claim to read only.

One file for each server and what starts or reaches it. A file that is damaged holds every tool of
its server, since nobody can say what was accepted.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from mcp_bridge.core.server_config import ServerConfig
from mcp_bridge.core.tools import ToolDefinition, definitions_digest
from mcp_bridge.security.hidden_text import one_line

logger = logging.getLogger(__name__)

VERSION: Final = 1
MAX_FILE_BYTES: Final = 8 * 1024 * 1024
_SHOWN_CHARS: Final = 2_000
"""Of a description, kept so that a person can compare."""


@dataclass(slots=True)
class _Pin:
    accepted: str
    says: str
    """The description that was accepted, cut."""
    offered: str = ""
    """The digest that waits to be accepted; empty: none does."""
    now_says: str = ""


@dataclass(slots=True)
class _Pinned:
    """One server's file."""

    server: str
    tools: dict[str, _Pin] = field(default_factory=dict[str, _Pin])
    damaged: bool = False
    changed: bool = False
    """Whether it is not on disk as it is here."""


@dataclass(frozen=True, slots=True)
class VettedTools:
    offered: tuple[ToolDefinition, ...]
    held: Mapping[str, str]
    """Tool at the server -> why it is not offered, and the mend."""


@dataclass(frozen=True, slots=True)
class AcceptedChange:
    server: str
    tool: str
    before: str
    after: str
    """Descriptions, cut; where they are the same, the schema is another."""


class Pins:
    """`read`, `write` and `accept` use the disk: call them beside the event loop."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder: Final = Path(folder)
        self._known: Final[dict[str, _Pinned]] = {}

    def read(self, configs: Sequence[ServerConfig]) -> None:
        """Loads what was accepted for these servers, by whichever process."""
        for config in configs:
            name = _file_name(config)
            found = _load(self._folder / name, config.name)
            self._known[name] = _with_new(found, self._known.get(name))

    def vet(self, config: ServerConfig, definitions: Sequence[ToolDefinition]) -> VettedTools:
        """Trusts what it sees for the first time; holds what has changed since."""
        pinned = self._known.setdefault(_file_name(config), _Pinned(config.name))
        if pinned.damaged:
            why = f"what was accepted cannot be read; remove {self._folder / _file_name(config)}"
            return VettedTools((), {tool.name: why for tool in definitions})
        held: dict[str, str] = {}
        for tool in definitions:
            digest = definitions_digest([tool])
            says = tool.description[:_SHOWN_CHARS]
            pin = pinned.tools.get(tool.name)
            if pin is None:
                pinned.tools[tool.name] = _Pin(digest, says)
                pinned.changed = True
                continue
            waiting = "" if digest == pin.accepted else digest
            if waiting != pin.offered:
                pin.offered, pin.now_says = waiting, says if waiting else ""
                pinned.changed = True
            if waiting:
                held[tool.name] = (
                    "its definition is not the one that was accepted; read it, then accept it "
                    f"(tools --accept {config.name}__{one_line(tool.name)})"
                )
        return VettedTools(tuple(tool for tool in definitions if tool.name not in held), held)

    def write(self) -> None:
        """Keeps what `vet` has learnt. A disk that fails costs the memory, and is logged."""
        for name, pinned in list(self._known.items()):
            if pinned.changed and not pinned.damaged:
                path = self._folder / name
                try:
                    found = _load(path, pinned.server)
                    if found.damaged:
                        continue
                    _store(path, _with_waiting(_with_new(found, pinned), pinned))
                    pinned.changed = False
                except OSError as error:
                    logger.warning("the pins %s cannot be written (%s)", path, error.strerror)

    def waiting(self) -> tuple[str, ...]:
        """`server__tool` of everything that could be accepted now."""
        return tuple(
            f"{pinned.server}__{tool}"
            for _, pinned in self._files()
            for tool, pin in pinned.tools.items()
            if pin.offered
        )

    def accept(self, wanted: str) -> tuple[AcceptedChange, ...]:
        """Takes what waits for `server` or `server__tool`: exactly what was seen, nothing newer.

        Raises: OSError.
        """
        taken: list[AcceptedChange] = []
        for path, pinned in self._files():
            before = len(taken)
            for tool, pin in pinned.tools.items():
                if pin.offered and wanted in (pinned.server, f"{pinned.server}__{tool}"):
                    taken.append(AcceptedChange(pinned.server, tool, pin.says, pin.now_says))
                    pinned.tools[tool] = _Pin(pin.offered, pin.now_says)
            if len(taken) > before:
                _store(path, pinned)
                self._known.pop(path.name, None)
        return tuple(taken)

    def _files(self) -> list[tuple[Path, _Pinned]]:
        found = [(path, _load(path, "")) for path in sorted(self._folder.glob("*.json"))]
        return [(path, pinned) for path, pinned in found if not pinned.damaged]


def _file_name(config: ServerConfig) -> str:
    """Of what starts or reaches the server. Keys may change, and so may the room's path."""
    args = config.args[:-1] if config.given_path else config.args
    what = [config.name, config.transport, config.command, list(args), config.url.partition("?")[0]]
    return f"{hashlib.sha256(json.dumps(what).encode()).hexdigest()}.json"


def _with_new(disk: _Pinned, ours: _Pinned | None) -> _Pinned:
    """What is on disk was accepted by somebody, so it stays; of ours, new tools are added."""
    if ours is not None and not disk.damaged:
        new = {tool: pin for tool, pin in dict(ours.tools).items() if tool not in disk.tools}
        disk.tools |= new
        disk.changed = bool(new)
    return disk


def _with_waiting(disk: _Pinned, ours: _Pinned) -> _Pinned:
    for tool, pin in dict(ours.tools).items():
        known = disk.tools[tool]
        if pin.offered != known.accepted:
            known.offered, known.now_says = pin.offered, pin.now_says
    return disk


def _load(path: Path, server: str) -> _Pinned:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        body = cast("Mapping[str, Any]", json.loads(data[:MAX_FILE_BYTES]))
        if body["version"] != VERSION:
            raise ValueError("another version")
        tools = {str(tool): _Pin(*map(str, row)) for tool, row in body["tools"].items()}
        return _Pinned(str(body["server"]), tools)
    except FileNotFoundError:
        return _Pinned(server)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        logger.warning("the pins %s are damaged; their server's tools are held", path)
        return _Pinned(server, damaged=True)


def _store(path: Path, pinned: _Pinned) -> None:
    """The whole file or none: another process may read it now. Raises: OSError."""
    rows = {t: [p.accepted, p.says, p.offered, p.now_says] for t, p in pinned.tools.items()}
    body = {"version": VERSION, "server": pinned.server, "tools": rows}
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(body, file, separators=(",", ":"))
        Path(scratch).replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            Path(scratch).unlink()
        raise
