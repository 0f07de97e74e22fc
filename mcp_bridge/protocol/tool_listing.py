"""Lists all tools of one server, page by page, within caps.

The SDK sees none of them but those that want headers (`tool_page.py`). Each is read by itself here,
leniently in what does not matter, so that whatever is wrong with one costs that one alone.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import anyio.to_thread
from mcp import Client
from mcp_types import ListToolsResult

from mcp_bridge.core.limits import Limits
from mcp_bridge.core.sanitize import clean_text, one_line
from mcp_bridge.core.server_config import ServerConfig
from mcp_bridge.core.tools import HINTS, ToolDefinition, ToolInfo, make_digests
from mcp_bridge.protocol.tool_names import exposed_names
from mcp_bridge.protocol.tool_page import TOO_LONG_KEY, needs_headers, texts_of
from mcp_bridge.security.tool_schemas import UnfitSchema, checked_schema

_NAMED_TOOLS: Final = 20
"""So many of a list's entries that are left out are named; a person does not read more."""
_AT_ONCE_CHARS: Final = 32 * 1024
"""A page of so many characters is read in some 4 ms; a larger one in a thread."""


@dataclass(frozen=True, slots=True)
class ToolListing:
    """What a server offered when it was asked."""

    definitions: tuple[ToolDefinition, ...] = ()
    """The tools in the server's order."""
    notes: tuple[str, ...] = ()
    """What was left out, and why, on one line each."""
    output_schemas: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict[str, Mapping[str, Any]]
    )
    """By the tools' names: what their structured answers have to fit."""


def exposed_tools(
    definitions: Sequence[ToolDefinition], config: ServerConfig, prefix: str
) -> tuple[ToolInfo, ...]:
    """Gives the same tools under the names that they are called by."""
    names = exposed_names(prefix, [tool.name for tool in definitions])
    return tuple(
        ToolInfo(
            name=names[tool.name],
            server=config.name,
            tool=tool.name,
            description=tool.description,
            input_schema=tool.input_schema,
            read_only=tool.read_only,
            hints=tool.hints,
            examples=config.examples.get(tool.name, ()),
        )
        for tool in definitions
    )


async def list_tools(
    client: Client, limits: Limits, redact: Callable[[str], str] = str
) -> ToolListing:
    """Asks for the tools. `redact` takes the server's own secrets out of what it says of them."""
    reading = _Reading(limits, redact)
    async for page in _pages(client, limits, reading.notes):
        texts = texts_of(page)
        judged = {tool.name for tool in page.tools}
        if sum(map(len, texts)) <= _AT_ONCE_CHARS:
            reading.take(texts, judged)
        else:
            await anyio.to_thread.run_sync(reading.take, texts, judged, abandon_on_cancel=True)
        if reading.is_full:
            break
    return reading.listing()


class _Reading:
    """What has been read of one server's tools so far."""

    def __init__(self, limits: Limits, redact: Callable[[str], str]) -> None:
        self.notes: Final[list[str]] = []
        self.is_full = False
        self._limits: Final = limits
        self._redact: Final = redact
        self._found: Final[dict[str, ToolDefinition]] = {}
        self._output_schemas: Final[dict[str, Mapping[str, Any]]] = {}
        self._left_out: Final[list[str]] = []

    def take(self, texts: Sequence[str], judged: Collection[str]) -> None:
        """Reads the tools of one page, of which the SDK has taken `judged`.

        A tool that cannot be offered costs no other.
        """
        for text in texts:
            name = "a tool without a name"
            try:
                tool = cast("dict[str, Any]", json.loads(text))
                given: object = tool.get("name")
                if not isinstance(given, str):
                    raise _NoTool
                name = one_line(given, 80)
                if needs_headers(text) and given not in judged:
                    raise _NoTool
                self._add(given, tool)
            except UnfitSchema as unfit:
                self._left_out.append(f"the schema of {name} {unfit}; left out")
            except (_NoTool, AttributeError, ValueError, RecursionError):
                self._left_out.append(f"{name} is no tool as the protocol has them; left out")
            if self.is_full:
                return

    def _add(self, name: str, tool: dict[str, Any]) -> None:
        """Raises: UnfitSchema, _NoTool."""
        if len(self._found) == self._limits.max_tools:
            self.is_full = True
        elif tool.get(TOO_LONG_KEY):
            self._left_out.append(
                f"{one_line(name, 80)} is described at too great length; left out"
            )
        elif name in self._found:
            self._left_out.append(f"lists {one_line(name, 80)} twice; the first one counts")
        else:
            self._found[name] = definition = self._definition(name, tool)
            make_digests([definition])  # here, where a long page is in a thread
            output: object = tool.get("outputSchema")
            if isinstance(output, dict):
                self._output_schemas[name] = cast("dict[str, Any]", output)

    def _definition(self, name: str, tool: dict[str, Any]) -> ToolDefinition:
        """Raises: UnfitSchema, _NoTool."""
        described: object = tool.get("description") or ""
        schema: object = tool.get("inputSchema") or {}
        if not isinstance(described, str) or not isinstance(schema, dict):
            raise _NoTool
        takes: dict[str, Any] = {"type": "object", **cast("dict[str, Any]", schema)}
        if takes["type"] != "object":
            raise _NoTool
        written = json.dumps(takes, ensure_ascii=False)
        if len(written) > self._limits.max_schema_chars:
            raise UnfitSchema(f"has {len(written)} characters")
        if self._redact(written) != written:
            raise UnfitSchema("holds a secret that the server was given")
        return ToolDefinition(
            name=name,
            description=clean_text(self._redact(described), self._limits.max_description_chars),
            input_schema=checked_schema(takes),
            read_only=_read_only(tool.get("annotations")),
            hints=_hints(tool.get("annotations")),
        )

    def listing(self) -> ToolListing:
        if (more := len(self._left_out) - _NAMED_TOOLS) > 0:
            self._left_out[_NAMED_TOOLS:] = [f"{more} further ones are left out as well"]
        if self.is_full:
            most = self._limits.max_tools
            self.notes.append(f"offers more than {most} tools; the rest is left out")
        notes = (*self._left_out, *self.notes)
        return ToolListing(tuple(self._found.values()), notes, self._output_schemas)


class _NoTool(Exception):
    """What a server lists is no tool."""


async def _pages(
    client: Client, limits: Limits, notes: list[str]
) -> AsyncGenerator[ListToolsResult]:
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(limits.max_pages):
        page = await client.list_tools(cursor=cursor)
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return
        if cursor in seen:
            notes.append("its list of tools goes in a circle; read once")
            return
        seen.add(cursor)
    notes.append(f"its list of tools has more than {limits.max_pages} pages; the rest is left out")


def _hints(annotations: object) -> tuple[str, ...]:
    says = cast("dict[str, Any]", annotations) if isinstance(annotations, dict) else {}
    return tuple(name for name in HINTS if says.get(name) is True)


def _read_only(annotations: object) -> bool | None:
    says = cast("dict[str, Any]", annotations) if isinstance(annotations, dict) else {}
    reads, destroys = says.get("readOnlyHint"), says.get("destructiveHint")
    if destroys is True and reads is True:
        return False  # it contradicts itself: the careful reading counts
    return reads if isinstance(reads, bool) else None
