"""What servers offered when they were last asked, kept on disk: the first search needs no server.

There is one file for each server's configuration, in a folder that the host gives. A file's name is
a digest of the configuration, so that a changed one is asked afresh; inside stands a digest of the
definitions, so that a damaged or hand-changed file is known for what it is. Such a file is logged
and removed, and the next connection writes it anew. Nothing here is ever needed: a catalogue that
cannot be read or written costs a connection.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from mcp_bridge.core.files import read_capped, replace_file
from mcp_bridge.core.server_config import ServerConfig
from mcp_bridge.core.tools import ToolDefinition, make_digests

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
