"""What a check of a workflow comes to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Level: TypeAlias = Literal["error", "warning", "advice"]
Told: TypeAlias = Iterator[tuple[Level, str, str]]
"""Of one check: how grave it is, what is wrong, how to mend it."""
NOTES: Final = "open the Webhook node, Settings, Notes"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about one tool. `error`: it cannot be called or never answers; `warning`: it will
    be called wrongly or heard badly; `advice`: it works, and could be better."""

    level: Level
    workflow: str
    where: str
    """The webhook's path, or the node."""
    message: str
    mend: str
