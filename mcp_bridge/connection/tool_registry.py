"""Holds the tools of all servers, and what is remembered of them from one run to the next.

They are found by name, by a similar name, and by search.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import difflib
import hashlib
import json
import logging
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from mcp_bridge.core.computing import computed
from mcp_bridge.core.errors import UnknownTool
from mcp_bridge.core.files import read_capped, replace_file
from mcp_bridge.core.server_config import ServerConfig
from mcp_bridge.core.tools import ToolDefinition, ToolInfo, make_digests
from mcp_bridge.discovery.tool_search import ToolFinder
from mcp_bridge.embedding.semantic_index import SemanticIndex
from mcp_bridge.protocol.tool_listing import exposed_tools, server_prefixes
from mcp_bridge.security.pins import Pins, VettedTools, shown_name

ToolLists: TypeAlias = Sequence[tuple[ServerConfig, Sequence[ToolDefinition]]]
"""The tools of servers, as each of them lists its own."""
_TOLD: Final = 20
"""So many of a server's tools that are held are told of one by one."""
_NEAREST: Final = 5
"""So many similar names are proposed for one that does not exist."""


class ToolTable:
    """The tools that can be called. It is immutable, and a name is looked up in it, never split."""

    def __init__(self, tools: Iterable[ToolInfo] = ()) -> None:
        self.by_name: Final[Mapping[str, ToolInfo]] = MappingProxyType(
            {tool.name: tool for tool in tools}
        )
        self.tools: Final = tuple(self.by_name.values())
        self.finder: ToolFinder | None = None
        """What searches these tools; it is made at the first search."""

    def resolve(self, name: str) -> ToolInfo:
        """Gives the tool of that name. Raises: UnknownTool, with the nearest names there are."""
        if (tool := self.by_name.get(name)) is None:
            near = difflib.get_close_matches(name[:64], self.by_name, _NEAREST, 0.3)
            raise UnknownTool(name, near)
        return tool

    def differences(self, before: ToolTable) -> dict[str, tuple[str, ...]]:
        """Gives the `added`, `removed` and `changed` exposed names, each a tuple in table order.

        Thousands of tools take longer than an audio frame, so compare tables in a thread.
        """
        old, new = before.by_name, self.by_name
        return {
            "added": tuple(name for name in new if name not in old),
            "removed": tuple(name for name in old if name not in new),
            "changed": tuple(n for n, tool in new.items() if n in old and old[n] != tool),
        }


@dataclass(frozen=True, slots=True)
class _JudgedList:
    """What one server's list came to."""

    config: ServerConfig
    definitions: Sequence[ToolDefinition]
    prefix: str
    tools: tuple[ToolInfo, ...]
    vetted: VettedTools | None
    """None without pins."""
    held: Mapping[str, str]
    """What is held back, as `server__tool`, and why."""


class ToolRegistry:
    """The tools of one manager's servers, as they were accepted and as they are called.

    The disk is used in threads. Lists are judged in threads as well: at 8 us a tool, 2,000 tools of
    each of three servers would hold the loop for longer than an audio frame. Without a catalogue
    nothing is remembered, without pins everything is accepted, and without `meanings` searches go
    by words alone.
    """

    def __init__(
        self, catalogue: Catalogue | None, pins: Pins | None, meanings: SemanticIndex | None
    ) -> None:
        self.table = ToolTable()
        self.vetted: Mapping[str, VettedTools] = {}
        """For each server what the comparison with its pins has found; empty without pins."""
        self.held: Mapping[str, str] = {}
        """For each tool that is held back, as `server__tool`: why, and how to fix it."""
        self._catalogue: Final = catalogue
        self._pins: Final = pins
        self._meanings: Final = meanings
        self._judged: dict[str, _JudgedList] = {}
        """For each server its list as it was judged last."""
        self._judging: Final = asyncio.Lock()
        """Held while lists are judged, so that no list is judged twice at the same time."""

    async def rebuild(self, servers: Collection[str], lists: Callable[[], ToolLists]) -> None:
        """Makes the table of what these servers offer.

        Args:
            servers: The names of all configured servers, which decide the tools' names.
            lists: Gives the lists as they are. One that changes while others are judged is for the
                next time.
        """
        prefixes = server_prefixes(servers)
        async with self._judging:
            if new := [one for one in lists() if not self.has_judged(*one, prefixes)]:
                self._judged |= await computed(self._judge, new, prefixes)
            names = [config.name for config, _ in lists()]
            self._judged = {name: self._judged[name] for name in names if name in self._judged}
            found = self._judged.values()
            self.vetted = {one.config.name: one.vetted for one in found if one.vetted is not None}
            self.held = {tool: why for one in found for tool, why in one.held.items()}
            self.table = ToolTable(tool for one in found for tool in one.tools)
            if self._meanings is not None:
                self._meanings.set_tools(self.table.tools)

    def has_judged(
        self,
        config: ServerConfig,
        definitions: Sequence[ToolDefinition],
        prefixes: Mapping[str, str] | None = None,
    ) -> bool:
        """Says whether the table is made of this list, and under these prefixes if they matter."""
        one = self._judged.get(config.name)
        if one is None or one.definitions is not definitions or one.config != config:
            return False
        return prefixes is None or one.prefix == prefixes[config.name]

    def drop(self, servers: Collection[str]) -> None:
        """Takes the tools of these servers out of the table at once."""
        self._judged = {n: one for n, one in self._judged.items() if n not in servers}
        self.table = ToolTable(tool for tool in self.table.tools if tool.server not in servers)

    def _judge(self, lists: ToolLists, prefixes: Mapping[str, str]) -> dict[str, _JudgedList]:
        judged: dict[str, _JudgedList] = {}
        for config, definitions in lists:
            prefix, vetted = prefixes[config.name], None
            if self._pins is not None:
                vetted = self._pins.vet(config, definitions)
            offered = definitions if vetted is None else vetted.offered
            tools = exposed_tools(offered, config, prefix)
            held: Mapping[str, str] = {} if vetted is None else vetted.held
            shown = {f"{config.name}__{shown_name(tool)}": why for tool, why in held.items()}
            judged[config.name] = _JudgedList(config, definitions, prefix, tools, vetted, shown)
        return judged

    @property
    def added(self) -> tuple[str, ...]:
        """The exposed names of what known servers have added, and nobody has accepted yet."""
        added = {(server, tool) for server, vetted in self.vetted.items() for tool in vetted.added}
        return tuple(tool.name for tool in self.table.tools if (tool.server, tool.tool) in added)

    def notes(self, server: str) -> tuple[str, ...]:
        """Gives what a person should know of a server's tools, on one line each."""
        if (vetted := self.vetted.get(server)) is None:
            return ()
        told = islice(vetted.held.items(), _TOLD)
        held = [f"{shown_name(tool)!r}: {why}" for tool, why in told]
        more = len(vetted.held) - _TOLD
        return (*held, *([f"{more} more tools are held"] if more > 0 else []), *vetted.notes)

    def counts(self, server: str) -> tuple[int, int]:
        """Gives how many of a server's tools are held, and how many are new and offered."""
        vetted = self.vetted.get(server)
        return (len(vetted.held), len(vetted.added)) if vetted is not None else (0, 0)

    async def find(self, patterns: str | Sequence[str]) -> tuple[ToolInfo, ...]:
        """Gives the tools that match, best first. What searches is made in a thread."""
        table = self.table
        if (finder := table.finder) is None:
            finder = table.finder = await computed(ToolFinder, table.tools)
        if self._meanings is None:
            return finder.find(patterns)
        meaning = await self._meanings.query(table.tools, finder.patterns_of_words(patterns))
        return finder.find(patterns, meaning)

    async def read_pins(self, configs: Sequence[ServerConfig]) -> None:
        """Loads the pins of these servers, as another process may have accepted more."""
        if self._pins is not None:
            await asyncio.to_thread(self._pins.read, configs)
            self._judged = {}

    async def read_lists(
        self, configs: Sequence[ServerConfig]
    ) -> Mapping[str, Sequence[ToolDefinition]]:
        """Gives for each known server its tools when it was last asked."""
        if (catalogue := self._catalogue) is None:
            return {}
        known = await asyncio.to_thread(lambda: [catalogue.read(config) for config in configs])
        return {c.name: tools for c, tools in zip(configs, known, strict=True) if tools is not None}

    async def remember(self, lists: ToolLists) -> bool:
        """Keeps the lists as servers have just given them, and what was vetted since.

        True: another process has vetted other tools meanwhile, and the table is to be made anew.
        """
        changed = self._pins is not None and await asyncio.to_thread(self._pins.write)
        if changed:
            self._judged = {}
        if (catalogue := self._catalogue) is not None:
            await asyncio.to_thread(lambda: [catalogue.write(*one) for one in lists])
        return changed

    async def aclose(self) -> None:
        """Forgets the tools, and ends what searches them."""
        self.table = ToolTable()
        if self._meanings is not None:
            await self._meanings.aclose()


# What servers offered when they were last asked, kept on disk: the first search needs no server.
#
# There is one file for each server's configuration, in a folder that the host gives. A file's name
# is a digest of the configuration, so that a changed one is asked afresh; inside stands a digest of
# the definitions, so that a damaged or hand-changed file is known for what it is. Such a file is
# logged and removed, and the next connection writes it anew. Nothing here is ever needed: a
# catalogue that cannot be read or written costs a connection.

logger = logging.getLogger(__name__)

VERSION: Final = 2
MAX_FILE_BYTES: Final = 2 * 1024 * 1024
"""A thousand tools with schemas of 2 kB. Larger lists are not kept: a whole file is parsed in one
step, which no other thread can interrupt."""
MAX_FILES: Final = 256
"""The number of configurations that are kept; those unused for longest go first."""
_SUFFIX: Final = ".json"
_HEAD_BYTES: Final = 128
"""What stands around the tools."""


class _CatalogueFile(BaseModel):
    model_config = ConfigDict(strict=True)

    version: Literal[2]
    definitions: str
    """The digest of `tools`."""
    tools: tuple[ToolDefinition, ...]


class Catalogue:
    """A folder of tool lists. It uses the disk, so call it in a thread. It raises nothing."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder: Final = Path(folder)

    def read(self, config: ServerConfig) -> tuple[ToolDefinition, ...] | None:
        """Gives the tools as this configuration's server last gave them; None: not known."""
        path = self._path(config)
        try:
            tools = _parse(read_capped(path, MAX_FILE_BYTES))
        except FileNotFoundError:
            return None
        except OSError as error:
            logger.warning("the catalogue %s cannot be read (%s)", path, error.strerror)
            return None
        except (ValueError, RecursionError):  # pydantic's errors are ValueErrors
            logger.warning("the catalogue file %s is damaged; it is removed and made anew", path)
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        make_digests(tools)
        with contextlib.suppress(OSError):
            os.utime(path)
        return tools

    def write(self, config: ServerConfig, tools: Sequence[ToolDefinition]) -> None:
        """Keeps a server's tools, unless they are too many."""
        rows: list[str] = []
        left = MAX_FILE_BYTES - _HEAD_BYTES
        for tool in tools:  # one by one: a thread that writes all at once holds up the others
            rows.append(json.dumps(dataclasses.asdict(tool), separators=(",", ":")))
            left -= len(rows[-1]) + 1
            if left < 0:
                logger.warning("%s: its %d tools are too much to keep", config.name, len(tools))
                return
        head = f'{{"version":{VERSION},"definitions":"{_digest(tools)}","tools":['
        data = f"{head}{','.join(rows)}]}}".encode()
        path = self._path(config)
        try:
            replace_file(path, data)
            self._remove_oldest(path)
        except OSError as error:
            logger.warning("the catalogue %s cannot be written (%s)", path, error.strerror)

    def _path(self, config: ServerConfig) -> Path:
        return self._folder / f"{config.digest()}{_SUFFIX}"

    def _remove_oldest(self, newest: Path) -> None:
        files = [file for file in self._folder.glob(f"*{_SUFFIX}") if file != newest]
        files.sort(key=lambda file: file.stat().st_mtime, reverse=True)
        for file in files[MAX_FILES - 1 :]:
            file.unlink(missing_ok=True)


def _parse(data: bytes) -> tuple[ToolDefinition, ...]:
    """Raises: ValueError, where it is no whole catalogue."""
    found = _CatalogueFile.model_validate_json(data)
    if found.definitions != _digest(found.tools):
        raise ValueError("its digest is another")
    return found.tools


def _digest(tools: Sequence[ToolDefinition]) -> str:
    return hashlib.sha256("".join(tool.digest for tool in tools).encode()).hexdigest()
