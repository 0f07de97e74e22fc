"""A backend that redacts what its server reads, and puts data back into what the model replies.

Everything of a request goes through it: instructions, what people said, tool data, calls, results
and the tools' descriptions. The strategies above it know nothing of that: they read the reply as if
the model had seen everything, so an argument that a person said is known as one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final, cast

from caal_node.core.items import CallItem, Item, ResultItem
from caal_node.core.tool_spec import ToolSchema
from caal_node.models.backends.base import (
    Backend,
    BackendRequest,
    Capabilities,
    Chunk,
    Dialect,
    LearnsDialect,
    NativeCall,
    RendersTools,
    TextChunk,
)
from caal_node.redaction.placeholders import PromptRedaction, Restoring

LONG_CHARS: Final = 16_384
"""Characters that are redacted on the event loop, some 2 ms. More are, in a thread."""
_TEXTS: Final = frozenset({"description", "title", "default", "examples", "enum", "const"})
"""Keys of a schema whose values are words or data, and no part of the schema's own language."""


class RedactingBackend:
    """Asks `wrapped`, which is closed with it."""

    def __init__(self, wrapped: Backend, redaction: PromptRedaction) -> None:
        self.wrapped: Final = wrapped
        self._redaction: Final = redaction
        self._tools: tuple[tuple[ToolSchema, ...], tuple[ToolSchema, ...], Restoring] | None = None
        """The last tools, as they are and as they are shown."""

    @property
    def model(self) -> str:
        return self.wrapped.model

    @property
    def address(self) -> str:
        return self.wrapped.address

    async def capabilities(self) -> Capabilities:
        return await self.wrapped.capabilities()

    async def aclose(self) -> None:
        await self.wrapped.aclose()

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        """See `Backend`."""
        new = sum(len(text) for text in _texts(request.items) if not self._redaction.is_known(text))
        if new > LONG_CHARS:
            shown, restoring = await asyncio.to_thread(self._shown, request)
        else:
            shown, restoring = self._shown(request)
        async with aclosing(self.wrapped.ask(shown)) as chunks:
            async for chunk in chunks:
                if not restoring:
                    yield chunk
                elif isinstance(chunk, TextChunk):
                    if (text := restoring.feed(chunk.text)) or chunk.tokens:
                        yield TextChunk(text, chunk.tokens)
                else:
                    if held := restoring.finish():
                        yield TextChunk(held)
                    if isinstance(chunk, NativeCall):
                        chunk = replace(chunk, arguments=restoring.arguments(chunk.arguments))
                    yield chunk

    async def dumps_tools(self, request: BackendRequest) -> bool:
        """See `RendersTools`."""
        asked = self.wrapped
        return isinstance(asked, RendersTools) and await asked.dumps_tools(self._shown(request)[0])

    def _shown(self, request: BackendRequest) -> tuple[BackendRequest, Restoring]:
        restoring = Restoring()
        items = tuple(self._item(item, restoring) for item in request.items)
        tools = self._shown_tools(request.tools, restoring)
        schema = request.schema and self._schema(request.schema, restoring)
        return replace(request, items=items, tools=tools, schema=schema), restoring

    def _item(self, item: Item, restoring: Restoring) -> Item:
        match item:
            case CallItem():
                arguments = restoring.note(self._redaction.shown_json(item.arguments))
                return item if arguments == item.arguments else replace(item, arguments=arguments)
            case ResultItem():
                output = restoring.note(self._redaction.shown(item.output))
                return item if output == item.output else replace(item, output=output)
            case _:
                text = restoring.note(self._redaction.shown(item.text))
                return item if text == item.text else replace(item, text=text)

    def _shown_tools(
        self, tools: tuple[ToolSchema, ...], restoring: Restoring
    ) -> tuple[ToolSchema, ...]:
        if self._tools is None or self._tools[0] is not tools:
            found = Restoring()
            self._tools = tools, tuple(self._schema(each, found) for each in tools), found
        restoring.update(self._tools[2])
        return self._tools[1]

    def _schema(self, schema: Mapping[str, Any], restoring: Restoring) -> Mapping[str, Any]:
        """Return a schema with its words redacted; the names of tools and parameters stay."""
        shown: dict[str, Any] = {}
        for key, value in schema.items():
            # A parameter may be called `title`: its value is then a schema.
            is_text = key in _TEXTS and not isinstance(value, Mapping)
            shown[key] = self._words(value, restoring, is_text=is_text)
        return schema if shown == schema else shown

    def _words(self, value: Any, restoring: Restoring, *, is_text: bool) -> Any:
        if isinstance(value, Mapping):
            return self._schema(cast("Mapping[str, Any]", value), restoring)
        if isinstance(value, list | tuple):
            items = cast("Iterable[Any]", value)
            return [self._words(each, restoring, is_text=is_text) for each in items]
        if is_text and isinstance(value, str):
            return restoring.note(self._redaction.shown(value))
        return value


class RedactingDialectBackend(RedactingBackend):
    """The same for a backend that learns what its server takes."""

    def __init__(self, wrapped: LearnsDialect, redaction: PromptRedaction) -> None:
        super().__init__(cast("Backend", wrapped), redaction)
        self._learning: Final = wrapped

    @property
    def dialect(self) -> Dialect:
        return self._learning.dialect

    @dialect.setter
    def dialect(self, known: Dialect) -> None:
        self._learning.dialect = known


def redacting(backend: Backend, redaction: PromptRedaction) -> RedactingBackend:
    """Return `backend` with its requests redacted."""
    if isinstance(backend, LearnsDialect):
        return RedactingDialectBackend(backend, redaction)
    return RedactingBackend(backend, redaction)


def _texts(items: Iterable[Item]) -> Iterable[str]:
    for item in items:
        match item:
            case CallItem():
                yield item.arguments
            case ResultItem():
                yield item.output
            case _:
                yield item.text
