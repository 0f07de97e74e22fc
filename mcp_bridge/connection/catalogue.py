"""What servers offered when they were last asked, kept on disk: the first search needs no server.

One file for each server's configuration, in a folder that the host gives. A file's name is a
digest of the configuration, so that a changed one is asked afresh; inside stands a digest of the
definitions, so that a damaged or hand-changed file is known for what it is. Such a file is told of
and removed, and the next connection writes it anew. Nothing here is ever needed: a catalogue that
cannot be read or written costs a connection.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from mcp_bridge.core.files import replace_file
from mcp_bridge.core.server_config import ServerConfig
from mcp_bridge.core.tools import ToolDefinition, definitions_digest

logger = logging.getLogger(__name__)

VERSION: Final = 1
MAX_FILE_BYTES: Final = 8 * 1024 * 1024
"""A thousand tools with schemas of 8 kB. Larger lists are not kept."""
MAX_FILES: Final = 256
"""Configurations kept; the ones unused for longest go first."""
_SUFFIX: Final = ".json"


class Catalogue:
    """Reads and writes the disk: call it beside the event loop. Never raises for a bad disk."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder: Final = Path(folder)

    def read(self, config: ServerConfig) -> tuple[ToolDefinition, ...] | None:
        """The definitions as this configuration's server last gave them; None: not known."""
        path = self._path(config)
        try:
            with path.open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            logger.warning("the catalogue %s cannot be read (%s)", path, error.strerror)
            return None
        try:
            found = _parsed(data)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            logger.warning("the catalogue file %s is damaged; it is removed and made anew", path)
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return found

    def write(self, config: ServerConfig, tools: Sequence[ToolDefinition]) -> None:
        data = _written(tools)
        if len(data) > MAX_FILE_BYTES:
            logger.warning("%s: its %d tools are too much to keep", config.name, len(tools))
            return
        path = self._path(config)
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_file(path, data)
            self._trim(path)
        except OSError as error:
            logger.warning("the catalogue %s cannot be written (%s)", path, error.strerror)

    def _path(self, config: ServerConfig) -> Path:
        return self._folder / f"{config.digest()}{_SUFFIX}"

    def _trim(self, newest: Path) -> None:
        files = [file for file in self._folder.glob(f"*{_SUFFIX}") if file != newest]
        files.sort(key=lambda file: file.stat().st_mtime, reverse=True)
        for file in files[MAX_FILES - 1 :]:
            file.unlink(missing_ok=True)


def _written(tools: Sequence[ToolDefinition]) -> bytes:
    body = {
        "version": VERSION,
        "definitions": definitions_digest(tools),
        "tools": [dataclasses.asdict(tool) for tool in tools],
    }
    return json.dumps(body, separators=(",", ":")).encode()


def _parsed(data: bytes) -> tuple[ToolDefinition, ...]:
    """Raises: ValueError, KeyError, TypeError, AttributeError: it is no whole catalogue."""
    if len(data) > MAX_FILE_BYTES:
        raise ValueError("too large")
    body = cast("Mapping[str, Any]", json.loads(data))
    tools = tuple(_definition(row) for row in body["tools"])
    if body["version"] != VERSION or body["definitions"] != definitions_digest(tools):
        raise ValueError("its digest is another")
    return tools


def _definition(row: Mapping[str, Any]) -> ToolDefinition:
    kinds = {"name": str, "description": str, "input_schema": dict, "read_only": bool | None}
    for key, kind in kinds.items():
        if not isinstance(row[key], kind):
            raise TypeError(f"{key} is of another kind")
    return ToolDefinition(**row)
