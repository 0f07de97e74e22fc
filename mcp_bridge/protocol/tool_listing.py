"""Lists all tools of one server, page by page, within caps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp import Client
from mcp_types import Tool

from mcp_bridge.core.limits import Limits
from mcp_bridge.core.sanitize import clean_text, one_line
from mcp_bridge.core.server_config import ServerConfig
from mcp_bridge.core.tools import ToolDefinition, ToolInfo
from mcp_bridge.protocol.response_repair import left_out_tools
from mcp_bridge.protocol.tool_names import exposed_names
from mcp_bridge.security.tool_schemas import UnfitSchema, checked_schema

_NAMED_ENTRIES: Final = 10
"""So many of a page's entries that are left out are named; a person does not read more."""


@dataclass(frozen=True, slots=True)
class ToolListing:
    """What a server offered when it was asked."""

    definitions: tuple[ToolDefinition, ...] = ()
    """The tools in the server's order."""
    notes: tuple[str, ...] = ()
    """What was left out, and why, on one line each."""


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
            examples=config.examples.get(tool.name, ()),
        )
        for tool in definitions
    )


async def list_tools(
    client: Client, limits: Limits, redact: Callable[[str], str] = str
) -> ToolListing:
    """Asks for the tools. `redact` takes the server's own secrets out of what it says of them."""
    found: dict[str, ToolDefinition] = {}
    notes: list[str] = []
    async for tool in _pages(client, limits, notes):
        await asyncio.sleep(0)  # checking one takes up to some milliseconds
        if len(found) == limits.max_tools:
            notes.append(f"offers more than {limits.max_tools} tools; the rest is left out")
            break
        if tool.name in found:
            notes.append(f"lists {one_line(tool.name, 80)} twice; the first one counts")
        elif (size := _size(tool.input_schema)) > limits.max_schema_chars:
            notes.append(f"the schema of {one_line(tool.name, 80)} has {size} characters; left out")
        else:
            try:
                found[tool.name] = _definition(tool, limits, redact)
            except UnfitSchema as unfit:
                notes.append(f"the schema of {one_line(tool.name, 80)} {unfit}; left out")
    return ToolListing(tuple(found.values()), tuple(notes))


def _definition(tool: Tool, limits: Limits, redact: Callable[[str], str]) -> ToolDefinition:
    """Raises: UnfitSchema."""
    written = json.dumps(tool.input_schema)
    if redact(written) != written:
        raise UnfitSchema("holds a secret that the server was given")
    return ToolDefinition(
        name=tool.name,
        description=clean_text(redact(tool.description or ""), limits.max_description_chars),
        input_schema=checked_schema(tool.input_schema),
        read_only=_read_only(tool),
    )


async def _pages(client: Client, limits: Limits, notes: list[str]) -> AsyncGenerator[Tool]:
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(limits.max_pages):
        page = await client.list_tools(cursor=cursor)
        unfit = left_out_tools(page.meta)
        notes.extend(f"{one_line(said, 160)}; left out" for said in unfit[:_NAMED_ENTRIES])
        if len(unfit) > _NAMED_ENTRIES:
            notes.append(f"{len(unfit) - _NAMED_ENTRIES} further ones are left out as well")
        for tool in page.tools:
            yield tool
        cursor = page.next_cursor
        if cursor is None:
            return
        if cursor in seen:
            notes.append("its list of tools goes in a circle; read once")
            return
        seen.add(cursor)
    notes.append(f"its list of tools has more than {limits.max_pages} pages; the rest is left out")


def _read_only(tool: Tool) -> bool | None:
    if (says := tool.annotations) is None:
        return None
    if says.destructive_hint and says.read_only_hint:
        return False  # it contradicts itself: the careful reading counts
    return says.read_only_hint


def _size(schema: Mapping[str, Any]) -> int:
    return len(json.dumps(schema, ensure_ascii=False))
