"""The owner's rules about calls: each is a middleware that calls of every tier go through.

A middleware is an object with one method. It passes a call on, or raises, or answers by itself:

    class OnlyByDay(CallMiddleware):
        name = "only_by_day"

        async def run(self, call, proceed):
            if night():
                raise ToolRefused(f"{call.entry.exposed} is not run at night.")
            return await proceed()

An agent's are a list, the first one outermost, which the owner can read and change:
`agent.middleware.insert(0, OnlyByDay())`. By then a call's arguments fit its schema, and no earlier
call that it conflicts with runs any more; its deadline begins behind the last middleware, so that
one may ask a person and wait.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from livekit.agents import RunContext

from caal_node.core.events import Decision, Event, Verdict
from caal_node.core.tool_spec import Caller
from caal_node.tools.source import Arguments
from caal_node.tools.table import ToolEntry


@dataclass(frozen=True, slots=True)
class Preview:
    """What one middleware would do with a call, for an owner who tries the rules."""

    verdict: Verdict | Literal["asks"]
    """`asks` is a question to a person, on whose answer it depends."""
    line: str
    says: str = ""
    """What a person would be asked, or told."""


Proceed: TypeAlias = Callable[[], Awaitable[Any]]
"""It runs the rest of the call, and returns its value; see `caal_node.tools.source`."""


class SpokenWords(Protocol):
    """What is needed of what hears the person."""

    @property
    def is_hearing(self) -> bool:
        """Whether somebody speaks, or has spoken and no turn has come of it yet."""
        ...

    async def heard_out(self) -> str:
        """Return the words for the agent that are being spoken, once they are there; else ""."""
        ...


@dataclass(frozen=True, slots=True)
class ToolCallRequest:
    """One call that is about to run."""

    entry: ToolEntry
    call_id: str
    arguments: Arguments
    caller: Caller
    context: RunContext[Any] | None = None
    """LiveKit's context of the call; None for a call that comes from outside the conversation."""
    confirmation: str = ""
    """The hash of the call that a caller of the API says yes to; see docs/safety.md."""
    redact: Callable[[str], str] = str
    """It takes secrets out of a text that people see or hear."""
    emit: Callable[[Event], None] = lambda _: None
    """It tells the conversation's listeners of an event."""
    decisions: list[Decision] = field(default_factory=list[Decision])
    """What the middleware have decided so far. The call's event has it."""
    progress: list[str] = field(default_factory=list[str])
    """The newest message of the tool about its progress, redacted; empty where there is none."""
    hearing: SpokenWords | None = None
    """It knows whether the person speaks; None where nothing is heard."""

    @property
    def is_dry(self) -> bool:
        """Whether it was only told of what the call would have done."""
        return any(decision.verdict == "dry_run" for decision in self.decisions)

    def note(self, by: str, verdict: Verdict, line: str, began: float) -> None:
        """Add a decision that was begun at `began`, in seconds of `time.perf_counter`."""
        took_ms = round((time.perf_counter() - began) * 1000, 3)
        self.decisions.append(Decision(by, verdict, line, took_ms))


class CallMiddleware(ABC):
    """One rule about calls."""

    name: ClassVar[str]
    """What events call it, as the decider."""
    judges: ClassVar[bool] = True
    """Whether it may keep a call from running. `caal-node policy try` leaves others out."""

    @abstractmethod
    async def run(self, call: ToolCallRequest, proceed: Proceed) -> Any:
        """Return what `proceed` returns, or a value in its place.

        Raises:
            ToolRefused: The call may not run. The text is for the model, and says what it can do.
        """

    def check_again(self, call: ToolCallRequest) -> None:
        """Refuse a call that may not run any more, after whatever was waited for since `run`.

        Raises:
            ToolRefused: What the model is told.
        """
        return

    def preview(self, call: ToolCallRequest) -> Preview | None:
        """Say what would become of a call, and change nothing by it; None where it cannot be told.

        `caal-node policy try` shows it.
        """
        return None

    def on_invalid(self, call: ToolCallRequest) -> None:
        """Hear of a call that does not run, as its arguments do not fit the tool's schema.

        Raises:
            ToolRefused: What the model is told in place of what is wrong with the arguments.
        """
        return


async def run_through(
    middleware: Sequence[CallMiddleware], call: ToolCallRequest, execute: Proceed
) -> Any:
    """Run a call through all of `middleware`, the first one outermost, and then `execute` it."""
    passed = tuple(middleware)

    async def still_allowed() -> Any:
        for each in passed:
            each.check_again(call)
        return await execute()

    proceed: Proceed = still_allowed
    for each in reversed(passed):
        proceed = partial(each.run, call, proceed)
    return await proceed()
