"""Speaks in a session by itself: a timer that rings, an alarm, a reminder, a request kept for now.

Nobody is talked over: it waits until neither the person nor the agent speaks, and until an answer
that is on its way has been given. Then come the cue and the words. Where people talk on and on, or
a radio is taken for them, it speaks all the same after PATIENCE_S, as a timer that never rings is
worse.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# LiveKit leaves the event types of its rooms and sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from livekit import rtc
from livekit.agents import AgentSession

from caal_node.core.events import CueKind
from caal_node.room.cue_policy import SPEECH_GAP_S
from caal_node.room.other_participants import connected

QUIET_S: Final = 1.0
"""Seconds of silence before it speaks: as long as a person may pause, and as it takes until their
words are known to be over and an answer begins."""
PATIENCE_S: Final = 30.0
"""Seconds that it waits for silence."""
PLAYOUT_S: Final = 60.0
"""Seconds that an announcement may take; a sentence takes five."""
SETTLE_S: Final = 1.5
"""Seconds until somebody who has just come hears the agent's tracks."""
_LOOK_S: Final = 0.1
"""Seconds between two looks; LiveKit has no event for a speech that leaves its queue."""
_MACHINES: Final = frozenset(
    {
        rtc.ParticipantKind.PARTICIPANT_KIND_AGENT,
        rtc.ParticipantKind.PARTICIPANT_KIND_EGRESS,
        rtc.ParticipantKind.PARTICIPANT_KIND_INGRESS,
    }
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Bound:
    session: AgentSession[Any]
    room: rtc.Room | None
    play_cue: Callable[[CueKind], float]


class SessionAnnouncer:
    """The announcer of one agent. It hears nobody and is heard by nobody outside of a session."""

    def __init__(self) -> None:
        self._bound: _Bound | None = None
        self._lock = asyncio.Lock()
        self._arrivals: list[Callable[[], None]] = []

    @property
    def place(self) -> str:
        """The room's name, "" where the conversation has no room."""
        bound = self._bound
        return "" if bound is None or bound.room is None else bound.room.name

    def begin(
        self,
        session: AgentSession[Any],
        room: rtc.Room | None,
        play_cue: Callable[[CueKind], float],
    ) -> None:
        """Speak in a session from now on.

        Args:
            room: Its room, None where it has none: then somebody is always there.
            play_cue: It plays a cue, and returns its length in seconds, 0 where it is not played.
        """
        self._bound = _Bound(session, room, play_cue)

    def end(self) -> None:
        """Leave the session. Announcements that wait are given up."""
        self._bound = None

    async def watch_arrivals(self) -> None:
        """Tell of everybody who comes, and of those who are there, until it is cancelled."""
        bound = self._bound
        if bound is None:
            return
        came = asyncio.Event()

        def on_participant(participant: rtc.RemoteParticipant) -> None:
            if participant.kind not in _MACHINES:
                came.set()

        if bound.room is not None:
            bound.room.on("participant_connected", on_participant)
        try:
            if bound.room is not None:
                await connected(bound.room)
            if _somebody_is_there(bound):
                came.set()
            while True:
                await came.wait()
                came.clear()
                await asyncio.sleep(SETTLE_S if bound.room is not None else 0)
                for tell in tuple(self._arrivals):
                    tell()
        finally:
            if bound.room is not None:
                bound.room.off("participant_connected", on_participant)

    def on_arrival(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Call `tell`, on the event loop, when somebody comes, or is there when a session begins.

        Returns:
            A function that ends this.
        """
        self._arrivals.append(tell)

        def end() -> None:
            if tell in self._arrivals:
                self._arrivals.remove(tell)

        return end

    async def announce(self, words: str, *, cue: CueKind | None = None) -> bool:
        """Wait until nobody speaks, play the cue, and say the words; "" plays the cue alone.

        One announcement follows the other. Cancelling it stops its words.

        Returns:
            Whether somebody was there to hear it.
        """
        async with self._lock:
            bound = self._bound
            if bound is None or not _somebody_is_there(bound):
                return False
            loop = asyncio.get_running_loop()
            deadline = loop.time() + PATIENCE_S
            await self._quiet(bound, deadline)
            if self._bound is not bound or not _somebody_is_there(bound):
                return False
            if cue is not None and (length := bound.play_cue(cue)):
                await asyncio.sleep(length + SPEECH_GAP_S)
                if words and _is_busy(bound.session):  # somebody has begun to speak meanwhile
                    await self._quiet(bound, deadline)
            if self._bound is not bound:
                return False
            return await _said(bound.session, words) if words else True

    async def ask(self, request: str) -> bool:
        """Wait until nobody speaks, and begin a turn with a request as the person's words.

        It is the session's turn then: nobody needs to be there to hear its answer.

        Returns:
            Whether there was a session to begin it in.
        """
        async with self._lock:
            bound = self._bound
            if bound is None:
                return False
            await self._quiet(bound, asyncio.get_running_loop().time() + PATIENCE_S)
            if self._bound is not bound:
                return False
            try:
                bound.session.generate_reply(user_input=request)
            except RuntimeError as error:  # the session closes
                _log.warning("a request that was kept for now was not made: %s", error)
                return False
            return True

    async def _quiet(self, bound: _Bound, deadline: float) -> None:
        """Wait until nobody has spoken for QUIET_S, up to the deadline in loop time."""
        loop = asyncio.get_running_loop()
        since = loop.time()
        while self._bound is bound and (now := loop.time()) < deadline:
            if _is_busy(bound.session):
                since = now + _LOOK_S
            elif now - since >= QUIET_S:
                return
            await asyncio.sleep(_LOOK_S)


def _somebody_is_there(bound: _Bound) -> bool:
    if bound.room is None:
        return True
    people = bound.room.remote_participants.values()
    return bound.room.isconnected() and any(each.kind not in _MACHINES for each in people)


def _is_busy(session: AgentSession[Any]) -> bool:
    return (
        session.user_state == "speaking"
        or session.agent_state in ("thinking", "speaking")
        or session.current_speech is not None
    )


async def _said(session: AgentSession[Any], words: str) -> bool:
    try:
        speech = session.say(words)
    except RuntimeError as error:  # the session closes, or it has no voice
        _log.warning("an announcement was not said: %s", error)
        return False
    try:
        async with asyncio.timeout(PLAYOUT_S):
            await speech.wait_for_playout()
    except TimeoutError:
        _log.warning("an announcement took more than %g s, and was ended", PLAYOUT_S)
    finally:
        if not speech.done():
            speech.interrupt()
    return True
