"""The third tier: tools of MCP servers, named `server__tool`.

Few tools are offered as they are. Where their schemas are more than `offer_tokens`, the model is
offered `mcp_discover` alone; what it finds stays callable, in the order found, until the session
ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, cast

import mcp_bridge
from caal_node.context.schemas import compact_schema
from caal_node.context.token_estimate import tools_tokens
from caal_node.core.errors import InvalidArguments, ToolBroke, ToolTimeout, ToolUnavailable
from caal_node.core.tool_spec import Example, ToolSpec
from caal_node.tools.source import CallConversation, Listing

logger = logging.getLogger("caal_node.tools")

READY_S: Final = 12.0
"""For all servers together, below `DISCOVERY_S` of all tiers. A slower one comes when it is ready,
and its tools stand behind the others then."""
OFFER_TOKENS: Final = 3_000
FOUND_BYTES: Final = 24_000
"""Schemas that searches have added, as compact JSON: some 6,000 tokens. Past it the ones found
first go, as otherwise there would be no room left to talk in."""
CALL_CAP_S: Final = mcp_bridge.Limits().call_cap_s + 5.0
"""Of a whole call; the bridge's own cap comes first, as its error says more."""
_FLOOD: Final = 3
"""Times what may be offered. A server that adds some tools does not come near it."""
_SOURCE: Final = "mcp"


class McpToolSource:
    """Reads the configuration file at each discovery, so that a reload sees a new server.

    Args:
        catalogue: A folder where tools are remembered between runs; None connects every server.
        pins: A folder where definitions are kept as they were accepted; None takes any.
        room_path: The folder that the room works in, for servers that want one.
        embedder: Makes searches go by meaning as well; None goes by words.
        vectors: Where the tools' vectors are kept between runs.
        oauth: Signs in to remote servers that want it.
    """

    def __init__(
        self,
        config: Path,
        *,
        call_timeout_s: float,
        offer_tokens: int = OFFER_TOKENS,
        catalogue: Path | None = None,
        pins: Path | None = None,
        room_path: Path | None = None,
        embedder: mcp_bridge.Embedder | None = None,
        vectors: mcp_bridge.VectorCache | None = None,
        oauth: mcp_bridge.OAuth | None = None,
    ) -> None:
        self._config = config
        self._room_path = str(room_path.expanduser()) if room_path else None
        self._call_timeout_s = call_timeout_s
        self._offer_tokens = offer_tokens
        self._catalogue = mcp_bridge.Catalogue(catalogue) if catalogue else None
        self._pins = mcp_bridge.Pins(pins) if pins else None
        self._embedder, self._vectors = embedder, vectors
        self._oauth = oauth
        self._open = AsyncExitStack()
        self._servers: mcp_bridge.ServerManager | None = None
        self._tools: tuple[mcp_bridge.ToolInfo, ...] = ()
        """All of them, in the order in which they came up."""
        self._slip: dict[str, str] = {}
        """What is wrong with the configuration file; it goes on as it was."""
        self._found: dict[str, mcp_bridge.ToolInfo] = {}
        self._searching: mcp_bridge.ToolInfo | None = None
        self._grown = False
        self._told = Listing()
        """What was given out last."""
        self._tell: Callable[[], None] | None = None
        self._changing: asyncio.Task[None] | None = None
        self._changed_again = False

    async def discover(self) -> Listing:
        until = asyncio.get_running_loop().time() + READY_S
        self._slip = {}
        try:
            configs = await asyncio.to_thread(
                mcp_bridge.load_servers,
                self._config,
                missing_ok=True,
                room_path=self._room_path,
            )
        except mcp_bridge.ConfigError as error:
            # Servers that run already go on: a slip in the file must not take a live room's tools.
            self._slip = {self._config.name: str(error)}
            return await self._listed(until)
        if self._servers is not None:
            await self._servers.reload(configs, ready_s=READY_S)
        elif configs:
            self._servers = await self._open.enter_async_context(
                mcp_bridge.ServerManager(
                    configs,
                    call_timeout_s=self._call_timeout_s,
                    ready_s=READY_S,
                    catalogue=self._catalogue,
                    pins=self._pins,
                    on_event=self._heard,
                    embedder=self._embedder,
                    vectors=self._vectors,
                    oauth=self._oauth,
                )
            )
        return await self._listed(until)

    async def _listed(self, until: float) -> Listing:
        if self._servers is None:
            return self._listing()
        tools = await self._servers.list_tools()
        tokens = await asyncio.to_thread(_tokens, tools)
        if tokens <= self._offer_tokens and any(s.state == "idle" for s in self._servers.servers):
            # All of them are offered, so what they are today counts, and nobody waits for a start.
            left_s = until - asyncio.get_running_loop().time()
            await self._servers.reload(ready_s=max(left_s, 0.0))
            tools = await self._servers.list_tools()
            tokens = await asyncio.to_thread(_tokens, tools)
        self._take(tools, tokens > self._offer_tokens)
        if self._searching is not None:
            logger.info("%d MCP tools of about %d tokens are searched for", len(tools), tokens)
        return self._listing()

    def _listing(self) -> Listing:
        self._told = self._now()
        return self._told

    def _now(self) -> Listing:
        failed: Mapping[str, str] = self._servers.failed if self._servers is not None else {}
        return Listing(self._offered(), {**failed, **self._slip})

    def _take(
        self, tools: Sequence[mcp_bridge.ToolInfo], searching: bool, *, live: bool = False
    ) -> None:
        """Takes these for all tools there are. Old ones keep their order, new ones come last."""
        now = {tool.name: tool for tool in tools}
        order = dict.fromkeys([tool.name for tool in self._tools if tool.name in now])
        self._tools = tuple(now[name] for name in order | now)
        self._found = {name: now[name] for name in self._found if name in now}
        if not searching:
            self._searching = None
        elif self._searching is None or not live:
            servers = list(dict.fromkeys(tool.server for tool in self._tools))
            self._searching = mcp_bridge.discover_tool(servers)

    def _offered(self) -> tuple[ToolSpec, ...]:
        if (search := self._searching) is None:
            return tuple(map(_spec, self._tools))
        return (_spec(search, remembered=False), *map(_spec, self._found.values()))

    def watch(self, changed: Callable[[], None]) -> None:
        self._tell = changed

    def _heard(self, event: mcp_bridge.BridgeEvent) -> None:
        """Of servers whose tools change by themselves."""
        if not isinstance(event, mcp_bridge.ToolsChanged):
            return
        logger.info("the tools of %s have changed", event.server)
        self._changed_again = True
        if self._changing is None or self._changing.done():
            self._changing = asyncio.create_task(self._follow(), name="caal-mcp-changes")

    async def _follow(self) -> None:
        """Offers what there is now. Found or few enough, it stands behind all that stood before.

        Whether tools are searched for is settled at a reload: to change it on the way would put
        another beginning into the prompt. Only a flood, which no prompt could hold, does.
        """
        while self._changed_again and (servers := self._servers) is not None:
            self._changed_again = False
            tools = await servers.list_tools()
            tokens = await asyncio.to_thread(_tokens, tools)
            flood = tokens > _FLOOD * self._offer_tokens
            self._take(tools, self._searching is not None or flood, live=True)
            if self._now() != self._told:
                self._grown = True
                if self._tell is not None:
                    self._tell()

    async def call(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        return await self._called(spec, arguments)

    async def call_for(
        self, spec: ToolSpec, arguments: Mapping[str, Any], caller: CallConversation
    ) -> Any:
        def heard(event: mcp_bridge.BridgeEvent) -> None:
            if isinstance(event, mcp_bridge.CallProgressed):
                caller.progressed(event.done, event.total, event.message)

        return await self._called(spec, arguments, on_event=heard, elicitor=caller.asked)

    async def _called(self, spec: ToolSpec, arguments: Mapping[str, Any], **options: Any) -> Any:
        if self._servers is None:
            raise ToolUnavailable(f"{spec.source} is not connected.")
        if spec.source == _SOURCE and spec.name == mcp_bridge.DISCOVER:
            return await self._search(self._servers, arguments)
        try:
            result = await self._servers.call_tool(spec.name, dict(arguments), **options)
        except mcp_bridge.CallTimeout as error:
            raise ToolTimeout(str(error)) from error
        except mcp_bridge.ServerUnavailable as error:
            raise ToolUnavailable(str(error)) from error
        except mcp_bridge.BridgeError as error:
            raise ToolBroke(str(error)) from error
        if result.is_error:
            raise ToolBroke(str(result.value))
        return result.value

    async def _search(self, servers: mcp_bridge.ServerManager, arguments: Mapping[str, Any]) -> Any:
        patterns = _patterns(arguments.get("patterns"))
        found = await servers.discover(patterns)
        offer = mcp_bridge.offer(found, known=frozenset(self._found))
        before = list(self._found)
        self._found |= {tool.name: tool for tool in offer.ready}
        self._trim(keep={tool.name for tool in offer.ready})
        self._grown = self._grown or list(self._found) != before
        servers.wake(tool.server for tool in offer.ready)
        logger.info("mcp_discover: %d match, %d offered", len(found), len(offer.ready))
        return offer.answer()

    def _trim(self, keep: set[str]) -> None:
        sizes = {name: mcp_bridge.schema_size(tool) for name, tool in self._found.items()}
        over = sum(sizes.values()) - FOUND_BYTES
        for name in list(self._found):
            if over > 0 and name not in keep:
                del self._found[name]
                over -= sizes[name]

    @property
    def servers(self) -> tuple[mcp_bridge.ServerStatus, ...]:
        return self._servers.servers if self._servers else ()

    async def everything(self) -> tuple[ToolSpec, ...]:
        return tuple(map(_spec, await self._servers.list_tools())) if self._servers else ()

    def grown(self) -> Listing | None:
        if not self._grown:
            return None
        self._grown = False
        return self._listing()

    async def aclose(self) -> None:
        self._servers = None
        if self._changing is not None:
            self._changing.cancel()
            await asyncio.gather(self._changing, return_exceptions=True)
        await self._open.aclose()


def _spec(tool: mcp_bridge.ToolInfo, *, remembered: bool = True) -> ToolSpec:
    return ToolSpec(
        tier="mcp",
        source=tool.server or _SOURCE,
        name=tool.name,
        wanted=tool.name,
        description=tool.description,
        parameters=tool.input_schema,
        examples=tuple(Example(e.say, e.arguments) for e in tool.examples),
        read_only=tool.read_only,
        own_name=tool.tool,
        # Silence ends a call long before; one that tells of its progress, or asks, may go on.
        timeout_s=CALL_CAP_S if tool.server else None,
        remembered=remembered,
    )


def _tokens(tools: Sequence[mcp_bridge.ToolInfo]) -> int:
    """Of the schemas as the model would read them; in a thread, as 500 take 30 ms."""
    return tools_tokens(
        {
            "type": "function",
            "function": compact_schema(
                {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.input_schema),
                }
            ),
        }
        for tool in tools
    )


def _patterns(value: object) -> list[str]:
    """What a model wrote, which may be one text in place of a list."""
    given = cast("list[object]", value if isinstance(value, list) else [value])
    patterns = [text for text in given if isinstance(text, str) and text.strip()]
    if not patterns:
        raise InvalidArguments('patterns: write a list of words, such as ["weather forecast"]')
    return patterns
