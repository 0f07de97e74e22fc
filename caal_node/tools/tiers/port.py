"""What a remote tier is to the node: it lists tools, runs one, and closes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from caal_node.tools.spec import ToolSpec


@dataclass(frozen=True, slots=True)
class Listing:
    """What a tier offers now, and which of its sources could not be listed, with the reason."""

    specs: tuple[ToolSpec, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict[str, str])


class Tier(Protocol):
    async def discover(self) -> Listing:
        """Look at every source afresh. Never raises for a dead source: it is listed as failed."""
        ...

    async def call(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        """Run one tool; gives a JSON value or text.

        Raises:
            ToolFailure: in the kind that fits.
        """
        ...

    async def aclose(self) -> None: ...
