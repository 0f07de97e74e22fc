"""Which servers' pins were ever written, in a file of its own beside the folder of pins.

It is a second witness: where pins are gone that were there, somebody took them away, and what a
server says by now must not pass for what it said first.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

from mcp_bridge.core.files import read_capped, replace_file

logger = logging.getLogger(__name__)

VERSION: Final = 1
MAX_FILE_BYTES: Final = 1024 * 1024
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
            if body["version"] != VERSION:
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
            body = {"version": VERSION, "servers": dict(servers)}
            replace_file(self._path, json.dumps(body, separators=(",", ":")).encode())
