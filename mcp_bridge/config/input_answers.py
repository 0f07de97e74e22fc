"""What a person answered when a file of servers asked for it (`${input:ID}`), kept for good."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from mcp_bridge.core.files import read_capped, replace_file

logger = logging.getLogger(__name__)

_MAX_BYTES: Final = 1024 * 1024
_ANSWERS: Final = TypeAdapter(dict[str, dict[str, str]])


class InputAnswers:
    """Answers by the file that asks and the id that it asks by, in one file for its user alone.

    It uses the disk, so call it in a thread.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Final = Path(path)

    def of(self, file: str | os.PathLike[str]) -> Mapping[str, str]:
        """Gives the answers for one file of servers; none where they cannot be read."""
        try:
            return self._read().get(_key(file), {})
        except (OSError, ValidationError, ValueError):
            logger.warning("the answers in %s cannot be read; give them again", self.path)
            return {}

    def keep(self, file: str | os.PathLike[str], answers: Mapping[str, str]) -> None:
        """Adds answers to those of one file. Raises: OSError, where they cannot be written.

        A file that cannot be read as one of ours is set aside, for a person to look at.
        """
        try:
            kept = self._read()
        except ValueError:
            self.path.replace(self.path.with_suffix(".damaged"))
            kept = {}
        kept[_key(file)] = {**kept.get(_key(file), {}), **answers}
        replace_file(self.path, json.dumps(kept, indent=1).encode())

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            return _ANSWERS.validate_json(read_capped(self.path, _MAX_BYTES))
        except FileNotFoundError:
            return {}


def _key(file: str | os.PathLike[str]) -> str:
    return str(Path(file).resolve())
