"""A stand-in embedder that knows a few words: texts about one thing are near each other."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Sequence

import numpy as np

from mcp_bridge.embedding.embedders import Vectors, unit

THINGS = (
    ("freezing", "cold", "thermostat", "heating", "temperature"),
    ("dark", "lamp", "light"),
    ("song", "music", "beethoven", "play"),
    ("letter", "mail", "write"),
    ("echo", "parrot", "repeat"),
)
WIDTH = len(THINGS) + 8


def vector(text: str) -> Vectors:
    """Return a vector of what a text is about, and a little of what is its own alone."""
    found = np.zeros(WIDTH, np.float32)
    for word in re.findall(r"[a-z]+", text.lower()):
        for at, words in enumerate(THINGS):
            found[at] += word in words
    own = np.frombuffer(hashlib.sha256(text.encode(errors="replace")).digest()[:8], np.uint8)
    found[len(THINGS) :] = own.astype(np.float32) / 2_000
    return unit(found)


class StandInEmbedder:
    """An embedder that records its texts. It awaits `before` first, which may fail or hang."""

    def __init__(self, name: str = "stand-in") -> None:
        self.name = name
        self.asked: list[list[str]] = []
        self.cancelled = 0
        self.before: Callable[[], Awaitable[None]] | None = None
        self.turn: Callable[[Vectors], Vectors] = lambda rows: rows

    @property
    def texts(self) -> list[str]:
        return [text for some in self.asked for text in some]

    def hold(self) -> asyncio.Event:
        """Let the next batches hang; the event is set once one does."""
        begun = asyncio.Event()

        async def held() -> None:
            begun.set()
            await hang()

        self.before = held
        return begun

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked.append(list(texts))
        try:
            await asyncio.sleep(0)
            if self.before is not None:
                await self.before()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return self.turn(np.stack([vector(text) for text in texts]))


async def hang() -> None:
    await asyncio.get_running_loop().create_future()
