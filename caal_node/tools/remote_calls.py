"""Runs calls of remote tools: as function tools of LiveKit's, and for callers outside of a room."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Protocol

from livekit.agents import RunContext, function_tool
from livekit.agents.llm import RawFunctionTool, ToolResult

from caal_node.core.caller import Caller
from caal_node.core.errors import ToolFailure
from caal_node.core.events import TierName
from caal_node.tools.call_conversation import RoomCallConversation
from caal_node.tools.pipeline import Pipeline
from caal_node.tools.request import request_of
from caal_node.tools.source import Arguments, ToolSource, VerbatimResult
from caal_node.tools.spoken_result import result_of, said
from caal_node.tools.table import ToolEntry, ToolTable
from caal_node.tools.tool_search import is_search


class RemoteTool(RawFunctionTool[..., Any]):
    """LiveKit's form of a tool of a remote tier: its calls go through the pipeline."""


class ChangingTable(Protocol):
    """What is needed of the owner of the table."""

    async def run_search(self, arguments: Arguments, request: str) -> Any:
        """Run the search tool; `request` is the words that the call answers."""
        ...

    async def settled(self) -> None:
        """Wait until what a call has changed in the table is there."""
        ...


class RemoteCalls:
    """Runs the tools of sources.

    Args:
        sources: The source of each remote tier.
        table: Whose tools they are.
    """

    def __init__(
        self,
        sources: Mapping[TierName, ToolSource],
        pipeline: Pipeline,
        table: ChangingTable,
    ) -> None:
        self._sources: Final = sources
        self._pipeline: Final = pipeline
        self._table: Final = table
        self._made: dict[str, tuple[ToolEntry, RemoteTool]] = {}
        """The function tools by exposed name, each with the entry that it was made of."""

    def function_tool(self, entry: ToolEntry) -> RemoteTool | None:
        """Return the tool's form for LiveKit, the same each time; None for one of the agent's."""
        if not (entry.spec.tier in self._sources or is_search(entry.spec)):
            return None
        known = self._made.get(entry.exposed)
        if known is None or known[0] != entry:
            known = self._made[entry.exposed] = entry, self._make(entry)
        return known[1]

    def forget_others(self, table: ToolTable) -> None:
        """Forget the forms of tools that are no longer in the table."""
        made = self._made.items()
        self._made = {n: one for n, one in made if n in table or is_search(one[0].spec)}

    async def call_directly(
        self, entry: ToolEntry, call_id: str, arguments: Mapping[str, Any], caller: Caller
    ) -> Any:
        """Run a remote tool for a caller who is not the model, and return the value as it came.

        Raises:
            ToolFailure: as `Pipeline.run`.
        """
        source = self._sources[entry.spec.tier]
        execute = partial(source.call, entry.spec, arguments)
        return await self._pipeline.run(
            entry, call_id, arguments, execute, becomes_text=lambda _: False, caller=caller
        )

    def _make(self, entry: ToolEntry) -> RemoteTool:
        async def call(
            raw_arguments: dict[str, object], context: RunContext[Any]
        ) -> str | ToolResult:
            return await self._call(entry, raw_arguments, context)

        return RemoteTool(call, function_tool(call, raw_schema=dict(entry.schema["function"])).info)

    async def _call(
        self, entry: ToolEntry, arguments: Arguments, context: RunContext[Any]
    ) -> str | ToolResult:
        """Run a remote tool for the model."""
        searches = is_search(entry.spec)

        async def execute() -> Any:
            if searches:
                return await self._table.run_search(arguments, request_of(context))
            source = self._sources[entry.spec.tier]
            conversation = RoomCallConversation(entry, context, self._pipeline)
            value = await conversation.run(source.call(entry.spec, arguments, conversation))
            await self._table.settled()  # what it has changed holds in the next request
            return value

        call_id = context.function_call.call_id
        try:
            # What a search tells of has to reach the model with every parameter.
            result = await self._pipeline.run(
                entry, call_id, arguments, execute, whole=searches, context=context
            )
        except ToolFailure as failure:
            result = result_of(failure, self._pipeline.redact)
        return said(result, context) if isinstance(result, VerbatimResult) else result
