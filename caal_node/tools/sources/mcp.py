"""The third tier: tools of MCP servers, named `server__tool`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

import mcp_bridge
from caal_node.config.mcp_file import load_mcp_servers
from caal_node.core.errors import ToolBroke, ToolStarting, ToolTimeout, ToolUnavailable
from caal_node.core.prompt_files import sentence
from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.source import Arguments, CallConversation, ToolListing, ToolSource
from caal_node.tools.sources.mcp_offer import (
    MCP_SOURCE,
    McpToolOffer,
    schema_tokens,
    search_patterns,
    tool_spec,
)

logger = logging.getLogger("caal_node.tools")

READY_S: Final = 12.0
"""Seconds for all servers together, below `DISCOVERY_S` of all tiers. A slower server comes when it
is ready, and its tools stand behind the others then."""
OFFER_TOKENS: Final = 3_000


class McpToolSource(ToolSource):
    """The servers of a configuration file, which each discovery reads: a reload sees a new server.

    Args:
        offer_tokens: Where the schemas of all tools are more than this, the model is offered a
            search in their place.
        catalogue: A folder where tools are remembered between runs; None connects every server.
        pins: Where definitions are kept as they were accepted; None takes any.
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
        pins: mcp_bridge.Pins | None = None,
        room_path: Path | None = None,
        embedder: mcp_bridge.Embedder | None = None,
        vectors: mcp_bridge.VectorCache | None = None,
        oauth: mcp_bridge.OAuth | None = None,
    ) -> None:
        self._config = config
        self._room_path = str(room_path.expanduser()) if room_path else None
        self._make_manager = partial(
            mcp_bridge.ServerManager,
            call_timeout_s=call_timeout_s,
            ready_s=READY_S,
            catalogue=mcp_bridge.Catalogue(catalogue) if catalogue else None,
            pins=pins,
            on_event=self._on_bridge_event,
            embedder=embedder,
            vectors=vectors,
            oauth=oauth,
        )
        self._exit_stack = AsyncExitStack()
        self._manager: mcp_bridge.ServerManager | None = None
        self._offer = McpToolOffer(offer_tokens)
        self._config_error: dict[str, str] = {}
        """What is wrong with the configuration file, by its name. The servers go on as before."""
        self._last_listing = ToolListing()
        """The listing that was given out last."""
        self._on_change: Callable[[ToolListing], None] = _ignore
        self._following: asyncio.Task[None] | None = None
        """Takes in the changes that servers announce."""
        self._servers_changed = False
        self._secrets: tuple[str, ...] = ()

    async def discover(self) -> ToolListing:
        until = asyncio.get_running_loop().time() + READY_S
        self._config_error = {}
        try:
            configs = await asyncio.to_thread(
                load_mcp_servers, self._config, missing_ok=True, room_path=self._room_path
            )
        except mcp_bridge.ConfigError as error:
            # A mistake in the file must not take the tools of servers that run from a live room.
            self._config_error = {self._config.name: str(error)}
        else:
            self._secrets = tuple(chain.from_iterable(config.keys() for config in configs))
            if self._manager is not None:
                await self._manager.reload(configs, ready_s=READY_S)
            elif configs:
                manager = self._make_manager(configs)
                self._manager = await self._exit_stack.enter_async_context(manager)
        if self._manager is not None:
            await self._list_tools(self._manager, until)
        self._last_listing = self._listing()
        return self._last_listing

    async def _list_tools(self, manager: mcp_bridge.ServerManager, until: float) -> None:
        tools = await manager.list_tools()
        tokens = await asyncio.to_thread(schema_tokens, tools)
        if self._offer.fits(tokens) and any(s.state == "idle" for s in manager.servers):
            # All of them are offered, so what they are today counts, and nobody waits for a start.
            left_s = until - asyncio.get_running_loop().time()
            await manager.reload(ready_s=max(left_s, 0.0))
            tools = await manager.list_tools()
            tokens = await asyncio.to_thread(schema_tokens, tools)
        self._offer.replace(tools, tokens)
        if self._offer.is_searched:
            logger.info("%d MCP tools of about %d tokens are searched for", len(tools), tokens)

    def _listing(self) -> ToolListing:
        if self._manager is None:
            return ToolListing(self._offer.specs(), self._config_error)
        failed = {**self._manager.failed, **self._config_error}
        return ToolListing(self._offer.specs(), failed, self._manager.added)

    def watch_changes(self, changed: Callable[[ToolListing], None]) -> None:
        self._on_change = changed

    def _report_change(self) -> None:
        if (listing := self._listing()) != self._last_listing:
            self._last_listing = listing
            self._on_change(listing)

    def _on_bridge_event(self, event: mcp_bridge.BridgeEvent) -> None:
        if not isinstance(event, mcp_bridge.ToolsChanged):
            return
        logger.info("the tools of %s have changed", event.server)
        self._servers_changed = True
        if self._following is None or self._following.done():
            self._following = asyncio.create_task(self._follow_changes(), name="caal-mcp-changes")

    async def _follow_changes(self) -> None:
        """Offer what there is now, behind all that was offered before, until nothing changes."""
        while self._servers_changed and (manager := self._manager) is not None:
            self._servers_changed = False
            tools = await manager.list_tools()
            self._offer.replace_live(tools, await asyncio.to_thread(schema_tokens, tools))
            self._report_change()

    async def call(
        self, spec: ToolSpec, arguments: Arguments, conversation: CallConversation | None = None
    ) -> Any:
        if self._manager is None:
            raise ToolUnavailable(f"{spec.source} is not connected.")
        if spec.source == MCP_SOURCE and spec.name == mcp_bridge.DISCOVER:
            return await self._search(self._manager, arguments)
        options = {} if conversation is None else _call_options(conversation)
        try:
            result = await self._manager.call_tool(spec.name, dict(arguments), **options)
        except mcp_bridge.CallTimeout as error:
            raise ToolTimeout(str(error)) from error
        except mcp_bridge.ServerStarting as error:
            raise ToolStarting(str(error)) from error
        except mcp_bridge.ServerUnavailable as error:
            raise ToolUnavailable(str(error)) from error
        except mcp_bridge.BridgeError as error:
            raise ToolBroke(str(error)) from error
        if result.is_error:
            raise ToolBroke(str(result.value))
        return result.value

    async def _search(self, manager: mcp_bridge.ServerManager, arguments: Arguments) -> Any:
        """Run `mcp_discover`: find tools, and make the best of them callable."""
        matches = await manager.discover(search_patterns(arguments.get("patterns")))
        offer = mcp_bridge.offer(matches, known=self._offer.found)
        self._offer.add(offer.ready)
        self._report_change()
        manager.wake(tool.server for tool in offer.ready)
        logger.info("mcp_discover: %d match, %d offered", len(matches), len(offer.ready))
        starting = [server.name for server in manager.servers if server.state == "starting"]
        not_ready = {"not_ready_yet": starting, "say": "They are being set up."}
        return {**offer.answer(), **(not_ready if starting else {})}

    @property
    def servers(self) -> tuple[mcp_bridge.ServerStatus, ...]:
        return self._manager.servers if self._manager else ()

    @property
    def secrets(self) -> tuple[str, ...]:
        return self._secrets

    async def all_tools(self) -> tuple[ToolSpec, ...]:
        return tuple(map(tool_spec, await self._manager.list_tools())) if self._manager else ()

    async def aclose(self) -> None:
        self._manager = None
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        await self._exit_stack.aclose()


def _ignore(listing: ToolListing) -> None:
    """Nobody watches for changes yet."""


def _call_options(conversation: CallConversation) -> dict[str, Any]:
    """Return the options of `call_tool` by which progress and questions reach the conversation."""

    def on_event(event: mcp_bridge.BridgeEvent) -> None:
        if isinstance(event, mcp_bridge.CallProgressed):
            conversation.report_progress(event.done, event.total, event.message)

    async def ask(question: mcp_bridge.Question) -> mcp_bridge.Answer:
        # Who asks is said first: the words are a server's own, in the agent's voice.
        asks = sentence("server_asks").replace("{server}", question.server.replace("_", " "))
        said = asks.replace("{question}", question.message)
        return await conversation.ask(replace(question, message=said))

    return {"on_event": on_event, "elicitor": ask}
