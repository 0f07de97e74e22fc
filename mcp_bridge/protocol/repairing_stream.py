"""A transport whose server may take the protocol a little less seriously (`mending.py`)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Final

import anyio.to_thread
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse

from mcp_bridge.protocol.response_repair import mend, plain


class RepairingStream:
    """A transport's messages, mended. For the SDK, which wants no more of a stream than this."""

    def __init__(self, inner: Any) -> None:
        self._inner: Final = inner

    @property
    def last_context(self) -> Any:
        """The SDK's HTTP transport tells here which request a message belongs to."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        return await _mended(await self._inner.receive())

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> RepairingStream:
        return self

    async def __anext__(self) -> Any:
        return await _mended(await self._inner.__anext__())

    async def __aenter__(self) -> RepairingStream:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> bool | None:
        return await self._inner.__aexit__(*raised)


async def _mended(item: Any) -> Any:
    if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
        result = item.message.result
        if not plain(result):
            # A page of many tools takes long.
            with suppress(RecursionError):
                await anyio.to_thread.run_sync(mend, result, abandon_on_cancel=True)
    return item


@asynccontextmanager
async def repairing(transport: AbstractAsyncContextManager[Any]) -> AsyncGenerator[Any]:
    """The same transport, whose server may take the protocol a little less seriously."""
    async with transport as (incoming, outgoing):
        yield RepairingStream(incoming), outgoing
