"""The third tier: tools of MCP servers, named `server__tool`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias

import mcp_bridge
from caal_node.config.mcp_file import load_mcp_servers, missing_file
from caal_node.context.token_estimate import tools_tokens
from caal_node.context.window import FRONT_TOKENS_MAX
from caal_node.core.errors import ToolBroke, ToolStarting, ToolTimeout, ToolUnavailable
from caal_node.core.prompt_files import sentence
from caal_node.core.tool_spec import Effect, Example, ToolSpec
from caal_node.telemetry.spans import note_mcp_call
from caal_node.tools.source import Arguments, CallConversation, ToolListing, ToolSource
from caal_node.tools.table import ToolTable
from mcp_bridge.core.computing import computed

logger = logging.getLogger("caal_node.tools")

READY_S: Final = 3.0
"""Seconds for all servers together, below `DISCOVERY_S` of all tiers: a person waits for the first
prompt. A slower server comes when it is ready, and its tools stand behind the others then."""
CALL_CAP_S: Final = mcp_bridge.Limits().call_cap_s + 5.0
"""Seconds of a whole call. The bridge's own cap comes first, as its error says more."""


class McpToolSource(ToolSource):
    """The servers of a configuration file, which each discovery reads: a reload sees a new server.

    Args:
        tool_tokens: Servers that the catalogue knows are connected at the start only where the
            schemas of all tools have no more tokens than this: every prompt shows them then. Others
            are connected when the model is told of one of their tools, or calls one.
        catalogue: A folder where tools are remembered between runs; None connects every server.
        pins: Where definitions are kept as they were accepted; None takes any.
        room_path: The folder that the room works in, for servers that want one.
        oauth: Signs in to remote servers that want it.
        ready_s: Seconds that a discovery waits for servers; None is `READY_S`.
    """

    def __init__(
        self,
        config: Path,
        *,
        call_timeout_s: float,
        tool_tokens: int = FRONT_TOKENS_MAX,
        catalogue: Path | None = None,
        pins: mcp_bridge.Pins | None = None,
        room_path: Path | None = None,
        oauth: mcp_bridge.OAuth | None = None,
        ready_s: float | None = None,
    ) -> None:
        self._config = config
        self._ready_s = READY_S if ready_s is None else ready_s
        self._room_path = str(room_path.expanduser()) if room_path else None
        self._make_manager = partial(
            mcp_bridge.ServerManager,
            call_timeout_s=call_timeout_s,
            ready_s=self._ready_s,
            catalogue=mcp_bridge.Catalogue(catalogue) if catalogue else None,
            pins=pins,
            on_event=self._on_bridge_event,
            oauth=oauth,
        )
        self._exit_stack = AsyncExitStack()
        self._manager: mcp_bridge.ServerManager | None = None
        self._tool_tokens = tool_tokens
        self._tools: Mapping[str, _ListedTool] = {}
        """All tools by name, in the order in which they came up."""
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
        until = asyncio.get_running_loop().time() + self._ready_s
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
                await self._manager.reload(configs, ready_s=self._ready_s)
            elif absent := await asyncio.to_thread(missing_file, self._config):
                self._config_error = {self._config.name: absent}
            elif configs:
                manager = self._make_manager(configs)
                self._manager = await self._exit_stack.enter_async_context(manager)
        if self._manager is not None:
            await self._list_tools(self._manager, until)
        self._last_listing = self._listing()
        return self._last_listing

    async def _list_tools(self, manager: mcp_bridge.ServerManager, until: float) -> None:
        await self._take(manager)
        if not any(server.state == "idle" for server in manager.servers):
            return
        if await computed(_fit, self._tools.values(), self._tool_tokens):
            # Every prompt shows them, so what they are today counts, and nobody waits for a start.
            left_s = until - asyncio.get_running_loop().time()
            await manager.reload(ready_s=max(left_s, 0.0))
            await self._take(manager)

    async def _take(self, manager: mcp_bridge.ServerManager) -> None:
        """Take the tools that there are now: known ones in their order, and new ones behind."""
        tools = await manager.list_tools()
        self._tools = await computed(_in_known_order, self._tools, tools)

    def _listing(self) -> ToolListing:
        specs = tuple(spec for _, spec in self._tools.values())
        if self._manager is None:
            return ToolListing(specs, self._config_error)
        failed = {**self._manager.failed, **self._config_error}
        return ToolListing(specs, failed, self._manager.added)

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
        """List what there is now, until nothing changes."""
        while self._servers_changed and (manager := self._manager) is not None:
            self._servers_changed = False
            await self._take(manager)
            self._report_change()

    async def call(
        self, spec: ToolSpec, arguments: Arguments, conversation: CallConversation | None = None
    ) -> Any:
        if self._manager is None:
            raise ToolUnavailable(f"{spec.source} is not connected.")
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
        finally:
            self._note_route(spec.source)
        if result.is_error:
            raise ToolBroke(str(result.value))
        return result.value

    def _note_route(self, server: str) -> None:
        if self._manager is not None and (route := self._manager.route(server)) is not None:
            note_mcp_call(route.transport, route.protocol, route.session_id)

    def wake(self, specs: Iterable[ToolSpec]) -> None:
        if self._manager is not None:
            self._manager.wake(spec.source for spec in specs)

    @property
    def servers(self) -> tuple[mcp_bridge.ServerStatus, ...]:
        return self._manager.servers if self._manager else ()

    @property
    def secrets(self) -> tuple[str, ...]:
        return self._secrets

    async def aclose(self) -> None:
        self._manager = None
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        await self._exit_stack.aclose()


_ListedTool: TypeAlias = tuple[mcp_bridge.ToolInfo, ToolSpec]


def _in_known_order(
    known: Mapping[str, _ListedTool], tools: Sequence[mcp_bridge.ToolInfo]
) -> Mapping[str, _ListedTool]:
    """Return `tools` by name, those of `known` first and in its order, and unchanged ones as they
    were."""
    now = {tool.name: tool for tool in tools}
    names = dict.fromkeys((*(name for name in known if name in now), *now))
    return {
        name: known[name]
        if name in known and known[name][0] == now[name]
        else (now[name], tool_spec(now[name]))
        for name in names
    }


def _fit(tools: Iterable[_ListedTool], max_tokens: int) -> bool:
    """Say whether the schemas, as a model would read them, have no more tokens; 500 take 30 ms."""
    return (
        tools_tokens(entry.schema for entry in ToolTable(spec for _, spec in tools)) <= max_tokens
    )


def tool_spec(tool: mcp_bridge.ToolInfo) -> ToolSpec:
    """Return the tool as the table wants it."""
    return ToolSpec(
        tier="mcp",
        source=tool.server,
        name=tool.name,
        wanted=tool.name,
        description=tool.description,
        parameters=tool.input_schema,
        examples=tuple(Example(e.say, e.arguments) for e in tool.examples),
        read_only=tool.read_only,
        # A server's word can only raise what its tool is taken for.
        effect=_effect(tool),
        annotations=tool.hints,
        own_name=tool.tool,
        # Silence ends a call long before; one that reports its progress, or asks, may go on.
        timeout_s=CALL_CAP_S,
    )


def _effect(tool: mcp_bridge.ToolInfo) -> Effect:
    return "destructive" if "destructiveHint" in tool.hints else "write"


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
