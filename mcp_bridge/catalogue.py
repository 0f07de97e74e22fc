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
import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from mcp_bridge.servers import ServerConfig
from mcp_bridge.tools import Definition

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

    def read(self, config: ServerConfig) -> tuple[Definition, ...] | None:
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

    def write(self, config: ServerConfig, tools: Sequence[Definition]) -> None:
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
        return self._folder / f"{config_digest(config)}{_SUFFIX}"

    def _trim(self, newest: Path) -> None:
        files = [file for file in self._folder.glob(f"*{_SUFFIX}") if file != newest]
        files.sort(key=lambda file: file.stat().st_mtime, reverse=True)
        for file in files[MAX_FILES - 1 :]:
            file.unlink(missing_ok=True)


def config_digest(config: ServerConfig) -> str:
    """Of what a server is started or reached by. Two rooms with one digest could share it."""
    names = ("transport", "command", "args", "env", "cwd", "url", "headers")
    values = {name: getattr(config, name) for name in names}
    return _digest(
        {k: dict(v) if isinstance(v, Mapping) else v for k, v in values.items()}  # pyright: ignore[reportUnknownArgumentType] # JSON, whatever it holds
    )


def definitions_digest(tools: Sequence[Definition]) -> str:
    """Of everything that a model or a host reads of these tools."""
    return _digest([dataclasses.asdict(tool) for tool in tools])


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _written(tools: Sequence[Definition]) -> bytes:
    body = {
        "version": VERSION,
        "definitions": definitions_digest(tools),
        "tools": [dataclasses.asdict(tool) for tool in tools],
    }
    return json.dumps(body, separators=(",", ":")).encode()


def _parsed(data: bytes) -> tuple[Definition, ...]:
    """Raises: ValueError, KeyError, TypeError, AttributeError: it is no whole catalogue."""
    if len(data) > MAX_FILE_BYTES:
        raise ValueError("too large")
    body = cast("Mapping[str, Any]", json.loads(data))
    tools = tuple(_definition(row) for row in body["tools"])
    if body["version"] != VERSION or body["definitions"] != definitions_digest(tools):
        raise ValueError("its digest is another")
    return tools


def _definition(row: Mapping[str, Any]) -> Definition:
    kinds = {"name": str, "description": str, "input_schema": dict, "read_only": bool | None}
    for key, kind in kinds.items():
        if not isinstance(row[key], kind):
            raise TypeError(f"{key} is of another kind")
    return Definition(**row)


def replace_file(path: Path, data: bytes) -> None:
    """The whole file or none: another process may read it now."""
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(scratch).replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            Path(scratch).unlink()
        raise
