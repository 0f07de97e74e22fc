"""How often an agent's conversations have called each remote tool, kept between sessions."""

from __future__ import annotations

import json
import logging
from collections import Counter
from pathlib import Path
from typing import Any, Final, cast

from mcp_bridge.core.files import read_capped, replace_file

OFTEN: Final = 5
"""Calls from which a tool is used often."""
REMEMBERED: Final = 500
"""Calls of all tools together. Beyond them all counts are halved, so that habits may change."""
FILE_MAX_BYTES: Final = 256 * 1024

logger = logging.getLogger("caal_node.tools")


class UsedTools:
    """The counts of one agent, in a file that its rooms share. `load` and `save` block.

    A room that ends at the same time as another may lose its counts.
    """

    def __init__(self, file: Path) -> None:
        self._file: Final = file
        self._new: Final[Counter[str]] = Counter()
        self.often: tuple[str, ...] = ()
        """The exposed names of the tools that were used often when this was loaded, the most used
        first."""

    def note(self, name: str) -> None:
        """Count a call that has worked."""
        self._new[name] += 1

    def load(self) -> None:
        """Read what earlier sessions have called."""
        self.often = tuple(name for name, calls in self._kept().most_common() if calls >= OFTEN)

    def save(self) -> None:
        """Add what was called since the last time to the file, where the disk lets it."""
        if not self._new:
            return
        counts = self._kept() + self._new
        self._new.clear()
        if counts.total() > REMEMBERED:
            counts = Counter({name: calls // 2 for name, calls in counts.items() if calls > 1})
        try:
            replace_file(self._file, json.dumps(counts).encode())
        except OSError as error:
            logger.warning("how often tools are used could not be kept: %s", error)

    def _kept(self) -> Counter[str]:
        try:
            kept: object = json.loads(read_capped(self._file, FILE_MAX_BYTES))
        except (OSError, ValueError, RecursionError):
            return Counter()
        counts = cast("dict[str, Any]", kept) if isinstance(kept, dict) else {}
        return Counter({name: n for name, n in counts.items() if isinstance(n, int) and n > 0})
