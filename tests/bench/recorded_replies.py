"""A model's replies kept on disk, so that what reads them can be changed without asking again."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

from caal_node.models.backends.base import (
    Backend,
    BackendRequest,
    Capabilities,
    Chunk,
    GeneratedToken,
    NativeCall,
    ReasoningChunk,
    ReplyDone,
    TextChunk,
    Usage,
)


class RecordedBackend:
    """Asks `backend` once for each request, and from then on answers it from `folder`.

    A reply is read to its end and kept whole, also where whoever asks would have ended it. `asked`
    counts the requests that went to the server.
    """

    def __init__(self, backend: Backend, folder: Path) -> None:
        self.asked = 0
        self.used: Final = set[str]()
        """The keys of the requests that were answered."""
        self._backend: Final = backend
        self._folder: Final = folder
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def model(self) -> str:
        return self._backend.model

    @property
    def address(self) -> str:
        return self._backend.address

    async def capabilities(self) -> Capabilities:
        return await self._backend.capabilities()

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        """The same as `Backend.ask`. Errors are not kept."""
        key = key_of(self.model, request)
        self.used.add(key)
        path = self._folder / f"{key}.json"
        if not path.exists():
            self.asked += 1
            chunks: list[Chunk] = []
            async with aclosing(self._backend.ask(request)) as replied:
                async for chunk in replied:
                    chunks.append(chunk)
            path.write_text(json.dumps(list(map(_written, chunks))), encoding="utf-8")
        for row in json.loads(path.read_text(encoding="utf-8")):
            yield read_chunk(row)

    async def aclose(self) -> None:
        await self._backend.aclose()


_ID: Final = re.compile(r"(?<=\bid=')[^']*(?=')|(?<=call_id=')[^']*(?=')")


def key_of(model: str, request: BackendRequest) -> str:
    """Return what a request is known by: it tells the same from another, whatever its ids are."""
    return hashlib.sha256(f"{model}\n{_numbered(request)}".encode()).hexdigest()[:24]


def _numbered(request: BackendRequest) -> str:
    """Write a request with its items and calls counted, whose ids are others in each run."""
    ids: dict[str, int] = {}
    return _ID.sub(lambda found: str(ids.setdefault(found[0], len(ids))), repr(request))


def _written(chunk: Chunk) -> list[Any]:
    match chunk:
        case TextChunk():
            tokens = [[token.text, [list(pair) for pair in token.top]] for token in chunk.tokens]
            return ["text", chunk.text, tokens]
        case ReasoningChunk():
            return ["reasoning", chunk.text]
        case NativeCall():
            return ["call", chunk.id, chunk.name, chunk.arguments]
        case ReplyDone():
            usage = chunk.usage
            return ["done", chunk.reason, usage.prompt, usage.completion, usage.cached]
        case _:
            raise TypeError(f"a server that runs tools itself is not recorded: {chunk}")


def read_chunk(row: list[Any]) -> Chunk:
    """Read a chunk as it was written."""
    kind, *rest = row
    if kind == "text":
        tokens = (
            GeneratedToken(text, tuple((one, odds) for one, odds in top)) for text, top in rest[1]
        )
        return TextChunk(rest[0], tuple(tokens))
    if kind == "reasoning":
        return ReasoningChunk(rest[0])
    if kind == "call":
        return NativeCall(*rest)
    return ReplyDone(rest[0], Usage(*rest[1:]))
