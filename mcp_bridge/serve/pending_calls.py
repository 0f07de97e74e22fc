"""Which calls of a connection have no answer yet."""

from __future__ import annotations

import asyncio
from typing import Final

from mcp_bridge.serve.message_kind import MessageKind, RequestId


class TooManyCalls(Exception):
    """More without an answer than one connection may have."""


class PendingCalls:
    """`none` is set while there are none."""

    def __init__(self, most: int) -> None:
        self._most: Final = most
        self._asked: Final[set[RequestId]] = set()
        self.none: Final = asyncio.Event()
        self.none.set()

    def __len__(self) -> int:
        return len(self._asked)

    def sent(self, envelope: MessageKind) -> None:
        """The client sent this. Raises: TooManyCalls."""
        if envelope.asks is not None:
            if len(self._asked) >= self._most:
                raise TooManyCalls
            self._asked.add(envelope.asks)
            self.none.clear()
        self._over(envelope.cancels)

    def came(self, envelope: MessageKind) -> None:
        """The server sent this."""
        self._over(envelope.answers)

    def answered(self, call: RequestId) -> None:
        self._over(call)

    def _over(self, call: RequestId | None) -> None:
        if call is not None:
            self._asked.discard(call)
        if not self._asked:
            self.none.set()
