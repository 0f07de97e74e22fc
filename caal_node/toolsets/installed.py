"""Finds the toolsets that are installed, without loading one: they bring LiveKit.

A toolset is an entry point of the group `caal_node.tools`, in this distribution or in any other:

    [project.entry-points."caal_node.tools"]
    shelf = "my_shelf:Shelf"
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

GROUP: Final = "caal_node.tools"


@lru_cache(maxsize=1)
def installed() -> Mapping[str, EntryPoint]:
    """Return the entry point of every toolset by its name. It reads the disk once a process."""
    return {each.name: each for each in sorted(entry_points(group=GROUP), key=lambda e: e.name)}
