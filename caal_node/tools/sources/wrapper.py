"""The base of sources that wrap another one and change one thing about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.source import (
    Arguments,
    CallConversation,
    ToolListing,
    ToolProvider,
    ToolSource,
    as_tool_source,
)
from mcp_bridge import ServerStatus


class WrapperSource(ToolSource):
    """Does what the wrapped source does. Override `adapt` to change tools, `call` to change calls.

    Args:
        wrapped: A source, or any object with `discover`, `call` and `aclose`. It is closed with
            the wrapper.
    """

    def __init__(self, wrapped: ToolProvider) -> None:
        self.wrapped = as_tool_source(wrapped)

    def adapt(self, spec: ToolSpec) -> ToolSpec | None:
        """Return what one of the wrapped source's tools is given out as; None leaves it out.

        Keep `name`, by which the wrapped source is called; `wanted` is what the model sees.
        """
        return spec

    async def discover(self) -> ToolListing:
        return self._adapted(await self.wrapped.discover())

    async def call(
        self, spec: ToolSpec, arguments: Arguments, conversation: CallConversation | None = None
    ) -> Any:
        return await self.wrapped.call(spec, arguments, conversation)

    async def aclose(self) -> None:
        await self.wrapped.aclose()

    @property
    def poll_s(self) -> float:
        return self.wrapped.poll_s

    async def all_tools(self) -> tuple[ToolSpec, ...] | None:
        specs = await self.wrapped.all_tools()
        return None if specs is None else self._adapted_specs(specs)

    def watch_changes(self, changed: Callable[[ToolListing], None]) -> None:
        self.wrapped.watch_changes(lambda listing: changed(self._adapted(listing)))

    @property
    def servers(self) -> tuple[ServerStatus, ...]:
        return self.wrapped.servers

    def _adapted(self, listing: ToolListing) -> ToolListing:
        return ToolListing(self._adapted_specs(listing.specs), listing.failed)

    def _adapted_specs(self, specs: Iterable[ToolSpec]) -> tuple[ToolSpec, ...]:
        return tuple(spec for spec in map(self.adapt, specs) if spec is not None)
