"""What a toolset needs of a Home Assistant, however it is reached."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

from caal_node.core.errors import ToolBroke, ToolFailure, ToolOutside, ToolRefused, ToolUnavailable
from caal_node.network.guard import refusal_in
from caal_node.toolsets.home_assistant.devices import Home, Order, can_be_seen

CALL_S: Final = 12.0
"""The time for all of one tool's call: a slow device answers Home Assistant within ten seconds."""
SETTLE_S: Final = 1.5
"""The time in which a device that was told to change says that it has."""
SETTLE_UNSEEN_S: Final = 0.5
"""The same where its state says nothing of it: a track that is skipped, a blind that stops."""
UNREACHABLE: Final = "I can't reach Home Assistant right now."
REFUSED: Final = "Home Assistant doesn't let me in."
NOT_TAKEN: Final = (
    "Home Assistant does not take the token; make a new one in its profile and run: "
    "caal-node tools add home_assistant"
)
FAILED: Final = "Home Assistant could not do that."


class HomeLink(Protocol):
    """One open connection, which lives as long as one call of a tool."""

    async def read_home(self) -> Home:
        """Return the home as it is now, with what Assist may use and nothing else.

        Raises:
            ToolFailure: it cannot be had.
        """
        ...

    async def carry_out(self, orders: Sequence[Order]) -> Home:
        """Call the services, wait at most `SETTLE_S` for what they do, and return the home.

        Raises:
            ToolFailure: Home Assistant refuses one of them.
        """
        ...


class HomeAssistantServer(Protocol):
    """A Home Assistant to which a connection can be opened."""

    def open(self) -> AbstractAsyncContextManager[HomeLink]:
        """Open a connection.

        Raises:
            ToolUnavailable: it cannot be reached, or does not answer.
            ToolRefused: it does not take the token.
        """
        ...


def settle_s(orders: Sequence[Order]) -> float:
    """Return the seconds to wait for what orders do."""
    return SETTLE_S if any(can_be_seen(each) for each in orders) else SETTLE_UNSEEN_S


def unreachable(why: str) -> ToolUnavailable:
    """Return the error for a Home Assistant that does not answer."""
    failure = ToolUnavailable(f"Home Assistant cannot be reached: {why}")
    failure.words = UNREACHABLE
    return failure


def too_talkative() -> ToolUnavailable:
    """Return the error for a Home Assistant that says more than is read."""
    failure = ToolUnavailable(
        "Home Assistant says more than can be read: expose fewer devices to Assist."
    )
    failure.words = (
        "Your home has more to say than I can read. Please expose fewer devices to the assistant."
    )
    return failure


def lost(error: Exception) -> ToolFailure:
    """Return the error for a connection that could not be made or was lost."""
    if (why := refusal_in(error)) is not None:
        return ToolOutside(f"Home Assistant is where this process may not connect to: {why}")
    return unreachable(_why(error))


def _why(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens at its address"
    if isinstance(error, socket.gaierror):
        return "its host's name is not known here"
    return type(error).__name__


def turned_away(why: str) -> ToolRefused:
    """Return the error for a token that is not taken, or may not do enough."""
    failure = ToolRefused(why)
    failure.words = REFUSED
    return failure


def failed(why: str) -> ToolBroke:
    """Return the error for a service that Home Assistant could not carry out."""
    failure = ToolBroke(f"Home Assistant could not do that: {why}")
    failure.words = FAILED
    return failure
