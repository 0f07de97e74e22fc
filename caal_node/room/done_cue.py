"""Decides whether a turn ends with a sound in place of a sentence: `[cues] done = true`.

"Turn on the lamp" needs no answer when the lamp goes on at once. Only what the program knows
counts: which calls ran, how they ended, and what their results hold. In doubt the model answers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, Protocol, cast

from livekit.agents.llm import FunctionCall

from caal_node.config.switches import Switches
from caal_node.core.events import ToolCallEnded
from caal_node.core.tool_spec import tool_reads
from caal_node.language.requests import is_one_order
from caal_node.tools.table import ToolTable

QUICK_MS: Final = 1_500
"""Milliseconds of a call up to which nobody wonders what the sound is for."""
_NOTHING: Final = frozenset(
    {"", "ok", "okay", "done", "success", "true", "null", "none", "{}", "[]"}
)
"""Results, and values in them, that say no more than that it worked."""


class KnownTools(Protocol):
    """What has the tools of the conversation."""

    @property
    def table(self) -> ToolTable: ...


class DoneCue:
    """Knows which turns end with a sound."""

    def __init__(self, tools: KnownTools, switches: Switches) -> None:
        self._tools: Final = tools
        self._switches: Final = switches

    def fits(
        self, request: str, calls: Sequence[FunctionCall], ended: Sequence[ToolCallEnded]
    ) -> bool:
        """Say whether a turn is one order, and each of its calls a control that worked at once.

        Args:
            request: The words that the turn answers.
            calls: All calls of the turn.
            ended: How those that were made have ended.
        """
        ends = {each.call_id: each for each in ended}
        return (
            self._switches.cues
            and bool(calls)
            and is_one_order(request)
            and all(
                call.call_id in ends and self._is_done(call, ends[call.call_id]) for call in calls
            )
        )

    def _is_done(self, call: FunctionCall, ended: ToolCallEnded) -> bool:
        entry = self._tools.table.get(call.name)
        return (
            entry is not None
            and entry.spec.effect == "write"
            and not tool_reads(call.name, entry.spec.effect)
            and not self._switches.is_silent(call.name)
            and ended.outcome == "ok"
            and ended.duration_ms <= QUICK_MS
            and all(decision.verdict == "allowed" for decision in ended.decisions)
            and tells_nothing(ended.result, call.arguments)
        )


def tells_nothing(result: str, arguments: str = "{}") -> bool:
    """Say whether a result holds no more than that it worked, and what the call has asked for."""
    known = _NOTHING.union(_said(value) for value in _members(arguments).values())
    if _said(result) in _NOTHING:
        return True
    members = _members(result)
    return bool(members) and all(_said(value) in known for value in members.values())


def _said(value: object) -> str:
    return str(value).strip(' .!\n"').casefold()


def _members(text: str) -> dict[str, Any]:
    try:
        read: object = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", read) if isinstance(read, dict) else {}
