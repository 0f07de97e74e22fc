"""What an agent says when it is asked for its tools, or for a call of one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final, cast, get_args

from caal_node.control.messages import (
    CalledAnswer,
    CallTool,
    FailureKind,
    FindTools,
    FoundAnswer,
    ListAnswer,
    ListTools,
    NotDone,
    ToolsAnswer,
    ToolSummary,
    read_request,
)
from caal_node.core.errors import ToolFailure, UnknownTool
from caal_node.tools.direct_calls import DirectCalls
from caal_node.tools.remote_toolset import RemoteToolset
from caal_node.tools.table import ToolEntry, ToolTable

logger = logging.getLogger(__name__)

_KINDS: Final[frozenset[str]] = frozenset(get_args(FailureKind))


class AgentTools:
    """`ControlListener`'s `on_tools`."""

    def __init__(self, remote: RemoteToolset, calls: DirectCalls) -> None:
        self._remote: Final = remote
        self._calls: Final = calls

    async def __call__(self, request: str) -> str:
        """
        Raises:
            ValueError: the request is of another version.
        """
        answer = await self._answer(request)
        # Beside the loop: a catalogue takes more than an audio frame.
        return await asyncio.to_thread(answer.model_dump_json)

    async def _answer(self, request: str) -> ToolsAnswer:
        match read_request(request):
            case ListTools():
                whole = await self._remote.whole()
                failed = dict(self._remote.failed)
                return ListAnswer(tools=self._rows(whole.table), failed=failed)
            case FindTools(patterns=patterns, limit=limit):
                found = await self._remote.find(patterns)
                return FoundAnswer(found=len(found), tools=self._rows(found[:limit]))
            case CallTool() as call:
                return await self._called(call)

    async def _called(self, call: CallTool) -> CalledAnswer | NotDone:
        try:
            result = await self._calls.run(call.name, call.arguments)
        except ToolFailure as failure:
            return _not_done(failure)
        return CalledAnswer(
            name=result.entry.exposed,
            tier=result.entry.spec.tier,
            server=result.entry.spec.source,
            call_id=result.call_id,
            duration_ms=result.duration_ms,
            result=result.value,
            truncated=result.truncated,
            spoken=result.spoken,
        )

    def _rows(self, entries: Iterable[ToolEntry]) -> list[ToolSummary]:
        offered = self._remote.table
        return [_row(entry, offered) for entry in entries]


def _row(entry: ToolEntry, offered: ToolTable) -> ToolSummary:
    spec = entry.spec
    return ToolSummary(
        name=entry.exposed,
        tier=spec.tier,
        server=spec.source,
        tool=spec.own_name or spec.name,
        description=spec.details or spec.description,
        input_schema=dict(spec.parameters),
        read_only=spec.read_only,
        offered=entry.exposed in offered,
    )


def _not_done(failure: ToolFailure) -> NotDone:
    kind = failure.kind if failure.kind in _KINDS else "error"
    return NotDone(
        kind=cast("FailureKind", kind),
        message=str(failure),
        valid_names=list(failure.valid) if isinstance(failure, UnknownTool) else [],
    )
