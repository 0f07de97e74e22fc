"""The tool `undo` takes back what the last turn has changed: "undo that", "take that back".

A tool's author returns an `Undoable`, whose `undo` takes that call back:

    @function_tool
    async def rename_light(self, old: str, new: str) -> Undoable:
        "Rename a light."
        self.names[new] = self.names.pop(old)

        async def undo() -> str:
            self.names[old] = self.names.pop(new)
            return f"The light is called {old} again."

        return Undoable(f"It is called {new}.", undo)

This is not LiveKit's, which has no undo: its history keeps what a call has returned, and it has no
form in which a tool could say how a call is taken back.

n8n workflows and MCP tools cannot be undone. A note that names another tool would not say what its
arguments are, and which record or state a server had before, only that server knows.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# LiveKit leaves the types of its tools open, so they are half unknown.

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, takewhile
from typing import Any, Final, get_args, get_type_hints

from livekit.agents import function_tool
from livekit.agents.llm import Tool, Toolset

from caal_node.core.errors import InvalidArguments, ToolBroke
from caal_node.core.events import Outcome
from caal_node.core.prompt_files import sentence
from caal_node.core.tool_spec import tool_reads
from caal_node.tools.call_middleware import ToolCallRequest
from caal_node.tools.effects import CallTerms, effect, with_terms
from caal_node.tools.source import Arguments, Undoable, VerbatimResult
from caal_node.tools.table import ToolEntry

KEPT_S: Final = 300.0
"""Seconds that a call can be taken back. After five minutes "that" is something else, and others
may have changed what it has changed."""
CALLS_MAX: Final = 64
"""Calls that are kept; nobody takes back more."""


@effect("write")
async def _undo() -> VerbatimResult:
    """Undo what was changed last, so that it is as it was before.

    Example: undo that -> {}
    Example: take that back -> {}
    Example: no, put it back as it was -> {}
    """
    return VerbatimResult({"undone": []}, sentence("undo_nothing"))


UNDO: Final = function_tool(with_terms(_undo, CallTerms(remembered=False)), name="undo")
"""The tool. Its own code runs only where there is nothing to undo (`Pipeline.undo`)."""


def undo_for(tools: Sequence[Tool | Toolset]) -> list[Tool | Toolset]:
    """Return `undo` if a call of one of the function tools can be undone, and none has its name.

    It depends on what the tools declare, and not on their calls: a tool that came and went would
    change the beginning of the prompt.
    """
    parts = (each.tools if isinstance(each, Toolset) else (each,) for each in tools)
    own = list(chain.from_iterable(parts))
    named = any(each.id == UNDO.id for each in own if isinstance(each, Tool))
    return [UNDO] if not named and any(map(_declares, own)) else []


def _declares(tool: Any) -> bool:
    try:
        returned = get_type_hints(tool).get("return")
    except Exception:  # an annotation that only exists while type checking: LiveKit reports it
        return False
    return Undoable in (returned, *get_args(returned))


@dataclass(eq=False, slots=True)
class ChangingCall:
    """A call that has changed something, or that may have, or is about to."""

    entry: ToolEntry
    call_id: str
    arguments: Arguments
    turn: str
    """The id of the speech that it belongs to."""
    undo: Callable[[], Awaitable[Any]] | None = None
    """None where it cannot be taken back."""
    ended_s: float | None = None

    def entry_of_undo(self, undo: ToolEntry) -> ToolEntry:
        """Return the tool as which this call's undo is judged: the owner's rules about `undo` and
        those about the call's own tool hold, but for what they allow that tool alone."""
        spec = self.entry.spec
        as_undo = replace(
            spec,
            name=f"{undo.spec.name}_{spec.name}",
            wanted=self.entry.exposed,
            description=undo.spec.description,
            remembered=False,
        )
        return ToolEntry(undo.exposed, as_undo, undo.schema)


class UndoHistory:
    """The calls of one conversation that have changed something, in the order of their beginning.

    A call that is still under way, or has broken off, is kept as one that cannot be undone, so that
    nobody undoes the one before it instead. One that was refused has changed nothing. Calls of the
    control API are not the conversation's.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns seconds and never goes back."""
        self._clock: Final = clock
        self._calls: Final[dict[str, ChangingCall]] = {}

    def begin(self, call: ToolCallRequest) -> None:
        """Keep a call that begins, unless it only reads."""
        entry, spec = call.entry, call.entry.spec
        reads = spec.read_only is True or tool_reads(entry.exposed, spec.effect)
        if reads or entry.exposed == UNDO.id or call.context is None:
            return
        if call.caller.origin == "api":
            return
        turn = call.context.speech_handle.id
        self._calls[call.call_id] = ChangingCall(entry, call.call_id, call.arguments, turn)
        while len(self._calls) > CALLS_MAX:
            del self._calls[next(iter(self._calls))]

    def plain(self, call: ToolCallRequest, value: Any) -> Any:
        """Keep the undo of a call that has ended well, and return its result without it."""
        if not isinstance(value, Undoable):
            return value
        if (known := self._calls.get(call.call_id)) is not None and call.entry.spec.tier == "agent":
            known.undo = value.undo
        return value.value if value.words is None else VerbatimResult(value.value, value.words)

    def end(self, call: ToolCallRequest, outcome: Outcome, error: BaseException | None) -> None:
        """Note that a call has ended, and forget one that has changed nothing."""
        if outcome in ("refused", "dry_run") or isinstance(error, InvalidArguments):
            self._calls.pop(call.call_id, None)
        elif (known := self._calls.get(call.call_id)) is not None:
            known.ended_s = self._clock()

    def last_turn(self) -> list[ChangingCall]:
        """Return the calls of the last turn that changed something, the newest first."""
        since = self._clock() - KEPT_S
        kept = [
            each
            for each in reversed(self._calls.values())
            if each.ended_s is None or each.ended_s >= since
        ]
        return list(takewhile(lambda each: each.turn == kept[0].turn, kept))

    async def run_undo(self, call: ChangingCall) -> Any:
        """Take a call back. It is forgotten first, so that nothing is undone twice, whatever comes.

        Raises:
            ToolFailure: it cannot be taken back any more.
        """
        if self._calls.pop(call.call_id, None) is None or call.undo is None:
            raise not_undone("undo_nothing")
        return await call.undo()

    def clear(self) -> None:
        """Forget everything, as the conversation is over."""
        self._calls.clear()


def not_undone(key: str) -> ToolBroke:
    """Return the failure of an undo that has changed nothing, by its key in `sentences.toml`."""
    failure = ToolBroke(sentence(key))
    failure.words = sentence(key)
    return failure
