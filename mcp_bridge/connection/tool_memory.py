"""What a manager knows from earlier runs: what servers offered, and what of it was accepted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from mcp_bridge.connection.catalogue import Catalogue
from mcp_bridge.core.server_config import ServerConfig
from mcp_bridge.core.tools import ToolDefinition
from mcp_bridge.security.pins import Pins, VettedTools

Lists: TypeAlias = Sequence[tuple[ServerConfig, Sequence[ToolDefinition]]]


class ToolMemory:
    """The disk is read and written beside the event loop. Without `pins` all is accepted."""

    def __init__(self, catalogue: Catalogue | None, pins: Pins | None) -> None:
        self._catalogue: Final = catalogue
        self._pins: Final = pins

    async def read_pins(self, configs: Sequence[ServerConfig]) -> None:
        """Before `vetted` is asked about these servers; another process may have accepted more."""
        if (pins := self._pins) is not None:
            await asyncio.to_thread(pins.read, configs)

    async def lists(
        self, configs: Sequence[ServerConfig]
    ) -> Mapping[str, Sequence[ToolDefinition]]:
        """Server -> its tools when it was last asked, for those that are known."""
        if (catalogue := self._catalogue) is None:
            return {}
        known = await asyncio.to_thread(lambda: [catalogue.read(config) for config in configs])
        return {c.name: tools for c, tools in zip(configs, known, strict=True) if tools is not None}

    async def keep(self, lists: Lists) -> None:
        """The lists as servers have just given them, and what was vetted since."""
        if (pins := self._pins) is not None:
            await asyncio.to_thread(pins.write)
        if (catalogue := self._catalogue) is not None:
            await asyncio.to_thread(lambda: [catalogue.write(*one) for one in lists])

    def vetted(self, config: ServerConfig, definitions: Iterable[ToolDefinition]) -> VettedTools:
        """What of `definitions` may be offered, and what is held back."""
        if self._pins is None:
            return VettedTools(tuple(definitions), {})
        return self._pins.vet(config, tuple(definitions))
