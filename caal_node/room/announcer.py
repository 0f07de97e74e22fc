"""Speaks in a session by itself: a timer that rings, a reminder, an announcement of a program.

Nobody is talked over: it waits until neither the person nor the agent speaks, and until an answer
that is on its way has been given. Then come the cue and the words. Where people talk on and on, or
a radio is taken for them, it speaks all the same after PATIENCE_S, as a timer that never rings is
worse. The more urgent announcement comes first, then the earlier one.

LiveKit's `session.say` puts words behind whatever is being said: it waits for no pause, has no
priorities, and does not tell that nothing was heard. LiveKit's AgentTask asks a question, but can
only be awaited in a tool or as an agent enters. So a question of a program's is asked here, and
`CaalAgent.llm_node` leaves the person's next words to it.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# LiveKit leaves the event types of its rooms and sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import bisect
import itertools
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from livekit import rtc
from livekit.agents import (
    AgentSession,
    AgentStateChangedEvent,
    AgentTask,
    ConversationItemAddedEvent,
    llm,
)
from livekit.agents.voice import SpeechHandle

from caal_node.core.events import Announced, AnswerTo, CueKind, NotSaid, Priority
from caal_node.room.cue_policy import SPEECH_GAP_S
from caal_node.room.hearing import Hearing
from caal_node.room.other_participants import connected

QUIET_S: Final = 1.0
"""Seconds of silence before it speaks: as long as a person may pause, and as it takes until their
words are known to be over and an answer begins."""
PATIENCE_S: Final = 30.0
"""Seconds that it waits for silence."""
PLAYOUT_S: Final = 60.0
"""Seconds that an announcement may take; a sentence takes five."""
LOW_QUIET_S: Final = 5.0
"""Seconds of silence before it says what has time: nobody is about to go on."""
LOW_PATIENCE_S: Final = 120.0
"""Seconds that it waits for such a silence before it gives up."""
INTERRUPT_S: Final = 6.0
"""Seconds for the agent to fall silent; LiveKit breaks it off after five."""
ANSWER_S: Final = 15.0
"""Seconds after a question in which the person has to begin their answer."""
WORDS_S: Final = 6.0
"""Seconds from their last word until speech to text has it, as on a busy machine."""
LISTEN_S: Final = 60.0
"""Seconds that an answer may take."""
ANSWER_CHARS: Final = 2_000
"""Characters that are kept of an answer: two minutes of speech."""
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


_RANKS: Final[tuple[Priority, ...]] = "urgent", "normal", "low"


@dataclass(frozen=True, slots=True, order=True)
class _Place:
    """A place in the line of those who want to speak; the smallest is the next."""

    rank: int
    number: int

    @property
    def is_urgent(self) -> bool:
        return _RANKS[self.rank] == "urgent"

    @property
    def has_time(self) -> bool:
        return _RANKS[self.rank] == "low"


class _Question:
    """A question that `speech` asks, open from its first sound until it is closed."""

    def __init__(self, session: AgentSession[Any], speech: SpeechHandle) -> None:
        self._session: Final = session
        self._speech: Final = speech
        self.answer: Final[asyncio.Future[str]] = asyncio.get_running_loop().create_future()
        """The person's words. It is cancelled where they are not awaited any more."""
        self._known: frozenset[str] | None = None
        """The ids of what had been said before; None until somebody hears the question."""
        self._taken = ""
        session.on("agent_state_changed", self._on_agent_state)
        session.on("conversation_item_added", self._on_item)

    def close(self) -> None:
        self._session.off("agent_state_changed", self._on_agent_state)
        self._session.off("conversation_item_added", self._on_item)
        self.answer.cancel()

    def is_answered_by(self, message: object) -> bool:
        """Say whether an item of the conversation is, or is going to be, the answer."""
        if not isinstance(message, llm.ChatMessage) or message.role != "user":
            return False
        is_open = self._known is not None and not self.answer.done()
        return message.id == self._taken or (is_open and message.id not in (self._known or ()))

    def _on_agent_state(self, event: AgentStateChangedEvent) -> None:
        is_heard = event.new_state == "speaking" and self._session.current_speech is self._speech
        if is_heard and self._known is None:
            self._known = frozenset(item.id for item in self._session.history.items)

    def _on_item(self, event: ConversationItemAddedEvent) -> None:
        if not self.answer.done() and self.is_answered_by(event.item):
            assert isinstance(event.item, llm.ChatMessage)
            if words := (event.item.text_content or "").strip():
                self._taken = event.item.id
                self.answer.set_result(words[:ANSWER_CHARS])


class SessionAnnouncer:
    """The announcer of one agent. It hears nobody and is heard by nobody outside of a session."""

    def __init__(self, hearing: Hearing | None = None) -> None:
        """`hearing` knows whether somebody has spoken who waits for an answer."""
        self._hearing: Final = hearing
        self._bound: _Bound | None = None
        self._line: list[_Place] = []
        """Those who want to speak, the next first."""
        self._numbers: Final = itertools.count()
        self._speaking: _Place | None = None
        self._question: _Question | None = None
        """The last one that was asked, also when it is over."""
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
        done = await self._announce(words, cue, self._place("normal"), asks=False)
        return done.reason not in ("nobody_there", "session_ended")

    async def say(
        self, words: str, priority: Priority = "normal", answer_to: AnswerTo = "model"
    ) -> Announced:
        """Say words when their priority allows it. The history has them as the agent's own.

        For the caller they are a question: the person's next words are returned, and the model is
        not asked about them. Cancelling it stops the words, and the question is over.
        """
        place = self._place(priority)
        return await self._announce(words, None, place, asks=answer_to == "caller")

    async def ask(self, request: str) -> bool:
        """Wait until nobody speaks, and begin a turn with a request as the person's words.

        It is the session's turn then: nobody needs to be there to hear its answer.

        Returns:
            Whether there was a session to begin it in.
        """
        bound = self._bound
        if bound is None or await self._floor(bound, self._place("normal"), asks=False):
            return False
        self._speaking = None
        try:
            bound.session.generate_reply(user_input=request)
        except RuntimeError as error:  # the session closes
            _log.warning("a request that was kept for now was not made: %s", error)
            return False
        return True

    def is_answer(self, chat_ctx: llm.ChatContext) -> bool:
        """Say whether the last words of a conversation are the answer to a question asked here."""
        question, items = self._question, chat_ctx.items
        return question is not None and bool(items) and question.is_answered_by(items[-1])

    def _place(self, priority: Priority) -> _Place:
        return _Place(_RANKS.index(priority), next(self._numbers))

    async def _announce(
        self, words: str, cue: CueKind | None, place: _Place, *, asks: bool
    ) -> Announced:
        if (bound := self._bound) is None:
            return Announced("not_said", "session_ended")
        if not _somebody_is_there(bound):
            return Announced("not_said", "nobody_there")
        while (why := await self._floor(bound, place, asks=asks)) is None:
            try:
                if not _somebody_is_there(bound):
                    return Announced("not_said", "nobody_there")
                if cue is not None and (length := bound.play_cue(cue)):
                    cue = None
                    await asyncio.sleep(length + SPEECH_GAP_S)
                    if self._bound is not bound:
                        return Announced("not_said", "session_ended")
                    if words and _is_busy(bound.session):
                        continue  # somebody has begun to speak meanwhile
                return await self._said(bound, words, asks=asks) if words else Announced("said")
            finally:
                self._speaking = None
        return Announced("not_said", why)

    async def _floor(self, bound: _Bound, place: _Place, *, asks: bool) -> NotSaid | None:
        """Wait for its turn in the line, then for silence.

        Returns:
            Why it may not speak; None where it may, until `_speaking` is None again.
        """
        loop = asyncio.get_running_loop()
        quiet_s, patience_s = QUIET_S, PATIENCE_S
        if place.has_time:
            quiet_s, patience_s = LOW_QUIET_S, LOW_PATIENCE_S
        bisect.insort(self._line, place)
        since, deadline = loop.time(), math.inf
        try:
            while self._bound is bound:
                now, speaking = loop.time(), self._speaking
                is_next = self._line[0] is place and (
                    speaking is None or (place.is_urgent and not speaking.is_urgent)
                )
                if is_next and deadline == math.inf:
                    deadline = now + patience_s
                if not is_next or self._has_to_wait(bound.session, place, asks=asks):
                    since = now + _LOOK_S
                is_quiet = now - since >= quiet_s
                if now >= deadline and not is_quiet and (asks or place.has_time):
                    return "no_pause"
                if is_next and (is_quiet or now >= deadline):
                    if place.is_urgent:
                        await self._silence_agent(bound)
                    if self._speaking is None:
                        self._speaking = place
                        return None
                await asyncio.sleep(_LOOK_S)
            return "session_ended"
        finally:
            self._line.remove(place)

    def _has_to_wait(self, session: AgentSession[Any], place: _Place, *, asks: bool) -> bool:
        """Say whether the person speaks; where this is not urgent, also whether they wait for an
        answer, or the agent speaks.

        Two questions are never open at once, so that an answer belongs to one of them.
        """
        if not place.is_urgent:
            is_hearing = self._hearing is not None and self._hearing.is_hearing
            return is_hearing or _is_busy(session)
        return session.user_state == "speaking" or (asks and _task_leads(session))

    async def _silence_agent(self, bound: _Bound) -> None:
        """Break off what the agent is saying, and its question, if it may be broken off."""
        if self._question is not None:
            self._question.answer.cancel()
        try:
            async with asyncio.timeout(INTERRUPT_S):
                await bound.session.interrupt()
        except (RuntimeError, TimeoutError) as error:  # the words come behind it
            _log.warning("the agent was not interrupted: %s", error)

    async def _said(self, bound: _Bound, words: str, *, asks: bool) -> Announced:
        session = bound.session
        try:
            speech = session.say(words)
        except RuntimeError as error:  # the session closes, or it has no voice
            _log.warning("an announcement was not said: %s", error)
            return Announced("not_said", "session_ended")
        question = self._question = _Question(session, speech) if asks else None
        try:
            if (why := await _unheard(session, speech)) is not None:
                _log.warning("an announcement was not said: %s", why)
                return Announced("not_said", why)
            return Announced("said") if question is None else await self._answered(bound, question)
        finally:
            if question is not None:
                question.close()
            if not speech.done():
                speech.interrupt()

    async def _answered(self, bound: _Bound, question: _Question) -> Announced:
        loop, answer = asyncio.get_running_loop(), question.answer
        give_up = loop.time() + ANSWER_S
        last = loop.time() + LISTEN_S
        while not answer.done() and (now := loop.time()) < min(give_up, last):
            if self._bound is not bound:
                break
            if bound.session.user_state == "speaking":
                give_up = max(give_up, now + WORDS_S)
            await asyncio.wait({answer}, timeout=_LOOK_S)
        if not answer.done():
            return Announced("silence")
        if answer.cancelled():
            return Announced("not_said", "interrupted")
        return Announced("answered", answer=answer.result())


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
        or _task_leads(session)
    )


def _task_leads(session: AgentSession[Any]) -> bool:
    """Say whether a tool asks the person something."""
    try:
        return isinstance(session.current_agent, AgentTask)
    except RuntimeError:  # the session closes
        return False


async def _unheard(session: AgentSession[Any], speech: SpeechHandle) -> NotSaid | None:
    """Wait until the words have been said, and return why nobody has heard them; else None."""
    try:
        async with asyncio.timeout(PLAYOUT_S):
            await speech.wait_for_playout()
    except TimeoutError:
        _log.warning("an announcement took more than %g s, and was ended", PLAYOUT_S)
        return None if session.agent_state == "speaking" else "no_pause"
    # A failed text to speech is no exception here, and LiveKit's event `error` tells only of what
    # its plugins raise as an APIError. In both cases the words do not come into the history.
    if speech.chat_items:
        return None
    return "interrupted" if speech.interrupted else "speech_failed"
